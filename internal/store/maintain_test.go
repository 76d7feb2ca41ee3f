package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestMaintainEndsWhatDeletionsLeave checks that Maintain ends messages that a deletion left when it failed before its
// end. A message in flight must be cancelled when it would be retried.
func TestMaintainEndsWhatDeletionsLeave(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		gone, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		ids := gone.MustStart(someone, storetest.Begin, 4)
		kept := other.MustStart(someone, storetest.Begin, 1)
		node := w.MustJoin()
		items := gone.Items(someone, 0, ids[:3]...)
		token, _ := w.MustClaim(node, storetest.Begin.Add(time.Minute), items...)
		if err := w.Store.Partner(w.Partner).DeleteClient(t.Context(), gone.ID, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		w.MustRecord(storetest.Begin, items[0], token, puntuale.Outcome{Verdict: puntuale.Retry, Next: storetest.Begin})
		w.Exec("update message set state = 0, intent = 0, done_at = null where id = $1", ids[3])
		states := func(want ...puntuale.State) {
			t.Helper()
			for i, id := range ids {
				if d := gone.Detail(id); d.State != want[i] {
					t.Errorf("message %d is %v, want %v", i, d.State, want[i])
				}
			}
			if d := other.Detail(kept[0]); d.State != puntuale.Pending {
				t.Errorf("another client's is %v", d.State)
			}
		}
		states(puntuale.Cancelled, puntuale.Pending, puntuale.Pending, puntuale.Pending)
		if err := w.Maintain(t.Context(), storetest.Begin.Add(time.Minute), time.Time{}); err != nil {
			t.Fatal(err)
		}
		states(puntuale.Cancelled, puntuale.Pending, puntuale.Pending, puntuale.Cancelled) // messages in flight may finish
		w.MustRecord(storetest.Begin, items[1], token, puntuale.Outcome{Verdict: puntuale.Sent})
		if err := w.Maintain(t.Context(), storetest.Begin.Add(49*time.Hour), time.Time{}); err != nil {
			t.Fatal(err)
		}
		states(puntuale.Cancelled, puntuale.Completed, puntuale.Failed, puntuale.Cancelled)
	})
}

func TestMaintainRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		now := storetest.Begin
		for i := range 2100 {
			w.Exec("insert into idempotency (client_id, scope, key, hash, at) values ($1, 'x', $2, 'x', $3)",
				i%7-3, fmt.Sprint(i), now.Add(-48*time.Hour-time.Duration(i-50)*time.Second).UnixMicro())
		}
		for i := range 1500 {
			w.Exec("insert into api_usage (client_id, day, asked, prev, used) values ($1, $2, 1, 0, 1)",
				c.ID, puntuale.DateOf(now).AddDays(1-i).Int())
		}
		stores := []puntuale.Operator{w.Store, w.DB.Open(t)}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if err := stores[i%2].Maintain(t.Context(), now, time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := w.Int("select count(*) from idempotency"); n != 51 {
			t.Errorf("%d idempotency records are left", n)
		}
		if n := w.Int("select count(*) from api_usage"); n != 402 {
			t.Errorf("%d days are left", n)
		}
		if n := w.DB.Meter.Deadlocks.Load(); n != 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// TestMaintainForgetsContacts checks that Maintain deletes the rows of the table contact about people who wrote long
// ago. Rows about people who set a preference must stay.
func TestMaintainForgetsContacts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		now := storetest.Begin
		n := "generate_series(0, 4499) as n(i)"
		if !w.DB.Postgres {
			n = "(with recursive n(i) as (select 0 union all select i + 1 from n where i < 4499) select i from n) as n"
		}
		w.Exec(fmt.Sprintf(`insert into contact (client_id, session_id, phone, window_until, preference_at)
 select %d, %d, '+39' || i, case when i %% 1500 = 0 then %d else %d end, case when i %% 1500 = 1 then 1 else 0 end from %s`,
			c.ID, c.Session, now.Add(-47*time.Hour).UnixMicro(), now.Add(-49*time.Hour).UnixMicro(), n))
		for range 3 {
			if err := w.Maintain(t.Context(), now, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.Int("select count(*) from contact"); n != 6 {
			t.Errorf("%d contacts are left", n)
		}
		if err := w.Maintain(t.Context(), now.Add(2*time.Hour), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if n := w.Int("select count(*) from contact"); n != 3 {
			t.Errorf("%d contacts are left in the next round", n)
		}
	})
}
