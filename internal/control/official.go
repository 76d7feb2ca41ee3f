package control

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// NewKeys is a request to replace an Official session's keys.
type NewKeys struct {
	puntuale.OfficialKeys
	Faults []puntuale.Fault // found by the caller in the request itself
}

// SetKeys replaces the keys of an Official session, which are never shown again, and has its node look at them. Codes:
// forbidden, not_found, invalid, conflict (it is no Official session, or a sandbox).
func (c *Client) SetKeys(ctx context.Context, id string, r NewKeys) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.official(ctx, id)
	if err != nil {
		return Session{}, err
	}
	f := faults(r.Faults)
	c.checkKeys(&f, "body.", &r.OfficialKeys)
	if err := f.err(); err != nil {
		return Session{}, err
	}
	if err := c.tenant.SetKeys(ctx, found.ID, c.seal(found.ID, r.OfficialKeys)); err != nil {
		return Session{}, fmt.Errorf("store the keys of session %d: %w", found.ID, err)
	}
	if _, err := c.give(ctx, found.ID, puntuale.CommandTest, nil); err != nil && puntuale.CodeOf(err) != puntuale.CodeBusy {
		return Session{}, err
	}
	return c.Session(ctx, id)
}

// TestSession has an Official session's node look whether it can send. It returns the session with what came of it: its
// Detail says what is wrong. Codes: not_found, conflict (it is no Official session, or a sandbox), busy (its node did not
// answer in time).
func (c *Client) TestSession(ctx context.Context, id string) (Session, error) {
	found, err := c.official(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandTest, nil); err != nil {
		return Session{}, fmt.Errorf("test session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}

// official returns a session that reaches Meta.
func (c *Client) official(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return Session{}, err
	case found.Type != puntuale.Official:
		return Session{}, puntuale.Conflict("the session is not of the type Official")
	case found.Sandbox:
		return Session{}, puntuale.Conflict("the session is a sandbox, which never reaches Meta")
	case c.control.vault == nil:
		return Session{}, puntuale.NoLinker()
	}
	return found, nil
}

// storeSession creates a session, with its keys if there are some.
func (c *Client) storeSession(ctx context.Context, s puntuale.Session, keys *puntuale.OfficialKeys, once *puntuale.Once) (puntuale.SessionID, error) {
	if keys == nil || c.control.vault == nil {
		return c.tenant.CreateSession(ctx, s, once)
	}
	return c.tenant.CreateOfficial(ctx, s, func(id puntuale.SessionID) []byte { return c.seal(id, *keys) }, once)
}

func (c *Client) seal(id puntuale.SessionID, keys puntuale.OfficialKeys) []byte {
	return c.control.vault.Seal(puntuale.SealedOfficial, id.SealPlace(), keys.JSON())
}

// checkKeys notes what is wrong with keys, and never their values. White space around them is what copying left.
func (c *Client) checkKeys(f *faults, at string, k *puntuale.OfficialKeys) {
	for _, key := range []struct {
		name string
		text *string
		most int
	}{
		{"phone_number_id", &k.PhoneNumberID, puntuale.MaxPhoneNumberID}, {"access_token", &k.AccessToken, puntuale.MaxOfficialKey},
		{"app_secret", &k.AppSecret, puntuale.MaxOfficialKey}, {"verify_token", &k.VerifyToken, puntuale.MaxOfficialKey},
	} {
		*key.text = strings.TrimSpace(*key.text)
		switch text := *key.text; {
		case text == "":
			f.add(at+key.name, "is required", nil)
		case utf8.RuneCountInString(text) > key.most:
			f.add(at+key.name, fmt.Sprintf("has more than %d characters", key.most), nil)
		case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			f.add(at+key.name, "holds white space or characters that no key of Meta has", nil)
		case key.name == "phone_number_id" && strings.Trim(text, "0123456789") != "":
			f.add(at+key.name, "is Meta's id of the number: digits only, and not the number itself", nil)
		}
	}
}
