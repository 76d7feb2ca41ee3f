package archiver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
	"puntuale/internal/store/retention"
)

// finish finishes the file whose number follows the last finished file, if there is one. It deletes the file's rows
// from the database. If runs have changed since the file was written, finish removes these runs from the file. After
// that, this file is the last finished file.
func (t *archiveTerm) finish(ctx context.Context) error {
	file, found, err := t.folder.Find(t.serial + 1)
	if err != nil || !found {
		return err
	}
	p, _, err := readPast(t.folder, file) // reading an incomplete file fails, and then nothing is deleted
	if err != nil {
		return fmt.Errorf("an unfinished file of the archive: %w", err)
	}
	changed, err := t.remove(ctx, p)
	if err != nil {
		return err
	}
	if err := t.at("removed"); err != nil {
		return err
	}
	if len(changed) > 0 {
		t.from = 0 // read all clients again, because the changed runs stay in the database
		p.keep(func(r *pastRun) bool { return !changed[r.RunRef] }, func(*batchEntry) bool { return true })
		p.tables = t.tables
		if err := t.replace(file, p); err != nil {
			return err
		}
	}
	if err := t.at("amended"); err != nil {
		return err
	}
	if err := t.fenced(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update archive set serial = $1 where one = 1 and serial < $1`, file.Serial)
		return err
	}); err != nil {
		return err
	}
	t.serial = file.Serial
	messages := 0
	for _, r := range p.order {
		messages += len(r.messages)
	}
	t.done.Files, t.done.Runs, t.done.Messages = t.done.Files+1, t.done.Runs+len(p.order), t.done.Messages+messages
	t.s.Config.Logger.Info("old runs were archived", "file", file.Name(), "runs", len(p.order), "messages", messages, "entries", len(p.ledger))
	return t.at("finished")
}

// replace writes a new version of a file.
func (t *archiveTerm) replace(file archive.File, p *archiveBatch) error {
	file.Version++
	if err := t.put(file, p); err != nil {
		return err
	}
	return t.folder.Sweep()
}

// One transaction deletes about this many runs and messages, or entries. A run with more messages has a transaction of
// its own. The limit is lower on SQLite, because there all other tasks wait for this transaction.
const (
	removeRows       = 1000
	removeRowsSQLite = 100
)

// remove deletes the rows of the file from the database. Each transaction deletes a few runs of one client. remove
// returns the runs that differ from the file; they stay in the database.
func (t *archiveTerm) remove(ctx context.Context, p *archiveBatch) (changed map[puntuale.RunRef]bool, err error) {
	limit := removeRows
	if !t.s.Dialect.Postgres {
		limit = removeRowsSQLite
	}
	changed = map[puntuale.RunRef]bool{}
	engine.Sort(p.order, func(a, b *pastRun) int { return retention.CompareRuns(a.RunRef, b.RunRef) })
	for rest := p.order; len(rest) > 0; {
		n, rows := 0, 0
		for n < len(rest) && rest[n].Client == rest[0].Client && (n == 0 || rows+len(rest[n].messages) < limit) {
			rows += len(rest[n].messages) + 1
			n++
		}
		x := &removalBatch{archiveTerm: t, client: rest[0].Client, runs: rest[:n]}
		rest = rest[n:]
		if err := t.fenced(ctx, x.run); err != nil {
			return nil, fmt.Errorf("delete archived runs: %w", err)
		}
		for _, r := range x.changed {
			changed[r] = true
		}
		if err := t.at("removing"); err != nil {
			return nil, err
		}
	}
	engine.Sort(p.ledger, func(a, b batchEntry) int { return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.id, b.id)) })
	for rest := p.ledger; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < limit && rest[n].client == rest[0].client {
			n++
		}
		part := rest[:n]
		rest = rest[n:]
		if err := t.fenced(ctx, func(ctx context.Context, a engine.Querier) error { return t.carry(ctx, a, part) }); err != nil {
			return nil, fmt.Errorf("fold archived entries of the ledger: %w", err)
		}
	}
	return changed, nil
}

// removalBatch is the work of one transaction. It locks messages first, then runs, then the other rows.
type removalBatch struct {
	*archiveTerm
	client  puntuale.ClientID
	runs    []*pastRun // the runs to delete, sorted by id
	changed []puntuale.RunRef
}

const (
	LockPastMessages = `
select :message from $u(c bigint, i bigint) join message m on m.client_id = u.c and m.id = u.i
order by m.client_id, m.id for update of m`

	LockPastRuns = `
select :run from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i
order by r.client_id, r.id for update of r`

	DeletePastMessages = `delete from message where client_id = $1 and id in (select u.i from $u(i bigint))`
	DeletePastRuns     = `delete from run where client_id = $1 and id in (select u.i from $u(i bigint))`
	DeletePastEvents   = `delete from event where (client_id, message_id) in (select u.c, u.i from $u(c bigint, i bigint))`
	deletePastReceipts = `delete from receipt where (client_id, message_id) in (select u.c, u.i from $u(c bigint, i bigint))`
	deletePastSandbox  = `delete from sandbox_message where (client_id, connector_id) in (select u.c, u.k from $u(c bigint, k text))`
)

// run deletes the runs that are the same in the database and in the file. Runs that are missing in the database were
// deleted before.
func (x *removalBatch) run(ctx context.Context, a engine.Querier) error {
	now, err := x.present(ctx, a)
	if err != nil {
		return err
	}
	x.changed = nil
	var same []*pastRun
	for _, r := range x.runs {
		switch stored := now.runs[r.RunRef]; {
		case stored == nil:
		case r.sameAs(stored):
			same = append(same, r)
		default:
			x.changed = append(x.changed, r.RunRef)
		}
	}
	if len(same) > 0 {
		var leaving []puntuale.MessageID
		for _, r := range same {
			leaving = append(leaving, engine.Column(r.refs(), func(m *puntuale.MessageRef) puntuale.MessageID { return m.ID })...)
		}
		counted, err := result.Leave(ctx, a, x.client, leaving)
		if err != nil {
			return err
		}
		if !counted { // they stay until all messages of the client are counted
			x.changed = append(x.changed, engine.Column(same, func(r **pastRun) puntuale.RunRef { return (*r).RunRef })...)
			same = nil
		}
	}
	if err := x.delete(ctx, a, same); err != nil || len(x.changed) == 0 {
		return err
	}
	return noteLate(ctx, a, engine.Column(x.changed, func(r *puntuale.RunRef) retention.LateRun {
		return retention.LateRun{RunRef: *r} // the next look reads it again
	}))
}

// present locks the runs' rows in the database, and reads them.
func (x *removalBatch) present(ctx context.Context, a engine.Querier) (*archiveBatch, error) {
	var messages []puntuale.MessageRef
	var copies []retention.SandboxCopy
	for _, r := range x.runs {
		messages = append(messages, r.refs()...)
		copies = append(copies, r.copies()...)
	}
	engine.Sort(messages, queue.CompareRefs)
	now := newPast(x.tables)
	if err := x.read(ctx, a, now, pastMessages, LockPastMessages, queue.RefColumns(messages)); err != nil {
		return nil, err
	}
	if err := x.read(ctx, a, now, pastRuns, LockPastRuns, retention.RunColumns(engine.Column(x.runs, func(r **pastRun) puntuale.RunRef { return (*r).RunRef }))); err != nil {
		return nil, err
	}
	existing := slices.DeleteFunc(messages, func(m puntuale.MessageRef) bool { return now.runOf[m] == nil })
	if len(existing) == 0 {
		return now, nil
	}
	return now, x.readMessageRows(ctx, a, now, existing, copies)
}

func (x *removalBatch) delete(ctx context.Context, a engine.Querier, runs []*pastRun) error {
	if len(runs) == 0 {
		return nil
	}
	var messages, events, receipts []puntuale.MessageRef
	var copies []retention.SandboxCopy
	for _, r := range runs {
		messages = append(messages, r.refs()...)
		if len(r.lines[pastEvents]) > 0 {
			events = append(events, r.refs()...)
		}
		if len(r.lines[pastReceipts]) > 0 {
			receipts = append(receipts, r.refs()...)
		}
		if len(r.lines[pastSandbox]) > 0 {
			copies = append(copies, r.copies()...)
		}
	}
	refs := engine.Column(runs, func(r **pastRun) puntuale.RunRef { return (*r).RunRef })
	for _, d := range []struct {
		text string
		args []any
		any  bool
	}{
		{DeletePastMessages, []any{x.client, engine.Columns{engine.Column(messages, func(m *puntuale.MessageRef) int64 { return int64(m.ID) })}}, true},
		{DeletePastRuns, []any{x.client, engine.Columns{engine.Column(refs, func(r *puntuale.RunRef) int64 { return int64(r.ID) })}}, true},
		{DeletePastEvents, []any{queue.RefColumns(events)}, len(events) > 0},
		{deletePastReceipts, []any{queue.RefColumns(receipts)}, len(receipts) > 0},
		{deletePastSandbox, []any{retention.CopyColumns(copies)}, len(copies) > 0},
		{`delete from link where (client_id, run_id) in (select u.c, u.i from $u(c bigint, i bigint))`, []any{retention.RunColumns(refs)}, true},
		{`delete from late_archive where (client_id, run_id) in (select u.c, u.i from $u(c bigint, i bigint))`, []any{retention.RunColumns(refs)}, true},
	} {
		if !d.any {
			continue
		}
		if _, err := a.Exec(ctx, d.text, d.args...); err != nil {
			return err
		}
	}
	return retention.ForgetLate(ctx, a, refs)
}

// carry deletes entries of a client's credit ledger. It adds their sum to one entry that replaces all archived entries.
// This entry has the kind "carried" and is the client's first entry. It has the id of the first entry that was ever
// archived.
func (t *archiveTerm) carry(ctx context.Context, a engine.Querier, part []batchEntry) error {
	client, lines := part[0].client, make(map[int64]string, len(part))
	for _, e := range part {
		lines[e.id] = e.line
	}
	var sum, last int64
	first := int64(math.MaxInt64)
	var present []int64
	if err := a.Query(ctx, t.named(`select e.kind = 'carried', :credit_entry from $u(c bigint, i bigint)
 join credit_entry e on e.client_id = u.c and e.id = u.i order by e.id for update of e`),
		[]any{engine.Columns{engine.Column(part, func(e *batchEntry) int64 { return int64(e.client) }), engine.Column(part, func(e *batchEntry) int64 { return e.id })}},
		func(rows engine.Row) error {
			var carried bool
			values, err := scanPast(rows, t.tables[pastEntries], &carried)
			if err != nil || carried {
				return err
			}
			f := fields{t.tables[pastEntries], values}
			line, err := archive.AppendRow(nil, values)
			if err == nil && string(line) != lines[f.int("id")] {
				err = fmt.Errorf("entry %d of the ledger is another than the archived one", f.int("id"))
			}
			sum, last, first = sum+f.int("amount"), max(last, f.int("at")), min(first, f.int("id"))
			present = append(present, f.int("id"))
			return err
		}); err != nil || len(present) == 0 {
		return err
	}
	var oldest int64
	var kind string
	if _, err := engine.QueryOne(ctx, a, `select id, kind from credit_entry where client_id = $1 order by id limit 1`, []any{client}, &oldest, &kind); err != nil {
		return err
	}
	if kind != "carried" { // the client has no carried entry yet, so the first entry of part becomes the carried entry
		oldest = first
		present = slices.DeleteFunc(present, func(id int64) bool { return id == first })
		if _, err := a.Exec(ctx, `update credit_entry set kind = 'carried', amount = $3, at = $4 where client_id = $1 and id = $2`, client, oldest, sum, last); err != nil {
			return err
		}
	} else if _, err := a.Exec(ctx, `update credit_entry set amount = amount + $3, at = greatest(at, $4::bigint) where client_id = $1 and id = $2`,
		client, oldest, sum, last); err != nil {
		return err
	}
	if len(present) == 0 {
		return nil
	}
	_, err := a.Exec(ctx, `delete from credit_entry where client_id = $1 and id in (select u.i from $u(i bigint))`, client, engine.Columns{present})
	return err
}
