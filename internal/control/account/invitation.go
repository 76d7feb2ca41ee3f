package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// Invitation contains the secret of a link, which is shown only once. A person with the link can set the user's
// password once.
type Invitation struct {
	Secret  string
	Expires time.Time
	Mailed  bool // true: the user also gets the link by e-mail
}

// newInvitation creates an invitation. If the service sends e-mails, the user gets the link by e-mail. The e-mail is in
// the user's language. If the user chose no language, the e-mail is in the inviter's language, which is the argument
// language.
func (c *Accounts) newInvitation(language string) (Invitation, *puntuale.Invitation) {
	now := c.clock.Now()
	i := Invitation{Secret: auth.NewToken(), Expires: now.Add(puntuale.UnfinishedInvitation.Lifetime()), Mailed: c.Mails()}
	stored := &puntuale.Invitation{Hash: ticketHash(i.Secret), Expires: i.Expires}
	if i.Mailed {
		stored.Mail = &puntuale.Mail{Queued: now, Sealed: c.sealMail(puntuale.SealedInvitation, sealedLink{i.Secret, language})}
	}
	return i, stored
}

// Invite creates a user. The user sets a password by the invitation. Codes: invalid; quota_reached; conflict if a user
// of the partner, or of one of its clients, already has the e-mail.
func (t *Team) Invite(ctx context.Context, r NewUser) (puntuale.User, Invitation, error) {
	u, err := t.newUser(r)
	if err != nil {
		return puntuale.User{}, Invitation{}, err
	}
	invitation, stored := t.accounts.newInvitation(r.Spoken)
	if u.ID, err = t.tenant.CreateUser(ctx, u, stored); err != nil {
		return puntuale.User{}, Invitation{}, fmt.Errorf("create a user: %w", err)
	}
	return bare(u), invitation, nil
}

// InviteAgain replaces a user's invitation by a new one. It also helps a user who lost the password. In this case, the
// old password remains valid until the user sets a new one. spoken is the inviter's language. Codes: not_found.
func (t *Team) InviteAgain(ctx context.Context, id, spoken string) (Invitation, error) {
	user, err := userID(id)
	if err != nil {
		return Invitation{}, err
	}
	invitation, stored := t.accounts.newInvitation(spoken)
	if err := t.tenant.Invite(ctx, t.client, user, *stored); err != nil {
		return Invitation{}, fmt.Errorf("invite user %d: %w", user, err)
	}
	return invitation, nil
}

// Uninvite withdraws a user's invitation. Codes: not_found.
func (t *Team) Uninvite(ctx context.Context, id string) error {
	user, err := userID(id)
	if err != nil {
		return err
	}
	if err := t.tenant.Uninvite(ctx, t.client, user); err != nil {
		return fmt.Errorf("take back the invitation of user %d: %w", user, err)
	}
	return nil
}

const faultInvitationSpent puntuale.ReasonCode = "invitation.spent"

// errSpent returns the error for every invitation that is used, withdrawn, expired or unknown.
func errSpent() error { return unauthorized(faultInvitationSpent) }

// Invited returns the user of a valid invitation. Codes: unauthorized.
func (c *Accounts) Invited(ctx context.Context, secret string) (*Person, error) {
	id, err := c.signIns.Invited(ctx, ticketHash(secret), c.clock.Now())
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil, errSpent()
	case err != nil:
		return nil, fmt.Errorf("look for an invitation: %w", err)
	}
	return c.userOf(ctx, id)
}

// Join consumes an invitation and sets its user's password. It ends all visits and pending steps of the user. It does
// not sign the user in. Codes: unauthorized, invalid.
func (c *Accounts) Join(ctx context.Context, secret, password string) (*Person, error) {
	p, err := c.Invited(ctx, secret)
	if err != nil {
		return nil, err
	}
	var f request.Faults
	checkPassword(&f, "body.password", password, p.user.Email, p.user.Name, p.host.Partner.Name)
	if err := f.Err(); err != nil {
		return nil, err
	}
	hash, err := auth.HashPassword(ctx, p.asker(), password)
	if err != nil {
		return nil, err
	}
	id, err := c.signIns.TakeInvitation(ctx, ticketHash(secret), c.clock.Now(), hash)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil, errSpent()
	case err != nil:
		return nil, fmt.Errorf("take an invitation: %w", err)
	}
	return c.userOf(ctx, id)
}

func (c *Accounts) userOf(ctx context.Context, id puntuale.UserID) (*Person, error) {
	user, host, err := c.signIns.UserByID(ctx, id)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil, errSpent()
	case err != nil:
		return nil, fmt.Errorf("read a user: %w", err)
	}
	return &Person{c, user, host}, nil
}
