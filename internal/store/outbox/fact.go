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
	Subject int64  // as in [puntuale.Event]
	Detail  string // likewise
}

// Message is a fact about a message.
func Message(m puntuale.MessageRef, t puntuale.EventType) Fact {
	return Fact{Client: m.Client, Type: t, Subject: int64(m.ID)}
}

// EmitFacts keeps those facts whose types somebody wants. Where nobody wants anything, it reads one empty table.
const EmitFacts = `
insert into outbox_fact (client_id, type, subject, more, detail, at)
select u.c, u.t, u.s, u.m, u.d, $1::bigint from $u(c bigint, t smallint, s bigint, m text, d text) cross join event_stream e
where exists (select 1 from event_stream) and e.client_id = u.c and (e.wanted & (1::bigint << u.t) <> 0 or e.feed_until > $1)`

// lockFacts writes nothing.
const lockFacts = `insert into outbox_fact (client_id, type, subject, detail, at) select e.client_id, 0, 0, '', 0 from event_stream e where 1 = 0`

// wantedAtAll reports whether anybody wants events, and whether any rule waits for facts.
const wantedAtAll = `select case when exists (select 1 from event_stream) then 1 else 0 end, case when exists (select 1 from automation_client) then 1 else 0 end`

// Emit writes facts in the transaction that makes them true. It is sent with the transaction's next statement, whose error may be its own.
// Locks: none that another transaction of facts waits for.
func Emit(ctx context.Context, a engine.Querier, at time.Time, facts []Fact) error {
	if len(facts) == 0 {
		return nil
	}
	// The first statement writes nothing. It takes the lock that Announce waits for, before the second one looks. So a subscription that
	// commits later waits for this transaction, and an earlier one is seen. Where nobody wants anything, no columns are made.
	if err := a.Queue(ctx, lockFacts, nil, nil); err != nil {
		return fmt.Errorf("begin to write facts: %w", err)
	}
	var told, ruled bool
	if _, err := engine.QueryOne(ctx, a, wantedAtAll, nil, engine.ScanBool(&told), engine.ScanBool(&ruled)); err != nil {
		return fmt.Errorf("look who wants facts: %w", err)
	}
	if ruled {
		if err := trigger(ctx, a, at, facts); err != nil {
			return err
		}
	}
	if !told {
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

// row is a row of facts that are alike but for their subjects.
type row struct {
	Fact
	more string // as outbox_fact.more
}

// rowMost is the most facts of one row. A numberer takes whole rows.
const rowMost = 100

// rowsOf puts facts that follow each other and are alike into one row. A row that is written and deleted for each of them would cost as much as
// the event itself.
func rowsOf(facts []Fact) []row {
	rows := make([]row, 0, 1)
	var more []byte
	for len(facts) > 0 {
		r := row{Fact: facts[0]}
		n := 1
		more = more[:0]
		for ; n < min(len(facts), rowMost) && alike(&facts[n], &r.Fact); n++ {
			more = strconv.AppendInt(append(more, ','), facts[n].Subject, 10)
		}
		r.more = string(more)
		rows, facts = append(rows, r), facts[n:]
	}
	return rows
}

// alike reports whether two facts differ only in their subjects.
func alike(x, y *Fact) bool {
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

// Tell is Emit for facts about sessions, campaigns, accounts, templates and webhooks, which also concern people. Every such fact passes here
// once, in the transaction that makes it true, also where no program wants it. A fact without a client is about a webhook of a partner,
// whose row names the partner. No program is told of that.
func Tell(ctx context.Context, a engine.Querier, at time.Time, facts ...Fact) error {
	for _, f := range facts {
		if f.Type == puntuale.EventCreditLow && slices.ContainsFunc(facts, func(o Fact) bool { return o.Client == f.Client && o.Type == puntuale.EventCreditOut }) {
			continue // people are told the worse
		}
		if err := notice.Tell(ctx, a, at, notice.Fact(f)); err != nil {
			return err
		}
	}
	return Emit(ctx, a, at, facts)
}

// Announce is for a transaction after which somebody wants more. It waits for transactions that wrote facts and have not committed. Later
// ones wait for this one. It comes last.
func Announce(ctx context.Context, d *engine.Dialect, a engine.Querier) error {
	if !d.Postgres { // one transaction writes at a time
		return nil
	}
	if _, err := a.Exec(ctx, `lock table outbox_fact in share row exclusive mode`); err != nil {
		return fmt.Errorf("wait for facts: %w", err)
	}
	return nil
}

// EmitUncertain is Emit for all messages that a restore makes uncertain. The tables are the transaction's alone. due is the condition that chooses
// them, of table message alone; $1 is its moment. It comes before they change.
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

// Leap raises all numbers beyond those whose use may be lost: to $1 beyond the clock, which they never reach by counting. So two installations
// that were restored from one backup use different ones.
const Leap = `update event_stream set last_seq = greatest(last_seq, $clock - 1767225600000000) + $1::bigint`
