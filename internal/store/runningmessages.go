package store

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// runningMessage is an open message in a run of the sequence of a start. If the start has a reference, the run has the
// same reference. Otherwise the run has the same phone.
type runningMessage struct {
	puntuale.MessageRef
	intent  int64
	stopped bool // the message was stopped in flight, so it is never sent again
}

// runningMessages is the statement that finds running messages. "intent >= 0" means that the message is open. A
// booking's person may change, so a reference finds runs to any phone. But all runs of a campaign have the campaign's
// reference, so of these it finds only the runs to the same phone.
const runningMessages = runsOf + byPhone + plannedOfRun + ` union all ` + runsOf + byPhone + resentOfRun +
	` union all ` + runsOf + byReference + plannedOfRun + ` union all ` + runsOf + byReference + resentOfRun

// Parts of runningMessages.
const (
	runsOf = `
select u.n, m.client_id, m.id, m.intent, m.valid_until < 0 from $u(n bigint, c bigint, p text, q bigint, e text) cross join run r cross join message m
where r.client_id = u.c and r.sequence_id = u.q and m.client_id = r.client_id and m.intent >= 0`
	byPhone      = ` and u.e = '' and r.phone = u.p`
	byReference  = ` and r.reference <> '' and r.reference = u.e and (r.campaign_id = 0 or r.phone = u.p)`
	plannedOfRun = ` and m.id >= r.id and m.id < r.id + r.messages`
	resentOfRun  = ` and m.run_id = r.id and m.resent_from <> 0`
)

const faultSequenceRunning puntuale.ReasonCode = "sequence.running"

// decideRunning finds the running messages for calls that set if_running, and does what if_running says. The method
// count has already locked the client's usage row. So until this transaction commits, no other call of the client can
// start, whatever its recipient and its reference are.
func (b *startBatch) decideRunning(ctx context.Context) error {
	undecided := b.undecided()
	if len(undecided) == 0 {
		return nil
	}
	type named struct {
		i    int
		name string
	}
	var all []named
	if err := alias.Each(ctx, b.a, engine.Column(undecided, func(t **engine.Task) int64 { return int64((*t).Body.(*start).client) }),
		engine.Column(undecided, func(t **engine.Task) string { return (*t).Body.(*start).Run.Phone }), func(i int, name string) {
			all = append(all, named{i, name})
		}); err != nil {
		return err
	}
	of := func(x *named) *start { return undecided[x.i].Body.(*start) }
	err := b.a.Query(ctx, runningMessages, []any{engine.Columns{
		engine.Column(all, func(x *named) int64 { return int64(x.i) }),
		engine.Column(all, func(x *named) int64 { return int64(of(x).client) }),
		engine.Column(all, func(x *named) string { return x.name }),
		engine.Column(all, func(x *named) int64 { return int64(of(x).Run.Sequence) }),
		engine.Column(all, func(x *named) string { return of(x).referenceFilter() }),
	}}, func(rows engine.Row) error {
		var i int
		var m runningMessage
		if err := rows.Scan(&i, &m.Client, &m.ID, &m.intent, &m.stopped); err != nil {
			return err
		}
		st := undecided[i].Body.(*start)
		st.running = append(st.running, m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for running messages: %w", err)
	}
	var stop []puntuale.MessageRef
	now := undecided[0].Body.(*start).Now
	for _, t := range undecided {
		st := t.Body.(*start)
		engine.Sort(st.running, func(a, b runningMessage) int { return queue.CompareRefs(a.MessageRef, b.MessageRef) })
		st.running = slices.CompactFunc(st.running, func(a, b runningMessage) bool { return a.MessageRef == b.MessageRef })
		if st.IfRunning != puntuale.IfRunningRestart {
			st.running = slices.DeleteFunc(st.running, func(m runningMessage) bool { return m.stopped })
		}
		switch {
		case len(st.running) == 0:
		case st.IfRunning == puntuale.IfRunningReject:
			t.Refused = puntuale.Conflict(faultSequenceRunning)
		case st.IfRunning == puntuale.IfRunningSkip:
			st.answer.IDs = engine.Column(st.running, func(m *runningMessage) puntuale.MessageID { return m.ID })
		case st.IfRunning == puntuale.IfRunningRestart:
			for _, m := range st.running {
				stop = append(stop, m.MessageRef)
			}
		}
	}
	_, err = queue.CancelOpen(ctx, b.a, stop, now)
	return err
}

// referenceFilter returns the reference that a run must have to count as running. "" means that all runs count. For a
// campaign all runs count, because all its runs have the campaign's own reference.
func (s *start) referenceFilter() string {
	if s.Run.Campaign != 0 {
		return ""
	}
	return s.Run.Reference
}

// undecided returns the accepted calls whose if_running is not "allow". In one batch, a second call for the same
// sequence and phone or reference would not see the first call's messages. So the second call runs in a later batch.
func (b *startBatch) undecided() (tasks []*engine.Task) {
	type subject struct {
		client           puntuale.ClientID
		sequence         puntuale.SequenceID
		phone, reference string // one of the two
	}
	seen := map[subject]bool{}
	for t, st := range b.live {
		phone := subject{st.client, st.Run.Sequence, puntuale.FormKey(st.Run.Phone), ""}
		reference := subject{st.client, st.Run.Sequence, "", st.Run.Reference}
		if st.passed && st.IfRunning != puntuale.IfRunningAllow && st.IfRunning != "" {
			key := phone
			if st.referenceFilter() != "" {
				key = reference
			}
			if seen[key] {
				t.Later = true
				continue
			}
			tasks = append(tasks, t)
		}
		seen[phone], seen[reference] = true, true
	}
	return tasks
}
