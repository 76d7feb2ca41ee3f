package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// mailsOfPartner is the largest number of one partner's e-mails in one claim. So a partner with many e-mails does not
// delay other partners' e-mails.
const mailsOfPartner = 8

const faultSigninTooManyResets puntuale.ReasonCode = "signin.too_many_resets"

func (s *Accounts) QueueMails(ctx context.Context, all []puntuale.Mail, replaced puntuale.MailID) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		if replaced != 0 {
			if _, err := a.Exec(ctx, `delete from mail where id = $1`, int64(replaced)); err != nil {
				return fmt.Errorf("take an e-mail out of the queue: %w", err)
			}
		}
		for _, m := range all {
			if m.Kind == puntuale.MailResetAsked {
				if err := roomForReset(ctx, a, m.Partner); err != nil {
					return err
				}
			}
			if err := queueMail(ctx, a, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func roomForReset(ctx context.Context, a engine.Querier, p puntuale.PartnerID) error {
	var n int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from mail where partner_id = $1 and kind = $2`, []any{p, int64(puntuale.MailResetAsked)}, &n); err != nil {
		return fmt.Errorf("count requests for a password: %w", err)
	}
	if n >= puntuale.MaxResets {
		return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultSigninTooManyResets), RetryAfter: time.Minute}
	}
	return nil
}

// queueMail stores an e-mail, and deletes waiting e-mails of the same kind for the same user.
func queueMail(ctx context.Context, a engine.Querier, m puntuale.Mail) error {
	if m.User != 0 {
		if err := dropMails(ctx, a, m.User, m.Kind); err != nil {
			return err
		}
	}
	if m.Sealed == nil {
		m.Sealed = []byte{}
	}
	if _, err := a.Exec(ctx, `insert into mail (partner_id, login_id, kind, sealed, queued_at, next_at) values ($1, $2, $3, $4, $5, $5)`,
		m.Partner, m.User, int64(m.Kind), m.Sealed, engine.Micros(m.Queued)); err != nil {
		return fmt.Errorf("queue an e-mail: %w", err)
	}
	return nil
}

// dropMails deletes the user's e-mails of a kind from the queue. An attempt that is running continues.
func dropMails(ctx context.Context, a engine.Querier, user puntuale.UserID, kind puntuale.MailKind) error {
	if _, err := a.Exec(ctx, `delete from mail where login_id = $1 and kind = $2`, user, int64(kind)); err != nil {
		return fmt.Errorf("take e-mails out of the queue: %w", err)
	}
	return nil
}

// claimMails sets the time of the next attempt to a time after the end of this attempt. If two nodes claim the same
// rows, the second waits for the first. Then the second finds that the rows are not due.
const claimMails = `
update mail set next_at = $2, attempts = attempts + 1 where next_at <= $1 and id in (
 select f.id from (
  select m.id, m.next_at, row_number() over (partition by m.partner_id order by m.next_at, m.id) as place from mail m where m.next_at <= $1) f
 where f.place <= $3 order by f.place, f.next_at, f.id limit $4)
returning id, partner_id, login_id, kind, sealed, queued_at, attempts`

func (s *Accounts) ClaimMails(ctx context.Context, now time.Time, limit int) (claimed []puntuale.Mail, err error) {
	err = s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		claimed, err = engine.QueryAll(ctx, a, claimMails, []any{engine.Micros(now), engine.Micros(now.Add(puntuale.MailClaimTime)), mailsOfPartner, limit},
			func(rows engine.Row, m *puntuale.Mail) error {
				return rows.Scan(&m.ID, &m.Partner, &m.User, &m.Kind, &m.Sealed, engine.ScanTime(&m.Queued), &m.Attempts)
			})
		if err != nil {
			return fmt.Errorf("claim e-mails: %w", err)
		}
		return nil
	})
	return claimed, err
}

func (s *Accounts) OldestMail(ctx context.Context) (queued time.Time, err error) {
	if _, err := engine.QueryOne(ctx, s.MaintenanceReads, `select coalesce(min(m.queued_at), 0) from (select queued_at from mail order by next_at desc limit $1) m`,
		[]any{puntuale.MaxBacklog}, engine.ScanTime(&queued)); err != nil {
		return queued, engine.PublicError(fmt.Errorf("look for the oldest e-mail: %w", err))
	}
	return queued, nil
}

func (s *Accounts) EndMail(ctx context.Context, m puntuale.Mail, retryAt time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		if retryAt.IsZero() {
			_, err = a.Exec(ctx, `delete from mail where id = $1 and attempts = $2`, int64(m.ID), m.Attempts)
		} else {
			_, err = a.Exec(ctx, `update mail set next_at = $3 where id = $1 and attempts = $2`, int64(m.ID), m.Attempts, engine.Micros(retryAt))
		}
		if err != nil {
			return fmt.Errorf("record how an e-mail ended: %w", err)
		}
		return nil
	})
}
