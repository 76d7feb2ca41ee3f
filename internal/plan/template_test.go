package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"puntuale"
)

func TestRender(t *testing.T) {
	t.Parallel()
	const body = `{"nome":"Anna","n":10.50,"neg":-3e2,"vuoto":"","spazi":" \n ","nullo":null,"trucco":"{{nome}} {{altro|x}}","quando":"2026-11-20T10:30",
		"giorno":"20/11/2026","estero":"2026-11-20T10:30Z","coda":" Anna ","largo":" 20/11/2026 10:30\n"}`
	for text, want := range map[string]string{
		"senza niente":                           "senza niente",
		"Ciao {{nome}}!":                         "Ciao Anna!",
		"{{nome}}{{nome}}":                       "AnnaAnna",
		"[{{coda}}]":                             "[ Anna ]",
		"{{n}} {{neg}}":                          "10.50 -3e2",
		"{{manca|amico}}":                        "amico",
		"{{vuoto|amico}} {{spazi|a}}":            "amico a",
		"{{nullo|}}.":                            ".",
		"{{manca| a|b : c }}":                    " a|b : c ",
		"{{nome|amico}}":                         "Anna",
		"{{trucco}}":                             "{{nome}} {{altro|x}}", // a placeholder in a value is not rendered again
		"{ {nome} } } {nome} }}":                 "{ {nome} } } {nome} }}",
		"{{quando:data}} {{quando}}":             "20/11/2026 20/11/2026 10:30",
		"{{quando:ora}} {{quando:giorno}}":       "10:30 venerdì 20 novembre",
		"{{estero:ora}}":                         "11:30",            // printed in the run's zone
		"{{largo:data}} {{largo:ora}}":           "20/11/2026 10:30", // white space around a value is removed
		"{{giorno:data}} {{giorno:ora|?}}":       "20/11/2026 ?",     // a date without a time of day has no hour to print
		"{{giorno}} {{giorno:giorno}}":           "20/11/2026 venerdì 20 novembre",
		"{{manca:data|presto}}":                  "presto",
		"{{phone}}":                              "+393331234567",
		"{{Nome_2|x}}{{_|y}}":                    "xy",
		"è {{nome}} 😀":                           "è Anna 😀",
		"{{" + strings.Repeat("a", 64) + "|ok}}": "ok",
	} {
		in := Input{Sequence: puntuale.Sequence{Name: "x", Steps: []puntuale.Step{{Text: text}}}, Phone: "+393331234567",
			Fields: fields(t, body), Location: rome, Now: now}
		if faults := Check(in.Sequence); len(faults) > 0 {
			t.Errorf("%q: %+v", text, faults)
			continue
		}
		p, err := Build(in)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := p.Messages[0].Content.Text; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestRenderAnchors checks that an anchor's field is a date in all texts. For a date without a time of day, no hour is
// printed, even if the step has a time of day.
func TestRenderAnchors(t *testing.T) {
	t.Parallel()
	p := mustBuild(t, input(t, `[{"text":"{{f}}"},{"text":"{{f}}","timing":{"anchor":"f","at":"10:30"}},{"text":"{{f|mai}}","timing":{"anchor":"f"}}]`,
		`{"f":"20/11/2026"}`))
	for i, want := range []string{"20/11/2026", "20/11/2026", "20/11/2026"} {
		if got := p.Messages[i].Content.Text; got != want {
			t.Errorf("step %d prints %q, want %q", i, got, want)
		}
	}
}

func TestRenderFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, body, want string }{
		{"{{a}}", `{}`, "body.a"},
		{"{{a}}", `{"a":null}`, "body.a"},
		{"{{a}}", `{"a":"\t"}`, "body.a"},
		{"{{A}}", `{"a":"x"}`, "body.A"},
		{"{{a|x}}", `{"a":true}`, "body.a"},
		{"{{a|x}}", `{"a":{}}`, "body.a"},
		{"{{a|x}}", `{"a":[]}`, "body.a"},
		{"{{a|x}}", `{"a":"x\u0000"}`, "body.a"},
		{"{{a}} {{b}} {{a}}", `{}`, "body.a body.b"},
		{"{{a:data}}", `{"a":"domani"}`, "body.a"},
		{"{{a:ora}} {{a:ora}}", `{"a":"20/11/2026"}`, "body.a"},
		{"{{a:data|x}}", `{"a":20}`, "body.a"},
		{"{{a}}", `{"a":"` + strings.Repeat("x", 4097) + `"}`, "body.a"},
		{"{{a}}!", `{"a":"` + strings.Repeat("è", 4096) + `"}`, "steps[0].text"},
		{"{{a|}}", `{}`, "steps[0]"},
		{"{{a|  }}", `{}`, "steps[0]"},
	} {
		_, err := Build(input(t, `[{"text":"`+c.text+`"}]`, c.body))
		if got := strings.Join(faultsOf(t, err), " "); got != c.want {
			t.Errorf("%s with %.40s: faults at %q, want %q", c.text, c.body, got, c.want)
		}
	}
	if _, err := Build(input(t, `[{"text":"{{a}}"}]`, `{"a":"`+strings.Repeat("è", 4096)+`"}`)); err != nil {
		t.Error(err)
	}
}

// TestRenderBomb uses a short template that prints a long value many times. Build must refuse it before it fills the
// memory.
func TestRenderBomb(t *testing.T) {
	t.Parallel()
	in := Input{Now: now, Fields: map[string]Value{"a": {Text, strings.Repeat("😀", 4096)}}}
	template := strings.Repeat("{{a}}", 100_000)
	in.Sequence.Steps = []puntuale.Step{{Text: template}}
	b := newBuilder(&in)
	if text, good := b.render(0, "text", template, &timing{Timing: &puntuale.Timing{}}); !good || len(text) > 1<<16 {
		t.Errorf("%t, %d bytes", good, len(text))
	}
	_, err := Build(in)
	if got := faultsOf(t, err); !slices.Equal(got, []string{"steps[0].text"}) {
		t.Error(got)
	}
}

// TestManyFields uses a text with 50,000 different fields. The duration must not grow with the square of this number.
func TestManyFields(t *testing.T) {
	t.Parallel()
	const n = 50_000
	var text strings.Builder
	for i := range 2 * n {
		fmt.Fprintf(&text, "{{f%d:data}}", i%n)
	}
	s := puntuale.Sequence{Name: "x", Steps: []puntuale.Step{{Text: text.String()}}}
	if got := Fields(s); len(got) != n || got[n-1].Name != "f49999" {
		t.Errorf("%d fields", len(got))
	}
	_, err := Build(Input{Sequence: s, Now: now})
	if got := faultsOf(t, err); len(got) != n || got[n-1] != "body.f49999" {
		t.Errorf("%d faults", len(got))
	}
}

// TestBuildUnchecked checks that Build refuses an invalid sequence that Check has not seen, and does not panic.
func TestBuildUnchecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"{{": 1, "{{a b}} {{": 2, "x {{timezone}}": 1} {
		_, err := Build(Input{Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: text}}}, Now: now})
		if got := faultsOf(t, err); len(got) != want || got[0] != "steps[0].text" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, timing := range []puntuale.Timing{{At: "9"}, {Window: &puntuale.Window{From: "x"}}} {
		if _, err := Build(Input{Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "a", Timing: timing}}}, Now: now}); err == nil {
			t.Errorf("%+v was planned", timing)
		}
	}
	if p, err := Build(Input{Now: now}); err != nil || len(p.Messages) != 0 {
		t.Errorf("no steps: %+v, %v", p, err)
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	s := sequence(t, `[{"text":"{{text}} {{nome|tu}} {{phone}} {{visita:ora|x}}","media":"{{media|}}","media_name":"{{media_name}}"},
		{"text":"{{nome}} {{quando}}","media":"https://example.com/{{codice}}.pdf","timing":{"anchor":"quando"}},
		{"text":"{{codice|x}}","timing":{"anchor":"start"}}]`)
	want := []puntuale.Field{
		{Name: "text", Kind: puntuale.FieldText, Required: true},
		{Name: "nome", Kind: puntuale.FieldText, Required: true},
		{Name: "visita", Kind: puntuale.FieldDate},
		{Name: "media", Kind: puntuale.FieldMedia},
		{Name: "media_name", Kind: puntuale.FieldText, Required: true},
		{Name: "quando", Kind: puntuale.FieldDate, Required: true},
		{Name: "codice", Kind: puntuale.FieldText, Required: true},
	}
	if got := Fields(s); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Fields(puntuale.Sequence{}); got != nil {
		t.Errorf("%+v", got)
	}
}

// FuzzTemplate checks that the scanner loses no character. A template that passes Check must render if all fields have
// a value.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"Ciao {{nome}}", "{{a|b}}{{c:data}}", "{{{a}}}", "{{a", "a}}", "{{|}}", "{{a|{{b}}}}", "{{:ora}}", "{{a:giorno|}}"} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		all := map[string]Value{}
		for s := scan(template); s.next(); {
			if strings.Contains(s.literal, "{{") {
				t.Fatalf("%q was taken as literal", s.literal)
			}
			if s.found && s.fault.IsZero() {
				if !IsFieldName(s.field.name) || s.field.name == fieldTimezone {
					t.Fatalf("%q is no field", s.field.name)
				}
				all[s.field.name] = Value{Text, "20/11/2026"}
				if s.field.format == "" && all["a"].Text == "" {
					all[s.field.name] = Value{Text, value}
				}
			}
		}
		seq := puntuale.Sequence{Name: "x", Steps: []puntuale.Step{{Text: template}}}
		p, err := Build(Input{Sequence: seq, Phone: "+39", Fields: all, Now: now})
		if len(Check(seq)) > 0 || err != nil {
			return
		}
		if n := len(p.Messages); n != 1 || isBlank(p.Messages[0].Content.Text) {
			t.Fatalf("%q gave %+v", template, p)
		}
	})
}
