package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// TestFinalExportBesideCalls checks that a final export and an import are refused while another server runs. This
// server only answers calls, so it holds no lease and no dispatch lock. A copy can be exported meanwhile.
func TestFinalExportBesideCalls(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			d := driver(t)
			s := d.Open(t)
			if err := s.Check(ctx); err != nil {
				t.Fatal(err)
			}
			conflicts := func(what string, err error) {
				t.Helper()
				if puntuale.CodeOf(err) != puntuale.CodeConflict {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := transfer.Export(ctx, d.Config, io.Discard, transfer.ExportConfig{Final: true})
			conflicts("an export for good", err)
			if err := s.Check(ctx); err != nil {
				t.Errorf("the server then: %v", err)
			}
			file := exported(t, newInstallation(t, storetest.SQLite(t)).DB, transfer.ExportConfig{})
			_, err = transfer.Import(ctx, d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true})
			conflicts("an import", err)
			exported(t, d, transfer.ExportConfig{}) // servers may run while a copy is made
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			imported(t, d, file)
			exported(t, d, transfer.ExportConfig{Final: true})
		})
	}
}

// TestOpenWhileMoving checks that, while a SQLite file is being moved, no other process can open the file or remove its
// moved mark.
func TestOpenWhileMoving(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := newInstallation(t, storetest.SQLite(t))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	refused := func(cfg engine.Config) {
		t.Helper()
		s, err := store.Open(ctx, cfg)
		if puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("opened: %v", err)
		}
		if err == nil {
			s.Close()
		}
		if _, err := transfer.Reopen(ctx, cfg); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("reopened: %v", err)
		}
	}
	file := exported(t, d.DB, transfer.ExportConfig{Final: true, Progress: func(transfer.Stage, int64, int64) { refused(d.DB.Config) }})
	to := storetest.SQLite(t)
	if _, err := transfer.Import(ctx, to.Config, bytes.NewReader(file), transfer.ImportConfig{Progress: func(s transfer.Stage, _, _ int64) {
		if s == transfer.Checking {
			refused(to.Config)
		}
	}}); err != nil {
		t.Errorf("import: %v", err)
	}
	to.Open(t)
}

// TestFinalExportBesideTheCutOff exports while a server has lost its connections, so the export does not notice this
// server. When the server connects again, it must find the moved mark.
func TestFinalExportBesideTheCutOff(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := storetest.Postgres(t)
	direct := d.Config
	p := behindProxy(t, d)
	in := newInstallation(t, d)
	if _, err := d.SQL.Exec("delete from node"); err != nil { // without this row, the server looks like a server that only answers calls
		t.Fatal(err)
	}
	start := func() error {
		_, err := in.client.Start(ctx, in.client.Run(patient, storetest.Begin, 1))
		return err
	}
	p.mu.Lock()
	remote := p.server
	p.server = func() (net.Conn, error) { return nil, errors.New("the network is down") }
	p.mu.Unlock()
	p.cutAll()
	if _, err := transfer.Export(ctx, direct, io.Discard, transfer.ExportConfig{Final: true}); err != nil {
		t.Fatal(err)
	}
	exported := in.Int("select count(*) from run")
	p.mu.Lock()
	p.server = remote
	p.mu.Unlock()

	deadline := func(what string, did func() bool) {
		t.Helper()
		for began := time.Now(); !did(); {
			if time.Since(began) > 3*prompt {
				t.Fatal(what)
			}
		}
	}
	deadline("calls are not refused", func() bool {
		err := start()
		if err == nil {
			t.Fatal("a call was accepted")
		}
		return puntuale.CodeOf(err) == puntuale.CodeUnavailable && errors.Is(err, fleet.ErrMoved)
	})
	if err := in.Check(ctx); puntuale.CodeOf(err) != puntuale.CodeUnavailable || !errors.Is(err, fleet.ErrMoved) {
		t.Errorf("readiness: %v", err)
	}
	if n := in.Int("select count(*) from run"); n != exported {
		t.Errorf("%d runs, %d in the file", n, exported)
	}
	if _, err := transfer.Reopen(ctx, direct); err != nil {
		t.Fatal(err)
	}
	deadline("the way back is not found", func() bool { return start() == nil })
}

// TestCheckFindsTheMark checks that Check finds the moved mark even if no connection was lost.
func TestCheckFindsTheMark(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	s := d.Open(t)
	if err := s.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SQL.Exec("insert into moved (one, at) values (1, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(context.Background()); puntuale.CodeOf(err) != puntuale.CodeUnavailable || !errors.Is(err, fleet.ErrMoved) {
		t.Errorf("%v", err)
	}
}

// TestExportFinishesLast checks that an export calls Finish after everything was read and all connections were closed.
// So nothing can undo the moved mark later.
func TestExportFinishesLast(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			in := newInstallation(t, d)
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := d.SQL.Exec("delete from node"); err != nil {
				t.Fatal(err)
			}
			reads := "pragma wal_checkpoint(restart)" // the first column says whether a reader is still active
			if d.Postgres {
				reads = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
			}
			exported(t, d, transfer.ExportConfig{Final: true, Finish: func() error {
				var n, log, copied int64
				into := []any{&n}
				if !d.Postgres {
					into = append(into, &log, &copied)
				}
				if err := d.SQL.QueryRow(reads).Scan(into...); err != nil || n != 0 {
					t.Errorf("%d read when the file is put in its place, %v", n, err)
				}
				return nil
			}})
		})
	}
}

// TestImportedLinks checks that an import resets those states of a link that only the session's owner can know. After an
// import, no node owns the session.
func TestImportedLinks(t *testing.T) {
	t.Parallel()
	type link struct {
		state  puntuale.LinkState
		at     int64
		detail string
	}
	const since = 7
	now := storetest.Begin.UnixMicro()
	tests := map[puntuale.LinkState]link{
		puntuale.LinkAsCreated: {puntuale.LinkAsCreated, since, "d"},
		puntuale.LinkUnlinked:  {puntuale.LinkUnlinked, since, "d"},
		puntuale.LinkPairing:   {puntuale.LinkUnlinked, now, ""},
		puntuale.LinkLinked:    {puntuale.LinkLinked, since, "d"},
		puntuale.LinkOnline:    {puntuale.LinkLinked, now, ""},
	}
	from := storetest.NewWorld(t, storetest.SQLite(t))
	sessions := map[puntuale.LinkState]puntuale.SessionID{}
	for state := range tests {
		sessions[state] = from.Client(puntuale.AccountFull).Session
		from.Exec("update session set link = $1, link_at = $2, number = '+39', link_detail = 'd' where id = $3", int64(state), since, int64(sessions[state]))
	}
	file := exported(t, from.DB, transfer.ExportConfig{})
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			imported(t, d, file)
			for state, want := range tests {
				var got link
				var number string
				if err := d.SQL.QueryRow("select link, link_at, link_detail, number from session where id = $1", int64(sessions[state])).
					Scan(&got.state, &got.at, &got.detail, &number); err != nil {
					t.Fatal(err)
				}
				if got != want || number != "+39" {
					t.Errorf("%s became %+v with %q, want %+v", state, got, number, want)
				}
			}
		})
	}
}
