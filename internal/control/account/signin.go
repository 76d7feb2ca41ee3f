package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
)

// How many sign-in attempts are accepted without a wait. Usually each attempt is counted three times: for its account
// at its IP address, for its account at all addresses, and for its IP address. An attempt from a known browser is
// counted once.
const (
	triesOfPair    = 5
	triesOfAccount = 50
	triesOfAddress = 30
	triesOfCode    = 5
	triesOfHost    = 20 // limits DNS queries for a partner's host name, not sign-ins
)

// If the partner is unknown, several logins may have the same e-mail. SignIn then compares at most maxChecks
// passwords. It compares at least minChecks, so that the duration of an answer does not show whether a login exists.
const (
	maxChecks = 8
	minChecks = 2
)

// ErrWeak means that the password is right, but too easy to guess. The user must set another password.
var ErrWeak = errors.New("the password is too easy to guess")

// SignIn is an attempt to sign in.
type SignIn struct {
	Partner  puntuale.PartnerID // the partner of the page where the user signs in; 0: unknown
	Email    string
	Password string
	Address  netip.Addr
	Browser  string // the browser's cookie; see [Person.Browser]; "": none
}

// attempt says under which keyed hashes a sign-in is counted, and for which caller its passwords are compared.
type attempt struct {
	asker    auth.HashCaller
	tries    []puntuale.SignInAttempt
	forget   []string // after a successful sign-in, the failures under these keyed hashes are deleted
	giveBack []string // after a successful sign-in, the counts under these keyed hashes are reduced by one
}

// attempt decides how to count a sign-in. Usually it is counted for the account and the IP address. If one of the users
// signed in at the browser before, it is counted only for this user at this browser.
func (c *Accounts) attempt(r SignIn, users []puntuale.User) attempt {
	if d, ok := c.visitorOf(users, r.Browser); ok {
		mark := c.mark("device", d.User.String(), d.ID)
		return attempt{auth.KnownAs("user " + d.User.String()), []puntuale.SignInAttempt{{Mark: mark, Free: triesOfPair}}, []string{mark}, nil}
	}
	account, from := strings.ToLower(r.Email)+"/"+idText(r.Partner), auth.Network(r.Address)
	for _, u := range users { // a new password, such as one from the operator, begins new counts
		account += "/" + strconv.FormatInt(u.Stamp, 10)
	}
	ofAccount, ofAddress, ofPair := c.mark("account", account), c.mark("address", from), c.mark("pair", account, from)
	return attempt{auth.UnknownCallerAt(r.Address), []puntuale.SignInAttempt{{Mark: ofAccount, Free: triesOfAccount}, {Mark: ofAddress, Free: triesOfAddress},
		{Mark: ofPair, Free: triesOfPair}}, []string{ofAccount, ofPair}, []string{ofAddress}}
}

// Codes of the faults that this file reports.
const (
	faultSigninPasswordToChange puntuale.ReasonCode = "signin.password_to_change"
	faultSigninWrong            puntuale.ReasonCode = "signin.wrong"
)

// SignIn returns the users who have this e-mail and password, at least one. There may be several, if users of several
// partners have the e-mail. SignIn takes as long for an unknown e-mail as for a known one. Codes: unauthorized, with
// the same error for each reason. rate_limited, with the time to wait, after too many attempts, or while too many
// others sign in. forbidden, with [ErrWeak].
func (c *Accounts) SignIn(ctx context.Context, r SignIn) ([]*Person, error) {
	r.Email = strings.TrimSpace(r.Email)
	var users []puntuale.User
	if isStorable(r.Email) {
		var err error
		if users, err = c.signIns.UsersByEmail(ctx, r.Email, r.Partner, maxChecks); err != nil {
			return nil, fmt.Errorf("look for users: %w", err)
		}
	}
	a := c.attempt(r, users)
	slot, err := auth.Enter(ctx, a.asker)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	if err := c.try(ctx, a.tries...); err != nil {
		return nil, err
	}
	fitting, err := c.fitting(slot, users, r)
	if err != nil {
		return nil, err
	}
	people, err := c.stillFitting(ctx, fitting)
	if err != nil {
		return nil, err
	}
	if len(people) == 0 {
		if err := c.fail(ctx, a.tries[0].Mark, users, "password", r.Address); err != nil {
			return nil, err
		}
		return nil, unauthorized(faultSigninWrong)
	}
	if err := c.signIns.Forget(ctx, a.forget, a.giveBack); err != nil {
		return nil, fmt.Errorf("forget attempts: %w", err)
	}
	strong := slices.DeleteFunc(slices.Clone(people), func(p *Person) bool { return auth.Weak(r.Password, p.user.Email, p.user.Name) })
	if len(strong) == 0 {
		return nil, &puntuale.Error{Code: puntuale.CodeForbidden, Reason: puntuale.Because(faultSigninPasswordToChange), Err: ErrWeak}
	}
	return strong, nil
}

// isStorable reports whether every database can store the text. PostgreSQL fails on queries with other texts.
func isStorable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// stillFitting reads again the users whose password was right. It omits users who were removed, or who changed the
// password in the meantime.
func (c *Accounts) stillFitting(ctx context.Context, compared []puntuale.User) (people []*Person, err error) {
	for _, u := range compared {
		user, host, err := c.signIns.UserByID(ctx, u.ID)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound, err == nil && user.Password != u.Password:
			continue
		case err != nil:
			return nil, fmt.Errorf("read a user: %w", err)
		}
		people = append(people, &Person{c, user, host})
	}
	return people, nil
}

// fitting returns the users whose password is right. It takes the same time even if there are fewer users than the
// least number of comparisons.
func (c *Accounts) fitting(slot *auth.HashSlot, users []puntuale.User, r SignIn) (fit []puntuale.User, err error) {
	password := clipped(r.Password)
	for i := range max(len(users), c.checks(r.Partner)) {
		hash := nobodysHash
		if i < len(users) && users[i].Password != "" { // an invited user may have no password yet
			hash = users[i].Password
		}
		same, err := slot.Check(password, hash)
		if err != nil {
			return nil, fmt.Errorf("check a password: %w", err)
		}
		if same && hash != nobodysHash {
			fit = append(fit, users[i])
		}
	}
	return fit, nil
}

func (c *Accounts) checks(partner puntuale.PartnerID) int {
	if partner != 0 {
		return 1
	}
	return minChecks
}

// nobodysHash is the hash of an unknown random text, with the usual parameters. If there are too few users, fitting
// compares the password with this hash, so that the duration of fitting does not change.
const nobodysHash = "$argon2id$v=19$m=19456,t=2,p=1$NlMdYPsXGbBxQJrqQKqCMA$7Ku8mXHqYVFGlKsUYmQ3bnRkLWuRgqJ0wzXv3LZ1l6Y"

// clipped shortens a password to the longest length that is hashed.
func clipped(password string) string { return password[:min(len(password), auth.MaxPassword)] }

// Arrived records that the person signed in. The person gets a notice if this browser has no cookie of the person, and
// this is not the first sign-in. In this case, somebody else may have signed in.
func (p *Person) Arrived(ctx context.Context, cookie string, from netip.Addr) error {
	patch := puntuale.UserPatch{Seen: puntuale.ChangeTo(p.accounts.clock.Now())}
	if _, known := p.accounts.visitorOf([]puntuale.User{p.user}, cookie); !known && !p.user.Seen.IsZero() {
		patch.NewPlace = puntuale.ChangeTo(control.AddressText(from))
	}
	return p.change(ctx, patch, nil)
}

// ArrivedByTicket is Arrived for a sign-in by a ticket of the server's operator. It never causes a notice.
func (p *Person) ArrivedByTicket(ctx context.Context, _ string, _ netip.Addr) error {
	return p.change(ctx, puntuale.UserPatch{Seen: puntuale.ChangeTo(p.accounts.clock.Now())}, nil)
}

// PartnerAt returns the partner with a slug. If slug is "", it returns the partner that confirmed the host name in the
// argument host. This argument may have any form. The host of the service's own address never belongs to a partner.
// Codes: not_found.
func (c *Accounts) PartnerAt(ctx context.Context, host, slug string) (puntuale.Host, error) {
	if c.signIns == nil || !isStorable(slug) {
		return puntuale.Host{}, puntuale.NotFound(puntuale.NoPartner)
	}
	if slug != "" {
		return c.signIns.HostSlug(ctx, slug)
	}
	name, ok := hostName(host)
	if !ok || name == c.ownHost {
		return puntuale.Host{}, puntuale.NotFound(puntuale.NoPartner)
	}
	return c.signIns.HostNamed(ctx, name)
}

// Logo returns a partner's logo and its media type, or nil if there is none. Everybody who opens the sign-in page may
// see the logo.
func (c *Accounts) Logo(ctx context.Context, partner puntuale.PartnerID) ([]byte, string, error) {
	return c.tenants.Partner(partner).Logo(ctx)
}

// Brand returns a partner and its brand. Codes: not_found.
func (c *Accounts) Brand(ctx context.Context, partner puntuale.PartnerID) (puntuale.Host, error) {
	return c.tenants.Partner(partner).Host(ctx)
}

// Visit returns the visit of a browser. token is the hash of the browser's cookie. A visit that cannot be decrypted is
// not found, for example after the installation's key changed.
func (c *Accounts) Visit(ctx context.Context, token string) ([]byte, bool, error) {
	sealed, found, err := c.signIns.Visit(ctx, token, c.clock.Now())
	if err != nil || !found {
		return nil, false, err
	}
	data, err := c.vault.Open(puntuale.SealedVisit, token, sealed)
	if err != nil {
		return nil, false, nil //nolint:nilerr // the browser signs in again
	}
	return data, true, nil
}

// KeepVisit stores a visit, sealed: while a user sets up a second factor, it contains the factor's secret. The visit expires after the duration in the argument within. user is who is signed in; 0:
// nobody.
func (c *Accounts) KeepVisit(ctx context.Context, token string, data []byte, user puntuale.UserID, within time.Duration) error {
	sealed := c.vault.Seal(puntuale.SealedVisit, token, data)
	return c.signIns.KeepVisit(ctx, puntuale.Visit{Token: token, User: user, Data: sealed, Expires: c.clock.Now().Add(within)})
}

// EndVisit deletes a visit.
func (c *Accounts) EndVisit(ctx context.Context, token string) error {
	return c.signIns.EndVisit(ctx, token)
}
