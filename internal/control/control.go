package control

import (
	"cmp"
	"runtime"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control/request"
	"puntuale/internal/price"
)

// Config is what a [Control] needs. Operator and Clock must be set.
type Config struct {
	Operator puntuale.Operator
	Clock    clock.Clock
	Hint     puntuale.Hint // nil: nobody listens
	Sandbox  bool          // new sessions are sandboxes, unless the call says otherwise
	Keep     puntuale.Keep // how long requests and contents are kept after all of a run ended
	// Links reports whether a session can be linked by this build; nil: none can.
	Links func(puntuale.Session) bool
	Media []string      // extensions a media URL may have, without dot; nil: the planner's own list
	Vault *auth.Vault   // nil: nothing that needs sealing may be asked
	Door  puntuale.Door // nil: nobody signs in; it needs the vault
	// Public is the address under which the internet reaches the service, such as https://messages.example.com; "": nobody said.
	Public   string
	Resolver Resolver // proves partners' host names; needed where somebody signs in
	// UncertainAfter is when an attempt whose outcome nobody knows is given up, as the dispatcher does; 0: 24 hours.
	UncertainAfter time.Duration
	// Reported counts what devices reported, by verdict; nil: nobody counts.
	Reported      func(verdict string)
	PushKey       string               // the installation's public key for Web Push, base64url; "": no device is told of due messages
	Scratch       string               // the folder of lists that are being read; "": the system's
	PlainGateways bool                 // gateways may be reached by http: the operator named their networks
	Prices        *price.Table         // what Meta takes for messages; nil: the embedded table
	Files         puntuale.MediaSource // answers whether an address leads to a file; nil: nobody can
}

// Control answers for the whole service. It keeps no state but what it once loaded, none of which is
// trusted, and may be used by many goroutines at once. What
// a tenant may ask is reached through [Control.Authenticate]; what only an operator may, is here.
type Control struct {
	operator puntuale.Operator
	clock    clock.Clock
	hint     puntuale.Hint
	sandbox  bool
	media    []string
	vault    *auth.Vault
	links    func(puntuale.Session) bool
	answers  answers
	keep     puntuale.Keep
	zones    request.Zones
	door     puntuale.Door
	memory   memory
	public   string // without a slash at its end
	ownHost  string // of public
	resolver Resolver
	follows  follows
	uploads  *uploads

	plainGateways  bool
	scratch        string
	pushKey        string
	reported       func(verdict string)
	uncertainAfter time.Duration
	prices         *price.Table

	files       puntuale.MediaSource
	fileWindows fileWindows
}

// New returns a Control. It reads the metadata of phone numbers, so that no call waits for that.
func New(cfg Config) *Control {
	c := &Control{
		operator: cfg.Operator, clock: cfg.Clock, hint: cfg.Hint, sandbox: cfg.Sandbox, media: cfg.Media, vault: cfg.Vault, links: cfg.Links,
		keep: cfg.Keep, door: cfg.Door, public: strings.TrimRight(cfg.Public, "/"), ownHost: ownHost(cfg.Public), resolver: cfg.Resolver,
		files: cfg.Files, plainGateways: cfg.PlainGateways, scratch: cfg.Scratch, pushKey: cfg.PushKey, prices: cfg.Prices, reported: cfg.Reported, uncertainAfter: cmp.Or(cfg.UncertainAfter, 24*time.Hour),
		uploads: newUploads(max(1, runtime.GOMAXPROCS(0)/2)), // calls and messages keep the other processors
	}
	if c.reported == nil {
		c.reported = func(string) {}
	}
	if c.prices == nil {
		c.prices = price.Embedded()
	}
	if c.hint == nil {
		c.hint = func(puntuale.SessionID, time.Time) {}
	}
	if c.links == nil {
		c.links = func(puntuale.Session) bool { return false }
	}
	_, _ = request.ParseRecipient("+390212345678", "IT")
	return c
}

// Public is the address under which the internet reaches the service, without a slash at its end; "" where nobody said.
func (c *Control) Public() string { return c.public }
