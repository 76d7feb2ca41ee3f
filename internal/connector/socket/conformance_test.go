//go:build !nosocket

package socket_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"puntuale"
	"puntuale/internal/connector/connectortest"
	"puntuale/internal/connector/socket/whatsapptest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, func(t *testing.T) connectortest.Network {
		w := newWorld(t)
		w.media = files{}
		w.stop()
		w.start()
		phones := &phoneBook{net: w.net, all: map[string]*whatsapptest.Phone{}}
		w.link()
		return connectortest.Network{
			Connector: w.conn, Client: theClient, Session: theSession, To: phones.to, Refused: "+393339999999",
			Shown:    func(t *testing.T) []connectortest.Shown { return shown(t, w, phones) },
			Contents: connectortest.Carries{Text: true, Media: true, Location: true},
		}
	})
}

// shown returns what the phones show, once they got all messages that the network accepted.
func shown(t *testing.T, w *world, phones *phoneBook) (all []connectortest.Shown) {
	t.Helper()
	sent := map[string]int{} // the position of each message in the result; a repeat keeps the first position
	for _, s := range w.net.Messages(shopNumber) {
		if _, again := sent[s.ID]; !again {
			sent[s.ID] = len(sent)
		}
	}
	eventually(t, "all that was sent is shown", func() bool { return len(w.net.Ledger().All()) >= len(sent) })
	ledger := w.net.Ledger().All() // not in the order of sending, because each phone shows its messages independently; the next line sorts them
	slices.SortFunc(ledger, func(a, b whatsapptest.Message) int { return sent[a.ID] - sent[b.ID] })
	addresses := map[string]string{}
	for url := range mediaOf {
		addresses[string(bodyOf(url))] = url
	}
	for _, m := range ledger {
		c := puntuale.Content{Text: m.Text}
		switch m.Kind {
		case "image", "document":
			body, err := phones.all[m.Phone].Download(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			c.MediaURL, c.MediaName = addresses[string(body)], m.FileName
		case "location":
			c.Latitude, c.Longitude = new(m.Latitude), new(m.Longitude)
		}
		all = append(all, connectortest.Shown{To: "+" + m.Phone, Content: c})
	}
	return all
}

// mediaOf contains the addresses of the suite's files.
var mediaOf = map[string]bool{"https://example.com/a%20b/foto.JPG?x=1&y=2": true, "https://example.com/listino.pdf": true}

func bodyOf(url string) []byte { return []byte("not really a picture: " + url) }

// phoneBook contains a phone for each recipient of the suite.
type phoneBook struct {
	net *whatsapptest.Network
	mu  sync.Mutex
	all map[string]*whatsapptest.Phone
}

func (b *phoneBook) to(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	number := fmt.Sprintf("39334000%04d", n)
	if b.all[number] == nil {
		b.all[number] = b.net.Phone(number)
	}
	return "+" + number
}
