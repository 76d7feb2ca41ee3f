package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"puntuale/internal/store/archive"
)

func (m *importer) eachCounter(ctx context.Context, tell func(noun string, next int64)) error {
	err := m.link.each(ctx, `select noun, next from counter`, nil, func(rows *sql.Rows) error {
		var noun string
		var next int64
		err := rows.Scan(&noun, &next)
		tell(noun, next)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the counters: %w", err)
	}
	return nil
}

// load puts the file's rows into the database, to its very end: a file is believed only as a whole.
func (m *importer) load(ctx context.Context) error {
	rows := &rowCounter{stage: Loading, total: m.file.Header.Rows(), tell: m.cfg.Progress}
	for {
		t, found, err := m.file.Next()
		if err != nil {
			return err
		}
		if !found {
			break
		}
		next := &fileRows{ctx: ctx, file: m.file, row: make([]any, len(t.Columns)), rows: rows}
		if m.s.d.postgres {
			err = m.copy(ctx, t, next)
		} else {
			err = m.insert(ctx, t, next)
		}
		if next.err != nil { // what the database says of it then adds nothing
			err = next.err
		}
		if err != nil {
			return fmt.Errorf("load table %s: %w", t.Name, err)
		}
		m.loaded, m.digest = append(m.loaded, t), append(m.digest, m.file.Digest())
	}
	rows.end()
	return m.file.Close()
}

// insert takes one statement a row: without round trips nothing is quicker.
func (m *importer) insert(ctx context.Context, t archive.Table, from *fileRows) error {
	values := make([]string, len(t.Columns))
	for i := range values {
		values[i] = fmt.Sprintf("$%d", i+1)
	}
	st, err := m.link.conn.PrepareContext(ctx, "insert into "+t.Name+" ("+columnNames(t)+") values ("+strings.Join(values, ", ")+")")
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	for from.Next() {
		// A context that can end costs a goroutine a row; from looks at it.
		if _, err := st.ExecContext(context.WithoutCancel(ctx), from.row...); err != nil {
			return errors.Join(fmt.Errorf("row %d: %w", from.n, err), st.Close())
		}
	}
	return st.Close()
}

// copy takes COPY, which also writes the columns that PostgreSQL numbers by itself.
func (m *importer) copy(ctx context.Context, t archive.Table, from *fileRows) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return m.link.conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T", driver)
		}
		_, err := c.Conn().CopyFrom(ctx, pgx.Identifier{t.Name}, names, from)
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		return nil
	})
}

// fileRows are the rows of the file's present table, one at a time.
type fileRows struct {
	ctx  context.Context //nolint:containedctx // of the one call that it is made for
	file *archive.Reader
	row  []any
	rows *rowCounter
	n    int64
	err  error
}

func (f *fileRows) Next() bool {
	if f.n%stepRows == 0 && f.ctx.Err() != nil {
		f.err = context.Cause(f.ctx)
	}
	if f.err != nil {
		return false
	}
	found, err := f.file.Row(f.row)
	if err != nil || !found {
		f.err = err
		return false
	}
	f.n++
	f.rows.row()
	return true
}

func (f *fileRows) Values() ([]any, error) { return f.row, nil }

func (f *fileRows) Err() error { return f.err }
