package datakey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
)

// Store has everything that is sealed, and knows which servers run.
type Store interface {
	puntuale.SecretStore
	// KeyReaders counts the servers that read their keys again, those of them that have not read the version yet, and
	// the servers of a version of the program that cannot.
	KeyReaders(ctx context.Context, version int64) (running, behind, former int64, err error)
	// SealAgain goes once through everything that is sealed, and seals again what does not begin with id. It returns how
	// many values it sealed again, and how many cannot be opened by the function again.
	SealAgain(ctx context.Context, id []byte, again func(purpose, place string, sealed []byte) ([]byte, error)) (count, lost int, err error)
}

// Config is what [Replace] needs.
type Config struct {
	Store  Store
	Master []byte // the master key; nil: there is none
	Clock  clock.Clock
	Settle time.Duration // how long what a server sealed may take until it is stored; [Settle]
	Report func(p Progress)
}

// Settle is longer than a call takes from sealing to its commit.
const Settle = 30 * time.Second

// How often Replace looks at the servers, and how long it waits for them.
const (
	lookEvery = time.Second
	lookFor   = 2 * time.Minute
)

// Progress says what a replacement does now.
type Progress struct {
	Waits  int64 // for so many servers, which have not read the new key
	Sealed int   // values that were sealed again
}

// Result says what a replacement did.
type Result struct {
	Sealed int // values that were sealed again, some of them more than once
	Lost   int // values that no key opens, before and after; they stay as they are
}

// Errors of [Replace], besides those of [auth.BeginReplacement].
var (
	ErrFormerServers = errors.New("servers of a former version of the program run, and cannot read a new data key")
	ErrServersWait   = errors.New("servers have not read the keys")
)

// Replace makes a new data key, seals everything with it, and removes the former one. If it fails or is killed, the next
// call continues. Several processes may call it at once.
func Replace(ctx context.Context, cfg Config) (done Result, err error) {
	if _, _, former, err := cfg.Store.KeyReaders(ctx, 0); err != nil {
		return done, err
	} else if former > 0 {
		return done, fmt.Errorf("%w (%d)", ErrFormerServers, former)
	}
	r, err := auth.BeginReplacement(ctx, cfg.Store, cfg.Master)
	if err != nil {
		return done, err
	}
	if _, err := cfg.readBy(ctx, r.Version()); err != nil {
		return done, err
	}
	if err := r.Switch(ctx); err != nil {
		return done, err
	}
	running, err := cfg.readBy(ctx, r.Version())
	if err != nil {
		return done, err
	}
	since := cfg.Clock.Now()
	pass := func() (count int, err error) {
		if count, done.Lost, err = cfg.Store.SealAgain(ctx, r.ID(), r.Again); err == nil {
			done.Sealed += count
			cfg.Report(Progress{Sealed: done.Sealed})
		}
		return count, err
	}
	if _, err := pass(); err != nil {
		return done, err
	}
	if rest := cfg.Settle - cfg.Clock.Now().Sub(since); running && rest > 0 {
		if err := cfg.Clock.Sleep(ctx, rest); err != nil {
			return done, err
		}
	}
	for {
		count, err := pass()
		if err != nil {
			return done, err
		}
		if count > 0 {
			continue
		}
		if _, err := cfg.readBy(ctx, r.Version()); err != nil { // a server may have come back since
			return done, err
		}
		return done, r.End(ctx)
	}
}

// readBy waits until every server has read a version of the keys. It reports whether there is a server.
func (cfg *Config) readBy(ctx context.Context, version int64) (running bool, err error) {
	for until := cfg.Clock.Now().Add(lookFor); ; {
		all, behind, former, err := cfg.Store.KeyReaders(ctx, version)
		switch {
		case err != nil:
			return false, err
		case former > 0:
			return false, fmt.Errorf("%w (%d)", ErrFormerServers, former)
		case behind == 0:
			return all > 0, nil
		case !cfg.Clock.Now().Before(until):
			return false, fmt.Errorf("%w (%d of %d)", ErrServersWait, behind, all)
		}
		cfg.Report(Progress{Waits: behind})
		if err := cfg.Clock.Sleep(ctx, lookEvery); err != nil {
			return false, err
		}
	}
}
