package plan

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultInteractiveOne          puntuale.ReasonCode = "interactive.one"
	faultInteractiveWithButtons  puntuale.ReasonCode = "interactive.with_buttons"
	faultInteractiveWithMedia    puntuale.ReasonCode = "interactive.with_media"
	faultInteractiveWithLocation puntuale.ReasonCode = "interactive.with_location"
	faultInteractiveWithoutText  puntuale.ReasonCode = "interactive.without_text"
	faultInteractiveRows         puntuale.ReasonCode = "interactive.rows"
	faultInteractiveLine         puntuale.ReasonCode = "interactive.line"
	faultInteractiveAddress      puntuale.ReasonCode = "interactive.address"
)

// lineKind says what a text of an interactive part must be.
type lineKind int8

const (
	neededLine   lineKind = iota // one line, not empty
	optionalLine                 // one line, or nothing
	ownText                      // a payload
	address                      // an address that begins with https://
)

// interactiveText is one text of an interactive part.
type interactiveText struct {
	at    string // such as "list.button"
	text  *string
	limit int
	kind  lineKind
}

// interactiveTexts returns all texts of an interactive part.
func interactiveTexts(x *puntuale.Interactive) (all []interactiveText) {
	if x == nil {
		return nil
	}
	if l := x.Link; l != nil {
		all = append(all, interactiveText{"link.label", &l.Label, puntuale.MaxLinkLabel, neededLine}, interactiveText{"link.url", &l.URL, puntuale.MaxLinkURL, address})
	}
	if l := x.List; l != nil {
		all = append(all, interactiveText{"list.button", &l.Button, puntuale.MaxListButton, neededLine})
		for i := range l.Sections {
			s, at, kind := &l.Sections[i], fmt.Sprintf("list.sections[%d]", i), optionalLine
			if len(l.Sections) > 1 {
				kind = neededLine
			}
			all = append(all, interactiveText{at + ".title", &s.Title, puntuale.MaxListTitle, kind})
			for j := range s.Rows {
				row, at := &s.Rows[j], fmt.Sprintf("%s.rows[%d]", at, j)
				all = append(all, interactiveText{at + ".title", &row.Title, puntuale.MaxListTitle, neededLine},
					interactiveText{at + ".text", &row.Text, puntuale.MaxListText, optionalLine}, interactiveText{at + ".payload", &row.Payload, puntuale.MaxPayload, ownText})
			}
		}
	}
	return all
}

// fault returns the fault of a text without placeholders, or the zero reason.
func (p *interactiveText) fault() puntuale.Reason {
	text := *p.text
	switch {
	case isBlank(text):
		if text != "" || p.kind == neededLine || p.kind == address {
			return puntuale.Because(puntuale.FaultRequired)
		}
	case tooLong(text, p.limit):
		return puntuale.Because(puntuale.FaultLongerThanCharacters, strconv.Itoa(p.limit))
	case hasNUL(text):
		return puntuale.Because(faultMustNotHoldNUL)
	case p.kind == address && !isLink(text):
		return puntuale.Because(faultInteractiveAddress)
	case p.kind != ownText && strings.ContainsFunc(text, unicode.IsControl):
		return puntuale.Because(faultInteractiveLine)
	}
	return puntuale.Reason{}
}

// isLink reports whether a text is the address of a page that a link may open.
func isLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && puntuale.IsPort(u.Port()) && !strings.ContainsFunc(text, unicode.IsSpace)
}

// stepInteractive checks the interactive part of a step.
func (c *checker) stepInteractive(step *puntuale.Step, hasMedia, hasLocation bool) {
	x := step.Interactive
	if x == nil {
		return
	}
	members := 0
	for _, there := range []bool{x.List != nil, x.Link != nil, x.Ask != ""} {
		if there {
			members++
		}
	}
	switch {
	case members != 1:
		c.addCode("interactive", faultInteractiveOne, nil)
		return
	case len(step.Buttons) > 0:
		c.addCode("interactive", faultInteractiveWithButtons, nil)
	case hasLocation:
		c.addCode("interactive", faultInteractiveWithLocation, nil)
	case hasMedia && x.Link == nil:
		c.addCode("interactive", faultInteractiveWithMedia, nil)
	case isBlank(step.Text) && (hasMedia || step.Template == ""):
		c.addCode("interactive", faultInteractiveWithoutText, nil)
	}
	if x.Ask != "" && x.Ask != puntuale.AskLocation && x.Ask != puntuale.AskPhone {
		c.addCode("interactive.ask", faultMustBeOneOf, clip(string(x.Ask)), "location, phone")
	}
	if l := x.List; l != nil {
		rows := 0
		for i, s := range l.Sections {
			if rows += len(s.Rows); len(s.Rows) == 0 {
				c.addCode(fmt.Sprintf("interactive.list.sections[%d].rows", i), puntuale.FaultRequired, nil)
			}
		}
		if len(l.Sections) == 0 {
			c.addCode("interactive.list.sections", puntuale.FaultRequired, nil)
		}
		if rows > puntuale.MaxListRows || len(l.Sections) > puntuale.MaxListRows {
			c.addCode("interactive.list.sections", faultInteractiveRows, rows, strconv.Itoa(puntuale.MaxListRows))
			return
		}
	}
	for _, p := range interactiveTexts(x) {
		c.oneText("interactive."+p.at, p, step.Literal)
	}
}

// oneText checks one text, which may contain fields unless it is literal.
func (c *checker) oneText(part string, p interactiveText, literal bool) {
	if literal || !strings.Contains(*p.text, "{{") {
		if fault := p.fault(); !fault.IsZero() {
			c.addReason(part, fault, clip(*p.text))
		}
		return
	}
	c.template(part, *p.text, p.limit)
	switch start, _, _ := strings.Cut(*p.text, "{{"); {
	case p.kind == address && start != "" && !strings.HasPrefix(*p.text, "https://"):
		c.addCode(part, faultInteractiveAddress, clip(*p.text))
	case p.kind != ownText && strings.ContainsFunc(*p.text, unicode.IsControl):
		c.addCode(part, faultInteractiveLine, clip(*p.text))
	}
}

// interactive renders the interactive part of a step, and records faults.
func (b *builder) interactive(i int, step *puntuale.Step, t *timing) *puntuale.Interactive {
	x := lined(step)
	if step.Literal { // a literal part was checked with its call
		return x
	}
	raw := interactiveTexts(step.Interactive)
	for n, p := range interactiveTexts(x) {
		part := "interactive." + p.at
		var text string
		var good bool
		if p.kind == address {
			text, good = b.renderAddress(i, part, *p.text, t)
		} else {
			text, good = b.render(i, part, *p.text, t)
		}
		if *p.text = text; !good {
			continue
		}
		if p.kind != ownText {
			*p.text = strings.TrimSpace(text)
		}
		fault := p.fault()
		name := sole(*raw[n].text)
		switch {
		case fault.IsZero():
		case name != "" && name != fieldPhone && b.field(name).state == fieldGood:
			b.fieldFault(b.field(name), fault, clip(text))
		default:
			b.stepReason(i, part, fault)
		}
	}
	return x
}

// renderAddress is like render. It percent-encodes the values of fields, except of a field at the beginning, which is the
// address itself.
func (b *builder) renderAddress(i int, part, template string, t *timing) (string, bool) {
	var address strings.Builder
	good := true
	for s := scan(template); s.next(); {
		address.WriteString(s.literal)
		if !s.found {
			continue
		}
		if !s.fault.IsZero() {
			b.stepReason(i, part, s.fault)
			good = false
			continue
		}
		b.buf = b.buf[:0]
		good = b.print(s.field, t) && good
		if address.Len() == 0 {
			address.Write(b.buf)
		} else if address.Len() < enough {
			address.WriteString(strings.ReplaceAll(url.QueryEscape(string(b.buf)), "+", "%20"))
		}
	}
	return address.String(), good
}

// choices renders the payloads of a step's buttons.
func (b *builder) choices(i int, step *puntuale.Step, t *timing) []puntuale.StepButton {
	all, copied := step.Buttons, false
	for n, button := range step.Buttons {
		if step.Literal || !strings.Contains(button.Payload, "{{") {
			continue
		}
		part := fmt.Sprintf("buttons[%d].payload", n)
		text, good := b.render(i, part, button.Payload, t)
		if good && tooLong(text, puntuale.MaxPayload) {
			b.stepFault(i, part, puntuale.FaultLongerThanCharacters, strconv.Itoa(puntuale.MaxPayload))
		}
		if !copied {
			all, copied = append([]puntuale.StepButton(nil), all...), true
		}
		all[n].Payload = text
	}
	return all
}

// interactiveLimit returns how many characters the text above an interactive part may have. The lines that other
// networks show instead count, where the text with them would be too long for them.
func interactiveLimit(withMedia bool, x *puntuale.Interactive) int {
	most, whole := puntuale.MaxAsking, puntuale.MaxText // Meta's limit, and the limit of a text with the lines
	if x.List != nil {
		most = puntuale.MaxText
	}
	if withMedia {
		whole = puntuale.MaxCaption
	}
	return max(0, min(most, whole-utf8.RuneCountInString(x.Lines())))
}

// lined returns a copy of the interactive part of a step, with the client's own line.
func lined(step *puntuale.Step) *puntuale.Interactive {
	x := step.Interactive.Clone()
	if x != nil && x.List != nil {
		x.List.Line = step.ButtonLine
	}
	return x
}

// withoutFields returns the interactive part of a step without placeholders.
func withoutFields(step *puntuale.Step) *puntuale.Interactive {
	x := lined(step)
	for _, p := range interactiveTexts(x) {
		var literal strings.Builder
		for s := scan(*p.text); s.next(); {
			literal.WriteString(s.literal)
		}
		*p.text = literal.String()
	}
	return x
}

// choiceTexts returns all texts of a step's buttons and of its interactive part that may contain fields.
func choiceTexts(step *puntuale.Step) (all []string) {
	if step.Literal {
		return nil
	}
	for _, b := range step.Buttons {
		if b.Payload != "" {
			all = append(all, b.Payload)
		}
	}
	for _, p := range interactiveTexts(step.Interactive) {
		all = append(all, *p.text)
	}
	return all
}

// CheckFilled returns the faults of a step's interactive part that only the content of the step's template causes. step
// contains this content.
func CheckFilled(location string, step puntuale.Step) []puntuale.Fault {
	c := checker{where: location}
	step.Template = ""
	c.stepInteractive(&step, !isBlank(step.Media), step.Latitude != nil)
	return c.faults
}

// ChoicesSize returns about how many bytes the buttons and the interactive part of a step need.
func ChoicesSize(step puntuale.Step) int {
	size := 128 * len(step.Buttons)
	for _, text := range choiceTexts(&step) {
		size += 64 + len(text)
	}
	return size
}
