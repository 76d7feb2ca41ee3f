package store

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
)

func (t tenant) AddBlacklisted(ctx context.Context, e puntuale.BlacklistEntry, day puntuale.Date, o *puntuale.Once) error {
	return t.once(ctx, o, func(ctx context.Context, a asker) (any, error) {
		if _, err := countAlways(ctx, a, dayOf{t.id, day}, t.calls()); err != nil {
			return nil, err
		}
		_, err := addBlacklisted(ctx, a, t.id, e)
		return nil, err
	})
}

// addBlacklisted returns how many entries were made: none where the phone, or its mark, was there.
func addBlacklisted(ctx context.Context, a asker, client puntuale.ClientID, e puntuale.BlacklistEntry) (int64, error) {
	id, err := number(ctx, a, "blacklist")
	if err != nil {
		return 0, err
	}
	n, err := a.exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at)
 select $1::bigint, $2::text, $3::bigint, $4::text, $5::bigint
 where not exists (select 1 from blacklist b where b.client_id = $1 and b.phone = $6)
 on conflict (client_id, phone) do nothing`, client, e.Phone, id, e.Reason, micros(e.Added), e.Mark)
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, nil
}

func (t tenant) RemoveBlacklisted(ctx context.Context, phone, mark string, day puntuale.Date) (bool, error) {
	var n int64
	err := t.write(ctx, func(ctx context.Context, a asker) (err error) {
		if _, err := countAlways(ctx, a, dayOf{t.id, day}, t.calls()); err != nil {
			return err
		}
		n, err = a.exec(ctx, `delete from blacklist where client_id = $1 and phone in ($2, $3)`, t.id, phone, mark)
		return err
	})
	return n > 0, err
}

func (t tenant) Blacklist(ctx context.Context, p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
	last, limit, err := after(p, "blacklist")
	if err != nil {
		return nil, "", err
	}
	all, err := list(ctx, t.lists(), `select id, phone, reason, added_at from blacklist
 where client_id = $1 and id > $2 and id > 0 order by id limit $3`, []any{t.id, last, limit + 1},
		func(rows row, e *puntuale.BlacklistEntry) error {
			err := rows.Scan(&e.ID, &e.Phone, &e.Reason, moment{&e.Added})
			if strings.HasPrefix(e.Phone, puntuale.MarkPrefix) {
				e.Phone, e.Erased = "", true
			}
			return err
		})
	if err != nil {
		return nil, "", outward(fmt.Errorf("list the blacklist: %w", err))
	}
	all, next := cut(all, limit, "blacklist", func(e *puntuale.BlacklistEntry) int64 { return e.ID })
	return all, next, nil
}
