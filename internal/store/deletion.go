package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
	"puntuale/internal/store/statement"
)

// Codes of the faults that functions in this file return.
const (
	faultSequenceOnePending  puntuale.ReasonCode = "sequence.one_pending"
	faultSequencePending     puntuale.ReasonCode = "sequence.pending"
	faultSessionDefaultStays puntuale.ReasonCode = "session.default_stays"
	faultSessionHasCampaign  puntuale.ReasonCode = "session.has_campaign"
	faultSessionOnePending   puntuale.ReasonCode = "session.one_pending"
	faultSessionPending      puntuale.ReasonCode = "session.pending"
)

// DeleteClient deletes the client; this cannot be undone. Its login e-mail becomes free, its keys are revoked, its
// sessions are deleted, and its pending messages are cancelled. Messages in flight end in the same way as after
// [puntuale.Tenant].Stop. The rows of messages and of the ledger stay.
// Codes: not_found.
//
// DeleteClient first makes the client unreachable, in one transaction. After that, no start, claim or read of the
// client succeeds. Then DeleteClient cancels pending messages and deletes contacts, in several transactions. If it
// fails after the first transaction, the remaining messages are never sent, and [Store.Maintain] finishes the deletion.
func (p partnerTenant) DeleteClient(ctx context.Context, id puntuale.ClientID, now time.Time) error {
	t := tenant{s: p.s, id: id}
	if err := t.write(ctx, func(ctx context.Context, a engine.Querier) error { return p.deleteInTransaction(ctx, a, id, now) }); err != nil {
		return err
	}
	refs, err := engine.QueryAll(ctx, p.s.CallReads, openCandidates, []any{id}, queue.ScanRef)
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for messages to cancel: %w", err))
	}
	_, err = p.s.cancelAll(ctx, refs, now)
	return errors.Join(err, p.s.ForgetContacts(ctx))
}

func (p partnerTenant) deleteInTransaction(ctx context.Context, a engine.Querier, id puntuale.ClientID, now time.Time) error {
	t := tenant{s: p.s, id: id}
	if _, found, err := p.ClientIn(ctx, a, id); !found {
		return engine.ThereOr(found, err, puntuale.NoClient)
	}
	if err := t.lockDays(ctx, a, now); err != nil {
		return err
	}
	if err := t.lockAllSessions(ctx, a); err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update campaign set state = case when state < 7 then 8 else state end, list_id = 0, checked = '', frozen = '' where client_id = $1`, id); err != nil {
		return fmt.Errorf("end a client's campaigns: %w", err)
	}
	if err := statement.ClientDeleted(ctx, a, id); err != nil {
		return err
	}
	if err := p.LockClient(ctx, a, id); err != nil {
		return err
	}
	for _, statement := range []string{
		`update client set deleted_at = $2, revision = revision + 1 where id = $1`,
		`update api_key set revoked_at = $2 where client_id = $1 and revoked_at = 0`,
	} {
		if _, err := a.Exec(ctx, statement, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("delete a client: %w", err)
		}
	}
	if _, err := a.Exec(ctx, endSessions+` and deleted_at = 0`, id, engine.Micros(now), []byte{}); err != nil {
		return fmt.Errorf("delete a client's sessions: %w", err)
	}
	if err := notice.ClientDeleted(ctx, a, id); err != nil {
		return err
	}
	for _, statement := range []string{
		`delete from mail where login_id in (select id from login where client_id = $1)`,
		`delete from login where client_id = $1`,
		`delete from contact where client_id = $1`, // the table contains what networks reported about people, not the contacts of a list
		`delete from upload where client_id = $1`,
		`delete from alias where client_id = $1`,
		`delete from former_name where client_id = $1`,
		`delete from number_change where client_id = $1`,
		`delete from network_id where client_id = $1`,
		`delete from official where client_id = $1`,
		`delete from network_template where client_id = $1`,
		`delete from official_pause where client_id = $1`,
		`delete from official_health where client_id = $1`,
		`delete from template_request where client_id = $1`,
		`delete from calendar where client_id = $1`,
		`delete from calendar_entry where client_id = $1`,
		`delete from incoming_file where client_id = $1`,
		`update file set hidden_at = 1, stored_at = 0, name = '', run_id = 0 where client_id = $1`, // maintenance deletes their parts, a few at a time
	} {
		if _, err := a.Exec(ctx, statement, id); err != nil {
			return fmt.Errorf("delete what was a client's: %w", err)
		}
	}
	if err := result.ClientDeleted(ctx, a, id); err != nil {
		return err
	}
	return event.Deleted(ctx, a, id)
}

// endSessions deletes all sessions of a client, with their numbers, keys and linking codes.
const endSessions = `update session set deleted_at = $2, owner = 0, link = 1, number = '', link_detail = '', code = $3, code_until = 0,
 keys = $3, network_mark = '' where client_id = $1`

// cancelAll cancels those of the given messages that are open and not in flight, one chunk in each transaction.
func (s *Store) cancelAll(ctx context.Context, refs []puntuale.MessageRef, now time.Time) (cancelled int, err error) {
	engine.Sort(refs, queue.CompareRefs)
	for part := range slices.Chunk(refs, engine.Chunk) {
		var done []puntuale.CancelledMessage
		if err := s.TenantWriter(int64(part[0].Client)).Do(ctx, engine.Single(s.kinds.cancel, func(ctx context.Context, a engine.Querier) (err error) {
			done, err = queue.CancelMoved(ctx, a, part, now)
			return err
		}), false); err != nil {
			return cancelled, err
		}
		cancelled += len(done)
	}
	return cancelled, nil
}

// openMessage is an open message of a session that is being deleted.
type openMessage struct {
	puntuale.MessageRef
	intent    int64
	uncertain bool
}

// DeleteSession deletes a session. Sequences that name it then use moveTo, or the default session if moveTo is 0.
// Pending messages are cancelled, or move to moveTo with the same due times. An uncertain message becomes FAILED,
// because no connector could look for it any more.
//
// Code not_found: the session is missing. If moveTo is missing, the fault is at query.move_to. Code conflict: the
// session is the default session. The code is also conflict if the session has pending messages, and the call gives
// neither cancel nor moveTo; the error says how many. Code busy: messages are being sent now.
//
// DeleteSession first handles the messages that are not in flight, one chunk in each transaction. It cancels them, or
// gives them to the session moveTo. Then it handles the remaining messages, also in chunks. The last transaction also
// deletes the session. If an earlier transaction fails, the session still exists, with fewer messages. Then the caller
// may repeat the call.
func (t tenant) DeleteSession(ctx context.Context, id puntuale.SessionID, cancel bool, moveTo puntuale.SessionID, now time.Time) error {
	d := &sessionDeletion{tenant: t, id: id, cancel: cancel, moveTo: moveTo}
	present := t.s.ClockAt(now)
	for _, step := range []func(ctx context.Context, a engine.Querier) (bool, error){d.empty, d.finish} {
		for more := true; more; {
			if err := t.writeTimestamped(ctx, func(ctx context.Context, a engine.Querier) (err error) {
				d.now = present()
				more, err = step(ctx, a)
				return err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// GiveUp ends the session's attempts that have no outcome: their messages become FAILED with an uncertain
// outcome. The caller must know that no message of the session is in flight. Attempts without an outcome remain
// after a server stopped, or after a failover. Codes: not_found; busy (a device holds messages of the session).
//
// GiveUp ends the attempts that began until the time now and have no outcome, one chunk in each transaction.
func (t tenant) GiveUp(ctx context.Context, id puntuale.SessionID, now time.Time) error {
	d := &sessionDeletion{tenant: t, id: id}
	present := t.s.ClockAt(now)
	for more := true; more; {
		if err := t.writeTimestamped(ctx, func(ctx context.Context, a engine.Querier) error {
			d.now = present()
			locked, err := d.lockSessions(ctx, a, id)
			if err := engine.ThereOr(len(locked) > 0, err, puntuale.NoSession); err != nil {
				return err
			}
			if err := d.noHold(ctx, a, id, d.now); err != nil {
				return err
			}
			refs, err := d.candidates(ctx, a, " and m.intent > 0 and m.intent_at <= $4", engine.Micros(now))
			if err != nil {
				return err
			}
			more = len(refs) == engine.Chunk
			open, err := d.lock(ctx, a, refs)
			if err != nil {
				return err
			}
			return d.giveUp(ctx, a, slices.DeleteFunc(open, func(m openMessage) bool { return m.intent == 0 }))
		}); err != nil {
			return err
		}
	}
	return nil
}

// sessionDeletion is the deletion of one session.
type sessionDeletion struct {
	tenant
	id     puntuale.SessionID
	cancel bool
	moveTo puntuale.SessionID
	now    time.Time
}

// check returns an error if the deletion is not allowed. It locks the session and the session moveTo until the
// transaction commits.
func (d *sessionDeletion) check(ctx context.Context, a engine.Querier) error {
	ids := []puntuale.SessionID{d.id}
	if d.moveTo != 0 {
		ids = append(ids, d.moveTo)
	}
	locked, err := d.lockSessions(ctx, a, ids...)
	if err != nil {
		return err
	}
	place := func(id puntuale.SessionID) int {
		return slices.IndexFunc(locked, func(s lockedSession) bool { return s.id == id })
	}
	switch i := place(d.id); {
	case i < 0:
		return puntuale.NotFound(puntuale.NoSession)
	case locked[i].isDefault:
		return puntuale.Conflict(faultSessionDefaultStays)
	case d.moveTo != 0 && (d.moveTo == d.id || place(d.moveTo) < 0):
		return notFound(puntuale.NoSession, []puntuale.Fault{{Location: "query.move_to", Code: puntuale.NoSession, Value: d.moveTo.String()}})
	}
	if err := d.noHold(ctx, a, d.id, d.now); err != nil {
		return err
	}
	if d.cancel || d.moveTo != 0 {
		return nil
	}
	var n int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from campaign where client_id = $1 and session_id = $2 and state between 3 and 6`, []any{d.tenant.id, d.id}, &n); err != nil {
		return fmt.Errorf("count campaigns: %w", err)
	}
	if n > 0 {
		return puntuale.Conflict(faultSessionHasCampaign)
	}
	if _, err := engine.QueryOne(ctx, a, `select count(*) from message where client_id + 0 = $1 and session_id = $2 and state = 0`,
		[]any{d.tenant.id, d.id}, &n); err != nil {
		return fmt.Errorf("count pending messages: %w", err)
	}
	if n > 0 {
		return stillPending(n, faultSessionOnePending, faultSessionPending)
	}
	return nil
}

// empty handles one chunk of messages that are not in flight. It cancels them, or gives them to the session moveTo.
// more reports whether there may be more such messages.
func (d *sessionDeletion) empty(ctx context.Context, a engine.Querier) (more bool, err error) {
	if err := d.check(ctx, a); err != nil {
		return false, err
	}
	refs, err := d.candidates(ctx, a, " and m.intent = 0")
	if err != nil {
		return false, err
	}
	open, err := d.lock(ctx, a, refs)
	if err != nil {
		return false, err
	}
	return len(refs) == engine.Chunk, d.settle(ctx, a, slices.DeleteFunc(open, func(m openMessage) bool { return m.intent != 0 }))
}

// finish ends one chunk of the remaining messages. With the last chunk, it deletes the session. It locks the client's
// usage, so that no start can add a message at the same time.
func (d *sessionDeletion) finish(ctx context.Context, a engine.Querier) (more bool, err error) {
	if err := d.lockDays(ctx, a, d.now); err != nil {
		return false, err
	}
	if err := d.check(ctx, a); err != nil {
		return false, err
	}
	refs, err := d.candidates(ctx, a, "")
	if err != nil {
		return false, err
	}
	more = len(refs) == engine.Chunk
	if !more { // change sequences and campaigns first, because they come before messages in the order of locks
		if _, err := a.Exec(ctx, `update sequence set session_id = $3 where client_id = $1 and session_id = $2`,
			d.tenant.id, d.id, d.moveTo); err != nil {
			return false, fmt.Errorf("take a session out of sequences: %w", err)
		}
		if _, err := a.Exec(ctx, `update booking set session_id = $3 where client_id = $1 and session_id = $2 and session_id <> 0`,
			d.tenant.id, d.id, d.moveTo); err != nil {
			return false, fmt.Errorf("take a session out of bookings: %w", err)
		}
		if err := d.campaigns(ctx, a); err != nil {
			return false, err
		}
	}
	open, err := d.lock(ctx, a, refs)
	if err != nil {
		return false, err
	}
	if err := d.settle(ctx, a, open); err != nil || more {
		return more, err
	}
	if _, err := a.Exec(ctx, endSessions+` and id = $4`, d.tenant.id, engine.Micros(d.now), []byte{}, d.id); err != nil {
		return false, fmt.Errorf("delete a session: %w", err)
	}
	for _, statement := range []string{
		`delete from contact where client_id = $1 and session_id = $2`,
		`delete from upload where client_id = $1 and session_id = $2`,
		`delete from alias where client_id = $1 and session_id = $2 and not exists (select 1 from former_name f where f.client_id = $1 and f.name = alias.alias)`, // a former number stays one
		`delete from network_id where client_id = $1 and session_id = $2`,
		`delete from official where client_id = $1 and session_id = $2`,
		`delete from official_pause where client_id = $1 and session_id = $2`,
		`delete from official_health where client_id = $1 and session_id = $2`,
		`delete from device where client_id = $1 and session_id = $2`,
		`delete from device_hold where client_id = $1 and session_id = $2`,
	} {
		if _, err := a.Exec(ctx, statement, d.tenant.id, d.id); err != nil {
			return false, fmt.Errorf("delete what was a session's: %w", err)
		}
	}
	if err := forgetTemplates(ctx, a, d.tenant.id); err != nil {
		return false, err
	}
	if err := notice.SessionDeleted(ctx, a, d.tenant.id, d.id, d.now); err != nil {
		return false, err
	}
	return false, account.Changed(ctx, a, d.tenant.id)
}

// campaigns moves the session's campaigns to the session moveTo. If moveTo is 0, it cancels running campaigns and
// removes the session from drafts.
func (d *sessionDeletion) campaigns(ctx context.Context, a engine.Querier) error {
	statement, args := `update campaign set session_id = $3 where client_id = $1 and session_id = $2`, []any{d.tenant.id, d.id, d.moveTo}
	if d.moveTo == 0 {
		statement, args = `update campaign set session_id = case when state < 3 then 0 else session_id end, reason = case when state between 3 and 6 then $3 else reason end,
 ended_at = case when state between 3 and 6 then $4::bigint else ended_at end, checked = case when state < 3 then '' else checked end,
 state = case when state < 3 then 0 when state between 3 and 6 then 8 else state end where client_id = $1 and session_id = $2`,
			[]any{d.tenant.id, d.id, puntuale.CampaignNoSession, engine.Micros(d.now)}
		if err := queue.NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignCancelled, Reason: puntuale.CampaignNoSession, Now: d.now},
			`c.client_id = $1 and c.session_id = $2 and c.state between 3 and 6`, d.tenant.id, d.id); err != nil {
			return err
		}
	}
	if _, err := a.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("take a session out of campaigns: %w", err)
	}
	return nil
}

// candidates reads one chunk of the session's open messages, and sorts it in the order of locks. If the chunk is full,
// there may be more messages, even if some of the messages change before they are locked.
func (d *sessionDeletion) candidates(ctx context.Context, a engine.Querier, condition string, args ...any) ([]puntuale.MessageRef, error) {
	refs, err := engine.QueryAll(ctx, a, `select m.client_id, m.id from message m
 where m.client_id + 0 = $1 and m.session_id = $2 and m.state = 0`+condition+` limit $3`, append([]any{d.tenant.id, d.id, engine.Chunk}, args...), queue.ScanRef)
	if err != nil {
		return nil, fmt.Errorf("look for pending messages: %w", err)
	}
	engine.Sort(refs, queue.CompareRefs)
	return refs, nil
}

// lock locks those of the given messages that are still open, and returns them in the order of locks.
func (d *sessionDeletion) lock(ctx context.Context, a engine.Querier, refs []puntuale.MessageRef) ([]openMessage, error) {
	open, err := engine.QueryAll(ctx, a, `select message.client_id, message.id, message.intent, message.next_at > message.intent_at from $u(c bigint, i bigint)
 join message on message.client_id = u.c and message.id = u.i where message.intent >= 0
 order by message.client_id, message.id for update of message`, []any{queue.RefColumns(refs)}, func(rows engine.Row, m *openMessage) error {
		return rows.Scan(&m.Client, &m.ID, &m.intent, &m.uncertain)
	})
	if err != nil {
		return nil, fmt.Errorf("lock pending messages: %w", err)
	}
	return open, nil
}

// settle cancels messages that are not in flight, or gives them to the session moveTo. It makes uncertain messages
// FAILED. A message that is being repeated also looks uncertain here. Later receipts for such a message still count.
func (d *sessionDeletion) settle(ctx context.Context, a engine.Querier, open []openMessage) error {
	var free []puntuale.MessageRef
	var lost []openMessage
	for _, m := range open {
		switch {
		case m.intent == 0:
			free = append(free, m.MessageRef)
		case m.uncertain:
			lost = append(lost, m)
		default:
			return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(puntuale.FaultSessionSending), RetryAfter: 2 * time.Second}
		}
	}
	if err := d.giveUp(ctx, a, lost); err != nil {
		return err
	}
	if d.moveTo == 0 {
		_, err := queue.CancelOpen(ctx, a, free, d.now)
		return err
	}
	if len(free) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, moveMessages, d.moveTo, queue.RefColumns(free)); err != nil {
		return fmt.Errorf("move messages: %w", err)
	}
	return result.NoteAll(ctx, a, d.now, free...)
}

func (d *sessionDeletion) giveUp(ctx context.Context, a engine.Querier, lost []openMessage) error {
	return queue.Settle(ctx, a, 0, d.now, engine.Column(lost, func(m *openMessage) puntuale.Settlement {
		return puntuale.Settlement{MessageRef: m.MessageRef, Intent: m.intent, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}
	}))
}

// moveMessages needs no lock against claims. A claim checks that the message is still on the session on which the
// dispatcher saw the message. So no message leaves on its former session.
const moveMessages = `
update message set session_id = $1::bigint from $u(c bigint, i bigint)
where message.client_id = u.c and message.id = u.i and message.intent = 0`

// stillPending returns the error of a deletion that is refused because n messages are pending.
func stillPending(n int, one, many puntuale.ReasonCode) error {
	if n == 1 {
		return puntuale.Conflict(one)
	}
	return puntuale.Conflict(many, strconv.Itoa(n))
}
