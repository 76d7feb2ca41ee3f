package sequence

import (
	"regexp"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// variantLetters are the variants of a step in names of fields: steps[2].text_b, steps[2].share_a. The first text, or the
// first template, is the step's own.
var variantLetters = []string{"a", "b", "c", "d"}

// fillVariants fills the form with the variants of a step.
func fillVariants(set func(part, value string), s puntuale.Step) {
	for i := range s.Variants[:min(len(s.Variants), len(variantLetters))] {
		if v, letter := &s.Variants[i], variantLetters[i]; i > 0 {
			set(".text_"+letter, v.Content.Text)
			set(".template_"+letter, v.Template)
		}
		set(".share_"+variantLetters[i], strconv.Itoa(s.Variants[i].Share))
	}
}

// variants reads the texts of a step, or its templates, if it has several. It moves them together, so that each keeps the
// place that faults name. Without shares, the people are divided into equal parts.
func (s stepReader) variants(step puntuale.Step) (all []puntuale.StepVariant) {
	field := ".text_"
	if step.Template != "" {
		field = ".template_"
	}
	var letters []string
	for _, letter := range variantLetters[1:] {
		if s.word(field+letter) != "" {
			letters = append(letters, letter)
		}
	}
	if len(letters) == 0 {
		return nil
	}
	all = []puntuale.StepVariant{{Template: step.Template, Content: puntuale.VariantText{Text: step.Text}}}
	words := []string{s.word(".share_a")}
	for _, letter := range letters {
		v := puntuale.StepVariant{Template: s.word(field + letter)}
		if step.Template == "" {
			v = puntuale.StepVariant{Content: puntuale.VariantText{Text: s.text(field + letter)}}
		}
		all, words = append(all, v), append(words, s.word(".share_"+letter))
	}
	for i, letter := range variantLetters {
		text, share := "", ""
		if i < len(all) {
			text, share = all[i].Content.Text+all[i].Template, words[i]
		}
		if i > 0 {
			s.f.Values.Set(s.at+field+letter, text)
		}
		s.f.Values.Set(s.at+".share_"+letter, share)
	}
	for i := range all {
		if all[i].Share = 100 / len(all); i < 100%len(all) {
			all[i].Share++
		}
		if words[i] != "" {
			all[i].Share = s.number(".share_" + variantLetters[i])
		}
	}
	return all
}

var ofVariant = regexp.MustCompile(`^(body\.steps\[\d+\])\.variants(?:\[([0-3])\])?(?:\.(content\.text|template|share))?$`)

// variantField changes the location of a fault of a variant into the field of the form.
func variantField(location string) string {
	m := ofVariant.FindStringSubmatch(location)
	if m == nil {
		return location
	}
	n, _ := strconv.Atoi(m[2]) // of the whole list: the first
	letter := variantLetters[n]
	part := strings.TrimPrefix(m[3], "content.")
	switch {
	case part == "share", m[2] == "":
		return m[1] + ".share_" + letter
	case part == "" && n == 0:
		return m[1]
	case part == "":
		return m[1] + ".text_" + letter
	case n == 0:
		return m[1] + "." + part
	}
	return m[1] + "." + part + "_" + letter
}

// variantFields does the same for faults, in place.
func variantFields(faults []puntuale.Fault) []puntuale.Fault {
	for i := range faults {
		faults[i].Location = variantField(faults[i].Location)
	}
	return faults
}

// compares reports whether a step of the form has several texts, or a fault in them.
func compares(f *view.Form, at string) bool {
	for _, letter := range variantLetters {
		for _, part := range []string{".text_", ".template_", ".share_"} {
			if name := at + part + letter; f.Value(name) != "" || f.Fault(name) != "" {
				return true
			}
		}
	}
	return false
}
