package catalogue

import (
	"regexp"
	"slices"
	"testing"

	"puntuale"
)

func TestBothLanguagesTakeTheSameArguments(t *testing.T) {
	gap := regexp.MustCompile(`\{\d+\}`)
	for code, s := range sentences {
		if s.It == "" || s.En == "" {
			t.Errorf("%s: both languages are wanted", code)
		}
		it, en := gap.FindAllString(s.It, -1), gap.FindAllString(s.En, -1)
		slices.Sort(it)
		slices.Sort(en)
		if !slices.Equal(it, en) {
			t.Errorf("%s: Italian has %v, English %v", code, it, en)
		}
	}
}

func TestSay(t *testing.T) {
	defer func(was map[puntuale.ReasonCode]sentence) { sentences = was }(sentences)
	sentences = map[puntuale.ReasonCode]sentence{
		"outer": {It: "Rifiutato: {1} ({2})", En: "Refused: {1} ({2})", API: "was refused: {1} ({2})"},
		"inner": {It: "troppo grande", En: "too large"},
	}
	r := puntuale.Because("outer", puntuale.Because("inner").Stored(), "{1}")
	for got, want := range map[string]string{
		Italian.Sentence(r): "Rifiutato: troppo grande ({1})", English.Sentence(r): "Refused: too large ({1})", Message(r): "was refused: too large ({1})",
		Italian.Sentence(puntuale.Quoted("Numero in blacklist")): "Numero in blacklist", English.Sentence(puntuale.Reason{}): "",
		English.Sentence(puntuale.Because("from.tomorrow", "x")): "from.tomorrow x",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
