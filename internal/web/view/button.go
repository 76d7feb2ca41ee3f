package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"puntuale"
)

// OfferKind is one kind of what stands below a message, as the field "offer" has it.
type OfferKind struct{ Value, Icon string }

// Offers are the choices of the field "offer", in the order of the form. The first one is also meant by "".
var Offers = []OfferKind{{"buttons", "circle-check"}, {"list", "list"}, {"link", "external-link"}, {"ask_location", "map-pin"}, {"ask_phone", "phone"}}

func buttonName(i int) string { return fmt.Sprintf("buttons[%d].label", i) }

// ButtonNames are the names of the fields of [ButtonFields].
func ButtonNames() (names []string) {
	for i := range puntuale.MaxStepButtons {
		names = append(names, buttonName(i))
	}
	return append(names, "buttons", "interactive", "interactive.list.button", "interactive.list", "interactive.link.label", "interactive.link.url")
}

// OffersButtons reports whether the form offers buttons. before is the prefix of the fields' names.
func OffersButtons(f *Form, before string) bool {
	return cmp.Or(f.Value(before+"offer"), Offers[0].Value) == Offers[0].Value
}

// ButtonsIn reads the buttons of [ButtonFields]. It moves the labels together, so that each has the place that faults name.
func ButtonsIn(f *Form) (all []puntuale.StepButton) {
	if !OffersButtons(f, "") {
		return nil
	}
	for i := range puntuale.MaxStepButtons {
		if label := strings.TrimSpace(f.Value(buttonName(i))); label != "" {
			all = append(all, puntuale.StepButton{Label: label, Does: puntuale.ButtonAnswers})
		}
	}
	for i := range puntuale.MaxStepButtons {
		label := ""
		if i < len(all) {
			label = all[i].Label
		}
		f.Values.Set(buttonName(i), label)
	}
	return all
}

// InteractiveIn reads the list, the link or the question of [OfferFields]. It returns nil if the form has none.
func InteractiveIn(f *Form, before string) *puntuale.Interactive {
	word := func(name string) string { return strings.TrimSpace(f.Value(before + name)) }
	switch f.Value(before + "offer") {
	case "list":
		return &puntuale.Interactive{List: &puntuale.ChoiceList{Button: word("interactive.list.button"), Sections: SectionsIn(f.Value(before + "interactive.list"))}}
	case "link":
		return &puntuale.Interactive{Link: &puntuale.LinkButton{Label: word("interactive.link.label"), URL: word("interactive.link.url")}}
	case "ask_location":
		return &puntuale.Interactive{Ask: puntuale.AskLocation}
	case "ask_phone":
		return &puntuale.Interactive{Ask: puntuale.AskPhone}
	}
	return nil
}

// FillInteractive fills [OfferFields].
func FillInteractive(f *Form, before string, x *puntuale.Interactive) {
	switch {
	case x == nil:
	case x.List != nil:
		f.Values.Set(before+"offer", "list")
		f.Values.Set(before+"interactive.list.button", x.List.Button)
		f.Values.Set(before+"interactive.list", ListLines(x.List.Sections))
	case x.Link != nil:
		f.Values.Set(before+"offer", "link")
		f.Values.Set(before+"interactive.link.label", x.Link.Label)
		f.Values.Set(before+"interactive.link.url", x.Link.URL)
	default:
		f.Values.Set(before+"offer", "ask_"+string(x.Ask))
	}
}

// SectionsIn reads a list from its lines. Each line is a row: its title, and after "|" the text below it, and after
// another "|" its payload. A line that begins with "#" is the title of a section. A backslash before one of these
// characters makes it an ordinary one. A "|" inside of a field's braces is one already.
func SectionsIn(text string) (all []puntuale.ListSection) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if title, section := strings.CutPrefix(line, "#"); section {
			all = append(all, puntuale.ListSection{Title: unescaped(title)})
			continue
		}
		if len(all) == 0 {
			all = append(all, puntuale.ListSection{})
		}
		parts := append(cells(line), "", "")
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, puntuale.ListRow{Title: parts[0], Text: parts[1], Payload: parts[2]})
	}
	return all
}

// cells cuts a line at each "|", at most into three parts.
func cells(line string) (all []string) {
	begin := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case strings.HasPrefix(line[i:], "{{"):
			if end := strings.Index(line[i:], "}}"); end > 0 {
				i += end + 1
			}
		case line[i] == '|' && len(all) < 2:
			all, begin = append(all, unescaped(line[begin:i])), i+1
		}
	}
	return append(all, unescaped(line[begin:]))
}

// ListLines is the inverse of [SectionsIn].
func ListLines(sections []puntuale.ListSection) string {
	var lines []string
	for i, s := range sections {
		if s.Title != "" || i > 0 {
			lines = append(lines, "# "+escaped(s.Title))
		}
		for _, r := range s.Rows {
			line := escaped(r.Title)
			if strings.HasPrefix(line, "#") {
				line = `\` + line
			}
			if r.Text+r.Payload != "" {
				line += " | " + escaped(r.Text)
			}
			if r.Payload != "" {
				line += " | " + escaped(r.Payload)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func escaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "{{") && strings.Contains(text[i:], "}}"):
			end := i + strings.Index(text[i:], "}}") + 2
			b.WriteString(text[i:end])
			i = end - 1
		case c == '|' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescaped(text string) string {
	text = strings.TrimSpace(text)
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "{{") && strings.Contains(text[i:], "}}"):
			end := i + strings.Index(text[i:], "}}") + 2
			b.WriteString(text[i:end])
			i = end - 1
		case text[i] != '\\' || i+1 == len(text):
			b.WriteByte(text[i])
		case text[i+1] == 'n':
			b.WriteByte('\n')
			i++
		default:
			b.WriteByte(text[i+1])
			i++
		}
	}
	return b.String()
}

// listPart matches the location of a fault in a list. The whole list is one field of the form.
var listPart = regexp.MustCompile(`^(.*interactive\.list)\.sections(?:\[(\d+)\](?:\.rows\[(\d+)\])?)?(?:\.\w+)?$`)

// ofList returns the field that has a list, and the title of the row or section that a location in the list names.
func (f *Form) ofList(location string) (name, title string, ok bool) {
	m := listPart.FindStringSubmatch(location)
	if m == nil {
		return "", "", false
	}
	sections := SectionsIn(f.Value(m[1]))
	section, err := strconv.Atoi(m[2])
	if err != nil || section >= len(sections) {
		return m[1], "", true
	}
	if row, err := strconv.Atoi(m[3]); err == nil && row < len(sections[section].Rows) {
		return m[1], sections[section].Rows[row].Title, true
	}
	return m[1], sections[section].Title, true
}

// offered reports whether the form has something below the message, or a fault in it.
func (f *Form) offered(before string, names ...string) bool {
	return !OffersButtons(f, before) || slices.ContainsFunc(names, func(name string) bool { return f.Value(before+name) != "" || f.Fault(before+name) != "" })
}
