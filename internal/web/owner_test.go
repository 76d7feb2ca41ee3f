package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/connector/sendapp"
	"puntuale/internal/intake"
	"puntuale/internal/session"
)

// owner replaces, in a test, the node that owns sessions. It becomes the owner of each session that a wakeup names. The
// simulated network links sandboxes. A test server that replaces Meta links Official numbers. For a gateway, the owner
// calls the address in the session's keys.
type owner struct {
	w       *world
	manager *session.Manager
	peer    *graphtest.Peer
	number  graphtest.Number // a number that exists at the test server
	numbers puntuale.Linker  // links real numbers; nil: real numbers cannot be linked

	gateway *sendapp.Connector

	mu    sync.Mutex
	node  puntuale.NodeID
	owned map[puntuale.SessionID]bool
}

// own starts an owner of the world's sessions.
func (w *world) own(t *testing.T) *owner {
	t.Helper()
	o := &owner{w: w, owned: map[puntuale.SessionID]bool{}, number: graphtest.NewNumber("101")}
	o.peer = graphtest.New(t, o.number)
	var out *sandbox.Connector
	var meta *official.Connector
	rested := make(chan struct{})
	close(rested)
	quiet := slog.New(slog.DiscardHandler)
	o.manager = session.New(session.Config{
		Keeper: w.store,
		Linker: func(s puntuale.Session) puntuale.Linker {
			switch {
			case s.Sandbox:
				return out
			case s.Type == puntuale.Official:
				return meta
			case s.Type == puntuale.Socket && o.numbers != nil:
				return o.numbers
			case s.Type == puntuale.SendApp:
				return o.gateway
			}
			return nil
		},
		DrainSession: func(puntuale.SessionID, time.Time) <-chan struct{} { return rested },
		Resume:       func(puntuale.SessionID) {}, Changed: func(puntuale.SessionID) {},
		Answered: w.control.Answered, Seal: w.vault.Seal, Open: w.vault.Open, Clock: w.clock, Logger: quiet,
	})
	out = sandbox.New(w.store, w.clock, 0).WithLinks(o.manager.Report)
	meta = official.New(official.Config{
		Store: w.store, Unseal: w.vault.Open, Report: o.manager.Report, API: o.peer.URL, Clock: w.clock, Logger: quiet,
		Take: intake.New(intake.Config{Store: w.store, Clock: w.clock, Logger: quiet}).Take,
	})
	o.gateway = sendapp.New(sendapp.Config{
		Store: w.store, Seal: w.vault.Seal, Unseal: w.vault.Open, Mark: w.vault.Mark, Transport: http.DefaultTransport, Public: "https://messaggi.example.com",
		Report: o.manager.Report, Clock: w.clock, Logger: quiet,
	})
	o.manager.Start()
	t.Cleanup(func() { o.manager.Stop(context.Background()) })
	w.owner.Store(o)
	return o
}

// wake receives the wakeups that control sends.
func (w *world) wake(id puntuale.SessionID, due time.Time) {
	o := w.owner.Load()
	if o == nil || !due.IsZero() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.take(id); err != nil {
		w.t.Errorf("own session %d: %v", id, err)
	}
	o.manager.Wake(id)
}

func (o *owner) take(id puntuale.SessionID) (err error) {
	ctx := context.Background()
	if o.node == 0 {
		if o.node, err = o.w.store.Join(ctx, time.Hour); err != nil {
			return err
		}
	}
	if o.owned[id] {
		return nil
	}
	o.owned[id] = true
	if _, err = o.w.store.Assign(ctx, 0, o.node, []puntuale.SessionID{id}); err != nil {
		return err
	}
	_, sessions, err := o.w.store.Roster(ctx, o.node)
	if err != nil {
		return err
	}
	var mine []puntuale.Session
	for _, s := range sessions {
		if s.Owner == o.node {
			mine = append(mine, s)
		}
	}
	o.manager.Own(o.node, mine, nil)
	return nil
}
