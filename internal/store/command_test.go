package store_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestCommandsOfNodesWithOtherClocks checks that a command expires after the time that its caller set. The clocks of
// the two nodes differ by an hour.
func TestCommandsOfNodesWithOtherClocks(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			d := storetest.Postgres(t)
			w := storetest.NewWorld(t, d)
			c := w.Client(puntuale.AccountFull)
			node := w.MustJoin()
			if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
				t.Fatal(err)
			}
			other := d.Open(t)
			now := clock.System().Now()
			remote := now.Add(off)
			store.OnMachine(other, clock.NewFake(remote))
			give := func() puntuale.CommandID {
				t.Helper()
				id, err := other.Tenant(c.ID).GiveCommand(ctx, puntuale.Command{
					Session: c.Session, Verb: puntuale.CommandDrain, Created: remote, Expires: remote.Add(10 * time.Minute),
				})
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			id := give()
			if err := w.Maintain(ctx, now, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if open, err := w.OpenCommands(ctx, node, now); err != nil || len(open) != 1 {
				t.Fatalf("the owner sees %+v, %v", open, err)
			}
			if open, err := w.OpenCommands(ctx, node, now.Add(12*time.Minute)); err != nil || len(open) != 0 {
				t.Errorf("the owner sees %+v, %v, after it expired", open, err)
			}
			if ok, err := w.TakeCommand(ctx, node, id, now, now.Add(time.Minute)); !ok || err != nil {
				t.Fatalf("take: %v, %v", ok, err)
			}
			if err := w.AnswerCommand(ctx, node, id, []byte("answer"), now, now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if answer, err := other.Tenant(c.ID).CommandAnswer(ctx, id, remote); err != nil || string(answer) != "answer" {
				t.Errorf("answer = %q, %v", answer, err)
			}
		})
	}
}
