package view

import (
	"testing"

	"puntuale"
	"puntuale/internal/web/language"
)

// TestFirstFault: the first field with a fault, in the order of the page, gets the focus. The order of the faults does
// not matter.
func TestFirstFault(t *testing.T) {
	t.Parallel()
	f := NewForm()
	e := puntuale.Invalid(
		puntuale.Fault{Location: "body.quotas.keys", Code: puntuale.FaultNotWhole},
		puntuale.Fault{Location: "body.holidays[1]", Code: puntuale.FaultRequired},
		puntuale.Fault{Location: "body.phone", Code: puntuale.FaultRequired},
	)
	f.Take(language.Named("it"), e, "name", "phone", "holidays", "quotas.keys")
	for _, name := range []string{"phone", "holidays", "quotas.keys"} {
		if f.Fault(name) == "" || f.First(name) != (name == "phone") {
			t.Errorf("%s: %q, first %v", name, f.Fault(name), f.First(name))
		}
	}
}
