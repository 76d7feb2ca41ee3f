package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/link"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/statement"
)

// Blanking removes the requests and contents of old runs. Usually it reads each run once. Identifiers of runs grow with
// the clock. So each client's row contains a cursor, which passes the client's runs in the order of their ids.
//
// If a run is still open or ended too recently when the cursor passes it, the run is added to the table late_run. Its
// row in that table contains a time at which the run had not ended yet. When this time is old enough, blanking reads
// the run again. No other index is needed. If there is nothing to do, a pass costs one lookup for each client.
const (
	blankBatch   = 200    // largest number of runs in one transaction
	blankBound   = 50_000 // largest number of runs that one call reads
	blankClients = 20_000 // largest number of clients that one call reads; the next call continues after them
)

// BlankCandidates finds each client's cursor, and whether the client has a run after the cursor that may be old enough.
// Its subquery looks up a single row.
const BlankCandidates = `
select c.id, c.blanked_to, coalesce((select r.id from run r where r.client_id = c.id and r.id > c.blanked_to and r.id < $1 order by r.id limit 1), 0)
from client c where c.id > $2 order by c.id limit $3`

// BlankNext reads the client's runs after the cursor.
const BlankNext = `
select r.client_id, r.id from run r where r.client_id = $1 and r.id > $2 and r.id < $3 order by r.id limit $4`

// LateNext reads the late runs whose time is old enough.
const LateNext = `
select l.client_id, l.run_id from late_run l where l.since <= $1 order by l.since limit $2`

// BlankingCursor is the place up to which a client's runs were read.
type BlankingCursor struct {
	Client   puntuale.ClientID
	From     int64
	anything int64 // id of a run after the cursor; 0: the client has no runs to read
}

// Blank removes requests and contents of runs whose messages have all ended, the last one earlier than the argument
// before. If before is zero, it removes nothing. The work of one call is limited.
func (s *Retention) Blank(ctx context.Context, now, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	b := &blanking{s: s, now: now, before: before, runsLeft: blankBound}
	return errors.Join(b.lookAgain(ctx), b.due(ctx), b.bookings(ctx))
}

// blanking is the work of one call of Blank.
type blanking struct {
	s           *Retention
	now, before time.Time
	runsLeft    int // how many more runs this call may read
}

// blankBookings empties the fields of bookings. Its condition is that of a partial index.
const blankBookings = `
update booking set fields = '{}' where date_at < $1 and changed_at < $1 and (client_id, id) in (select b.client_id, b.id from booking b
 where b.date_at < $1 and b.changed_at < $1 and b.fields <> '{}' and not exists (select 1 from booking_step s join message m on m.client_id = s.client_id and m.id = s.message_id
 where s.client_id = b.client_id and s.booking_id = b.id and m.state = 0) order by b.date_at limit $2)`

// bookings removes the fields of bookings whose main date and last change are old enough. Reference, date, status and
// history stay.
func (b *blanking) bookings(ctx context.Context) error {
	for n, most := int64(blankBatch), blankBound; n == blankBatch && most > 0; most -= blankBatch {
		if err := b.s.Write(ctx, 0, func(ctx context.Context, a engine.Querier) (err error) {
			n, err = a.Exec(ctx, blankBookings, engine.Micros(b.before), blankBatch)
			return err
		}); err != nil {
			return fmt.Errorf("blank bookings: %w", err)
		}
	}
	return nil
}

// lookAgain reads late runs again. When the cursor passed these runs, they were still open or had ended too recently.
func (b *blanking) lookAgain(ctx context.Context) error {
	for b.runsLeft > 0 {
		refs, err := engine.QueryAll(ctx, b.s.MaintenanceReads, LateNext, []any{engine.Micros(b.before), blankBatch}, scanRun)
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for late runs: %w", err))
		}
		if len(refs) == 0 {
			return nil
		}
		b.runsLeft -= len(refs)
		engine.Sort(refs, CompareRuns)
		if err := b.perform(ctx, b.s.TenantWriters[0], refs, nil); err != nil {
			return fmt.Errorf("blank late runs: %w", err)
		}
		if len(refs) < blankBatch {
			return nil
		}
	}
	return nil
}

// due continues with the clients' next runs. In each round it reads at most blankBatch runs of each client. So a client
// with many runs does not delay other clients.
func (b *blanking) due(ctx context.Context) error {
	last := b.s.blankedClient.Load()
	firstKept := queue.FirstID(b.before)
	walks, err := engine.QueryAll(ctx, b.s.MaintenanceReads, BlankCandidates, []any{firstKept, last, blankClients}, func(rows engine.Row, w *BlankingCursor) error {
		return rows.Scan(&w.Client, &w.From, &w.anything)
	})
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for old runs: %w", err))
	}
	if len(walks) > 0 {
		last = int64(walks[len(walks)-1].Client)
	}
	if len(walks) < blankClients {
		last = 0
	}
	walks = slices.DeleteFunc(walks, func(w BlankingCursor) bool { return w.anything == 0 })
	for len(walks) > 0 && b.runsLeft > 0 {
		var more []BlankingCursor
		for _, w := range walks {
			if b.runsLeft <= 0 {
				return nil // the next call continues with these clients
			}
			refs, err := engine.QueryAll(ctx, b.s.MaintenanceReads, BlankNext, []any{w.Client, w.From, firstKept, blankBatch}, scanRun)
			if err != nil {
				return engine.PublicError(fmt.Errorf("look for old runs: %w", err))
			}
			if len(refs) == 0 {
				continue
			}
			b.runsLeft -= len(refs)
			w.From = int64(refs[len(refs)-1].ID)
			if err := b.perform(ctx, b.s.TenantWriter(int64(w.Client)), refs, &w); err != nil {
				return fmt.Errorf("blank runs of client %d: %w", w.Client, err)
			}
			if len(refs) == blankBatch {
				more = append(more, w)
			}
		}
		walks = more
	}
	b.s.blankedClient.Store(last)
	return nil
}

// perform blanks the runs that ended early enough, and adds the other runs of refs to the late runs, in one
// transaction. refs must be sorted. Locks: runs by (client, id), then their other rows, then the client.
func (b *blanking) perform(ctx context.Context, w *engine.Writer, refs []puntuale.RunRef, to *BlankingCursor) error {
	return w.Do(ctx, engine.Single(b.s.blank, func(ctx context.Context, a engine.Querier) error {
		live, err := lockRuns(ctx, a, refs)
		if err != nil {
			return err
		}
		ended, late, err := b.divide(ctx, a, live)
		if err != nil {
			return err
		}
		if err := b.wipe(ctx, a, ended); err != nil {
			return err
		}
		if err := b.note(ctx, a, refs, late); err != nil || to == nil {
			return err
		}
		_, err = a.Exec(ctx, `update client set blanked_to = $2 where id = $1 and blanked_to < $2`, to.Client, to.From)
		return err
	}), false)
}

// lockRuns locks the runs in sorted, in this order, and returns the runs that are not blanked. A resend also locks the
// run of its message. So no message of these runs can be sent again before this transaction ends.
func lockRuns(ctx context.Context, a engine.Querier, sorted []puntuale.RunRef) ([]puntuale.RunRef, error) {
	live, err := engine.QueryAll(ctx, a, `select r.client_id, r.id from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i
 where r.blanked_at = 0 order by r.client_id, r.id for update of r`, []any{RunColumns(sorted)}, scanRun)
	if err != nil {
		return nil, fmt.Errorf("lock runs: %w", err)
	}
	return live, nil
}

// LateRun is a run that is still open or ended too recently. Since is a time (in µs) at which the run had not ended
// yet.
type LateRun struct {
	puntuale.RunRef
	Since int64
}

// RunsEnded reads when the last message of each run ended. While a message of the run is open, the result is the
// largest bigint. The ids of planned messages follow the id of the run, and resent messages have an index. The
// subqueries force the planner to look up single rows.
const RunsEnded = `
select u.c, u.i,
 coalesce((select max(coalesce(m.done_at, 9223372036854775807)) from message m where m.client_id = u.c and m.id >= u.i and m.id < u.i + r.messages), 0),
 coalesce((select max(coalesce(m.done_at, 9223372036854775807)) from message m where m.client_id = u.c and m.run_id = u.i and m.resent_from <> 0), 0)
from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i`

func (b *blanking) divide(ctx context.Context, a engine.Querier, refs []puntuale.RunRef) (ended []puntuale.RunRef, late []LateRun, err error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	err = a.Query(ctx, RunsEnded, []any{RunColumns(refs)}, func(rows engine.Row) error {
		var ref puntuale.RunRef
		var planned, resent int64
		if err := rows.Scan(&ref.Client, &ref.ID, &planned, &resent); err != nil {
			return err
		}
		switch last := max(planned, resent); {
		case last <= engine.Micros(b.before):
			ended = append(ended, ref)
		case last == math.MaxInt64:
			late = append(late, LateRun{ref, engine.Micros(b.now)})
		default:
			late = append(late, LateRun{ref, last})
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look when runs ended: %w", err)
	}
	engine.Sort(ended, CompareRuns)
	engine.Sort(late, func(x, y LateRun) int { return CompareRuns(x.RunRef, y.RunRef) })
	return ended, late, nil
}

// wipe removes the contents of runs, also from the simulated network's ledger.
func (b *blanking) wipe(ctx context.Context, a engine.Querier, refs []puntuale.RunRef) error {
	if len(refs) == 0 {
		return nil
	}
	if err := b.keepKinds(ctx, a, refs); err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update run set request = $2::bytea, content = '[]', blanked_at = $1::bigint from $u(c bigint, i bigint)
 where run.client_id = u.c and run.id = u.i`, engine.Micros(b.now), []byte{}, RunColumns(refs)); err != nil {
		return fmt.Errorf("blank runs: %w", err)
	}
	if err := link.End(ctx, a, RunColumns(refs)); err != nil {
		return err
	}
	if err := forgetAnswers(ctx, a, refs); err != nil {
		return err
	}
	var sent []puntuale.MessageRef
	var copies []SandboxCopy
	if err := a.Query(ctx, SandboxMessagesOf, []any{RunColumns(refs)}, func(rows engine.Row) error {
		var m puntuale.MessageRef
		var generation int
		if err := rows.Scan(&m.Client, &m.ID, &generation); err != nil {
			return err
		}
		sent = append(sent, m)
		copies = append(copies, CopiesOf(m, generation)...)
		return nil
	}); err != nil || len(sent) == 0 {
		return err
	}
	if _, err := a.Exec(ctx, `update sandbox_message set content = '' from $u(c bigint, k text)
 where sandbox_message.client_id = u.c and sandbox_message.connector_id = u.k`, CopyColumns(copies)); err != nil {
		return fmt.Errorf("blank what the sandbox received: %w", err)
	}
	return nil
}

// keepKinds keeps the categories of messages that statements still count. refs are sorted.
func (b *blanking) keepKinds(ctx context.Context, a engine.Querier, refs []puntuale.RunRef) error {
	clients := slices.Compact(engine.Column(refs, func(r *puntuale.RunRef) puntuale.ClientID { return r.Client }))
	needed, err := statement.NeededMonthsOf(ctx, a, clients, b.now)
	if err != nil {
		return err
	}
	for _, client := range clients {
		if needed[client].First() > engine.Micros(b.before) {
			continue // usually contents are kept for longer
		}
		runs := slices.DeleteFunc(slices.Clone(refs), func(r puntuale.RunRef) bool { return r.Client != client })
		messages, err := engine.QueryAll(ctx, a, RunMembers, []any{RunColumns(runs)}, queue.ScanRef)
		if err != nil {
			return fmt.Errorf("look for messages of runs: %w", err)
		}
		if err := needed[client].KeepKinds(ctx, a, client, messages, false); err != nil {
			return err
		}
	}
	return nil
}

// forgetAnswers removes receivers' answers to events about messages of the runs.
func forgetAnswers(ctx context.Context, a engine.Querier, refs []puntuale.RunRef) error {
	var n int64
	if found, err := engine.QueryOne(ctx, a, `select 1 from delivery limit 1`, nil, &n); err != nil || !found {
		return err
	}
	messages, err := engine.QueryAll(ctx, a, RunMembers, []any{RunColumns(refs)}, queue.ScanRef)
	if err != nil {
		return fmt.Errorf("look for messages of runs: %w", err)
	}
	return outbox.ForgetAnswers(ctx, a, outbox.MessageSubjects(messages))
}

// SandboxMessagesOf finds the messages of runs that the simulated network got.
const SandboxMessagesOf = `
select m.client_id, m.id, m.generation from $u(c bigint, i bigint) cross join run r cross join message m cross join session s
where r.client_id = u.c and r.id = u.i and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages
 and s.client_id = m.client_id and s.id = m.session_id and s.sandbox = 1
union all
select m.client_id, m.id, m.generation from $u(c bigint, i bigint) cross join message m cross join session s
where m.client_id = u.c and m.run_id = u.i and m.resent_from <> 0
 and s.client_id = m.client_id and s.id = m.session_id and s.sandbox = 1`

// note adds late runs to the table late_run, and deletes the other runs of refs from it.
func (b *blanking) note(ctx context.Context, a engine.Querier, refs []puntuale.RunRef, late []LateRun) error {
	outdated := slices.DeleteFunc(slices.Clone(refs), func(r puntuale.RunRef) bool {
		return slices.ContainsFunc(late, func(l LateRun) bool { return l.RunRef == r })
	})
	if err := ForgetLate(ctx, a, outdated); err != nil || len(late) == 0 {
		return err
	}
	if _, err := a.Exec(ctx, `insert into late_run as l (client_id, run_id, since) select u.c, u.i, u.s from $u(c bigint, i bigint, s bigint) where true
 on conflict (client_id, run_id) do update set since = excluded.since`,
		append(RunColumns(engine.Column(late, func(l *LateRun) puntuale.RunRef { return l.RunRef })), engine.Column(late, func(l *LateRun) int64 { return l.Since }))); err != nil {
		return fmt.Errorf("note late runs: %w", err)
	}
	return nil
}

// ForgetLate deletes runs from the table late_run.
func ForgetLate(ctx context.Context, a engine.Querier, refs []puntuale.RunRef) error {
	if len(refs) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `delete from late_run where (client_id, run_id) in (select u.c, u.i from $u(c bigint, i bigint))`,
		RunColumns(refs)); err != nil {
		return fmt.Errorf("forget late runs: %w", err)
	}
	return nil
}

// SandboxCopy is the key of a message in the simulated network's ledger: its connector id.
type SandboxCopy struct {
	client puntuale.ClientID
	id     string
}

// CopiesOf returns the keys that a message may have in the ledger: one for each generation up to the given one.
func CopiesOf(m puntuale.MessageRef, generation int) []SandboxCopy {
	all := make([]SandboxCopy, generation+1)
	for g := range all {
		all[g] = SandboxCopy{m.Client, puntuale.ConnectorID(m.ID, g)}
	}
	return all
}

// CopyColumns sorts copies in the order in which the ledger's writer locks rows, and returns them as columns.
func CopyColumns(copies []SandboxCopy) engine.Columns {
	engine.Sort(copies, func(a, b SandboxCopy) int { return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.id, b.id)) })
	return engine.Columns{
		engine.Column(copies, func(c *SandboxCopy) int64 { return int64(c.client) }),
		engine.Column(copies, func(c *SandboxCopy) string { return c.id }),
	}
}

// CompareRuns defines the order in which runs are locked: by client, then by id.
func CompareRuns(a, b puntuale.RunRef) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
}

// RunColumns returns the primary keys of runs as columns: clients, then ids.
func RunColumns(refs []puntuale.RunRef) engine.Columns {
	return engine.Columns{
		engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.Client) }),
		engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.ID) }),
	}
}

func scanRun(rows engine.Row, r *puntuale.RunRef) error { return rows.Scan(&r.Client, &r.ID) }
