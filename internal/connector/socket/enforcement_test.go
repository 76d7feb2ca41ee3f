//go:build !nosocket

package socket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/socket/whatsapptest"
)

const (
	bertNumber = "393330000003"
	carlNumber = "393330000004"
)

func kindOf(err error) puntuale.SendErrorKind {
	if e := puntuale.AsSendError(err); e != nil {
		return e.Kind
	}
	return 0
}

// During a time-lock no message to a cold contact leaves, and the session shows the end of the time-lock. Messages to
// people who know the number still leave.
func TestTimelock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, bert := w.net.Phone(annaNumber), w.net.Phone(bertNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "prima"))
	anna.Await(t, whatsapptest.Text("prima"))
	end := time.Now().Add(4 * time.Second).Truncate(time.Second)
	w.shop.Timelock(whatsapptest.Timelock{Until: end, Quiet: true})
	go func() { // the network reports the time-lock just after the refusal
		w.net.AwaitMessage(t, shopNumber, func(s whatsapptest.Stanza) bool { return s.Error == 463 })
		w.shop.Timelock(whatsapptest.Timelock{Until: end})
	}()
	cold := w.text("+"+bertNumber, "a un estraneo")
	_, err := w.send(cold)
	refusal := puntuale.AsSendError(err)
	if refusal == nil || refusal.Kind != puntuale.Deferred || refusal.After <= 0 || refusal.After > 5*time.Second || !strings.Contains(italian(refusal.Detail), "463") {
		t.Fatalf("refused: %+v", refusal)
	}
	w.await("the end is shown", func() bool { r := w.last(); return r.Limited.Equal(end.UTC()) && word(r) == "online" })
	tries := len(w.net.Messages(shopNumber))
	for range 3 {
		if _, err := w.send(cold); kindOf(err) != puntuale.Deferred {
			t.Errorf("held: %v", err)
		}
	}
	w.mustSend(w.text("+"+annaNumber, "intanto"))
	anna.Await(t, whatsapptest.Text("intanto"))
	if n := len(w.net.Messages(shopNumber)); n != tries+1 {
		t.Errorf("%d messages were tried meanwhile", n-tries)
	}
	cold.Attempt = 2
	eventually(t, "strangers may be written to again", func() bool {
		_, err := w.send(cold)
		if err != nil && kindOf(err) != puntuale.Deferred {
			t.Fatal(err)
		}
		return err == nil
	})
	if early := time.Until(end); early > 0 {
		t.Errorf("written to %v before the end", early)
	}
	if n := len(w.net.Messages(shopNumber)); n != tries+2 {
		t.Errorf("%d messages were tried in all, want %d", n, tries+2)
	}
	bert.Await(t, whatsapptest.Text("a un estraneo"))
}

// After a restart the connector still has the time until which messages to cold contacts wait. If a refusal gives no
// end, they wait an hour.
func TestTimelockKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.net.Phone(bertNumber)
	w.link()
	remove := w.net.Inject(whatsapptest.Fault{From: shopNumber, AckError: 463})
	_, err := w.send(w.text("+"+bertNumber, "ciao"))
	refusal := puntuale.AsSendError(err)
	if refusal == nil || refusal.Kind != puntuale.Deferred || refusal.After < 50*time.Minute || refusal.After > 70*time.Minute {
		t.Fatalf("refused: %+v", refusal)
	}
	remove()
	w.await("it is shown", func() bool { return time.Until(w.last().Limited) > 50*time.Minute })
	w.stop()
	w.start()
	w.open()
	w.await("it is online again", func() bool { return w.conn.Online(theSession) })
	if _, err := w.send(w.text("+"+bertNumber, "ciao")); kindOf(err) != puntuale.Deferred {
		t.Errorf("after a restart: %v", err)
	}
	w.shop.Timelock(whatsapptest.Timelock{}) // the time-lock ends
	w.await("everybody may be written to", func() bool { return w.last().Limited.IsZero() })
	w.mustSend(w.text("+"+bertNumber, "ciao"))
}

// Each answer of the network to a message leads to the correct outcome.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.net.Phone(annaNumber)
	w.link()
	for code, want := range map[int]puntuale.SendErrorKind{429: puntuale.Throttled, 420: puntuale.Throttled, 403: puntuale.Final, 479: puntuale.Transient, 500: puntuale.Transient} {
		remove := w.net.Inject(whatsapptest.Fault{From: shopNumber, AckError: code})
		e := w.text("+"+annaNumber, "ciao")
		if _, err := w.send(e); kindOf(err) != want {
			t.Errorf("%d: %v", code, err)
		}
		e.Attempt, e.Repeat = 2, true
		if _, err := w.send(e); kindOf(err) == puntuale.Final {
			t.Errorf("%d of a repeat: %v", code, err)
		}
		remove()
	}
	if _, err := w.send(w.text("+393339999999", "ciao")); kindOf(err) != puntuale.Final {
		t.Errorf("without WhatsApp: %v", err)
	}
	if _, err := w.send(w.text("120363000000000999@g.us", "ciao")); kindOf(err) != puntuale.Final {
		t.Errorf("to a group that is not there: %v", err)
	}
	if _, err := w.send(w.text("AAAAAAAAAAAAAAAAAAAAAA", "ciao")); kindOf(err) != puntuale.Final {
		t.Errorf("an invitation that is none: %v", err)
	}
}

// If the connection breaks and returns immediately, the library itself repeats the frame. Here the connection does not
// return. So the outcome is uncertain. The repeat has the same id, and people see one message.
func TestCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "prima"))
	anna.Await(t, whatsapptest.Text("prima"))
	w.net.AwaitToken(t, shopNumber, annaNumber)
	w.net.Inject(whatsapptest.Fault{From: shopNumber, Cut: true, Times: 1})
	e := w.text("+"+annaNumber, "una volta sola")
	if _, err := w.send(e); err == nil || puntuale.AsSendError(err) != nil {
		t.Fatalf("cut: %v", err)
	}
	w.await("it is online again", func() bool { return w.conn.Online(theSession) })
	e.Attempt, e.Repeat = 2, true
	w.mustSend(e)
	m := anna.Await(t, whatsapptest.Text("una volta sola"))
	eventually(t, "the phone shows both as one", func() bool {
		all := w.net.Ledger().All()
		return len(all) == 2 && all[1].ID == m.ID
	})
}

// A ban ends by itself. The number does not log in before the end.
func TestBan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	before := len(w.net.Logins())
	w.shop.Ban(104, 4*time.Second)
	r := w.awaitWord("banned")
	if remaining := time.Until(r.Until); remaining < time.Second || remaining > 5*time.Second || !strings.Contains(italian(r.Detail), "messaggio") {
		t.Errorf("banned: %+v", r)
	}
	if err := w.conn.Reconnect(t.Context(), theSession); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("reconnect: %v", err)
	}
	w.awaitWord("online")
	refused := 0
	for _, l := range w.net.Logins()[before:] {
		if l.Failure != 0 {
			refused++
		} else if l.At.Before(r.Until) {
			t.Errorf("a login %v before the end", r.Until.Sub(l.At))
		}
	}
	if refused != 1 {
		t.Errorf("%d logins were refused", refused)
	}
}

// After a connection ended, the number connects again. While nobody answers, it tries more and more rarely. A person
// may request an immediate try.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	w.net.Refuse(true)
	w.shop.Cut()
	r := w.awaitWord("waiting")
	if remaining := time.Until(r.Until); remaining <= 0 || remaining > 2*time.Second {
		t.Errorf("waiting until %v", remaining)
	}
	w.await("it waits longer", func() bool { r := w.last(); return word(r) == "waiting" && time.Until(r.Until) > 3*time.Second })
	w.net.Refuse(false)
	if err := w.conn.Reconnect(t.Context(), theSession); err != nil {
		t.Fatal(err)
	}
	w.awaitWord("online")
}

// If a caller requests a connection before the number's keys were read, the caller waits until they are read.
func TestReconnectEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	w.shop.Kick(whatsapptest.Replaced)
	w.awaitWord("replaced")
	w.stop()
	w.gate = make(chan struct{})
	w.start()
	w.open()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.conn.Reconnect(ctx, theSession); !errors.Is(err, context.Canceled) {
		t.Errorf("before the keys were read: %v", err)
	}
	asked := make(chan error, 1)
	go func() { asked <- w.conn.Reconnect(t.Context(), theSession) }()
	close(w.gate)
	if err := <-asked; err != nil {
		t.Errorf("reconnect: %v", err)
	}
	w.awaitWord("online")
}

// While the service is unavailable, the number tries to log in again until it succeeds.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	before := len(w.net.Logins())
	w.shop.FailLogins(503, 2)
	w.shop.Cut()
	w.awaitWord("waiting")
	w.awaitWord("online")
	if n := len(w.net.Logins()) - before; n != 3 {
		t.Errorf("%d logins", n)
	}
}

// If the network refused a version, the connector never announces that version again. It reads the current version from
// WhatsApp and announces that version.
func TestOutdated(t *testing.T) { // not parallel, because the version belongs to the whole process
	shipped := store.GetWAVersion()
	t.Cleanup(func() { store.SetWAVersion(shipped) })
	w := newWorld(t)
	w.link()
	before := len(w.net.Logins())
	const later = 1999999999
	w.net.RequireVersion(later)
	w.awaitWord("outdated")
	w.awaitWord("online")
	logins := w.net.Logins()[before:]
	if len(logins) != 2 || logins[0].Failure != 405 || logins[1].Version != later || logins[1].At.Sub(logins[0].At) > 10*time.Second {
		t.Errorf("logins: %+v", logins)
	}
	w.stop()
	w.start()
	w.open()
	w.await("it is online again", func() bool { return w.conn.Online(theSession) })
	if last := w.net.Logins(); last[len(last)-1].Version != later {
		t.Errorf("after a restart: %+v", last[len(last)-1])
	}
}

// After the network refused a login for good, the link is over. The number does not try again by itself, even after
// days. It also does not try again if the same number connected elsewhere.
func TestNoLoginByItself(t *testing.T) {
	t.Parallel()
	for want, happens := range map[string]func(*whatsapptest.Account){
		"logged_out": func(a *whatsapptest.Account) {
			a.FailLogins(401, 1)
			a.Cut()
		},
		"replaced": func(a *whatsapptest.Account) { a.Kick(whatsapptest.Replaced) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.link()
			w.stop()
			fake := clock.NewFake(time.Now())
			w.clock = fake
			w.start()
			w.open()
			w.await("it is online again", func() bool { return w.conn.Online(theSession) })
			happens(w.shop)
			if want == "logged_out" {
				w.awaitWord("waiting")
				eventually(t, "the next login waits, and the sweep", func() bool { return fake.Waiters() == 2 })
				fake.Advance(2 * time.Second)
			}
			w.awaitWord(want)
			n := len(w.net.Logins())
			for range 3 {
				eventually(t, "only the sweep waits", func() bool { return fake.Waiters() == 1 })
				fake.Advance(24 * time.Hour)
			}
			if again := len(w.net.Logins()); again != n {
				t.Errorf("%d logins by itself", again-n)
			}
			if want == "logged_out" {
				w.pair()
			} else if err := w.conn.Reconnect(t.Context(), theSession); err != nil {
				t.Error(err)
			}
			w.awaitWord("online")
		})
	}
}

// After several messages that the network accepted and never acknowledged, the number sends nothing for some minutes,
// although its connection is open.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.net.Phone(annaNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "bene"))
	w.net.Inject(whatsapptest.Fault{From: shopNumber, DropAck: true})
	one := w.text("+"+annaNumber, "lo stesso")
	for range 4 { // the same message counts once
		if _, err := w.send(one); err == nil || puntuale.AsSendError(err) != nil {
			t.Fatalf("no acknowledgement: %v", err)
		}
		one.Attempt, one.Repeat = one.Attempt+1, true
	}
	if !w.conn.Online(theSession) {
		t.Fatal("one message made it quiet")
	}
	for range 2 {
		if _, err := w.send(w.text("+"+annaNumber, "un altro")); err == nil {
			t.Fatal("no acknowledgement, and no error")
		}
	}
	r := w.awaitWord("waiting")
	if remaining := time.Until(r.Until); remaining < 5*time.Minute || !strings.Contains(italian(r.Detail), "conferma") || w.conn.Online(theSession) {
		t.Errorf("quiet: %+v", r)
	}
	w.mu.Lock()
	if !strings.Contains(w.log.String(), "level=ERROR") {
		t.Error("nobody is alerted")
	}
	w.mu.Unlock()
	if _, err := w.send(w.text("+"+annaNumber, "ancora")); kindOf(err) != puntuale.SessionDown {
		t.Errorf("while it is quiet: %v", err)
	}
}

// A node that lost its lease logs in no number.
func TestNotOwned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	w.stop()
	owned, asked := make(chan struct{}), make(chan struct{})
	w.owned = func() bool {
		select {
		case <-owned:
			return true
		case asked <- struct{}{}:
			return false
		}
	}
	w.start()
	n := len(w.net.Logins())
	w.open()
	for range 3 {
		<-asked
	}
	if again := len(w.net.Logins()); again != n || w.conn.Online(theSession) {
		t.Errorf("%d logins without a lease", again-n)
	}
	close(owned)
	w.await("it is online", func() bool { return w.conn.Online(theSession) })
}

// The network repeats a report that could not be stored.
func TestToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.mu.Lock()
	w.fails = errors.New("the disk is away")
	w.mu.Unlock()
	e := w.text("+"+annaNumber, "ciao")
	w.mustSend(e)
	m := anna.Await(t, whatsapptest.Text("ciao"))
	if _, err := anna.Reply(t.Context(), m, "eccomi"); err != nil {
		t.Fatal(err)
	}
	w.await("both were told", func() bool {
		receipts, messages := 0, 0
		for _, told := range w.failed {
			receipts += len(told.Receipts)
			messages += len(told.Messages)
		}
		return receipts > 0 && messages > 0
	})
	w.mu.Lock()
	w.fails = nil
	w.mu.Unlock()
	w.shop.Cut()
	w.await("it is told again", func() bool { return len(w.receipts(e.Message)) > 0 && w.wrote["+"+annaNumber] })
}
