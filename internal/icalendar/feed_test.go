package icalendar_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"puntuale/internal/icalendar"
)

// story writes an entry in one line, without its long texts.
func story(e icalendar.Entry) string {
	parts := []string{e.Start.Format("2006-01-02 15:04 -0700"), e.Zone, e.Title}
	for _, s := range []string{e.Recurrence, string(e.Warning), string(e.Problem)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.AllDay {
		parts = append(parts, "all day")
	}
	if e.Cancelled {
		parts = append(parts, "cancelled")
	}
	for _, p := range e.Attendees {
		parts = append(parts, p.Name+" <"+p.Address+">")
	}
	return strings.Join(parts, "; ")
}

func stories(f icalendar.Feed) string {
	var all []string
	for _, e := range f.Entries {
		all = append(all, story(e))
	}
	return strings.Join(all, "\n")
}

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPrograms reads what programs write, with LF and CRLF.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"google.ics": {"Studio Bianchi 0s",
			"2026-11-30 15:00 +0100; Europe/Rome; Fisioterapia Neri 347 7654321; 20261130T140000Z",
			"2026-12-01 10:30 +0100; Europe/Rome; Maria Bruni - visita; Maria Bruni <mailto:maria.bruni@example.com>",
			"2026-12-03 09:00 +0100; Europe/Rome; Luca Verdi 02 12345678; cancelled",
			"2026-12-08 00:00 +0100; Europe/Rome; Immacolata, chiuso; all day",
			"2026-12-08 11:00 +0100; Europe/Rome; Fisioterapia Neri 347 7654321 (spostata); 20261207T140000Z",
			"2026-12-21 15:00 +0100; Europe/Rome; Fisioterapia Neri 347 7654321; 20261221T140000Z"},
		"outlook.ics": {"Agenda 1h0m0s",
			"0001-01-01 00:00 +0000; Europe/Rome; Zona ignota; zone_unknown",
			"2026-12-02 09:00 +0100; Europe/Rome; Rossi Mario",
			"2026-12-02 11:00 +0100; Europe/Rome; Colloquio",
			"2026-12-02 09:00 -0500; America/New_York; Chiamata New York",
			"2026-12-03 00:00 +0100; Europe/Rome; Ferie; all day"},
		"nextcloud.ics": {"Salone 4h0m0s",
			"2026-12-01 17:00 +0100; Europe/Rome; Ciclo di sedute; 20261201T160000Z",
			"2026-12-04 10:00 +0100; Europe/Rome; Taglio Giulia",
			"2026-12-05 18:00 +0100; Europe/Rome; Ciclo di sedute; 20261205T170000Z",
			"2026-12-07 17:00 +0100; Europe/Rome; Ciclo di sedute; 20261207T160000Z"},
		"icloud.ics": {"Lavoro 0s",
			`2026-12-05 10:00 +0100; Europe/Rome; Anna Gialli; Anna "la" Gialli <tel:+39-347-111-2233>`,
			"2026-12-05 12:00 +0100; Europe/Rome; Senza fuso; zone_calendar"},
		"radicale.ics": {"anna 0s",
			"2026-12-06 09:00 +0100; Europe/Rome; Senza fuso; zone_client",
			"2026-12-16 09:00 +0100; Europe/Rome; Controllo Blu 0461 123456; 20261216T080000Z"},
		"calcom.ics": {" 0s",
			"2026-12-09 15:00 +0100; Europe/Rome; Consulenza tra Dott. Bianchi e Paolo Viola; Paolo Viola <mailto:paolo@example.com>"},
	} {
		text := file(t, name)
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text, strings.ReplaceAll(text, "\n ", "\r\n\t")} {
			o := options(t, "2026-11-29", "2027-01-28")
			o.AllDay = true
			got, err := icalendar.Read(iotest.OneByteReader(strings.NewReader(text)), o)
			if have := fmt.Sprintf("%s %v\n%s", got.Name, got.Refresh, stories(got)); err != nil || have != strings.Join(want, "\n") {
				t.Errorf("%s: %v\n%s\nwant\n%s", name, err, have, strings.Join(want, "\n"))
			}
		}
	}
}

// TestNotWhole: a feed that is not whole is never read as one with fewer entries.
func TestNotWhole(t *testing.T) {
	t.Parallel()
	whole := file(t, "google.ics")
	for text, want := range map[string]error{
		"":       icalendar.ErrNoCalendar,
		"\r\n\n": icalendar.ErrNoCalendar,
		"<!DOCTYPE html>\n<html><body>Accedi</body></html>": icalendar.ErrNoCalendar,
		"\ufeff<html>\nBEGIN:VCALENDAR\nEND:VCALENDAR\n":    icalendar.ErrNoCalendar,
		`{"error": "not found"}`:                            icalendar.ErrNoCalendar,
		"BEGIN:VEVENT\nEND:VEVENT\n":                        icalendar.ErrNoCalendar,
		whole[:len(whole)-len("END:VCALENDAR\n")]:           icalendar.ErrCut,
		strings.Replace(whole, "END:VEVENT\n", "", 1):       icalendar.ErrCut,
		strings.Replace(whole, "BEGIN:VEVENT\n", "", 1):     icalendar.ErrCut,
		whole + "BEGIN:VCALENDAR\n":                         icalendar.ErrCut,
		"BEGIN:VCALENDAR\nEND:VCALENDAR":                    nil,
		"begin:vcalendar\nend : vcalendar\n":                nil,
	} {
		if _, err := icalendar.Read(strings.NewReader(text), options(t, "2026-11-29", "2027-01-28")); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
	for i := 0; i < len(whole)-1; i += 13 {
		if _, err := icalendar.Read(strings.NewReader(whole[:i]), options(t, "2026-11-29", "2027-01-28")); err == nil {
			t.Fatalf("the first %d of %d bytes are read as a whole feed", i, len(whole))
		}
	}
	broken := errors.New("connection reset")
	if _, err := icalendar.Read(iotest.ErrReader(broken), options(t, "2026-11-29", "2027-01-28")); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestHash: only what entries say changes the hash.
func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(text string) [32]byte {
		t.Helper()
		got, err := icalendar.Read(strings.NewReader(text), options(t, "2026-11-29", "2027-01-28"))
		if err != nil {
			t.Fatal(err)
		}
		return got.Hash
	}
	text := file(t, "google.ics")
	first, second, _ := strings.Cut(text, "BEGIN:VEVENT\n")
	events := strings.SplitAfter("BEGIN:VEVENT\n"+strings.TrimSuffix(second, "END:VCALENDAR\n"), "END:VEVENT\n")
	turned := first
	for i := range events {
		turned += events[len(events)-1-i]
	}
	turned += "END:VCALENDAR\n"
	same := hash(text)
	if hash(turned) != same || hash(strings.ReplaceAll(text, "DTSTAMP:20261129T101112Z", "DTSTAMP:20261130T111111Z")) != same {
		t.Error("the order or DTSTAMP changes the hash")
	}
	for _, change := range [][2]string{{"Maria Bruni - visita", "Maria Bruni"}, {"20261201T093000Z", "20261201T094500Z"}, {"STATUS:CANCELLED", "STATUS:CONFIRMED"}, {"Garibaldi", "Cavour"}, {"maria.bruni@", "m.bruni@"}} {
		if changed := strings.Replace(text, change[0], change[1], 1); changed == text || hash(changed) == same {
			t.Errorf("%s → %s does not change the hash", change[0], change[1])
		}
	}
	if hash("BEGIN:VCALENDAR\nEND:VCALENDAR\n") != hash("BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n") {
		t.Error("two empty calendars differ")
	}
}

// TestTooMany: more entries or events than allowed are an error, so that a caller does not take the rest as removed.
func TestTooMany(t *testing.T) {
	t.Parallel()
	event := func(long int) func(int) string {
		return func(i int) string {
			return fmt.Sprintf("BEGIN:VEVENT\nUID:%d\nDTSTART:20261201T100000Z\nDESCRIPTION:%s\nEND:VEVENT\n", i, strings.Repeat("è", long))
		}
	}
	for _, c := range []struct {
		count, long, most int
		want              error
	}{
		{10_000, 10, 0, nil}, {10_001, 10, 0, icalendar.ErrTooMany}, {51, 10, 50, icalendar.ErrTooMany}, {50, 10, 50, nil},
		{20_001, 10, 30_000, icalendar.ErrTooMany}, {5000, 4000, 0, icalendar.ErrTooMany},
	} {
		o := options(t, "2026-11-29", "2027-01-28")
		o.MaxEntries = c.most
		if _, err := icalendar.Read(&repeated{count: c.count, text: event(c.long)}, o); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"google.ics", "outlook.ics", "nextcloud.ics", "icloud.ics", "radicale.ics", "calcom.ics"} {
		f.Add(file(f, name))
	}
	for _, c := range eventCases {
		f.Add(calendar(c.event))
	}
	for _, rule := range []string{"FREQ=YEARLY;BYWEEKNO=53,-53,1;BYDAY=-53SU", "FREQ=MONTHLY;BYDAY=-5MO,5FR;BYSETPOS=-1", "FREQ=WEEKLY;INTERVAL=10000;WKST=SU",
		"FREQ=YEARLY;BYYEARDAY=-366;BYHOUR=0,23", "FREQ=SECONDLY;COUNT=9", "FREQ=DAILY;BYMONTHDAY=-31;BYMONTH=2"} {
		f.Add(calendar("UID:x\nDTSTART;TZID=Europe/Rome:20200229T023000\nRRULE:" + rule))
	}
	o := options(f, "2026-11-29", "2027-01-28")
	o.AllDay = true
	f.Fuzz(func(t *testing.T, text string) {
		begun := time.Now()
		first, err := icalendar.Read(strings.NewReader(text), o)
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if err != nil {
			return
		}
		for _, e := range first.Entries {
			if e.UID == "" || e.Zone == "" || e.Problem == "" && (e.Start.Before(o.From) || !e.Start.Before(o.To)) || len([]rune(e.Title)) > icalendar.MaxTitle || len(e.Attendees) > icalendar.MaxAttendees {
				t.Errorf("entry %+v", e)
			}
		}
		if second, err := icalendar.Read(iotest.HalfReader(strings.NewReader(text)), o); err != nil || second.Hash != first.Hash {
			t.Errorf("the second reading differs: %v", err)
		}
	})
}
