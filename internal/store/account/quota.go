package account

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// inUse contains, for each quota, a statement that counts what the client $1 has. API keys are missing here, because
// checkKeyQuota counts them. Each count uses an index.
var inUse = map[puntuale.Quota]string{
	puntuale.QuotaSessions:  `select count(*) from session where client_id = $1 and deleted_at = 0`,
	puntuale.QuotaSequences: `select count(*) from sequence where client_id = $1 and deleted_at = 0`,
	puntuale.QuotaTemplates: `select count(*) from template where client_id = $1`,
	puntuale.QuotaUsers:     `select count(*) from login where client_id = $1 and client_id <> 0`,
}

// CheckQuota returns an error if the client has as many things as its quota allows. The caller has locked the client's
// row until its transaction commits. A change of the quota takes the same lock.
func CheckQuota(ctx context.Context, a engine.Querier, client puntuale.ClientID, q puntuale.Quota) error {
	var count int64
	if _, err := engine.QueryOne(ctx, a, inUse[q], []any{client}, &count); err != nil {
		return fmt.Errorf("count %s: %w", q, err)
	}
	return limit(ctx, a, client, q, count)
}

// limit returns an error if count, the present number, has reached the quota.
func limit(ctx context.Context, a engine.Querier, client puntuale.ClientID, q puntuale.Quota, count int64) error {
	maximum := q.Default()
	if _, err := engine.QueryOne(ctx, a, `select most from quota where client_id = $1 and noun = $2`, []any{client, string(q)}, &maximum); err != nil {
		return fmt.Errorf("read a quota: %w", err)
	}
	if count >= maximum {
		return puntuale.QuotaReached(q, maximum)
	}
	return nil
}

// storeQuotas stores the changed quotas of a client whose row is locked.
func storeQuotas(ctx context.Context, a engine.Querier, client puntuale.ClientID, changes map[puntuale.Quota]*int64) error {
	for _, q := range puntuale.AllQuotas {
		maximum, changes := changes[q]
		if !changes {
			continue
		}
		statement, args := `delete from quota where client_id = $1 and noun = $2`, []any{client, string(q)}
		if maximum != nil {
			statement, args = `insert into quota (client_id, noun, most) values ($1, $2, $3)
 on conflict (client_id, noun) do update set most = excluded.most`, append(args, *maximum)
		}
		if _, err := a.Exec(ctx, statement, args...); err != nil {
			return fmt.Errorf("store a quota: %w", err)
		}
	}
	return nil
}

// Quotas returns the limits that the partner set for the given clients. If the result lacks a client, the client
// has the defaults. A method that creates a limited thing returns quota_reached beyond the limit. The limits are
// exact under any concurrency.
func (p Partner) Quotas(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Quotas, error) {
	all, err := p.quotas(ctx, p.s.CallReads, ids)
	return all, engine.PublicError(err)
}

func (p Partner) quotas(ctx context.Context, a engine.Querier, ids []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Quotas, error) {
	all := make(map[puntuale.ClientID]puntuale.Quotas, len(ids))
	if len(ids) == 0 {
		return all, nil
	}
	type quotaRow struct {
		client puntuale.ClientID
		noun   string
		limit  int64
	}
	rows, err := engine.QueryAll(ctx, a, `select q.client_id, q.noun, q.most from $u(i bigint) join quota q on q.client_id = u.i
 join client c on c.id = q.client_id and c.partner_id = $1`, []any{p.id, engine.Columns{engine.Column(ids, func(id *puntuale.ClientID) int64 { return int64(*id) })}},
		func(r engine.Row, q *quotaRow) error { return r.Scan(&q.client, &q.noun, &q.limit) })
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	for _, r := range rows {
		if all[r.client] == nil {
			all[r.client] = puntuale.Quotas{}
		}
		all[r.client][puntuale.Quota(r.noun)] = r.limit
	}
	return all, nil
}
