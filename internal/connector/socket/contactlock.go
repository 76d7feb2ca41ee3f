//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"puntuale/internal/clock"
)

// The library reads an encryption state, changes it and writes it back. Several goroutines may do so at the same time.
// One decrypts, one encrypts a message, and one encrypts a message again for a device that requests it. If two
// goroutines change the same state, the later write overwrites the earlier change. Then the next message has a message
// number that was used before. The recipient treats this message as a repeat: it acknowledges the message and never
// shows it. So each contact has a lock, and only the lock's owner changes the contact's states. In error texts, a turn
// is the time in which one goroutine owns a lock.
//
// Two rules prevent deadlocks and long waits. First, a goroutine with a database connection never waits for a lock,
// because there may be only one connection. Second, a goroutine that waits for the network normally owns no lock.
//
// If a decryption finds a contact locked, it therefore ends its transaction, waits for the lock, and begins again. A
// goroutine that sends a message reads the states without a lock. If another goroutine owned the lock between this read
// and the sender's write, the sender encrypts the message again. The second time, it takes the lock before it reads.

// errMoved says that another goroutine changed a state while a message was encrypted. No byte of the message left.
var errMoved = errors.New("the state of encryption changed meanwhile")

// errBusy ends work that found a contact locked but must not wait inside its transaction.
var errBusy = errors.New("another has the turn")

// A goroutine that reads a state in order to write it gets the contact's lock as a loan, because the goroutine may
// never write. After loanLasts any other goroutine may take the lock. Then the first goroutine's write is refused,
// because its state may be out of date. If the state was needed for a message, the library encrypts that message again
// when the device requests it.
const loanLasts = 2 * time.Second

// contactLocks contains the contact locks of one number. It is safe for concurrent use.
type contactLocks struct {
	clock clock.Clock
	mu    sync.Mutex
	held  map[string]*contactLock // the key is the contact
	sends map[string]bool         // contacts of the message that is being sent; true: another goroutine owned the lock meanwhile
}

type contactLock struct {
	contact  string
	loanEnd  time.Time     // when the loan ends; zero: the lock ends only when its owner returns it
	loan     string        // the address whose state the borrower read; "": not a loan
	released chan struct{} // closed when the lock is returned, or when another goroutine took it
}

func newContactLocks(c clock.Clock) *contactLocks {
	return &contactLocks{clock: c, held: map[string]*contactLock{}}
}

// contactOf returns the contact to which an encryption address of the library belongs: the number or the LID, without
// the device. All devices of a contact share one lock.
func contactOf(address string) string {
	if end := strings.IndexAny(address, ":_"); end >= 0 {
		return address[:end]
	}
	return address
}

// contactsOf returns the contacts of several addresses, each once, sorted.
func contactsOf(addresses iter.Seq[string]) (all []string) {
	for address := range addresses {
		all = append(all, contactOf(address))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// try takes the lock of a contact if the lock is free. If loan is empty, the lock lasts until giveBack. Otherwise loan
// is the address of a state, and the lock is a loan that lasts for loanLasts. try returns the contact's present lock,
// and whether the caller owns it. left is the remaining time of another goroutine's loan.
func (t *contactLocks) try(contact, loan string) (_ *contactLock, left time.Duration, got bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if held := t.held[contact]; held != nil {
		switch {
		case held.loanEnd.IsZero():
			return held, 0, false
		case now.Before(held.loanEnd):
			return held, held.loanEnd.Sub(now), false
		}
		close(held.released)
	}
	taken := &contactLock{contact: contact, loan: loan, released: make(chan struct{})}
	if loan != "" {
		taken.loanEnd = now.Add(loanLasts)
	}
	t.held[contact] = taken
	return taken, 0, true
}

// take waits until a contact's lock is free, and then takes it like try.
func (t *contactLocks) take(ctx context.Context, contact, loan string) (*contactLock, error) {
	for {
		held, left, taken := t.try(contact, loan)
		if taken {
			return held, nil
		}
		var timeout <-chan time.Time
		stop := func() {}
		if left > 0 {
			timeout, stop = t.clock.After(left)
		}
		select {
		case <-held.released:
		case <-timeout:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// takeAll waits for the locks of several contacts. All callers take locks in the same order, which prevents deadlocks.
func (t *contactLocks) takeAll(ctx context.Context, contacts []string) ([]*contactLock, error) {
	taken := make([]*contactLock, 0, len(contacts))
	for _, contact := range contacts {
		lock, err := t.take(ctx, contact, "")
		if err != nil {
			t.giveBack(taken...)
			return nil, err
		}
		taken = append(taken, lock)
	}
	return taken, nil
}

// giveBack returns the caller's locks. If a loan ended and another goroutine took the lock, that goroutine keeps it. If
// a message to the contact is being sent, giveBack marks the contact, because the caller may have changed a state that
// the message uses.
func (t *contactLocks) giveBack(taken ...*contactLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, lock := range taken {
		if t.held[lock.contact] != lock {
			continue
		}
		close(lock.released)
		delete(t.held, lock.contact)
		if _, meant := t.sends[lock.contact]; meant {
			t.sends[lock.contact] = true
		}
	}
}

// send begins to watch the locks of a message's recipients. Call moved to end the watch.
func (t *contactLocks) send(contacts []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sends = make(map[string]bool, len(contacts))
	for _, contact := range contacts {
		t.sends[contact] = false
	}
}

// moved reports whether another goroutine owned one of these locks since send, and ends the watch.
func (t *contactLocks) moved(contacts []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	sends := t.sends
	t.sends = nil
	for _, contact := range contacts {
		if changed, meant := sends[contact]; changed || !meant {
			return true
		}
	}
	return false
}

// lent ends the loan with which the state at an address was read, and returns the loan's lock. The caller may then
// write the state, and owns the lock until giveBack. lent returns nil if the loan ended and another goroutine took the
// lock.
//
// lent recognises callers only by the address, because the library uses one context for all callers. After a loan
// ended, a second goroutine may read the same state. Then the first write of the two goroutines succeeds, and the
// second write is refused.
func (t *contactLocks) lent(address string) *contactLock {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[contactOf(address)]
	if held == nil || held.loan != address {
		return nil
	}
	held.loanEnd, held.loan = time.Time{}, ""
	return held
}

// hold contains the locks of one decryption, or of one message that is being sent. The locks stay taken during several
// calls of the store.
type hold struct {
	locks   *contactLocks
	owned   []*contactLock
	blocked string // a contact whose lock another goroutine owns
}

type holdKey struct{}

func holdOf(ctx context.Context) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	return h
}

// meet takes a contact's lock for a decryption. If another goroutine owns the lock, meet returns errBusy, and
// inTransaction then waits for the lock. A hold of insist already contains all its locks, so for any other lock meet
// returns errBusy.
func (h *hold) meet(contact string) error {
	if slices.ContainsFunc(h.owned, func(t *contactLock) bool { return t.contact == contact }) {
		return nil
	}
	if h.locks == nil {
		return errBusy
	}
	taken, _, got := h.locks.try(contact, "")
	if !got {
		h.blocked = contact
		return errBusy
	}
	h.owned = append(h.owned, taken)
	return nil
}

func (h *hold) giveBack() {
	if h.locks != nil {
		h.locks.giveBack(h.owned...)
	}
	h.owned = nil
}

// inTransaction runs a decryption's transaction. If the transaction found a contact locked, inTransaction waits for
// that lock and runs the transaction again.
func (t *contactLocks) inTransaction(ctx context.Context, transaction func(context.Context) error) error {
	h := &hold{locks: t}
	defer h.giveBack()
	for {
		err := transaction(context.WithValue(ctx, holdKey{}, h))
		if err == nil || h.blocked == "" {
			return err
		}
		h.giveBack()
		taken, err := t.take(ctx, h.blocked, "")
		if err != nil {
			return err
		}
		h.owned, h.blocked = []*contactLock{taken}, ""
	}
}

// insist returns a context for sending a message. With this context the locks are taken before the states are read. The
// caller must call giveBack after the message was sent.
func insist(ctx context.Context) (_ context.Context, giveBack func()) {
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), h.giveBack
}

// lockedSessions stores the encryption states. Only one goroutine at a time changes the states of a contact.
type lockedSessions struct {
	store.SessionStore
	locks *contactLocks
}

// GetSession returns a state that the caller will write. Without a hold, the caller gets the lock as a loan.
func (s lockedSessions) GetSession(ctx context.Context, address string) ([]byte, error) {
	contact := contactOf(address)
	if h := holdOf(ctx); h != nil {
		if err := h.meet(contact); err != nil {
			return nil, err
		}
		return s.SessionStore.GetSession(ctx, address)
	}
	loan, err := s.locks.take(ctx, contact, address)
	if err != nil {
		return nil, err
	}
	session, err := s.SessionStore.GetSession(ctx, address)
	if err != nil {
		s.locks.giveBack(loan)
	}
	return session, err
}

// PutSession writes a state that GetSession returned. It returns errMoved if another goroutine may have changed the
// state.
func (s lockedSessions) PutSession(ctx context.Context, address string, session []byte) error {
	if holdOf(ctx) != nil {
		return s.withLocks(ctx, func() error { return s.SessionStore.PutSession(ctx, address, session) }, contactOf(address))
	}
	loan := s.locks.lent(address)
	if loan == nil {
		return errMoved
	}
	defer s.locks.giveBack(loan)
	return s.SessionStore.PutSession(ctx, address, session)
}

// withLocks takes the locks of some contacts and runs do. For a decryption, withLocks does not wait: it returns errBusy
// if another goroutine owns a lock.
func (s lockedSessions) withLocks(ctx context.Context, do func() error, contacts ...string) error {
	if h := holdOf(ctx); h != nil && h.locks != nil {
		for _, contact := range contacts {
			if err := h.meet(contact); err != nil {
				return err
			}
		}
		return do()
	}
	taken, err := s.locks.takeAll(ctx, contacts)
	if err != nil {
		return err
	}
	defer s.locks.giveBack(taken...)
	return do()
}

// GetManySessions returns the states for a message that is being sent. The library sends one message at a time.
func (s lockedSessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	contacts := contactsOf(slices.Values(addresses))
	if h := holdOf(ctx); h != nil {
		taken, err := s.locks.takeAll(ctx, contacts)
		if err != nil {
			return nil, err
		}
		h.locks, h.owned = s.locks, taken
	}
	s.locks.send(contacts)
	return s.SessionStore.GetManySessions(ctx, addresses)
}

// PutManySessions writes the states after a message was encrypted. It returns errMoved if another goroutine may have
// changed one of these states meanwhile.
func (s lockedSessions) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	contacts := contactsOf(maps.Keys(sessions))
	if h := holdOf(ctx); h != nil {
		defer h.giveBack() // return the locks before the message waits for the network
	}
	return s.withLocks(ctx, func() error {
		if s.locks.moved(contacts) {
			return errMoved
		}
		return s.SessionStore.PutManySessions(ctx, sessions)
	}, contacts...)
}

func (s lockedSessions) DeleteSession(ctx context.Context, address string) error {
	return s.withLocks(ctx, func() error { return s.SessionStore.DeleteSession(ctx, address) }, contactOf(address))
}

func (s lockedSessions) DeleteAllSessions(ctx context.Context, person string) error {
	return s.withLocks(ctx, func() error { return s.SessionStore.DeleteAllSessions(ctx, person) }, contactOf(person))
}

// MigratePNToLID moves the states of a number to its LID.
func (s lockedSessions) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	contacts := contactsOf(slices.Values([]string{pn.User, lid.User}))
	return s.withLocks(ctx, func() error { return s.SessionStore.MigratePNToLID(ctx, pn, lid) }, contacts...)
}

// lockedEvents makes decryption use the contact locks.
type lockedEvents struct {
	store.EventBuffer
	locks *contactLocks
}

func (e lockedEvents) DoDecryptionTxn(ctx context.Context, decrypt func(context.Context) error) error {
	return e.locks.inTransaction(ctx, func(ctx context.Context) error { return e.EventBuffer.DoDecryptionTxn(ctx, decrypt) })
}
