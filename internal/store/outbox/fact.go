package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/result"
)

// Fact is something that a transaction makes true, such as a message that was sent.
type Fact struct {
	Client  puntuale.ClientID
	Type    puntuale.EventType
	Subject int64  // see [puntuale.Event]
	Detail  string // see [puntuale.Event]

	// Only for a fact about a booking: which change of the booking it is, as rules see it; "": the fact triggers no rule.
	Occurrence string
	Depth      int // how many rules caused the change
}

// Message returns a fact about a message.
func Message(m puntuale.MessageRef, t puntuale.EventType) Fact {
	return Fact{Client: m.Client, Type: t, Subject: int64(m.ID)}
}

// EmitFacts stores the facts whose types a subscription wants. If there is no subscription, it only reads an empty
// table.
const EmitFacts = `
insert into outbox_fact (client_id, type, subject, more, detail, at)
select u.c, u.t, u.s, u.m, u.d, $1::bigint from $u(c bigint, t smallint, s bigint, m text, d text) cross join event_stream e
where exists (select 1 from event_stream) and e.client_id = u.c and (e.wanted & (1::bigint << u.t) <> 0 or e.feed_until > $1)`

// lockFacts inserts no row. It only takes a lock on the table of facts.
const lockFacts = `insert into outbox_fact (client_id, type, subject, detail, at) select e.client_id, 0, 0, '', 0 from event_stream e where 1 = 0`

// wantedAtAll reads whether there is any subscription to events, and whether any automation waits for facts.
const wantedAtAll = `select case when exists (select 1 from event_stream) then 1 else 0 end, case when exists (select 1 from automation_client) then 1 else 0 end`

// Emit writes facts in the transaction that makes them true. Its last statements may be sent together with the
// transaction's next statement. Then the next statement may return their errors. Two transactions that emit facts do
// not wait for each other. Emit also notes the messages that reports must count again.
func Emit(ctx context.Context, a engine.Querier, at time.Time, facts []Fact) error {
	if len(facts) == 0 {
		return nil
	}
	if err := result.Note(ctx, a, at, counted(facts)); err != nil {
		return err
	}
	// lockFacts takes the lock for which Announce waits, before the next statement reads subscriptions. So the
	// transaction of a later subscription waits for this transaction, and an earlier subscription is already visible.
	// If there is no subscription, no columns are made.
	if err := a.Queue(ctx, lockFacts, nil, nil); err != nil {
		return fmt.Errorf("begin to write facts: %w", err)
	}
	var wanted, ruled bool
	if _, err := engine.QueryOne(ctx, a, wantedAtAll, nil, engine.ScanBool(&wanted), engine.ScanBool(&ruled)); err != nil {
		return fmt.Errorf("look who wants facts: %w", err)
	}
	if ruled {
		if err := errors.Join(trigger(ctx, a, at, facts), triggerBooked(ctx, a, at, facts)); err != nil {
			return err
		}
	}
	if !wanted {
		return nil
	}
	rows := rowsOf(facts)
	if err := a.Queue(ctx, EmitFacts, []any{engine.Micros(at), engine.Columns{
		engine.Column(rows, func(r *row) int64 { return int64(r.Client) }),
		engine.Column(rows, func(r *row) int64 { return int64(r.Type) }),
		engine.Column(rows, func(r *row) int64 { return r.Subject }),
		engine.Column(rows, func(r *row) string { return r.more }),
		engine.Column(rows, func(r *row) string { return r.Detail }),
	}}, nil); err != nil {
		return fmt.Errorf("write facts: %w", err)
	}
	return nil
}

// countedFacts are the facts that say what became of a message. Receipts are noted where they are stored, because not every
// receipt is a fact.
var countedFacts = puntuale.EventsOf(puntuale.EventMessageSent, puntuale.EventMessageFailed, puntuale.EventMessageCancelled,
	puntuale.EventMessageBlacklisted, puntuale.EventMessageRescheduled)

// counted iterates over the messages whose results change.
func counted(facts []Fact) iter.Seq[puntuale.MessageRef] {
	return func(yield func(puntuale.MessageRef) bool) {
		for i := range facts {
			if f := &facts[i]; countedFacts.Has(f.Type) && !yield(puntuale.MessageRef{Client: f.Client, ID: puntuale.MessageID(f.Subject)}) {
				return
			}
		}
	}
}

// row is one row of facts that differ only in their subjects.
type row struct {
	Fact
	more string // the subjects of all facts after the first, as in outbox_fact.more
}

// maxRows is the largest number of facts in one row. A numberer reads only whole rows.
const maxRows = 100

// rowsOf puts neighbouring facts that differ only in their subjects into one row. If each fact had its own row, the
// rows would cost as much as the events, because each row is written and later deleted.
func rowsOf(facts []Fact) []row {
	rows := make([]row, 0, 1)
	var more []byte
	for len(facts) > 0 {
		r := row{Fact: facts[0]}
		n := 1
		more = more[:0]
		for ; n < min(len(facts), maxRows) && sameExceptSubject(&facts[n], &r.Fact); n++ {
			more = strconv.AppendInt(append(more, ','), facts[n].Subject, 10)
		}
		r.more = string(more)
		rows, facts = append(rows, r), facts[n:]
	}
	return rows
}

// sameExceptSubject reports whether two facts differ only in their subjects.
func sameExceptSubject(x, y *Fact) bool {
	return x.Client == y.Client && x.Type == y.Type && x.Detail == y.Detail
}

// MoreSubjects reads the subjects of all facts of a row after the first.
func MoreSubjects(more string) (all []int64, err error) {
	if more == "" {
		return nil, nil
	}
	for next := range strings.SplitSeq(more[1:], ",") {
		n, err := strconv.ParseInt(next, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the subjects of facts: %w", err)
		}
		all = append(all, n)
	}
	return all, nil
}

// Tell does the same as Emit, for facts about sessions, campaigns, accounts, templates and webhooks. People are told
// about these facts, too, so Tell also writes notices. Call Tell once for each of these facts, in the transaction that
// makes it true, even if no subscription wants it.
//
// A fact without a client is about a webhook of a partner, whose row contains the partner. It causes no event.
func Tell(ctx context.Context, a engine.Querier, at time.Time, facts ...Fact) error {
	for _, f := range facts {
		if f.Type == puntuale.EventCreditLow && slices.ContainsFunc(facts, func(o Fact) bool { return o.Client == f.Client && o.Type == puntuale.EventCreditOut }) {
			continue // the notice that no credit is left makes the notice about few credits unnecessary
		}
		if err := notice.Tell(ctx, a, at, notice.Fact{Client: f.Client, Type: f.Type, Subject: f.Subject, Detail: f.Detail}); err != nil {
			return err
		}
	}
	return Emit(ctx, a, at, facts)
}

// Announce must be called last in a transaction that adds a subscription. It waits for transactions that have written
// facts and have not committed. Transactions that write facts later wait for this transaction.
func Announce(ctx context.Context, d *engine.Dialect, a engine.Querier) error {
	if !d.Postgres { // on SQLite, only one transaction writes at a time, so there is none to wait for
		return nil
	}
	if _, err := a.Exec(ctx, `lock table outbox_fact in share row exclusive mode`); err != nil {
		return fmt.Errorf("wait for facts: %w", err)
	}
	return nil
}

// EmitUncertain writes facts for all messages that a restore makes uncertain. Call it before the messages change. No
// other transaction may use the tables at the same time. due is a condition on the table message that selects the
// messages; its parameter $1 is moment.
func EmitUncertain(ctx context.Context, a engine.Querier, at time.Time, due string, moment int64) error {
	if _, err := a.Exec(ctx, fmt.Sprintf(`insert into outbox_fact (client_id, type, subject, at)
 select x.client_id, %d, x.id, $2::bigint from (select * from message%s) x cross join event_stream e
 where e.client_id = x.client_id and (e.wanted & %d <> 0 or e.feed_until > $2)
 and not (x.intent > 0 and x.next_at > x.intent_at and not (x.intent >= %d and x.detail = ''))
 and not exists (select 1 from event h where h.client_id = x.client_id and h.message_id = x.id and h.kind = 'uncertain')`,
		puntuale.EventMessageUncertain, due, puntuale.EventsOf(puntuale.EventMessageUncertain), int64(puntuale.DeviceToken)), moment, engine.Micros(at)); err != nil {
		return fmt.Errorf("write facts: %w", err)
	}
	return nil
}

// Leap raises the last number of each stream to the clock plus $1. Counting alone never reaches such a number, so it is
// beyond all numbers that may be lost. Two installations that were restored from one backup therefore use different
// numbers.
const Leap = `update event_stream set last_seq = greatest(last_seq, $clock - 1767225600000000) + $1::bigint`
