package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// A stop or a cancellation reads the ids of its messages before its first transaction. It may ignore messages that are
// scheduled after this read, because they were scheduled after the call began.
//
// The ids of a run's planned messages follow the id of the run without gaps. Resent messages have other ids, and an
// index of their own. A cross join makes SQLite read the tables in the written order. Otherwise SQLite may choose a
// slow order.
const (
	stopCandidates = `
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and r.sequence_id = $2 and ($3 = '' or r.reference = $3)
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and r.sequence_id = $2 and ($3 = '' or r.reference = $3)
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`

	// referenceCandidates finds open messages of runs with a reference. Its condition r.reference <> '' is the
	// condition of the partial index. Without it, the databases could not use this index.
	referenceCandidates = `
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.reference = $2 and r.reference <> ''
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.reference = $2 and r.reference <> ''
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`

	// openCandidates finds all open messages of a client. It searches by session, because only the sessions' index is
	// limited to open messages. The "+ 0" prevents the database from reading all messages that the client ever sent.
	openCandidates = `
select m.client_id, m.id from session s cross join message m
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and (m.intent = 0 or m.valid_until > 0)`
)

// Stop cancels messages of the sequence's runs for all names of one person: all messages that are PENDING and have no open
// intent. A cancelled message is never sent. With a reference, Stop cancels only messages of runs with this
// reference. Stop counts one call, and the cap never refuses this call. One transaction cancels at most 1,000
// messages.
//
// A message in flight is not in the answer. If its attempt certainly fails, it becomes CANCELLED instead of being
// retried. If the outcome of its attempt is uncertain, it is not repeated; then only a delivery receipt or a
// refusal decides. Every other method that cancels does the same.
//
// Codes: not_found for a sequence that the client never had (no call is counted). A deleted sequence can still be
// stopped.
func (t tenant) Stop(ctx context.Context, sequence puntuale.SequenceID, names []string, reference string, day puntuale.Date, now time.Time) (puntuale.StopResult, error) {
	names, err := t.names(ctx, names...)
	if err != nil {
		return puntuale.StopResult{}, err
	}
	if booked, err := t.stopBooked(ctx, sequence, names, reference, day, now); booked != nil || err != nil {
		return *cmp.Or(booked, &puntuale.StopResult{}), err
	}
	refs, err := engine.QueryAll(ctx, t.s.CallReads, stopCandidates, []any{t.id, sequence, reference, engine.Columns{names}}, queue.ScanRef)
	if err != nil {
		return puntuale.StopResult{}, engine.PublicError(fmt.Errorf("look for messages to stop: %w", err))
	}
	if len(refs) == 0 { // if messages were found, the sequence exists or existed
		var id int64
		found, err := engine.QueryOne(ctx, t.s.CallReads, `select id from sequence where client_id = $1 and id = $2`, []any{t.id, sequence}, &id)
		if err := engine.FoundOr(found, err, puntuale.NoSequence); err != nil {
			return puntuale.StopResult{}, err
		}
	}
	ids := []puntuale.MessageID{}
	c := cancellation{t: t, kind: t.s.kinds.stop, day: day, now: now, took: func(done []puntuale.CancelledMessage) error {
		ids = append(ids, engine.Column(done, func(m *puntuale.CancelledMessage) puntuale.MessageID { return m.ID })...)
		return nil
	}}
	if err := c.cancel(ctx, refs); err != nil {
		return puntuale.StopResult{}, err
	}
	return puntuale.StopResult{IDs: ids, Usage: c.usage}, nil
}

// stopBooked stops a sequence for bookings. It returns nil if no booking has the sequence. A stop of such a sequence
// cancels the bookings, too, and all in one transaction: it locks the bookings before it looks for their messages.
func (t tenant) stopBooked(ctx context.Context, sequence puntuale.SequenceID, names []string, reference string, day puntuale.Date, now time.Time) (*puntuale.StopResult, error) {
	var one int
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select 1 from booking where client_id = $1 and sequence_id = $2 limit 1`, []any{t.id, sequence}, &one)
	if err != nil || !found {
		return nil, engine.PublicError(err)
	}
	result := &puntuale.StopResult{}
	err = t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.stop, func(ctx context.Context, a engine.Querier) (err error) {
		if result.Usage, err = queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		bookings, err := engine.QueryAll(ctx, a, `select `+strings.Replace(bookingColumns, "b.fields", "'{}'", 1)+` from $u(p text) cross join booking b
 where b.client_id = $1 and b.phone = u.p and b.sequence_id = $2 and b.status <> 2 and ($3::text = '' or b.reference = $3::text) order by b.id for update of b`,
			[]any{t.id, sequence, reference, engine.Columns{names}}, func(r engine.Row, b *puntuale.Booking) error { return r.Scan(bookingFields(b)...) })
		if err != nil {
			return fmt.Errorf("lock bookings to stop: %w", err)
		}
		refs, err := engine.QueryAll(ctx, a, stopCandidates, []any{t.id, sequence, reference, engine.Columns{names}}, queue.ScanRef)
		if err != nil {
			return fmt.Errorf("look for messages to stop: %w", err)
		}
		engine.Sort(refs, queue.CompareRefs)
		done, err := queue.CancelOpen(ctx, a, slices.Compact(refs), now)
		if err != nil {
			return err
		}
		engine.Sort(done, func(a, b puntuale.CancelledMessage) int { return cmp.Compare(a.ID, b.ID) })
		result.IDs = engine.Column(done, func(m *puntuale.CancelledMessage) puntuale.MessageID { return m.ID })
		return t.stopBookings(ctx, a, bookings, sortedRefs(t.id, result.IDs), now)
	}).ForOwner(int64(t.id)), false)
	return result, err
}

// cancelRound is how many messages one round reads. It limits the memory that a big cancellation needs.
const cancelRound = 50_000

// CancelPending cancels all messages of the target, in the same way as Stop. It passes each chunk of cancelled
// messages to the function took, and then forgets the chunk. Each chunk is sorted by id. The first 50,000 messages
// come in the order of their ids, even across chunks. If took returns an error, CancelPending ends; cancelled
// messages stay cancelled.
//
// CancelPending works in rounds. The last round reads every message that is open at that time. So the call cancels all
// messages that were accepted before it, except messages in flight. It may also cancel messages that are accepted while
// it runs. The "+ 0" prevents the use of an index that is sorted by id.
func (t tenant) CancelPending(ctx context.Context, target puntuale.CancelTarget, day puntuale.Date, now time.Time, took func([]puntuale.CancelledMessage) error) error {
	names, err := t.names(ctx, target.Phones...)
	if err != nil {
		return err
	}
	text, args := queue.PhoneCandidates, []any{t.id, engine.Columns{names}}
	switch {
	case target.All:
		text, args = openCandidates, []any{t.id}
	case target.Reference != "":
		text, args = referenceCandidates, []any{t.id, target.Reference}
	}
	text = fmt.Sprintf("select o.client_id, o.id from (%s) o order by o.id + 0 limit %d", text, cancelRound)
	c := cancellation{t: t, kind: t.s.kinds.cancel, day: day, now: now, took: took}
	for {
		refs, err := engine.QueryAll(ctx, t.s.CallReads, text, args, queue.ScanRef)
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for messages to cancel: %w", err))
		}
		before := c.done
		if err := c.cancel(ctx, refs); err != nil {
			return err
		}
		if len(refs) < cancelRound || c.done == before { // this round read the last messages, or cancelled none because all are in flight
			return nil
		}
	}
}

// cancellation is a call that cancels messages, one chunk in each transaction. After each chunk, it passes the cancelled
// messages to the function in the field took. If a later chunk fails, the messages of earlier chunks stay cancelled.
// The caller gets the error and may repeat the call.
type cancellation struct {
	t       tenant
	kind    *engine.Kind
	day     puntuale.Date
	now     time.Time
	took    func([]puntuale.CancelledMessage) error
	counted bool
	usage   puntuale.Usage
	done    int
}

// cancel cancels messages. Its first transaction also counts the call, even if there are no messages to cancel.
func (c *cancellation) cancel(ctx context.Context, refs []puntuale.MessageRef) error {
	engine.Sort(refs, queue.CompareRefs)
	refs = slices.Compact(refs)
	for !c.counted || len(refs) > 0 {
		part := refs[:min(engine.Chunk, len(refs))]
		refs = refs[len(part):]
		var done []puntuale.CancelledMessage
		task := engine.Single(c.kind, func(ctx context.Context, a engine.Querier) (err error) {
			if !c.counted {
				if c.usage, err = queue.CountAlways(ctx, a, queue.UsageDay{Client: c.t.id, Day: c.day}, c.t.calls()); err != nil {
					return err
				}
			}
			done, err = queue.CancelMoved(ctx, a, part, c.now)
			return err
		}).ForOwner(int64(c.t.id))
		if err := c.t.s.TenantWriter(int64(c.t.id)).Do(ctx, task, false); err != nil {
			return err
		}
		c.counted = true
		c.done += len(done)
		engine.Sort(done, func(a, b puntuale.CancelledMessage) int { return cmp.Compare(a.ID, b.ID) })
		if err := c.took(done); err != nil {
			return err
		}
	}
	return nil
}

// CancelMessages cancels the given messages that are PENDING without an open intent, all in one transaction. It
// counts one call, and the cap never refuses it. The answer is sorted by id, and leaves out messages that were
// not cancelled. Codes: not_found, with a fault at body.id[i] for each id that is missing or belongs to another
// client; then nothing is cancelled or counted.
func (t tenant) CancelMessages(ctx context.Context, ids []puntuale.MessageID, day puntuale.Date, now time.Time) ([]puntuale.CancelledMessage, error) {
	refs := sortedRefs(t.id, ids)
	var done []puntuale.CancelledMessage
	err := t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.cancel, func(ctx context.Context, a engine.Querier) error {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		existing, err := engine.QueryAll(ctx, a, `select message.id from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i`,
			[]any{queue.RefColumns(refs)}, engine.ScanOne[puntuale.MessageID])
		if err != nil {
			return fmt.Errorf("look for messages to cancel: %w", err)
		}
		if faults := missing(ids, func(id *puntuale.MessageID) (puntuale.MessageID, bool) { return *id, slices.Contains(existing, *id) }); len(faults) > 0 {
			return notFound(puntuale.NoMessage, faults)
		}
		done, err = queue.CancelOpen(ctx, a, refs, now)
		return err
	}).ForOwner(int64(t.id)), false)
	if err != nil {
		return nil, err
	}
	engine.Sort(done, func(a, b puntuale.CancelledMessage) int { return cmp.Compare(a.ID, b.ID) })
	return done, nil
}
