package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// AddBlacklisted adds an entry. It counts one call, and the cap never refuses it. If the number, or its mark after
// an erasure, is already there, nothing changes. The argument o may be nil; its function Answer gets nil.
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

// RemoveBlacklisted removes all names of the person, and their marks. It returns whether the blacklist had one of
// them. It counts one call in any case.
func (t tenant) RemoveBlacklisted(ctx context.Context, p puntuale.Person, day puntuale.Date, now time.Time) (bool, error) {
	var n int64
	err := t.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		names, err := alias.Names(ctx, a, t.id, p.Names...)
		if err != nil {
			return err
		}
		n, err = queue.RemoveBlacklisted(ctx, a, t.id, now, `phone in (select u.p from $u(p text))`, engine.Columns{append(names, p.Marks(names)...)})
		return err
	})
	return n > 0, err
}

// Blacklist lists entries, sorted by id.
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

// searchedBlacklist is how many entries one page of a search reads, and in how many CountBlacklisted looks.
const searchedBlacklist = 2 * puntuale.MaxCounted

// newestBlacklisted reads the newest entries whose ids are below $2. No index finds texts, so searches have a bound.
const newestBlacklisted = ` from (select id, phone, reason, added_at from blacklist where client_id = $1 and id > 0 and id < $2 order by id desc limit $3) as newest`

// FindBlacklisted lists entries, newest first, which means by falling id. With a filter, a page reads at most 20,000 entries.
// So it may be shorter than asked, even empty, although a next page exists. The entry of a whole number comes first, however
// old it is. Codes: invalid (the cursor).
func (t tenant) FindBlacklisted(ctx context.Context, f puntuale.BlacklistFilter, p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
	last, limit, err := engine.ReadCursor(p, "blacklist")
	if err != nil {
		return nil, "", err
	}
	all, next, err := t.findBlacklisted(ctx, f, last, limit)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("look into the blacklist: %w", err))
	}
	return all, next, nil
}

func (t tenant) findBlacklisted(ctx context.Context, f puntuale.BlacklistFilter, last int64, limit int) (all []puntuale.BlacklistEntry, next string, err error) {
	reads, filtered := limit+1, f != (puntuale.BlacklistFilter{})
	if filtered {
		reads = searchedBlacklist
	}
	if last == 0 {
		last = puntuale.MaxID
		if f.Phone != "" || f.Mark != "" {
			all, err = engine.QueryAll(ctx, t.lists(), `select id, phone, reason, added_at from blacklist where client_id = $1 and phone in ($2, $3) and id > 0 order by id desc limit $4`,
				[]any{t.id, f.Phone, f.Mark, limit}, scanBlacklisted)
			if limit -= len(all); err != nil || limit == 0 {
				return all, engine.CursorAt("blacklist", last), err
			}
		}
	}
	where, values := blacklistFilter(f, []any{t.id, last, reads, limit + 1})
	found, err := engine.QueryAll(ctx, t.lists(), `select id, phone, reason, added_at`+newestBlacklisted+` where `+where+` order by id desc limit $4`, values, scanBlacklisted)
	if err != nil {
		return nil, "", err
	}
	if found, next = engine.CutPage(found, limit, "blacklist", func(e *puntuale.BlacklistEntry) int64 { return e.ID }); next == "" && filtered {
		var end int64 // the oldest entry that was read, if there may be older ones
		more, err := engine.QueryOne(ctx, t.lists(), `select id from blacklist where client_id = $1 and id > 0 and id < $2 order by id desc limit 1 offset $3`, []any{t.id, last, reads - 1}, &end)
		if err != nil {
			return nil, "", err
		}
		if more {
			next = engine.CursorAt("blacklist", end)
		}
	}
	return append(all, found...), next, nil
}

// CountBlacklisted counts entries, up to limit. all reports whether n is the complete count. With a filter it reads only the
// newest 20,000 entries, and the entry of a whole number.
func (t tenant) CountBlacklisted(ctx context.Context, f puntuale.BlacklistFilter, limit int) (n int, all bool, err error) {
	read, whole, most := 0, 0, limit+1
	if f != (puntuale.BlacklistFilter{}) {
		most = searchedBlacklist + 1
	}
	where, values := blacklistFilter(f, []any{t.id, puntuale.MaxID, most})
	if _, err := engine.QueryOne(ctx, t.lists(), `select count(case when `+where+` then 1 end), count(*)`+newestBlacklisted, values, &n, &read); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count the blacklist: %w", err))
	}
	if f.Phone != "" || f.Mark != "" {
		if _, err := engine.QueryOne(ctx, t.lists(), `select count(*) from blacklist where client_id = $1 and phone in ($2, $3) and id > 0`, []any{t.id, f.Phone, f.Mark}, &whole); err != nil {
			return 0, false, engine.PublicError(fmt.Errorf("count the blacklist: %w", err))
		}
	}
	return min(n+whole, limit), n+whole <= limit && read < most, nil
}

// blacklistFilter returns the condition of a filter, and the values of a statement with those of the condition. The condition
// leaves out the entry of a whole number, which is found by its key.
func blacklistFilter(f puntuale.BlacklistFilter, values []any) (where string, _ []any) {
	if f == (puntuale.BlacklistFilter{}) {
		return "1 = 1", values
	}
	digits, text := "", ""
	if f.Digits != "" {
		digits = likePattern(f.Digits)
	}
	if f.Text != "" {
		text = likePattern(strings.ToLower(f.Text))
	}
	n := len(values)
	bound := func(i int) string { return fmt.Sprintf("$%d", n+i) }
	// A search for digits must not find marks: a mark also contains digits, but they are not the digits of a number.
	return `phone not in (` + bound(1) + `, ` + bound(2) + `) and (` + bound(3) + ` <> '' and phone like ` + bound(3) + ` escape '\' and phone not like ` + bound(4) + ` or ` +
		bound(5) + ` <> '' and lower(reason) like ` + bound(5) + ` escape '\')`, append(values, f.Phone, f.Mark, digits, puntuale.MarkPrefix+"%", text)
}

// BlacklistEntry reads an entry. Codes: not_found.
func (t tenant) BlacklistEntry(ctx context.Context, id int64) (puntuale.BlacklistEntry, error) {
	e := puntuale.BlacklistEntry{ID: id}
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select phone, reason, added_at from blacklist where client_id = $1 and id = $2 and id > 0`, []any{t.id, id},
		&e.Phone, &e.Reason, engine.ScanTime(&e.Added))
	hideMark(&e)
	return e, engine.FoundOr(found, err, puntuale.NoBlacklist)
}

// maxBlacklisted is how many entries one transaction adds at most.
const maxBlacklisted = 1000

// AddAllBlacklisted adds entries, each in the same way as AddBlacklisted, and returns how many entries are new. The
// caller sorts them by phone, each phone once. One transaction adds at most 1,000 entries. If the call fails, the
// caller may repeat it; the repeat adds the missing entries.
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

// RemoveBlacklistEntry removes the entry with this id. The entry may have only a mark, after an erasure. Codes:
// not_found.
//
// RemoveBlacklistEntry also removes entries with other names of the person. If the person was erased, it removes the
// marks of other names, which have the negative id (retention/erasure.go).
func (t tenant) RemoveBlacklistEntry(ctx context.Context, id int64, now time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var phone string
		found, err := engine.QueryOne(ctx, a, `select phone from blacklist where client_id = $1 and id = $2 and id > 0`, []any{t.id, id}, &phone)
		if err := engine.ThereOr(found, err, puntuale.NoBlacklist); err != nil {
			return err
		}
		names, err := alias.Names(ctx, a, t.id, phone)
		if err != nil {
			return err
		}
		n, err := queue.RemoveBlacklisted(ctx, a, t.id, now, `(phone in (select u.p from $u(p text)) or phone like $2 and id in ($3, $4))`,
			puntuale.MarkPrefix+"%", id, -id, engine.Columns{names})
		return engine.ThereOr(n > 0, err, puntuale.NoBlacklist)
	})
}

// A cross join makes SQLite read the tables in the written order. Otherwise it reads the client's whole blacklist.
const amongBlacklisted = `select u.i from $u(i bigint, p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p`

// AmongBlacklisted returns which of the given phones belong to people on the blacklist, under any name or mark.
func (t tenant) AmongBlacklisted(ctx context.Context, phones []string, mark func(string) string) (map[string]bool, error) {
	places, names, err := t.namesOfEach(ctx, phones, mark)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	if err := t.s.CallReads.Query(ctx, amongBlacklisted, []any{t.id, engine.Columns{places, names}}, func(rows engine.Row) error {
		var i int
		err := rows.Scan(&i)
		listed[phones[i]] = true
		return err
	}); err != nil {
		return nil, engine.PublicError(fmt.Errorf("look numbers up in the blacklist: %w", err))
	}
	return listed, nil
}

// namesOfEach returns the names and marks of several people, each with the index of its person.
func (t tenant) namesOfEach(ctx context.Context, phones []string, mark func(string) string) (places []int64, names []string, err error) {
	err = alias.Each(ctx, t.s.CallReads, slices.Repeat([]int64{int64(t.id)}, len(phones)), phones, func(i int, name string) {
		for _, word := range append(puntuale.Person{Mark: mark}.Marks([]string{name}), name) {
			places, names = append(places, int64(i)), append(names, word)
		}
	})
	return places, names, engine.PublicError(err)
}
