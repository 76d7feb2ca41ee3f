package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"puntuale"
)

// asker runs statements, inside a transaction or outside.
type asker interface {
	// each runs the statement and calls scan for each row it returns.
	each(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) error
	// exec runs the statement and returns how many rows it changed.
	exec(ctx context.Context, text string, args ...any) (int64, error)
}

// one scans the only row of a statement, and reports whether there was one.
func one(ctx context.Context, a asker, text string, args []any, into ...any) (found bool, err error) {
	err = a.each(ctx, text, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	})
	return found, err
}

// list scans all rows of a statement.
func list[T any](ctx context.Context, a asker, text string, args []any, scan func(rows *sql.Rows, into *T) error) ([]T, error) {
	var all []T
	err := a.each(ctx, text, args, func(rows *sql.Rows) error {
		var t T
		if err := scan(rows, &t); err != nil {
			return err
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// link is one connection that a writer keeps, with its prepared statements. (pgx prepares and keeps statements by
// itself; the SQLite driver would parse the text each time.) One goroutine uses it at a time.
type link struct {
	d     *dialect
	db    *sql.DB
	conn  *sql.Conn
	watch *watch
	stmts map[string]*sql.Stmt
	open  bool // a transaction is under way

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
	l.conn, l.stmts, l.open = conn, map[string]*sql.Stmt{}, false
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
	l.conn, l.stmts, l.open = nil, nil, false
}

func (l *link) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	if l.d.postgres {
		return l.conn.QueryContext(ctx, text, args...)
	}
	s, err := l.prepared(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
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

func (l *link) each(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) error {
	args, free := l.d.bind(args)
	defer free()
	rows, err := l.query(ctx, l.d.text(text), args)
	if err == nil {
		err = drain(rows, scan)
	}
	return l.watch.heard(ctx, err)
}

func (l *link) exec(ctx context.Context, text string, args ...any) (int64, error) {
	args, free := l.d.bind(args)
	defer free()
	var r sql.Result
	var err error
	if text = l.d.text(text); l.d.postgres {
		r, err = l.conn.ExecContext(ctx, text, args...)
	} else {
		var s *sql.Stmt
		if s, err = l.prepared(ctx, text); err == nil {
			r, err = s.ExecContext(ctx, args...)
		}
	}
	if err = l.watch.heard(ctx, err); err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func drain(rows *sql.Rows, scan func(rows *sql.Rows) error) error {
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

func (p *pool) each(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) error {
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
	var rows *sql.Rows
	var err error
	if text = p.d.text(text); p.d.postgres {
		rows, err = p.db.QueryContext(ctx, text, args...)
	} else {
		var s *sql.Stmt
		if s, err = p.stmts.get(ctx, p.db, text); err == nil {
			rows, err = s.QueryContext(ctx, args...)
		}
	}
	if err == nil {
		err = drain(rows, scan)
	}
	return p.watch.heard(ctx, err)
}

func (p *pool) exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("readers do not write")
}

func (l *link) begin(ctx context.Context) error {
	_, err := l.exec(ctx, l.d.begin())
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
	l.open = false
	if _, err := l.exec(ctx, "rollback"); err != nil {
		l.drop()
	}
	return nil
}
