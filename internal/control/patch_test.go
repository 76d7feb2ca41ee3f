package control

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// Two changes that were read against the same account and are stored one after the other: the moments follow from what
// is stored in the end, whichever came first.
func TestChangesTogether(t *testing.T) {
	t.Parallel()
	expires := ClientChange{Expires: puntuale.Change[string]{Set: true, To: "2027-01-31"}}
	zone := ClientChange{Zone: puntuale.Change[string]{Set: true, To: "America/New_York"}}
	refill := ClientChange{Refill: puntuale.Change[string]{Set: true, To: puntuale.RefillMonthly}}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			c := New(Config{Operator: w.Store, Clock: w.DB.Clock})
			now := storetest.Begin
			for _, order := range [][]ClientChange{{expires, refill, zone}, {zone, refill, expires}} {
				id := w.Client(puntuale.AccountTest).ID
				p := w.Store.Partner(w.Partner)
				account, err := p.Client(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				var patches []puntuale.ClientPatch
				for _, change := range order {
					patch, err := c.patch(account, change, now)
					if err != nil {
						t.Fatal(err)
					}
					patches = append(patches, patch)
				}
				for _, patch := range patches {
					if _, err := p.UpdateClient(t.Context(), id, patch, now); err != nil {
						t.Fatal(err)
					}
				}
				got, err := p.Client(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				at := got.ExpiresAt.Format(time.RFC3339)
				if next := got.RefillAt.Format(time.RFC3339); at != "2027-02-01T05:00:00Z" || next != "2026-12-20T05:00:00Z" || got.RefillTo != 100 {
					t.Errorf("expires at %s, refilled at %s to %d", at, next, got.RefillTo)
				}
			}
		})
	}
}
