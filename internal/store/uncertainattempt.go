package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// uncertainAttempts reads at most openWithin open messages. The first row of its result contains the number of messages
// that it read. There is no index of attempts, because such an index would make claims expensive.
const uncertainAttempts = `with f as (select m.id as i` + openIn + ` and m.next_at > $2 limit ` + openWithin + `)
 select count(*), 0, 0 from f
 union all select m.id, m.intent_at, m.next_at from f cross join message m
 where m.client_id = $1 and m.id = f.i and m.intent > 0 and m.next_at > m.intent_at
 and not (m.intent >= ` + deviceToken + ` and m.detail = '')`

// deviceToken is [puntuale.DeviceToken] as text in statements.
const deviceToken = "4611686018427387904"

// Uncertain lists the attempts whose outcome is uncertain, the latest first. It reads only open messages whose Next
// is later than the argument after, and at most 20,000 of them. The result all reports whether the list
// contains all such attempts.
func (t tenant) Uncertain(ctx context.Context, after time.Time) (found []puntuale.UncertainAttempt, all bool, err error) {
	err = t.lists().Query(ctx, uncertainAttempts, []any{t.id, engine.Micros(after)}, func(rows engine.Row) error {
		var u puntuale.UncertainAttempt
		if err := rows.Scan(&u.ID, engine.ScanTime(&u.At), engine.ScanTime(&u.Next)); err != nil {
			return err
		}
		if u.At.IsZero() {
			all = strconv.FormatInt(int64(u.ID), 10) != openWithin
			return nil
		}
		found = append(found, u)
		return nil
	})
	if err != nil {
		return nil, false, engine.PublicError(fmt.Errorf("list uncertain attempts: %w", err))
	}
	engine.Sort(found, func(a, b puntuale.UncertainAttempt) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID))
	})
	return found, all, nil
}
