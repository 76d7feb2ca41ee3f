package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/logging"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/transfer"
)

// exportCommand writes the whole installation into a file.
type exportCommand struct {
	baseSettings `embed:""`

	To    string `local:"" required:"" placeholder:"FILE" help:"The file to write, which must not exist yet; - writes to standard output. It holds everything, numbers and texts included: its owner alone may read it."`
	Final bool   `local:"" help:"This installation moves: no server must run on it, and none starts on it any more. Without it the file is a copy of an installation that goes on."`
}

func (c *exportCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to export", fresh)
	}
	c.Data = p.path(c.Data)
	out, err := p.createExport(c.To)
	if err != nil {
		return err
	}
	bar := p.progress()
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	header, err := transfer.Export(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, true), out.w, transfer.ExportConfig{
		Program: versionText(), Final: c.Final, Progress: bar.tell, Finish: out.finish,
	})
	bar.end()
	if err != nil {
		return errors.Join(c.failed(ctx, err), out.remove())
	}
	fmt.Fprintf(p.stderr, "Exported %d rows of %s as they were at %s.\n", header.Rows(), databaseName(&c.baseSettings), header.At.Format(time.RFC3339))
	if c.Final {
		fmt.Fprint(p.stderr, "No server starts on this installation any more; import the file and serve there. If nothing was ever\nsent from there, `puntuale reopen` gives this one back.\n")
	}
	return nil
}

// failed says why nothing was exported.
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

// exportFile is where an export or a backup goes: a file under another name until it is complete, or standard output.
type exportFile struct {
	w    io.Writer
	file *os.File
	name string
	free func() // once it is closed; until then it is locked
}

func (p *program) createExport(to string) (*exportFile, error) {
	if to == "-" && p.color {
		return nil, errors.New("standard output is a terminal; send it into a file or another program")
	}
	if to == "-" {
		return &exportFile{w: p.stdout}, nil
	}
	return p.createFile(to, false)
}

// createFile begins a file that has its own name once it is complete. It must not exist yet, unless it is to be replaced.
func (p *program) createFile(to string, replace bool) (*exportFile, error) {
	name := p.path(to)
	if there, err := os.Stat(name); err == nil && !there.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: it is no file that could be replaced", name) // such as /dev/null, for root
	}
	if _, err := os.Lstat(name); !replace && !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("it exists already")
		}
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), unfinished(name)+"*") // readable by its owner alone
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	e := &exportFile{w: f, file: f, name: name}
	if e.free, err = hold(f.Name()); err != nil {
		e.free = func() {}
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), e.remove())
	}
	e.removeRemains()
	return e, nil
}

// unfinished begins the names of files that are to become an export or a backup.
func unfinished(name string) string { return "." + filepath.Base(name) + ".unfinished-" }

// remainsAge keeps from removing a file that was just made and is not locked yet.
const remainsAge = time.Minute

// removeRemains removes what exports to the same name left that were killed. What somebody writes is locked. What cannot
// be removed is in nobody's way.
func (e *exportFile) removeRemains() {
	own, err := e.file.Stat()
	if err != nil {
		return
	}
	there, _ := os.ReadDir(filepath.Dir(e.name))
	for _, entry := range there {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(entry.Name(), unfinished(e.name)) || own.ModTime().Sub(info.ModTime()) < remainsAge {
			continue
		}
		name := filepath.Join(filepath.Dir(e.name), entry.Name())
		if free, err := hold(name); err == nil {
			free()
			_ = os.Remove(name)
		}
	}
}

// finish has the file on disk under its own name, or fails.
func (e *exportFile) finish() error {
	if e.file == nil {
		return nil
	}
	err := errors.Join(e.file.Sync(), e.file.Close())
	e.free()
	if err != nil {
		return fmt.Errorf("write %s: %w", e.name, err)
	}
	if err := os.Rename(e.file.Name(), e.name); err != nil {
		return fmt.Errorf("write %s: %w", e.name, err)
	}
	dir, err := os.Open(filepath.Dir(e.name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", e.name, err), os.Remove(e.name)) // nobody may take it for whole
	}
	return nil
}

// remove removes what was begun.
func (e *exportFile) remove() error {
	if e.file == nil {
		return nil
	}
	_ = e.file.Close() // perhaps it is
	e.free()
	if err := os.Remove(e.file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the unfinished %s: %w", e.name, err)
	}
	return nil
}

// importCommand fills an empty database with an exported installation.
type importCommand struct {
	baseSettings `embed:""`

	From string `local:"" required:"" placeholder:"FILE" help:"The file that export wrote; - reads it from standard input."`
	Copy bool   `local:"" help:"Take a file that was exported without --final. The installation it came from must serve no more: what both send arrives twice."`
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
	header, err := transfer.Import(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, false), from, transfer.ImportConfig{
		Copy: c.Copy, Progress: bar.tell,
	})
	bar.end()
	if err != nil {
		return moving(err, &c.baseSettings)
	}
	fmt.Fprintf(p.stderr, "Imported %d rows into %s, as they were at %s; counts and digests of all %d tables agree.\n",
		header.Rows(), databaseName(&c.baseSettings), header.At.Format(time.RFC3339), len(header.Tables))
	if secrets(header) {
		fmt.Fprint(p.stderr, "Its secrets are sealed as they were: start servers with the key that the old ones had, if they had one\n(--key-file or PUNTUALE_KEY). A SQLite server without these kept it beside its database, in a file ending in .key.\n")
	}
	return nil
}

// secrets reports whether there is a data key in the file.
func secrets(h archive.Header) bool {
	for _, t := range h.Tables {
		if t.Name == "secret" {
			return t.Rows > 0
		}
	}
	return false
}

// reopenCommand gives back an installation that was exported for good.
type reopenCommand struct {
	baseSettings `embed:""`
}

func (c *reopenCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to reopen", fresh)
	}
	c.Data = p.path(c.Data)
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	was, err := transfer.Reopen(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, true))
	if err != nil {
		return moving(err, &c.baseSettings)
	}
	said := "Servers may start again on %s. Do not serve what was imported from it.\n"
	if !was {
		said = "%s was not exported for good; nothing was changed.\n"
	}
	fmt.Fprintf(p.stderr, said, databaseName(&c.baseSettings))
	return nil
}

func (p *program) progress() *progress {
	return &progress{w: p.stderr, terminal: p.logColor, clock: p.clock}
}

// moving says why an installation was not moved.
func moving(err error, s *baseSettings) error {
	if errors.Is(err, transfer.ErrNotFinal) {
		return fmt.Errorf("%w. Export again with --final, or give --copy once no server runs there any more", err)
	}
	if e, ok := errors.AsType[*puntuale.Error](err); ok && e.Code == puntuale.CodeConflict {
		return fmt.Errorf("%s: %s", databaseName(s), e.Message)
	}
	return opening(err, s)
}
