package automation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// hostile is a store whose Act does something else for one client.
type hostile struct {
	*store.Store
	client puntuale.ClientID
	act    func(b *puntuale.ActBatch) error
}

func (h *hostile) Act(ctx context.Context, b *puntuale.ActBatch) error {
	if b.Client == h.client {
		if err := h.act(b); err != nil {
			return err
		}
	}
	return h.Store.Act(ctx, b)
}

// other makes another client with the same rule, and returns its world.
func (w *world) other() *world {
	w.t.Helper()
	o := *w
	o.c = w.Client(puntuale.AccountFull)
	if _, err := o.c.UpdateSettings(w.t.Context(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
		w.t.Fatal(err)
	}
	o.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(o.sequence("testo")))
	return &o
}

// holds returns a runner that has begun the slow client's work, and a function that lets this work go on. acts receives the
// text of each trigger of the slow client, in the order in which the rules act. The client must have a due trigger. The round
// that began the work has ended.
func (w *world) holds(slow *world, meanwhile func(), acts func(text string)) (runner *automation.Runner, goOn func()) {
	w.t.Helper()
	begun, held, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	goOn = sync.OnceFunc(func() { close(held) })
	w.t.Cleanup(goOn)
	runner = newRunner(w.World, w.Store, &hostile{w.Store, slow.c.ID, func(b *puntuale.ActBatch) error {
		begin()
		<-held
		for _, a := range b.Acts {
			acts(a.Trigger.Text)
		}
		return nil
	}})
	go func() {
		_, err := runner.Round(context.Background())
		ended <- err
	}()
	<-begun
	meanwhile()
	if err := w.DB.Clock.Waiting(w.t.Context(), 1); err != nil {
		w.t.Fatal(err)
	}
	w.DB.Clock.Advance(time.Second) // for which the round waits
	if err := <-ended; err != nil {
		w.t.Fatal(err)
	}
	return runner, goOn
}

// A client whose work takes long delays the other clients neither in its round nor in the next one, even if many of its
// triggers and timers wait. Its own triggers act once, and wait for no lease.
func TestSlowClientDelaysNobody(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		slow, quick := w.other(), w.other()
		slow.writes(phone, "ciao")
		quick.wrote = slow.wrote
		quick.writes(phone, "ciao")
		runner, goOn := w.holds(slow, func() {
			storetest.Until(t, "the quick client's message", func() bool { return quick.got(phone) == 1 })
		}, func(string) {})
		const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 250) "
		w.Exec(many+"insert into automation_trigger (client_id, kind, subject, at, next_at) select $1, 8, i, 0, 0 from n", slow.c.ID)
		w.Exec(many+"insert into automation_timer (client_id, rule_id, run_id, phone, since, due_at) select $1, 1, i, '', 0, 0 from n", slow.c.ID)
		w.Exec("insert into automation_timer (client_id, rule_id, run_id, phone, since, due_at) values ($1, 1, 1, '', 0, 1)", quick.c.ID)
		slow.wrote = quick.wrote
		slow.writes(phone, "di nuovo")
		quick.wrote = slow.wrote
		quick.writes(phone, "di nuovo")
		timers := func(o *world) int64 {
			return w.Int("select count(*) from automation_timer where client_id = $1", o.c.ID)
		}
		w.runner = runner
		w.round(nil)
		if quick.got(phone) != 2 || timers(quick) != 0 || timers(slow) != 250 || slow.got(phone) != 0 {
			t.Errorf("%d messages and %d timers of the quick client; %d timers and %d messages of the slow one", quick.got(phone), timers(quick), timers(slow), slow.got(phone))
		}
		goOn()
		storetest.Until(t, "all messages", func() bool { w.runs(); return slow.got(phone) == 2 && timers(slow) == 0 })
	})
}

// What people write while their client's work takes long waits for no lease, and acts in the order in which they wrote.
func TestSlowClientKeepsItsOrder(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		slow := w.other()
		slow.writes(phone, "ciao")
		acted := make(chan string, 10)
		runner, goOn := w.holds(slow, func() {}, func(text string) { acted <- text })
		w.runner = runner
		for _, text := range []string{"SI", "NO"} {
			slow.writes(phone, text)
			w.round(nil)
		}
		goOn()
		storetest.Until(t, "all messages", func() bool { w.runs(); return slow.got(phone) == 3 })
		for _, want := range []string{"ciao", "SI", "NO"} {
			if got := <-acted; got != want {
				t.Errorf("%q acts, not %q", got, want)
			}
		}
	})
}

// A panic at one client's trigger fails only this trigger, which is set aside.
func TestPanicFailsOneClient(t *testing.T) {
	for name, act := range map[string]func(b *puntuale.ActBatch) error{
		"in the runner": func(*puntuale.ActBatch) error { panic("a bad rule") },
		"in a transaction": func(b *puntuale.ActBatch) error {
			b.Acts[0].Decide = func(puntuale.AutomationFacts) puntuale.ReasonCode { panic("a bad rule") }
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onDatabases(t, func(t *testing.T, w *world) { testPanicFailsOneClient(t, w, act) })
		})
	}
}

func testPanicFailsOneClient(t *testing.T, w *world, act func(b *puntuale.ActBatch) error) {
	bad, good := w.other(), w.other()
	runner := newRunner(w.World, w.Store, &hostile{w.Store, bad.c.ID, act})
	bad.writes(phone, "ciao")
	good.wrote = bad.wrote
	good.writes(phone, "ciao")
	for n := 1; n <= puntuale.MaxTriggerAttempts; n++ {
		_, err := runner.Round(t.Context())
		if _, panicked := errors.AsType[*puntuale.PanicError](err); !panicked || good.got(phone) != 1 {
			t.Fatalf("attempt %d: %v; %d messages of the other client", n, err, good.got(phone))
		}
		w.DB.Clock.Advance(puntuale.TriggerLease)
	}
	if _, err := runner.Round(t.Context()); err != nil || bad.got(phone) != 0 {
		t.Errorf("after it was set aside: %v, %d messages", err, bad.got(phone))
	}
}
