package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/result"
)

// StoredMessage contains the stored columns of a message that gets a late outcome or a delivery receipt. An outcome is
// late if its attempt is not the message's present attempt.
type StoredMessage struct {
	puntuale.MessageRef
	intent int64
	state  puntuale.State
	reason puntuale.Reason
	credit int
	erased bool // the person was erased, so reason and detail of the late outcome are not stored
}

// changedByProof reports whether a late proof of delivery changes the message. It changes an open message, and a
// message that was given up as uncertain. If a person has sent the uncertain message again, its outcome changes and its
// state stays RESCHEDULED. A message that was cancelled, or closed for another reason, does not change. For such a
// message, the late proof is only stored as an event.
func (m StoredMessage) changedByProof() bool {
	gaveUp := m.reason.Code == puntuale.ReasonUncertain && (m.state == puntuale.Failed || m.state == puntuale.Rescheduled)
	return m.state == puntuale.Pending || gaveUp
}

// merge handles outcomes of attempts that are not the message's present attempt. It never drops a proof of delivery.
func (b *RecordBatch) merge(ctx context.Context) error {
	var late []int
	for _, i := range b.Order {
		if !b.Applied[i] {
			late = append(late, i)
		}
	}
	if len(late) == 0 {
		return nil
	}
	rows, err := engine.QueryAll(ctx, b.A, `
select message.client_id, message.id, message.intent, message.state, message.reason, message.credit, message.phone = ''
from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i
order by message.client_id, message.id for update of message`, []any{RefColumns(b.refs(late))},
		func(rows engine.Row, m *StoredMessage) error {
			return rows.Scan(&m.Client, &m.ID, &m.intent, &m.state, engine.ScanReason(&m.reason), &m.credit, &m.erased)
		})
	if err != nil {
		return fmt.Errorf("read messages with late outcomes: %w", err)
	}
	found := make(map[puntuale.MessageRef]StoredMessage, len(rows))
	for _, m := range rows {
		found[m.MessageRef] = m
	}
	var sent []int
	var unpaid []puntuale.MessageRef
	for _, i := range late {
		r := b.Results[i]
		m, ok := found[r.MessageRef]
		if !ok {
			continue // the message was deleted, and the outcome must not create it again
		}
		if r.Outcome.Verdict == puntuale.Sent && m.state == puntuale.Completed {
			continue // an earlier receipt has already completed the message
		}
		said := reasonWithDetail(r.Outcome)
		if m.erased {
			said = puntuale.Reason{}
		}
		if r.Outcome.Verdict != puntuale.Sent || !m.changedByProof() {
			b.events = append(b.events, event{r.MessageRef, "late " + r.Outcome.Verdict.String(), said})
			continue
		}
		b.events = append(b.events, event{r.MessageRef, "merge", said})
		if m.state != puntuale.Rescheduled {
			b.facts = append(b.facts, outbox.Message(r.MessageRef, puntuale.EventMessageSent))
		}
		sent = append(sent, i)
		if m.credit != 1 {
			unpaid = append(unpaid, m.MessageRef)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	if err := result.NoteAll(ctx, b.A, b.Now, b.refs(sent)...); err != nil { // also those that were sent again, of which no fact tells
		return err
	}
	return b.complete(ctx, sent, unpaid)
}

// complete makes messages COMPLETED, because receipts or late outcomes prove their delivery. If a message's credit was
// given back before, complete takes a credit again, if the client has one.
func (b *RecordBatch) complete(ctx context.Context, sent []int, unpaid []puntuale.MessageRef) error {
	if _, err := b.A.Exec(ctx, `
update message set intent = -1, state = case when message.state = 5 then 5 else 1 end, outcome = 1, done_at = $1::bigint, reason = u.r,
 detail = case when message.phone = '' then '' else u.d end,
 next_at = case when message.intent_at > 0 and message.next_at > message.intent_at then message.intent_at else message.next_at end
from $u(c bigint, i bigint, r text, d text) where message.client_id = u.c and message.id = u.i`,
		engine.Micros(b.Now), append(RefColumns(b.refs(sent)),
			engine.Column(sent, func(i *int) string { return b.Results[*i].Outcome.Reason.Stored() }),
			engine.Column(sent, func(i *int) string { return b.Results[*i].Outcome.Detail.Stored() }))); err != nil {
		return fmt.Errorf("merge late outcomes: %w", err)
	}
	return b.pay(ctx, unpaid)
}

func (b *RecordBatch) pay(ctx context.Context, unpaid []puntuale.MessageRef) error {
	owed := map[puntuale.ClientID]int64{}
	for _, m := range unpaid {
		owed[m.Client]++
	}
	known, _, err := sendPermissions(ctx, b.A, slices.Sorted(maps.Keys(owed)))
	if err != nil {
		return err
	}
	maps.DeleteFunc(owed, func(c puntuale.ClientID, _ int64) bool { return known[c].Credits == nil })
	if len(owed) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(owed))
	taken, err := TakeCredits(ctx, b.A, clients, engine.Column(clients, func(c *puntuale.ClientID) int64 { return owed[*c] }), b.Now)
	if err != nil {
		return err
	}
	if err := Enter(ctx, b.A, "late", b.Now, clients, engine.Column(taken, func(n *int64) int64 { return -*n })); err != nil {
		return err
	}
	for i, c := range clients {
		owed[c] = taken[i]
	}
	paid := slices.DeleteFunc(unpaid, func(m puntuale.MessageRef) bool {
		owed[m.Client]--
		return owed[m.Client] < 0
	})
	if _, err := b.A.Exec(ctx, `update message set credit = 1 from $u(c bigint, i bigint)
 where message.client_id = u.c and message.id = u.i`, RefColumns(paid)); err != nil {
		return fmt.Errorf("mark messages as paid: %w", err)
	}
	return nil
}
