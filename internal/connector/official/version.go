package official

import (
	"log/slog"
	"regexp"
	"time"
)

// DefaultVersion is the version of the Graph API that the connector uses by default.
const DefaultVersion = "v27.0"

var versionShape = regexp.MustCompile(`^v[1-9][0-9]{0,2}\.[0-9]{1,2}$`)

// ValidVersion reports whether a text has the form of a version, such as v25.0.
func ValidVersion(text string) bool { return versionShape.MatchString(text) }

// versionEnds contains the time at which each version stops working. It has no entry for versions without a known end,
// such as v26.0 and v27.0. (Changelog of the Graph API, September 2026.)
var versionEnds = map[string]time.Time{
	"v20.0": date(2026, time.September, 24),
	"v21.0": date(2027, time.January, 21),
	"v22.0": date(2027, time.May, 20),
	"v23.0": date(2027, time.October, 8),
	"v24.0": date(2028, time.February, 18),
	"v25.0": date(2028, time.July, 29),
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// endsSoon is how long before a version's end WarnOfVersion begins to warn.
const endsSoon = 90 * 24 * time.Hour

// WarnOfVersion logs when a version of the Graph API ended, or that it will end soon.
func WarnOfVersion(log *slog.Logger, version string, now time.Time) {
	ends, known := versionEnds[version]
	switch {
	case !known:
	case !now.Before(ends):
		log.Error("Meta no longer answers this version of the Graph API: set --official-version", "version", version, "ended", ends.Format(time.DateOnly))
	case ends.Sub(now) < endsSoon:
		log.Warn("Meta will soon stop answering this version of the Graph API: set --official-version", "version", version, "ends", ends.Format(time.DateOnly))
	}
}

const warnEvery = 24 * time.Hour

// warnOfVersion warns once a day, no matter how many sessions call it.
func (c *Connector) warnOfVersion() {
	now := c.cfg.Clock.Now()
	c.mu.Lock()
	due := now.Sub(c.warned) >= warnEvery
	if due {
		c.warned = now
	}
	c.mu.Unlock()
	if due {
		WarnOfVersion(c.cfg.Logger, c.cfg.Version, now)
	}
}
