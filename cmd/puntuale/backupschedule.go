package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/backup"
	"puntuale/internal/clock"
	"puntuale/internal/diskspace"
	"puntuale/internal/metrics"
	"puntuale/internal/objectstore"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/transfer"
)

// backupSettings are the settings of backups by schedule.
type backupSettings struct {
	BackupTo        string   `placeholder:"PLACE" help:"Where a server with the role dispatch stores a backup each day: a folder, or s3://bucket/folder. Give an installation a folder of its own. Use the same settings on every server: one of them makes the backup. Without it no backup is made by itself."`
	BackupAt        string   `placeholder:"TIME" default:"03:10" help:"When the daily backup is due, in UTC, or in a time zone: 03:10 Europe/Rome. A backup that was missed is made as soon as a server runs."`
	BackupKeep      []string `sep:"," placeholder:"NUMBER,..." default:"7d,4w,12mo" help:"Which daily backups stay: the newest of each of so many days, weeks and months. The others are removed after the next good backup. The newest always stays."`
	BackupRecipient []string `sep:"," placeholder:"RECIPIENT,..." help:"Who can open the backups: recipients of age, such as age1ql3z7hj…, which age-keygen prints. Then the key file is in the backups, too. Without it the backups are not encrypted, and the key file is not in them."`
	storageSettings `embed:""`
}

// storageSettings say where the bytes of uploaded files are, and how to reach addresses that begin with s3://.
type storageSettings struct {
	FilesTo         string `placeholder:"PLACE" help:"Where the bytes of uploaded files go: s3://bucket/folder, or a folder that all servers share. Use the same settings on every server, and give an installation a place of its own. Then documents for Official numbers may have 100 MB. Files that are stored already stay where they are. Without it the bytes are in the database."`
	S3Endpoint      string `name:"s3-endpoint" placeholder:"URL" default:"https://s3.amazonaws.com" help:"The service of addresses that begin with s3://, such as https://s3.eu-central-1.amazonaws.com."`
	S3Region        string `name:"s3-region" placeholder:"REGION" default:"us-east-1" help:"The region of the bucket."`
	S3AccessKey     string `name:"s3-access-key" placeholder:"TEXT" help:"The id of the access key for the bucket."`
	S3SecretKey     string `name:"s3-secret-key" placeholder:"TEXT" secret:"" help:"The secret of the access key. Use PUNTUALE_S3_SECRET_KEY or s3-secret-file: every user of the machine can read a command line."`
	S3SecretKeyFile string `name:"s3-secret-file" placeholder:"FILE" help:"A file with the secret of the access key."`
}

func (s *storageSettings) check() (faults []fault) {
	if s.S3SecretKeyFile != "" {
		if s.S3SecretKey != "" {
			return []fault{{"s3-secret-file", "cannot go with s3-secret-key"}}
		}
		text, err := os.ReadFile(s.S3SecretKeyFile)
		if err != nil {
			return []fault{{"s3-secret-file", fmt.Sprintf("cannot be read: %v", err)}}
		}
		s.S3SecretKey = strings.TrimSpace(string(text))
	}
	return s.checkPlace("files-to", s.FilesTo)
}

// place makes the path of a folder absolute. Call it before objects.
func (s *storageSettings) place(p *program) {
	if s.FilesTo != "" && !objectstore.IsS3(s.FilesTo) {
		s.FilesTo = p.path(s.FilesTo)
	}
}

// objects opens the storage of the bytes of uploaded files. It returns nil if they are in the database. failed counts
// requests that fail; it may be nil.
func (s *storageSettings) objects(c clock.Clock, failed func()) (*objectstore.Parts, error) {
	if s.FilesTo == "" {
		return nil, nil
	}
	storage, err := objectstore.Open(s.FilesTo, s.storage())
	if err != nil {
		return nil, fmt.Errorf("open the storage of files: %w", err)
	}
	return objectstore.NewParts(storage, c, failed), nil
}

// with adds the storage of files to the engine's configuration. failed counts requests that fail; nil: nobody counts.
func (s *storageSettings) with(cfg engine.Config, failed func()) (engine.Config, error) {
	objects, err := s.objects(cfg.Clock, failed)
	if err == nil && objects != nil {
		cfg.Objects = objects
	}
	return cfg, err
}

func (s *storageSettings) storage() objectstore.S3 {
	return objectstore.S3{Endpoint: s.S3Endpoint, Region: s.S3Region, AccessKey: s.S3AccessKey, SecretKey: s.S3SecretKey}
}

// checkPlace returns what is wrong with an address in a setting.
func (s *storageSettings) checkPlace(setting, address string) []fault {
	if err := objectstore.CheckS3(address, s.storage()); err != nil {
		return []fault{{setting, err.Error()}}
	}
	return nil
}

func (s *backupSettings) check() []fault {
	faults := append(s.storageSettings.check(), s.checkPlace("backup-to", s.BackupTo)...)
	if s.FilesTo != "" && strings.TrimRight(s.FilesTo, "/") == strings.TrimRight(s.BackupTo, "/") {
		faults = append(faults, fault{"files-to", "must be another place than backup-to"})
	}
	if _, err := backup.ParseSchedule(s.BackupAt); err != nil {
		faults = append(faults, fault{"backup-at", err.Error()})
	}
	if _, err := backup.ParseRetention(s.BackupKeep); err != nil {
		faults = append(faults, fault{"backup-keep", err.Error()})
	}
	if _, err := backup.ParseRecipients(s.BackupRecipient); err != nil {
		faults = append(faults, fault{"backup-recipient", err.Error()})
	}
	return faults
}

// scratchFolder returns the folder in which this server makes and rehearses backups.
func (s *serveSettings) scratchFolder() string { return filepath.Join(s.Data, "backup-scratch") }

// openBackups makes the runner of backups by schedule. It returns nil if the settings name no place, or if this server
// does not have the server role dispatch.
func (s *server) openBackups(cfg *serverConfig, vault *auth.Vault, m *metrics.Meter) (*backup.Runner, error) {
	m.WatchBackup(s.store.LastBackup)
	m.WatchBackupJobs(cfg.BackupTo != "", s.backupState)
	if cfg.BackupTo == "" || !cfg.has(roleDispatch) {
		return nil, nil
	}
	storage, err := objectstore.Open(cfg.BackupTo, cfg.storage())
	if err != nil {
		return nil, err
	}
	schedule, err := backup.ParseSchedule(cfg.BackupAt)
	if err != nil {
		return nil, err
	}
	keep, err := backup.ParseRetention(cfg.BackupKeep)
	if err != nil {
		return nil, err
	}
	recipients, err := backup.ParseRecipients(cfg.BackupRecipient)
	if err != nil {
		return nil, err
	}
	r := &rehearsal{server: s, cfg: cfg}
	return backup.New(backup.Config{
		Store: s.store, Storage: storage, Schedule: schedule, Keep: keep, Recipients: recipients, Scratch: cfg.scratchFolder(),
		Write: func(ctx context.Context, file string, key bool, stored func() error) (backup.Contents, error) {
			return s.writeBackup(ctx, cfg, file, key, stored)
		},
		Tell:     func(ctx context.Context, text string) error { return s.tellOperator(ctx, cfg, text) },
		Rehearse: r.run, Local: r.local, Seal: vault.Seal, Open: vault.Open, Space: diskspace.Measure, Clock: cfg.Clock, Logger: cfg.Logger,
	}), nil
}

// writeBackup writes a backup of the running server, and reads it back.
func (s *server) writeBackup(ctx context.Context, cfg *serverConfig, file string, withKey bool, stored func() error) (c backup.Contents, err error) {
	var key []byte
	if withKey {
		if key, err = keyToKeep(&cfg.baseSettings, cfg.KeyFile); err != nil {
			return c, err
		}
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return c, fmt.Errorf("write the backup: %w", err)
	}
	header, err := s.store.Backup(ctx, out, transfer.BackupConfig{Program: versionText(), Key: key, Finish: func() error {
		if err := out.Close(); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
		if err := transfer.CheckBackup(ctx, file); err != nil {
			return fmt.Errorf("the backup was read back: %w", err)
		}
		return stored()
	}})
	_ = out.Close() // it is still open if writing failed
	return backup.Contents{At: header.At, Rows: header.Rows(), Messages: header.RowsOf("message")}, err
}

// backupState returns how far a job is, and how many messages its last success contained.
func (s *server) backupState(ctx context.Context, job puntuale.BackupJob) (state puntuale.BackupState, messages int64, err error) {
	if state, err = s.store.BackupState(ctx, job); err != nil {
		return state, 0, err
	}
	made, err := backup.ParseResult(state.Result) // a rehearsal's result has the same member
	return state, made.Messages, err
}

// rehearsal restores backups into scratch databases.
type rehearsal struct {
	server *server
	cfg    *serverConfig
}

// local reports whether the scratch database is on this machine's disk.
func (r *rehearsal) local(ctx context.Context) bool {
	if !r.server.store.Dialect.Postgres {
		return true
	}
	may, err := transfer.MayCreateScratch(ctx, r.server.store.DB)
	return err != nil || !may
}

func (r *rehearsal) engine() engine.Config {
	return storeConfig(&r.cfg.baseSettings, r.cfg.Clock, nil, r.cfg.Logger, false)
}

// run restores a backup into the installation's kind of database. If PostgreSQL's role may not create databases, it
// restores into SQLite, and says so.
func (r *rehearsal) run(ctx context.Context, file, folder string) (c backup.Contents, where string, err error) {
	opened, err := archive.OpenBackup(file)
	if err != nil {
		return c, "", err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	scratch, where := engine.Config{Data: folder, Clock: r.cfg.Clock, Logger: r.cfg.Logger}, "SQLite"
	if r.server.store.Dialect.Postgres {
		other, drop, err := transfer.CreateScratch(ctx, r.engine())
		switch {
		case errors.Is(err, transfer.ErrMayNotCreate):
			where = "SQLite, because the role may not create databases in PostgreSQL"
		case err != nil:
			return c, "", err
		default:
			scratch, where = other, "PostgreSQL"
			defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
		}
	}
	done, err := transfer.Rehearse(ctx, scratch, opened, makeNumbers)
	return backup.Contents{At: opened.At, Rows: done.Rows, Messages: done.Messages}, where, err
}

// backupsCommand lists the backups in a storage.
type backupsCommand struct {
	serveSettings `embed:""`

	In string `local:"" placeholder:"PLACE" help:"A folder, or s3://bucket/folder. By default the one of backup-to."`
}

func (c *backupsCommand) check() []fault {
	faults := append(c.baseSettings.check(), c.storageSettings.check()...)
	if c.In == "" {
		c.In = c.BackupTo
	}
	if c.In == "" {
		return append(faults, fault{"in", "name a place, or set backup-to"})
	}
	return append(faults, c.checkPlace("in", c.In)...)
}

func (c *backupsCommand) Run(ctx context.Context, p *program) error {
	if !objectstore.IsS3(c.In) {
		if c.In = p.path(c.In); !isFolder(c.In) {
			return fmt.Errorf("there is no folder %s", c.In)
		}
	}
	storage, err := objectstore.Open(c.In, c.storage())
	if err != nil {
		return err
	}
	files, err := storage.List(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tMADE\tSIZE")
	for _, f := range backup.Sorted(files) {
		at, _ := backup.NameTime(f.Name)
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, at.Format(time.RFC3339), backup.Bytes(f.Size))
	}
	return w.Flush()
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// fetch returns the path of the backup, as a file that is not encrypted. If it made a copy, drop removes the copy.
func (c *restoreCommand) fetch(ctx context.Context, p *program) (file string, drop func() error, err error) {
	drop = func() error { return nil }
	place, name := c.From, ""
	switch {
	case objectstore.IsS3(place):
		if !strings.HasSuffix(place, "/") {
			place, name = path.Dir(place), path.Base(place)
			place = strings.Replace(place, "s3:/", "s3://", 1) // path.Dir joins slashes
		}
	case isFolder(p.path(place)):
		place = p.path(place)
	case !backup.Encrypted(place):
		return p.path(place), drop, nil
	default:
		place, name = filepath.Split(p.path(place))
	}
	var identities backup.Identities
	switch c.Identity {
	case "":
	case "-":
		if identities, err = backup.ParseIdentities(p.stdin, "the standard input"); err != nil {
			return "", drop, err
		}
	default:
		if identities, err = backup.ReadIdentities(p.path(c.Identity)); err != nil {
			return "", drop, err
		}
	}
	storage, err := objectstore.Open(place, c.storage())
	if err != nil {
		return "", drop, err
	}
	if name == "" {
		files, err := storage.List(ctx)
		if err != nil {
			return "", drop, err
		}
		if name, err = backup.Newest(files); err != nil {
			return "", drop, fmt.Errorf("%s: %w", place, err)
		}
		fmt.Fprintf(p.stderr, "The newest backup is %s.\n", name)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return "", drop, fmt.Errorf("create the data folder: %w", err)
	}
	file, err = backup.Fetch(ctx, storage, name, identities, c.Data)
	if errors.Is(err, backup.ErrNoIdentity) && c.Identity == "" {
		err = errors.New("the backup is encrypted: give the secret key with --identity")
	}
	if err != nil {
		return "", drop, err
	}
	return file, func() error { return os.Remove(file) }, nil
}
