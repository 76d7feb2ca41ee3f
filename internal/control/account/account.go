package account

import (
	"context"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// maxEmail bounds a login's e-mail, in characters.
const maxEmail = 320

// Names of a new client's first session and first key.
const (
	firstSession = "Principale"
	firstKey     = "principale"
)

// NewClient is a partner's request to create a client.
type NewClient struct {
	Name     string
	Email    string           // the login's e-mail; it must have text before and after an @
	Password string           // any text that is not empty; a user with a weak password must first change it
	Invite   bool             // used only if Password is "": the login's user sets a password by an invitation
	Spoken   string           // the inviter's language, in which the invitation's e-mail is written
	Phone    string           // the server stores this text unchanged
	Type     string           // test, baby or full; "": full
	Faults   []puntuale.Fault // the faults that the calling package already found in the request
	Sandbox  *bool            // whether the default session is a sandbox; nil: the operator's setting
	Values   ClientChange     // the plan, and values that win over those of the plan and of the type
}

// CreatedClient is a new client with its default session and its first key. The key is shown only once.
type CreatedClient struct {
	ID      puntuale.ClientID
	Session puntuale.SessionID
	Key     string
	Account puntuale.Client

	Invitation Invitation // set only if the request asked for an invitation
}

// CreateClient creates a client with its login, its default session and its first key. After an error, nothing of this
// is stored. Codes: invalid; conflict if a user of the partner already has the login's e-mail.
func (p *Partner) CreateClient(ctx context.Context, r NewClient, o control.Once[CreatedClient]) (CreatedClient, error) {
	f := request.Faults(r.Faults)
	once, clash, err := o.BeginSealed(ctx, p.tenant, p.plain, &f)
	if err != nil {
		return CreatedClient{}, err
	}
	r.Faults = f
	now := p.accounts.clock.Now()
	account, err := p.account(ctx, r, now)
	if err != nil {
		return CreatedClient{}, err
	}
	if clash != nil {
		return CreatedClient{}, clash
	}
	login, invitation, invited, err := p.firstLogin(ctx, r)
	if err != nil {
		return CreatedClient{}, err
	}
	plain, key, err := auth.NewKey(puntuale.ClientSide, firstKey, now)
	if err != nil {
		return CreatedClient{}, err
	}
	first := puntuale.Session{Name: firstSession, Type: puntuale.Socket, Sandbox: p.accounts.sandbox, Default: true, Created: now}
	if r.Sandbox != nil {
		first.Sandbox = *r.Sandbox
	}
	first.Pace = first.DefaultPace()
	result := func(stored any) CreatedClient {
		ids, _ := stored.(puntuale.CreatedIDs)
		account.ID = ids.Client
		return CreatedClient{ID: ids.Client, Session: ids.Session, Key: plain, Account: account, Invitation: invitation}
	}
	ids, err := p.tenant.CreateClient(ctx, puntuale.NewClient{
		Client:  account,
		Login:   login,
		Session: first,
		Key:     key, Invitation: invited, Currency: p.accounts.currency,
	}, once.Keep(result))
	if err != nil {
		return CreatedClient{}, fmt.Errorf("create a client: %w", once.Opened(err))
	}
	p.accounts.wakeup(ids.Session, time.Time{})
	return result(ids), nil
}

// account checks the whole request, and returns the new account: with the values of its type, over them those of its
// plan, and over these the request's own. Codes: invalid.
func (p *Partner) account(ctx context.Context, r NewClient, now time.Time) (puntuale.Client, error) {
	kind, err := r.check()
	account, typeErr := p.accounts.newAccount(kind, now)
	if typeErr != nil {
		return account, typeErr
	}
	account.Partner, account.Name, account.Email, account.Phone = p.id, r.Name, r.Email, r.Phone
	v := r.Values
	f := request.Faults(v.Faults)
	if err := f.Take(err); err != nil {
		return account, err
	}
	v.Faults = f
	if err := p.moveTo(ctx, &v, account); err != nil {
		return account, err
	}
	patch, err := p.accounts.patch(account, v, now)
	if err != nil {
		return account, err
	}
	account.Quotas = puntuale.Quotas{}
	for q, limit := range patch.Quotas {
		if limit != nil {
			account.Quotas[q] = *limit
		}
	}
	return patch.Changed(account), nil
}

// firstLogin returns a new client's login. The login has either a password or an invitation to set one.
func (p *Partner) firstLogin(ctx context.Context, r NewClient) (puntuale.Login, Invitation, *puntuale.Invitation, error) {
	login := puntuale.Login{Email: r.Email}
	if r.Password == "" {
		invitation, stored := p.accounts.newInvitation(r.Spoken)
		return login, invitation, stored, nil
	}
	var err error
	login.Password, err = auth.HashPassword(ctx, askerOf(p.id), clipped(r.Password)) // a sign-in clips the typed password in the same way
	return login, Invitation{}, nil, err
}

func (r NewClient) check() (puntuale.AccountType, error) {
	f := request.Faults(r.Faults)
	f.Required("body.name", r.Name, puntuale.MaxName)
	f.Required("body.email", r.Email, maxEmail)
	if strings.TrimSpace(r.Email) != "" && !hasAt(r.Email) {
		f.Add("body.email", puntuale.FaultNotEmail, r.Email)
	}
	if r.Password == "" && !r.Invite {
		f.Add("body.password", puntuale.FaultRequired, nil)
	}
	if !f.At("body.phone") {
		f.Required("body.phone", r.Phone, puntuale.MaxName)
	}
	kind, err := puntuale.ParseAccountType(r.Type)
	if err != nil {
		f.Add("body.account_type", puntuale.FaultNotOneOf, r.Type, "test, baby, full")
	}
	return kind, f.Err()
}

// hasAt reports whether a text has an @ with something before and after it.
func hasAt(email string) bool {
	email = strings.TrimSpace(email)
	return len(email) > 2 && strings.Contains(email[1:len(email)-1], "@")
}

// newAccount returns an account of a type. The account's service begins now.
func (c *Accounts) newAccount(kind puntuale.AccountType, now time.Time) (puntuale.Client, error) {
	account := puntuale.NewAccount(kind, puntuale.Date{})
	loc, err := c.zones.Load(account.Zone)
	if err != nil {
		return puntuale.Client{}, err
	}
	account = puntuale.NewAccount(kind, puntuale.DateOf(now.In(loc)))
	account.Created = now
	if !account.Expires.IsZero() {
		account.ExpiresAt = request.Midnight(account.Expires, loc)
	}
	account.RefillAt = nextRefill(account, loc, now)
	return account, nil
}
