package automation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// fail makes the database look as after a failover: the nodes joined on an earlier timeline. lossless is 1 if the old server replicated
// synchronously, otherwise 0.
func (w *world) fail(lossless int) {
	w.Exec("update node set timeline = timeline - 1")
	w.Exec("update cluster set timeline = timeline - 1, synchronous = $1", lossless)
	w.node = w.MustJoin()
}

// restore marks the database as restored from a backup, and opens it again.
func (w *world) restore() {
	w.t.Helper()
	now := w.DB.Clock.Now()
	if err := errors.Join(w.Leave(w.t.Context(), w.node), w.Close()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := transfer.MarkRestored(w.t.Context(), w.DB.Config, now, transfer.RestoreConfig{}); err != nil {
		w.t.Fatal(err)
	}
	w.Store = w.DB.Open(w.t)
	w.c.Tenant = w.Store.Tenant(w.c.ID)
	w.runner = newRunner(w.World, w.Store, w.Store)
	w.node = w.MustJoin()
}

// missing is a world with one rule for each kind of fact, and with facts on which no rule has acted yet.
type missing struct {
	*world
	reply, silence, outcome, hook, known, unread puntuale.AutomationID
}

const (
	replied    = "+393330000001" // this person wrote; no rule has acted on the reply
	silent     = "+393330000002" // this person got a message; the rule has set its timer
	reached    = "+393330000003" // this person got a message; no runner has taken the message's trigger
	called     = "+393330000004" // a program called the hook with this number
	born       = "+393330000005" // a rule has stored the date, and the date is due
	bornLate   = "+393330000006" // the date changed; no runner has taken the trigger of the change
	bornLater  = "+393330000007" // the date comes four days later
	wroteAgain = "+393330000008"
)

// await makes the rules and one fact for each. No rule has acted on these facts yet.
func (w *world) await() *missing {
	w.t.Helper()
	m := &missing{world: w}
	sequence := puntuale.SequenceChoice(w.c.Sequence.String())
	q := w.sequence("testo")
	birthday := w.sequence("Auguri", func(q *puntuale.Sequence) {
		q.Steps[0].Timing = puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}, At: "08:00", IfPast: puntuale.PastSend}
	})
	dates := puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}
	m.known = w.rule(dates, starts(birthday))
	w.born(born, "1990-11-24")
	w.born(bornLater, "1990-11-28")
	w.dates()
	w.DB.Clock.Set(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	m.reply = w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(q))
	m.silence = w.rule(puntuale.Trigger{Kind: puntuale.TriggerNoReply, Sequence: sequence, Hours: 2}, starts(q))
	m.outcome = w.rule(puntuale.Trigger{Kind: puntuale.TriggerOutcome, Sequence: sequence, Is: puntuale.OutcomeCompleted}, []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"scritto"}}})
	m.hook = w.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p"}}, starts(q))
	w.node = w.MustJoin()
	w.sends(silent, 0, w.c.MustStart(silent, w.DB.Clock.Now(), 1)[0])
	w.runs()
	w.writes(replied, "ciao")
	w.sends(reached, 0, w.c.MustStart(reached, w.DB.Clock.Now(), 1)[0])
	m.call(called)
	w.born(bornLate, "1990-11-24")
	m.unread = w.rule(dates, starts(birthday)) // this rule has not read any contact yet
	w.DB.Clock.Advance(time.Second)
	return m
}

func (m *missing) call(phone string) {
	m.t.Helper()
	if _, err := m.CallHook(m.t.Context(), m.c.ID, puntuale.HookCall{Automation: m.hook, Key: phone, Phone: phone, At: m.DB.Clock.Now()}); err != nil {
		m.t.Fatal(err)
	}
}

// acts lets rules act on the waiting facts. Two hours later, it lets them act because replies are missing.
func (m *missing) acts() {
	m.t.Helper()
	m.dates()
	m.DB.Clock.Advance(2*time.Hour + time.Minute)
	m.dates()
}

// wantLog compares the reasons in a rule's log with the wanted reason of each phone. what names the rule in failures.
func (m *missing) wantLog(what string, id puntuale.AutomationID, want map[string]puntuale.ReasonCode) {
	m.t.Helper()
	got := map[string]puntuale.ReasonCode{}
	for _, f := range m.log(id) {
		if _, twice := got[f.Phone]; twice {
			m.t.Errorf("%s: two lines about %s", what, f.Phone)
		}
		got[f.Phone] = f.Reason
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.t.Errorf("%s: the log says %q, not %q", what, got, want)
	}
}

// wantAll compares the logs of all rules. reason is why the rules did not act on the waiting facts; "": they acted.
func (m *missing) wantAll(reason puntuale.ReasonCode) {
	m.t.Helper()
	for what, c := range map[string]struct {
		id   puntuale.AutomationID
		want map[string]puntuale.ReasonCode
	}{
		"reply":        {m.reply, map[string]puntuale.ReasonCode{replied: reason}},
		"silence":      {m.silence, map[string]puntuale.ReasonCode{silent: reason, reached: reason}},
		"outcome":      {m.outcome, map[string]puntuale.ReasonCode{silent: "", reached: reason}},
		"hook":         {m.hook, map[string]puntuale.ReasonCode{called: reason}},
		"known dates":  {m.known, map[string]puntuale.ReasonCode{born: reason, bornLate: reason}},
		"unread dates": {m.unread, map[string]puntuale.ReasonCode{born: reason, bornLate: reason}},
	} {
		m.wantLog(what, c.id, c.want)
	}
	for who, n := range map[string]int{replied: 1, silent: 1, reached: 1, called: 1, born: 2, bornLate: 2, bornLater: 0} {
		if reason != "" {
			n = 0
		}
		if got := m.got(who); got != n {
			m.t.Errorf("%s got %d messages, not %d", who, got, n)
		}
	}
}

// fresh checks that rules act on facts after the failover or restore. They must not act on an old reply that the network delivers again.
func (m *missing) fresh(before time.Time) {
	m.t.Helper()
	const newcomer = "+393330000009"
	m.writes(wroteAgain, "ciao", func(r *puntuale.TakenMessage) { r.At = before })
	m.writes(newcomer, "ciao")
	m.call(newcomer)
	m.sends(newcomer, 0, m.c.MustStart(newcomer, m.DB.Clock.Now(), 1)[0])
	m.born("+393330000010", "1990-11-24")
	m.acts()
	if got := m.got(wroteAgain); got != 0 {
		m.t.Errorf("a rule acts on a reply that was delivered again: %+v", m.log(m.reply))
	}
	if got := m.got(newcomer); got != 2 { // from the rules for replies and hooks; the person wrote, so no rule for silence acted
		m.t.Errorf("%d messages: %+v %+v", got, m.log(m.reply), m.log(m.hook))
	}
	if got := m.got("+393330000010"); got != 2 {
		m.t.Errorf("the new contact got %d messages", got)
	}
	m.DB.Clock.Set(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	m.dates()
	m.wantPending(bornLater, "2026-11-28 08:00", "2026-11-28 08:00")
}

// A failover may lose commits, and a restore loses everything after the backup. Rules may have acted on older facts, and the database does not
// know it. So no rule acts on older facts. The logs say that rules missed these facts.
func TestMissed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		driver storetest.Driver
		happen func(w *world)
		reason puntuale.ReasonCode
	}{
		"restore on SQLite":     {storetest.SQLite, (*world).restore, puntuale.FiringMissed},
		"restore on PostgreSQL": {storetest.Postgres, (*world).restore, puntuale.FiringMissed},
		"failover":              {storetest.Postgres, func(w *world) { w.fail(0) }, puntuale.FiringMissed},
		"lossless failover":     {storetest.Postgres, func(w *world) { w.fail(1) }, ""},
		"nothing":               {storetest.SQLite, func(*world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newWorld(t, c.driver(t)).await()
			before := m.DB.Clock.Now().Add(-time.Minute)
			c.happen(m.world)
			m.acts()
			m.wantAll(c.reason)
			if c.reason != "" {
				m.fresh(before)
			}
		})
	}
}
