package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"puntuale"
)

const (
	recorders   = 2    // goroutines
	recordMost  = 1000 // outcomes a call
	settleMost  = 1000
	recordFirst = 50 * time.Millisecond // wait after a failure, doubled up to recordLast
	recordLast  = time.Second
)

// recorder writes outcomes: each goroutine takes whatever ended while the previous call was committing. Outcomes are
// never dropped: while the store is away they wait, and nothing new is claimed.
type recorder struct {
	s    *scheduler
	wake chan struct{}

	mu      sync.Mutex
	pending []recording
	failing int // goroutines that cannot record
}

type recording struct {
	e        *entry
	token    int64
	outcome  puntuale.Outcome
	evidence bool // of an attempt already given up: nothing in memory waits for it
}

func newRecorder(s *scheduler) *recorder {
	return &recorder{s: s, wake: make(chan struct{}, 1)}
}

func (r *recorder) push(e *entry, o puntuale.Outcome) {
	r.add(recording{e: e, token: e.token, outcome: o})
}

func (r *recorder) evidence(e *entry, o puntuale.Outcome) {
	r.add(recording{e: e, token: e.token, outcome: o, evidence: true})
}

func (r *recorder) add(x recording) {
	r.mu.Lock()
	r.pending = append(r.pending, x)
	r.mu.Unlock()
	r.ring()
}

func (r *recorder) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for batch := r.next(); len(batch) > 0; batch = r.next() {
			if !r.record(ctx, batch) {
				return
			}
		}
	}
}

// next takes a batch, and wakes the other goroutine when there is more.
func (r *recorder) next() []recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) <= recordMost {
		batch := r.pending
		r.pending = nil
		return batch
	}
	batch := r.pending[:recordMost:recordMost]
	r.pending = r.pending[recordMost:]
	r.ring()
	return batch
}

// record writes the batch, however long the store is away; it gives up only when ctx ends.
func (r *recorder) record(ctx context.Context, batch []recording) bool {
	wait := recordFirst
	for failed := false; ; failed = true {
		left, err := r.try(ctx, batch, failed)
		if len(left) == 0 {
			if failed {
				r.fails(-1)
			}
			return true
		}
		batch = left
		if ctx.Err() != nil {
			return false
		}
		if !failed {
			r.fails(1)
			r.s.log.Error("outcomes cannot be recorded, nothing is claimed until they are", "error", err)
		}
		if r.s.cfg.Clock.Sleep(ctx, wait) != nil {
			return false
		}
		wait = min(2*wait, recordLast)
	}
}

// try writes the batch at once, or, if that failed before, each outcome alone, so that one that the store will not
// take cannot keep the others. It returns what is still to be recorded.
func (r *recorder) try(ctx context.Context, batch []recording, alone bool) (left []recording, err error) {
	if !alone {
		if err = r.write(ctx, batch); err != nil {
			left = batch
		}
		return left, err
	}
	for i := range batch {
		one := r.write(ctx, batch[i:i+1])
		if one == nil {
			continue
		}
		left, err = append(left, batch[i]), one
		if puntuale.StoreAway(one) || ctx.Err() != nil {
			return append(left, batch[i+1:]...), err
		}
	}
	return left, err
}

func (r *recorder) write(ctx context.Context, batch []recording) error {
	results := make([]puntuale.Result, len(batch))
	for i, x := range batch {
		results[i] = puntuale.Result{MessageRef: x.e.ref(), Token: x.token, Outcome: x.outcome}
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := r.s.cfg.Clock.Now()
	applied, err := r.s.cfg.Queue.Record(ctx, now, results)
	if err != nil {
		return err
	}
	r.s.cfg.Meter.Batch("record", len(batch), r.s.cfg.Clock.Now().Sub(now))
	lost := 0
	for _, ok := range applied {
		if !ok {
			lost++
		}
	}
	if lost > 0 {
		r.s.cfg.Meter.Fenced(lost)
	}
	r.s.box.post(func() {
		for _, x := range batch {
			if x.evidence {
				continue
			}
			if v := x.outcome.Verdict; v == puntuale.Retry || v == puntuale.Uncertain {
				x.e.lane.stray()
			}
			r.s.finished(x.e)
			if x.outcome.Verdict == puntuale.Retry {
				r.s.doubts.known(doubt{x.e.lane, personOf(&x.e.m)}) // it may have been stopped meanwhile
			}
		}
	})
	return nil
}

// fails tells the scheduler when the store is away, and when it is back.
func (r *recorder) fails(by int) {
	r.mu.Lock()
	r.failing += by
	stuck := r.failing > 0
	r.mu.Unlock()
	r.s.health.recording(!stuck)
	r.s.box.post(func() { r.s.claims.stuck = stuck })
	if !stuck {
		r.s.log.Info("outcomes are recorded again")
	}
}

// settler closes and postpones messages that are not in flight. What it cannot write is dropped from memory: the row is
// as it was, and the poll finds it again.
type settler struct {
	s    *scheduler
	wake chan struct{}

	mu      sync.Mutex
	pending []ending
}

type ending struct {
	e       *entry
	s       puntuale.Settlement
	verdict string
	offline bool
	node    puntuale.NodeID
}

func newSettler(s *scheduler) *settler {
	return &settler{s: s, wake: make(chan struct{}, 1)}
}

func (t *settler) push(x ending) {
	t.mu.Lock()
	t.pending = append(t.pending, x)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *settler) run(ctx context.Context) {
	for {
		select {
		case <-t.wake:
		case <-ctx.Done():
			return
		}
		for {
			t.mu.Lock()
			batch := t.pending[:min(len(t.pending), settleMost)]
			t.pending = t.pending[len(batch):]
			t.mu.Unlock()
			if len(batch) == 0 {
				break
			}
			err := t.write(ctx, batch)
			t.s.box.post(func() { t.s.settled(batch, err) })
		}
	}
}

func (t *settler) write(ctx context.Context, batch []ending) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := t.s.cfg.Clock.Now()
	if err := t.explain(ctx, batch, now); err != nil {
		return err
	}
	settlements := make([]puntuale.Settlement, len(batch))
	for i := range batch {
		settlements[i] = batch[i].s
	}
	return t.s.cfg.Queue.Settle(ctx, batch[0].node, now, settlements)
}

// explain says why expired messages did not leave: what held their client, else their session, else nothing but time.
func (t *settler) explain(ctx context.Context, batch []ending, now time.Time) error {
	asked := map[puntuale.ClientID]bool{}
	var clients []puntuale.ClientID
	for _, x := range batch {
		if x.verdict == "expired" && !asked[x.e.m.Client] {
			asked[x.e.m.Client] = true
			clients = append(clients, x.e.m.Client)
		}
	}
	if len(clients) == 0 {
		return nil
	}
	found, err := t.s.cfg.Queue.Standings(ctx, clients)
	if err != nil {
		return err
	}
	for i := range batch {
		x := &batch[i]
		if x.verdict != "expired" {
			continue
		}
		switch hold := found[x.e.m.Client].Hold(now); {
		case hold != "":
			x.s.Reason = puntuale.Because(hold)
		case x.e.lane.session.ByDevice() && x.e.lane.session.LinkOf() == puntuale.LinkOnline:
			x.s.Reason = puntuale.Because(puntuale.ReasonNotTaken)
		case x.offline:
			x.s.Reason = puntuale.Because(puntuale.ReasonNotLinked)
		default:
			x.s.Reason = puntuale.Because(puntuale.ReasonExpired)
		}
	}
	return nil
}

// settled forgets what was closed or postponed.
func (s *scheduler) settled(batch []ending, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("closing or postponing messages failed", "error", err)
	}
	if errors.Is(err, puntuale.ErrFenced) {
		s.fenced(batch[0].node)
	}
	for _, x := range batch {
		if err == nil {
			s.cfg.Meter.Outcome(x.e.lane.traits.Name, x.verdict, 1)
		}
		if err == nil && x.s.State == puntuale.Failed {
			if r := x.e.lane.recipients[personOf(&x.e.m)]; r != nil {
				r.release(x.e.m.ID)
			}
		}
		s.forget(x.e)
	}
}
