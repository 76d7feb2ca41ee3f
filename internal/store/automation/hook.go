package automation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

const hookColumns = `a.client_id, a.id, a.active, a.trigger_text, a.sealed, a.payload, a.payload_form, a.payload_at`

func readHook(ctx context.Context, from engine.Querier, condition string, args ...any) (h puntuale.Hook, err error) {
	var t puntuale.Trigger
	found, err := engine.QueryOne(ctx, from, `select `+hookColumns+` from automation a where `+condition, args, &h.Client, &h.Automation, engine.ScanBool(&h.Active),
		engine.ScanJSON(&t), &h.Sealed, &h.Payload, engine.ScanBool(&h.Form), engine.ScanTime(&h.PayloadAt))
	h.Map, h.Preset = t.Map, t.Preset
	return h, engine.FoundOr(found, err, puntuale.NoAutomation)
}

func (s RuleStore) Hook(ctx context.Context, id puntuale.AutomationID) (puntuale.Hook, error) {
	return readHook(ctx, s.db.CallReads, `a.client_id = $1 and a.id = $2 and a.secret <> ''`, s.client, id)
}

// SetHookSecret changes a hook's secret. The old address stops working immediately.
func (s RuleStore) SetHookSecret(ctx context.Context, id puntuale.AutomationID, secret puntuale.HookSecret) error {
	return s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update automation set secret = $3, sealed = $4 where client_id = $1 and id = $2 and secret <> ''`, s.client, id, hex.EncodeToString(secret.Hash[:]), secret.Sealed)
		return engine.ThereOr(n > 0, err, puntuale.NoAutomation)
	})
}

// HookOf finds a hook by the hash of its secret. It need not take constant time, because it compares only hashes.
func (s *Rules) HookOf(ctx context.Context, hash puntuale.KeyHash) (puntuale.Hook, error) {
	return readHook(ctx, s.db.CallReads, `a.secret = $1 and a.secret <> '' and exists (select 1 from client c where c.id = a.client_id and c.deleted_at = 0)`,
		hex.EncodeToString(hash[:]))
}

// hookOccurrence returns the occurrence of a hook's call. It contains the time of the call, because a key counts as new again after
// [puntuale.HookRepeat]. Until then, a second occurrence row, which has no phone, prevents repeats of the call.
func hookOccurrence(key string, at int64) string { return fmt.Sprintf("hook:%s@%d", key, at) }

func (s *Rules) CallHook(ctx context.Context, client puntuale.ClientID, c puntuale.HookCall) (fresh bool, err error) {
	fields, err := engine.ToJSON(c.Fields)
	if err != nil {
		return false, err
	}
	at := engine.Micros(c.At)
	sum := sha256.Sum256([]byte(c.Key))
	hashed := hex.EncodeToString(sum[:]) // for rows without a phone: a key may contain a person's data, which an erasure could not find there
	occurrence := hookOccurrence(c.Key, at)
	if c.Phone == "" {
		occurrence = hookOccurrence(hashed, at)
	}
	err = s.db.Write(ctx, int64(client), func(ctx context.Context, a engine.Querier) error {
		var active bool
		found, err := engine.QueryOne(ctx, a, `update automation set payload = $3, payload_form = $4, payload_phone = $5, payload_at = $6 where client_id = $1 and id = $2 and secret <> ''
 returning active`, []any{client, c.Automation, c.Payload, engine.Bit(c.Form), c.Phone, at}, engine.ScanBool(&active))
		if err := engine.ThereOr(found, err, puntuale.NoAutomation); err != nil {
			return err
		}
		if fresh = true; !active {
			return nil // the key is not stored, so the caller may repeat the call when the rule is on
		}
		until := engine.Micros(c.At.Add(puntuale.HookRepeat))
		n, err := a.Exec(ctx, `insert into automation_occurrence as o (client_id, rule_id, phone, occurrence, keep_until) values ($1, $2, '', $3, $4)
 on conflict (client_id, rule_id, phone, occurrence) do update set keep_until = excluded.keep_until where o.keep_until <= $5::bigint`,
			client, c.Automation, "call:"+hashed, until, at)
		if err != nil {
			return fmt.Errorf("note a hook's call: %w", err)
		}
		if fresh = n > 0; !fresh {
			return nil
		}
		_, err = a.Exec(ctx, `insert into automation_trigger (client_id, kind, subject, phone, detail, occurrence, at, next_at)
 select w.client_id, $2::smallint, $3::bigint, $4::text, $5::text, $6::text, $7::bigint, $7::bigint from automation_client w where w.client_id = $1
 and w.wanted & (1::bigint << $2::integer) <> 0`, client, int64(puntuale.FactHook), c.Automation, c.Phone, fields, occurrence, at)
		if err != nil {
			return fmt.Errorf("write a trigger: %w", err)
		}
		return nil
	})
	return fresh, err
}
