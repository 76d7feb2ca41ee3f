package page

import (
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// A form for data that others may also edit contains the version with which the form was filled. If another version was
// stored since, nothing is saved. The form is shown again with the reader's values and the stored values. The form now
// contains the stored version, so the reader decides whether to save again.

// Versions returns the version with which a form was filled, as a list. The list is empty if the form has no version.
func Versions(f *view.Form) []puntuale.Version {
	if v := f.Value(view.Version); v != "" {
		return []puntuale.Version{puntuale.Version(v)}
	}
	return nil
}

// Label is the name of a form's field, with the text key of the field's label.
type Label struct{ Name, Key string }

// Compare reports whether a form was refused because of its version. If so, Compare puts two values into the form: the
// stored version, and the address of a page that shows the stored values. The argument fresh is this address.
func (v *Request) Compare(err error, f *view.Form, version puntuale.Version, fresh string) bool {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return false
	}
	f.Values.Set(view.Version, string(version))
	f.Fresh = fresh
	return true
}

// Differ marks the fields of a form whose stored values are now different.
func (v *Request) Differ(f, stored *view.Form, labels ...Label) {
	for _, l := range labels {
		f.Differ(v.T(l.Key), strings.TrimSpace(f.Value(l.Name)), strings.TrimSpace(stored.Value(l.Name)))
	}
}
