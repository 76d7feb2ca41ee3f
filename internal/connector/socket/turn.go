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

// The library reads a state of encryption, works with it and writes it back, and does so in several places at once: where
// it decrypts, where it encrypts what is sent, and where it encrypts again for a device that asks. Of two at work on the
// same state the later would write over what the earlier did, and the next message would leave under a number that was
// used: the recipient takes it for a repeat, acknowledges it, and never shows it. So changes of a contact's states take
// turns.
//
// Nobody waits for a turn who holds a connection of the database, of which there may be one, and nobody has a turn who
// waits for the network, as a rule: decryption that meets another's turn gives its transaction up and begins again; what
// is sent reads without one, and if somebody else had a turn until it writes is encrypted once more, then in its turn.

// errMoved says that a state was changed by another while a message was encrypted. Nothing of the message left.
var errMoved = errors.New("the state of encryption changed meanwhile")

// errBusy ends what meets another's turn and must not wait for it there.
var errBusy = errors.New("another has the turn")

// loanLasts bounds the turn of whoever reads a state to write it, and then does not.
const loanLasts = 2 * time.Second

// turns are those of one number's contacts. Its methods may be called by many goroutines at once.
type turns struct {
	clock clock.Clock
	mu    sync.Mutex
	held  map[string]*turn // by contact
	sends map[string]bool  // to whom the one message that is sent just now goes; true: somebody else had a turn since
}

type turn struct {
	until time.Time     // zero: until it is given back
	over  chan struct{} // closed then
}

func newTurns(c clock.Clock) *turns { return &turns{clock: c, held: map[string]*turn{}} }

// contactOf is whose an address of the library's is, by number or LID: all of a contact's devices take turns together.
func contactOf(address string) string {
	if end := strings.IndexAny(address, ":_"); end >= 0 {
		return address[:end]
	}
	return address
}

// contactsOf are those of several addresses, each once, in order.
func contactsOf(addresses iter.Seq[string]) (all []string) {
	for address := range addresses {
		all = append(all, contactOf(address))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// try takes a turn that nobody has.
func (t *turns) try(contact string, until time.Time) (*turn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held := t.held[contact]; held != nil {
		if held.until.IsZero() || t.clock.Now().Before(held.until) {
			return held, false
		}
		close(held.over)
	}
	mine := &turn{until: until, over: make(chan struct{})}
	t.held[contact] = mine
	return mine, true
}

// take waits for a contact's turn. Zero until: it is held until it is given back.
func (t *turns) take(ctx context.Context, contact string, lasts time.Duration) error {
	for {
		var until time.Time
		if lasts > 0 {
			until = t.clock.Now().Add(lasts)
		}
		held, mine := t.try(contact, until)
		if mine {
			return nil
		}
		var late <-chan time.Time
		stop := func() {}
		if !held.until.IsZero() {
			late, stop = t.clock.After(held.until.Sub(t.clock.Now()))
		}
		select {
		case <-held.over:
		case <-late:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// takeAll waits for the turns of several, which come in the order that they have everywhere.
func (t *turns) takeAll(ctx context.Context, contacts []string) (giveBack func(), err error) {
	for i, contact := range contacts {
		if err := t.take(ctx, contact, 0); err != nil {
			t.giveBack(contacts[:i])
			return nil, err
		}
	}
	return func() { t.giveBack(contacts) }, nil
}

// giveBack ends turns. Whoever had one may have changed a state.
func (t *turns) giveBack(contacts []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, contact := range contacts {
		if held := t.held[contact]; held != nil {
			close(held.over)
			delete(t.held, contact)
		}
		if _, meant := t.sends[contact]; meant {
			t.sends[contact] = true
		}
	}
}

// send begins to look for turns of a message's recipients.
func (t *turns) send(contacts []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sends = make(map[string]bool, len(contacts))
	for _, contact := range contacts {
		t.sends[contact] = false
	}
}

// moved reports whether anybody had a turn of one of them since, and ends to look.
func (t *turns) moved(contacts []string) bool {
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

// lent reports whether somebody has a contact's turn who read a state to write it.
func (t *turns) lent(contact string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[contact]
	return held != nil && !held.until.IsZero()
}

// hold is the turns that a decryption, or a message that is sent, has for longer than one call.
type hold struct {
	turns *turns
	has   []string
	met   string // whose turn another has
}

type holdKey struct{}

func holdOf(ctx context.Context) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	return h
}

// meet takes a contact's turn, or fails until it has been waited for.
func (h *hold) meet(contact string) error {
	if slices.Contains(h.has, contact) {
		return nil
	}
	if h.turns == nil {
		return errBusy
	}
	if _, mine := h.turns.try(contact, time.Time{}); !mine {
		h.met = contact
		return errBusy
	}
	h.has = append(h.has, contact)
	return nil
}

func (h *hold) giveBack() {
	if h.turns != nil {
		h.turns.giveBack(h.has)
	}
	h.has = nil
}

// during runs a decryption's transaction, again if it met another's turn, with that turn.
func (t *turns) during(ctx context.Context, transaction func(context.Context) error) error {
	h := &hold{turns: t}
	defer h.giveBack()
	for {
		err := transaction(context.WithValue(ctx, holdKey{}, h))
		if err == nil || h.met == "" {
			return err
		}
		h.giveBack()
		if err := t.take(ctx, h.met, 0); err != nil {
			return err
		}
		h.has, h.met = []string{h.met}, ""
	}
}

// insist has a message that is sent with the context take its turns before it reads. giveBack must be called once it was
// sent.
func insist(ctx context.Context) (_ context.Context, giveBack func()) {
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), h.giveBack
}

// turnedSessions are the states of encryption, each changed by one at a time.
type turnedSessions struct {
	store.SessionStore
	turns *turns
}

// GetSession reads a state that is going to be written.
func (s turnedSessions) GetSession(ctx context.Context, address string) ([]byte, error) {
	contact := contactOf(address)
	if h := holdOf(ctx); h != nil {
		if err := h.meet(contact); err != nil {
			return nil, err
		}
		return s.SessionStore.GetSession(ctx, address)
	}
	if err := s.turns.take(ctx, contact, loanLasts); err != nil {
		return nil, err
	}
	session, err := s.SessionStore.GetSession(ctx, address)
	if err != nil {
		s.turns.giveBack([]string{contact})
	}
	return session, err
}

func (s turnedSessions) PutSession(ctx context.Context, address string, session []byte) error {
	contact := contactOf(address)
	if holdOf(ctx) == nil && s.turns.lent(contact) {
		defer s.turns.giveBack([]string{contact})
		return s.SessionStore.PutSession(ctx, address, session)
	}
	return s.alone(ctx, func() error { return s.SessionStore.PutSession(ctx, address, session) }, contact)
}

// alone does something in the turns of some contacts.
func (s turnedSessions) alone(ctx context.Context, do func() error, contacts ...string) error {
	if h := holdOf(ctx); h != nil && h.turns != nil {
		for _, contact := range contacts {
			if err := h.meet(contact); err != nil {
				return err
			}
		}
		return do()
	}
	giveBack, err := s.turns.takeAll(ctx, contacts)
	if err != nil {
		return err
	}
	defer giveBack()
	return do()
}

// GetManySessions reads the states for a message that is sent; the library sends one at a time.
func (s turnedSessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	contacts := contactsOf(slices.Values(addresses))
	if h := holdOf(ctx); h != nil {
		if _, err := s.turns.takeAll(ctx, contacts); err != nil {
			return nil, err
		}
		h.turns, h.has = s.turns, contacts
	}
	s.turns.send(contacts)
	return s.SessionStore.GetManySessions(ctx, addresses)
}

// PutManySessions writes the states after a message was encrypted, unless one of them may be another by now.
func (s turnedSessions) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	contacts := contactsOf(maps.Keys(sessions))
	if h := holdOf(ctx); h != nil {
		defer h.giveBack() // before the network's word is waited for
	}
	return s.alone(ctx, func() error {
		if s.turns.moved(contacts) {
			return errMoved
		}
		return s.SessionStore.PutManySessions(ctx, sessions)
	}, contacts...)
}

func (s turnedSessions) DeleteSession(ctx context.Context, address string) error {
	return s.alone(ctx, func() error { return s.SessionStore.DeleteSession(ctx, address) }, contactOf(address))
}

func (s turnedSessions) DeleteAllSessions(ctx context.Context, who string) error {
	return s.alone(ctx, func() error { return s.SessionStore.DeleteAllSessions(ctx, who) }, contactOf(who))
}

// MigratePNToLID moves what is kept under a number to its LID.
func (s turnedSessions) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	contacts := contactsOf(slices.Values([]string{pn.User, lid.User}))
	return s.alone(ctx, func() error { return s.SessionStore.MigratePNToLID(ctx, pn, lid) }, contacts...)
}

// turnedEvents has decryption take turns.
type turnedEvents struct {
	store.EventBuffer
	turns *turns
}

func (e turnedEvents) DoDecryptionTxn(ctx context.Context, decrypt func(context.Context) error) error {
	return e.turns.during(ctx, func(ctx context.Context) error { return e.EventBuffer.DoDecryptionTxn(ctx, decrypt) })
}
