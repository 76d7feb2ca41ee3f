package accounttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// testFailures checks that failed sign-ins are in the audit log. Equal failures in an hour must share one entry. In a
// day, a user may have at most MaxFailures entries, and one more entry that counts the rest.
func testFailures(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	users, err := p.Users(ctx, c.ID)
	if err != nil || len(users) != 1 {
		t.Fatalf("%+v, %v", users, err)
	}
	if _, err := w.Try(ctx, []puntuale.SignInAttempt{{Mark: "account", Free: 5}}, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	fail := func(at time.Time, what, address string) {
		t.Helper()
		if err := w.Fail(ctx, "account", []puntuale.SignInFailure{{User: users[0], What: what, Address: address}}, at); err != nil {
			t.Fatal(err)
		}
	}
	log := func() []puntuale.AuditEntry {
		t.Helper()
		entries, _, err := p.Audit(ctx, c.ID, puntuale.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}

	for i := range 3 {
		fail(storetest.Begin.Add(time.Duration(i)*time.Minute), "password", "198.51.100.1")
	}
	fail(storetest.Begin, "code", "198.51.100.1")
	fail(storetest.Begin, "password", "198.51.100.2")
	fail(storetest.Begin.Add(time.Hour+time.Minute), "password", "198.51.100.1")
	all := log()
	if len(all) != 4 {
		t.Fatalf("%d entries: %+v", len(all), all)
	}
	first := all[3]
	if first.Times != 3 || first.Action != "signin_failed" || first.Target != "password" || first.User != users[0].ID || first.Who != users[0].Email || !first.At.Equal(storetest.Begin) || first.Address != "198.51.100.1" {
		t.Errorf("three within an hour: %+v", first)
	}

	for i := range 3 * puntuale.MaxFailures {
		fail(storetest.Begin.Add(2*time.Hour), "password", fmt.Sprintf("203.0.113.%d", i))
	}
	all = log()
	times := int64(0)
	for _, e := range all {
		times += e.Times
	}
	if last := all[0]; len(all) != puntuale.MaxFailures+1 || last.Address != "" || times != 6+3*puntuale.MaxFailures {
		t.Errorf("%d entries with %d failures, the last of them %+v", len(all), times, last)
	}
	fail(storetest.Begin.Add(27*time.Hour), "password", "198.51.100.3")
	if next := log(); len(next) != len(all)+1 || next[0].Address != "198.51.100.3" {
		t.Errorf("a day later: %+v", next[0])
	}
	if at := w.Int("select at from try where mark = 'account'"); at != storetest.Begin.Add(27*time.Hour).UnixMicro() {
		t.Errorf("the last attempt is of %v", time.UnixMicro(at))
	}

	// A failed sign-in without an existing user must also write, so that the time of an answer reveals nothing. Another
	// client's log must get no entry.
	if err := w.Fail(ctx, "account", nil, storetest.Begin); err != nil {
		t.Error(err)
	}
	if entries, _, err := p.Audit(ctx, other.ID, puntuale.Page{Limit: 10}); err != nil || len(entries) != 0 {
		t.Errorf("another client's: %+v, %v", entries, err)
	}
}
