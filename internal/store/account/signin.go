package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

func (s *Accounts) UsersByEmail(ctx context.Context, email string, partner puntuale.PartnerID, limit int) ([]puntuale.User, error) {
	users, err := engine.QueryAll(ctx, s.CallReads, `select `+userColumns+` from login l where lower(l.email) = lower($1) and ($2 = 0 or l.partner_id = $2)
 and (l.client_id = 0 or exists (select 1 from client c where c.id = l.client_id and c.deleted_at = 0)) order by l.id limit $3`,
		[]any{email, partner, limit}, scanUser)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for users: %w", err))
	}
	return users, nil
}

const hostColumns = `p.id, p.name, p.slug, p.created_at, coalesce(b.name, ''), coalesce(b.colour, ''), coalesce(b.logo_kind, ''),
 coalesce(b.host, ''), coalesce(b.mark, ''), case when b.confirmed = b.host and b.host <> '' then 1 else 0 end`

func hostFields(h *puntuale.Host) []any {
	return []any{&h.Partner.ID, &h.Partner.Name, &h.Partner.Slug, engine.ScanTime(&h.Partner.Created), &h.Brand.Name, &h.Brand.Colour, &h.Brand.LogoKind,
		&h.Brand.Host, &h.Brand.Mark, engine.ScanBool(&h.Brand.Confirmed)}
}

func (s *Accounts) UserByID(ctx context.Context, id puntuale.UserID) (u puntuale.User, h puntuale.Host, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select `+userColumns+`, `+hostColumns+` from login l join partner p on p.id = l.partner_id
 left join brand b on b.partner_id = p.id where l.id = $1`, []any{id}, append(userFields(&u), hostFields(&h)...)...)
	return u, h, engine.FoundOr(found, err, puntuale.NoUser)
}

func (s *Accounts) HostNamed(ctx context.Context, name string) (puntuale.Host, error) {
	return s.host(ctx, `b.confirmed = $1 and b.confirmed = b.host and b.host <> ''`, name)
}

func (s *Accounts) HostSlug(ctx context.Context, slug string) (puntuale.Host, error) {
	return s.host(ctx, `p.slug = $1 and p.slug <> ''`, slug)
}

func (s *Accounts) host(ctx context.Context, condition string, arg any) (h puntuale.Host, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select `+hostColumns+` from partner p left join brand b on b.partner_id = p.id where `+condition,
		[]any{arg}, hostFields(&h)...)
	return h, engine.FoundOr(found, err, puntuale.NoPartner)
}

// WriteWithoutTenant runs a transaction that belongs to no tenant.
func (s *Accounts) WriteWithoutTenant(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, do), false)
}

func (s *Accounts) IssueTicket(ctx context.Context, hash string, t puntuale.PendingStep) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into ticket (hash, kind, login_id, stamp, expires_at) values ($1, $2, $3, $4, $5)`,
			hash, string(t.Kind), t.User, t.Stamp, engine.Micros(t.Until))
		return err
	})
}

func (s *Accounts) Ticket(ctx context.Context, hash string, kind puntuale.PendingStepKind) (puntuale.PendingStep, error) {
	t := puntuale.PendingStep{Kind: kind}
	found, err := engine.QueryOne(ctx, s.CallReads, `select login_id, stamp, expires_at from ticket where hash = $1 and kind = $2`,
		[]any{hash, string(kind)}, &t.User, &t.Stamp, engine.ScanTime(&t.Until))
	return t, engine.FoundOr(found, err, puntuale.NoTicket)
}

func (s *Accounts) SpendTicket(ctx context.Context, hash string, kind puntuale.PendingStepKind) (t puntuale.PendingStep, err error) {
	err = s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		t = puntuale.PendingStep{Kind: kind}
		found, err := engine.QueryOne(ctx, a, `delete from ticket where hash = $1 and kind = $2 returning login_id, stamp, expires_at`,
			[]any{hash, string(kind)}, &t.User, &t.Stamp, engine.ScanTime(&t.Until))
		return engine.ThereOr(found, err, puntuale.NoTicket)
	})
	return t, err
}

func (s *Accounts) Visit(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error) {
	found, err = engine.QueryOne(ctx, s.CallReads, `select data from visit where token = $1 and expires_at > $2 and ended_at = 0`, []any{token, engine.Micros(now)}, &data)
	if err != nil {
		return nil, false, engine.PublicError(fmt.Errorf("read a visit: %w", err))
	}
	return data, found, nil
}

func (s *Accounts) KeepVisit(ctx context.Context, v puntuale.Visit) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into visit (token, data, expires_at, login_id) values ($1, $2, $3, $4)
 on conflict (token) do update set data = excluded.data, expires_at = excluded.expires_at, login_id = excluded.login_id where visit.ended_at = 0`,
			v.Token, v.Data, engine.Micros(v.Expires), v.User)
		return err
	})
}

func (s *Accounts) EndVisit(ctx context.Context, token string) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from visit where token = $1`, token)
		return err
	})
}

func (s *Accounts) VisitsOf(ctx context.Context, user puntuale.UserID, now time.Time, limit int) ([]puntuale.Visit, error) {
	all, err := engine.QueryAll(ctx, s.CallReads, `select token, data, expires_at from visit where login_id = $1 and login_id <> 0 and expires_at > $2 and ended_at = 0
 order by expires_at desc, token limit $3`, []any{user, engine.Micros(now), limit}, func(r engine.Row, v *puntuale.Visit) error {
		v.User = user
		return r.Scan(&v.Token, &v.Data, engine.ScanTime(&v.Expires))
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list visits: %w", err))
	}
	return all, nil
}

func (s *Accounts) EndVisitOf(ctx context.Context, user puntuale.UserID, token string, now time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update visit set ended_at = $3, data = $4 where token = $1 and login_id = $2 and ended_at = 0`, token, user, engine.Micros(now), []byte{})
		return err
	})
}

func (s *Accounts) PurgeSignIns(ctx context.Context, now time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from visit where expires_at <= $1`, engine.Micros(now)); err != nil {
			return fmt.Errorf("remove visits: %w", err)
		}
		if _, err := a.Exec(ctx, `delete from ticket where expires_at <= $1`, engine.Micros(now)); err != nil {
			return fmt.Errorf("remove tickets: %w", err)
		}
		if _, err := a.Exec(ctx, `delete from invitation where expires_at <= $1`, engine.Micros(now)); err != nil {
			return fmt.Errorf("remove invitations: %w", err)
		}
		_, err := a.Exec(ctx, `delete from try where at <= $1`, engine.Micros(now.Add(-puntuale.ForgetTries)))
		return err
	})
}

func (s *Accounts) Try(ctx context.Context, tries []puntuale.SignInAttempt, now time.Time) (wait time.Duration, err error) {
	err = s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		wait = 0
		counted := make([]int64, len(tries))
		for i, t := range tries { // every transaction locks in the same order, so there are no deadlocks
			var n int64
			var at time.Time
			// The insert makes sure that there is a row to lock.
			if _, err := engine.QueryOne(ctx, a, `insert into try (mark, tries, at) values ($1, 0, 0)
 on conflict (mark) do update set mark = excluded.mark returning tries, at`, []any{t.Mark}, &n, engine.ScanTime(&at)); err != nil {
				return fmt.Errorf("count an attempt: %w", err)
			}
			if now.Sub(at) >= puntuale.ForgetTries {
				n = 0
			}
			if end := at.Add(waitAfter(n, t.Free)); end.After(now) {
				wait = max(wait, end.Sub(now))
			}
			counted[i] = n
		}
		if wait > 0 {
			return nil
		}
		for i, t := range tries {
			if _, err := a.Exec(ctx, `update try set tries = $2, at = $3 where mark = $1`, t.Mark, counted[i]+1, engine.Micros(now)); err != nil {
				return fmt.Errorf("count an attempt: %w", err)
			}
		}
		return nil
	})
	return wait, err
}

// waitAfter returns how long to wait after the last of n attempts before the next attempt is allowed.
func waitAfter(n int64, free int) time.Duration {
	excess := n - int64(free)
	if excess < 0 {
		return 0
	}
	return min(time.Second<<min(excess+1, 20), puntuale.MaxWait)
}

func (s *Accounts) Forget(ctx context.Context, marks, others []string) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		for _, mark := range marks {
			if _, err := a.Exec(ctx, `delete from try where mark = $1`, mark); err != nil {
				return fmt.Errorf("forget attempts: %w", err)
			}
		}
		for _, mark := range others {
			if _, err := a.Exec(ctx, `update try set tries = tries - 1 where mark = $1 and tries > 0`, mark); err != nil {
				return fmt.Errorf("take an attempt back: %w", err)
			}
		}
		return nil
	})
}
