package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// keyOf names an idempotency record.
type keyOf struct {
	client     puntuale.ClientID
	scope, key string
}

func (s *start) keyOf() keyOf { return keyOf{s.client, s.Idempotency.Scope, s.Idempotency.Key} }

func (k keyOf) compare(o keyOf) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.scope, o.scope), cmp.Compare(k.key, o.key))
}

func (t tenant) Replay(ctx context.Context, key puntuale.Idempotency) (*puntuale.StartedRun, error) {
	var hash string
	var result []byte
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select hash, result from idempotency where client_id = $1 and scope = $2 and key = $3`,
		[]any{t.id, key.Scope, key.Key}, &hash, &result)
	switch {
	case err != nil:
		return nil, engine.PublicError(fmt.Errorf("read an idempotency record: %w", err))
	case !found:
		return nil, nil
	}
	answer, err := replayed(hash, result, key.Hash)
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// replayed is the answer kept under a key, for a call whose body has the hash.
func replayed(hash string, result []byte, asked string) (answer puntuale.StartedRun, err error) {
	if hash != asked {
		return answer, engine.ErrOtherBody
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return answer, fmt.Errorf("read a kept answer: %w", err)
	}
	answer.Replayed = true
	return answer, nil
}

// A key that another transaction has written and not yet committed makes this wait, in the order of keys. The rows
// that come back are ours.
const insertKeys = `
insert into idempotency (client_id, scope, key, hash, at)
select u.c, u.s, u.k, u.h, $1::bigint from $u(c bigint, s text, k text, h text) where true
on conflict (client_id, scope, key) do nothing returning client_id, scope, key`

const readKeys = `
select i.client_id, i.scope, i.key, i.hash, i.result
from $u(c bigint, s text, k text) join idempotency i on i.client_id = u.c and i.scope = u.s and i.key = u.k`

// takeKeys writes the calls' idempotency keys, and answers the calls whose keys were there. Of twins in one batch the
// first goes on; the others come again and find what became of it.
func (b *startBatch) takeKeys(ctx context.Context) error {
	twins := map[keyOf]*engine.Task{}
	for t, st := range b.live {
		if st.Idempotency == nil {
			continue
		}
		if k := st.keyOf(); twins[k] != nil {
			t.Later = true
		} else {
			twins[k] = t
			b.keyed = append(b.keyed, t)
		}
	}
	if len(b.keyed) == 0 {
		return nil
	}
	slices.SortFunc(b.keyed, func(x, y *engine.Task) int { return x.Body.(*start).keyOf().compare(y.Body.(*start).keyOf()) })
	taken := map[keyOf]bool{}
	now := engine.Micros(b.keyed[0].Body.(*start).Now)
	err := b.a.Query(ctx, insertKeys, []any{now, append(keyColumns(b.keyed),
		engine.Column(b.keyed, func(t **engine.Task) string { return (*t).Body.(*start).Idempotency.Hash }))},
		func(rows engine.Row) error {
			var k keyOf
			if err := rows.Scan(&k.client, &k.scope, &k.key); err != nil {
				return err
			}
			taken[k] = true
			return nil
		})
	if err != nil {
		return fmt.Errorf("insert idempotency keys: %w", engine.OnKey(err))
	}
	var old []*engine.Task
	for _, t := range b.keyed {
		if !taken[t.Body.(*start).keyOf()] {
			old = append(old, t)
		}
	}
	b.keyed = slices.DeleteFunc(b.keyed, func(t *engine.Task) bool { return slices.Contains(old, t) })
	return b.replay(ctx, old, twins)
}

func (b *startBatch) replay(ctx context.Context, old []*engine.Task, byKey map[keyOf]*engine.Task) error {
	if len(old) == 0 {
		return nil
	}
	err := b.a.Query(ctx, readKeys, []any{keyColumns(old)}, func(rows engine.Row) error {
		var k keyOf
		var hash string
		var result []byte
		if err := rows.Scan(&k.client, &k.scope, &k.key, &hash, &result); err != nil {
			return err
		}
		t := byKey[k]
		st := t.Body.(*start)
		answer, err := replayed(hash, result, st.Idempotency.Hash)
		if errors.Is(err, engine.ErrOtherBody) {
			t.Refused = err
			return nil
		}
		st.answer = answer
		return err
	})
	if err != nil {
		return fmt.Errorf("read idempotency keys: %w", err)
	}
	for _, t := range old {
		if t.Refused == nil && !t.Body.(*start).answer.Replayed {
			t.Later = true // it was there and is gone again: its call was refused
		}
	}
	return nil
}

// keepAnswers writes the answers beside their keys, and lets go of the keys of calls that got none.
func (b *startBatch) keepAnswers(ctx context.Context) error {
	var kept, let []*engine.Task
	for _, t := range b.keyed {
		if t.Refused == nil && !t.Later {
			kept = append(kept, t)
		} else {
			let = append(let, t)
		}
	}
	if len(let) > 0 {
		if _, err := b.a.Exec(ctx, `delete from idempotency where (client_id, scope, key) in
 (select u.c, u.s, u.k from $u(c bigint, s text, k text))`, keyColumns(let)); err != nil {
			return fmt.Errorf("let go of idempotency keys: %w", err)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	answers := make([][]byte, len(kept))
	for i, t := range kept {
		answer, err := engine.ToJSON(t.Body.(*start).answer)
		if err != nil {
			return err
		}
		answers[i] = []byte(answer)
	}
	if err := b.a.Queue(ctx, `update idempotency set result = u.r from $u(c bigint, s text, k text, r bytea)
 where idempotency.client_id = u.c and idempotency.scope = u.s and idempotency.key = u.k`,
		[]any{append(keyColumns(kept), answers)}, nil); err != nil {
		return fmt.Errorf("keep answers: %w", err)
	}
	return nil
}

func keyColumns(tasks []*engine.Task) engine.Columns {
	key := func(t **engine.Task) *puntuale.Idempotency { return (*t).Body.(*start).Idempotency }
	return engine.Columns{
		engine.Column(tasks, func(t **engine.Task) int64 { return int64((*t).Body.(*start).client) }),
		engine.Column(tasks, func(t **engine.Task) string { return key(t).Scope }),
		engine.Column(tasks, func(t **engine.Task) string { return key(t).Key }),
	}
}
