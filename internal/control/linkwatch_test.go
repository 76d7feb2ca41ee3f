package control_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/store/storetest"
)

// countedReads counts the reads of a client's sessions from the store.
type countedReads struct {
	puntuale.Operator
	one, all atomic.Int64
}

func (c *countedReads) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return countedTenant{c.Operator.Tenant(id), c}
}

type countedTenant struct {
	puntuale.Tenant
	reads *countedReads
}

func (t countedTenant) Session(ctx context.Context, id puntuale.SessionID) (puntuale.Session, error) {
	t.reads.one.Add(1)
	return t.Tenant.Session(ctx, id)
}

func (t countedTenant) Sessions(ctx context.Context, p puntuale.Page) ([]puntuale.Session, string, error) {
	t.reads.all.Add(1)
	return t.Tenant.Sessions(ctx, p)
}

// TestAwaitSessionAsksOnce: the store is queried once a second, no matter how many callers wait for changes of a
// client's sessions. All callers get the change.
func TestAwaitSessionAsksOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := storetest.SQLite(t)
	st := db.Open(t)
	reads := &countedReads{Operator: st}
	c := control.New(control.Config{Tenants: reads, Clock: db.Clock, Sandbox: true})
	accounts := account.New(account.Config{Control: c, Tenants: reads, Partners: reads, Clock: db.Clock, Sandbox: true})
	_, key, err := accounts.CreatePartner(ctx, account.NewPartner{Name: "Agenzia", Email: "a@example.com", Password: "una frase lunga"})
	must(t, err)
	caller, err := c.Authenticate(ctx, key)
	must(t, err)
	partner, err := accounts.Partner(caller)
	must(t, err)
	created, err := partner.CreateClient(ctx, account.NewClient{Name: "Studio", Email: "b@example.com", Password: "una frase lunga", Phone: "+390212345678"}, control.Once[account.CreatedClient]{})
	must(t, err)
	caller, err = c.Authenticate(ctx, created.Key)
	must(t, err)
	client, err := caller.Client()
	must(t, err)

	const waiters = 10
	var wg sync.WaitGroup
	heard := make(chan string, waiters)
	for range waiters {
		wg.Go(func() {
			s, err := client.AwaitSession(ctx, created.Session.String(), func(s control.Session) bool { return s.Name != "Nuovo nome" })
			if err != nil {
				t.Error(err)
			}
			heard <- s.Name
		})
	}
	eventually(t, func() bool { return reads.one.Load() == waiters }) // each caller first reads its session by itself
	for range 5 {
		before := reads.all.Load()
		eventually(t, func() bool { db.Clock.Advance(time.Second); return reads.all.Load() > before })
	}
	if one := reads.one.Load(); one != waiters {
		t.Errorf("while nothing changed, %d waiters read their session %d times", waiters, one)
	}
	if _, err := db.SQL.ExecContext(ctx, "update session set name = 'Nuovo nome'"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { db.Clock.Advance(time.Second); return len(heard) == waiters })
	wg.Wait()
	for range waiters {
		if name := <-heard; name != "Nuovo nome" {
			t.Errorf("heard of %q", name)
		}
	}
	if _, err := client.AwaitSession(ctx, "999999", func(control.Session) bool { return true }); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("a session that there is not: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until condition returns true. The limit is long enough for a slow machine.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute")
		}
	}
}
