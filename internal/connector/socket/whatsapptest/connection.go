//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/types"
)

// farewell is how long a connection stays open after the server's last stanza, because clients lose a stanza that comes
// just before the connection closes.
const farewell = 500 * time.Millisecond

var quiet = log.New(io.Discard, "", 0)

// connection is one websocket of a client.
type connection struct {
	n       *Network
	ws      *websocket.Conn
	ctx     context.Context
	end     context.CancelFunc
	tunnel  tunnel
	noise   [32]byte // the client's public key
	payload *waWa6.ClientPayload

	// Guarded by n.mu.
	device  *device // nil before login
	pairing *pairing
	active  bool // the client may get stanzas
	deaf    bool // everything from the client is ignored
	closing bool

	arriving bool

	outgoing sync.Mutex
	queue    []letter
	queued   chan struct{} // wakes the method write; its capacity is one
}

// letter is a stanza in the queue to the client, with the time to send it.
type letter struct {
	due    time.Time
	stanza stanza
}

// accept upgrades a request to a websocket, and serves the websocket until the websocket ends.
func (n *Network) accept(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	refused := n.closed || n.refusing
	if r.Header.Get("Origin") != socket.Origin {
		n.misunderstood("a websocket from the origin %q", r.Header.Get("Origin"))
	}
	if !refused {
		n.open.Add(1)
	}
	n.mu.Unlock()
	if refused {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	defer n.open.Done()
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	ws.SetReadLimit(socket.FrameMaxSize + 64)
	ctx, end := context.WithCancel(n.ctx)
	c := &connection{n: n, ws: ws, ctx: ctx, end: end, queued: make(chan struct{}, 1)}
	n.mu.Lock()
	n.connections[c], c.arriving = true, true
	n.arriving++
	n.peakArriving = max(n.peakArriving, n.arriving)
	n.mu.Unlock()
	c.run()
	end()
	_ = ws.CloseNow()
	n.mu.Lock()
	defer n.mu.Unlock()
	c.forget()
}

// run does the handshake. Then it handles the client's stanzas until the connection ends.
func (c *connection) run() {
	frames := &frameReader{c: c}
	if err := c.shake(frames); err != nil {
		if c.ctx.Err() == nil && !errors.Is(err, io.EOF) {
			c.n.mu.Lock()
			c.n.misunderstood("a handshake: %v", err)
			c.n.mu.Unlock()
		}
		return
	}
	var writing sync.WaitGroup
	writing.Go(c.write)
	defer writing.Wait()
	defer c.end()
	c.n.mu.Lock()
	c.greet()
	c.n.notify()
	c.n.mu.Unlock()
	for {
		sealed, err := frames.next()
		if err != nil {
			return
		}
		s, err := c.decode(sealed)
		c.n.mu.Lock()
		switch {
		case err != nil:
			c.n.misunderstood("a frame: %v", err)
		case !c.deaf && !c.closing:
			c.tell("->", s)
			c.handle(s)
			c.n.notify()
		}
		c.n.mu.Unlock()
	}
}

func (c *connection) shake(frames *frameReader) error {
	first, err := frames.next()
	if err != nil {
		return io.EOF // the client disconnected before it sent anything
	}
	answer, ephemeral, err := c.tunnel.hello(first, c.n.certificates)
	if err != nil {
		return err
	}
	if err := c.ws.Write(c.ctx, websocket.MessageBinary, frame(answer)); err != nil {
		return io.EOF
	}
	second, err := frames.next()
	if err != nil {
		return io.EOF
	}
	c.noise, c.payload, err = c.tunnel.finish(second, ephemeral)
	return err
}

func (c *connection) decode(sealed []byte) (stanza, error) {
	plain, err := c.tunnel.decrypt(sealed)
	if err != nil {
		return stanza{}, fmt.Errorf("decrypt: %w", err)
	}
	unpacked, err := waBinary.Unpack(plain)
	if err != nil {
		return stanza{}, fmt.Errorf("unpack: %w", err)
	}
	s, err := waBinary.Unmarshal(unpacked)
	if err != nil {
		return stanza{}, fmt.Errorf("decode: %w", err)
	}
	return *s, nil
}

// frameReader reads frames from websocket messages. A message may contain a part of a frame, or several frames.
type frameReader struct {
	c      *connection
	rest   []byte
	headed bool
}

func (f *frameReader) next() ([]byte, error) {
	for {
		if !f.headed && len(f.rest) >= len(socket.WAConnHeader) {
			if !bytes.HasPrefix(f.rest, socket.WAConnHeader) {
				return nil, fmt.Errorf("the stream begins with % x", f.rest[:len(socket.WAConnHeader)])
			}
			f.rest, f.headed = f.rest[len(socket.WAConnHeader):], true
		}
		if f.headed && len(f.rest) >= socket.FrameLengthSize {
			length := int(f.rest[0])<<16 | int(f.rest[1])<<8 | int(f.rest[2])
			if whole := socket.FrameLengthSize + length; len(f.rest) >= whole {
				payload := f.rest[socket.FrameLengthSize:whole]
				f.rest = f.rest[whole:]
				return payload, nil
			}
		}
		kind, more, err := f.c.ws.Read(f.c.ctx)
		if err != nil {
			return nil, err
		}
		if kind != websocket.MessageBinary {
			return nil, errors.New("a websocket message of text")
		}
		f.rest = append(f.rest, more...)
	}
}

// send puts a stanza into the queue to the client. The caller holds n.mu.
func (c *connection) send(s stanza) {
	c.tell("<-", s)
	c.outgoing.Lock()
	c.queue = append(c.queue, letter{due: time.Now().Add(c.n.latency), stanza: s})
	c.outgoing.Unlock()
	select {
	case c.queued <- struct{}{}:
	default:
	}
}

// write sends the queued stanzas in their order, each at its due time.
func (c *connection) write() {
	for {
		c.outgoing.Lock()
		letters := c.queue
		c.queue = nil
		c.outgoing.Unlock()
		for _, l := range letters {
			if !c.pause(time.Until(l.due)) {
				return
			}
			plain, err := waBinary.Marshal(l.stanza)
			if err == nil {
				err = c.ws.Write(c.ctx, websocket.MessageBinary, frame(c.tunnel.encrypt(plain)))
			}
			if err != nil {
				c.cut()
				return
			}
		}
		select {
		case <-c.queued:
		case <-c.ctx.Done():
			return
		}
	}
}

// pause waits for d. It reports false if the connection ended first.
func (c *connection) pause(d time.Duration) bool {
	if d <= 0 {
		return c.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// cut breaks the connection without a closing frame.
func (c *connection) cut() { c.end() }

// dismiss sends a last stanza and closes the connection a little later. The caller holds n.mu.
func (c *connection) dismiss(last stanza) {
	if c.closing {
		return
	}
	c.send(last)
	c.closing = true
	c.forget()
	time.AfterFunc(farewell+c.n.latency, c.end)
}

// forget removes the connection from the network's lists. The caller holds n.mu.
func (c *connection) forget() {
	delete(c.n.connections, c)
	c.arrived()
	if c.device != nil && c.device.connection == c {
		c.device.connection = nil
	}
	if c.pairing != nil {
		c.pairing.forget()
	}
	c.n.notify()
}

// tell writes a stanza to the test's log if Trace was called. The caller holds n.mu.
func (c *connection) tell(direction string, s stanza) {
	if !c.n.trace || c.n.closed {
		return
	}
	name := "guest"
	if c.device != nil {
		name = c.device.pn().String()
	}
	c.n.t.Logf("%s %s %s", name, direction, s.String())
}

// handle calls the handler of a stanza's kind. The caller holds n.mu.
func (c *connection) handle(s stanza) {
	if s.Tag == "iq" {
		c.query(s)
		return
	}
	for _, known := range stanzas {
		if known.tag != s.Tag {
			continue
		}
		if c.device == nil && s.Tag != "ib" && s.Tag != "ack" {
			break
		}
		if fault := known.check(s); fault != "" {
			c.n.misunderstood("%s: %s", fault, s.String())
			return
		}
		known.handle(c, s)
		return
	}
	c.n.misunderstood("%s", s.String())
}

// stanzaKind is a kind of stanza that needs no answer. Queries need an answer, so they have the type queryKind.
type stanzaKind struct {
	shape
	handle func(*connection, stanza)
}

var stanzas []stanzaKind

// init fills the table. The declaration cannot contain the values, because the handlers refer to the table.
func init() {
	stanzas = []stanzaKind{
		{messageShape, (*connection).message},
		{receiptShape, (*connection).receipt},
		{sh("ack", "class=message|receipt|notification|call id to:jid participant:jid? recipient:jid? type? error?"), (*connection).ack},
		{sh("presence", "type=available|unavailable|subscribe name? to:jid?", maybe(raw("tctoken", ""))), (*connection).presence},
		{sh("chatstate", "to:jid", maybe(sh("composing", "media?=audio")), maybe(sh("paused", ""))), (*connection).chatstate},
		{sh("ib", "", one(sh("unified_session", "id"))), func(*connection, stanza) {}},
	}
}

// server is the sender's address in the server's own stanzas.
var server = types.ServerJID
