package store_test

import (
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestBookingsAndCancels changes a booking while others cancel. A cancellation that comes after a change cancels the
// message that took the former one's place, and a change that comes after it plans nothing: never does a message stay.
func TestBookingsAndCancels(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			for n := range 40 {
				reference := storetest.Unique("visita")
				if _, err := c.PutBooking(t.Context(), c.Booking(reference)); err != nil {
					t.Fatal(err)
				}
				var both sync.WaitGroup
				for range 3 {
					both.Go(func() {
						if _, err := c.PutBooking(t.Context(), c.Booking(reference)); err != nil {
							t.Error(err)
						}
					})
				}
				both.Go(func() {
					if err := c.CancelPending(t.Context(), puntuale.CancelTarget{Reference: reference}, storetest.Day, w.DB.Clock.Now(), func([]puntuale.CancelledMessage) error { return nil }); err != nil {
						t.Error(err)
					}
				})
				both.Wait()
				state, err := c.BookingState(t.Context(), reference, "")
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range state.Steps {
					if s.Pending() {
						t.Fatalf("round %d: after the cancellation, message %d is still planned", n, s.Message)
					}
				}
				if got := w.Int(`select count(*) from message m join run r on r.client_id = m.client_id and r.id = m.run_id where r.reference = $1 and m.state = 0`, reference); got != 0 {
					t.Fatalf("round %d: %d messages are still planned", n, got)
				}
			}
			if got := w.DB.Meter.Deadlocks.Load(); got != 0 {
				t.Errorf("%d deadlocks", got)
			}
		})
	}
}

// TestBookingLists: a booking is found by its id and by each of its messages, its next message is the soonest that may
// leave, and the counts of a period leave out what is not in it.
func TestBookingLists(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			c := w.Client(puntuale.AccountFull)
			version := func() string {
				t.Helper()
				text, err := c.Version(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			empty := version()
			put := func(reference string) puntuale.PutBookingResult {
				t.Helper()
				r, err := c.PutBooking(t.Context(), c.Booking(reference))
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			first, other := put("prima"), put("altra")
			second := put("prima") // its message replaces the former one
			if version() == empty {
				t.Error("the version is the same after bookings were made")
			}
			for what, f := range map[string]puntuale.BookingFilter{
				"id": {ID: first.ID}, "message": {Message: second.IDs[0]}, "former message": {Message: first.IDs[0]},
			} {
				found, _, err := c.Bookings(t.Context(), f, puntuale.Page{})
				if err != nil || len(found) != 1 || found[0].ID != first.ID {
					t.Errorf("by its %s: %v, %v", what, found, err)
				}
			}
			next, err := c.NextMessages(t.Context(), []puntuale.BookingID{first.ID, other.ID, 987654})
			if err != nil || len(next) != 2 || next[first.ID] != second.IDs[0] || next[other.ID] != other.IDs[0] {
				t.Errorf("next: %v, %v", next, err)
			}
			day := first.Date
			for what, x := range map[string]struct {
				from, to time.Time
				want     int
			}{"the day": {day, day.Add(time.Second), 2}, "before": {day.Add(-time.Hour), day, 0}, "after": {day.Add(time.Microsecond), day.Add(time.Hour), 0}} {
				counts, err := c.CountBookings(t.Context(), x.from, x.to)
				if err != nil || counts[puntuale.BookingOpen] != x.want || counts.Total() != x.want {
					t.Errorf("%s: %v, %v", what, counts, err)
				}
			}
		})
	}
}
