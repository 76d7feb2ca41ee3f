package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/auth"
)

// ErrOver means that a pending step can no longer be finished. See [puntuale.PendingStep].
var ErrOver = errors.New("the step is over")

func stepOver(code puntuale.ReasonCode) error {
	return &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(code), Err: ErrOver}
}

// Begin begins a pending step for the person.
func (p *Person) Begin(kind puntuale.PendingStepKind) puntuale.PendingStep {
	return kind.Begin(p.user, p.accounts.clock.Now())
}

// Codes of the faults that this file reports.
const (
	faultInvitationUsed puntuale.ReasonCode = "invitation.used"
	faultSigninTooLate  puntuale.ReasonCode = "signin.too_late"
)

// Resume returns the person who began a step, if the step can still be finished. Codes: unauthorized, with [ErrOver].
func (c *Accounts) Resume(ctx context.Context, kind puntuale.PendingStepKind, s puntuale.PendingStep) (*Person, error) {
	user, host, err := c.signIns.UserByID(ctx, s.User)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound, err == nil && !s.Open(kind, user, c.clock.Now()):
		return nil, stepOver(faultSigninTooLate)
	case err != nil:
		return nil, fmt.Errorf("read a user: %w", err)
	}
	return &Person{c, user, host}, nil
}

// Ticket creates the secret of a link. A person with the link continues as the user, until the deadline of the link's
// kind. A link of kind UnfinishedTicket signs in without a second factor. A link of kind UnfinishedInvitation sets a
// new user's password. Codes: not_found.
func (c *Accounts) Ticket(ctx context.Context, kind puntuale.PendingStepKind, user puntuale.UserID) (string, error) {
	u, _, err := c.signIns.UserByID(ctx, user)
	if err != nil {
		return "", fmt.Errorf("read a user: %w", err)
	}
	plain := auth.NewToken()
	if err := c.signIns.IssueTicket(ctx, ticketHash(plain), kind.Begin(u, c.clock.Now())); err != nil {
		return "", fmt.Errorf("issue a ticket: %w", err)
	}
	return plain, nil
}

// Holder returns the user of a ticket. The ticket remains valid. Codes: unauthorized, with [ErrOver].
func (c *Accounts) Holder(ctx context.Context, kind puntuale.PendingStepKind, plain string) (*Person, error) {
	return c.holder(ctx, kind, plain, c.signIns.Ticket)
}

// Redeem returns the user of a ticket, and makes the ticket invalid. Codes: unauthorized, with [ErrOver].
func (c *Accounts) Redeem(ctx context.Context, kind puntuale.PendingStepKind, plain string) (*Person, error) {
	return c.holder(ctx, kind, plain, c.signIns.SpendTicket)
}

func (c *Accounts) holder(ctx context.Context, kind puntuale.PendingStepKind, plain string, read func(context.Context, string, puntuale.PendingStepKind) (puntuale.PendingStep, error)) (*Person, error) {
	s, err := read(ctx, ticketHash(plain), kind)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil, stepOver(faultInvitationUsed)
	}
	if err != nil {
		return nil, fmt.Errorf("read a ticket: %w", err)
	}
	return c.Resume(ctx, kind, s)
}

func ticketHash(plain string) string {
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}
