package sealed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/transfer"
)

// Result says what a round did.
type Result struct {
	Sealed int // values that were sealed again, or that somebody changed meanwhile
	Lost   int // values that no key opens
}

// Key is the key that seals everything again.
type Key struct {
	ID []byte // begins everything that the key sealed
	// Again seals what any key of the installation has sealed. It returns an error if none opens it.
	Again func(purpose, place string, sealed []byte) ([]byte, error)
}

// atOnce is how many values are sealed again in one transaction.
const atOnce = 200

// Again goes once through all columns, and seals again what the key did not seal. Servers may change the values
// meanwhile: a value is replaced only if it is still the one that was read. A caller repeats this until nothing was
// sealed.
func Again(ctx context.Context, db *engine.DB, key Key) (done Result, err error) {
	own := sealer{key: key, read: db.CallReads, write: func(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
		return db.TenantWriters[0].Do(ctx, engine.Single(db.Writes, do), false)
	}}
	if err := own.run(ctx, columns, &done); err != nil {
		return done, err
	}
	if !db.Dialect.Postgres {
		if _, err := os.Stat(transfer.WhatsAppFile(db.File)); errors.Is(err, os.ErrNotExist) {
			return done, nil
		}
	}
	numbers, _, err := transfer.OpenWhatsApp(ctx, db)
	if err != nil {
		return done, err
	}
	conn, free, err := engine.NewConn(ctx, db.Dialect, numbers)
	if err != nil {
		return done, fmt.Errorf("open the tables of linked numbers: %w", err)
	}
	defer func() { err = errors.Join(err, free()) }()
	there := `select name from sqlite_schema where type = 'table'`
	if db.Dialect.Postgres {
		there = `select table_name::text from information_schema.tables where table_schema = current_schema()`
	}
	tables, err := engine.QueryAll(ctx, conn, there, nil, engine.ScanOne[string])
	if err != nil {
		return done, fmt.Errorf("look for the tables of linked numbers: %w", err)
	}
	made := slices.DeleteFunc(slices.Clone(linkedNumbers), func(c column) bool { return !slices.Contains(tables, c.table) }) // the library may not have made all yet
	theirs := sealer{key: key, read: conn, write: func(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
		if err := conn.Begin(ctx); err != nil {
			return err
		}
		if err := do(ctx, conn); err != nil {
			return errors.Join(err, conn.Rollback(ctx))
		}
		return conn.Commit(ctx)
	}}
	err = theirs.run(ctx, made, &done)
	return done, err
}

type sealer struct {
	key   Key
	read  engine.Querier
	write func(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error
}

func (p *sealer) run(ctx context.Context, all []column, done *Result) error {
	for i := range all {
		c := &all[i]
		s := c.statements()
		for after, more := []any(nil), true; more; {
			last, err := p.chunk(ctx, s, after, done)
			if err != nil {
				return fmt.Errorf("seal %s of %s again: %w", c.value, c.table, err)
			}
			after, more = last, last != nil
		}
	}
	return nil
}

// statements are those of one column. Each row is found by its key, and each value changes only if it is still the same.
type statements struct {
	keys                int // columns of the key
	first, next, change string
}

func (c *column) statements() statements {
	keys := strings.Split(c.keys, ", ")
	parameters := make([]string, len(keys))
	for i := range keys {
		keys[i], parameters[i] = "t."+keys[i], "$"+strconv.Itoa(3+i)
	}
	shown := strings.Join(keys, ", ")
	of, given := "("+shown+")", "("+strings.Join(parameters, ", ")+")"
	purpose := c.purpose
	if purpose == "" {
		purpose = "'" + c.opens[0] + "'"
	}
	read := `select t.` + c.value + `, ` + purpose + `, ` + c.place + `, ` + shown + ` from ` + c.table + ` t` + c.join +
		` where length(t.` + c.value + `) > 0 and substr(t.` + c.value + `, 1, $1) <> $2`
	if c.where != "" {
		read += ` and ` + c.where
	}
	end := ` order by ` + shown + ` limit ` + strconv.Itoa(atOnce)
	return statements{keys: len(keys), first: read + end, next: read + ` and ` + of + ` > ` + given + end,
		change: `update ` + c.table + ` as t set ` + c.value + ` = $1 where t.` + c.value + ` = $2 and ` + of + ` = ` + given}
}

// row is one value to seal again.
type row struct {
	value, fresh   []byte
	purpose, place *string // nil if the owner is gone
	key            []any
}

// chunk seals the next values after a key again. last is the key of the last one; nil: there was none. It reads and seals
// outside of the transaction that writes.
func (p *sealer) chunk(ctx context.Context, s statements, after []any, done *Result) (last []any, err error) {
	text, args := s.first, []any{int64(len(p.key.ID)), p.key.ID}
	if after != nil {
		text, args = s.next, append(args, after...)
	}
	rows, err := engine.QueryAll(ctx, p.read, text, args, func(r engine.Row, one *row) error {
		one.key = make([]any, s.keys)
		targets := []any{&one.value, &one.purpose, &one.place}
		for i := range one.key {
			targets = append(targets, &one.key[i])
		}
		return r.Scan(targets...)
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	last = rows[len(rows)-1].key
	again := rows[:0]
	for _, r := range rows {
		if r.purpose != nil && r.place != nil {
			if r.fresh, err = p.key.Again(*r.purpose, *r.place, r.value); err == nil {
				again = append(again, r)
				continue
			}
		}
		done.Lost++
	}
	if len(again) == 0 {
		return last, nil
	}
	err = p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		for _, r := range again {
			if _, err := a.Exec(ctx, s.change, slices.Concat([]any{r.fresh, r.value}, r.key)...); err != nil {
				return err
			}
		}
		return nil
	})
	done.Sealed += len(again)
	return last, err
}
