package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// uncertainAttempts bounds the rows that it reads by openWithin: no index knows of attempts, so that claims stay cheap.
const uncertainAttempts = `with f as (select m.id as i` + openIn + ` and m.next_at > $2 limit ` + openWithin + `)
 select m.id, m.intent_at, m.next_at from f join message m on m.client_id = $1 and m.id = f.i
 where m.intent > 0 and m.next_at > m.intent_at order by m.intent_at desc, m.id desc`

func (t tenant) Uncertain(ctx context.Context, after time.Time) ([]puntuale.UncertainAttempt, error) {
	all, err := list(ctx, t.lists(), uncertainAttempts, []any{t.id, micros(after)}, func(rows row, u *puntuale.UncertainAttempt) error {
		return rows.Scan(&u.ID, moment{&u.At}, moment{&u.Next})
	})
	if err != nil {
		return nil, outward(fmt.Errorf("list uncertain attempts: %w", err))
	}
	return all, nil
}

const amongBlacklisted = `select b.phone from $u(p text) join blacklist b on b.client_id = $1 and b.phone = u.p`

func (t tenant) AmongBlacklisted(ctx context.Context, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	all, err := list(ctx, t.s.read, amongBlacklisted, []any{t.id, batch{words}}, func(rows row, phone *string) error {
		return rows.Scan(phone)
	})
	if err != nil {
		return nil, outward(fmt.Errorf("look numbers up in the blacklist: %w", err))
	}
	return all, nil
}
