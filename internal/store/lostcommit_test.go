package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// proxy passes bytes between the store and PostgreSQL. It can cut a connection at a COMMIT.
type proxy struct {
	listener net.Listener
	server   func() (net.Conn, error)
	frozen   sync.RWMutex // while locked, the proxy passes nothing on and closes nothing
	cut      atomic.Int32 // where the proxy cuts the connection of the next COMMIT, if at all
	deaf     atomic.Bool  // the proxy ignores requests to cancel a statement of another connection
	mu       sync.Mutex
	open     []net.Conn
}

const (
	cutNothing int32 = iota
	cutBefore        // before the server receives the COMMIT
	cutAfter         // after the server has committed
	cutDuring        // while the server is committing
)

// behindProxy makes stores of this database connect through a proxy.
func behindProxy(t *testing.T, d *storetest.Database) *proxy {
	t.Helper()
	address, err := url.Parse(d.Config.Database)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	network, target := "tcp", address.Host
	if dir := query.Get("host"); strings.HasPrefix(dir, "/") {
		network, target = "unix", fmt.Sprintf("%s/.s.PGSQL.%s", dir, query.Get("port"))
	}
	p := &proxy{server: func() (net.Conn, error) { return net.Dial(network, target) }}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go p.serve(p.listener)
	t.Cleanup(func() {
		p.listener.Close()
		p.cutAll()
	})
	query.Del("host")
	query.Del("port")
	address.Host, address.RawQuery = p.listener.Addr().String(), query.Encode()
	d.Config.Database = address.String()
	return p
}

func (p *proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go p.relay(client)
	}
}

// relay passes bytes in both directions, between one connection of a store and a new connection to PostgreSQL.
func (p *proxy) relay(client net.Conn) {
	p.mu.Lock()
	dial := p.server
	p.mu.Unlock()
	server, err := dial()
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.open = append(p.open, client, server)
	p.mu.Unlock()
	var mute atomic.Bool
	silent := make(chan struct{}) // closed when the server sends nothing more, or when the proxy ignores the server's bytes
	go func() {
		defer close(silent)
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || mute.Load() {
				return // the answer to COMMIT is lost
			}
			p.pass()
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	go func() {
		defer server.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := client.Read(buffer)
			p.pass()
			if err != nil {
				return
			}
			if p.deaf.Load() && n == 16 && bytes.Equal(buffer[4:8], []byte{0x04, 0xd2, 0x16, 0x2e}) {
				return
			}
			if storetest.Commits(buffer[:n]) {
				switch p.cut.Swap(cutNothing) {
				case cutBefore:
					client.Close()
					return
				case cutDuring:
					mute.Store(true)
					_, _ = server.Write(buffer[:n])
					client.Close()
					<-silent
					return
				case cutAfter:
					mute.Store(true)
					if _, err := server.Write(buffer[:n]); err == nil {
						_, _ = io.Copy(io.Discard, client) // read and ignore bytes until the client has closed the connection
					}
					return
				}
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
}

// pass blocks while the proxy is frozen.
func (p *proxy) pass() {
	p.frozen.RLock()
	defer p.frozen.RUnlock()
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// TestPostgresCommitInDoubt breaks a connection during COMMIT. If the rows show whether the COMMIT succeeded, the
// caller must get the result. Otherwise the error must say that the result is in doubt.
func TestPostgresCommitInDoubt(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	ctx := context.Background()
	now := storetest.Begin.Add(time.Hour)
	for i, cut := range []int32{cutBefore, cutAfter} {
		number := fmt.Sprintf("+39333000000%d", i)
		p.cut.Store(cut)
		r, err := c.Start(ctx, c.Run(number, storetest.Begin, 2))
		if err != nil || r.Usage.Used != int64(2*i+1) || p.cut.Load() != cutNothing {
			t.Fatalf("start, cut %d: %+v, %v", cut, r, err)
		}
		if n := w.Int("select count(*) from run where phone = $1", number); n != 1 {
			t.Fatalf("start, cut %d: %d runs", cut, n)
		}
		p.cut.Store(cut)
		token, granted := w.MustClaim(node, now, c.Items(number, 0, r.IDs...)...)
		if granted[0] != puntuale.ClaimGranted || granted[1] != puntuale.ClaimGranted || c.Detail(r.IDs[1]).Intent != token {
			t.Fatalf("claim, cut %d: %v, %+v", cut, granted, c.Detail(r.IDs[1]))
		}
		p.cut.Store(cut)
		w.MustRecord(now, c.Items(number, 0, r.IDs[0])[0], token, puntuale.Outcome{Verdict: puntuale.Retry, Next: now})
		if d := c.Detail(r.IDs[0]); d.Intent != 0 || d.State != puntuale.Pending {
			t.Fatalf("record, cut %d: %+v", cut, d)
		}
		p.cut.Store(cut)
		_, err = c.Stop(ctx, c.Sequence, []string{number}, "", storetest.Day, now)
		if puntuale.CodeOf(err) != puntuale.CodeUnavailable || !strings.Contains(err.Error(), "store.in_doubt") {
			t.Fatalf("stop, cut %d: %v", cut, err)
		}
		if used := w.Int("select used from api_usage"); used != int64(2*i+1)+int64(cut-cutBefore) {
			t.Fatalf("stop, cut %d: %d calls counted", cut, used)
		}
		if _, err = c.Stop(ctx, c.Sequence, []string{number}, "", storetest.Day, now); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			w.Exec("update api_usage set used = 2")
		}
	}
	if left := w.Int("select credits from client"); left != 98 { // 98, because two messages are in flight
		t.Errorf("%d credits left", left)
	}
	if n := w.Int("select (select credits from client) - (select sum(amount) from credit_entry)"); n != 0 {
		t.Errorf("the ledger differs by %d", n)
	}
}

// TestPostgresComesBack checks that the store replaces a connection that broke while idle. While the server is stopped,
// the store must be unavailable. When the server runs again, the store must work again.
func TestPostgresComesBack(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	node := w.MustJoin()
	c.MustStart("+393331234567", storetest.Begin, 1)
	p.cutAll()
	c.MustStart("+393331234567", storetest.Begin, 1)
	if err := w.Beat(ctx, node, time.Minute); err != nil {
		t.Fatal(err)
	}
	p.listener.Close()
	p.cutAll()
	_, err := c.Start(ctx, c.Run("+393331234567", storetest.Begin, 1))
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeUnavailable || e.RetryAfter <= 0 {
		t.Fatalf("away: %v", err)
	}
	if _, err := c.Details(ctx, []puntuale.MessageID{1}); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Fatalf("away: %v", err)
	}
	if p.listener, err = net.Listen("tcp", p.listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	go p.serve(p.listener)
	if err := w.Check(ctx); err != nil {
		t.Fatal(err)
	}
	c.MustStart("+393331234567", storetest.Begin, 1)
	if n := w.Int("select count(*) from run"); n != 3 {
		t.Fatalf("%d runs", n)
	}
}
