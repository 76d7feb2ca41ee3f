package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"puntuale"
)

// Store keeps everything. It implements all role interfaces of package puntuale; its methods may be called by many
// goroutines at once.
type Store struct {
	*DB

	beaten   atomic.Pointer[acknowledged]
	teller   *teller   // nil on SQLite
	listener *listener // nil until Listen

	lastContact   atomic.Pointer[contactKey] // that Maintain looked at; nil: from the beginning
	lastAlias     atomic.Pointer[aliasKey]   // likewise
	blankedClient atomic.Int64               // the client that Maintain blanked last; 0: from the beginning

	kinds kinds
	closing sync.Once
}

// kinds are the kinds of tasks, named for the figures that operators see.
type kinds struct {
	start, free, stop, cancel, write, resend, claim, record, settle, receive, fleet, blank, erase, evidence, heard, archive, campaign, feed *kind
}

// Open opens the store, creating or migrating it where cfg allows. An error that wraps puntuale.ErrUntrusted means that
// it must not be used as it is, and says why; [ErrMoved], that its installation is elsewhere now; one with CodeConflict,
// that it is moving just now; one with CodeUnavailable, that the database could not be reached.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := open(ctx, cfg, options{name: serverName, shared: true, admit: refuseGone})
	if err != nil {
		return nil, err
	}
	if err := refuseMoved(ctx, s.read); err != nil {
		return nil, errors.Join(outward(err), s.Close())
	}
	return s, nil
}

// open is Open without asking whether the installation moved.
func open(ctx context.Context, cfg Config, o options) (*Store, error) {
	db, err := openDB(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	s := &Store{DB: db, kinds: newKinds()}
	if s.d.postgres {
		if s.teller, err = s.newTeller(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func newKinds() kinds {
	// Outcomes and settlements compare the intent they saw, what is blanked is not found again, and what was told before
	// changes nothing, and what is archived is gone: a second run finds what the first one did.
	again := func(k *kind) *kind {
		k.check = neverSure
		return k
	}
	// What networks report of messages comes as fast as messages leave, and maintenance waits for itself: neither is a call.
	background := func(k *kind) *kind {
		k.background = true
		return again(k)
	}
	return kinds{
		start: newStartKind(), free: newFreeStartKind(), stop: newSingle("stop", lanePrevent), cancel: newSingle("cancel", lanePrevent), write: newEffect("write"), resend: newEffect("resend"),
		claim: newClaimKind(), record: again(newSingle("record", laneSend)), settle: again(newSingle("settle", laneSend)), receive: newReceiveKind(),
		fleet: newSingle("fleet", laneSend), blank: background(newSingle("blank", laneCall)), erase: again(newSingle("erase", lanePrevent)),
		evidence: background(newSingle("evidence", laneCall)), heard: background(newSingle("heard", lanePrevent)), archive: background(newSingle("archive", laneCall)),
		campaign: newSingle("campaign", lanePrevent), feed: newFeedKind(),
	}
}

// Migrate brings the database up to date, creating it if need be.
func Migrate(ctx context.Context, cfg Config) error {
	cfg.NoMigrate = false
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Close()
}

// Close refuses new calls, waits for what is queued to be committed, and closes the database. It may be called twice.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closeWriters() // they tell other nodes of what they commit
		s.teller.close()
		s.listener.close()
	})
	return s.DB.Close()
}

// Check reports whether the store answers, with a write that reaches the disk, and still is where its installation is.
func (s *Store) Check(ctx context.Context) error {
	if err := s.failure.damage.Load(); err != nil {
		return puntuale.StoreDamaged(*err)
	}
	return s.fleet.perform(ctx, single(s.kinds.write, func(ctx context.Context, a asker) error {
		if err := refuseGone(ctx, a); err != nil {
			return err
		}
		_, err := number(ctx, a, "check")
		return err
	}), true)
}

// Verify reads the whole database and reports what is damaged, as an error that wraps puntuale.ErrUntrusted. It reads
// table by table, so that nothing is kept from being written for long, and takes about a second for 100 MB. On SQLite
// damage also ends the store, as if a statement had met it; there the file of linked numbers is checked, too. On
// PostgreSQL it reads every row, but not the indexes.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.verify(ctx); err != nil || s.file == "" {
		return err
	}
	path := WhatsAppFile(s.file) // messages do not depend on its keys
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil
	}
	return s.verifyFile(ctx, path)
}
