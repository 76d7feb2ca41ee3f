package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

// A message that is due in a restored backup may have left from the lost installation. Or a call that is not in the
// backup may have stopped the message. So a restore makes the message uncertain, like a failover (queue/quarantine.go),
// with these differences:
//
//   - Every due message becomes uncertain, even if it could not leave when the backup was made. Credits, suspensions and
//     the blacklist may have changed since then.
//   - The message is marked as stopped (queue.CancelMessages), so that the server never sends it again by itself, not
//     even if the network recognises repeats.
//   - The message is listed in unknown_message until a person sends it again or closes it (unknown.go).
//   - If the message has no attempt in the backup, it gets an attempt at the time at which it was due, because it may
//     have left then. This attempt takes a credit, as long as the client has credits.
//
// No server uses the database during a restore. So one transaction is enough.

// decideWithin is how long people may decide about a message after a restore. Then a server gives the message up.
const decideWithin = 24 * time.Hour

// reasonRestored is the reason of a message that a restore made uncertain. The message may have left before the restore.
const reasonRestored puntuale.ReasonCode = "maybe.restored"

// RestoreConfig is the configuration of a restore.
type RestoreConfig struct {
	Hold     bool // true: a client's messages leave only after a person has released the client
	Progress Progress

	// MakeNumbers creates the library's empty tables of linked numbers. nil: this program links no numbers, and the
	// restore skips the numbers in the backup.
	MakeNumbers func(ctx context.Context, db *sql.DB, postgres bool) error
}

// RestoreResult counts what a restore did.
type RestoreResult struct {
	Since   time.Time // time of the backup; later changes are not in the backup
	Unknown int64     // number of messages that the restore made unknown
	Clients int64     // number of clients that have unknown messages
	Later   int64     // number of pending messages that the restore did not make unknown

	Linked  int64 // number of WhatsApp numbers that stay linked
	LeftOut bool  // true: the backup contains linked numbers, and the restore skipped them
}

// Restore fills an empty PostgreSQL or SQLite database with the rows of a backup, and makes all due messages unknown.
// Like [Import], it is one transaction: after a failure the database is empty. If the backup is wrong, the error wraps
// one of the errors of package archive. Codes: as Import.
func Restore(ctx context.Context, cfg engine.Config, backup *archive.BackupReader, r RestoreConfig) (done RestoreResult, err error) {
	if err := backup.Check(); err != nil {
		return done, err
	}
	from, err := backup.Open(archive.DatabaseEntry)
	if err != nil {
		return done, err
	}
	defer from.Close()
	made := "" // path of the file of linked numbers, if this call creates the file
	_, err = Import(ctx, cfg, from, ImportConfig{Progress: r.Progress, restored: func(ctx context.Context, s *installation, l *engine.Conn) (err error) {
		if done, err = s.setAside(ctx, l, restoreTransaction{since: backup.At, now: s.Config.Clock.Now(), hold: r.Hold}); err != nil {
			return err
		}
		if !backup.Has(archive.NumbersEntry) {
			return nil
		}
		if done.LeftOut = r.MakeNumbers == nil; done.LeftOut {
			return nil
		}
		made = s.numbersFileToCome()
		done.Linked, err = s.restoreNumbers(ctx, l, backup, r)
		return err
	}})
	if err != nil && made != "" {
		for _, rest := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(made + rest) // if the file remains, the next restore reports it
		}
	}
	return done, err
}

// numbersFileToCome returns the path of the file of linked numbers that a restore will create. It returns "" if the
// file exists, or if no file is needed.
func (s *installation) numbersFileToCome() string {
	if s.File == "" {
		return ""
	}
	path := WhatsAppFile(s.File)
	if _, err := os.Lstat(path); err == nil {
		return ""
	}
	return path
}

// restoreNumbers fills the tables of linked numbers. On PostgreSQL it uses the transaction of l. On SQLite, two files
// cannot commit together. So the transaction in the file of linked numbers commits just before the transaction of l.
func (s *installation) restoreNumbers(ctx context.Context, l *engine.Conn, backup *archive.BackupReader, r RestoreConfig) (linked int64, err error) {
	db, postgres, err := OpenWhatsApp(ctx, s.DB)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(r.MakeNumbers(ctx, db, postgres), db.Close()); err != nil {
		return 0, err
	}
	n, err := s.openNumbers(ctx, l, false)
	if err == nil && n == nil {
		err = errors.New("the tables of linked numbers were not made")
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.free()) }()
	if linked, err = n.load(ctx, backup); err != nil {
		return 0, err
	}
	return linked, n.Commit(ctx)
}

// renewLinked makes the keys of linked numbers safe to use, in a copy that was not made by Restore.
func (s *installation) renewLinked(ctx context.Context, l *engine.Conn) (err error) {
	n, err := s.openNumbers(ctx, l, false)
	if n == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.free()) }()
	if err := n.renew(ctx); err != nil {
		return err
	}
	return n.Commit(ctx)
}

// MarkRestored makes the due messages unknown in a copy of a database that was not made by Restore. since is the time
// of the copy. No server may use the copy. Codes: conflict (a server or another command uses it); invalid (since is in
// the future).
func MarkRestored(ctx context.Context, cfg engine.Config, since time.Time, r RestoreConfig) (done RestoreResult, err error) {
	s, err := openInstallation(ctx, cfg, engine.Options{Name: moverName})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	release, err := s.HoldFile()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, release()) }()
	l, free, err := s.OpenMover(ctx, false)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, free()) }()
	m := &importer{s: s, link: l}
	if err := l.Begin(ctx); err != nil {
		return done, fmt.Errorf("begin: %w", err)
	}
	if err := m.lock(ctx); err != nil {
		return done, err
	}
	if done, err = s.setAside(ctx, l, restoreTransaction{since: since, now: s.Config.Clock.Now(), hold: r.Hold}); err != nil {
		return done, engine.PublicError(err)
	}
	if err := m.resetLinks(ctx); err != nil {
		return done, err
	}
	if err := s.renewLinked(ctx, l); err != nil {
		return done, err
	}
	if err := l.Commit(ctx); err != nil {
		return done, fmt.Errorf("commit: %w", err)
	}
	return done, nil
}

// restoreTransaction contains the parameters of setAside.
type restoreTransaction struct {
	since, now time.Time
	hold       bool
}

// unknownDue selects the messages whose outcomes may be missing in a backup. $1 is the latest due time of a message
// that may have been claimed.
const unknownDue = ` where state = 0 and (next_at <= $1 or intent > 0)`

const faultStoreCopyLiesAhead puntuale.ReasonCode = "store.copy_lies_ahead"

// setAside makes messages unknown after a restore, in the caller's transaction. No other transaction may run at the
// same time.
func (s *installation) setAside(ctx context.Context, a engine.Querier, r restoreTransaction) (done RestoreResult, err error) {
	if r.since.After(r.now.Add(queue.ClockSlack)) {
		return done, puntuale.Invalid(puntuale.Fault{Location: "since",
			Code: faultStoreCopyLiesAhead, Args: []string{r.since.Format(time.RFC3339), r.now.Format(time.RFC3339)}})
	}
	done.Since = r.since
	node, err := engine.NextNumber(ctx, a, "node")
	if err != nil {
		return done, err
	}
	token := node<<32 | 1
	due, now := engine.Micros(r.now.Add(queue.ClockSlack)), engine.Micros(r.now)
	if done.Unknown, err = a.Exec(ctx, `insert into unknown_message (client_id, message_id, since, at)
 select client_id, id, $2::bigint, $3::bigint from message`+unknownDue+` on conflict do nothing`, due, engine.Micros(r.since), now); err != nil {
		return done, fmt.Errorf("list what is unknown: %w", err)
	}
	if err := outbox.EmitUncertain(ctx, a, r.now, unknownDue, due); err != nil {
		return done, err
	}
	if _, err := a.Exec(ctx, `insert into event (client_id, message_id, at, kind, detail)
 select client_id, id, $2::bigint, 'uncertain', $3::text from message`+unknownDue, due, now, puntuale.Because(reasonRestored).Stored()); err != nil {
		return done, fmt.Errorf("write events: %w", err)
	}
	if _, err := a.Exec(ctx, `update message set intent_at = case when intent > 0 then intent_at else next_at end,
 intent = case when intent > 0 then intent else $2::bigint end, valid_until = -abs(valid_until), next_at = $3::bigint, detail = $4::text`+unknownDue,
		due, token, engine.Micros(r.now.Add(decideWithin)), puntuale.Because(reasonRestored).Stored()); err != nil {
		return done, fmt.Errorf("set messages aside: %w", err)
	}
	if err := chargeAside(ctx, a, token, r.now); err != nil {
		return done, err
	}
	if _, err := engine.QueryOne(ctx, a, `select (select count(distinct client_id) from unknown_message),
 (select count(*) from message where state = 0 and intent = 0)`, nil, &done.Clients, &done.Later); err != nil {
		return done, fmt.Errorf("count what is unknown: %w", err)
	}
	if r.hold {
		if _, err := a.Exec(ctx, `update client set held_at = $1 where deleted_at = 0`, now); err != nil {
			return done, fmt.Errorf("hold the clients: %w", err)
		}
	}
	if err := queue.PauseCampaigns(ctx, a, puntuale.CampaignByRestore, r.now); err != nil {
		return done, err
	}
	return done, s.beginAnew(ctx, a)
}

// chargeAside takes a credit for each unknown message that got its attempt from this restore. It follows the order of
// due times, and stops when the client has no more credits.
func chargeAside(ctx context.Context, a engine.Querier, token int64, now time.Time) error {
	var clients []puntuale.ClientID
	var amounts []int64
	if err := a.Query(ctx, `select m.client_id, count(*) from message m join client k on k.id = m.client_id
 where m.state = 0 and m.intent = $1 and k.credits is not null group by m.client_id order by m.client_id`, []any{token}, func(rows engine.Row) error {
		var c puntuale.ClientID
		var n int64
		err := rows.Scan(&c, &n)
		clients, amounts = append(clients, c), append(amounts, n)
		return err
	}); err != nil {
		return fmt.Errorf("count messages that take a credit: %w", err)
	}
	if len(clients) == 0 {
		return nil
	}
	taken, err := queue.TakeCredits(ctx, a, clients, amounts, now)
	if err != nil {
		return err
	}
	for i, n := range taken {
		taken[i] = -n
	}
	if err := queue.Enter(ctx, a, "reserve", now, clients, taken); err != nil {
		return err
	}
	for i, n := range taken {
		if _, err := a.Exec(ctx, `update message set credit = 1 where client_id = $1 and id in (
 select id from message where client_id = $1 and state = 0 and intent = $2 order by intent_at, id limit $3)`, clients[i], token, -n); err != nil {
			return fmt.Errorf("mark messages as paid: %w", err)
		}
	}
	return nil
}

// leap raises the identifiers of messages to $1 µs beyond the clock. Identifiers grow with the clock. So two
// installations that were restored from one backup use different identifiers, and no network confuses their messages.
const leap = `update id_block set next = greatest(next, $clock - 1767225600000000 + $1::bigint) where one = 1`

// beginAnew separates the new installation from the lost installation: it deletes nodes and owners of sessions, and
// moves all counters forward. It also stores the database's timeline, so that the restore does not look like a
// failover.
func (s *installation) beginAnew(ctx context.Context, a engine.Querier) error {
	for _, step := range []struct {
		text string
		args []any
	}{
		{`delete from node`, nil},
		{`update session set owner = 0 where owner <> 0`, nil},
		{`update counter set next = next + $1::bigint`, []any{int64(queue.ForgottenJump)}},
		{leap, []any{queue.IDJump.Microseconds()}},
		{outbox.Leap, []any{queue.IDJump.Microseconds()}},
		{`update cluster set timeline = $timeline, since = $clock where one = 1`, nil},
	} {
		if _, err := a.Exec(ctx, step.text, step.args...); err != nil {
			return fmt.Errorf("begin anew: %w", err)
		}
	}
	return nil
}
