package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale/internal/store/engine"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql
	_ "modernc.org/sqlite"             // the driver "sqlite" of database/sql

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store"
)

// Driver opens empty databases of one kind.
type Driver func(t testing.TB) *Database

// Database is a database for one test. It is migrated and empty, and it is deleted when the test ends.
type Database struct {
	Config   engine.Config
	Clock    *clock.Fake // shows Begin until the test advances it
	Meter    *Meter
	SQL      *sql.DB // a connection outside the store, for tests that read rows or damage them
	Postgres bool
}

// Meter counts things that tests check: deadlocks, calls over the cap, messages set aside, and batches of inbound
// messages.
type Meter struct {
	puntuale.NoMeter
	Deadlocks, Refusals, SetAside, Inbound atomic.Int64
}

func (m *Meter) Batch(operation string, _ int, _ time.Duration) {
	if operation == "inbound" {
		m.Inbound.Add(1)
	}
}

func (m *Meter) Deadlock()         { m.Deadlocks.Add(1) }
func (m *Meter) CapRefused(n int)  { m.Refusals.Add(int64(n)) }
func (m *Meter) Quarantined(n int) { m.SetAside.Add(int64(n)) }

// Begin is the time that the clock of a test shows at the beginning.
var Begin = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// Address is the name of an environment variable. Its value is the address of a PostgreSQL server on which tests may
// create databases. scripts/with-postgres sets it.
const Address = "PUNTUALE_TEST_POSTGRES"

// Open opens the database, and closes it when the test ends. It may be called several times for one database.
func (d *Database) Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), d.Config)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// Templates is the name of an environment variable. Its value is a folder in which the processes of one test run share
// their templates. scripts/gotest makes it. Without it, each process makes its own templates.
const Templates = "PUNTUALE_TEST_TEMPLATES"

// template returns the content of a file in the folder for templates. If the file does not exist, build makes its
// content. Two processes may build it at the same time: both contents are correct, and the later one stays.
func template(file string, build func() ([]byte, error)) ([]byte, error) {
	dir := os.Getenv(Templates)
	if dir == "" {
		return build()
	}
	path := filepath.Join(dir, file)
	if content, err := os.ReadFile(path); err == nil || !os.IsNotExist(err) {
		return content, err
	}
	content, err := build()
	if err != nil {
		return nil, err
	}
	written := path + rand.Text()
	if err := os.WriteFile(written, content, 0o600); err != nil {
		return nil, err
	}
	return content, os.Rename(written, path)
}

// sqliteTemplate makes an empty migrated file once. Copying this file is faster than a migration.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	return template("sqlite", func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "puntuale-template")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := store.Migrate(context.Background(), engine.Config{Data: dir}); err != nil {
			return nil, err
		}
		return os.ReadFile(filepath.Join(dir, "puntuale.db"))
	})
})

// SQLite opens a new, empty SQLite database for one test.
func SQLite(t testing.TB) *Database {
	t.Helper()
	file, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("make the template: %v", err)
	}
	d := &Database{Clock: clock.NewFake(Begin), Meter: &Meter{}}
	d.Config = engine.Config{Data: t.TempDir(), Clock: d.Clock, Meter: d.Meter}
	path := filepath.Join(d.Config.Data, "puntuale.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	d.SQL = open(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	return d
}

// postgresTemplate makes an empty migrated database once, and returns its name.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	name, err := template("postgres", func() ([]byte, error) {
		name := "puntuale_template_" + rand.Text()
		if err := onCluster(`create database "` + name + `"`); err != nil {
			return nil, err
		}
		return []byte(name), store.Migrate(context.Background(), engine.Config{Database: inCluster(name)})
	})
	return string(name), err
})

// Postgres opens a new, empty database on the PostgreSQL server. If there is no server, it skips the test, but in CI it
// fails the test.
func Postgres(t testing.TB) *Database {
	t.Helper()
	if os.Getenv(Address) == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set, so PostgreSQL was not tested; in CI that is a failure", Address)
		}
		t.Skipf("%s is not set, so PostgreSQL is not tested; run with scripts/with-postgres", Address)
	}
	template, err := postgresTemplate()
	if err != nil {
		t.Fatalf("make the template: %v", err)
	}
	name := "puntuale_test_" + rand.Text()
	if err := onCluster(`create database "` + name + `" template "` + template + `" strategy file_copy`); err != nil { // half as long as through the log
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := onCluster(`drop database "` + name + `" with (force)`); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	d := &Database{Clock: clock.NewFake(Begin), Meter: &Meter{}, Postgres: true}
	d.Config = engine.Config{Database: inCluster(name), Clock: d.Clock, Meter: d.Meter}
	d.SQL = open(t, "pgx", inCluster(name))
	return d
}

// inCluster returns the address of a database on the test server.
func inCluster(name string) string {
	address, err := url.Parse(os.Getenv(Address))
	if err != nil {
		return os.Getenv(Address) // the connection then fails with a clear error
	}
	address.Path = "/" + name
	return address.String()
}

func onCluster(statement string) error {
	db, err := sql.Open("pgx", os.Getenv(Address))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func open(t testing.TB, driver, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
