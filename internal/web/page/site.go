package page

import (
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	"puntuale/internal/control/calendar"
	"puntuale/internal/control/link"
	"puntuale/internal/control/statement"
	"puntuale/internal/control/webhook"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/static"
)

// Config configures [NewHandler]. All members except Observe and Proxies must be set. The configuration of Accounts
// must contain SignIn. The configurations of Accounts and Control must contain a Vault.
type Config struct {
	Control     *control.Control
	Accounts    *account.Accounts
	Webhooks    *webhook.Webhooks
	Automations *automation.Automations
	Calendars   *calendar.Calendars
	Statements  *statement.Statements
	Links       *link.Links
	Logger      *slog.Logger
	Now         func() time.Time                                   // the clock of the access log
	Observe     func(route string, status int, took time.Duration) // called for every answer; nil: not called
	Proxies     httpkit.Proxies                                    // nil: httpkit.DefaultProxies
	Admit       admission.Limits                                   // shared with the API and the webhooks
}

// Site contains the data that all pages share.
type Site struct {
	Control     *control.Control
	Accounts    *account.Accounts
	Webhooks    *webhook.Webhooks
	Automations *automation.Automations
	Calendars   *calendar.Calendars
	Statements  *statement.Statements
	Links       *link.Links
	logger      *slog.Logger
	plain       *scs.SessionManager // manages visits over http, which are usual on a person's own machine
	secure      *scs.SessionManager // manages visits over https
	mux         *http.ServeMux
	routes      []Route
	cross       *http.CrossOriginProtection
	admits      admission.Limits
	priorities  map[string]admission.Priority // the priority of each route, by the route's pattern
}

// NewHandler returns the handler of all pages.
func NewHandler(cfg Config, routes []Route) (http.Handler, error) {
	s := &Site{Control: cfg.Control, Accounts: cfg.Accounts, Webhooks: cfg.Webhooks, Automations: cfg.Automations, Calendars: cfg.Calendars, Statements: cfg.Statements, Links: cfg.Links, logger: cfg.Logger, mux: http.NewServeMux(), routes: routes, cross: http.NewCrossOriginProtection(), admits: cfg.Admit, priorities: map[string]admission.Priority{}}
	s.plain, s.secure = s.newVisits(false), s.newVisits(true)
	for i := range s.routes {
		r := &s.routes[i]
		if err := r.check(); err != nil {
			return nil, err
		}
		s.mux.Handle(r.Pattern, s.serve(r))
		s.priorities[r.Pattern] = r.priority()
	}
	assets := static.Handler()
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, static.Path) {
			httpkit.Matched(r.Context(), static.Path)
			assets.ServeHTTP(w, r)
			return
		}
		s.page(w, r)
	})
	return httpkit.Wrap(pages, httpkit.Config{Logger: cfg.Logger, Now: cfg.Now, Observe: cfg.Observe, Proxies: cfg.Proxies}), nil
}

// Takes reports whether a request is for a page, not for the API. Usually the path decides. If neither the pages nor
// the API have the path, the header Accept decides.
func Takes(r *http.Request) bool {
	if r.URL.Path == "/" || r.URL.Path == "/favicon.ico" {
		return true
	}
	first, _, _ := strings.Cut(r.URL.Path[min(1, len(r.URL.Path)):], "/")
	switch {
	case slices.Contains(ownPaths(), first):
		return true
	case first == "api" || first == "docs" || strings.HasPrefix(first, "openapi"):
		return false
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// ownPaths returns the first parts of the pages' paths.
func ownPaths() []string {
	return []string{"static", "brand", "login", "logout", "language", "leave", "me", "p", "partner", "c", "ticket", "invitation", "forgot", "reset", "phone", "conferma", "search", "r", "link"}
}

// Policy lets a page load files only from this server. It forbids scripts and styles inside a page itself.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page answers a request for a page.
func (s *Site) page(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Add("Vary", "Cookie, HX-Request")
	_, pattern := s.mux.Handler(r)
	priority, known := s.priorities[pattern]
	if !known {
		priority = admission.PriorityRead
	}
	// A page request may wait for the store as long as necessary. Only its wait for a seat has a deadline. Its actions give
	// the seat back when they wait for something outside.
	pass, _, err := s.admits.Gate.Enter(r.Context(), httpkit.UnknownCaller(r), priority)
	if err != nil {
		httpkit.Quieten(r.Context())
		v := s.newRequest(w, r)
		v.bare = true
		v.fail(err)
		return
	}
	defer pass.Leave()
	account := s.admits.Budget.Open(httpkit.UnknownCaller(r))
	defer account.Close()
	s.visits(r).LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.newRequest(w, r)
		v.Pass, v.Memory = pass, account
		defer v.recovered()
		if err := s.cross.Check(r); err != nil {
			v.fail(errCross)
			return
		}
		if pattern == "" || path.Clean(r.URL.Path) != r.URL.Path { // no route matches, or the mux would answer with a redirect that contains the whole address
			_ = v.identify() // only the look of the error page depends on the person, so a failure does no harm
			v.fail(s.unmatched(r))
			return
		}
		httpkit.Matched(r.Context(), pattern)
		s.mux.ServeHTTP(w, r.WithContext(withRequest(r.Context(), v)))
	})).ServeHTTP(w, r.WithContext(puntuale.WithAdmissionDeadline(puntuale.WithMemoryGrant(r.Context(), account),
		puntuale.NewAdmissionDeadline(nil, false).WithSeat(pass.LeaveSeat))))
}

// unmatched returns the error for a request that matches no route. It distinguishes a path that does not exist from a
// path that exists only with another method.
func (s *Site) unmatched(r *http.Request) error {
	if path.Clean(r.URL.Path) != r.URL.Path {
		return ErrNoPage
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" && method != r.Method {
			return errMethod
		}
	}
	return ErrNoPage
}

func (r *Route) check() error {
	method, _, _ := strings.Cut(r.Pattern, " ")
	switch {
	case method == http.MethodPost && r.Audit == "":
		return fmt.Errorf("route %s: it says nothing to the audit log", r.Pattern)
	case r.Side != Anyone && r.Role == 0:
		return fmt.Errorf("route %s: it names no role", r.Pattern)
	}
	return nil
}
