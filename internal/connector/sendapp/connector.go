package sendapp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what [New] needs. Store, Seal, Unseal, Mark, Report, Take and Transport must be set.
type Config struct {
	Store  puntuale.GatewayStore
	Seal   func(purpose, place string, plain []byte) []byte
	Unseal func(purpose, place string, sealed []byte) ([]byte, error)
	// Mark makes a keyed hash. The store keeps this hash of an instance, and not the instance's id.
	Mark func(purpose string, parts ...string) string

	Media     puntuale.MediaSource // checks whether an address may be fetched, before the gateway fetches it; nil: media are refused
	Transport http.RoundTripper    // reaches only the hosts that the operator allows
	Public    string               // this server's own address, for webhooks; "": gateways cannot report

	// Report gets each change of a session's link. It must never block.
	Report func(puntuale.LinkReport)
	// ReadBody reads the body of a webhook, up to maxBytes. Codes: too_large; overloaded and rate_limited if there is
	// no memory for the body.
	ReadBody func(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error)
	// Take stores what a gateway reported.
	Take func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error

	Clock  clock.Clock  // nil: the system's
	Logger *slog.Logger // nil: slog.Default
}

// sendTimeout is longer than a gateway waits for its own part, which is up to 60 s. A shorter timeout would turn slow
// answers into uncertain messages.
const sendTimeout = 90 * time.Second

// Connector sends the messages of all gateway sessions of this node. Its methods may be called by many goroutines at
// once.
type Connector struct {
	cfg  Config
	http *http.Client

	mu   sync.RWMutex
	open map[puntuale.SessionID]*account
}

var (
	_ puntuale.Connector = (*Connector)(nil)
	_ puntuale.Linker    = (*Connector)(nil)
	_ puntuale.Tester    = (*Connector)(nil)
)

// New returns a connector. It does nothing before a session is opened.
func New(cfg Config) *Connector {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.ReadBody == nil {
		cfg.ReadBody = readBody
	}
	return &Connector{cfg: cfg, http: newClient(cfg.Transport), open: map[puntuale.SessionID]*account{}}
}

// Capabilities returns what never changes. One message at a time is in flight, because a gateway drives one telephone.
func (c *Connector) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "gateway", Slots: 1, SendTimeout: sendTimeout, Recovery: puntuale.RecoverNone}
}

// Online answers from memory.
func (c *Connector) Online(session puntuale.SessionID) bool {
	a := c.account(session)
	return a != nil && a.online(c.cfg.Clock.Now())
}

// account returns an open session, or nil if the session is not open.
func (c *Connector) account(session puntuale.SessionID) *account {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.open[session]
}
