package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/httpapi"
	"puntuale/internal/store"
	"puntuale/internal/store/archiver"
)

// archiveSettings are the settings of commands that read an archive. Such a command needs no database and no key.
type archiveSettings struct {
	baseSettings `embed:""`

	Archive string `placeholder:"FOLDER" help:"A folder for runs that ended long ago. The server writes them into compressed files there, and deletes them from the database. Of several servers only those with this setting do it, in one shared folder. Without it everything stays in the database."`
}

func (s *archiveSettings) check() []fault {
	faults := s.baseSettings.check()
	if s.Archive == "" {
		faults = append(faults, fault{"archive", "must name the archive's folder"})
	}
	return faults
}

// archiveListCommand lists an archive's files.
type archiveListCommand struct {
	archiveSettings `embed:""`
}

func (c *archiveListCommand) Run(_ context.Context, p *program) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tARCHIVED\tRUNS\tMESSAGES\tCLIENTS\tDUE FROM\tTO\tBYTES")
	var failure error
	err := archiver.ListArchive(p.path(c.Archive), false, func(f archiver.ArchivedFile) error {
		failure = errors.Join(failure, flaw(f))
		if f.At.IsZero() { // the file could not be read
			return nil
		}
		from, to := int64(0), int64(0)
		for _, s := range f.Clients {
			if s.First > 0 && (from == 0 || s.From < from) {
				from = s.From
			}
			to = max(to, s.To)
		}
		day := func(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.DateOnly) }
		_, err := fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%d\n", f.Name, f.At.Format(time.DateOnly), f.Runs, f.Messages, len(f.Clients), day(from), day(to), f.Size)
		return err
	})
	return errors.Join(err, w.Flush(), failure)
}

// flaw returns what is wrong with a file, and how many files are missing before it. It returns nil if nothing is wrong.
func flaw(f archiver.ArchivedFile) error {
	if f.Missing > 0 {
		return errors.Join(fmt.Errorf("%d files before %s are missing", f.Missing, f.Name), f.Err)
	}
	return f.Err
}

// archiveCheckCommand reads a whole archive, to find damage.
type archiveCheckCommand struct {
	archiveSettings `embed:""`
}

func (c *archiveCheckCommand) Run(ctx context.Context, p *program) error {
	var failure error
	var files, runs, messages int64
	err := archiver.ListArchive(p.path(c.Archive), true, func(f archiver.ArchivedFile) error {
		files, runs, messages = files+1, runs+f.Runs, messages+f.Messages
		failure = errors.Join(failure, flaw(f))
		return ctx.Err()
	})
	if err := errors.Join(err, failure); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%d files with %d runs and %d messages are whole.\n", files, runs, messages)
	return err
}

// archiveShowCommand shows archived messages.
type archiveShowCommand struct {
	archiveSettings `embed:""`

	ID     []string `local:"" name:"id" placeholder:"ID" help:"Identifiers of messages, with commas between them."`
	Client string   `local:"" placeholder:"ID" help:"Only this client's."`
	Phone  string   `local:"" placeholder:"NUMBER" help:"Only to this number or group, as the API shows it: +393331234567."`
	From   string   `local:"" placeholder:"MOMENT" help:"Only what was planned from this moment on: 2026-11-20 or 2026-11-20T09:00:00Z. UTC."`
	To     string   `local:"" placeholder:"MOMENT" help:"Only what was planned before this moment."`

	search archiver.Search
}

func (c *archiveShowCommand) check() []fault {
	faults := c.archiveSettings.check()
	note := func(setting string, err error) {
		if err != nil {
			faults = append(faults, fault{setting, err.Error()})
		}
	}
	var err error
	for _, text := range c.ID {
		id, err := puntuale.ParseID[puntuale.MessageID](text)
		note("id", err)
		c.search.IDs = append(c.search.IDs, id)
	}
	if c.Client != "" {
		c.search.Client, err = puntuale.ParseID[puntuale.ClientID](c.Client)
		note("client", err)
	}
	c.search.From, err = parseMoment(c.From)
	note("from", err)
	c.search.To, err = parseMoment(c.To)
	note("to", err)
	c.search.Phone = c.Phone
	if len(c.ID) == 0 && c.Client == "" && c.Phone == "" && c.From == "" && c.To == "" {
		faults = append(faults, fault{"", "say which messages: --id, --client, --phone, --from or --to"})
	}
	return faults
}

func parseMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a moment such as 2026-11-20 or 2026-11-20T09:00:00Z", text)
}

// shownMessage is a line that the command show prints.
type shownMessage struct {
	File       string                `json:"file"`
	ID         puntuale.MessageID    `json:"id"`
	Client     puntuale.ClientID     `json:"client_id"`
	Session    puntuale.SessionID    `json:"session_id"`
	Run        puntuale.RunID        `json:"run_id"`
	ResentFrom puntuale.MessageID    `json:"resent_from,omitempty"`
	Attempts   int                   `json:"attempts"`
	Done       time.Time             `json:"done_at"`
	Outcome    string                `json:"outcome,omitempty"` // SENT or FAILED
	Credit     string                `json:"credit,omitempty"`  // spent or returned
	Message    httpapi.MessageDetail `json:"message"`           // in the same form as the API's answer for a message's details
	Events     []shownEvent          `json:"events,omitempty"`
}

type shownEvent struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	Detail string    `json:"detail,omitempty"`
}

func (c *archiveShowCommand) Run(ctx context.Context, p *program) error {
	out := json.NewEncoder(p.stdout)
	out.SetEscapeHTML(false)
	n := 0
	err := archiver.Find(p.path(c.Archive), c.search, func(m archiver.Message) error {
		n++
		return errors.Join(ctx.Err(), out.Encode(shown(&m)))
	})
	if err == nil && n == 0 {
		return errors.New("the archive holds no such message")
	}
	return err
}

func shown(m *archiver.Message) shownMessage {
	s := shownMessage{
		File: m.File, ID: m.ID, Client: m.Client, Session: m.Session, Run: m.Run, ResentFrom: m.ResentFrom, Attempts: m.Attempt, Done: m.Done,
		Outcome: [...]string{"", "SENT", "FAILED"}[min(m.Outcome, 2)], Message: httpapi.Detail(&m.MessageDetail),
	}
	switch {
	case m.Credit > 0:
		s.Credit = "spent"
	case m.Credit < 0:
		s.Credit = "returned"
	}
	for _, e := range m.Events {
		s.Events = append(s.Events, shownEvent{e.At, e.Kind, catalogue.Italian.Sentence(e.Detail)})
	}
	return s
}

// archiveBeginCommand lets an archive continue in another folder.
type archiveBeginCommand struct {
	archiveSettings `embed:""`
}

func (c *archiveBeginCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to archive", fresh)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		if err := archiver.Begin(ctx, opened.DB, p.path(c.Archive)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stderr, "From now on old runs go to %s. Servers must name it: --archive.\n", p.path(c.Archive))
		return err
	})
}
