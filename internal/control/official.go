package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/control/request"
)

// NewKeys is a request to replace some or all keys of an Official session. A blank member changes nothing.
type NewKeys struct {
	puntuale.OfficialKeys
	NoAccount  bool             // true: remove BusinessAccountID
	KeepGroups bool             // true: GroupsAPI does not change
	Faults     []puntuale.Fault // the faults that the calling package already found in the request
}

// SetKeys replaces the keys of an Official session. The session's node then reads the new keys. No call ever returns
// the keys. Codes: forbidden, not_found, invalid (also if a key except BusinessAccountID is blank and not stored),
// conflict (the session is not Official, or is a sandbox).
func (c *Client) SetKeys(ctx context.Context, id string, r NewKeys) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.official(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := c.tenant.ChangeKeys(ctx, found.ID, func(old []byte) ([]byte, string, error) {
		sealed, err := c.mergeKeys(found.ID, old, r)
		return sealed, "", err
	}); err != nil {
		return Session{}, fmt.Errorf("store the keys of session %d: %w", found.ID, err)
	}
	return c.recheckKeys(ctx, id, found.ID)
}

// recheckKeys tells the session's node to check the new keys, and returns the session. It does not wait for the check.
// If the node cannot be reached now, the node checks the keys later.
func (c *Client) recheckKeys(ctx context.Context, id string, session puntuale.SessionID) (Session, error) {
	if _, err := c.give(ctx, session, puntuale.CommandTest, nil); err != nil && puntuale.CodeOf(err) != puntuale.CodeBusy {
		return Session{}, err
	}
	return c.Session(ctx, id)
}

// mergeKeys merges the request into the old sealed keys, and returns the new sealed keys.
func (c *Client) mergeKeys(id puntuale.SessionID, old []byte, r NewKeys) ([]byte, error) {
	var before puntuale.OfficialKeys
	if old != nil {
		plain, err := c.control.vault.Open(puntuale.SealedOfficial, id.SealPlace(), old)
		if err != nil || json.Unmarshal(plain, &before) != nil {
			before = puntuale.OfficialKeys{} // the old keys were sealed under another key of the installation and cannot be read, so the request must contain all keys
		}
	}
	k := r.OfficialKeys
	for _, key := range []struct{ value, stored *string }{
		{&k.PhoneNumberID, &before.PhoneNumberID}, {&k.AccessToken, &before.AccessToken}, {&k.AppSecret, &before.AppSecret}, {&k.VerifyToken, &before.VerifyToken},
	} {
		if strings.TrimSpace(*key.value) == "" {
			*key.value = *key.stored
		}
	}
	if strings.TrimSpace(k.BusinessAccountID) == "" && !r.NoAccount {
		k.BusinessAccountID = before.BusinessAccountID
	}
	if r.KeepGroups {
		k.GroupsAPI = before.GroupsAPI
	}
	f := request.Faults(r.Faults)
	c.checkKeys(&f, "body.", &k)
	return c.seal(id, k), f.Err()
}

// SessionTest is the result of a test whether a session can send.
type SessionTest struct {
	Session   Session
	OK        bool                      // true: the session can send now
	Message   puntuale.Reason           // the problem, or a sentence that there is none
	Templates puntuale.NetworkTemplates // the templates that the test read from Meta; Problem says why the read failed
}

// Results of a test, for a session without a Detail.
const (
	reasonNumberWell puntuale.ReasonCode = "link.well_number" // {1}: the number
	reasonWell       puntuale.ReasonCode = "link.well"
	reasonNotYet     puntuale.ReasonCode = "link.not_yet"
)

// TestSession makes a session's node test whether the session can send. The session must be Official or have a gateway.
// For an Official session, the node also reads the templates. Codes: not_found, conflict (another kind of session),
// busy (the node did not answer in time).
func (c *Client) TestSession(ctx context.Context, id string) (SessionTest, error) {
	found, err := c.Session(ctx, id)
	if err == nil && !found.toGateway() {
		found, err = c.official(ctx, id)
	}
	if err != nil {
		return SessionTest{}, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandTest, nil); err != nil {
		return SessionTest{}, fmt.Errorf("test session %d: %w", found.ID, err)
	}
	if found, err = c.Session(ctx, id); err != nil {
		return SessionTest{}, err
	}
	var about puntuale.NetworkTemplates
	if found.Type == puntuale.Official {
		if about, _, _, err = c.tenant.NetworkTemplates(ctx, found.ID, puntuale.Page{Limit: 1}); err != nil {
			return SessionTest{}, fmt.Errorf("read about the templates of session %d: %w", found.ID, err)
		}
	}
	t := SessionTest{Session: found, OK: found.State == puntuale.LinkOnline && found.Detail.IsZero(), Message: found.Detail, Templates: about}
	switch {
	case t.OK && found.Number != "":
		t.Message = puntuale.Because(reasonNumberWell, found.Number)
	case t.OK:
		t.Message = puntuale.Because(reasonWell)
	case t.Message.IsZero():
		t.Message = puntuale.Because(reasonNotYet)
	}
	return t, nil
}

// NetworkTemplates is one page of the templates of an Official session's business, as Meta lists them.
type NetworkTemplates struct {
	puntuale.NetworkTemplates
	All  []puntuale.NetworkTemplate
	Next string // cursor of the next page; "": this is the last page
}

// NetworkTemplates lists the templates of an Official session's business, ordered by name and language. The list is as
// old as the server's last read from Meta. Codes: not_found, invalid, conflict (the session is not Official, or is a
// sandbox).
func (c *Client) NetworkTemplates(ctx context.Context, id string, p request.Page) (NetworkTemplates, error) {
	found, err := c.official(ctx, id)
	if err != nil {
		return NetworkTemplates{}, err
	}
	var out NetworkTemplates
	out.All, out.Next, err = request.List(p, func(p puntuale.Page) (all []puntuale.NetworkTemplate, next string, err error) {
		out.NetworkTemplates, all, next, err = c.tenant.NetworkTemplates(ctx, found.ID, p)
		return all, next, err
	})
	if err != nil {
		return NetworkTemplates{}, fmt.Errorf("list the templates of session %d: %w", found.ID, err)
	}
	return out, nil
}

// SessionHealth is what Meta says about the number and the business of a session.
type SessionHealth struct {
	puntuale.SessionHealth
	Portfolio puntuale.Portfolio
}

// SessionHealth returns the health of an Official session. Codes: not_found, conflict (another type, or a sandbox).
func (c *Client) SessionHealth(ctx context.Context, id string) (SessionHealth, error) {
	found, err := c.official(ctx, id)
	if err != nil {
		return SessionHealth{}, err
	}
	now := c.Now()
	h, err := c.tenant.HealthOf(ctx, found.ID, now)
	if err != nil {
		return SessionHealth{}, fmt.Errorf("read the health of session %d: %w", found.ID, err)
	}
	p, err := c.tenant.Portfolio(ctx, found.ID, now)
	if err != nil {
		return SessionHealth{}, fmt.Errorf("read whom session %d addresses: %w", found.ID, err)
	}
	return SessionHealth{h, p}, nil
}

// Codes of the faults that this file reports.
const (
	faultMoreCharacters        puntuale.ReasonCode = "fault.more_characters"
	faultOfficialAccountID     puntuale.ReasonCode = "official.account_id"
	faultOfficialIsSandbox     puntuale.ReasonCode = "official.is_sandbox"
	faultOfficialKeyCharacters puntuale.ReasonCode = "official.key_characters"
	faultOfficialNotOfficial   puntuale.ReasonCode = "official.not_official"
	faultOfficialNumberID      puntuale.ReasonCode = "official.number_id"
)

// official returns a session that sends through Meta, or an error for any other session.
func (c *Client) official(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return Session{}, err
	case found.Type != puntuale.Official:
		return Session{}, puntuale.Conflict(faultOfficialNotOfficial)
	case found.Sandbox:
		return Session{}, puntuale.Conflict(faultOfficialIsSandbox)
	case c.control.vault == nil:
		return Session{}, puntuale.NoLinker()
	}
	return found, nil
}

// storeSession creates a session with the given keys. nil means that the session has no keys yet.
func (c *Client) storeSession(ctx context.Context, s puntuale.Session, keys *puntuale.OfficialKeys, once *puntuale.Idempotency) (puntuale.SessionID, error) {
	if keys == nil || c.control.vault == nil {
		return c.tenant.CreateSession(ctx, s, once)
	}
	return c.tenant.CreateOfficial(ctx, s, func(id puntuale.SessionID) []byte { return c.seal(id, *keys) }, once)
}

func (c *Client) seal(id puntuale.SessionID, keys puntuale.OfficialKeys) []byte {
	return c.control.vault.Seal(puntuale.SealedOfficial, id.SealPlace(), keys.JSON())
}

// checkKeys adds faults of the keys to f. The faults never contain the values. It removes surrounding white space from
// the keys, because copied keys often have some.
func (c *Client) checkKeys(f *request.Faults, at string, k *puntuale.OfficialKeys) {
	for _, key := range []struct {
		name    string
		text    *string
		maximum int
	}{
		{"phone_number_id", &k.PhoneNumberID, puntuale.MaxPhoneNumberID}, {"access_token", &k.AccessToken, puntuale.MaxOfficialKey},
		{"app_secret", &k.AppSecret, puntuale.MaxOfficialKey}, {"verify_token", &k.VerifyToken, puntuale.MaxOfficialKey},
		{"business_account_id", &k.BusinessAccountID, puntuale.MaxPhoneNumberID},
	} {
		*key.text = strings.TrimSpace(*key.text)
		switch text := *key.text; {
		case text == "" && key.name == "business_account_id": // this key may be blank; if it is, the server reads no templates
		case text == "":
			f.Add(at+key.name, puntuale.FaultRequired, nil)
		case utf8.RuneCountInString(text) > key.maximum:
			f.Add(at+key.name, faultMoreCharacters, nil, strconv.Itoa(key.maximum))
		case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			f.Add(at+key.name, faultOfficialKeyCharacters, nil)
		case key.name == "phone_number_id" && strings.Trim(text, "0123456789") != "":
			f.Add(at+key.name, faultOfficialNumberID, nil)
		case key.name == "business_account_id" && strings.Trim(text, "0123456789") != "":
			f.Add(at+key.name, faultOfficialAccountID, nil)
		}
	}
}
