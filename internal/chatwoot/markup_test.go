package chatwoot

import (
	"strings"
	"testing"
)

// What agents write arrives in WhatsApp's markup.
func TestWhatsAppOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Ciao **Anna**, *domani* ~~lunedì~~":              "Ciao *Anna*, _domani_ ~lunedì~",
		"__forte__ e _piano_":                             "*forte* e _piano_",
		"***tutto***":                                     "_*tutto*_",
		"1\\. non un elenco\\\nseconda riga":              "1. non un elenco\nseconda riga",
		"prima  \nseconda\n\nterza":                       "prima\nseconda\n\nterza",
		"- uno\n- due\n  - sotto":                         "- uno\n- due\n  - sotto",
		"* uno\n* due":                                    "- uno\n- due",
		"3. tre\n4. quattro":                              "3. tre\n4. quattro",
		"[la nostra pagina](https://example.com/a_b_c)":   "la nostra pagina (https://example.com/a_b_c)",
		"[https://example.com](https://example.com)":      "https://example.com",
		"<https://example.com> https://example.com/x_y_z": "https://example.com https://example.com/x_y_z",
		"`x\\*y` e ```a\nb```":                            "`x\\*y` e ```a\nb```",
		"```\nriga 1\nriga 2\n```":                        "```riga 1\nriga 2```",
		"> citato\n> ancora":                              "> citato\n> ancora",
		"# Titolo\ntesto":                                 "*Titolo*\ntesto",
		"2 * 3 * 4 = 24, file_di_prova":                   "2 * 3 * 4 = 24, file_di_prova",
		"5 < 6 & \\*niente\\*":                            "5 < 6 & *niente*",
		"":                                                "",
		"Sì 👍":                                            "Sì 👍",
	} {
		if got := whatsAppOf(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// What people write shows in Chatwoot as in WhatsApp, and an agent who sends it back sends the same.
func TestMarkdownOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"*forte* _piano_ ~via~":          "**forte** *piano* ~~via~~",
		"*forte _e piano_*":              "**forte *e piano***",
		"3*4*5 file_di_prova":            `3\*4\*5 file\_di\_prova`,
		"# non un titolo":                `\# non un titolo`,
		"https://example.com/a_b_c *ok*": "https://example.com/a_b_c **ok**",
		"`a_b` <b>":                      "`a_b` \\<b>",
		"[x](y)":                         `\[x\](y)`,
		"Sì, grazie!\nA domani":          "Sì, grazie!\nA domani",
	} {
		got := markdownOf(in)
		if got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if back := whatsAppOf(got); back != in {
			t.Errorf("%q came back as %q", in, back)
		}
	}
}

// Neither direction panics, or grows a text without bound.
func FuzzMarkup(f *testing.F) {
	f.Add("**a** _b_ `c` > d\n- e\\*")
	f.Add(strings.Repeat("> - ", 200) + "x")
	f.Fuzz(func(t *testing.T, text string) {
		if got := markdownOf(text); len(got) > 3*len(text)+16 {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
		_ = whatsAppOf(text)
	})
}
