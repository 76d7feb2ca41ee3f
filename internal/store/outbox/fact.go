package outbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
)

// Fact is something that a transaction makes true.
type Fact struct {
	Client  puntuale.ClientID
	Type    puntuale.EventType
	Subject int64  // see [puntuale.Event]
	Detail  string // see [puntuale.Event]
}

// Message returns a fact about a message.
func Message(m puntuale.MessageRef, t puntuale.EventType) Fact {
	return Fact{Client: m.Client, Type: t, Subject: int64(m.ID)}
}

// EmitFacts stores the facts whose types a subscription wants. Without subscriptions, it only reads one empty table.
const EmitFacts = `
insert into outbox_fact (client_id, type, subject, more, detail, at)
select u.c, u.t, u.s, u.m, u.d, $1::bigint from $u(c bigint, t smallint, s bigint, m text, d text) cross join event_stream e
where exists (select 1 from event_stream) and e.client_id = u.c and (e.wanted & (1::bigint << u.t) <> 0 or e.feed_until > $1)`

// lockFacts writes no row. It only takes a lock on the table of facts.
const lockFacts = `insert into outbox_fact (client_id, type, subject, detail, at) select e.client_id, 0, 0, '', 0 from event_stream e where 1 = 0`

// wantedAtAll reads whether there is a subscription to events, and whether an automation rule waits for facts.
const wantedAtAll = `select case when exists (select 1 from event_stream) then 1 else 0 end, case when exists (select 1 from automation_client) then 1 else 0 end`

// Emit writes facts in the transaction that makes them true. It may be sent together with the transaction's next
// statement, which may then return Emit's error. Emit takes no lock for which another transaction with facts waits.
func Emit(ctx context.Context, a engine.Querier, at time.Time, facts []Fact) error {
	if len(facts) == 0 {
		return nil
	}
	// lockFacts takes the lock that Announce waits for, before the next statement reads subscriptions. So a
	// subscription that commits later waits for this transaction, and an earlier subscription is seen. Without
	// subscriptions, no columns are made.
	if err := a.Queue(ctx, lockFacts, nil, nil); err != nil {
		return fmt.Errorf("begin to write facts: %w", err)
	}
	var wanted, ruled bool
	if _, err := engine.QueryOne(ctx, a, wantedAtAll, nil, engine.ScanBool(&wanted), engine.ScanBool(&ruled)); err != nil {
		return fmt.Errorf("look who wants facts: %w", err)
	}
	if ruled {
		if err := trigger(ctx, a, at, facts); err != nil {
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

// row is one row with facts that differ only in their subjects.
type row struct {
	Fact
	more string // the further subjects, as in outbox_fact.more
}

// rowMost is the largest number of facts in one row. A numberer takes whole rows.
const rowMost = 100

// rowsOf puts consecutive facts that are alike into one row. To write and delete a row for each fact would cost as much
// as the event itself.
func rowsOf(facts []Fact) []row {
	rows := make([]row, 0, 1)
	var more []byte
	for len(facts) > 0 {
		r := row{Fact: facts[0]}
		n := 1
		more = more[:0]
		for ; n < min(len(facts), rowMost) && sameExceptSubject(&facts[n], &r.Fact); n++ {
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

// MoreSubjects reads the subjects of a row's further facts.
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

// Tell is Emit for facts about sessions, campaigns, accounts, templates and webhooks. Besides programs, they also
// concern people. Each of these facts passes here once, in the transaction that makes it true, even if no program
// wants it. A fact without a client is about a webhook of a partner, whose row names the partner. No program gets an
// event about it.
func Tell(ctx context.Context, a engine.Querier, at time.Time, facts ...Fact) error {
	for _, f := range facts {
		if f.Type == puntuale.EventCreditLow && slices.ContainsFunc(facts, func(o Fact) bool { return o.Client == f.Client && o.Type == puntuale.EventCreditOut }) {
			continue // the notice that no credit is left says more
		}
		if err := notice.Tell(ctx, a, at, notice.Fact(f)); err != nil {
			return err
		}
	}
	return Emit(ctx, a, at, facts)
}

// Announce must be called last in a transaction that adds a subscription. It waits for transactions that wrote facts
// and have not committed. Transactions that write facts later wait for this one.
func Announce(ctx context.Context, d *engine.Dialect, a engine.Querier) error {
	if !d.Postgres { // on SQLite, only one transaction writes at a time
		return nil
	}
	if _, err := a.Exec(ctx, `lock table outbox_fact in share row exclusive mode`); err != nil {
		return fmt.Errorf("wait for facts: %w", err)
	}
	return nil
}

// EmitUncertain is Emit for all messages that a restore makes uncertain. It must run before the messages change. No
// other transaction uses the tables meanwhile. due is the condition that chooses the messages, on the table message;
// $1 is moment.
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

// Leap raises the number of each stream beyond all numbers that may be lost: to the clock plus $1, which counting
// alone never reaches. So two installations that were restored from one backup use different numbers.
const Leap = `update event_stream set last_seq = greatest(last_seq, $clock - 1767225600000000) + $1::bigint`
