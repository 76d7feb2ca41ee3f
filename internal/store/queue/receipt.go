package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/result"
)

// KeepReceipts handles up to [engine.Chunk] receipts of one client in each transaction. Usually one transaction is
// enough, because a network's webhook request contains receipts of only one client.
func (s *Queue) KeepReceipts(ctx context.Context, now time.Time, all []puntuale.DeliveryReceipt) (unknown int, err error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b puntuale.DeliveryReceipt) int { return CompareRefs(a.MessageRef, b.MessageRef) })
	present := s.ClockAt(now)
	for len(all) > 0 {
		n := 1
		for n < len(all) && n < engine.Chunk && all[n].Client == all[0].Client {
			n++
		}
		part := all[:n]
		all = all[n:]
		b := &keptReceipts{receipt: part}
		if err := s.TenantWriter(int64(part[0].Client)).Do(ctx, engine.Single(s.receipt, func(ctx context.Context, a engine.Querier) error {
			b.a, b.now, b.unknown = a, present(), 0
			return b.Run(ctx)
		}).ForOwner(int64(part[0].Client)), false); err != nil {
			return unknown, err
		}
		unknown += b.unknown
	}
	return unknown, nil
}

// keptReceipts is the work of one transaction. Locks: messages by (client, id), then the messages' other rows, then the
// client.
type keptReceipts struct {
	a       engine.Querier
	now     time.Time
	receipt []puntuale.DeliveryReceipt // the receipts to store, sorted by message
	unknown int
}

// receiptTarget is a message for which receipts arrived.
type receiptTarget struct {
	StoredMessage
	session  puntuale.SessionID
	phone    string
	campaign puntuale.CampaignID
	billed   bool             // the message's charge has been stored
	charged  puntuale.Charge  // the stored charge, and later also the new one
	told     time.Time        // when the network first told of the charge
	charge   *puntuale.Charge // charge to store in this transaction; nil: none
	before   puntuale.DeliveryStatus
	receipts puntuale.DeliveryStatus // the stored receipts, and later also the new ones
	failed   bool                    // the message's outcome is FAILED; a later resend does not change this field
	changed  bool
	last     *puntuale.DeliveryReceipt // the receipt that decides about the message
}

func (b *keptReceipts) Run(ctx context.Context) error {
	refs := slices.Compact(engine.Column(b.receipt, func(e *puntuale.DeliveryReceipt) puntuale.MessageRef { return e.MessageRef }))
	found, err := b.lock(ctx, refs)
	if err != nil {
		return err
	}
	var kept, complete, fail []*receiptTarget
	var events []event
	var facts []outbox.Fact
	for i := range b.receipt {
		e := &b.receipt[i]
		m := found[e.MessageRef]
		if m == nil || m.session != e.Session {
			b.unknown++
			continue
		}
		m.add(e, b.now)
	}
	for _, ref := range refs {
		m := found[ref]
		if m == nil || !m.changed && m.charge == nil {
			continue
		}
		kept = append(kept, m)
		if !m.changed {
			continue
		}
		switch m.verdict() {
		case puntuale.Sent:
			complete = append(complete, m)
			events = append(events, m.event("merge"))
			if m.state != puntuale.Rescheduled {
				facts = append(facts, outbox.Message(m.MessageRef, puntuale.EventMessageSent))
			}
		case puntuale.Refused:
			fail = append(fail, m)
			events = append(events, m.event("late refused"))
			facts = append(facts, outbox.Message(m.MessageRef, puntuale.EventMessageFailed))
		default:
			if m.last.Kind == puntuale.ReceiptFailed {
				events = append(events, m.event("late refused"))
			}
		}
		facts = append(facts, m.arrivals()...)
	}
	if err := b.keepReceipts(ctx, kept); err != nil {
		return err
	}
	if err := b.countCharges(ctx, kept); err != nil {
		return err
	}
	if err := b.countFree(ctx, kept); err != nil {
		return err
	}
	if err := b.complete(ctx, complete); err != nil {
		return err
	}
	if err := b.fail(ctx, fail); err != nil {
		return err
	}
	if err := writeEvents(ctx, b.a, b.now, events); err != nil {
		return err
	}
	if err := result.NoteAll(ctx, b.a, b.now, engine.Column(kept, func(m **receiptTarget) puntuale.MessageRef { return (*m).MessageRef })...); err != nil {
		return err
	}
	return outbox.Emit(ctx, b.a, b.now, facts)
}

// lock locks the messages, and reads them together with their stored receipts.
func (b *keptReceipts) lock(ctx context.Context, refs []puntuale.MessageRef) (map[puntuale.MessageRef]*receiptTarget, error) {
	rows, err := engine.QueryAll(ctx, b.a, `
select message.client_id, message.id, message.session_id, message.intent, message.state, message.outcome = 2, message.reason, message.credit, message.phone,
 message.campaign_id, coalesce(r.billed, 0), coalesce(r.category, ''), coalesce(r.country, ''), coalesce(r.billable, 0), coalesce(r.charged_at, 0), coalesce(r.sent_at, 0), coalesce(r.delivered_at, 0), coalesce(r.read_at, 0), coalesce(r.failed_at, 0)
from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i
 left join receipt r on r.client_id = message.client_id and r.message_id = message.id
order by message.client_id, message.id for update of message`, []any{RefColumns(refs)}, func(rows engine.Row, m *receiptTarget) error {
		r := &m.receipts
		return rows.Scan(&m.Client, &m.ID, &m.session, &m.intent, &m.state, &m.failed, engine.ScanReason(&m.reason), &m.credit, &m.phone, &m.campaign, engine.ScanBool(&m.billed),
			&m.charged.Category, &m.charged.Country, engine.ScanBool(&m.charged.Billable), engine.ScanTime(&m.told),
			engine.ScanTime(&r.Sent), engine.ScanTime(&r.Delivered), engine.ScanTime(&r.Read), engine.ScanTime(&r.Failed))
	})
	if err != nil {
		return nil, fmt.Errorf("read messages with evidence: %w", err)
	}
	found := make(map[puntuale.MessageRef]*receiptTarget, len(rows))
	for i := range rows {
		m := &rows[i]
		m.erased, m.before = m.phone == "", m.receipts
		found[m.MessageRef] = m
	}
	return found, nil
}

// add adds a receipt to the stored receipts. It ignores a failure of an earlier attempt.
func (m *receiptTarget) add(e *puntuale.DeliveryReceipt, now time.Time) {
	if arrived := e.Kind == puntuale.ReceiptDelivered || e.Kind == puntuale.ReceiptRead; arrived && e.Charge.Category != "" && !m.billed {
		kept := m.charged.Country
		m.billed, m.charge, m.charged, m.told = true, &e.Charge, e.Charge, now
		m.charged.Country = cmp.Or(e.Charge.Country, kept)
	}
	if e.Kind == puntuale.ReceiptFailed && m.state == puntuale.Pending && m.intent != e.Token {
		return
	}
	before := m.receipts
	if m.receipts = before.With(e.Kind, e.At); m.receipts == before {
		return
	}
	m.changed = true
	if m.last == nil || e.Kind == puntuale.ReceiptFailed || m.last.Kind != puntuale.ReceiptFailed {
		m.last = e
	}
}

// verdict returns the verdict that changes the message, or 0 if the receipts do not change the message.
func (m *receiptTarget) verdict() puntuale.Verdict {
	arrived := !m.receipts.Delivered.IsZero() || !m.receipts.Read.IsZero()
	contradicts := m.failed && m.state != puntuale.Blacklisted && (arrived || m.reason.Code == puntuale.ReasonUncertain)
	switch v := m.receipts.Verdict(); {
	case v == puntuale.Sent && (m.state == puntuale.Pending || contradicts):
		return v
	case v == puntuale.Refused && (m.state == puntuale.Pending && m.intent > 0 || m.state == puntuale.Completed):
		return v
	}
	return 0
}

func (m *receiptTarget) event(kind string) event {
	if m.erased {
		return event{m.MessageRef, kind, puntuale.Reason{}}
	}
	return event{m.MessageRef, kind, reasonWithDetail(puntuale.Outcome{Reason: m.last.Reason, Detail: m.last.Detail})}
}

// arrivals returns the facts that a message was delivered or read. It returns each fact only if this transaction's
// receipts are the first that report it.
func (m *receiptTarget) arrivals() (facts []outbox.Fact) {
	if m.before.Delivered.IsZero() && !m.receipts.Delivered.IsZero() {
		facts = append(facts, outbox.Message(m.MessageRef, puntuale.EventMessageDelivered))
	}
	if m.before.Read.IsZero() && !m.receipts.Read.IsZero() {
		facts = append(facts, outbox.Message(m.MessageRef, puntuale.EventMessageRead))
	}
	return facts
}

func toldColumns(all []*receiptTarget) engine.Columns {
	return RefColumns(engine.Column(all, func(m **receiptTarget) puntuale.MessageRef { return (*m).MessageRef }))
}

func (b *keptReceipts) keepReceipts(ctx context.Context, all []*receiptTarget) error {
	if len(all) == 0 {
		return nil
	}
	at := func(f func(r *puntuale.DeliveryStatus) time.Time) []int64 {
		return engine.Column(all, func(m **receiptTarget) int64 { return engine.Micros(f(&(*m).receipts)) })
	}
	if _, err := b.a.Exec(ctx, `insert into receipt as g (client_id, message_id, sent_at, delivered_at, read_at, failed_at, billed, category, country, billable, charged_at)
 select u.c, u.i, u.s, u.d, u.r, u.f, u.b, u.k, u.o, u.p, u.t
 from $u(c bigint, i bigint, s bigint, d bigint, r bigint, f bigint, b smallint, k text, o text, p smallint, t bigint) where true
 on conflict (client_id, message_id) do update set sent_at = excluded.sent_at, delivered_at = excluded.delivered_at,
 read_at = excluded.read_at, failed_at = excluded.failed_at, billed = excluded.billed, billable = excluded.billable,
 category = case when excluded.charged_at = 0 then g.category else excluded.category end, country = case when excluded.country = '' then g.country else excluded.country end,
 charged_at = excluded.charged_at`, append(toldColumns(all),
		at(func(r *puntuale.DeliveryStatus) time.Time { return r.Sent }), at(func(r *puntuale.DeliveryStatus) time.Time { return r.Delivered }),
		at(func(r *puntuale.DeliveryStatus) time.Time { return r.Read }), at(func(r *puntuale.DeliveryStatus) time.Time { return r.Failed }),
		engine.Column(all, func(m **receiptTarget) int64 { return engine.Bit((*m).billed) }),
		engine.Column(all, func(m **receiptTarget) string { return (*m).charged.Category }), engine.Column(all, func(m **receiptTarget) string { return (*m).charged.Country }),
		engine.Column(all, func(m **receiptTarget) int64 { return engine.Bit((*m).charged.Billable) }), engine.Column(all, func(m **receiptTarget) int64 { return engine.Micros((*m).told) }))); err != nil {
		return fmt.Errorf("keep receipts: %w", err)
	}
	return nil
}

// countCharges counts the messages of campaigns for which the network reported a charge. It locks rows in the order of
// their key.
func (b *keptReceipts) countCharges(ctx context.Context, all []*receiptTarget) error {
	counts := map[chargeKey]int64{}
	for _, m := range all {
		if c := m.charge; c != nil && m.campaign != 0 {
			counts[chargeKey{int64(m.Client), int64(m.campaign), c.Country, c.Category, engine.Bit(c.Billable)}]++
		}
	}
	if len(counts) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(counts), chargeKey.compare)
	if _, err := b.a.Exec(ctx, `insert into charge as g (client_id, campaign_id, country, category, billable, messages)
 select u.c, u.k, u.o, u.a, u.b, u.n from $u(c bigint, k bigint, o text, a text, b smallint, n bigint) where true
 on conflict (client_id, campaign_id, country, category, billable) do update set messages = g.messages + excluded.messages`, engine.Columns{
		engine.Column(keys, func(k *chargeKey) int64 { return k.client }), engine.Column(keys, func(k *chargeKey) int64 { return k.campaign }),
		engine.Column(keys, func(k *chargeKey) string { return k.country }), engine.Column(keys, func(k *chargeKey) string { return k.category }),
		engine.Column(keys, func(k *chargeKey) int64 { return k.billable }), engine.Column(keys, func(k *chargeKey) int64 { return counts[*k] }),
	}); err != nil {
		return fmt.Errorf("count charges: %w", err)
	}
	return nil
}

// countFree counts the service messages of sessions for which the network reported that they are free, by the month in the
// client's zone. All receipts are of one client.
func (b *keptReceipts) countFree(ctx context.Context, all []*receiptTarget) error {
	counts := map[puntuale.SessionID]int64{}
	for _, m := range all {
		if c := m.charge; c != nil && c.Category == puntuale.CategoryService && !c.Billable {
			counts[m.session]++
		}
	}
	if len(counts) == 0 {
		return nil
	}
	client := all[0].Client
	var zone string
	if _, err := engine.QueryOne(ctx, b.a, `select k.zone from client k where k.id = $1`, []any{client}, &zone); err != nil {
		return fmt.Errorf("read a client's zone: %w", err)
	}
	sessions := slices.Sorted(maps.Keys(counts))
	if _, err := b.a.Exec(ctx, `insert into free_service as g (client_id, session_id, month, messages)
 select $1::bigint, u.s, $2::integer, u.n from $u(s bigint, n bigint) where true
 on conflict (client_id, session_id, month) do update set messages = g.messages + excluded.messages`, client, int64(puntuale.MonthIn(b.now, zone)), engine.Columns{
		engine.Column(sessions, func(s *puntuale.SessionID) int64 { return int64(*s) }), engine.Column(sessions, func(s *puntuale.SessionID) int64 { return counts[*s] }),
	}); err != nil {
		return fmt.Errorf("count free service messages: %w", err)
	}
	return nil
}

// chargeKey is the primary key of the table charge.
type chargeKey struct {
	client, campaign  int64
	country, category string
	billable          int64
}

func (k chargeKey) compare(o chargeKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.campaign, o.campaign), cmp.Compare(k.country, o.country),
		cmp.Compare(k.category, o.category), cmp.Compare(k.billable, o.billable))
}

// complete makes messages COMPLETED, in the same way as other late proofs of delivery.
func (b *keptReceipts) complete(ctx context.Context, all []*receiptTarget) error {
	if len(all) == 0 {
		return nil
	}
	r := &RecordBatch{A: b.a, Now: b.now}
	var indexes []int
	var unpaid []puntuale.MessageRef
	for i, m := range all {
		r.Results = append(r.Results, puntuale.Result{MessageRef: m.MessageRef, Outcome: puntuale.Outcome{Detail: m.last.Detail}})
		indexes = append(indexes, i)
		if m.credit != 1 {
			unpaid = append(unpaid, m.MessageRef)
		}
	}
	return r.complete(ctx, indexes, unpaid)
}

// fail makes messages FAILED, because the network could not deliver them. It gives their credits back.
func (b *keptReceipts) fail(ctx context.Context, all []*receiptTarget) error {
	if len(all) == 0 {
		return nil
	}
	returned := map[puntuale.ClientID]int64{}
	for _, m := range all {
		if m.credit == 1 {
			returned[m.Client]++
		}
	}
	if _, err := b.a.Exec(ctx, `
update message set intent = -1, state = 2, outcome = 2, done_at = $1::bigint, reason = u.r,
 detail = case when message.phone = '' then '' else u.d end, credit = case when message.credit = 1 then -1 else message.credit end,
 next_at = case when message.intent_at > 0 and message.next_at > message.intent_at then message.intent_at else message.next_at end
from $u(c bigint, i bigint, r text, d text) where message.client_id = u.c and message.id = u.i`,
		engine.Micros(b.now), append(toldColumns(all),
			engine.Column(all, func(m **receiptTarget) string { return (*m).last.Reason.Stored() }),
			engine.Column(all, func(m **receiptTarget) string { return (*m).last.Detail.Stored() }))); err != nil {
		return fmt.Errorf("turn outcomes: %w", err)
	}
	return giveBack(ctx, b.a, b.now, returned)
}
