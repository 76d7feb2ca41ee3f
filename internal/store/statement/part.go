package statement

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// partsAtOnce is how many parts one statement reads. The largest has about 32 kB.
const partsAtOnce = 64

// KeepStatementParts stores as what messages were counted. Their order is lost.
func (c ClientStatements) KeepStatementParts(ctx context.Context, month puntuale.Month, countedTo time.Time, n int, parts []puntuale.StatementPart) error {
	numbers, lines, messages := make([]int64, len(parts)), make([]string, len(parts)), make([][]byte, len(parts))
	for i, part := range parts {
		line, err := engine.ToJSON(part.Line)
		if err != nil {
			return err
		}
		numbers[i], lines[i], messages[i] = int64(n+i), line, packed(part.Messages)
	}
	return c.do(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into statement_part (month, client_id, counted_to, n, line, messages)
 select $1::integer, $2::bigint, $3::bigint, u.n, u.l, u.m from $u(n integer, l text, m bytea) where true on conflict (month, client_id, counted_to, n) do nothing`,
			int64(month), c.client, engine.Micros(countedTo), engine.Columns{numbers, lines, messages})
		return err
	})
}

// StatementLines finds the lines in which messages were counted. It reads all parts of the month.
func (c ClientStatements) StatementLines(ctx context.Context, month puntuale.Month, countedTo time.Time, ids []puntuale.MessageID) (map[puntuale.MessageID]puntuale.StatementLine, error) {
	wanted := make(map[puntuale.MessageID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	found := map[puntuale.MessageID]puntuale.StatementLine{}
	for last := int64(-1); ; {
		read := 0
		if err := c.db.MaintenanceReads.Query(ctx, `select x.n, x.line, x.messages from statement_part x
 where x.month = $1 and x.client_id = $2 and x.counted_to = $3 and x.n > $4 order by x.n limit $5`, []any{int64(month), c.client, engine.Micros(countedTo), last, partsAtOnce}, func(r engine.Row) error {
			var text string
			var messages []byte
			if err := r.Scan(&last, &text, &messages); err != nil {
				return err
			}
			read++
			var line puntuale.StatementLine
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				return fmt.Errorf("read a line: %w", err)
			}
			return eachPacked(messages, func(id puntuale.MessageID) {
				if wanted[id] {
					found[id] = line
				}
			})
		}); err != nil {
			return nil, engine.PublicError(fmt.Errorf("read what a month counted: %w", err))
		}
		if read < partsAtOnce {
			return found, nil
		}
	}
}

// packed sorts ids, and writes them as differences.
func packed(ids []puntuale.MessageID) []byte {
	slices.Sort(ids)
	all := make([]byte, 0, 4*len(ids))
	for i, id := range ids {
		if i > 0 {
			id -= ids[i-1]
		}
		all = binary.AppendUvarint(all, uint64(id))
	}
	return all
}

// eachPacked calls do for each id that was packed.
func eachPacked(all []byte, do func(puntuale.MessageID)) error {
	for last := uint64(0); len(all) > 0; {
		d, n := binary.Uvarint(all)
		if n <= 0 {
			return errors.New("the messages of a line are cut")
		}
		last += d
		all = all[n:]
		do(puntuale.MessageID(last))
	}
	return nil
}

// maintainParts removes what months counted whose corrections are in a closed month, or in none.
func (s *Statements) maintainParts(ctx context.Context, now time.Time) error {
	type row struct{ month, client, to, n int64 }
	// In the first days of a month, the one before is still open and needs what the one before it counted.
	month := puntuale.MonthOf(now.UTC().AddDate(0, 0, -4)).Add(-2)
	return engine.Purge(ctx, s.db, "parts of statements", `select x.month, x.client_id, x.counted_to, x.n from statement_part x where x.month < $1 limit $2`, int64(month),
		func(r engine.Row, x *row) error { return r.Scan(&x.month, &x.client, &x.to, &x.n) },
		func(a, b row) int {
			return cmp.Or(cmp.Compare(a.month, b.month), cmp.Compare(a.client, b.client), cmp.Compare(a.to, b.to), cmp.Compare(a.n, b.n))
		},
		func(ctx context.Context, a engine.Querier, part []row) error {
			_, err := a.Exec(ctx, `delete from statement_part where (month, client_id, counted_to, n) in (select u.m, u.c, u.t, u.n from $u(m integer, c bigint, t bigint, n integer))`, engine.Columns{
				engine.Column(part, func(x *row) int64 { return x.month }), engine.Column(part, func(x *row) int64 { return x.client }),
				engine.Column(part, func(x *row) int64 { return x.to }), engine.Column(part, func(x *row) int64 { return x.n }),
			})
			return err
		})
}
