package icalendar_test

import (
	"strings"
	"testing"

	"puntuale/internal/icalendar"
)

func calendar(event string) string {
	if !strings.HasPrefix(event, "BEGIN:") && !strings.HasPrefix(event, "METHOD:") {
		event = "BEGIN:VEVENT\n" + event + "\nEND:VEVENT"
	}
	return "BEGIN:VCALENDAR\nVERSION:2.0\n" + event + "\nEND:VCALENDAR\n"
}

// between puts a second event after the first.
const between = "\nEND:VEVENT\nBEGIN:VEVENT\n"

var eventCases = []struct{ name, event, want string }{
	{"IANA name in small letters", "UID:1\nDTSTART;TZID=europe/rome:20261201T100000", "2026-12-01 10:00 +0100; Europe/Rome; "},
	{"quoted Windows name", "UID:1\nDTSTART;TZID=\"Romance Standard Time\":20261201T100000", "2026-12-01 10:00 +0100; Europe/Paris; "},
	{"name for people, US", "UID:1\nDTSTART;TZID=\"(UTC-05:00) Eastern Time (US & Canada)\":20261201T100000", "2026-12-01 10:00 -0500; America/New_York; "},
	{"name for people, old", "UID:1\nDTSTART;TZID=\"(GMT+01.00) Sarajevo/Skopje/Warsaw/Zagreb\":20261201T100000", "2026-12-01 10:00 +0100; Europe/Warsaw; "},
	{"name for people, with another offset", "UID:1\nDTSTART;TZID=\"(UTC+05:00) Rome\":20261201T100000", "0001-01-01 00:00 +0000; Europe/Rome; ; zone_unknown"},
	{"offset as name", "UID:1\nDTSTART;TZID=GMT+0100:20261201T100000", "2026-12-01 10:00 +0100; Etc/GMT-1; "},
	{"tzone", "UID:1\nDTSTART;TZID=tzone://Microsoft/Utc:20261201T100000", "2026-12-01 10:00 +0000; UTC; "},
	{"the machine's own zone", "UID:1\nDTSTART;TZID=Local:20261201T100000", "0001-01-01 00:00 +0000; Europe/Rome; ; zone_unknown"},
	{"empty name", "UID:1\nDTSTART;TZID=:20261201T100000", "2026-12-01 10:00 +0100; Europe/Rome; ; zone_client"},
	{"path out of the zones", "UID:1\nDTSTART;TZID=../../etc/passwd:20261201T100000", "0001-01-01 00:00 +0000; Europe/Rome; ; zone_unknown"},
	{"own zone without a name", "BEGIN:VTIMEZONE\nTZID:Mine\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0110\nTZOFFSETTO:+0110\nEND:STANDARD\nEND:VTIMEZONE\n" +
		"BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Mine:20261201T100000\nEND:VEVENT", "2026-12-01 09:50 +0100; Europe/Rome; ; zone_custom"},
	{"own zone with the rules of Europe", "BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Mia:20261201T100000\nEND:VEVENT\nBEGIN:VTIMEZONE\nTZID:Mia\nBEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\n" +
		"BEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE", "2026-12-01 10:00 +0100; Europe/Rome; "},
	{"own zone with a place", "BEGIN:VTIMEZONE\nTZID:Mine\nX-LIC-LOCATION:Asia/Tokyo\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:1\nDTSTART;TZID=Mine:20261201T100000\nEND:VEVENT", "2026-12-01 10:00 +0900; Asia/Tokyo; "},
	{"UTC with a zone", "UID:1\nDTSTART;TZID=America/New_York:20261201T100000Z", "2026-12-01 05:00 -0500; America/New_York; "},
	{"time with an offset and separators", "UID:1\nDTSTART:2026-12-01T10:00:00+05:00", "2026-12-01 06:00 +0100; Europe/Rome; "},
	{"time in the gap", "UID:1\nDTSTART;TZID=Europe/Rome:20270328T023000", "2027-03-28 03:30 +0200; Europe/Rome; "},
	{"time in the overlap", "UID:1\nDTSTART;TZID=America/New_York:20261101T013000", "2026-11-01 01:30 -0400; America/New_York; "},
	{"series over the gap", "UID:1\nDTSTART;TZID=Europe/Rome:20270327T023000\nRRULE:FREQ=DAILY;COUNT=3",
		"2027-03-27 02:30 +0100; Europe/Rome; ; 20270327T013000Z\n2027-03-28 03:30 +0200; Europe/Rome; ; 20270328T013000Z\n2027-03-29 02:30 +0200; Europe/Rome; ; 20270329T003000Z"},
	{"series in UTC", "UID:1\nDTSTART:20270327T120000Z\nRRULE:FREQ=DAILY;COUNT=2", "2027-03-27 13:00 +0100; Europe/Rome; ; 20270327T120000Z\n2027-03-28 14:00 +0200; Europe/Rome; ; 20270328T120000Z"},
	{"UNTIL as a date", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T180000\nRRULE:FREQ=DAILY;UNTIL=20261202",
		"2026-12-01 18:00 +0100; Europe/Rome; ; 20261201T170000Z\n2026-12-02 18:00 +0100; Europe/Rome; ; 20261202T170000Z"},
	{"unclean rule", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T180000\nRRULE:freq=weekly; byday=tu ;X-NOTE=1;COUNT=2;", "2026-12-01 18:00 +0100; Europe/Rome; ; 20261201T170000Z\n2026-12-08 18:00 +0100; Europe/Rome; ; 20261208T170000Z"},
	{"COUNT begins long ago", "UID:1\nDTSTART;TZID=Europe/Rome:20240101T080000\nRRULE:FREQ=DAILY;COUNT=1067", "2026-11-29 08:00 +0100; Europe/Rome; ; 20261129T070000Z\n2026-11-30 08:00 +0100; Europe/Rome; ; 20261130T070000Z\n2026-12-01 08:00 +0100; Europe/Rome; ; 20261201T070000Z\n2026-12-02 08:00 +0100; Europe/Rome; ; 20261202T070000Z"},
	{"the first does not fit the rule, but counts", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T180000\nRRULE:FREQ=WEEKLY;BYDAY=FR;COUNT=2",
		"2026-12-01 18:00 +0100; Europe/Rome; ; 20261201T170000Z\n2026-12-04 18:00 +0100; Europe/Rome; ; 20261204T170000Z"},
	{"every second week, begun years ago", "UID:1\nDTSTART;TZID=Europe/Rome:20200106T080000\nRRULE:FREQ=WEEKLY;INTERVAL=2;UNTIL=20261215T000000Z", "2026-11-30 08:00 +0100; Europe/Rome; ; 20261130T070000Z\n2026-12-14 08:00 +0100; Europe/Rome; ; 20261214T070000Z"},
	{"last day of months", "UID:1\nDTSTART;TZID=Europe/Rome:20200131T080000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1;UNTIL=20270101T000000Z", "2026-11-30 08:00 +0100; Europe/Rome; ; 20261130T070000Z\n2026-12-31 08:00 +0100; Europe/Rome; ; 20261231T070000Z"},
	{"29 February", "UID:1\nDTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY", ""},
	{"thirty-first of each month", "UID:1\nDTSTART;TZID=Europe/Rome:20260131T080000\nRRULE:FREQ=MONTHLY;UNTIL=20270201", "2026-12-31 08:00 +0100; Europe/Rome; ; 20261231T070000Z\n2027-01-31 08:00 +0100; Europe/Rome; ; 20270131T070000Z"},
	{"birthday", "UID:1\nDTSTART;VALUE=DATE:19801203\nRRULE:FREQ=YEARLY", "2026-12-03 00:00 +0100; Europe/Rome; ; 20261203; all day"},
	{"EXDATE list, dates, another zone", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T180000\nRRULE:FREQ=DAILY;COUNT=6\nEXDATE;TZID=Europe/Rome:20261201T180000,20261202T180000\nEXDATE;VALUE=DATE:20261203\nEXDATE:20261204T170000Z\nEXDATE;TZID=America/New_York:20261205T120000",
		"2026-12-06 18:00 +0100; Europe/Rome; ; 20261206T170000Z"},
	{"EXDATE of whole days", "UID:1\nDTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;TZID=Europe/Rome:20261202T000000\nEXDATE;VALUE=DATE:20261203", "2026-12-01 00:00 +0100; Europe/Rome; ; 20261201; all day"},
	{"moved into the period", "UID:1\nDTSTART;TZID=Europe/Rome:20260105T090000\nRRULE:FREQ=WEEKLY;COUNT=3" + between + "UID:1\nRECURRENCE-ID;TZID=Europe/Rome:20260112T090000\nDTSTART;TZID=Europe/Rome:20261202T090000",
		"2026-12-02 09:00 +0100; Europe/Rome; ; 20260112T080000Z"},
	{"moved out of the period", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nRRULE:FREQ=DAILY;COUNT=2" + between + "UID:1\nRECURRENCE-ID:20261202T080000Z\nDTSTART;TZID=Europe/Rome:20280101T090000",
		"2026-12-01 09:00 +0100; Europe/Rome; ; 20261201T080000Z"},
	{"override before its series, and a date as RECURRENCE-ID", "UID:1\nRECURRENCE-ID;VALUE=DATE:20261202\nDTSTART;TZID=Europe/Rome:20261202T100000\nSUMMARY:dopo" + between + "UID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nRRULE:FREQ=DAILY;COUNT=2",
		"2026-12-01 09:00 +0100; Europe/Rome; ; 20261201T080000Z\n2026-12-02 10:00 +0100; Europe/Rome; dopo; 20261202T080000Z"},
	{"override without a series", "UID:1\nRECURRENCE-ID;TZID=Europe/Rome:20261202T090000\nDTSTART;TZID=Europe/Rome:20261202T100000", "2026-12-02 10:00 +0100; Europe/Rome; ; 20261202T080000Z"},
	{"cancelled instance", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nRRULE:FREQ=DAILY;COUNT=2\nSUMMARY:seduta" + between + "UID:1\nRECURRENCE-ID;TZID=Europe/Rome:20261202T090000\nSTATUS:CANCELLED",
		"2026-12-01 09:00 +0100; Europe/Rome; seduta; 20261201T080000Z\n2026-12-02 09:00 +0100; Europe/Rome; seduta; 20261202T080000Z; cancelled"},
	{"cancelled series", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nRRULE:FREQ=DAILY;COUNT=2\nSTATUS:CANCELLED" + between + "UID:1\nRECURRENCE-ID;TZID=Europe/Rome:20261202T090000\nDTSTART;TZID=Europe/Rome:20261202T100000",
		"2026-12-01 09:00 +0100; Europe/Rome; ; 20261201T080000Z; cancelled\n2026-12-02 10:00 +0100; Europe/Rome; ; 20261202T080000Z; cancelled"},
	{"from one instance on", "UID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:a" + between + "UID:1\nRECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Rome:20261202T090000\nDTSTART;TZID=Europe/Rome:20261202T110000\nSUMMARY:b",
		"2026-12-01 09:00 +0100; Europe/Rome; a; 20261201T080000Z\n2026-12-02 11:00 +0100; Europe/Rome; b; 20261202T080000Z\n2026-12-03 11:00 +0100; Europe/Rome; b; 20261203T080000Z"},
	{"METHOD:CANCEL", "METHOD:CANCEL\nBEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Rome:20261201T090000\nEND:VEVENT", "2026-12-01 09:00 +0100; Europe/Rome; ; cancelled"},
	{"two calendars", "BEGIN:VEVENT\nUID:1\nDTSTART:20261201T090000\nEND:VEVENT\nEND:VCALENDAR\nBEGIN:VCALENDAR\nX-WR-TIMEZONE:Asia/Tokyo\nBEGIN:VEVENT\nUID:2\nDTSTART:20261201T090000\nEND:VEVENT",
		"2026-12-01 09:00 +0900; Asia/Tokyo; ; zone_calendar\n2026-12-01 09:00 +0100; Europe/Rome; ; zone_client"},
	{"higher SEQUENCE first", "UID:1\nSEQUENCE:2\nDTSTART:20261202T090000Z\nSUMMARY:new" + between + "UID:1\nSEQUENCE:1\nDTSTART:20261201T090000Z", "2026-12-02 10:00 +0100; Europe/Rome; new"},
	{"later LAST-MODIFIED", "UID:1\nLAST-MODIFIED:20261102T000000Z\nDTSTART:20261202T090000Z\nSUMMARY:new" + between + "UID:1\nLAST-MODIFIED:20261101T000000Z\nDTSTART:20261201T090000Z", "2026-12-02 10:00 +0100; Europe/Rome; new"},
	{"the newer copy is outside", "UID:1\nSEQUENCE:1\nDTSTART:20261202T090000Z" + between + "UID:1\nSEQUENCE:2\nDTSTART:20280101T090000Z", ""},
	{"small letters", "uid:1\ndtstart;tzid=Europe/Rome:20261201t100000\nsummary:piccolo", "2026-12-01 10:00 +0100; Europe/Rome; piccolo"},
	{"lines that are no properties", "UID:1\nDTSTART:20261201T100000Z\nno colon\n:::\n;x\nSUMMARY:Bene\n=====", "2026-12-01 11:00 +0100; Europe/Rome; Bene"},
	{"fold inside a character", "UID:1\nDTSTART:20261201T100000Z\nSUMMARY:Perch\xc3\n \xa9", "2026-12-01 11:00 +0100; Europe/Rome; Perché"},
	{"Latin-1", "UID:1\nDTSTART:20261201T100000Z\nSUMMARY:Perch\xe9 \x80", "2026-12-01 11:00 +0100; Europe/Rome; Perché €"},
	{"escapes", `UID:1` + "\nDTSTART:20261201T100000Z\nSUMMARY:a\\, b\\; c\\\\n \\x", `2026-12-01 11:00 +0100; Europe/Rome; a, b; c\n \x`},
	{"quotes in CN", "UID:1\nDTSTART:20261201T100000Z\nATTENDEE;CN=Mario \"il\" Rossi:mailto:a@b.it\nATTENDEE;CN=\"Neri; Ugo: dott.\";X-TEL=\"1:2\":tel:+39\nATTENDEE;CN=\"Bini:mailto:b@b.it",
		"2026-12-01 11:00 +0100; Europe/Rome; ; Mario \"il\" Rossi <mailto:a@b.it>; Neri; Ugo: dott. <tel:+39>; \"Bini <mailto:b@b.it>"},
	{"no UID", "DTSTART:20261201T100000Z\nSUMMARY:x", "2026-12-01 11:00 +0100; Europe/Rome; x; no_uid"},
	{"start that cannot be", "UID:1\nDTSTART:20261331T100000Z", "0001-01-01 00:00 +0000; Europe/Rome; ; start_unreadable"},
	{"no start", "UID:1\nSUMMARY:x", "0001-01-01 00:00 +0000; Europe/Rome; x; start_unreadable"},
	{"rule that cannot be read", "UID:1\nDTSTART:20261201T100000Z\nRRULE:FREQ=FORTNIGHTLY", "2026-12-01 11:00 +0100; Europe/Rome; ; rule_unreadable"},
	{"every second, begun long ago", "UID:1\nDTSTART:19700101T100000Z\nRRULE:FREQ=SECONDLY", "1970-01-01 11:00 +0100; Europe/Rome; ; rule_too_often"},
	{"day of a month that no month has", "UID:1\nDTSTART:20261201T100000Z\nRRULE:FREQ=MONTHLY;BYDAY=-53MO", "2026-12-01 11:00 +0100; Europe/Rome; ; rule_unreadable"},
	{"a broken event leaves the others", "DTSTART:\n" + between + "UID:2\nDTSTART:20261201T100000Z\nSUMMARY:x", "2026-12-01 11:00 +0100; Europe/Rome; x"},
	{"alarm and other parts", "BEGIN:VTODO\nUID:0\nDTSTART:20261201T100000Z\nEND:VTODO\nBEGIN:VEVENT\nUID:1\nBEGIN:VALARM\nSUMMARY:y\nDTSTART:20270101T000000Z\nEND:VALARM\nDTSTART:20261201T100000Z\nSUMMARY:x\nEND:VEVENT", "2026-12-01 11:00 +0100; Europe/Rome; x"},
	{"before and after the period", "UID:1\nDTSTART:20261028T225959Z" + between + "UID:2\nDTSTART:20280101T000000Z", ""},
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range eventCases {
		o := options(t, "2026-11-29", "2027-02-01")
		o.AllDay = true
		switch {
		case strings.Contains(c.name, "gap"), strings.Contains(c.name, "in UTC"):
			o.From, o.To = day("2027-03-01"), day("2027-05-01")
		case strings.Contains(c.name, "overlap"):
			o.From = day("2026-10-01")
		}
		got, err := icalendar.Read(strings.NewReader(calendar(c.event)), o)
		if have := stories(got); err != nil || have != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, have, c.want)
		}
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, lines, want string }{
		{"escapes and folds", "DESCRIPTION:Via Roma 1\\,\n  Milano\\nTel: 333", "Via Roma 1, Milano\nTel: 333"},
		{"line break that was not escaped", "DESCRIPTION:Visita\n333 1234567\nLOCATION:Milano", "Visita\n333 1234567"},
		{"cut not inside a number", "DESCRIPTION:" + strings.Repeat("x", icalendar.MaxDescription-6) + " 3331234567", strings.Repeat("x", icalendar.MaxDescription-6)},
		{"very long line", "DESCRIPTION:" + strings.Repeat("è\n ", 100_000) + "\nSUMMARY:dopo", strings.Repeat("è", icalendar.MaxDescription)},
	} {
		got, err := icalendar.Read(strings.NewReader(calendar("UID:1\nDTSTART:20261201T100000Z\n"+c.lines)), options(t, "2026-11-29", "2027-02-01"))
		if err != nil || len(got.Entries) != 1 || got.Entries[0].Description != c.want {
			t.Errorf("%s: %v %d %.200q", c.name, err, len(got.Entries), stories(got))
		}
	}
}

func TestAllDayOff(t *testing.T) {
	t.Parallel()
	o := options(t, "2026-11-29", "2027-02-01")
	got, err := icalendar.Read(strings.NewReader(calendar("UID:1\nDTSTART;VALUE=DATE:20261201")), o)
	if err != nil || len(got.Entries) != 0 || got.Skipped != 0 {
		t.Error(got, err)
	}
}
