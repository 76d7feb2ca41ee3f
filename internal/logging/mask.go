package logging

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hidden replaces secrets.
const Hidden = "xxxxx"

// harmless are the names in a database address whose values anybody may see. All others are hidden: drivers know too many names of
// passwords to list, in upper and lower case.
var harmless = []string{
	"application_name", "connect_timeout", "dbname", "host", "pool_max_conns", "pool_min_conns", "port", "search_path",
	"sslmode", "sslrootcert", "target_session_attrs", "timezone", "user",
	"_pragma", "_txlock", "cache", "mode", // parameters of a SQLite address
}

// nameShape is a name of a query, rather than a piece of a password.
var nameShape = regexp.MustCompile(`^[A-Za-z_]{1,30}$`)

// MaskedAddress hides only the secrets in a database address, so that people still see which database it is. It hides an address completely
// if it cannot parse it, because a password with a special character may be anywhere in it.
func MaskedAddress(address string) string {
	u, err := url.Parse(address)
	odd := err != nil || u.Scheme == "" || strings.Contains(u.Path, "@") || u.Fragment != "" ||
		u.Opaque != "" && u.Scheme != "sqlite"
	if odd {
		return "(hidden: not an address)"
	}
	var pairs []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, given := strings.Cut(pair, "=")
		switch {
		case slices.Contains(harmless, name), pair == "":
		case given && nameShape.MatchString(name):
			pair = name + "=" + Hidden
		default:
			pair = Hidden
		}
		pairs = append(pairs, pair)
	}
	u.RawQuery = strings.Join(pairs, "&")
	return u.Redacted()
}
