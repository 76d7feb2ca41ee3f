package account

import (
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Config contains the parts and settings for [New]. Control, Tenants, Partners and Clock must be set.
type Config struct {
	Control  *control.Control // gives access to the clients
	Tenants  puntuale.TenantStore
	Partners puntuale.PartnerStore
	Clock    clock.Clock
	Wakeup   puntuale.Wakeup    // nil: no dispatcher is woken
	Sandbox  bool               // true: a new client's first session is a sandbox, unless the request says otherwise
	Vault    *auth.Vault        // nil: nobody can sign in, and nobody can prove a host name
	SignIn   SignInStore        // required, together with Vault, if people sign in
	Mails    puntuale.MailStore // nil: the service sends no e-mail; requires Vault, SignIn and Public
	// Public is the address at which the internet reaches the service, such as https://messages.example.com. "" means
	// that the address is not set.
	Public   string
	Currency string   // of the list of prices; plans with budgets need it
	Resolver Resolver // reads the DNS records of partners' host names; required if people sign in
}

// Accounts executes the requests of partners and of people who sign in, and refills clients' credits. It has no state,
// and is safe for concurrent use.
type Accounts struct {
	control  *control.Control
	tenants  puntuale.TenantStore
	partners puntuale.PartnerStore
	signIns  SignInStore
	clock    clock.Clock
	wakeup   puntuale.Wakeup
	sandbox  bool
	vault    *auth.Vault
	zones    request.Zones
	mails    puntuale.MailStore // nil: no e-mail is sent
	public   string
	ownHost  string // the host name of the public address
	resolver Resolver
	currency string
}

// New returns Accounts.
func New(cfg Config) *Accounts {
	c := &Accounts{
		control: cfg.Control, tenants: cfg.Tenants, partners: cfg.Partners, signIns: cfg.SignIn, clock: cfg.Clock, wakeup: cfg.Wakeup, sandbox: cfg.Sandbox,
		vault: cfg.Vault, mails: cfg.Mails, public: strings.TrimSuffix(cfg.Public, "/"), ownHost: ownHost(cfg.Public), resolver: cfg.Resolver, currency: cfg.Currency,
	}
	if c.wakeup == nil {
		c.wakeup = func(puntuale.SessionID, time.Time) {}
	}
	return c
}

func unauthorized(code puntuale.ReasonCode, args ...string) error {
	return &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(code, args...)}
}
