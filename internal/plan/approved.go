package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultTemplateButtonTwice  puntuale.ReasonCode = "template.button_twice"
	faultTemplateLanguage     puntuale.ReasonCode = "template.language"
	faultTemplateMetaName     puntuale.ReasonCode = "template.meta_name"
	faultTemplateNamesForAll  puntuale.ReasonCode = "template.names_for_all"
	faultTemplatePlaceName    puntuale.ReasonCode = "template.place_name"
	faultTemplateValueBreak   puntuale.ReasonCode = "template.value_break"
	faultTemplateValueEmpty   puntuale.ReasonCode = "template.value_empty"
	faultTemplateValueTooLong puntuale.ReasonCode = "template.value_too_long"
	faultTemplateWholeTooLong puntuale.ReasonCode = "template.whole_too_long" // {1}: the largest number of characters of a rendered header or body
)

// Forms that Meta requires for the names of templates, placeholders and languages.
var (
	approvedName        = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)
	approvedPlaceholder = regexp.MustCompile(`^[a-z0-9_]{1,100}$`)
	approvedLanguage    = regexp.MustCompile(`^[a-z]{2,3}(_[A-Z]{2,3})?$`)
)

// CheckApproved returns all faults of the values of an approved template. Their locations begin with location.
func CheckApproved(location string, a *puntuale.Approved) []puntuale.Fault {
	if a == nil {
		return nil
	}
	c := checker{where: location, alone: true}
	if !approvedName.MatchString(a.Name) {
		c.addCode("name", faultTemplateMetaName, clip(a.Name))
	}
	if a.Language != "" && !approvedLanguage.MatchString(a.Language) {
		c.addCode("language", faultTemplateLanguage, clip(a.Language))
	}
	named := 0
	for _, part := range []struct {
		name   string
		places []puntuale.Parameter
	}{{"header", a.Header}, {"body", a.Body}} {
		if len(part.places) > puntuale.MaxParameters {
			c.addCode(part.name, puntuale.FaultMoreEntries, nil, strconv.Itoa(puntuale.MaxParameters))
			return c.faults
		}
		for i, p := range part.places {
			at := fmt.Sprintf("%s[%d]", part.name, i)
			switch {
			case p.Name == "":
			case approvedPlaceholder.MatchString(p.Name):
				named++
			default:
				c.addCode(at+".name", faultTemplatePlaceName, clip(p.Name))
			}
			switch {
			case isBlank(p.Text):
				c.addCode(at+".text", puntuale.FaultRequired, nil)
			case puntuale.ValueBreaks(p.Text):
				c.addCode(at+".text", faultTemplateValueBreak, nil)
			}
			c.template(at+".text", p.Text, puntuale.MaxCaption)
		}
	}
	if all := len(a.Header) + len(a.Body); named > 0 && named < all {
		c.addCode("", faultTemplateNamesForAll, nil)
	}
	c.buttons(a.Buttons)
	return c.faults
}

// maxButton contains the largest length of each kind of button value, in characters. They are Meta's limits.
var maxButton = map[puntuale.ButtonKind]int{puntuale.ButtonURL: puntuale.MaxLinkURL, puntuale.ButtonReply: puntuale.MaxPayload, puntuale.ButtonCode: 20}

func (c *checker) buttons(all []puntuale.Button) {
	if len(all) > puntuale.MaxButtons {
		c.addCode("buttons", puntuale.FaultMoreEntries, nil, strconv.Itoa(puntuale.MaxButtons))
		return
	}
	seen := map[int]bool{}
	for i, b := range all {
		at := fmt.Sprintf("buttons[%d]", i)
		limit, known := maxButton[b.Kind]
		switch {
		case !known:
			c.addCode(at+".type", puntuale.FaultNotOneOf, clip(string(b.Kind)), "url, quick_reply, copy_code")
			limit = puntuale.MaxURL
		case b.Index < 0 || b.Index >= puntuale.MaxButtons:
			c.addCode(at+".index", puntuale.FaultNotWholeInRange, b.Index, "0", strconv.Itoa(puntuale.MaxButtons-1))
		case seen[b.Index]:
			c.addCode(at+".index", faultTemplateButtonTwice, b.Index)
		}
		seen[b.Index] = true
		if isBlank(b.Text) {
			c.addCode(at+".text", puntuale.FaultRequired, nil)
		}
		c.template(at+".text", b.Text, limit)
	}
}

// approved renders the values of an approved template.
func (b *builder) approved(i int, a *puntuale.Approved, rule puntuale.ValueRule, t *timing) *puntuale.Approved {
	if a == nil {
		return nil
	}
	out := &puntuale.Approved{Name: a.Name, Language: a.Language, Header: b.places(i, a.Header, rule, t), Body: b.places(i, a.Body, rule, t)}
	b.whole(i, rule.Header, puntuale.MaxTemplateHeader, a.Header, out.Header)
	b.whole(i, rule.Body, puntuale.MaxTemplateBody, a.Body, out.Body)
	for _, button := range a.Buttons {
		button.Text, _ = b.unbroken(i, button.Text, maxButton[button.Kind], rule, t)
		out.Buttons = append(out.Buttons, button)
	}
	return out
}

func (b *builder) places(i int, places []puntuale.Parameter, rule puntuale.ValueRule, t *timing) (out []puntuale.Parameter) {
	for _, p := range places {
		if text, good := b.unbroken(i, p.Text, puntuale.MaxCaption, rule, t); good {
			out = append(out, puntuale.Parameter{Name: p.Name, Text: text})
		}
	}
	return out
}

// unbroken renders a value, and flattens it if the rule says so. It returns false if Meta would refuse its spaces.
func (b *builder) unbroken(i int, template string, limit int, rule puntuale.ValueRule, t *timing) (string, bool) {
	text := b.value(i, template, limit, t)
	if rule.Flatten {
		text = puntuale.FlattenValue(text)
	}
	name := sole(template)
	switch {
	case !puntuale.ValueBreaks(text):
		return text, true
	case name != "" && b.field(name).state == fieldGood:
		b.fieldFault(b.field(name), puntuale.Because(faultTemplateValueBreak), clip(text))
	default:
		b.stepFault(i, "template", faultTemplateValueBreak)
	}
	return text, false
}

// longest returns the value that makes a part too long, or "" if all values are short.
func longest(places []puntuale.Parameter, values []puntuale.Parameter) (template string) {
	most := 0
	for i, v := range values {
		if n := utf8.RuneCountInString(v.Text); n > most {
			most, template = n, places[i].Text
		}
	}
	return template
}

// whole records a fault if a part of the template is too long with its values. The fault is at the field that makes it so,
// if there is one.
func (b *builder) whole(i int, text string, limit int, places, values []puntuale.Parameter) {
	if text == "" || len(values) != len(places) || !tooLong(puntuale.Filled(text, values), limit) {
		return
	}
	if name := sole(longest(places, values)); name != "" && b.field(name).state == fieldGood {
		b.fieldFault(b.field(name), puntuale.Because(faultTemplateWholeTooLong, strconv.Itoa(limit)), nil)
		return
	}
	b.stepFault(i, "template", faultTemplateWholeTooLong, strconv.Itoa(limit))
}

func (b *builder) value(i int, text string, limit int, t *timing) string {
	text, good := b.render(i, "template", text, t)
	if good && utf8.RuneCountInString(text) > limit {
		b.stepFault(i, "template", faultTemplateValueTooLong, strconv.Itoa(limit))
	}
	if good && isBlank(text) {
		b.stepFault(i, "template", faultTemplateValueEmpty)
	}
	return text
}

var anyPlaceholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// Places turns a step's text into the text of a draft: each field becomes a placeholder with a name that Meta allows.
// It appends the value of each placeholder, which contains the field as the step writes it, to the known ones. What is no
// field stays.
func Places(text string, known []puntuale.Parameter) (draft string, values []puntuale.Parameter) {
	values = known
	draft = anyPlaceholder.ReplaceAllStringFunc(text, func(found string) string {
		for _, v := range values {
			if v.Text == found {
				return "{{" + v.Name + "}}"
			}
		}
		p, fault := parsePlaceholder(strings.TrimSuffix(strings.TrimPrefix(found, "{{"), "}}"))
		if !fault.IsZero() {
			return found
		}
		base := strings.ToLower(p.name)
		if p.format != "" {
			base += "_" + p.format
		}
		name := base
		for n := 2; ; n++ {
			taken := false
			for _, v := range values {
				taken = taken || v.Name == name
			}
			if !taken {
				break
			}
			name = base + "_" + strconv.Itoa(n)
		}
		values = append(values, puntuale.Parameter{Name: name, Text: found})
		return "{{" + name + "}}"
	})
	return draft, values
}

// texts returns all texts of the template that may contain fields.
func texts(a *puntuale.Approved) (all []string) {
	if a == nil {
		return nil
	}
	for _, places := range [][]puntuale.Parameter{a.Header, a.Body} {
		for _, p := range places {
			all = append(all, p.Text)
		}
	}
	for _, button := range a.Buttons {
		all = append(all, button.Text)
	}
	return all
}
