package dispatch_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/dispatch"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
)

// postgresEnv is the environment variable with the address of a PostgreSQL server. Tests may create databases on this
// server.
const postgresEnv = "PUNTUALE_TEST_POSTGRES"

// world is a real store with one client. The client's default session is a sandbox.
type world struct {
	store    *store.Store
	raw      *sql.DB // for statements that the store has no method for
	tenant   puntuale.Tenant
	client   puntuale.ClientID
	session  puntuale.SessionID
	runs     atomic.Int64
	postgres bool
}

// onBoth runs a test on SQLite, and on PostgreSQL if a server is available.
func onBoth(t *testing.T, run func(t *testing.T, open func(*testing.T) *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		run(t, func(t *testing.T) *world { return openWorld(t, "") })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if os.Getenv(postgresEnv) == "" {
			t.Skipf("no PostgreSQL: %s is not set", postgresEnv)
		}
		run(t, func(t *testing.T) *world { return openWorld(t, newDatabase(t)) })
	})
}

// newDatabase creates a migrated database for the test, and returns its address.
func newDatabase(t testing.TB) string {
	t.Helper()
	return storetest.Postgres(t).Config.Database
}

func openWorld(t testing.TB, database string) *world {
	t.Helper()
	cfg := engine.Config{Database: database, Clock: clock.System(), Logger: quiet()}
	if database == "" {
		cfg.Data = storetest.SQLite(t).Config.Data
	}
	st, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	w := &world{store: st, postgres: database != ""}
	if w.postgres {
		w.raw, err = sql.Open("pgx", database)
	} else {
		w.raw, err = sql.Open("sqlite", "file:"+filepath.Join(cfg.Data, "puntuale.db")+"?_pragma=busy_timeout(10000)")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.raw.Close() })
	w.client, w.session = w.newClient(t)
	w.tenant = st.Tenant(w.client)
	return w
}

var keys atomic.Int64

func newKey() puntuale.Key {
	return puntuale.Key{Name: "test", Prefix: "xx", Hash: sha256.Sum256(fmt.Append(nil, "key", keys.Add(1))), Created: time.Now()}
}

// newClient creates a partner with one client that has no limits.
func (w *world) newClient(t testing.TB) (puntuale.ClientID, puntuale.SessionID) {
	t.Helper()
	now := clock.System().Now()
	n := keys.Add(1)
	login := puntuale.Login{Email: fmt.Sprintf("p%d@example.com", n), Password: "x"}
	partner, err := w.store.CreatePartner(t.Context(), puntuale.Partner{Name: "P", Slug: fmt.Sprintf("p%d", n), Created: now}, login, newKey())
	if err != nil {
		t.Fatalf("create a partner: %v", err)
	}
	c := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now))
	c.Name, c.Partner, c.Created = "C", partner, now
	created, err := w.store.Partner(partner).CreateClient(t.Context(), puntuale.NewClient{
		Client: c, Login: puntuale.Login{Email: "c@example.com", Password: "x"}, Key: newKey(),
		Session: puntuale.Session{Name: "S", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now},
	}, nil)
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	return created.Client, created.Session
}

// start stores a run to a phone, with one message for each due time. The argument valid says how long each message is
// valid.
func (w *world) start(t testing.TB, phone string, valid time.Duration, due ...time.Time) []puntuale.MessageID {
	t.Helper()
	ids, err := w.begin(t.Context(), phone, valid, due...)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return ids
}

func (w *world) begin(ctx context.Context, phone string, valid time.Duration, due ...time.Time) ([]puntuale.MessageID, error) {
	return w.beginFor(ctx, w.client, w.session, phone, valid, due...)
}

func (w *world) beginFor(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, phone string, valid time.Duration, due ...time.Time) ([]puntuale.MessageID, error) {
	now := clock.System().Now()
	s := puntuale.StartRun{Day: puntuale.DateOf(now), Now: now, Run: puntuale.Run{
		Client: client, Session: session, Phone: phone, Origin: puntuale.OriginSingle, Name: "N", Zone: "Europe/Rome",
		Received: now, Request: []byte(`{}`), ClientName: "C",
	}}
	for i, at := range due {
		content := puntuale.Content{Text: fmt.Sprintf("%s %d %d", phone, w.runs.Add(1), i)}
		s.Run.Steps = append(s.Run.Steps, puntuale.FrozenStep{Step: i, Content: content})
		s.Messages = append(s.Messages, puntuale.PlannedMessage{
			Step: i, Content: content, Due: at, DueMax: at, ValidUntil: at.Add(valid),
		})
	}
	started, err := w.store.Tenant(client).Start(ctx, s)
	return started.IDs, err
}

func (w *world) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := w.raw.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (w *world) message(t testing.TB, id puntuale.MessageID) puntuale.MessageDetail {
	t.Helper()
	found, err := w.tenant.Details(t.Context(), []puntuale.MessageID{id})
	if err != nil || len(found) != 1 {
		t.Fatalf("details of %d: %d found, %v", id, len(found), err)
	}
	return found[0]
}

// states counts the messages in each state.
func (w *world) states(t testing.TB, ids []puntuale.MessageID) map[puntuale.State]int {
	t.Helper()
	count := map[puntuale.State]int{}
	for len(ids) > 0 {
		n := min(len(ids), 1000)
		found, err := w.tenant.Details(t.Context(), ids[:n])
		if err != nil {
			t.Fatalf("details: %v", err)
		}
		for _, m := range found {
			count[m.State]++
		}
		ids = ids[n:]
	}
	return count
}

// ledger returns the messages that reached the simulated network, oldest first.
func (w *world) ledger(t testing.TB) (all []puntuale.SandboxMessage) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := w.tenant.SandboxMessages(t.Context(), puntuale.Page{Limit: 1000, Cursor: cursor})
		if err != nil {
			t.Fatalf("read the ledger: %v", err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// copies returns the number of rows and the number of copies of each message in the ledger.
func (w *world) copies(t testing.TB) (rows, copies map[puntuale.MessageID]int) {
	t.Helper()
	rows, copies = map[puntuale.MessageID]int{}, map[puntuale.MessageID]int{}
	for _, m := range w.ledger(t) {
		rows[m.Message]++
		copies[m.Message] += m.Copies
	}
	return rows, copies
}

// config returns a configuration that sends to the world's sandbox and has short intervals.
func (w *world) config() dispatch.Config {
	c := sandbox.New(w.store, clock.System(), 0)
	return dispatch.Config{
		Queue: w.store, Fleet: w.store, Logger: quiet(),
		Connector: func(puntuale.Session) puntuale.Connector { return c },
	}
}

func (w *world) dispatch(t testing.TB, cfg dispatch.Config) *dispatch.Dispatcher {
	t.Helper()
	d := dispatch.New(cfg)
	if err := d.Start(t.Context()); err != nil {
		t.Fatalf("start the dispatcher: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Errorf("stop the dispatcher: %v", err)
		}
	})
	return d
}

// eventually waits until condition returns true. The limit is long enough for a slow machine.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
