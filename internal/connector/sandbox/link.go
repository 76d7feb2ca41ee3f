package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"puntuale"
)

// A simulated phone links a session a few seconds after the first code was shown. The times are short, so that a person
// can watch the codes change. A phone whose number ends in EndingRefused never links.
const (
	CodeLife   = 3 * time.Second // how long each code is shown
	PhoneLinks = 8 * time.Second // when the phone links the session, counted from the first code
	pairingMax = time.Minute     // how long a pairing waits for a phone
)

// links contains the link of each session in the simulated network.
type links struct {
	report func(puntuale.LinkReport)
	online sync.Map // the sessions that are online; each send reads it

	mu   sync.Mutex
	open map[puntuale.SessionID]*simulated
}

// simulated is one open session.
type simulated struct {
	end   context.CancelFunc // ends the pairing under way; nil: no pairing
	ended chan struct{}
}

// WithLinks returns a connector like c whose sessions can be linked and unlinked. No session is online before Open.
// report is called at each change of a link, and must not block.
func (c *Connector) WithLinks(report func(puntuale.LinkReport)) *Connector {
	with := *c
	with.links = &links{report: report, open: map[puntuale.SessionID]*simulated{}}
	return &with
}

// Online reports whether the session can send. In a connector without links every session can.
func (c *Connector) Online(session puntuale.SessionID) bool {
	if c.links == nil {
		return true
	}
	_, online := c.links.online.Load(session)
	return online
}

// Open opens a session in its stored link state, because the simulated network stores no keys. If the stored state is a
// pairing, that pairing has ended, and the session opens unlinked.
func (c *Connector) Open(session puntuale.Session) {
	state := session.LinkOf()
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	c.links.open[session.ID] = &simulated{}
	switch state {
	case puntuale.LinkOnline, puntuale.LinkLinked:
		c.links.online.Store(session.ID, true)
	case puntuale.LinkPairing:
		c.links.report(puntuale.LinkReport{Session: session.ID, State: puntuale.LinkUnlinked, Detail: puntuale.Because(reasonPairingOver)})
	}
}

func (c *Connector) Close(_ context.Context, session puntuale.SessionID) {
	c.links.endPairing(session)
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	c.links.online.Delete(session)
	delete(c.links.open, session)
}

// Pair shows a new code every CodeLife, until the simulated phone links the session.
func (c *Connector) Pair(_ context.Context, session puntuale.SessionID, method puntuale.PairMethod, phone string) error {
	c.links.endPairing(session)
	ctx, cancel := context.WithCancel(context.Background())
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	s := c.links.open[session]
	if s == nil {
		cancel()
		return fmt.Errorf("session %d is not open", session)
	}
	c.links.online.Delete(session)
	s.end, s.ended = cancel, make(chan struct{})
	p := pairing{Connector: c, session: session, method: method, phone: phone, began: c.clock.Now()}
	p.show(p.began)
	go p.run(ctx, s.ended)
	return nil
}

// Reconnect only checks that the session is linked, because a linked session of the simulated network is always online.
// Codes: conflict if the session is not linked.
func (c *Connector) Reconnect(_ context.Context, session puntuale.SessionID) error {
	if !c.Online(session) {
		return puntuale.Conflict(puntuale.FaultSessionNotLinked)
	}
	return nil
}

func (c *Connector) Unlink(_ context.Context, session puntuale.SessionID) error {
	c.links.endPairing(session)
	c.links.online.Delete(session)
	return nil
}

// endPairing ends the current pairing. After endPairing returns, the pairing reports nothing.
func (l *links) endPairing(session puntuale.SessionID) {
	l.mu.Lock()
	s := l.open[session]
	if s == nil || s.end == nil {
		l.mu.Unlock()
		return
	}
	s.end()
	ended := s.ended
	l.mu.Unlock()
	<-ended
}

// pairing is one try to link a session.
type pairing struct {
	*Connector
	session puntuale.SessionID
	method  puntuale.PairMethod
	phone   string
	began   time.Time
}

// run shows one code after another until the phone links the session, or the pairing ends.
func (p *pairing) run(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	refused := ending(p.phone) == EndingRefused
	for shown := 1; ; shown++ {
		next := p.began.Add(time.Duration(shown) * CodeLife)
		links := p.began.Add(PhoneLinks)
		if !refused && !links.After(next) {
			next = links
		}
		if p.clock.Sleep(ctx, next.Sub(p.clock.Now())) != nil {
			return
		}
		p.links.mu.Lock()
		isOver := p.step(ctx, next, refused)
		p.links.mu.Unlock()
		if isOver {
			return
		}
	}
}

// step shows the next code. At the end of a pairing it reports the result and returns true. The caller holds the lock.
func (p *pairing) step(ctx context.Context, now time.Time, refused bool) (ended bool) {
	switch {
	case ctx.Err() != nil:
		return true
	case !refused && !now.Before(p.began.Add(PhoneLinks)):
		p.links.online.Store(p.session, true)
		p.links.report(puntuale.LinkReport{Session: p.session, State: puntuale.LinkOnline, Number: p.number()})
		return true
	case !now.Before(p.began.Add(pairingMax)):
		p.links.report(puntuale.LinkReport{Session: p.session, State: puntuale.LinkUnlinked, Detail: puntuale.Because(reasonCodeUnused)})
		return true
	}
	p.show(now)
	return false
}

// show reports a new random code.
func (p *pairing) show(now time.Time) {
	code := puntuale.PairingCode{Method: p.method, Text: "sandbox:" + p.session.String() + "," + rand.Text()}
	if p.method == puntuale.PairCode {
		random := rand.Text()
		code.Text = random[:4] + "-" + random[4:8]
	}
	p.links.report(puntuale.LinkReport{Session: p.session, State: puntuale.LinkPairing, Code: code, Until: now.Add(CodeLife)})
}

// number returns the number of the simulated phone: the number of the pairing request, or else a number that nobody
// has.
func (p *pairing) number() string {
	if p.phone != "" {
		return p.phone
	}
	return fmt.Sprintf("+3900%08d", p.session)
}
