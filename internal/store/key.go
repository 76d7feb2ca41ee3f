package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

func insertKey(ctx context.Context, a asker, p puntuale.PartnerID, c puntuale.ClientID, k puntuale.Key) error {
	id, err := number(ctx, a, "key")
	if err != nil {
		return err
	}
	if _, err := a.exec(ctx, `insert into api_key (id, partner_id, client_id, name, prefix, hash, created_at, expires_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		id, p, c, k.Name, k.Prefix, k.Hash[:], micros(k.Created), micros(k.Expires)); err != nil {
		if repeated(err) {
			return puntuale.Conflict("the key exists")
		}
		return fmt.Errorf("insert a key: %w", err)
	}
	return nil
}

var errUnknownKey = &puntuale.Error{Code: puntuale.CodeUnauthorized, Message: "the key is unknown or no longer valid"}

// A client's key, the usual one, costs one query.
const (
	validKey  = ` k.hash = $1 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $2)`
	clientKey = `select k.id, k.partner_id, ` + clientColumns + ` from api_key k
 join client c on c.id = k.client_id and c.partner_id = k.partner_id and c.deleted_at = 0 where` + validKey
	partnerKey = `select k.id, k.partner_id from api_key k where k.client_id = 0 and` + validKey
)

func (s *Store) Principal(ctx context.Context, hash puntuale.KeyHash, now time.Time) (puntuale.Principal, error) {
	p := puntuale.Principal{Side: puntuale.ClientSide}
	args := []any{hash[:], micros(now)}
	found, err := one(ctx, s.read, clientKey, args, append([]any{&p.Key, &p.Partner}, clientFields(&p.Client)...)...)
	if err == nil && !found {
		p = puntuale.Principal{Side: puntuale.PartnerSide}
		found, err = one(ctx, s.read, partnerKey, args, &p.Key, &p.Partner)
	}
	switch {
	case err != nil:
		return puntuale.Principal{}, outward(fmt.Errorf("look for a key: %w", err))
	case !found:
		return puntuale.Principal{}, errUnknownKey
	}
	return p, nil
}

// RotateKey answers unauthorized for a key that is not valid at now.
func (s *Store) RotateKey(ctx context.Context, hash puntuale.KeyHash, next puntuale.Key, graceEnds, now time.Time) error {
	return s.tenants[0].perform(ctx, single(s.kinds.write, func(ctx context.Context, a asker) error {
		var p puntuale.PartnerID
		var c puntuale.ClientID
		found, err := one(ctx, a, `update api_key set expires_at = case when expires_at = 0 or expires_at > $2 then $2::bigint
 else expires_at end where hash = $1 and revoked_at = 0 and (expires_at = 0 or expires_at > $3)
 returning partner_id, client_id`, []any{hash[:], micros(graceEnds), micros(now)}, &p, &c)
		switch {
		case err != nil:
			return fmt.Errorf("rotate a key: %w", err)
		case !found:
			return errUnknownKey
		}
		return insertKey(ctx, a, p, c, next)
	}), false)
}
