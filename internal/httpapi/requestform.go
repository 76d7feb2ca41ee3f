package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
)

// edge rewrites a request from any accepted spelling to the spelling that the operations expect. The expected path has
// no trailing slash, and each list in the query is a repeated "name[]". A path that is not clean gets the answer for an
// unknown path, because the mux would otherwise redirect it.
func (a *api) edge(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		if len(u.Path) > 1 {
			u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
		}
		escaped := u.EscapedPath()
		if !strings.HasPrefix(escaped, "/") || path.Clean(escaped) != escaped {
			a.refuse(w, r, noSuchPath())
			return
		}
		u.RawQuery = tidyQuery(u.RawQuery)
		tidied := r.WithContext(r.Context())
		tidied.URL = &u
		tidied.Header = r.Header.Clone()
		tidied.Header.Del("Accept") // a caller's Accept has no effect, because the operation decides the form of its answer
		defer func() {
			if tidied.Pattern != "/" { // "/" is the pattern of paths that belong to no operation
				httpkit.Matched(r.Context(), tidied.Pattern)
			}
		}()
		mux.ServeHTTP(w, tidied)
	})
}

// listNames matches the names of lists in a query in all accepted spellings, such as message_ids, message_ids[] or
// message_ids[0].
var listNames = regexp.MustCompile(`^(message_ids|phones|client_ids)(?:\[[0-9]*\])?$`)

// tidyQuery rewrites a raw query. Each entry of a list becomes its own "name[]=entry", in the same order, even if
// commas separate the entries. Ids may be written as a JSON list, and with spaces between. A name without a value gets
// the value "true". A part that cannot be decoded is not changed. The operation refuses this part later.
func tidyQuery(raw string) string {
	if raw == "" {
		return ""
	}
	pieces := make([]string, 0, 8)
	for piece := range strings.SplitSeq(raw, "&") {
		if piece == "" {
			continue
		}
		name, value, given := strings.Cut(piece, "=")
		if !given {
			value = "true"
		}
		decoded, nameErr := url.QueryUnescape(name)
		entries, valueErr := url.QueryUnescape(value)
		list := listNames.FindStringSubmatch(decoded)
		if nameErr != nil || valueErr != nil || list == nil || strings.Contains(piece, ";") {
			pieces = append(pieces, name+"="+value)
			continue
		}
		ids := list[1] != "phones" // in a number, a space may be a "+"
		if inner, ok := strings.CutPrefix(strings.TrimSpace(entries), "["); ok && ids {
			entries = strings.TrimSuffix(inner, "]")
		}
		for entry := range strings.SplitSeq(entries, ",") {
			if ids {
				entry = strings.Trim(entry, "\t\r\n \"")
			}
			pieces = append(pieces, url.QueryEscape(list[1]+"[]")+"="+url.QueryEscape(entry))
		}
	}
	return strings.Join(pieces, "&")
}

// unmatched answers requests that match no operation. The status is 405 if the path exists with another method, and
// otherwise 404.
func (a *api) unmatched(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			other := r.WithContext(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			a.refuse(w, r, noSuchPath())
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.refuse(w, r, &puntuale.Error{Code: httpkit.CodeMethod, Reason: puntuale.Because(puntuale.FaultCallMethod)})
	}
}

func noSuchPath() error {
	return &puntuale.Error{Code: puntuale.CodeNotFound, Reason: puntuale.Because(puntuale.FaultCallNoPath)}
}

// refuse answers with an error.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch puntuale.CodeOf(err) {
	case puntuale.CodeUnauthorized, puntuale.CodeRateLimited, puntuale.CodeOverloaded: // some callers repeat a call immediately after these refusals
		a.refusal.Delay(r.Context())
	default:
	}
	a.problem(r.Context(), err).Write(w)
}

// problem returns the answer for an error. If the gate admitted the call, and a later part refused it as overloaded,
// the gate decides when the caller should try again.
func (a *api) problem(ctx context.Context, err error) *httpkit.Problem {
	if e, ok := errors.AsType[*puntuale.Error](err); ok && e.Code == puntuale.CodeOverloaded && e.RetryAfter == 0 {
		later := *e
		later.RetryAfter, later.Err = a.admits.Gate.Overloaded("store"), err
		err = &later
	}
	return httpkit.NewProblem(ctx, a.logger, err)
}
