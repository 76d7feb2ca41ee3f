package automation_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
)

// A trigger that cannot be decoded delays no other trigger. After some attempts it is set aside.
func TestBadTriggerIsSetAside(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		w.Exec("insert into automation_trigger (client_id, kind, subject, detail, at, next_at) values ($1, 41, 1, '{', 0, 0)", w.c.ID)
		w.writes(phone, "ciao")
		w.round(nil)
		if got := w.got(phone); got != 1 {
			t.Errorf("%d messages beside a bad trigger", got)
		}
		w.setAside(nil)
	})
}

// A trigger whose act fails again and again is set aside. The triggers that were taken with it act at the next attempt.
func TestFailingTriggerIsSetAside(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		w.runner = newRunner(w.World, w.Store, &refusing{w.Store})
		w.writes(refused, "ciao")
		w.writes(phone, "ciao")
		w.round(errRefused)
		w.DB.Clock.Advance(puntuale.TriggerLease)
		w.round(errRefused)
		if got := w.got(phone); got != 1 {
			t.Errorf("%d messages beside a failing trigger", got)
		}
		w.setAside(errRefused)
	})
}

// panicking is a store whose FollowContacts panics.
type panicking struct{ *store.Store }

func (p *panicking) FollowContacts(context.Context, puntuale.ClientID, []puntuale.TakenTrigger, time.Time, func(puntuale.ActiveAutomation, string, time.Time) puntuale.Date) error {
	panic("a bad contact")
}

// The trigger of a changed contact whose update panics again and again is set aside.
func TestPanickingContactIsSetAside(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(w.birthday()))
		w.born(phone, "1990-11-24")
		runner := newRunner(w.World, w.Store, &panicking{w.Store})
		for n := range puntuale.MaxTriggerAttempts {
			if _, err := runner.Contacts(t.Context()); err == nil {
				t.Errorf("attempt %d did not fail", n+1)
			}
			w.DB.Clock.Advance(puntuale.TriggerLease)
		}
		if n, err := runner.Contacts(t.Context()); n != 0 || err != nil {
			t.Errorf("%d triggers after the last attempt, %v", n, err)
		}
	})
}

// round runs one round. want is its error; nil: none.
func (w *world) round(want error) {
	w.t.Helper()
	if _, err := w.runner.Round(context.Background()); !errors.Is(err, want) {
		w.t.Errorf("round: %v, want %v", err, want)
	}
}

// setAside runs rounds until the only trigger was tried as often as it may be.
func (w *world) setAside(want error) {
	w.t.Helper()
	tried := func() int { return int(w.Int("select coalesce(max(attempts), 0) from automation_trigger")) }
	for tried() < puntuale.MaxTriggerAttempts && !w.t.Failed() {
		before := tried()
		w.DB.Clock.Advance(puntuale.TriggerLease)
		if w.round(want); tried() != before+1 {
			w.t.Errorf("%d attempts after %d", tried(), before)
		}
	}
	w.DB.Clock.Advance(24 * time.Hour)
	w.round(nil)
	if n := w.Int("select count(*) from automation_trigger"); n != 1 || tried() != puntuale.MaxTriggerAttempts {
		w.t.Errorf("%d triggers, %d attempts", n, tried())
	}
}

const refused = "+393330000099"

var errRefused = errors.New("this act is refused")

// refusing is a store that refuses the acts for one person.
type refusing struct{ *store.Store }

func (r *refusing) Act(ctx context.Context, b *puntuale.ActBatch) error {
	if slices.ContainsFunc(b.Acts, func(a *puntuale.AutomationAct) bool { return a.Phone == refused }) {
		return errRefused
	}
	return r.Store.Act(ctx, b)
}

// If a node is gone, the triggers that it took are due at once, and not at the end of their lease.
func TestDeadNodesTriggersAreFree(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		node, err := w.Store.Join(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		w.writes(phone, "ciao")
		if taken, err := w.TakeTriggers(t.Context(), node, w.DB.Clock.Now(), 10, nil); err != nil || len(taken) != 1 {
			t.Fatalf("%d triggers, %v", len(taken), err)
		}
		look := func(want int) {
			t.Helper()
			if _, err := w.Store.Reap(t.Context()); err != nil {
				t.Fatal(err)
			}
			if w.round(nil); w.got(phone) != want {
				t.Errorf("%d messages, want %d", w.got(phone), want)
			}
		}
		look(0)
		w.Exec("delete from node where id = $1", node)
		look(1)
	})
}

// A rule that cannot be decoded does nothing. The other rules act, also those of the same client.
func TestBadRuleBlocksNobody(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		bad := w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "scadenza", Repeat: puntuale.RepeatYearly}, starts(w.sequence("altro")))
		w.Exec("update automation set actions = '{' where id = $1", bad)
		w.writes(phone, "ciao")
		w.round(nil)
		if got := w.got(phone); got != 1 {
			t.Errorf("%d messages beside a bad rule", got)
		}
		if rules, err := w.DateRules(t.Context()); err != nil || len(rules) != 1 || rules[0].Rule.Fault == nil {
			t.Errorf("%+v, %v", rules, err)
		}
	})
}

// A contact whose fields cannot be decoded keeps its stored dates. Rules act for it as for a person without other
// fields, and the dates of other contacts are planned.
func TestBadContactBlocksNoDates(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(w.birthday()))
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		const other = "+393330000002"
		w.born(phone, "1990-11-24")
		w.dates() // it is too early to plan the date
		w.born(phone, "1990-11-24")
		w.Exec("update person set fields = '{' where phone = $1", phone)
		w.DB.Clock.Advance(24 * time.Hour)
		w.born(other, "1990-11-24")
		w.dates()
		w.wantPending(other, "2026-11-22 08:00", "2026-11-24 08:00")
		w.wantPending(phone, "2026-11-22 08:00", "2026-11-24 08:00")
		planned := w.got(phone) + w.got(other)
		w.DB.Clock.Advance(time.Hour)
		w.writes(phone, "ciao")
		w.writes(other, "ciao")
		if w.round(nil); w.got(phone)+w.got(other) != planned+2 {
			t.Errorf("%d answers", w.got(phone)+w.got(other)-planned)
		}
	})
}
