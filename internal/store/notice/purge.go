package notice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// purgeEvery is how often a node purges notices.
const purgeEvery = time.Hour

// Maintain deletes old notices, notices beyond the largest number, and the rows of deleted users. It does this at most
// once an hour.
func (s *Notices) Maintain(ctx context.Context, now time.Time) error {
	if last := s.purged.Load(); last != nil && now.Sub(*last) < purgeEvery {
		return nil
	}
	if err := errors.Join(s.purge(ctx, old, []any{engine.Micros(now.Add(-puntuale.KeepNotices))}), s.purge(ctx, tooMany, []any{puntuale.MaxNotices}), s.purgeReaders(ctx)); err != nil {
		return err
	}
	s.purged.Store(&now)
	return nil
}

// An open notice is never purged, because its incident has not ended.
const (
	old     = `select n.id from notice n where n.at < $1 and n.open = 0 limit $2`
	tooMany = `select x.id from (select n.id, n.open, row_number() over (partition by n.partner_id, n.client_id, n.login_id, n.kind order by n.due_at desc, n.id desc) as place
 from notice n) x where x.place > $1 and x.open = 0 limit $2`
)

// purge deletes the notices that the statement find returns, one chunk in each transaction.
func (s *Notices) purge(ctx context.Context, find string, args []any) error {
	for {
		ids, err := engine.QueryAll(ctx, s.db.MaintenanceReads, find, append(slices.Clone(args), engine.Chunk), engine.ScanOne[int64])
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for old notices: %w", err))
		}
		if len(ids) == 0 {
			return nil
		}
		slices.Sort(ids)
		if err := s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
			for _, statement := range []string{
				`delete from notice_read where notice_id in (select u.i from $u(i bigint))`,
				`delete from notice where id in (select u.i from $u(i bigint))`,
			} {
				if _, err := a.Exec(ctx, statement, engine.Columns{ids}); err != nil {
					return fmt.Errorf("remove old notices: %w", err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if len(ids) < engine.Chunk {
			return nil
		}
	}
}

// purgeReaders deletes rows of deleted users, notices and clients. A transaction that overlapped with the deletion may
// have written such rows.
func (s *Notices) purgeReaders(ctx context.Context) error {
	return s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
		for _, statement := range []string{
			`delete from notice_choice where not exists (select 1 from login l where l.id = notice_choice.login_id)`,
			`delete from notice_read where not exists (select 1 from login l where l.id = notice_read.login_id) or not exists (select 1 from notice n where n.id = notice_read.notice_id)`,
			`delete from notice where client_id <> 0 and exists (select 1 from client k where k.id = notice.client_id and k.deleted_at <> 0)`,
		} {
			if _, err := a.Exec(ctx, statement); err != nil {
				return fmt.Errorf("remove what is left of notices: %w", err)
			}
		}
		return nil
	})
}

// ClientDeleted deletes a client's notices, and its partner's notices about the client, in the transaction that deletes
// the client. Call it before the client's users are deleted.
func ClientDeleted(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if _, err := a.Exec(ctx, `delete from notice_choice where login_id in (select l.id from login l where l.client_id = $1)`, client); err != nil {
		return fmt.Errorf("delete the choices of a client's users: %w", err)
	}
	const condition = `n.client_id = $1 or n.client_id = 0 and n.kind in ($2, $3) and n.subject = $1`
	for _, statement := range []string{
		`delete from notice_read where notice_id in (select n.id from notice n where ` + condition + `)`,
		`delete from notice where id in (select n.id from notice n where ` + condition + `)`,
	} {
		if _, err := a.Exec(ctx, statement, client, int64(puntuale.NoticeClientExpiring), int64(puntuale.NoticeClientBudget)); err != nil {
			return fmt.Errorf("delete a client's notices: %w", err)
		}
	}
	return nil
}

// UserDeleted deletes a user's own notices and choices, in the transaction that deletes the user.
func UserDeleted(ctx context.Context, a engine.Querier, u puntuale.User) error {
	if _, err := a.Exec(ctx, `delete from notice_choice where login_id = $1`, u.ID); err != nil {
		return fmt.Errorf("delete a user's choice: %w", err)
	}
	for _, statement := range []string{
		`delete from notice_read where login_id = $1 or notice_id in (select n.id from notice n where n.client_id = $2 and n.partner_id = $3 and n.login_id = $1)`,
		`delete from notice where client_id = $2 and partner_id = $3 and login_id = $1`,
	} {
		if _, err := a.Exec(ctx, statement, u.ID, u.Client, u.Partner); err != nil {
			return fmt.Errorf("delete a user's notices: %w", err)
		}
	}
	return nil
}

// SessionDeleted ends the incident of a session, in the transaction that deletes the session. If the incident's notice
// is not due yet, users never see it.
func SessionDeleted(ctx context.Context, a engine.Querier, client puntuale.ClientID, session puntuale.SessionID, now time.Time) error {
	if _, err := a.Exec(ctx, `delete from notice where client_id = $1 and subject = $2 and open = 1 and due_at > $3`, client, session, engine.Micros(now)); err != nil {
		return fmt.Errorf("delete a session's notice: %w", err)
	}
	if _, err := a.Exec(ctx, `update notice set open = 0 where client_id = $1 and subject = $2 and open = 1`, client, session); err != nil {
		return fmt.Errorf("close a session's notice: %w", err)
	}
	return nil
}
