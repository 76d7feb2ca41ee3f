package queue

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// AddBlacklisted adds an entry to the blacklist. It returns 0 if the blacklist already contained the phone or its mark
// (keyed hash), and 1 otherwise.
func AddBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, e puntuale.BlacklistEntry) (int64, error) {
	id, err := engine.NextNumber(ctx, a, "blacklist")
	if err != nil {
		return 0, err
	}
	n, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at, origin)
 select $1::bigint, $2::text, $3::bigint, $4::text, $5::bigint, $7::smallint
 where not exists (select 1 from blacklist b where b.client_id = $1 and b.phone = $6)
 on conflict (client_id, phone) do nothing`, client, e.Phone, id, e.Reason, engine.Micros(e.Added), e.Mark, engine.Bit(e.OptOut))
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, nil
}

// TakeOver makes the client's own what an opt-out added: entries that the client now adds itself. Then the person cannot
// remove them any more. An erased person's entry keeps its empty reason.
func TakeOver(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) error {
	if _, err := a.Exec(ctx, `update blacklist set origin = 0, reason = case when blacklist.phone = u.p then u.r else blacklist.reason end
 from $u(p text, m text, r text) where blacklist.client_id = $1 and blacklist.phone in (u.p, u.m) and (blacklist.origin = 1 or blacklist.reason like $2)`,
		client, puntuale.PreferenceReason+"%", engine.Columns{
			engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Phone }),
			engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Mark }),
			engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Reason }),
		}); err != nil {
		return fmt.Errorf("take over entries of the blacklist: %w", err)
	}
	return nil
}

// AddAllBlacklisted does the same as [AddBlacklisted] for many entries of one client. It returns how many entries it
// added.
func AddAllBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) (int64, error) {
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
