package official

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/aliascache"
	"puntuale/internal/outside"
)

// Config is what [New] needs. Store, Unseal, Report and Take must be set.
type Config struct {
	Store  Store
	Unseal func(purpose, place string, sealed []byte) ([]byte, error)
	Media  puntuale.MediaSource // nil: messages with media are refused
	// The connector calls Report at each change of a session's link. Report must never block.
	Report func(puntuale.LinkReport)
	// Take stores receipts, inbound messages and other reports of Meta on disk.
	Take func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error
	// TapPayload returns the payload of a button, which Meta repeats when a person presses the button. nil: the payload
	// is the button's label.
	TapPayload func(puntuale.ClientID, puntuale.Tap) string
	// ReadBody reads the body of a webhook, up to maxBytes. Its error too_large means a larger body. The errors
	// overloaded and rate_limited mean that there is no memory for the body; Meta then gets status 503. Any other error
	// means that the connection ended before the body did. If ReadBody is nil, only the size of a body is limited.
	ReadBody func(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error)

	// Country returns the country of a phone number as two letters, or "" if it is unknown. nil: no country is known, and
	// a refusal that concerns a country holds back nothing.
	Country func(phone string) string
	// UnknownCode counts a refusal with a code that the connector does not know. nil: nothing is counted.
	UnknownCode func()

	// Look makes the node that owns a session call [Connector.Look]. It is called when this node got a report about a
	// session that it does not own. nil: only sessions of this node learn of reports immediately.
	Look func(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID) error

	API     string  // base address of the API; default https://graph.facebook.com
	Version string  // the API's version; default [DefaultVersion]
	Rate    float64 // how many messages a second one number may send; default 80

	Memory    outside.MemoryGrants // pays for Meta's answers; nil: they are only bounded
	Folder    string               // where a reply's file is stored while it is open; "": the system's folder for temporary files
	Transport http.RoundTripper    // nil: a new transport
	Clock     clock.Clock          // nil: the system's clock
	Logger    *slog.Logger         // nil: slog.Default
}

const (
	defaultAPI  = "https://graph.facebook.com"
	defaultRate = 80
	answerTime  = 500 * time.Millisecond // a high estimate of Meta's answer time; multiplied by the rate, it gives the number of messages in flight
	sendTimeout = 30 * time.Second
)

// Connector sends the messages of all Official sessions of this node.
type Connector struct {
	cfg          Config
	graph        *graph
	capabilities puntuale.Capabilities
	uploads      uploads

	aliases aliascache.Cache
	reaches map[business]*recipientCount // one count of addressed persons for each business that a session's keys name; guarded by mu

	mu   sync.RWMutex
	open map[puntuale.SessionID]*account

	warned time.Time // when the connector last warned that its version of the API ends
}

var (
	_ puntuale.Connector = (*Connector)(nil)
	_ puntuale.Linker    = (*Connector)(nil)
	_ puntuale.Tester    = (*Connector)(nil)

	_ puntuale.MediaOpener = (*Connector)(nil)
)

// New returns a connector. The connector starts no work before the first call of Open.
func New(cfg Config) *Connector {
	if cfg.API == "" {
		cfg.API = defaultAPI
	}
	if cfg.Version == "" {
		cfg.Version = DefaultVersion
	}
	if cfg.Rate <= 0 {
		cfg.Rate = defaultRate
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport()
	}
	if cfg.ReadBody == nil {
		cfg.ReadBody = readBody
	}
	return &Connector{
		cfg: cfg, graph: newGraph(strings.TrimSuffix(cfg.API, "/")+"/"+cfg.Version, cfg.Transport, cfg.Memory),
		capabilities: puntuale.Capabilities{
			Name: "official", Slots: max(1, int(math.Ceil(cfg.Rate*answerTime.Seconds()))), SendTimeout: sendTimeout,
			PerSecond: cfg.Rate, Recovery: puntuale.RecoverNone,
		},
		open: map[puntuale.SessionID]*account{}, reaches: map[business]*recipientCount{},
	}
}

// business identifies a client's business at Meta. Meta has one count of addressed persons for all numbers of a
// business.
type business struct {
	client  puntuale.ClientID
	account string
}

// reachOf returns the count of persons that a business addresses from this node, or nil if the keys name no business.
func (c *Connector) reachOf(client puntuale.ClientID, k *puntuale.OfficialKeys) *recipientCount {
	if k == nil || k.BusinessAccountID == "" {
		return nil
	}
	key := business{client, k.BusinessAccountID}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaches[key] == nil {
		c.reaches[key] = newReach()
	}
	return c.reaches[key]
}

// Capabilities returns the same values at each call.
func (c *Connector) Capabilities() puntuale.Capabilities { return c.capabilities }

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
