package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
)

// large makes a SQLite file that is too large to be checked completely at each start. It closes the file and returns
// its path. Most of the file is entries of one client in the simulated network's ledger.
func large(t *testing.T) (*storetest.Database, *storetest.Client, string) {
	t.Helper()
	d := storetest.SQLite(t)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	for range 3 {
		c.MustStart("+393331234567", storetest.Begin, 2)
	}
	exec(t, d.SQL, `insert into sandbox_message (client_id, message_id, connector_id, phone, content, received_at)
 with recursive n(i) as (select 1 union all select i + 1 from n where i < 250)
 select $1, i, 'x' || i, '+39', json_object('text', hex(randomblob(50000))), 1 from n`, c.ID)
	path := filepath.Join(d.Config.Data, "puntuale.db")
	if err := errors.Join(w.Close(), d.SQL.Close()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 20<<20 {
		t.Fatalf("the file is not large: %v %v", info, err)
	}
	return d, c, path
}

// overwrite damages the second half of the file.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 10<<20), 12<<20); err != nil {
		t.Fatal(err)
	}
}

func wantFailed(t *testing.T, s *store.Store) {
	t.Helper()
	select {
	case <-s.Failed():
	default:
		t.Fatal("the store goes on")
	}
	if err := s.Failure(); puntuale.CodeOf(err) != puntuale.CodeStoreDamaged {
		t.Errorf("it failed with %v", err)
	}
	if err := s.Check(context.Background()); puntuale.CodeOf(err) != puntuale.CodeStoreDamaged {
		t.Errorf("it is asked, and answers %v", err)
	}
}

// TestSQLiteDamageIsMet damages a place in the file that a start does not check. When a statement, or the check of the
// whole file, reads the damage, all later calls of the store must fail. Later starts must refuse the file until another
// file replaces it.
func TestSQLiteDamageIsMet(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(s *store.Store, c *storetest.Client) error{
		"by a statement that reads": func(s *store.Store, c *storetest.Client) error {
			_, _, err := s.Tenant(c.ID).SandboxMessages(context.Background(), puntuale.Page{Limit: 1000})
			if puntuale.CodeOf(err) != puntuale.CodeStoreDamaged {
				return nil
			}
			return err
		},
		"by the check": func(s *store.Store, _ *storetest.Client) error {
			err := s.Verify(context.Background())
			if !errors.Is(err, puntuale.ErrUntrusted) || !strings.Contains(err.Error(), "is damaged") {
				return nil
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, c, path := large(t)
			whole := read(t, path)
			overwrite(t, path)
			s := d.Open(t)
			if err := meet(s, c); err == nil {
				t.Fatal("it does not say that the store is damaged")
			}
			wantFailed(t, s)
			if err := s.Close(); err != nil {
				t.Logf("closed with %v", err)
			}
			wantUntrusted(t, d.Config, path, "is damaged")
			for _, rest := range []string{"-wal", "-shm"} {
				if err := os.Remove(path + rest); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			write(t, path, whole)
			for range 2 { // the first start finds the mark of the damage, the second start does not
				s := d.Open(t)
				if err := errors.Join(s.Verify(context.Background()), s.Check(context.Background()), s.Close()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(path + ".suspect"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the mark of damage is left: %v", err)
			}
		})
	}
}

// TestSQLiteUncleanEnd checks that a start reads more of the file if the last process did not close it.
func TestSQLiteUncleanEnd(t *testing.T) {
	t.Parallel()
	d, c, path := large(t)
	s := d.Open(t)
	if _, err := s.Tenant(c.ID).Start(context.Background(), c.Run("+393331234567", storetest.Begin, 1)); err != nil {
		t.Fatal(err)
	}
	dead := engine.Config{Data: t.TempDir()} // a copy of the files as they are after kill -9
	for _, rest := range []string{"", "-wal"} {
		write(t, filepath.Join(dead.Data, "puntuale.db"+rest), read(t, path+rest))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a clean end leaves the log: %v", err)
	}
	overwrite(t, filepath.Join(dead.Data, "puntuale.db"))
	wantUntrusted(t, dead, "", "is damaged") // opening the file copies the log into it, and this reads the damaged part
}

// TestPostgresDamageIsMet makes PostgreSQL report a damaged page. After that, the server must report that it is not
// ready, but statements on other pages must still work.
func TestPostgresDamageIsMet(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	if err := w.Store.Verify(ctx); err != nil {
		t.Fatalf("it is whole: %v", err)
	}
	w.Exec(`create function bad_page() returns trigger language plpgsql as $$ begin
 raise exception 'invalid page in block 7 of relation base/1/2' using errcode = 'XX001';
end $$`)
	w.Exec("create trigger bad_page before insert on message for each statement execute function bad_page()")
	if _, err := c.Start(ctx, c.Run("+393331234567", storetest.Begin, 1)); puntuale.CodeOf(err) != puntuale.CodeStoreDamaged {
		t.Errorf("a start: %v", err)
	}
	w.Exec("drop trigger bad_page on message")
	c.MustStart("+393331234567", storetest.Begin, 1)
	if err := w.Store.Check(ctx); puntuale.CodeOf(err) != puntuale.CodeStoreDamaged {
		t.Errorf("it is ready: %v", err)
	}
}
