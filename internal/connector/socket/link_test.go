//go:build !nosocket

package socket_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/socket/whatsapptest"
)

// A number is linked by QR code and sends a message. The phone reads the message, and its receipts come back.
func TestLinkAndSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	if r := w.last(); r.Number != "+"+shopNumber || !w.conn.Online(theSession) || r.Code.Text != "" {
		t.Errorf("linked: %+v", r)
	}
	e := w.text("+"+annaNumber, "ciao Anna")
	r := w.mustSend(e)
	m := anna.Await(t, whatsapptest.Text("ciao Anna"))
	if m.ID != r.Detail.String() || m.From != shopNumber {
		t.Errorf("the phone shows %+v, the receipt says %q", m, r.Detail)
	}
	w.await("it was delivered", func() bool { return len(w.receipts(e.Message)) > 0 })
	if err := anna.MarkRead(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.await("it was read", func() bool {
		kinds := w.receipts(e.Message)
		return len(kinds) > 1 && kinds[0] == puntuale.ReceiptDelivered && kinds[len(kinds)-1] == puntuale.ReceiptRead
	})
	if _, err := anna.Send(t.Context(), shopNumber, "eccomi"); err != nil {
		t.Fatal(err)
	}
	w.await("Anna was heard", func() bool { return w.wrote["+"+annaNumber] })
}

// Nobody can read a number's keys or its messages in the database file. None of them is in the log.
func TestSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "una cosa segreta"))
	anna.Await(t, whatsapptest.Text("una cosa segreta"))
	var all []byte
	for _, part := range []string{"", "-wal"} {
		content, err := os.ReadFile(w.file + part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content...)
	}
	if bytes.Contains(all, []byte("una cosa segreta")) {
		t.Error("what was sent can be read in the file")
	}
	for _, column := range []string{"noise_key", "identity_key", "signed_pre_key"} {
		var key []byte
		if err := w.db.QueryRow("select " + column + " from whatsmeow_device").Scan(&key); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(key, make([]byte, 32)) {
			t.Errorf("%s is not blank", column)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range []string{"segreta", annaNumber, shopNumber, "wa.me"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, w.log)
		}
	}
}

// A number is linked by a code that a person types into the phone.
func TestLinkByCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	w.awaitWord("unlinked")
	if err := w.conn.Pair(t.Context(), theSession, puntuale.PairCode, "+"+shopNumber); err != nil {
		t.Fatal(err)
	}
	r := w.awaitWord("pairing")
	w.await("a code", func() bool {
		r = w.last()
		return r.Code.Text != ""
	})
	if r.Code.Method != puntuale.PairCode || len(r.Code.Text) != 9 || r.Code.Text[4] != '-' {
		t.Errorf("the code is %+v", r.Code)
	}
	if err := w.shop.EnterCode(t.Context(), r.Code.Text); err != nil {
		t.Fatal(err)
	}
	w.awaitWord("online")
}

// Codes are shown one after the other, each until it expires. After the last code the pairing ends.
func TestCodesRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	fake := clock.NewFake(time.Now())
	w.clock = fake
	w.start()
	w.open()
	w.awaitWord("unlinked")
	if err := w.conn.Pair(t.Context(), theSession, puntuale.PairQR, ""); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 6 {
		var r puntuale.LinkReport
		w.await("another code", func() bool {
			r = w.last()
			return r.Code.Text != "" && !seen[r.Code.Text]
		})
		seen[r.Code.Text] = true
		want := 20 * time.Second
		if i == 0 {
			want = time.Minute
		}
		if left := r.Until.Sub(fake.Now()); left != want || r.Code.Method != puntuale.PairQR {
			t.Errorf("code %d: %+v, for %v", i, r.Code, left)
		}
		eventually(t, "the code's end is waited for", func() bool { return fake.Waiters() == 2 }) // the sweep is the second waiter
		fake.Advance(want)
	}
	if r := w.awaitWord("unlinked"); r.Code.Text != "" || r.Detail.IsZero() {
		t.Errorf("after the last: %+v", r)
	}
	w.pair() // if a person starts a pairing again, new codes are shown
}

// The network replaces the secret in the codes. All later codes contain the new secret, and a phone accepts them.
func TestSecretRotates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	w.awaitWord("unlinked")
	if err := w.conn.Pair(t.Context(), theSession, puntuale.PairQR, ""); err != nil {
		t.Fatal(err)
	}
	var first, second puntuale.LinkReport
	w.await("a code", func() bool { first = w.last(); return first.Code.Text != "" })
	w.net.RotateCodes()
	w.await("another code", func() bool {
		second = w.last()
		return second.Code.Text != first.Code.Text
	})
	if !second.Until.Equal(first.Until) {
		t.Errorf("it lives until %v, the first until %v", second.Until, first.Until)
	}
	if err := w.shop.ScanQR(t.Context(), second.Code.Text); err != nil {
		t.Fatal(err)
	}
	w.awaitWord("online")
}

// If the phone asks for a passkey, the session shows that, and no code is shown any more.
func TestPasskey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shop.RequirePasskey(true)
	w.open()
	w.awaitWord("unlinked")
	if err := w.conn.Pair(t.Context(), theSession, puntuale.PairQR, ""); err != nil {
		t.Fatal(err)
	}
	var code string
	w.await("a code", func() bool {
		code = w.last().Code.Text
		return code != ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_ = w.shop.ScanQR(ctx, code) // ScanQR waits for a passkey that nobody can give
	w.await("it asks for a passkey", func() bool {
		return w.last().Condition == puntuale.NeedsPasskey && w.last().Code.Text == ""
	})
}

// After a restart the number connects with its stored keys. Unlinking removes the keys, and the phone no longer lists
// the device.
func TestRestartAndUnlink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.stop()
	w.start()
	w.open()
	w.await("it is online again", func() bool { return w.conn.Online(theSession) })
	w.mustSend(w.text("+"+annaNumber, "di nuovo"))
	anna.Await(t, whatsapptest.Text("di nuovo"))
	if n := len(w.shop.Devices()); n != 2 {
		t.Fatalf("%d devices are listed", n)
	}
	if err := w.conn.Unlink(t.Context(), theSession); err != nil {
		t.Fatal(err)
	}
	if n := len(w.shop.Devices()); n != 1 || w.conn.Online(theSession) {
		t.Errorf("%d devices are listed, online %v", n, w.conn.Online(theSession))
	}
	for _, table := range []string{"socket_device", "whatsmeow_device", "whatsmeow_sessions", "whatsmeow_pre_keys", "whatsmeow_privacy_tokens"} {
		var rows int
		if err := w.db.QueryRow("select count(*) from " + table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%s has %d rows (%v)", table, rows, err)
		}
	}
	w.pair() // the number can be linked again
	w.mustSend(w.text("+"+annaNumber, "con altre chiavi"))
	anna.Await(t, whatsapptest.Text("con altre chiavi"))
}

// The library removes a device while its own goroutines still read the device. The device in memory must not change.
// Its rows must be removed, and no row may be added afterwards.
func TestRemovedDeviceIsReadMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var device *store.Device
	if err := w.conn.Adopt(t.Context(), theSession, func(d *store.Device) error {
		device = d
		return w.shop.Adopt(d)
	}); err != nil {
		t.Fatal(err)
	}
	token := store.PrivacyToken{User: types.NewJID(annaNumber, types.DefaultUserServer), Token: []byte("token"), Timestamp: time.Now()}
	if err := device.PrivacyTokens.PutPrivacyTokens(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	begin := make(chan struct{})
	var refused error
	reader.Go(func() { // like a goroutine of the library, without a lock
		<-begin
		for refused == nil {
			refused = device.PrivacyTokens.PutPrivacyTokens(t.Context(), token)
		}
	})
	close(begin)
	if err := device.Delete(t.Context()); err == nil || device.ID == nil || device.Deleted {
		t.Errorf("removed: %v, id %v, deleted %v", err, device.ID, device.Deleted)
	}
	reader.Wait()
	for _, table := range []string{"socket_device", "whatsmeow_device"} {
		var rows int
		if err := w.db.QueryRow("select count(*) from " + table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%s has %d rows (%v)", table, rows, err)
		}
	}
}
