package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// reconciledOf is the answer of a comparison.
type reconciledOf struct {
	Missing, Extra, Newer []string
	Different             []struct {
		Reference string
		Members   []string
	}
	Digest  string
	Applied bool
}

func (r reconciledOf) String() string {
	return say(r.Missing, r.Extra, r.Different, r.Newer)
}

// entry is a booking of Ada in a list.
func (b *booked) entry(reference, date, more string) string {
	return fmt.Sprintf(`{"reference":%q,"sequence":%q,"phone":"3331234567","nome":"Ada","appuntamento":%q%s}`, reference, b.sequence, date, more)
}

// truth is the body of a comparison of January 2027.
func truth(asOf int, more string, entries ...string) string {
	return fmt.Sprintf(`{"start":"2027-01-01","end":"2027-01-31","as_of":%d%s,"bookings":[%s]}`, asOf, more, strings.Join(entries, ","))
}

// reconcile compares, and then applies what the comparison found.
func (b *booked) reconcile(asOf int, more string, entries ...string) (found reconciledOf) {
	b.t.Helper()
	b.must(&found, "POST", "/api/bookings/reconcile", b.Key, truth(asOf, more, entries...))
	b.want("only compared", found.Applied, false)
	var done reconciledOf
	b.must(&done, "POST", "/api/bookings/reconcile", b.Key, truth(asOf, more+`,"apply":"`+found.Digest+`"`, entries...))
	b.want("applied", say(done.Applied, done), say(true, found))
	return found
}

func (b *booked) status(reference string) string {
	b.t.Helper()
	v := b.view(reference)
	return fmt.Sprint(v.Status, " ", v.Revision)
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Sets": reconcileSets, "Digest": reconcileDigest, "Others": reconcileOthers, "Told": reconcileTold, "Cap": reconcileCap, "Faults": reconcileFaults,
		"Held": reconcileHeld, "Erased": reconcileErased,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{}, func(t *testing.T, s *service) { test(t, newBooked(t, s)) })
		})
	}
}

// A list makes what is missing, cancels what it lacks, changes what differs, and leaves what changed later.
func reconcileSets(_ *testing.T, b *booked) {
	const day = "20/01/2027 15:30"
	for _, reference := range []string{"same", "moved", "extra", "newer", "gone"} {
		b.put(reference, strings.Replace(b.entry("", day, `,"as_of":1`), `"reference":"",`, "", 1))
	}
	b.put("newer", `{"nome":"Eva","as_of":9}`)
	b.put("february", strings.Replace(b.entry("", "20/02/2027 15:30", ""), `"reference":"",`, "", 1))
	b.must(nil, "DELETE", "/api/bookings/gone", b.Key, "")
	entries := []string{b.entry("same", day, ""), strings.Replace(b.entry("moved", "21/01/2027 09:00", ""), "Ada", "Ida", 1), b.entry("newer", day, ""), b.entry("new", day, ""), b.entry("gone", day, "")}
	found := b.reconcile(5, "", entries...)
	b.want("found", found, "[new] [extra] [{gone [status]} {moved [appuntamento nome]}] [newer]")
	for reference, want := range map[string]string{"same": "open 1", "moved": "open 2", "extra": "cancelled 2", "newer": "open 2", "new": "open 1", "gone": "open 3", "february": "open 1"} {
		b.want(reference, b.status(reference), want)
	}
	b.want("nobody is told", b.states("moved"), "[1 CANCELLED 0 PENDING 1 PENDING]")
	b.want("cancelled", b.states("extra"), "[0 CANCELLED 1 CANCELLED]")
	b.want("equal now", b.reconcile(5, "", entries...), "[] [] [] [newer]")
	b.refused("PUT", "/api/bookings/same", b.Key, `{"nome":"Eva","as_of":4}`, http.StatusConflict)

	b.must(nil, "POST", "/api/stop/"+b.sequence, b.Key, `{"phone":"333 123 4567","reference":"same"}`)
	b.want("what a stop cancelled", b.reconcile(6, "", entries...), "[] [] [] [newer]")
	b.want("nothing in the period", b.reconcile(7, `,"sequence":"999999"`), "[] [] [] []")
}

func (b *booked) refused(method, target, key, body string, status int) string {
	b.t.Helper()
	w := b.call(method, target, key, body)
	if w.status != status {
		b.t.Fatalf("%s %s: %d %s, want %d", method, target, w.status, w.body, status)
	}
	return w.body
}

// Only the differences that the caller has seen are applied.
func reconcileDigest(_ *testing.T, b *booked) {
	b.book("a")
	var found reconciledOf
	b.must(&found, "POST", "/api/bookings/reconcile", b.Key, truth(5, ""))
	b.want("extra", found, "[] [a] [] []")
	for what, body := range map[string]string{
		"made up": truth(5, `,"apply":"abc"`), "another as_of": truth(6, `,"apply":"`+found.Digest+`"`), "told": truth(5, `,"silent":false,"apply":"`+found.Digest+`"`),
		"another list": truth(5, `,"apply":"`+found.Digest+`"`, b.entry("b", "20/01/2027 15:30", "")),
	} {
		if got := b.refused("POST", "/api/bookings/reconcile", b.Key, body, http.StatusConflict); !strings.Contains(got, "digest") {
			b.t.Errorf("%s: %s", what, got)
		}
	}
	b.put("a", `{"nome":"Ida"}`)
	b.refused("POST", "/api/bookings/reconcile", b.Key, truth(5, `,"apply":"`+found.Digest+`"`), http.StatusConflict)
	b.want("untouched", b.status("a"), "open 2")
	b.want("again", b.reconcile(5, ""), "[] [a] [] []")
	b.want("cancelled", b.status("a"), "cancelled 3")
}

// What a rule or a page made is not the program's to judge.
func reconcileOthers(t *testing.T, b *booked) {
	b.book("rule")
	b.book("start")
	if _, err := b.db.SQL.Exec(`update booking_change set door = 2 where booking_id = (select id from booking where reference = 'rule')`); err != nil {
		t.Fatal(err)
	}
	b.want("not seen", b.reconcile(5, "", b.entry("rule", "25/01/2027 10:00", "")), "[] [start] [] []")
	b.want("untouched", b.status("rule"), "open 1")
	b.must(nil, "POST", "/api/start/"+b.sequence, b.Key, `{"phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30","reference":"crm"}`)
	b.want("a start is the API", b.reconcile(6, ""), "[] [crm] [] []")
}

// People hear of it only if the call says so.
func reconcileTold(_ *testing.T, b *booked) {
	b.book("a")
	b.book("b")
	b.reconcile(5, `,"silent":false`, b.entry("a", "21/01/2027 15:30", ""))
	b.want("moved", b.states("a"), "[0 PENDING 1 CANCELLED 1 PENDING 2 PENDING]")
	b.want("cancelled", b.states("b"), "[0 CANCELLED 1 CANCELLED 4 PENDING]")
}

// A comparison counts no call, and applying counts one.
func reconcileCap(t *testing.T, b *booked) {
	before := b.book("x").Used
	b.reconcile(5, "", b.entry("a", "20/01/2027 15:30", ""), b.entry("b", "20/01/2027 15:30", ""), b.entry("c", "20/01/2027 15:30", ""))
	b.want("one call", b.put("x", `{"nome":"Z"}`).Used-before, 2)
	if _, err := b.db.SQL.Exec(`update client set cap = 1`); err != nil {
		t.Fatal(err)
	}
	var found reconciledOf
	b.must(&found, "POST", "/api/bookings/reconcile", b.Key, truth(9, ""))
	b.refused("POST", "/api/bookings/reconcile", b.Key, truth(9, `,"apply":"`+found.Digest+`"`), http.StatusTooManyRequests)
	b.want("untouched", b.status("a"), "open 1")
}

// A list with faults changes nothing, and all of them are named.
func reconcileFaults(_ *testing.T, b *booked) {
	b.book("a")
	got := b.refused("POST", "/api/bookings/reconcile", b.Key, `{"start":"x","bookings":[{"reference":"r1","phone":"12"},{"reference":"r1"},{"phone":"3331234567"}]}`, http.StatusUnprocessableEntity)
	for _, at := range []string{"body.end", "body.as_of", "body.bookings[1].reference"} {
		if !strings.Contains(got, `"`+at+`"`) {
			b.t.Errorf("%s is not named: %s", at, got)
		}
	}
	got = b.refused("POST", "/api/bookings/reconcile", b.Key, truth(5, "", `{"reference":"r1","phone":"12","sequence":"`+b.sequence+`"}`, `{"reference":"r2","sequence":"99"}`, b.entry("r3", "nie", ""), `{"phone":"3331234567"}`), http.StatusUnprocessableEntity)
	for _, at := range []string{"body.bookings[0].phone", "body.bookings[1].sequence", "body.bookings[2].appuntamento", "body.bookings[3].reference"} {
		if !strings.Contains(got, `"`+at+`"`) {
			b.t.Errorf("%s is not named: %s", at, got)
		}
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`{"reference":"x%d"}`, i)
	}
	if got = b.refused("POST", "/api/bookings/reconcile", b.Key, truth(5, "", many...), http.StatusUnprocessableEntity); strings.Count(got, `"location"`) > 101 {
		b.t.Errorf("%d faults", strings.Count(got, `"location"`))
	}
	b.refused("POST", "/api/bookings/reconcile", b.Key, truth(5, "", strings.Split(strings.Repeat("{}\n", 10_001), "\n")[:10_001]...), http.StatusUnprocessableEntity)
	b.want("untouched", b.status("a"), "open 1")
}

// While a client is held after a restore, lists change nothing.
func reconcileHeld(t *testing.T, b *booked) {
	b.book("a")
	if _, err := b.db.SQL.Exec(`update client set held_at = 1`); err != nil {
		t.Fatal(err)
	}
	b.refused("POST", "/api/bookings/reconcile", b.Key, truth(5, ""), http.StatusConflict)
}

// A list does not bring an erased person back.
func reconcileErased(_ *testing.T, b *booked) {
	b.book("a")
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
	b.clock.Advance(time.Second)
	other := strings.Replace(b.entry("b", "20/01/2027 15:30", ""), "3331234567", "3337654321", 1)
	b.want("skipped", b.reconcile(5, "", b.entry("a", "20/01/2027 15:30", ""), other), "[b] [] [] []")
}
