package view

import (
	"context"
	"strings"
	"testing"
)

func TestBubbleText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ciao":                       "ciao",
		"*ciao*":                     "<strong>ciao</strong>",
		"Ciao *Anna*, _a presto_!":   "Ciao <strong>Anna</strong>, <em>a presto</em>!",
		"*tutto _insieme_*":          "<strong>tutto <em>insieme</em></strong>",
		"~no~ `*cosi*`":              "<s>no</s> <code>*cosi*</code>",
		"2*3*4 e snake_case_name":    "2*3*4 e snake_case_name",
		"* no * _ no _ ** __ *":      "* no * _ no _ ** __ *",
		"*una\nriga*":                "*una\nriga*",
		"*<b>x</b>*":                 "<strong>&lt;b&gt;x&lt;/b&gt;</strong>",
		"<script>*a*</script>":       "&lt;script&gt;<strong>a</strong>&lt;/script&gt;",
		"perché*no*":                 "perché*no*",
		"*" + strings.Repeat("*", 9): "**********",
	} {
		var b strings.Builder
		if err := BubbleText(text).Render(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != `<p class="bubble-text">`+want+`</p>` {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestFieldName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nome": "Nome", "data_appuntamento": "Data appuntamento", "Codice": "Codice", "data__di_nascita_": "Data di nascita", "importo2": "Importo2", "_": "_", "": "",
	} {
		if got := FieldName(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}
