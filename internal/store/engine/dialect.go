package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Dialect is one of the two databases. A statement has one text for both, written as PostgreSQL reads it, with these signs of our own:
//
//	$u(c bigint, p text)  the batch that the call hands over as its last argument, as a table u with those columns:
//	                      unnest of arrays on PostgreSQL, our table-valued function on SQLite (batch.go)
//	$clock                the database's own clock in microseconds
//	$timeline             the server's timeline, 0 if there is none (postgres.go)
//
// For SQLite, casts and row locks are removed: one writer holds the whole file, so there is nothing to lock. greatest and least are called
// max and min. With a null among the arguments, SQLite returns null, but PostgreSQL ignores it. So no statement passes a null. Where the
// databases differ more, there are two texts, and a comment gives the reason.
//
// RETURNING comes in no particular order; callers match rows by key.
type Dialect struct {
	Postgres bool
	Timeline string   // how the timeline is asked for; set before the first statement
	texts    sync.Map // as written → as sent
}

// Columns has the rows of a $u(...), one slice for each column: []int64, []string or [][]byte, all of the same length. On SQLite a column
// with nulls may be []any.
type Columns []any

// Column makes a column of a batch.
func Column[T, V any](rows []T, field func(*T) V) []V {
	column := make([]V, len(rows))
	for i := range rows {
		column[i] = field(&rows[i])
	}
	return column
}

var (
	batchSign = regexp.MustCompile(`\$u\(([^)]*)\)`)
	parameter = regexp.MustCompile(`\$(\d+)`)
	castSign  = regexp.MustCompile(`::[a-z]+(\[\])?`)
	lockSign  = regexp.MustCompile(`\s+for (update|share|key share|no key update)( of [a-z]+)?( skip locked)?`)
)

// Text returns the statement in the form of this database.
func (d *Dialect) Text(written string) string {
	if sent, ok := d.texts.Load(written); ok {
		return sent.(string)
	}
	sent := d.render(written)
	d.texts.Store(written, sent)
	return sent
}

func (d *Dialect) render(text string) string {
	first := 1
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			first = max(first, n+1)
		}
	}
	text = strings.ReplaceAll(text, "$timeline", d.Timeline)
	if d.Postgres {
		text = strings.ReplaceAll(text, "$clock", "(extract(epoch from clock_timestamp()) * 1000000)::bigint")
	} else {
		text = castSign.ReplaceAllString(text, "")
		text = lockSign.ReplaceAllString(text, "")
		text = strings.ReplaceAll(text, "$clock", "cast(unixepoch('subsec') * 1000000 as integer)")
		text = strings.ReplaceAll(text, "greatest(", "max(")
		text = strings.ReplaceAll(text, "least(", "min(")
	}
	return batchSign.ReplaceAllStringFunc(text, func(sign string) string {
		return d.source(first, strings.Split(batchSign.FindStringSubmatch(sign)[1], ","))
	})
}

// source is the table u of a batch whose columns are given as "name type".
func (d *Dialect) source(first int, columns []string) string {
	var names, values []string
	for i, column := range columns {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		if d.Postgres {
			names = append(names, name)
			values = append(values, fmt.Sprintf("$%d::%s[]", first+i, kind))
		} else {
			values = append(values, fmt.Sprintf("c%d as %s", i, name))
		}
	}
	if d.Postgres {
		return "unnest(" + strings.Join(values, ", ") + ") as u(" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("(select %s from batch($%d)) as u", strings.Join(values, ", "), first)
}

// begin opens a transaction that will write: on SQLite it takes the write lock at once, because otherwise it could fail later.
func (d *Dialect) begin() string {
	if d.Postgres {
		return "begin"
	}
	return "begin immediate"
}

// bind replaces a batch among the arguments by the database's form of it. The caller calls the returned function after it read the whole
// answer.
func (d *Dialect) bind(args []any) ([]any, func()) {
	if len(args) == 0 {
		return args, func() {}
	}
	b, ok := args[len(args)-1].(Columns)
	if !ok {
		return args, func() {}
	}
	args = args[: len(args)-1 : len(args)-1]
	if d.Postgres {
		return append(args, b...), func() {}
	}
	handle, free := lend(b)
	return append(args, handle), free
}
