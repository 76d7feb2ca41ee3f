package dispatch

import (
	"context"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/batch"
)

const (
	recorders   = 2                     // number of goroutines that record outcomes
	maxRecord   = 1000                  // largest number of outcomes in one call
	recordFirst = 50 * time.Millisecond // wait after a failure; the wait doubles up to recordLast
	recordLast  = time.Second
)

// recorder writes outcomes to the store. After each call of the store, a goroutine takes the outcomes that arrived
// meanwhile, at most maxRecord. While the store does not answer, outcomes wait and nothing new is claimed. Outcomes are
// lost if the process ends before they are recorded, or if another node took over the session. Then the next owner finds
// attempts without an outcome.
type recorder struct {
	s       *scheduler
	pending *batch.Queue[pendingOutcome]

	mu      sync.Mutex
	failing int // number of goroutines that cannot record outcomes now
}

type pendingOutcome struct {
	m       *queuedMessage
	token   int64
	outcome puntuale.Outcome
	late    bool // true: the attempt was given up before, so nothing in memory waits for this outcome
}

func newRecorder(s *scheduler) *recorder {
	return &recorder{s: s, pending: batch.New[pendingOutcome]()}
}

func (r *recorder) push(m *queuedMessage, o puntuale.Outcome) {
	r.pending.Add(pendingOutcome{m: m, token: m.token, outcome: o})
}

func (r *recorder) pushLate(m *queuedMessage, o puntuale.Outcome) {
	r.pending.Add(pendingOutcome{m: m, token: m.token, outcome: o, late: true})
}

func (r *recorder) run(ctx context.Context) {
	for outcomes := range r.pending.Batches(ctx, maxRecord) {
		if !r.record(ctx, outcomes) {
			return
		}
	}
}

// record writes the batch. If the store does not answer, record tries again until the store answers or ctx ends.
func (r *recorder) record(ctx context.Context, outcomes []pendingOutcome) bool {
	wait := recordFirst
	for failed := false; ; failed = true {
		left, err := r.try(ctx, outcomes, failed)
		if len(left) == 0 {
			if failed {
				r.fails(-1)
			}
			return true
		}
		outcomes = left
		if ctx.Err() != nil {
			return false
		}
		if !failed {
			r.fails(1)
			r.s.cfg.Logger.Error("outcomes cannot be recorded, nothing is claimed until they are", "error", err)
		}
		if r.s.cfg.Clock.Sleep(ctx, wait) != nil {
			return false
		}
		wait = min(2*wait, recordLast)
	}
}

// try writes the outcomes once. If that fails, it writes each outcome alone, so that an outcome that the store refuses
// does not block the others. It returns the outcomes that are not recorded.
func (r *recorder) try(ctx context.Context, outcomes []pendingOutcome, alone bool) (left []pendingOutcome, err error) {
	if !alone {
		if err = r.write(ctx, outcomes); err != nil {
			left = outcomes
		}
		return left, err
	}
	for i := range outcomes {
		one := r.write(ctx, outcomes[i:i+1])
		if one == nil {
			continue
		}
		left, err = append(left, outcomes[i]), one
		if puntuale.StoreAway(one) || ctx.Err() != nil {
			return append(left, outcomes[i+1:]...), err
		}
	}
	return left, err
}

func (r *recorder) write(ctx context.Context, outcomes []pendingOutcome) error {
	results := make([]puntuale.Result, len(outcomes))
	for i, x := range outcomes {
		results[i] = puntuale.Result{MessageRef: x.m.ref(), Token: x.token, Outcome: x.outcome}
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := r.s.cfg.Clock.Now()
	applied, err := guarded(r.s, func() ([]bool, error) { return r.s.cfg.Queue.Record(ctx, now, results) })
	if err != nil {
		return err
	}
	r.s.cfg.Meter.Batch("record", len(outcomes), r.s.cfg.Clock.Now().Sub(now))
	lost := 0
	for _, ok := range applied {
		if !ok {
			lost++
		}
	}
	if lost > 0 {
		r.s.cfg.Meter.Fenced(lost)
	}
	r.s.mailbox.post(func() {
		for _, x := range outcomes {
			if x.late {
				continue
			}
			if v := x.outcome.Verdict; v == puntuale.Retry || v == puntuale.Uncertain {
				x.m.queue.lookahead.ReadFromStart()
			}
			r.s.finished(x.m)
			if x.outcome.Verdict == puntuale.Retry {
				r.s.retryChecks.known(retryCheck{x.m.queue, recipientKeyOf(&x.m.row)}) // the message may have been stopped in the meantime
			}
		}
	})
	return nil
}

// fails informs the scheduler when the store stops recording outcomes, and when it records them again. failures is 1 if
// a goroutine begins to fail, and -1 if it succeeds again.
func (r *recorder) fails(failures int) {
	r.mu.Lock()
	r.failing += failures
	stuck := r.failing > 0
	r.mu.Unlock()
	r.s.health.recording(!stuck)
	r.s.mailbox.post(func() { r.s.claims.stuck = stuck })
	if !stuck {
		r.s.cfg.Logger.Info("outcomes are recorded again")
	}
}
