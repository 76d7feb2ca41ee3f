package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"puntuale/internal/campaigncommand"
	"puntuale/internal/client"
	"puntuale/internal/localfile"
	"puntuale/internal/terminal"
)

// campaignCommand sends a campaign through a running server, or controls an existing campaign.
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
	contents := 0
	for _, given := range []string{c.Sequence, c.Text, c.Template} {
		if given != "" {
			contents++
		}
	}
	if c.File == "" {
		faults = append(faults, fault{"", "say to whom: --file FILE; or with --id ID which campaign to go on with"})
	}
	if contents != 1 {
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

// checkOld checks a command for an existing campaign.
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

// verbs returns the actions that the flags ask for.
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
	asks := atTerminal(p.stdin) && atTerminal(p.stdout)
	if !asks && !c.Yes && c.ID == "" {
		return faultsError{"nobody can be asked here whether to start: give --yes"}
	}
	lines := terminal.NewLines(p.stdin)
	key, err := c.key(ctx, p, lines)
	if err != nil {
		return err
	}
	run := campaigncommand.Config{
		Client: client.New(c.Server, key, p.clock), Server: c.Server, ServerFlags: c.serverFlags(), Clock: p.clock,
		In: p.stdin, Lines: lines, Out: p.stdout, Err: p.stderr, Bar: terminal.NewProgress(p.stdout, p.color, p.clock), Interactive: asks,
		Order: c.order(), File: c.File, Columns: c.Columns, ID: c.ID, Yes: c.Yes,
	}
	if c.File != "-" {
		run.File = p.path(c.File)
	}
	if c.Refused != "" {
		run.Refused = p.path(c.Refused)
	}
	if verbs := c.verbs(); len(verbs) > 0 {
		run.Verb = verbs[0]
	}
	err = campaigncommand.Run(ctx, run)
	if usage, ok := errors.AsType[campaigncommand.UsageError](err); ok {
		return faultsError{usage.Error()}
	}
	return err
}

// atTerminal reports whether the stream is a terminal, which means that a person reads or types.
func atTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// key returns the client's API key. The key is never in the command line, because every user of the machine can read
// command lines.
func (c *campaignCommand) key(ctx context.Context, p *program, lines *terminal.Lines) (key string, err error) {
	env, ok := p.lookupEnv("PUNTUALE_API_KEY")
	switch {
	case c.KeyFile != "":
		var text []byte
		name := p.path(c.KeyFile)
		if text, err = os.ReadFile(name); err == nil && localfile.OthersMayRead(name) {
			fmt.Fprintf(p.stderr, "Others than its owner may read %s; take that away with chmod 600.\n", name)
		}
		key = string(bytes.TrimSpace(text))
	case c.KeyStdin:
		key, err = lines.Next(ctx)
	case ok:
		key = strings.TrimSpace(env)
	case atTerminal(p.stdin):
		fmt.Fprint(p.stderr, "The client's API key: ")
		key, err = lines.Next(ctx)
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

// serverFlags returns the flags with which another command reaches the same server with the same key.
func (c *campaignCommand) serverFlags() (flags []string) {
	if c.Server != defaultServer {
		flags = append(flags, "--server", c.Server)
	}
	if c.KeyFile != "" {
		flags = append(flags, "--key-file", c.KeyFile)
	}
	if c.KeyStdin {
		flags = append(flags, "--key-stdin")
	}
	return flags
}

const defaultServer = "http://127.0.0.1:8080"

// order returns the campaign order that the flags describe.
func (c *campaignCommand) order() client.CampaignOrder {
	o := client.CampaignOrder{
		Name: c.Name, Sequence: c.Sequence, Template: c.Template, Session: c.Session, Purpose: c.Purpose, StartAt: c.StartAt, Canary: c.Canary,
	}
	if c.Name == "" {
		o.Name = filepath.Base(c.File)
	}
	if c.Text != "" {
		o.Content = &client.Content{Text: c.Text}
	}
	if c.PerMinute != nil {
		o.Pace = &client.Pace{PerMinute: *c.PerMinute}
	}
	return o
}
