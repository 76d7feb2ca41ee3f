package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"filippo.io/age"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/backup"
	"puntuale/internal/clock"
	"puntuale/internal/objectstore"
	"puntuale/internal/objectstore/s3test"
)

// jobs is the store of a test: the rules of the real one, by the test's clock.
type jobs struct {
	clock  clock.Clock
	mu     sync.Mutex
	states [4]puntuale.BackupState
	last   time.Time // of the last backup of any way
}

func (j *jobs) LastBackup(context.Context) (time.Time, error) { return j.last, nil }

func (j *jobs) DatabaseSize(context.Context) (int64, error) { return 1 << 20, nil }

func (j *jobs) BackupState(_ context.Context, job puntuale.BackupJob) (puntuale.BackupState, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.states[job], nil
}

func (j *jobs) BeginBackupJob(_ context.Context, job puntuale.BackupJob, planned time.Time, lease time.Duration) (puntuale.BackupState, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.states[job]
	if !s.Done.Before(planned) || s.Until.After(j.clock.Now()) {
		return *s, false, nil
	}
	if !s.Planned.Equal(planned) {
		s.Tries = 0
	}
	s.Planned, s.Token, s.Until = planned, s.Token+1, j.clock.Now().Add(lease)
	return *s, true, nil
}

func (j *jobs) change(job puntuale.BackupJob, token int64, change func(*puntuale.BackupState)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.states[job].Token != token {
		return puntuale.ErrFenced
	}
	change(&j.states[job])
	return nil
}

func (j *jobs) HoldBackupJob(_ context.Context, job puntuale.BackupJob, token int64, lease time.Duration) error {
	return j.change(job, token, func(s *puntuale.BackupState) { s.Until = j.clock.Now().Add(lease) })
}

func (j *jobs) EndBackupJob(_ context.Context, job puntuale.BackupJob, token int64, result string, opener []byte) error {
	return j.change(job, token, func(s *puntuale.BackupState) {
		s.Done, s.Result, s.Opener, s.Fault, s.Until = s.Planned, result, opener, "", time.Time{}
		if job == puntuale.JobRehearsal {
			j.states[puntuale.JobBackup].Opener = nil
		}
	})
}

func (j *jobs) FailBackupJob(_ context.Context, job puntuale.BackupJob, token int64, fault string, wait time.Duration) error {
	return j.change(job, token, func(s *puntuale.BackupState) {
		s.Fault, s.Tries, s.Until = fault, s.Tries+1, j.clock.Now().Add(wait)
	})
}

func (j *jobs) FreeBackupJob(_ context.Context, job puntuale.BackupJob, token int64) error {
	return j.change(job, token, func(s *puntuale.BackupState) { s.Until = time.Time{} })
}

// bench is a runner whose installation is the text of a file.
type bench struct {
	*jobs
	clock    *clock.Fake
	cfg      backup.Config
	contents string
	restored atomic.Value // what the last rehearsal read
	free     uint64
}

func newBench(t *testing.T, storage objectstore.Storage, recipients ...string) *bench {
	t.Helper()
	begin := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	b := &bench{clock: clock.NewFake(begin), contents: strings.Repeat("ciao ", 10), free: 1 << 40}
	b.jobs = &jobs{clock: b.clock}
	schedule, err := backup.ParseSchedule("03:10")
	if err != nil {
		t.Fatal(err)
	}
	to, err := backup.ParseRecipients(recipients)
	if err != nil {
		t.Fatal(err)
	}
	vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	b.cfg = backup.Config{
		Store: b.jobs, Storage: storage, Schedule: schedule, Keep: backup.Retention{Days: 2}, Recipients: to, Scratch: filepath.Join(t.TempDir(), "scratch"),
		Write: func(_ context.Context, file string, key bool, stored func() error) (backup.Contents, error) {
			if key != (len(recipients) > 0) {
				t.Errorf("the key file is in the backup: %v, with %d recipients", key, len(recipients))
			}
			if err := os.WriteFile(file, []byte(b.contents), 0o600); err != nil {
				return backup.Contents{}, err
			}
			return backup.Contents{At: b.clock.Now(), Rows: int64(len(b.contents)), Messages: 3}, stored()
		},
		Rehearse: func(_ context.Context, file, _ string) (backup.Contents, string, error) {
			text, err := os.ReadFile(file)
			b.restored.Store(string(text))
			return backup.Contents{Rows: int64(len(text)), Messages: 3}, "test", err
		},
		Local: func(context.Context) bool { return true },
		Seal:  vault.Seal, Open: vault.Open,
		Space: func(string) (uint64, uint64, error) { return b.free, 1 << 40, nil },
		Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
	}
	return b
}

func (b *bench) round(t *testing.T) error {
	t.Helper()
	return backup.New(b.cfg).Round(t.Context())
}

func s3(server *s3test.Server) objectstore.S3 {
	return objectstore.S3{Endpoint: server.URL, Region: "us-east-1", AccessKey: s3test.AccessKey, SecretKey: "secret"}
}

func identity(t *testing.T) (recipient string, all backup.Identities) {
	t.Helper()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(name, []byte("# created: today\n"+own.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err = backup.ReadIdentities(name); err != nil {
		t.Fatal(err)
	}
	return own.Recipient().String(), all
}

// TestNights lets a runner work for some days, with a folder and with S3. Each day has one backup and one rehearsal, only
// the retention's backups stay, and nothing is ever replaced. With encryption, the operator's identity opens a backup, and
// nothing of it is readable before.
func TestNights(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"folder", "s3"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := s3test.New(t)
			address := filepath.Join(t.TempDir(), "backups")
			if kind == "s3" {
				address = "s3://bucket/one/two"
				server.Set("bucket/one/two/notes.txt", []byte("note"))
				server.Set("bucket/one/other/"+backup.Name(time.Unix(0, 0), true), []byte("of another installation"))
			}
			storage, err := objectstore.Open(address, s3(server))
			if err != nil {
				t.Fatal(err)
			}
			recipient, own := identity(t)
			b := newBench(t, storage, recipient)
			for day := range 4 {
				b.contents = fmt.Sprint(day) + strings.Repeat("ciao ", 1000)
				if day == 3 {
					b.contents = strings.Repeat("ciao ", 3_400_000) // 17 MB: more than a part of an upload
				}
				for range 3 { // only the first round of a day finds something to do
					if err := b.round(t); err != nil {
						t.Fatal(err)
					}
				}
				if got := b.restored.Load(); got != b.contents {
					t.Errorf("day %d: the rehearsal read something else", day)
				}
				if b.states[puntuale.JobBackup].Opener != nil {
					t.Error("the server can open the backup after the rehearsal")
				}
				b.clock.Advance(24 * time.Hour)
			}
			files, err := storage.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stored := backup.Sorted(files)
			if len(stored) != 2 || kind == "s3" && len(files) != 3 {
				t.Fatalf("stored: %v", files)
			}
			raw, err := storage.Get(t.Context(), stored[1].Name)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(raw)
			raw.Close()
			if err != nil || int64(len(text)) != stored[1].Size || bytes.Contains(text, []byte("ciao")) {
				t.Errorf("stored are %d bytes, listed %d, %v", len(text), stored[1].Size, err)
			}
			path, err := backup.Fetch(t.Context(), storage, stored[1].Name, own, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := os.ReadFile(path); err != nil || string(plain) != b.contents {
				t.Errorf("opened: %d bytes, %v", len(plain), err)
			}
			if _, err := backup.Fetch(t.Context(), storage, stored[1].Name, nil, t.TempDir()); !errors.Is(err, backup.ErrNoIdentity) {
				t.Errorf("without an identity: %v", err)
			}
			_, foreign := identity(t)
			if _, err := backup.Fetch(t.Context(), storage, stored[1].Name, foreign, t.TempDir()); !errors.Is(err, backup.ErrNoIdentity) {
				t.Errorf("with another identity: %v", err)
			}
			if err := storage.Put(t.Context(), stored[1].Name, strings.NewReader("x")); err == nil {
				t.Error("a backup was replaced")
			}
			if rest, err := os.ReadDir(b.cfg.Scratch); err != nil || len(rest) > 0 {
				t.Errorf("left in the scratch folder: %v, %v", rest, err)
			}
			if kind == "s3" {
				checkLedger(t, server)
			}
		})
	}
}

// checkLedger: each backup was put once and removed at most once, and files of others were not touched.
func checkLedger(t *testing.T, server *s3test.Server) {
	t.Helper()
	counts := map[string]int{}
	for _, line := range server.Ledger() {
		counts[line]++
		if counts[line] > 1 || !strings.Contains(line, "one/two/puntuale-") {
			t.Errorf("%s, %d times", line, counts[line])
		}
	}
	if server.Object("bucket/one/two/notes.txt") == nil || len(server.Objects()) != 4 || server.Uploads() != 0 {
		t.Errorf("stored: %v, unfinished uploads: %d", server.Objects(), server.Uploads())
	}
}

// TestCutBackup: a stored backup that was cut or changed is refused, and nothing of it stays.
func TestCutBackup(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	storage, err := objectstore.Open("s3://bucket", s3(server))
	if err != nil {
		t.Fatal(err)
	}
	recipient, own := identity(t)
	b := newBench(t, storage, recipient)
	b.contents = strings.Repeat("ciao ", 100_000)
	if err := b.round(t); err != nil {
		t.Fatal(err)
	}
	object := server.Objects()[0]
	whole := server.Object(object)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-100] ^= 1
	for what, content := range map[string][]byte{"cut": whole[:len(whole)-1000], "cut between chunks": whole[:len(whole)-len(whole)%65552], "flipped": flipped} {
		server.Set(object, content)
		scratch := t.TempDir()
		if _, err := backup.Fetch(t.Context(), storage, strings.TrimPrefix(object, "bucket/"), own, scratch); err == nil {
			t.Errorf("%s: it was accepted", what)
		}
		if rest, err := os.ReadDir(scratch); err != nil || len(rest) > 0 {
			t.Errorf("%s: left %v, %v", what, rest, err)
		}
	}
}

// TestBrokenSource: a file whose source breaks off is not stored, and its upload is ended.
func TestBrokenSource(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	for _, address := range []string{"s3://bucket", t.TempDir()} {
		storage, err := objectstore.Open(address, s3(server))
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("disk")} {
			source := io.MultiReader(strings.NewReader("the beginning"), iotest.ErrReader(broken))
			if err := storage.Put(t.Context(), backup.Name(time.Unix(9, 0), true), source); err == nil {
				t.Errorf("%s: a part was stored as the whole (%v)", address, broken)
			}
		}
		if files, err := storage.List(t.Context()); err != nil || len(files) > 0 || server.Uploads() > 0 {
			t.Errorf("%s: left %v, %d uploads, %v", address, files, server.Uploads(), err)
		}
	}
}

// TestFailures: after a failure the job waits, longer each time, and names the reason. The first success ends this.
func TestFailures(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	storage, err := objectstore.Open("s3://bucket/x", s3(server))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, storage)
	server.Refuse(func(method, _ string) bool { return method == "POST" || method == "PUT" })
	if err := b.round(t); err == nil {
		t.Fatal("a refused upload is no failure")
	}
	state := b.states[puntuale.JobBackup]
	if !strings.Contains(state.Fault, "AccessDenied") || strings.Contains(state.Fault, "secret") || state.Tries != 1 {
		t.Errorf("%+v", state)
	}
	if err := b.round(t); err != nil {
		t.Errorf("before the wait has ended: %v", err)
	}
	b.clock.Advance(6 * time.Minute)
	if err := b.round(t); err == nil || b.states[puntuale.JobBackup].Tries != 2 {
		t.Errorf("after the wait: %v", err)
	}
	server.Refuse(nil)
	b.clock.Advance(time.Hour)
	b.free = 1 << 20
	if err := b.round(t); !errors.Is(err, backup.ErrNoRoom) || !strings.Contains(err.Error(), "1 MiB are free") {
		t.Errorf("without room: %v", err)
	}
	b.free = 1 << 40
	b.clock.Advance(time.Hour)
	if err := b.round(t); err != nil {
		t.Fatal(err)
	}
	if s := b.states[puntuale.JobBackup]; s.Fault != "" || s.Done.IsZero() || len(server.Objects()) != 1 {
		t.Errorf("%+v", s)
	}
	if s := b.states[puntuale.JobRehearsal]; s.Done.IsZero() {
		t.Errorf("not rehearsed: %+v", s)
	}
}

// TestWarn: the operator is told once a day, by one of two servers, while the last good backup or its trial is too old. An
// e-mail that fails is tried again.
func TestWarn(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var told []string
	var away error
	b.cfg.Tell = func(_ context.Context, text string) error {
		if away == nil {
			told = append(told, text)
		}
		return away
	}
	warn := func(name string, wait time.Duration, want int, words ...string) {
		t.Helper()
		told = nil
		b.clock.Advance(wait)
		for range 2 { // two servers
			if err := backup.New(b.cfg).Warn(t.Context()); (err != nil) != (away != nil && wait > 0) && want > 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(told) != want {
			t.Fatalf("%s: told %q, want %d", name, told, want)
		}
		for _, word := range words {
			if !strings.Contains(told[0], word) {
				t.Errorf("%s: %q is not in %q", name, word, told[0])
			}
		}
	}
	warn("nothing was tried yet", 0, 0)
	b.states[puntuale.JobBackup].Fault = "AccessDenied."
	warn("the first backup failed", time.Minute, 1, "There was never a good backup. The last attempt failed: AccessDenied.")
	warn("an hour later", time.Hour, 0)
	warn("a day later", 24*time.Hour, 1)

	good := func(ago time.Duration) {
		b.last = b.clock.Now().Add(-ago)
		b.states[puntuale.JobBackup].Fault, b.states[puntuale.JobBackup].DoneAt = "", b.last
		b.states[puntuale.JobRehearsal].Fault, b.states[puntuale.JobRehearsal].DoneAt = "", b.last
	}
	good(0)
	warn("all is good", 25*time.Hour, 0)
	b.states[puntuale.JobRehearsal].DoneAt = b.clock.Now()
	warn("the backup is too old", time.Hour, 1, "The last good backup was made at 2026-11-30T13:01:00Z.")
	if strings.Contains(told[0], "trial") {
		t.Errorf("the trial is not too old: %q", told[0])
	}
	away = errors.New("the mail server is away")
	told = nil
	b.clock.Advance(24 * time.Hour)
	if err := backup.New(b.cfg).Warn(t.Context()); !errors.Is(err, away) {
		t.Errorf("the failure is not reported: %v", err)
	}
	if err := backup.New(b.cfg).Warn(t.Context()); err != nil || b.states[puntuale.JobWarning].Tries != 1 {
		t.Errorf("before the wait has ended: %v, %+v", err, b.states[puntuale.JobWarning])
	}
	away = nil
	warn("the mail server is back", 6*time.Minute, 1, "The last good backup")
	warn("both are too old", 24*time.Hour, 1, "The last good backup", "\nThe last backup that was restored on trial was restored at 2026-12-01T14:01:00Z.")
	good(0)
	b.states[puntuale.JobRehearsal].DoneAt = b.last.Add(-30 * time.Hour)
	b.states[puntuale.JobRehearsal].Fault = "2 messages were restored, not 3"
	warn("only the trial is too old", 24*time.Hour, 1, "restored on trial", "The last attempt failed: 2 messages were restored, not 3.")
}

// TestRehearsalFinds: a rehearsal that restores something else than was written fails.
func TestRehearsalFinds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	storage, err := objectstore.Open(folder, objectstore.S3{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, storage)
	whole := b.cfg.Rehearse
	b.cfg.Rehearse = func(ctx context.Context, file, scratch string) (backup.Contents, string, error) {
		c, where, err := whole(ctx, file, scratch)
		c.Messages--
		return c, where, err
	}
	if err := b.round(t); err == nil || !strings.Contains(err.Error(), "2 messages were restored") {
		t.Errorf("%v", err)
	}
	if b.states[puntuale.JobBackup].Done.IsZero() || !b.states[puntuale.JobRehearsal].Done.IsZero() {
		t.Errorf("%+v", b.states)
	}
}

// TestTakenOver: a node that lost its attempt ends the work, and stores nothing. A node that stops lets another begin at
// once.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		storage, err := objectstore.Open(folder, objectstore.S3{})
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, storage)
		b.cfg.Clock, b.jobs.clock = clock.System(), clock.System()
		b.cfg.Write = func(ctx context.Context, _ string, _ bool, stored func() error) (backup.Contents, error) {
			<-ctx.Done()
			return backup.Contents{}, stored()
		}
		ended := make(chan error)
		go func() { ended <- b.round(t) }()
		time.Sleep(time.Hour) // the deadline is moved on
		synctest.Wait()
		if s, _ := b.BackupState(t.Context(), puntuale.JobBackup); !s.Until.After(time.Now()) {
			t.Errorf("the deadline has passed: %+v", s)
		}
		b.mu.Lock()
		b.states[puntuale.JobBackup].Token++
		b.mu.Unlock()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "took it over") {
			t.Errorf("%v", err)
		}
		if s := b.states[puntuale.JobBackup]; s.Fault != "" || !s.Done.IsZero() {
			t.Errorf("it changed the other attempt: %+v", s)
		}
		b.states[puntuale.JobBackup] = puntuale.BackupState{}
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- backup.New(b.cfg).Round(ctx) }()
		time.Sleep(time.Minute)
		stop()
		if err := <-ended; err == nil {
			t.Error("a stopped job has no error")
		}
		if s := b.states[puntuale.JobBackup]; !s.Until.IsZero() || s.Fault != "" || s.Tries != 0 {
			t.Errorf("nobody may begin: %+v", s)
		}
		if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
			t.Errorf("stored: %v, %v", files, err)
		}
	})
}

// TestSweep: unfinished files of killed servers are removed after a day, and files of others stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	storage, err := objectstore.Open(folder, objectstore.S3{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	old := "." + backup.Name(now, true) + ".unfinished-1"
	fresh := "." + backup.Name(now, false) + ".unfinished-2"
	for name, age := range map[string]time.Duration{old: 25 * time.Hour, fresh: time.Hour, ".other.unfinished-3": 25 * time.Hour} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(folder, name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := storage.Sweep(t.Context(), now.Add(-24*time.Hour), backup.IsBackup); err != nil {
		t.Fatal(err)
	}
	files, err := storage.List(t.Context())
	if err != nil || len(files) != 2 || slices.ContainsFunc(files, func(f objectstore.File) bool { return f.Name == old }) {
		t.Errorf("%v, %v", files, err)
	}
}

// TestAddresses: what is wrong with an address is said before a server starts.
func TestAddresses(t *testing.T) {
	t.Parallel()
	whole := objectstore.S3{Endpoint: "https://s3.example.com", AccessKey: "a", SecretKey: "secret"}
	for address, want := range map[string]string{"s3://bucket": "", "s3://bucket/a/b/": "", "s3://": "s3://bucket/folder", "s3://b//x": "s3://bucket/folder", "s3://b?x": "s3://bucket/folder"} {
		if err := objectstore.CheckS3(address, whole); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, s := range []objectstore.S3{{}, {Endpoint: "s3.example.com", AccessKey: "a", SecretKey: "s"}, {Endpoint: "https://s3.example.com"}, {Endpoint: "https://s3.example.com/path", AccessKey: "a", SecretKey: "s"}} {
		if err := objectstore.CheckS3("s3://bucket", s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if _, err := backup.ParseRecipients([]string{"age1nonsense"}); err == nil {
		t.Error("a wrong recipient is accepted")
	}
}
