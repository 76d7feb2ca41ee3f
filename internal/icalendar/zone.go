package icalendar

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// zones resolves the names of zones in a feed, each name once, because LoadLocation reads a file each time.
type zones struct {
	o        Options
	work     *effort
	resolved map[zoneKey]zone
	known    []*time.Location // the zones of Windows, once a definition was compared with them
}

type zoneKey struct {
	calendar *calendar
	tzid     string
}

// zone is what a name means.
type zone struct {
	location *time.Location // nil: unknown
	name     string         // IANA name of the zone in which people see the time
	warning  Warning
}

// maxZones bounds the different names of zones in one feed.
const maxZones = 1000

func newZones(o Options, work *effort) *zones {
	return &zones{o: o, work: work, resolved: map[zoneKey]zone{}}
}

// of returns the zone of a calendar, which is that of times without a zone.
func (z *zones) of(c *calendar) zone {
	if c.zone != "" {
		if found := z.named(c, c.zone); found.location != nil && found.warning == "" {
			found.warning = WarnZoneCalendar
			return found
		}
	}
	return zone{z.o.Zone, z.o.Zone.String(), WarnZoneClient}
}

// named resolves a name: an IANA name, a path that ends with one, a name of Windows, or a name that the feed defines.
func (z *zones) named(c *calendar, tzid string) (found zone) {
	key := zoneKey{c, tzid}
	found, known := z.resolved[key]
	if known || len(z.resolved) >= maxZones {
		return found
	}
	definition := c.zones[tzid]
	found = z.standard(tzid)
	if found.location == nil && definition != nil {
		if found = z.standard(definition.place); found.location == nil {
			found = z.custom(c, definition)
		}
	}
	z.resolved[key] = found
	return found
}

// standard resolves a name that does not need the feed's definition.
func (z *zones) standard(name string) zone {
	name = strings.Trim(name, "\"' ")
	for _, try := range []func(string) string{ianaZone, pathZone, windowsZone, offsetZone, z.displayZone} {
		if iana := try(name); iana != "" {
			if location := load(iana); location != nil {
				return zone{location: location, name: location.String()}
			}
		}
	}
	return zone{}
}

var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// load loads a zone. It refuses names that mean the machine's own zone, and files that are no zones.
func load(name string) *time.Location {
	switch first, _, _ := strings.Cut(name, "/"); {
	case len(name) > 64, !zoneName.MatchString(name):
		return nil
	case slices.Contains([]string{"local", "localtime", "posix", "posixrules", "right", "factory"}, strings.ToLower(first)):
		return nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return location
}

// ianaZone returns an IANA name in its usual letters.
func ianaZone(name string) string {
	if proper, known := windowsIndex().iana[strings.ToLower(name)]; known {
		return proper
	}
	if strings.EqualFold(name, "UTC") || strings.EqualFold(name, "Z") {
		return "UTC"
	}
	if load(name) != nil {
		return name
	}
	return ""
}

// pathZone returns the name at the end of a path such as /mozilla.org/20050126_1/Europe/Rome.
func pathZone(path string) string {
	parts := strings.Split(path, "/")
	for n := min(3, len(parts)-1); n > 0; n-- {
		if name := ianaZone(strings.Join(parts[len(parts)-n:], "/")); name != "" {
			return name
		}
	}
	return ""
}

func windowsZone(name string) string { return windowsIndex().windows[strings.ToLower(name)] }

var offsetName = regexp.MustCompile(`(?i)^(?:UTC|GMT)([+-])0?(\d{1,2})(?::?00)?$`)

// offsetZone returns the zone of a name such as GMT+01:00. In the IANA names of these zones, the sign is turned.
func offsetZone(name string) string {
	m := offsetName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	return "Etc/GMT" + map[string]string{"+": "-", "-": "+"}[m[1]] + m[2]
}

var (
	displayName = regexp.MustCompile(`^\((?:UTC|GMT)\s*([+-]\d{2}[:.]?\d{2})?\)\s*(.+)$`)
	suffixes    = []string{" Time (US & Canada)", " Time (Canada)", " (US & Canada)", " (Canada)"}
	// cities are cities of Windows' names that have another name in the IANA names, or none.
	cities = map[string]string{"kolkata": "Asia/Calcutta", "new delhi": "Asia/Calcutta", "kyiv": "Europe/Kiev", "beijing": "Asia/Shanghai",
		"osaka": "Asia/Tokyo", "edinburgh": "Europe/London", "abu dhabi": "Asia/Dubai", "islamabad": "Asia/Karachi",
		"pretoria": "Africa/Johannesburg", "canberra": "Australia/Sydney", "brasilia": "America/Sao_Paulo", "bern": "Europe/Zurich",
		"kathmandu": "Asia/Katmandu", "hanoi": "Asia/Saigon", "coordinated universal time": "Etc/UTC", "st. petersburg": "Europe/Moscow"}
)

// displayZone returns the zone of a name for people, as Outlook writes it: (UTC+01:00) Amsterdam, Berlin, Bern, Rome.
// Only a zone with this offset counts.
func (z *zones) displayZone(name string) string {
	m := displayName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	offset := 0
	if m[1] != "" {
		offset, _ = parseOffset(strings.ReplaceAll(m[1], ".", ":"))
	}
	index := windowsIndex()
	fits := func(iana string) bool {
		location := load(iana)
		if location == nil {
			return false
		}
		for _, month := range []time.Month{time.January, time.July} {
			if _, at := time.Date(z.o.From.Year(), month, 1, 0, 0, 0, 0, location).Zone(); at == offset {
				return true
			}
		}
		return false
	}
	for _, suffix := range append(suffixes, "") {
		if region, cut := strings.CutSuffix(m[2], suffix); cut {
			if iana := windowsZone(region + " Standard Time"); iana != "" && fits(iana) {
				return iana
			}
		}
	}
	for _, city := range strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune(",/;", r) }) {
		city = strings.ToLower(strings.TrimSpace(city))
		iana, known := cities[city]
		if !known {
			iana = index.cities[city]
		}
		if iana != "" && fits(iana) {
			if windows := index.windows[index.names[iana]]; windows != "" && fits(windows) {
				return windows // the same choice among the zones of a Windows name, whatever its form
			}
			return iana
		}
	}
	return ""
}
