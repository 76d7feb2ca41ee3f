package automation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/keyword"
)

// maintain removes data that the store does not need any more.
func (w *world) maintain() {
	w.t.Helper()
	if err := w.Maintain(context.Background(), w.DB.Clock.Now(), time.Time{}); err != nil {
		w.t.Fatal(err)
	}
}

// An outcome triggers a rule once for each run, even if the run's messages are months apart.
func TestOutcomeOfALongRun(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerOutcome, Sequence: puntuale.SequenceChoice(w.c.Sequence.String()), Is: puntuale.OutcomeCompleted},
			[]puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"scritto"}}})
		w.node = w.MustJoin()
		run := w.c.Run(phone, w.DB.Clock.Now(), 2)
		later := w.DB.Clock.Now().Add(100 * 24 * time.Hour)
		run.Messages[1].Desired, run.Messages[1].Due, run.Messages[1].ValidUntil = later, later, later.Add(24*time.Hour)
		r, err := w.c.Start(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		w.sends(phone, 0, r.IDs[0])
		w.runs()
		w.want(id, 1, "")
		w.DB.Clock.Set(later)
		w.node = w.MustJoin()
		w.maintain()
		w.sends(phone, 0, r.IDs[1])
		w.runs()
		if n := w.Int("select fired from automation where client_id = $1 and id = $2", w.c.ID, id); n != 1 {
			t.Errorf("the rule acted %d times for a run", n)
		}
	})
}

// The key of a hook's call counts as new again after 24 hours. A call while the rule is off does not store its key.
func TestHookKeyAgain(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p"}}, starts(w.sequence("Ciao")))
		call := func(want bool, messages int) {
			t.Helper()
			fresh, err := w.CallHook(t.Context(), w.c.ID, puntuale.HookCall{Automation: id, Key: "a", Phone: phone, At: w.DB.Clock.Now()})
			if err != nil || fresh != want {
				t.Errorf("fresh: %v, %v", fresh, err)
			}
			w.runs()
			if got := w.got(phone); got != messages {
				t.Errorf("%d messages, not %d: %+v", got, messages, w.log(id))
			}
		}
		call(true, 1)
		call(false, 1)
		w.DB.Clock.Advance(puntuale.HookRepeat)
		call(true, 2)
		w.DB.Clock.Advance(puntuale.HookRepeat)
		w.turn(id, false)
		call(true, 2)
		w.DB.Clock.Advance(time.Second)
		w.turn(id, true)
		call(true, 3)
		call(false, 3)
	})
}

// TakeTriggers returns triggers in the order in which they were written, even if the order of their next_at differs.
func TestTriggersKeepTheirOrder(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		for i := range 20 {
			w.writes(fmt.Sprintf("+3933300000%02d", i), "ciao")
		}
		w.Exec("update automation_trigger set next_at = 0 where id in (select id from automation_trigger order by id limit 7)")
		all, err := w.TakeTriggers(t.Context(), 0, w.DB.Clock.Now(), 100, nil)
		if err != nil || len(all) != 20 || !slices.IsSortedFunc(all, func(a, b puntuale.TakenTrigger) int { return int(a.ID - b.ID) }) {
			t.Errorf("%d triggers, %v: %+v", len(all), err, all)
		}
	})
}

// If if_running prevents all starts of a rule, the log says that the rule did not act.
func TestAllStartsHeldBack(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		var actions []puntuale.Action
		for _, text := range []string{"uno", "due"} {
			actions = append(actions, starts(w.sequence(text, func(q *puntuale.Sequence) { q.IfRunning = puntuale.IfRunningReject }))...)
		}
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, actions)
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 1, "")
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 2, puntuale.FiringRunning)
		if n := w.Int("select fired from automation where client_id = $1 and id = $2", w.c.ID, id); n != 1 {
			t.Errorf("it counts %d firings", n)
		}
	})
}

// The client stores only replies of known people. Still, a reply of an unknown person is stored and triggers rules if the reply is a trigger word
// of an active rule. Other messages of unknown people are not stored, and trigger no rule, not even a rule for any message.
func TestStranger(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		if _, err := w.c.UpdateSettings(t.Context(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepKnownReplies)}); err != nil {
			t.Fatal(err)
		}
		info := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info", "prezzi"}}, []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"info"}}})
		anything := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"tutto"}}})
		off := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"spento"}}, starts(w.sequence("mai")))
		w.turn(off, false)
		says := func(m *puntuale.TakenMessage) {
			m.Says = func(words []string) bool { return keyword.In(keyword.Whole(m.Text), words) }
		}
		const stranger = "+393330000009"
		for _, text := range []string{"ciao", "spento", "info per favore"} {
			w.writes(stranger, text, says)
		}
		w.writes(stranger, "info", func(m *puntuale.TakenMessage) { m.Kind = puntuale.ReplyReaction })
		w.runs()
		if n := w.Int("select count(*) from reply where client_id = $1", w.c.ID); n != 0 {
			t.Errorf("%d replies of a stranger are kept", n)
		}
		w.writes(stranger, "Info!", says)
		w.runs()
		w.want(info, 1, "")
		w.want(anything, 1, "")
		if n := w.Int("select count(*) from reply where client_id = $1", w.c.ID); n != 1 {
			t.Errorf("%d replies are kept", n)
		}
	})
}
