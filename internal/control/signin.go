package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
)

// Attempts to sign in that are free of waiting: of one account from one address, of one account from everywhere, and of
// one address for all accounts.
const (
	triesOfPair    = 5
	triesOfAccount = 50
	triesOfAddress = 30
	triesOfCode    = 5
	triesOfHost    = 20 // questions to DNS
)

// Where the partner is not known, several of its logins may have the same e-mail. So many are compared at most; and at
// least leastChecks, so that the time an answer takes does not tell whether there is one.
const (
	mostChecks  = 8
	leastChecks = 2
)

// ErrWeak says that the password is right, but too easy to guess to sign in with: somebody must set another.
var ErrWeak = errors.New("the password is too easy to guess")

// SignIn is an attempt to sign in.
type SignIn struct {
	Partner  puntuale.PartnerID // whose page it was; 0: not known
	Email    string
	Password string
	Address  netip.Addr
}

// SignIn returns the users whose e-mail and password these are: usually one, several where an e-mail is known to more
// than one partner, never none. It takes as long for an e-mail that nobody has. Codes: unauthorized, the same for each
// reason; rate_limited, with the time to wait; forbidden, with [ErrWeak].
func (c *Control) SignIn(ctx context.Context, r SignIn) ([]*Person, error) {
	email := strings.TrimSpace(r.Email)
	account, from := strings.ToLower(email)+"/"+idText(r.Partner), network(r.Address)
	ofAccount, ofAddress, ofPair := c.mark("account", account), c.mark("address", from), c.mark("pair", account, from)
	err := c.try(ctx, puntuale.Try{Mark: ofAccount, Free: triesOfAccount}, puntuale.Try{Mark: ofAddress, Free: triesOfAddress},
		puntuale.Try{Mark: ofPair, Free: triesOfPair})
	if err != nil {
		return nil, err
	}
	users, err := c.door.UsersByEmail(ctx, email, r.Partner, mostChecks)
	if err != nil {
		return nil, fmt.Errorf("look for users: %w", err)
	}
	fitting, err := c.fitting(ctx, users, r)
	if err != nil {
		return nil, err
	}
	if len(fitting) == 0 {
		return nil, unauthorized("e-mail or password is wrong")
	}
	if err := c.door.Forget(ctx, []string{ofAccount, ofPair}, []string{ofAddress}); err != nil {
		return nil, fmt.Errorf("forget attempts: %w", err)
	}
	people := make([]*Person, 0, len(fitting))
	for _, id := range fitting {
		user, host, err := c.door.UserByID(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read a user: %w", err)
		}
		people = append(people, &Person{c, user, host})
	}
	strong := slices.DeleteFunc(slices.Clone(people), func(p *Person) bool { return auth.Weak(r.Password, p.user.Email, p.user.Name) })
	if len(strong) == 0 {
		return nil, &puntuale.Error{Code: puntuale.CodeForbidden, Message: "the password is too easy to guess; somebody must set another", Err: ErrWeak}
	}
	return strong, nil
}

// fitting compares the password with those of the users, and goes on for as long as it would take for others.
func (c *Control) fitting(ctx context.Context, users []puntuale.User, r SignIn) (ids []puntuale.LoginID, err error) {
	password := clipped(r.Password)
	for i := range max(len(users), c.checks(r.Partner)) {
		hash := nobodysHash
		if i < len(users) {
			hash = users[i].Password
		}
		same, err := auth.CheckPassword(ctx, password, hash)
		if err != nil {
			return nil, fmt.Errorf("check a password: %w", err)
		}
		if same && i < len(users) {
			ids = append(ids, users[i].ID)
		}
	}
	return ids, nil
}

func (c *Control) checks(partner puntuale.PartnerID) int {
	if partner != 0 {
		return 1
	}
	return leastChecks
}

// nobodysHash is of a random text that was thrown away, with the parameters of every other.
const nobodysHash = "$argon2id$v=19$m=19456,t=2,p=1$NlMdYPsXGbBxQJrqQKqCMA$7Ku8mXHqYVFGlKsUYmQ3bnRkLWuRgqJ0wzXv3LZ1l6Y"

// clipped bounds what is hashed.
func clipped(password string) string { return password[:min(len(password), auth.MaxPassword)] }

// network is what counts as one address: of IPv6 the half that one household has.
func network(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// Ticket makes a text with which somebody signs in as the user, once, within the time; no second factor is asked for.
func (c *Control) Ticket(ctx context.Context, user puntuale.LoginID, within time.Duration) (string, error) {
	plain := auth.NewToken()
	if err := c.door.IssueTicket(ctx, ticketHash(plain), user, c.clock.Now().Add(within)); err != nil {
		return "", fmt.Errorf("issue a ticket: %w", err)
	}
	return plain, nil
}

// Redeem returns whose ticket it is, which is worth nothing from then on. Codes: unauthorized.
func (c *Control) Redeem(ctx context.Context, plain string) (*Person, error) {
	id, err := c.door.SpendTicket(ctx, ticketHash(plain), c.clock.Now())
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil, unauthorized("the link is worth nothing any more")
	}
	if err != nil {
		return nil, fmt.Errorf("spend a ticket: %w", err)
	}
	user, host, err := c.door.UserByID(ctx, id)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil, unauthorized("the link is worth nothing any more")
	}
	if err != nil {
		return nil, fmt.Errorf("read a user: %w", err)
	}
	return &Person{c, user, host}, nil
}

func ticketHash(plain string) string {
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}

// Arrived notes that the person signed in.
func (p *Person) Arrived(ctx context.Context) error {
	return p.change(ctx, puntuale.UserPatch{Seen: changeTo(p.control.clock.Now())}, nil)
}

// PartnerAt returns the partner that is known by a confirmed host name, in any form, or by a slug where that is not "".
// The host of the service's own address is no partner's, whatever is stored. Codes: not_found.
func (c *Control) PartnerAt(ctx context.Context, host, slug string) (puntuale.Host, error) {
	if c.door == nil {
		return puntuale.Host{}, puntuale.NotFound("partner")
	}
	if slug != "" {
		return c.door.HostSlug(ctx, slug)
	}
	name, ok := hostName(host)
	if !ok || name == c.ownHost {
		return puntuale.Host{}, puntuale.NotFound("partner")
	}
	return c.door.HostNamed(ctx, name)
}

// Logo returns a partner's logo and its media type, nil when there is none: whoever opens the login page sees it.
func (c *Control) Logo(ctx context.Context, partner puntuale.PartnerID) ([]byte, string, error) {
	return c.operator.Partner(partner).Logo(ctx)
}

// Brand returns a partner and its looks. Codes: not_found.
func (c *Control) Brand(ctx context.Context, partner puntuale.PartnerID) (puntuale.Host, error) {
	return c.operator.Partner(partner).Host(ctx)
}

// Visit returns what is kept of a browser under the hash of what it holds.
func (c *Control) Visit(ctx context.Context, token string) ([]byte, bool, error) {
	return c.door.Visit(ctx, token, c.clock.Now())
}

// KeepVisit keeps it for a time.
func (c *Control) KeepVisit(ctx context.Context, token string, data []byte, within time.Duration) error {
	return c.door.KeepVisit(ctx, puntuale.Visit{Token: token, Data: data, Expires: c.clock.Now().Add(within)})
}

// EndVisit forgets it.
func (c *Control) EndVisit(ctx context.Context, token string) error {
	return c.door.EndVisit(ctx, token)
}

// Now is the moment by the service's clock.
func (c *Control) Now() time.Time { return c.clock.Now() }
