package dispatch

import (
	"sync"
	"time"

	"puntuale"
)

// insideWindow reports whether a message may leave now. If not, next is the first time when it may. A zero next means
// never.
func insideWindow(w *puntuale.Window, zone *time.Location, now time.Time) (next time.Time, inside bool) {
	if w == nil || w.Contains(now, zone) {
		return time.Time{}, true
	}
	next, _ = w.Next(now, zone)
	return next, false
}

var locations sync.Map // maps a zone's name to its *time.Location

// location returns a zone, and loads each zone only once. A name that is no zone counts as UTC, but no run should have
// such a name.
func location(name string) *time.Location {
	if found, ok := locations.Load(name); ok {
		return found.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	locations.Store(name, zone)
	return zone
}
