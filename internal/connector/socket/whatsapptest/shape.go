//go:build !nosocket

package whatsapptest

import (
	"fmt"
	"slices"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// shape says which attributes, children and content an element may have. Everything else is forbidden.
type shape struct {
	tag      string
	attrs    []attrShape
	children []childShape
	content  bool // the element contains bytes
}

type attrShape struct {
	name     string
	optional bool
	address  bool     // the value is a JID
	values   []string // the allowed values; nil: any value
}

type childShape struct {
	shape
	least, most int // how often the child may occur; if most is 0, there is no upper limit
}

// sh returns a shape with children. Attributes are written as "id type=set|get to:jid edit?".
func sh(tag, attributes string, children ...childShape) shape {
	s := shape{tag: tag, children: children}
	for word := range strings.FieldsSeq(attributes) {
		var a attrShape
		word, values, enumerated := strings.Cut(word, "=")
		if enumerated {
			a.values = strings.Split(values, "|")
		}
		word, a.optional = strings.CutSuffix(word, "?")
		a.name, a.address = strings.CutSuffix(word, ":jid")
		s.attrs = append(s.attrs, a)
	}
	return s
}

// raw returns the shape of an element that contains bytes.
func raw(tag, attributes string) shape {
	s := sh(tag, attributes)
	s.content = true
	return s
}

func one(s shape) childShape   { return childShape{shape: s, least: 1, most: 1} }
func maybe(s shape) childShape { return childShape{shape: s, most: 1} }
func many(s shape) childShape  { return childShape{shape: s} }
func some(s shape) childShape  { return childShape{shape: s, least: 1} }

// check returns what is wrong with a stanza, or "" if nothing is.
func (sh shape) check(s stanza) string {
	if s.Tag != sh.tag {
		return fmt.Sprintf("<%s> is not <%s>", s.Tag, sh.tag)
	}
	if fault := sh.checkAttrs(s); fault != "" {
		return fault
	}
	children := childrenOf(s)
	if s.Content != nil && children == nil && bytesOf(s) == nil {
		if _, list := s.Content.([]stanza); !list {
			return fmt.Sprintf("<%s> has content of type %T", s.Tag, s.Content)
		}
	}
	if !sh.content && bytesOf(s) != nil {
		return fmt.Sprintf("<%s> has bytes", s.Tag)
	}
	if sh.content && bytesOf(s) == nil {
		return fmt.Sprintf("<%s> has no bytes", s.Tag)
	}
	counts := map[string]int{}
	for _, c := range children {
		i := slices.IndexFunc(sh.children, func(known childShape) bool { return known.tag == c.Tag })
		if i < 0 {
			return fmt.Sprintf("<%s> has the unknown child <%s>", s.Tag, c.Tag)
		}
		if fault := sh.children[i].check(c); fault != "" {
			return fmt.Sprintf("in <%s>: %s", s.Tag, fault)
		}
		counts[c.Tag]++
	}
	for _, known := range sh.children {
		if n := counts[known.tag]; n < known.least || known.most > 0 && n > known.most {
			return fmt.Sprintf("<%s> has %d children <%s>", s.Tag, n, known.tag)
		}
	}
	return ""
}

func (sh shape) checkAttrs(s stanza) string {
	for name := range s.Attrs {
		if !slices.ContainsFunc(sh.attrs, func(a attrShape) bool { return a.name == name }) {
			return fmt.Sprintf("<%s> has the unknown attribute %s=%q", s.Tag, name, text(s, name))
		}
	}
	for _, a := range sh.attrs {
		value, found := s.Attrs[a.name]
		_, address := value.(types.JID)
		switch {
		case !found && !a.optional:
			return fmt.Sprintf("<%s> lacks the attribute %s", s.Tag, a.name)
		case found && a.address != address:
			return fmt.Sprintf("<%s> has %s=%q, an address: %t", s.Tag, a.name, text(s, a.name), address)
		case found && a.values != nil && !slices.Contains(a.values, text(s, a.name)):
			return fmt.Sprintf("<%s> has %s=%q, want one of %q", s.Tag, a.name, text(s, a.name), a.values)
		}
	}
	return ""
}
