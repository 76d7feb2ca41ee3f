package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// OfficialPauses returns the end of the person's 24-hour window, and the pauses that may hold back a message to the person.
// Without a person, it returns only pauses of the number. It searches for each pause by its primary key.
func (s *Health) OfficialPauses(ctx context.Context, k puntuale.PauseKey) (windowEnd time.Time, all []puntuale.OfficialPause, err error) {
	if k.To == "" {
		all, err = s.pauses(ctx, k, nil)
		return windowEnd, all, err
	}
	names, err := alias.Names(ctx, s.db.CallReads, k.Client, k.To)
	if err != nil {
		return windowEnd, nil, engine.PublicError(err)
	}
	if _, err := engine.QueryOne(ctx, s.db.CallReads, `select coalesce(max(g.window_until), 0) from $u(p text) cross join contact g
 where g.client_id = $1 and g.phone = u.p and g.session_id = $2`, []any{k.Client, k.Session, engine.Columns{names}}, engine.ScanTime(&windowEnd)); err != nil {
		return time.Time{}, nil, engine.PublicError(fmt.Errorf("read a window: %w", err))
	}
	all, err = s.pauses(ctx, k, names)
	return windowEnd, all, err
}

// pauseColumns are the parts of the primary keys of pauses.
type pauseColumns struct {
	sessions []int64
	accounts []string
	scopes   []int64
	subjects []string
}

// add adds the keys of a scope: that of the session, and that of the business if it is known.
func (c *pauseColumns) add(k puntuale.PauseKey, scope puntuale.PauseKind, subject string) {
	c.sessions, c.accounts = append(c.sessions, int64(k.Session)), append(c.accounts, "")
	c.scopes, c.subjects = append(c.scopes, int64(scope)), append(c.subjects, subject)
	if k.Account != "" && scope > puntuale.PauseMarketing {
		c.sessions, c.accounts = append(c.sessions, 0), append(c.accounts, k.Account)
		c.scopes, c.subjects = append(c.scopes, int64(scope)), append(c.subjects, subject)
	}
}

func (s *Health) pauses(ctx context.Context, k puntuale.PauseKey, names []string) ([]puntuale.OfficialPause, error) {
	c := &pauseColumns{}
	c.add(k, puntuale.PauseNumber, "")
	for _, name := range names {
		c.add(k, puntuale.PausePerson, name)
		c.add(k, puntuale.PauseDirectSend, name)
	}
	if k.Country != "" {
		c.add(k, puntuale.PauseCountry, k.Country)
	}
	if k.Template != "" {
		c.add(k, puntuale.PauseTemplate, k.Template)
		for _, category := range []string{"MARKETING", "UTILITY"} {
			c.add(k, puntuale.PauseCategory, category)
		}
		for _, name := range names {
			c.add(k, puntuale.PauseMarketing, name)
		}
	}
	all, err := readPauses(ctx, s.db.CallReads, k, c)
	return all, engine.PublicError(err)
}

func readPauses(ctx context.Context, a engine.Querier, k puntuale.PauseKey, c *pauseColumns) ([]puntuale.OfficialPause, error) {
	all, err := engine.QueryAll(ctx, a, `select w.client_id, w.session_id, w.account, w.scope, w.subject, w.code, w.reason, w.final, w.detail, w.at, w.until
 from $u(s bigint, a text, o bigint, j text) cross join official_pause w
 where w.client_id = $1 and w.session_id = u.s and w.account = u.a and w.scope = u.o and w.subject = u.j and w.until > $2 order by w.scope`,
		[]any{k.Client, engine.Micros(k.Now), engine.Columns{c.sessions, c.accounts, c.scopes, c.subjects}}, func(r engine.Row, w *puntuale.OfficialPause) error {
			return r.Scan(&w.Client, &w.Session, &w.Account, &w.Kind, &w.Subject, &w.Code, &w.Reason, engine.ScanBool(&w.Final), &w.Detail, engine.ScanTime(&w.At), engine.ScanTime(&w.Until))
		})
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	return all, nil
}

// KeepOfficialPauses stores pauses of one client. Of two pauses with the same key, the one with the later refusal counts.
func (s *Health) KeepOfficialPauses(ctx context.Context, all []puntuale.OfficialPause) error {
	if len(all) == 0 {
		return nil
	}
	all = slices.Clone(all)
	engine.SortStable(all, func(a, b puntuale.OfficialPause) int { return cmp.Or(comparePauses(a, b), b.At.Compare(a.At)) })
	all = slices.CompactFunc(all, func(a, b puntuale.OfficialPause) bool { return comparePauses(a, b) == 0 })
	column := func(field func(*puntuale.OfficialPause) string) []string { return engine.Column(all, field) }
	number := func(field func(*puntuale.OfficialPause) int64) []int64 { return engine.Column(all, field) }
	client := all[0].Client
	return s.db.TenantWriter(int64(client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into official_pause as g (client_id, session_id, account, scope, subject, code, reason, final, detail, at, until)
 select $1::bigint, u.s, u.a, u.o, u.j, u.c, u.r, u.f, u.d, u.t, u.e
 from $u(s bigint, a text, o bigint, j text, c bigint, r text, f bigint, d text, t bigint, e bigint)
 where exists (select 1 from session s where s.client_id = $1 and (s.id = u.s or u.s = 0) and s.deleted_at = 0)
 on conflict (client_id, session_id, account, scope, subject) do update
 set code = excluded.code, reason = excluded.reason, final = excluded.final, detail = excluded.detail, at = excluded.at, until = excluded.until
 where g.at <= excluded.at`, client, engine.Columns{
			number(func(w *puntuale.OfficialPause) int64 { return int64(w.Session) }), column(func(w *puntuale.OfficialPause) string { return w.Account }),
			number(func(w *puntuale.OfficialPause) int64 { return int64(w.Kind) }), column(func(w *puntuale.OfficialPause) string { return w.Subject }),
			number(func(w *puntuale.OfficialPause) int64 { return int64(w.Code) }), column(func(w *puntuale.OfficialPause) string { return string(w.Reason) }), number(func(w *puntuale.OfficialPause) int64 { return engine.Bit(w.Final) }),
			column(func(w *puntuale.OfficialPause) string { return w.Detail }),
			number(func(w *puntuale.OfficialPause) int64 { return engine.Micros(w.At) }), number(func(w *puntuale.OfficialPause) int64 { return engine.Micros(w.Until) }),
		}); err != nil {
			return fmt.Errorf("keep pauses: %w", err)
		}
		return nil
	}), false)
}

func comparePauses(a, b puntuale.OfficialPause) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
}

// EndOfficialPauses ends the pauses of a session and of its business with this scope and subject. Kind 0 means all pauses,
// except those for marketing to single persons, and those with which Meta stopped Direct Send.
func (s *Health) EndOfficialPauses(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, account string, scope puntuale.PauseKind, subject string) error {
	return s.db.TenantWriter(int64(client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from official_pause where client_id = $1
 and (session_id = $2 and account = '' or session_id = 0 and account = $3 and $3 <> '')
 and ($4::bigint = 0 and scope <> $6::bigint and (scope <> $7::bigint or code = $8) or scope = $4::bigint and subject = $5)`, client, session, account, int64(scope), subject, int64(puntuale.PauseMarketing),
			int64(puntuale.PauseDirectSend), puntuale.CodeNotEnabled); err != nil {
			return fmt.Errorf("end pauses: %w", err)
		}
		return nil
	}), false)
}

// pauseRow is the primary key of a pause.
type pauseRow struct {
	client, session, scope int64
	account, subject       string
}

// Maintain deletes pauses that have ended.
func (s *Health) Maintain(ctx context.Context, now time.Time) error {
	before := engine.Micros(now)
	return engine.Purge(ctx, s.db, "pauses", `select client_id, session_id, account, scope, subject from official_pause where until < $1 order by until limit $2`, before,
		func(r engine.Row, w *pauseRow) error {
			return r.Scan(&w.client, &w.session, &w.account, &w.scope, &w.subject)
		},
		func(a, b pauseRow) int {
			return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.session, b.session), cmp.Compare(a.account, b.account), cmp.Compare(a.scope, b.scope), cmp.Compare(a.subject, b.subject))
		},
		func(ctx context.Context, a engine.Querier, part []pauseRow) error {
			_, err := a.Exec(ctx, `delete from official_pause where until < $1 and (client_id, session_id, account, scope, subject) in
 (select u.c, u.s, u.a, u.o, u.j from $u(c bigint, s bigint, a text, o bigint, j text))`, before, engine.Columns{
				engine.Column(part, func(w *pauseRow) int64 { return w.client }), engine.Column(part, func(w *pauseRow) int64 { return w.session }),
				engine.Column(part, func(w *pauseRow) string { return w.account }), engine.Column(part, func(w *pauseRow) int64 { return w.scope }),
				engine.Column(part, func(w *pauseRow) string { return w.subject }),
			})
			return err
		})
}
