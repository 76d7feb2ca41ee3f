package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Renew sets a new end for the given holds that have not ended yet, and returns these holds.
func (t tenant) Renew(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, held []puntuale.HeldRef, holdUntil, now time.Time) ([]puntuale.HeldRef, error) {
	var renewed []puntuale.HeldRef
	err := t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		renewed = nil
		if err := t.lockedDevice(ctx, a, session, device); err != nil {
			return err
		}
		live, err := t.holds(ctx, a, ` and h.session_id = $2 and h.device_id = $3 and h.until > $4`, session, device, engine.Micros(now))
		if err != nil {
			return err
		}
		live = slices.DeleteFunc(live, func(h hold) bool {
			return !slices.Contains(held, puntuale.HeldRef{Message: h.ID, Token: h.Intent})
		})
		renewed = engine.Column(live, func(h *hold) puntuale.HeldRef { return puntuale.HeldRef{Message: h.ID, Token: h.Intent} })
		short := slices.DeleteFunc(slices.Clone(live), func(h hold) bool { return h.dedupes })
		if err := t.moveMessages(ctx, a, short, holdUntil); err != nil {
			return err
		}
		return t.moveHolds(ctx, a, live, holdUntil)
	})
	return renewed, err
}

// lockedDevice locks the session and checks that the device is still linked to it.
func (t tenant) lockedDevice(ctx context.Context, a engine.Querier, session puntuale.SessionID, device puntuale.DeviceID) error {
	if _, err := t.lockSessions(ctx, a, session); err != nil {
		return err
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from device where client_id = $1 and id = $2 and session_id = $3`, []any{t.id, device, session}, &n)
	return engine.ThereOr(found, err, puntuale.NoDevice)
}

// reportedAttempt is a device's attempt as the report's transaction reads it.
type reportedAttempt struct {
	token   int64
	done    bool
	holdEnd time.Time
	next    time.Time // next_at of the message
	dedupes bool
}

// Report records the outcomes of the device's attempts. It returns one result for each report, in the same order.
func (t tenant) Report(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, reports []puntuale.DeviceReport, now time.Time) ([]puntuale.ReportResult, error) {
	b := &reportTransaction{tenant: t, session: session, device: device, reports: reports}
	present := t.s.ClockAt(now)
	err := t.writeTimestamped(ctx, func(ctx context.Context, a engine.Querier) error {
		b.a, b.now = a, present()
		return b.Run(ctx)
	})
	return b.results, err
}

// reportTransaction is the transaction of a report. Locks: messages, client, holds.
type reportTransaction struct {
	tenant
	session puntuale.SessionID
	device  puntuale.DeviceID
	reports []puntuale.DeviceReport
	a       engine.Querier
	now     time.Time
	results []puntuale.ReportResult
}

func (b *reportTransaction) ref(i int) puntuale.MessageRef {
	return puntuale.MessageRef{Client: b.tenant.id, ID: b.reports[i].Message}
}

func (b *reportTransaction) Run(ctx context.Context) error {
	b.results = make([]puntuale.ReportResult, len(b.reports))
	refs := make([]puntuale.MessageRef, len(b.reports))
	for i := range refs {
		b.results[i], refs[i] = puntuale.ReportLate, b.ref(i)
	}
	slices.SortFunc(refs, queue.CompareRefs)
	if err := queue.LockMessages(ctx, b.a, slices.Compact(refs)); err != nil {
		return err
	}
	found, err := b.read(ctx, slices.Compact(refs))
	if err != nil {
		return err
	}
	var order, late []int
	reported := map[puntuale.MessageRef]bool{}
	results := make([]puntuale.Result, len(b.reports))
	for i := range b.reports {
		r := &b.reports[i]
		h, ok := found[b.ref(i)]
		switch {
		case !ok || h.token != r.Token:
			if r.Outcome.Verdict == puntuale.Sent && (!ok || !h.dedupes) { // a device that deduplicates sends once, however often it takes
				late = append(late, i)
			}
			continue
		case h.done || reported[b.ref(i)]:
			b.results[i] = puntuale.ReportKnown
			continue
		case r.Returned && !h.holdEnd.After(b.now):
			continue
		}
		reported[b.ref(i)] = true
		results[i] = puntuale.Result{MessageRef: b.ref(i), Token: r.Token, Outcome: r.Outcome}
		// Until next_at, this device may take the message again, and the node must not decide about the message. So keep
		// next_at.
		if r.Outcome.Verdict == puntuale.Uncertain && h.dedupes {
			results[i].Outcome.Next = h.next
		}
		order = append(order, i)
	}
	if err := b.noteLate(ctx, late); err != nil {
		return err
	}
	return b.record(ctx, results, order)
}

// noteLate adds to the histories of messages that the device says it sent them, although another attempt took their
// place. So a person sees that the message may have arrived twice. A repeated report adds nothing, nor does a report
// about a message that ended with the same report.
func (b *reportTransaction) noteLate(ctx context.Context, late []int) error {
	if len(late) == 0 {
		return nil
	}
	refs := engine.Column(late, func(i *int) puntuale.MessageRef { return b.ref(*i) })
	if _, err := b.a.Exec(ctx, `insert into event (client_id, message_id, at, kind, detail)
 select distinct u.c, u.i, $1::bigint, 'late sent', u.d from $u(c bigint, i bigint, d text) join message m on m.client_id = u.c and m.id = u.i
 where m.session_id = $2 and m.attempt > 0 and m.detail <> u.d and not exists (
 select 1 from event e where e.client_id = u.c and e.message_id = u.i and e.kind = 'late sent' and e.detail = u.d)`,
		engine.Micros(b.now), b.session, append(queue.RefColumns(refs), engine.Column(late, func(i *int) string { return b.reports[*i].Outcome.Detail.Stored() }))); err != nil {
		return fmt.Errorf("note late reports: %w", err)
	}
	return nil
}

// read finds the device's attempts at the given messages, including attempts that were already reported.
func (b *reportTransaction) read(ctx context.Context, refs []puntuale.MessageRef) (map[puntuale.MessageRef]reportedAttempt, error) {
	found := map[puntuale.MessageRef]reportedAttempt{}
	err := b.a.Query(ctx, `select h.client_id, h.message_id, h.token, h.done, h.until, m.next_at, coalesce(d.dedupes, 0)
 from $u(c bigint, i bigint) join device_hold h on h.client_id = u.c and h.message_id = u.i
 join message m on m.client_id = h.client_id and m.id = h.message_id
 left join device d on d.client_id = h.client_id and d.id = h.device_id
 where h.session_id = $1 and h.device_id = $2`, []any{b.session, b.device, queue.RefColumns(refs)}, func(rows engine.Row) error {
		var ref puntuale.MessageRef
		var h reportedAttempt
		err := rows.Scan(&ref.Client, &ref.ID, &h.token, engine.ScanBool(&h.done), engine.ScanTime(&h.holdEnd), engine.ScanTime(&h.next), engine.ScanBool(&h.dedupes))
		found[ref] = h
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read reported attempts: %w", err)
	}
	return found, nil
}

// record stores the outcomes, and then updates the holds.
func (b *reportTransaction) record(ctx context.Context, results []puntuale.Result, order []int) error {
	if len(order) == 0 {
		return nil
	}
	slices.SortFunc(order, func(i, j int) int { return queue.CompareRefs(results[i].MessageRef, results[j].MessageRef) })
	r := &queue.RecordBatch{A: b.a, Now: b.now, Results: results, Order: order, Applied: make([]bool, len(results))}
	if err := r.Run(ctx); err != nil {
		return err
	}
	sent, err := b.sentAfterAll(ctx, results, order, r.Applied)
	if err != nil {
		return err
	}
	var done, open, returned, refused []puntuale.MessageRef
	for _, i := range order {
		ref := results[i].MessageRef
		if r.Applied[i] || sent[ref] {
			b.results[i] = puntuale.ReportRecorded
		}
		switch verdict := results[i].Outcome.Verdict; {
		case !r.Applied[i]:
			done = append(done, ref)
		case verdict == puntuale.Retry:
			returned = append(returned, ref)
		case verdict == puntuale.Uncertain:
			open = append(open, ref)
		case verdict == puntuale.Refused:
			refused = append(refused, ref)
		default:
			done = append(done, ref)
		}
	}
	for _, change := range []struct {
		refs []puntuale.MessageRef
		text string
		args []any
	}{
		{done, `update device_hold set done = 1 from $u(c bigint, i bigint) where device_hold.client_id = u.c and device_hold.message_id = u.i`, nil},
		{refused, `update device_hold set done = 1, at = 0 from $u(c bigint, i bigint) where device_hold.client_id = u.c and device_hold.message_id = u.i`, nil},
		{open, `update device_hold set until = $1::bigint from $u(c bigint, i bigint) where device_hold.client_id = u.c and device_hold.message_id = u.i`, []any{engine.Micros(b.now)}},
		{returned, `delete from device_hold where (client_id, message_id) in (select u.c, u.i from $u(c bigint, i bigint))`, nil},
	} {
		if len(change.refs) == 0 {
			continue
		}
		if _, err := b.a.Exec(ctx, change.text, append(change.args, queue.RefColumns(change.refs))...); err != nil {
			return fmt.Errorf("end holds: %w", err)
		}
	}
	return nil
}

// sentAfterAll returns the messages that the node had already given up when the device reported them as sent. The
// report could not close these messages again, but they now count as sent.
func (b *reportTransaction) sentAfterAll(ctx context.Context, results []puntuale.Result, order []int, applied []bool) (map[puntuale.MessageRef]bool, error) {
	var refs []puntuale.MessageRef
	for _, i := range order {
		if !applied[i] && results[i].Outcome.Verdict == puntuale.Sent {
			refs = append(refs, results[i].MessageRef)
		}
	}
	sent := map[puntuale.MessageRef]bool{}
	if len(refs) == 0 {
		return sent, nil
	}
	err := b.a.Query(ctx, `select m.client_id, m.id from $u(c bigint, i bigint) join message m on m.client_id = u.c and m.id = u.i where m.outcome = 1`,
		[]any{queue.RefColumns(refs)}, func(rows engine.Row) error {
			var ref puntuale.MessageRef
			err := queue.ScanRef(rows, &ref)
			sent[ref] = true
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("look for what was sent: %w", err)
	}
	return sent, nil
}
