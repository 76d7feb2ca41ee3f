package account

import (
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// Two calls read the same account, and store their changes one after the other. In either order, the account's end and
// refill time must agree with its stored date and zone, although a call may have read older values.
func TestChangesTogether(t *testing.T) {
	t.Parallel()
	expires := ClientChange{Expires: puntuale.Change[string]{Set: true, To: "2027-01-31"}}
	zone := ClientChange{Zone: puntuale.Change[string]{Set: true, To: "America/New_York"}}
	refill := ClientChange{Refill: puntuale.Change[string]{Set: true, To: puntuale.RefillMonthly}}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			c := New(Config{Clock: w.DB.Clock})
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

// A refill sets the credits to the latest grant, and not to the credits that are left. The order of the partner's
// changes makes no difference.
func TestRefillsInAnyOrder(t *testing.T) {
	t.Parallel()
	number := func(n int64) ClientChange {
		return ClientChange{Credits: puntuale.Change[*int64]{Set: true, To: &n}}
	}
	unlimited := ClientChange{Credits: puntuale.Change[*int64]{Set: true}}
	monthly := ClientChange{Refill: puntuale.Change[string]{Set: true, To: puntuale.RefillMonthly}}
	zone := ClientChange{Zone: puntuale.Change[string]{Set: true, To: "America/New_York"}}
	add := ClientChange{CreditsAdd: puntuale.Change[int64]{Set: true, To: 7}}
	explicit := ClientChange{RefillTo: puntuale.Change[int64]{Set: true, To: 80}}
	both := number(50)
	both.RefillTo = explicit.RefillTo
	w := storetest.NewWorld(t, storetest.SQLite(t))
	c, p, now := New(Config{Clock: w.DB.Clock}), w.Store.Partner(w.Partner), storetest.Begin
	for _, test := range []struct {
		account puntuale.AccountType
		changes []ClientChange // the test tries all orders in which the first change is first
		want    int64
	}{
		{puntuale.AccountFull, []ClientChange{{}, monthly, number(50), zone}, 50},
		{puntuale.AccountFull, []ClientChange{{}, monthly, zone}, 0},
		{puntuale.AccountFull, []ClientChange{number(50), monthly, add}, 50},
		{puntuale.AccountFull, []ClientChange{number(50), monthly, unlimited}, 0},
		{puntuale.AccountFull, []ClientChange{{}, monthly, both}, 80},
		{puntuale.AccountFull, []ClientChange{number(50), monthly, explicit}, 80},
		{puntuale.AccountTest, []ClientChange{{}, monthly, add}, 100},
		{puntuale.AccountTest, []ClientChange{{}, monthly, number(0)}, 0},
		{puntuale.AccountTest, []ClientChange{{}, monthly, unlimited}, 0},
		{puntuale.AccountBaby, []ClientChange{{}, monthly, add}, 2000},
		{puntuale.AccountBaby, []ClientChange{{}, monthly, number(30), zone}, 2000},
		{puntuale.AccountBaby, []ClientChange{{}, monthly, explicit, number(30)}, 80},
	} {
		for _, order := range orders(test.changes[1:]) {
			id := w.Client(test.account).ID
			for i, change := range append([]ClientChange{test.changes[0]}, order...) {
				account, err := p.Client(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				patch, err := c.patch(account, change, now)
				if err != nil {
					t.Fatalf("%s, change %d: %v", test.account, i, err)
				}
				if _, err := p.UpdateClient(t.Context(), id, patch, now); err != nil {
					t.Fatal(err)
				}
			}
			got, err := p.Client(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got.Refill != puntuale.RefillMonthly || got.RefillTo != test.want || got.RefillAt.IsZero() {
				t.Errorf("%s, %+v: refilled %s to %d at %s, want %d", test.account, order, got.Refill, got.RefillTo, got.RefillAt, test.want)
			}
		}
	}
}

// orders returns all permutations of some changes.
func orders(changes []ClientChange) [][]ClientChange {
	if len(changes) == 0 {
		return [][]ClientChange{nil}
	}
	var all [][]ClientChange
	for i := range changes {
		for _, rest := range orders(slices.Delete(slices.Clone(changes), i, i+1)) {
			all = append(all, append([]ClientChange{changes[i]}, rest...))
		}
	}
	return all
}
