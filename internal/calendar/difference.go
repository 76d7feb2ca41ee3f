package calendar

import (
	"time"

	"puntuale"
)

// keepPast is how long entries whose start is past are stored.
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
		if there[e.Reference] {
			continue
		}
		there[e.Reference] = true
		old := before[e.Reference]
		if old == nil {
			changed = append(changed, e)
			continue
		}
		e.Applied, e.Withdrawn, e.Refused, e.Missing = old.Applied, old.Withdrawn, old.Refused, 0
		if e.Problem != "" && old.Live() {
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
	Silent bool // with Cancel: nobody is told, because the entry still exists but no longer names a person
	Reopen bool // the calendar itself had cancelled the booking
}

// Due returns the changes that a calendar's entries want. gone is how many of them cancel a booking whose entry is gone.
// If these are too many at once, and a person has not allowed so many, they are left out, and asked is their number.
func Due(entries []puntuale.CalendarEntry, allowed int, now time.Time) (orders []Order, gone, asked int) {
	live := 0
	var lost []Order
	for _, e := range entries {
		if e.Live() && e.Start.After(now) {
			live++
		}
		switch {
		case e.Live() && e.Cancelled && e.Missing == 0:
			orders = append(orders, Order{Entry: e, Cancel: true})
		case e.Live() && e.Missing >= puntuale.CalendarAgreed && e.Start.After(now):
			lost = append(lost, Order{Entry: e, Cancel: true, Silent: e.Problem != ""})
		case e.Problem == "" && !e.Cancelled && e.Missing == 0 && (e.Digest != e.Applied || e.Withdrawn) && (e.Live() || e.Start.After(now)):
			orders = append(orders, Order{Entry: e, Reopen: e.Withdrawn})
		}
	}
	if len(lost) > max(puntuale.GoneAtOnce, int(puntuale.GoneShare*float64(live)), allowed) {
		return orders, 0, len(lost)
	}
	return append(orders, lost...), len(lost), 0
}
