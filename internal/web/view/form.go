package view

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/web/language"
)

// Form contains the values that a person typed, with their faults. A refused form is shown again with the values and
// the faults, so that nothing is lost. The first field with a fault gets the focus.
type Form struct {
	Values  url.Values
	Message string       // the fault of the form as a whole; may be ""
	Differs []Difference // values that somebody else saved since the form was filled
	Fresh   string       // if somebody else saved since the form was filled: the address of a page with the stored data; otherwise ""
	faults  map[string]string
	Order   []string
}

// NewForm returns a form with values. The argument pairs contains the name of a field, then its text, and so on.
func NewForm(pairs ...string) *Form {
	f := &Form{Values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Value returns the value of a field.
func (f *Form) Value(name string) string { return f.Values.Get(name) }

// Is reports whether a field has this value. It is for choices and checkboxes.
func (f *Form) Is(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Fault returns the sentence of a field's fault, or "" if there is no fault.
func (f *Form) Fault(name string) string { return f.faults[name] }

// HasFaults reports whether the form has a fault.
func (f *Form) HasFaults() bool { return len(f.faults) > 0 || f.Message != "" }

// Refuse adds a fault to a field. message is in the reader's language. If name is "", the fault is about the whole
// form.
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

// Take adds each fault of an error to a field. The field's name is the fault's location without "body.", such as
// steps[2].timing.at. fields are the names of the form's fields, in the order of the page. A fault without a field is
// shown above the form.
func (f *Form) Take(l *language.Language, e *puntuale.Error, fields ...string) {
	if len(e.Faults) == 0 || e.Code == puntuale.CodeQuotaReached { // no field has a fault: the error has no faults, or it is about the client's quota
		f.Refuse("", l.Fault(e.Reason))
		return
	}
	for _, fault := range e.Faults {
		_, name, _ := strings.Cut(fault.Location, ".")
		says := l.Fault(fault.Reason())
		if list, row, ok := f.ofList(name); ok {
			if name = list; f.Fault(name) != "" {
				continue
			}
			if row != "" {
				says = "«" + row + "»: " + says
			}
		}
		if len(fields) > 0 && !slices.Contains(fields, name) {
			whole, _, _ := strings.Cut(name, "[")
			if !slices.Contains(fields, whole) {
				f.Message = strings.TrimSpace(f.Message + " " + says + ".")
				continue
			}
			name = whole
		}
		f.Refuse(name, says)
	}
	slices.SortStableFunc(f.Order, func(a, b string) int { return cmp.Compare(rank(fields, a), rank(fields, b)) })
}

// rank returns the position of a field among a form's fields. A name that is not among the fields comes after all of
// them.
func rank(fields []string, name string) int {
	whole, _, _ := strings.Cut(name, "[")
	for i, field := range fields {
		if field == name || field == whole {
			return i
		}
	}
	return len(fields)
}

// Differ marks a part of the form if its stored value is different from the typed value.
func (f *Form) Differ(label, typed, stored string) {
	if typed != stored {
		f.Differs = append(f.Differs, Difference{label, typed, stored})
	}
}

// First reports whether the field is the first field with a fault.
func (f *Form) First(name string) bool {
	return len(f.Order) > 0 && f.Order[0] == name
}

// Input describes a field of a form.
type Input struct {
	Name     string
	ID       string // the id of the element, needed if another form on the page has a field of the same name; "": the same as Name
	Label    string // the label, in the reader's language
	Hint     string // the text below the field; "": none
	Kind     string // the type of the input: text (default), email, password, tel, number, date, time, search, color or file
	Need     bool
	Mark     bool   // true: the label shows that the field is required, because readers of this form may not know it
	Auto     string // the attribute autocomplete, such as username, current-password, one-time-code or off
	Mode     string // the attribute inputmode, such as numeric or tel
	Max      int    // the largest number of characters; 0: no limit
	Rows     int    // only for a text area: the number of lines
	Holder   string // the placeholder: an example, never the label
	Accept   string // only for a file: the accepted types
	Short    bool   // true: the field is as wide as its content, not as wide as the form
	Focus    bool   // true: the field gets the focus if no field has a fault
	ReadOnly bool
	More     map[string]any // further attributes, such as those of htmx and Alpine
}

// id returns the id of the field's element.
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

// NotRequired removes the word "optional" from the labels of filters, because every filter is optional.
var NotRequired = map[string]any{"required": false}

// LineFault is a fault in one line of a list.
type LineFault struct {
	Line int
	Says string
}
