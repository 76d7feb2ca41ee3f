package dispatch

import (
	"sync"
	"time"

	"puntuale"
)

// mailbox is how all other goroutines send work to the scheduler. They add mail and do not wait. The scheduler takes
// all mail together.
type mailbox struct {
	wake chan struct{} // contains one value while there is mail

	mu   sync.Mutex
	mail mail
}

// mail is everything that arrived since the scheduler last took mail. The scheduler handles calls first. Therefore, it
// handles the answer to a claim before the outcomes of the claim's messages.
type mail struct {
	calls    []func()
	prepared []*queuedMessage
	ended    []sendResult
	wakeups  map[puntuale.SessionID]wakeup
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), mail: newMail()}
}

func newMail() mail { return mail{wakeups: map[puntuale.SessionID]wakeup{}} }

// post makes the scheduler call f.
func (b *mailbox) post(f func()) {
	b.mu.Lock()
	b.mail.calls = append(b.mail.calls, f)
	b.mu.Unlock()
	b.notify()
}

func (b *mailbox) prepared(m *queuedMessage) {
	b.mu.Lock()
	b.mail.prepared = append(b.mail.prepared, m)
	b.mu.Unlock()
	b.notify()
}

func (b *mailbox) ended(r sendResult) {
	b.mu.Lock()
	b.mail.ended = append(b.mail.ended, r)
	b.mu.Unlock()
	b.notify()
}

func (b *mailbox) addWakeup(session puntuale.SessionID, due time.Time, local bool) {
	b.mu.Lock()
	w := b.mail.wakeups[session]
	w.here = w.here || local
	w.changed = w.changed || due.IsZero()
	if due.After(w.horizonEnd) {
		w.horizonEnd = due
	}
	if !due.IsZero() && (w.first.IsZero() || due.Before(w.first)) {
		w.first = due
	}
	b.mail.wakeups[session] = w
	b.mu.Unlock()
	b.notify()
}

func (b *mailbox) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take moves all mail into spare, and reuses the slices of spare for new mail. After that, the caller must not use the
// result of an earlier take.
func (b *mailbox) take(spare *mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(spare.calls)
	clear(spare.prepared)
	clear(spare.ended)
	clear(spare.wakeups)
	spare.calls, spare.prepared, spare.ended = spare.calls[:0], spare.prepared[:0], spare.ended[:0]
	b.mail, *spare = *spare, b.mail
}
