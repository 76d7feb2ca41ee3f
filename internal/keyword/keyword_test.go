package keyword_test

import (
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/keyword"
)

func TestOnlyWholeMessagesAreWords(t *testing.T) {
	t.Parallel()
	words := puntuale.DefaultOptOutWords()
	for _, text := range []string{
		"STOP", "stop", " Stop. ", "Basta!", "BASTA!!!", "«basta»", "s.t.o.p", "sto\u0301p", "ＳＴＯＰ", "Unsubscribe", "cancellami\n", "DISISCRIVIMI…", "stop 🙏",
	} {
		if !keyword.Is(text, words) {
			t.Errorf("%q is an opt-out word", text)
		}
	}
	for _, text := range []string{
		"", " ", "!", "Stop, arrivo tardi", "Stop, non posso venire", "non fermarti, stop", "bastardo", "st op", "stopp", "stop stop", strings.Repeat("stop ", 2000),
	} {
		if keyword.Is(text, words) {
			t.Errorf("%q is no opt-out word", text)
		}
	}
}

func TestFoldIsStable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  D'Agostino   Niccolò ": "dagostino niccolo", "Straße": "strasse", "ÉCOLE": "ecole", "a\tb": "a b", "3ª": "3a", "\xff\xfex": "x",
	} {
		if got := keyword.Fold(text); got != want || keyword.Fold(got) != got {
			t.Errorf("%q folds to %q, want %q", text, got, want)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Basta!")
	f.Fuzz(func(t *testing.T, text string) {
		if once := keyword.Fold(text); keyword.Fold(once) != once {
			t.Errorf("%q folds to %q, and that to %q", text, once, keyword.Fold(once))
		}
	})
}
