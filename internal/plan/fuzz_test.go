package plan

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"puntuale"
)

// FuzzSequence: if a sequence passes Check, Build either plans it, or reports the location of each fault. Every plan
// has the properties in the comments of Build.
func FuzzSequence(f *testing.F) {
	for _, seed := range []struct{ steps, body string }{
		{`[{"text":"Ciao {{nome|tu}}","timing":{"anchor":"start","offset":{"amount":0}}}]`, `{}`},
		{`[{"text":"{{f:ora}}","timing":{"anchor":"f","offset":{"amount":1,"unit":"months","direction":"before"},"at":"18:00","jitter":600,
 "window":{"weekdays":[1,5],"from":"22:00","to":"06:00","holidays":"avoid"},"if_past":"send_now","valid_for":{"amount":2,"unit":"days"}}}]`, `{"f":"31/03/2027 10:30"}`},
		{`[{"latitude":91,"longitude":1e400}]`, `{"a":1}`},
		{`[{"media":"{{m}}","media_name":"x.pdf","timing":{"offset":{"amount":-1,"unit":"years"},"at":"24:00","jitter":86401}}]`, `{"m":"https://x.it/a"}`},
		{`[{"text":"{{","timing":{"window":{"weekdays":[0,8],"from":"9","to":""}}}]`, `null`},
	} {
		f.Add(seed.steps, seed.body)
	}
	f.Fuzz(func(t *testing.T, steps, body string) {
		s := puntuale.Sequence{Name: "x"}
		var raw map[string]json.RawMessage
		if json.Unmarshal([]byte(steps), &s.Steps) != nil || json.Unmarshal([]byte(body), &raw) != nil || len(Check(s)) > 0 {
			return
		}
		in := Input{Sequence: s, Phone: "+393331234567", Fields: map[string]Value{}, Location: rome, Now: now, Seed: 7}
		for name, value := range raw {
			in.Fields[name] = FromJSON(value)
		}
		p, err := Build(in)
		if err != nil {
			if len(faultsOf(t, err)) == 0 {
				t.Fatalf("refused without a place: %v", err)
			}
			return
		}
		if len(p.Messages)+len(p.Skipped) != len(s.Steps) {
			t.Fatalf("%d steps: %+v", len(s.Steps), p)
		}
		for _, m := range p.Messages {
			if m.Due.Before(now) || !m.ValidUntil.After(m.Due) || !m.Window.Contains(m.Due, rome) {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// FuzzFromJSON checks that every member of a body becomes a value of one of the four kinds.
func FuzzFromJSON(f *testing.F) {
	for _, seed := range []string{`"x"`, `"\u00e8\ud83d\ude00"`, ` 10.50 `, `-3e2`, `null`, `true`, `[]`, `{}`, `"`, ``, `nil`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v := FromJSON([]byte(raw))
		if (v.Kind == Absent || v.Kind == Other) && v.Text != "" {
			t.Fatalf("%q became %+v", raw, v)
		}
		var text string
		if json.Unmarshal([]byte(raw), &text) == nil && strings.HasPrefix(strings.TrimSpace(raw), `"`) && v != (Value{Text, text}) {
			t.Fatalf("%q became %+v", raw, v)
		}
	})
}

// FuzzMediaFault checks that every accepted address can be fetched: it is absolute, uses http or https, and has a
// host.
func FuzzMediaFault(f *testing.F) {
	for _, seed := range []string{"https://x.it/a.pdf", "HTTP://x.it/A.PDF?x=1", "https:///a.pdf", "https://x.it/a", "ftp://x.it/a.pdf", "//x.it/a.pdf", "https://u:p@x.it/a.pdf", "https://x.it:99999/%zz.pdf", "\x00"} {
		f.Add(seed, "b.jpg")
	}
	f.Fuzz(func(t *testing.T, address, name string) {
		if !mediaFault(address, name, DefaultMediaExtensions).IsZero() {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q passes", address)
		}
	})
}
