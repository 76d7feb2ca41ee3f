package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

func (t tenant) AddBlacklisted(ctx context.Context, e puntuale.BlacklistEntry, day puntuale.Date, o *puntuale.Idempotency) error {
	return t.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return nil, err
		}
		if err := queue.TakeOver(ctx, a, t.id, []puntuale.BlacklistEntry{e}); err != nil {
			return nil, err
		}
		_, err := queue.AddBlacklisted(ctx, a, t.id, e)
		return nil, err
	})
}

func (t tenant) RemoveBlacklisted(ctx context.Context, phone, mark string, day puntuale.Date) (bool, error) {
	var n int64
	err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
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

// hideMark empties an entry's phone if it contains the mark (keyed hash) of an erased person's number.
func hideMark(e *puntuale.BlacklistEntry) { e.Phone, e.Erased = shownPhone(e.Phone) }

// shownPhone returns the phone of a row. For an erased person, the column contains the number's mark (keyed hash). Then
// shownPhone returns "" and true.
func shownPhone(phone string) (_ string, erased bool) {
	if strings.HasPrefix(phone, puntuale.MarkPrefix) {
		return "", true
	}
	return phone, false
}

// likePattern returns a LIKE pattern that finds this text inside other texts. The statement must contain: escape '\'.
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
		// A search for digits must not find marks: a mark also contains digits, but they are not the digits of a
		// number.
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
	return e, engine.FoundOr(found, err, puntuale.NoBlacklist)
}

// maxBlacklisted is how many entries one transaction adds at most.
const maxBlacklisted = 1000

func (t tenant) AddAllBlacklisted(ctx context.Context, all []puntuale.BlacklistEntry) (added int, err error) {
	for part := range slices.Chunk(all, maxBlacklisted) {
		var n int64
		err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
			if err := queue.TakeOver(ctx, a, t.id, part); err != nil {
				return err
			}
			n, err = queue.AddAllBlacklisted(ctx, a, t.id, part)
			return err
		})
		if err != nil {
			return added, err
		}
		added += int(n)
	}
	return added, nil
}

func (t tenant) RemoveBlacklistEntry(ctx context.Context, id int64) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `delete from blacklist where client_id = $1 and id = $2 and id > 0`, t.id, id)
		if err == nil && n == 0 {
			return puntuale.NotFound(puntuale.NoBlacklist)
		}
		return err
	})
}

// A cross join makes SQLite read the tables in the written order. Otherwise it reads the client's whole blacklist.
const amongBlacklisted = `select b.phone from $u(p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p`

func (t tenant) AmongBlacklisted(ctx context.Context, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	all, err := engine.QueryAll(ctx, t.s.CallReads, amongBlacklisted, []any{t.id, engine.Columns{words}}, func(rows engine.Row, phone *string) error {
		return rows.Scan(phone)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look numbers up in the blacklist: %w", err))
	}
	return all, nil
}
