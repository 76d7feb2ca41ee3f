package view

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/web/language"
)

// Form is what a person typed, with its faults. A refused form is shown again with both, so that nothing is lost. Its first
// faulty field gets the focus.
type Form struct {
	Values  url.Values
	Message string       // what is wrong with the form as a whole; ""
	Differs []Difference // what somebody else saved meanwhile
	Fresh   string       // the address of what is stored, where somebody else saved meanwhile; ""
	faults  map[string]string
	Order   []string
}

// NewForm is a form that begins with values: pairs of names and texts.
func NewForm(pairs ...string) *Form {
	f := &Form{Values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Value is the shown value of a field.
func (f *Form) Value(name string) string { return f.Values.Get(name) }

// Is reports whether a field has the value: for choices and checkboxes.
func (f *Form) Is(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Fault is what is wrong with a field, "" when nothing is.
func (f *Form) Fault(name string) string { return f.faults[name] }

// Bad reports whether anything is wrong.
func (f *Form) Bad() bool { return len(f.faults) > 0 || f.Message != "" }

// Refuse notes what is wrong with a field, or with "" the whole form, in the reader's language.
func (f *Form) Refuse(name, says string) {
	if name == "" {
		f.Message = says
		return
	}
	if f.faults == nil {
		f.faults = map[string]string{}
	}
	if _, there := f.faults[name]; !there {
		f.Order = append(f.Order, name)
	}
	f.faults[name] = says
}

// Take puts each fault of an error at its field, by the last part of its location. "body.name" is the field name; "body.steps[2].timing.at"
// is steps[2].timing.at. It reports whether the form can show the error. fields are the form's fields, in reading order. A fault without a
// field is shown above the form.
func (f *Form) Take(l *language.Language, e *puntuale.Error, fields ...string) {
	if len(e.Faults) == 0 || e.Code == puntuale.CodeQuotaReached { // of what the client has, not of a field
		f.Refuse("", l.Fault(e.Reason))
		return
	}
	for _, fault := range e.Faults {
		_, name, _ := strings.Cut(fault.Location, ".")
		if len(fields) > 0 && !slices.Contains(fields, name) {
			whole, _, _ := strings.Cut(name, "[")
			if !slices.Contains(fields, whole) {
				f.Message = strings.TrimSpace(f.Message + " " + l.Fault(fault.Reason()) + ".")
				continue
			}
			name = whole
		}
		f.Refuse(name, l.Fault(fault.Reason()))
	}
	slices.SortStableFunc(f.Order, func(a, b string) int { return cmp.Compare(rank(fields, a), rank(fields, b)) })
}

// rank is where a field stands among the fields of a form; after all of them if it is not a field.
func rank(fields []string, name string) int {
	whole, _, _ := strings.Cut(name, "[")
	for i, field := range fields {
		if field == name || field == whole {
			return i
		}
	}
	return len(fields)
}

// Differ notes a part of the form that is stored differently now, if it is.
func (f *Form) Differ(label, yours, stored string) {
	if yours != stored {
		f.Differs = append(f.Differs, Difference{label, yours, stored})
	}
}

// First reports whether the field is the first one with a fault.
func (f *Form) First(name string) bool {
	return len(f.Order) > 0 && f.Order[0] == name
}

// Input describes a field of a form.
type Input struct {
	Name     string
	ID       string // of the element, where another form of the page has a field of this name; "": the name
	Label    string // in the reader's language
	Hint     string // said below; ""
	Kind     string // of the input: text (default), email, password, tel, number, date, time, search, color, file
	Need     bool
	Mark     bool   // says so: in a form whose reader may not know that fields not marked as optional are needed
	Auto     string // autocomplete: username, current-password, one-time-code, off ...
	Mode     string // inputmode: numeric, tel ...
	Max      int    // characters; 0: any
	Rows     int    // of an area
	Holder   string // placeholder: an example, never the label
	Accept   string // of a file
	Short    bool   // the field is as wide as what it holds, not as the form
	Focus    bool   // gets the focus where nothing is wrong
	ReadOnly bool
	More     map[string]any // further attributes, such as hx- and x- ones
}

// id is the element's id.
func (in Input) id() string {
	if in.ID != "" {
		return FieldID(in.ID)
	}
	return FieldID(in.Name)
}

// Option is one choice.
type Option struct {
	Value string
	Text  string
	Hint  string
}

func Fresh(f *Form, pairs ...string) *Form {
	if f != nil {
		return f
	}
	return NewForm(pairs...)
}

// NotRequired removes the word "optional" from filters, because all filters are optional.
var NotRequired = map[string]any{"required": false}

// LineFault is a fault of a line of a list.
type LineFault struct {
	Line int
	Text string // what stands there
	Says string
}
