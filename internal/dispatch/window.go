package dispatch

import (
	"sync"
	"time"

	"puntuale"
)

// insideWindow tells whether a message may leave now; if not, next is the first moment it may, zero when there is none.
func insideWindow(w *puntuale.Window, zone *time.Location, now time.Time) (next time.Time, inside bool) {
	if w == nil || w.Contains(now, zone) {
		return time.Time{}, true
	}
	next, _ = w.Next(now, zone)
	return next, false
}

var locations sync.Map // name → *time.Location

// location reads a zone once; an unknown one, which no run should have, counts as UTC.
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
