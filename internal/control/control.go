// Package control executes the requests of people and programs, with one file for each kind of object. It checks a
// whole request, reports all its faults together, calls the planner and the store, and wakes the dispatcher. It does
// not depend on HTTP. The locations in its faults, such as "body.phone", "query.timezone" and "path.id_sequenza", are
// names that the packages httpapi and web also use.
//
// In comments, "Codes:" lists the codes of the errors that a method may return. A method with an argument of type [Once]
// may also return conflict: a call with a different body used the idempotency key.
package control

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control/request"
	"puntuale/internal/control/upload"
	"puntuale/internal/price"
)

// Config contains the parts and settings of a [Control]. Tenants, Devices, Maintenance and Clock must be set.
type Config struct {
	Tenants     puntuale.TenantStore
	Devices     puntuale.DeviceLogin
	Maintenance puntuale.MaintenanceStore
	Clock       clock.Clock
	Wakeup      puntuale.Wakeup    // nil: no dispatcher is woken
	Sandbox     bool               // true: new sessions are sandboxes, unless the request says otherwise
	Keep        puntuale.Retention // how long requests and contents are stored after all messages of a run ended
	// Links reports whether this build can link a session. If Links is nil, no session can be linked.
	Links func(puntuale.Session) bool
	Media []string    // the file extensions that a media URL may have, without dot; nil: the planner's own list
	Vault *auth.Vault // nil: calls that must seal a secret are refused
	// Public is the address at which the internet reaches the service, such as https://messages.example.com. "" means
	// that the address is not set.
	Public string
	// UncertainAfter is how long the outcome of an attempt may be uncertain. After this time the message becomes FAILED. The
	// dispatcher must have the same value. 0 means 24 hours.
	UncertainAfter time.Duration
	// Reported is called for each report of a device, with the verdict about the report. It may be nil.
	Reported      func(verdict string)
	PushKey       func(context.Context) (string, error) // the installation's public key for Web Push, base64url; nil: devices get no pushes
	Scratch       string                                // the folder for lists while they are read; "": the system's temporary folder
	PlainGateways bool                                  // true: gateways may be reached by http, because the operator listed their networks in the settings
	Prices        *price.Table                          // Meta's prices for messages; nil: the embedded table
	Files         puntuale.MediaSource                  // checks whether an address leads to a file; nil: such checks are refused
	// LargeDocuments is true if the bytes of uploaded files are outside of the database. Then documents for Official numbers
	// may have [puntuale.MaxDocumentBytes].
	LargeDocuments bool
	// Take stores events of the simulated network in the same way as events of other networks. If Take is nil, these
	// events are dropped.
	Take   func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error
	Opener puntuale.MediaOpener // opens the files of replies; nil: the files cannot be opened
	// Scan looks for viruses in files that enter, and returns what it found, or "". If Scan is nil, files are not scanned.
	Scan func(ctx context.Context, content io.Reader) (finding string, err error)
	// Stopping is closed when the server begins to stop. Then all calls that only wait must end. If it is nil, they do not
	// end early.
	Stopping    <-chan struct{}
	Connections int          // how many connections the server keeps open; 0: 4096
	Logger      *slog.Logger // for faults of background work, which have no call; nil: they are not logged
}

// Control executes the calls of clients. It stores only caches, and checks their values before use. It is safe for
// concurrent use. [Control.Authenticate] returns the owner of a key. Each call of the owner is a method of the owner's
// type. The calls of partners and of people who sign in are in package account.
type Control struct {
	tenants     puntuale.TenantStore
	maintenance puntuale.MaintenanceStore
	keep        puntuale.Retention

	clock  clock.Clock
	wakeup puntuale.Wakeup
	vault  *auth.Vault
	zones  request.Zones

	sessions sessionSettings
	devices  deviceSettings
	media    []string
	prices   *price.Table

	cache   startCache
	uses    keyUses
	answers answers
	follows follows
	shares  semaphores
	lists   listSettings
	files   fileChecks
	bytes   storedBytes
	arrived arrivedBytes
	take    func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error
	opener  puntuale.MediaOpener

	stopping <-chan struct{}
	checks   sync.WaitGroup // checks of campaigns that run
	logger   *slog.Logger
}

// sessionSettings are the operator's settings for clients' sessions.
type sessionSettings struct {
	sandbox       bool
	links         func(puntuale.Session) bool
	plainGateways bool
	public        string // the service's address, without a slash at its end
}

// deviceSettings are the parts of the installation that devices need.
type deviceSettings struct {
	store          puntuale.DeviceLogin
	pushKey        func(context.Context) (string, error)
	reported       func(verdict string)
	uncertainAfter time.Duration
}

// listSettings bound how many lists of recipients are read at the same time, and say which folder contains the lists
// meanwhile.
type listSettings struct {
	uploads   *upload.Uploads
	scratch   string
	documents bool // true: uploaded documents may be large
}

// New returns a Control. It loads the metadata of phone numbers, so that no call has to wait for them.
func New(cfg Config) *Control {
	c := &Control{
		tenants: cfg.Tenants, maintenance: cfg.Maintenance, keep: cfg.Keep, clock: cfg.Clock, wakeup: cfg.Wakeup, vault: cfg.Vault,
		sessions: sessionSettings{cfg.Sandbox, cfg.Links, cfg.PlainGateways, strings.TrimRight(cfg.Public, "/")},
		devices:  deviceSettings{cfg.Devices, cfg.PushKey, cfg.Reported, cmp.Or(cfg.UncertainAfter, 24*time.Hour)},
		media:    cfg.Media, prices: cfg.Prices, files: fileChecks{source: cfg.Files, scan: cfg.Scan}, take: cfg.Take, opener: cfg.Opener, stopping: cfg.Stopping,
		logger: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		shares: newSemaphores(cmp.Or(cfg.Connections, defaultConnections)),
		lists:  listSettings{upload.New(max(1, runtime.GOMAXPROCS(0)/2)), cfg.Scratch, cfg.LargeDocuments}, // the other processors remain free for calls and messages
	}
	if c.devices.reported == nil {
		c.devices.reported = func(string) {}
	}
	if c.prices == nil {
		c.prices = price.Embedded()
	}
	if c.wakeup == nil {
		c.wakeup = func(puntuale.SessionID, time.Time) {}
	}
	if c.sessions.links == nil {
		c.sessions.links = func(puntuale.Session) bool { return false }
	}
	_, _ = request.ParseRecipient("+390212345678", "IT")
	return c
}

// Public returns the address at which the internet reaches the service, without a slash at its end. It returns "" if
// the address is not set.
func (c *Control) Public() string { return c.sessions.public }

// Now returns the current time of the service's clock.
func (c *Control) Now() time.Time { return c.clock.Now() }

// Maintain cleans the store: it ends the open messages of deleted clients and sessions, and deletes or blanks old data.
// Any number of nodes may call Maintain at any time.
func (c *Control) Maintain(ctx context.Context) error {
	now := c.clock.Now()
	if err := c.maintenance.Maintain(ctx, now, c.keep.Cutoff(now)); err != nil {
		return fmt.Errorf("maintain the store: %w", err)
	}
	return nil
}

// Today returns the current day in the default zone of new clients. Pages without a client use it.
func (c *Control) Today(now time.Time) puntuale.Date {
	loc, err := c.zones.Load(puntuale.NewAccount(puntuale.AccountFull, puntuale.Date{}).Zone)
	if err != nil {
		loc = time.UTC
	}
	return puntuale.DateOf(now.In(loc))
}

// DayOf returns a client's current day.
func (c *Control) DayOf(account puntuale.Client, now time.Time) puntuale.Date {
	loc, err := c.zones.Load(account.Zone)
	if err != nil {
		loc = time.UTC
	}
	return puntuale.DateOf(now.In(loc))
}
