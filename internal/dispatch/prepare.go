package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"puntuale"
)

// Preparation runs in two pools, so that text never waits behind a slow fetch, and each session has a bounded part of
// its pool, so that a slow number delays nobody else.
const (
	textWorkers   = 256 // at most; few while they are quick
	textPerLane   = 32
	mediaWorkers  = 64
	mediaPerLane  = 8
	prepareWait   = 90 * time.Second
	panicsAllowed = 3
	repeatTries   = 4 // the backoff of a repeat that could not be prepared
	loadsAtOne    = 1
	loadMost      = 1000
)

// loader reads the contents of messages that came into memory.
type loader struct {
	waiting []*entry
	second  []*entry // what campaigns fed, when nothing else waits
	running int
}

func (l *loader) add(all ...*entry) {
	for _, e := range all {
		if e.m.Campaign != 0 {
			l.second = append(l.second, e)
		} else {
			l.waiting = append(l.waiting, e)
		}
	}
}

// errNoContent: the run's content cannot be found.
var errNoContent = errors.New("the message's content is gone")

// errNotAgain: the message's content does not ask to be sent again, or not yet.
var errNotAgain = errors.New("an unanswered attempt is not repeated")

// errPaused: the connector asked for quiet before this message's preparation began.
var errPaused = errors.New("the session is left alone for a while")

// queueLoad has a message's content read and the message prepared, once its session's pause is over.
func (s *scheduler) queueLoad(e *entry, now time.Time) {
	e.failed = nil
	if l := e.lane; now.Before(l.paused) {
		l.unprepared = append(l.unprepared, e)
		s.alarms.set(&l.alarm, l.paused)
		return
	}
	s.loader.add(e)
}

// endPause prepares what waited for the end of the lane's pause.
func (s *scheduler) endPause(l *lane, now time.Time) {
	if !now.Before(l.paused) && len(l.unprepared) > 0 {
		s.loader.add(l.unprepared...)
		l.unprepared = nil
	}
}

// load starts reading the contents of what waits for it.
func (s *scheduler) load() {
	for s.loader.running < loadsAtOne && len(s.loader.waiting)+len(s.loader.second) > 0 {
		list := &s.loader.waiting
		if len(*list) == 0 {
			list = &s.loader.second
		}
		n := min(len(*list), loadMost)
		batch := make([]*entry, 0, n)
		for _, e := range (*list)[:n] {
			if e.stage == loading {
				batch = append(batch, e)
			}
		}
		if n == len(*list) {
			clear(*list)
			*list = (*list)[:0]
		} else {
			*list = (*list)[n:]
		}
		if len(batch) == 0 {
			continue
		}
		s.loader.running++
		s.wg.Go(func() {
			err := s.readContents(batch)
			s.box.post(func() { s.gotContents(batch, err) })
		})
	}
}

// readContents fills in what the batch shows, and hands it to the pools. It runs beside the scheduler.
func (s *scheduler) readContents(batch []*entry) error {
	ctx, cancel := context.WithTimeout(s.ctx, callWait)
	defer cancel()
	seen := make(map[puntuale.StepRef]struct{}, len(batch))
	refs := make([]puntuale.StepRef, 0, len(batch))
	for _, e := range batch {
		ref := e.step()
		if _, ok := seen[ref]; !ok {
			seen[ref] = struct{}{}
			refs = append(refs, ref)
		}
	}
	found, err := s.cfg.Queue.Contents(ctx, refs)
	if err != nil {
		return err
	}
	for _, e := range batch {
		step, ok := found[e.step()]
		if !ok || step.Content == (puntuale.Content{}) { // whatever the reason: nothing empty is ever sent
			e.failed = errNoContent
			s.box.prepared(e)
			continue
		}
		e.content, e.window = step.Content, step.Window
		if e.window != nil {
			e.zone = location(step.Zone)
		}
		if e.repeat() && s.mustWait(e, s.cfg.Clock.Now()) {
			e.failed = errNotAgain
			s.box.prepared(e)
			continue
		}
		s.pools.submit(e)
	}
	return nil
}

func (e *entry) step() puntuale.StepRef {
	return puntuale.StepRef{RunRef: puntuale.RunRef{Client: e.m.Client, ID: e.m.Run}, Step: e.m.Step}
}

func (s *scheduler) gotContents(batch []*entry, err error) {
	s.loader.running--
	if err == nil {
		return
	}
	if s.ctx.Err() == nil {
		s.log.Warn("reading contents failed", "error", err)
	}
	after := s.cfg.Clock.Now().Add(s.cfg.Poll / 4)
	for _, e := range batch {
		e.lane.readAfter = after
		s.forget(e) // the poll finds it again
	}
}

// loaded takes a message back from its preparation.
func (s *scheduler) loaded(e *entry, now time.Time) {
	if e.stage != loading {
		return // dropped meanwhile
	}
	err := e.failed
	if err == nil {
		s.makeReady(e, now)
		return
	}
	refusal := puntuale.AsSendError(err)
	if refusal != nil && refusal.SessionWait() > 0 {
		s.pause(e.lane, now.Add(refusal.SessionWait()))
	}
	switch {
	case errors.Is(err, errPaused):
		s.queueLoad(e, now)
	case errors.Is(err, errNotAgain):
		s.leave(e, now)
	case errors.Is(err, errNoContent):
		s.refuse(e, puntuale.Because(puntuale.ReasonUnrecoverable), puntuale.ReasonOf(err))
	case refusal == nil || refusal.Kind == puntuale.Transient:
		s.retryPrepare(e, now, refusal, err)
	case refusal.Kind == puntuale.Final:
		s.refuse(e, refusal.Reason, refusal.Detail)
	default:
		s.putOff(e, now, refusal)
	}
}

// putOff postpones a message that was refused for now through no fault of its own. Later ones to its recipient wait for
// it, as after a refused attempt. It never leaves before its own moment: preparation runs ahead of that.
func (s *scheduler) putOff(e *entry, now time.Time, refusal *puntuale.SendError) {
	next := now.Add(refusal.Wait())
	if !next.After(e.m.Next) {
		next = e.m.Next.Add(refusal.Wait())
	}
	if !e.repeat() {
		e.lane.recipient(personOf(&e.m)).hold(&e.m, now, next, false)
	}
	s.postpone(e, next, refusal.Reason, refusal.Detail)
}

// retryPrepare postpones a message whose preparation failed for now; later ones to its recipient wait for it a while.
func (s *scheduler) retryPrepare(e *entry, now time.Time, refusal *puntuale.SendError, err error) {
	reason, detail := puntuale.Reason{}, puntuale.ReasonOf(err)
	if refusal != nil {
		reason, detail = refusal.Reason, refusal.Detail
	}
	var p *panicError
	if e.repeat() { // stands outside of its recipient's order, and is in no hurry: the network may have it
		if errors.As(err, &p) {
			s.giveUpRepeat(e)
			return
		}
		s.postpone(e, now.Add(puntuale.Backoff(e.m.ID, repeatTries)), reason, detail)
		return
	}
	r := e.lane.recipient(personOf(&e.m))
	tries := r.tries(e.m.ID) + 1
	if errors.As(err, &p) {
		s.log.Error("preparing a message panicked", "message_id", int64(e.m.ID), "session_id", int64(e.m.Session), "error", err)
		if tries >= panicsAllowed {
			s.refuse(e, puntuale.Because(puntuale.ReasonUnrecoverable), detail)
			return
		}
	}
	next := now.Add(puntuale.Backoff(e.m.ID, tries))
	if next.After(e.m.ValidUntil) {
		next = e.m.ValidUntil
	}
	r.hold(&e.m, now, next, true)
	s.postpone(e, next, reason, detail)
}

// panicError is a connector's panic, caught so that one message cannot take the others down.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// prepare asks the connector. It runs in a pool.
func (s *scheduler) prepare(e *entry) {
	defer func() {
		if v := recover(); v != nil {
			e.failed = &panicError{v}
		}
		s.box.prepared(e)
	}()
	if e.lane.quietUntil.Load() > s.cfg.Clock.Now().UnixMicro() {
		e.failed = errPaused
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, prepareWait)
	defer cancel()
	e.prepared, e.failed = e.lane.conn.Prepare(ctx, puntuale.Envelope{
		Client: e.m.Client, Session: e.m.Session, Run: e.m.Run, Message: e.m.ID,
		ConnectorID: puntuale.ConnectorID(e.m.ID, e.m.Generation),
		Attempt:     e.m.Attempt + 1, Repeat: e.repeat(),
		To: e.m.Phone, Content: e.content,
	})
}

// pools are where messages are prepared.
type pools struct{ text, media *pool }

func newPools(s *scheduler) pools {
	return pools{text: newPool(s, textWorkers, textPerLane), media: newPool(s, mediaWorkers, mediaPerLane)}
}

func (p pools) submit(e *entry) {
	if e.content.MediaURL != "" {
		p.media.submit(e)
	} else {
		p.text.submit(e)
	}
}

// pool prepares messages with a bounded number of goroutines, lanes in turn. It begins with one and doubles them while
// they get nothing done: a burst of quick preparations must not crowd out what is due now.
type pool struct {
	s            *scheduler
	most, atLane int

	mu       sync.Mutex
	running  int // goroutines
	done     int // preparations since relief looked
	relieved bool
	benches  map[*lane]*bench
	turns    fifo[*bench] // with work, and workers to spare
}

// bench is what one lane has waiting in a pool.
type bench struct {
	lane    *lane
	jobs    fifo[*entry]
	second  fifo[*entry] // what campaigns fed, when there is nothing else
	workers int
	listed  bool
}

func (b *bench) waiting() int { return b.jobs.len() + b.second.len() }

func (b *bench) pop() *entry {
	if b.jobs.len() > 0 {
		return b.jobs.pop()
	}
	return b.second.pop()
}

func newPool(s *scheduler, most, atLane int) *pool {
	return &pool{s: s, most: most, atLane: atLane, benches: map[*lane]*bench{}}
}

func (p *pool) submit(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.benches[e.lane]
	if b == nil {
		b = &bench{lane: e.lane}
		p.benches[e.lane] = b
	}
	if e.m.Campaign != 0 {
		b.second.push(e)
	} else {
		b.jobs.push(e)
	}
	p.list(b)
	if p.running == 0 {
		p.grow(1)
	}
	if !p.relieved {
		p.relieved = true
		p.s.wg.Go(p.relief)
	}
}

// list gives the bench a turn, if it has work and may have another worker. The pool is locked.
func (p *pool) list(b *bench) {
	if !b.listed && b.waiting() > 0 && b.workers < p.atLane {
		b.listed = true
		p.turns.push(b)
	}
}

// grow starts n more goroutines, as far as there may be. The pool is locked.
func (p *pool) grow(n int) {
	for range min(n, p.most-p.running) {
		p.running++
		p.s.wg.Go(p.work)
	}
}

// relief helps while work waits and those at work are stuck with theirs. It ends when none waits.
func (p *pool) relief() {
	for p.s.cfg.Clock.Sleep(p.s.ctx, reliefEvery) == nil {
		p.mu.Lock()
		if p.turns.len() == 0 {
			p.relieved = false
			p.mu.Unlock()
			return
		}
		if p.done < p.running {
			p.grow(min(p.running, p.turns.len()*p.atLane))
		}
		if p.running == 0 {
			p.grow(1)
		}
		p.done = 0
		p.mu.Unlock()
	}
}

const reliefEvery = time.Millisecond

// work prepares until there is nothing left to do.
func (p *pool) work() {
	p.mu.Lock()
	for p.turns.len() > 0 {
		b := p.turns.pop()
		b.listed = false
		e := b.pop()
		b.workers++
		p.list(b)
		p.mu.Unlock()
		p.s.prepare(e)
		p.mu.Lock()
		p.done++
		b.workers--
		p.list(b)
		if b.workers == 0 && b.waiting() == 0 {
			delete(p.benches, b.lane)
		}
	}
	p.running--
	p.mu.Unlock()
}
