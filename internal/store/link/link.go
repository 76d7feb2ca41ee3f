package link

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/result"
)

func compareSteps(a, b puntuale.StepRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.RunRef.ID, b.RunRef.ID), cmp.Compare(a.Step, b.Step))
}

func runColumns(refs []puntuale.RunRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.Client) }), engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.ID) }),
	}
}

func stepColumns(refs []puntuale.StepRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.StepRef) int64 { return int64(r.Client) }), engine.Column(refs, func(r *puntuale.StepRef) int64 { return int64(r.RunRef.ID) }),
		engine.Column(refs, func(r *puntuale.StepRef) int64 { return int64(r.Step) }),
	}
}

func linkColumns(refs []puntuale.LinkRef) engine.Columns {
	return append(stepColumns(engine.Column(refs, func(r *puntuale.LinkRef) puntuale.StepRef { return r.StepRef })),
		engine.Column(refs, func(r *puntuale.LinkRef) int64 { return int64(r.N) }))
}

// Followed finds a link by its code. Every redirect reads it, and nothing else.
const Followed = `select l.client_id, l.run_id, l.step, l.n, l.address from link l join client k on k.id = l.client_id
 where l.code = $1 and l.code <> '' and k.deleted_at = 0`

// LinkOf finds a link by its code. Codes: not_found (also a link that has ended).
func (l *Links) LinkOf(ctx context.Context, code string) (ref puntuale.LinkRef, address string, err error) {
	found, err := engine.QueryOne(ctx, l.db.CallReads, Followed, []any{code}, &ref.Client, &ref.RunRef.ID, &ref.Step, &ref.N, &address)
	return ref, address, engine.FoundOr(found, err, puntuale.NoPage)
}

// OfMessages adds the links to messages of a client. It reads nothing if no text has an address.
func OfMessages(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.MessageDetail) error {
	step := func(m *puntuale.MessageDetail) puntuale.StepRef {
		return puntuale.StepRef{RunRef: puntuale.RunRef{Client: client, ID: m.Run}, Step: m.Step}
	}
	var refs []puntuale.StepRef
	for i := range all {
		if m := &all[i]; m.Blanked || strings.Contains(m.Content.Text, "://") {
			refs = append(refs, step(m))
		}
	}
	if len(refs) == 0 {
		return nil
	}
	engine.Sort(refs, compareSteps)
	found := map[puntuale.StepRef][]puntuale.TrackedLink{}
	if err := a.Query(ctx, `select l.run_id, l.step, l.n, l.address, l.clicked_at, l.clicks, l.machines from $u(c bigint, r bigint, s integer) cross join link l
 where l.client_id = u.c and l.run_id = u.r and l.step = u.s order by l.n`, []any{stepColumns(slices.Compact(refs))}, func(r engine.Row) error {
		ref := puntuale.StepRef{RunRef: puntuale.RunRef{Client: client}}
		var x puntuale.TrackedLink
		err := r.Scan(&ref.RunRef.ID, &ref.Step, &x.N, &x.Address, engine.ScanTime(&x.Clicked), &x.Clicks, &x.Machines)
		found[ref] = append(found[ref], x)
		return err
	}); err != nil {
		return engine.PublicError(fmt.Errorf("read the links of messages: %w", err))
	}
	for i := range all {
		all[i].Links = found[step(&all[i])]
	}
	return nil
}

// End ends the links of runs, in the transaction that removes the runs' contents. Their counts stay.
func End(ctx context.Context, a engine.Querier, runs engine.Columns) error {
	if _, err := a.Exec(ctx, `update link set code = '', address = '' from $u(c bigint, i bigint) where link.client_id = u.c and link.run_id = u.i`, runs); err != nil {
		return fmt.Errorf("end links: %w", err)
	}
	return nil
}

// RecordClicks counts clicks. A click within the second in which the message was sent is a machine's. The first click of
// a person on a message is a fact, and an entry of the message's history. If it fails, it returns the clicks that are not
// counted. Those of a transaction of which nobody knows whether it was committed are not among them, so no click counts twice.
func (l *Links) RecordClicks(ctx context.Context, now time.Time, all []puntuale.Click) (left []puntuale.Click, err error) {
	left = slices.Clone(all)
	engine.SortStable(left, func(a, b puntuale.Click) int {
		return cmp.Or(compareSteps(a.StepRef, b.StepRef), a.At.Compare(b.At))
	})
	present := l.db.ClockAt(now)
	for len(left) > 0 {
		part := left[:min(len(left), engine.Chunk)]
		err := l.db.FeedWriter.Do(ctx, engine.SingleTimestamped(l.hits, func(ctx context.Context, a engine.Querier) error {
			return (&clickBatch{a: a, now: present(), all: part}).run(ctx)
		}), false)
		if err == nil || engine.InDoubt(err) {
			left = left[len(part):]
		}
		if err != nil {
			return left, fmt.Errorf("count clicks: %w", err)
		}
	}
	return nil, nil
}

// clickBatch is the work of one transaction. Locks: links by their key.
type clickBatch struct {
	a   engine.Querier
	now time.Time
	all []puntuale.Click
}

// clickedStep is a step whose links were followed.
type clickedStep struct {
	before  bool // a person had followed one of its links
	message puntuale.MessageID
	sent    time.Time
	first   time.Time // the first click of a person among these; zero: none
}

// total is what the clicks add to a link.
type total struct {
	first            time.Time
	people, machines int64
}

func (c *clickBatch) run(ctx context.Context) error {
	refs := slices.Compact(engine.Column(c.all, func(x *puntuale.Click) puntuale.StepRef { return x.StepRef }))
	steps := map[puntuale.StepRef]*clickedStep{}
	links := map[puntuale.LinkRef]*total{}
	if err := c.a.Query(ctx, `select l.client_id, l.run_id, l.step, l.n, l.clicked_at from $u(c bigint, r bigint, s integer) join link l
 on l.client_id = u.c and l.run_id = u.r and l.step = u.s order by l.client_id, l.run_id, l.step, l.n for update of l`, []any{stepColumns(refs)}, func(r engine.Row) error {
		var ref puntuale.LinkRef
		var at int64
		if err := r.Scan(&ref.Client, &ref.RunRef.ID, &ref.Step, &ref.N, &at); err != nil {
			return err
		}
		links[ref] = &total{}
		if steps[ref.StepRef] == nil {
			steps[ref.StepRef] = &clickedStep{}
		}
		steps[ref.StepRef].before = steps[ref.StepRef].before || at != 0
		return nil
	}); err != nil {
		return fmt.Errorf("read clicked links: %w", err)
	}
	if err := c.messages(ctx, refs, steps); err != nil {
		return err
	}
	for _, x := range c.all {
		s, t := steps[x.StepRef], links[x.LinkRef]
		if t == nil {
			continue // the client was deleted, or the run is in the archive
		}
		if x.Machine || s.message == 0 || x.At.Before(s.sent.Add(machineTime)) {
			t.machines++
			continue
		}
		t.people++
		if t.first.IsZero() {
			t.first = x.At
		}
		if s.first.IsZero() {
			s.first = x.At
		}
	}
	if err := c.count(ctx, links); err != nil {
		return err
	}
	return c.tell(ctx, refs, steps)
}

// machineTime is how long after a message was sent only machines open its links: the network and its previews.
const machineTime = time.Second

const (
	attemptColumns = `select m.client_id, m.run_id, m.step, m.id, m.intent_at, case when m.outcome = 1 then coalesce(m.done_at, 0) else 0 end
from $u(c bigint, r bigint, s integer) cross join message m where m.client_id = u.c and m.intent_at > 0`
	// LastAttempts finds the messages of steps that were sent, or whose outcome is not known yet.
	LastAttempts = attemptColumns + ` and m.id = u.r + u.s
 union all ` + attemptColumns + ` and m.run_id = u.r and m.resent_from <> 0 and m.step = u.s`
)

// messages finds the last message of each step, and when it was sent.
func (c *clickBatch) messages(ctx context.Context, refs []puntuale.StepRef, steps map[puntuale.StepRef]*clickedStep) error {
	if err := c.a.Query(ctx, LastAttempts, []any{stepColumns(refs)}, func(r engine.Row) error {
		var ref puntuale.StepRef
		var id puntuale.MessageID
		var begun, ended time.Time
		if err := r.Scan(&ref.Client, &ref.RunRef.ID, &ref.Step, &id, engine.ScanTime(&begun), engine.ScanTime(&ended)); err != nil {
			return err
		}
		sent := begun
		if ended.After(sent) {
			sent = ended
		}
		if s := steps[ref]; s != nil && id > s.message {
			s.message, s.sent = id, sent
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look for clicked messages: %w", err)
	}
	return nil
}

func (c *clickBatch) count(ctx context.Context, links map[puntuale.LinkRef]*total) error {
	var refs []puntuale.LinkRef
	for ref, t := range links {
		if t.people+t.machines > 0 {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if _, err := c.a.Exec(ctx, `update link set clicks = clicks + u.p, machines = machines + u.m, clicked_at = case when clicked_at = 0 then u.a else clicked_at end
 from $u(c bigint, r bigint, s integer, n integer, a bigint, p bigint, m bigint) where link.client_id = u.c and link.run_id = u.r and link.step = u.s and link.n = u.n`, append(linkColumns(refs),
		engine.Column(refs, func(r *puntuale.LinkRef) int64 { return engine.Micros(links[*r].first) }),
		engine.Column(refs, func(r *puntuale.LinkRef) int64 { return links[*r].people }),
		engine.Column(refs, func(r *puntuale.LinkRef) int64 { return links[*r].machines }))); err != nil {
		return fmt.Errorf("write clicks: %w", err)
	}
	return nil
}

// tell writes the first click of a person on each message.
func (c *clickBatch) tell(ctx context.Context, refs []puntuale.StepRef, steps map[puntuale.StepRef]*clickedStep) error {
	var first []puntuale.MessageRef
	var at []int64
	var facts []outbox.Fact
	for _, ref := range refs {
		s := steps[ref]
		if s == nil || s.before || s.first.IsZero() {
			continue
		}
		m := puntuale.MessageRef{Client: ref.Client, ID: s.message}
		first, at = append(first, m), append(at, engine.Micros(s.first))
		facts = append(facts, outbox.Message(m, puntuale.EventLinkClicked))
	}
	if len(first) == 0 {
		return nil
	}
	if _, err := c.a.Exec(ctx, `insert into event (client_id, message_id, at, kind, detail) select u.c, u.i, u.t, 'clicked', '' from $u(c bigint, i bigint, t bigint)`, engine.Columns{
		engine.Column(first, func(m *puntuale.MessageRef) int64 { return int64(m.Client) }), engine.Column(first, func(m *puntuale.MessageRef) int64 { return int64(m.ID) }), at,
	}); err != nil {
		return fmt.Errorf("write first clicks: %w", err)
	}
	if err := result.NoteAll(ctx, c.a, c.now, first...); err != nil {
		return err
	}
	return outbox.Emit(ctx, c.a, c.now, facts)
}
