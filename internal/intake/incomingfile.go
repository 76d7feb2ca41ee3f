package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/semaphore"
)

// FileFetcher keeps the files in people's replies, for clients whose settings ask for it. Any number of nodes may have one: each
// attempt is claimed in the store first, and a crash costs only the attempt.
type FileFetcher struct {
	Store interface {
		DueIncoming(ctx context.Context, now time.Time, after puntuale.ClientID) (all []puntuale.IncomingFile, more bool, err error)
		ClaimIncoming(ctx context.Context, x puntuale.IncomingFile, until time.Time) (claimed puntuale.IncomingFile, ok bool, err error)
		SettleIncoming(ctx context.Context, x puntuale.IncomingFile, next time.Time, k puntuale.KeptFile) error
	}
	// Keep fetches, checks and stores a file, and notes it at its reply. Codes: see control.Client.KeepFile.
	Keep   func(ctx context.Context, x puntuale.IncomingFile) error
	Clock  clock.Clock
	Logger *slog.Logger
}

// Limits of a fetcher. A partner gets at most as many slots as are free for others.
const (
	keptAtOnce     = 8
	keptPerClient  = 2
	keptLooksEvery = time.Second                               // how often it looks for other clients' files while some are being fetched
	keptWithin     = puntuale.IncomingFileWithin - time.Minute // so an attempt has ended before another one may begin
)

// Round makes all attempts that are due. It returns when none is left, or when ctx has ended.
func (f *FileFetcher) Round(ctx context.Context) error {
	slots := semaphore.New(keptAtOnce)
	var attempts sync.WaitGroup
	defer attempts.Wait()
	ended := make(chan struct{}, 1)
	var running atomic.Int32
	var after puntuale.ClientID
	for {
		all, more, err := f.Store.DueIncoming(ctx, f.Clock.Now(), after)
		if err != nil {
			return fmt.Errorf("look for files to keep: %w", err)
		}
		for _, x := range all {
			leave, ok := slots.TryEnter(semaphore.Holder{Key: x.Partner, Slots: semaphore.FairShare}, semaphore.Holder{Key: x.Client, Slots: keptPerClient})
			if !ok {
				continue
			}
			claimed, ok, err := f.Store.ClaimIncoming(ctx, x, f.Clock.Now().Add(puntuale.IncomingFileWithin))
			if err != nil || !ok {
				leave()
				if err != nil {
					return fmt.Errorf("claim a file: %w", err)
				}
				continue
			}
			running.Add(1)
			attempts.Go(func() {
				f.attempt(ctx, claimed)
				leave()
				running.Add(-1)
				select {
				case ended <- struct{}{}:
				default: // the round looks again anyway
				}
			})
		}
		if after = 0; more {
			after = all[len(all)-1].Client
		}
		switch none := running.Load() == 0; {
		case none && !more && len(all) == 0:
			return nil
		case !none && !more:
			f.wait(ctx, ended)
		}
		if ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // the server stops
		}
	}
}

// wait waits until an attempt ends, but at most a second.
func (f *FileFetcher) wait(ctx context.Context, ended <-chan struct{}) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	passed := make(chan struct{})
	go func() {
		_ = f.Clock.Sleep(within, keptLooksEvery)
		close(passed)
	}()
	select {
	case <-ended:
	case <-passed:
	}
}

var errTooOften = errors.New("attempts began too often")

// attempt makes one attempt, and stores why it failed. If it cannot, because the store is away or the server stops, another
// attempt begins after the deadline of this one.
func (f *FileFetcher) attempt(ctx context.Context, x puntuale.IncomingFile) {
	within, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	log := f.Logger.With("client_id", int64(x.Client), "reply_id", int64(x.Reply), "attempt", x.Tries)
	err := errTooOften // each of the attempts before ended with its process
	if x.Tries <= puntuale.IncomingFileTries {
		err = puntuale.Recovered(func() error { return f.Keep(within, x) })
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	reason, final := refused(err)
	var next time.Time
	if wait, further := puntuale.IncomingFileRetry(x.Tries); further && !final {
		next = f.Clock.Now().Add(wait)
	}
	if next.IsZero() {
		log.Warn("the file of a reply is not kept", "reason", string(reason.Code), "error", err)
	}
	if err := f.Store.SettleIncoming(ctx, x, next, puntuale.KeptFile{Code: reason.Code, Args: reason.Args}); err != nil {
		log.Warn("the end of an attempt to keep a file is not stored; another one follows", "error", err)
	}
}

// refused returns why a file is not kept, and whether a further attempt is useless.
func refused(err error) (reason puntuale.Reason, final bool) {
	reason = puntuale.Because(puntuale.FaultMediaUnavailable)
	e, known := errors.AsType[*puntuale.Error](err)
	if !known {
		return reason, false
	}
	switch e.Code {
	case puntuale.CodeNotFound: // what the reply needs was deleted; if the reply itself was, nothing is stored
		return puntuale.Because(puntuale.FaultMediaGone), true
	case puntuale.CodeGone, puntuale.CodeTooLarge, puntuale.CodeInvalid, puntuale.CodeQuotaReached:
		final = true
	}
	switch {
	case len(e.Faults) > 0:
		reason = e.Faults[0].Reason()
	case !e.Reason.IsZero():
		reason = e.Reason
	}
	return reason, final
}
