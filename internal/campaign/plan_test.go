package campaign

import (
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/plan"
)

var monday = time.Date(2026, 11, 23, 8, 59, 30, 0, time.UTC)

// The pacer's times follow the pace, are inside the window, and are never before now.
func TestPacer(t *testing.T) {
	t.Parallel()
	w := &puntuale.Window{From: "09:00", To: "09:01"}
	p := NewPacer(monday, 2, w, time.UTC)
	var got []string
	for range 4 {
		at, ok := p.Next(monday)
		if !ok {
			t.Fatal("the window never opens")
		}
		got = append(got, at.Format("02 15:04:05"))
		p.Advance()
	}
	if want := [4]string{"23 09:00:00", "23 09:00:30", "24 09:00:00", "24 09:00:30"}; [4]string(got) != want {
		t.Errorf("moments are %v, want %v", got, want)
	}
	late := NewPacer(monday, 60, nil, time.UTC)
	if at, _ := late.Next(monday.Add(time.Hour)); !at.Equal(monday.Add(time.Hour)) {
		t.Errorf("after an hour the next moment is %v", at)
	}
}

func newPlan(t *testing.T, step puntuale.Step) *Plan {
	t.Helper()
	p, err := NewPlan(puntuale.Campaign{ID: 7, Name: "Auguri", Draft: puntuale.CampaignDraft{Fields: map[string]string{"studio": "Bianchi"}}},
		puntuale.CampaignFrozen{Sequence: puntuale.Sequence{Steps: []puntuale.Step{step}}, Zone: "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1, "data": 2}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A value may name an uploaded file, which gives the message its name. A recipient whose file is not there, or cannot be sent,
// is refused.
func TestBuildWithFiles(t *testing.T) {
	t.Parallel()
	p := newPlan(t, puntuale.Step{Media: "{{nome}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}})
	id := func(letter string) puntuale.FileID { return puntuale.FileID(strings.Repeat(letter, 26) + ".jpg") }
	p.files = map[puntuale.FileID]plan.UploadedFile{id("a"): {Name: "Vetrina.jpg"}, id("b"): {Refused: puntuale.Because("file.for_meta")}}
	for letter, want := range map[string]string{"a": "", "b": puntuale.RefusedField, "c": puntuale.RefusedField} {
		built, reason, _ := p.Build(&puntuale.Recipient{Phone: "+39333", Cells: []string{"", id(letter).Address(), ""}}, monday, 1)
		if reason != want || want == "" && built.Messages[0].Content.MediaName != "Vetrina.jpg" {
			t.Errorf("%s: %q, %+v", letter, reason, built.Messages)
		}
	}
}

// A recipient's own fields override the campaign's fields. A refused recipient has one reason.
func TestBuild(t *testing.T) {
	t.Parallel()
	p := newPlan(t, puntuale.Step{Text: "Ciao {{nome}}, {{studio}}, {{data:data}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}})
	for name, c := range map[string]struct {
		r      puntuale.Recipient
		reason string
		text   string
	}{
		"whole":      {puntuale.Recipient{Phone: "+39333", Cells: []string{"+39333", "Anna", "2026-12-01"}}, "", "Ciao Anna, Bianchi, 01/12/2026"},
		"no number":  {puntuale.Recipient{Cells: []string{"x", "Anna", "2026-12-01"}}, puntuale.RefusedPhone, ""},
		"no name":    {puntuale.Recipient{Phone: "+39333", Cells: []string{"", " ", "2026-12-01"}}, puntuale.RefusedMissing, ""},
		"a bad date": {puntuale.Recipient{Phone: "+39333", Cells: []string{"", "Anna", "domani"}}, puntuale.RefusedField, ""},
	} {
		built, reason, _ := p.Build(&c.r, monday, 0)
		if reason != c.reason || reason == "" && built.Messages[0].Content.Text != c.text {
			t.Errorf("%s: %q %+v", name, reason, built.Messages)
		}
	}
	bad := puntuale.Recipient{Phone: "+39333", Cells: []string{"", "Anna", "domani"}}
	_, bad.Reason, bad.Value = p.Build(&bad, monday, 0)
	if says := catalogue.Message(bad.Refused()); !strings.HasPrefix(says, "data: must be a date: 2026-11-20T10:30:00+01:00") {
		t.Errorf("a bad date: %s", says)
	}
	bad.Value = "data: must be a date" // written by an earlier version
	if says := catalogue.Message(bad.Refused()); says != bad.Value {
		t.Errorf("a sentence of an earlier version: %s", says)
	}
	r := puntuale.Recipient{Phone: "+39333", Cells: []string{"+39333", "Anna", "2026-12-01"}}
	built, _, _ := p.Build(&r, monday, 1)
	run := p.Start(&r, built, monday).Run
	if run.Origin != puntuale.OriginMassive || run.Campaign != 7 || run.Name != "Auguri" || string(run.Request) != `{"campaign":"7","data":"2026-12-01","nome":"Anna","phone":"+39333"}` {
		t.Errorf("the run is %+v, of %s", run, run.Request)
	}
}

// Dated is true for a message that gets its time from a date field, because a pause must not change this time.
func TestDated(t *testing.T) {
	t.Parallel()
	before := puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.Before}
	p := newPlan(t, puntuale.Step{Text: "Domani", Timing: puntuale.Timing{Anchor: "data", Offset: before}})
	built, reason, _ := p.Build(&puntuale.Recipient{Phone: "+39333", Cells: []string{"", "", "2026-12-01T15:30"}}, monday, 1)
	if reason != "" || !built.Messages[0].Dated || !built.Messages[0].Limit.Equal(time.Date(2026, 12, 1, 14, 30, 0, 0, time.UTC)) {
		t.Errorf("%q %+v", reason, built.Messages)
	}
}

// TestValuesOfTemplates: a campaign checks the values of its frozen templates as a start does.
func TestValuesOfTemplates(t *testing.T) {
	t.Parallel()
	official := &puntuale.Approved{Name: "t", Language: "it", Body: []puntuale.Parameter{{Text: "{{nome}}"}}}
	for rule, reason := range map[puntuale.ValueRule]string{
		{}:              puntuale.RefusedField,
		{Flatten: true}: "",
		{Flatten: true, Body: strings.Repeat("x", 1020) + "{{1}}"}: puntuale.RefusedField,
	} {
		p, err := NewPlan(puntuale.Campaign{}, puntuale.CampaignFrozen{
			Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Template: "T", Text: "x", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}, Official: []*puntuale.Approved{official},
			Values: []puntuale.ValueRule{rule}, Zone: "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := p.Build(&puntuale.Recipient{Phone: "+39333", Cells: []string{"", "Anna\nRossi"}}, monday, 0); got != reason {
			t.Errorf("%+v: refused with %q, want %q", rule, got, reason)
		}
	}
}
