package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"puntuale"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, steps := range []string{
		`[{"text":"ciao"}]`,
		`[{"text":"a","timing":{"anchor":"start","offset":{"amount":0}}}]`,
		`[{"text":"a","timing":{"offset":{"amount":5,"unit":"minutes"}}}]`,
		`[{"text":"a","timing":{"anchor":"visita","offset":{"amount":1,"unit":"days","direction":"before"},"at":"18:00",
			"window":{"weekdays":[1,7],"from":"22:00","to":"06:00","holidays":"avoid"},"jitter":86400,"if_past":"reject","valid_for":{"amount":2,"unit":"hours"}}}]`,
		`[{"media":"https://x.it/a.pdf","media_name":"a"}]`,
		`[{"media":"https://x.it/a","media_name":"{{nome}}"}]`,
		`[{"latitude":-90,"longitude":180}]`,
		`[{"template":"x"}]`,
		`[` + strings.Repeat(`{"text":"a"},`, 49) + `{"text":"a"}]`,
	} {
		sequence(t, steps)
	}
}

func TestCheckFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ step, want string }{
		{`{}`, ""}, // the fault is at the step and not at a part of it
		{`{"text":"  "}`, ""},
		{`{"media_name":"a.pdf"}`, ""},
		{`{"text":"{{"}`, "text"},
		{`{"text":"{{a"}`, "text"},
		{`{"text":"{{a}"}`, "text"},
		{`{"text":"{{}}"}`, "text"},
		{`{"text":"{{ a }}"}`, "text"},
		{`{"text":"{{1a}}"}`, "text"},
		{`{"text":"{{a-b}}"}`, "text"},
		{`{"text":"{{è}}"}`, "text"},
		{`{"text":"{{{a}}}"}`, "text"},
		{`{"text":"{{a|{{b}}}}"}`, "text"},
		{`{"text":"{{|x}}"}`, "text"},
		{`{"text":"{{a|{x}}}"}`, "text"},
		{`{"text":"{{a|x}y}}"}`, "text"},
		{`{"media":"https://x.it/{{a|{}}.pdf"}`, "media"},
		{`{"text":"{{a:}}"}`, "text"},
		{`{"text":"{{a:Data}}"}`, "text"},
		{`{"text":"{{a:data:ora}}"}`, "text"},
		{`{"text":"{{timezone}}"}`, "text"},
		{`{"text":"{{phone:data}}"}`, "text"},
		{`{"text":"{{` + strings.Repeat("a", 65) + `}}"}`, "text"},
		{`{"text":"{{a b}} {{c}} {{d e}} {{"}`, "text text text"},
		{`{"text":"a\u0000"}`, "text"},
		{`{"text":"` + strings.Repeat("è", 4097) + `"}`, "text"},
		{`{"text":"{{a|` + strings.Repeat("è", 4097) + `}}"}`, "text"},
		{`{"text":"` + strings.Repeat("è", 1025) + `","media":"https://x.it/a.pdf"}`, "text"},
		{`{"media":"x"}`, "media"},
		{`{"media":"https://x.it/` + strings.Repeat("a", 2050) + `.pdf"}`, "media"}, // the fault is reported only once
		{`{"text":"` + strings.Repeat("{{a|}}", 2731) + `"}`, "text"},               // this text has 16,386 characters
		{`{"media":"https://x.it/a.exe"}`, "media"},
		{`{"media":"https://x.it/a"}`, "media"},
		{`{"media":"{{a"}`, "media"},
		{`{"media":"https://x.it/a.pdf","media_name":"` + strings.Repeat("è", 256) + `"}`, "media_name"},
		{`{"media":"https://x.it/a.pdf","media_name":"{{"}`, "media_name"},
		{`{"latitude":1}`, "longitude"},
		{`{"longitude":1}`, "latitude"},
		{`{"latitude":90.01,"longitude":-180.01}`, "latitude longitude"},
		{`{"latitude":1,"longitude":1,"media":"https://x.it/a.pdf"}`, "media"},
		{`{"template":"x","text":"y"}`, "template"},
		{`{"template":" "}`, "template"},
		{`{"text":"a","timing":{"anchor":"phone"}}`, "timing.anchor"},
		{`{"text":"a","timing":{"anchor":"timezone"}}`, "timing.anchor"},
		{`{"text":"a","timing":{"anchor":"la visita"}}`, "timing.anchor"},
		{`{"text":"a","timing":{"offset":{"amount":1}}}`, "timing.offset.unit"},
		{`{"text":"a","timing":{"offset":{"amount":1,"unit":"years"}}}`, "timing.offset.unit"},
		{`{"text":"a","timing":{"offset":{"amount":-1,"unit":"days"}}}`, "timing.offset.amount"},
		{`{"text":"a","timing":{"offset":{"amount":36526,"unit":"days"}}}`, "timing.offset.amount"},
		{`{"text":"a","timing":{"offset":{"amount":1,"unit":"days","direction":"later"}}}`, "timing.offset.direction"},
		{`{"text":"a","timing":{"anchor":"f","offset":{"amount":1,"unit":"days"}}}`, "timing.offset.direction"},
		{`{"text":"a","timing":{"offset":{"amount":1,"unit":"days","direction":"before"}}}`, "timing.offset.direction"},
		{`{"text":"a","timing":{"anchor":"start","offset":{"amount":0,"direction":"before"}}}`, "timing.offset.direction"},
		{`{"text":"a","timing":{"at":"9:00"}}`, "timing.at"},
		{`{"text":"a","timing":{"at":"09:00","offset":{"amount":2,"unit":"hours"}}}`, "timing.at"},
		{`{"text":"a","timing":{"window":{"weekdays":[1,8],"from":"25:00","to":"18:00","holidays":"x"}}}`, "timing.window.weekdays[1] timing.window.from timing.window.holidays"},
		{`{"text":"a","timing":{"jitter":-1}}`, "timing.jitter"},
		{`{"text":"a","timing":{"jitter":86401}}`, "timing.jitter"},
		{`{"text":"a","timing":{"if_past":"now"}}`, "timing.if_past"},
		{`{"text":"a","timing":{"valid_for":{"amount":0,"unit":"hours"}}}`, "timing.valid_for.amount"},
		{`{"text":"a","timing":{"valid_for":{"amount":61,"unit":"months"}}}`, "timing.valid_for.amount"},
		{`{"text":"a","timing":{"valid_for":{"amount":1}}}`, "timing.valid_for.unit"},
	} {
		s := puntuale.Sequence{Name: "x"}
		if err := json.Unmarshal([]byte(`[{"text":"a"},`+c.step+`]`), &s.Steps); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range Check(s) {
			got = append(got, strings.TrimPrefix(strings.TrimPrefix(f.Location, "body.steps[1]"), "."))
			if f.Code == "" {
				t.Errorf("%.60s: a fault without words", c.step)
			}
		}
		if len(got) == 0 || strings.Join(got, " ") != c.want {
			t.Errorf("%.60s: faults at %q, want %q", c.step, got, c.want)
		}
	}
}

func TestCheckSequence(t *testing.T) {
	t.Parallel()
	many := make([]puntuale.Step, 51)
	for i := range many {
		many[i].Text = "a"
	}
	one := many[:1]
	for _, c := range []struct {
		s    puntuale.Sequence
		want string
	}{
		{puntuale.Sequence{Name: "x", Steps: one, IfRunning: puntuale.IfRunningSkip}, ""},
		{puntuale.Sequence{Name: strings.Repeat("è", 200), Steps: one}, ""},
		{puntuale.Sequence{Name: strings.Repeat("è", 201), Steps: one}, "body.name"},
		{puntuale.Sequence{Name: " ", IfRunning: "no"}, "body.name body.if_running body.steps"},
		{puntuale.Sequence{Name: "x", Steps: many}, "body.steps"},
	} {
		var got []string
		for _, f := range Check(c.s) {
			got = append(got, f.Location)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("faults at %v, want %s", got, c.want)
		}
	}
	if faults := Check(puntuale.Sequence{Name: "x", Steps: []puntuale.Step{{Media: "https://x.it/a.svg"}}}, "svg"); len(faults) > 0 {
		t.Errorf("a configured extension: %+v", faults)
	}
}
