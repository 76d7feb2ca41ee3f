package dispatch

import (
	"context"
	"errors"
	"time"

	"puntuale"
)

// There are two pools for preparing messages, so that a text never waits behind a slow download. Each session may use
// only a part of a pool, so that a slow session does not delay others.
const (
	textWorkers     = 256 // the largest number of workers; the pool stays small while preparations are quick
	textPerSession  = 32
	mediaWorkers    = 64
	mediaPerSession = 8
	prepareWait     = 90 * time.Second
	panicsAllowed   = 3
	repeatTries     = 4 // after a failed preparation, a repeat waits as long as a normal message waits after this number of failures
	loadsAtOne      = 1
	maxLoad         = 1000
)

// loader reads the contents of messages that were added to memory.
type loader struct {
	waiting   []*queuedMessage
	campaigns []*queuedMessage // messages of campaigns, which are read only if no other message waits
	running   int
	pools     workerPools
}

func (l *loader) add(all ...*queuedMessage) {
	for _, m := range all {
		if m.row.Campaign != 0 {
			l.campaigns = append(l.campaigns, m)
		} else {
			l.waiting = append(l.waiting, m)
		}
	}
}

// errNoContent means that the content of the message was removed.
var errNoContent = errors.New("the message's content is gone")

// errNotAgain means that the message must not be sent again, or not yet.
var errNotAgain = errors.New("an unanswered attempt is not repeated")

// errPaused means that the connector asked for a pause before the dispatcher prepared this message.
var errPaused = errors.New("the session is left alone for a while")

// queueLoad queues a message, so that its content is read and it is prepared. If the session is paused, the message
// waits until the end of the pause.
func (s *scheduler) queueLoad(m *queuedMessage, now time.Time) {
	m.failed = nil
	if q := m.queue; q.pause.active(now) {
		q.pause.waiting = append(q.pause.waiting, m)
		s.timers.set(&q.timer, q.pause.end)
		return
	}
	s.loader.add(m)
}

// load starts to read the contents of queued messages.
func (s *scheduler) load() {
	for s.loader.running < loadsAtOne && len(s.loader.waiting)+len(s.loader.campaigns) > 0 {
		list := &s.loader.waiting
		if len(*list) == 0 {
			list = &s.loader.campaigns
		}
		n := min(len(*list), maxLoad)
		batch := make([]*queuedMessage, 0, n)
		for _, m := range (*list)[:n] {
			if m.stage == loading {
				batch = append(batch, m)
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
		s.life.wg.Go(func() {
			err := puntuale.Recovered(func() error { return s.readContents(batch) })
			s.mailbox.post(func() { s.gotContents(batch, err) })
		})
	}
}

// readContents reads the contents of a batch of messages, and gives the messages to the worker pools. It does not run
// on the scheduler's goroutine.
func (s *scheduler) readContents(batch []*queuedMessage) error {
	ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
	defer cancel()
	seen := make(map[puntuale.StepRef]struct{}, len(batch))
	refs := make([]puntuale.StepRef, 0, len(batch))
	for _, m := range batch {
		ref := m.step()
		if _, ok := seen[ref]; !ok {
			seen[ref] = struct{}{}
			refs = append(refs, ref)
		}
	}
	found, err := s.cfg.Queue.Contents(ctx, refs)
	if err != nil {
		return err
	}
	for _, m := range batch {
		step, ok := found[m.step()]
		if !ok || step.Content.Empty() { // an empty content counts as missing, so that no empty message is sent
			m.failed = errNoContent
			s.mailbox.prepared(m)
			continue
		}
		m.content, m.window = step.Content, step.Window
		if m.window != nil {
			m.zone = location(step.Zone)
		}
		if m.repeat() && s.mustWait(m, s.cfg.Clock.Now()) {
			m.failed = errNotAgain
			s.mailbox.prepared(m)
			continue
		}
		s.loader.pools.submit(m)
	}
	return nil
}

func (m *queuedMessage) step() puntuale.StepRef {
	return puntuale.StepRef{RunRef: puntuale.RunRef{Client: m.row.Client, ID: m.row.Run}, Step: m.row.Step}
}

func (s *scheduler) gotContents(batch []*queuedMessage, err error) {
	s.loader.running--
	if err == nil {
		return
	}
	if s.life.ctx.Err() == nil {
		s.cfg.Logger.Warn("reading contents failed", "error", err)
	}
	after := s.cfg.Clock.Now().Add(s.cfg.Poll / 4)
	for _, m := range batch {
		m.queue.lookahead.Delay(after)
		s.forget(m) // the next poll finds the message again
	}
}

// gotPrepared handles a message after its preparation.
func (s *scheduler) gotPrepared(m *queuedMessage, now time.Time) {
	if m.stage != loading {
		return // the message was removed from memory in the meantime
	}
	err := m.failed
	if err == nil {
		s.makeReady(m, now)
		return
	}
	switch {
	case errors.Is(err, errPaused):
		s.queueLoad(m, now)
	case errors.Is(err, errNotAgain):
		s.awaitReceipt(m, now)
	case errors.Is(err, errNoContent):
		s.refuse(m, puntuale.Because(puntuale.ReasonUnrecoverable), puntuale.ReasonOf(err))
	default:
		s.prepareFailed(m, now, err)
	}
}

// prepare calls the connector's Prepare for a message. It runs in a goroutine of a pool. A panic is an error of this message.
func (s *scheduler) prepare(m *queuedMessage) {
	m.failed = puntuale.Recovered(func() error { return s.prepareAt(m) })
	s.mailbox.prepared(m)
}

func (s *scheduler) prepareAt(m *queuedMessage) (err error) {
	if m.queue.pause.activeShared(s.cfg.Clock.Now()) {
		return errPaused
	}
	ctx, cancel := context.WithTimeout(s.life.ctx, prepareWait)
	defer cancel()
	m.prepared, err = m.queue.conn.Prepare(ctx, puntuale.Envelope{
		Client: m.row.Client, Session: m.row.Session, Run: m.row.Run, Message: m.row.ID,
		ConnectorID: puntuale.ConnectorID(m.row.ID, m.row.Generation),
		Attempt:     m.row.Attempt + 1, Repeat: m.repeat(),
		To: m.row.Phone, Content: m.content, Purpose: m.row.Purpose, Campaign: m.row.Campaign != 0, ValidUntil: m.row.ValidUntil,
	})
	return err
}
