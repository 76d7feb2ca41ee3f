package account

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
)

// Codes of the faults that functions in this file return.
const (
	faultKeyExists  puntuale.ReasonCode = "key.exists"
	faultKeyTooMany puntuale.ReasonCode = "key.too_many"
	faultKeyUnknown puntuale.ReasonCode = "key.unknown"
)

func insertKey(ctx context.Context, a engine.Querier, p puntuale.PartnerID, c puntuale.ClientID, k puntuale.Key) (puntuale.KeyID, error) {
	id, err := engine.NextNumber(ctx, a, "key")
	if err != nil {
		return 0, err
	}
	if _, err := a.Exec(ctx, `insert into api_key (id, partner_id, client_id, name, prefix, hash, created_at, expires_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		id, p, c, k.Name, k.Prefix, k.Hash[:], engine.Micros(k.Created), engine.Micros(k.Expires)); err != nil {
		if engine.Repeated(err) {
			return 0, puntuale.Conflict(faultKeyExists)
		}
		return 0, fmt.Errorf("insert a key: %w", err)
	}
	return puntuale.KeyID(id), nil
}

var errUnknownKey = &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(faultKeyUnknown)}

// clientKey finds a client's key and the client with one query, because most calls use such a key.
const (
	validKey  = ` k.hash = $1 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $2)`
	clientKey = `select k.id, k.partner_id, k.expires_at, k.used_at, ` + ClientColumns + ` from api_key k
 join client c on c.id = k.client_id and c.partner_id = k.partner_id and c.deleted_at = 0 where` + validKey
	partnerKey = `select k.id, k.partner_id, k.expires_at, k.used_at from api_key k where k.client_id = 0 and` + validKey
)

func (s *Accounts) Principal(ctx context.Context, hash puntuale.KeyHash, now time.Time) (puntuale.Principal, error) {
	p := puntuale.Principal{Side: puntuale.ClientSide}
	args := []any{hash[:], engine.Micros(now)}
	found, err := engine.QueryOne(ctx, s.CallReads, clientKey, args, append([]any{&p.Key, &p.Partner, engine.ScanTime(&p.Expires), engine.ScanTime(&p.Used)}, ClientFields(&p.Client)...)...)
	if err == nil && !found {
		p = puntuale.Principal{Side: puntuale.PartnerSide}
		found, err = engine.QueryOne(ctx, s.CallReads, partnerKey, args, &p.Key, &p.Partner, engine.ScanTime(&p.Expires), engine.ScanTime(&p.Used))
	}
	switch {
	case err != nil:
		return puntuale.Principal{}, engine.PublicError(fmt.Errorf("look for a key: %w", err))
	case !found:
		return puntuale.Principal{}, errUnknownKey
	}
	return p, nil
}

// UseKey stores that the key was used at the time now, unless a later use is stored.
func (s *Accounts) UseKey(ctx context.Context, id puntuale.KeyID, now time.Time) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `update api_key set used_at = $2 where id = $1 and used_at < $2`, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("note the use of a key: %w", err)
		}
		return nil
	})
}

// RotateKey returns the code unauthorized if the key is not valid at the time now.
func (s *Accounts) RotateKey(ctx context.Context, hash puntuale.KeyHash, next puntuale.Key, graceEnds, now time.Time) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		p := Partner{s: s}
		var client puntuale.ClientID
		var old puntuale.KeyID
		found, err := engine.QueryOne(ctx, a, `select partner_id, client_id, id from api_key where hash = $1`, []any{hash[:]}, &p.id, &client, &old)
		if err != nil {
			return fmt.Errorf("look for a key: %w", err)
		}
		if found {
			_, err = p.rotate(ctx, a, client, old, next, graceEnds, now)
		}
		if !found || puntuale.CodeOf(err) == puntuale.CodeNotFound {
			return errUnknownKey
		}
		return err
	}), false)
}

// StoredKey returns the hash of a key, and whether it is a partner's or a client's. It is for the operator, who may act for
// every owner. Codes: not_found.
func (s *Accounts) StoredKey(ctx context.Context, id puntuale.KeyID) (hash puntuale.KeyHash, side puntuale.Side, err error) {
	var stored []byte
	var client puntuale.ClientID
	found, err := engine.QueryOne(ctx, s.CallReads, `select hash, client_id from api_key where id = $1`, []any{id}, &stored, &client)
	if err := engine.ThereOr(found, err, puntuale.NoKey); err != nil {
		return hash, side, engine.PublicError(fmt.Errorf("read key %d: %w", id, err))
	}
	copy(hash[:], stored)
	if side = puntuale.ClientSide; client == 0 {
		side = puntuale.PartnerSide
	}
	return hash, side, nil
}

// validOfClient selects all valid keys of one owner, while validKey selects the valid key with one hash. Client 0 means
// the partner itself.
const validOfClient = ` k.partner_id = $1 and k.client_id = $2 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $3)`

// Keys lists the valid keys, sorted by id.
func (p Partner) Keys(ctx context.Context, client puntuale.ClientID, now time.Time) ([]puntuale.Key, error) {
	if err := p.ofClient(ctx, client); err != nil {
		return nil, err
	}
	keys, err := engine.QueryAll(ctx, p.s.CallReads, `select k.id, k.name, k.prefix, k.hash, k.created_at, k.expires_at, k.used_at from api_key k where`+validOfClient+
		` order by k.id`, []any{p.id, client, engine.Micros(now)}, func(rows engine.Row, k *puntuale.Key) error {
		var hash []byte
		err := rows.Scan(&k.ID, &k.Name, &k.Prefix, &hash, engine.ScanTime(&k.Created), engine.ScanTime(&k.Expires), engine.ScanTime(&k.Used))
		copy(k.Hash[:], hash)
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list keys: %w", err))
	}
	return keys, nil
}

// CreateKey stores a new key. The argument o may be nil; its function Answer gets the KeyID.
func (p Partner) CreateKey(ctx context.Context, client puntuale.ClientID, k puntuale.Key, o *puntuale.Idempotency) (id puntuale.KeyID, err error) {
	err = p.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		err := p.lockUsers(ctx, a, client)
		if err != nil {
			return nil, err
		}
		if err := p.checkKeyQuota(ctx, a, client, `k.expires_at = 0`); err != nil {
			return nil, err
		}
		if id, err = insertKey(ctx, a, p.id, client, k); err != nil {
			return nil, err
		}
		return id, p.tellOfKey(ctx, a, client, id, k)
	})
	return id, err
}

// tellOfKey writes a notice about a new key.
func (p Partner) tellOfKey(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.KeyID, k puntuale.Key) error {
	return notice.Add(ctx, a, puntuale.Notice{Partner: p.id, Client: client, Kind: puntuale.NoticeKeyCreated, Subject: int64(id), At: k.Created})
}

// RotateClientKey stores the key next. The key old works until the time graceEnds. The argument o may be nil; its
// function Answer gets the KeyID of the key next.
func (p Partner) RotateClientKey(ctx context.Context, client puntuale.ClientID, old puntuale.KeyID, next puntuale.Key, graceEnds, now time.Time, o *puntuale.Idempotency) (id puntuale.KeyID, err error) {
	err = p.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		var err error
		id, err = p.rotate(ctx, a, client, old, next, graceEnds, now)
		return id, err
	})
	return id, err
}

// rotate replaces a key by a new key. So the number of current keys stays the same. If the old key was already replaced
// before, the number grows by one, and the quota must allow this. Keys in their grace period are counted separately,
// with the same limit.
func (p Partner) rotate(ctx context.Context, a engine.Querier, client puntuale.ClientID, old puntuale.KeyID, next puntuale.Key, graceEnds, now time.Time) (puntuale.KeyID, error) {
	if err := p.lockUsers(ctx, a, client); err != nil {
		return 0, err
	}
	var expires int64
	found, err := engine.QueryOne(ctx, a, `select k.expires_at from api_key k where k.id = $4 and`+validOfClient, []any{p.id, client, engine.Micros(now), old}, &expires)
	if err := engine.ThereOr(found, err, puntuale.NoKey); err != nil {
		return 0, err
	}
	if expires != 0 {
		err = p.checkKeyQuota(ctx, a, client, `k.expires_at = 0`)
	} else if graceEnds.After(now) {
		err = p.checkKeyQuota(ctx, a, client, `k.expires_at > $3`, engine.Micros(now))
	}
	if err != nil {
		return 0, err
	}
	if _, err := a.Exec(ctx, `update api_key set expires_at = case when expires_at = 0 or expires_at > $2 then $2::bigint
 else expires_at end where id = $1`, old, engine.Micros(graceEnds)); err != nil {
		return 0, fmt.Errorf("rotate a key: %w", err)
	}
	id, err := insertKey(ctx, a, p.id, client, next)
	if err != nil {
		return id, err
	}
	if err := p.tellOfKey(ctx, a, client, id, next); err != nil || client == 0 {
		return id, err
	}
	return id, Changed(ctx, a, client)
}

// checkKeyQuota counts the keys that are not revoked and for which the SQL text in condition is true. It returns an
// error if this count has reached the limit. The limit is the client's quota, or [puntuale.MaxPartnerKeys] for the
// partner itself. The caller has locked the owner's row.
func (p Partner) checkKeyQuota(ctx context.Context, a engine.Querier, client puntuale.ClientID, condition string, args ...any) error {
	var count int64
	if _, err := engine.QueryOne(ctx, a, `select count(*) from api_key k where k.partner_id = $1 and k.client_id = $2 and k.revoked_at = 0 and `+condition,
		append([]any{p.id, client}, args...), &count); err != nil {
		return fmt.Errorf("count keys: %w", err)
	}
	if client != 0 {
		return limit(ctx, a, client, puntuale.QuotaKeys, count)
	}
	if count >= puntuale.MaxPartnerKeys {
		return puntuale.Conflict(faultKeyTooMany, strconv.Itoa(puntuale.MaxPartnerKeys))
	}
	return nil
}

func (p Partner) RevokeKey(ctx context.Context, client puntuale.ClientID, id puntuale.KeyID, now time.Time) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, client); err != nil {
			return err
		}
		n, err := a.Exec(ctx, `update api_key as k set revoked_at = $3::bigint where k.id = $4 and`+validOfClient, p.id, client, engine.Micros(now), id)
		if err := engine.ThereOr(n > 0, err, puntuale.NoKey); err != nil || client == 0 {
			return err
		}
		return Changed(ctx, a, client)
	})
}

// LockClient locks a client of the partner, so that nobody can delete the client before this transaction commits.
func (p Partner) LockClient(ctx context.Context, a engine.Querier, id puntuale.ClientID) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where partner_id = $1 and id = $2 and deleted_at = 0 for update`, []any{p.id, id}, &n)
	return engine.ThereOr(found, err, puntuale.NoClient)
}
