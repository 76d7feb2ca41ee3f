package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Dialect is one of the two databases. A statement has one text for both. The text is written for PostgreSQL, with
// these additions:
//
//	$u(c bigint, p text)  the batch (the statement's last argument) as a table u with these columns:
//	                      unnest of arrays on PostgreSQL, our table-valued function on SQLite (batch.go)
//	$clock                the database's own clock in microseconds
//	$timeline             PostgreSQL's timeline, 0 if there is none (postgres.go)
//
// On SQLite, casts and row locks are removed, because SQLite's single writer locks the whole file. greatest and least
// become max and min. A limit gets a plus sign before its parameter. If an argument is null, SQLite's max and min
// return null, but PostgreSQL ignores the argument. So no statement passes a null. If these additions are not enough,
// there are two texts, and a comment gives the reason.
//
// The rows of RETURNING come in no fixed order, so callers find each row by its key.
type Dialect struct {
	Postgres bool
	Timeline string   // expression that reads the timeline; set before the first statement runs
	texts    sync.Map // from the text in the source to the text for this database
}

// Columns contains the rows of a $u(...): one slice for each column, []int64, []string or [][]byte, all with the same
// length. On SQLite, a column with nulls may be []any.
type Columns []any

// Column returns one column of a batch: the result of field for each row.
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

// Text returns the form of a statement for this database.
func (d *Dialect) Text(written string) string {
	if sent, ok := d.texts.Load(written); ok {
		return sent.(string)
	}
	sent := d.render(written)
	d.texts.Store(written, sent)
	return sent
}

func (d *Dialect) render(text string) string {
	text = strings.ReplaceAll(text, "$timeline", d.Timeline)
	if d.Postgres {
		text = strings.ReplaceAll(text, "$clock", "(extract(epoch from clock_timestamp()) * 1000000)::bigint")
	} else {
		if strings.Contains(text, "::") {
			text = castSign.ReplaceAllString(text, "")
		}
		if strings.Contains(text, "for ") {
			text = lockSign.ReplaceAllString(text, "")
		}
		// Without the plus sign, SQLite would parse the prepared statement again at each execution.
		text = strings.ReplaceAll(text, "limit $", "limit +$")
		text = strings.ReplaceAll(text, "$clock", "cast(unixepoch('subsec') * 1000000 as integer)")
		text = strings.ReplaceAll(text, "greatest(", "max(")
		text = strings.ReplaceAll(text, "least(", "min(")
	}
	if !strings.Contains(text, "$u(") {
		return text
	}
	first := 1
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			first = max(first, n+1)
		}
	}
	return batchSign.ReplaceAllStringFunc(text, func(sign string) string {
		return d.source(first, strings.Split(batchSign.FindStringSubmatch(sign)[1], ","))
	})
}

// source returns the table expression that makes a batch readable as the table u. Each element of columns is "name
// type".
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

// begin returns the statement that begins a transaction for writing. On SQLite this statement takes the write lock
// immediately. Otherwise the transaction could fail later, when it first writes.
func (d *Dialect) begin() string {
	if d.Postgres {
		return "begin"
	}
	return "begin immediate"
}

// bind replaces a batch in the arguments by its form for this database. The caller must call the returned function
// after it has read the whole result.
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
