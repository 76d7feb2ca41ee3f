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

// loanLasts bounds the turn of whoever reads a state to write it, and then does not. Once it is over the turn is free for
// anybody; it stays the reader's until somebody takes it, and from then on what was read may be of before another's change:
// to write it is refused. The library encrypts anew if the device asks again.
const loanLasts = 2 * time.Second

// turns are those of one number's contacts. Its methods may be called by many goroutines at once.
type turns struct {
	clock clock.Clock
	mu    sync.Mutex
	held  map[string]*turn // by contact
	sends map[string]bool  // to whom the one message that is sent just now goes; true: somebody else had a turn since
}

type turn struct {
	contact string
	until   time.Time     // zero: until it is given back
	loan    string        // the address whose state was read to be written; "": it is none
	over    chan struct{} // closed when it is given back, or another's
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

// try takes a turn that nobody has, until it is given back or, as a loan for the state at an address, for loanLasts. It
// returns whose it is, and of another's loan how long that lasts as of now.
func (t *turns) try(contact, loan string) (_ *turn, left time.Duration, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if held := t.held[contact]; held != nil {
		switch {
		case held.until.IsZero():
			return held, 0, false
		case now.Before(held.until):
			return held, held.until.Sub(now), false
		}
		close(held.over)
	}
	taken := &turn{contact: contact, loan: loan, over: make(chan struct{})}
	if loan != "" {
		taken.until = now.Add(loanLasts)
	}
	t.held[contact] = taken
	return taken, 0, true
}

// take waits for a contact's turn, and takes it as try does.
func (t *turns) take(ctx context.Context, contact, loan string) (*turn, error) {
	for {
		held, left, mine := t.try(contact, loan)
		if mine {
			return held, nil
		}
		var late <-chan time.Time
		stop := func() {}
		if left > 0 {
			late, stop = t.clock.After(left)
		}
		select {
		case <-held.over:
		case <-late:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// takeAll waits for the turns of several, which come in the order that they have everywhere.
func (t *turns) takeAll(ctx context.Context, contacts []string) ([]*turn, error) {
	taken := make([]*turn, 0, len(contacts))
	for _, contact := range contacts {
		mine, err := t.take(ctx, contact, "")
		if err != nil {
			t.giveBack(taken...)
			return nil, err
		}
		taken = append(taken, mine)
	}
	return taken, nil
}

// giveBack ends turns that the caller took; one that is another's by now stays. Whoever had one may have changed a state.
func (t *turns) giveBack(taken ...*turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, mine := range taken {
		if t.held[mine.contact] != mine {
			continue
		}
		close(mine.over)
		delete(t.held, mine.contact)
		if _, meant := t.sends[mine.contact]; meant {
			t.sends[mine.contact] = true
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

// lent returns the loan with which the state at an address was read, so that it may be written: it lasts until it is given
// back now. nil: it is over, and another took the turn. Callers are told apart by addresses alone, for the library gives all of
// them one context; of two who read the same state while the first one's loan ended, whoever writes first does, and the
// other is refused.
func (t *turns) lent(address string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[contactOf(address)]
	if held == nil || held.loan != address {
		return nil
	}
	held.until, held.loan = time.Time{}, ""
	return held
}

// hold is the turns that a decryption, or a message that is sent, has for longer than one call.
type hold struct {
	turns *turns
	has   []*turn
	met   string // whose turn another has
}

type holdKey struct{}

func holdOf(ctx context.Context) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	return h
}

// meet takes a contact's turn, or fails until it has been waited for.
func (h *hold) meet(contact string) error {
	if slices.ContainsFunc(h.has, func(t *turn) bool { return t.contact == contact }) {
		return nil
	}
	if h.turns == nil {
		return errBusy
	}
	taken, _, mine := h.turns.try(contact, "")
	if !mine {
		h.met = contact
		return errBusy
	}
	h.has = append(h.has, taken)
	return nil
}

func (h *hold) giveBack() {
	if h.turns != nil {
		h.turns.giveBack(h.has...)
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
		taken, err := t.take(ctx, h.met, "")
		if err != nil {
			return err
		}
		h.has, h.met = []*turn{taken}, ""
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
	loan, err := s.turns.take(ctx, contact, address)
	if err != nil {
		return nil, err
	}
	session, err := s.SessionStore.GetSession(ctx, address)
	if err != nil {
		s.turns.giveBack(loan)
	}
	return session, err
}

// PutSession writes a state that was read, unless it may be another by now.
func (s turnedSessions) PutSession(ctx context.Context, address string, session []byte) error {
	if holdOf(ctx) != nil {
		return s.alone(ctx, func() error { return s.SessionStore.PutSession(ctx, address, session) }, contactOf(address))
	}
	loan := s.turns.lent(address)
	if loan == nil {
		return errMoved
	}
	defer s.turns.giveBack(loan)
	return s.SessionStore.PutSession(ctx, address, session)
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
	taken, err := s.turns.takeAll(ctx, contacts)
	if err != nil {
		return err
	}
	defer s.turns.giveBack(taken...)
	return do()
}

// GetManySessions reads the states for a message that is sent; the library sends one at a time.
func (s turnedSessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	contacts := contactsOf(slices.Values(addresses))
	if h := holdOf(ctx); h != nil {
		taken, err := s.turns.takeAll(ctx, contacts)
		if err != nil {
			return nil, err
		}
		h.turns, h.has = s.turns, taken
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
