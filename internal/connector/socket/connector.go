//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/store"
	"google.golang.org/protobuf/proto"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/aliascache"
	"puntuale/internal/outside"
)

// Config is what [New] needs. Database, Seal, Unseal, IDKey, Known, Report and Take must be set.
type Config struct {
	// Database returns the database with the keys of linked numbers. The connector calls this function when the first
	// session needs the keys, and again until it succeeds. The caller closes the database, after Stop.
	Database func(ctx context.Context) (Database, error)

	// Seal encrypts data, and Unseal decrypts them. The argument purpose says what the data are for. The argument place
	// says where the data are stored.
	Seal   func(purpose, place string, plain []byte) []byte
	Unseal func(purpose, place string, sealed []byte) ([]byte, error)
	IDKey  []byte // encrypts message ids for WhatsApp; every node needs the same key, which must not change while receipts may still come

	Known KnownPersons
	Media puntuale.MediaSource // nil: messages with media are refused

	// The connector calls Report at each change of a session's link. Report must never block.
	Report func(puntuale.LinkReport)
	// Take stores receipts and inbound messages on disk.
	Take func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error
	// Owned reports whether this node may connect its sessions. Once the node's lease ended, another node may own the
	// sessions. nil: always true.
	Owned func() bool

	Memory outside.MemoryGrants // pays for the answers of WhatsApp's servers; nil: they are only bounded
	HTTP   *http.Client         // nil: a new client, which uses HTTPS_PROXY and the system's certificates
	Clock  clock.Clock          // nil: the system's clock
	Logger *slog.Logger         // nil: slog.Default
	Logins int                  // how many logins may be under way at the same time; default 32
}

const (
	loginsAtOnce = 32
	ackTakes     = 5 * time.Second  // how long the network may take to acknowledge a message
	sendTimeout  = 40 * time.Second // how long sending one message may take, with the queries that the library sends before it
	databaseWait = 30 * time.Second
	closingAsks  = time.Second // how long the store may take when a session closes
)

// Connector sends the messages of all Socket sessions of this node.
type Connector struct {
	cfg      Config
	ids      ids
	versions *versions
	logins   chan struct{}
	aliases  aliascache.Cache

	ctx    context.Context // the context of work that belongs to no number
	cancel context.CancelFunc
	wg     sync.WaitGroup

	opening sync.Mutex
	kept    *devices

	mu   sync.RWMutex
	open map[puntuale.SessionID]*number
}

var (
	_ puntuale.Connector   = (*Connector)(nil)
	_ puntuale.Linker      = (*Connector)(nil)
	_ puntuale.Reconnector = (*Connector)(nil)
	_ puntuale.Pacer       = (*Connector)(nil)
)

// The library has global variables: the name that phones show for us in their list of linked devices, and the log of
// the encryption library. They must be set before any goroutine reads them.
func init() {
	store.DeviceProps.Os = proto.String("Puntuale")
	store.DeviceProps.PlatformType = waCompanionReg.DeviceProps_CHROME.Enum()
	store.DeviceProps.RequireFullSync = proto.Bool(false)
	var s logger.Loggable = silent{}
	logger.Setup(&s)
}

// New returns a connector, and starts its sweep. Call Stop to end the sweep.
func New(cfg Config) *Connector {
	if cfg.Owned == nil {
		cfg.Owned = func() bool { return true }
	}
	if cfg.HTTP == nil {
		cfg.HTTP = newHTTP()
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Logins <= 0 {
		cfg.Logins = loginsAtOnce
	}
	c := &Connector{cfg: cfg, ids: ids{cfg.IDKey}, versions: newVersions(), logins: make(chan struct{}, cfg.Logins), open: map[puntuale.SessionID]*number{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.wg.Go(c.sweep)
	return c
}

// newHTTP returns a client for WhatsApp. It uses the proxy of the environment, and trusts the system's certificates.
func newHTTP() *http.Client {
	dialer := &net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4,
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

// httpOf returns a client for WhatsApp whose answers are bounded and charged to a client; 0 is the server itself.
func (c *Connector) httpOf(client puntuale.ClientID) *http.Client {
	bounded := *c.cfg.HTTP
	bounded.Transport = outside.WhatsApp.Transport(bounded.Transport, c.cfg.Memory, client)
	return &bounded
}

// Stop ends the work that belongs to no session. The caller must close all open sessions first.
func (c *Connector) Stop() {
	c.cancel()
	c.wg.Wait()
}

func (c *Connector) log() *slog.Logger { return c.cfg.Logger }

// Capabilities returns the same values at each call.
func (c *Connector) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "socket", Slots: 1, SendTimeout: sendTimeout, Recovery: puntuale.RecoverSameID}
}

// Online reports whether a session is connected. It reads memory only.
func (c *Connector) Online(session puntuale.SessionID) bool {
	n := c.number(session)
	return n != nil && n.online.Load()
}

// number returns an open session, or nil if the session is not open.
func (c *Connector) number(session puntuale.SessionID) *number {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.open[session]
}

var errNotOpen = errors.New("the session is not open")

// devices returns the keys of linked numbers. The first call opens the database of the keys. If this fails, the next
// call tries again.
func (c *Connector) devices(ctx context.Context) (*devices, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.kept != nil {
		return c.kept, nil
	}
	ctx, cancel := context.WithTimeout(ctx, databaseWait)
	defer cancel()
	d, err := c.cfg.Database(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the keys of linked numbers: %w", err)
	}
	c.kept, err = openDevices(ctx, d, sealer{c.cfg.Seal, c.cfg.Unseal}, c.cfg.Clock, quiet{c.log()})
	return c.kept, err
}

// enter waits until one more login may begin. The caller must call leave when the login is over.
func (c *Connector) enter(ctx context.Context) (leave func(), err error) {
	select {
	case c.logins <- struct{}{}:
		return func() { <-c.logins }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Open opens a session in the background. If the session is linked, Open also connects it. If the session was open
// already, Open replaces it.
func (c *Connector) Open(s puntuale.Session) {
	n := c.newNumber(s)
	c.mu.Lock()
	old := c.open[s.ID]
	c.open[s.ID] = n
	c.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin(func(ctx context.Context, epoch int) {
		if old != nil {
			old.close(ctx)
		}
		n.look(ctx, epoch, s.Link)
	})
}

// look finds out whether the session has keys. It tries again until the store answers or ctx ends.
func (n *number) look(ctx context.Context, epoch int, l puntuale.Link) {
	for wait := againFirst; ; wait = min(2*wait, againLast) {
		var device *store.Device
		err := puntuale.Recovered(func() error {
			devices, err := n.c.devices(ctx)
			if err == nil {
				device, err = devices.find(ctx, n.id)
			}
			return err
		})
		if err == nil {
			number := ""
			if device != nil {
				number = "+" + device.GetJID().User
			}
			n.apply(epoch, func(m *linkMachine) { m.opened(l, device != nil, number, n.c.cfg.Clock.Now()) })
			return
		}
		if ctx.Err() != nil {
			return
		}
		n.log.Warn("the keys of a number cannot be read", "error", err)
		if n.c.cfg.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// Close ends the connection of a session and removes the session from memory.
func (c *Connector) Close(ctx context.Context, session puntuale.SessionID) {
	c.mu.Lock()
	n := c.open[session]
	delete(c.open, session)
	c.mu.Unlock()
	if n == nil {
		return
	}
	removed := n.deleted(ctx)
	if cli := n.connected(); removed && cli != nil {
		n.logOut(ctx, cli)
	}
	n.close(ctx)
	if removed {
		n.forget(ctx)
	}
}

// deleted reports whether the session closes because it was deleted. It returns false if the store does not answer
// within closingAsks.
func (n *number) deleted(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, closingAsks)
	defer cancel()
	existing, err := n.c.cfg.Known.SessionsThere(ctx, []puntuale.SessionID{n.id})
	return err == nil && !existing[n.id]
}

// logOut tells the network that the number is unlinked. If the network cannot be reached, the phone continues to list
// this device.
func (n *number) logOut(ctx context.Context, cli *whatsmeow.Client) {
	if err := cli.Logout(ctx); err != nil && !errors.Is(err, errRemoved) {
		n.log.Info("the network could not be told that a number is unlinked", "error", err)
	}
}

// forget removes the number's keys. If forget fails, sweep removes the keys later.
func (n *number) forget(ctx context.Context) {
	devices, err := n.c.devices(ctx)
	if err == nil {
		err = devices.forget(ctx, n.id)
	}
	if err != nil {
		n.log.Warn("the keys of a deleted session could not be removed yet", "error", err)
	}
}

// SetPace sets the pace of an open session. It does nothing if the session is not open.
func (c *Connector) SetPace(session puntuale.SessionID, p puntuale.Pace) {
	if n := c.number(session); n != nil {
		n.coldContacts.setPace(p)
	}
}

// Unlink ends a link or a pairing, and removes the number's keys.
func (c *Connector) Unlink(ctx context.Context, session puntuale.SessionID) error {
	n := c.number(session)
	if n == nil {
		return errNotOpen
	}
	devices, err := c.devices(ctx)
	if err != nil {
		return err
	}
	if cli := n.connected(); cli != nil {
		n.logOut(ctx, cli)
	}
	done := make(chan struct{})
	n.mu.Lock()
	n.state.unlinked(puntuale.Reason{})
	n.state.moved = false
	n.shown = n.state.link // the caller reports this change, so report must not
	n.markKnown()
	n.coldContacts.free()
	n.begin(func(context.Context, int) { close(done) })
	n.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return devices.forget(ctx, session)
}

// How long the sweep waits after the start, and between two sweeps.
const (
	sweepFirst = time.Minute
	sweepEvery = 10 * time.Minute
)

// sweep removes the keys of sessions that do not exist any more.
func (c *Connector) sweep() {
	for wait := sweepFirst; c.cfg.Clock.Sleep(c.ctx, wait) == nil; wait = sweepEvery {
		if err := c.sweepOnce(c.ctx); err != nil && c.ctx.Err() == nil {
			c.log().Warn("looking for keys of deleted sessions failed", "error", err)
		}
	}
}

// keptBefore returns the keys of linked numbers, or nil if there never were any. Since the start of this server, perhaps
// no session needed them, for example because the last linked session was deleted before.
func (c *Connector) keptBefore(ctx context.Context) (*devices, error) {
	c.opening.Lock()
	kept := c.kept
	c.opening.Unlock()
	if kept != nil {
		return kept, nil
	}
	within, cancel := context.WithTimeout(ctx, databaseWait)
	defer cancel()
	d, err := c.cfg.Database(within)
	if err != nil {
		return nil, fmt.Errorf("open the keys of linked numbers: %w", err)
	}
	if there, err := d.used(within); err != nil || !there {
		return nil, err
	}
	return c.devices(ctx)
}

func (c *Connector) sweepOnce(ctx context.Context) error {
	devices, err := c.keptBefore(ctx)
	if err != nil || devices == nil {
		return err
	}
	kept, err := devices.sessions(ctx)
	if err != nil || len(kept) == 0 {
		return err
	}
	existing, err := c.cfg.Known.SessionsThere(ctx, kept)
	if err != nil {
		return err
	}
	for _, id := range kept {
		if existing[id] {
			continue
		}
		if err := devices.forget(ctx, id); err != nil {
			return err
		}
		c.log().Info("the keys of a deleted session were removed", "session_id", int64(id))
	}
	return nil
}
