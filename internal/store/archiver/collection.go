package archiver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/retention"
	"puntuale/internal/store/statement"
)

// The archiver finds old runs in the same way as blanking (retention/blanking.go). It reads each client's runs in the
// order of their ids, from a cursor on. If the cursor passes a run that is still open or ended too recently, the run is
// added to a list of late runs. All reads are outside transactions. So on SQLite they do not block the writer.

const (
	collectRuns    = 100  // largest number of runs in one read
	collectEntries = 500  // largest number of entries of the credit ledger in one read
	collectClients = 1000 // largest number of clients in one read
)

// PastClients finds clients that may have old runs. Each of its subqueries looks up a single row.
const PastClients = `
select c.id, coalesce(p.run_id, 0) from client c left join archive_place p on p.client_id = c.id
where c.id > $1 and (
 exists (select 1 from run r where r.client_id = c.id and r.id > coalesce(p.run_id, 0) and r.id < $2)
 or exists (select 1 from late_archive l where l.client_id = c.id and l.since <= $3)
 or coalesce((select min(f.at) from (select e.at, e.kind from credit_entry e where e.client_id = c.id order by e.id limit 2) f where f.kind <> 'carried'), $3) < $3)
order by c.id limit $4`

// pastColumns contains those columns of a run that the archiver reads before all others. They say whether the run was
// blanked, when its last message ended (see retention.RunsEnded), and when its first one did.
const pastColumns = `r.blanked_at <> 0,
 coalesce((select max(coalesce(m.done_at, 9223372036854775807)) from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages), 0),
 coalesce((select max(coalesce(m.done_at, 9223372036854775807)) from message m where m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0), 0),
 coalesce((select min(m.done_at) from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages), 0)`

const (
	PastNext = `
select ` + pastColumns + `, :run from run r where r.client_id = $1 and r.id > $2 and r.id < $3 order by r.id limit $4`

	PastLate = `
select ` + pastColumns + `, :run from late_archive l cross join run r where l.client_id = $1 and l.run_id > $2 and l.since <= $3
 and r.client_id = l.client_id and r.id = l.run_id and r.blanked_at <> 0 order by l.run_id limit $4`

	PastMessagesOf = `
select :message from $u(c bigint, i bigint) cross join run r cross join message m
where r.client_id = u.c and r.id = u.i and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages
union all
select :message from $u(c bigint, i bigint) cross join message m
where m.client_id = u.c and m.run_id = u.i and m.resent_from <> 0`

	PastEventsOf = `
select :event from $u(c bigint, i bigint) cross join event e where e.client_id = u.c and e.message_id = u.i`

	PastSandboxOf = `
select :sandbox_message from $u(c bigint, k text) cross join sandbox_message g where g.client_id = u.c and g.connector_id = u.k`

	pastReceiptsOf = `
select :receipt from $u(c bigint, i bigint) cross join receipt v where v.client_id = u.c and v.message_id = u.i`

	PastEntriesNext = `
select e.kind = 'carried', :credit_entry from credit_entry e where e.client_id = $1 and e.id > $2 order by e.id limit $3`
)

// Alias maps each table to its name in these statements.
var Alias = map[string]string{"run": "r", "message": "m", "event": "e", "sandbox_message": "g", "receipt": "v", "credit_entry": "e"}

// named replaces each ":" with a table's name in a statement, such as ":message", by the columns of this archived table.
func (t *archiveTerm) named(text string) string {
	for _, table := range t.tables {
		names := make([]string, len(table.Columns))
		for i, c := range table.Columns {
			names[i] = Alias[table.Name] + "." + c.Name
		}
		text = strings.ReplaceAll(text, ":"+table.Name, strings.Join(names, ", "))
	}
	return text
}

// lookedAtRuns are the runs that the archiver read and left in the database. The method note stores these runs when the
// current file is finished.
type lookedAtRuns struct {
	place map[puntuale.ClientID]puntuale.RunID
	late  []retention.LateRun
	runs  int
}

// collect reads as many old runs as one file may contain. more reports whether there may be more.
func (t *archiveTerm) collect(ctx context.Context) (p *archiveBatch, more bool, err error) {
	p = newPast(t.tables)
	t.looked = lookedAtRuns{place: map[puntuale.ClientID]puntuale.RunID{}}
	for {
		walks, err := engine.QueryAll(ctx, t.s.ArchiveReads, PastClients, []any{t.from, queue.FirstID(t.before), engine.Micros(t.before), collectClients},
			func(rows engine.Row, w *retention.BlankingCursor) error { return rows.Scan(&w.Client, &w.From) })
		if err != nil {
			return nil, false, fmt.Errorf("look for clients with old runs: %w", err)
		}
		needed, err := statement.NeededMonthsOf(ctx, t.s.ArchiveReads, engine.Column(walks, func(w *retention.BlankingCursor) puntuale.ClientID { return w.Client }), t.now)
		if err != nil {
			return nil, false, err
		}
		for _, w := range walks {
			t.client = needed[w.Client]
			t.till = min(engine.Micros(t.before), t.client.From-1)
			for _, step := range []func(context.Context, retention.BlankingCursor, *archiveBatch) error{t.collectLate, t.collectNext, t.entries} {
				if err := step(ctx, w, p); err != nil {
					return nil, false, err
				}
			}
			if t.full(p) {
				return p, true, nil
			}
			t.from = w.Client
		}
		if len(walks) < collectClients {
			return p, false, nil
		}
	}
}

func (t *archiveTerm) full(p *archiveBatch) bool {
	return p.rows >= maxRows || p.bytes >= maxBytes || t.looked.runs >= maxLooks
}

// collectLate reads the client's late runs again. When the cursor passed these runs, they were still open or had ended
// too recently.
func (t *archiveTerm) collectLate(ctx context.Context, w retention.BlankingCursor, p *archiveBatch) error {
	return t.pages(ctx, p, func(after puntuale.RunID) (string, []any) {
		return PastLate, []any{w.Client, int64(after), t.till, collectRuns}
	}, 0, func(seenRun) bool { return true })
}

// collectNext reads the client's next runs. It stops at an old run that is not blanked yet.
func (t *archiveTerm) collectNext(ctx context.Context, w retention.BlankingCursor, p *archiveBatch) error {
	return t.pages(ctx, p, func(after puntuale.RunID) (string, []any) {
		return PastNext, []any{w.Client, int64(after), queue.FirstID(engine.Instant(t.till)), collectRuns}
	}, puntuale.RunID(w.From), func(r seenRun) bool {
		if !r.blanked && r.ended <= t.till {
			t.moreLater = true
			return false
		}
		t.looked.place[w.Client] = r.ID
		return true
	})
}

// seenRun is a run's row, with the values that decide whether the run can be archived now.
type seenRun struct {
	puntuale.RunRef
	blanked bool
	first   int64 // when the run's first message ended
	ended   int64 // when the run's last message ended; the largest int64 while one of its messages is open
	values  []any
}

// pages reads runs page by page. It adds old runs to the file, and the other runs to t.looked. It stops when the argument
// step returns false for a run, or when the file is full.
func (t *archiveTerm) pages(ctx context.Context, p *archiveBatch, page func(after puntuale.RunID) (string, []any), after puntuale.RunID, step func(seenRun) bool) error {
	for !t.full(p) {
		begun := t.s.LocalClock.Now()
		text, args := page(after)
		runs, err := engine.QueryAll(ctx, t.s.ArchiveReads, t.named(text), args, t.scanRun)
		if err != nil {
			return fmt.Errorf("look for old runs: %w", err)
		}
		whole := len(runs) == collectRuns
		if stop := slices.IndexFunc(runs, func(r seenRun) bool { return !step(r) }); stop >= 0 {
			runs, whole = runs[:stop], false
		}
		if err := t.take(ctx, p, runs); err != nil {
			return err
		}
		if len(runs) > 0 {
			after = runs[len(runs)-1].ID
			if err := t.rested(ctx, begun); err != nil {
				return err
			}
		}
		if !whole {
			return nil
		}
	}
	return nil
}

func (t *archiveTerm) scanRun(rows engine.Row, r *seenRun) (err error) {
	var planned, resent int64
	if r.values, err = scanPast(rows, t.tables[pastRuns], &r.blanked, &planned, &resent, &r.first); err != nil {
		return err
	}
	f := fields{t.tables[pastRuns], r.values}
	r.RunRef, r.ended = puntuale.RunRef{Client: puntuale.ClientID(f.int("client_id")), ID: puntuale.RunID(f.int("id"))}, max(planned, resent)
	return nil
}

// take adds old runs, with all their rows, to the file. It adds runs that are not old enough to the list of late runs.
// An old run gets no further messages, because blanked messages are never sent again. A run of a month that no server closed
// is looked at again after a month, because nothing makes it old.
func (t *archiveTerm) take(ctx context.Context, p *archiveBatch, runs []seenRun) error {
	t.looked.runs += len(runs)
	var refs []puntuale.RunRef
	for _, r := range runs {
		switch {
		case r.ended <= t.till && t.client.Missed(r.first, r.ended):
			t.looked.late = append(t.looked.late, retention.LateRun{RunRef: r.RunRef, Since: engine.Micros(t.before.AddDate(0, 1, 0))})
		case r.blanked && r.ended <= t.till:
			if err := p.add(t.tables[pastRuns], r.values); err != nil {
				return err
			}
			refs = append(refs, r.RunRef)
		case r.ended == math.MaxInt64:
			t.looked.late = append(t.looked.late, retention.LateRun{RunRef: r.RunRef, Since: max(engine.Micros(t.now), t.till+1)})
		default:
			t.looked.late = append(t.looked.late, retention.LateRun{RunRef: r.RunRef, Since: max(r.ended, t.till+1)})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if err := t.read(ctx, t.s.ArchiveReads, p, pastMessages, PastMessagesOf, retention.RunColumns(refs)); err != nil {
		return err
	}
	var messages []puntuale.MessageRef
	var copies []retention.SandboxCopy
	for _, ref := range refs {
		messages = append(messages, p.runs[ref].refs()...)
		copies = append(copies, p.runs[ref].copies()...)
	}
	return t.readMessageRows(ctx, t.s.ArchiveReads, p, messages, copies)
}

// readMessageRows reads the rows that belong to the given messages: events, receipts, and rows of the sandbox's ledger.
func (t *archiveTerm) readMessageRows(ctx context.Context, a engine.Querier, p *archiveBatch, messages []puntuale.MessageRef, copies []retention.SandboxCopy) error {
	if err := t.read(ctx, a, p, pastEvents, PastEventsOf, queue.RefColumns(messages)); err != nil {
		return err
	}
	if err := t.read(ctx, a, p, pastReceipts, pastReceiptsOf, queue.RefColumns(messages)); err != nil {
		return err
	}
	return t.read(ctx, a, p, pastSandbox, PastSandboxOf, retention.CopyColumns(copies))
}

// read reads rows of one table into the batch.
func (t *archiveTerm) read(ctx context.Context, a engine.Querier, p *archiveBatch, table int, text string, columns engine.Columns) error {
	err := a.Query(ctx, t.named(text), []any{columns}, func(rows engine.Row) error {
		values, err := scanPast(rows, t.tables[table])
		if err != nil {
			return err
		}
		return p.add(t.tables[table], values)
	})
	if err != nil {
		return fmt.Errorf("read old rows of %s: %w", t.tables[table].Name, err)
	}
	return nil
}

// entries reads the client's old entries of the credit ledger.
func (t *archiveTerm) entries(ctx context.Context, w retention.BlankingCursor, p *archiveBatch) error {
	for after := int64(0); !t.full(p); {
		begun := t.s.LocalClock.Now()
		n, young := 0, false
		err := t.s.ArchiveReads.Query(ctx, t.named(PastEntriesNext), []any{w.Client, after, collectEntries}, func(rows engine.Row) error {
			var carried bool
			values, err := scanPast(rows, t.tables[pastEntries], &carried)
			if err != nil {
				return err
			}
			n++
			f := fields{t.tables[pastEntries], values}
			after = f.int("id")
			if young = young || f.int("at") >= engine.Micros(t.before); young || carried {
				return nil
			}
			return p.add(t.tables[pastEntries], values)
		})
		if err != nil {
			return fmt.Errorf("read old entries of the ledger: %w", err)
		}
		if young || n < collectEntries {
			return nil
		}
		if err := t.rested(ctx, begun); err != nil {
			return err
		}
	}
	return nil
}

// note stores the progress: first the list of late runs, then the cursors.
func (l *lookedAtRuns) note(ctx context.Context, t *archiveTerm) error {
	engine.Sort(l.late, func(x, y retention.LateRun) int { return retention.CompareRuns(x.RunRef, y.RunRef) })
	for part := range slices.Chunk(l.late, engine.Chunk) {
		if err := t.fenced(ctx, func(ctx context.Context, a engine.Querier) error { return noteLate(ctx, a, part) }); err != nil {
			return err
		}
	}
	clients := make([]int64, 0, len(l.place))
	for c := range l.place {
		clients = append(clients, int64(c))
	}
	slices.Sort(clients)
	for part := range slices.Chunk(clients, engine.Chunk) {
		if err := t.fenced(ctx, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `insert into archive_place (client_id, run_id) select u.c, u.i from $u(c bigint, i bigint) where true
 on conflict (client_id) do update set run_id = excluded.run_id where archive_place.run_id < excluded.run_id`,
				engine.Columns{part, engine.Column(part, func(c *int64) int64 { return int64(l.place[puntuale.ClientID(*c)]) })})
			return err
		}); err != nil {
			return err
		}
	}
	*l = lookedAtRuns{}
	return nil
}

func noteLate(ctx context.Context, a engine.Querier, late []retention.LateRun) error {
	if _, err := a.Exec(ctx, `insert into late_archive (client_id, run_id, since) select u.c, u.i, u.s from $u(c bigint, i bigint, s bigint) where true
 on conflict (client_id, run_id) do update set since = excluded.since`,
		append(retention.RunColumns(engine.Column(late, func(l *retention.LateRun) puntuale.RunRef { return l.RunRef })), engine.Column(late, func(l *retention.LateRun) int64 { return l.Since }))); err != nil {
		return fmt.Errorf("note late runs: %w", err)
	}
	return nil
}
