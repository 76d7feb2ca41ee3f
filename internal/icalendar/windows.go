package icalendar

import (
	"strings"
	"sync"
)

// windowsNames is the table of Windows names, to be searched in several ways. Keys of the first three are in small
// letters.
type windowsNames struct {
	windows map[string]string // Windows name → zone
	iana    map[string]string // IANA name → the same in its usual letters
	cities  map[string]string // last part of an IANA name, with blanks → zone
	names   map[string]string // zone → Windows name in small letters
	list    []string          // the zones that Windows names mean
}

var windowsIndex = sync.OnceValue(func() (w windowsNames) {
	w.windows, w.iana, w.cities, w.names = map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	for line := range strings.Lines(windowsTable) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		name := strings.ToLower(parts[0])
		w.windows[name] = parts[1]
		w.list = append(w.list, parts[1])
		for _, zone := range strings.Fields(parts[2]) {
			w.names[zone], w.iana[strings.ToLower(zone)] = name, zone
			if i := strings.LastIndexByte(zone, '/'); i >= 0 && !strings.HasPrefix(zone, "Etc/") {
				w.cities[strings.ToLower(strings.ReplaceAll(zone[i+1:], "_", " "))] = zone
			}
		}
	}
	return w
})
