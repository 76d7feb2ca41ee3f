package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// CancelMessages cancels a message only if its intent is 0, which means that no attempt is open. After the
// cancellation no attempt can begin, because every claim compares and writes the intent.
//
// If an attempt is open, the message is marked as stopped: its valid_until becomes negative. A stopped message is never
// repeated or retried. If its attempt certainly did not reach the network, the recorder cancels the message
// (ReopenResults). A receipt that says the message was sent still counts.
//
// A node of the previous version ignores the negative sign, and may set the intent of a stopped message back to 0. No
// node can claim such a message, because it looks expired. It becomes CANCELLED (settle.go). The batch is sorted, so
// rows are locked in order.
const CancelMessages = `
update message set intent = case when message.intent = 0 then -1 else message.intent end,
 state = case when message.intent = 0 then 3 else message.state end,
 done_at = case when message.intent = 0 then $1::bigint end,
 valid_until = case when message.intent = 0 then abs(message.valid_until) else -message.valid_until end
from $u(c bigint, i bigint)
where message.client_id = u.c and message.id = u.i and message.intent >= 0 and (message.intent = 0 or message.valid_until > 0)
returning message.client_id, message.id, message.desired_at, message.next_at, message.state`

// CancelOpen cancels those of the given messages that are open and not in flight, and returns them. Messages in flight
// are marked as stopped. refs must be sorted.
func CancelOpen(ctx context.Context, a engine.Querier, refs []puntuale.MessageRef, now time.Time) ([]puntuale.CancelledMessage, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	var done []puntuale.CancelledMessage
	var facts []outbox.Fact
	err := a.Query(ctx, CancelMessages, []any{engine.Micros(now), RefColumns(refs)}, func(rows engine.Row) error {
		var m puntuale.CancelledMessage
		var state puntuale.State
		var planned time.Time
		var client puntuale.ClientID
		if err := rows.Scan(&client, &m.ID, engine.ScanTime(&m.Desired), engine.ScanTime(&planned), &state); err != nil || state != puntuale.Cancelled {
			return err
		}
		if m.Desired.IsZero() {
			m.Desired = planned
		}
		done = append(done, m)
		facts = append(facts, outbox.Message(puntuale.MessageRef{Client: client, ID: m.ID}, puntuale.EventMessageCancelled))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cancel messages: %w", err)
	}
	return done, outbox.Emit(ctx, a, now, facts)
}

// successors finds the open messages of the bookings to which messages belong, to the same recipient and through the same
// session. All of them are in the target of a cancellation that had one of these messages in its target.
const successors = `
select distinct n.client_id, n.id from $u(c bigint, i bigint) cross join message m cross join run r cross join booking b cross join booking_step s cross join message n
where m.client_id = u.c and m.id = u.i and r.client_id = m.client_id and r.id = m.run_id and r.reference <> '' and b.client_id = r.client_id and b.reference = r.reference
 and s.client_id = b.client_id and s.booking_id = b.id and n.client_id = s.client_id and n.id = s.message_id and n.intent >= 0 and n.phone = m.phone and n.session_id = m.session_id`

// CancelMoved does the same as CancelOpen for messages that were open a moment ago. If changes of a booking replaced one
// of them meanwhile, it cancels the message that took its place.
func CancelMoved(ctx context.Context, a engine.Querier, refs []puntuale.MessageRef, now time.Time) (all []puntuale.CancelledMessage, err error) {
	for range puntuale.MaxSteps { // more changes cannot have happened in the meantime
		done, err := CancelOpen(ctx, a, refs, now)
		if all = append(all, done...); err != nil || len(done) == len(refs) {
			return all, err
		}
		refs = slices.DeleteFunc(slices.Clone(refs), func(r puntuale.MessageRef) bool {
			return slices.ContainsFunc(done, func(m puntuale.CancelledMessage) bool { return m.ID == r.ID })
		})
		if refs, err = engine.QueryAll(ctx, a, successors, []any{RefColumns(refs)}, ScanRef); err != nil {
			return all, fmt.Errorf("look for moved messages: %w", err)
		}
		slices.SortFunc(refs, CompareRefs)
	}
	return all, nil
}

// PhoneCandidates finds the messages that a cancellation for phone numbers may cancel.
const PhoneCandidates = `
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`
