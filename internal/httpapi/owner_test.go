package httpapi_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/intake"
	"puntuale/internal/session"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// owner replaces, in a test, the node that owns sessions. It becomes a session's owner when a caller gives a command
// for the session.
type owner struct {
	t       *testing.T
	store   *store.Store
	db      *storetest.Database
	manager *session.Manager
	peer    *graphtest.Peer // replaces Meta for Official sessions

	mu     sync.Mutex
	node   puntuale.NodeID
	owned  map[puntuale.SessionID]bool
	absent bool // true: no node carries out commands
}

func newOwner(t *testing.T, s *store.Store, db *storetest.Database, clock clock.Clock, vault *auth.Vault, answered func(puntuale.SessionID)) *owner {
	t.Helper()
	o := &owner{t: t, store: s, db: db, owned: map[puntuale.SessionID]bool{}}
	var out *sandbox.Connector
	var meta *official.Connector
	o.peer = graphtest.New(t, graphtest.Number{ID: "101", Token: "EAAcanary", Secret: "appcanary", Verify: "verifycanary", Display: "+39 02 1234101", Tier: "TIER_250", Account: "55101", App: "66101"})
	quiet := make(chan struct{})
	close(quiet)
	o.manager = session.New(session.Config{
		Keeper: s,
		Linker: func(one puntuale.Session) puntuale.Linker {
			switch {
			case one.Sandbox:
				return out
			case one.Type == puntuale.Official:
				return meta
			}
			return nil
		},
		DrainSession: func(puntuale.SessionID, time.Time) <-chan struct{} { return quiet },
		Resume:       func(puntuale.SessionID) {},
		Changed:      func(puntuale.SessionID) {},
		Answered:     answered, Seal: vault.Seal, Open: vault.Open,
		Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	out = sandbox.New(s, clock, 0).WithLinks(o.manager.Report)
	meta = official.New(official.Config{
		Store: s, Unseal: vault.Open, Report: o.manager.Report, API: o.peer.URL, Clock: clock, Logger: slog.New(slog.DiscardHandler),
		Take: intake.New(intake.Config{Store: s, MessageMark: messageMark, Clock: clock, Logger: slog.New(slog.DiscardHandler)}).Take,
	})
	o.manager.Start()
	t.Cleanup(func() { o.manager.Stop(context.Background()) })
	return o
}

// wake receives the wakeups that the API sends.
func (o *owner) wake(id puntuale.SessionID, due time.Time) {
	if !due.IsZero() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var waiting int
	if err := o.db.SQL.QueryRow("select count(*) from command where session_id = $1 and answered_at = 0", int64(id)).Scan(&waiting); err != nil || waiting == 0 || o.absent {
		return
	}
	if err := o.own(id); err != nil {
		o.t.Errorf("own session %d: %v", id, err)
	}
	o.manager.Wake(id)
}

func (o *owner) own(id puntuale.SessionID) (err error) {
	ctx := context.Background()
	if o.node == 0 {
		if o.node, err = o.store.Join(ctx, time.Hour); err != nil {
			return err
		}
	}
	if o.owned[id] {
		return nil
	}
	o.owned[id] = true
	if _, err = o.store.Assign(ctx, 0, o.node, []puntuale.SessionID{id}); err != nil {
		return err
	}
	_, sessions, err := o.store.Roster(ctx, o.node)
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

// testVault returns a vault with a fixed key, which is not secret.
func testVault(t *testing.T) *auth.Vault {
	t.Helper()
	v, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
