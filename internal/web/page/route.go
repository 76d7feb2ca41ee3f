package page

import (
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/view"
)

// Side says who may see a page.
type Side int8

const (
	Anyone      Side = iota // everybody, also without a sign-in
	SignedIn                // everybody who has signed in
	PartnerSide             // a partner's users; for a client's user the page does not exist
	ClientSide              // a client's users, and users of the partner who entered the client's dashboard; the path begins with /c/{client}
)

// Unaudited marks a POST for which package page writes no entry in the audit log. Such a POST concerns only the person
// who sends it, or its handler writes the entry.
const Unaudited = "-"

// Route is a page or an action. Only [Site.serve] enforces its side and role.
type Route struct {
	Pattern string // a pattern of net/http, such as "POST /c/{client}/sequences"
	Side    Side
	Role    puntuale.Role // the lowest role with which a user may see the page
	Audit   string        // the name of the action in the audit log, such as "sequence.create"; every POST needs one
	do      func(*Request) error
}

// Get returns the route of a page.
func Get(path string, side Side, role puntuale.Role, do func(*Request) error) Route {
	return Route{http.MethodGet + " " + path, side, role, "", do}
}

// Post returns the route of an action. audit is the action's name in the audit log.
func Post(path string, side Side, role puntuale.Role, audit string, do func(*Request) error) Route {
	return Route{http.MethodPost + " " + path, side, role, audit, do}
}

// serve identifies the person, checks what the person may reach, and calls the handler.
func (s *Site) serve(r *Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := requestOf(req.Context())
		v.Writer, v.HTTP, v.route = w, req, r
		err := s.admit(v)
		if err == nil && !v.Answered {
			if err = r.do(v); err == nil {
				v.Note()
			}
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// admit identifies the person, limits the requests of callers who have not signed in, and checks the route's side and
// role.
func (s *Site) admit(v *Request) error {
	if err := v.identify(); err != nil {
		return err
	}
	if v.Person == nil && v.route.counted() {
		if err := s.admits.UnknownCallers.Take(httpkit.UnknownCaller(v.HTTP)); err != nil {
			httpkit.Quieten(v.Ctx())
			return err
		}
	}
	if v.route.Side == Anyone {
		return nil
	}
	if v.Person == nil {
		return ErrSignIn
	}
	var err error
	switch v.route.Side {
	case PartnerSide:
		v.Partner, err = v.Person.Partner()
	case ClientSide:
		err = s.enter(v)
	}
	if err != nil || v.Answered {
		return err
	}
	if v.Person.User().Role < v.route.Role {
		return errRole
	}
	v.settle()
	return nil
}

// enter finds the client in the path. A partner's user must first enter the client's dashboard. The audit log records
// that the user entered.
func (s *Site) enter(v *Request) (err error) {
	id := v.Path("client")
	if v.Client, err = v.Person.Client(v.Ctx(), id); err != nil {
		return err
	}
	v.Client.SetAddress(v.Caller().Address)
	admission.Owned(v.Ctx(), v.Client.Account().Partner, admission.CallerKey{Side: puntuale.ClientSide, ID: int64(v.Client.ID())})
	if v.Person.User().Client != 0 || v.Entered(v.Client.ID()) {
		return nil
	}
	if v.HTTP.Method != http.MethodGet {
		return errRole
	}
	return s.askToEnter(v)
}

// preventing contains the actions that prevent sends, by their names in the audit log. The gate admits these actions
// before other requests, as it does in the API.
var preventing = []string{
	"message.cancel", "message.all", "person.stop", "person.stop_all", "campaign.paused", "campaign.cancelling", "blacklist.add", "blacklist.import", "session.unlink", "session.unlink_device", "client.suspend", "client.delete",
	"key.revoke", "sequence.delete", "session.delete", "booking.cancel",
}

// priority returns the gate's priority for requests to the route.
func (r *Route) priority() admission.Priority {
	switch {
	case slices.Contains(preventing, r.Audit):
		return admission.PriorityPrevent
	case r.Method() == http.MethodGet:
		return admission.PriorityRead
	}
	return admission.PriorityWrite
}

// counted reports whether a request counts towards the limit of one address, if nobody has signed in. Files that a
// sign-in page loads do not count.
func (r *Route) counted() bool { return !strings.HasPrefix(r.Path(), "/brand/") }

// Method returns the method of the route's pattern, and Path returns its path.
func (r *Route) Method() string { m, _, _ := strings.Cut(r.Pattern, " "); return m }
func (r *Route) Path() string   { _, p, _ := strings.Cut(r.Pattern, " "); return p }

// askToEnter asks a partner's user to enter the client's dashboard, and shows nothing of the dashboard itself.
func (s *Site) askToEnter(v *Request) error {
	account := v.Client.Account()
	v.Client = nil
	v.Frame.Nav, v.Frame.Find = s.navigation(v), s.search(v)
	return v.Show(view.Enter(account, v.HTTP.URL.RequestURI()))
}
