package web

import (
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/static"
)

// side says who has a page.
type side int8

const (
	anyone      side = iota // also who has not signed in
	person                  // who has signed in
	partnerSide             // a partner's users; to a client's user there is no such page
	clientSide              // a client's users, and the partner's who entered; the path begins with /c/{client}
)

// unaudited says of a POST that it changes nothing that anybody but its sender notices.
const unaudited = "-"

// route is a page, or something to do. The whole table is [allRoutes]; what it says of sides and roles is enforced by
// [site.serve] and nowhere else.
type route struct {
	pattern string // of net/http: "POST /c/{client}/sequences"
	side    side
	role    puntuale.Role // the least that one must have
	audit   string        // what the audit log says was done, "sequence.create"; needed for every POST
	do      func(*site, *visit) error
}

// allRoutes is the one table. Each noun's file brings its part.
func allRoutes() (all []route) {
	for _, part := range [][]route{doorRoutes, invitationRoutes, meRoutes, brandRoutes, assistedRoutes, partnerRoutes, accountRoutes, teamRoutes, clientRoutes, sessionRoutes, deviceRoutes, officialRoutes, gatewayRoutes, blacklistRoutes, campaignRoutes, keyRoutes, usageRoutes, sequenceRoutes, startRoutes, exportRoutes, templateRoutes, unknownRoutes} {
		all = append(all, part...)
	}
	return all
}

// Patterns are the patterns of all pages, as net/http writes them, and of what pages load.
func Patterns() []string {
	all := []string{http.MethodGet + " " + static.Path}
	for _, r := range allRoutes() {
		all = append(all, r.pattern)
	}
	return all
}

// serve finds out who somebody is and what they may reach, and calls the handler.
func (s *site) serve(r *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := visitOf(req.Context())
		v.w, v.r, v.route = w, req, r
		err := s.admit(v)
		if err == nil && !v.answered {
			if err = r.do(s, v); err == nil {
				v.note()
			}
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// admit enforces a route's side and role.
func (s *site) admit(v *visit) error {
	if err := v.identify(); err != nil {
		return err
	}
	if v.person == nil && v.route.counted() {
		if err := s.admits.UnknownCallers.Take(httpkit.UnknownCaller(v.r)); err != nil {
			httpkit.Quieten(v.ctx())
			return err
		}
	}
	if v.route.side == anyone {
		return nil
	}
	if v.person == nil {
		return errSignIn
	}
	var err error
	switch v.route.side {
	case partnerSide:
		v.partner, err = v.person.Partner()
	case clientSide:
		err = s.enter(v)
	}
	if err != nil || v.answered {
		return err
	}
	if v.person.User().Role < v.route.role {
		return errRole
	}
	v.settle()
	return nil
}

// enter finds the client of a path. A partner's user must have entered its dashboard, which the audit log notes.
func (s *site) enter(v *visit) (err error) {
	id := v.path("client")
	if v.client, err = v.person.Client(v.ctx(), id); err != nil {
		return err
	}
	v.client.At(v.caller().Address)
	if v.person.User().Client != 0 || v.entered(v.client.ID()) {
		return nil
	}
	if v.r.Method != http.MethodGet {
		return errRole
	}
	return s.askToEnter(v)
}

// preventing is what keeps messages from being sent, by what the audit log says of it: it goes before what others do, as in
// the API.
var preventing = []string{
	"message.cancel", "message.all", "campaign.paused", "campaign.cancelling", "blacklist.add", "blacklist.import", "session.unlink", "session.unlink_device", "client.suspend", "client.delete",
	"key.revoke", "sequence.delete", "session.delete",
}

// lane is how the gate treats requests for the route.
func (r *route) lane() admission.Priority {
	switch {
	case slices.Contains(preventing, r.audit):
		return admission.PriorityPrevent
	case r.method() == http.MethodGet:
		return admission.PriorityRead
	}
	return admission.PriorityWrite
}

// counted reports whether a request of somebody who has not signed in counts towards what one address may ask: what a
// sign-in page loads does not.
func (r *route) counted() bool { return !strings.HasPrefix(r.path(), "/brand/") }

// method is the pattern's method, path the rest.
func (r *route) method() string { m, _, _ := strings.Cut(r.pattern, " "); return m }
func (r *route) path() string   { _, p, _ := strings.Cut(r.pattern, " "); return p }
