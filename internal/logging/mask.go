package logging

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hidden is the text that replaces secrets.
const Hidden = "xxxxx"

// harmless contains the names in a database address whose values are no secrets. All other values are hidden. A list of
// secret names would be too long, because drivers accept many names of passwords, in upper and lower case.
var harmless = []string{
	"application_name", "connect_timeout", "dbname", "host", "pool_max_conns", "pool_min_conns", "port", "search_path",
	"sslmode", "sslrootcert", "target_session_attrs", "timezone", "user",
	"_pragma", "_txlock", "cache", "mode", // parameters of a SQLite address
}

// nameShape matches the name of a query parameter, but not most parts of a password.
var nameShape = regexp.MustCompile(`^[A-Za-z_]{1,30}$`)

// MaskedAddress hides only the secrets in a database address, so that people still recognise the database. If it cannot
// parse the address, it hides the whole address, because a password with a special character may be anywhere in it.
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
