package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// bigTables grow with a client's people and bookings. The statements about messages and runs say themselves in which order
// SQLite must read, so those tables are not here.
var bigTables = []string{
	"alias", "automation_date", "automation_firing", "automation_occurrence", "automation_timer", "blacklist", "booking", "booking_change", "booking_step", "calendar_entry",
	"consent", "consent_state", "contact", "conversation", "delivery", "event", "former_name", "network_id", "outbox_event", "outbox_fact", "person", "person_term", "person_word",
	"receipt", "recipient", "reply", "sandbox_message",
}

// fewValues are columns that tell apart only a few of a client's rows.
var fewValues = []string{"session_id", "sequence_id", "campaign_id", "list_id", "rule_id", "webhook_id", "state", "status", "priority", "purpose", "kind", "type", "outcome", "owner"}

// What SQLite shall believe about the big tables.
const (
	rowsInAll     = 1_000_000
	clientsInAll  = 10
	valuesOfFew   = 5
	valuesOfOther = 5_000
)

// estimate tells SQLite how big the big tables may become. Without this, SQLite believes that each client has ten rows in
// a table, and prefers to read all rows of a client to a sort or to a second index. The estimates are always the same, so
// plans never change while a database grows. Connections that are opened later use them.
func estimate(ctx context.Context, db *sql.DB) error {
	want, err := estimates(ctx, db, `
select t.name, case when i.origin = 'pk' and t.sql like '%without rowid%' then t.name else i.name end, i."unique", i.partial,
 (select coalesce(group_concat(c.name), '') from (select coalesce(x.name, '') as name from pragma_index_info(i.name) x order by x.seqno) c)
from sqlite_master t join pragma_index_list(t.name) i where t.type = 'table' order by 1, 2`, func(rows *sql.Rows) (e indexEstimate, err error) {
		var columns string
		var unique, partial bool
		err = rows.Scan(&e.table, &e.index, &unique, &partial, &columns)
		e.rows = expected(strings.Split(columns, ","), unique, partial)
		return e, err
	})
	if err != nil {
		return err
	}
	want = slices.DeleteFunc(want, func(e indexEstimate) bool { return !slices.Contains(bigTables, e.table) })
	have, err := estimates(ctx, db, `select tbl, idx, stat from sqlite_stat1 order by 1, 2`, func(rows *sql.Rows) (e indexEstimate, err error) {
		return e, rows.Scan(&e.table, &e.index, &e.rows)
	})
	if err == nil && slices.Equal(have, want) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("estimate rows: %w", err)
	}
	defer tx.Rollback()
	for _, text := range []string{`analyze sqlite_master`, `delete from sqlite_stat1`} { // the first one makes the table
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("prepare estimates: %w", err)
		}
	}
	for _, e := range want {
		if _, err := tx.ExecContext(ctx, `insert into sqlite_stat1 (tbl, idx, stat) values ($1, $2, $3)`, e.table, e.index, e.rows); err != nil {
			return fmt.Errorf("write estimates: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("store estimates: %w", err)
	}
	return nil
}

// indexEstimate is what SQLite shall believe about one index. SQLite names the key of a table without row ids by the table.
type indexEstimate struct{ table, index, rows string }

func estimates(ctx context.Context, db *sql.DB, text string, scan func(*sql.Rows) (indexEstimate, error)) (all []indexEstimate, err error) {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("list estimates: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list estimates: %w", err)
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// expected returns how many rows an index has, and how many have the same value in its first column, its first two
// columns, and so on.
func expected(columns []string, unique, partial bool) string {
	rows := rowsInAll
	if partial {
		rows /= 10
	}
	var b strings.Builder
	fmt.Fprint(&b, rows)
	for i, name := range columns {
		switch {
		case name == "client_id":
			rows /= clientsInAll
		case slices.Contains(fewValues, name):
			rows /= valuesOfFew
		default:
			rows /= valuesOfOther
		}
		if rows = max(rows, 1); unique && i == len(columns)-1 {
			rows = 1
		}
		fmt.Fprintf(&b, " %d", rows)
	}
	return b.String()
}
