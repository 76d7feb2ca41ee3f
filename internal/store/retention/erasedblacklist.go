package retention

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// markBlacklisted replaces the person's names in the blacklist by marks. If one name is on the blacklist, the marks of
// all names are on it afterwards. If a name was not on it before, its mark gets the negative id of an entry, and lists do
// not show it. Removing the entry removes this mark, too. marked reports whether this call replaced a
// name.
func (x *erasureTransaction) markBlacklisted(ctx context.Context, a engine.Querier) (marked bool, err error) {
	if err := outbox.ForgetBlacklist(ctx, a, x.id, x.names); err != nil {
		return false, err
	}
	type entry struct {
		phone             string
		id, added, origin int64
	}
	all, err := engine.QueryAll(ctx, a, `delete from blacklist where client_id = $1 and phone in `+ofNames+` returning phone, id, added_at, origin`, []any{x.id, x.batch()},
		func(r engine.Row, e *entry) error { return r.Scan(&e.phone, &e.id, &e.added, &e.origin) })
	if err != nil {
		return false, fmt.Errorf("read the blacklist: %w", err)
	}
	var stored int64
	if len(all) == 0 { // an earlier call may have replaced the names
		found, err := engine.QueryOne(ctx, a, `select b.id from blacklist b where b.client_id = $1 and b.phone in (select u.e from $u(p text, e text)) limit 1`, []any{x.id, x.batch()}, &stored)
		x.done.Blacklisted = x.done.Blacklisted || found
		return false, err
	}
	x.done.Blacklisted = true
	engine.Sort(all, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	for _, name := range x.names {
		e := all[len(all)-1]
		e.id = -max(e.id, -e.id)
		if i := slices.IndexFunc(all, func(e entry) bool { return e.phone == name }); i >= 0 {
			e = all[i]
		}
		if _, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at, origin) values ($1, $2, $3, '', $4, $5)
 on conflict (client_id, phone) do nothing`, x.id, x.markOf(name), e.id, e.added, e.origin); err != nil {
			return false, fmt.Errorf("keep the mark: %w", err)
		}
	}
	return true, nil
}
