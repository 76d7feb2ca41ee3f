package plan

import (
	"reflect"
	"strings"
	"testing"

	"puntuale"
)

func TestMediaFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, name, want string }{
		{"https://example.com/a.jpg", "", ""},
		{"HTTP://example.com/a.JPG?x=1.exe#b.exe", "", ""},
		{"https://example.com/a%20b.pdf", "", ""},
		{"https://example.com/download?id=3", "Fattura.PDF", ""},
		{"https://example.com/v1.2/file", "x.txt", ""},
		{"https://example.com:8443/a.m4a", "", ""},
		{"https://example.com/a.", "b.ogg", ""},
		{"https://example.com/a", "", "sequence.no_extension"},
		{"https://example.com/a?f=b.pdf", "", "sequence.no_extension"},
		{"https://example.com", "nome", "sequence.no_extension"},
		{"https://example.com/a.exe", "a.pdf", "sequence.extension_not_allowed"}, // the address also has a fault, which is reported first
		{"https://example.com/a.pdf.exe", "", "sequence.extension_not_allowed"},
		{"https://example.com/a", "a.exe", "sequence.extension_not_allowed"},
		{"ftp://example.com/a.pdf", "", "sequence.media_address"},
		{"file:///etc/passwd.txt", "", "sequence.media_address"},
		{"//example.com/a.pdf", "", "sequence.media_address"},
		{"example.com/a.pdf", "", "sequence.media_address"},
		{"https:///a.pdf", "", "sequence.media_address"},
		{"https://:80/a.pdf", "", "sequence.media_address"},
		{"https://example.com:65535/a.pdf", "", ""},
		{"https://example.com:65536/a.pdf", "", "sequence.media_address"},
		{"https://example.com:0/a.pdf", "", "sequence.media_address"},
		{"https://anna:segreto@example.com/a.pdf", "", "sequence.media_address"},
		{"javascript:alert(1).pdf", "", "sequence.media_address"},
		{"https://exa mple.com/a.pdf", "", "sequence.media_address"},
		{"https://example.com/%zz.pdf", "", "sequence.media_address"},
		{"https://example.com/\n.pdf", "", "sequence.media_address"},
		{"https://example.com/" + strings.Repeat("a", 2025) + ".pdf", "", "fault.longer_than_characters 2048"},
	} {
		got := mediaFault(c.address, c.name, DefaultMediaExtensions)
		if (c.want == "") != got.IsZero() || !strings.Contains(got.String(), c.want) {
			t.Errorf("%.60s (%s): %q, want %q", c.address, c.name, got, c.want)
		}
	}
	if got := mediaFault("https://example.com/a.exe", "", []string{"exe"}); !got.IsZero() {
		t.Errorf("a configured extension: %s", got)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	const contract = `{"text":"{{text|}}","media":"{{media|}}","media_name":"{{media_name|}}"}`
	long := strings.Repeat("è", 1025)
	for _, c := range []struct {
		name, step, body string
		want             puntuale.Content
		faults           string
	}{
		{"text", contract, `{"text":"ciao"}`, puntuale.Content{Text: "ciao"}, ""},
		{"media", contract, `{"media":" https://x.it/a.pdf ","media_name":" a b "}`, puntuale.Content{MediaURL: "https://x.it/a.pdf", MediaName: "a b"}, ""},
		{"both", contract, `{"text":"ciao","media":"https://x.it/a.pdf"}`, puntuale.Content{Text: "ciao", MediaURL: "https://x.it/a.pdf"}, ""},
		{"a name without media", contract, `{"text":"ciao","media_name":"a.pdf"}`, puntuale.Content{Text: "ciao"}, ""},
		{"without media its name is not needed", `{"text":"a","media":"{{media|}}","media_name":"{{media_name}}"}`, `{}`, puntuale.Content{Text: "a"}, ""},
		{"nothing", contract, `{}`, puntuale.Content{}, "steps[0]"},
		{"bad media", contract, `{"media":"x"}`, puntuale.Content{}, "body.media"},
		{"media of another type", contract, `{"media":["https://x.it/a.pdf"]}`, puntuale.Content{}, "body.media"},
		{"media is needed without a fallback", `{"text":"a","media":"{{media}}"}`, `{}`, puntuale.Content{}, "body.media"},
		{"a part of an address", `{"media":"https://x.it/{{n}}.pdf"}`, `{"n":12}`, puntuale.Content{MediaURL: "https://x.it/12.pdf"}, ""},
		{"a bad part", `{"media":"https://x.it/{{n}}"}`, `{"n":12}`, puntuale.Content{}, "steps[0].media"},
		{"a bad fallback", `{"media":"{{media|x}}"}`, `{}`, puntuale.Content{}, "steps[0].media"},
		{"a caption's limit", contract, `{"text":"` + long + `","media":"https://x.it/a.pdf"}`, puntuale.Content{}, "steps[0].text"},
		{"a text's limit", contract, `{"text":"` + long + `"}`, puntuale.Content{Text: long}, ""},
		{"a name's limit", contract, `{"media":"https://x.it/a.pdf","media_name":"` + long + `"}`, puntuale.Content{}, "steps[0].media_name"},
		{"a template that was not filled", `{"template":"benvenuto"}`, `{}`, puntuale.Content{}, "steps[0]"},
	} {
		p, err := Build(input(t, "["+c.step+"]", c.body))
		if got := strings.Join(faultsOf(t, err), " "); got != c.faults {
			t.Errorf("%s: faults at %q, want %q", c.name, got, c.faults)
		} else if err == nil && !reflect.DeepEqual(p.Messages[0].Content, c.want) {
			t.Errorf("%s: %+v", c.name, p.Messages[0].Content)
		}
	}
	filled, err := Build(Input{Now: now, Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Template: "benvenuto", Text: "Ciao"}}}})
	if err != nil || !reflect.DeepEqual(filled.Messages[0].Content, puntuale.Content{Template: "benvenuto", Text: "Ciao"}) {
		t.Errorf("a template with its content: %+v, %v", filled, err)
	}
	p := mustBuild(t, input(t, `[{"text":"qui","latitude":45.4,"longitude":-9.19}]`, ""))
	if c := p.Messages[0].Content; *c.Latitude != 45.4 || *c.Longitude != -9.19 || c.Text != "qui" {
		t.Errorf("location: %+v", c)
	}
}

// TestApprovedValues: Meta refuses values with line breaks, tabs or five spaces together, so a start refuses them.
func TestApprovedValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ place, name, faults string }{
		{"{{nome}}", "Anna    Rossi", ""},
		{"{{nome}}", "Anna\nRossi", "body.nome"},
		{"{{nome}}", "Anna     Rossi", "body.nome"},
		{"a {{nome}}", "Anna\tRossi", "steps[0].template"},
	} {
		in := input(t, `[{"text":"x"}]`, "")
		in.Sequence.Steps = []puntuale.Step{{Template: "t", Text: "x", Official: &puntuale.Approved{Name: "t", Language: "it", Body: []puntuale.Parameter{{Text: c.place}}}}}
		in.Fields = map[string]Value{"nome": {Kind: Text, Text: c.name}}
		_, err := Build(in)
		if got := strings.Join(faultsOf(t, err), " "); got != c.faults {
			t.Errorf("%q in %q: faults at %q, want %q", c.name, c.place, got, c.faults)
		}
	}
	if got := CheckApproved("body", &puntuale.Approved{Name: "t", Language: "it", Header: []puntuale.Parameter{{Text: "a\nb"}}}); len(got) != 1 || got[0].Location != "body.header[0].text" {
		t.Errorf("a line break in a template's own value: %+v", got)
	}
}

// TestValueRule: values can be flattened instead of refused. With the template's own text, no part may be too long. The
// values of buttons obey the same rule.
func TestValueRule(t *testing.T) {
	t.Parallel()
	build := func(rule puntuale.ValueRule, a puntuale.Approved, nome string) (Plan, string) {
		in := input(t, `[{"text":"x"}]`, "")
		a.Name, a.Language = "t", "it"
		in.Sequence.Steps = []puntuale.Step{{Template: "t", Text: "x", Official: &a, Values: rule}}
		in.Fields = map[string]Value{"nome": {Kind: Text, Text: nome}}
		p, err := Build(in)
		return p, strings.Join(faultsOf(t, err), " ")
	}
	one := []puntuale.Parameter{{Text: "{{nome}}"}}
	flat, faults := build(puntuale.ValueRule{Flatten: true}, puntuale.Approved{Body: one, Buttons: []puntuale.Button{{Kind: puntuale.ButtonURL, Text: "a/{{nome}}"}}}, "Anna\r\n\tMaria      Rossi")
	if faults != "" || flat.Messages[0].Content.Official.Body[0].Text != "Anna Maria Rossi" || flat.Messages[0].Content.Official.Buttons[0].Text != "a/Anna Maria Rossi" {
		t.Errorf("flattened: %+v, faults at %q", flat, faults)
	}
	for _, c := range []struct {
		rule      puntuale.ValueRule
		a         puntuale.Approved
		nome      string
		wantFault string
	}{
		{puntuale.ValueRule{}, puntuale.Approved{Buttons: []puntuale.Button{{Kind: puntuale.ButtonURL, Text: "{{nome}}"}}}, "a\nb", "body.nome"},
		{puntuale.ValueRule{Body: strings.Repeat("x", 1000) + "{{1}}"}, puntuale.Approved{Body: one}, strings.Repeat("y", 24), ""},
		{puntuale.ValueRule{Body: strings.Repeat("x", 1000) + "{{1}}"}, puntuale.Approved{Body: one}, strings.Repeat("y", 25), "body.nome"},
		{puntuale.ValueRule{Body: "{{1}} {{1}}"}, puntuale.Approved{Body: one}, strings.Repeat("y", 520), "body.nome"},
		{puntuale.ValueRule{Body: strings.Repeat("x", 1020) + "{{a}}"}, puntuale.Approved{Body: []puntuale.Parameter{{Name: "a", Text: "da {{nome}}"}}}, "Anna", "steps[0].template"},
		{puntuale.ValueRule{Header: "Per {{1}}"}, puntuale.Approved{Header: one}, strings.Repeat("y", 57), "body.nome"},
	} {
		if _, faults := build(c.rule, c.a, c.nome); faults != c.wantFault {
			t.Errorf("%+v: faults at %q, want %q", c.rule, faults, c.wantFault)
		}
	}
}

func TestConfiguredMedia(t *testing.T) {
	t.Parallel()
	in := input(t, `[{"media":"{{m}}"}]`, `{"m":"https://x.it/a.svg"}`)
	if _, err := Build(in); err == nil {
		t.Error("svg is not among the defaults")
	}
	in.Media = []string{"svg"}
	mustBuild(t, in)
}
