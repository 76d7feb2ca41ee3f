package plan

import "puntuale"

// Fields returns the parametric fields of a sequence, those its steps name, in the order of first use. A field is a
// date when it anchors a step or is printed in a date's format anywhere, a media address when it is a step's whole
// media, and text otherwise. It is required when it anchors a step or is printed somewhere without a fallback.
func Fields(s puntuale.Sequence) []puntuale.Field {
	var l fieldList
	for i := range s.Steps {
		step := &s.Steps[i]
		l.template(step.Text)
		if name := sole(step.Media); name != "" && !isReserved(name) {
			l.use(name, puntuale.FieldMedia, false)
		}
		l.template(step.Media)
		l.template(step.MediaName)
		if anchor := step.Timing.Anchor; anchor != "" && anchor != puntuale.AnchorStart {
			l.use(anchor, puntuale.FieldDate, true)
		}
	}
	return l
}

type fieldList []puntuale.Field

func (l *fieldList) template(text string) {
	for s := scan(text); s.next(); {
		if !s.found || s.fault != "" || s.field.name == fieldPhone {
			continue
		}
		kind := puntuale.FieldText
		if s.field.format != "" {
			kind = puntuale.FieldDate
		}
		l.use(s.field.name, kind, !s.field.optional)
	}
}

// use notes one use of a field; of two kinds the stricter stays.
func (l *fieldList) use(name string, kind puntuale.FieldKind, required bool) {
	for i := range *l {
		f := &(*l)[i]
		if f.Name != name {
			continue
		}
		if kind == puntuale.FieldDate || f.Kind == puntuale.FieldText {
			f.Kind = kind
		}
		f.Required = f.Required || required
		return
	}
	*l = append(*l, puntuale.Field{Name: name, Kind: kind, Required: required})
}
