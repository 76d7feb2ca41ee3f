package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// now is a Wednesday.
var now = time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)

// sequence returns a sequence from its steps in the form of the API.
func sequence(t testing.TB, steps string) puntuale.Sequence {
	t.Helper()
	s := puntuale.Sequence{Name: "prova"}
	if err := json.Unmarshal([]byte(steps), &s.Steps); err != nil {
		t.Fatal(err)
	}
	if faults := Check(s); len(faults) > 0 {
		t.Fatalf("%s: %+v", steps, faults)
	}
	return s
}

// fields returns the fields of a call's body.
func fields(t testing.TB, body string) map[string]Value {
	t.Helper()
	if body == "" {
		return nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &raw); err != nil {
		t.Fatal(err)
	}
	values := map[string]Value{}
	for name, r := range raw {
		values[name] = FromJSON(r)
	}
	return values
}

func input(t testing.TB, steps, body string) Input {
	t.Helper()
	return Input{Sequence: sequence(t, steps), Phone: "+393331234567", Fields: fields(t, body), Location: rome, Now: now}
}

func mustBuild(t testing.TB, in Input) Plan {
	t.Helper()
	p, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// faultsOf returns the locations of all faults of an error.
func faultsOf(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	e, ok := err.(*puntuale.Error)
	if !ok || e.Code != puntuale.CodeInvalid {
		t.Fatalf("%v is not a refusal", err)
	}
	var at []string
	for _, f := range e.Faults {
		at = append(at, f.Location)
	}
	return at
}

const minuteForm = "2006-01-02 15:04"

// TestDue plans one step with one field f. The times in the table are local times. "skip" means that the step is left
// out, and "422" that the start is refused.
func TestDue(t *testing.T) {
	t.Parallel()
	const office = `"window":{"weekdays":[1,2,3,4,5],"from":"09:00","to":"18:00","holidays":"avoid"}`
	for _, c := range []struct {
		name, zone, now string // now is a local time; "" means Wednesday 18 November 2026, 10:00 in Rome
		timing, f       string
		desired, due    string // "": no time is expected
	}{
		{name: "the call", timing: ``, due: "2026-11-18 10:00"},
		{name: "a delay", timing: `"offset":{"amount":90,"unit":"minutes"}`, desired: "2026-11-18 11:30", due: "2026-11-18 11:30"},
		{name: "at, today", timing: `"at":"18:00"`, desired: "2026-11-18 18:00", due: "2026-11-18 18:00"},
		{name: "tomorrow at", timing: `"offset":{"amount":1,"unit":"days"},"at":"09:00"`, desired: "2026-11-19 09:00", due: "2026-11-19 09:00"},
		{name: "weeks", timing: `"offset":{"amount":2,"unit":"weeks","direction":"after"}`, desired: "2026-12-02 10:00", due: "2026-12-02 10:00"},
		{name: "a date", timing: `"anchor":"f"`, f: "20/11/2026 10:30", desired: "2026-11-20 10:30", due: "2026-11-20 10:30"},
		{name: "before a date", timing: `"anchor":"f","offset":{"amount":24,"unit":"hours","direction":"before"}`, f: "2026-11-20T10:30", desired: "2026-11-19 10:30", due: "2026-11-19 10:30"},
		{name: "the value's zone wins", timing: `"anchor":"f"`, f: "2026-11-20T10:30Z", desired: "2026-11-20 11:30", due: "2026-11-20 11:30"},
		{name: "a day alone", timing: `"anchor":"f"`, f: "2026-11-20", desired: "2026-11-20 09:00", due: "2026-11-20 09:00"},
		{name: "a day alone takes at", timing: `"anchor":"f","at":"08:15"`, f: "2026-11-20", desired: "2026-11-20 08:15", due: "2026-11-20 08:15"},
		{name: "a day alone, hours", timing: `"anchor":"f","offset":{"amount":2,"unit":"hours","direction":"before"}`, f: "20/11/2026", desired: "2026-11-20 07:00", due: "2026-11-20 07:00"},
		{name: "a month's end", timing: `"anchor":"f","offset":{"amount":1,"unit":"months","direction":"after"}`, f: "2027-01-31 12:00", desired: "2027-02-28 12:00", due: "2027-02-28 12:00"},
		{name: "a month's end, back", timing: `"anchor":"f","offset":{"amount":1,"unit":"months","direction":"before"}`, f: "2027-03-31 12:00", desired: "2027-02-28 12:00", due: "2027-02-28 12:00"},

		{name: "spring: a day is calendar", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"after"}`, f: "2027-03-27 12:00", desired: "2027-03-28 12:00", due: "2027-03-28 12:00"},
		{name: "spring: 24 hours are elapsed", timing: `"anchor":"f","offset":{"amount":24,"unit":"hours","direction":"after"}`, f: "2027-03-27 12:00", desired: "2027-03-28 13:00", due: "2027-03-28 13:00"},
		{name: "spring: the gap", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"after"}`, f: "2027-03-27 02:30", desired: "2027-03-28 03:30", due: "2027-03-28 03:30"},
		{name: "spring: at in the gap", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"after"},"at":"02:00"`, f: "2027-03-27 12:00", desired: "2027-03-28 03:00", due: "2027-03-28 03:00"},
		{name: "New York's spring", zone: "America/New_York", now: "2026-11-18 10:00", timing: `"anchor":"f","at":"02:15"`, f: "2027-03-14", desired: "2027-03-14 03:15", due: "2027-03-14 03:15"},
		{name: "London's spring", zone: "Europe/London", now: "2026-11-18 10:00", timing: `"anchor":"f","at":"01:15"`, f: "2027-03-28", desired: "2027-03-28 02:15", due: "2027-03-28 02:15"},
		{name: "Lord Howe's half hour", zone: "Australia/Lord_Howe", now: "2026-11-18 10:00", timing: `"anchor":"f","at":"02:15"`, f: "2027-10-03", desired: "2027-10-03 02:45", due: "2027-10-03 02:45"},
		{name: "Casablanca after Ramadan", zone: "Africa/Casablanca", now: "2026-11-18 10:00", timing: `"anchor":"f","at":"02:30"`, f: "2027-03-14", desired: "2027-03-14 03:30", due: "2027-03-14 03:30"},
		{name: "Apia's missing day", zone: "Pacific/Apia", now: "2011-12-28 10:00", timing: `"offset":{"amount":2,"unit":"days"}`, desired: "2011-12-31 10:00", due: "2011-12-31 10:00"},
		{name: "Apia, 24 hours", zone: "Pacific/Apia", now: "2011-12-29 10:00", timing: `"offset":{"amount":24,"unit":"hours"}`, desired: "2011-12-31 10:00", due: "2011-12-31 10:00"},
		{name: "São Paulo's missing midnight", zone: "America/Sao_Paulo", now: "2018-11-03 10:00", timing: `"offset":{"amount":1,"unit":"days"},"at":"00:00"`, desired: "2018-11-04 01:00", due: "2018-11-04 01:00"},

		{name: "inside the window", timing: office, due: "2026-11-18 10:00"},
		{name: "after hours", timing: `"offset":{"amount":8,"unit":"hours"},` + office, desired: "2026-11-18 18:00", due: "2026-11-19 09:00"},
		{name: "the week-end", timing: `"anchor":"f",` + office, f: "21/11/2026 11:00", desired: "2026-11-21 11:00", due: "2026-11-23 09:00"},
		{name: "at again on the new day", timing: `"anchor":"f","at":"11:00",` + office, f: "21/11/2026", desired: "2026-11-21 11:00", due: "2026-11-23 11:00"},
		{name: "at again only where the window holds it", timing: `"anchor":"f","at":"07:00",` + office, f: "21/11/2026", desired: "2026-11-21 07:00", due: "2026-11-23 09:00"},
		{name: "at after closing", timing: `"anchor":"f","at":"20:00",` + office, f: "20/11/2026", desired: "2026-11-20 20:00", due: "2026-11-23 09:00"},
		{name: "at, the same day", timing: `"anchor":"f","at":"07:00",` + office, f: "20/11/2026", desired: "2026-11-20 07:00", due: "2026-11-20 09:00"},
		{name: "holidays", timing: `"anchor":"f","at":"10:00",` + office, f: "25/12/2026", desired: "2026-12-25 10:00", due: "2026-12-28 10:00"},
		{name: "the client's own holidays", timing: `"anchor":"f","at":"10:00",` + office, f: "30/11/2026", desired: "2026-11-30 10:00", due: "2026-12-01 10:00"},
		{name: "own holidays do not matter without avoid", timing: `"anchor":"f","window":{"from":"09:00","to":"18:00"}`, f: "30/11/2026 10:00", desired: "2026-11-30 10:00", due: "2026-11-30 10:00"},

		{name: "before: pushed to the anchor", timing: `"anchor":"f","offset":{"amount":1,"unit":"hours","direction":"before"},` + office, f: "23/11/2026 09:00", desired: "2026-11-23 08:00", due: "2026-11-20 17:59"},
		{name: "before: pushed past it", timing: `"anchor":"f","offset":{"amount":2,"unit":"days","direction":"before"},` + office, f: "23/11/2026 08:30", desired: "2026-11-21 08:30", due: "2026-11-20 17:59"},
		{name: "before: pushed, but in time", timing: `"anchor":"f","offset":{"amount":2,"unit":"days","direction":"before"},` + office, f: "23/11/2026 11:00", desired: "2026-11-21 11:00", due: "2026-11-23 09:00"},
		{name: "before: at again would be late", timing: `"anchor":"f","offset":{"amount":2,"unit":"days","direction":"before"},"at":"12:00",` + office, f: "23/11/2026 11:00", desired: "2026-11-21 12:00", due: "2026-11-20 12:00"},
		{name: "before: back to its own time of day", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"at":"17:00",` + office, f: "22/11/2026 10:00", desired: "2026-11-21 17:00", due: "2026-11-20 17:00"},
		{name: "before: its time of day is outside the window", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"at":"19:00",` + office, f: "22/11/2026 10:00", desired: "2026-11-21 19:00", due: "2026-11-20 17:59"},
		{name: "before: back to the time of day of its date", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},` + office, f: "22/11/2026 10:00", desired: "2026-11-21 10:00", due: "2026-11-20 10:00"},
		{name: "before: back a week to the time of day of its date", timing: `"anchor":"f","offset":{"amount":1,"unit":"weeks","direction":"before"},"window":{"weekdays":[1],"from":"08:00","to":"12:00"}`, f: "29/11/2026 10:30", desired: "2026-11-22 10:30", due: "2026-11-23 08:00"},
		{name: "before: hours have no time of day of their own", timing: `"anchor":"f","offset":{"amount":2,"unit":"hours","direction":"before"},` + office, f: "22/11/2026 10:00", desired: "2026-11-22 08:00", due: "2026-11-20 17:59"},
		{name: "before: back in a night of two days, before midnight", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"at":"22:00","window":{"weekdays":[5],"from":"20:00","to":"02:00"}`, f: "23/11/2026 10:00", desired: "2026-11-22 22:00", due: "2026-11-20 22:00"},
		{name: "before: back in a night of two days, after midnight", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"at":"01:00","window":{"weekdays":[5],"from":"20:00","to":"02:00"}`, f: "23/11/2026 10:00", desired: "2026-11-22 01:00", due: "2026-11-21 01:00"},
		{name: "before: back into the past", timing: `"anchor":"f","offset":{"amount":1,"unit":"hours","direction":"before"},"window":{"from":"09:00","to":"09:30"}`, f: "19/11/2026 09:00", desired: "2026-11-19 08:00", due: "skip"},
		{name: "before: back into the past, now does not fit", timing: `"anchor":"f","offset":{"amount":1,"unit":"hours","direction":"before"},"if_past":"send_now","window":{"from":"09:00","to":"09:30"}`, f: "19/11/2026 09:00", desired: "2026-11-19 08:00", due: "skip"},
		{name: "before: a day that never was would be late", zone: "Pacific/Apia", now: "2011-12-28 10:00", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"at":"23:00"`, f: "2011-12-31 00:30", desired: "2011-12-31 23:00", due: "2011-12-31 00:29"},
		{name: "before with 0: the morning of a closed day", timing: `"anchor":"f","offset":{"amount":0,"unit":"days","direction":"before"},"at":"09:00",` + office, f: "22/11/2026 15:00", desired: "2026-11-22 09:00", due: "2026-11-20 09:00"},
		{name: "before with 0: the morning of an open day", timing: `"anchor":"f","offset":{"amount":0,"unit":"days","direction":"before"},"at":"09:00",` + office, f: "20/11/2026 15:00", desired: "2026-11-20 09:00", due: "2026-11-20 09:00"},
		{name: "before with 0: a time of day past the anchor", timing: `"anchor":"f","offset":{"amount":0,"unit":"days","direction":"before"},"at":"18:00"`, f: "20/11/2026 10:00", desired: "2026-11-20 18:00", due: "2026-11-20 09:59"},
		{name: "before with 0: the anchor itself", timing: `"anchor":"f","offset":{"amount":0,"direction":"before"}`, f: "20/11/2026 10:00", desired: "2026-11-20 10:00", due: "2026-11-20 10:00"},
		{name: "before with 0: the anchor itself, in the window", timing: `"anchor":"f","offset":{"amount":0,"unit":"days","direction":"before"},"jitter":600,` + office, f: "20/11/2026 10:00", desired: "2026-11-20 10:00", due: "2026-11-20 10:00"},
		{name: "before with 0: the window opens at the anchor's end", timing: `"anchor":"f","offset":{"amount":0,"unit":"days","direction":"before"},` + office, f: "20/11/2026 18:00", desired: "2026-11-20 18:00", due: "2026-11-20 17:59"},

		{name: "four minutes ago is now", timing: `"anchor":"f"`, f: "18/11/2026 09:56", desired: "2026-11-18 09:56", due: "2026-11-18 10:00"},
		{name: "five minutes ago is now", timing: `"anchor":"f"`, f: "18/11/2026 09:55", desired: "2026-11-18 09:55", due: "2026-11-18 10:00"},
		{name: "five minutes and a second are past", timing: `"anchor":"f"`, f: "18/11/2026 09:54:59", due: "skip"},
		{name: "now, outside the window", timing: `"anchor":"f","window":{"from":"08:00","to":"10:00"}`, f: "18/11/2026 09:58", desired: "2026-11-18 09:58", due: "2026-11-19 08:00"},
		{name: "past: send now", timing: `"anchor":"f","if_past":"send_now"`, f: "1/11/2026", desired: "2026-11-01 09:00", due: "2026-11-18 10:00"},
		{name: "past: send now, in the window", timing: `"anchor":"f","if_past":"send_now","window":{"from":"12:00","to":"13:00"}`, f: "1/11/2026", desired: "2026-11-01 09:00", due: "2026-11-18 12:00"},
		{name: "past: send now, while before the anchor", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"if_past":"send_now"`, f: "18/11/2026 20:00", desired: "2026-11-17 20:00", due: "2026-11-18 10:00"},
		{name: "past: not after the anchor", timing: `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"if_past":"send_now"`, f: "18/11/2026 09:00", due: "skip"},
		{name: "grace: not after the anchor", timing: `"anchor":"f","offset":{"amount":2,"unit":"minutes","direction":"before"}`, f: "18/11/2026 09:59", due: "skip"},
		{name: "past: reject", timing: `"anchor":"f","if_past":"reject"`, f: "1/11/2026", due: "422"},
		{name: "past: the window opened an hour ago", timing: `"anchor":"f","if_past":"reject",` + office, f: "17/11/2026 19:00", due: "422"},
		{name: "past, yet its window opens later", timing: `"anchor":"f","if_past":"reject","window":{"from":"12:00","to":"13:00"}`, f: "17/11/2026 19:00", desired: "2026-11-17 19:00", due: "2026-11-18 12:00"},

		{name: "the horizon", timing: `"anchor":"f"`, f: "18/11/2031 10:00", desired: "2031-11-18 10:00", due: "2031-11-18 10:00"},
		{name: "beyond the horizon", timing: `"anchor":"f"`, f: "18/11/2031 10:01", due: "422"},
		{name: "pushed beyond the horizon", timing: `"anchor":"f","window":{"from":"09:00","to":"10:00"}`, f: "18/11/2031 10:00", due: "422"},
		{name: "an old date, years after", timing: `"anchor":"f","offset":{"amount":216,"unit":"months","direction":"after"}`, f: "20/11/2008", desired: "2026-11-20 09:00", due: "2026-11-20 09:00"},
		{name: "the year one", timing: `"anchor":"f",` + office, f: "0001-01-01", due: "skip"},
		{name: "the year 9999", timing: `"anchor":"f",` + office, f: "9999-12-31", due: "422"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := input(t, `[{"text":"x","timing":{`+c.timing+`}}]`, `{"f":"`+c.f+`"}`)
			if c.zone != "" {
				loc, err := time.LoadLocation(c.zone)
				if err != nil {
					t.Fatal(err)
				}
				at, _ := time.Parse(minuteForm, c.now)
				in.Location = loc
				in.Now = puntuale.DateOf(at).At(at.Sub(at.Truncate(24*time.Hour)), loc)
			}
			in.Closed = []puntuale.Date{{Year: 2026, Month: 11, Day: 30}}
			p, err := Build(in)
			if desired, due := outcome(t, p, err, in.Location); due != c.due || (desired != c.desired && due != "skip") {
				t.Errorf("wished %q, due %q; want %q, %q (%v)", desired, due, c.desired, c.due, err)
			}
		})
	}
}

// TestBeforeTheStartAsStored plans a step before the start. Check refuses such a step, but an earlier version may have
// stored it.
func TestBeforeTheStartAsStored(t *testing.T) {
	t.Parallel()
	for ifPast, want := range map[puntuale.IfPast]string{puntuale.PastSkip: "skip", puntuale.PastSend: "2026-11-18 10:00"} {
		in := input(t, `[{"text":"x"}]`, "")
		timing := &in.Sequence.Steps[0].Timing
		timing.Offset = puntuale.Offset{Amount: 1, Unit: puntuale.Hours, Direction: puntuale.Before}
		timing.IfPast = ifPast
		if faults := Check(in.Sequence); len(faults) != 1 || faults[0].Location != "body.steps[0].timing.offset.direction" {
			t.Errorf("faults %+v", faults)
		}
		p, err := Build(in)
		if _, due := outcome(t, p, err, rome); due != want {
			t.Errorf("%s: due %s, want %s", ifPast, due, want)
		}
	}
}

// outcome formats a plan of one step in the form of the tables.
func outcome(t *testing.T, p Plan, err error, loc *time.Location) (desired, due string) {
	t.Helper()
	if err != nil {
		if at := faultsOf(t, err); len(at) != 1 || at[0] != "steps[0].timing" {
			t.Errorf("faults at %v", at)
		}
		return "", "422"
	}
	if len(p.Skipped) == 1 && len(p.Messages) == 0 {
		return "", "skip"
	}
	m := p.Messages[0]
	if !m.Desired.IsZero() {
		desired = m.Desired.In(loc).Format(minuteForm)
	}
	return desired, m.Due.In(loc).Format(minuteForm)
}

func TestSkippedAreListed(t *testing.T) {
	t.Parallel()
	p := mustBuild(t, input(t, `[
		{"text":"a","timing":{"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"}}},
		{"text":"b","timing":{"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},"if_past":"send_now"}},
		{"text":"c"}]`, `{"f":"18/11/2026 09:30"}`))
	at := time.Date(2026, 11, 17, 8, 30, 0, 0, time.UTC)
	want := []puntuale.SkippedStep{{Step: 0, Moment: at, Reason: puntuale.Because(ReasonPast)}, {Step: 1, Moment: at, Reason: puntuale.Because(ReasonAnchorPast)}}
	if !reflect.DeepEqual(p.Skipped, want) {
		t.Errorf("skipped %+v", p.Skipped)
	}
	if len(p.Messages) != 1 || p.Messages[0].Step != 2 || p.Messages[0].Content.Text != "c" {
		t.Errorf("messages %+v", p.Messages)
	}
}

func TestValidUntil(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ timing, f, want string }{
		{``, "", "2026-11-19 10:00"},
		{`"valid_for":{"amount":30,"unit":"minutes"}`, "", "2026-11-18 10:30"},
		{`"valid_for":{"amount":1,"unit":"months"}`, "", "2026-12-18 10:00"},
		{`"anchor":"f","valid_for":{"amount":1,"unit":"days"}`, "2027-03-27 12:00", "2027-03-28 12:00"},
		{`"anchor":"f"`, "2027-03-27 12:00", "2027-03-28 13:00"}, // 24 hours of elapsed time; clocks skip an hour on this day
		{`"anchor":"f","offset":{"amount":2,"unit":"hours","direction":"before"}`, "20/11/2026 10:00", "2026-11-20 10:00"},
		{`"anchor":"f","offset":{"amount":3,"unit":"days","direction":"before"}`, "30/11/2026 10:00", "2026-11-28 10:00"},
		{`"anchor":"f","offset":{"amount":3,"unit":"days","direction":"before"},"valid_for":{"amount":2,"unit":"weeks"}`, "30/11/2026 10:00", "2026-11-30 10:00"},
	} {
		p := mustBuild(t, input(t, `[{"text":"x","timing":{`+c.timing+`}}]`, `{"f":"`+c.f+`"}`))
		if got := p.Messages[0].ValidUntil.In(rome).Format(minuteForm); got != c.want {
			t.Errorf("%s: valid until %s, want %s", c.timing, got, c.want)
		}
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, timing, f, first, last string }{
		{"free", `"jitter":600`, "", "10:00:00.000000", "10:10:00.000000"},
		{"cut at the window's end", `"jitter":600,"window":{"from":"09:00","to":"10:05"}`, "", "10:00:00.000000", "10:04:59.999999"},
		{"not cut at it", `"jitter":600,"window":{"from":"09:00","to":"10:30"}`, "", "10:00:00.000000", "10:10:00.000000"},
		{"cut before the anchor", `"anchor":"f","offset":{"amount":1,"unit":"minutes","direction":"before"},"jitter":600`, "18/11/2026 12:00", "11:59:00.000000", "11:59:59.999999"},
	} {
		in := input(t, `[{"text":"x","timing":{`+c.timing+`}}]`, `{"f":"`+c.f+`"}`)
		clock := func(at time.Time) string { return at.In(rome).Format("15:04:05.000000") }
		dry := mustBuild(t, in).Messages[0]
		if clock(dry.Due) != c.first || clock(dry.DueMax) != c.last {
			t.Errorf("%s: from %s to %s", c.name, clock(dry.Due), clock(dry.DueMax))
		}
		seen := map[time.Time]bool{}
		low, high := dry.DueMax, dry.Due
		for in.Seed = 1; in.Seed <= 500; in.Seed++ {
			m := mustBuild(t, in).Messages[0]
			if m.Due.Before(dry.Due) || m.Due.After(dry.DueMax) || !m.DueMax.Equal(m.Due) {
				t.Fatalf("%s: seed %d gives %s to %s", c.name, in.Seed, clock(m.Due), clock(m.DueMax))
			}
			seen[m.Due] = true
			low, high = minTime(low, m.Due), maxTime(high, m.Due)
		}
		if spread := dry.DueMax.Sub(dry.Due); len(seen) < 490 || high.Sub(low) < spread*9/10 {
			t.Errorf("%s: %d moments between %s and %s", c.name, len(seen), clock(low), clock(high))
		}
	}
}

// TestJitterKeepsStepsApart checks that the jitter of a step ends at the latest time of the step that is planned after
// it.
func TestJitterKeepsStepsApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, want string }{ // want contains the latest times
		{"a later step without jitter", `{"text":"a","timing":{"jitter":3600}},{"text":"b","timing":{"offset":{"amount":10,"unit":"minutes"}}}`, "10:10:00.000000 10:10:00.000000"},
		{"an earlier step that is planned later", `{"text":"a","timing":{"offset":{"amount":10,"unit":"minutes"}}},{"text":"b","timing":{"jitter":3600}}`, "10:10:00.000000 10:09:59.999999"},
		{"one moment", `{"text":"a","timing":{"jitter":3600}},{"text":"b","timing":{"jitter":60}}`, "10:01:00.000000 10:01:00.000000"},
		{"one moment, the other way round", `{"text":"a","timing":{"jitter":60}},{"text":"b","timing":{"jitter":3600}}`, "10:01:00.000000 11:00:00.000000"},
		{"far apart", `{"text":"a","timing":{"jitter":600}},{"text":"b","timing":{"offset":{"amount":1,"unit":"hours"}}}`, "10:10:00.000000 11:00:00.000000"},
	} {
		var latest []string
		for _, m := range mustBuild(t, input(t, "["+c.steps+"]", "")).Messages {
			latest = append(latest, m.DueMax.In(rome).Format("15:04:05.000000"))
		}
		if got := strings.Join(latest, " "); got != c.want {
			t.Errorf("%s: at the latest %s, want %s", c.name, got, c.want)
		}
	}
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func TestFrozenWindow(t *testing.T) {
	t.Parallel()
	in := input(t, `[{"text":"a","timing":{"window":{"holidays":"avoid"}}},{"text":"b","timing":{"window":{"weekdays":[3]}}},
		{"text":"c","timing":{"window":{}}},{"text":"d"}]`, "")
	in.Closed = []puntuale.Date{{Year: 2026, Month: 11, Day: 30}}
	p := mustBuild(t, in)
	if w := p.Messages[0].Window; w == nil || !slices.Equal(w.Closed, in.Closed) {
		t.Errorf("the window that avoids holidays travels as %+v", w)
	}
	if w := p.Messages[1].Window; w == nil || w.Closed != nil {
		t.Errorf("the other one as %+v", w)
	}
	if p.Messages[2].Window != nil || p.Messages[3].Window != nil {
		t.Error("a window that says nothing travels along")
	}
	if in.Sequence.Steps[0].Timing.Window.Closed != nil {
		t.Error("the sequence's window was changed")
	}
}

func TestWindowThatNeverOpens(t *testing.T) {
	t.Parallel()
	in := input(t, `[{"text":"a","timing":{"window":{"holidays":"avoid"}}}]`, "")
	for d := puntuale.DateOf(now); d.Year < 2030; d = d.AddDays(1) {
		in.Closed = append(in.Closed, d)
	}
	_, err := Build(in)
	if at := faultsOf(t, err); !slices.Equal(at, []string{"steps[0].timing.window"}) {
		t.Error(err)
	}
}

// TestAllFaultsAtOnce checks that an error contains the faults of all steps, and each field's fault only once, even if
// several steps use the field.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	in := input(t, `[
		{"text":"{{nome}} {{cognome}} {{note}}","timing":{"anchor":"quando"}},
		{"text":"{{nome}}","media":"{{media}}","timing":{"anchor":"altro","if_past":"reject"}},
		{"text":"{{lungo}}{{lungo}}"},
		{"text":"{{vuoto|}}"},
		{"text":"x","timing":{"anchor":"lontano"}}]`,
		`{"nome":["a"],"cognome":" ","note":null,"quando":1763631000,"altro":"1/11/2026","media":"ftp://x/a.jpg","lungo":"`+
			strings.Repeat("à", 2049)+`","lontano":"1/1/2040","ignoto":{"a":[1]}}`)
	_, err := Build(in)
	want := []string{"body.nome", "body.cognome", "body.note", "body.quando", "body.media", "steps[1].timing", "steps[2].text", "steps[3]", "steps[4].timing"}
	if got := faultsOf(t, err); !slices.Equal(got, want) {
		t.Errorf("faults at %v\nwant %v\n%v", got, want, err)
	}
}

// TestSkippedStepsAreChecked checks that faults count even in a step that is left out. If they did not, the hour of a
// call would decide whether the call is refused.
func TestSkippedStepsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := Build(input(t, `[{"text":"{{nome}}","timing":{"anchor":"f"}}]`, `{"f":"1/1/2020"}`))
	if got := faultsOf(t, err); !slices.Equal(got, []string{"body.nome"}) {
		t.Error(got)
	}
}

func TestInputIsNotChanged(t *testing.T) {
	t.Parallel()
	in := input(t, `[{"text":"{{f}} {{nome|tu}}","timing":{"anchor":"f","jitter":60,"window":{"holidays":"avoid"}}}]`, `{"f":"20/11/2026"}`)
	in.Closed = make([]puntuale.Date, 1, 8)
	before := fmt.Sprintf("%+v", in)
	mustBuild(t, in)
	if after := fmt.Sprintf("%+v", in); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ name, steps string }{
		{"simple", `[{"text":"Ciao {{nome}}"},{"text":"A presto {{nome|amico}}","timing":{"offset":{"amount":1,"unit":"hours"}}},
			{"text":"Ieri","timing":{"offset":{"amount":1,"unit":"days"},"at":"09:00"}}]`},
		{"full", `[{"text":"Ciao {{nome}}, a {{f:giorno}} alle {{f:ora}}"},
			{"text":"Ciao {{nome}}, domani alle {{f:ora}}","media":"https://example.com/{{nome}}.pdf","timing":{"anchor":"f","offset":{"amount":1,"unit":"days","direction":"before"},
			 "at":"18:00","window":{"weekdays":[1,2,3,4,5],"from":"09:00","to":"19:00","holidays":"avoid"},"jitter":600}},
			{"text":"Grazie","timing":{"anchor":"f","offset":{"amount":3,"unit":"hours","direction":"after"},"window":{"from":"09:00","to":"19:00"}}}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := input(b, c.steps, `{"nome":"Anna","f":"2026-12-01T10:30"}`)
			in.Seed = 7
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
