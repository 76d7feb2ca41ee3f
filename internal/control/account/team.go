package account

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Team gives access to the users of one dashboard, a partner's or a client's.
type Team struct {
	accounts *Accounts
	tenant   puntuale.PartnerTenant
	partner  puntuale.PartnerID
	client   puntuale.ClientID // 0: the partner's own dashboard
}

// Team returns the users of the partner's dashboard.
func (p *Partner) Team() *Team { return &Team{p.accounts, p.tenant, p.id, 0} }

// TeamOf returns the users of a client's dashboard. Codes: not_found.
func (p *Partner) TeamOf(ctx context.Context, client string) (*Team, error) {
	account, err := p.Account(ctx, client)
	if err != nil {
		return nil, err
	}
	return &Team{p.accounts, p.tenant, p.id, account.ID}, nil
}

// TeamOf returns the users of the client's dashboard.
func (c *Accounts) TeamOf(client *control.Client) *Team {
	account := client.Account()
	return &Team{c, c.tenants.Partner(account.Partner), account.Partner, account.ID}
}

// askerOf returns the hash caller for a partner or its client that sets a password for another user.
func askerOf(partner puntuale.PartnerID) auth.HashCaller {
	return auth.KnownAs("partner " + idText(partner))
}

// operators is the hash caller for all commands of operators.
var operators = auth.KnownAs("operator")

// NewUser is a request to create a user.
type NewUser struct {
	Email    string
	Name     string
	Role     string // reader, staff or owner
	Language string // it, en or ""
	Spoken   string // the inviter's language; the invitation's e-mail is in this language if Language is ""
}

// UserChange is a request to change a user.
type UserChange struct {
	Name     puntuale.Change[string]
	Role     puntuale.Change[string]
	NoSecond bool               // true: remove the second factor of a user who lost the phone and the recovery codes
	Known    []puntuale.Version // the user's version must be one of these; empty: any version
}

// Users lists the users, ordered by id, without their secrets.
func (t *Team) Users(ctx context.Context) ([]puntuale.User, error) {
	users, err := t.tenant.Users(ctx, t.client)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	for i := range users {
		users[i] = bare(users[i])
	}
	return users, nil
}

// bare returns a user without secrets. The result still shows whether a second factor is on.
func bare(u puntuale.User) puntuale.User {
	u.Password, u.Second.Recovery = "", nil
	if u.Second.Enabled() {
		u.Second.Secret = []byte{0}
	}
	return u
}

// newUser checks a whole request, and returns the new user.
func (t *Team) newUser(r NewUser) (puntuale.User, error) {
	u := puntuale.User{Client: t.client, Email: strings.TrimSpace(r.Email), Name: strings.TrimSpace(r.Name), Language: r.Language, Created: t.accounts.clock.Now()}
	var f request.Faults
	f.Required("body.email", u.Email, maxEmail)
	if u.Email != "" && !hasAt(u.Email) {
		f.Add("body.email", puntuale.FaultNotEmail, u.Email)
	}
	f.Text("body.name", u.Name, puntuale.MaxName)
	f.Word("body.language", r.Language, "it", "en", "")
	u.Role = role(&f, r.Role)
	return u, f.Err()
}

func role(f *request.Faults, text string) puntuale.Role {
	r, err := puntuale.ParseRole(text)
	if err != nil {
		f.Add("body.role", puntuale.FaultNotOneOf, text, "reader, staff, owner")
	}
	return r
}

// User returns one user. Codes: not_found.
func (t *Team) User(ctx context.Context, id string) (puntuale.User, error) {
	user, err := userID(id)
	if err != nil {
		return puntuale.User{}, err
	}
	u, err := t.tenant.User(ctx, t.client, user)
	if err != nil {
		return puntuale.User{}, fmt.Errorf("read a user: %w", err)
	}
	return bare(u), nil
}

// Change changes a user. Codes: not_found; invalid; conflict if no owner would remain.
func (t *Team) Change(ctx context.Context, id string, r UserChange) (puntuale.User, error) {
	user, err := userID(id)
	if err != nil {
		return puntuale.User{}, err
	}
	patch := puntuale.UserPatch{Name: r.Name}
	var f request.Faults
	if r.Name.Set {
		f.Text("body.name", r.Name.To, puntuale.MaxName)
	}
	if r.Role.Set {
		patch.Role = puntuale.ChangeTo(role(&f, r.Role.To))
	}
	if err := f.Err(); err != nil {
		return puntuale.User{}, err
	}
	if r.NoSecond {
		patch.Second = puntuale.ChangeTo(puntuale.SecondFactor{})
	}
	u, err := t.tenant.UpdateUser(ctx, t.client, user, patch, func(u puntuale.User) error { return puntuale.CheckVersion(u.Version(), r.Known) })
	if err != nil {
		return puntuale.User{}, fmt.Errorf("change a user: %w", err)
	}
	return bare(u), nil
}

// Delete removes a user and ends the user's visits immediately. Codes: not_found; conflict if no owner would remain.
func (t *Team) Delete(ctx context.Context, id string) error {
	user, err := userID(id)
	if err != nil {
		return err
	}
	if err := t.tenant.DeleteUser(ctx, t.client, user); err != nil {
		return fmt.Errorf("delete a user: %w", err)
	}
	return nil
}

func userID(text string) (puntuale.UserID, error) {
	id, err := puntuale.ParseID[puntuale.UserID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoUser)
	}
	return id, nil
}

// ResetUser is for operators. It sets a user's password, and ends all visits. If noSecond is true, it also removes the
// second factor. Codes: invalid, at location password.
func (c *Accounts) ResetUser(ctx context.Context, u puntuale.User, password string, noSecond bool) error {
	var f request.Faults
	checkPassword(&f, "password", password, u.Email, u.Name)
	if err := f.Err(); err != nil {
		return err
	}
	hash, err := auth.HashPassword(ctx, operators, password)
	if err != nil {
		return err
	}
	patch := puntuale.UserPatch{Password: puntuale.ChangeTo(hash), EndVisits: true}
	if noSecond {
		patch.Second = puntuale.ChangeTo(puntuale.SecondFactor{})
	}
	if _, err := c.tenants.Partner(u.Partner).UpdateUser(ctx, u.Client, u.ID, patch, nil); err != nil {
		return fmt.Errorf("reset user %d: %w", u.ID, err)
	}
	return nil
}
