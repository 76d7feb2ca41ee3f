package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/outbox"
)

// These statements close an open message as FAILED, or set the time of its next check. The message must still have the
// intent that the caller saw. If an unanswered attempt took a credit, the credit stays spent.
//
// A node of the previous version may have set the intent of a message back to 0, although the message was stopped in
// flight (cancellation.go). Such a message looks expired, and becomes CANCELLED. A message that a campaign holds back
// does not expire.
var (
	FailMessages = `
update message set intent = -1, state = case when message.intent = 0 and message.valid_until < 0 then 3 else 2 end,
 outcome = case when message.intent = 0 and message.valid_until < 0 then 0 else 2 end, done_at = $1::bigint,
 reason = case when message.intent = 0 and message.valid_until < 0 then '' else u.r end, valid_until = abs(message.valid_until),
 detail = case when u.d = '' then message.detail else u.d end,
 next_at = case when message.intent > 0 and message.next_at > message.intent_at then message.intent_at else message.next_at end
from $u(c bigint, i bigint, x bigint, r text, d text)
where message.client_id = u.c and message.id = u.i and message.intent = u.x
 and not (message.campaign_id <> 0 and message.intent = 0 and exists (select 1 from campaign c
 where c.client_id = message.client_id and c.id = message.campaign_id and c.state between 4 and 6))
returning message.client_id, message.id, message.state`

	PostponeMessages = `
update message set next_at = u.n, detail = case when u.d = '' then message.detail else u.d end
from $u(c bigint, i bigint, x bigint, n bigint, d text)
where message.client_id = u.c and message.id = u.i and message.intent = u.x
returning message.client_id, message.id, case when ` + isUncertain + ` then 1 else 0 end`
)

// Settle closes or postpones messages that are open and have no intent. It skips a message that changed after the
// dispatcher read it.
func (s *Queue) Settle(ctx context.Context, node puntuale.NodeID, now time.Time, all []puntuale.Settlement) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b puntuale.Settlement) int { return CompareRefs(a.MessageRef, b.MessageRef) })
	present := s.ClockAt(now)
	for part := range slices.Chunk(all, engine.Chunk) {
		if err := s.RecordWriter.Do(ctx, engine.SingleTimestamped(s.settle, func(ctx context.Context, a engine.Querier) error {
			return Settle(ctx, a, node, present(), part)
		}), false); err != nil {
			return err
		}
	}
	return nil
}

// Settle closes messages, or changes the time of their next check, without making an attempt. It works inside the
// caller's transaction. It checks the lease of the node. Node 0 means that no dispatcher settles the messages, so no
// lease is needed. Errors: puntuale.ErrFenced.
func Settle(ctx context.Context, a engine.Querier, node puntuale.NodeID, now time.Time, all []puntuale.Settlement) error {
	if node != 0 {
		if err := fleet.Fence(ctx, a, node); err != nil {
			return err
		}
	}
	var failed, moved []puntuale.Settlement
	for _, m := range all {
		switch {
		case m.Intent < 0:
			return fmt.Errorf("message %d: a closed message cannot be settled", m.ID)
		case m.State == puntuale.Failed:
			failed = append(failed, m)
		case m.State == puntuale.Pending:
			moved = append(moved, m)
		default:
			return fmt.Errorf("message %d: cannot be settled as %v", m.ID, m.State)
		}
	}
	if len(failed) > 0 && len(moved) > 0 { // two statements follow, so lock all rows in order first
		refs := engine.Column(all, func(m *puntuale.Settlement) puntuale.MessageRef { return m.MessageRef })
		if err := LockMessages(ctx, a, refs); err != nil {
			return err
		}
	}
	var facts []outbox.Fact
	if len(failed) > 0 {
		if err := a.Query(ctx, FailMessages, []any{engine.Micros(now), append(settleColumns(failed),
			engine.Column(failed, func(m *puntuale.Settlement) string { return m.Reason.Stored() }),
			engine.Column(failed, func(m *puntuale.Settlement) string { return m.Detail.Stored() }))}, func(rows engine.Row) error {
			var ref puntuale.MessageRef
			var state puntuale.State
			err := rows.Scan(&ref.Client, &ref.ID, &state)
			kind := puntuale.EventMessageFailed
			if state == puntuale.Cancelled {
				kind = puntuale.EventMessageCancelled
			}
			facts = append(facts, outbox.Message(ref, kind))
			return err
		}); err != nil {
			return fmt.Errorf("fail messages: %w", err)
		}
	}
	if len(moved) > 0 {
		tried := slices.DeleteFunc(slices.Clone(moved), func(m puntuale.Settlement) bool { return m.Intent == 0 })
		known, err := uncertainBefore(ctx, a, engine.Column(tried, func(m *puntuale.Settlement) puntuale.MessageRef { return m.MessageRef }))
		if err != nil {
			return err
		}
		if err := a.Query(ctx, PostponeMessages, []any{append(settleColumns(moved),
			engine.Column(moved, func(m *puntuale.Settlement) int64 { return engine.Micros(m.Next) }),
			engine.Column(moved, func(m *puntuale.Settlement) string { return m.Detail.Stored() }))}, func(rows engine.Row) error {
			var ref puntuale.MessageRef
			var uncertain bool
			err := rows.Scan(&ref.Client, &ref.ID, engine.ScanBool(&uncertain))
			if uncertain && !known[ref] {
				facts = append(facts, outbox.Message(ref, puntuale.EventMessageUncertain))
			}
			return err
		}); err != nil {
			return fmt.Errorf("postpone messages: %w", err)
		}
	}
	return outbox.Emit(ctx, a, now, facts)
}

func settleColumns(all []puntuale.Settlement) engine.Columns {
	return append(RefColumns(engine.Column(all, func(m *puntuale.Settlement) puntuale.MessageRef { return m.MessageRef })),
		engine.Column(all, func(m *puntuale.Settlement) int64 { return m.Intent }))
}
