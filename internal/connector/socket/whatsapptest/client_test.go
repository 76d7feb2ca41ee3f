//go:build !nosocket

package whatsapptest_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite"

	"puntuale/internal/connector/socket/whatsapptest"
)

// client is a linked client with a real store, as in the product. It stores all events that it gets.
type client struct {
	*whatsmeow.Client
	t *testing.T

	mu      sync.Mutex
	seen    []any
	changed chan struct{}
}

// newClient returns a client that is not linked, with a store of its own.
func newClient(t *testing.T, net *whatsapptest.Network) *client {
	t.Helper()
	net.FewKeys()
	dsn := "file:" + filepath.Join(t.TempDir(), "client.db") + "?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(0)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // with two connections, a transaction would fail if another connection wrote after the transaction's first read
	container := sqlstore.NewWithDB(db, "sqlite", nil)
	if err := container.Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	return openClient(t, net, whatsmeow.NewClient(container.NewDevice(), nil))
}

func openClient(t *testing.T, net *whatsapptest.Network, w *whatsmeow.Client) *client {
	c := &client{Client: w, t: t, changed: make(chan struct{})}
	via := net.HTTPClient()
	c.SetPreLoginHTTPClient(via)
	c.SetWebsocketHTTPClient(via)
	c.SetMediaHTTPClient(via)
	c.UseRetryMessageStore = true
	c.ManualHistorySyncDownload = true
	c.AddEventHandler(c.handle)
	t.Cleanup(c.Disconnect)
	return c
}

func (c *client) handle(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, event)
	close(c.changed)
	c.changed = make(chan struct{})
}

// await skips a number of events. Then it waits for an event of the type E for which match returns true.
func await[E any](c *client, skip int, match func(E) bool) E {
	c.t.Helper()
	late := time.After(whatsapptest.WaitMost)
	for {
		c.mu.Lock()
		seen, changed := c.seen, c.changed
		c.mu.Unlock()
		for _, event := range seen[min(skip, len(seen)):] {
			if e, ok := event.(E); ok && (match == nil || match(e)) {
				return e
			}
		}
		select {
		case <-changed:
		case <-late:
			var none E
			var kinds []string
			for _, event := range seen {
				kinds = append(kinds, fmt.Sprintf("%T", event))
			}
			c.t.Fatalf("no %T after %d among %q; of that kind: %+v", none, skip, kinds, of[E](seen))
		}
	}
}

// The function named of returns the events of one type.
func of[E any](seen []any) (some []E) {
	for _, event := range seen {
		if e, ok := event.(E); ok {
			some = append(some, e)
		}
	}
	return some
}

// events returns how many events the client got so far. Pass the number to await to wait for later events.
func (c *client) events() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// linked links a new client to an account by QR code, and returns the client once it is logged in.
func linked(t *testing.T, net *whatsapptest.Network, account *whatsapptest.Account) *client {
	t.Helper()
	c := newClient(t, net)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	codes := await[*events.QR](c, 0, nil).Codes
	if err := account.ScanQR(t.Context(), codes[0]); err != nil {
		t.Fatal(err)
	}
	await[*events.PairSuccess](c, 0, nil)
	await[*events.Connected](c, 0, nil)
	return c
}

// sendText sends a text and returns its id.
func (c *client) sendText(to types.JID, text string) string {
	c.t.Helper()
	sent, err := c.SendMessage(context.Background(), to, &waE2E.Message{Conversation: proto.String(text)})
	if err != nil {
		c.t.Fatal(err)
	}
	return sent.ID
}

// picture is sent as a picture. No part of the test decodes it.
const picture = "\xff\xd8\xff\xe0 a picture"

func number(n string) types.JID { return types.NewJID(n, types.DefaultUserServer) }

// sendImage uploads and sends a picture and returns the message's id.
func (c *client) sendImage(to types.JID, content string) string {
	c.t.Helper()
	up, err := c.Upload(context.Background(), []byte(content), whatsmeow.MediaImage)
	if err != nil {
		c.t.Fatal(err)
	}
	sent, err := c.SendMessage(context.Background(), to, &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
		Caption: proto.String("guarda"), Mimetype: proto.String("image/jpeg"), URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey,
		FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength,
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	return sent.ID
}
