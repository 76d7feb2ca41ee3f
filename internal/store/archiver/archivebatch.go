package archiver

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/retention"
)

// Indexes of the tables in PastTables.
const (
	pastRuns = iota
	pastMessages
	pastEvents
	pastSandbox
	pastReceipts
	pastEntries
)

// PastTables lists the tables whose old rows are moved to the archive, in the order in files. Runs come first, then the
// rows of runs, then the entries of the credit ledger.
var PastTables = []string{pastRuns: "run", pastMessages: "message", pastEvents: "event", pastSandbox: "sandbox_message",
	pastReceipts: "receipt", pastEntries: "credit_entry"}

// archiveBatch contains the rows for one file: whole runs with all their rows, and entries of the credit ledger. The
// rows are kept as lines of the file.
type archiveBatch struct {
	tables []archive.Table
	runs   map[puntuale.RunRef]*pastRun
	order  []*pastRun // the runs, in the order in which they were added
	runOf  map[puntuale.MessageRef]*pastRun
	ledger []batchEntry // the entries, in the order in which they were added
	rows   int
	bytes  int
}

// pastRun is a run together with all rows that belong to it.
type pastRun struct {
	puntuale.RunRef
	phone    string
	messages []pastMessage
	lines    [pastEntries][]string // the lines of the run's rows; the index is the table
}

type pastMessage struct {
	puntuale.MessageRef
	generation int
	due        int64
}

// batchEntry is an entry of the credit ledger.
type batchEntry struct {
	client     puntuale.ClientID
	id, amount int64
	at         int64
	line       string
}

func newPast(tables []archive.Table) *archiveBatch {
	return &archiveBatch{tables: tables, runs: map[puntuale.RunRef]*pastRun{}, runOf: map[puntuale.MessageRef]*pastRun{}}
}

// fields is a row whose values can be found by column name.
type fields struct {
	t      archive.Table
	values []any
}

func (f fields) value(name string) any {
	for i, c := range f.t.Columns {
		if c.Name == name {
			return f.values[i]
		}
	}
	return nil
}

func (f fields) int(name string) int64   { n, _ := f.value(name).(int64); return n }
func (f fields) Text(name string) string { s, _ := f.value(name).(string); return s }
func (f fields) set(name string, v any)  { f.values[slices.IndexFunc(f.t.Columns, f.named(name))] = v }
func (f fields) has(name string) bool    { return slices.ContainsFunc(f.t.Columns, f.named(name)) }

func (fields) named(name string) func(archive.Column) bool {
	return func(c archive.Column) bool { return c.Name == name }
}

// add adds a row. Messages must be added before the rows that belong to them.
func (p *archiveBatch) add(t archive.Table, values []any) error {
	line, err := archive.AppendRow(nil, values)
	if err != nil {
		return fmt.Errorf("a row of %s: %w", t.Name, err)
	}
	f := fields{t, values}
	client := puntuale.ClientID(f.int("client_id"))
	p.rows, p.bytes = p.rows+1, p.bytes+len(line)
	switch table := slices.Index(PastTables, t.Name); table {
	case pastRuns:
		r := p.run(puntuale.RunRef{Client: client, ID: puntuale.RunID(f.int("id"))})
		r.phone = f.Text("phone")
		r.lines[table] = append(r.lines[table], string(line))
	case pastMessages:
		r := p.run(puntuale.RunRef{Client: client, ID: puntuale.RunID(f.int("run_id"))})
		m := pastMessage{puntuale.MessageRef{Client: client, ID: puntuale.MessageID(f.int("id"))}, int(f.int("generation")), f.int("due_at")}
		r.messages = append(r.messages, m)
		r.lines[table] = append(r.lines[table], string(line))
		p.runOf[m.MessageRef] = r
	case pastEvents, pastSandbox, pastReceipts:
		r := p.runOf[puntuale.MessageRef{Client: client, ID: puntuale.MessageID(f.int("message_id"))}]
		if r == nil {
			return fmt.Errorf("a row of %s belongs to no message", t.Name)
		}
		r.lines[table] = append(r.lines[table], string(line))
	case pastEntries:
		p.ledger = append(p.ledger, batchEntry{client, f.int("id"), f.int("amount"), f.int("at"), string(line)})
	default:
		return fmt.Errorf("the table %s is none of the archive's", t.Name)
	}
	return nil
}

// run returns the batch's run with the reference ref. If the batch does not contain the run, run adds it.
func (p *archiveBatch) run(ref puntuale.RunRef) *pastRun {
	r := p.runs[ref]
	if r == nil {
		r = &pastRun{RunRef: ref}
		p.runs[ref] = r
		p.order = append(p.order, r)
	}
	return r
}

// sameAs reports whether two runs have the same rows.
func (r *pastRun) sameAs(other *pastRun) bool {
	for t := range r.lines {
		if !slices.Equal(slices.Sorted(slices.Values(r.lines[t])), slices.Sorted(slices.Values(other.lines[t]))) {
			return false
		}
	}
	return true
}

func (r *pastRun) refs() []puntuale.MessageRef {
	return engine.Column(r.messages, func(m *pastMessage) puntuale.MessageRef { return m.MessageRef })
}

// copies returns the keys of all rows in the sandbox's ledger that may belong to the run's messages.
func (r *pastRun) copies() (all []retention.SandboxCopy) {
	for _, m := range r.messages {
		all = append(all, retention.CopiesOf(m.MessageRef, m.generation)...)
	}
	return all
}

func (p *archiveBatch) empty() bool { return len(p.order)+len(p.ledger) == 0 }

// keep removes the runs for which run returns false, and the entries for which entry returns false.
func (p *archiveBatch) keep(run func(*pastRun) bool, entry func(*batchEntry) bool) {
	p.order = slices.DeleteFunc(p.order, func(r *pastRun) bool { return !run(r) })
	p.ledger = slices.DeleteFunc(p.ledger, func(e batchEntry) bool { return !entry(&e) })
}

// spans returns a description of each client's rows in the file.
func (p *archiveBatch) spans() []archive.Span {
	found := map[puntuale.ClientID]*archive.Span{}
	span := func(c puntuale.ClientID) *archive.Span {
		if found[c] == nil {
			found[c] = &archive.Span{Client: int64(c)}
		}
		return found[c]
	}
	for _, r := range p.order {
		s := span(r.Client)
		for _, m := range r.messages {
			id := int64(m.ID)
			if s.First == 0 {
				s.First, s.Last, s.From, s.To = id, id, m.due, m.due
			}
			s.First, s.Last, s.From, s.To = min(s.First, id), max(s.Last, id), min(s.From, m.due), max(s.To, m.due)
		}
	}
	for _, e := range p.ledger {
		span(e.client)
	}
	all := make([]archive.Span, 0, len(found))
	for _, s := range found {
		all = append(all, *s)
	}
	engine.Sort(all, func(a, b archive.Span) int { return cmp.Compare(a.Client, b.Client) })
	return all
}

// write writes the batch as a file.
func (p *archiveBatch) write(to io.Writer, h archive.Header) error {
	lines := func(table int, use func(string) error) error {
		for _, r := range p.order {
			if table == pastEntries {
				break
			}
			for _, line := range r.lines[table] {
				if err := use(line); err != nil {
					return err
				}
			}
		}
		for _, e := range p.ledger {
			if table != pastEntries {
				break
			}
			if err := use(e.line); err != nil {
				return err
			}
		}
		return nil
	}
	h.Tables = slices.Clone(p.tables)
	for i := range h.Tables {
		h.Tables[i].Rows = 0
		_ = lines(i, func(string) error { h.Tables[i].Rows++; return nil }) // this function returns no error; it only counts rows
	}
	h.Part.Clients = p.spans()
	w, err := archive.NewWriter(to, h)
	if err != nil {
		return err
	}
	for i := range h.Tables {
		if err := w.Begin(); err != nil {
			return err
		}
		if err := lines(i, func(line string) error { return w.Line([]byte(line)) }); err != nil {
			return err
		}
		if err := w.End(); err != nil {
			return err
		}
	}
	return w.Close()
}

// readPast reads a file of an archive.
func readPast(folder *archive.Folder, file archive.File) (*archiveBatch, archive.Header, error) {
	p := newPast(nil)
	h, err := folder.Read(file, p.add)
	p.tables = h.Tables
	return p, h, err
}

// scanPast scans a row of the table t. before contains the targets for columns in front of the table's own columns.
func scanPast(rows engine.Row, t archive.Table, before ...any) ([]any, error) {
	values := make([]any, len(t.Columns))
	targets := slices.Clone(before)
	for i := range values {
		targets = append(targets, &values[i])
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	archive.Plain(values, t)
	return values, nil
}
