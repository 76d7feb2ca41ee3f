package plan

import (
	"testing"
	"time"
	_ "time/tzdata"
)

var rome = func() *time.Location {
	loc, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		panic(err)
	}
	return loc
}()

func TestParseMoment(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-20T10:30":                    "2026-11-20T09:30:00Z",
		"2026-11-20 10:30":                    "2026-11-20T09:30:00Z",
		"2026-11-20T10:30:15":                 "2026-11-20T09:30:15Z",
		"2026-11-20T10:30:15.5":               "2026-11-20T09:30:15.5Z",
		"2026-11-20T10:30:15,123456789":       "2026-11-20T09:30:15.123456Z",
		"2026-11-20T10:30Z":                   "2026-11-20T10:30:00Z",
		"2026-11-20T10:30:00.000001Z":         "2026-11-20T10:30:00.000001Z",
		"2026-11-20T10:30:00+05:30":           "2026-11-20T05:00:00Z",
		"2026-11-20 10:30-0800":               "2026-11-20T18:30:00Z",
		"2026-11-20T10:30+01":                 "2026-11-20T09:30:00Z",
		"2026-11-20":                          "2026-11-20T08:00:00Z",
		"20/11/2026":                          "2026-11-20T08:00:00Z",
		"20/11/2026 10:30":                    "2026-11-20T09:30:00Z",
		"20-11-2026 10:30:15":                 "2026-11-20T09:30:15Z",
		"20.11.2026 9:05":                     "2026-11-20T08:05:00Z",
		"1/2/2026":                            "2026-02-01T08:00:00Z",
		"1/12/2026 00:00":                     "2026-11-30T23:00:00Z",
		"01-2-2026":                           "2026-02-01T08:00:00Z",
		"29/02/2028":                          "2028-02-29T08:00:00Z",
		"2026-03-29T02:30":                    "2026-03-29T01:30:00Z",
		"2026-10-25T02:30":                    "2026-10-25T00:30:00Z",
		"2026-10-25T02:30+01:00":              "2026-10-25T01:30:00Z",
		"0001-01-01T00:00Z":                   "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999-23:59": "10000-01-01T23:58:59.999999Z",
	} {
		m, err := ParseMoment(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := m.At(DefaultTime, rome).Format(time.RFC3339Nano); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestParseMomentRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "domani", "tomorrow", "now", "1763631000", "1763631000000", "20261120", "20261120T1030",
		"20/11/26", "20/11/26 10:30", "26-11-20", "1/1", "11/2026", "2026-11", "2026", "2026/11/20", "2026.11.20", "2026-1-2",
		"20/11-2026", "20.11/2026", "20 11 2026", "20 novembre 2026", "2026-11-20t10:30", "2026-11-20T10", "2026-11-20T9:30",
		"2026-11-20T10:30:1", "2026-11-20T10:30.5", "2026-11-20T10:30:15.", "2026-11-20T10:30:15.1234567890", "2026-11-20T",
		"2026-11-20 ", " 2026-11-20", "2026-11-20  10:30", "2026-11-20T10:30 Z", "2026-11-20T10:30z", "2026-11-20T10:30+1",
		"2026-11-20T10:30+01:0", "2026-11-20T10:30+24:00", "2026-11-20T10:30+01:60", "2026-11-20Z", "2026-11-20T24:00",
		"2026-11-20T10:60", "2026-11-20T10:30:60", "2026-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "31/04/2026",
		"29/02/2026", "0/1/2026", "32/1/2026", "1/13/2026", "0000-01-01", "20/11/2026T10:30", "20/11/2026 10", "20/11/2026 10:3",
		"20/11/2026 24:00", "20/11/2026 10:30Z", "20/11/2026 10:30:15.5", "20/11/2026,", "120/11/2026", "20/111/2026", "20/11/20266",
		"٢٠/١١/٢٠٢٦", "2026‑11‑20", "-2026-11-20", "+2026-11-20", "2026-11-20T10:30[Europe/Rome]", "2026-W47-5", "2026-324"} {
		if m, err := ParseMoment(text); err == nil {
			t.Errorf("%q was read as %+v", text, m)
		}
	}
}

func TestAppendMoment(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 9, 30, 59, 0, time.UTC).In(rome)
	for format, want := range map[string]string{"": "20/11/2026 10:30", "data": "20/11/2026", "ora": "10:30", "giorno": "venerdì 20 novembre"} {
		if got := string(appendMoment(nil, at, format)); got != want {
			t.Errorf("%q prints %q, want %q", format, got, want)
		}
	}
	if got := string(appendMoment(nil, time.Date(2027, 8, 1, 7, 5, 0, 0, time.UTC), formatLong)); got != "domenica 1 agosto" {
		t.Error(got)
	}
}

// FuzzParseMoment checks that every accepted text is a real day and time, and that its ISO form parses to the same
// value.
func FuzzParseMoment(f *testing.F) {
	for _, seed := range []string{"2026-11-20T10:30:15.123456+01:00", "20/11/2026 10:30", "1.1.2026", "2026-11-20", "20-11-2026 9:30:01", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMoment(text)
		if err != nil {
			return
		}
		if m.Time < 0 || m.Time >= 24*time.Hour || !exists(m.Date) {
			t.Fatalf("%q became %+v", text, m)
		}
		iso := m.Date.String() + time.Unix(0, 0).UTC().Add(m.Time).Format("T15:04:05.000000")
		if m.Zone != nil {
			iso += m.Date.At(m.Time, m.Zone).In(m.Zone).Format("Z07:00")
		}
		again, err := ParseMoment(iso)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, iso, err)
		}
		if m.HasTime && !again.At(0, rome).Equal(m.At(0, rome)) {
			t.Fatalf("%q means %s, its ISO form %s %s", text, m.At(0, rome), iso, again.At(0, rome))
		}
	})
}
