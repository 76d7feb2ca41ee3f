package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
)

// What a server may do. One that does all of it is a whole installation; several may share it out.
const (
	roleAPI      = "api"      // answers programs' calls
	roleWeb      = "web"      // shows pages to people
	roleDispatch = "dispatch" // owns sessions and sends what is due
)

var allRoles = []string{roleAPI, roleWeb, roleDispatch}

// has reports whether the server does what a role says.
func (s *serveSettings) has(role string) bool { return slices.Contains(s.Roles, role) }

// checkRoles returns what is wrong with a list of roles, "" when nothing is.
func checkRoles(roles []string) string {
	for _, r := range roles {
		if !slices.Contains(allRoles, r) {
			return fmt.Sprintf("%q is not one of %s", r, strings.Join(allRoles, ", "))
		}
	}
	if len(roles) == 0 {
		return "must name at least one of " + strings.Join(allRoles, ", ")
	}
	return ""
}

const faultServerWithoutAPI puntuale.ReasonCode = "server.without_api"

// withoutAPI answers calls that reach a server which takes none, so that their sender learns it.
func withoutAPI(cfg httpkit.Config) http.Handler {
	return httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := &puntuale.Error{Code: puntuale.CodeNotFound, Reason: puntuale.Because(faultServerWithoutAPI)}
		httpkit.NewProblem(r.Context(), cfg.Logger, err).Write(w)
	}), cfg)
}
