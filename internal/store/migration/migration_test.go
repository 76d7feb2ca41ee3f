package migration_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"puntuale"
	"puntuale/internal/store/migration"
)

// last is the newest step of the first program, and released that of 0.1.0, the first release.
const last, released = 1, 19

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// target is an empty database for one test.
type target struct {
	which   migration.Database
	driver  string
	address string
	db      *sql.DB
}

// targets runs a test on both databases.
func targets(t *testing.T, test func(t *testing.T, make func() *target)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, func() *target { return sqlite(t) })
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		test(t, func() *target { return postgres(t) })
	})
}

func sqlite(t *testing.T) *target {
	t.Helper()
	return newTarget(t, migration.SQLite, "sqlite", "file:"+filepath.Join(t.TempDir(), "x.db")+"?_txlock=immediate&_pragma=synchronous(0)")
}

func postgres(t *testing.T) *target {
	t.Helper()
	cluster := os.Getenv("PUNTUALE_TEST_POSTGRES")
	if cluster == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUNTUALE_TEST_POSTGRES is not set; in CI that is a failure")
		}
		t.Skip("PUNTUALE_TEST_POSTGRES is not set (scripts/with-postgres sets it)")
	}
	admin, err := sql.Open("pgx", cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	name := "migration_" + strings.ToLower(rand.Text())
	if _, err := admin.Exec("create database " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("drop database " + name + " with (force)"); err != nil {
			t.Error(err)
		}
	})
	address, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name
	return newTarget(t, migration.Postgres, "pgx", address.String())
}

func newTarget(t *testing.T, database migration.Database, driver, address string) *target {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &target{database, driver, address, db}
}

func (x *target) up(t *testing.T, to int64) {
	t.Helper()
	if err := migration.UpTo(t.Context(), x.db, x.which, to, quiet()); err != nil {
		t.Fatal(err)
	}
}

// catalogue returns a description of the tables, and of the rows that steps insert. It leaves out the tables in which
// the steps themselves are recorded.
func (x *target) catalogue(t *testing.T) (all []string) {
	t.Helper()
	queries := []string{`select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_schema
 where name not like 'puntuale_%' and name not like 'sqlite_%'`}
	if x.which == migration.Postgres {
		queries = []string{
			`select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || a.attidentity::text
 || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '') from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
 left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where c.relnamespace = 'public'::regnamespace
 and a.attnum > 0 and not a.attisdropped and c.relname not like 'puntuale_%'`, // information_schema would take a tenth of a second
			`select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
 where connamespace = 'public'::regnamespace and conrelid::regclass::text not like 'puntuale_%'`,
			`select indexdef from pg_indexes where schemaname = 'public' and tablename not like 'puntuale_%'`,
			`select relname || ' ' || coalesce(reloptions::text, '') from pg_class
 where relnamespace = 'public'::regnamespace and relname not like 'puntuale_%' and relkind = 'r'`,
		}
	}
	read := func(query string) {
		rows, err := x.db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			all = append(all, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range queries {
		read(q)
	}
	if len(all) > 0 {
		read("select 'counter ' || noun || ' ' || next from counter")
	}
	slices.Sort(all)
	return all
}

// TestCutOffAtEveryStatement kills the program before the first statement, then before the second, and so on. Of older
// steps, which never change, each run chooses some statements at random. Each time another program continues. After each kill, the tables must be either as before the step or as after it. At the end
// they must be the same as tables that were built without a kill.
func TestCutOffAtEveryStatement(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) *target{"SQLite": sqlite, "Postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // in the test's time bubble, the library's pauses take no time
				cutOff(t, func() *target { return database(t) })
			})
		})
	}
}

func cutOff(t *testing.T, make func() *target) {
	t.Helper()
	allowed := [][]string{nil}
	whole := make()
	for to := int64(1); to <= newest(t, whole.which); to++ {
		whole.up(t, to)
		allowed = append(allowed, whole.catalogue(t))
	}
	x := make()
	cuts, before, last := 0, 0, len(allowed)-1
	for at := int64(1); ; at++ {
		if last-before > 3 && os.Getenv("PUNTUALE_LONG") == "" {
			at += mathrand.Int64N(8)
		}
		to := min(before+2, last) // only a few steps: the library parses all steps that it may run, and this takes longer than running them
		mortal := newMortal(x, at)
		err := migration.UpTo(t.Context(), mortal.db, x.which, int64(to), quiet())
		mortal.db.Close()
		if err == nil && to == last {
			break
		}
		if err != nil && !errors.Is(err, errCut) {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if err != nil {
			cuts++
			x.forgetHolder(t)
		}
		got := x.catalogue(t)
		state := -1
		for i := before; i <= last && (state < 0 || err == nil && state < to); i++ { // a step number without a step changes nothing
			if slices.Equal(allowed[i], got) {
				state = i
			}
		}
		if state < 0 && err != nil && outside(t, x.which, before) && slices.Equal(allowed[before-1], got) {
			state = before // the step runs again: it drops its index first
		}
		if state < before || err == nil && state != to {
			t.Fatalf("cut at %d: half a step is there:\n%s", at, cmp.Diff(allowed[before], got))
		}
		if state > before {
			before, at = state, 0
		}
	}
	if diff := cmp.Diff(allowed[len(allowed)-1], x.catalogue(t)); diff != "" {
		t.Errorf("built with %d cuts it differs:\n%s", cuts, diff)
	}
	if err := migration.Check(t.Context(), x.db, x.which); err != nil {
		t.Error(err)
	}
	if cuts < 40 {
		t.Errorf("only %d cuts", cuts)
	}
	t.Logf("%d cuts", cuts)
}

// outside reports whether a step runs outside of a transaction. It only makes an index, which nobody needs before all steps ran.
func outside(t *testing.T, database migration.Database, step int) bool {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("%s/%05d_*.sql", database, step))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), "-- +goose NO TRANSACTION\n-- +goose Up\n") && !strings.Contains(string(text), "alter ") && !strings.Contains(string(text), "update ") {
			return true
		}
	}
	return false
}

func newest(t *testing.T, database migration.Database) int64 {
	t.Helper()
	n, err := migration.Latest(database)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// forgetHolder ends the lease of a dead node in the lock table, so that the next node need not wait.
func (x *target) forgetHolder(t *testing.T) {
	t.Helper()
	if x.which != migration.Postgres {
		return
	}
	var found bool
	if err := x.db.QueryRow("select to_regclass('puntuale_migration_lock') is not null").Scan(&found); err != nil {
		t.Fatal(err)
	}
	if found {
		if _, err := x.db.Exec("update puntuale_migration_lock set lease_expires_at = now() - interval '1 second'"); err != nil {
			t.Fatal(err)
		}
	}
}

var errCut = errors.New("killed")

// mortal contains a program's connections. They all end before the program's nth statement.
type mortal struct {
	db     *sql.DB
	driver driver.Driver
	target *target
	left   atomic.Int64
}

func newMortal(x *target, at int64) *mortal {
	m := &mortal{driver: x.db.Driver(), target: x}
	m.left.Store(at)
	m.db = sql.OpenDB(m)
	return m
}

func (m *mortal) Driver() driver.Driver { return m.driver }

func (m *mortal) Connect(context.Context) (driver.Conn, error) {
	c, err := m.driver.Open(m.target.address)
	return &mortalConn{c, m}, err
}

type mortalConn struct {
	driver.Conn
	m *mortal
}

// live counts one statement, or ends the connection.
func (c *mortalConn) live() error {
	if c.m.left.Add(-1) > 0 {
		return nil
	}
	_ = c.Conn.Close()
	return errCut
}

func (c *mortalConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.live(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c *mortalConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.live(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *mortalConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.live(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return &mortalTx{tx, c}, err
}

type mortalTx struct {
	driver.Tx
	c *mortalConn
}

func (t *mortalTx) Commit() error {
	if err := t.c.live(); err != nil {
		return err
	}
	return t.Tx.Commit()
}

func (t *mortalTx) Rollback() error {
	if t.c.m.left.Load() <= 0 {
		return errCut
	}
	return t.Tx.Rollback()
}

// TestBusyTable runs a step while a long transaction uses the step's table. The step must not fail, and other
// statements must not wait behind it for long. This must also be so if a second node waits for the step.
func TestBusyTable(t *testing.T) {
	t.Parallel()
	x := postgres(t)
	x.up(t, last)
	long, err := x.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := long.Exec("select count(*) from session"); err != nil {
		t.Fatal(err)
	}
	again := make(chan struct{}, 1000)
	log := slog.New(&listener{heard: again})
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- migration.Up(t.Context(), x.db, x.which, log) }()
	}
	// Here the step is tried twice. Other statements must be answered within the step's lock_timeout.
	for tries := 0; tries < 2; {
		select {
		case <-again:
			tries++
		case err := <-done:
			t.Fatalf("beside a long transaction: %v", err)
		default:
			began := time.Now()
			if _, err := x.db.Exec("update session set name = name"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("a statement waited for %v", took)
			}
		}
	}
	if err := long.Commit(); err != nil {
		t.Fatal(err)
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := migration.Check(t.Context(), x.db, x.which); err != nil {
		t.Error(err)
	}
}

// listener is a log handler that reports each warning on its channel.
type listener struct{ heard chan struct{} }

func (l *listener) Enabled(context.Context, slog.Level) bool { return true }
func (l *listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *listener) WithGroup(string) slog.Handler            { return l }

func (l *listener) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "tried again") {
		l.heard <- struct{}{}
	}
	return nil
}

// TestNewerRefused checks that a program refuses tables that a newer program made.
func TestNewerRefused(t *testing.T) {
	t.Parallel()
	targets(t, func(t *testing.T, make func() *target) {
		x := make()
		x.up(t, math.MaxInt64)
		if _, err := x.db.Exec(fmt.Sprintf("insert into puntuale_version (version_id, is_applied) values (%d, true)", 999)); err != nil {
			t.Fatal(err)
		}
		if err := migration.Check(t.Context(), x.db, x.which); !errors.Is(err, puntuale.ErrUntrusted) || !strings.Contains(err.Error(), "newer") {
			t.Errorf("%v", err)
		}
	})
}

// TestOldRowsStayWhole checks rows that nodes of earlier versions write without the new columns. The rows must be
// complete.
func TestOldRowsStayWhole(t *testing.T) {
	t.Parallel()
	for _, version := range []int64{last, released} {
		t.Run(strconv.FormatInt(version, 10), func(t *testing.T) {
			t.Parallel()
			oldRowsStayWhole(t, version)
		})
	}
}

func oldRowsStayWhole(t *testing.T, version int64) {
	x := postgres(t)
	x.up(t, version)
	if _, err := x.db.Exec(`create table before_this as select table_name, column_name from information_schema.columns where table_schema = 'public'`); err != nil {
		t.Fatal(err)
	}
	x.up(t, math.MaxInt64)
	rows, err := x.db.Query(`select c.table_name || '.' || c.column_name from information_schema.columns c
 where c.table_schema = 'public' and c.is_nullable = 'NO' and c.column_default is null and c.is_identity = 'NO'
 and exists (select 1 from before_this b where b.table_name = c.table_name)
 and not exists (select 1 from before_this b where b.table_name = c.table_name and b.column_name = c.column_name)
 union all select 'gone: ' || b.table_name || '.' || b.column_name from before_this b where not exists (
 select 1 from information_schema.columns c where c.table_schema = 'public' and c.table_name = b.table_name and c.column_name = b.column_name)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		t.Errorf("a node of the version before cannot write beside it: %s", column)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// TestMissing: each version of the tables lacks exactly the steps that were added after it, and each step has changes.
func TestMissing(t *testing.T) {
	t.Parallel()
	targets(t, func(t *testing.T, make func() *target) {
		x := make()
		all, wanted := 0, newest(t, x.which)
		for _, to := range []int64{0, last, released, wanted} {
			if to > 0 {
				x.up(t, to)
			}
			version, missing, err := migration.Missing(t.Context(), x.db, x.which)
			if err != nil || version != to {
				t.Fatalf("version %d, %v; want %d", version, err, to)
			}
			all = max(all, len(missing))
			if to == wanted && len(missing) > 0 || to < wanted && missing[len(missing)-1].Number != wanted {
				t.Errorf("at version %d these are missing: %v", to, missing)
			}
			for _, m := range missing {
				if m.Number <= to || m.Name == "" || len(m.Changes) == 0 {
					t.Errorf("at version %d: %+v", to, m)
				}
				if m.Number == 42 && !slices.Contains(m.Changes, "creates table official_health, official_pause") {
					t.Errorf("step 42: %q", m.Changes)
				}
				if m.Number == 46 && !slices.Equal(m.Changes, []string{"adds official.chunks"}) {
					t.Errorf("step 46: %q", m.Changes)
				}
			}
		}
		if all < 40 {
			t.Errorf("only %d steps", all)
		}
	})
}
