package store

import (
	"context"
	"fmt"
	"math"

	"puntuale"
)

func (p partnerTenant) AddAudit(ctx context.Context, e puntuale.AuditEntry) error {
	return p.write(ctx, func(ctx context.Context, a asker) error {
		if e.Client != 0 { // also one that was just deleted
			var n int64
			found, err := one(ctx, a, `select id from client where partner_id = $1 and id = $2`, []any{p.id, e.Client}, &n)
			if err := thereOr(found, err, "client"); err != nil {
				return err
			}
		}
		_, err := a.exec(ctx, `insert into audit (partner_id, client_id, login_id, who, entry, action, target, at)
 values ($1, $2, $3, $4, $5, $6, $7, $8)`, p.id, e.Client, e.User, e.Who, bit(e.Entry), e.Action, e.Target, micros(e.At))
		return err
	})
}

func (p partnerTenant) Audit(ctx context.Context, client puntuale.ClientID, page puntuale.Page) ([]puntuale.AuditEntry, string, error) {
	before, limit, err := after(page, "audit")
	if err != nil {
		return nil, "", err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	if err := p.ofClient(ctx, client); err != nil {
		return nil, "", err
	}
	which, args := ``, []any{p.id, before, limit + 1}
	if client != 0 {
		which, args = ` and client_id = $4`, append(args, client)
	}
	all, err := list(ctx, p.s.list, `select id, client_id, login_id, who, entry, action, target, at from audit
 where partner_id = $1 and id < $2`+which+` order by id desc limit $3`, args, func(rows row, e *puntuale.AuditEntry) error {
		return rows.Scan(&e.ID, &e.Client, &e.User, &e.Who, flag{&e.Entry}, &e.Action, &e.Target, moment{&e.At})
	})
	if err != nil {
		return nil, "", outward(fmt.Errorf("list what was done: %w", err))
	}
	all, next := cut(all, limit, "audit", func(e *puntuale.AuditEntry) int64 { return e.ID })
	return all, next, nil
}
