package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/bookings"
	"puntuale/internal/replan"
)

// replanOf is the answer about a replan.
type replanOf struct {
	State                              string
	Bookings, Examined                 int
	Complete                           bool
	Planned, Moved, Cancelled, Refused int
	Examples                           []struct{ Reference string }
}

func (r replanOf) String() string {
	return fmt.Sprintf("%s %d/%d +%d ~%d -%d !%d", r.State, r.Examined, r.Bookings, r.Planned, r.Moved, r.Cancelled, r.Refused)
}

// edited is the sequence visit with another reminder, with a message two hours before the visit, and without the question
// after it.
var edited = func() string {
	steps := strings.Split(strings.Replace(visit, `{{nome}}, ti aspettiamo {{appuntamento}}`, `A domani, {{nome}}: {{appuntamento}}`, 1), "\n")
	for i := range 5 {
		steps[i+1] = strings.Replace(steps[i+1], "{", fmt.Sprintf(`{"id":"%d",`, i), 1)
	}
	steps[6] = `{"text":"Fra due ore","timing":{"anchor":"appuntamento","offset":{"amount":2,"unit":"hours","direction":"before"}}}]}`
	return strings.Join(steps, "\n")
}()

// dying is a planner that fails after some bookings, as a node does that is killed.
type dying struct {
	replan.Planner
	left *int
}

var errKilled = errors.New("killed")

func (d dying) Apply(ctx context.Context, reference string) (puntuale.ReplanCounts, error) {
	if *d.left--; *d.left < 0 {
		return puntuale.ReplanCounts{}, errKilled
	}
	return d.Planner.Apply(ctx, reference)
}

// node returns a node that applies edited sequences. It dies after so many bookings.
func (b *booked) node(left int) *replan.Runner {
	return replan.New(replan.Config{
		Store: b.store, Bound: b.store.ChunkBound, Node: func() puntuale.NodeID { return 1 }, Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
		Planner: func(ctx context.Context, r puntuale.Replan) (replan.Planner, error) {
			p, err := bookings.NewPlanner(ctx, b.control, r)
			return dying{p, &left}, err
		},
	})
}

func (b *booked) replan(method, more, body string) (r replanOf) {
	b.t.Helper()
	b.must(&r, method, "/api/sequences/"+b.sequence+"/replan"+more, b.Key, body)
	return r
}

func (b *booked) edit(body string) {
	b.t.Helper()
	b.clock.Advance(time.Second)
	b.must(nil, "PUT", "/api/sequences/"+b.sequence, b.Key, body)
}

// all lets a node work until nothing is left.
func (b *booked) all(node puntuale.NodeID) {
	b.t.Helper()
	for w := b.node(1000); w.Round(b.t.Context(), node); {
	}
}

func TestReplan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Edited": replanEdited, "Killed": replanKilled, "States": replanStates, "Again": replanAgain, "Held": replanHeld, "Refused": replanRefused, "Past": replanPast, "Zone": replanZone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{}, func(t *testing.T, s *service) { test(t, newBooked(t, s)) })
		})
	}
}

// An edited text replaces the pending one, an added step is planned, a removed one is taken back, and nothing that was
// sent is sent again.
func replanEdited(_ *testing.T, b *booked) {
	b.want("never", b.replan("GET", "", ""), "none 0/0 +0 ~0 -0 !0")
	first := b.book("a")
	b.sendNow(first.ID[0])
	b.book("arrived")
	b.put("arrived", `{"status":"confirmed"}`)
	b.book("off")
	b.must(nil, "DELETE", "/api/bookings/off?silent=true", b.Key, "")
	b.edit(edited)
	b.want("still the old text", b.states("a"), "[0 COMPLETED 1 PENDING]")
	used := b.put("a", `{}`).Used
	dry := b.replan("POST", "", `{"dry_run":true}`)
	b.want("dry", say(dry, dry.Complete, len(dry.Examples), dry.Examples[0].Reference), "none 2/2 +2 ~2 -0 !0 true 2 a")
	b.want("nothing changed", b.states("a"), "[0 COMPLETED 1 PENDING]")
	b.want("started", b.replan("POST", "", ""), "running 0/2 +0 ~0 -0 !0")
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan", b.Key, "", http.StatusConflict)
	b.all(1)
	done := b.replan("GET", "", "")
	b.want("done", say(done, done.Complete), "done 2/2 +2 ~2 -0 !0 true")
	b.want("a", b.states("a"), "[0 COMPLETED 1 PENDING 6 PENDING]")
	b.want("off", b.view("off").Revision, 2)
	b.want("replaced", b.details(b.Key, first.ID[1])[0].Stato, "RESCHEDULED")
	v := b.view("a")
	b.want("history", v.History[len(v.History)-1], "{api [replanned]}")
	b.want("text", b.details(b.Key, v.Messages[1].ID)[0].Contenuto, "A domani, Ada: 20/01/2027 15:30")
	b.want("counts no call", b.put("a", `{}`).Used, used)

	b.edit(visit)
	b.replan("POST", "", "")
	b.all(1)
	b.want("back", b.replan("GET", "", ""), "done 2/2 +0 ~2 -2 !0")
	b.want("a", b.states("a"), "[0 COMPLETED 6 CANCELLED 1 PENDING]")
	b.replan("POST", "", "{}")
	b.all(1)
	b.want("no change", b.replan("GET", "", ""), "done 2/2 +0 ~0 -0 !0")
}

// A node that dies in the middle leaves the rest to another one. What it did is not done twice.
func replanKilled(_ *testing.T, b *booked) {
	const n = 120
	for i := range n {
		b.book(fmt.Sprint("k", i))
	}
	b.edit(edited)
	b.replan("POST", "", "")
	w := b.node(70)
	w.Round(b.t.Context(), 1)
	b.want("killed", b.replan("GET", "", "").Examined, 50)
	b.all(2)
	b.want("the dead node still owns it", b.replan("GET", "", "").Examined, 50)
	b.clock.Advance(31 * time.Second)
	b.all(2)
	got := b.replan("GET", "", "")
	b.want("done", say(got.State, got.Examined, got.Bookings), "done 120 120")
	for i := range n {
		reference := fmt.Sprint("k", i)
		b.want(reference, say(b.states(reference), b.view(reference).Revision), "[0 PENDING 1 PENDING 6 PENDING] 2")
	}
	w.Round(b.t.Context(), 1)
	b.want("over", b.replan("GET", "", "").Examined, 120)
}

func replanStates(t *testing.T, b *booked) {
	b.book("a")
	b.edit(edited)
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan/pause", b.Key, "", http.StatusConflict)
	b.replan("POST", "", "")
	b.want("paused", b.replan("POST", "/pause", "").State, "paused")
	b.all(1)
	b.want("waits", b.states("a"), "[0 PENDING 1 PENDING]")
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan", b.Key, "", http.StatusConflict)
	b.want("resumed", b.replan("POST", "/resume", "").State, "running")
	b.want("cancelled", b.replan("POST", "/cancel", "").State, "cancelled")
	b.all(1)
	b.want("untouched", b.states("a"), "[0 PENDING 1 PENDING]")
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan/resume", b.Key, "", http.StatusConflict)
	for _, path := range []string{"", "/pause", "/resume", "/cancel"} {
		b.refused("POST", "/api/sequences/9999/replan"+path, b.Key, "", http.StatusNotFound)
	}
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan", b.Key, `{"dry":true}`, http.StatusUnprocessableEntity)
	var plain struct{ ID string }
	b.must(&plain, "POST", "/api/sequences", b.Key, `{"name":"Altra","steps":[{"text":"Ciao","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	b.refused("POST", "/api/sequences/"+plain.ID+"/replan", b.Key, "", http.StatusConflict)

	b.replan("POST", "", "")
	b.must(nil, "DELETE", "/api/sequences/"+b.sequence+"?pending=keep", b.Key, "")
	b.all(1)
	var state puntuale.ReplanState
	if err := b.db.SQL.QueryRow(`select state from replan`).Scan(&state); err != nil {
		t.Fatal(err)
	}
	b.want("the sequence was deleted", state, puntuale.ReplanCancelled)
	b.want("as it was", b.states("a"), "[0 PENDING 1 PENDING]")
}

// If the sequence is edited while it is applied, all bookings get its newest form.
func replanAgain(_ *testing.T, b *booked) {
	for i := range 60 {
		b.book(fmt.Sprint("k", i))
	}
	b.edit(edited)
	b.replan("POST", "", "")
	b.node(55).Round(b.t.Context(), 1)
	b.edit(strings.Replace(edited, "A domani", "Ci vediamo domani", 1))
	b.all(1)
	b.want("done", b.replan("GET", "", "").State, "done")
	for _, reference := range []string{"k0", "k59"} {
		m := b.view(reference).Messages
		for _, last := range m {
			if last.Stato == "PENDING" && last.Step == "1" {
				b.want(reference, b.details(b.Key, last.ID)[0].Contenuto, "Ci vediamo domani, Ada: 20/01/2027 15:30")
			}
		}
	}
}

// After a restore nothing is replanned until a person released the messages.
func replanHeld(t *testing.T, b *booked) {
	b.book("a")
	b.edit(edited)
	b.replan("POST", "", "")
	hold := func(at int) {
		if _, err := b.db.SQL.Exec(fmt.Sprint(`update client set held_at = `, at)); err != nil {
			t.Fatal(err)
		}
	}
	hold(1)
	b.all(1)
	b.want("held", b.replan("GET", "", ""), "held 0/1 +0 ~0 -0 !0")
	hold(0)
	b.all(1)
	b.want("released", b.replan("GET", "", ""), "done 1/1 +1 ~1 -0 !0")
	hold(1)
	b.refused("POST", "/api/sequences/"+b.sequence+"/replan", b.Key, "", http.StatusConflict)
}

// A booking that lacks a field of the new text stays as it was, and the others go on.
func replanRefused(_ *testing.T, b *booked) {
	b.book("a")
	b.put("b", `{"sequence":"`+b.sequence+`","phone":"3337654321","nome":"Eva","appuntamento":"20/01/2027 15:30","medico":"Rossi"}`)
	b.edit(strings.Replace(visit, "ti aspettiamo", "{{medico}} ti aspetta", 1))
	dry := b.replan("POST", "", `{"dry_run":true}`)
	b.want("dry", dry, "none 2/2 +0 ~1 -0 !1")
	b.replan("POST", "", "")
	b.all(1)
	b.want("done", b.replan("GET", "", ""), "done 2/2 +0 ~1 -0 !1")
	b.want("a", b.states("a"), "[0 PENDING 1 PENDING]")
	b.want("b", b.states("b"), "[0 PENDING 1 PENDING]")
}

// A visit of yesterday still gets a question that was added now; one of last month does not.
func replanPast(_ *testing.T, b *booked) {
	b.put("old", `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"`+b.clock.Now().AddDate(0, 0, -40).Format("02/01/2006 15:04")+`","status":"arrived"}`)
	b.put("recent", `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"`+b.clock.Now().AddDate(0, 0, -1).Format("02/01/2006 15:04")+`","status":"arrived"}`)
	for _, reference := range []string{"old", "recent"} {
		for _, id := range b.view(reference).Messages {
			if id.Stato == "PENDING" {
				b.sendNow(id.ID)
			}
		}
	}
	b.edit(strings.Replace(visit, `"amount":2,"unit":"hours"`, `"amount":2,"unit":"days"`, 1))
	b.want("one", b.replan("POST", "", `{"dry_run":true}`).Bookings, 1)
	b.replan("POST", "", "")
	b.all(1)
	b.want("asked", strings.Contains(fmt.Sprint(b.states("recent")), "5 PENDING"), true)
}

// A replan moves no appointment, and tells nobody, even if its date would be read in another zone now.
func replanZone(_ *testing.T, b *booked) {
	b.book("a")
	b.put("a", `{"status":"confirmed"}`)
	date := b.must(nil, "GET", "/api/bookings/a", b.Key, "").body
	b.must(nil, "PATCH", "/api/client/"+b.clientAccount.ID, b.partner, `{"timezone":"America/New_York"}`)
	b.edit(edited)
	b.replan("POST", "", "")
	b.all(1)
	v := b.view("a")
	b.want("status", v.Status, "confirmed")
	for _, m := range v.Messages {
		if m.Step == "2" {
			b.t.Errorf("somebody is told of a move: %+v", m)
		}
	}
	if !strings.Contains(date, `"date":"2027-01-20T14:30`) || !strings.Contains(b.must(nil, "GET", "/api/bookings/a", b.Key, "").body, `"date":"2027-01-20T14:30`) {
		b.t.Errorf("the date moved: %s", date)
	}
}
