package archiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
)

// pendingErasure is an erasure that must still be done in the files of the archive.
type pendingErasure struct {
	client puntuale.ClientID
	mark   string
	times  int64
}

// maxForgotten is how many erasures are done together in one pass over the files.
const maxForgotten = 1000

// forget removes erased persons from the files of the archive. An erasure is done when no file contains data of its
// person. If a file is damaged, forget still changes the other files, but all erasures stay pending.
func (t *archiveTerm) forget(ctx context.Context) error {
	all, err := engine.QueryAll(ctx, t.s.ArchiveReads, `select client_id, mark, times from archive_erasure order by client_id, mark limit $1`, []any{maxForgotten},
		func(rows engine.Row, f *pendingErasure) error { return rows.Scan(&f.client, &f.mark, &f.times) })
	if err != nil {
		return fmt.Errorf("look for erasures: %w", err)
	}
	if len(all) == 0 {
		return nil
	}
	marks := map[puntuale.ClientID][]string{}
	for _, f := range all {
		marks[f.client] = append(marks[f.client], f.mark)
	}
	files, err := t.folder.Files()
	if err != nil {
		return err
	}
	var failed error
	for _, file := range files {
		begun := t.s.LocalClock.Now()
		n, err := t.forgetIn(file, marks)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		t.done.Erased += n
		if err := t.at("forgot"); err != nil {
			return err
		}
		if err := t.rested(ctx, begun); err != nil {
			return err
		}
	}
	if failed != nil {
		return fmt.Errorf("persons were erased that files of the archive still name: %w", failed)
	}
	return t.fenced(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from archive_erasure where (client_id, mark, times) in (select u.c, u.m, u.t from $u(c bigint, m text, t bigint))`,
			engine.Columns{
				engine.Column(all, func(f *pendingErasure) int64 { return int64(f.client) }),
				engine.Column(all, func(f *pendingErasure) string { return f.mark }),
				engine.Column(all, func(f *pendingErasure) int64 { return f.times }),
			})
		return err
	})
}

// forgetIn writes a new version of a file if the file contains runs of these persons. It returns how many runs changed.
func (t *archiveTerm) forgetIn(file archive.File, marks map[puntuale.ClientID][]string) (int, error) {
	h, err := t.folder.Header(file)
	if err != nil || !slices.ContainsFunc(h.Part.Clients, func(s archive.Span) bool { return marks[puntuale.ClientID(s.Client)] != nil }) {
		return 0, err
	}
	p, h, err := readPast(t.folder, file)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range p.order {
		if r.phone == "" || !slices.Contains(marks[r.Client], t.cfg.Mark(r.Client, r.phone)) {
			continue
		}
		n++
		if err := p.wipe(r); err != nil {
			return 0, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	if n == 0 {
		return 0, nil
	}
	file.Version++
	if err := t.folder.Put(file, func(to io.Writer) error { return p.write(to, h) }); err != nil {
		return 0, err
	}
	return n, t.folder.Sweep()
}

// wipe removes all data of the run's person from the run's rows, in the same way as an erasure in the database.
func (p *archiveBatch) wipe(r *pastRun) error {
	digits := strings.TrimPrefix(r.phone, "+")
	for table := range r.lines {
		t := p.tables[table]
		for i, line := range r.lines[table] {
			f := fields{t, make([]any, len(t.Columns))}
			if err := archive.ParseRow([]byte(line), t.Columns, f.values); err != nil {
				return err
			}
			for _, name := range []string{"phone", "name", "detail", "content", "reference"} {
				if f.has(name) && (table != pastRuns || name != "content") { // blanking has already removed the content of a run
					f.set(name, "")
				}
			}
			if f.has("reason") && strings.Contains(f.Text("reason"), digits) {
				f.set("reason", "")
			}
			wiped, err := archive.AppendRow(nil, f.values)
			if err != nil {
				return err
			}
			r.lines[table][i] = string(wiped)
		}
	}
	return nil
}
