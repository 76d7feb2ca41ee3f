package store_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestPostgresLockWait lets one call wait for a lock. After a short time the writer must first do the other calls of
// its batch, and the calls that wait behind the batch. If a call waits for an equal call, its error must say that the
// equal call is running.
func TestPostgresLockWait(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	hold := func(key string) *sql.Tx {
		twin, err := d.SQL.Begin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = twin.Rollback() })
		if _, err := twin.Exec("insert into idempotency (client_id, scope, key, hash, at, result) values ($1, 's', $2, 'h', 1, '')", c.ID, key); err != nil {
			t.Fatal(err)
		}
		return twin
	}
	hold("held")
	start := func(key string) error {
		run := c.Run("+393331234567", storetest.Begin, 1)
		run.Idempotency = storetest.Keyed("s", key, "h")
		_, err := storetest.Start(ctx, c, run)
		return err
	}
	began := time.Now()
	answered := make(chan error, 1)
	go func() { answered <- start("held") }()
	for others := 0; ; others++ {
		select {
		case err := <-answered:
			e, ok := errors.AsType[*puntuale.Error](err)
			if !ok || e.Code != puntuale.CodeBusy || e.RetryAfter <= 0 {
				t.Errorf("beside a twin: %v", err)
			}
			if others < 3 {
				t.Errorf("%d others were served meanwhile", others)
			}
			if took := time.Since(began); took < 8*time.Second {
				t.Errorf("given up after %v", took)
			}
			return
		default:
		}
		if err := start(storetest.Unique("k")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCallersDeadline checks the error of a call whose caller's deadline expired. The error's reason must be that the
// call ended early, and not that the database does not answer.
func TestCallersDeadline(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
			defer cancel()
			_, err := w.Due(ctx, []puntuale.QueueCursor{{Session: 1}}, storetest.Begin, 1)
			e, ok := errors.AsType[*puntuale.Error](err)
			if !ok || e.Code != puntuale.CodeUnavailable || e.Reason.Code != "call.ended_early" {
				t.Errorf("due: %v", err)
			}
		})
	}
}
