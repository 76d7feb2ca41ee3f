package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// row is one of a statement's answer.
type row interface {
	Scan(into ...any) error
}

// asker runs statements, inside a transaction or outside.
type asker interface {
	// each runs the statement and calls scan for each row it returns.
	each(ctx context.Context, text string, args []any, scan func(r row) error) error
	// exec runs the statement and returns how many rows it changed.
	exec(ctx context.Context, text string, args ...any) (int64, error)
	// later runs a statement whose answer is not needed yet: it may go together with the next one, whose error may then be
	// this one's. scan, which may be nil, is called by then.
	later(ctx context.Context, text string, args []any, scan func(r row) error) error
}

// one scans the only row of a statement, and reports whether there was one.
func one(ctx context.Context, a asker, text string, args []any, into ...any) (found bool, err error) {
	err = a.each(ctx, text, args, func(r row) error {
		found = true
		return r.Scan(into...)
	})
	return found, err
}

// list scans all rows of a statement, as far as the caller's room allows.
func list[T any](ctx context.Context, a asker, text string, args []any, scan func(r row, into *T) error) ([]T, error) {
	var all []T
	err := a.each(ctx, text, args, func(r row) error {
		if len(all)%rowsAtOnce == 0 && len(all) > 0 { // few rows need no room
			if err := takeRoom(ctx, rowsAtOnce, 0); err != nil {
				return err
			}
		}
		var none T
		all = append(all, none)
		return scan(r, &all[len(all)-1])
	})
	return all, err
}

// link is one connection that a writer keeps, with its prepared statements. (pgx prepares and keeps statements by
// itself; the SQLite driver would parse the text each time.) One goroutine uses it at a time.
type link struct {
	d      *dialect
	db     *sql.DB
	conn   *sql.Conn
	watch  *watch
	stmts  map[string]*sql.Stmt
	open   bool        // a transaction is under way
	queued []statement // go with the next one, in one round trip; on PostgreSQL only

	admit func(ctx context.Context, on asker) error // asked of each new connection; nil: any will do
}

func (l *link) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", l.watch.heard(ctx, err))
	}
	l.conn, l.stmts, l.open, l.queued = conn, map[string]*sql.Stmt{}, false, nil
	if l.admit == nil {
		return nil
	}
	if err := l.admit(ctx, l); err != nil {
		l.drop() // the next use asks again
		return err
	}
	return nil
}

// drop gives the connection up; the next use opens another.
func (l *link) drop() {
	if l.conn == nil {
		return
	}
	// What fails here fails because the connection is gone, which is why it is dropped.
	for _, s := range l.stmts {
		_ = s.Close()
	}
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = l.conn.Close()
	l.conn, l.stmts, l.open, l.queued = nil, nil, false, nil
}

func (l *link) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := l.stmts[text]; ok {
		return s, nil
	}
	s, err := l.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	l.stmts[text] = s
	return s, nil
}

func (l *link) each(ctx context.Context, text string, args []any, scan func(r row) error) error {
	args, free := l.d.bind(args)
	defer free()
	if text = l.d.text(text); l.d.postgres {
		_, err := l.send(ctx, statement{text, args, scan})
		return l.watch.heard(ctx, err)
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

func (l *link) exec(ctx context.Context, text string, args ...any) (int64, error) {
	args, free := l.d.bind(args)
	defer free()
	if text = l.d.text(text); l.d.postgres {
		tag, err := l.send(ctx, statement{text, args, nil})
		return tag.RowsAffected(), l.watch.heard(ctx, err)
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

// later saves a round trip on PostgreSQL; on SQLite there is none.
func (l *link) later(ctx context.Context, text string, args []any, scan func(r row) error) error {
	if !l.d.postgres {
		if scan != nil {
			return l.each(ctx, text, args, scan)
		}
		_, err := l.exec(ctx, text, args...)
		return err
	}
	args, _ = l.d.bind(args)
	l.queued = append(l.queued, statement{l.d.text(text), args, scan})
	return nil
}

func drain(rows *sql.Rows, scan func(r row) error) error {
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// pool is several connections for reading.
type pool struct {
	d     *dialect
	db    *sql.DB
	watch *watch
	stmts stmts

	noticed func(error) // is told of every statement's error; nil: nobody is

	within time.Duration // bounds a statement, the wait for a connection included; 0: only the caller does

	places chan struct{} // one for each connection, for whoever has no patience to wait for one; nil: nobody asks
}

// enter waits for a connection to be free, as long as the caller's patience lasts.
func (p *pool) enter(ctx context.Context) error {
	if p.places == nil {
		return nil
	}
	select {
	case p.places <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.places <- struct{}{}:
		return nil
	case <-puntuale.PatienceOf(ctx).Ends():
		return puntuale.Overloaded(0)
	case <-p.watch.context().Done():
		return p.watch.away()
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", ctx.Err())
	}
}

func (p *pool) leave() {
	if p.places != nil {
		<-p.places
	}
}

func (p *pool) each(ctx context.Context, text string, args []any, scan func(r row) error) error {
	err := p.query(ctx, text, args, scan)
	if err != nil && p.noticed != nil {
		p.noticed(err)
	}
	return err
}

func (p *pool) query(ctx context.Context, text string, args []any, scan func(r row) error) error {
	if err := p.watch.away(); err != nil {
		return err
	}
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.leave()
	ctx, part := p.watch.bind(ctx)
	defer part()
	if p.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.within)
		defer cancel()
	}
	args, free := p.d.bind(args)
	defer free()
	if text = p.d.text(text); p.d.postgres {
		return p.watch.heard(ctx, p.ask(ctx, statement{text, args, scan}))
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

func (p *pool) exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("readers do not write")
}

func (p *pool) later(ctx context.Context, text string, args []any, scan func(r row) error) error {
	return p.each(ctx, text, args, scan)
}

func (l *link) begin(ctx context.Context) error {
	err := l.later(ctx, l.d.begin(), nil, nil)
	l.open = err == nil
	return err
}

func (l *link) commit(ctx context.Context) error {
	_, err := l.exec(ctx, "commit")
	if err == nil {
		l.open = false
	}
	return err
}

// rollback leaves the connection usable, or drops it.
func (l *link) rollback(ctx context.Context) error {
	if l.conn == nil || !l.open {
		return nil
	}
	l.open, l.queued = false, nil
	if _, err := l.exec(ctx, "rollback"); err != nil {
		l.drop()
	}
	return nil
}

// scanOne scans a row of one column.
func scanOne[T any](rows row, v *T) error { return rows.Scan(v) }

// mover opens a connection of its own that may take its time, on a store that open returned. The store's Close does not
// close it; free does.
func (s *DB) mover(ctx context.Context, readOnly bool) (l *link, free func() error, err error) {
	own := &DB{options: options{name: moverName}, cfg: s.cfg, d: s.d}
	var db *sql.DB
	if s.d.postgres {
		db, err = own.postgresPool(s.cfg.Database, map[string]string{
			"statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "lock_timeout": writerSettings["lock_timeout"],
		}, 1)
	} else {
		_, query, _ := strings.Cut(s.cfg.Database, "?")
		db, err = own.sqlitePool(s.file, query, readOnly, 1)
	}
	if err != nil {
		return nil, nil, err
	}
	return newLink(ctx, s.d, db)
}

// newLink connects to a database that free closes, too.
func newLink(ctx context.Context, d *dialect, db *sql.DB) (l *link, free func() error, err error) {
	l = &link{d: d, db: db}
	free = func() error {
		err := l.rollback(context.WithoutCancel(ctx))
		l.drop()
		return errors.Join(err, db.Close())
	}
	if err := l.connect(ctx); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	return l, free, nil
}
