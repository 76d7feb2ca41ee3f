package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// A stop or a cancellation reads its messages before its first transaction. It can ignore later messages, because they were scheduled after
// the call. The planned messages of a run are numbered from the run's number without gaps. Re-sent ones have other numbers and a separate
// index. A cross join makes SQLite join the tables in the given order. SQLite knows too little about their sizes to choose well.
const (
	stopCandidates = `
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.phone = $2 and r.sequence_id = $3 and ($4 = '' or r.reference = $4)
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.phone = $2 and r.sequence_id = $3 and ($4 = '' or r.reference = $4)
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`

	// Open messages of runs with a reference. Naming the condition of the index lets both databases use it.
	referenceCandidates = `
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.reference = $2 and r.reference <> ''
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.reference = $2 and r.reference <> ''
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`

	// All open messages of a client are found by its sessions, because that index holds only open messages. (+ 0 keeps the planner from
	// reading all messages that the client ever sent.)
	openCandidates = `
select m.client_id, m.id from session s cross join message m
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and (m.intent = 0 or m.valid_until > 0)`
)

func (t tenant) Stop(ctx context.Context, sequence puntuale.SequenceID, phone, reference string, day puntuale.Date, now time.Time) (puntuale.StopResult, error) {
	refs, err := engine.QueryAll(ctx, t.s.CallReads, stopCandidates, []any{t.id, phone, sequence, reference}, queue.ScanRef)
	if err != nil {
		return puntuale.StopResult{}, engine.PublicError(fmt.Errorf("look for messages to stop: %w", err))
	}
	if len(refs) == 0 { // with messages found, the sequence exists or existed
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

// cancelRound is how many messages one round looks for. It bounds the memory of a big cancellation.
const cancelRound = 50_000

// The last round sees every message that is open then. So the call cancels all messages that were accepted before it,
// and perhaps some that are accepted meanwhile. (+ 0 keeps the planner from an index in the order of ids.)
func (t tenant) CancelPending(ctx context.Context, target puntuale.CancelTarget, day puntuale.Date, now time.Time, took func([]puntuale.CancelledMessage) error) error {
	text, args := queue.PhoneCandidates, []any{t.id, engine.Columns{target.Phones}}
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
		if len(refs) < cancelRound || c.done == before { // messages in flight stay
			return nil
		}
	}
}

// cancellation is a call that cancels messages, a chunk in each transaction. It passes each chunk to took. If a later chunk fails, the
// caller gets the error and may call again. Cancelled messages stay cancelled.
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

// cancel cancels messages. It counts the call in its first transaction, even if there are no messages.
func (c *cancellation) cancel(ctx context.Context, refs []puntuale.MessageRef) error {
	slices.SortFunc(refs, queue.CompareRefs)
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
			done, err = queue.CancelOpen(ctx, a, part, c.now)
			return err
		}).Of(int64(c.t.id))
		if err := c.t.s.TenantWriter(int64(c.t.id)).Do(ctx, task, false); err != nil {
			return err
		}
		c.counted = true
		c.done += len(done)
		slices.SortFunc(done, func(a, b puntuale.CancelledMessage) int { return cmp.Compare(a.ID, b.ID) })
		if err := c.took(done); err != nil {
			return err
		}
	}
	return nil
}

// CancelMessages looks for the messages in the transaction that cancels them, so that it cancels all or none.
func (t tenant) CancelMessages(ctx context.Context, ids []puntuale.MessageID, day puntuale.Date, now time.Time) ([]puntuale.CancelledMessage, error) {
	refs := sortedRefs(t.id, ids)
	var done []puntuale.CancelledMessage
	err := t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.cancel, func(ctx context.Context, a engine.Querier) error {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		there, err := engine.QueryAll(ctx, a, `select message.id from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i`,
			[]any{queue.RefColumns(refs)}, engine.ScanOne[puntuale.MessageID])
		if err != nil {
			return fmt.Errorf("look for messages to cancel: %w", err)
		}
		if faults := missing(ids, func(id *puntuale.MessageID) (puntuale.MessageID, bool) { return *id, slices.Contains(there, *id) }); len(faults) > 0 {
			return notFound(puntuale.NoMessage, faults)
		}
		done, err = queue.CancelOpen(ctx, a, refs, now)
		return err
	}).Of(int64(t.id)), false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(done, func(a, b puntuale.CancelledMessage) int { return cmp.Compare(a.ID, b.ID) })
	return done, nil
}
