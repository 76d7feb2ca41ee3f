//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"

	"puntuale/internal/clock"
)

// oneSession returns an empty store for one session's encryption states.
func oneSession(t *testing.T) (lockedSessions, *clock.Fake) {
	t.Helper()
	fake := clock.NewFake(time.Unix(1_800_000_000, 0))
	return lockedSessions{&store.NoopStore{}, newContactLocks(fake)}, fake
}

// A goroutine that reads a state in order to write it gets the contact's lock as a loan. It owns the lock until it
// writes, or until the loan ends. Meanwhile others wait, whether they name the contact by number or by LID.
func TestLoan(t *testing.T) {
	t.Parallel()
	s, fake := oneSession(t)
	for range 2 { // neither round writes the state that it reads
		_, _ = s.GetSession(t.Context(), "100_1:3")
		waits := make(chan error, 1)
		go func() {
			taken, err := s.locks.takeAll(t.Context(), []string{"100"})
			s.locks.giveBack(taken...)
			waits <- err
		}()
		if err := fake.Waiting(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		select {
		case <-waits:
			t.Fatal("two have the turn")
		default:
		}
		fake.Advance(loanLasts)
		if err := <-waits; err != nil {
			t.Fatal(err)
		}
	}
	_, _ = s.GetSession(t.Context(), "100_1:3")
	_ = s.PutSession(t.Context(), "100_1:3", nil)
	if _, _, free := s.locks.try("100", ""); !free {
		t.Error("it was not given back")
	}
}

// written counts the writes that reach the store. A test can make its reads fail.
type written struct {
	store.NoopStore
	puts  int
	reads func() error
}

func (w *written) GetSession(context.Context, string) ([]byte, error) { return nil, w.reads() }

func (w *written) PutSession(context.Context, string, []byte) error {
	w.puts++
	return nil
}

// A loan ended. If another goroutine owns the lock now, the borrower can neither write the state nor end that lock. If
// no goroutine took the lock, the borrower can still write.
func TestLoanIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		take func(t *testing.T, s lockedSessions) *contactLock // returns the lock that another goroutine took after the loan; nil: no lock
		want error
		puts int
	}{
		"another's turn": {take: func(t *testing.T, s lockedSessions) *contactLock {
			t.Helper()
			taken, err := s.locks.takeAll(t.Context(), []string{"100"})
			if err != nil {
				t.Fatal(err)
			}
			return taken[0]
		}, want: errMoved},
		"another device's loan": {take: func(t *testing.T, s lockedSessions) *contactLock {
			t.Helper()
			_, _ = s.GetSession(t.Context(), "100_1:4")
			return s.locks.held["100"]
		}, want: errMoved},
		"it was another's": {take: func(t *testing.T, s lockedSessions) *contactLock {
			t.Helper()
			if err := s.DeleteSession(t.Context(), "100_1:3"); err != nil {
				t.Error(err)
			}
			return nil
		}, want: errMoved},
		"nobody's": {take: func(*testing.T, lockedSessions) *contactLock { return nil }, puts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := oneSession(t)
			w := &written{reads: func() error { return nil }}
			s.SessionStore = w
			_, _ = s.GetSession(t.Context(), "100_1:3")
			fake.Advance(loanLasts)
			taken := test.take(t, s)
			if err := s.PutSession(t.Context(), "100_1:3", nil); !errors.Is(err, test.want) || w.puts != test.puts {
				t.Errorf("%v, %d written", err, w.puts)
			}
			if s.locks.held["100"] != taken {
				t.Errorf("the turn is %+v, want %+v", s.locks.held["100"], taken)
			}
		})
	}
}

// If reading a state fails, the reader returns the lock. If another goroutine took the lock meanwhile, that goroutine
// still owns it.
func TestLoanFails(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		s, fake := oneSession(t)
		var taken *contactLock
		s.SessionStore = &written{reads: func() error {
			if late {
				fake.Advance(loanLasts)
				taken, _, _ = s.locks.try("100", "")
			}
			return errors.New("the disk is slow")
		}}
		if _, err := s.GetSession(t.Context(), "100_1:3"); err == nil {
			t.Fatal("it was read")
		}
		if s.locks.held["100"] != taken {
			t.Errorf("late %t: the turn is %+v, want %+v", late, s.locks.held["100"], taken)
		}
	}
}

// If a decryption finds a contact locked, it returns all its locks, waits for the contact's lock, and begins again.
func TestDecryptionWaits(t *testing.T) {
	t.Parallel()
	s, _ := oneSession(t)
	taken, err := s.locks.takeAll(t.Context(), []string{"100"})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = s.locks.inTransaction(t.Context(), func(ctx context.Context) error {
		runs++
		if runs > 1 {
			return s.withLocks(ctx, func() error { return nil }, "100")
		}
		_, err := s.GetSession(ctx, "100:0")
		if !errors.Is(err, errBusy) {
			t.Errorf("within another's turn: %v", err)
		}
		s.locks.giveBack(taken...) // return the lock inside the transaction, so inTransaction need not wait for it
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("run %d times: %v", runs, err)
	}
	if len(s.locks.held) != 0 {
		t.Errorf("held: %v", s.locks.held)
	}
}

// A send is refused if another goroutine owned a recipient's lock after the state was read. A send whose context comes
// from insist owns the lock from the beginning.
func TestMoved(t *testing.T) {
	t.Parallel()
	s, _ := oneSession(t)
	read := func(ctx context.Context) {
		_, _ = s.GetManySessions(ctx, []string{"200:1", "100:1", "100:2"})
	}
	write := func(ctx context.Context) error {
		err := s.PutManySessions(ctx, map[string][]byte{"100:2": nil, "200:1": nil})
		if errors.Is(err, errMoved) {
			return err
		}
		return nil // only errMoved matters in this test
	}
	for other, want := range map[string]error{"200": errMoved, "300": nil} {
		read(t.Context())
		_ = s.DeleteSession(t.Context(), other+":7")
		if err := write(t.Context()); !errors.Is(err, want) {
			t.Errorf("after %s: %v", other, err)
		}
	}
	ctx, giveBack := insist(t.Context())
	read(ctx)
	if _, _, free := s.locks.try("200", ""); free {
		t.Error("who insists has no turn")
	}
	if err := write(ctx); err != nil {
		t.Error(err)
	}
	if len(s.locks.held) != 0 {
		t.Errorf("held: %v", s.locks.held)
	}
	giveBack()
}
