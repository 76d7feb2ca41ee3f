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

// Zones caches time zones by name, because loading a zone reads a file. It is safe for concurrent use.
type Zones struct{ loaded sync.Map }

// zoneNames contains IANA's names of time zones, sorted, one per line. It does not contain "Factory", which is not a
// zone. A machine's folder of zones has more files, such as "posixrules" and "right/Europe/Rome". They are not in
// zoneNames, because they have another meaning on other machines, or do not exist there.
//
//go:embed zone.txt
var zoneNames string

var sortedZones = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// Named returns the zone with an IANA name from a request. It returns an error for any other name.
func (z *Zones) Named(name string) (*time.Location, error) {
	if _, known := slices.BinarySearch(sortedZones(), name); !known {
		return nil, fmt.Errorf("%q names no time zone", name)
	}
	return z.Load(name)
}

// Load returns the zone with a stored name. It accepts names that are not IANA names, because an earlier version may
// have stored them. Load refuses "Local", because its meaning differs between machines.
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

// Midnight returns the first time of the day after d in the zone. Usually it is 00:00. If a clock change skips
// midnight, it is 01:00.
func Midnight(d puntuale.Date, loc *time.Location) time.Time {
	return d.AddDays(1).At(0, loc)
}

func TimeOfDay(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
}
