package notice

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Notices stores the notices of all clients and partners. Its methods are safe
// for concurrent use.
type Notices struct {
	db     *engine.DB
	purged atomic.Pointer[time.Time] // when Maintain last deleted notices; nil: Maintain has not deleted notices yet
}

// New returns the Notices of a database.
func New(db *engine.DB) *Notices { return &Notices{db: db} }

// seen is a condition for statements in which n is the table notice. It selects the notices that a user may see. The
// function seenBy returns its arguments.
const seen = ` n.client_id = $1 and n.partner_id = $2 and n.login_id in (0, $3) and n.due_at between $4 and $5 and ($6 & (1::bigint << n.kind)) <> 0`

func seenBy(u puntuale.User, now time.Time, more ...any) []any {
	return append([]any{u.Client, u.Partner, u.ID, engine.Micros(u.Created), engine.Micros(now), int64(u.Notices())}, more...)
}

const notRead = ` and not exists (select 1 from notice_read r where r.login_id = $3 and r.notice_id = n.id)`

// nameOf is an SQL expression for the name of a notice's subject.
var nameOf = fmt.Sprintf(`coalesce(case n.kind
 when %d then (select s.name from session s where s.client_id = n.client_id and s.id = n.subject)
 when %d then (select s.name from session s where s.client_id = n.client_id and s.id = n.subject)
 when %d then (select s.name from session s where s.client_id = n.client_id and s.id = n.subject)
 when %d then (select c.name from campaign c where c.client_id = n.client_id and c.id = n.subject)
 when %d then (select c.name from campaign c where c.client_id = n.client_id and c.id = n.subject)
 when %d then (select w.url from webhook w where w.id = n.subject and w.partner_id = n.partner_id and w.client_id = n.client_id)
 when %d then (select k.name from api_key k where k.id = n.subject and k.partner_id = n.partner_id and k.client_id = n.client_id)
 when %d then (select c.name from calendar c where c.client_id = n.client_id and c.id = n.subject)
 when %d then (select k.name from client k where k.id = n.subject and k.partner_id = n.partner_id)
 when %d then (select k.name from client k where k.id = n.subject and k.partner_id = n.partner_id) end, '')`,
	puntuale.NoticeDisconnected, puntuale.NoticeReconnected, puntuale.NoticeHealth, puntuale.NoticeCampaignDone, puntuale.NoticeCampaignPaused, puntuale.NoticeWebhookDisabled,
	puntuale.NoticeKeyCreated, puntuale.NoticeCalendar, puntuale.NoticeClientExpiring, puntuale.NoticeClientBudget)

var columns = `n.id, n.partner_id, n.client_id, n.login_id, n.kind, n.subject, ` + nameOf + `, n.detail, n.at,
 case when exists (select 1 from notice_read r where r.login_id = $3 and r.notice_id = n.id) then 1 else 0 end`

func scan(r engine.Row, n *puntuale.Notice) error {
	return r.Scan(&n.ID, &n.Partner, &n.Client, &n.User, &n.Kind, &n.Subject, &n.Name, engine.ScanJSON(&n.Detail), engine.ScanTime(&n.At), engine.ScanBool(&n.Read))
}

func (s *Notices) LatestNotices(ctx context.Context, u puntuale.User, now time.Time) ([]puntuale.Notice, error) {
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+columns+` from notice n where`+seen+` order by n.due_at desc, n.id desc limit $7`,
		seenBy(u, now, puntuale.ListedNotices), scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list notices: %w", err))
	}
	return all, nil
}

func (s *Notices) UnreadNotices(ctx context.Context, u puntuale.User, now time.Time, limit int) (n int, err error) {
	if _, err = engine.QueryOne(ctx, s.db.CallReads, `select count(*) from (select n.id from notice n where`+seen+notRead+` limit $7) x`, seenBy(u, now, limit), &n); err != nil {
		return 0, engine.PublicError(fmt.Errorf("count notices: %w", err))
	}
	return n, nil
}

func (s *Notices) ReadNotices(ctx context.Context, u puntuale.User, id puntuale.NoticeID, now time.Time) error {
	return s.write(ctx, u, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into notice_read (login_id, notice_id) select l.id, n.id from notice n join login l on l.id = $3 where`+seen+` and ($7::bigint = 0 or n.id = $7::bigint)
 on conflict (login_id, notice_id) do nothing`, seenBy(u, now, id)...); err != nil {
			return fmt.Errorf("mark notices as read: %w", err)
		}
		return nil
	})
}

// write runs a transaction for the client or the partner of the user.
func (s *Notices) write(ctx context.Context, u puntuale.User, do func(ctx context.Context, a engine.Querier) error) error {
	owner := int64(u.Client)
	if owner == 0 {
		owner = -int64(u.Partner)
	}
	return s.db.Write(ctx, owner, do)
}

func (s *Notices) NoticeChoice(ctx context.Context, u puntuale.User) (c puntuale.NoticeChoice, err error) {
	if _, err = engine.QueryOne(ctx, s.db.CallReads, `select c.on_kinds, c.off_kinds from notice_choice c where c.login_id = $1`, []any{u.ID}, &c.On, &c.Off); err != nil {
		return c, engine.PublicError(fmt.Errorf("read a user's choice: %w", err))
	}
	return c, nil
}

func (s *Notices) ChooseNotices(ctx context.Context, u puntuale.User, c puntuale.NoticeChoice) error {
	return s.write(ctx, u, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into notice_choice (login_id, on_kinds, off_kinds) select l.id, $2::bigint, $3::bigint from login l where l.id = $1
 on conflict (login_id) do update set on_kinds = excluded.on_kinds, off_kinds = excluded.off_kinds`, u.ID, int64(c.On), int64(c.Off)); err != nil {
			return fmt.Errorf("keep a user's choice: %w", err)
		}
		return nil
	})
}
