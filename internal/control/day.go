package control

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"puntuale"
)

// zones remembers time zones by name: loading one reads a file.
type zones struct{ loaded sync.Map }

// zoneNames are IANA's names of time zones, one a line, sorted. A machine has other files beside them ("posixrules",
// "right/Europe/Rome"), which mean something else or nothing elsewhere; "Factory" is no zone at all.
//
//go:embed zone.txt
var zoneNames string

var sortedZones = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// named returns the zone of an IANA name as a caller gives it.
func (z *zones) named(name string) (*time.Location, error) {
	if _, known := slices.BinarySearch(sortedZones(), name); !known {
		return nil, fmt.Errorf("%q names no time zone", name)
	}
	return z.load(name)
}

// load returns the zone of a name that was stored, perhaps by a version that took other names too. "Local" is none: it
// means something else on every machine.
func (z *zones) load(name string) (*time.Location, error) {
	if loc, ok := z.loaded.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q names no time zone", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load a time zone: %w", err)
	}
	z.loaded.Store(name, loc)
	return loc, nil
}

// zone returns the client's time zone.
func (c *Client) zone() (*time.Location, error) { return c.control.zones.load(c.account.Zone) }

// today returns the client's present day, whose cap counts.
func (c *Client) today(now time.Time) (puntuale.Date, error) {
	loc, err := c.zone()
	if err != nil {
		return puntuale.Date{}, err
	}
	return puntuale.DateOf(now.In(loc)), nil
}

// midnight returns the first moment of the day after d in the zone: 01:00 where a clock change skips midnight.
func midnight(d puntuale.Date, loc *time.Location) time.Time {
	return d.AddDays(1).At(0, loc)
}
