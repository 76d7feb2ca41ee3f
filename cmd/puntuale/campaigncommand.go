package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"puntuale/internal/campaignclient"
)

// campaignCommand sends a campaign through a running server, or looks after one.
type campaignCommand struct {
	File      string `local:"" placeholder:"FILE" help:"The list, CSV or XLSX with a header row; - reads it from standard input."`
	Sequence  string `local:"" placeholder:"ID" help:"Start this sequence for every recipient."`
	Text      string `local:"" placeholder:"TEXT" help:"Or send this text. {{nome}} is replaced by the recipient's column of that name."`
	Template  string `local:"" placeholder:"NAME" help:"Or send the text of this template."`
	Name      string `local:"" placeholder:"NAME" help:"The campaign's name; else the file's."`
	Columns   string `local:"" placeholder:"FIELD:COLUMN,…" help:"Which column is which field, such as phone:Telefono,nome:Nome; else they are guessed by the header."`
	Session   string `local:"" placeholder:"ID" help:"The session that sends; else the sequence's, else the default one."`
	PerMinute *int   `local:"" placeholder:"NUMBER" help:"Recipients a minute at most."`
	StartAt   string `local:"" placeholder:"MOMENT" help:"The first recipient's moment, such as 2026-11-20T10:30, in the client's time zone; else at once."`
	Purpose   string `local:"" placeholder:"PURPOSE" help:"What it is for: marketing or service."`
	Canary    *int   `local:"" placeholder:"NUMBER" help:"So many recipients go first; the campaign pauses if more than a third of their messages fail."`
	Yes       bool   `local:"" help:"Start what the check shows, without a question. Needed where nobody sits at a terminal."`

	ID     string `local:"" name:"id" placeholder:"ID" help:"Go on with this campaign: show how far it is, or ask whether to start it."`
	Pause  bool   `local:"" help:"With --id: pause it."`
	Resume bool   `local:"" help:"With --id: let it go on."`
	Cancel bool   `local:"" help:"With --id: cancel what is pending, and send nothing more."`

	Refused  string `local:"" placeholder:"FILE" help:"Save the refused rows with their lines and reasons as CSV. The file is replaced."`
	Server   string `local:"" placeholder:"URL" default:"http://127.0.0.1:8080" help:"The address of a running server."`
	KeyFile  string `local:"" placeholder:"FILE" help:"Read the client's API key from this file; else from PUNTUALE_API_KEY, else the terminal asks for it."`
	KeyStdin bool   `local:"" help:"Read the client's API key from the first line of standard input."`
}

func (c *campaignCommand) check() []fault {
	faults := checkServer(c.Server)
	if c.KeyStdin && c.KeyFile != "" {
		faults = append(faults, fault{"key-stdin", "does not go with --key-file"})
	}
	if c.Refused == "-" || c.Refused != "" && c.Refused == c.File {
		faults = append(faults, fault{"refused", "must name a file of its own"})
	}
	if c.ID != "" {
		return append(faults, c.checkOld()...)
	}
	what := 0
	for _, given := range []string{c.Sequence, c.Text, c.Template} {
		if given != "" {
			what++
		}
	}
	if c.File == "" {
		faults = append(faults, fault{"", "say to whom: --file FILE; or with --id ID which campaign to go on with"})
	}
	if what != 1 {
		faults = append(faults, fault{"", "say what to send: one of --sequence, --text and --template"})
	}
	if c.File == "-" && c.Name == "" {
		faults = append(faults, fault{"name", "is needed for a list from standard input"})
	}
	if c.File == "-" && c.KeyStdin {
		faults = append(faults, fault{"key-stdin", "the list comes from there: give the key with --key-file or PUNTUALE_API_KEY"})
	}
	if len(c.verbs()) > 0 {
		faults = append(faults, fault{"", "--pause, --resume and --cancel need --id"})
	}
	return faults
}

// checkOld checks a command for a campaign that is there.
func (c *campaignCommand) checkOld() (faults []fault) {
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"file", c.File != ""},
		{"sequence", c.Sequence != ""},
		{"text", c.Text != ""},
		{"template", c.Template != ""},
		{"name", c.Name != ""},
		{"columns", c.Columns != ""},
		{"session", c.Session != ""},
		{"per-minute", c.PerMinute != nil},
		{"start-at", c.StartAt != ""},
		{"purpose", c.Purpose != ""},
		{"canary", c.Canary != nil},
		{"refused", c.Refused != "" && len(c.verbs()) > 0},
	} {
		if flag.given && flag.name == "refused" {
			faults = append(faults, fault{"refused", "does not go with --pause, --resume and --cancel"})
		} else if flag.given {
			faults = append(faults, fault{flag.name, "does not go with --id"})
		}
	}
	if len(c.verbs()) > 1 {
		faults = append(faults, fault{"", "say one of --pause, --resume and --cancel"})
	}
	return faults
}

// verbs are what is to be done with a campaign.
func (c *campaignCommand) verbs() (verbs []string) {
	if c.Pause {
		verbs = append(verbs, "pause")
	}
	if c.Resume {
		verbs = append(verbs, "resume")
	}
	if c.Cancel {
		verbs = append(verbs, "cancel")
	}
	return verbs
}

func (c *campaignCommand) Run(ctx context.Context, p *program) error {
	r := &campaignRun{
		c: c, p: p, in: bufio.NewReader(p.stdin), id: c.ID,
		asks: atTerminal(p.stdin) && atTerminal(p.stdout),
		bar:  &progress{w: p.stdout, terminal: p.color, clock: p.clock},
	}
	if !r.asks && !c.Yes && c.ID == "" {
		return faultsError{"nobody can be asked here whether to start: give --yes"}
	}
	key, err := r.key(ctx)
	if err != nil {
		return err
	}
	r.client = campaignclient.New(c.Server, key, p.clock)
	r.client.Lost = r.lost
	switch verbs := c.verbs(); {
	case len(verbs) > 0:
		err = r.change(ctx, verbs[0])
	case c.ID != "":
		err = r.goOn(ctx)
	default:
		err = r.send(ctx)
	}
	r.bar.end()
	_, told := errors.AsType[outcomeError](err)
	_, usage := errors.AsType[faultsError](err)
	switch {
	case err == nil || told || usage:
		return err
	case ctx.Err() != nil && r.id == "":
		return errors.New("interrupted; nothing was started")
	case ctx.Err() != nil:
		return errors.New("interrupted; " + r.stands(ctx))
	case r.known:
		return fmt.Errorf("%w\n  %s", err, r.stands(ctx))
	}
	return err
}

// outcomeError is what came of a campaign, with what the user can do now.
type outcomeError string

func (e outcomeError) Error() string { return string(e) }

// atTerminal reports whether a person is at the other end.
func atTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// key returns the client's API key. It never stands in the command line, which every user of the machine can read.
func (r *campaignRun) key(ctx context.Context) (key string, err error) {
	env, ok := r.p.lookupEnv("PUNTUALE_API_KEY")
	switch {
	case r.c.KeyFile != "":
		var text []byte
		name := r.p.path(r.c.KeyFile)
		if text, err = os.ReadFile(name); err == nil && others(name) {
			fmt.Fprintf(r.p.stderr, "Others than its owner may read %s; take that away with chmod 600.\n", name)
		}
		key = string(bytes.TrimSpace(text))
	case r.c.KeyStdin:
		key, err = r.line(ctx)
	case ok:
		key = strings.TrimSpace(env)
	case atTerminal(r.p.stdin):
		fmt.Fprint(r.p.stderr, "The client's API key: ")
		key, err = r.line(ctx)
	default:
		return "", faultsError{"give the client's API key: in PUNTUALE_API_KEY, with --key-file or with --key-stdin"}
	}
	if err == nil && key == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("read the client's API key: %w", err)
	}
	return key, nil
}

// line reads a line of standard input, or gives up with the context.
func (r *campaignRun) line(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := r.in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(text), err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// lost says that the server does not do what it was asked for, and that it does again.
func (r *campaignRun) lost(err error) {
	r.bar.end()
	if err == nil {
		fmt.Fprintln(r.p.stderr, "The server answers again.")
		return
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	what := "No answer from"
	if _, refused := errors.AsType[*campaignclient.Refusal](err); refused {
		what = "Not now, says"
	}
	fmt.Fprintf(r.p.stderr, "%s %s (%v); trying again.\n", what, r.c.Server, err)
}

const defaultServer = "http://127.0.0.1:8080"

// order is what the flags ask for.
func (c *campaignCommand) order() campaignclient.Order {
	o := campaignclient.Order{
		Name: c.Name, Sequence: c.Sequence, Template: c.Template, Session: c.Session, Purpose: c.Purpose, StartAt: c.StartAt, Canary: c.Canary,
	}
	if c.Name == "" {
		o.Name = filepath.Base(c.File)
	}
	if c.Text != "" {
		o.Content = &campaignclient.Content{Text: c.Text}
	}
	if c.PerMinute != nil {
		o.Pace = &campaignclient.Pace{PerMinute: *c.PerMinute}
	}
	return o
}
