package view

import (
	"strings"
	"testing"

	"puntuale"
)

func TestCalledName(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		`{"phone":"+393331234567","nome":"Lucia"}`: "Lucia",
		`{"name":" Lucia \n  Rossi "}`:             "Lucia Rossi",
		`{"nome":"Lucia","name":"Anna"}`:           "Lucia",
		`{"nome":"  ","name":"Anna"}`:              "Anna",
		`{"nome":5,"name":"Anna"}`:                 "Anna",
		`{"nome":null}`:                            "",
		`{"nome":{"nome":"Lucia"}}`:                "",
		`{"fields":{"nome":"Lucia"}}`:              "",
		`["nome"]`:                                 "",
		`{"nome":"Lucia"`:                          "",
		``:                                         "",
		`{"nome":"` + strings.Repeat("è", maxName) + `"}`:                strings.Repeat("è", maxName),
		`{"nome":"` + strings.Repeat("è", maxName+1) + `"}`:              strings.Repeat("è", maxName-1) + "…",
		`{"nome":"Lucia","testo":"` + strings.Repeat("x", 16<<10) + `"}`: "",
	} {
		if got := CalledName(With(t.Context(), &Frame{}), puntuale.MessageDetail{Request: []byte(call)}); got != want {
			t.Errorf("%.60s: %q instead of %q", call, got, want)
		}
	}
	if got := CalledName(With(t.Context(), &Frame{}), puntuale.MessageDetail{Request: []byte(`{"nome":"Lucia"}`), Blanked: true}); got != "" {
		t.Errorf("of who was erased: %q", got)
	}
	lucia := puntuale.MessageDetail{Request: []byte(`{"nome":"Lucia"}`)}
	lucia.Phone = "+393331234567"
	known := With(t.Context(), &Frame{Names: map[string]string{"+393331234567": "Lucia Neri"}})
	if got := CalledName(known, lucia); got != "Lucia Neri" {
		t.Errorf("of a known person: %q", got)
	}
}
