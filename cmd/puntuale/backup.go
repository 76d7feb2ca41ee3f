package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/localfile"
	"puntuale/internal/logging"
	"puntuale/internal/store"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/transfer"
)

// backupCommand writes a backup. It also works beside running servers.
type backupCommand struct {
	baseSettings    `embed:""`
	storageSettings `embed:""`

	KeyFile string `placeholder:"FILE" help:"A file with at least 32 random characters, which seal the secrets in the database. Use the same file on every server. On SQLite the default is a file beside the database, which the first start makes."`

	To         string `local:"" required:"" placeholder:"FILE" help:"The file to write. It holds everything, numbers and texts included: its owner alone may read it."`
	WithoutKey bool   `local:"" help:"Leave the key file out. Keep it elsewhere: without it a restored installation does not start."`
	Replace    bool   `local:"" help:"Replace the file if it exists, once the new one is checked."`
}

func (c *backupCommand) check() []fault {
	return append(c.baseSettings.check(), c.storageSettings.check()...)
}

func (c *backupCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to back up", fresh)
	}
	c.Data = p.path(c.Data)
	const without = "The key is not in it: keep it elsewhere, a restored installation needs it.\n"
	key, said := []byte(nil), without
	if !c.WithoutKey {
		if c.KeyFile != "" {
			c.KeyFile = p.path(c.KeyFile)
		}
		var err error
		if key, err = keyToKeep(&c.baseSettings, c.KeyFile); err != nil {
			return err
		}
		if key != nil {
			said = "The key is in it: whoever has the backup can open every secret of the installation.\n"
		}
	}
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	c.place(p)
	from, err := c.with(storeConfig(&c.baseSettings, p.clock, nil, logger, true), nil)
	if err != nil {
		return err
	}
	out, err := localfile.Create(p.path(c.To), c.Replace)
	if err != nil {
		return err
	}
	began := p.clock.Now()
	bar := p.progress()
	header, err := transfer.Backup(ctx, from, out, transfer.BackupConfig{
		Program: versionText(), Key: key, Progress: rowsOf(bar),
		Finish: func() error {
			if err := transfer.CheckBackup(ctx, out.Name()); err != nil {
				return fmt.Errorf("the backup was read back: %w", err)
			}
			return out.Finish()
		},
	})
	bar.End()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; nothing was written")
		}
		return errors.Join(moving(err, &c.baseSettings), out.Remove())
	}
	fmt.Fprintf(p.stderr, "Backed up %d rows of %s as they were at %s, and read them back, in %s.\n%s",
		header.Rows(), databaseName(&c.baseSettings), header.At.Format(time.RFC3339), p.clock.Now().Sub(began).Round(10*time.Millisecond), said)
	return nil
}

// keyToKeep reads the key file for a backup. It returns nil if the operator gave the key in another way, or if nothing was
// ever sealed.
func keyToKeep(s *baseSettings, keyFile string) (key []byte, err error) {
	name := keyFile
	if name == "" {
		if name = databaseFile(s, s.Data); name == "" {
			return nil, nil
		}
		name += ".key"
	}
	key, err = os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && keyFile == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	return key, nil
}

// restoreCommand makes an installation from a backup.
type restoreCommand struct {
	baseSettings    `embed:""`
	storageSettings `embed:""`

	From     string `local:"" required:"" placeholder:"PLACE" help:"The backup: a file, or s3://bucket/folder/file. With a folder, or s3://bucket/folder/, the newest backup in it."`
	Identity string `local:"" placeholder:"FILE" help:"The secret key that opens an encrypted backup, as age-keygen wrote it. - reads it from the standard input, so that it need not be on this machine."`
	Hold     bool   `local:"" help:"Let nothing leave until a person releases each client."`
}

func (c *restoreCommand) check() []fault {
	return slices.Concat(c.baseSettings.check(), c.storageSettings.check(), c.checkPlace("from", c.From))
}

func (c *restoreCommand) Run(ctx context.Context, p *program) (err error) {
	c.Data = p.path(c.Data)
	file, drop, err := c.fetch(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	backup, err := archive.OpenBackup(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	placed := &placedFiles{backup: backup}
	if err := c.writeKey(placed); err != nil {
		return errors.Join(err, placed.remove())
	}
	bar := p.progress()
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	to := storeConfig(&c.baseSettings, p.clock, nil, logger, false)
	done, err := transfer.Restore(ctx, to, backup, transfer.RestoreConfig{
		Hold: c.Hold, Progress: rowsOf(bar), MakeNumbers: makeNumbers,
	})
	bar.End()
	if err != nil {
		return errors.Join(moving(err, &c.baseSettings), placed.remove())
	}
	fmt.Fprintf(p.stderr, "Restored %s from the backup of %s.\n%s", databaseName(&c.baseSettings), backup.At.Format(time.RFC3339), placed.message)
	switch {
	case done.LeftOut:
		fmt.Fprint(p.stderr, "Its linked numbers were left out: this program is built without them. Link them anew.\n")
	case done.Linked > 0:
		fmt.Fprintf(p.stderr, "%d linked numbers stay linked, as far as they were not unlinked since.\n", done.Linked)
	}
	p.tellRestored(&done, c.Hold)
	return p.moveFiles(ctx, &c.storageSettings, to)
}

// moveFiles moves the bytes of the files that a command put into the database to where the settings say. The command has
// done its work before: without the storage, the files stay in the database, and servers find them there.
func (p *program) moveFiles(ctx context.Context, s *storageSettings, cfg engine.Config) error {
	if s.FilesTo == "" {
		return nil
	}
	s.place(p)
	moved, err := func() (n int, err error) {
		if cfg, err = s.with(cfg, nil); err != nil {
			return 0, err
		}
		opened, err := store.Open(ctx, cfg)
		if err != nil {
			return 0, err
		}
		n, err = opened.MoveOut(ctx)
		return n, errors.Join(err, opened.Close())
	}()
	fmt.Fprintf(p.stderr, "The bytes of %d uploaded files are in %s.\n", moved, s.FilesTo)
	if err != nil {
		return fmt.Errorf("everything is in the database, but other files could not be moved to %s, and stay in the database: %w", s.FilesTo, err)
	}
	return nil
}

// tellRestored prints what a person must decide after a restore.
func (p *program) tellRestored(done *transfer.RestoreResult, hold bool) {
	fmt.Fprintf(p.stderr, `What happened after %s is not in it: calls answered since are forgotten.
Messages that were due by now: %d (clients: %d). They are set aside: they may have left, and are never sent by themselves.
See them with "puntuale unknown list"; each client sees its own and decides: send again, or close.
`, done.Since.Format(time.RFC3339), done.Unknown, done.Clients)
	if hold {
		fmt.Fprintf(p.stderr, "%d messages are due later. Nothing leaves until a client is released: there, or with \"puntuale unknown release\".\n", done.Later)
	} else {
		fmt.Fprintf(p.stderr, "%d messages are due later and leave as planned.\n", done.Later)
	}
}

// restoredCommand marks a database as a copy that another program restored.
type restoredCommand struct {
	baseSettings `embed:""`

	Since string `local:"" required:"" placeholder:"MOMENT" help:"When the copy was made: 2026-11-20T09:00:00Z. What happened later is not in it."`
	Hold  bool   `local:"" help:"Let nothing leave until a person releases each client."`

	since time.Time
}

func (c *restoredCommand) check() []fault {
	faults := c.baseSettings.check()
	var err error
	if c.since, err = parseMoment(c.Since); err != nil {
		faults = append(faults, fault{"since", err.Error()})
	}
	return faults
}

func (c *restoredCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s", fresh)
	}
	c.Data = p.path(c.Data)
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	done, err := transfer.MarkRestored(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, false), c.since, transfer.RestoreConfig{Hold: c.Hold})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeInvalid {
			return forPeople(err)
		}
		return moving(err, &c.baseSettings)
	}
	p.tellRestored(&done, c.Hold)
	return nil
}

// writeKey writes the backup's key to the file in which servers look for it.
func (c *restoreCommand) writeKey(files *placedFiles) error {
	database := databaseFile(&c.baseSettings, c.Data)
	key := filepath.Join(c.Data, "puntuale.key")
	if database != "" {
		key = database + ".key"
	}
	if files.backup.Has(archive.KeyEntry) {
		if err := files.put(archive.KeyEntry, key); err != nil {
			return err
		}
		files.message += "Its key is in " + key + ".\n"
		if database == "" {
			files.message += "Give it to every server with --key-file.\n"
		}
	} else {
		files.message += "The backup has no key: start servers with the key that the old ones had.\n"
	}
	return nil
}

// placedFiles are the files of a backup that a restore has written.
type placedFiles struct {
	backup  *archive.BackupReader
	made    []string
	message string // what the command says about the files
}

// put writes an entry to a file. If the file already exists, it must have the same contents as the entry.
func (f *placedFiles) put(entry, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	to, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".unfinished-*") // only its owner can read this file
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(to.Name()) }()
	if err := errors.Join(f.backup.Copy(entry, to), to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err = os.Link(to.Name(), name) // a link never replaces a file
	switch {
	case errors.Is(err, fs.ErrExist):
		return f.checkSame(to.Name(), name)
	case err != nil:
		return fmt.Errorf("write %s: %w", name, err)
	}
	f.made = append(f.made, name)
	return nil
}

// checkSame returns an error if the contents of the two files differ.
func (f *placedFiles) checkSame(made, existing string) error {
	a, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(existing)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s exists already and is not the backup's: a server has started on this folder. Stop it, move the folder aside, and restore into an empty one", existing)
	}
	return nil
}

// remove removes the written files after a restore that failed.
func (f *placedFiles) remove() (err error) {
	for _, name := range f.made {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
