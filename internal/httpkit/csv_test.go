package httpkit

import "testing"

// TestInertCell: a spreadsheet runs no line of a cell as a formula, even if the line begins with white space, or if the
// file is split at another separator. Other texts do not change.
func TestInertCell(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"":                  "",
		"Ciao, a = b":       "Ciao, a = b",
		"due\nrighe":        "due\nrighe",
		"=1":                "'=1",
		" =1":               "' =1",
		"\u00a0\ufeff=1":    "'\u00a0\ufeff=1",
		"a\n=1":             "a\n'=1",
		"a\r\n\t@SUM(A1)":   "a\r\n'\t@SUM(A1)",
		"a\n\n +39 1\n-x":   "a\n\n' +39 1\n'-x",
		"\tx":               "'\tx",
		"\n":                "'\n",
		"＝1":                "'＝1",
		"+39 333 123 4567":  "'+39 333 123 4567",
		"a;=1":              "a;'=1",
		"a, @SUM(A1);;-x":   "a,' @SUM(A1);;'-x",
		"a\t+1":             "a\t'+1",
		"Roma; Milano, 3-4": "Roma; Milano, 3-4",
		"%0A|calc":          "'%0A|calc",
		"https://x.it/?a=1": "https://x.it/?a=1",
	} {
		if got := InertCell(cell); got != want {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
}
