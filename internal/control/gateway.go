package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/control/request"
)

// NewGateway contains the keys that a session of type Send_app needs to reach its gateway.
type NewGateway struct {
	BaseURL     string // "": the address of SendApp Cloud
	AccessToken string
	InstanceID  string           // "": the server asks the gateway for an instance when the session is linked
	Faults      []puntuale.Fault // the faults that the calling package already found in the request
}

// toGateway reports whether the session sends through a gateway.
func (s Session) toGateway() bool { return s.Type == puntuale.SendApp && !s.Sandbox && !s.ByDevice() }

// Codes of the faults that this file reports.
const (
	faultTooLong               puntuale.ReasonCode = "fault.too_long"
	faultGatewayAddressTooLong puntuale.ReasonCode = "gateway.address_too_long"
	faultGatewayKeyCharacters  puntuale.ReasonCode = "gateway.key_characters"
	faultGatewayNone           puntuale.ReasonCode = "gateway.none"
	faultGatewayNotAddress     puntuale.ReasonCode = "gateway.not_address"
	faultGatewayNotHTTPS       puntuale.ReasonCode = "gateway.not_https"
)

// SetGateway replaces some or all keys of a session that sends through a gateway. The session's node then reads the new
// keys. A blank member changes nothing. A new base URL needs a token in the same request, because the stored token must
// not reach another server. Codes: forbidden, not_found, invalid, conflict (the session sends through no gateway, or
// another session uses the instance).
func (c *Client) SetGateway(ctx context.Context, id string, r NewGateway) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return Session{}, err
	case !found.toGateway():
		return Session{}, puntuale.Conflict(faultGatewayNone)
	case c.control.vault == nil:
		return Session{}, puntuale.NoLinker()
	}
	err = c.tenant.ChangeKeys(ctx, found.ID, func(old []byte) ([]byte, string, error) { return c.changedGateway(found.ID, old, r) })
	if err != nil {
		return Session{}, fmt.Errorf("store the keys of session %d: %w", found.ID, err)
	}
	return c.recheckKeys(ctx, id, found.ID)
}

// changedGateway merges the request into the old sealed keys, and returns the new sealed keys.
func (c *Client) changedGateway(id puntuale.SessionID, old []byte, r NewGateway) ([]byte, string, error) {
	vault := c.control.vault
	var before puntuale.GatewayKeys
	plain, err := vault.Open(puntuale.SealedGateway, id.SealPlace(), old)
	if err != nil || json.Unmarshal(plain, &before) != nil {
		before = puntuale.GatewayKeys{} // the old keys were sealed under another key of the installation and cannot be read, so the request must contain all keys
	}
	address := strings.TrimRight(strings.TrimSpace(r.BaseURL), "/")
	if address == "" || address == before.BaseURL {
		r.BaseURL = before.BaseURL
		r.AccessToken = cmp.Or(strings.TrimSpace(r.AccessToken), before.AccessToken)
		r.InstanceID = cmp.Or(strings.TrimSpace(r.InstanceID), before.InstanceID)
	}
	f := request.Faults(r.Faults)
	k := c.checkGateway(&f, "body.", r)
	return vault.Seal(puntuale.SealedGateway, id.SealPlace(), k.JSON()), k.Mark(vault.Mark), f.Err()
}

// maxInstance bounds a gateway's instance id, in characters. Gateways of SendApp's family use 13 characters.
const maxInstance = 64

// checkGateway adds faults of a gateway's keys to f. The faults never contain the values. It returns the keys without
// surrounding white space, because copied keys often have some.
func (c *Client) checkGateway(f *request.Faults, at string, g NewGateway) puntuale.GatewayKeys {
	k := puntuale.GatewayKeys{
		BaseURL:     strings.TrimRight(strings.TrimSpace(g.BaseURL), "/"),
		AccessToken: strings.TrimSpace(g.AccessToken), InstanceID: strings.TrimSpace(g.InstanceID),
	}
	if k.BaseURL == "" {
		k.BaseURL = puntuale.DefaultGateway
	}
	u, err := url.Parse(k.BaseURL)
	switch {
	case utf8.RuneCountInString(k.BaseURL) > puntuale.MaxGatewayURL:
		f.Add(at+"base_url", faultGatewayAddressTooLong, nil)
	case err != nil || u.Hostname() == "" || !puntuale.IsPort(u.Port()) || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.Add(at+"base_url", faultGatewayNotAddress, nil)
	case u.Scheme != "https" && (u.Scheme != "http" || !c.control.sessions.plainGateways):
		f.Add(at+"base_url", faultGatewayNotHTTPS, nil)
	}
	for _, key := range []struct {
		name, text string
		maximum    int
	}{{"access_token", k.AccessToken, puntuale.MaxGatewayKey}, {"instance_id", k.InstanceID, maxInstance}} {
		switch {
		case key.text == "" && key.name == "access_token":
			f.Add(at+key.name, puntuale.FaultRequired, nil)
		case utf8.RuneCountInString(key.text) > key.maximum:
			f.Add(at+key.name, faultTooLong, nil)
		case strings.ContainsFunc(key.text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			f.Add(at+key.name, faultGatewayKeyCharacters, nil)
		}
	}
	return k
}

// storeGateway creates a session with the keys of its gateway. Codes: conflict (another session has the number).
func (c *Client) storeGateway(ctx context.Context, s puntuale.Session, k puntuale.GatewayKeys, once *puntuale.Idempotency) (puntuale.SessionID, error) {
	vault := c.control.vault
	return c.tenant.CreateGateway(ctx, s, k.Mark(vault.Mark), func(id puntuale.SessionID) []byte {
		return vault.Seal(puntuale.SealedGateway, id.SealPlace(), k.JSON())
	}, once)
}
