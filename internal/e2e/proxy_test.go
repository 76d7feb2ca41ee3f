//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/store/storetest"
)

// proxy connects a server with PostgreSQL, or a browser with a server. It acts like a network that can fail.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	address  string // the address of the database, through the proxy

	mu    sync.Mutex
	heals chan struct{} // closed when the network works again; nil: the network works
	gone  bool          // true: the proxy resets all connections
	how   int           // if armed is true, what happens at the next COMMIT that stores a run: one of the constants below
	armed bool
	open  map[net.Conn]bool
}

// What happens at a COMMIT. After this COMMIT, the network does not work until it heals.
const (
	cutBefore = iota // the database does not get the COMMIT
	cutAfter         // the database gets the COMMIT, and its answer is lost
)

// newProxy returns a proxy for a database. Clients use the proxy's address instead of the database's.
func newProxy(t *testing.T, database string) *proxy {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	network, target := "tcp", address.Host
	if dir := query.Get("host"); strings.HasPrefix(dir, "/") {
		network, target = "unix", fmt.Sprintf("%s/.s.PGSQL.%s", dir, query.Get("port"))
	}
	p := listen(t, func() (net.Conn, error) { return net.Dial(network, target) })
	query.Del("host")
	query.Del("port")
	address.Host, address.RawQuery = p.listener.Addr().String(), query.Encode()
	p.address = address.String()
	return p
}

// listen returns a proxy for connections that dial opens.
func listen(t *testing.T, dial func() (net.Conn, error)) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, dial: dial, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		p.listener.Close()
		p.reset()
		p.heal()
		p.reset()
	})
	go func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			go p.relay(client)
		}
	}()
	return p
}

func (p *proxy) relay(client net.Conn) {
	p.pass()
	if !p.keep(client) {
		end(client)
		return
	}
	server, err := p.dial()
	if err != nil {
		end(client)
		return
	}
	if !p.keep(server) {
		end(client)
		server.Close()
		return
	}
	answered := make(chan struct{}) // closed when the database's answers no longer reach the client
	go func() {
		defer close(answered)
		defer end(client)
		p.copy(client, server, nil)
	}()
	stores := false // true: this connection stores runs
	commit := p.copy(server, client, func(said []byte) bool {
		stores = stores || bytes.Contains(said, []byte("insert into run"))
		return stores && storetest.Commits(said) && p.cuts()
	})
	if commit != nil {
		if p.how == cutAfter {
			end(client)
			// This connection is not reset, because a reset would discard bytes that the database has not read yet.
			p.mu.Lock()
			delete(p.open, server)
			p.mu.Unlock()
			_, _ = server.Write(commit)
			p.reset()
			<-answered
			_ = server.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // the first answer may belong to a statement before the COMMIT
			_, _ = io.Copy(io.Discard, server)
		} else {
			p.reset()
		}
	}
	server.Close()
}

// keep registers a connection, so that it can be reset later. It returns false if the network does not work.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.open[c] = true
	}
	return !p.gone
}

// copy passes on the bytes from one connection to the other, while the network works. If last returns true for some
// bytes, copy returns these bytes and does not pass them on.
func (p *proxy) copy(to, from net.Conn, last func([]byte) bool) []byte {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return nil
		}
		p.pass()
		if last != nil && last(buffer[:n]) {
			return buffer[:n]
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return nil
		}
	}
}

// cuts is called at each COMMIT of a run. It reports whether the network must fail now, and disarms the proxy, so that
// later COMMITs succeed.
func (p *proxy) cuts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed := p.armed
	p.armed = false
	return armed
}

// cutAt makes the network fail at the next COMMIT of a transaction that stores a run.
func (p *proxy) cutAt(how int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.how, p.armed = how, true
}

// pass waits while the network does not deliver. The bytes arrive later, as with TCP.
func (p *proxy) pass() {
	p.mu.Lock()
	heals := p.heals
	p.mu.Unlock()
	if heals != nil {
		<-heals
	}
}

// swallow makes the network lose all bytes without an error.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heals = make(chan struct{})
}

// reset resets all connections, and also each new connection.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for c := range p.open {
		end(c)
	}
	clear(p.open)
}

// heal makes the network work again.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = false
	if p.heals != nil {
		close(p.heals)
		p.heals = nil
	}
}

// end closes a connection with a reset, so that the peer notices the end.
func end(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
