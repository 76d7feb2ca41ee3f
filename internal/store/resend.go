package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
	"puntuale/internal/store/retention"
)

// resend is the transaction of one call to Resend. Locks: the idempotency key, the client's usage, the client's
// messages.
type resend struct {
	t tenant
	puntuale.Resend
	a     engine.Querier
	first int64 // identifier of the first new message

	found       map[puntuale.MessageID]lockedMessage
	listed      []unknownRow                // set only if Unknown is true: those of the given messages about which a person must still decide
	withContent map[puntuale.RunID]bool     // runs whose contents still exist
	uses        []file.Use                  // of uploaded files, by the new messages
	of          []puntuale.MessageID        // the message that each of the new messages replaces
	fileless    map[puntuale.MessageID]bool // messages whose uploaded file is gone
}

// lockedMessage is a message whose row the resend has locked.
type lockedMessage struct {
	run     puntuale.RunID
	step    int
	session puntuale.SessionID // session of the new message
	intent  int64
	state   puntuale.State
}

// Resend stores the new messages, all or none, and counts one call. FAILED, CANCELLED, BLACKLISTED and PENDING
// messages become RESCHEDULED. COMPLETED messages stay COMPLETED. A new message gets the session of the old
// message. If this session was deleted, the new message gets the client's default session.
//
// Codes, checked in this order: not_found, with a fault for each id that is missing or belongs to another client.
// conflict, with a fault for each message that is RESCHEDULED, being sent, uncertain, or without content.
// cap_reached, with the counters. The fault of a RESCHEDULED message names the message that replaced it. Faults
// are at body.id[i], where i is the index in r.Messages.
func (t tenant) Resend(ctx context.Context, r puntuale.Resend) (puntuale.ResendResult, error) {
	var answer puntuale.ResendResult
	e := &engine.Effect{Owner: int64(t.id), Key: r.Idempotency, At: engine.Micros(r.Now), IDsNeeded: len(r.Messages)}
	err := e.Do(ctx, t.s.TenantWriter(int64(t.id)), t.s.kinds.resend, func(ctx context.Context, a engine.Querier) (any, error) {
		b := &resend{t: t, Resend: r, a: a, first: e.First}
		var err error
		answer, err = b.run(ctx)
		return answer, err
	})
	if err != nil {
		return puntuale.ResendResult{}, err
	}
	return answer, nil
}

// run checks for refusals in the order of the API: not_found, conflict, cap_reached. Nevertheless it locks the usage
// row first, because of the order of locks.
func (b *resend) run(ctx context.Context) (puntuale.ResendResult, error) {
	day := queue.UsageDay{Client: b.t.id, Day: b.Day}
	usage, exhausted, err := b.count(ctx, day)
	if err != nil {
		return puntuale.ResendResult{}, err
	}
	if err := b.read(ctx); err != nil {
		return puntuale.ResendResult{}, err
	}
	if err := b.lockRuns(ctx); err != nil {
		return puntuale.ResendResult{}, err
	}
	if b.Unknown {
		if b.listed, err = lockUnknown(ctx, b.a, b.refs()); err != nil {
			return puntuale.ResendResult{}, err
		}
	}
	if err := b.refuse(ctx); err != nil {
		return puntuale.ResendResult{}, err
	}
	answer := puntuale.ResendResult{IDs: make([]puntuale.MessageID, len(b.Messages)), Usage: usage}
	if exhausted {
		return puntuale.ResendResult{}, b.t.capReached(usage)
	}
	for i := range answer.IDs {
		answer.IDs[i] = puntuale.MessageID(b.first + int64(i))
	}
	return answer, b.store(ctx)
}

// count counts the call, and reports whether the call exceeds the daily cap.
func (b *resend) count(ctx context.Context, day queue.UsageDay) (u puntuale.Usage, exhausted bool, err error) {
	return b.t.countOne(ctx, b.a, day)
}

// refs returns the messages of the call, sorted in the order of locks.
func (b *resend) refs() []puntuale.MessageRef {
	return sortedRefs(b.t.id, engine.Column(b.Messages, func(m *puntuale.ResendMessage) puntuale.MessageID { return m.ID }))
}

func sortedRefs(client puntuale.ClientID, ids []puntuale.MessageID) []puntuale.MessageRef {
	refs := engine.Column(ids, func(id *puntuale.MessageID) puntuale.MessageRef { return puntuale.MessageRef{Client: client, ID: *id} })
	engine.Sort(refs, queue.CompareRefs)
	return slices.Compact(refs)
}

// readResendable locks the messages, so that they do not change after they are read. The client's usage row is also
// locked, so no session can be deleted before this transaction ends.
const readResendable = `
select message.id, message.run_id, message.step, message.intent, message.state, coalesce(
 (select s.id from session s where s.client_id = message.client_id and s.id = message.session_id and s.deleted_at = 0),
 (select s.id from session s where s.client_id = message.client_id and s.is_default = 1 and s.deleted_at = 0), 0)
from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i
order by message.client_id, message.id for update of message`

func (b *resend) read(ctx context.Context) error {
	b.found = make(map[puntuale.MessageID]lockedMessage, len(b.Messages))
	err := b.a.Query(ctx, readResendable, []any{queue.RefColumns(b.refs())}, func(rows engine.Row) error {
		var id puntuale.MessageID
		var m lockedMessage
		if err := rows.Scan(&id, &m.run, &m.step, &m.intent, &m.state, &m.session); err != nil {
			return err
		}
		b.found[id] = m
		return nil
	})
	if err != nil {
		return fmt.Errorf("read messages to send again: %w", err)
	}
	return nil
}

// lockResendable locks the messages' runs, so that their contents stay until this transaction commits. Blanking also
// locks a run before it removes the content.
const lockResendable = `
select r.id, r.blanked_at = 0, case when r.content like '%"media_url":"file:%' then r.content else '[]' end, r.phone from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i
order by r.client_id, r.id for share of r`

func (b *resend) lockRuns(ctx context.Context) error {
	var refs []puntuale.RunRef
	for _, m := range b.found {
		refs = append(refs, puntuale.RunRef{Client: b.t.id, ID: m.run})
	}
	engine.Sort(refs, retention.CompareRuns)
	b.withContent = make(map[puntuale.RunID]bool, len(refs))
	err := b.a.Query(ctx, lockResendable, []any{retention.RunColumns(slices.Compact(refs))}, func(rows engine.Row) error {
		var id puntuale.RunID
		var said bool
		var content, phone string
		if err := rows.Scan(&id, &said, &content, &phone); err != nil {
			return err
		}
		b.withContent[id] = said
		return b.findUses(id, content, phone)
	})
	if err != nil {
		return fmt.Errorf("lock runs to send again: %w", err)
	}
	return b.findFiles(ctx)
}

// findUses notes which new messages of a run need uploaded files.
func (b *resend) findUses(run puntuale.RunID, content, phone string) error {
	var steps []puntuale.FrozenStep
	if err := json.Unmarshal([]byte(content), &steps); err != nil {
		return fmt.Errorf("read the contents of run %d: %w", run, err)
	}
	for _, m := range b.Messages {
		found := b.found[m.ID]
		if found.run != run || found.step >= len(steps) {
			continue
		}
		if u, ok := file.UseOf(steps[found.step].Content, m.Due, m.ValidUntil); ok {
			u.Client, u.Run, u.Phone = b.t.id, int64(run), phone
			b.uses, b.of = append(b.uses, u), append(b.of, m.ID)
		}
	}
	return nil
}

// findFiles notes the messages whose uploaded file is gone.
func (b *resend) findFiles(ctx context.Context) error {
	missing, err := file.Missing(ctx, b.a, b.uses)
	b.fileless = map[puntuale.MessageID]bool{}
	for _, i := range missing {
		b.fileless[b.of[i]] = true
	}
	return err
}

// Codes of the faults that functions in this file return.
const (
	faultMessageBeingSent      puntuale.ReasonCode = "message.being_sent"
	faultMessageContentRemoved puntuale.ReasonCode = "message.content_removed"
	faultMessageNotPending     puntuale.ReasonCode = "message.not_pending"
	faultMessageNotSentAgain   puntuale.ReasonCode = "message.not_sent_again"
	faultMessageNotUnfinished  puntuale.ReasonCode = "message.not_unfinished"
	faultMessageSentAgain      puntuale.ReasonCode = "message.sent_again"
)

// refuse returns an error that lists every message that cannot be sent again, or nil.
func (b *resend) refuse(ctx context.Context) error {
	if faults := missing(b.Messages, func(m *puntuale.ResendMessage) (puntuale.MessageID, bool) {
		_, ok := b.found[m.ID]
		return m.ID, ok
	}); len(faults) > 0 {
		return notFound(puntuale.NoMessage, faults)
	}
	var sent []puntuale.MessageRef
	for _, m := range b.Messages {
		if b.found[m.ID].session == 0 {
			return puntuale.NotFound(puntuale.NoSession) // the client has no default session only if the client is being deleted
		}
		if b.found[m.ID].state == puntuale.Rescheduled {
			sent = append(sent, puntuale.MessageRef{Client: b.t.id, ID: m.ID})
		}
	}
	next, err := b.successors(ctx, sent)
	if err != nil {
		return err
	}
	var faults []puntuale.Fault
	for i, m := range b.Messages {
		var reason puntuale.Reason
		switch found := b.found[m.ID]; {
		case found.state == puntuale.Rescheduled:
			reason = puntuale.Because(faultMessageSentAgain, next[m.ID].String())
		case b.Unknown && !b.unknown(m.ID):
			reason = puntuale.Because(faultMessageNotUnfinished)
		case found.intent > 0 && !b.Unknown:
			reason = puntuale.Because(faultMessageBeingSent)
		case !b.withContent[found.run]:
			reason = puntuale.Because(faultMessageContentRemoved)
		case b.fileless[m.ID]:
			reason = puntuale.Because(puntuale.FaultFileGone)
		case b.Move && found.state != puntuale.Pending:
			reason = puntuale.Because(faultMessageNotPending)
		default:
			continue
		}
		faults = append(faults, reason.At(bodyID(i), m.ID.String()))
	}
	if len(faults) == 0 {
		return nil
	}
	return &puntuale.Error{Code: puntuale.CodeConflict, Reason: puntuale.Because(faultMessageNotSentAgain), Faults: faults}
}

// unknown reports whether a person must still decide about a message.
func (b *resend) unknown(id puntuale.MessageID) bool {
	return slices.ContainsFunc(b.listed, func(m unknownRow) bool { return m.ID == id })
}

// successors returns, for each RESCHEDULED message, the new message that replaced it.
func (b *resend) successors(ctx context.Context, refs []puntuale.MessageRef) (map[puntuale.MessageID]puntuale.MessageID, error) {
	next := map[puntuale.MessageID]puntuale.MessageID{}
	if len(refs) == 0 {
		return next, nil
	}
	err := b.a.Query(ctx, `
select u.i, m.id from $u(c bigint, i bigint, r bigint) join message m
 on m.client_id = u.c and m.run_id = u.r and m.resent_from <> 0 and m.resent_from = u.i
union all
select u.i, s.message_id from $u(c bigint, i bigint, r bigint) join booking_step s on s.client_id = u.c and s.previous_id = u.i and s.previous_id <> 0`,
		[]any{append(queue.RefColumns(refs), engine.Column(refs, func(r *puntuale.MessageRef) int64 { return int64(b.found[r.ID].run) }))},
		func(rows engine.Row) error {
			var from, to puntuale.MessageID
			err := rows.Scan(&from, &to)
			next[from] = to
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("look for re-sent messages: %w", err)
	}
	return next, nil
}

// rescheduleMessages keeps the outcome of a message, with its time and reason. In some states the reason is not stored,
// because it follows from the state. Such a reason is stored now, because the state changes.
const rescheduleMessages = `
update message set intent = -1, state = 5,
 done_at = case when message.outcome = 0 then $1::bigint else message.done_at end,
 reason = case when message.reason <> '' then message.reason when message.state = 4 then $2::text when message.state = 2 then $3::text else '' end
from $u(c bigint, i bigint)
where message.client_id = u.c and message.id = u.i and message.intent <= 0 and message.state in (0, 2, 3, 4)`

const insertResent = `
insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, resent_from, campaign_id, priority, purpose)
select m.client_id, u.n, u.s, m.run_id, u.w, u.d, u.d, u.v, m.step, m.origin, m.phone, m.id, m.campaign_id, m.priority * $1::smallint, m.purpose
from $u(c bigint, i bigint, n bigint, s bigint, w bigint, d bigint, v bigint) join message m on m.client_id = u.c and m.id = u.i`

func (b *resend) store(ctx context.Context) error {
	if len(b.Messages) == 0 {
		return nil
	}
	if b.Unknown {
		if err := decide(ctx, b.a, b.Now, b.listed); err != nil {
			return err
		}
	}
	if _, err := b.a.Exec(ctx, rescheduleMessages, engine.Micros(b.Now), puntuale.Because(puntuale.ReasonBlacklisted).Stored(), puntuale.Because(puntuale.ReasonFailed).Stored(), queue.RefColumns(b.refs())); err != nil {
		return fmt.Errorf("reschedule messages: %w", err)
	}
	type M = puntuale.ResendMessage
	ids := make([]int64, len(b.Messages))
	for i := range ids {
		ids[i] = b.first + int64(i)
	}
	column := func(f func(*M) int64) []int64 { return engine.Column(b.Messages, f) }
	instant := func(f func(*M) time.Time) []int64 { return column(func(m *M) int64 { return engine.Micros(f(m)) }) }
	if _, err := b.a.Exec(ctx, insertResent, engine.Bit(b.Campaign), engine.Columns{
		column(func(*M) int64 { return int64(b.t.id) }),
		column(func(m *M) int64 { return int64(m.ID) }),
		ids,
		column(func(m *M) int64 { return int64(b.found[m.ID].session) }),
		instant(func(m *M) time.Time { return m.Desired }),
		instant(func(m *M) time.Time { return m.Due }),
		instant(func(m *M) time.Time { return m.ValidUntil }),
	}); err != nil {
		return fmt.Errorf("insert re-sent messages: %w", err)
	}
	if err := file.Needed(ctx, b.a, b.uses); err != nil {
		return err
	}
	if err := result.NoteAll(ctx, b.a, b.Now, b.refs()...); err != nil { // the new messages count together with those that they replace
		return err
	}
	return b.tellBookings(ctx, ids)
}

// tellBookings lets the new messages of bookings stand for their steps. Changes of the booking do not replace them.
func (b *resend) tellBookings(ctx context.Context, ids []int64) error {
	if _, err := b.a.Exec(ctx, `update booking_step set message_id = u.n, fate = 2 from $u(c bigint, i bigint, n bigint)
 where booking_step.client_id = u.c and booking_step.message_id = u.i`, engine.Columns{
		slices.Repeat([]int64{int64(b.t.id)}, len(ids)),
		engine.Column(b.Messages, func(m *puntuale.ResendMessage) int64 { return int64(m.ID) }),
		ids,
	}); err != nil {
		return fmt.Errorf("tell bookings of re-sent messages: %w", err)
	}
	return nil
}

// missing returns a fault for each message that was not found.
func missing[T any](requested []T, found func(*T) (puntuale.MessageID, bool)) []puntuale.Fault {
	var faults []puntuale.Fault
	for i := range requested {
		if id, ok := found(&requested[i]); !ok {
			faults = append(faults, puntuale.Fault{Location: bodyID(i), Code: puntuale.NoMessage, Value: id.String()})
		}
	}
	return faults
}

func bodyID(i int) string { return fmt.Sprintf("body.id[%d]", i) }

func notFound(missing puntuale.ReasonCode, faults []puntuale.Fault) error {
	err := puntuale.NotFound(missing)
	err.Faults = faults
	return err
}
