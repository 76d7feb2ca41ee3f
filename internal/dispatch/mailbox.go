package dispatch

import (
	"sync"
	"time"

	"puntuale"
)

// mailbox is how every other goroutine reaches the scheduler: they leave mail and go on; the scheduler takes all there
// is at once.
type mailbox struct {
	wake chan struct{} // holds one token while there is mail

	mu   sync.Mutex
	mail mail
}

// mail is what came since the scheduler last looked. Calls run before the rest is read, so that a claim's answer is
// always known before the outcome of one of its messages.
type mail struct {
	calls    []func()
	prepared []*entry
	ended    []attempt
	hints    map[puntuale.SessionID]hint
}

// hint is what came for one session.
type hint struct {
	here    bool      // it comes from this node, whatever others told besides
	changed bool      // sessions changed
	first   time.Time // the earliest moment at which something is due; zero: none was said
	until   time.Time // the latest
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), mail: newMail()}
}

func newMail() mail { return mail{hints: map[puntuale.SessionID]hint{}} }

// post has the scheduler run f.
func (b *mailbox) post(f func()) {
	b.mu.Lock()
	b.mail.calls = append(b.mail.calls, f)
	b.mu.Unlock()
	b.ring()
}

func (b *mailbox) prepared(e *entry) {
	b.mu.Lock()
	b.mail.prepared = append(b.mail.prepared, e)
	b.mu.Unlock()
	b.ring()
}

func (b *mailbox) ended(a attempt) {
	b.mu.Lock()
	b.mail.ended = append(b.mail.ended, a)
	b.mu.Unlock()
	b.ring()
}

func (b *mailbox) hint(session puntuale.SessionID, due time.Time, here bool) {
	b.mu.Lock()
	h := b.mail.hints[session]
	h.here = h.here || here
	h.changed = h.changed || due.IsZero()
	if due.After(h.until) {
		h.until = due
	}
	if !due.IsZero() && (h.first.IsZero() || due.Before(h.first)) {
		h.first = due
	}
	b.mail.hints[session] = h
	b.mu.Unlock()
	b.ring()
}

func (b *mailbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the box into a mail whose slices are reused: what an earlier take returned must no longer be in use.
func (b *mailbox) take(spare *mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(spare.calls)
	clear(spare.prepared)
	clear(spare.ended)
	clear(spare.hints)
	spare.calls, spare.prepared, spare.ended = spare.calls[:0], spare.prepared[:0], spare.ended[:0]
	b.mail, *spare = *spare, b.mail
}
