package view

import (
	"context"
	"io"
	"puntuale"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"
)

// markup maps each of WhatsApp's formatting signs to an HTML element.
var markup = map[byte]string{'*': "strong", '_': "em", '~': "s", '`': "code"}

// BubbleText returns a message's text as WhatsApp shows it. Everything except WhatsApp's signs is escaped.
func BubbleText(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<p class="bubble-text">`)
		for i, line := range strings.Split(text, "\n") { // formatting ends at the end of its line
			if i > 0 {
				b.WriteByte('\n')
			}
			marked(&b, line, "")
		}
		b.WriteString(`</p>`)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// marked writes one line. within contains the signs that are open, because a sign has no effect inside a pair of the
// same sign.
func marked(b *strings.Builder, line, within string) {
	plain := 0
	for i := 0; i < len(line); i++ {
		end := markEnd(line, i, within)
		if end < 0 {
			continue
		}
		b.WriteString(templ.EscapeString(line[plain:i]))
		tag, inner := markup[line[i]], line[i+1:end]
		b.WriteString("<" + tag + ">")
		if tag == "code" { // inside code, other signs have no effect
			b.WriteString(templ.EscapeString(inner))
		} else {
			marked(b, inner, within+line[i:i+1])
		}
		b.WriteString("</" + tag + ">")
		i, plain = end, end+1
	}
	b.WriteString(templ.EscapeString(line[plain:]))
}

// markEnd returns the position of the sign that closes the sign at i. It returns -1 if the sign at i has no effect.
// Pairs of signs enclose whole words, with no space at their inner side.
func markEnd(line string, i int, within string) int {
	sign := line[i]
	if markup[sign] == "" || strings.IndexByte(within, sign) >= 0 || inWord(utf8.DecodeLastRuneInString(line[:i])) || i+2 >= len(line) || line[i+1] == sign || line[i+1] == ' ' {
		return -1
	}
	for j := i + 2; j < len(line); j++ {
		if line[j] == sign && line[j-1] != ' ' && !inWord(utf8.DecodeRuneInString(line[j+1:])) {
			return j
		}
	}
	return -1
}

func inWord(r rune, size int) bool { return size > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

func WindowWords(ctx context.Context, w *puntuale.Window) string {
	if w == nil {
		return ""
	}
	var parts []string
	if len(w.Weekdays) > 0 {
		days := make([]string, 0, 7)
		for _, d := range slices.Sorted(slices.Values(w.Weekdays)) {
			days = append(days, FrameOf(ctx).Language.ShortWeekday(time.Weekday(d%7)))
		}
		parts = append(parts, T(ctx, "timing.window_days", "Days", strings.Join(days, " ")))
	}
	if w.From != "" || w.To != "" {
		parts = append(parts, T(ctx, "timing.window_hours", "From", Or(w.From, "00:00"), "To", Or(w.To, "24:00")))
	}
	if w.Holidays == puntuale.HolidaysAvoid {
		parts = append(parts, T(ctx, "timing.window_holidays"))
	}
	return strings.Join(parts, ", ")
}

// FieldName returns a field's name in readable form, such as "Data appuntamento" for "data_appuntamento".
func FieldName(name string) string {
	words := strings.Join(strings.Fields(strings.ReplaceAll(name, "_", " ")), " ")
	if words == "" {
		return name
	}
	return strings.ToUpper(words[:1]) + words[1:] // the first letter of a field's name is an ASCII letter
}
