package page

import (
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// A form for data that others may also edit has the version with which it was filled. If another version is stored by now, nothing is
// saved. The form comes back with both: what the reader wrote, beside what is stored. It then has the stored version, so a second save is a
// decision of the reader.

// Versions are the versions with which a form was filled; none if it has none.
func Versions(f *view.Form) []puntuale.Version {
	if v := f.Value(view.Version); v != "" {
		return []puntuale.Version{puntuale.Version(v)}
	}
	return nil
}

// Label is a field of a form, and the key of its label.
type Label struct{ Name, Key string }

// Compare reports whether a form was refused for its version. Then it gives the form the stored version, and the address
// that shows what is stored.
func (v *Request) Compare(err error, f *view.Form, version puntuale.Version, fresh string) bool {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return false
	}
	f.Values.Set(view.Version, string(version))
	f.Fresh = fresh
	return true
}

// Differ notes the fields of a form that have other stored values now.
func (v *Request) Differ(f, stored *view.Form, labels ...Label) {
	for _, l := range labels {
		f.Differ(v.T(l.Key), strings.TrimSpace(f.Value(l.Name)), strings.TrimSpace(stored.Value(l.Name)))
	}
}
