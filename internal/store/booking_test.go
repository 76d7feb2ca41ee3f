package store_test

import (
	"sync"
	"testing"

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
