package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

func storeInvitation(ctx context.Context, a engine.Querier, partner puntuale.PartnerID, id puntuale.UserID, i puntuale.Invitation) error {
	if _, err := a.Exec(ctx, `insert into invitation (login_id, hash, expires_at) values ($1, $2, $3)
 on conflict (login_id) do update set hash = excluded.hash, expires_at = excluded.expires_at`, id, i.Hash, engine.Micros(i.Expires)); err != nil {
		return fmt.Errorf("store an invitation: %w", err)
	}
	if i.Mail == nil {
		return dropMails(ctx, a, id, puntuale.MailInvitation) // a waiting e-mail contains the link of the earlier invitation
	}
	m := *i.Mail
	m.Partner, m.User, m.Kind = partner, id, puntuale.MailInvitation
	return queueMail(ctx, a, m)
}

func endInvitation(ctx context.Context, a engine.Querier, id puntuale.UserID) error {
	if _, err := a.Exec(ctx, `delete from invitation where login_id = $1`, id); err != nil {
		return fmt.Errorf("end an invitation: %w", err)
	}
	return dropMails(ctx, a, id, puntuale.MailInvitation)
}

// Invite gives the user an invitation, and ends an earlier invitation of this user.
func (p Partner) Invite(ctx context.Context, client puntuale.ClientID, id puntuale.UserID, i puntuale.Invitation) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		_, found, err := p.user(ctx, a, client, id)
		if err := engine.ThereOr(found, err, puntuale.NoUser); err != nil {
			return err
		}
		return storeInvitation(ctx, a, p.id, id, i)
	})
}

// Uninvite deletes the user's invitation. Codes: not_found (also if the user has none).
func (p Partner) Uninvite(ctx context.Context, client puntuale.ClientID, id puntuale.UserID) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		u, found, err := p.user(ctx, a, client, id)
		if err := engine.ThereOr(found && !u.Invited.IsZero(), err, puntuale.NoInvitation); err != nil {
			return err
		}
		return endInvitation(ctx, a, id)
	})
}

func (s *Accounts) Invited(ctx context.Context, hash string, now time.Time) (user puntuale.UserID, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select login_id from invitation where hash = $1 and expires_at > $2`, []any{hash, engine.Micros(now)}, &user)
	return user, engine.FoundOr(found, err, puntuale.NoInvitation)
}

// TakeInvitation takes the same locks as other changes of the user. Otherwise another change could overwrite the new
// password.
func (s *Accounts) TakeInvitation(ctx context.Context, hash string, now time.Time, password string) (user puntuale.UserID, err error) {
	err = s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		var p Partner
		var client puntuale.ClientID
		found, err := engine.QueryOne(ctx, a, `select l.partner_id, l.client_id from invitation i join login l on l.id = i.login_id where i.hash = $1`,
			[]any{hash}, &p.id, &client)
		if err := engine.ThereOr(found, err, puntuale.NoInvitation); err != nil {
			return err
		}
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		var expires int64
		found, err = engine.QueryOne(ctx, a, `delete from invitation where hash = $1 returning login_id, expires_at`, []any{hash}, &user, &expires)
		if err := engine.ThereOr(found && expires > engine.Micros(now), err, puntuale.NoInvitation); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update login set password = $2, stamp = stamp + 1 where id = $1`, user, password); err != nil {
			return fmt.Errorf("set a password: %w", err)
		}
		return nil
	})
	return user, err
}
