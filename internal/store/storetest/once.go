package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"puntuale"
)

// keep returns an Idempotency whose answer contains the method's result.
func keep(key, hash string) *puntuale.Idempotency {
	return &puntuale.Idempotency{Scope: "POST /api/x", Key: key, Hash: hash, Answer: func(result any) ([]byte, error) {
		return fmt.Appendf(nil, "\x00\xff%v", result), nil
	}}
}

// onceCalls contains all methods that have an Idempotency parameter, except Start. Each key is the name of the table
// that the method changes.
var onceCalls = map[string]func(c *Client, p puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error){
	"sequence": func(c *Client, _ puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return c.CreateSequence(context.Background(), puntuale.Sequence{Name: "x"}, o)
	},
	"session": func(c *Client, _ puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return c.CreateSession(context.Background(), puntuale.Session{Name: "x", Type: puntuale.Socket}, o)
	},
	"template": func(c *Client, _ puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return c.CreateTemplate(context.Background(), puntuale.Template{Name: Unique("t")}, o)
	},
	"blacklist": func(c *Client, _ puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return nil, c.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: Unique("+39"), Added: Begin}, Day, o)
	},
	"message": func(c *Client, _ puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		all, _, err := c.Messages(context.Background(), puntuale.MessageFilter{}, puntuale.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		r := c.Again(all[0].ID)
		r.Idempotency = o
		return c.Resend(context.Background(), r)
	},
	"client": func(_ *Client, p puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return p.CreateClient(context.Background(), newClient(), o)
	},
	"api_key": func(c *Client, p puntuale.PartnerTenant, o *puntuale.Idempotency) (any, error) {
		return p.CreateKey(context.Background(), c.ID, puntuale.Key{Name: "x", Hash: KeyHash()}, o)
	},
}

// Keyed returns an Idempotency for a start, with the answer as JSON.
func Keyed(scope, key, hash string) *puntuale.Idempotency {
	return &puntuale.Idempotency{Scope: scope, Key: key, Hash: hash, Answer: func(result any) ([]byte, error) { return json.Marshal(result) }}
}

// Started is the answer to a start.
type Started struct {
	puntuale.StartedRun
	Replayed bool // whether this is the stored answer of an earlier call
}

// Start starts a run, or returns the stored answer of an earlier call with the same key.
func Start(ctx context.Context, runs interface {
	Start(ctx context.Context, s puntuale.StartRun) (puntuale.StartedRun, error)
}, run puntuale.StartRun) (Started, error) {
	started, err := runs.Start(ctx, run)
	if r, ok := errors.AsType[*puntuale.Replayed](err); ok {
		return startedBefore(r.Answer)
	}
	return Started{StartedRun: started}, err
}

func startedBefore(answer []byte) (Started, error) {
	started := Started{Replayed: true}
	err := json.Unmarshal(answer, &started.StartedRun)
	return started, err
}

func newClient() puntuale.NewClient {
	a := puntuale.NewAccount(puntuale.AccountFull, Day)
	a.Created = Begin
	return puntuale.NewClient{Client: a, Login: puntuale.Login{Email: Unique("n") + "@x"}, Session: puntuale.Session{Type: puntuale.Socket}, Key: puntuale.Key{Hash: KeyHash()}}
}

// testOnceKeepsAnswer checks that a call with an idempotency key takes effect once. Its answer must be stored byte for
// byte.
func testOnceKeepsAnswer(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c := w.Client(puntuale.AccountFull)
	c.MustStart(phone, Begin, 1)
	for table, call := range onceCalls {
		kept := func(o *puntuale.Idempotency) ([]byte, error) {
			if table == "client" || table == "api_key" {
				return p.KeptAnswer(ctx, *o)
			}
			return c.KeptAnswer(ctx, *o)
		}
		o := keep(table, "h")
		if answer, err := kept(o); answer != nil || err != nil {
			t.Errorf("%s: before: %q, %v", table, answer, err)
		}
		count := func() int64 { return w.Int("select count(*) from " + table) }
		result, err := call(c, p, o)
		if err != nil {
			t.Errorf("%s: %v", table, err)
			continue
		}
		n, want := count(), fmt.Appendf(nil, "\x00\xff%v", result)
		_, err = call(c, p, keep(table, "h"))
		if r, ok := errors.AsType[*puntuale.Replayed](err); !ok || !bytes.Equal(r.Answer, want) {
			t.Errorf("%s: again: %v, want %q", table, err, want)
		}
		if answer, err := kept(o); err != nil || !bytes.Equal(answer, want) {
			t.Errorf("%s: kept %q, %v, want %q", table, answer, err, want)
		}
		_, err = call(c, p, keep(table, "other"))
		if puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("%s: another body: %v", table, err)
		}
		if _, err := kept(keep(table, "other")); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("%s: another body kept: %v", table, err)
		}
		if count() != n {
			t.Errorf("%s: %d rows, %d before", table, count(), n)
		}
	}
}

// testOnceTwins makes equal calls at the same time, on two stores. One must take effect, and all must get the same
// answer.
func testOnceTwins(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	second := w.DB.Open(t)
	var made atomic.Int64
	answers := make([]string, 12)
	Together(len(answers), func(i int) {
		tenant := c.Tenant
		if i%2 == 1 {
			tenant = second.Tenant(c.ID)
		}
		id, err := tenant.CreateTemplate(context.Background(), puntuale.Template{Name: "benvenuto"}, keep("k", "h"))
		if r, ok := errors.AsType[*puntuale.Replayed](err); ok {
			answers[i] = string(r.Answer)
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		made.Add(1)
		answers[i] = fmt.Sprintf("\x00\xff%v", id)
	})
	for _, a := range answers {
		if a != answers[0] {
			t.Errorf("answers %q and %q", a, answers[0])
		}
	}
	if n := w.Int("select count(*) from template"); n != 1 || made.Load() != 1 {
		t.Fatalf("%d templates, %d made", n, made.Load())
	}
}

// testOnceRefusedKeyIsFree checks that a refused call does not use up its key and stores nothing.
func testOnceRefusedKeyIsFree(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	_, err := c.CreateSequence(ctx, puntuale.Sequence{Session: 999}, keep("k", "h"))
	WantCode(t, err, puntuale.CodeNotFound)
	_, err = c.CreateSequence(ctx, puntuale.Sequence{}, &puntuale.Idempotency{Scope: "POST /api/x", Key: "k", Hash: "h",
		Answer: func(any) ([]byte, error) { return nil, errors.New("no answer") }})
	if err == nil {
		t.Fatal("stored without an answer")
	}
	if n := w.Int("select count(*) from sequence"); n != 1 {
		t.Fatalf("%d sequences", n)
	}
	if _, err := c.CreateSequence(ctx, puntuale.Sequence{}, keep("k", "other")); err != nil {
		t.Fatal(err)
	}
}

// testOnceWaitsForTwin makes a call while the transaction of an equal call is open. The second call must wait. If the
// first transaction fails, the second call must take effect.
func testOnceWaitsForTwin(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for _, commits := range []bool{true, false} {
		key := fmt.Sprint(commits)
		twin, err := w.DB.SQL.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := twin.Exec("insert into idempotency (client_id, scope, key, hash, at, result) values ($1, 'POST /api/x', $2, 'h', 1, 'theirs')", c.ID, key); err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		go func() {
			_, err := c.CreateSession(ctx, puntuale.Session{Type: puntuale.Socket}, keep(key, "h"))
			answered <- err
		}()
		w.awaitLockWait(twin)
		end := (*sql.Tx).Rollback
		if commits {
			end = (*sql.Tx).Commit
		}
		if err := end(twin); err != nil {
			t.Fatal(err)
		}
		err = <-answered
		r, replayed := errors.AsType[*puntuale.Replayed](err)
		if replayed != commits || commits && string(r.Answer) != "theirs" || !commits && err != nil {
			t.Errorf("commits %v: %v", commits, err)
		}
	}
}

// awaitLockWait returns when another transaction waits for a lock of tx.
func (w *World) awaitLockWait(tx *sql.Tx) {
	w.t.Helper()
	var pid int64
	if err := tx.QueryRow("select pg_backend_pid()").Scan(&pid); err != nil {
		w.t.Fatal(err)
	}
	for w.Int("select count(*) from pg_stat_activity where $1 = any(pg_blocking_pids(pid))", pid) == 0 {
		if w.t.Context().Err() != nil {
			return
		}
	}
}
