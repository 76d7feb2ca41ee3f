package mail

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	plain "text/template"

	"puntuale"
	"puntuale/internal/catalogue"
)

//go:embed text
var texts embed.FS

// kinds are the names of the text files, text/NAME.LANGUAGE.txt, for each kind of e-mail.
var kinds = map[puntuale.MailKind]string{puntuale.MailReset: "reset", puntuale.MailInvitation: "invitation", puntuale.MailNotices: "notice"}

// languages are the languages of the text files. The first one is the default.
var languages = []string{"it", "en"}

// layoutTable contains the templates, by kind and language. The text and the HTML of an e-mail share one file of
// sentences.
type layoutTable map[string]layout

// layout contains the templates of one kind of e-mail in one language.
type layout struct {
	text *plain.Template
	html *template.Template
}

func readLayouts() (layoutTable, error) {
	all := layoutTable{}
	for _, kind := range kinds {
		for _, language := range languages {
			file := "text/" + kind + "." + language + ".txt"
			text, err := plain.ParseFS(texts, "text/layout.txt", file)
			if err != nil {
				return nil, fmt.Errorf("read the words of e-mails: %w", err)
			}
			html, err := template.ParseFS(texts, "text/layout.html", file)
			if err != nil {
				return nil, fmt.Errorf("read the words of e-mails: %w", err)
			}
			all[kind+"."+language] = layout{text, html}
		}
	}
	return all, nil
}

// content is an e-mail as its reader sees it.
type content struct {
	Sender  string
	Subject string
	Text    string
	HTML    string
}

// letterContent contains the values for the templates.
type letterContent struct {
	Brand    string
	Colour   string
	Ink      string // a colour for text on Colour that is easy to read
	Language string
	To       string
	Link     string
	Notices  []noticeContent
	More     int
}

// noticeContent contains the values of one notice for the templates.
type noticeContent struct {
	Title, Text, Link string
	At                string
}

// saying contains, for each language, the sentences of reasons and the format of times.
var saying = map[string]struct {
	catalogue.Language
	moment string
}{"it": {catalogue.Italian, "02/01/2006, 15:04"}, "en": {catalogue.English, "2 January 2006, 15:04"}}

// standardColour is the product's own colour, for partners without a colour.
const standardColour = "#0b6e63"

// productName stands for a brand whose name is only an address.
const productName = "Puntuale"

// withoutAddress removes the words with an at sign. A brand is in From and Subject, so an address in it would look like
// the sender's.
func withoutAddress(name string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(name), func(word string) bool { return strings.ContainsAny(word, "@＠﹫") }), " ")
}

func (w layoutTable) content(l puntuale.Letter) (content, error) {
	if _, known := w[kinds[l.Kind]+"."+l.Language]; !known {
		l.Language = languages[0]
	}
	templates, known := w[kinds[l.Kind]+"."+l.Language]
	if !known {
		return content{}, fmt.Errorf("an e-mail of kind %d has no words", l.Kind)
	}
	s := letterContent{
		Brand: cmp.Or(withoutAddress(oneLine(l.Host.Brand.Name)), withoutAddress(oneLine(l.Host.Partner.Name)), productName), Colour: cmp.Or(l.Host.Brand.Colour, standardColour),
		Language: l.Language, To: l.To, Link: l.Link, More: l.More,
	}
	in := saying[l.Language]
	for _, n := range l.Notices {
		s.Notices = append(s.Notices, noticeContent{oneLine(in.Sentence(n.Title)), oneLine(in.Sentence(n.Text)), n.Link, n.At.Format(in.moment)})
	}
	s.Ink = inkOn(s.Colour)
	c := content{Sender: s.Brand}
	var subject, text, html bytes.Buffer
	for _, part := range []struct {
		to   *bytes.Buffer
		make func(io.Writer, string, any) error
		name string
	}{{&subject, templates.text.ExecuteTemplate, "subject"}, {&text, templates.text.ExecuteTemplate, "layout.txt"}, {&html, templates.html.ExecuteTemplate, "layout.html"}} {
		if err := part.make(part.to, part.name, s); err != nil {
			return content{}, fmt.Errorf("write an e-mail: %w", err)
		}
	}
	c.Subject, c.Text, c.HTML = oneLine(subject.String()), text.String(), html.String()
	return c, nil
}

// oneLine joins the lines of a text. A name that a person chose could otherwise begin a new line of the header.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// inkOn returns white or almost black: the one with more contrast to the colour (WCAG).
func inkOn(colour string) string {
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil {
		return "#ffffff"
	}
	light := 0.0
	for at, share := range []float64{0.0722, 0.7152, 0.2126} {
		v := float64(n>>(8*at)&255) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		light += v * share
	}
	if light > 0.18 {
		return "#10181a"
	}
	return "#ffffff"
}

// CheckAddress returns what is wrong with an e-mail address, or "" if nothing is. It takes no address with a name.
func CheckAddress(address string) string {
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Name != "" || parsed.Address != address {
		return "must be an e-mail address such as no-reply@example.com"
	}
	return ""
}

func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }
