package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"puntuale"
)

// Row is one row of a statement's result.
type Row interface {
	Scan(target ...any) error
}

// Querier runs statements, inside or outside a transaction.
type Querier interface {
	// Query runs the statement and calls scan for each row.
	Query(ctx context.Context, text string, args []any, scan func(r Row) error) error
	// Exec runs the statement and returns how many rows it changed.
	Exec(ctx context.Context, text string, args ...any) (int64, error)
	// Queue runs a statement whose result is not needed yet. Queue may send the statement together with the next one.
	// In that case, the next call may return this statement's error. scan may be nil. scan is called before the next
	// call returns.
	Queue(ctx context.Context, text string, args []any, scan func(r Row) error) error
}

// QueryOne scans the only row of a statement, and reports whether there was a row.
func QueryOne(ctx context.Context, a Querier, text string, args []any, target ...any) (found bool, err error) {
	err = a.Query(ctx, text, args, func(r Row) error {
		found = true
		return r.Scan(target...)
	})
	return found, err
}

// QueryAll scans all rows of a statement. It takes memory for the rows from the caller's memory grant.
func QueryAll[T any](ctx context.Context, a Querier, text string, args []any, scan func(r Row, target *T) error) ([]T, error) {
	var all []T
	err := a.Query(ctx, text, args, func(r Row) error {
		if len(all)%rowsAtOnce == 0 && len(all) > 0 { // the first rows are few and need no memory grant
			if err := TakeMemory(ctx, rowsAtOnce, 0); err != nil {
				return err
			}
		}
		var none T
		all = append(all, none)
		return scan(r, &all[len(all)-1])
	})
	return all, err
}

// Conn is one connection that a writer keeps open. Only one goroutine may use it at a time. On SQLite it keeps prepared
// statements, because the SQLite driver would parse the text each time. On PostgreSQL, pgx keeps them.
type Conn struct {
	dialect *Dialect
	db      *sql.DB
	conn    *sql.Conn
	watch   *Monitor
	stmts   map[string]*sql.Stmt
	open    bool        // a transaction is open
	queued  []statement // statements to send with the next one, in one round trip; only on PostgreSQL

	admit func(ctx context.Context, conn Querier) error // checks each new connection; nil: no check

	// giveWay runs before each statement on SQLite. If it returns an error, the statement does not run. nil: the transaction
	// does not give way to calls.
	giveWay func() error
}

func (l *Conn) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", l.watch.observe(ctx, err))
	}
	l.conn, l.stmts, l.open, l.queued = conn, map[string]*sql.Stmt{}, false, nil
	if l.admit == nil {
		return nil
	}
	if err := l.admit(ctx, l); err != nil {
		l.drop() // so the next use connects again and repeats the check
		return err
	}
	return nil
}

// drop closes the connection. The next use opens another one.
func (l *Conn) drop() {
	if l.conn == nil {
		return
	}
	// The connection is closed in any case, so errors are ignored.
	for _, s := range l.stmts {
		_ = s.Close()
	}
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = l.conn.Close()
	l.conn, l.stmts, l.open, l.queued = nil, nil, false, nil
}

func (l *Conn) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if l.giveWay != nil {
		if err := l.giveWay(); err != nil {
			return nil, err
		}
	}
	if s, ok := l.stmts[text]; ok {
		return s, nil
	}
	s, err := l.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	l.stmts[text] = s
	tellPlan(ctx, text, l.conn.QueryContext)
	return s, nil
}

func (l *Conn) Query(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	args, free := l.dialect.bind(args)
	defer free()
	if text = l.dialect.Text(text); l.dialect.Postgres {
		_, err := l.send(ctx, statement{text, args, scan})
		return l.watch.observe(ctx, err)
	}
	s, err := l.prepared(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return drain(rows, scan)
}

func (l *Conn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	args, free := l.dialect.bind(args)
	defer free()
	if text = l.dialect.Text(text); l.dialect.Postgres {
		tag, err := l.send(ctx, statement{text, args, nil})
		return tag.RowsAffected(), l.watch.observe(ctx, err)
	}
	s, err := l.prepared(ctx, text)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Queue saves a round trip on PostgreSQL. On SQLite it runs the statement immediately.
func (l *Conn) Queue(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	if !l.dialect.Postgres {
		if scan != nil {
			return l.Query(ctx, text, args, scan)
		}
		_, err := l.Exec(ctx, text, args...)
		return err
	}
	args, _ = l.dialect.bind(args)
	l.queued = append(l.queued, statement{l.dialect.Text(text), args, scan})
	return nil
}

// drain closes rows even if scan panics, because a connection with open rows cannot be closed.
func drain(rows *sql.Rows, scan func(r Row) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ReadPool is a pool of connections for reading.
type ReadPool struct {
	d     *Dialect
	db    *sql.DB
	watch *Monitor
	stmts statementCache

	noticed func(error) // called with the error of each statement that fails; nil: errors are not reported

	Timeout time.Duration // limits a statement, including the wait for a connection; 0: only the caller's context limits it

	// permits contains one permit for each connection. A caller that waits for a permit stops waiting at its admission
	// deadline. If permits is nil, a caller waits until the pool has a connection.
	permits chan struct{}
}

// Acquire waits until a connection is free, but not longer than the caller's admission deadline. After success the
// caller must call Release. Codes: overloaded, unavailable.
func (p *ReadPool) Acquire(ctx context.Context) error {
	if p.permits == nil {
		return nil
	}
	select {
	case p.permits <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.permits <- struct{}{}:
		return nil
	case <-puntuale.AdmissionDeadlineOf(ctx).Ends():
		return puntuale.Overloaded(0)
	case <-p.watch.context().Done():
		return p.watch.Unreachable()
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", ctx.Err())
	}
}

// Release returns the connection that Acquire took.
func (p *ReadPool) Release() {
	if p.permits != nil {
		<-p.permits
	}
}

// InUse returns how many connections are in use, and how many the pool may open.
func (p *ReadPool) InUse() (now, highest int) {
	stats := p.db.Stats()
	return stats.InUse, stats.MaxOpenConnections
}

func (p *ReadPool) Query(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	err := p.query(ctx, text, args, scan)
	if err != nil && p.noticed != nil {
		p.noticed(err)
	}
	return err
}

func (p *ReadPool) query(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	if err := p.watch.Unreachable(); err != nil {
		return err
	}
	if err := p.Acquire(ctx); err != nil {
		return err
	}
	defer p.Release()
	ctx, part := p.watch.Bind(ctx)
	defer part()
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	args, free := p.d.bind(args)
	defer free()
	if text = p.d.Text(text); p.d.Postgres {
		return p.watch.observe(ctx, p.ask(ctx, statement{text, args, scan}))
	}
	s, err := p.stmts.get(ctx, p.db, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return drain(rows, scan)
}

func (p *ReadPool) Exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("readers do not write")
}

func (p *ReadPool) Queue(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	return p.Query(ctx, text, args, scan)
}

func (l *Conn) Begin(ctx context.Context) error {
	err := l.Queue(ctx, l.dialect.begin(), nil, nil)
	l.open = err == nil
	return err
}

func (l *Conn) Commit(ctx context.Context) error {
	_, err := l.Exec(ctx, "commit")
	if err == nil {
		l.open = false
	}
	return err
}

// Rollback ends the open transaction, if there is one. If the rollback fails, it closes the connection.
func (l *Conn) Rollback(ctx context.Context) error {
	if l.conn == nil || !l.open {
		return nil
	}
	l.open, l.queued, l.giveWay = false, nil, nil
	if _, err := l.Exec(ctx, "rollback"); err != nil {
		l.drop()
	}
	return nil
}

// ScanOne scans a row that has one column.
func ScanOne[T any](rows Row, v *T) error { return rows.Scan(v) }

// OpenMover opens a separate connection to the database of an open store, without time limits. Closing the store does
// not close this connection. The caller must call free.
func (s *DB) OpenMover(ctx context.Context, readOnly bool) (l *Conn, free func() error, err error) {
	own := &DB{Options: Options{Name: s.Name}, Config: s.Config, Dialect: s.Dialect}
	var db *sql.DB
	if s.Dialect.Postgres {
		db, err = own.PostgresPool(s.Config.Database, map[string]string{
			"statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "lock_timeout": writerSettings["lock_timeout"],
		}, 1)
	} else {
		_, query, _ := strings.Cut(s.Config.Database, "?")
		db, err = own.SQLitePool(s.File, query, readOnly, 1)
	}
	if err != nil {
		return nil, nil, err
	}
	return NewConn(ctx, s.Dialect, db)
}

// NewConn opens a connection from db. free closes both the connection and db.
func NewConn(ctx context.Context, d *Dialect, db *sql.DB) (l *Conn, free func() error, err error) {
	l = &Conn{dialect: d, db: db}
	free = func() error {
		err := l.Rollback(context.WithoutCancel(ctx))
		l.drop()
		return errors.Join(err, db.Close())
	}
	if err := l.connect(ctx); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	return l, free, nil
}

// BeginSnapshot begins a transaction that reads the database as it is at one point in time. On SQLite, this is the time
// of the transaction's first read.
func (l *Conn) BeginSnapshot(ctx context.Context) error {
	begin := "begin"
	if l.dialect.Postgres {
		begin = beginSnapshot
	}
	if _, err := l.Exec(ctx, begin); err != nil {
		return fmt.Errorf("begin to read: %w", err)
	}
	l.open = true
	return nil
}

// Copy writes rows into a table with PostgreSQL's COPY. COPY also accepts values for columns that PostgreSQL would
// number by itself.
func (l *Conn) Copy(ctx context.Context, table string, columns []string, rows pgx.CopyFromSource) error {
	return l.conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T", driver)
		}
		if _, err := c.Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, rows); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		return nil
	})
}

// beginSnapshot begins the transaction of an export. All its statements read the same state of the database. No time
// limit ends this transaction.
const beginSnapshot = "begin isolation level repeatable read, read only"
