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

// TestChartTop: a few large days do not flatten the others.
func TestChartTop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		days []int64
		top  int64
	}{
		"none":                  {nil, 1},
		"nothing sent":          {[]int64{0, 0}, 1},
		"alike":                 {[]int64{3, 4, 5}, 5},
		"one large day":         {[]int64{4, 127, 3}, 6},
		"two, of a month":       {append(make([]int64, 28), 4, 3, 113, 96), 6},
		"two, of a week":        {[]int64{4, 4, 3, 2, 4, 113, 96}, 113},
		"large days and no day": {[]int64{113, 0, 0}, 113},
	} {
		var b Bars
		for _, n := range c.days {
			b.Days = append(b.Days, BarDay{Values: []int64{n}})
		}
		if got := b.top(); got != c.top {
			t.Errorf("%s: the chart ends at %d, want %d", name, got, c.top)
		}
	}
}
