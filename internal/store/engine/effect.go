package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"puntuale"
)

// Effect is a transaction on its way through a writer whose effect a repeated call must not have again.
type Effect struct {
	Owner int64 // a client, or the negative of a partner
	Once  *puntuale.Once
	At    int64 // microseconds

	answer []byte // of the last run

	Wants int   // identifiers of messages
	First int64 // the first of them
}

// NewEffect is a kind of tasks that are transactions by themselves. An effect among them can be found again after its
// connection was lost during COMMIT.
func NewEffect(name string) *Kind {
	k := NewSingle(name, PriorityCall)
	k.Prepare, k.Check = prepareEffect, checkEffect
	return k
}

func prepareEffect(ctx context.Context, w *Writer, tasks []*Task) error {
	e, ok := tasks[0].Body.(*Effect)
	if !ok || e.Wants == 0 {
		return nil
	}
	if err := w.Stock(ctx, e.Wants); err != nil {
		return err
	}
	e.First = w.IDs.Take(e.Wants)
	return nil
}

// Once runs a transaction of an owner under the key of o, which may be nil. do returns what Answer is to get.
func (s *DB) Once(ctx context.Context, owner int64, o *puntuale.Once, do func(ctx context.Context, a Querier) (any, error)) error {
	e := &Effect{Owner: owner, Once: o, At: Micros(s.Config.Clock.Now())}
	return e.Do(ctx, s.TenantWriter(owner), s.Writes, do)
}

// Do runs a transaction of a kind that [NewEffect] made.
func (e *Effect) Do(ctx context.Context, w *Writer, k *Kind, do func(ctx context.Context, a Querier) (any, error)) error {
	t := Single(k, func(ctx context.Context, a Querier) error { return e.run(ctx, a, do) })
	t.Body, t.Owner = e, e.Owner
	err := w.Do(ctx, t, false)
	if r, ok := errors.AsType[*puntuale.Replayed](err); ok {
		return r
	}
	return err
}

// run takes the key, which comes before all other locks, and keeps the answer beside it.
func (e *Effect) run(ctx context.Context, a Querier, do func(ctx context.Context, a Querier) (any, error)) error {
	e.answer = nil
	if e.Once == nil {
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
	if e.Once.Answer != nil {
		if e.answer, err = e.Once.Answer(result); err != nil {
			return fmt.Errorf("make the answer to keep: %w", err)
		}
	}
	if _, err := a.Exec(ctx, `update idempotency set result = $4 where client_id = $1 and scope = $2 and key = $3`,
		e.Owner, e.Once.Scope, e.Once.Key, append([]byte{}, e.answer...)); err != nil {
		return fmt.Errorf("keep the answer: %w", err)
	}
	return nil
}

// take writes the key and reports whether it was free. It waits for a twin that has not yet committed.
func (e *Effect) take(ctx context.Context, a Querier) (bool, error) {
	n, err := a.Exec(ctx, `insert into idempotency (client_id, scope, key, hash, at) values ($1, $2, $3, $4, $5)
 on conflict (client_id, scope, key) do nothing`, e.Owner, e.Once.Scope, e.Once.Key, e.Once.Hash, e.At)
	if err != nil {
		return false, fmt.Errorf("insert an idempotency key: %w", OnKey(err))
	}
	return n > 0, nil
}

func (e *Effect) replay(ctx context.Context, a Querier) error {
	answer, err := KeptAnswer(ctx, a, e.Owner, *e.Once)
	switch {
	case err != nil:
		return err
	case answer == nil:
		return fmt.Errorf("an idempotency key went away: %w", ErrAgain)
	}
	return &puntuale.Replayed{Answer: answer}
}

// KeptAnswer is the answer kept under a key, nil when there is none.
func KeptAnswer(ctx context.Context, a Querier, owner int64, o puntuale.Once) ([]byte, error) {
	var hash string
	var answer []byte
	found, err := QueryOne(ctx, a, `select hash, result from idempotency where client_id = $1 and scope = $2 and key = $3`,
		[]any{owner, o.Scope, o.Key}, &hash, &answer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read an idempotency record: %w", err)
	case !found:
		return nil, nil
	case hash != o.Hash:
		return nil, ErrOtherBody
	case answer == nil:
		return []byte{}, nil
	}
	return answer, nil
}

// checkEffect tells, after a connection was lost during COMMIT, whether the effect is on disk: then its answer stands
// under its key. Writing the key waits for a commit still under way.
func checkEffect(ctx context.Context, w *Writer, tasks []*Task) (bool, error) {
	e, ok := tasks[0].Body.(*Effect)
	if !ok || e.Once == nil {
		return false, errors.New("no key tells whether it was stored")
	}
	if err := w.Conn.Begin(ctx); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	free, err := e.take(ctx, &w.Conn)
	if err := errors.Join(err, w.Conn.Rollback(ctx)); err != nil || free {
		return false, err
	}
	answer, err := KeptAnswer(ctx, &w.Conn, e.Owner, *e.Once)
	return err == nil && answer != nil && bytes.Equal(answer, e.answer), nil
}

const faultOtherBody puntuale.ReasonCode = "fault.other_body"

// ErrOtherBody refuses a key that was used for something else.
var ErrOtherBody = puntuale.Conflict(faultOtherBody)

// Write runs a transaction of an owner: a client, the negative of a partner, or 0 for nobody outside.
func (s *DB) Write(ctx context.Context, owner int64, do func(ctx context.Context, a Querier) error) error {
	return s.TenantWriter(owner).Do(ctx, Single(s.Writes, do).Of(owner), false)
}

// WriteDated is Write for rows that are read in the order of the moments that they bear.
func (s *DB) WriteDated(ctx context.Context, owner int64, do func(ctx context.Context, a Querier) error) error {
	return s.TenantWriter(owner).Do(ctx, SingleDated(s.Writes, do).Of(owner), false)
}
