package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/migration"
	"puntuale/internal/store/storetest"
)

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// used makes a SQLite file that a server has used and closed. It returns the database and the file's path.
func used(t *testing.T) (*storetest.Database, string) {
	t.Helper()
	d := storetest.SQLite(t)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	for range 20 {
		c.MustStart("+393331234567", storetest.Begin, 50)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return d, filepath.Join(d.Config.Data, "puntuale.db")
}

// wantUntrusted checks that Open refuses the file, that the error contains the text in says, and that Open does not
// change the file.
func wantUntrusted(t *testing.T, cfg engine.Config, path, says string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	s, err := store.Open(context.Background(), cfg)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, puntuale.ErrUntrusted) || !strings.Contains(err.Error(), says) {
		t.Fatalf("error = %v, want one that says %q", err, says)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Fatal("the refusal changed the file")
	}
}

func TestSQLiteUntrusted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage func(t *testing.T, d *storetest.Database, path string)
		says   string
	}{
		"empty file": {func(t *testing.T, _ *storetest.Database, path string) {
			write(t, path, nil)
		}, "is empty"},
		"text": {func(t *testing.T, _ *storetest.Database, path string) {
			write(t, path, bytes.Repeat([]byte("no database "), 1000))
		}, "is not a SQLite file"},
		"a few bytes": {func(t *testing.T, _ *storetest.Database, path string) {
			write(t, path, []byte("SQLite format 3\x00"))
		}, "is not a SQLite file"},
		"a page of noise": {func(t *testing.T, _ *storetest.Database, path string) {
			file := read(t, path)
			copy(file[len(file)/2/4096*4096:], bytes.Repeat([]byte{0xa5}, 4096))
			write(t, path, file)
		}, "is damaged"},
		"cut off": {func(t *testing.T, _ *storetest.Database, path string) {
			file := read(t, path)
			write(t, path, file[:len(file)/2])
		}, "is damaged"},
		"its log without it": {func(t *testing.T, _ *storetest.Database, path string) {
			if err := os.Rename(path, path+"-wal"); err != nil {
				t.Fatal(err)
			}
		}, "is missing"},
		"gone from beside its lock": {func(t *testing.T, _ *storetest.Database, path string) {
			write(t, path+".lock", nil)
			write(t, path+".dispatch", nil)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "was in use"},
		"another program's": {func(t *testing.T, d *storetest.Database, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			other, err := sql.Open("sqlite", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			exec(t, other, "create table t (a)")
		}, "none of Puntuale"},
		"a newer program's": {func(t *testing.T, d *storetest.Database, _ string) {
			exec(t, d.SQL, "insert into puntuale_version (version_id, is_applied) values (9999, 1)")
			d.SQL.Close()
		}, "newer program"},
		"synchronous normal": {func(_ *testing.T, d *storetest.Database, path string) {
			d.Config.Database = "sqlite:" + path + "?_pragma=synchronous(NORMAL)"
		}, "synchronous 1"},
		"synchronous off": {func(_ *testing.T, d *storetest.Database, path string) {
			d.Config.Database = "sqlite:" + path + "?_synchronous=OFF"
		}, "synchronous 0"},
		"synchronous one": {func(_ *testing.T, d *storetest.Database, path string) {
			d.Config.Database = "sqlite:" + path + "?_pragma=%20Synchronous%20=%201"
		}, "synchronous 1"},
		"memory log": {func(_ *testing.T, d *storetest.Database, path string) {
			d.Config.Database = "sqlite:" + path + "?_pragma=journal_mode(MEMORY)"
		}, "journal_mode memory"},
		"no log": {func(_ *testing.T, d *storetest.Database, path string) {
			d.Config.Database = "sqlite:" + path + "?_journal_mode=DELETE"
		}, "journal_mode delete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, path := used(t)
			test.damage(t, d, path)
			if strings.HasPrefix(test.says, "journal_mode") {
				path = "" // do not compare the file, because the wrong setting itself changes it
			}
			wantUntrusted(t, d.Config, path, test.says)
		})
	}
}

func TestSQLiteCreates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "a", "b è #?")
	path := filepath.Join(dir, "puntuale.db")
	_, err := store.Open(ctx, engine.Config{Data: dir, NoMigrate: true})
	if !errors.Is(err, migration.ErrEmpty) || errors.Is(err, puntuale.ErrUntrusted) {
		t.Fatalf("without migrating: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a file was created")
	}
	write(t, path+".new", []byte("what a crash left"))
	write(t, path+".lock", nil)
	var wait sync.WaitGroup
	for range 4 { // several servers open the file at the same time, and one of them creates it
		wait.Go(func() {
			s, err := store.Open(ctx, engine.Config{Data: dir})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := errors.Join(s.Check(ctx), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, rest := range []string{".new", ".new-wal", ".new-shm"} {
		if _, err := os.Stat(path + rest); err == nil {
			t.Errorf("%s is left", rest)
		}
	}
	s, err := store.Open(ctx, engine.Config{Data: dir, NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	release, err := s.LockDispatch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LockDispatch(ctx); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Fatalf("a second dispatcher: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = s.LockDispatch(ctx); err != nil {
		t.Fatalf("after it was released: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	for _, cfg := range []engine.Config{{}, {Database: "mysql://x"}, {Database: "postgres://%zz"}} {
		if s, err := store.Open(context.Background(), cfg); err == nil {
			s.Close()
			t.Errorf("%+v was opened", cfg)
		}
	}
	_, err := store.Open(context.Background(), engine.Config{Database: "postgres://nobody@127.0.0.1:1/none?sslmode=disable"})
	if puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestPostgresUntrusted(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	off := d.Config
	address, err := url.Parse(off.Database)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("options", "-c synchronous_commit=off")
	address.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	off.Database = address.String()
	wantUntrusted(t, off, "", "synchronous_commit = off")
	exec(t, d.SQL, "insert into puntuale_version (version_id, is_applied) values (9999, true)")
	wantUntrusted(t, d.Config, "", "newer program")
}

// TestPostgresMigratesOnce checks that an empty database is migrated only once, even if several nodes find it empty at
// the same time.
func TestPostgresMigratesOnce(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	exec(t, d.SQL, "drop schema public cascade; create schema public")
	ctx := context.Background()
	none := d.Config
	none.NoMigrate = true
	if _, err := store.Open(ctx, none); !errors.Is(err, migration.ErrEmpty) {
		t.Fatalf("without migrating: %v", err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			s, err := store.Open(ctx, d.Config)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := errors.Join(s.Check(ctx), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func write(t *testing.T, path string, file []byte) {
	t.Helper()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}
