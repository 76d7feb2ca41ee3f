package request

import (
	"strings"
	"testing"
	"time"
)

func TestPeriod(t *testing.T) {
	t.Parallel()
	var z Zones
	rome, err := z.Load("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	period := func(start, end string) Period {
		return Period{[]Bound{{"start", start}}, []Bound{{"end", end}}}
	}
	for _, c := range []struct {
		strict           bool
		start, end       string
		from, to, faults string
	}{
		{true, "20/11/2026 10:30", "20/11/2026 10:30", "2026-11-20T09:30:00Z", "2026-11-20T09:31:00Z", ""},
		{true, "31/10/2027 02:30", "31/10/2027 02:30", "2027-10-31T00:30:00Z", "2027-10-31T01:31:00Z", ""}, // clocks show this minute twice: the period is from the first to the second
		{true, "31/10/2027 01:00", "31/10/2027 01:59", "2027-10-30T23:00:00Z", "2027-10-31T00:00:00Z", ""}, // the minutes before the hour that clocks show twice
		{true, "31/10/2027 02:00", "31/10/2027 02:59", "2027-10-31T00:00:00Z", "2027-10-31T02:00:00Z", ""},
		{true, "31/10/2027 03:00", "31/10/2027 03:59", "2027-10-31T02:00:00Z", "2027-10-31T03:00:00Z", ""},
		{true, "31/10/2027 02:00", "31/10/2027 02:00", "2027-10-31T00:00:00Z", "2027-10-31T01:01:00Z", ""},
		{false, "2027-10-31T02:30+02:00", "2027-10-31T02:30+02:00", "2027-10-31T00:30:00Z", "2027-10-31T00:31:00Z", ""},
		{true, "28/03/2027 02:30", "28/03/2027 04:00", "2027-03-28T01:00:00Z", "2027-03-28T02:01:00Z", ""}, // a skipped minute: the period begins with the change
		{true, "28/03/2027 01:30", "28/03/2027 02:30", "2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", ""}, // a skipped minute: the period ends with the change
		{true, "28/03/2027 02:10", "28/03/2027 02:50", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z", ""},
		{true, "28/03/2027 02:50", "28/03/2027 02:10", "", "", "query.start"},
		{true, "28/03/2027 03:00", "28/03/2027 02:50", "", "", "query.start"},
		{true, "31/10/2027 02:59", "31/10/2027 03:00", "2027-10-31T00:59:00Z", "2027-10-31T02:01:00Z", ""},
		{false, "28/03/2027 02:30:10", "2027-03-28 02:59:59", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z", ""},
		{false, "28/03/2027 02:50", "28/03/2027 02:10", "", "", "query.start"},
		{false, "20/11/2026 00:00", "19/11/2026", "", "", "query.start"},
		{false, "2026-11-20T10:31Z", "2026-11-20T11:30+01:00", "", "", "query.start"},
		{true, "20/11/2026 10:31", "20/11/2026 10:30", "", "", "query.start"},
		{true, "20/11/2026", "2026-11-20 10:30", "", "", "query.start query.end"},
		{true, "", "x", "", "", "query.start query.end"},
		{false, "", "", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", ""},
		{false, "20/11/2026", "20/11/2026", "2026-11-19T23:00:00Z", "2026-11-20T23:00:00Z", ""},
		{false, "2026-11-20T10:30:30", "20/11/2026 10:30", "2026-11-20T09:30:30Z", "2026-11-20T09:31:00Z", ""},
		{false, "2026-11-20T10:30Z", "2026-11-20T10:30Z", "2026-11-20T10:30:00Z", "2026-11-20T10:31:00Z", ""},
		{false, "21/11/2026", "20/11/2026", "", "", "query.start"},
		{false, "ieri", "oggi", "", "", "query.start query.end"},
	} {
		var f Faults
		var from, to time.Time
		if c.strict {
			from, to = period(c.start, c.end).Strict(&f, rome)
		} else {
			from, to = period(c.start, c.end).Loose(&f, rome)
		}
		var at []string
		for _, fault := range f {
			at = append(at, fault.Location)
		}
		if got := strings.Join(at, " "); got != c.faults {
			t.Errorf("%q to %q: faults at %q, want %q", c.start, c.end, got, c.faults)
		} else if got == "" && (from.UTC().Format(time.RFC3339) != c.from || to.UTC().Format(time.RFC3339) != c.to) {
			t.Errorf("%q to %q: %s to %s", c.start, c.end, from, to)
		}
	}
}

// The location of a fault contains the name that the caller used for the bound. The fault quotes the caller's text.
func TestPeriodUnderAnotherName(t *testing.T) {
	t.Parallel()
	p := Period{[]Bound{{"start", " "}, {"inizio", "21/11/2026 00:00"}}, []Bound{{"end", "20/11/2026 00:00"}}}
	var strict, loose Faults
	p.Strict(&strict, time.UTC)
	p.Loose(&loose, time.UTC)
	for _, f := range []Faults{strict, loose} {
		if len(f) != 1 || f[0].Location != "query.inizio" || f[0].Value != "21/11/2026 00:00" {
			t.Errorf("%v", f)
		}
	}
}

// In every accepted period, the end is not before the start.
func FuzzPeriod(f *testing.F) {
	for _, seed := range []string{"20/11/2026 10:30", "2026-11-20", "31/10/2027 02:30", "", " ", "0000-01-01", "9999-12-31T23:59:59.999999999+23:59"} {
		f.Add(seed, "20/11/2026 10:30")
	}
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, start, end string) {
		p := Period{[]Bound{{"start", start}}, []Bound{{"end", end}, {"fine", end}}}
		var strict, loose Faults
		from, to := p.Strict(&strict, rome)
		if len(strict) == 0 && (from.IsZero() || to.IsZero()) {
			t.Fatalf("%q to %q: %s to %s", start, end, from, to)
		}
		if from, to := p.Loose(&loose, rome); len(loose) == 0 && !from.IsZero() && !to.IsZero() && from.After(to) {
			t.Fatalf("%q to %q: %s to %s", start, end, from, to)
		}
		if len(strict) == 0 && len(loose) > 0 && !to.Before(from) {
			t.Fatalf("%q to %q: strict takes what loose refuses: %v", start, end, loose)
		}
	})
}

// Consecutive periods leave no gap, in every zone and at every clock change. A period that begins one minute after the
// last minute of another period must not begin later than the other period ends.
func TestPeriodsSideBySide(t *testing.T) {
	t.Parallel()
	var z Zones
	for _, c := range []struct{ zone, day string }{
		{"Europe/Rome", "31/10/2027"}, {"Europe/Rome", "28/03/2027"}, {"America/New_York", "01/11/2026"}, {"America/New_York", "08/03/2026"},
		{"Australia/Lord_Howe", "04/04/2027"}, {"Australia/Lord_Howe", "04/10/2026"}, {"Africa/Casablanca", "15/02/2026"}, {"Africa/Casablanca", "22/03/2026"},
		{"America/Sao_Paulo", "17/02/2019"}, {"America/Sao_Paulo", "04/11/2018"}, {"Pacific/Apia", "31/12/2011"},
	} {
		loc, err := z.Load(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		midnight, err := time.Parse("02/01/2006", c.day)
		if err != nil {
			t.Fatal(err)
		}
		covered := time.Time{}
		for at := midnight.Add(-48 * time.Hour); at.Before(midnight.Add(48 * time.Hour)); at = at.Add(10 * time.Minute) {
			p := Period{[]Bound{{"start", at.Format(outcomeLayout)}}, []Bound{{"end", at.Add(9 * time.Minute).Format(outcomeLayout)}}}
			var f Faults
			from, to := p.Strict(&f, loc)
			if len(f) > 0 || to.Before(from) {
				t.Fatalf("%s, %v: %s to %s, %v", c.zone, p, from, to, f)
			}
			if !covered.IsZero() && from.After(covered) {
				t.Errorf("%s, %v: nothing covers %s to %s", c.zone, p, covered, from)
			}
			if to.After(covered) {
				covered = to
			}
		}
	}
}
