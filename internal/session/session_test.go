package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/session"
)

func wantCode(t *testing.T, err error, code puntuale.Code) {
	t.Helper()
	if puntuale.CodeOf(err) != code {
		t.Errorf("%v, want %q", err, code)
	}
}

// TestPair checks that each code is stored, sealed, when the connector reports it, and that it replaces the earlier
// code. At the end, the session's number replaces the last code.
func TestPair(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		n.tells(puntuale.LinkUnlinked, "", "")
		w.became(puntuale.LinkUnlinked)
		n.net.pairs = func(context.Context, puntuale.SessionID) error { n.pairing("first"); return nil }
		if err := w.answer(w.give(n, puntuale.CommandPair, byQR)); err != nil {
			t.Fatal(err)
		}
		if code, link := w.code(), w.session().Link; code != "first" || link.State != puntuale.LinkPairing || !link.Until.Equal(w.DB.Clock.Now().Add(20*time.Second)) ||
			strings.Contains(link.Code, "first") {
			t.Errorf("code %q of %+v", code, link)
		}
		w.DB.Clock.Advance(20 * time.Second)
		n.pairing("second")
		w.eventually("the second code", func() error {
			if code := w.code(); code != "second" {
				return errors.New(code)
			}
			return nil
		})
		begun := w.session().Link.Since
		w.DB.Clock.Advance(9 * time.Minute)
		n.net.pairs = func(context.Context, puntuale.SessionID) error { n.pairing("third"); return nil }
		if err := w.answer(w.give(n, puntuale.CommandPair, byQR)); err != nil {
			t.Fatal(err)
		}
		if since := w.session().Link.Since; since.Sub(begun) != 20*time.Second+9*time.Minute {
			t.Errorf("begun anew after %v: its deadline counts from %v after the first", w.DB.Clock.Now().Sub(begun), since.Sub(begun))
		}
		n.tells(puntuale.LinkOnline, "+393331234567", "")
		if link := w.became(puntuale.LinkOnline); link.Number != "+393331234567" || link.Code != "" || !link.Until.IsZero() {
			t.Errorf("linked: %+v", link)
		}
		if _, _, changed := n.lines.seen(); changed != 2 { // the session was online at first, so there are two changes: offline, and online again
			t.Errorf("the dispatcher was told %d times, want 2", changed)
		}
		wantCode(t, w.answer(w.give(n, puntuale.CommandPair, byQR)), puntuale.CodeConflict) // CodeConflict, because the session is already linked
		n.did("open as created", "pair qr ", "pair qr ")
		if strings.Contains(w.log.String(), "level=ERROR") {
			t.Error(w.log.String())
		}
	})
}

// TestPairRefused checks the answer to the command if a pairing gives no code.
func TestPairRefused(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		n.tells(puntuale.LinkUnlinked, "", "")
		pair := func(pairs func(context.Context, puntuale.SessionID) error) puntuale.CommandID {
			n.net.pairs = pairs
			return w.give(n, puntuale.CommandPair, puntuale.PairOrder{Method: puntuale.PairCode, Phone: "+39333"}.JSON())
		}
		err := w.answer(pair(func(context.Context, puntuale.SessionID) error {
			return puntuale.Conflict("the network wants a passkey")
		}))
		wantCode(t, err, puntuale.CodeConflict)
		if !strings.Contains(err.Error(), "passkey") {
			t.Error(err)
		}
		wantCode(t, w.answer(pair(func(context.Context, puntuale.SessionID) error { return errors.New("boom") })), puntuale.CodeInternal)
		if log := w.log.String(); !strings.Contains(log, "boom") || strings.Contains(log, "+39333") {
			t.Error(log)
		}
		err = w.answer(pair(func(context.Context, puntuale.SessionID) error {
			n.tells(puntuale.LinkUnlinked, "", "Troppi tentativi")
			return nil
		}))
		if puntuale.CodeOf(err) != puntuale.CodeConflict || !strings.Contains(err.Error(), "Troppi tentativi") {
			t.Error(err)
		}
		for _, slow := range []func(context.Context, puntuale.SessionID) error{
			func(context.Context, puntuale.SessionID) error { n.pairing("of another method"); return nil },
			func(ctx context.Context, _ puntuale.SessionID) error { <-ctx.Done(); return ctx.Err() },
		} {
			id := pair(slow)
			w.advance(time.Second, func() error {
				if answer, err := w.client.CommandAnswer(t.Context(), id, w.DB.Clock.Now()); err != nil || answer == nil {
					return fmt.Errorf("no answer, %w", err)
				}
				return nil
			})
			wantCode(t, w.answer(id), puntuale.CodeBusy)
		}
		wantCode(t, w.answer(w.give(n, "later", nil)), puntuale.CodeConflict) // a later version gave this verb
	})
}

// TestNoLinker uses a session that no connector links. The command pair is refused, and the command unlink succeeds.
func TestNoLinker(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode(func(c *session.Config) { c.Linker = func(puntuale.Session) puntuale.Linker { return nil } })
		n.owns(0)
		wantCode(t, w.answer(w.give(n, puntuale.CommandPair, byQR)), puntuale.CodeConflict)
		if err := w.answer(w.give(n, puntuale.CommandUnlink, nil)); err != nil {
			t.Error(err)
		}
		n.Own(n.id, nil, nil)
	})
}

// TestUnlink checks that a session is unlinked only when none of its messages is in flight. While the session waits for
// this, it begins no messages.
func TestUnlink(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.lines.quiet = make(chan struct{})
		n.owns(0)
		n.tells(puntuale.LinkOnline, "+393331234567", "")
		w.became(puntuale.LinkOnline)
		id := w.give(n, puntuale.CommandUnlink, nil)
		w.eventually("it rests", func() error {
			if resting, _, _ := n.lines.seen(); !resting {
				return errors.New("not yet")
			}
			return nil
		})
		n.did("open as created")
		close(n.lines.quiet)
		if err := w.answer(id); err != nil {
			t.Fatal(err)
		}
		n.did("open as created", "unlink")
		if link := w.session().Link; link.State != puntuale.LinkUnlinked || link.Number != "" {
			t.Errorf("unlinked: %+v", link)
		}
		if resting, resumed, _ := n.lines.seen(); resting || resumed != 1 {
			t.Errorf("resting %v, resumed %d times", resting, resumed)
		}
		if err := w.answer(w.give(n, puntuale.CommandUnlink, nil)); err != nil { // the session is already unlinked
			t.Error(err)
		}
	})
}

// TestDrainTakesTooLong uses a message that is in flight for longer than a command waits. The session must then stay
// linked.
func TestDrainTakesTooLong(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.lines.quiet = make(chan struct{})
		n.owns(0)
		for i, verb := range []puntuale.CommandVerb{puntuale.CommandUnlink, puntuale.CommandDrain} {
			id := w.give(n, verb, puntuale.DrainOrder{Until: w.DB.Clock.Now().Add(40 * time.Second)}.JSON())
			w.advance(time.Second, func() error {
				if answer, err := w.client.CommandAnswer(t.Context(), id, w.DB.Clock.Now()); err != nil || answer == nil {
					return fmt.Errorf("no answer, %w", err)
				}
				return nil
			})
			wantCode(t, w.answer(id), puntuale.CodeBusy)
			if resting, resumed, _ := n.lines.seen(); resting || resumed != i+1 {
				t.Errorf("%s: resting %v, resumed %d times", verb, resting, resumed)
			}
		}
		n.did("open as created")
	})
}

// TestDrain checks that a session begins no messages between the command drain and the command resume.
func TestDrain(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		deadline := w.DB.Clock.Now().Add(40 * time.Second)
		if err := w.answer(w.give(n, puntuale.CommandDrain, puntuale.DrainOrder{Until: deadline}.JSON())); err != nil {
			t.Fatal(err)
		}
		if resting, _, _ := n.lines.seen(); !resting {
			t.Error("it does not rest")
		}
		if err := w.answer(w.give(n, puntuale.CommandResume, nil)); err != nil {
			t.Fatal(err)
		}
		if resting, _, _ := n.lines.seen(); resting {
			t.Error("it still rests")
		}
		// The clock of the node that gave the command is an hour slow. The drain must still last for the requested
		// time.
		there := w.DB.Clock.Now().Add(-time.Hour)
		id, err := w.client.GiveCommand(t.Context(), puntuale.Command{
			Session: w.client.Session, Verb: puntuale.CommandDrain, Created: there, Expires: there.Add(2 * time.Hour),
			Detail: w.vault.Seal(puntuale.SealedCommand, w.client.Session.SealPlace(), puntuale.DrainOrder{Until: there.Add(40 * time.Second)}.JSON()),
		})
		if err != nil {
			t.Fatal(err)
		}
		n.Wake(w.client.Session)
		if err := w.answer(id); err != nil {
			t.Fatal(err)
		}
		n.lines.mu.Lock()
		defer n.lines.mu.Unlock()
		if !n.lines.until.Equal(deadline) {
			t.Errorf("it rests until %v, want %v", n.lines.until, deadline)
		}
	})
}

// TestOwnerDies stops the owner after it took a command and before it answered. The new owner executes a harmless
// command again, but does not ask a phone to pair a second time. A late report of the old owner changes nothing.
func TestOwnerDies(t *testing.T) {
	t.Parallel()
	for verb, want := range map[puntuale.CommandVerb]puntuale.Code{puntuale.CommandUnlink: "", puntuale.CommandPair: puntuale.CodeBusy} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			databases(t, func(t *testing.T, w *world) {
				a, b := w.newNode(), w.newNode()
				hang := make(chan struct{})
				wait := func() error { <-hang; return nil }
				a.net.unlinks = func(context.Context) error { return wait() }
				a.net.pairs = func(context.Context, puntuale.SessionID) error { return wait() }
				a.owns(0)
				a.tells(puntuale.LinkUnlinked, "", "")
				w.became(puntuale.LinkUnlinked)
				id := w.give(a, verb, byQR)
				call := map[puntuale.CommandVerb]string{puntuale.CommandUnlink: "unlink", puntuale.CommandPair: "pair qr "}[verb]
				a.did("open as created", call)
				if err := w.Leave(t.Context(), a.id); err != nil { // Leave has the same effect as the end of the lease
					t.Fatal(err)
				}
				b.owns(0)
				b.Wake(w.client.Session)
				wantCode(t, w.answer(id), want)
				if want == "" {
					b.did("open unlinked", call)
				} else {
					b.did("open unlinked")
				}
				b.tells(puntuale.LinkOnline, "+39333", "")
				w.became(puntuale.LinkOnline)
				close(hang)
				a.tells(puntuale.LinkUnlinked, "", "")
				a.Own(0, nil, nil)
				w.DB.Clock.Advance(time.Second)
				a.did("open as created", call, "close")
				if link := w.session().Link; link.State != puntuale.LinkOnline {
					t.Errorf("the dead owner wrote %+v", link)
				}
				wantCode(t, w.answer(id), want)
			})
		})
	}
}

// TestTakeoverWhilePairing gives a session a new owner during a pairing. The old owner closes the session before the
// new owner opens it. Late reports from the old owner's network are not stored.
func TestTakeoverWhilePairing(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		a, b := w.newNode(), w.newNode()
		a.owns(0)
		a.tells(puntuale.LinkUnlinked, "", "")
		a.net.pairs = func(context.Context, puntuale.SessionID) error { a.pairing("first"); return nil }
		if err := w.answer(w.give(a, puntuale.CommandPair, byQR)); err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		a.Release(w.client.Session, func() { close(closed) })
		<-closed
		a.did("open as created", "pair qr ", "close")
		a.pairing("second")
		b.owns(a.id)
		b.did("open pairing")
		b.tells(puntuale.LinkUnlinked, "", "Collegamento interrotto")
		if link := w.became(puntuale.LinkUnlinked); link.Detail.IsZero() || link.Code != "" {
			t.Errorf("%+v", link)
		}
		a.pairing("third")
		if link := w.session().Link; link.State != puntuale.LinkUnlinked {
			t.Errorf("%+v", link)
		}
	})
}

// TestCommandExpires checks that no node executes a command that expired before a node took it.
func TestCommandExpires(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		id := w.give(nil, puntuale.CommandPair, byQR)
		w.DB.Clock.Advance(30 * time.Second)
		n := w.newNode()
		n.owns(0)
		if err := w.answer(w.give(n, puntuale.CommandResume, nil)); err != nil { // when this command is answered, the manager has also read the expired one
			t.Fatal(err)
		}
		n.did("open as created")
		_, err := w.client.CommandAnswer(t.Context(), id, w.DB.Clock.Now())
		wantCode(t, err, puntuale.CodeNotFound)
	})
}

// TestPoll checks that the next poll finds a command without a wakeup.
func TestPoll(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		id := w.give(nil, puntuale.CommandResume, nil)
		w.advance(time.Second, func() error {
			_, resumed, _ := n.lines.seen()
			if resumed != 1 {
				return errors.New("not yet")
			}
			return nil
		})
		if err := w.answer(id); err != nil {
			t.Error(err)
		}
	})
}

// TestOwn checks that each session is opened once and closed once. A session in the argument leaving stays open until
// it is released.
func TestOwn(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		mine := []puntuale.Session{w.session()}
		leaving := map[puntuale.SessionID]bool{w.client.Session: true}
		n.Own(n.id, mine, nil)
		n.Own(n.id, mine, leaving)
		n.did("open as created")
		released := make(chan struct{})
		n.Release(w.client.Session, func() { close(released) })
		<-released
		n.Own(n.id, mine, leaving) // the node still owns the session, so it is not opened again
		n.did("open as created", "close")
		again := make(chan struct{})
		n.Release(w.client.Session, func() { close(again) })
		<-again
		n.Own(n.id, mine, nil) // now the session no longer leaves
		n.did("open as created", "close", "open as created")
		n.Own(n.id, nil, nil)
		n.did("open as created", "close", "open as created", "close")
		n.ReleaseAll(t.Context())
	})
}

// broken is a connector that panics when it opens or closes a session.
type broken struct{ *network }

func (b *broken) Open(s puntuale.Session) {
	b.network.Open(s)
	panic("open")
}

func (b *broken) Close(ctx context.Context, id puntuale.SessionID) {
	b.network.Close(ctx, id)
	panic("close")
}

// TestConnectorPanics checks that a connector that panics for one session ends neither the server nor the session's other
// work: commands are executed, and another node may open the session after the release.
func TestConnectorPanics(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		b := &broken{}
		n := w.newNode(func(cfg *session.Config) { cfg.Linker = func(puntuale.Session) puntuale.Linker { return b } })
		b.network = n.net
		n.owns(0)
		if err := w.answer(w.give(n, puntuale.CommandUnlink, nil)); err != nil {
			t.Error(err)
		}
		released := make(chan struct{})
		n.Release(w.client.Session, func() { close(released) })
		<-released
		n.did("open as created", "unlink", "close")
		if got := strings.Count(w.log.String(), "a connector panicked"); got != 2 {
			t.Errorf("the log names %d panics: %s", got, w.log.String())
		}
	})
}

// TestReleaseCutsCommands checks that the release of a session aborts its running command.
func TestReleaseCutsCommands(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		n.tells(puntuale.LinkUnlinked, "", "")
		n.net.pairs = func(ctx context.Context, _ puntuale.SessionID) error { <-ctx.Done(); return ctx.Err() }
		id := w.give(n, puntuale.CommandPair, byQR)
		n.did("open as created", "pair qr ")
		released := make(chan struct{})
		n.Release(w.client.Session, func() { close(released) })
		<-released
		n.did("open as created", "pair qr ", "close")
		wantCode(t, w.answer(id), puntuale.CodeBusy)
	})
}

// forgetful is a store that fails for some time.
type forgetful struct {
	session.Store
	away   atomic.Bool
	failed atomic.Int64
	stored atomic.Int64
}

func (f *forgetful) fails() error {
	if f.away.Load() {
		f.failed.Add(1)
		return puntuale.Unavailable(errors.New("away"))
	}
	return nil
}

func (f *forgetful) SetLinks(ctx context.Context, node puntuale.NodeID, now time.Time, links map[puntuale.SessionID]puntuale.Link) error {
	if err := f.fails(); err != nil {
		return err
	}
	f.stored.Add(1)
	return f.Store.SetLinks(ctx, node, now, links)
}

func (f *forgetful) AnswerCommand(ctx context.Context, node puntuale.NodeID, id puntuale.CommandID, answer []byte, now, expiresAt time.Time) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.AnswerCommand(ctx, node, id, answer, now, expiresAt)
}

// TestStoreAway checks that the manager keeps the latest report of each session in memory while the store fails. It
// also checks that a command is not executed again after its answer could not be stored.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		keeper := &forgetful{Store: w.Store}
		n := w.newNode(func(c *session.Config) { c.Keeper = keeper })
		n.owns(0)
		keeper.away.Store(true)
		for i := range 5 {
			n.pairing(fmt.Sprint("code ", i))
		}
		id := w.give(n, puntuale.CommandResume, nil)
		w.advance(time.Second, func() error {
			if keeper.failed.Load() < 6 {
				return errors.New("not yet")
			}
			return nil
		})
		keeper.away.Store(false)
		w.advance(time.Second, func() error {
			if w.code() != "code 4" {
				return errors.New(w.code())
			}
			return nil
		})
		if n := keeper.stored.Load(); n != 1 {
			t.Errorf("%d times something was stored, want once", n)
		}
		w.advance(time.Second, func() error {
			if answer, err := w.client.CommandAnswer(t.Context(), id, w.DB.Clock.Now()); err != nil || answer == nil {
				return fmt.Errorf("no answer, %w", err)
			}
			return nil
		})
		if _, resumed, _ := n.lines.seen(); resumed != 1 {
			t.Errorf("it was carried out %d times", resumed)
		}
	})
}

// TestOddReports uses a network that reports texts that databases do not accept. The manager must store a text that
// databases accept.
func TestOddReports(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		n.tells(77, "", "")
		n.tells(puntuale.LinkAsCreated, "", "")
		n.tells(puntuale.LinkLinked, "+39\x00333", "bad \xff text")
		if link := w.became(puntuale.LinkLinked); link.Number != "+39333" || link.Detail.String() != "bad \uFFFD text" {
			t.Errorf("%+v", link)
		}
		n.Report(puntuale.LinkReport{Session: 999, State: puntuale.LinkOnline})
	})
}

// TestStop checks that Stop does not wait forever for a connector's call that does not return, here an unlink.
func TestStop(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, w *world) {
		n := w.newNode()
		n.owns(0)
		n.net.unlinks = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		w.give(n, puntuale.CommandUnlink, nil)
		n.did("open as created", "unlink")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n.Stop(ctx)
		n.Stop(ctx)
		n.did("open as created", "unlink", "close")
		never := session.New(session.Config{Clock: w.DB.Clock, Linker: func(puntuale.Session) puntuale.Linker { return nil }})
		never.Stop(ctx)
		never.Start()
	})
}
