package automation_test

import (
	"context"
	"fmt"
	"testing"

	"puntuale"
	"puntuale/internal/store"
)

// Several runners work at the same time, and their servers crash before or after some transactions. Still, each call of
// the hook makes one booking, and each booking triggers the other rule once.
func TestBookedTogether(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		visit := w.sequence("Ciao", func(q *puntuale.Sequence) { q.Booking = "giorno" })
		hook := w.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p", "giorno": "/g"}},
			[]puntuale.Action{{Kind: puntuale.ActionBook, Sequence: visit}, {Kind: puntuale.ActionTag, Add: []string{"prenotato"}}})
		noted := w.rule(puntuale.Trigger{Kind: puntuale.TriggerBooking, Sequence: visit, Is: puntuale.BookingIsCreated}, []puntuale.Action{{Kind: puntuale.ActionSend, Text: "Fissato"}})
		const people = 20
		day := puntuale.DateOf(w.DB.Clock.Now().AddDate(0, 0, 30)).String()
		for i := range people {
			call := puntuale.HookCall{Automation: hook, Key: fmt.Sprint(i), Phone: fmt.Sprintf("+3933300001%02d", i), Fields: map[string]string{"giorno": day}, At: w.DB.Clock.Now()}
			if _, err := w.CallHook(t.Context(), w.c.ID, call); err != nil {
				t.Fatal(err)
			}
		}
		w.together(60)
		for what, text := range map[string]string{
			"bookings":                    "select count(*) from booking where client_id = $1",
			"people":                      "select count(distinct phone) from booking where client_id = $1",
			"changes":                     "select count(*) from booking_change where client_id = $1",
			"pairs of texts":              "select count(*) / 2 from message where client_id = $1 and origin = 4",
			"people, each with two texts": "select count(*) from (select phone from message where client_id = $1 and origin = 4 group by phone having count(*) = 2) x",
		} {
			if n := w.Int(text, w.c.ID); n != people {
				t.Errorf("%s: %d", what, n)
			}
		}
		for _, id := range []puntuale.AutomationID{hook, noted} {
			if n := len(w.log(id)); n != people {
				t.Errorf("%d lines", n)
			}
		}
	})
}

// A booking that changes after a rule has planned is planned again: the rule never overwrites a newer change.
func TestBookingChangesMeanwhile(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		visit := w.sequence("Ciao", func(q *puntuale.Sequence) { q.Booking = "giorno" })
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p", "giorno": "/g", "reference": "/r", "as_of": "/v"}},
			[]puntuale.Action{{Kind: puntuale.ActionBook, Sequence: visit}})
		now := w.DB.Clock.Now()
		call := func(key string, version, days int) {
			t.Helper()
			c := puntuale.HookCall{Automation: id, Key: key, Phone: phone, At: w.DB.Clock.Now(), Fields: map[string]string{
				"giorno": puntuale.DateOf(now.AddDate(0, 0, days)).String(), "reference": "r1", "as_of": fmt.Sprint(version)}}
			if _, err := w.CallHook(t.Context(), w.c.ID, c); err != nil {
				t.Fatal(err)
			}
		}
		call("a", 1, 30)
		w.runs()
		// while the second call's act waits for its transaction, a newer call is done
		first := true
		w.runner = newRunner(w.World, w.Store, &interrupting{Store: w.Store, before: func() {
			if first {
				first = false
				call("c", 3, 50)
				if _, err := newRunner(w.World, w.Store, w.Store).Round(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}})
		call("b", 2, 40)
		w.runs()
		if n := w.Int("select count(*) from booking where client_id = $1 and as_of = 3", w.c.ID); n != 1 {
			t.Error("the newer call was overwritten")
		}
		reasons := map[puntuale.ReasonCode]int{}
		for _, f := range w.log(id) {
			reasons[f.Reason]++
		}
		if reasons[""] != 2 || reasons[puntuale.FiringStale] != 1 {
			t.Errorf("%v", reasons)
		}
	})
}

// interrupting is a store in which something happens before each transaction of Act.
type interrupting struct {
	*store.Store
	before func()
}

func (i *interrupting) Act(ctx context.Context, b *puntuale.ActBatch) error {
	i.before()
	return i.Store.Act(ctx, b)
}
