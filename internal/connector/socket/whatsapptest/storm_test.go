//go:build !nosocket && !race

package whatsapptest_test

import (
	"strconv"
	"testing"

	"puntuale/internal/connector/socket/whatsapptest"
)

// TestStorm: a phone writes to others and to a group while all connections break again and again. Every acknowledged
// message is shown. Only one phone writes, because the library loses messages if two clients write to each other at the
// same time. The test does not run under the race detector, because the library itself has races when connections
// break.
func TestStorm(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	phones := []*whatsapptest.Phone{net.Phone("393330000001"), net.Phone("393330000002"), net.Phone("393330000003")}
	group := net.Group("Tutti", phones[0].Account, phones[1].Account, phones[2].Account)
	sent := map[string][]*whatsapptest.Phone{} // the phones that must show each message, by its id
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 60 {
			to, readers := group.JID().String(), phones[1:]
			if i%3 != 0 {
				to, readers = phones[i%3].Number(), phones[i%3:i%3+1]
			}
			if id, err := phones[0].Send(t.Context(), to, strconv.Itoa(i)); err == nil {
				sent[id] = readers
			}
		}
	}()
	for range 4 {
		net.AwaitStanzas(t, len(net.Stanzas())+5, done)
		for _, phone := range phones { // a cut in the middle of a handshake costs a client 20 seconds
			phone.AwaitOnline(t)
		}
		net.CutAll()
	}
	<-done
	for id, readers := range sent {
		for _, reader := range readers {
			reader.Await(t, whatsapptest.ID(id))
		}
	}
	if len(sent) < 10 {
		t.Errorf("only %d messages were sent", len(sent))
	}
}
