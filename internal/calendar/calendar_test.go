package calendar_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"puntuale"
	"puntuale/internal/calendar"
	"puntuale/internal/icalendar"
)

func rules() calendar.Rules {
	return calendar.Rules{PhoneFrom: puntuale.CalendarSources(), Own: []string{"+390299999999"}, Country: "IT"}
}

// TestPrograms reads the feeds that the reader's own tests use, from what programs write to an appointment.
func TestPrograms(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"google.ics": "weekly1@google.com/20261130T140000Z: +393477654321 Fisioterapia Neri\n" +
			"4j1f0l6c9qgk0o2s@google.com: +393331234567 Maria Bruni - visita\n" +
			"gone@google.com: +390212345678 Luca Verdi cancelled\n" +
			"weekly1@google.com/20261207T140000Z: +393477654321 Fisioterapia Neri (spostata)\n" +
			"weekly1@google.com/20261221T140000Z: +393477654321 Fisioterapia Neri\n",
		"outlook.ics": "040000008200E00074C5B7101A82E00800000000A4: calendar.zone_unknown\n" +
			"040000008200E00074C5B7101A82E00800000000A0: +393331234567 Rossi Mario\n" +
			"040000008200E00074C5B7101A82E00800000000A2: calendar.no_phone\n" +
			"040000008200E00074C5B7101A82E00800000000A1: calendar.no_phone\n",
		"nextcloud.ics": "rdate-1/20261201T160000Z: calendar.no_phone\n" +
			"6f1b52a0-6f3c-4a51-9f0b-0d1a4f9c2b11: +390212345678 Taglio Giulia\n" + // the location comes first
			"rdate-1/20261205T170000Z: calendar.no_phone\nrdate-1/20261207T160000Z: calendar.no_phone\n",
		"icloud.ics":   "9F1C7C5E-33CF-4C6B-9E3C-7E0C2B8D2A11: +393471112233 Anna \"la\" Gialli\nfloating: calendar.no_phone\n",
		"radicale.ics": "floating: calendar.no_phone\nevolution-1/20261216T080000Z: +390461123456 Controllo Blu\n",
		"calcom.ics":   "qYpKyZ2gDLHfqCwGbQwD4v@Cal.com: +393481234567 Consulenza tra Dott. Bianchi e Paolo Viola\n",
	} {
		text, err := os.ReadFile(filepath.Join("..", "icalendar", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		feed, err := icalendar.Read(strings.NewReader(string(text)), icalendar.Options{Zone: rome, From: time.Date(2026, 11, 29, 0, 0, 0, 0, rome), To: time.Date(2027, 1, 28, 0, 0, 0, 0, rome)})
		if err != nil {
			t.Fatal(err)
		}
		var have strings.Builder
		for _, e := range feed.Entries {
			a, code := calendar.Understand(e, rules())
			have.WriteString(a.Reference + ": " + strings.TrimSpace(string(code)+a.Phone+" "+a.Name))
			if a.Cancelled {
				have.WriteString(" cancelled")
			}
			have.WriteString("\n")
			if !a.Start.Equal(e.Start) || a.Title != e.Title {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if have.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, have.String(), want)
		}
	}
}

// TestNumbers: what is a number in a text, and what is none. "" means that there is none, "2" that there are two.
func TestNumbers(t *testing.T) {
	t.Parallel()
	const mobile = "+393331234567"
	for text, want := range map[string]string{
		"333 1234567": mobile, "3331234567": mobile, "333.123.45.67": mobile, "333-1234567": mobile, "333/1234567": mobile, "333 - 1234567": mobile,
		"+39 333 1234567": mobile, "+393331234567": mobile, "0039 333 1234567": mobile, "(+39) 333 1234567": mobile, "39 333 1234567": mobile,
		"(333) 123 4567": mobile, "+39\u00a0333\u00a01234567": mobile, "\u202a+39 333 123 4567\u202c": mobile, "tel:3331234567": mobile, "Tel.3331234567": mobile,
		"cell333 1234567": mobile, "chiamare il 333 1234567.": mobile, "333 1234567, dopo le 18": mobile, "Mario(3331234567)": mobile, "333 1234567; note": mobile,
		"Ore 15:30 333 1234567": mobile, "15.30 333 1234567": mobile, "333 1234567 15:30": mobile, "29/11/2026 333 1234567": mobile, "333 1234567 € 50": mobile,
		"euro 50 333 1234567": mobile, "333 1234567 / 333-123 45 67": mobile, "3331234567 (333 1234567)": mobile, "+41 79 123 45 67": "+41791234567",
		"0041 79 123 45 67": "+41791234567", "02 1234 5678": "+390212345678", "06/12345678": "+390612345678", "800 123456": "+39800123456",
		"https://wa.me/393331234567": mobile, "https://api.whatsapp.com/send?phone=393331234567&text=x": mobile,
		`<p>Tel: <a href="tel:+39%20333%201234567">Chiama</a></p>`: mobile, "<b>333</b> 1234567<br>ciao": mobile, "333&nbsp;1234567<br>": mobile,
		"02 99999999": "", "02 99999999 oppure 333 1234567": mobile, // the client's own number
		"333 1234567 o 347 7654321": "2", "333 1234567 / 02 12345678": "2", "3331234567,3477654321": "2", "333 1234567\n347 7654321": "2", "+393331234567+393477654321": "2",
		"":           "",
		"29/11/2026": "", "01.02.2026": "", "01-02-26": "", "2026-12-01": "", "03 12 2026": "", "03122026": "", "20261203": "", "dal 01/02/2026 al 03.02.2026": "",
		"09:30-10:15": "", "09.30-10.15": "", "09.30 - 10.15": "", "0930-1030": "", "0930 1030": "", "ore 9.30": "",
		"€ 1.200,00": "", "3.331.234,56": "", "300000000 €": "", "1.234.567,89": "", "45,4642 9,1900": "", "45.464200, 9.190000": "",
		"IT60 X054 2811 1010 0000 0123 456": "", "IT60X0542811101000000123456": "", "RSSMRA80A01H501U": "", "C.F. RSSMRA80A01H501U": "",
		"P.IVA 01234567897": "", "01234567897": "", "Partita IVA: 02345678901": "", "Ordine 3331234567": "", "ordine n. 3331234567": "", "Fattura nr 0212345678": "",
		"codice cliente 3331234567": "", "prenotazione n. 3331234567": "", "#3331234567": "", "ID 3331234567": "", "rif. 3331234567": "", "20121 Milano": "",
		"Via Roma 12, 20121 Milano MI": "", "AB3331234567": "", "3331234567X": "", "3331234567@pec.example.it": "", "https://example.com/3331234567": "",
		"fax 02 12345678": "", "333 12345": "", "+39 333 12": "", "12345678901234567890": "", "199.12.13.14:8080": "", "892 424": "", "899 123456": "",
		"Partecipa: +39 02 3046 1234": "", "(IT) +39 02 3046 1234 PIN: 123 456 789#": "", "+390212345678,,123456#": "", "Meeting ID: 333 123 4567": "",
		"ID riunione: 333 123 4567\nPasscode: 3477654321": "",
		"One tap mobile\n+390200667245,,81234567890# Italy\n\nDial by your location\n        +39 020 066 7245 Italy\n        +39 069 480 6488 Italy\nMeeting ID: 812 3456 7890\nFind your local number: https://zoom.example/u/abc":                                                                                                           "",
		"Note: 333 1234567\n________________________________________________________________________________\nMicrosoft Teams meeting\nJoin on your computer\nOr call in (audio only)\n+39 02 0062 4777   Italy, Milano\nPhone Conference ID: 393 393 093#\n________________________________________________________________________________": mobile,
		"-::~:~::~:~:~:~:~:~:~:~::~:~::-\nDo not edit this section\n+39 02 3046 1234\n-::~:~::~:~:~:~::~:~::-\nCell 333 1234567":                                                                                                                                                                                                              mobile,
		`<a href="tel:+390212345678,,123456%23">+39 02 1234 5678</a>`: "",
	} {
		r := rules()
		r.PhoneFrom = []string{calendar.FromDescription}
		a, code := calendar.Understand(icalendar.Entry{UID: "1", Description: text}, r)
		have := a.Phone
		if code == calendar.CodeTwoPhones {
			have = "2"
		}
		if have != want || (code == "") != (len(want) > 1) {
			t.Errorf("%q: %q %s, want %q", text, have, code, want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	e := icalendar.Entry{UID: "1", Title: "Rossi 333 0000001", Location: "333 0000002", Description: "333 0000003", Attendees: []icalendar.Person{{Name: "Ada Neri", Address: "tel:+39-333-0000004"}}}
	for order, want := range map[string]string{
		"attendee location description title": "+393330000004 Ada Neri",
		"location description title attendee": "+393330000002 Rossi",
		"description title":                   "+393330000003 Rossi",
		"title attendee":                      "+393330000001 Rossi",
		"":                                    " ",
		"nothing":                             " ",
	} {
		r := rules()
		r.PhoneFrom = strings.Fields(order)
		if a, code := calendar.Understand(e, r); a.Phone+" "+a.Name != want || (code == calendar.CodeNoPhone) != (want == " ") {
			t.Errorf("%s: %+v %s", order, a, code)
		}
	}
	e.Attendees = append(e.Attendees, icalendar.Person{Address: "tel:3330000005"})
	if _, code := calendar.Understand(e, rules()); code != calendar.CodeTwoPhones {
		t.Error(code)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	guest := []icalendar.Person{{Name: "info@example.com", Address: "mailto:info@example.com"}, {Name: "Ada Neri", Address: "mailto:ada@example.com"}}
	for _, c := range []struct {
		title  string
		guests []icalendar.Person
		want   string
	}{
		{"Mario Rossi 333 1234567", nil, "Mario Rossi"},
		{"Mario Rossi - tel. 333 1234567", nil, "Mario Rossi"},
		{"Mario Rossi (cell. 3331234567)", nil, "Mario Rossi"},
		{"Mario Rossi (333 1234567) controllo", nil, "Mario Rossi controllo"},
		{"333 1234567 Mario Rossi", nil, "Mario Rossi"},
		{"Tel: +39 333 1234567 / Mario Rossi", nil, "Mario Rossi"},
		{"Rossi - 333 1234567 - visita", nil, "Rossi - visita"},
		{"WhatsApp 3331234567, Rossi Srl.", nil, "Rossi Srl."},
		{"Giancarlo Cell 3331234567", nil, "Giancarlo"},
		{"Visita delle 15:30 Rossi 333 1234567", nil, "Visita delle 15:30 Rossi"},
		{"333 1234567", guest, "Ada Neri"},
		{"(333 1234567)", nil, ""},
		{"Rossi 333 1234567", guest, "Rossi"},
		{"Visita", []icalendar.Person{{Name: "Ugo Blu 333 1234567", Address: "mailto:x@example.com"}}, "Ugo Blu"},
		{"Visita", []icalendar.Person{{Name: "x@example.com", Address: "tel:3331234567"}}, "Visita"},
	} {
		a, code := calendar.Understand(icalendar.Entry{UID: "1", Title: c.title, Attendees: c.guests}, rules())
		if code != "" || a.Name != c.want || a.Phone != "+393331234567" {
			t.Errorf("%q: %q %q %s, want %q", c.title, a.Name, a.Phone, code, c.want)
		}
	}
}

func TestAttendeeAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"tel:+39-333-1234567": "+393331234567", "TEL:3331234567": "+393331234567", "sms:+393331234567?body=x": "+393331234567",
		"tel:+390212345678,,123#": "", "tel:+390212345678;postd=pp22": "", "tel:+390212345678;ext=12": "", "mailto:3331234567@example.com": "", "tel:112": "", "tel:+390299999999": "", "": "",
	} {
		if a, _ := calendar.Understand(icalendar.Entry{UID: "1", Attendees: []icalendar.Person{{Address: address}}}, rules()); a.Phone != want {
			t.Errorf("%s: %q", address, a.Phone)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("à", 300)
	seen := map[string]bool{}
	for _, c := range []struct{ uid, recurrence, want string }{
		{"a@b", "", "a@b"},
		{"a@b", "20261201T080000Z", "a@b/20261201T080000Z"},
		{" a\nb ", "", "ab"},
		{"run:12", "", "ical-run:12"},
		{"RUN:12", "", "ical-RUN:12"},
		{long, "", ""},
		{long, "20261201", ""},
		{long + "b", "", ""},
		{strings.Repeat("x", 255), "", strings.Repeat("x", 255)},
		{strings.Repeat("x", 254), "20261201", ""},
	} {
		a, _ := calendar.Understand(icalendar.Entry{UID: c.uid, Recurrence: c.recurrence}, rules())
		if n := len([]rune(a.Reference)); c.want != "" && a.Reference != c.want || n > puntuale.MaxReference || seen[a.Reference] || c.want == "" && !strings.HasPrefix(a.Reference, c.uid[:100]) {
			t.Errorf("%.20q %s: %q", c.uid, c.recurrence, a.Reference)
		}
		seen[a.Reference] = true
	}
}

// TestCodes: an entry that is none has its reference all the same, so that its cancellation finds the booking.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entry icalendar.Entry
		want  puntuale.ReasonCode
	}{
		{icalendar.Entry{Problem: icalendar.ProblemZone}, "calendar.zone_unknown"},
		{icalendar.Entry{Problem: icalendar.ProblemStart}, "calendar.start_unreadable"},
		{icalendar.Entry{Problem: icalendar.ProblemRule, AllDay: true}, "calendar.rule_unreadable"},
		{icalendar.Entry{Problem: icalendar.ProblemBusy}, "calendar.rule_too_often"},
		{icalendar.Entry{AllDay: true, Title: "3331234567"}, "calendar.all_day"},
		{icalendar.Entry{Cancelled: true}, "calendar.no_phone"},
	} {
		c.entry.UID = "1"
		a, code := calendar.Understand(c.entry, rules())
		if code != c.want || a.Reference != "1" || a.Cancelled != c.entry.Cancelled {
			t.Errorf("%+v: %+v %s", c.entry, a, code)
		}
	}
	r := rules()
	r.AllDay = true
	if a, code := calendar.Understand(icalendar.Entry{UID: "1", AllDay: true, Title: "3331234567"}, r); code != "" || a.Phone == "" {
		t.Error(a, code)
	}
}

// FuzzUnderstand: whatever the text, the search ends soon, and what it finds is a number.
func FuzzUnderstand(f *testing.F) {
	for _, text := range []string{"Mario 333 1234567", "<a href=\"tel:+39", strings.Repeat("02 03 04 ", 400), "1.2.3/4-5 (6) +7", "-::~:~::~", "____________\nTeams"} {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, title, description, name string) {
		begun := time.Now()
		a, code := calendar.Understand(icalendar.Entry{UID: title, Title: title, Description: description, Attendees: []icalendar.Person{{Name: name, Address: "tel:" + name}}}, rules())
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if (code == "") != (a.Phone != "") || a.Phone != "" && (a.Phone[0] != '+' || strings.Trim(a.Phone[1:], "0123456789") != "") {
			t.Errorf("%+v %s", a, code)
		}
	})
}
