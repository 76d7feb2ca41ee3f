package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// Record stores the outcomes of attempts, if the message still has the attempt's token. If the message has another
// token, only a proof of delivery has an effect. Record returns for each outcome whether it was stored unchanged.
// Record needs no lease.
func (s *Queue) Record(ctx context.Context, now time.Time, results []puntuale.Result) ([]bool, error) {
	applied := make([]bool, len(results))
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return CompareRefs(results[i].MessageRef, results[j].MessageRef) })
	present := s.ClockAt(now)
	for part := range slices.Chunk(order, engine.Chunk) {
		err := s.RecordWriter.Do(ctx, engine.SingleTimestamped(s.record, func(ctx context.Context, a engine.Querier) error {
			for _, i := range part {
				applied[i] = false
			}
			b := &RecordBatch{A: a, Now: present(), Results: results, Order: part, Applied: applied}
			return b.Run(ctx)
		}), false)
		if err != nil {
			return applied, err
		}
	}
	return applied, nil
}

// RecordBatch is the work of one batch of outcomes. Locks: messages by (client, id), then clients.
type RecordBatch struct {
	A       engine.Querier
	Now     time.Time
	Results []puntuale.Result
	Order   []int // indexes in Results, sorted by (client, id)
	Applied []bool

	returned map[puntuale.ClientID]int64 // number of credits to give back to each client
	events   []event
	facts    []outbox.Fact
	known    map[puntuale.MessageRef]bool // messages that were uncertain before this outcome
	stopped  []puntuale.MessageRef        // messages that were stopped in flight, and whose attempt may be retried
}

// factBuffers keeps slices for reuse in later batches. A batch has many facts, but usually no subscription wants them.
var factBuffers = sync.Pool{New: func() any { return new([]outbox.Fact) }}

func (b *RecordBatch) Run(ctx context.Context) error {
	b.returned = map[puntuale.ClientID]int64{}
	b.stopped, b.events, b.known = nil, nil, nil
	facts := factBuffers.Get().(*[]outbox.Fact)
	b.facts = slices.Grow((*facts)[:0], len(b.Results)) // allocate once, instead of growing step by step
	defer func() {
		*facts = b.facts[:0]
		factBuffers.Put(facts)
	}()
	if err := b.write(ctx); err != nil {
		return err
	}
	if err := b.merge(ctx); err != nil {
		return err
	}
	if err := giveBack(ctx, b.A, b.Now, b.returned); err != nil {
		return err
	}
	if err := writeEvents(ctx, b.A, b.Now, b.events); err != nil {
		return err
	}
	return outbox.Emit(ctx, b.A, b.Now, b.facts)
}

// An outcome closes a message (sent, refused) or leaves it open (retry, uncertain). There are two statements, because
// closing writes more columns, and a statement updates the indexes of all columns that it writes. A batch that needs
// both statements first locks all its rows in order.
//
// For an uncertain message, next_at is the time of the next check. When the message is closed, next_at is set back to the
// time of the attempt. If a credit is given back, the column credit becomes negative, so that the code finds these
// rows.
var (
	CloseResults = `
update message set intent = -1, state = u.s, outcome = u.s, done_at = $1::bigint, reason = u.r, detail = u.d,
 credit = case when u.s = 1 then message.credit else -message.credit end,
 next_at = case when message.next_at > message.intent_at then message.intent_at else message.next_at end
from $u(c bigint, i bigint, t bigint, s smallint, r text, d text)
where message.client_id = u.c and message.id = u.i and message.intent = u.t
returning message.client_id, message.id, message.credit, 0, 0`

	// u.k is 1 for a retry, which gives the credit back. u.f is 1 if the attempt does not count. The statement
	// also returns whether a message was stopped in flight (CancelMessages). Such messages are cancelled after their
	// intent is 0.
	ReopenResults = `
update message set intent = case when u.k = 1 then 0 else message.intent end, next_at = u.n, detail = u.d,
 credit = case when u.k = 1 then -message.credit else message.credit end,
 attempt = message.attempt - u.f
from $u(c bigint, i bigint, t bigint, k smallint, f integer, n bigint, d text)
where message.client_id = u.c and message.id = u.i and message.intent = u.t
returning message.client_id, message.id, message.credit, case when message.intent = 0 and message.valid_until < 0 then 1 else 0 end,
 case when ` + isUncertain + ` then 1 else 0 end`

	cancelStopped = `
update message set intent = -1, state = 3, done_at = $1::bigint, valid_until = -message.valid_until
from $u(c bigint, i bigint)
where message.client_id = u.c and message.id = u.i and message.intent = 0`
)

func (b *RecordBatch) write(ctx context.Context) error {
	var closing, open []int
	for _, i := range b.Order {
		if b.Results[i].Token <= 0 {
			continue // skip a result without a token: token 0 would match a message that was never tried
		}
		switch b.Results[i].Outcome.Verdict {
		case puntuale.Sent, puntuale.Refused:
			closing = append(closing, i)
		case puntuale.Retry, puntuale.Uncertain:
			open = append(open, i)
		default:
			return fmt.Errorf("message %d: unknown verdict %v", b.Results[i].ID, b.Results[i].Outcome.Verdict)
		}
	}
	if len(closing) > 0 && len(open) > 0 {
		if err := LockMessages(ctx, b.A, b.refs(b.Order)); err != nil {
			return err
		}
	}
	if err := b.close(ctx, closing); err != nil {
		return err
	}
	return b.reopen(ctx, open)
}

func (b *RecordBatch) close(ctx context.Context, indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	columns := append(b.columns(indexes),
		engine.Column(indexes, func(i *int) int64 {
			if b.Results[*i].Outcome.Verdict == puntuale.Sent {
				return int64(puntuale.Completed)
			}
			return int64(puntuale.Failed)
		}),
		engine.Column(indexes, func(i *int) string { return b.Results[*i].Outcome.Reason.Stored() }),
		engine.Column(indexes, func(i *int) string { return b.Results[*i].Outcome.Detail.Stored() }))
	if err := b.apply(ctx, CloseResults, []any{engine.Micros(b.Now), columns}, indexes); err != nil {
		return fmt.Errorf("close messages: %w", err)
	}
	return nil
}

func (b *RecordBatch) reopen(ctx context.Context, indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	outcome := func(i *int) *puntuale.Outcome { return &b.Results[*i].Outcome }
	if err := b.findUncertain(ctx, indexes); err != nil {
		return err
	}
	columns := append(b.columns(indexes),
		engine.Column(indexes, func(i *int) int64 { return engine.Bit(outcome(i).Verdict == puntuale.Retry) }),
		engine.Column(indexes, func(i *int) int64 { return engine.Bit(outcome(i).Verdict == puntuale.Retry && !outcome(i).Failed) }),
		engine.Column(indexes, func(i *int) int64 { return engine.Micros(outcome(i).Next) }),
		engine.Column(indexes, func(i *int) string { return outcome(i).Detail.Stored() }))
	if err := b.apply(ctx, ReopenResults, []any{columns}, indexes); err != nil {
		return fmt.Errorf("reopen messages: %w", err)
	}
	if len(b.stopped) == 0 {
		return nil
	}
	slices.SortFunc(b.stopped, CompareRefs) // this transaction has already locked these rows
	if _, err := b.A.Exec(ctx, cancelStopped, engine.Micros(b.Now), RefColumns(b.stopped)); err != nil {
		return fmt.Errorf("cancel stopped messages: %w", err)
	}
	for _, ref := range b.stopped {
		b.facts = append(b.facts, outbox.Message(ref, puntuale.EventMessageCancelled))
	}
	return nil
}

// findUncertain finds the messages with an uncertain outcome that were already uncertain before this outcome.
func (b *RecordBatch) findUncertain(ctx context.Context, indexes []int) (err error) {
	uncertain := slices.DeleteFunc(slices.Clone(indexes), func(i int) bool { return b.Results[i].Outcome.Verdict != puntuale.Uncertain })
	b.known, err = uncertainBefore(ctx, b.A, b.refs(uncertain))
	return err
}

// columns returns the columns that the statements for all outcomes have in common.
func (b *RecordBatch) columns(indexes []int) engine.Columns {
	return engine.Columns{
		engine.Column(indexes, func(i *int) int64 { return int64(b.Results[*i].Client) }),
		engine.Column(indexes, func(i *int) int64 { return int64(b.Results[*i].ID) }),
		engine.Column(indexes, func(i *int) int64 { return b.Results[*i].Token }),
	}
}

func (b *RecordBatch) refs(indexes []int) []puntuale.MessageRef {
	return engine.Column(indexes, func(i *int) puntuale.MessageRef { return b.Results[*i].MessageRef })
}

// apply runs one of the statements. It collects which outcomes were stored, which credits to give back, and the events.
func (b *RecordBatch) apply(ctx context.Context, text string, args []any, indexes []int) error {
	index := make(map[puntuale.MessageRef]int, len(indexes))
	for _, i := range indexes {
		index[b.Results[i].MessageRef] = i
	}
	var client, id, credit, stopped, uncertain int64
	target := []any{&client, &id, &credit, &stopped, &uncertain}
	return b.A.Query(ctx, text, args, func(rows engine.Row) error {
		if err := rows.Scan(target...); err != nil {
			return err
		}
		ref := puntuale.MessageRef{Client: puntuale.ClientID(client), ID: puntuale.MessageID(id)}
		i := index[ref]
		b.Applied[i] = true
		o := b.Results[i].Outcome
		if credit < 0 {
			b.returned[ref.Client]++
		}
		if stopped == 1 {
			b.stopped = append(b.stopped, ref)
		}
		switch {
		case o.Verdict == puntuale.Sent:
			b.facts = append(b.facts, outbox.Message(ref, puntuale.EventMessageSent))
		case o.Verdict == puntuale.Refused:
			b.facts = append(b.facts, outbox.Message(ref, puntuale.EventMessageFailed))
		case uncertain == 1 && !b.known[ref]:
			b.facts = append(b.facts, outbox.Message(ref, puntuale.EventMessageUncertain))
		}
		if o.Verdict != puntuale.Sent {
			b.events = append(b.events, event{ref, o.Verdict.String(), reasonWithDetail(o)})
		}
		return nil
	})
}

// reasonWithDetail returns the reason and the detail of an outcome as one reason.
func reasonWithDetail(o puntuale.Outcome) puntuale.Reason { return puntuale.Colon(o.Reason, o.Detail) }

// LockMessages locks messages in the order of locks, for a transaction that writes them with several statements.
func LockMessages(ctx context.Context, a engine.Querier, sorted []puntuale.MessageRef) error {
	err := a.Query(ctx, `select message.id from $u(c bigint, i bigint)
 join message on message.client_id = u.c and message.id = u.i order by message.client_id, message.id for update of message`,
		[]any{RefColumns(sorted)}, func(engine.Row) error { return nil })
	if err != nil {
		return fmt.Errorf("lock messages: %w", err)
	}
	return nil
}
