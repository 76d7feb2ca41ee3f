package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Statements are sent to PostgreSQL through pgx itself, and database/sql only keeps the connections. database/sql would
// convert each value once more. In a transaction, it would also wait for the answer to each statement before it sends
// the next.

// statement is a statement in the form for this database.
type statement struct {
	text string
	args []any
	scan func(r Row) error // nil: the caller does not want the rows
}

// send runs the queued statements and then the statement last, in one round trip. It returns the error of the first
// statement that failed. The statements after that statement did not run.
func (l *Conn) send(ctx context.Context, last statement) (tag pgconn.CommandTag, err error) {
	all := append(l.queued, last)
	l.queued = nil
	err = l.conn.Raw(func(c any) error {
		conn := c.(*stdlib.Conn).Conn() //nolint:forcetypeassert // this package opened the pool, so it knows the type
		if len(all) == 1 {
			tag, err = last.run(ctx, conn)
		} else {
			tag, err = runAll(ctx, conn, all)
		}
		return err
	})
	clear(all)
	l.queued = all[:0]
	return tag, err
}

func (s *statement) run(ctx context.Context, conn *pgx.Conn) (pgconn.CommandTag, error) {
	if s.scan == nil {
		return conn.Exec(ctx, s.text, s.args...)
	}
	rows, err := conn.Query(ctx, s.text, s.args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return pgconn.CommandTag{}, scanAll(rows, s.scan)
}

// runAll runs the statements and returns the command tag of the last one.
func runAll(ctx context.Context, conn *pgx.Conn, all []statement) (tag pgconn.CommandTag, err error) {
	var b pgx.Batch
	for _, s := range all {
		b.Queue(s.text, s.args...)
	}
	answers := conn.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, answers.Close()) }()
	for _, s := range all {
		if s.scan == nil {
			if tag, err = answers.Exec(); err != nil {
				return tag, err
			}
			continue
		}
		rows, err := answers.Query()
		if err != nil {
			return tag, err
		}
		if err := scanAll(rows, s.scan); err != nil {
			return tag, err
		}
	}
	return tag, nil
}

func scanAll(rows pgx.Rows, scan func(r Row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ask runs a statement on any connection of the pool. If the connection is found broken before the statement is sent,
// ask uses another connection.
func (p *ReadPool) ask(ctx context.Context, s statement) error {
	for try := 1; ; try++ {
		conn, err := p.db.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		err = conn.Raw(func(c any) error {
			native := c.(*stdlib.Conn).Conn() //nolint:forcetypeassert // this package opened the pool, so it knows the type
			_, err := s.run(ctx, native)
			if err != nil && pgconn.SafeToRetry(err) {
				return driver.ErrBadConn
			}
			return err
		})
		if closed := conn.Close(); err == nil {
			err = closed
		}
		if !errors.Is(err, driver.ErrBadConn) || try == readTries {
			return err
		}
	}
}

const readTries = 3
