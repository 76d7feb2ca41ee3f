package view

import (
	"strings"
	"time"

	"puntuale"
)

// Picker is the layout of a day and a time in browsers' date inputs.
const Picker = "2006-01-02T15:04"

// pickedForms are the layouts of values that a date input can show.
var pickedForms = []string{Picker, "2006-01-02 15:04", "02/01/2006 15:04", "2/1/2006 15:04"}

// DateKind returns the kind of input for a field. For a field with a date, this is a date input. If a date input cannot
// show the value, it is a text input.
func DateKind(f puntuale.Field, value string) string {
	if f.Kind != puntuale.FieldDate {
		return "text"
	}
	if value = strings.TrimSpace(value); value == "" || AsPicked("datetime-local", value) != value {
		return "datetime-local"
	}
	if _, err := time.Parse(Picker, value); err == nil {
		return "datetime-local"
	}
	return "text"
}

// AsPicked formats a value for an input of this kind.
func AsPicked(kind, value string) string {
	if kind != "datetime-local" {
		return value
	}
	for _, form := range pickedForms {
		if at, err := time.Parse(form, strings.TrimSpace(value)); err == nil {
			return at.Format(Picker)
		}
	}
	return value
}

// Picked changes a day and a time from the layout of browsers into the layout of API calls.
func Picked(text string) string {
	at, err := time.Parse(Picker, text)
	if err != nil {
		return text
	}
	return at.Format("02/01/2006 15:04")
}

// FieldInput returns the input for a field. The label is the field's readable name. The hint contains the name that
// texts use. For a date, the input is a date picker, unless the present value is no date.
func FieldInput(f puntuale.Field, hint string, form *Form) Input {
	in := Input{Name: "fields." + f.Name, Label: FieldName(f.Name), Hint: hint + " · {{" + f.Name + "}}", Need: f.Required, Auto: "off"}
	if in.Kind = DateKind(f, form.Value(in.Name)); in.Kind == "datetime-local" {
		form.Values.Set(in.Name, AsPicked(in.Kind, form.Value(in.Name)))
	}
	return in
}
