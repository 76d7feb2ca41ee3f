package account

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// How long an old key remains valid after a rotation: keyGrace by default, and maxKeyGrace at most.
const (
	keyGrace    = 24 * time.Hour
	maxKeyGrace = 90 * 24 * time.Hour
)

// IssuedKey is a new key, which is shown only once.
type IssuedKey struct {
	puntuale.Key
	Plain string
}

// owned gives access to the keys of one owner: a client, or the partner itself.
type owned struct {
	partner *Partner
	client  puntuale.ClientID // 0: the partner owns the keys
	side    puntuale.Side
}

func (p *Partner) owned() owned { return owned{p, 0, puntuale.PartnerSide} }

func (p *Partner) ownedBy(ctx context.Context, client string) (owned, error) {
	account, err := p.Account(ctx, client)
	return owned{p, account.ID, puntuale.ClientSide}, err
}

func (o owned) String() string {
	if o.client == 0 {
		return fmt.Sprintf("partner %d", o.partner.id)
	}
	return fmt.Sprintf("client %d", o.client)
}

// Keys lists a client's valid keys, ordered by id. Codes: not_found.
func (p *Partner) Keys(ctx context.Context, client string) ([]puntuale.Key, error) {
	owner, err := p.ownedBy(ctx, client)
	if err != nil {
		return nil, err
	}
	return owner.keys(ctx)
}

func (o owned) keys(ctx context.Context) ([]puntuale.Key, error) {
	keys, err := o.partner.tenant.Keys(ctx, o.client, o.partner.accounts.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("list keys of %s: %w", o, err)
	}
	return keys, nil
}

// CreateKey creates another key for a client. found contains the faults that the calling package already found in the
// request. Codes: not_found, invalid, quota_reached.
func (p *Partner) CreateKey(ctx context.Context, client, name string, o control.Once[IssuedKey], found ...puntuale.Fault) (IssuedKey, error) {
	f := request.Faults(found)
	once, clash, err := o.BeginSealed(ctx, p.tenant, p.plain, &f)
	if err != nil {
		return IssuedKey{}, err
	}
	owner, err := p.ownedBy(ctx, client)
	if err != nil {
		return IssuedKey{}, err
	}
	f.Required("body.name", name, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return IssuedKey{}, err
	}
	if clash != nil {
		return IssuedKey{}, clash
	}
	return owner.create(ctx, name, once)
}

func (o owned) create(ctx context.Context, name string, once *control.Keyed[IssuedKey]) (IssuedKey, error) {
	plain, key, err := auth.NewKey(o.side, name, o.partner.accounts.clock.Now())
	if err != nil {
		return IssuedKey{}, err
	}
	result := func(stored any) IssuedKey {
		key.ID, _ = stored.(puntuale.KeyID)
		return IssuedKey{key, plain}
	}
	id, err := o.partner.tenant.CreateKey(ctx, o.client, key, once.Keep(result))
	if err != nil {
		return IssuedKey{}, fmt.Errorf("create a key of %s: %w", o, once.Opened(err))
	}
	return result(id), nil
}

const faultNotInSeconds puntuale.ReasonCode = "fault.not_in_seconds"

// RotateKey replaces a key by a new key with the same name. grace is how long the old key remains valid, in seconds. A
// nil grace means one day. found contains the faults that the calling package already found in the request. Codes:
// not_found, invalid, quota_reached.
func (p *Partner) RotateKey(ctx context.Context, client, key string, grace *int64, o control.Once[IssuedKey], found ...puntuale.Fault) (IssuedKey, error) {
	f := request.Faults(found)
	once, clash, err := o.BeginSealed(ctx, p.tenant, p.plain, &f)
	if err != nil {
		return IssuedKey{}, err
	}
	owner, err := p.ownedBy(ctx, client)
	if err != nil {
		return IssuedKey{}, err
	}
	old, err := owner.key(ctx, key)
	if err != nil {
		return IssuedKey{}, err
	}
	wait := keyGrace
	if grace != nil {
		if *grace < 0 || *grace > int64(maxKeyGrace/time.Second) {
			f.Add("body.grace", faultNotInSeconds, *grace, "0", strconv.Itoa(int(maxKeyGrace/time.Second)))
		} else {
			wait = time.Duration(*grace) * time.Second
		}
	}
	if err := f.Err(); err != nil {
		return IssuedKey{}, err
	}
	if clash != nil {
		return IssuedKey{}, clash
	}
	return owner.rotate(ctx, old, wait, once)
}

func (o owned) rotate(ctx context.Context, old puntuale.Key, wait time.Duration, once *control.Keyed[IssuedKey]) (IssuedKey, error) {
	now := o.partner.accounts.clock.Now()
	plain, next, err := auth.NewKey(o.side, old.Name, now)
	if err != nil {
		return IssuedKey{}, err
	}
	result := func(stored any) IssuedKey {
		next.ID, _ = stored.(puntuale.KeyID)
		return IssuedKey{next, plain}
	}
	id, err := o.partner.tenant.RotateClientKey(ctx, o.client, old.ID, next, now.Add(wait), now, once.Keep(result))
	if err != nil {
		return IssuedKey{}, fmt.Errorf("rotate a key of %s: %w", o, once.Opened(err))
	}
	return result(id), nil
}

// RevokeKey makes a key invalid immediately. Codes: not_found.
func (p *Partner) RevokeKey(ctx context.Context, client, key string) error {
	owner, err := p.ownedBy(ctx, client)
	if err != nil {
		return err
	}
	return owner.revoke(ctx, key)
}

func (o owned) revoke(ctx context.Context, key string) error {
	old, err := o.key(ctx, key)
	if err != nil {
		return err
	}
	if err := o.partner.tenant.RevokeKey(ctx, o.client, old.ID, o.partner.accounts.clock.Now()); err != nil {
		return fmt.Errorf("revoke a key of %s: %w", o, err)
	}
	return nil
}

// key finds one key by its id.
func (o owned) key(ctx context.Context, key string) (puntuale.Key, error) {
	keys, err := o.keys(ctx)
	if err != nil {
		return puntuale.Key{}, err
	}
	for _, k := range keys {
		if id, err := puntuale.ParseID[puntuale.KeyID](key); err == nil && k.ID == id {
			return k, nil
		}
	}
	return puntuale.Key{}, puntuale.NotFound(puntuale.NoKey)
}

// The methods below are for a partner's own keys, in the dashboard. No API call with a key can create another key of
// the same owner. Otherwise a program could create a spare key, and keep its access after its first key becomes invalid.

// OwnKeys lists the partner's own valid keys, ordered by id.
func (p *Partner) OwnKeys(ctx context.Context) ([]puntuale.Key, error) { return p.owned().keys(ctx) }

// CreateOwnKey creates another key for the partner. Codes: invalid; conflict if the partner already has
// [puntuale.MaxPartnerKeys] keys.
func (p *Partner) CreateOwnKey(ctx context.Context, name string) (IssuedKey, error) {
	var f request.Faults
	f.Required("body.name", name, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return IssuedKey{}, err
	}
	return p.owned().create(ctx, name, nil)
}

// RotateOwnKey replaces a key by a new one. The old key remains valid for a day. Codes: not_found; conflict if the
// partner already has [puntuale.MaxPartnerKeys] keys.
func (p *Partner) RotateOwnKey(ctx context.Context, key string) (IssuedKey, error) {
	old, err := p.owned().key(ctx, key)
	if err != nil {
		return IssuedKey{}, err
	}
	return p.owned().rotate(ctx, old, keyGrace, nil)
}

// RevokeOwnKey makes a key invalid immediately. Codes: not_found.
func (p *Partner) RevokeOwnKey(ctx context.Context, key string) error {
	return p.owned().revoke(ctx, key)
}

// ClientKeys gives access to a client's own keys, in the dashboard. No API call with a key can create another key of
// the same owner. Otherwise a program could create a spare key, and keep its access after its first key becomes invalid.
type ClientKeys struct {
	partner *Partner
	client  string
}

// KeysOf returns the client's keys.
func (c *Accounts) KeysOf(client *control.Client) ClientKeys {
	account := client.Account()
	return ClientKeys{c.partner(account.Partner, ""), account.ID.String()}
}

// List lists the client's valid keys, ordered by id.
func (k ClientKeys) List(ctx context.Context) ([]puntuale.Key, error) {
	return k.partner.Keys(ctx, k.client)
}

// Create creates another key for the client. Codes: invalid, quota_reached.
func (k ClientKeys) Create(ctx context.Context, name string) (IssuedKey, error) {
	return k.partner.CreateKey(ctx, k.client, name, control.Once[IssuedKey]{})
}

// Rotate replaces a key by a new one. The old key remains valid for a day. Codes: not_found, quota_reached.
func (k ClientKeys) Rotate(ctx context.Context, key string) (IssuedKey, error) {
	return k.partner.RotateKey(ctx, k.client, key, nil, control.Once[IssuedKey]{})
}

// Revoke makes a key invalid immediately. Codes: not_found.
func (k ClientKeys) Revoke(ctx context.Context, key string) error {
	return k.partner.RevokeKey(ctx, k.client, key)
}
