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
	Message string       // what is wrong with the form as a whole; may be ""
	Differs []Difference // what somebody else saved meanwhile
	Fresh   string       // if somebody else saved meanwhile: the address of the stored data; otherwise ""
	faults  map[string]string
	Order   []string
}

// NewForm returns a form with values. pairs are names and texts.
func NewForm(pairs ...string) *Form {
	f := &Form{Values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Value returns the value that a field shows.
func (f *Form) Value(name string) string { return f.Values.Get(name) }

// Is reports whether a field has this value, for choices and checkboxes.
func (f *Form) Is(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Fault returns what is wrong with a field, or "" if it is right.
func (f *Form) Fault(name string) string { return f.faults[name] }

// Bad reports whether anything is wrong with the form.
func (f *Form) Bad() bool { return len(f.faults) > 0 || f.Message != "" }

// Refuse notes, in the reader's language, what is wrong with a field. If name is "", it is about the whole form.
func (f *Form) Refuse(name, message string) {
	if name == "" {
		f.Message = message
		return
	}
	if f.faults == nil {
		f.faults = map[string]string{}
	}
	if _, found := f.faults[name]; !found {
		f.Order = append(f.Order, name)
	}
	f.faults[name] = message
}

// Take puts each fault of an error at a field. The fault's location without "body." is the field's name. "body.name" is
// the field name; "body.steps[2].timing.at" is steps[2].timing.at. It reports whether the form can show the error.
// fields are the form's fields, in reading order. A fault without a field is shown above the form.
func (f *Form) Take(l *language.Language, e *puntuale.Error, fields ...string) {
	if len(e.Faults) == 0 || e.Code == puntuale.CodeQuotaReached { // the error is about the client's data, and not about a field
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

// rank returns the position of a field among the fields of a form. If the name is no field, it comes after all fields.
func rank(fields []string, name string) int {
	whole, _, _ := strings.Cut(name, "[")
	for i, field := range fields {
		if field == name || field == whole {
			return i
		}
	}
	return len(fields)
}

// Differ notes a part of the form, if its stored value is different now.
func (f *Form) Differ(label, typed, stored string) {
	if typed != stored {
		f.Differs = append(f.Differs, Difference{label, typed, stored})
	}
}

// First reports whether the field is the first one with a fault.
func (f *Form) First(name string) bool {
	return len(f.Order) > 0 && f.Order[0] == name
}

// Input describes a field of a form.
type Input struct {
	Name     string
	ID       string // the id of the element, if another form on the page has a field of the same name; "": the name
	Label    string // in the reader's language
	Hint     string // shown below the field; may be ""
	Kind     string // the type of the input: text (default), email, password, tel, number, date, time, search, color or file
	Need     bool
	Mark     bool   // true: the label says that the field is required, because readers of this form may not know it
	Auto     string // the attribute autocomplete, such as username, current-password, one-time-code or off
	Mode     string // the attribute inputmode, such as numeric or tel
	Max      int    // how many characters; 0: any number
	Rows     int    // only for an area
	Holder   string // the placeholder: an example, never the label
	Accept   string // only for a file: the accepted types
	Short    bool   // true: the field is as wide as its content, and not as wide as the form
	Focus    bool   // true: the field gets the focus if no field has a fault
	ReadOnly bool
	More     map[string]any // further attributes, such as those of htmx and Alpine
}

// id returns the id of the element.
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

// NotRequired removes the word "optional" from filters, because every filter is optional.
var NotRequired = map[string]any{"required": false}

// LineFault is a fault in one line of a list.
type LineFault struct {
	Line int
	Text string // the text of the line
	Says string
}
