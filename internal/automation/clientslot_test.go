package automation_test

import (
	"context"
	"errors"
	"testing"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// hostile is a store whose Act does something else for one client.
type hostile struct {
	*store.Store
	client puntuale.ClientID
	act    func() error
}

func (h *hostile) Act(ctx context.Context, b *puntuale.ActBatch) error {
	if b.Client == h.client {
		if err := h.act(); err != nil {
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

// A client whose work takes long delays the other clients neither in its round nor in the next one. Its own triggers act
// once.
func TestSlowClientDelaysNobody(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		slow, quick := w.other(), w.other()
		begun, goOn := make(chan struct{}, 1), make(chan struct{})
		runner := newRunner(w.World, w.Store, &hostile{w.Store, slow.c.ID, func() error {
			begun <- struct{}{}
			<-goOn
			return nil
		}})
		slow.writes(phone, "ciao")
		quick.wrote = slow.wrote
		quick.writes(phone, "ciao")
		ended := make(chan error, 1)
		go func() {
			_, err := runner.Round(context.Background())
			ended <- err
		}()
		<-begun
		storetest.Until(t, "the quick client's message", func() bool { return quick.got(phone) == 1 })
		if err := w.DB.Clock.Waiting(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		quick.writes(phone, "di nuovo") // this also passes the second for which the round waits
		if err := <-ended; err != nil {
			t.Error(err)
		}
		slow.wrote = quick.wrote
		slow.writes(phone, "di nuovo")
		quick.wrote = slow.wrote
		if _, err := runner.Round(context.Background()); err != nil || quick.got(phone) != 2 || slow.got(phone) != 0 {
			t.Errorf("%d messages of the quick client, %d of the slow one: %v", quick.got(phone), slow.got(phone), err)
		}
		close(goOn)
		storetest.Until(t, "the slow client's message", func() bool { return slow.got(phone) == 1 })
		w.DB.Clock.Advance(puntuale.TriggerLease)
		w.runner = runner
		storetest.Until(t, "all messages", func() bool { w.runs(); return slow.got(phone) == 2 && quick.got(phone) == 2 })
	})
}

// A panic at one client's trigger fails only this trigger, which is set aside.
func TestPanicFailsOneClient(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		bad, good := w.other(), w.other()
		runner := newRunner(w.World, w.Store, &hostile{w.Store, bad.c.ID, func() error { panic("a bad rule") }})
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
		if _, err := runner.Round(t.Context()); err != nil {
			t.Errorf("after it was set aside: %v", err)
		}
	})
}
