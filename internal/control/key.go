package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/auth"
)

// How long an old key stays valid after a rotation, unless the call says otherwise, and at most.
const (
	keyGrace    = 24 * time.Hour
	maxKeyGrace = 90 * 24 * time.Hour
)

// IssuedKey is a new key, which is shown only now.
type IssuedKey struct {
	puntuale.Key
	Plain string
}

// Keys lists a client's valid keys by id. Codes: not_found.
func (p *Partner) Keys(ctx context.Context, client string) ([]puntuale.Key, error) {
	account, err := p.Account(ctx, client)
	if err != nil {
		return nil, err
	}
	keys, err := p.tenant.Keys(ctx, account.ID, p.control.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("list keys of client %d: %w", account.ID, err)
	}
	return keys, nil
}

// CreateKey makes another key for a client. found are faults that the caller found in the request itself. Codes:
// not_found, invalid.
func (p *Partner) CreateKey(ctx context.Context, client, name string, o Once[IssuedKey], found ...puntuale.Fault) (IssuedKey, error) {
	f := faults(found)
	box, once, clash, err := beginSealed(ctx, p, o, &f)
	if err != nil {
		return IssuedKey{}, err
	}
	account, err := p.Account(ctx, client)
	if err != nil {
		return IssuedKey{}, err
	}
	f.required("body.name", name, puntuale.MaxName)
	if err := f.err(); err != nil {
		return IssuedKey{}, err
	}
	if clash != nil {
		return IssuedKey{}, clash
	}
	plain, key, err := auth.NewKey(puntuale.ClientSide, name, p.control.clock.Now())
	if err != nil {
		return IssuedKey{}, err
	}
	result := func(stored any) IssuedKey {
		key.ID, _ = stored.(puntuale.KeyID)
		return IssuedKey{key, plain}
	}
	keepSealed(box, o, once, result)
	id, err := p.tenant.CreateKey(ctx, account.ID, key, once)
	if err != nil {
		return IssuedKey{}, fmt.Errorf("create a key of client %d: %w", account.ID, box.opened(once, err))
	}
	return result(id), nil
}

// RotateKey makes a key in the place of another, of the same name, which stays valid for the grace period in seconds; nil is a
// day. found are faults that the caller found in the request itself. Codes: not_found, invalid.
func (p *Partner) RotateKey(ctx context.Context, client, key string, grace *int64, o Once[IssuedKey], found ...puntuale.Fault) (IssuedKey, error) {
	f := faults(found)
	box, once, clash, err := beginSealed(ctx, p, o, &f)
	if err != nil {
		return IssuedKey{}, err
	}
	account, old, err := p.key(ctx, client, key)
	if err != nil {
		return IssuedKey{}, err
	}
	wait := keyGrace
	if grace != nil {
		if *grace < 0 || *grace > int64(maxKeyGrace/time.Second) {
			f.add("body.grace", fmt.Sprintf("is not 0 to %d seconds", int64(maxKeyGrace/time.Second)), *grace)
		} else {
			wait = time.Duration(*grace) * time.Second
		}
	}
	if err := f.err(); err != nil {
		return IssuedKey{}, err
	}
	if clash != nil {
		return IssuedKey{}, clash
	}
	now := p.control.clock.Now()
	plain, next, err := auth.NewKey(puntuale.ClientSide, old.Name, now)
	if err != nil {
		return IssuedKey{}, err
	}
	result := func(stored any) IssuedKey {
		next.ID, _ = stored.(puntuale.KeyID)
		return IssuedKey{next, plain}
	}
	keepSealed(box, o, once, result)
	id, err := p.tenant.RotateClientKey(ctx, account, old.ID, next, now.Add(wait), now, once)
	if err != nil {
		return IssuedKey{}, fmt.Errorf("rotate a key of client %d: %w", account, box.opened(once, err))
	}
	return result(id), nil
}

// RevokeKey ends a key at once. Codes: not_found.
func (p *Partner) RevokeKey(ctx context.Context, client, key string) error {
	account, old, err := p.key(ctx, client, key)
	if err != nil {
		return err
	}
	if err := p.tenant.RevokeKey(ctx, account, old.ID, p.control.clock.Now()); err != nil {
		return fmt.Errorf("revoke a key of client %d: %w", account, err)
	}
	return nil
}

// key finds a client's key.
func (p *Partner) key(ctx context.Context, client, key string) (puntuale.ClientID, puntuale.Key, error) {
	keys, err := p.Keys(ctx, client)
	if err != nil {
		return 0, puntuale.Key{}, err
	}
	account, _ := clientID(client) // whose keys these are
	for _, k := range keys {
		if id, err := puntuale.ParseID[puntuale.KeyID](key); err == nil && k.ID == id {
			return account, k, nil
		}
	}
	return 0, puntuale.Key{}, puntuale.NotFound("key")
}

// A client's own keys, as its owner sees them in the dashboard. Keys do not make keys: who holds one cannot outlive it.

// Keys lists the client's valid keys by id.
func (c *Client) Keys(ctx context.Context) ([]puntuale.Key, error) {
	return c.partner().Keys(ctx, c.account.ID.String())
}

// CreateKey makes another key for the client. Codes: invalid.
func (c *Client) CreateKey(ctx context.Context, name string) (IssuedKey, error) {
	return c.partner().CreateKey(ctx, c.account.ID.String(), name, Once[IssuedKey]{})
}

// RotateKey makes a key in the place of another, which stays valid for a day. Codes: not_found.
func (c *Client) RotateKey(ctx context.Context, key string) (IssuedKey, error) {
	return c.partner().RotateKey(ctx, c.account.ID.String(), key, nil, Once[IssuedKey]{})
}

// RevokeKey ends a key at once. Codes: not_found.
func (c *Client) RevokeKey(ctx context.Context, key string) error {
	return c.partner().RevokeKey(ctx, c.account.ID.String(), key)
}

func (c *Client) partner() *Partner {
	return &Partner{c.control, c.account.Partner, c.control.operator.Partner(c.account.Partner), ""}
}
