package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/objectstore"
)

// Store lets one node at a time do a job.
type Store interface {
	BackupState(ctx context.Context, job puntuale.BackupJob) (puntuale.BackupState, error)
	BeginBackupJob(ctx context.Context, job puntuale.BackupJob, planned time.Time, lease time.Duration) (state puntuale.BackupState, begun bool, err error)
	HoldBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, lease time.Duration) error
	EndBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, result string, opener []byte) error
	FailBackupJob(ctx context.Context, job puntuale.BackupJob, token int64, fault string, wait time.Duration) error
	FreeBackupJob(ctx context.Context, job puntuale.BackupJob, token int64) error
	DatabaseSize(ctx context.Context) (int64, error)
	LastBackup(ctx context.Context) (time.Time, error) // of any way; zero: there is none
}

// Contents says what a backup contains.
type Contents struct {
	At       time.Time `json:"at"` // later changes are not in it
	Rows     int64     `json:"rows"`
	Messages int64     `json:"messages"`
}

// Result is the result of a backup.
type Result struct {
	Contents
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // of the backup before it was encrypted
}

// RehearsalResult is the result of a rehearsal.
type RehearsalResult struct {
	Contents
	Name  string `json:"name"`
	Where string `json:"where"` // into which kind of database it was restored, and why there
}

// Config configures a [Runner].
type Config struct {
	Store      Store
	Storage    objectstore.Storage
	Schedule   Schedule
	Keep       Retention
	Recipients Recipients
	Scratch    string // a folder for unfinished work. The runner empties it, so nothing else may be in it

	// Write writes a backup to a file that does not exist yet, and reads it back. Then it calls stored, which stores the
	// backup elsewhere. If stored succeeds, Write notes the time of the backup. key says whether to include the key file.
	Write func(ctx context.Context, file string, key bool, stored func() error) (Contents, error)
	// Rehearse restores a backup into an empty database below the folder scratch, or beside the installation's.
	Rehearse func(ctx context.Context, file, scratch string) (_ Contents, where string, err error)
	// Local reports whether Rehearse needs room for a database on the disk of Scratch.
	Local func(ctx context.Context) bool

	// Tell sends the operator a text, for [Runner.Warn].
	Tell func(ctx context.Context, text string) error

	Seal  func(purpose, place string, plain []byte) []byte
	Open  func(purpose, place string, sealed []byte) ([]byte, error)
	Space func(folder string) (free, size uint64, err error) // errors.ErrUnsupported: unknown

	Clock  clock.Clock
	Logger *slog.Logger
}

// Runner makes and rehearses backups. Only one goroutine may call Round.
type Runner struct{ cfg Config }

// New returns a runner.
func New(cfg Config) *Runner { return &Runner{cfg} }

const (
	lease       = 10 * time.Minute // how long after its last sign of life a node's attempt counts as running
	attemptTime = 8 * time.Hour    // no attempt takes longer
	firstWait   = 5 * time.Minute  // after the first failure; it doubles with each
	longestWait = time.Hour
	sweepAge    = 24 * time.Hour // unfinished files of this age have no attempt any more
)

// ErrNoRoom is the error of a job for which the disk has no room.
var ErrNoRoom = errors.New("there is no room")

// Round does the jobs that are due. It returns nil if none is due, or if another node does it.
func (r *Runner) Round(ctx context.Context) error {
	if err := r.attempt(ctx, puntuale.JobBackup, r.cfg.Schedule.Last(r.cfg.Clock.Now()), r.backUp); err != nil {
		return err
	}
	made, err := r.cfg.Store.BackupState(ctx, puntuale.JobBackup)
	if err != nil || made.Done.IsZero() {
		return err
	}
	return r.attempt(ctx, puntuale.JobRehearsal, made.Done, r.rehearse)
}

// job does one attempt. It returns the result, and the opener of an encrypted backup.
type job func(ctx context.Context) (result any, opener []byte, err error)

// attempt begins an attempt if one is due, and stores how it ended.
func (r *Runner) attempt(ctx context.Context, kind puntuale.BackupJob, planned time.Time, do job) error {
	before, err := r.cfg.Store.BackupState(ctx, kind)
	if err != nil || !before.Done.Before(planned) {
		return err
	}
	state, begun, err := r.cfg.Store.BeginBackupJob(ctx, kind, planned, lease)
	if err != nil || !begun {
		return err
	}
	r.cfg.Logger.Info("a backup job begins", "job", kind.String(), "planned", planned)
	result, opener, err := r.during(ctx, kind, state.Token, do)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(result); err == nil {
			err = r.cfg.Store.EndBackupJob(ctx, kind, state.Token, string(text), opener)
		}
	}
	if err == nil {
		r.cfg.Logger.Info("a backup job is done", "job", kind.String(), "result", fmt.Sprint(result))
		return nil
	}
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if ctx.Err() != nil { // the server stops, and another may begin at once
		return errors.Join(err, r.cfg.Store.FreeBackupJob(ended, kind, state.Token))
	}
	wait := min(firstWait<<min(state.Tries, 8), longestWait)
	if failed := r.cfg.Store.FailBackupJob(ended, kind, state.Token, err.Error(), wait); failed != nil && !errors.Is(failed, puntuale.ErrFenced) {
		err = errors.Join(err, failed)
	}
	return fmt.Errorf("%s: %w", kind, err)
}

// during does the work, and moves the attempt's deadline on. If another attempt has begun, it ends the work.
func (r *Runner) during(ctx context.Context, kind puntuale.BackupJob, token int64, do job) (any, []byte, error) {
	ctx, end := context.WithTimeoutCause(ctx, attemptTime, errors.New("it took too long"))
	defer end()
	ctx, lose := context.WithCancelCause(ctx)
	held := make(chan struct{})
	go func() {
		defer close(held)
		for r.cfg.Clock.Sleep(ctx, lease/4) == nil {
			if err := r.cfg.Store.HoldBackupJob(ctx, kind, token, lease); errors.Is(err, puntuale.ErrFenced) {
				lose(errors.New("another server took it over"))
				return
			}
		}
	}()
	defer func() { lose(nil); <-held }()
	if err := r.clear(); err != nil {
		return nil, nil, err
	}
	result, opener, err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return result, opener, errors.Join(err, r.clear())
}

// clear empties the scratch folder.
func (r *Runner) clear() error {
	if err := os.RemoveAll(r.cfg.Scratch); err != nil {
		return fmt.Errorf("empty the scratch folder: %w", err)
	}
	if err := os.MkdirAll(r.cfg.Scratch, 0o700); err != nil {
		return fmt.Errorf("make the scratch folder: %w", err)
	}
	return nil
}

// room returns [ErrNoRoom] if the scratch folder's disk lacks space for so many bytes. It leaves a twentieth of the
// disk free, at most a gibibyte.
func (r *Runner) room(need int64) error {
	free, size, err := r.cfg.Space(r.cfg.Scratch)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the disk: %w", err)
	}
	if left := min(size/20, 1<<30); free < left+uint64(need) {
		return fmt.Errorf("%w: %s needs %s on its disk, and %s are free", ErrNoRoom, r.cfg.Scratch, Bytes(need+int64(left)), Bytes(int64(free)))
	}
	return nil
}

func (r *Runner) backUp(ctx context.Context) (any, []byte, error) {
	need, err := r.cfg.Store.DatabaseSize(ctx) // more than a compressed backup takes
	if err != nil {
		return nil, nil, err
	}
	if err := r.room(need); err != nil {
		return nil, nil, err
	}
	encrypted := !r.cfg.Recipients.none()
	made := Result{Name: Name(r.cfg.Clock.Now(), encrypted)}
	file := filepath.Join(r.cfg.Scratch, "backup.zip")
	var opener string
	made.Contents, err = r.cfg.Write(ctx, file, encrypted, func() (err error) {
		opener, made.Bytes, err = r.put(ctx, file, made.Name)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	r.prune(ctx)
	if opener == "" {
		return made, nil, nil
	}
	return made, r.cfg.Seal(puntuale.SealedOpener, made.Name, []byte(opener)), nil
}

// put stores the file, encrypted if there are recipients. It returns the opener, and the file's size in bytes.
func (r *Runner) put(ctx context.Context, file, name string) (opener string, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("read the backup: %w", err)
	}
	if r.cfg.Recipients.none() {
		return "", info.Size(), r.cfg.Storage.Put(ctx, name, f)
	}
	from, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := puntuale.Recovered(func() error {
			w, text, err := r.cfg.Recipients.encrypt(to)
			if err != nil {
				return err
			}
			opener = text
			_, err = io.Copy(w, f)
			return errors.Join(err, w.Close())
		})
		written <- errors.Join(err, to.CloseWithError(err)) // with nil, the reader sees the end
	}()
	err = r.cfg.Storage.Put(ctx, name, from)
	_ = from.Close() // ends the encryption if Put gave up
	if encrypted := <-written; err == nil {
		err = encrypted
	}
	return opener, info.Size(), err
}

// prune removes older backups. It only logs failures: the new backup is good.
func (r *Runner) prune(ctx context.Context) {
	warn := func(err error) {
		r.cfg.Logger.Warn("old backups could not be removed", "error", err)
	}
	files, err := r.cfg.Storage.List(ctx)
	if err != nil {
		warn(err)
		return
	}
	for _, name := range r.cfg.Keep.removable(files, r.cfg.Schedule.zone) {
		if err := r.cfg.Storage.Remove(ctx, name); err != nil {
			warn(err)
			return
		}
		r.cfg.Logger.Info("an old backup was removed", "name", name)
	}
	if err := r.cfg.Storage.Sweep(ctx, r.cfg.Clock.Now().Add(-sweepAge), IsBackup); err != nil {
		warn(err)
	}
}

func (r *Runner) rehearse(ctx context.Context) (any, []byte, error) {
	state, err := r.cfg.Store.BackupState(ctx, puntuale.JobBackup)
	if err != nil {
		return nil, nil, err
	}
	made, err := ParseResult(state.Result)
	if err != nil {
		return nil, nil, err
	}
	size, err := r.cfg.Store.DatabaseSize(ctx)
	if err != nil {
		return nil, nil, err
	}
	need := made.Bytes
	if r.cfg.Local(ctx) {
		need += 2 * size // the restored database, and its log until the commit
	}
	if err := r.room(need); err != nil {
		return nil, nil, err
	}
	var identities Identities
	if Encrypted(made.Name) {
		opener, err := r.cfg.Open(puntuale.SealedOpener, made.Name, state.Opener)
		if err != nil {
			return nil, nil, err
		}
		identity, err := age.ParseIdentities(bytes.NewReader(opener))
		if err != nil {
			return nil, nil, errors.New("the identity of the backup cannot be read")
		}
		identities = identity
	}
	file, err := Fetch(ctx, r.cfg.Storage, made.Name, identities, r.cfg.Scratch)
	if err != nil {
		return nil, nil, err
	}
	contents, where, err := r.cfg.Rehearse(ctx, file, filepath.Join(r.cfg.Scratch, "database"))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", made.Name, err)
	}
	if contents.Rows != made.Rows || contents.Messages != made.Messages {
		return nil, nil, fmt.Errorf("%s: %d rows and %d messages were restored, and the backup had %d and %d", made.Name, contents.Rows, contents.Messages, made.Rows, made.Messages)
	}
	return RehearsalResult{Contents: made.Contents, Name: made.Name, Where: where}, nil, nil
}

// Fetch copies a stored backup into a folder, and decrypts it. It returns the path of the copy, whose contents came to
// their end; archive.OpenBackup checks them.
func Fetch(ctx context.Context, storage objectstore.Storage, name string, identities Identities, folder string) (path string, err error) {
	from, err := storage.Get(ctx, name)
	if err != nil {
		return "", err
	}
	defer from.Close()
	plain := objectstore.Until(ctx, from)
	if Encrypted(name) {
		if plain, err = decrypt(plain, identities); err != nil {
			return "", err
		}
	}
	to, err := os.CreateTemp(folder, "fetched-*.zip") // only its owner can read it
	if err != nil {
		return "", fmt.Errorf("copy the backup: %w", err)
	}
	_, err = io.Copy(to, plain)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("copy %s: %w", name, err), os.Remove(to.Name()))
	}
	return to.Name(), nil
}

// Newest returns the name of the newest backup in a storage.
func Newest(files []objectstore.File) (name string, err error) {
	all := Sorted(files)
	if len(all) == 0 {
		return "", errors.New("there is no backup")
	}
	return all[len(all)-1].Name, nil
}

// Sorted returns the files that are backups, oldest first.
func Sorted(files []objectstore.File) []objectstore.File {
	all := slices.DeleteFunc(slices.Clone(files), func(f objectstore.File) bool { return !IsBackup(f.Name) })
	slices.SortFunc(all, func(a, b objectstore.File) int {
		x, _ := NameTime(a.Name)
		y, _ := NameTime(b.Name)
		return x.Compare(y)
	})
	return all
}
