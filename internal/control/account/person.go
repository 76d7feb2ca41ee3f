package account

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// ErrSuspended means that a client's user cannot sign in because the account is suspended.
var ErrSuspended = errors.New("the account is suspended")

// Person is a person who signed in: a user of a partner, or of one client.
type Person struct {
	accounts *Accounts
	user     puntuale.User
	host     puntuale.Host
}

// Person returns the user with the id. It refuses if the user's stamp differs from the argument stamp, because a new
// stamp means that all earlier visits were ended. Codes: unauthorized.
func (c *Accounts) Person(ctx context.Context, id puntuale.UserID, stamp int64) (*Person, error) {
	user, host, err := c.signIns.UserByID(ctx, id)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound, err == nil && user.Stamp != stamp:
		return nil, unauthorized(puntuale.FaultSigninNobody)
	case err != nil:
		return nil, fmt.Errorf("read a user: %w", err)
	}
	return &Person{c, user, host}, nil
}

// User returns the stored user, without secrets.
func (p *Person) User() puntuale.User {
	u := p.user
	u.Password, u.Second.Secret, u.Second.Recovery = "", nil, nil
	return u
}

// Second reports whether the person has a second factor, and how many recovery codes remain.
func (p *Person) Second() (enabled bool, codes int) {
	return p.user.Second.Enabled(), len(p.user.Second.Recovery)
}

// Host returns the partner with its brand. The person sees this partner's pages.
func (p *Person) Host() puntuale.Host { return p.host }

// Partner returns the partner that the person works for. Codes: not_found for a client's user, who may not make a
// partner's requests.
func (p *Person) Partner() (*Partner, error) {
	if p.user.Client != 0 {
		return nil, puntuale.NotFound(puntuale.NoPage)
	}
	return p.reseller(), nil
}

func (p *Person) asker() auth.HashCaller { return auth.KnownAs("user " + p.user.ID.String()) }

func (p *Person) reseller() *Partner {
	return p.accounts.partner(p.user.Partner, "")
}

// Client returns a client that the person may see. A client's user may see only this client. A partner's user may see
// all clients of the partner. Codes: not_found for any other client; forbidden, with [ErrSuspended], for a client's
// user while the account is suspended.
func (p *Person) Client(ctx context.Context, id string) (*control.Client, error) {
	account, err := p.reseller().Account(ctx, id)
	if err != nil {
		return nil, err
	}
	if own := p.user.Client; own != 0 {
		if own != account.ID {
			return nil, puntuale.NotFound(puntuale.NoClient)
		}
		if account.Suspended {
			return nil, &puntuale.Error{Code: puntuale.CodeForbidden, Reason: puntuale.Because(puntuale.FaultCallerSuspended), Err: ErrSuspended}
		}
	}
	return p.accounts.control.ClientFor(account, puntuale.Actor{User: p.user.ID, Who: p.user.Email, Entry: p.user.Client == 0}), nil
}

// Rename changes the person's own name. Codes: invalid.
func (p *Person) Rename(ctx context.Context, name string) error {
	var f request.Faults
	f.Text("body.name", name, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return err
	}
	return p.change(ctx, puntuale.UserPatch{Name: puntuale.ChangeTo(strings.TrimSpace(name))}, nil)
}

// Speak changes the language of the person's pages to "it" or "en". "" means the browser's language. Codes: invalid.
func (p *Person) Speak(ctx context.Context, language string) error {
	var f request.Faults
	f.Word("body.language", language, "it", "en", "")
	if err := f.Err(); err != nil {
		return err
	}
	return p.change(ctx, puntuale.UserPatch{Language: puntuale.ChangeTo(language)}, nil)
}

// ChangePassword sets a new password if the current one is right, and ends all other visits of the person. It returns
// the new stamp. Codes: invalid; rate_limited, with the time to wait.
func (p *Person) ChangePassword(ctx context.Context, present, next string) (stamp int64, err error) {
	if err := p.confirm(ctx, "body.present", present); err != nil {
		return 0, err
	}
	var f request.Faults
	checkPassword(&f, "body.password", next, p.user.Email, p.user.Name, p.host.Partner.Name)
	if err := f.Err(); err != nil {
		return 0, err
	}
	hash, err := auth.HashPassword(ctx, p.asker(), next)
	if err != nil {
		return 0, err
	}
	if err := p.change(ctx, puntuale.UserPatch{Password: puntuale.ChangeTo(hash), EndVisits: true}, nil); err != nil {
		return 0, err
	}
	return p.user.Stamp, nil
}

// EndVisits ends all visits of the person, and returns the new stamp.
func (p *Person) EndVisits(ctx context.Context) (stamp int64, err error) {
	if err := p.change(ctx, puntuale.UserPatch{EndVisits: true}, nil); err != nil {
		return 0, err
	}
	return p.user.Stamp, nil
}

// maxVisits bounds the visits that Visits returns.
const maxVisits = 50

// Visits lists the visits in which the person may be signed in, the latest first, each with its data.
func (p *Person) Visits(ctx context.Context) ([]puntuale.Visit, error) {
	c := p.accounts
	sealed, err := c.signIns.VisitsOf(ctx, p.user.ID, c.clock.Now(), maxVisits)
	if err != nil {
		return nil, fmt.Errorf("list visits of user %d: %w", p.user.ID, err)
	}
	all := make([]puntuale.Visit, 0, len(sealed))
	for _, v := range sealed {
		if v.Data, err = c.vault.Open(puntuale.SealedVisit, v.Token, v.Data); err == nil { // another one ends nothing and says nothing
			all = append(all, v)
		}
	}
	return all, nil
}

// EndVisit ends one visit of the person. It does nothing if the person has no such visit.
func (p *Person) EndVisit(ctx context.Context, token string) error {
	if err := p.accounts.signIns.EndVisitOf(ctx, p.user.ID, token, p.accounts.clock.Now()); err != nil {
		return fmt.Errorf("end a visit of user %d: %w", p.user.ID, err)
	}
	return nil
}

// Codes of the faults that this file reports.
const (
	faultSigninNotPassword     puntuale.ReasonCode = "signin.not_password"
	faultSigninTooManyAttempts puntuale.ReasonCode = "signin.too_many_attempts"
	faultSigninWeakPassword    puntuale.ReasonCode = "signin.weak_password"
)

// confirm checks the current password again before a protected change.
func (p *Person) confirm(ctx context.Context, location, password string) error {
	mark := p.accounts.mark("confirm", p.user.ID.String(), strconv.FormatInt(p.user.Stamp, 10))
	if err := p.accounts.try(ctx, puntuale.SignInAttempt{Mark: mark, Free: triesOfPair}); err != nil {
		return err
	}
	same, err := auth.CheckPassword(ctx, p.asker(), clipped(password), p.user.Password)
	if err != nil {
		return err
	}
	if !same {
		return puntuale.Invalid(puntuale.Fault{Location: location, Code: faultSigninNotPassword})
	}
	return p.accounts.forget(ctx, mark)
}

// change changes the person's own user. If allow is not nil, the store calls allow with the stored user, and an error
// of allow prevents the change.
func (p *Person) change(ctx context.Context, patch puntuale.UserPatch, allow func(puntuale.User) error) error {
	user, err := p.reseller().tenant.UpdateUser(ctx, p.user.Client, p.user.ID, patch, allow)
	if err != nil {
		return fmt.Errorf("change user %d: %w", p.user.ID, err)
	}
	p.user = user
	return nil
}

// checkPassword adds a fault if a new password may not be stored.
func checkPassword(f *request.Faults, location, plain string, about ...string) {
	switch {
	case plain == "":
		f.Add(location, puntuale.FaultRequired, nil)
	case len(plain) > auth.MaxPassword:
		f.Add(location, puntuale.FaultLongerThanBytes, nil, strconv.Itoa(auth.MaxPassword))
	case auth.Weak(plain, about...):
		f.Add(location, faultSigninWeakPassword, nil, strconv.Itoa(auth.MinPassword))
	}
}

// mark returns a keyed hash. Attempts are counted under this hash, so that the store does not contain who made them.
func (c *Accounts) mark(parts ...string) string { return c.vault.Mark("try", parts...) }

func (c *Accounts) forget(ctx context.Context, marks ...string) error {
	if err := c.signIns.Forget(ctx, marks, nil); err != nil {
		return fmt.Errorf("forget attempts: %w", err)
	}
	return nil
}

// try counts attempts. Codes: rate_limited, with the time to wait, if there were too many attempts.
func (c *Accounts) try(ctx context.Context, tries ...puntuale.SignInAttempt) error {
	wait, err := c.signIns.Try(ctx, tries, c.clock.Now())
	if err != nil {
		return fmt.Errorf("count an attempt: %w", err)
	}
	if wait > 0 {
		return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultSigninTooManyAttempts), RetryAfter: wait}
	}
	return nil
}

func idText[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }
