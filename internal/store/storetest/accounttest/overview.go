package accounttest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

const phone = "+393331234567" // the number of the person who gets the messages

func testFindClients(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	for name, change := range map[string]func(*puntuale.Client){
		"Zeta 100%": func(c *puntuale.Client) { c.Phone = "+39 02 111" },
		"alfa":      func(c *puntuale.Client) { c.Suspended = true },
		"Beta":      func(c *puntuale.Client) { c.Expires = storetest.Day.AddDays(-1) },
		"Gamma_x":   func(c *puntuale.Client) { c.Expires, c.Credits = storetest.Day.AddDays(30), new(int64(0)) },
	} {
		w.Client(puntuale.AccountFull, func(c *puntuale.Client) { change(c); c.Name = name })
	}
	for _, test := range []struct {
		f    puntuale.ClientFilter
		want string
	}{
		{puntuale.ClientFilter{}, "alfa Beta Gamma_x Zeta 100% "},
		{puntuale.ClientFilter{Text: "ALFA"}, "alfa "},
		{puntuale.ClientFilter{Text: "%"}, "Zeta 100% "},
		{puntuale.ClientFilter{Text: "_"}, "Gamma_x "},
		{puntuale.ClientFilter{Text: "02 1"}, "Zeta 100% "},
		{puntuale.ClientFilter{Text: "nessuno"}, ""},
		{puntuale.ClientFilter{State: puntuale.StateSuspended}, "alfa "},
		{puntuale.ClientFilter{State: puntuale.StateActive}, "Gamma_x Zeta 100% "},
		{puntuale.ClientFilter{State: puntuale.StateExpired}, "Beta "},
		{puntuale.ClientFilter{State: puntuale.StateExpiring}, "Gamma_x "},
		{puntuale.ClientFilter{State: puntuale.StateEmpty}, "Gamma_x "},
		{puntuale.ClientFilter{State: puntuale.StateActive, Text: "zeta"}, "Zeta 100% "},
	} {
		test.f.Today, test.f.Until = storetest.Day, storetest.Day.AddDays(60)
		got, cursor, count := "", "", 0
		for {
			page, next, err := p.FindClients(ctx, test.f, puntuale.Page{Limit: 2, Cursor: cursor})
			if err != nil || len(page) > 2 {
				t.Fatalf("%+v: %v", test.f, err)
			}
			for _, c := range page {
				got += c.Name + " "
			}
			count += len(page)
			if cursor = next; next == "" {
				break
			}
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.f, got, test.want)
		}
		for limit := range count + 2 {
			if n, all, err := p.CountClients(ctx, test.f, limit); err != nil || n != min(limit, count) || all != (limit >= count) {
				t.Errorf("%+v up to %d: %d, %v, %v; want %d", test.f, limit, n, all, err, count)
			}
		}
	}
	_, _, err := p.FindClients(ctx, puntuale.ClientFilter{}, puntuale.Page{Cursor: "x"})
	storetest.WantCode(t, err, puntuale.CodeInvalid)
	if near, err := p.Expiring(ctx, storetest.Day.AddDays(-1), storetest.Day.AddDays(60), 10); err != nil || len(near) != 2 || near[0].Name != "Beta" || near[1].Name != "Gamma_x" {
		t.Errorf("expiring: %+v, %v", near, err)
	}
}

func testPulses(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, quiet := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	if _, err := c.CreateSession(ctx, puntuale.Session{Name: "vera", Type: puntuale.Socket, Created: storetest.Begin}, nil); err != nil {
		t.Fatal(err)
	}
	c.MustStart(phone, storetest.Begin, 1)
	c.MustStart(phone, storetest.Begin, 1)
	got, err := p.Pulses(ctx, []puntuale.ClientDay{{Client: c.ID, Day: storetest.Day}, {Client: quiet.ID, Day: storetest.Day}, {Client: 987654, Day: storetest.Day}})
	want := map[puntuale.ClientID]puntuale.ClientStatus{c.ID: {Used: 2, Sessions: 2, Online: 1}, quiet.ID: {Sessions: 1, Online: 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("pulses = %+v, %v, want %+v", got, err, want)
	}
	if got, err := p.Pulses(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
}

// testTotals checks that the totals are the same before and after the background task has counted. Changes after the
// count must be added.
func testTotals(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	later := func(hours int) time.Time { return storetest.Begin.Add(time.Duration(hours) * time.Hour) } // Begin is 10:00 in Rome
	done := func(c *storetest.Client, hours int, v puntuale.Verdict, n int) {
		t.Helper()
		ids := c.MustStart(phone, later(hours), n)
		w.DB.Clock.Set(later(hours))
		c.MustEnd(node, later(hours).Add(time.Minute), puntuale.Outcome{Verdict: v, Reason: puntuale.Quoted("no")}, ids...)
	}
	check := func(client puntuale.ClientID, now time.Time, want ...puntuale.DayTotal) {
		t.Helper()
		got, err := p.Totals(ctx, client, storetest.Day, storetest.Day.AddDays(4), now)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("totals = %+v, %v, want %+v", got, err, want)
		}
	}
	done(c, 1, puntuale.Sent, 3)
	done(c, 13, puntuale.Refused, 1)    // ends at 23:01
	done(c, 15, puntuale.Sent, 2)       // end at 01:01 on the next day
	done(other, 16, puntuale.Sent, 1)   // ends at 02:01 on the next day
	c.MustStart(phone, later(2), 1)     // this message is overdue
	c.MustStart(phone, later(24*3), 2)  // these messages are due in three days
	c.MustStart(phone, later(24*30), 1) // this message is due after the last day of the overview
	now := later(17)
	mine := []puntuale.DayTotal{{Day: storetest.Day, Sent: 3, Failed: 1}, {Day: storetest.Day.AddDays(1), Sent: 2, Pending: 1}, {Day: storetest.Day.AddDays(3), Pending: 2}}
	all := []puntuale.DayTotal{{Day: storetest.Day, Sent: 3, Failed: 1}, {Day: storetest.Day.AddDays(1), Sent: 3, Pending: 1}, {Day: storetest.Day.AddDays(3), Pending: 2}}
	check(c.ID, now, mine...)
	check(0, now, all...)
	for range 2 {
		storetest.Together(3, func(int) {
			if err := w.Maintain(ctx, now, time.Time{}); err != nil {
				t.Error(err)
			}
		})
		check(c.ID, now, mine...)
		check(0, now, all...)
	}
	if n := w.Int("select count(*) from day_total"); n != 3 {
		t.Errorf("%d days are kept, want 3", n)
	}
	done(c, 18, puntuale.Sent, 1)
	mine[1].Sent++
	check(c.ID, later(19), mine...)
	if err := w.Maintain(ctx, later(19), time.Time{}); err != nil {
		t.Fatal(err)
	}
	check(c.ID, later(19), mine...)
	_, err := p.Totals(ctx, 987654, storetest.Day, storetest.Day, now)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
}
