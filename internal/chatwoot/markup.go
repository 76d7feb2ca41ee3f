package chatwoot

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Agents write Markdown: Chatwoot's editor makes it of bold text, links and lists, and escapes signs such as "1\.".
// WhatsApp has its own markup, with one sign where Markdown has two.

var markdown = goldmark.New(goldmark.WithExtensions(extension.Strikethrough))

// maxNested bounds how deeply parts may lie in others.
const maxNested = 50

// whatsAppOf returns an agent's Markdown in WhatsApp's markup.
func whatsAppOf(content string) string {
	source := []byte(content)
	w := &whatsAppWriter{source: source}
	w.blocks(markdown.Parser().Parse(text.NewReader(source)), "", 0)
	return strings.TrimSpace(w.out.String())
}

type whatsAppWriter struct {
	source []byte
	out    strings.Builder
}

// blocks writes the paragraphs, lists and quotes inside a part. prefix begins each further line.
func (w *whatsAppWriter) blocks(parent ast.Node, prefix string, depth int) {
	for n := parent.FirstChild(); n != nil && depth < maxNested; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			w.out.WriteString("\n" + prefix)
			if _, item := n.(*ast.ListItem); !item && n.HasBlankPreviousLines() {
				w.out.WriteString("\n" + prefix)
			}
		}
		switch n := n.(type) {
		case *ast.Heading:
			w.out.WriteString("*" + w.inside(n, prefix, depth) + "*")
		case *ast.List:
			w.list(n, prefix, depth)
		case *ast.Blockquote:
			w.out.WriteString("> ")
			w.blocks(n, prefix+"> ", depth+1)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			w.out.WriteString("```" + strings.TrimRight(string(n.Lines().Value(w.source)), "\n") + "```")
		case *ast.HTMLBlock:
			w.out.WriteString(strings.TrimRight(string(n.Lines().Value(w.source)), "\n"))
		case *ast.ThematicBreak:
			w.out.WriteString("---")
		default:
			w.out.WriteString(w.inside(n, prefix, depth))
		}
	}
}

func (w *whatsAppWriter) list(l *ast.List, prefix string, depth int) {
	for item, number := l.FirstChild(), l.Start; item != nil; item, number = item.NextSibling(), number+1 {
		mark := "- "
		if l.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
		}
		if item.PreviousSibling() != nil {
			w.out.WriteString("\n" + prefix)
		}
		w.out.WriteString(mark)
		w.blocks(item, prefix+strings.Repeat(" ", len(mark)), depth+1)
	}
}

// inside returns the text of a paragraph, or of a part of one.
func (w *whatsAppWriter) inside(parent ast.Node, prefix string, depth int) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil && depth < maxNested; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(unescaped(string(n.Segment.Value(w.source))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteString("\n" + prefix)
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.Emphasis:
			b.WriteString(around(map[bool]string{true: "*", false: "_"}[n.Level > 1], w.inside(n, prefix, depth+1)))
		case *east.Strikethrough:
			b.WriteString(around("~", w.inside(n, prefix, depth+1)))
		case *ast.CodeSpan:
			if code := w.code(n); strings.Contains(code, "\n") {
				b.WriteString("```" + code + "```")
			} else {
				b.WriteString(around("`", code))
			}
		case *ast.Link:
			b.WriteString(linked(w.inside(n, prefix, depth+1), string(n.Destination)))
		case *ast.Image:
			b.WriteString(linked(w.inside(n, prefix, depth+1), string(n.Destination)))
		case *ast.AutoLink:
			b.Write(n.URL(w.source))
		case *ast.RawHTML:
			b.Write(n.Segments.Value(w.source))
		default:
			b.WriteString(w.inside(n, prefix, depth+1))
		}
	}
	return b.String()
}

// code returns the text of a code span, in which no sign is escaped.
func (w *whatsAppWriter) code(n *ast.CodeSpan) string {
	var b strings.Builder
	for part := n.FirstChild(); part != nil; part = part.NextSibling() {
		if t, ok := part.(*ast.Text); ok {
			b.Write(t.Segment.Value(w.source))
		}
	}
	return b.String()
}

// around puts a sign around a text. WhatsApp needs the signs next to the text, and on the same line.
func around(sign, text string) string {
	inner := strings.TrimSpace(text)
	if inner == "" || strings.Contains(inner, "\n") {
		return text
	}
	at := strings.Index(text, inner)
	return text[:at] + sign + inner + sign + text[at+len(inner):]
}

// linked writes a link, because WhatsApp shows addresses only.
func linked(words, address string) string {
	if words == "" || words == address || "mailto:"+words == address {
		return strings.TrimPrefix(address, "mailto:")
	}
	return words + " (" + address + ")"
}

var escape = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])")

func unescaped(text string) string { return escape.ReplaceAllString(text, "$1") }

// markup matches a marked part of a WhatsApp text, and addresses, which stay as they are.
var markup = regexp.MustCompile("(?s)```.+?```|`[^`\n]+`|https?://\\S+" +
	`|(^|[\s\p{P}])(\*[^\s*](?:[^*\n]*[^\s*])?\*|_[^\s_](?:[^_\n]*[^\s_])?_|~[^\s~](?:[^~\n]*[^\s~])?~)`)

// markdownOf returns a WhatsApp text as Markdown. Signs that mean nothing in WhatsApp are escaped.
func markdownOf(said string) string { return markdownWithin(said, 0) }

func markdownWithin(said string, depth int) string {
	if depth > 3 {
		return plainMarkdown(said)
	}
	var b strings.Builder
	for said != "" {
		m := markup.FindStringSubmatchIndex(said)
		if m == nil {
			break
		}
		if m[4] < 0 { // code or an address
			b.WriteString(plainMarkdown(said[:m[0]]) + said[m[0]:m[1]])
			said = said[m[1]:]
			continue
		}
		part := said[m[4]:m[5]]
		sign := map[byte]string{'*': "**", '_': "*", '~': "~~"}[part[0]]
		b.WriteString(plainMarkdown(said[:m[4]]) + sign + markdownWithin(part[1:len(part)-1], depth+1) + sign)
		said = said[m[5]:]
	}
	return b.String() + plainMarkdown(said)
}

var (
	signs  = regexp.MustCompile("[\\\\*_~`\\[\\]<]")
	titles = regexp.MustCompile(`(?m)^(#{1,6}\s)`)
)

func plainMarkdown(text string) string {
	return titles.ReplaceAllString(signs.ReplaceAllString(text, `\$0`), `\$1`)
}
