package manual_test

import (
	"testing"

	"puntuale/internal/manual"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	const page = "# Page\n\n```sh\nfirst\n```\n\n## One\n\n1. A step:\n\n   ```sh\n   in \\\n     a list\n   ```\n\n```toml\nno = 1\n```\n\n```sh\nlast\n```\n\n## Two\n\n```sh\nother\n```\n"
	for section, want := range map[string]string{
		"":     "first\nin \\\n  a list\nlast\nother\n",
		"One":  "in \\\n  a list\nlast\n",
		"Two":  "other\n",
		"None": "",
	} {
		if got := manual.Examples(page, section, "sh"); got != want {
			t.Errorf("%q: got %q, want %q", section, got, want)
		}
	}
}
