package plan

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"puntuale"
)

// Shapes that Meta gives to the names of templates, of their places and of languages.
var (
	approvedName     = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)
	approvedPlace    = regexp.MustCompile(`^[a-z0-9_]{1,100}$`)
	approvedLanguage = regexp.MustCompile(`^[a-z]{2,3}(_[A-Z]{2,3})?$`)
)

// CheckApproved returns everything that is wrong with what fills an approved template, located below location.
func CheckApproved(location string, a *puntuale.Approved) []puntuale.Fault {
	if a == nil {
		return nil
	}
	c := checker{where: location, alone: true}
	if !approvedName.MatchString(a.Name) {
		c.at("name", "must be the template's name at Meta: small letters, digits and _", clip(a.Name))
	}
	if !approvedLanguage.MatchString(a.Language) {
		c.at("language", "must be a language as Meta writes it, such as it or en_US", clip(a.Language))
	}
	named := 0
	for _, part := range []struct {
		name   string
		places []puntuale.Parameter
	}{{"header", a.Header}, {"body", a.Body}} {
		if len(part.places) > puntuale.MaxParameters {
			c.at(part.name, fmt.Sprintf("has more than %d entries", puntuale.MaxParameters), nil)
			return c.faults
		}
		for i, p := range part.places {
			at := fmt.Sprintf("%s[%d]", part.name, i)
			switch {
			case p.Name == "":
			case approvedPlace.MatchString(p.Name):
				named++
			default:
				c.at(at+".name", "must be the place's name at Meta: small letters, digits and _", clip(p.Name))
			}
			if isBlank(p.Text) {
				c.at(at+".text", "is required", nil)
			}
			c.template(at+".text", p.Text, puntuale.MaxCaption)
		}
	}
	if all := len(a.Header) + len(a.Body); named > 0 && named < all {
		c.at("", "either all places have a name, or none", nil)
	}
	c.buttons(a.Buttons)
	return c.faults
}

// Most characters of what buttons hold, before fields are rendered. (Meta: a payload 128, a code 15.)
var buttonMost = map[puntuale.ButtonKind]int{puntuale.ButtonURL: puntuale.MaxURL, puntuale.ButtonReply: 128, puntuale.ButtonCode: 128}

func (c *checker) buttons(all []puntuale.Button) {
	if len(all) > puntuale.MaxButtons {
		c.at("buttons", fmt.Sprintf("has more than %d entries", puntuale.MaxButtons), nil)
		return
	}
	seen := map[int]bool{}
	for i, b := range all {
		at := fmt.Sprintf("buttons[%d]", i)
		most, known := buttonMost[b.Kind]
		switch {
		case !known:
			c.at(at+".type", "is not one of url, quick_reply, copy_code", clip(string(b.Kind)))
			most = puntuale.MaxURL
		case b.Index < 0 || b.Index >= puntuale.MaxButtons:
			c.at(at+".index", fmt.Sprintf("is not a whole number from 0 to %d", puntuale.MaxButtons-1), b.Index)
		case seen[b.Index]:
			c.at(at+".index", "is another button's, too", b.Index)
		}
		seen[b.Index] = true
		if isBlank(b.Text) {
			c.at(at+".text", "is required", nil)
		}
		c.template(at+".text", b.Text, most)
	}
}

// approved renders what fills an approved template.
func (b *builder) approved(i int, a *puntuale.Approved, t *timing) *puntuale.Approved {
	if a == nil {
		return nil
	}
	out := &puntuale.Approved{Name: a.Name, Language: a.Language, Header: b.places(i, a.Header, t), Body: b.places(i, a.Body, t)}
	for _, button := range a.Buttons {
		button.Text = b.value(i, button.Text, buttonMost[button.Kind], t)
		out.Buttons = append(out.Buttons, button)
	}
	return out
}

func (b *builder) places(i int, places []puntuale.Parameter, t *timing) (out []puntuale.Parameter) {
	for _, p := range places {
		out = append(out, puntuale.Parameter{Name: p.Name, Text: b.value(i, p.Text, puntuale.MaxCaption, t)})
	}
	return out
}

func (b *builder) value(i int, text string, most int, t *timing) string {
	text, good := b.render(i, "template", text, t)
	if good && utf8.RuneCountInString(text) > most {
		b.stepFault(i, "template", "a value of the approved template "+tooLongText(most))
	}
	if good && isBlank(text) {
		b.stepFault(i, "template", "a value of the approved template is empty")
	}
	return text
}

// texts are all that may name fields.
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
