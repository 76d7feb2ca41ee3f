package account

import (
	"context"
	"fmt"
	"math"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

func (p Partner) AddAudit(ctx context.Context, e puntuale.AuditEntry) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if e.Client != 0 { // the client must have a row; a deleted client keeps its row
			var n int64
			found, err := engine.QueryOne(ctx, a, `select id from client where partner_id = $1 and id = $2`, []any{p.id, e.Client}, &n)
			if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
				return err
			}
		}
		_, err := a.Exec(ctx, `insert into audit (partner_id, client_id, login_id, who, entry, action, target, at, address)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, p.id, e.Client, e.User, e.Who, engine.Bit(e.Entry), e.Action, e.Target, engine.Micros(e.At), e.Address)
		return err
	})
}

// Audit lists entries of one client, newest first. With client 0 it lists the entries of the partner and all its
// clients. Codes: invalid (the cursor).
func (p Partner) Audit(ctx context.Context, client puntuale.ClientID, page puntuale.Page) ([]puntuale.AuditEntry, string, error) {
	before, limit, err := engine.ReadCursor(page, "audit")
	if err != nil {
		return nil, "", err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	if err := p.ofClient(ctx, client); err != nil {
		return nil, "", err
	}
	from, args := p.audited(client, before, limit+1)
	all, err := engine.QueryAll(ctx, p.s.ListReads, `select id, client_id, login_id, who, entry, action, target, at, address, times`+from, args, func(rows engine.Row, e *puntuale.AuditEntry) error {
		return rows.Scan(&e.ID, &e.Client, &e.User, &e.Who, engine.ScanBool(&e.Entry), &e.Action, &e.Target, engine.ScanTime(&e.At), &e.Address, &e.Times)
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list what was done: %w", err))
	}
	all, next := engine.CutPage(all, limit, "audit", func(e *puntuale.AuditEntry) int64 { return e.ID })
	return all, next, nil
}

// CountAudit counts the entries that Audit lists, up to limit. all reports whether n is the complete count.
func (p Partner) CountAudit(ctx context.Context, client puntuale.ClientID, limit int) (n int, all bool, err error) {
	if err := p.ofClient(ctx, client); err != nil {
		return 0, false, err
	}
	from, args := p.audited(client, math.MaxInt64, limit+1)
	if _, err := engine.QueryOne(ctx, p.s.ListReads, `select count(*) from (select id`+from+`) as found`, args, &n); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count what was done: %w", err))
	}
	return min(n, limit), n <= limit, nil
}

// audited returns the end of a statement that reads the newest entries whose ids are below before, at most limit, and the
// statement's values.
func (p Partner) audited(client puntuale.ClientID, before int64, limit int) (from string, args []any) {
	from, args = ` from audit where partner_id = $1 and id < $2`, []any{p.id, before, limit}
	if client != 0 {
		from, args = from+` and client_id = $4 and client_id <> 0`, append(args, client) // 0: else no database uses the client's index
	}
	return from + ` order by id desc limit $3`, args
}

func (s *Accounts) Fail(ctx context.Context, mark string, failures []puntuale.SignInFailure, now time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		// Update a row even if the user does not exist. Otherwise the time of the answer would show whether the user
		// exists.
		if _, err := a.Exec(ctx, `update try set at = $2 where mark = $1`, mark, engine.Micros(now)); err != nil {
			return fmt.Errorf("note a failed attempt: %w", err)
		}
		for _, f := range failures {
			if err := noteFailure(ctx, a, f, now); err != nil {
				return fmt.Errorf("put a failed attempt into the log: %w", err)
			}
		}
		return nil
	})
}

// noteFailure adds 1 to an existing entry, or writes an entry. If several servers call it at the same time, there may
// be a few more entries than [puntuale.MaxFailures].
func noteFailure(ctx context.Context, a engine.Querier, f puntuale.SignInFailure, now time.Time) error {
	hour, day := engine.Micros(now.Add(-time.Hour)), engine.Micros(now.Add(-24*time.Hour))
	if counted, err := countFailure(ctx, a, f, hour); counted || err != nil {
		return err
	}
	var entries int64
	if _, err := engine.QueryOne(ctx, a, `select count(*) from audit where login_id = $1 and action = 'signin_failed' and at > $2`, []any{f.User.ID, day}, &entries); err != nil {
		return err
	}
	if entries >= puntuale.MaxFailures {
		f.Address = ""
		if counted, err := countFailure(ctx, a, f, day); counted || err != nil {
			return err
		}
	}
	_, err := a.Exec(ctx, `insert into audit (partner_id, client_id, login_id, who, action, target, at, address)
 values ($1, $2, $3, $4, 'signin_failed', $5, $6, $7)`, f.User.Partner, f.User.Client, f.User.ID, f.User.Email, f.What, engine.Micros(now), f.Address)
	return err
}

// countFailure adds 1 to the latest entry for the same failure. It returns false if no such entry is newer than the
// time in the argument since.
func countFailure(ctx context.Context, a engine.Querier, f puntuale.SignInFailure, since int64) (bool, error) {
	n, err := a.Exec(ctx, `update audit set times = times + 1 where id = (select max(id) from audit
 where login_id = $1 and action = 'signin_failed' and at > $2 and target = $3 and address = $4)`, f.User.ID, since, f.What, f.Address)
	return n > 0, err
}
