//go:build !nosocket

package whatsapptest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Hosts that the network simulates. A request to any other host is refused and fails the test.
const (
	Host      = "web.whatsapp.com"
	MediaHost = "mmg.whatsapp.net"
)

// WaitMost is how long the Await methods wait if the caller gives no deadline.
const WaitMost = 30 * time.Second

// TB has the methods of testing.TB that the package needs.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Network is a loopback WhatsApp. Its methods may be called at any time, from any goroutine.
type Network struct {
	t            TB
	address      string // the address of the listener without TLS
	server       *http.Server
	certificates certificates
	ctx          context.Context
	end          context.CancelFunc
	open         sync.WaitGroup // counts open connections
	ledger       *Ledger

	mu                    sync.Mutex
	closed                bool
	changed               chan struct{} // closed and replaced at each change that a goroutine may wait for
	trace                 bool
	unknown               []string
	accounts              map[string]*Account    // has each account twice: by number, and by the user part of its LID
	typed                 map[string]typedNumber // numbers that people write in another way than the network; see [Network.Knows]
	sequence              int
	connections           map[*connection]bool
	refs                  map[string]*connection // the key is the reference in a QR code
	links                 map[string]*pairing    // pairings with a typed code; the key is the number
	groups                map[string]*Group      // the key is the group's id
	blobs                 map[string][]byte      // media; the key is the path of their URL
	tokens                map[string]string      // owner and contact of each privacy token; the contact's devices may use it
	version               uint32                 // logins with a lower version are refused as outdated
	latency               time.Duration
	pageReads, pageStatus int
	fewKeys               bool
	arriving              int
	peakArriving          int
	refusing              bool
	nacks                 []string
	mediaStatus           int
	mediaTimes            int
	lost                  map[string]bool // receipts that the server drops, by number and kind
	faults                []*fault
	failing               []*queryFault
	logins                []Login
	asked                 []Query
	accepted              []Stanza
	clients               []*http.Client
}

// New starts a network that ends with the test. The test fails at its end if the network got anything that it does not
// know.
func New(t TB) *Network {
	t.Helper()
	shown, err := newCertificates()
	if err != nil {
		t.Fatalf("make certificates: %v", err)
	}
	ctx, end := context.WithCancel(context.Background())
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		end()
		t.Fatalf("listen: %v", err)
	}
	n := &Network{
		t: t, address: listener.Addr().String(), certificates: shown, ctx: ctx, end: end, changed: make(chan struct{}),
		accounts: map[string]*Account{}, connections: map[*connection]bool{}, refs: map[string]*connection{}, links: map[string]*pairing{},
		groups: map[string]*Group{}, blobs: map[string][]byte{}, tokens: map[string]string{}, lost: map[string]bool{},
	}
	n.ledger = &Ledger{n: n, places: map[arrival]int{}}
	n.server = &http.Server{Handler: http.HandlerFunc(n.serve), ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	n.open.Go(func() { _ = n.server.Serve(listener) })
	t.Cleanup(func() {
		n.close()
		for _, report := range n.Unknown() {
			t.Errorf("the loopback WhatsApp does not know: %s", report)
		}
	})
	return n
}

// close ends all connections and waits until all goroutines of the network ended.
func (n *Network) close() {
	n.mu.Lock()
	n.closed = true
	clients := n.clients
	n.mu.Unlock()
	n.end()
	_ = n.server.Close()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	n.open.Wait()
}

// Unknown lists everything so far that the network does not know.
func (n *Network) Unknown() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.unknown)
}

// Forgive returns the list of Unknown, and empties the list. It is for tests that send unknown things on purpose.
func (n *Network) Forgive() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	forgiven := n.unknown
	n.unknown = nil
	return forgiven
}

// Trace writes every later stanza to the test's log.
func (n *Network) Trace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = true
}

// HTTPClient returns a client whose connections to any host go to this network, without TLS. Pass it to
// SetPreLoginHTTPClient, SetWebsocketHTTPClient and SetMediaHTTPClient, and use it to read the page with the version.
func (n *Network) HTTPClient() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", n.address)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients = append(n.clients, client)
	return client
}

// Latency delays everything that the server sends from now on. 0 ends the delay.
func (n *Network) Latency(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = d
}

// Refuse(true) makes the network refuse new connections, as in an outage. Refuse(false) ends the outage. Open
// connections stay open.
func (n *Network) Refuse(refusing bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusing = refusing
}

// CutAll breaks every connection without a closing frame.
func (n *Network) CutAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.connections {
		c.cut()
	}
}

// serve handles the requests to every host.
func (n *Network) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == Host && r.URL.Path == "/ws/chat":
		n.accept(w, r)
	case r.Host == Host && r.URL.Path == "/" && r.Method == http.MethodGet:
		n.versionPage(w)
	case r.Host == MediaHost:
		n.media(w, r)
	default:
		n.mu.Lock()
		n.misunderstood("%s https://%s%s", r.Method, r.Host, r.URL.Path)
		n.mu.Unlock()
		http.NotFound(w, r)
	}
}

// misunderstood records a fault that will fail the test. The caller holds n.mu.
func (n *Network) misunderstood(format string, args ...any) {
	n.unknown = append(n.unknown, fmt.Sprintf(format, args...))
}

// notify wakes all goroutines that wait for a change. The caller holds n.mu.
func (n *Network) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// await returns when condition returns true, or when ctx ends. It calls condition under n.mu.
func (n *Network) await(ctx context.Context, condition func() bool) error {
	for {
		n.mu.Lock()
		if condition() {
			n.mu.Unlock()
			return nil
		}
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ctx.Done():
			return context.Canceled
		}
	}
}
