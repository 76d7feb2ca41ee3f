package web_test

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// formOf returns the fields of a page's main form as a browser would send them, without its buttons.
func formOf(page string) url.Values {
	values := url.Values{}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return values
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && (strings.HasSuffix(attribute(n, "id"), "-form") || strings.HasSuffix(attribute(n, "action"), "/start") || strings.HasSuffix(attribute(n, "action"), "/edit")) {
			for field := range n.Descendants() {
				addField(values, field)
			}
		}
	}
	return values
}

// formTo returns the fields of the form that a page sends to an address.
func formTo(page, address string) url.Values {
	values := url.Values{}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return values
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && attribute(n, "action") == address {
			for field := range n.Descendants() {
				addField(values, field)
			}
		}
	}
	return values
}

func addField(values url.Values, n *html.Node) {
	name := attribute(n, "name")
	if n.Type != html.ElementNode || name == "" {
		return
	}
	switch n.Data {
	case "input":
		if kind := attribute(n, "type"); kind != "radio" && kind != "checkbox" || has(n, "checked") {
			values.Add(name, attribute(n, "value"))
		}
	case "textarea":
		text := ""
		for c := range n.ChildNodes() {
			text += c.Data
		}
		values.Add(name, text)
	case "select":
		chosen, first := "", true
		for o := range n.Descendants() {
			if o.Type == html.ElementNode && o.Data == "option" && (first || has(o, "selected")) {
				chosen, first = attribute(o, "value"), false
			}
		}
		values.Add(name, chosen)
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// live returns an element or an attribute that a hostile text created in a page, or "" if there is none.
func live(page string) string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return err.Error()
	}
	for n := range root.Descendants() {
		switch n.Type {
		case html.CommentNode:
			if strings.Contains(n.Data, "pwned") {
				return "a comment"
			}
		case html.ElementNode:
			if n.Data == "iframe" || n.Data == "base" || n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
				return "<" + n.Data + ">"
			}
			for _, a := range n.Attr {
				inert := a.Key == "value" || a.Key == "title" || strings.HasPrefix(a.Key, "aria-") || strings.HasPrefix(a.Key, "data-") || a.Key == "for" || a.Key == "id" || a.Key == "name" || a.Key == "content" || a.Key == "placeholder"
				if strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "evil.example") && !inert || strings.Contains(a.Val, "pwned") && !inert {
					return n.Data + " with " + a.Key + "=" + a.Val
				}
			}
		}
	}
	return ""
}

// mainOf returns the main part of a page, without the navigation.
func mainOf(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	page, _, _ = strings.Cut(page, "</main>")
	return "<main" + page
}
