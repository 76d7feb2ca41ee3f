package httpapi_test

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"puntuale/internal/clock"
	"puntuale/internal/store"
)

// databases runs a test on both, each time with a fresh service.
func databases(t *testing.T, o options, test func(*testing.T, *service)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newService(t, o))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		o.database = postgres(t)
		test(t, newService(t, o))
	})
}

// openStore opens the database, or a fresh SQLite file for "".
func openStore(t *testing.T, c clock.Clock, database string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Database: database, Data: t.TempDir(), Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// postgres creates a database of its own on the run's cluster and returns its address.
func postgres(t *testing.T) string {
	t.Helper()
	admin := os.Getenv("PUNTUALE_TEST_POSTGRES")
	if admin == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUNTUALE_TEST_POSTGRES is not set: in CI the PostgreSQL tests must run")
		}
		t.Skip("PUNTUALE_TEST_POSTGRES is not set (scripts/with-postgres sets it)")
	}
	name := "httpapi_" + strings.ToLower(rand.Text()[:10])
	db, err := sql.Open("pgx", admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("drop database if exists " + name + " with (force)"); err != nil { //nolint:noctx // the test's context is over
			t.Error(err)
		}
	})
	address, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name
	return address.String()
}
