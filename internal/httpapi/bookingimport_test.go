package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type importedBookingsOf struct {
	Rows, Made, Changed, Same int
	Columns                   []struct{ Name, Field string }
	Refused                   []struct {
		Reason string
		Count  int
	}
	Lines []struct {
		Line          int
		Reason, Value string
	}
}

func (b *booked) importing(query, file string) (i importedBookingsOf) {
	b.t.Helper()
	b.must(&i, "POST", "/api/bookings/import"+query, b.Key, file, "Content-Type", "text/csv")
	return i
}

// appointments is a file as a practice exports it: with other columns, and with rows that are no appointments.
const appointments = `Codice;Nome;Cellulare;Data e ora;Stato;Note
v1;Ada;333 1234567;20/01/2027 15:30;;
v2;Eva;3337654321;21/01/2027 09:00;Confermato;prima visita
;Ida;3331111111;21/01/2027 09:00;;
v3;Ugo;12;21/01/2027 09:00;;
v4;Leo;3332222222;domani;;
v1;Ada;333 1234567;22/01/2027 15:30;;
v5;Mia;3334444444;22/01/2027 15:30;forse;
`

func TestBookingImport(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBooked(t, s)
		query := "?sequence=" + b.sequence
		dry := b.importing(query+"&dry_run=true", appointments)
		b.want("columns", dry.Columns, "[{Codice reference} {Nome nome} {Cellulare phone} {Data e ora appuntamento} {Stato status} {Note note}]")
		b.want("dry", say(dry.Rows, dry.Made, dry.Changed, dry.Same, dry.Refused), "7 2 0 0 [{duplicate 1} {invalid_phone 1} {bad_field 3}]")
		b.refused("GET", "/api/bookings/v1", b.Key, "", http.StatusNotFound)
		before := b.book("x").Used
		done := b.importing(query, appointments)
		done.Columns = nil
		dry.Columns = nil
		b.want("done", done, dry)
		var lines []string
		for _, l := range done.Lines {
			lines = append(lines, fmt.Sprint(l.Line, " ", l.Reason))
			if l.Value == "" {
				t.Errorf("line %d has no reason", l.Line)
			}
		}
		b.want("lines", strings.Join(lines, ", "), "4 bad_field, 5 invalid_phone, 6 bad_field, 7 duplicate, 8 bad_field")
		b.want("v2", b.status("v2"), "confirmed 1")
		b.want("v1", b.states("v1"), "[0 PENDING 1 PENDING]")
		b.want("one call", b.put("x", `{"nome":"Z"}`).Used-before, 2)
		again := b.importing(query, strings.Replace(appointments, "20/01/2027 15:30", "20/01/2027 16:30", 1))
		b.want("again", say(again.Made, again.Changed, again.Same), "0 1 1")
		b.want("mapped", b.importing(query+"&columns=reference:Codice,phone:Cellulare,appuntamento:Data+e+ora", appointments).Changed, 1)

		for what, query := range map[string]string{
			"no sequence": "", "another's": "?sequence=999", "no phone": query + "&columns=reference:Codice", "no reference": query + "&columns=phone:Cellulare", "reserved": query + "&columns=reference:Codice,phone:Cellulare,as_of:Note",
			"unknown column": query + "&columns=reference:X,phone:Cellulare", "not a flag": query + "&dry_run=x", "not a parameter": query + "&check=true",
		} {
			if got := b.call("POST", "/api/bookings/import"+query, b.Key, appointments, "Content-Type", "text/csv"); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
		files, err := filepath.Glob("../roster/testdata/exports/*.[cx][sl]*")
		if err != nil || len(files) < 15 {
			t.Fatalf("%d example files (%v)", len(files), err)
		}
		for _, name := range files { // address books have no appointments: a reference may be missing, and each row's date is
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			kind := "text/csv"
			if strings.HasSuffix(name, ".xlsx") {
				kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
			}
			got := b.call("POST", "/api/bookings/import"+query+"&dry_run=true", b.Key, string(file), "Content-Type", kind)
			noReference := strings.Count(got.body, `"location"`) == 1 && strings.Contains(got.body, "no column has the reference")
			if got.status != http.StatusOK && !noReference || got.status == http.StatusOK && (!strings.Contains(got.body, `"field":"phone"`) || !strings.Contains(got.body, `"made":0`)) {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if _, err := b.db.SQL.Exec(`update client set held_at = 1`); err != nil {
			t.Fatal(err)
		}
		b.refused("POST", "/api/bookings/import"+query, b.Key, appointments, http.StatusConflict)
	})
}

// TestBookingDatesShareAColumn: two fields may have one column. Its dates are turned once, as the file says or the caller does.
func TestBookingDatesShareAColumn(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	b := newBooked(t, s)
	const file = "Codice,Cellulare,Quando,Nome\nm1,3331234567,02/28/2027 10:00,Ada\nm2,3331234568,03/04/2027 10:00,Eva\n"
	query := "?sequence=" + b.sequence + "&columns=reference:1,phone:2,appuntamento:3,scadenza:3,nome:4"
	for _, dates := range []string{"", "&dates=appuntamento:mdy", "&dates=scadenza:mdy", "&dates=scadenza,appuntamento:mdy"} {
		if got := b.importing(query+dates, file); got.Made+got.Changed+got.Same != 2 {
			t.Errorf("%s: %+v", dates, got)
		}
		if got := b.call("GET", "/api/bookings/m2", b.Key, "").body; !strings.Contains(got, `"appuntamento":"2027-03-04`) && !strings.Contains(got, `"appuntamento":"04/03/2027`) {
			t.Errorf("%s: %s", dates, got)
		}
	}
	if got := b.call("POST", "/api/bookings/import"+query+"&dates=appuntamento:mdy,scadenza:dmy", b.Key, file, "Content-Type", "text/csv"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "query.dates") {
		t.Errorf("two orders: %d %s", got.status, got.body)
	}
}

// TestMainDateIsJudged: the main date is a date also if the caller says that no column has dates, so month-first dates are read
// as such, and dates of both orders ask.
func TestMainDateIsJudged(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	b := newBooked(t, s)
	const file = "Codice,Cellulare,Quando,Nome\nm1,3331234567,02/28/2027 10:00,Ada\nm2,3331234568,03/04/2027 10:00,Eva\n"
	query := "?sequence=" + b.sequence + "&dates=none"
	b.importing(query, file)
	if got := b.call("GET", "/api/bookings/m2", b.Key, "").body; !strings.Contains(got, `"appuntamento":"04/03/2027`) {
		t.Errorf("month first: %s", got)
	}
	if got := b.call("POST", "/api/bookings/import"+query, b.Key, file+"m3,3331234569,28/02/2027 10:00,Ida\n", "Content-Type", "text/csv"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "query.dates") {
		t.Errorf("both orders: %d %s", got.status, got.body)
	}
}
