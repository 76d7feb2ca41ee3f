package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale/internal/store/engine"

	"puntuale"
)

func (t tenant) AddBlacklisted(ctx context.Context, e puntuale.BlacklistEntry, day puntuale.Date, o *puntuale.Once) error {
	return t.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if _, err := countAlways(ctx, a, dayOf{t.id, day}, t.calls()); err != nil {
			return nil, err
		}
		_, err := addBlacklisted(ctx, a, t.id, e)
		return nil, err
	})
}

// addBlacklisted returns how many entries were made: none where the phone, or its mark, was there.
func addBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, e puntuale.BlacklistEntry) (int64, error) {
	id, err := engine.NextNumber(ctx, a, "blacklist")
	if err != nil {
		return 0, err
	}
	n, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at)
 select $1::bigint, $2::text, $3::bigint, $4::text, $5::bigint
 where not exists (select 1 from blacklist b where b.client_id = $1 and b.phone = $6)
 on conflict (client_id, phone) do nothing`, client, e.Phone, id, e.Reason, engine.Micros(e.Added), e.Mark)
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, nil
}

func (t tenant) RemoveBlacklisted(ctx context.Context, phone, mark string, day puntuale.Date) (bool, error) {
	var n int64
	err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		if _, err := countAlways(ctx, a, dayOf{t.id, day}, t.calls()); err != nil {
			return err
		}
		n, err = a.Exec(ctx, `delete from blacklist where client_id = $1 and phone in ($2, $3)`, t.id, phone, mark)
		return err
	})
	return n > 0, err
}

func (t tenant) Blacklist(ctx context.Context, p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
	last, limit, err := engine.ReadCursor(p, "blacklist")
	if err != nil {
		return nil, "", err
	}
	all, err := engine.QueryAll(ctx, t.lists(), `select id, phone, reason, added_at from blacklist
 where client_id = $1 and id > $2 and id > 0 order by id limit $3`, []any{t.id, last, limit + 1}, scanBlacklisted)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list the blacklist: %w", err))
	}
	all, next := engine.CutPage(all, limit, "blacklist", func(e *puntuale.BlacklistEntry) int64 { return e.ID })
	return all, next, nil
}

func scanBlacklisted(rows engine.Row, e *puntuale.BlacklistEntry) error {
	err := rows.Scan(&e.ID, &e.Phone, &e.Reason, engine.ScanTime(&e.Added))
	hideMark(e)
	return err
}

// hideMark leaves out what stands for an erased person's number.
func hideMark(e *puntuale.BlacklistEntry) {
	if strings.HasPrefix(e.Phone, puntuale.MarkPrefix) {
		e.Phone, e.Erased = "", true
	}
}

// likePattern finds a text anywhere, word for word; it goes with: escape '\'.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

func (t tenant) FindBlacklisted(ctx context.Context, f puntuale.BlacklistFilter, p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
	last, limit, err := engine.ReadCursor(p, "blacklist")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	query, values := `select id, phone, reason, added_at from blacklist where client_id = $1 and id > 0 and id < $2`, []any{t.id, last, limit + 1}
	if f != (puntuale.BlacklistFilter{}) {
		// A mark holds digits, too, which say nothing.
		query += ` and (phone = $4 or $5 <> '' and phone like $5 escape '\' and phone not like $7 or $6 <> '' and lower(reason) like $6 escape '\')`
		values = append(values, f.Mark, "", "", puntuale.MarkPrefix+"%")
		if f.Digits != "" {
			values[4] = likePattern(f.Digits)
		}
		if f.Text != "" {
			values[5] = likePattern(strings.ToLower(f.Text))
		}
	}
	all, err := engine.QueryAll(ctx, t.lists(), query+` order by id desc limit $3`, values, scanBlacklisted)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("look into the blacklist: %w", err))
	}
	all, next := engine.CutPage(all, limit, "blacklist", func(e *puntuale.BlacklistEntry) int64 { return e.ID })
	return all, next, nil
}

func (t tenant) BlacklistEntry(ctx context.Context, id int64) (puntuale.BlacklistEntry, error) {
	e := puntuale.BlacklistEntry{ID: id}
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select phone, reason, added_at from blacklist where client_id = $1 and id = $2 and id > 0`, []any{t.id, id},
		&e.Phone, &e.Reason, engine.ScanTime(&e.Added))
	hideMark(&e)
	return e, engine.FoundOr(found, err, "blacklist entry")
}

// mostBlacklisted is how many entries one transaction adds.
const mostBlacklisted = 1000

func (t tenant) AddAllBlacklisted(ctx context.Context, all []puntuale.BlacklistEntry) (added int, err error) {
	for part := range slices.Chunk(all, mostBlacklisted) {
		var n int64
		err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
			n, err = addAllBlacklisted(ctx, a, t.id, part)
			return err
		})
		if err != nil {
			return added, err
		}
		added += int(n)
	}
	return added, nil
}

func addAllBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) (int64, error) {
	last, err := engine.NextNumbers(ctx, a, "blacklist", len(all))
	if err != nil {
		return 0, err
	}
	ids := make([]int64, len(all))
	for i := range ids {
		ids[i] = last - int64(len(all)-1-i)
	}
	n, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at)
 select $1::bigint, u.p, u.i, u.r, u.t from $u(p text, m text, i bigint, r text, t bigint)
 where not exists (select 1 from blacklist b where b.client_id = $1 and b.phone = u.m)
 on conflict (client_id, phone) do nothing`, client, engine.Columns{
		engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Phone }),
		engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Mark }),
		ids,
		engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Reason }),
		engine.Column(all, func(e *puntuale.BlacklistEntry) int64 { return engine.Micros(e.Added) }),
	})
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, nil
}

func (t tenant) RemoveBlacklistEntry(ctx context.Context, id int64) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `delete from blacklist where client_id = $1 and id = $2 and id > 0`, t.id, id)
		if err == nil && n == 0 {
			return puntuale.NotFound("blacklist entry")
		}
		return err
	})
}
