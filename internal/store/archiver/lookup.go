package archiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Search selects messages of an archive. A field with the zero value excludes no message.
type Search struct {
	IDs      []puntuale.MessageID
	Client   puntuale.ClientID
	Phone    string    // the recipient, in the form that the API uses
	From, To time.Time // range of the due time: From inclusive, To exclusive
}

// Message is an archived message with its history.
type Message struct {
	puntuale.MessageDetail
	Outcome int // 0: none, 1: sent, 2: failed; a resend does not change the outcome
	Credit  int // 1: the message took a credit, -1: this credit was given back, 0: the message took no credit
	File    string
	Events  []Event
}

// Event is an entry of a message's history.
type Event struct {
	At     time.Time
	Kind   string
	Detail puntuale.Reason
}

// within reports whether a file may contain messages that match the search.
func (r *Search) within(h archive.Header) bool {
	return slices.ContainsFunc(h.Part.Clients, func(s archive.Span) bool {
		switch {
		case s.First == 0, r.Client != 0 && int64(r.Client) != s.Client:
			return false
		case !r.From.IsZero() && s.To < engine.Micros(r.From), !r.To.IsZero() && s.From >= engine.Micros(r.To):
			return false
		}
		return len(r.IDs) == 0 || slices.ContainsFunc(r.IDs, func(id puntuale.MessageID) bool { return s.First <= int64(id) && int64(id) <= s.Last })
	})
}

func (r *Search) wants(m *Message) bool {
	switch {
	case len(r.IDs) > 0 && !slices.Contains(r.IDs, m.ID), r.Client != 0 && r.Client != m.Client, r.Phone != "" && r.Phone != m.Phone:
		return false
	}
	return (r.From.IsZero() || !m.Due.Before(r.From)) && (r.To.IsZero() || m.Due.Before(r.To))
}

// Find reads the archive in the folder path, and calls use for each message that matches, sorted by file and id. It
// skips damaged files. After it has read the other files, it returns an error that lists the damaged files.
func Find(path string, r Search, use func(Message) error) error {
	folder, err := archive.OpenFolder(path)
	if err != nil {
		return err
	}
	files, err := folder.Files()
	if err != nil {
		return err
	}
	var damaged error
	for _, file := range files {
		h, err := folder.Header(file)
		if err == nil && !r.within(h) {
			continue
		}
		var found []Message
		if err == nil {
			found, err = findIn(folder, file, &r)
		}
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		for _, m := range found {
			if err := use(m); err != nil {
				return errors.Join(damaged, err)
			}
		}
	}
	return damaged
}

func findIn(folder *archive.Folder, file archive.File, r *Search) ([]Message, error) {
	p, _, err := readPast(folder, file)
	if err != nil {
		return nil, err
	}
	var all []Message
	for _, run := range p.order {
		if r.Client != 0 && r.Client != run.Client || r.Phone != "" && r.Phone != run.phone {
			continue
		}
		messages, err := p.messagesOf(run)
		if err != nil {
			return nil, fmt.Errorf("%s: run %d: %w", file.Name(), run.ID, err)
		}
		for _, m := range messages {
			if m.File = file.Name(); r.wants(&m) {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// messagesOf makes messages from the rows of a run.
func (p *archiveBatch) messagesOf(run *pastRun) ([]Message, error) {
	archived, err := p.parsed(run, pastRuns)
	if err != nil || len(archived) != 1 {
		return nil, errors.Join(errors.New("it is not whole"), err)
	}
	rows, err := p.parsed(run, pastMessages)
	if err != nil {
		return nil, err
	}
	events, err := p.parsed(run, pastEvents)
	if err != nil {
		return nil, err
	}
	all := make([]Message, 0, len(rows))
	for _, row := range rows {
		m := Message{Outcome: int(row.int("outcome")), Credit: int(row.int("credit"))}
		if m.MessageDetail, err = detailOf(archived[0], row); err != nil {
			return nil, err
		}
		m.Ended = m.Outcome != 0
		for _, e := range events {
			if puntuale.MessageID(e.int("message_id")) == m.ID {
				m.Events = append(m.Events, Event{engine.Instant(e.int("at")), e.Text("kind"), puntuale.ParseReason(e.Text("detail"))})
			}
		}
		all = append(all, m)
	}
	engine.Sort(all, func(a, b Message) int { return queue.CompareRefs(a.ref(), b.ref()) })
	return all, nil
}

func (m *Message) ref() puntuale.MessageRef { return puntuale.MessageRef{Client: m.Client, ID: m.ID} }

// parsed returns the run's rows in one table, as fields.
func (p *archiveBatch) parsed(run *pastRun, table int) ([]fields, error) {
	var all []fields
	for _, line := range run.lines[table] {
		f := fields{p.tables[table], make([]any, len(p.tables[table].Columns))}
		if err := archive.ParseRow([]byte(line), f.t.Columns, f.values); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// detailOf makes the same detail that Details made while the message was in the database (store/message.go).
func detailOf(run, m fields) (puntuale.MessageDetail, error) {
	at := func(name string) time.Time { return engine.Instant(m.int(name)) }
	d := puntuale.MessageDetail{
		Message: puntuale.Message{
			Client: puntuale.ClientID(m.int("client_id")), ID: puntuale.MessageID(m.int("id")), Session: puntuale.SessionID(m.int("session_id")),
			Run: puntuale.RunID(m.int("run_id")), Step: int(m.int("step")), Phone: m.Text("phone"),
			Desired: at("desired_at"), Due: at("due_at"), Next: at("next_at"), ValidUntil: engine.Instant(max(m.int("valid_until"), -m.int("valid_until"))),
			Intent: m.int("intent"), IntentAt: at("intent_at"), Attempt: int(m.int("attempt")), Repeats: int(m.int("repeats")),
			Generation: int(m.int("generation")), State: puntuale.State(m.int("state")), Done: at("done_at"),
			Reason: puntuale.ParseReason(m.Text("reason")), Detail: puntuale.ParseReason(m.Text("detail")), ResentFrom: puntuale.MessageID(m.int("resent_from")),
		},
		Received: engine.Instant(run.int("received_at")), RunName: run.Text("name"), ClientName: run.Text("client_name"),
		SequenceName: run.Text("sequence_name"), Zone: run.Text("zone"), Blanked: run.int("blanked_at") != 0, Reference: run.Text("reference"),
		Sequence: puntuale.SequenceID(run.int("sequence_id")), Campaign: puntuale.CampaignID(run.int("campaign_id")),
	}
	if err := queue.ScanOrigin(&d.Origin).Scan(m.int("origin")); err != nil {
		return d, err
	}
	if d.Blanked {
		return d, nil
	}
	var steps []puntuale.FrozenStep
	if err := json.Unmarshal([]byte(run.Text("content")), &steps); err != nil || d.Step >= len(steps) {
		return d, errors.Join(queue.ErrStep(&d, len(steps)), err)
	}
	d.Content, d.Window = steps[d.Step].Content, steps[d.Step].Window
	d.Request, _ = run.value("request").([]byte)
	return d, nil
}

// ArchivedFile describes one file of an archive.
type ArchivedFile struct {
	Name           string
	Size           int64 // length of the file in bytes
	At             time.Time
	Runs, Messages int64
	Clients        []archive.Span
	Missing        int64 // number of missing files between the previous file and this file
	Err            error // why the file cannot be read; nil: the file can be read
}

// ListArchive calls use for each file of an archive, sorted by number. If whole is true, it reads each file to its end
// and checks the checksums.
func ListArchive(path string, whole bool, use func(ArchivedFile) error) error {
	folder, err := archive.OpenFolder(path)
	if err != nil {
		return err
	}
	files, err := folder.Files()
	if err != nil {
		return err
	}
	before := int64(0)
	for i, file := range files {
		f := ArchivedFile{Name: file.Name()}
		if i > 0 {
			f.Missing = file.Serial - before - 1
		}
		before = file.Serial
		var h archive.Header
		if h, f.Err = folder.Header(file); f.Err == nil && whole {
			_, _, f.Err = readPast(folder, file)
		}
		if f.Err == nil {
			f.Size, f.Err = folder.Size(file)
		}
		if f.Err == nil {
			f.At, f.Clients = h.At, h.Part.Clients
			f.Runs, f.Messages = h.Tables[pastRuns].Rows, h.Tables[pastMessages].Rows
		}
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}
