package account

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// maxSlug bounds a slug that is made from a long name, in bytes.
const maxSlug = 40

// NewPartner is an operator's request to create a partner.
type NewPartner struct {
	Name     string
	Email    string // the e-mail of the partner's login
	Password string
}

// CreatePartner creates a partner with its login and its first key. It returns the partner's id and the key, which is
// shown only once. Codes: invalid.
func (c *Accounts) CreatePartner(ctx context.Context, r NewPartner) (puntuale.PartnerID, string, error) {
	if err := r.check(); err != nil {
		return 0, "", err
	}
	password, err := auth.HashPassword(ctx, operators, clipped(r.Password))
	if err != nil {
		return 0, "", err
	}
	now := c.clock.Now()
	plain, key, err := auth.NewKey(puntuale.PartnerSide, firstKey, now)
	if err != nil {
		return 0, "", err
	}
	partner := puntuale.Partner{Name: r.Name, Slug: slug(r.Name), Created: now}
	login := puntuale.Login{Email: r.Email, Password: password}
	id, err := c.partners.CreatePartner(ctx, partner, login, key)
	if puntuale.CodeOf(err) == puntuale.CodeConflict { // another partner has this slug
		partner.Slug += "-" + strings.ToLower(rand.Text()[:6])
		id, err = c.partners.CreatePartner(ctx, partner, login, key)
	}
	if err != nil {
		return 0, "", fmt.Errorf("create a partner: %w", err)
	}
	return id, plain, nil
}

func (r NewPartner) check() error {
	var f request.Faults
	f.Required("name", r.Name, puntuale.MaxName)
	f.Required("email", r.Email, maxEmail)
	if strings.TrimSpace(r.Email) != "" && !hasAt(r.Email) {
		f.Add("email", puntuale.FaultNotEmail, r.Email)
	}
	checkPassword(&f, "password", r.Password, r.Name, r.Email)
	return f.Err()
}

const faultNotInHours puntuale.ReasonCode = "fault.not_in_hours"

// RotateKey returns a new key for the owner of an old key. The old key remains valid for the grace period. Codes:
// unauthorized if the old key is not valid; invalid if the grace period is not 0 to 90 days.
func (c *Accounts) RotateKey(ctx context.Context, old string, grace time.Duration) (string, error) {
	hash, side, ok := auth.ParseKey(old)
	if !ok {
		return "", unauthorized(puntuale.FaultCallerKeyNotValid)
	}
	return c.RotateStoredKey(ctx, hash, side, grace)
}

// RotateStoredKey does the same for a key whose text nobody has. Codes: those of [Accounts.RotateKey].
func (c *Accounts) RotateStoredKey(ctx context.Context, hash puntuale.KeyHash, side puntuale.Side, grace time.Duration) (string, error) {
	if grace < 0 || grace > maxKeyGrace {
		return "", puntuale.Invalid(puntuale.Fault{Location: "grace", Code: faultNotInHours, Args: []string{"0", strconv.Itoa(int(maxKeyGrace.Hours()))}})
	}
	now := c.clock.Now()
	plain, next, err := auth.NewKey(side, firstKey, now)
	if err != nil {
		return "", err
	}
	if err := c.partners.RotateKey(ctx, hash, next, now.Add(grace), now); err != nil {
		return "", fmt.Errorf("rotate a key: %w", err)
	}
	return plain, nil
}

// slug converts a partner's name into a slug, which is the partner's part of an address.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case b.Len() >= maxSlug:
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "partner"
}
