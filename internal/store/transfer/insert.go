package transfer

import (
	"context"
	"fmt"
	"strings"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
)

func (m *importer) eachCounter(ctx context.Context, report func(noun string, next int64)) error {
	err := m.link.Query(ctx, `select noun, next from counter`, nil, func(rows engine.Row) error {
		var noun string
		var next int64
		err := rows.Scan(&noun, &next)
		report(noun, next)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the counters: %w", err)
	}
	return nil
}

// load inserts the rows of the file into the database. It reads the file to its end, because only the end proves that
// the file is valid.
func (m *importer) load(ctx context.Context) error {
	rows := &rowCounter{stage: Loading, total: m.file.Header.Rows(), report: m.cfg.Progress}
	for {
		t, found, err := m.file.Next()
		if err != nil {
			return err
		}
		if !found {
			break
		}
		next := &fileRows{ctx: ctx, file: m.file, row: make([]any, len(t.Columns)), rows: rows}
		if m.s.Dialect.Postgres {
			err = m.copy(ctx, t, next)
		} else {
			err = m.insert(ctx, t, next)
		}
		if next.err != nil { // the error of the file is the cause; the database's error follows from it
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

// insert inserts rows in batches, several rows with each statement.
func (m *importer) insert(ctx context.Context, t archive.Table, from *fileRows) error {
	values, part := make([]string, len(t.Columns)), make(engine.Columns, len(t.Columns))
	for i := range values {
		values[i] = fmt.Sprintf("c%d", i)
	}
	text := "insert into " + t.Name + " (" + archive.ColumnNames(t) + ") select " + strings.Join(values, ", ") + " from batch($1)"
	for more := true; more; {
		columns := make([][]any, len(t.Columns))
		for n, size := 0, 0; n < insertRows && size < insertBytes; n++ {
			if more = from.Next(); !more {
				break
			}
			for i, value := range from.row {
				if b, ok := value.(bool); ok {
					value = engine.Bit(b) // SQLite has no type for booleans
				}
				switch v := value.(type) {
				case string:
					size += len(v)
				case []byte:
					size += len(v)
				}
				columns[i] = append(columns[i], value)
			}
		}
		for i := range part {
			part[i] = columns[i]
		}
		if _, err := m.link.Exec(ctx, text, part); err != nil {
			return fmt.Errorf("the rows up to %d: %w", from.n, err)
		}
	}
	return nil
}

// One statement inserts at most insertRows rows. After insertBytes of texts and bytes, it gets no further row: one row may be
// as large as a request with its contents, or as a part of a file.
const (
	insertRows  = 100
	insertBytes = 4 << 20
)

// copy inserts rows with COPY. COPY also writes columns that PostgreSQL numbers by itself.
func (m *importer) copy(ctx context.Context, t archive.Table, from *fileRows) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return m.link.Copy(ctx, t.Name, names, from)
}

// fileRows reads the rows of the file's current table, one at a time.
type fileRows struct {
	ctx  context.Context //nolint:containedctx // it is made for one call
	file *archive.Reader
	row  []any
	rows *rowCounter
	n    int64
	err  error
}

func (f *fileRows) Next() bool {
	if f.n%archive.StepRows == 0 && f.ctx.Err() != nil {
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
