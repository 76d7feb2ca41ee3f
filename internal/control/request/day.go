package request

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"puntuale"
)

// Zones remembers time zones by name: loading one reads a file.
type Zones struct{ loaded sync.Map }

// zoneNames are IANA's names of time zones, one a line, sorted. A machine has other files beside them ("posixrules", "right/Europe/Rome"),
// which mean something else or nothing on other machines. "Factory" is no zone at all.
//
//go:embed zone.txt
var zoneNames string

var sortedZones = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// Named returns the zone of an IANA name from a caller.
func (z *Zones) Named(name string) (*time.Location, error) {
	if _, known := slices.BinarySearch(sortedZones(), name); !known {
		return nil, fmt.Errorf("%q names no time zone", name)
	}
	return z.Load(name)
}

// Load returns the zone of a name that was stored, perhaps by a version that accepted other names, too. "Local" is
// refused, because it differs between machines.
func (z *Zones) Load(name string) (*time.Location, error) {
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

// Midnight returns the first moment of the day after d in the zone: 01:00 where a clock change skips midnight.
func Midnight(d puntuale.Date, loc *time.Location) time.Time {
	return d.AddDays(1).At(0, loc)
}

func TimeOfDay(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
}
