package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

const (
	warnEvery = 24 * time.Hour
	warnLease = 5 * time.Minute // telling takes less time
)

// Warn tells the operator that the last good backup, or the last good rehearsal, is too old. It repeats this each day.
// Of several servers, one does so. Warn may run beside [Runner.Round].
func (r *Runner) Warn(ctx context.Context) error {
	now := r.cfg.Clock.Now()
	text, since, err := r.tooOld(ctx, now)
	if err != nil || text == "" {
		return err
	}
	planned := since.Add(now.Sub(since).Truncate(warnEvery))
	state, begun, err := r.cfg.Store.BeginBackupJob(ctx, puntuale.JobWarning, planned, warnLease)
	if err != nil || !begun {
		return err
	}
	within, cancel := context.WithTimeout(ctx, warnLease/2)
	defer cancel()
	told := r.cfg.Tell(within, text)
	ended, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if told != nil {
		wait := min(firstWait<<min(state.Tries, 8), longestWait)
		return errors.Join(fmt.Errorf("tell the operator: %w", told), r.cfg.Store.FailBackupJob(ended, puntuale.JobWarning, state.Token, told.Error(), wait))
	}
	return r.cfg.Store.EndBackupJob(ended, puntuale.JobWarning, state.Token, text, nil)
}

// tooOld says what is too old, and since when. The text is empty if nothing is.
func (r *Runner) tooOld(ctx context.Context, now time.Time) (text string, since time.Time, err error) {
	last, err := r.cfg.Store.LastBackup(ctx)
	if err != nil {
		return "", since, err
	}
	made, err := r.cfg.Store.BackupState(ctx, puntuale.JobBackup)
	if err != nil {
		return "", since, err
	}
	rehearsed, err := r.cfg.Store.BackupState(ctx, puntuale.JobRehearsal)
	if err != nil {
		return "", since, err
	}
	var all []string
	add := func(at time.Time, sentence, fault string) {
		if fault != "" {
			sentence += " The last attempt failed: " + strings.TrimSuffix(fault, ".") + "."
		}
		if all = append(all, sentence); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	old := last.Add(puntuale.BackupTooOld)
	switch {
	case last.IsZero() && made.Fault != "":
		add(r.cfg.Schedule.Last(now), "There was never a good backup.", made.Fault)
	case !last.IsZero() && !now.Before(old):
		add(old, "The last good backup was made at "+last.UTC().Format(time.RFC3339)+".", made.Fault)
	}
	old = rehearsed.DoneAt.Add(puntuale.BackupTooOld)
	switch {
	case rehearsed.DoneAt.IsZero() && rehearsed.Fault != "":
		add(made.DoneAt, "No backup was ever restored on trial.", rehearsed.Fault)
	case !rehearsed.DoneAt.IsZero() && !now.Before(old):
		add(old, "The last backup that was restored on trial was restored at "+rehearsed.DoneAt.UTC().Format(time.RFC3339)+".", rehearsed.Fault)
	}
	return strings.Join(all, "\n"), since, nil
}
