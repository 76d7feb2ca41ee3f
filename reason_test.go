package puntuale_test

import (
	"testing"

	"puntuale"
)

func TestReasonsAreStored(t *testing.T) {
	for _, r := range []puntuale.Reason{
		{},
		puntuale.Quoted("wamid.1 (#131026) refused"),
		puntuale.Because("uncertain"),
		puntuale.Because("media.too_large", "100 MB", `a "quoted" word`),
		puntuale.Because("official.refused", puntuale.Because("media.empty").Stored()),
	} {
		if got := puntuale.ParseReason(r.Stored()); !got.Equal(r) {
			t.Errorf("%#v came back as %#v", r, got)
		}
	}
	for _, words := range []string{"Numero in blacklist", `["`, `["a"`, "[]", `["a", 1]`} {
		if got := puntuale.ParseReason(words); !got.Equal(puntuale.Quoted(words)) {
			t.Errorf("%q: %#v, want quoted words", words, got)
		}
	}
}
