package sendapp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

// pairing begins to link a session, and returns the text of the first code.
func (w *world) pairing(id puntuale.SessionID) string {
	w.t.Helper()
	before := len(w.reportsOf(id))
	if err := w.conn.Pair(w.within(), id, puntuale.PairQR, ""); err != nil {
		w.t.Fatal(err)
	}
	if r := w.last(id); r.State != puntuale.LinkPairing {
		w.t.Errorf("once a pairing is begun, the last report is %+v", r)
	}
	var r puntuale.LinkReport
	w.until("a code", func() bool { // a status check that began before may report first
		reports := w.reportsOf(id)[before:]
		i := slices.IndexFunc(reports, func(r puntuale.LinkReport) bool { return r.State == puntuale.LinkPairing && r.Code.Text != "" })
		if i >= 0 {
			r = reports[i]
		}
		return i >= 0
	})
	if r.Code.Method != puntuale.PairQR || !r.Until.After(w.clock.Now()) {
		w.t.Fatalf("%+v, want a code", r)
	}
	return r.Code.Text
}

// TestPairing begins with keys without an instance. At the end the number is online and reports to its webhook.
func TestPairing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	id := w.open(w.keys(""))
	w.session = id
	if r := w.last(id); r.State != puntuale.LinkUnlinked || r.Detail.IsZero() {
		t.Errorf("before: %+v", r)
	}
	first := w.pairing(id)
	w.later(3*time.Second, "another code", func() bool { return w.last(id).Code.Text != first })
	w.peer.Scan(w.last(id).Code.Text, own)
	w.later(3*time.Second, "online", func() bool { return w.conn.Online(id) })
	if r := w.last(id); r.State != puntuale.LinkOnline || r.Number != "+"+own || !r.Detail.IsZero() {
		t.Errorf("linked: %+v", r)
	}
	if at := w.peer.Webhook(own); at != w.hooks.URL+id.GatewayWebhookPath(w.vault.Mark) {
		t.Errorf("the gateway reports to %q", at)
	}
	if _, err := w.send(person, text("ciao")); err != nil {
		t.Error(err)
	}
}

// If nobody scans the code, the pairing ends by itself and reports why. Another pairing may follow.
func TestPairingExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	id := w.open(w.keys(""))
	w.pairing(id)
	w.later(3*time.Second, "the end", func() bool { return w.last(id).State == puntuale.LinkUnlinked })
	if w.last(id).Detail.IsZero() {
		t.Error("nobody says why the pairing ended")
	}
	w.peer.Scan(w.pairing(id), own)
	w.later(3*time.Second, "online", func() bool { return w.conn.Online(id) })
}

// A gateway gives all callers the same instance until this instance is linked. So a second session of the account must
// wait.
func TestOnePairingAtATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := newWorld(t, d)
		first, second := w.open(w.keys("")), w.open(w.keys(""))
		code := w.pairing(first)
		if err := w.conn.Pair(w.within(), second, puntuale.PairQR, ""); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Fatalf("a second pairing: %v, want a conflict", err)
		}
		w.peer.Scan(code, own)
		w.later(3*time.Second, "online", func() bool { return w.conn.Online(first) })
		w.peer.Scan(w.pairing(second), "390119999999")
		w.later(3*time.Second, "online", func() bool { return w.conn.Online(second) })
	})
}

// Two sessions cannot send from one number, because their acks and echoes could not be distinguished.
func TestOneSessionPerInstance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		k := w.keys(w.instance())
		_, err := w.c.CreateGateway(t.Context(), puntuale.Session{Name: "doppia", Type: puntuale.SendApp, Created: storetest.Begin}, k.Mark(w.vault.Mark),
			func(puntuale.SessionID) []byte { return []byte("x") }, nil)
		if puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("%v, want a conflict", err)
		}
	})
}

// If a user replaces the keys while the gateway makes an instance, the new keys are not overwritten.
func TestKeysReplaced(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := newWorld(t, d)
		id := w.open(w.keys(""))
		replaced := w.keys("")
		replaced.AccessToken = "another"
		w.asked(func(path string) {
			if path != gatewaytest.Base+"/create_instance" {
				return
			}
			if err := w.c.ChangeKeys(t.Context(), id, func([]byte) ([]byte, string, error) {
				return w.vault.Seal(puntuale.SealedGateway, id.SealPlace(), replaced.JSON()), "", nil
			}); err != nil {
				t.Error(err)
			}
		})
		if err := w.conn.Pair(w.within(), id, puntuale.PairQR, ""); puntuale.CodeOf(err) != puntuale.CodeBusy {
			t.Errorf("%v, want busy", err)
		}
		if now := w.stored(id); now != replaced {
			t.Errorf("%+v are stored, want %+v", now, replaced)
		}
	})
}

// If another instance replaces the first one, the connector also sets the new instance's webhook.
func TestInstanceReplaced(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	const other = "390119999999"
	k := w.keys(w.peer.Linked(other))
	if err := w.c.ChangeKeys(t.Context(), w.session, func([]byte) ([]byte, string, error) {
		return w.vault.Seal(puntuale.SealedGateway, w.session.SealPlace(), k.JSON()), k.Mark(w.vault.Mark), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Test(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	if w.peer.Webhook(other) == "" || w.peer.Webhook(other) != w.peer.Webhook(own) {
		t.Errorf("it reports to %q, the one before to %q", w.peer.Webhook(other), w.peer.Webhook(own))
	}
}

func TestPairingRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	id := w.open(w.keys(""))
	if err := w.conn.Pair(w.within(), id, puntuale.PairCode, person); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("with a code to type: %v", err)
	}
	k := w.keys("")
	k.AccessToken = "another"
	other := w.open(k)
	err := w.conn.Pair(w.within(), other, puntuale.PairQR, "")
	if puntuale.CodeOf(err) != puntuale.CodeConflict || strings.Contains(err.Error(), "another") {
		t.Errorf("with a wrong token: %v", err)
	}
	w.peer.Undrawn()
	if err := w.conn.Pair(w.within(), id, puntuale.PairQR, ""); err != nil {
		t.Fatal(err)
	}
	w.until("its end", func() bool { return w.last(id).State == puntuale.LinkUnlinked && len(w.reportsOf(id)) > 1 })
}

// TestDisconnections: a status check notices each way in which a number stops sending. It also notices when the number
// can send again.
func TestDisconnections(t *testing.T) {
	t.Parallel()
	for _, newer := range []bool{false, true} {
		w := linked(t, storetest.SQLite)
		if newer {
			w.peer.Newer()
		}
		w.peer.Lose(own, false)
		w.later(time.Minute, "offline", func() bool { return !w.conn.Online(w.session) })
		if r := w.last(w.session); r.Detail.IsZero() || newer != (r.State == puntuale.LinkLinked) {
			t.Errorf("newer %v, offline: %+v", newer, r)
		}
		w.peer.Back(own)
		w.later(time.Minute, "online", func() bool { return w.conn.Online(w.session) })
		w.peer.Lose(own, true)
		w.later(time.Minute, "logged out", func() bool { return w.last(w.session).State == puntuale.LinkUnlinked })
		w.peer.Scan(w.pairing(w.session), "390118888888") // links a second instance
		w.later(3*time.Second, "online", func() bool { return w.conn.Online(w.session) })
	}
}

// TestUnlink: unlinking removes the number, also at the gateway. The keys that a new link needs stay.
func TestUnlink(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	if err := w.conn.Unlink(w.within(), w.session); err != nil {
		t.Fatal(err)
	}
	if w.conn.Online(w.session) || w.instance() != "" {
		t.Error("the number is still known here")
	}
	if err := w.conn.Unlink(w.within(), w.session); err != nil {
		t.Errorf("again: %v", err)
	}
	w.peer.Scan(w.pairing(w.session), own)
	w.later(3*time.Second, "online", func() bool { return w.conn.Online(w.session) })
}

// If another node opens a session, the session has the same state as before.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	w.conn.Close(w.within(), w.session)
	if w.conn.Online(w.session) {
		t.Error("a closed session is online")
	}
	if _, err := w.send(person, text("x")); puntuale.AsSendError(err) == nil || puntuale.AsSendError(err).Kind != puntuale.SessionDown {
		t.Errorf("a closed session sends: %v", err)
	}
	w.take(w.session)
	w.until("online", func() bool { return w.conn.Online(w.session) })
}

// If a number sends messages and none is confirmed, the session shows a warning.
func TestNothingConfirmed(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	var all []flying
	var sent []gatewaytest.Sent
	for i := range 20 {
		f := w.fly(number(i), "ciao")
		w.record(f)
		all, sent = append(all, f), append(sent, w.lastSent())
	}
	w.clock.Advance(11 * time.Minute)
	w.later(time.Minute, "a doubt", func() bool { return !w.last(w.session).Detail.IsZero() })
	if !w.conn.Online(w.session) {
		t.Error("a doubt holds nothing back")
	}
	w.report("messages.update", gatewaytest.Ack(sent[len(all)-1], 3))
	w.later(time.Minute, "no doubt", func() bool { return w.last(w.session).Detail.IsZero() })
}

// TestPairingPanics: a pairing that panics, at whichever call of the gateway, is in the log, and the person who waits for a
// code learns that it has ended. Another pairing may follow.
func TestPairingPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	id := w.open(w.keys(""))
	w.pairing(id)
	for _, call := range []string{"get_qrcode", "reconnect"} {
		w.asked(func(path string) {
			if strings.HasSuffix(path, call) {
				panic("an answer that nobody thought of")
			}
		})
		w.later(3*time.Second, "the end after "+call, func() bool { return w.last(id).State == puntuale.LinkUnlinked })
		if r := w.last(id); r.Detail.Code != "sendapp.pair_again" {
			t.Errorf("%s: %+v", call, r)
		}
		if log := w.log.take(); strings.Count(log, "pairing panicked") != 1 {
			t.Errorf("%s: the log says %s", call, log)
		}
		w.asked(nil)
		w.pairing(id)
	}
}
