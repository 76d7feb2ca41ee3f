package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/link"
	"puntuale/internal/diskspace"
	"puntuale/internal/metrics"
	"puntuale/internal/objectstore"
	"puntuale/internal/push"
	"puntuale/internal/store"
	"puntuale/internal/store/archiver"
)

// task is work that a server repeats in the background until it stops. Each task has its own loop, so that a slow task
// does not delay other tasks. Any number of servers may run the same tasks. The tasks in a writer's queue are another
// thing.
type task struct {
	name   string                      // the task's name in the log and in the metrics
	first  time.Duration               // the wait before the first run
	every  time.Duration               // the wait after each run
	do     func(context.Context) error // the work; it must return soon after its context ends
	urgent func(error) bool            // reports whether a person must act on the failure immediately; nil: never
}

// How often the tasks run, and the waits before their first run.
const (
	taskEvery      = time.Minute
	checkFirst     = time.Minute // the integrity check waits first, so that it does not slow the start of the server
	checkEvery     = 24 * time.Hour
	backlogEvery   = 15 * time.Second
	readinessEvery = 5 * time.Second
	rememberEvery  = 10 * time.Second
	pushEvery      = 3 * time.Second
	mailEvery      = 3 * time.Second
	keepEvery      = 2 * time.Second
	failsLong      = time.Hour // after a task has failed for this long, a person must look at the failure
)

// backgroundTasks returns the tasks of this server.
func (s *server) backgroundTasks(cfg *serverConfig, vault *auth.Vault, m *metrics.Meter, pushes *push.Notifier) []task {
	all := []task{
		{name: "refill", every: taskEvery, do: func(ctx context.Context) error {
			n, err := s.accounts.Refill(ctx)
			if n > 0 {
				cfg.Logger.Info("accounts refilled", "accounts", n)
			}
			return err
		}},
		// One run of this task may take many minutes, if the contents of several years must be blanked.
		{name: "maintenance", every: taskEvery, do: s.control.Maintain},
		{name: "keys", first: auth.ReadKeysEvery, every: auth.ReadKeysEvery, do: func(ctx context.Context) error { return s.readKeys(ctx, vault) }},
		{name: "statements", every: taskEvery, do: s.statements.Close},
		{name: "clicks", every: link.FlushEvery, do: s.links.Flush},
		{name: "remember", every: rememberEvery, do: s.control.Remember},
		{name: "disk", every: taskEvery, do: diskspace.New(diskFolders(cfg), m.Disk, cfg.Logger).Look},
		{name: "readiness", every: readinessEvery, do: func(ctx context.Context) error { _ = s.health.Probe(ctx); return nil }},
	}
	if databaseFile(&cfg.baseSettings, cfg.Data) != "" {
		all = append(all, task{name: "check", first: checkFirst, every: checkEvery, do: s.store.Verify})
	}
	if cfg.has(roleDispatch) {
		all = append(all, task{name: "backlog", every: backlogEvery, do: func(ctx context.Context) error {
			now := cfg.Clock.Now()
			ready, waiting, err := s.store.Backlog(ctx, now)
			if err == nil {
				m.Backlog(now, metrics.Backlog(ready), metrics.Backlog(waiting))
				s.due.Store(&dueMessages{now, ready, waiting})
			}
			return err
		}}, task{name: "event backlog", every: backlogEvery, do: s.eventBacklog(m)})
	}
	if cfg.has(roleDispatch) {
		all = append(all, task{name: "files of replies", every: keepEvery, do: s.fileFetcher(cfg).Round})
	}
	if cfg.has(roleDispatch) && pushes != nil {
		all = append(all, task{name: "push", every: pushEvery, do: pushes.Round})
	}
	if s.mailer != nil {
		all = append(all, task{name: "mail", every: mailEvery, do: s.sendMails(m)})
	}
	if s.backups != nil {
		all = append(all, task{name: "backup", every: taskEvery, do: s.backups.Round, urgent: func(error) bool { return true }})
	}
	if s.backups != nil && cfg.MailOperator != "" {
		all = append(all, task{name: "backup warning", every: taskEvery, do: s.backups.Warn})
	}
	if archive := s.archive(cfg, vault); archive != nil {
		all = append(all, task{name: "archive", every: taskEvery, do: archive, urgent: folderFault})
	}
	return all
}

// dueMessages are the messages that were due at a time and had not left.
type dueMessages struct {
	at             time.Time
	ready, waiting store.Backlog
}

// diskFolders returns the folders in which this server writes. Each key says what is in the folder.
func diskFolders(cfg *serverConfig) map[string]string {
	folders := map[string]string{"data": cfg.Data}
	if file := databaseFile(&cfg.baseSettings, cfg.Data); file != "" {
		if folders["database"] = filepath.Dir(file); folders["database"] == folders["data"] {
			delete(folders, "data")
		}
	}
	if cfg.Archive != "" {
		folders["archive"] = cfg.Archive
	}
	if cfg.BackupTo != "" && !objectstore.IsS3(cfg.BackupTo) {
		folders["backups"] = cfg.BackupTo
	}
	if cfg.FilesTo != "" && !objectstore.IsS3(cfg.FilesTo) {
		folders["files"] = cfg.FilesTo
	}
	return folders
}

// folderFault reports whether an error comes from the archive's folder, and not from the store. The folder may be full,
// damaged or not writable.
func folderFault(err error) bool { return !puntuale.StoreAway(err) }

// archive returns the archiver of old runs; nil if no folder is set. The archiver works day by day, so that an
// installation with few messages gets one file a day.
func (s *server) archive(cfg *serverConfig, vault *auth.Vault) func(context.Context) error {
	if cfg.Archive == "" {
		return nil
	}
	a := archiver.New(s.store.DB, archiver.Config{
		Folder: cfg.Archive, Program: versionText(),
		Mark: func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) },
	})
	return func(ctx context.Context) error {
		now := cfg.Clock.Now()
		_, err := a.Run(ctx, now, cfg.ArchiveAfter.Cutoff(now).Truncate(24*time.Hour))
		return err
	}
}

// taskRunner runs tasks.
type taskRunner struct {
	clock  clock.Clock
	logger *slog.Logger
	meter  *metrics.Meter
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// startTasks starts the background tasks.
func startTasks(all []task, c clock.Clock, logger *slog.Logger, m *metrics.Meter) *taskRunner {
	ctx, cancel := context.WithCancel(context.Background())
	r := &taskRunner{clock: c, logger: logger, meter: m, cancel: cancel}
	for i := range all {
		m.Task(all[i].name) // this sets the task's metric to 0 before the first run
		r.loops.Go(func() { r.repeat(ctx, &all[i]) })
	}
	return r
}

// stop ends all tasks, and waits until they have ended. It may be called twice.
func (r *taskRunner) stop() {
	r.cancel()
	r.loops.Wait()
}

func (r *taskRunner) repeat(ctx context.Context, c *task) {
	if c.first > 0 && r.clock.Sleep(ctx, c.first) != nil {
		return
	}
	var t taskFailure
	for ctx.Err() == nil {
		err := puntuale.Recovered(func() error { return c.do(ctx) })
		if ctx.Err() != nil {
			return
		}
		r.note(c, &t, err)
		if r.clock.Sleep(ctx, c.every) != nil {
			return
		}
	}
}

// taskFailure is the present failure of a task.
type taskFailure struct {
	// since is the time when the failure began, or zero if there is no failure. logged is the time when the failure was last
	// logged.
	since, logged time.Time
	level         slog.Level
	reason        string
}

// note counts and logs how a task ended. It logs a failure when the failure begins, when its reason or its severity
// changes, and every hour.
func (r *taskRunner) note(c *task, t *taskFailure, err error) {
	now := r.clock.Now()
	if err == nil {
		r.meter.TaskDone(c.name, now)
		if !t.since.IsZero() {
			r.logger.Info("a background task works again", "task", c.name, "failed_for", now.Sub(t.since))
		}
		*t = taskFailure{}
		return
	}
	r.meter.TaskFailed(c.name)
	if t.since.IsZero() {
		t.since = now
	}
	level := slog.LevelWarn
	if now.Sub(t.since) >= failsLong || c.urgent != nil && c.urgent(err) {
		level = slog.LevelError
	}
	if level == t.level && err.Error() == t.reason && now.Sub(t.logged) < failsLong {
		return
	}
	t.level, t.reason, t.logged = level, err.Error(), now
	r.logger.Log(context.Background(), level, "a background task fails; it is tried again", "task", c.name, "error", err, "since", t.since)
}

// recountCommand makes the servers count all messages of reports again.
type recountCommand struct {
	baseSettings `embed:""`

	Client puntuale.ClientID `local:"" placeholder:"NUMBER" help:"Only this client's."`
}

func (c *recountCommand) Run(ctx context.Context, p *program) error {
	if fresh := newFile(&c.baseSettings, p.path(c.Data)); fresh != "" {
		return fmt.Errorf("there is no database %s, and so nothing to count", fresh)
	}
	return p.withStore(ctx, &c.baseSettings, func(opened *store.Store) error {
		n, err := opened.Recount(ctx, c.Client, p.clock.Now())
		if err != nil {
			return fmt.Errorf("count again: %w", forPeople(err))
		}
		_, err = fmt.Fprintf(p.stdout, "The servers count the messages of %d clients again. Until this has ended, reports show what was counted before.\n", n)
		return err
	})
}
