//go:build figures

package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale/internal/store/storetest"
)

const (
	figureRounds   = 400
	figureBookings = 1_000_000
	figurePage     = 50 * time.Millisecond // the longest that a day's page may take, at the median

	figureEntries   = 10_000
	figureReconcile = 3 * time.Second // the longest that a comparison of as many unchanged entries may take, at the median
)

// visitFigure has as many steps as the plain sequence beside it, all around the date.
const visitFigure = `"steps":[{"text":"Fra due giorni, {{nome}}","timing":{"anchor":"appuntamento","offset":{"amount":2,"unit":"days","direction":"before"}}},
{"text":"Domani, {{nome}}: {{appuntamento}}","timing":{"anchor":"appuntamento","offset":{"amount":1,"unit":"days","direction":"before"}}},
{"text":"Come è andata?","timing":{"anchor":"appuntamento","offset":{"amount":2,"unit":"hours","direction":"after"}}}]`

// TestBookingFigures measures calls for bookings against calls of the contract, alternately. Then it measures lists
// beside 1,000,000 bookings of one client. One call runs at a time, from the router to the answer.
func TestBookingFigures(t *testing.T) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) { // one after the other
			b := newBooked(t, newService(t, options{driver: driver}))
			bookingCalls(t, b)
			bookingLists1M(t, b)
			reconcile10000(t, b)
		})
	}
}

// timed returns how long a call took. It checks nothing but the status.
func (b *booked) timed(method, target, body string) time.Duration {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+b.Key)
	w := httptest.NewRecorder()
	begun := time.Now()
	b.handler.ServeHTTP(w, r)
	took := time.Since(begun)
	if w.Code != http.StatusOK {
		b.t.Fatalf("%s %s %s: %d %s", method, target, body, w.Code, w.Body)
	}
	return took
}

func bookingCalls(t *testing.T, b *booked) {
	t.Helper()
	var visits, plain struct{ ID string }
	b.must(&visits, "POST", "/api/sequences", b.Key, `{"name":"Visita","booking":{"date":"appuntamento"},`+visitFigure+`}`)
	b.must(&plain, "POST", "/api/sequences", b.Key, `{"name":"Promemoria",`+visitFigure+`}`)
	same := b.put("same", `{"sequence":"`+visits.ID+`","phone":"+393330000001","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	took := map[string][]time.Duration{}
	for i := range figureRounds {
		phone := fmt.Sprintf("+39334%07d", i)
		moved := fmt.Sprintf("moved%d", i)
		b.put(moved, `{"sequence":"`+visits.ID+`","phone":"`+phone+`","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
		for _, c := range []struct{ what, method, target, body string }{
			{"details", "GET", "/api/messages/details?message_ids[]=" + strings.Join(same.ID, ","), ""},
			{"same", "PUT", "/api/bookings/same", `{"nome":"Ada","appuntamento":"20/01/2027 15:30"}`},
			{"stop", "POST", "/api/stop/" + plain.ID, `{"phone":"+393350000001"}`},
			{"as_of", "PUT", "/api/bookings/same", fmt.Sprintf(`{"nome":"Ada","appuntamento":"20/01/2027 15:30","as_of":%d}`, i+1)},
			{"start", "POST", "/api/start/" + plain.ID, `{"phone":"` + phone + `","nome":"Ada","appuntamento":"20/01/2027 15:30"}`},
			{"move", "PUT", "/api/bookings/" + moved, `{"appuntamento":"21/01/2027 15:30"}`},
		} {
			took[c.what] = append(took[c.what], b.timed(c.method, c.target, c.body))
		}
	}
	median := func(what string) time.Duration {
		slices.Sort(took[what])
		return took[what][figureRounds/2]
	}
	for _, f := range []struct {
		what, than string
		bound      float64
	}{{"same", "details", 1.2}, {"as_of", "stop", 1}, {"move", "start", 2.5}} {
		ratio := float64(median(f.what)) / float64(median(f.than))
		t.Logf("%s %v, %s %v: %.2f, at most %.1f", f.what, median(f.what), f.than, median(f.than), ratio, f.bound)
		if ratio > f.bound {
			t.Errorf("%s takes %.2f times as long as %s", f.what, ratio, f.than)
		}
	}
}

func bookingLists1M(t *testing.T, b *booked) {
	t.Helper()
	const columns = "client_id, sequence_id, session_id, zone, fields, status, status_by, revision, as_of, as_of_kind, told_at, moments, created_at, changed_at, erased_at"
	b.book("one")
	if _, err := b.db.SQL.Exec(fmt.Sprintf(`insert into booking (id, reference, phone, date_at, %s) with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)
 select id + i, 'x' || i, '+39335' || i, date_at + cast(i %% 365 as bigint) * 86400000000, %[1]s from booking cross join n where reference = 'one'`, columns, figureBookings)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.SQL.Exec("analyze"); err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct{ what, query string }{
		{"a day", "start=2027-06-10&end=2027-06-10"},
		{"a day, 1,000 a page", "start=2027-06-10&end=2027-06-10&limit=1000"},
		{"a day, open or confirmed", "start=2027-06-10&end=2027-06-10&status=open,confirmed"},
		{"a day, a status that none has", "start=2027-06-10&end=2027-06-10&status=arrived"},
		{"a person", "phone=%2B39335500000"},
		{"a day, a text that none has", "start=2027-06-10&end=2027-06-10&text=zebra"},
		{"a day, one sequence", "start=2027-06-10&end=2027-06-10&sequence=" + b.sequence},
	} {
		var all []time.Duration
		for range 21 {
			all = append(all, b.timed("GET", "/api/bookings?"+list.query, ""))
		}
		slices.Sort(all)
		t.Logf("%-32s median %6.1f ms, most %6.1f ms", list.what, all[10].Seconds()*1000, all[20].Seconds()*1000)
		if all[10] > figurePage {
			t.Errorf("%s takes %v at the median", list.what, all[10])
		}
	}
}

// reconcile10000 compares a list of bookings that are all as the list says, among 1,000,000 others.
func reconcile10000(t *testing.T, b *booked) {
	t.Helper()
	const columns = "client_id, sequence_id, session_id, phone, zone, fields, status, status_by, revision, as_of, as_of_kind, told_at, moments, created_at, changed_at, erased_at"
	for _, statement := range []string{
		`insert into booking (id, reference, date_at, ` + columns + `) with recursive n(i) as (select 1 union all select i + 1 from n where i < ` + fmt.Sprint(figureEntries) + `)
 select id + 2000000 + i, 'y' || i, date_at + cast(400 + i % 100 as bigint) * 86400000000, ` + columns + ` from booking cross join n where reference = 'one'`,
		`insert into booking_change (client_id, booking_id, revision, at, door, what) select client_id, id, 1, created_at, 1, '["created"]' from booking where reference like 'y%'`,
		"analyze",
	} {
		if _, err := b.db.SQL.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	entries := make([]string, figureEntries)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"reference":"y%d","sequence":%q,"phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`, i+1, b.sequence)
	}
	body := `{"start":"2028-01-01","end":"2028-12-31","as_of":7,"bookings":[` + strings.Join(entries, ",") + `]}`
	var all []time.Duration
	for range 5 {
		all = append(all, b.timed("POST", "/api/bookings/reconcile", body))
	}
	var found reconciledOf
	b.must(&found, "POST", "/api/bookings/reconcile", b.Key, body)
	if found.String() != "[] [] [] []" {
		t.Fatalf("not unchanged: %.500s", found)
	}
	apply := b.timed("POST", "/api/bookings/reconcile", strings.Replace(body, `"as_of":7`, `"as_of":7,"apply":"`+found.Digest+`"`, 1))
	slices.Sort(all)
	t.Logf("%d unchanged entries: median %v, most %v; applied in %v", figureEntries, all[2], all[4], apply)
	if all[2] > figureReconcile {
		t.Errorf("a comparison of %d entries takes %v", figureEntries, all[2])
	}
}
