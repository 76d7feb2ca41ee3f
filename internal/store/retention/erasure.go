package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/link"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/person"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
	"puntuale/internal/store/statement"
)

// erasureTransaction is the work of one call of Erase. It uses several small transactions, and each of them erases
// whole runs. If the call fails, a repeated call finishes the work. The last transaction counts the call, so a
// refused call is not counted.
type erasureTransaction struct {
	puntuale.Erasure

	s       *Retention
	id      puntuale.ClientID
	names   []string // all names of the person that are known so far
	calls   int64
	present func() time.Time
	done    puntuale.ErasureResult
	busy    bool // some messages are in flight, so their runs could not be erased yet
}

// eraseWeight is the largest number of planned messages in one transaction.
const eraseWeight = 500

// Erase erases a person for one client. calls is how many calls an erasure counts as.
func (s *Retention) Erase(ctx context.Context, client puntuale.ClientID, calls int64, e puntuale.Erasure) (puntuale.ErasureResult, error) {
	x := &erasureTransaction{s: s, id: client, calls: calls, Erasure: e, names: e.Names, present: s.ClockAt(e.Now)}
	for round := 0; ; round++ {
		names, err := alias.Names(ctx, s.CallReads, client, x.names...)
		if err != nil {
			return puntuale.ErasureResult{}, engine.PublicError(err)
		}
		x.names = names
		err = x.round(ctx)
		if errors.Is(err, errNamesLearnt) && round < maxRounds {
			continue
		}
		if err != nil {
			return puntuale.ErasureResult{}, fmt.Errorf("erase a person: %w", err)
		}
		return x.done, nil
	}
}

// errNamesLearnt is the error of mark if a network reported a further name of the person during the erasure.
var errNamesLearnt = errors.New("further names of the person are known")

const maxRounds = 5 // how often an erasure begins again because of further names

// round erases the names that are known so far.
func (x *erasureTransaction) round(ctx context.Context) error {
	for _, step := range personal {
		if err := step.erase(x, ctx); err != nil {
			return err
		}
	}
	return nil
}

// ofNames is an SQL query for all names of the person. Its statement gets the batch of the method batch.
const ofNames = `(select u.p from $u(p text, e text))`

// batch returns the person's names, each with its mark.
func (x *erasureTransaction) batch() engine.Columns {
	return engine.Columns{x.names, engine.Column(x.names, func(name *string) string { return x.markOf(*name) })}
}

func (x *erasureTransaction) markOf(name string) string {
	if x.Mark == nil {
		return ""
	}
	return x.Mark(name)
}

// write runs a transaction that may run twice.
func (x *erasureTransaction) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return x.s.TenantWriter(int64(x.id)).Do(ctx, engine.SingleTimestamped(x.s.erase, do).ForOwner(int64(x.id)), false)
}

// recipients erases the person in lists of campaigns. It runs before the cancellation, so that no campaign can start
// runs for the number after the cancellation. Locks: campaigns, their feeds, recipients.
func (x *erasureTransaction) recipients(ctx context.Context) error {
	return x.write(ctx, func(ctx context.Context, a engine.Querier) error {
		for _, name := range x.names {
			if _, err := a.Exec(ctx, `update campaign set checked = '', state = case when state = 2 then 0 else state end
 where client_id = $1 and checked like $2`, x.id, "%"+strings.TrimPrefix(name, "+")+"%"); err != nil {
				return fmt.Errorf("forget samples of campaigns: %w", err)
			}
		}
		campaigns, err := engine.QueryAll(ctx, a, `select f.campaign_id from campaign_feed f where f.client_id = $1 and f.campaign_id in (
 select c.id from $u(p text, e text) cross join recipient r join campaign c on c.client_id = r.client_id and c.list_id = r.list_id
 where r.client_id = $1 and r.phone = u.p)
 order by f.client_id, f.campaign_id for update of f`, []any{x.id, x.batch()}, engine.ScanOne[puntuale.CampaignID])
		if err != nil {
			return fmt.Errorf("lock campaigns of a person: %w", err)
		}
		unfed := map[puntuale.ListID]int{}
		if err := a.Query(ctx, `update recipient set phone = '', cells = '', value = '', reason = case when state = 0 then 'erased' else reason end,
 state = case when state = 0 then 2 else state end where client_id = $1 and phone in `+ofNames+` returning list_id, reason`, []any{x.id, x.batch()}, func(rows engine.Row) error {
			var id puntuale.ListID
			var reason string
			err := rows.Scan(&id, &reason)
			if reason == puntuale.RefusedErased {
				unfed[id]++
			}
			return err
		}); err != nil {
			return fmt.Errorf("erase recipients: %w", err)
		}
		for _, id := range campaigns {
			var l puntuale.ListID
			if _, err := engine.QueryOne(ctx, a, `select list_id from campaign where client_id = $1 and id = $2`, []any{x.id, id}, &l); err != nil {
				return fmt.Errorf("read a campaign's list: %w", err)
			}
			if _, err := a.Exec(ctx, `update campaign_feed set waiting = waiting - $3::bigint, refused = refused + $3::bigint where client_id = $1 and campaign_id = $2`,
				x.id, id, int64(unfed[l])); err != nil {
				return fmt.Errorf("count erased recipients: %w", err)
			}
		}
		return nil
	})
}

// automations stops the client's automations from acting for the person. It is called before the person's runs are
// erased. So no automation can start a run that the erasure does not find.
func (x *erasureTransaction) automations(ctx context.Context) error {
	return x.write(ctx, func(ctx context.Context, a engine.Querier) error { return automation.Disarm(ctx, a, x.id, x.names) })
}

// cancel cancels the person's open messages, so that no further message leaves. It runs before the runs are erased.
// Messages in flight are neither repeated nor retried.
func (x *erasureTransaction) cancel(ctx context.Context) error {
	refs, err := engine.QueryAll(ctx, x.s.CallReads, queue.PhoneCandidates, []any{x.id, engine.Columns{x.names}}, queue.ScanRef)
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for messages to cancel: %w", err))
	}
	engine.Sort(refs, queue.CompareRefs)
	for part := range slices.Chunk(slices.Compact(refs), engine.Chunk) {
		var done []puntuale.CancelledMessage
		if err := x.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
			done, err = queue.CancelOpen(ctx, a, part, x.present())
			return err
		}); err != nil {
			return err
		}
		x.done.Cancelled += len(done)
	}
	return nil
}

// runs erases the person's runs, several runs in each transaction.
func (x *erasureTransaction) runs(ctx context.Context) error {
	type sized struct {
		puntuale.RunRef
		messages int
	}
	all, err := engine.QueryAll(ctx, x.s.CallReads, `select r.client_id, r.id, r.messages from $u(p text, e text) cross join run r where r.client_id = $1 and r.phone = u.p`,
		[]any{x.id, x.batch()}, func(rows engine.Row, r *sized) error { return rows.Scan(&r.Client, &r.ID, &r.messages) })
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for runs: %w", err))
	}
	engine.Sort(all, func(a, b sized) int { return CompareRuns(a.RunRef, b.RunRef) })
	for len(all) > 0 {
		n, weight := 0, 0
		for n < len(all) && (n == 0 || weight+all[n].messages <= eraseWeight) {
			weight += all[n].messages
			n++
		}
		part := engine.Column(all[:n], func(r *sized) puntuale.RunRef { return r.RunRef })
		all = all[n:]
		var some erasedRuns
		if err := x.write(ctx, func(ctx context.Context, a engine.Querier) error {
			some = erasedRuns{erasureTransaction: x, a: a, refs: part}
			return some.Run(ctx)
		}); err != nil {
			return err
		}
		x.done.Cancelled += some.done.Cancelled
		x.done.Messages += some.done.Messages
		x.done.Sandbox += some.done.Sandbox
		x.busy = x.busy || some.busy
	}
	return nil
}

// erasedRuns is the work of one transaction that erases runs. Locks: messages, runs, then their other rows.
type erasedRuns struct {
	*erasureTransaction
	a    engine.Querier
	refs []puntuale.RunRef // the runs, sorted by client and id

	done puntuale.ErasureResult
	busy bool
}

// erasedMessage is a message of a run that is being erased.
type erasedMessage struct {
	puntuale.MessageRef
	run        puntuale.RunID
	intent     int64
	generation int
	quiet      bool // no attempt is running now, and none can begin before the message's next check
}

func (x *erasedRuns) Run(ctx context.Context) error {
	refs, err := x.members(ctx)
	if err != nil {
		return err
	}
	messages, err := x.lock(ctx, refs)
	if err != nil {
		return err
	}
	if err := x.keepApart(ctx, messages); err != nil {
		return err
	}
	messages = slices.DeleteFunc(messages, func(m erasedMessage) bool {
		return !slices.Contains(x.refs, puntuale.RunRef{Client: x.id, ID: m.run})
	})
	if err := x.end(ctx, messages); err != nil {
		return err
	}
	return x.wipe(ctx, messages)
}

// members returns the planned and resent messages of the runs.
func (x *erasedRuns) members(ctx context.Context) ([]puntuale.MessageRef, error) {
	refs, err := engine.QueryAll(ctx, x.a, RunMembers, []any{RunColumns(x.refs)}, queue.ScanRef)
	if err != nil {
		return nil, fmt.Errorf("look for messages of runs: %w", err)
	}
	engine.Sort(refs, queue.CompareRefs)
	return refs, nil
}

// RunMembers reads the planned and resent messages of runs.
const RunMembers = `
select m.client_id, m.id from $u(c bigint, i bigint) cross join run r cross join message m
where r.client_id = u.c and r.id = u.i and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages
union all
select m.client_id, m.id from $u(c bigint, i bigint) cross join message m
where m.client_id = u.c and m.run_id = u.i and m.resent_from <> 0`

// maxClockOffset is the largest expected difference between the clocks of nodes.
const maxClockOffset = 2 * time.Second

func (x *erasedRuns) lock(ctx context.Context, refs []puntuale.MessageRef) ([]erasedMessage, error) {
	later := engine.Micros(x.Now.Add(maxClockOffset))
	all, err := engine.QueryAll(ctx, x.a, `select message.client_id, message.id, message.run_id, message.intent, message.generation,
 message.next_at > message.intent_at and message.next_at > $1::bigint and not exists (select 1 from device_hold h
 where h.client_id = message.client_id and h.message_id = message.id and h.token = message.intent and h.done = 0 and h.until > $2::bigint)
from $u(c bigint, i bigint) join message on message.client_id = u.c and message.id = u.i
order by message.client_id, message.id for update of message`, []any{later, engine.Micros(x.Now), queue.RefColumns(refs)}, func(rows engine.Row, m *erasedMessage) error {
		return rows.Scan(&m.Client, &m.ID, &m.run, &m.intent, &m.generation, &m.quiet)
	})
	if err != nil {
		return nil, fmt.Errorf("lock messages of runs: %w", err)
	}
	return all, nil
}

// keepApart locks the runs, and removes from refs the runs that must wait, because one of their messages may be in
// flight. If a message of the runs was sent again after the messages were locked, the transaction runs again.
func (x *erasedRuns) keepApart(ctx context.Context, messages []erasedMessage) error {
	if _, err := engine.QueryAll(ctx, x.a, `select r.id from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i
 order by r.client_id, r.id for update of r`, []any{RunColumns(x.refs)}, engine.ScanOne[int64]); err != nil {
		return fmt.Errorf("lock runs: %w", err)
	}
	now, err := x.members(ctx)
	if err != nil {
		return err
	}
	waits := map[puntuale.RunID]bool{}
	known := make(map[puntuale.MessageRef]bool, len(messages))
	for _, m := range messages {
		known[m.MessageRef] = true
		if m.intent > 0 && !m.quiet {
			waits[m.run] = true
		}
	}
	if slices.ContainsFunc(now, func(m puntuale.MessageRef) bool { return !known[m] }) {
		return fmt.Errorf("a message was sent again meanwhile: %w", engine.ErrAgain)
	}
	x.refs = slices.DeleteFunc(slices.Clone(x.refs), func(r puntuale.RunRef) bool { return waits[r.ID] })
	x.busy = len(waits) > 0
	return nil
}

// end closes open messages. It cancels messages that have no open attempt, and makes the others FAILED.
func (x *erasedRuns) end(ctx context.Context, messages []erasedMessage) error {
	var free []puntuale.MessageRef
	var lost []puntuale.Settlement
	for _, m := range messages {
		switch {
		case m.intent == 0:
			free = append(free, m.MessageRef)
		case m.intent > 0:
			lost = append(lost, puntuale.Settlement{MessageRef: m.MessageRef, Intent: m.intent, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)})
		}
	}
	done, err := queue.CancelOpen(ctx, x.a, free, x.present())
	if err != nil {
		return err
	}
	x.done.Cancelled = len(done)
	return queue.Settle(ctx, x.a, 0, x.present(), lost)
}

// wipe removes the number and all texts of the runs.
func (x *erasedRuns) wipe(ctx context.Context, messages []erasedMessage) error {
	if len(messages) == 0 {
		return nil
	}
	refs := engine.Column(messages, func(m *erasedMessage) puntuale.MessageRef { return m.MessageRef })
	needed, err := statement.NeededMonthsOf(ctx, x.a, []puntuale.ClientID{x.id}, x.Now)
	if err != nil {
		return err
	}
	if err := needed[x.id].KeepKinds(ctx, x.a, x.id, refs, true); err != nil {
		return err
	}
	if _, err := x.a.Exec(ctx, `update message set phone = '', detail = '' from $u(c bigint, i bigint) where message.client_id = u.c and message.id = u.i`, queue.RefColumns(refs)); err != nil {
		return fmt.Errorf("erase messages: %w", err)
	}
	if err := x.reasons(ctx, refs); err != nil {
		return err
	}
	if err := result.NoteAll(ctx, x.a, x.present(), refs...); err != nil { // their reasons may have changed
		return err
	}
	if _, err := x.a.Exec(ctx, `update event set detail = '' from $u(c bigint, i bigint)
 where event.client_id = u.c and event.message_id = u.i and event.detail <> ''`, queue.RefColumns(refs)); err != nil {
		return fmt.Errorf("erase events: %w", err)
	}
	var copies []SandboxCopy
	for _, m := range messages {
		copies = append(copies, CopiesOf(m.MessageRef, m.generation)...)
	}
	n, err := x.a.Exec(ctx, `update sandbox_message set phone = '', content = '' from $u(c bigint, k text)
 where sandbox_message.client_id = u.c and sandbox_message.connector_id = u.k`, CopyColumns(copies))
	if err != nil {
		return fmt.Errorf("erase what the sandbox received: %w", err)
	}
	if _, err := x.a.Exec(ctx, `update run set phone = '', name = '', reference = '', request = $2::bytea, content = '[]',
 blanked_at = case when run.blanked_at = 0 then $1::bigint else run.blanked_at end
from $u(c bigint, i bigint) where run.client_id = u.c and run.id = u.i`, engine.Micros(x.Now), []byte{}, RunColumns(x.refs)); err != nil {
		return fmt.Errorf("erase runs: %w", err)
	}
	if err := link.End(ctx, x.a, RunColumns(x.refs)); err != nil {
		return err
	}
	if err := file.Erase(ctx, x.a, RunColumns(x.refs), x.Now); err != nil {
		return err
	}
	x.done.Messages, x.done.Sandbox = len(refs), int(n)
	if err := outbox.ForgetAnswers(ctx, x.a, outbox.MessageSubjects(refs)); err != nil {
		return err
	}
	return ForgetLate(ctx, x.a, x.refs)
}

// archived stores that the person must also be removed from the files of the archive, if there is an archive. The
// archiver does this soon after. archived is called after the person's runs are erased. So the archiver also removes
// runs that it moved into a file during the erasure.
func (x *erasureTransaction) archived(ctx context.Context) error {
	var existing int64
	found, err := engine.QueryOne(ctx, x.s.CallReads, `select 1 from archive where one = 1`, nil, &existing)
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for an archive: %w", err))
	}
	if !found {
		return nil
	}
	former, err := engine.QueryAll(ctx, x.s.CallReads, `select n.old_phone from $u(p text, e text) cross join number_change n where n.client_id = $1 and n.new_phone = u.p and n.undone_at = 0 and n.old_phone <> ''`,
		[]any{x.id, x.batch()}, engine.ScanOne[string]) // the files have the number to which a message went
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for former numbers: %w", err))
	}
	marks := x.Marks(append(slices.Clone(x.names), former...))
	slices.Sort(marks)
	return x.write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into archive_erasure as e (client_id, mark) select $1::bigint, u.m from $u(m text) where true
 on conflict (client_id, mark) do update set times = e.times + 1`, x.id, engine.Columns{slices.Compact(marks)})
		return err
	})
}

// contact deletes the client's contact. It is called after the person's runs are erased, because contacts are made from
// runs.
func (x *erasureTransaction) contact(ctx context.Context) error {
	return x.write(ctx, func(ctx context.Context, a engine.Querier) error {
		contacts, err := person.Erase(ctx, a, x.id, x.names)
		if err != nil {
			return err
		}
		return automation.Erase(ctx, a, x.id, x.names, contacts)
	})
}

// replies removes the person's replies, in several transactions. The last transaction also deletes the conversation.
func (x *erasureTransaction) replies(ctx context.Context) error {
	for {
		var n int64
		if err := x.write(ctx, func(ctx context.Context, a engine.Querier) error {
			ids, err := engine.QueryAll(ctx, a, `select id from reply where client_id = $1 and phone in `+ofNames+` order by client_id, id limit $2 for update`,
				[]any{x.id, engine.Chunk, x.batch()}, engine.ScanOne[int64])
			if err != nil {
				return fmt.Errorf("look for replies: %w", err)
			}
			n = int64(len(ids))
			if n > 0 {
				// The replies become read, because nobody can open the conversation any more.
				if _, err := a.Exec(ctx, `update reply set phone = '', text = '', media = '', network_id = '', payload = '', button = '',
 read_at = case when reply.read_at = 0 then $2::bigint else reply.read_at end,
 blanked_at = case when reply.blanked_at = 0 then $2::bigint else reply.blanked_at end from $u(i bigint) where reply.client_id = $1 and reply.id = u.i`,
					x.id, engine.Micros(x.Now), engine.Columns{ids}); err != nil {
					return fmt.Errorf("erase replies: %w", err)
				}
				if err := file.EraseIncoming(ctx, a, x.id, engine.Columns{engine.Column(ids, func(*int64) int64 { return int64(x.id) }), ids}, x.Now); err != nil {
					return err
				}
				if err := outbox.ForgetAnswers(ctx, a, outbox.Subjects(x.id, ids)); err != nil {
					return err
				}
			}
			if n == engine.Chunk {
				return nil
			}
			for _, table := range []string{"conversation", "chatwoot_conversation"} {
				if _, err := a.Exec(ctx, `delete from `+table+` where client_id = $1 and phone in `+ofNames, x.id, x.batch()); err != nil {
					return fmt.Errorf("erase a conversation: %w", err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if n < engine.Chunk {
			return nil
		}
	}
}

// mark replaces each name by its keyed hash (the mark) in the blacklist and in the ledger of consent. It does this even
// while a message is in flight, because a claim searches for both the name and the mark. The same transaction raises
// the counter of erasures. By this counter, a claim notices that its send permissions are out of date (queue/claim.go).
// mark also deletes the person's aliases, and what networks reported about the person. If further names are known now,
// mark changes nothing. Locks: the entries, the client, the counter.
func (x *erasureTransaction) mark(ctx context.Context) error {
	return x.s.Write(ctx, int64(x.id), func(ctx context.Context, a engine.Querier) error {
		names, err := alias.Names(ctx, a, x.id, x.names...)
		if err != nil {
			return err
		}
		if len(names) > len(x.names) {
			return errNamesLearnt
		}
		agreed, err := x.markConsent(ctx, a)
		if err != nil {
			return err
		}
		for _, statement := range []string{
			`delete from contact where client_id = $1 and phone in ` + ofNames,
			`delete from alias where client_id = $1 and (phone in ` + ofNames + ` or alias in ` + ofNames + `)`,
			`delete from official_pause where client_id = $1 and scope in (1, 2, 7) and subject in ` + ofNames,
			`delete from former_name where client_id = $1 and name in ` + ofNames,
			`update number_change set old_phone = '', new_phone = '', names = '[]', moved = '' where client_id = $1 and (old_phone in ` + ofNames + ` or new_phone in ` + ofNames + `)`, // its mark stays, so that a second report changes nothing
		} {
			if _, err := a.Exec(ctx, statement, x.id, x.batch()); err != nil {
				return fmt.Errorf("forget a known person: %w", err)
			}
		}
		blocked, err := x.markBlacklisted(ctx, a)
		if err != nil || !agreed && !blocked {
			return err
		}
		if _, err := a.Exec(ctx, `update client set erased = 1 where id = $1 and erased = 0`, x.id); err != nil {
			return fmt.Errorf("note the erasure: %w", err)
		}
		_, err = engine.NextNumber(ctx, a, "erasure")
		return err
	})
}

// markConsent keeps what the person agreed to, without names and without texts. If names of the person have different
// consent states, only the latest state is kept, under the mark of each name. Marks of imports are kept, but each mark
// only once.
func (x *erasureTransaction) markConsent(ctx context.Context, a engine.Querier) (marked bool, err error) {
	ids, err := engine.QueryAll(ctx, a, `select id from consent where client_id = $1 and phone in `+ofNames+` order by id`, []any{x.id, x.batch()}, engine.ScanOne[int64])
	if err != nil {
		return false, fmt.Errorf("look for what an erased person agreed to: %w", err)
	}
	for _, statement := range []string{
		`delete from consent_state where client_id = $1 and phone in ` + ofNamesAndMarks + ` and exists (select 1 from consent_state o where o.client_id = $1
 and o.purpose = consent_state.purpose and (o.at + case when o.change = 2 and o.at % 1000000 = 0 then 999999 else 0 end, o.change, o.phone)
 > (consent_state.at + case when consent_state.change = 2 and consent_state.at % 1000000 = 0 then 999999 else 0 end, consent_state.change, consent_state.phone)
 and o.phone in ` + ofNamesAndMarks + `)`,
		`insert into consent_state as s (client_id, phone, purpose, change, granted_before, at)
 select o.client_id, u.e, o.purpose, o.change, o.granted_before, o.at from $u(p text, e text) cross join consent_state o
 where o.client_id = $1 and o.phone in ` + ofNamesAndMarks + ` on conflict (client_id, phone, purpose) do nothing`,
		`delete from consent_state where client_id = $1 and phone in ` + ofNames,
		`update consent set mark = '' where client_id = $1 and phone in ` + ofNames + ` and (mark not like '` + puntuale.ImportMark + `%' or exists (
 select 1 from consent o where o.client_id = $1 and o.mark = consent.mark
 and (o.phone in (select u.e from $u(p text, e text)) or o.id < consent.id and o.phone in ` + ofNames + `)))`,
		`update consent set phone = u.e, words = '', message = '' from $u(p text, e text) where consent.client_id = $1 and consent.phone = u.p`,
	} {
		n, err := a.Exec(ctx, statement, x.id, x.batch())
		if err != nil {
			return false, fmt.Errorf("keep what an erased person agreed to: %w", err)
		}
		marked = marked || n > 0
	}
	return marked, outbox.ForgetAnswers(ctx, a, outbox.Subjects(x.id, ids))
}

// ofNamesAndMarks is an SQL query for all names of the person, and for their marks.
const ofNamesAndMarks = `(select u.p from $u(p text, e text) union all select u.e from $u(p text, e text))`

const faultMessageNumberSending puntuale.ReasonCode = "message.number_sending"

// finish counts the call. If the call must be repeated, finish returns an error instead.
func (x *erasureTransaction) finish(ctx context.Context) error {
	if x.busy {
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultMessageNumberSending), RetryAfter: 2 * time.Second}
	}
	return x.s.Write(ctx, int64(x.id), func(ctx context.Context, a engine.Querier) error {
		_, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: x.id, Day: x.Day}, x.calls)
		return err
	})
}
