//go:build !nosocket

package socket_test

import (
	"strconv"
	"testing"

	"puntuale/internal/connector/socket/whatsapptest"
)

// Two numbers write to each other without a pause, and no message is lost. The library alone would lose a few messages. It
// encrypts and decrypts for one device at the same time, and may write an older state over a newer one.
func TestBothWays(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, w *world) {
		const many = 200
		anna := w.net.Phone(annaNumber)
		w.link()
		w.mustSend(w.text("+"+annaNumber, "prima"))
		anna.Await(t, whatsapptest.Text("prima"))
		written := make(chan int, 1)
		go func() {
			n := 0
			for n < many {
				if _, err := anna.Send(t.Context(), shopNumber, "A"+strconv.Itoa(n)); err != nil {
					t.Error(err)
					break
				}
				n++
			}
			written <- n
		}()
		sent := map[string]bool{}
		for i := range many {
			if i%20 == 0 { // the phone requests some messages again, so they are encrypted again meanwhile
				w.net.Inject(whatsapptest.Fault{From: shopNumber, Corrupt: true, Times: 1})
			}
			sent[w.mustSend(w.text("+"+annaNumber, "S"+strconv.Itoa(i))).Detail.String()] = true
		}
		want := <-written
		w.shop.AwaitSettled(t) // wait until the shop acknowledged and stored all of Anna's messages
		w.mustSend(w.text("+"+annaNumber, "fine"))
		anna.Await(t, whatsapptest.Text("fine")) // at this time only messages that Anna requested again can be missing, because she handles all others in their order
		defer func() {
			if t.Failed() {
				t.Logf("%d of %d messages were never shown", len(sent), many)
			}
		}()
		eventually(t, "all messages are shown", func() bool {
			for _, m := range anna.Messages() {
				delete(sent, m.ID)
			}
			return len(sent) == 0
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if heard := w.heard("+" + annaNumber); heard != want {
			t.Errorf("%d of Anna's %d messages were heard", heard, want)
		}
	})
}
