// Package replan applies edited sequences to the bookings that there are. One node works on a replan at a time. Each
// booking is one transaction, and while calls arrive the node rests after each, because a call waits for it.
package replan

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config contains the parts of a [Runner]. All must be set.
type Config struct {
	Store   Store
	Planner func(ctx context.Context, r puntuale.Replan) (Planner, error)
	Bound   func() (rows int, calls bool)
	Node    func() puntuale.NodeID // returns this node's id; 0: the node does no background work
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Store is the part of the store that a runner uses.
type Store interface {
	RunningReplans(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.Replan, error)
	KeepReplan(ctx context.Context, node puntuale.NodeID, was, is puntuale.Replan, now time.Time) (kept bool, err error)
}

// Planner plans the bookings of one sequence as it is now.
type Planner interface {
	Edited() time.Time // when the sequence was last changed
	// Next returns ids and references of bookings after r.Cursor, and the cursor after them; 0: there are no more.
	Next(ctx context.Context, r puntuale.Replan, limit int) (some []puntuale.Booking, cursor puntuale.BookingID, err error)
	// Apply changes one booking. A booking that cannot be planned is counted as refused.
	Apply(ctx context.Context, reference string) (puntuale.ReplanCounts, error)
}

// Runner works on the replans of all clients. Call Run only once.
type Runner struct{ Config }

const (
	idleEvery  = time.Second
	leaseFor   = 30 * time.Second
	chunk      = 50                     // bookings between two stored cursors
	within     = 200 * time.Millisecond // how long the runner works on one replan before it goes to the next
	callWithin = 15 * time.Second       // shorter than leaseFor, so that another node does not begin meanwhile
	rest       = 1                      // while calls arrive, a rest is this many times as long as a booking took
	restAtMost = time.Second
)

// New returns a runner. It does nothing before Run.
func New(cfg Config) *Runner { return &Runner{cfg} }

// Run works until ctx ends.
func (w *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := idleEvery
		if node := w.Node(); node != 0 && w.Round(ctx, node) {
			wait = 0
		}
		if w.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// Round works a while on each replan. It returns true if more work is ready.
func (w *Runner) Round(ctx context.Context, node puntuale.NodeID) (more bool) {
	asked, cancel := context.WithTimeout(ctx, callWithin)
	all, err := w.Store.RunningReplans(asked, node, w.Clock.Now())
	cancel()
	if err != nil {
		w.failed(ctx, puntuale.Replan{}, err)
		return false
	}
	for _, r := range all {
		ready := false
		err := puntuale.Recovered(func() (err error) {
			ready, err = w.work(ctx, node, r)
			return err
		})
		if err != nil {
			w.failed(ctx, r, err)
		}
		more = more || ready
	}
	return more
}

func (w *Runner) failed(ctx context.Context, r puntuale.Replan, err error) {
	if ctx.Err() == nil && !errors.Is(err, errMoved) {
		w.Logger.Warn("replanning failed", "client_id", int64(r.Client), "sequence_id", int64(r.Sequence), "error", err)
	}
}

// errMoved means that the replan was paused, cancelled or taken over since it was read.
var errMoved = errors.New("the replan was moved on")

func (w *Runner) keep(ctx context.Context, node puntuale.NodeID, was *puntuale.Replan, is puntuale.Replan) error {
	now := w.Clock.Now()
	is.Owned = now.Add(leaseFor)
	kept, err := w.Store.KeepReplan(ctx, node, *was, is, now)
	if err == nil && !kept {
		err = errMoved
	}
	if err == nil {
		*was = is
	}
	return err
}

// work does a part of one replan. The node owns the replan before it changes a booking.
func (w *Runner) work(ctx context.Context, node puntuale.NodeID, r puntuale.Replan) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if err := w.keep(ctx, node, &r, r); err != nil {
		return false, err
	}
	p, err := w.Planner(ctx, r)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound { // the sequence was deleted
		ended := r
		ended.State, ended.Ended = puntuale.ReplanCancelled, w.Clock.Now()
		return false, w.keep(ctx, node, &r, ended)
	}
	if err != nil {
		return false, err
	}
	if !p.Edited().Equal(r.Edited) { // edited again: all bookings get the newest texts
		again := r
		again.Edited, again.Cursor, again.Last, again.ReplanCounts = p.Edited(), 0, puntuale.BookingID(puntuale.MaxID), puntuale.ReplanCounts{Planned: r.Planned, Moved: r.Moved, Cancelled: r.Cancelled}
		if err := w.keep(ctx, node, &r, again); err != nil {
			return false, err
		}
	}
	for end := w.Clock.Now().Add(within); ; {
		done, err := w.chunk(ctx, node, p, &r, end)
		if done || err != nil {
			return false, err
		}
		if !w.Clock.Now().Before(end) {
			return true, nil
		}
	}
}

// chunk changes some bookings, and stores the cursor after them. It may stop at the time end.
func (w *Runner) chunk(ctx context.Context, node puntuale.NodeID, p Planner, r *puntuale.Replan, end time.Time) (done bool, err error) {
	some, cursor, err := p.Next(ctx, *r, chunk)
	if err != nil {
		return false, err
	}
	is := *r
	for i, b := range some {
		begun := w.Clock.Now()
		did, err := p.Apply(ctx, b.Reference)
		if err != nil {
			return false, err
		}
		is.Add(did)
		if _, calls := w.Bound(); calls {
			if err := w.Clock.Sleep(ctx, min(rest*w.Clock.Now().Sub(begun), restAtMost)); err != nil {
				return false, err
			}
		}
		if i < len(some)-1 && !w.Clock.Now().Before(end) {
			is.Cursor = b.ID
			return false, w.keep(ctx, node, r, is)
		}
	}
	if is.Cursor = cursor; cursor == 0 {
		is.Cursor = r.Cursor
		now, err := w.Planner(ctx, *r)
		if err != nil || !now.Edited().Equal(r.Edited) { // edited again meanwhile: the next round begins anew
			return true, errors.Join(err, w.keep(ctx, node, r, is))
		}
		is.State, is.Ended = puntuale.ReplanDone, w.Clock.Now()
	}
	return cursor == 0, w.keep(ctx, node, r, is)
}
