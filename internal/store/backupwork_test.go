package store_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// TestBackupJobs: only one attempt at a job runs. A lost attempt changes nothing. After the deadline, and after the wait of
// a failure, another attempt begins. A job that is done begins again only for a later moment.
func TestBackupJobs(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver storetest.Driver) {
		ctx := t.Context()
		d := driver(t)
		one, two := d.Open(t), d.Open(t)
		planned := storetest.Begin
		begin := func(s *store.Store, lease time.Duration, want bool) puntuale.BackupState {
			t.Helper()
			state, begun, err := s.BeginBackupJob(ctx, puntuale.JobBackup, planned, lease)
			if err != nil || begun != want {
				t.Fatalf("begun: %v, %v", begun, err)
			}
			return state
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		lost := begin(one, time.Millisecond, true)
		time.Sleep(20 * time.Millisecond) // the database's own clock decides
		own := begin(two, time.Hour, true)
		begin(one, time.Hour, false)
		for what, err := range map[string]error{
			"hold": one.HoldBackupJob(ctx, puntuale.JobBackup, lost.Token, time.Hour), "end": one.EndBackupJob(ctx, puntuale.JobBackup, lost.Token, "x", nil),
			"fail": one.FailBackupJob(ctx, puntuale.JobBackup, lost.Token, "x", 0), "free": one.FreeBackupJob(ctx, puntuale.JobBackup, lost.Token),
		} {
			if !errors.Is(err, puntuale.ErrFenced) {
				t.Errorf("%s with a lost attempt: %v", what, err)
			}
		}
		must(two.HoldBackupJob(ctx, puntuale.JobBackup, own.Token, time.Hour))
		must(two.FailBackupJob(ctx, puntuale.JobBackup, own.Token, "no route", time.Hour))
		begin(one, time.Hour, false)
		must(two.FreeBackupJob(ctx, puntuale.JobBackup, own.Token))
		again := begin(one, time.Hour, true)
		if again.Tries != 1 || again.Fault != "no route" || again.Token <= own.Token || again.FaultAt.IsZero() {
			t.Errorf("%+v", again)
		}
		must(one.EndBackupJob(ctx, puntuale.JobBackup, again.Token, `{"name":"x"}`, []byte("s\x00\xff")))
		begin(two, time.Hour, false)
		state, err := two.BackupState(ctx, puntuale.JobBackup)
		if err != nil || !state.Done.Equal(planned) || state.Fault != "" || string(state.Opener) != "s\x00\xff" || state.Result != `{"name":"x"}` || time.Since(state.DoneAt).Abs() > time.Minute {
			t.Errorf("%+v, %v", state, err)
		}
		rehearsal, begun, err := two.BeginBackupJob(ctx, puntuale.JobRehearsal, planned, time.Hour)
		if err != nil || !begun {
			t.Fatalf("the rehearsal: %v, %v", begun, err)
		}
		must(two.EndBackupJob(ctx, puntuale.JobRehearsal, rehearsal.Token, "{}", nil))
		if state, err = one.BackupState(ctx, puntuale.JobBackup); err != nil || len(state.Opener) != 0 {
			t.Errorf("what opens the backup stays after the rehearsal: %+v, %v", state, err)
		}
		planned = planned.Add(24 * time.Hour)
		if next := begin(two, time.Hour, true); next.Tries != 0 || next.Result == "" {
			t.Errorf("%+v", next)
		}
	})
}

// openBackup writes a backup of an open store, and opens it.
func openBackup(t *testing.T, s *store.Store) *archive.BackupReader {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup.zip")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(t.Context(), file, transfer.BackupConfig{Program: "test", Finish: func() error {
		return errors.Join(file.Close(), transfer.CheckBackup(t.Context(), name))
	}}); err != nil {
		t.Fatalf("back up: %v", err)
	}
	r, err := archive.OpenBackup(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestRehearsal: a backup of an open store is restored into a scratch database of the same kind, which is gone afterwards.
// A scratch database that a killed rehearsal left does not matter; a database of this name that is none stays.
func TestRehearsal(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver storetest.Driver) {
		ctx := t.Context()
		d := driver(t)
		in := newInstallation(t, d)
		backup := openBackup(t, in.Store)
		if at, err := in.LastBackup(ctx); err != nil || !at.Equal(storetest.Begin) {
			t.Errorf("the last backup is of %v, %v", at, err)
		}
		want := count(t, d, "select count(*) from message")
		rehearse := func(scratch engine.Config) {
			t.Helper()
			done, err := transfer.Rehearse(ctx, scratch, backup, nil)
			if err != nil || done.Messages != want || done.Rows <= want {
				t.Fatalf("%+v of %d messages, %v", done, want, err)
			}
		}
		if size, err := in.DatabaseSize(ctx); err != nil || size < 100_000 {
			t.Errorf("the database has %d bytes, %v", size, err)
		}
		if made, old, err := in.DatabaseVersion(ctx); err != nil || old || d.Postgres != strings.HasPrefix(made, "PostgreSQL 1") {
			t.Errorf("%s, %v, %v", made, old, err)
		}
		if !d.Postgres {
			rehearse(engine.Config{Data: filepath.Join(t.TempDir(), "new"), Clock: d.Clock})
			return
		}
		for range 2 { // the first one is left behind, as by a killed rehearsal
			scratch, _, err := transfer.CreateScratch(ctx, d.Config)
			if err != nil {
				t.Fatal(err)
			}
			rehearse(scratch)
		}
		scratch, drop, err := transfer.CreateScratch(ctx, d.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := drop(ctx); err != nil {
			t.Fatal(err)
		}
		if s, err := store.Open(ctx, scratch); err == nil {
			t.Errorf("the scratch database is still there: %v", s.Close())
		}
		foreignScratch(t, d)
		powerless(t, d)
	})
}

// foreignScratch: a database that no rehearsal made is never dropped.
func foreignScratch(t *testing.T, d *storetest.Database) {
	t.Helper()
	var name string
	if err := d.SQL.QueryRow("select current_database() || '_rehearsal'").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SQL.Exec(`create database "` + name + `"`); err != nil {
		t.Fatal(err)
	}
	defer d.SQL.Exec(`drop database "` + name + `"`)
	if _, _, err := transfer.CreateScratch(t.Context(), d.Config); err == nil || !strings.Contains(err.Error(), "no rehearsal made") {
		t.Errorf("a database of somebody else: %v", err)
	}
}

// powerless: a role that may not create databases is recognised.
func powerless(t *testing.T, d *storetest.Database) {
	t.Helper()
	role := "powerless_" + strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	for _, statement := range []string{"drop role if exists " + role, "create role " + role + " login password 'x'", "grant pg_read_all_data, pg_write_all_data to " + role} {
		if _, err := d.SQL.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	defer d.SQL.Exec("drop role " + role)
	address, err := url.Parse(d.Config.Database)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(role, "x")
	db, err := sql.Open("pgx", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(context.Background()); err != nil {
		t.Logf("the test's PostgreSQL accepts no other role (%v), so this was not tested", err)
		return
	}
	cfg := d.Config
	cfg.Database = address.String()
	if _, _, err := transfer.CreateScratch(t.Context(), cfg); !errors.Is(err, transfer.ErrMayNotCreate) {
		t.Errorf("%v", err)
	}
}
