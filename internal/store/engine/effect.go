package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"puntuale"
)

// Effect is a transaction that takes effect only once, even if its call is repeated with the same key.
type Effect struct {
	Owner int64 // id of a client, or the negative id of a partner
	Key   *puntuale.Idempotency
	At    int64 // microseconds of the Unix epoch

	answer []byte // answer of the latest execution; sent to the caller

	IDsNeeded int   // how many message identifiers the transaction needs
	First     int64 // first of these message identifiers
}

// NewEffect returns a task kind in which each task is its own transaction. If the connection is lost during COMMIT, the
// writer can find out whether the effect is on disk.
func NewEffect(name string) *Kind {
	k := NewSingle(name, PriorityCall)
	k.Prepare, k.Check = prepareEffect, checkEffect
	return k
}

func prepareEffect(ctx context.Context, w *Writer, tasks []*Task) error {
	e, ok := tasks[0].Body.(*Effect)
	if !ok || e.IDsNeeded == 0 {
		return nil
	}
	if err := w.Stock(ctx, e.IDsNeeded); err != nil {
		return err
	}
	e.First = w.IDs.Take(e.IDsNeeded)
	return nil
}

// Once runs the function do in a transaction of an owner. o is the call's idempotency key, or nil. do returns the
// result from which o.Answer makes the answer.
func (s *DB) Once(ctx context.Context, owner int64, o *puntuale.Idempotency, do func(ctx context.Context, a Querier) (any, error)) error {
	e := &Effect{Owner: owner, Key: o, At: Micros(s.Config.Clock.Now())}
	return e.Do(ctx, s.TenantWriter(owner), s.Writes, do)
}

// Do runs a transaction. Its task kind k must come from [NewEffect].
func (e *Effect) Do(ctx context.Context, w *Writer, k *Kind, do func(ctx context.Context, a Querier) (any, error)) error {
	t := Single(k, func(ctx context.Context, a Querier) error { return e.run(ctx, a, do) })
	t.Body, t.Owner = e, e.Owner
	err := w.Do(ctx, t, false)
	if r, ok := errors.AsType[*puntuale.Replayed](err); ok {
		return r
	}
	return err
}

// run takes the idempotency key before all other locks. At the end it stores the answer under this key.
func (e *Effect) run(ctx context.Context, a Querier, do func(ctx context.Context, a Querier) (any, error)) error {
	e.answer = nil
	if e.Key == nil {
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
	if e.answer, err = MakeAnswer(e.Key, result); err != nil {
		return err
	}
	return KeepAnswers(ctx, a, []KeyRef{KeyRefOf(e.Owner, e.Key)}, [][]byte{e.answer})
}

// take writes the idempotency key, and reports whether the key was free. If another transaction has written the key but
// not committed, take waits.
func (e *Effect) take(ctx context.Context, a Querier) (bool, error) {
	key := KeyRefOf(e.Owner, e.Key)
	taken, err := TakeKeys(ctx, a, e.At, []KeyRef{key}, []string{e.Key.Hash})
	return taken[key], err
}

func (e *Effect) replay(ctx context.Context, a Querier) error {
	answer, err := FindAnswer(ctx, a, e.Owner, e.Key)
	switch {
	case err != nil:
		return err
	case answer == nil:
		return fmt.Errorf("an idempotency key went away: %w", ErrAgain)
	}
	return &puntuale.Replayed{Answer: answer}
}

// checkEffect finds out whether the effect is on disk, after the connection was lost during COMMIT. The effect is on
// disk if an answer is stored under its key. checkEffect first writes the key again, because this write waits for a
// commit that is still running.
func checkEffect(ctx context.Context, w *Writer, tasks []*Task) (bool, error) {
	e, ok := tasks[0].Body.(*Effect)
	if !ok || e.Key == nil {
		return false, errors.New("no key tells whether it was stored")
	}
	if err := w.Conn.Begin(ctx); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	free, err := e.take(ctx, &w.Conn)
	if err := errors.Join(err, w.Conn.Rollback(ctx)); err != nil || free {
		return false, err
	}
	answer, err := FindAnswer(ctx, &w.Conn, e.Owner, e.Key)
	return err == nil && answer != nil && bytes.Equal(answer, e.answer), nil
}

// Write runs the function do in a transaction of an owner: a client, the negative id of a partner, or 0 for the service
// itself.
func (s *DB) Write(ctx context.Context, owner int64, do func(ctx context.Context, a Querier) error) error {
	return s.TenantWriter(owner).Do(ctx, Single(s.Writes, do).ForOwner(owner), false)
}

// WriteTimestamped does the same as Write, for rows that readers list in the order of their timestamps.
func (s *DB) WriteTimestamped(ctx context.Context, owner int64, do func(ctx context.Context, a Querier) error) error {
	return s.TenantWriter(owner).Do(ctx, SingleTimestamped(s.Writes, do).ForOwner(owner), false)
}
