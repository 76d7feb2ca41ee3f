package store

import (
	"context"
	"errors"
	"slices"

	"puntuale/internal/store/engine"
)

func (s *start) key() engine.KeyRef { return engine.KeyRefOf(int64(s.client), s.Idempotency) }

func keysOf(tasks []*engine.Task) []engine.KeyRef {
	return engine.Column(tasks, func(t **engine.Task) engine.KeyRef { return (*t).Body.(*start).key() })
}

// takeKeys stores the calls' idempotency keys. A call whose key already existed gets the stored answer. If several
// calls of a batch have the same key, the first call continues. The other calls run in a later batch and find the first
// call's answer.
func (b *startBatch) takeKeys(ctx context.Context) error {
	twins := map[engine.KeyRef]*engine.Task{}
	for t, st := range b.live {
		if st.Idempotency == nil {
			continue
		}
		if k := st.key(); twins[k] != nil {
			t.Later = true
		} else {
			twins[k] = t
			b.keyed = append(b.keyed, t)
		}
	}
	if len(b.keyed) == 0 {
		return nil
	}
	slices.SortFunc(b.keyed, func(x, y *engine.Task) int { return x.Body.(*start).key().Compare(y.Body.(*start).key()) })
	taken, err := engine.TakeKeys(ctx, b.a, engine.Micros(b.keyed[0].Body.(*start).Now), keysOf(b.keyed),
		engine.Column(b.keyed, func(t **engine.Task) string { return (*t).Body.(*start).Idempotency.Hash }))
	if err != nil {
		return err
	}
	var old []*engine.Task
	for _, t := range b.keyed {
		if !taken[t.Body.(*start).key()] {
			old = append(old, t)
		}
	}
	b.keyed = slices.DeleteFunc(b.keyed, func(t *engine.Task) bool { return slices.Contains(old, t) })
	return b.replay(ctx, old)
}

// replay gives calls the answers that are stored under their keys.
func (b *startBatch) replay(ctx context.Context, old []*engine.Task) error {
	if len(old) == 0 {
		return nil
	}
	found, err := engine.FindAnswers(ctx, b.a, keysOf(old))
	if err != nil {
		return err
	}
	for _, t := range old {
		st := t.Body.(*start)
		kept, ok := found[st.key()]
		if !ok {
			t.Later = true // when takeKeys ran, another call held this key; that call was refused and freed the key, so try again
			continue
		}
		answer, err := kept.AnswerTo(st.Idempotency)
		if errors.Is(err, engine.ErrOtherBody) {
			t.Refused = err
			continue
		}
		if err != nil {
			return err
		}
		st.storedAnswer = answer
	}
	return nil
}

// keepAnswers stores the answers under the calls' keys. It deletes the keys of refused and postponed calls.
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
		if err := engine.DropKeys(ctx, b.a, keysOf(let)); err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	answers := make([][]byte, len(kept))
	for i, t := range kept {
		st := t.Body.(*start)
		var err error
		if answers[i], err = engine.MakeAnswer(st.Idempotency, st.answer); err != nil {
			return err
		}
	}
	return engine.KeepAnswers(ctx, b.a, keysOf(kept), answers)
}
