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

// Hosts that the network plays. A request to any other host is refused and counted as unknown.
const (
	Host      = "web.whatsapp.com"
	MediaHost = "mmg.whatsapp.net"
)

// WaitMost is how long the Await methods wait if their caller gives no deadline.
const WaitMost = 30 * time.Second

// TB is the part of testing.TB that the package needs.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Network is a loopback WhatsApp. All its methods may be called at any time, from any goroutine.
type Network struct {
	t            TB
	address      string // the address of the plain listener
	server       *http.Server
	certificates certificates
	ctx          context.Context
	end          context.CancelFunc
	open         sync.WaitGroup // connections
	ledger       *Ledger

	mu                    sync.Mutex
	closed                bool
	changed               chan struct{} // closed and renewed at every change that a goroutine may wait for
	trace                 bool
	unknown               []string
	accounts              map[string]*Account // each account twice: by its number, and by the user part of its LID
	sequence              int
	connections           map[*connection]bool
	refs                  map[string]*connection // keyed by the reference in a QR code
	links                 map[string]*pairing    // pairings by code, by number
	groups                map[string]*Group      // by id
	blobs                 map[string][]byte      // media by the path of their URL
	tokens                map[string]string      // privacy tokens that were issued, with the devices that may show them
	version               uint32                 // logins with a lower version are outdated
	latency               time.Duration
	pageReads, pageStatus int
	fewKeys               bool
	arriving              int
	mostArriving          int
	refusing              bool
	nacks                 []string
	mediaStatus           int
	mediaTimes            int
	lost                  map[string]bool // receipts that are lost, by number and kind
	faults                []*fault
	failing               []*queryFault
	logins                []Login
	asked                 []Query
	accepted              []Stanza
	clients               []*http.Client
}

// New starts a network that ends with the test. It fails the test if it got anything that it did not understand.
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

// close ends every connection and waits until nothing of the network runs.
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

// Unknown lists what the network did not understand so far.
func (n *Network) Unknown() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.unknown)
}

// Forgive forgets what was not understood so far, and returns it. It is for tests that send unknown things on purpose.
func (n *Network) Forgive() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	forgiven := n.unknown
	n.unknown = nil
	return forgiven
}

// Trace logs every stanza to the test's log from now on.
func (n *Network) Trace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = true
}

// HTTPClient makes a client whose connections to any host go to this network without TLS. It is for
// SetPreLoginHTTPClient, SetWebsocketHTTPClient and SetMediaHTTPClient, and for reading the page with the version.
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

// Latency delays everything the server sends from now on; 0 ends it.
func (n *Network) Latency(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = d
}

// Refuse makes the network accept no new connection, as in an outage, or accept them again. Open connections stay.
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

// serve is the handler of every host.
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

// misunderstood notes something that will fail the test. The caller holds n.mu.
func (n *Network) misunderstood(format string, args ...any) {
	n.unknown = append(n.unknown, fmt.Sprintf(format, args...))
}

// notify wakes all goroutines that wait for a change. The caller holds n.mu.
func (n *Network) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// await returns when a condition on the network's state holds, or when the context ends. It calls condition under n.mu.
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
