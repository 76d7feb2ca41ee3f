package queue

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// AddBlacklisted adds an entry to the blacklist. It returns 0 if the blacklist already contained one of the person's
// names or the mark (keyed hash), and 1 otherwise.
func AddBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, e puntuale.BlacklistEntry) (int64, error) {
	return AddAllBlacklisted(ctx, a, client, []puntuale.BlacklistEntry{e})
}

// AddAllBlacklisted does the same as [AddBlacklisted] for many entries of one client. If two entries name the same
// person, it adds the first. It returns how many entries it added.
func AddAllBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) (int64, error) {
	last, err := engine.NextNumbers(ctx, a, "blacklist", len(all))
	if err != nil {
		return 0, err
	}
	fresh, err := notBlacklisted(ctx, a, client, all)
	if err != nil || len(fresh) == 0 {
		return 0, err
	}
	ids := make([]int64, len(fresh))
	for i := range ids {
		ids[i] = last - int64(len(fresh)-1-i)
	}
	n, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at, origin)
 select $1::bigint, u.p, u.i, u.r, u.t, u.o from $u(p text, i bigint, r text, t bigint, o smallint) where true
 on conflict (client_id, phone) do nothing`, client, engine.Columns{
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) string { return e.Phone }),
		ids,
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) string { return e.Reason }),
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) int64 { return engine.Micros(e.Added) }),
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) int64 { return engine.Bit(e.OptOut) }),
	})
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, nil
}

// notBlacklisted returns the entries of people who are not on the blacklist under any name or under the mark. The
// caller has locked the counter of entries, so no other transaction adds an entry before this transaction commits.
func notBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) ([]puntuale.BlacklistEntry, error) {
	given := engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Phone })
	others, err := alias.Others(ctx, a, slices.Repeat([]int64{int64(client)}, len(given)), given)
	if err != nil {
		return nil, err
	}
	var places []int64
	var names []string
	namesOf := make([][]string, len(all))
	for i, e := range all {
		namesOf[i] = append([]string{e.Phone}, others[i]...)
		for _, name := range append(namesOf[i], e.Mark) {
			places, names = append(places, int64(i)), append(names, name)
		}
	}
	there := map[int]bool{}
	if err := a.Query(ctx, `select u.i from $u(i bigint, p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p`, []any{client, engine.Columns{places, names}}, func(r engine.Row) error {
		var i int
		err := r.Scan(&i)
		there[i] = true
		return err
	}); err != nil {
		return nil, fmt.Errorf("look into the blacklist: %w", err)
	}
	var fresh []puntuale.BlacklistEntry
	known := map[string]bool{}
	for i, e := range all {
		if !there[i] && !slices.ContainsFunc(namesOf[i], func(name string) bool { return known[name] }) {
			fresh = append(fresh, e)
		}
		for _, name := range namesOf[i] {
			known[name] = true
		}
	}
	return fresh, nil
}
