package sendapp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/aliascache"
	"puntuale/internal/outside"
)

// Config is what [New] needs. Store, Seal, Unseal, Mark, Report, Take and Transport must be set.
type Config struct {
	Store  Store
	Seal   func(purpose, place string, plain []byte) []byte
	Unseal func(purpose, place string, sealed []byte) ([]byte, error)
	// Address returns a public address of an uploaded file, which ends with the extension of its type. Without a scheme, the
	// gateway cannot reach it.
	Address func(puntuale.ClientID, puntuale.FileID) string
	// Mark returns a keyed hash. The store has this hash of an instance instead of the instance's id.
	Mark func(purpose string, parts ...string) string

	Media     puntuale.MediaSource // checks the address of a file, which the gateway then fetches; nil: media are refused
	Transport http.RoundTripper    // must reach only the hosts that the operator allows
	Memory    outside.MemoryGrants // pays for the answers of gateways; nil: they are only bounded
	Public    string               // this server's address, for webhooks; "": gateways cannot report

	// The connector calls Report at each change of a session's link. Report must never block.
	Report func(puntuale.LinkReport)
	// ReadBody reads the body of a webhook, up to maxBytes. Its error too_large means a larger body. The errors
	// overloaded and rate_limited mean that there is no memory for the body. If ReadBody is nil, only the size of a
	// body is limited.
	ReadBody func(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error)
	// Take stores what a gateway reported, on disk.
	Take func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error

	Clock  clock.Clock  // nil: the system's clock
	Logger *slog.Logger // nil: slog.Default
}

// sendTimeout is longer than the time in which a gateway answers, which is up to 60 s. With a shorter timeout, messages
// with slow answers would become uncertain.
const sendTimeout = 90 * time.Second

// Connector sends the messages of all gateway sessions of this node. It is safe for concurrent use.
type Connector struct {
	cfg  Config
	http *http.Client

	aliases aliascache.Cache

	mu   sync.RWMutex
	open map[puntuale.SessionID]*account
}

var (
	_ puntuale.Connector = (*Connector)(nil)
	_ puntuale.Linker    = (*Connector)(nil)
	_ puntuale.Tester    = (*Connector)(nil)
)

// New returns a connector. The connector starts no work before the first call of Open.
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

// Capabilities returns the same values at each call. One message at a time is in flight, because a gateway uses one
// phone.
func (c *Connector) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "gateway", Slots: 1, SendTimeout: sendTimeout, Recovery: puntuale.RecoverNone}
}

// Online reports whether the session can send now. It reads memory only.
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
