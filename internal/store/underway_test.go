package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestPostgresClaimInDoubtWithoutCredits checks how the store finds out, after a lost answer, whether a claim is on
// disk. It must look at a message whose claim was granted. A message that got no credit has no intent, even if the
// claim is on disk.
func TestPostgresClaimInDoubtWithoutCredits(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	now := storetest.Begin.Add(time.Hour)
	for i, cut := range []int32{cutBefore, cutAfter} {
		number := fmt.Sprintf("+39333000000%d", i)
		// The client has one credit. This credit pays for the message that is due first, whose id is not the smallest.
		late := c.MustStart(number, storetest.Begin.Add(time.Minute), 1)[0]
		early := c.MustStart(number, storetest.Begin, 1)[0]
		w.Exec("update client set credits = 1 where id = $1", c.ID)
		p.cut.Store(cut)
		token, granted := w.MustClaim(node, now, c.Items(number, 0, late, early)...)
		if granted[0] != puntuale.ClaimHeld || granted[1] != puntuale.ClaimGranted || p.cut.Load() != cutNothing {
			t.Fatalf("cut %d: %v", cut, granted)
		}
		if c.Detail(early).Intent != token || c.Detail(late).Intent != 0 {
			t.Errorf("cut %d: intents %d and %d, token %d", cut, c.Detail(early).Intent, c.Detail(late).Intent, token)
		}
		if left := w.Int("select credits from client where id = $1", c.ID); left != 0 {
			t.Errorf("cut %d: %d credits left", cut, left)
		}
	}
}

// TestPostgresCommitStillUnderWay breaks a connection while its COMMIT is still running. The store must wait for the
// end of that COMMIT. It must also wait if the call is the client's first on that day.
func TestPostgresCommitStillUnderWay(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	c.MustStart("+393331234567", storetest.Begin, 1) // after this call, the writer has a block of identifiers
	w.Exec("delete from api_usage")
	for _, s := range []string{
		`create function hold() returns trigger language plpgsql set lock_timeout = 0
 as $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$`,
		`create constraint trigger hold after insert on run deferrable initially deferred for each row execute function hold()`,
	} {
		w.Exec(s)
	}
	for call := range 2 { // only the second call finds a usage row for the day
		holder, err := d.SQL.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Exec("select pg_advisory_xact_lock(7)"); err != nil {
			t.Fatal(err)
		}
		p.deaf.Store(true)
		p.cut.Store(cutDuring)
		answered := make(chan error, 1)
		var used int64
		go func() {
			r, err := c.Start(context.Background(), c.Run("+393331234567", storetest.Begin, 1))
			used = r.Usage.Used
			answered <- err
		}()
		deadline := time.Now().Add(10 * time.Second)
		// Before the store checks whether the batch is on disk, it must wait for the COMMIT that is still running.
		for w.Int("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%api_usage%'") == 0 {
			if time.Now().After(deadline) {
				t.Fatal("nobody waits for the COMMIT")
			}
		}
		if err := holder.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil || used != int64(call+1) {
			t.Errorf("call %d: position %d, %v", call, used, err)
		}
		if n := w.Int("select count(*) from run"); n != int64(call+2) {
			t.Errorf("call %d: %d runs", call, n)
		}
	}
}
