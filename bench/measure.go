package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/dispatch"
	"puntuale/internal/httpapi"
)

// each calls f for 0 to n-1 from many workers and returns how long all took.
func each(n, workers int, f func(i int) error) (time.Duration, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, workers)
	begun := time.Now()
	for range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(begun)
	select {
	case err := <-errs:
		return 0, err
	default:
		return took, nil
	}
}

func rate(n int, took time.Duration, what, unit string) result {
	return result{what: what, value: float64(n) / took.Seconds(), unit: unit}
}

// startCalls measures the store's start calls of three messages each, without HTTP.
func startCalls(ctx context.Context, f *fixture, size sizes) ([]result, error) {
	now := time.Now().UTC()
	took, err := each(size.rows/3, size.workers, func(i int) error {
		tenant, run := f.request(i, 3, now.Add(time.Hour), now)
		_, err := tenant.Start(ctx, run)
		return err
	})
	return []result{rate(size.rows/3, took, "start calls of 3 messages, store only", "calls/s"),
		rate(size.rows, took, "the same in messages", "messages/s")}, err
}

// httpCalls measures whole start calls: HTTP, authentication, validation, planning, the commit, the answer.
func httpCalls(ctx context.Context, f *fixture, size sizes) ([]result, error) {
	api, err := httpapi.New(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Now: clock.System().Now,
		Control: control.New(control.Config{Operator: f.store, Clock: clock.System(), Sandbox: true})})
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(api)
	defer server.Close()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: size.workers}}
	took, err := each(size.rows/3, size.workers, func(i int) error {
		c := f.clients[i%len(f.clients)]
		body, err := json.Marshal(map[string]string{"phone": fmt.Sprintf("+39347%07d", i), "nome": "Maria"})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/api/start/"+c.sequence.String(), bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+c.key)
		response, err := web.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%d %s", response.StatusCode, text)
		}
		return err
	})
	return []result{rate(size.rows/3, took, "start calls of 3 messages over HTTP", "calls/s")}, err
}

// noop accepts everything at once.
type noop struct{}

func (noop) Traits() puntuale.Traits {
	return puntuale.Traits{Name: "noop", Slots: 1000, SendTimeout: 10 * time.Second, Recovery: puntuale.RecoverSameID}
}
func (noop) Online(puntuale.SessionID) bool { return true }
func (noop) Prepare(_ context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	return puntuale.Prepared{Envelope: e}, nil
}
func (noop) Send(context.Context, puntuale.Prepared) (puntuale.Receipt, error) {
	return puntuale.Receipt{}, nil
}

// gauge counts recorded outcomes and keeps how late intents were committed.
type gauge struct {
	puntuale.NoMeter
	sent atomic.Int64
	mu   sync.Mutex
	late []time.Duration
}

func (g *gauge) Outcome(_ string, verdict string, n int) {
	if verdict == "sent" {
		g.sent.Add(int64(n))
	}
}

func (g *gauge) Late(d time.Duration) {
	g.mu.Lock()
	g.late = append(g.late, d)
	g.mu.Unlock()
}

func (f *fixture) dispatcher(g *gauge) *dispatch.Dispatcher {
	return dispatch.New(dispatch.Config{Queue: f.store, Fleet: f.store, Clock: clock.System(), Meter: g,
		Logger: slog.New(slog.DiscardHandler), Connector: func(puntuale.Session) puntuale.Connector { return noop{} }})
}

// dispatchRate measures from the dispatcher's start, with everything due, to the last outcome on disk.
func dispatchRate(ctx context.Context, f *fixture, size sizes) ([]result, error) {
	now := time.Now().UTC()
	if _, err := each(size.rows, size.workers, func(i int) error {
		tenant, run := f.request(i, 1, now, now)
		_, err := tenant.Start(ctx, run)
		return err
	}); err != nil {
		return nil, err
	}
	g := &gauge{}
	d := f.dispatcher(g)
	begun := time.Now()
	if err := d.Start(ctx); err != nil {
		return nil, err
	}
	for g.sent.Load() < int64(size.rows) {
		if time.Since(begun) > 5*time.Minute {
			return nil, fmt.Errorf("only %d of %d were sent", g.sent.Load(), size.rows)
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begun)
	return []result{rate(size.rows, took, "dispatch, no-op connector, intent and outcome on disk", "messages/s")}, d.Stop(ctx)
}

// lateness inserts messages due two to four seconds later at a steady rate, and measures when their intents commit.
func lateness(ctx context.Context, f *fixture, size sizes) ([]result, error) {
	g := &gauge{}
	d := f.dispatcher(g)
	if err := d.Start(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	total := size.lateRate * int(size.lateFor.Seconds())
	if _, err := each(total, 16, func(i int) error {
		at := begun.Add(time.Duration(i) * time.Second / time.Duration(size.lateRate))
		time.Sleep(time.Until(at))
		due := at.Add(2*time.Second + time.Duration(i*7919%2000)*time.Millisecond).UTC()
		tenant, run := f.request(i, 1, due, time.Now().UTC())
		_, err := tenant.Start(ctx, run)
		d.Hint(run.Run.Session, due)
		return err
	}); err != nil {
		return nil, err
	}
	for g.sent.Load() < int64(total) {
		if time.Since(begun) > size.lateFor+30*time.Second {
			return nil, fmt.Errorf("only %d of %d were sent", g.sent.Load(), total)
		}
		time.Sleep(time.Millisecond)
	}
	slices.Sort(g.late)
	at := func(share float64) float64 { return float64(g.late[int(share*float64(len(g.late)-1))]) / 1e6 }
	name := fmt.Sprintf("lateness of the intent at %d messages/s, ", size.lateRate)
	return []result{{what: name + "earliest", value: at(0), unit: "ms"}, {what: name + "p50", value: at(0.5), unit: "ms"},
		{what: name + "p99", value: at(0.99), unit: "ms"}, {what: name + "p99.9", value: at(0.999), unit: "ms"}}, d.Stop(ctx)
}

// plainInsert is the reference: the same message rows, 1,000 a statement, each statement its own commit, nothing else.
func plainInsert(ctx context.Context, f *fixture, size sizes) ([]result, error) {
	driver, address := "pgx", f.address
	if address == "" {
		driver, address = "sqlite", "file:"+f.file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	insert := insertPostgres
	if driver == "sqlite" {
		insert = insertSQLite
	}
	now := time.Now().UnixMicro()
	begun := time.Now()
	for first := 0; first < size.rows; first += 1000 {
		if err := insert(ctx, db, int64(first+1), f, now); err != nil {
			return nil, err
		}
	}
	return []result{rate(size.rows, time.Since(begun), "plain grouped insert", "messages/s")}, nil
}

const columns = `client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone`

func insertPostgres(ctx context.Context, db *sql.DB, first int64, f *fixture, now int64) error {
	clients, ids, sessions, phones := make([]int64, 1000), make([]int64, 1000), make([]int64, 1000), make([]string, 1000)
	for i := range ids {
		c := f.clients[i%len(f.clients)]
		clients[i], ids[i], sessions[i], phones[i] = int64(c.id), first+int64(i), int64(c.session), fmt.Sprintf("+39347%07d", i)
	}
	_, err := db.ExecContext(ctx, `insert into message (`+columns+`) select c, i, s, i, 0, $5::bigint, $5, $5 + 86400000000, 0, 2, p
		from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) u(c, i, s, p)`, clients, ids, sessions, phones, now)
	return err
}

// insertSQLite uses one prepared statement in one transaction, the quickest plain way found there.
func insertSQLite(ctx context.Context, db *sql.DB, first int64, f *fixture, now int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.PrepareContext(ctx, `insert into message (`+columns+`) values ($1, $2, $3, $2, 0, $4, $4, $4 + 86400000000, 0, 2, $5)`)
	if err != nil {
		return err
	}
	for i := range 1000 {
		c := f.clients[i%len(f.clients)]
		if _, err := insert.ExecContext(ctx, int64(c.id), first+int64(i), int64(c.session), now, fmt.Sprintf("+39347%07d", i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
