package logging

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands for what would give access.
const Hidden = "xxxxx"

// harmless are the names in a database address whose values anybody may see. All others are hidden: drivers know more
// names of passwords than one can list, and read them in any case of letters.
var harmless = []string{
	"application_name", "connect_timeout", "dbname", "host", "pool_max_conns", "pool_min_conns", "port", "search_path",
	"sslmode", "sslrootcert", "target_session_attrs", "timezone", "user",
	"_pragma", "_txlock", "cache", "mode", // of a SQLite file
}

// nameShape is a name of a query, rather than a piece of a password.
var nameShape = regexp.MustCompile(`^[A-Za-z_]{1,30}$`)

// MaskedAddress hides what would give access in a database address, and nothing else, so that one can still see where it
// leads. An address that does not read as one is hidden altogether: a password with an odd character may stand anywhere
// in it.
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
