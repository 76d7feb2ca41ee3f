package dispatch

import (
	"sync"
	"time"

	"puntuale"
)

// insideWindow reports whether a message may leave now. If not, next is the first moment when it may, or zero for never.
func insideWindow(w *puntuale.Window, zone *time.Location, now time.Time) (next time.Time, inside bool) {
	if w == nil || w.Contains(now, zone) {
		return time.Time{}, true
	}
	next, _ = w.Next(now, zone)
	return next, false
}

var locations sync.Map // name → *time.Location

// location reads a zone once. An unknown one counts as UTC; no run should have one.
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
