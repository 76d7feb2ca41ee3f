package draft_test

import (
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/draft"
)

func valid() puntuale.TemplateDraft {
	return puntuale.TemplateDraft{
		Name: "ordine_pronto", Language: "it", Category: "UTILITY", Text: "Ciao {{nome}}, il tuo ordine è pronto per il ritiro.", Examples: map[string]string{"nome": "Ada", "numero": "17"},
	}
}

// TestCheck: each fault is at its own member, and all faults come together.
func TestCheck(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		change func(*puntuale.TemplateDraft)
		faults string
	}{
		"nothing":    {func(*puntuale.TemplateDraft) {}, ""},
		"many":       {func(d *puntuale.TemplateDraft) { *d = puntuale.TemplateDraft{} }, "body.name body.language body.category body.text"},
		"auth":       {func(d *puntuale.TemplateDraft) { d.Category = "AUTHENTICATION" }, "body.category"},
		"name":       {func(d *puntuale.TemplateDraft) { d.Name = "Ordine pronto" }, "body.name"},
		"blank text": {func(d *puntuale.TemplateDraft) { d.Text = "\u200b" }, "body.text"},
		"blanks": {func(d *puntuale.TemplateDraft) {
			d.Header, d.Examples["nome"] = &puntuale.DraftHeader{Kind: "image", Media: "\u200b"}, "\u2060"
		}, "body.header.media body.examples.nome"},
		"long text":  {func(d *puntuale.TemplateDraft) { d.Text = long(1025) }, "body.text"},
		"odd field":  {func(d *puntuale.TemplateDraft) { d.Text = "Ciao {{Nome Mio}} a te" }, "body.text"},
		"no example": {func(d *puntuale.TemplateDraft) { d.Examples = nil }, "body.examples.nome"},
		"two lines":  {func(d *puntuale.TemplateDraft) { d.Examples["nome"] = "a\nb" }, "body.examples.nome"},
		"numbers": {func(d *puntuale.TemplateDraft) {
			d.Text, d.Examples = "a {{1}} b {{3}} c", map[string]string{"1": "x", "3": "y"}
		}, "body.text"},
		"both":   {func(d *puntuale.TemplateDraft) { d.Text, d.Examples["1"] = "a {{1}} b {{nome}} c", "x" }, "body.text"},
		"footer": {func(d *puntuale.TemplateDraft) { d.Footer = "di {{nome}}" }, "body.footer"},
		"header": {func(d *puntuale.TemplateDraft) {
			d.Header = &puntuale.DraftHeader{Kind: "text", Text: "{{nome}} {{numero}}"}
		}, "body.header.text"},
		"header kind": {func(d *puntuale.TemplateDraft) { d.Header = &puntuale.DraftHeader{Kind: "gif"} }, "body.header.kind"},
		"no sample":   {func(d *puntuale.TemplateDraft) { d.Header = &puntuale.DraftHeader{Kind: "image"} }, "body.header.media"},
		"other sample": {func(d *puntuale.TemplateDraft) {
			d.Header = &puntuale.DraftHeader{Kind: "image", Media: "https://x.it/a.pdf"}
		}, "body.header.media"},
		"button label": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "quick_reply", Text: long(26)}}
		}, "body.buttons[0].text"},
		"button url": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "url", Text: "a", URL: "https://x.it/{{numero}}/b"}}
		}, "body.buttons[0].url"},
		"button phone": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "phone", Text: "a", Phone: "02123"}}
		}, "body.buttons[0].phone"},
		"buttons apart": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "quick_reply", Text: "a"}, {Kind: "phone", Text: "b", Phone: "+39021234"}, {Kind: "quick_reply", Text: "c"}}
		}, "body.buttons[2].kind"},
		"two phones": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "phone", Text: "a", Phone: "+39021234"}, {Kind: "phone", Text: "b", Phone: "+39021234"}}
		}, "body.buttons[1].kind"},
		"good buttons": {func(d *puntuale.TemplateDraft) {
			d.Buttons = []puntuale.DraftButton{{Kind: "url", Text: "a", URL: "https://x.it/{{numero}}"}, {Kind: "copy_code", Code: "A"}}
		}, ""},
	} {
		d := valid()
		c.change(&d)
		var got []string
		for _, f := range draft.Check(d) {
			got = append(got, f.Location)
		}
		if strings.Join(got, " ") != c.faults {
			t.Errorf("%s: faults at %q, want %q", name, got, c.faults)
		}
	}
}

// TestLint: each finding names what Meta may refuse or take for marketing. A plain utility text has none.
func TestLint(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"{{nome}}, il tuo ordine è pronto.":                               "lint.edge",
		"Il tuo ordine è pronto, {{nome}}":                                "lint.edge",
		"Il tuo ordine {{numero}} {{nome}} è pronto per il ritiro qui.":   "lint.adjacent",
		"Ordine {{numero}} di {{nome}} ok.":                               "lint.many",
		"Ciao {{nome}}, il tuo ordine ha uno sconto del 10%.":             "lint.marketing",
		"Ciao {{nome}}, con il tuo ordine la spedizione è gratis.":        "lint.marketing",
		"Hi {{nome}}, your order comes with a special offer for you.":     "lint.marketing",
		"Ciao {{nome}}, segui il tuo ordine su bit.ly/abc quando vuoi.":   "lint.short_link",
		"Ciao {{nome}}, per il tuo ordine scrivi a https://wa.me/39 ora.": "lint.wa_link",
		"Ciao {{nome}}, il tuo ordine è pronto!!! Passa pure a ritirarlo": "lint.shouting",
		"Ciao {{nome}}, passa a trovarci quando vuoi, ti aspettiamo qui.": "lint.vague",
		"Ciao {{nome}}, il tuo ordine 🎉🎉🎉 è pronto per il ritiro.":        "lint.emoji",
		"Ciao {{nome}}, il tuo ordine è pronto.\n\n\nA presto da noi":     "lint.lines",
		"Ciao {nome}, il tuo ordine è pronto per il ritiro.":              "lint.single_brace",
		"Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro.": "",
	} {
		d := valid()
		d.Text = text
		var got []string
		for _, f := range draft.Lint(d) {
			got = append(got, string(f.Reason.Code))
		}
		if code == "" && len(got) > 0 || code != "" && !slices.Contains(got, code) {
			t.Errorf("%q: %q, want %q", text, got, code)
		}
	}
	d := valid()
	d.Category, d.Text = "MARKETING", "Ciao {{nome}}, solo oggi uno sconto speciale per te in negozio."
	if got := draft.Lint(d); len(got) > 0 {
		t.Errorf("a marketing text: %+v", got)
	}
}

// TestLibrary: each text of the library is valid in both languages, and the lint finds nothing in it.
func TestLibrary(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	names := map[string]bool{}
	for _, e := range draft.Library() {
		count[e.Group]++
		if names[e.Name] {
			t.Errorf("%s twice", e.Name)
		}
		names[e.Name] = true
		for _, language := range []string{"it", "en_US"} {
			d := e.Draft(language)
			if faults, findings := draft.Check(d), draft.Lint(d); len(faults) > 0 || len(findings) > 0 {
				t.Errorf("%s in %s: %+v, %+v: %s", e.Name, language, faults, findings, d.Text)
			}
		}
	}
	for _, group := range []string{"appointments", "orders", "payments", "reviews"} {
		if count[group] != 12 {
			t.Errorf("%d texts about %s", count[group], group)
		}
	}
}
