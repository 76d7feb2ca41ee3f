package engine

import (
	"cmp"
	"context"
	"fmt"

	"puntuale"
)

// KeyRef is the primary key of an idempotency record.
type KeyRef struct {
	Owner      int64 // id of a client, or the negative id of a partner
	Scope, Key string
}

// Compare defines the order in which transactions lock records.
func (k KeyRef) Compare(o KeyRef) int {
	return cmp.Or(cmp.Compare(k.Owner, o.Owner), cmp.Compare(k.Scope, o.Scope), cmp.Compare(k.Key, o.Key))
}

// KeyRefOf returns the primary key of the idempotency record of an owner's call.
func KeyRefOf(owner int64, o *puntuale.Idempotency) KeyRef { return KeyRef{owner, o.Scope, o.Key} }

// KeptAnswer is the answer that is stored under an idempotency key.
type KeptAnswer struct {
	hash   string
	answer []byte
}

// AnswerTo returns the answer for a repeat of the call. If the repeat has a different body, AnswerTo returns
// [ErrOtherBody].
func (k KeptAnswer) AnswerTo(o *puntuale.Idempotency) ([]byte, error) {
	switch {
	case k.hash != o.Hash:
		return nil, ErrOtherBody
	case k.answer == nil:
		return []byte{}, nil
	}
	return k.answer, nil
}

const faultOtherBody puntuale.ReasonCode = "fault.other_body"

// ErrOtherBody is the error for a call whose idempotency key was used before with a different body.
var ErrOtherBody = puntuale.Conflict(faultOtherBody)

// FindAnswer returns the answer that is stored for a call of the owner, or nil if there is none.
func FindAnswer(ctx context.Context, a Querier, owner int64, o *puntuale.Idempotency) ([]byte, error) {
	var kept KeptAnswer
	found, err := QueryOne(ctx, a, `select hash, result from idempotency where client_id = $1 and scope = $2 and key = $3`,
		[]any{owner, o.Scope, o.Key}, &kept.hash, &kept.answer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read an idempotency record: %w", err)
	case !found:
		return nil, nil
	}
	return kept.AnswerTo(o)
}

// insertKeys takes keys in sorted order. If another transaction has written one of the keys and has not committed yet,
// the statement waits. It returns only the keys that it inserted.
const insertKeys = `
insert into idempotency (client_id, scope, key, hash, at)
select u.c, u.s, u.k, u.h, $1::bigint from $u(c bigint, s text, k text, h text) where true
on conflict (client_id, scope, key) do nothing returning client_id, scope, key`

// TakeKeys stores keys with the hashes of their calls. keys must be sorted. It returns the keys that were free. If
// another transaction has written one of the keys and has not committed yet, TakeKeys waits.
func TakeKeys(ctx context.Context, a Querier, at int64, keys []KeyRef, hashes []string) (map[KeyRef]bool, error) {
	taken := map[KeyRef]bool{}
	err := a.Query(ctx, insertKeys, []any{at, append(keyColumns(keys), hashes)}, func(rows Row) error {
		var k KeyRef
		if err := rows.Scan(&k.Owner, &k.Scope, &k.Key); err != nil {
			return err
		}
		taken[k] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("insert idempotency keys: %w", OnKey(err))
	}
	return taken, nil
}

// FindAnswers reads the answers that are stored under the keys. The result leaves out missing keys.
func FindAnswers(ctx context.Context, a Querier, keys []KeyRef) (map[KeyRef]KeptAnswer, error) {
	found := map[KeyRef]KeptAnswer{}
	err := a.Query(ctx, `
select i.client_id, i.scope, i.key, i.hash, i.result
from $u(c bigint, s text, k text) join idempotency i on i.client_id = u.c and i.scope = u.s and i.key = u.k`, []any{keyColumns(keys)}, func(rows Row) error {
		var k KeyRef
		var kept KeptAnswer
		err := rows.Scan(&k.Owner, &k.Scope, &k.Key, &kept.hash, &kept.answer)
		found[k] = kept
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read idempotency keys: %w", err)
	}
	return found, nil
}

// MakeAnswer makes the answer to store from the result of a call. It never returns nil without an error.
func MakeAnswer(o *puntuale.Idempotency, result any) ([]byte, error) {
	if o.Answer == nil {
		return []byte{}, nil
	}
	answer, err := o.Answer(result)
	if err != nil {
		return nil, fmt.Errorf("make the answer to keep: %w", err)
	}
	return append([]byte{}, answer...), nil
}

// KeepAnswers stores answers under their keys. The statement is sent together with the next statement, or with the
// commit.
func KeepAnswers(ctx context.Context, a Querier, keys []KeyRef, answers [][]byte) error {
	if err := a.Queue(ctx, `update idempotency set result = u.r from $u(c bigint, s text, k text, r bytea)
 where idempotency.client_id = u.c and idempotency.scope = u.s and idempotency.key = u.k`, []any{append(keyColumns(keys), answers)}, nil); err != nil {
		return fmt.Errorf("keep answers: %w", err)
	}
	return nil
}

// DropKeys deletes the keys of calls that got no answer.
func DropKeys(ctx context.Context, a Querier, keys []KeyRef) error {
	if _, err := a.Exec(ctx, `delete from idempotency where (client_id, scope, key) in
 (select u.c, u.s, u.k from $u(c bigint, s text, k text))`, keyColumns(keys)); err != nil {
		return fmt.Errorf("let go of idempotency keys: %w", err)
	}
	return nil
}

func keyColumns(keys []KeyRef) Columns {
	return Columns{
		Column(keys, func(k *KeyRef) int64 { return k.Owner }),
		Column(keys, func(k *KeyRef) string { return k.Scope }),
		Column(keys, func(k *KeyRef) string { return k.Key }),
	}
}
