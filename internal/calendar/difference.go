package calendar

import (
	"time"

	"puntuale"
)

// keepPast is how long entries are stored after they started and left the feed.
const keepPast = 48 * time.Hour

// Compare compares what a reading found with what is stored. It returns the entries to store, and the references of
// those to delete. An entry with a booking that is missing, or that is no appointment any more, only counts how many
// readings agree about it: [Due] decides what becomes of the booking.
func Compare(stored, read []puntuale.CalendarEntry, now time.Time) (changed []puntuale.CalendarEntry, gone []string) {
	before := make(map[string]*puntuale.CalendarEntry, len(stored))
	for i := range stored {
		before[stored[i].Reference] = &stored[i]
	}
	there := make(map[string]bool, len(read))
	for _, e := range read {
		old := before[e.Reference]
		if there[e.Reference] || old == nil && !e.Start.IsZero() && !e.Start.After(now) { // what is past and has no booking needs none
			continue
		}
		there[e.Reference] = true
		if old == nil {
			changed = append(changed, e)
			continue
		}
		e.Applied, e.Withdrawn, e.Refused, e.Missing = old.Applied, old.Withdrawn, old.Refused, 0
		if e.Problem != "" && !e.Cancelled && old.Live() {
			e.Missing = old.Missing + 1
			if e.Start.IsZero() {
				e.Start = old.Start
			}
		}
		if e != *old {
			changed = append(changed, e)
		}
	}
	for _, e := range stored {
		switch {
		case there[e.Reference]:
		case e.Start.Before(now.Add(-keepPast)) || !e.Live():
			gone = append(gone, e.Reference)
		case e.Start.After(now):
			e.Missing++
			changed = append(changed, e)
		}
	}
	return changed, gone
}

// Again returns the entries to store if a reading found the same as the one before.
func Again(stored []puntuale.CalendarEntry) (changed []puntuale.CalendarEntry) {
	for _, e := range stored {
		if e.Missing > 0 && e.Live() {
			e.Missing++
			changed = append(changed, e)
		}
	}
	return changed
}

// Order is one change of a booking.
type Order struct {
	Entry  puntuale.CalendarEntry
	Cancel bool
	Silent bool // nobody is told: the entry still exists but no longer names a person, or it was moved into the past

	elsewhere bool // with Cancel: another calendar has the entry, so the booking stays
}

// Due returns the changes that a calendar's entries want. If too many entries are gone at once, their bookings are left
// as they are, and asked is their number. Then a person decides: allowed is how many they let go, and waits reports
// whether they were asked before and have not decided.
func Due(entries []puntuale.CalendarEntry, allowed int, waits bool, now time.Time) (orders []Order, asked int) {
	live := 0
	var lost []Order
	for _, e := range entries {
		future := e.Start.After(now)
		if e.Live() && future {
			live++
		}
		switch {
		case e.Live() && e.Cancelled:
			if future {
				orders = append(orders, Order{Entry: e, Cancel: true})
			}
		case e.Live() && e.Missing >= puntuale.CalendarAgreed:
			if future {
				lost = append(lost, Order{Entry: e, Cancel: true, Silent: e.Problem != ""})
			}
		case e.Problem == "" && !e.Cancelled && e.Missing == 0 && (e.Digest != e.Applied || e.Withdrawn) && (e.Live() || future):
			orders = append(orders, Order{Entry: e, Silent: !future})
		}
	}
	most := allowed
	if !waits {
		most = max(most, puntuale.GoneAtOnce, int(puntuale.GoneShare*float64(live)))
	}
	if len(lost) > most {
		return orders, len(lost)
	}
	return append(orders, lost...), 0
}
