package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
)

// The server roles. A server with all of them is a whole installation. Several servers may divide the server roles. The
// type [puntuale.Role] is different: it is the role of a user.
const (
	roleAPI      = "api"      // answers calls of programs
	roleWeb      = "web"      // shows pages to people
	roleDispatch = "dispatch" // owns sessions and sends what is due
)

var allRoles = []string{roleAPI, roleWeb, roleDispatch}

// has reports whether the server has the given server role.
func (s *serveSettings) has(role string) bool { return slices.Contains(s.Roles, role) }

// checkRoles returns what is wrong with a list of server roles, or "" if it is valid.
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

// withoutAPI refuses API calls on a server without the server role api. The refusal says that the caller called the
// wrong server.
func withoutAPI(cfg httpkit.Config) http.Handler {
	return httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := &puntuale.Error{Code: puntuale.CodeNotFound, Reason: puntuale.Because(faultServerWithoutAPI)}
		httpkit.NewProblem(r.Context(), cfg.Logger, err).Write(w)
	}), cfg)
}
