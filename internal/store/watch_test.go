package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// prompt is much longer than a refusal takes, and shorter than the time limits of calls.
const prompt = 8 * time.Second

// TestPostgresHangs uses a PostgreSQL that no longer answers: its process is stopped, or its network loses everything.
// All calls must be refused soon. A stored call must not get an error that says it was not stored. When PostgreSQL
// answers again, everything must work again.
func TestPostgresHangs(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	node := w.MustJoin()
	held := c.MustStart("+393339999999", storetest.Begin, 1)

	// Calls run before, during and after the silence. Each call has a different recipient.
	const callers = 8
	answers := make([][]error, callers)
	start := func(i, j int) error {
		run := c.Run(fmt.Sprintf("+39333%03d%04d", i, j), storetest.Begin, 1)
		run.Idempotency = storetest.Keyed("s", fmt.Sprint(i, j), "h")
		_, err := storetest.Start(ctx, c, run)
		return err
	}
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			for j := 0; ; j++ {
				err := start(i, j)
				answers[i] = append(answers[i], err)
				if err != nil {
					return
				}
			}
		})
	}
	for w.Int("select count(*) from run") < 10*callers {
	}
	began := time.Now()
	p.frozen.Lock()
	calls := map[string]func() error{
		"read": func() error { _, err := c.Details(ctx, held); return err },
		"key":  func() error { _, err := w.Principal(ctx, c.Key, storetest.Begin); return err },
		"stop": func() error {
			_, err := c.Stop(ctx, c.Sequence, []string{"+39"}, "", storetest.Day, storetest.Begin)
			return err
		},
		"beat":  func() error { return w.Beat(ctx, node, time.Minute) },
		"check": func() error { return w.Check(ctx) },
		"due": func() error {
			_, err := w.Due(ctx, []puntuale.QueueCursor{{Session: c.Session}}, storetest.Begin, 1)
			return err
		},
		"claim": func() error {
			_, err := w.Claim(ctx, puntuale.Claim{Node: node, Token: storetest.Token(node), Now: storetest.Begin, Messages: c.Items("+393339999999", 0, held...)})
			return err
		},
		"receive": func() error { return w.Receive(ctx, puntuale.SandboxMessage{Client: c.ID, ConnectorID: "x"}) },
	}
	for round := range 2 { // in the second round, the store already knows that the database does not answer
		var all sync.WaitGroup
		for name, call := range calls {
			all.Go(func() {
				err := call()
				e, ok := errors.AsType[*puntuale.Error](err)
				if !ok || e.Code != puntuale.CodeUnavailable || e.RetryAfter <= 0 {
					t.Errorf("round %d, %s: %v", round, name, err)
				}
			})
		}
		all.Wait()
	}
	done.Wait()
	if took := time.Since(began); took > prompt {
		t.Errorf("refused after %v", took)
	}

	p.frozen.Unlock()
	began = time.Now()
	for err := errors.New("not asked yet"); err != nil; err = w.Check(ctx) {
		if time.Since(began) > 3*prompt {
			t.Fatalf("not back: %v", err)
		}
	}
	total := int64(1)
	for i := range answers {
		for j, err := range answers[i] {
			number := fmt.Sprintf("+39333%03d%04d", i, j)
			stored := w.Int("select count(*) from run where phone = $1", number)
			doubtful := err != nil && strings.Contains(err.Error(), "store.in_doubt")
			if err == nil && stored != 1 || err != nil && !doubtful && stored != 0 {
				t.Errorf("%s: %v, and %d are stored", number, err, stored)
			}
			if err := start(i, j); err != nil { // a repeat with the same key must succeed, whether the first call was stored or not
				t.Errorf("%s again: %v", number, err)
			}
			total++
		}
	}
	if n, used := w.Int("select count(*) from run"), w.Int("select used from api_usage where client_id = $1 and day = $2", c.ID, storetest.Day.Int()); n != total || used != total {
		t.Errorf("%d runs, %d calls counted, want %d", n, used, total)
	}
	if _, err := c.Details(ctx, held); err != nil {
		t.Error(err)
	}
}

// TestPostgresIsSlow checks a call that waits for a lock of another transaction. The store must not treat the database
// as hanging.
func TestPostgresIsSlow(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	slow, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	slow.MustStart("+393331234567", storetest.Begin, 1)
	holder, err := d.SQL.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec("select used from api_usage where client_id = $1 for update", slow.ID); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := slow.Start(context.Background(), slow.Run("+393331234567", storetest.Begin, 1))
		answered <- err
	}()
	if _, err := holder.Exec("select pg_sleep(2)"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Details(context.Background(), nil); err != nil {
		t.Error(err)
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestPostgresConnectsSlowly checks that the store works again after an interruption, even if connecting to the server
// takes longer than a query may.
func TestPostgresConnectsSlowly(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	ctx := context.Background()
	p.frozen.Lock()
	for began := time.Now(); w.Check(ctx) == nil; {
		if time.Since(began) > prompt {
			t.Fatal("not noticed")
		}
	}
	p.mu.Lock()
	quick := p.server
	p.server = func() (net.Conn, error) {
		if _, err := d.SQL.Exec("select pg_sleep(1.5)"); err != nil {
			return nil, err
		}
		return quick()
	}
	p.mu.Unlock()
	p.cutAll()
	p.frozen.Unlock()
	began := time.Now()
	for err := errors.New("not asked yet"); err != nil; err = w.Check(ctx) {
		if time.Since(began) > 3*prompt {
			t.Fatalf("not back: %v", err)
		}
	}
}
