package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/migration"
	"puntuale/internal/store/storetest"
)

// TestUpgradeCheck looks at databases of every age. The command names what would change, and changes nothing itself.
func TestUpgradeCheck(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	ask := func(args ...string) (code int, said string) {
		term.out.Reset()
		term.errs.Reset()
		code = term.run(context.Background(), append([]string{"upgrade", "--check", "--data", "d"}, args...))
		return code, term.out.String() + term.errs.String()
	}
	if code, said := ask(); code != exitFailed || !strings.Contains(said, "no database") {
		t.Errorf("without a database: %d: %s", code, said)
	}
	if code := term.run(context.Background(), []string{"migrate", "--data", "d"}); code != exitDone {
		t.Fatal(term.errs.String())
	}
	if code, said := ask(); code != exitDone || !strings.Contains(said, "Nothing in the database changes") {
		t.Errorf("with the same version: %d: %s", code, said)
	}
	folder := filepath.Join(term.dir, "d")
	before := contentsOf(t, folder)
	set := func(version int64) {
		db, err := engine.Open(t.Context(), engine.Config{Data: folder}, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.FleetWriter.Do(t.Context(), engine.Single(db.Writes, func(ctx context.Context, a engine.Querier) error {
			_, err := engine.QueryOne(ctx, a, `update puntuale_version set version_id = $1 where version_id = (select max(version_id) from puntuale_version) returning version_id`,
				[]any{version}, new(int64))
			return err
		}), true); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if code, _ := ask(); code != exitDone || contentsOf(t, folder) != before {
		t.Error("the command changed a file")
	}
	latest, err := migration.Latest(migration.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	set(latest + 1)
	if code, said := ask(); code != exitFailed || !strings.Contains(said, "newer") {
		t.Errorf("with newer tables: %d: %s", code, said)
	}
	if code, said := ask("--no-check"); code != exitUsage {
		t.Errorf("without --check: %d: %s", code, said)
	}
}

// TestUpgradeCheckPostgres looks at a PostgreSQL of this version, of version 0.1.0, and of a later one.
func TestUpgradeCheckPostgres(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	term := newConsole(t, nil)
	for _, c := range []struct {
		change string
		code   int
		said   string
	}{
		{"", exitDone, "Nothing in the database changes"},
		{"delete from puntuale_version where version_id > 19", exitDone, "58 key_reader"},
		{"insert into puntuale_version (version_id, is_applied) values (999, true)", exitFailed, "newer"},
	} {
		if _, err := d.SQL.Exec(c.change); err != nil {
			t.Fatal(err)
		}
		term.out.Reset()
		term.errs.Reset()
		code := term.run(t.Context(), []string{"upgrade", "--check", "--data", "d", "--database", d.Config.Database})
		if said := term.out.String() + term.errs.String(); code != c.code || !strings.Contains(said, c.said) {
			t.Errorf("after %q: %d: %s", c.change, code, said)
		}
	}
}

// contentsOf returns the names and the digests of a folder's files.
func contentsOf(t *testing.T, folder string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%s %x\n", entry.Name(), sha256.Sum256(text))
	}
	return all
}
