package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"puntuale/internal/store/engine"

	"puntuale"
)

// effect is a transaction on its way through a writer whose effect a repeated call must not have again.
type effect struct {
	owner int64 // a client, or the negative of a partner
	once  *puntuale.Once
	at    int64

	answer []byte // of the last run

	wants int   // identifiers of messages
	first int64 // the first of them
}

// newEffect is a kind of tasks that are transactions by themselves. An effect among them can be found again after its
// connection was lost during COMMIT.
func newEffect(name string) *engine.Kind {
	k := engine.NewSingle(name, engine.PriorityCall)
	k.Prepare, k.Check = prepareEffect, checkEffect
	return k
}

func prepareEffect(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
	e, ok := tasks[0].Body.(*effect)
	if !ok || e.wants == 0 {
		return nil
	}
	if err := w.Stock(ctx, e.wants); err != nil {
		return err
	}
	e.first = w.Ids.Take(e.wants)
	return nil
}

// once runs a transaction under the key of o, which may be nil. do returns what Answer is to get.
func (s *Store) once(ctx context.Context, w *engine.Writer, owner int64, o *puntuale.Once, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	e := &effect{owner: owner, once: o, at: engine.Micros(s.Config.Clock.Now())}
	return e.perform(ctx, w, s.kinds.write, do)
}

func (e *effect) perform(ctx context.Context, w *engine.Writer, k *engine.Kind, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	t := engine.Single(k, func(ctx context.Context, a engine.Querier) error { return e.run(ctx, a, do) })
	t.Body, t.Owner = e, e.owner
	err := w.Do(ctx, t, false)
	if r, ok := errors.AsType[*puntuale.Replayed](err); ok {
		return r
	}
	return err
}

// run takes the key, which comes before all other locks, and keeps the answer beside it.
func (e *effect) run(ctx context.Context, a engine.Querier, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	e.answer = nil
	if e.once == nil {
		_, err := do(ctx, a)
		return err
	}
	taken, err := e.take(ctx, a)
	if err != nil {
		return err
	}
	if !taken {
		return e.replay(ctx, a)
	}
	result, err := do(ctx, a)
	if err != nil {
		return err
	}
	if e.once.Answer != nil {
		if e.answer, err = e.once.Answer(result); err != nil {
			return fmt.Errorf("make the answer to keep: %w", err)
		}
	}
	if _, err := a.Exec(ctx, `update idempotency set result = $4 where client_id = $1 and scope = $2 and key = $3`,
		e.owner, e.once.Scope, e.once.Key, append([]byte{}, e.answer...)); err != nil {
		return fmt.Errorf("keep the answer: %w", err)
	}
	return nil
}

// take writes the key and reports whether it was free. It waits for a twin that has not yet committed.
func (e *effect) take(ctx context.Context, a engine.Querier) (bool, error) {
	n, err := a.Exec(ctx, `insert into idempotency (client_id, scope, key, hash, at) values ($1, $2, $3, $4, $5)
 on conflict (client_id, scope, key) do nothing`, e.owner, e.once.Scope, e.once.Key, e.once.Hash, e.at)
	if err != nil {
		return false, fmt.Errorf("insert an idempotency key: %w", engine.OnKey(err))
	}
	return n > 0, nil
}

func (e *effect) replay(ctx context.Context, a engine.Querier) error {
	answer, err := keptAnswer(ctx, a, e.owner, *e.once)
	switch {
	case err != nil:
		return err
	case answer == nil:
		return fmt.Errorf("an idempotency key went away: %w", engine.ErrAgain)
	}
	return &puntuale.Replayed{Answer: answer}
}

// keptAnswer is the answer kept under a key, nil when there is none.
func keptAnswer(ctx context.Context, a engine.Querier, owner int64, o puntuale.Once) ([]byte, error) {
	var hash string
	var answer []byte
	found, err := engine.QueryOne(ctx, a, `select hash, result from idempotency where client_id = $1 and scope = $2 and key = $3`,
		[]any{owner, o.Scope, o.Key}, &hash, &answer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read an idempotency record: %w", err)
	case !found:
		return nil, nil
	case hash != o.Hash:
		return nil, errOtherBody
	case answer == nil:
		return []byte{}, nil
	}
	return answer, nil
}

// checkEffect tells, after a connection was lost during COMMIT, whether the effect is on disk: then its answer stands
// under its key. Writing the key waits for a commit still under way.
func checkEffect(ctx context.Context, w *engine.Writer, tasks []*engine.Task) (bool, error) {
	e, ok := tasks[0].Body.(*effect)
	if !ok || e.once == nil {
		return false, errors.New("no key tells whether it was stored")
	}
	if err := w.Conn.Begin(ctx); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	free, err := e.take(ctx, &w.Conn)
	if err := errors.Join(err, w.Conn.Rollback(ctx)); err != nil || free {
		return false, err
	}
	answer, err := keptAnswer(ctx, &w.Conn, e.owner, *e.once)
	return err == nil && answer != nil && bytes.Equal(answer, e.answer), nil
}

func (t tenant) Kept(ctx context.Context, o puntuale.Once) ([]byte, error) {
	answer, err := keptAnswer(ctx, t.s.CallReads, int64(t.id), o)
	return answer, engine.PublicError(err)
}

func (p partnerTenant) Kept(ctx context.Context, o puntuale.Once) ([]byte, error) {
	answer, err := keptAnswer(ctx, p.s.CallReads, p.owner(), o)
	return answer, engine.PublicError(err)
}

// owner keeps a partner's idempotency keys apart from those of clients.
func (p partnerTenant) owner() int64 { return -int64(p.id) }
