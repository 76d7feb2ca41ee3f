package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// Caller is the owner of a valid key.
type Caller struct {
	control    *Control
	principal  puntuale.Principal
	plain      string // the key in plain text
	remembered bool
}

// Client is a client's account, reached by its own key. Methods of Client reach only this client's data.
type Client struct {
	control *Control
	account puntuale.Client
	tenant  puntuale.Tenant

	actor      puntuale.Actor
	page       puntuale.SessionID // not 0: somebody without an account acts, through the linking page of this session
	plain      string             // the key in plain text
	remembered bool               // the account comes from memory: see [Control.Recognize]
}

// Codes of the faults that this file reports.
const (
	faultCallerClientKey  puntuale.ReasonCode = "caller.client_key"
	faultCallerExpired    puntuale.ReasonCode = "caller.expired"
	faultCallerKeyNeeded  puntuale.ReasonCode = "caller.key_needed"
	faultCallerPartnerKey puntuale.ReasonCode = "caller.partner_key"
)

// Authenticate finds the owner of a key. If the key's form or checksum is wrong, Authenticate does not query the
// database. Codes: unauthorized.
func (c *Control) Authenticate(ctx context.Context, plain string) (*Caller, error) {
	if plain == "" {
		return nil, unauthorized(faultCallerKeyNeeded)
	}
	hash, side, ok := auth.ParseKey(plain)
	if !ok {
		return nil, unauthorized(puntuale.FaultCallerKeyNotValid)
	}
	if side == puntuale.DeviceSide {
		account, device, err := c.devices.store.DeviceOf(ctx, hash)
		if err != nil {
			return nil, fmt.Errorf("find a device: %w", err)
		}
		return &Caller{control: c, principal: puntuale.Principal{Side: side, Client: account, Device: device, Key: puntuale.KeyID(device.ID)}, plain: plain}, nil
	}
	principal, err := c.tenants.Principal(ctx, hash, c.clock.Now())
	if puntuale.CodeOf(err) == puntuale.CodeUnauthorized || err == nil && principal.Side != side {
		return nil, unauthorized(puntuale.FaultCallerKeyNotValid)
	}
	if err != nil {
		return nil, fmt.Errorf("find the key's owner: %w", err)
	}
	if side == puntuale.ClientSide {
		c.cache.keepCaller(hash, principal, c.clock.Now())
	}
	if now := c.clock.Now(); c.uses.due(principal.Key, principal.Used, now) {
		// A key works even if its use cannot be stored now.
		_ = c.tenants.UseKey(ctx, principal.Key, now)
	}
	return &Caller{control: c, principal: principal, plain: plain}, nil
}

// useEvery is the shortest time between two stored uses of a key.
const useEvery = 5 * time.Minute

// keyUses are the uses of keys that this node stored last. So of many calls at the same time, only one stores the use.
type keyUses struct {
	mu     sync.Mutex
	stored map[puntuale.KeyID]time.Time
}

// due reports whether the use of a key must be stored now. stored is the use that the database has. If due returns true,
// it returns false for this key until useEvery has passed.
func (u *keyUses) due(key puntuale.KeyID, stored, now time.Time) bool {
	if now.Sub(stored) < useEvery {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.stored[key]) < useEvery {
		return false
	}
	if len(u.stored) >= maxRemembered || u.stored == nil {
		u.stored = map[puntuale.KeyID]time.Time{}
	}
	u.stored[key] = now
	return true
}

// Recognize finds the owner of a key in memory. It finds client keys that were valid within the last second. The result
// may be out of date. Therefore, use it only for calls that check the client again, such as [Client.Start]. Before such
// a call refuses, it must read the caller again with Authenticate.
func (c *Control) Recognize(plain string) (*Caller, bool) {
	hash, _, ok := auth.ParseKey(plain)
	if !ok {
		return nil, false
	}
	principal, ok := c.cache.caller(hash, c.clock.Now())
	return &Caller{control: c, principal: principal, plain: plain, remembered: true}, ok
}

// Side returns the kind of the key: a partner's, a client's or a device's.
func (c *Caller) Side() puntuale.Side { return c.principal.Side }

// Key returns the identifier of the key.
func (c *Caller) Key() puntuale.KeyID { return c.principal.Key }

// Client returns the client that owns the key. Codes: forbidden for keys of other kinds, and while the client is
// suspended.
func (c *Caller) Client() (*Client, error) {
	if c.principal.Side != puntuale.ClientSide {
		return nil, forbidden(faultCallerClientKey, string(c.principal.Side))
	}
	account := c.principal.Client
	if account.Suspended {
		return nil, forbidden(puntuale.FaultCallerSuspended)
	}
	return &Client{
		control: c.control, account: account, tenant: c.control.tenants.Tenant(account.ID),
		actor: puntuale.Actor{Who: puntuale.ActorKey}, plain: c.plain, remembered: c.remembered,
	}, nil
}

// Partner returns the partner that owns the key, and the key itself. Codes: forbidden for keys of other kinds.
func (c *Caller) Partner() (id puntuale.PartnerID, key string, err error) {
	if c.principal.Side != puntuale.PartnerSide {
		return 0, "", forbidden(faultCallerPartnerKey, string(c.principal.Side))
	}
	return c.principal.Partner, c.plain, nil
}

// ClientFor returns a client's account for a person who uses a dashboard. Calls through it do not count against the
// daily cap.
func (c *Control) ClientFor(account puntuale.Client, actor puntuale.Actor) *Client {
	return &Client{control: c, account: account, tenant: c.tenants.Uncounted(account.ID), actor: actor}
}

// SetAddress sets the IP address from which the person acts, for the audit log.
func (c *Client) SetAddress(from netip.Addr) { c.actor.Address = AddressText(from) }

// Account returns the client's account, as it was when this Client was created.
func (c *Client) Account() puntuale.Client { return c.account }

// ByPartner reports whether a user of the client's partner acts, and not the client itself.
func (c *Client) ByPartner() bool { return c.actor.Entry }

// Confirm checks in the store that the key is valid and may be used, if Recognize found the client. A call must call
// Confirm before it refuses for any other reason. Codes: unauthorized, forbidden.
func (c *Client) Confirm(ctx context.Context) error {
	if !c.remembered {
		return nil
	}
	_, err := c.reload(ctx)
	return err
}

// reload reads the client of the same key again from the store.
func (c *Client) reload(ctx context.Context) (*Client, error) {
	caller, err := c.control.Authenticate(ctx, c.plain)
	if err != nil {
		return nil, err
	}
	return caller.Client()
}

// ID returns the client's identifier.
func (c *Client) ID() puntuale.ClientID { return c.account.ID }

// MayCreate refuses an expired or suspended account. Methods that create or send call MayCreate themselves. Other packages may call
// it earlier, to refuse before they read the request. Codes: forbidden.
func (c *Client) MayCreate() error {
	if end := c.account.ExpiresAt; !end.IsZero() && !c.control.clock.Now().Before(end) {
		return forbidden(faultCallerExpired)
	}
	if c.account.Suspended { // keys are refused before, but other doors, such as Chatwoot, have none
		return forbidden(puntuale.FaultCallerSuspended)
	}
	return nil
}

func unauthorized(code puntuale.ReasonCode, args ...string) error {
	return &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(code, args...)}
}

func forbidden(code puntuale.ReasonCode, args ...string) error {
	return &puntuale.Error{Code: puntuale.CodeForbidden, Reason: puntuale.Because(code, args...)}
}

// recipient parses one recipient of a request and adds its faults to f.
func (c *Client) recipient(f *request.Faults, location, text string) string {
	return c.parsed(f, location, text, func(text, region string) ([]string, error) {
		phone, err := request.ParseRecipient(text, region)
		return []string{phone}, err
	})[0]
}

// person parses the recipient of a call that concerns all names of a person. One of them may be the number that an
// earlier version made of the same text.
func (c *Client) person(f *request.Faults, location, text string) puntuale.Person {
	return puntuale.Person{Names: c.parsed(f, location, text, request.Readings), Mark: c.mark}
}

// ParseRecipient parses the number or id of a person or a group. Codes: invalid.
func (c *Client) ParseRecipient(text string) (string, error) {
	var f request.Faults
	phone := c.recipient(&f, "phone", text)
	return phone, f.Err()
}

// people parses a list of such recipients, and returns their names.
func (c *Client) people(f *request.Faults, location string, texts []string) []string {
	if !f.Entries(location, len(texts), puntuale.MaxRequestIDs) {
		return nil
	}
	names := make([]string, 0, len(texts))
	for i, text := range texts {
		names = append(names, c.person(f, request.At(location, i), text).Names...)
	}
	return names
}

// parsed parses a recipient and adds its faults to f. It returns at least one name, which is "" after a fault.
func (c *Client) parsed(f *request.Faults, location, text string, parse func(text, region string) ([]string, error)) []string {
	if f.At(location) { // a fault is already noted at this location
		return []string{""}
	}
	if text == "" {
		f.Add(location, puntuale.FaultRequired, nil)
		return []string{""}
	}
	names, err := parse(text, c.account.Region)
	if refused, ok := errors.AsType[*request.RecipientError](err); ok {
		f.Add(location, refused.Code, text)
	}
	return names
}

// zone returns the client's time zone.
func (c *Client) zone() (*time.Location, error) { return c.control.zones.Load(c.account.Zone) }

// today returns the client's current day. Calls count against the daily cap of this day.
func (c *Client) today(now time.Time) (puntuale.Date, error) {
	loc, err := c.zone()
	if err != nil {
		return puntuale.Date{}, err
	}
	return puntuale.DateOf(now.In(loc)), nil
}

// Audit lists the audit entries of the client's dashboard, newest first. Codes: invalid.
func (c *Client) Audit(ctx context.Context, page request.Page) ([]puntuale.AuditEntry, string, error) {
	return Audit(ctx, c.control.tenants.Partner(c.account.Partner), c.account.ID, page)
}

// Audit lists the audit entries of a client's dashboard, newest first. Client 0 means the dashboards of the partner and
// of all its clients. Codes: invalid.
func Audit(ctx context.Context, tenant puntuale.PartnerTenant, client puntuale.ClientID, page request.Page) ([]puntuale.AuditEntry, string, error) {
	rows, next, err := request.List(page, func(p puntuale.Page) ([]puntuale.AuditEntry, string, error) {
		return tenant.Audit(ctx, client, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list what was done: %w", err)
	}
	return rows, next, nil
}

// CountAudit counts the audit entries of the client's dashboard, up to [puntuale.MaxCounted]. all is true if n is the
// complete count.
func (c *Client) CountAudit(ctx context.Context) (n int, all bool, err error) {
	return CountAudit(ctx, c.control.tenants.Partner(c.account.Partner), c.account.ID)
}

// CountAudit counts the audit entries that Audit lists, up to [puntuale.MaxCounted]. all is true if n is the complete
// count.
func CountAudit(ctx context.Context, tenant puntuale.PartnerTenant, client puntuale.ClientID) (n int, all bool, err error) {
	if n, all, err = tenant.CountAudit(ctx, client, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count what was done: %w", err)
	}
	return n, all, nil
}

// AddressText returns an IP address in the form of the audit log, or "" if the IP address is not known.
func AddressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
