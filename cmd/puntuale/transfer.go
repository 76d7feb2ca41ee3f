package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"

	"puntuale/internal/localfile"
	"puntuale/internal/logging"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/transfer"
	"puntuale/internal/terminal"
)

// exportCommand writes the whole installation into a file.
type exportCommand struct {
	baseSettings    `embed:""`
	storageSettings `embed:""`

	To    string `local:"" required:"" placeholder:"FILE" help:"The file to write, which must not exist yet; - writes to standard output. It holds everything, numbers and texts included: its owner alone may read it."`
	Final bool   `local:"" help:"This installation moves: no server must run on it, and none starts on it any more. Without it the file is a copy of an installation that goes on."`
}

func (c *exportCommand) check() []fault {
	return append(c.baseSettings.check(), c.storageSettings.check()...)
}

func (c *exportCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to export", fresh)
	}
	c.Data = p.path(c.Data)
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	c.place(p)
	from, err := c.with(storeConfig(&c.baseSettings, p.clock, nil, logger, true), nil)
	if err != nil {
		return err
	}
	out, file, err := p.createExport(c.To)
	if err != nil {
		return err
	}
	bar := p.progress()
	header, err := transfer.Export(ctx, from, out, transfer.ExportConfig{
		Program: versionText(), Final: c.Final, Progress: rowsOf(bar), Finish: file.Finish,
	})
	bar.End()
	if err != nil {
		return errors.Join(c.failed(ctx, err), file.Remove())
	}
	fmt.Fprintf(p.stderr, "Exported %d rows of %s as they were at %s.\n", header.Rows(), databaseName(&c.baseSettings), header.At.Format(time.RFC3339))
	if c.Final {
		fmt.Fprint(p.stderr, "No server starts on this installation any more; import the file and serve there. If nothing was ever\nsent from there, `puntuale reopen` gives this one back.\n")
	}
	return nil
}

// failed returns the error to print if nothing was exported.
func (c *exportCommand) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return moving(err, &c.baseSettings)
	case c.Final:
		return errors.New("interrupted; there is no whole export. Should servers not start here any more, `puntuale reopen` gives the installation back")
	case c.To == "-":
		return errors.New("interrupted; what was written is no whole export")
	}
	return errors.New("interrupted; nothing was written")
}

// createExport creates the file for an export. The file is nil for standard output.
func (p *program) createExport(to string) (io.Writer, *localfile.Unfinished, error) {
	if to == "-" && p.color {
		return nil, nil, errors.New("standard output is a terminal; send it into a file or another program")
	}
	if to == "-" {
		return p.stdout, nil, nil
	}
	file, err := localfile.Create(p.path(to), false)
	return file, file, err
}

// importCommand fills an empty database from the file of an export.
type importCommand struct {
	baseSettings    `embed:""`
	storageSettings `embed:""`

	From string `local:"" required:"" placeholder:"FILE" help:"The file that export wrote; - reads it from standard input."`
	Copy bool   `local:"" help:"Take a file that was exported without --final. The installation it came from must serve no more: what both send arrives twice."`
}

func (c *importCommand) check() []fault {
	return append(c.baseSettings.check(), c.storageSettings.check()...)
}

func (c *importCommand) Run(ctx context.Context, p *program) error {
	c.Data = p.path(c.Data)
	from := p.stdin
	if c.From != "-" {
		f, err := os.Open(p.path(c.From))
		if err != nil {
			return fmt.Errorf("read the export: %w", err)
		}
		defer f.Close()
		from = f
	}
	bar := p.progress()
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	to := storeConfig(&c.baseSettings, p.clock, nil, logger, false)
	header, err := transfer.Import(ctx, to, from, transfer.ImportConfig{
		Copy: c.Copy, Progress: rowsOf(bar),
	})
	bar.End()
	if err != nil {
		return moving(err, &c.baseSettings)
	}
	fmt.Fprintf(p.stderr, "Imported %d rows into %s, as they were at %s; counts and digests of all %d tables agree.\n",
		header.Rows(), databaseName(&c.baseSettings), header.At.Format(time.RFC3339), len(header.Tables))
	if secrets(header) {
		fmt.Fprint(p.stderr, "Its secrets are sealed as they were: start servers with the key that the old ones had, if they had one\n(--key-file or PUNTUALE_KEY). A SQLite server without these kept it beside its database, in a file ending in .key.\n")
	}
	return p.moveFiles(ctx, &c.storageSettings, to)
}

// secrets reports whether the file contains a data key.
func secrets(h archive.Header) bool {
	for _, t := range h.Tables {
		if t.Name == "secret" {
			return t.Rows > 0
		}
	}
	return false
}

// reopenCommand makes an installation usable again after an export with --final.
type reopenCommand struct {
	baseSettings `embed:""`
}

func (c *reopenCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to reopen", fresh)
	}
	c.Data = p.path(c.Data)
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	reopened, err := transfer.Reopen(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, true))
	if err != nil {
		return moving(err, &c.baseSettings)
	}
	said := "Servers may start again on %s. Do not serve what was imported from it.\n"
	if !reopened {
		said = "%s was not exported for good; nothing was changed.\n"
	}
	fmt.Fprintf(p.stderr, said, databaseName(&c.baseSettings))
	return nil
}

func (p *program) progress() *terminal.Progress {
	return terminal.NewProgress(p.stderr, p.logColor, p.clock)
}

// rowsOf shows the progress of a transfer: the number of rows in each stage.
func rowsOf(bar *terminal.Progress) transfer.Progress {
	return func(stage transfer.Stage, done, total int64) { bar.Count(string(stage), terminal.Rows, done, total) }
}

// moving returns the error of a failed export or import. Its text begins with the reason.
func moving(err error, s *baseSettings) error {
	if errors.Is(err, transfer.ErrNotFinal) {
		return fmt.Errorf("%w. Export again with --final, or give --copy once no server runs there any more", err)
	}
	if e, ok := errors.AsType[*puntuale.Error](err); ok && e.Code == puntuale.CodeConflict {
		return fmt.Errorf("%s: %s", databaseName(s), catalogue.Message(e.Reason))
	}
	return opening(err, s)
}
