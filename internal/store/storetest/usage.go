package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"puntuale"
)

// testCapExact makes many calls at the same time. Exactly as many calls as the cap allows must be accepted, and each
// must get a different count.
func testCapExact(t *testing.T, w *World) {
	const limit, calls = 7, 60
	clients := []*Client{}
	for range 3 {
		clients = append(clients, w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(limit)) }))
	}
	second := w.DB.Open(t) // the store of another node
	var mu sync.Mutex
	positions := make([][]int64, len(clients))
	refused := 0
	Together(calls, func(i int) {
		c := clients[i%len(clients)]
		tenant := c.Tenant
		if i%2 == 1 {
			tenant = second.Tenant(c.ID)
		}
		r, err := tenant.Start(context.Background(), c.Run(phone, Begin, 1))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			positions[i%len(clients)] = append(positions[i%len(clients)], r.Usage.Used)
			return
		}
		refused++
		e, ok := errors.AsType[*puntuale.Error](err)
		if !ok || e.Code != puntuale.CodeCapReached || e.Usage == nil || *e.Usage != (puntuale.Usage{Cap: limit, Used: limit}) {
			t.Errorf("error = %v", err)
		}
	})
	for i, p := range positions {
		slices.Sort(p)
		if !slices.Equal(p, []int64{1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("client %d: positions %v", i, p)
		}
	}
	if runs := w.Int("select count(*) from run"); runs != int64(limit*len(clients)) || refused != calls-limit*len(clients) {
		t.Fatalf("%d runs, %d refused", runs, refused)
	}
	if n := w.DB.Meter.Refusals.Load(); n != int64(refused) {
		t.Errorf("%d refusals measured, want %d", n, refused)
	}
}

// testCapCountsWhatPassed makes calls that are refused for another reason than the cap. The cap must not count them.
func testCapCountsWhatPassed(t *testing.T, w *World) {
	const limit = 10
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(limit)) })
	errs := make([]error, 40)
	Together(len(errs), func(i int) {
		r := c.Run(phone, Begin, 1)
		if i%2 == 0 {
			r.Run.Sequence = 999
		}
		_, errs[i] = c.Start(context.Background(), r)
	})
	passed := 0
	for i, err := range errs {
		switch code := puntuale.CodeOf(err); {
		case err == nil:
			passed++
		case i%2 == 0 && code != puntuale.CodeNotFound && code != puntuale.CodeCapReached, i%2 == 1 && code != puntuale.CodeCapReached:
			t.Errorf("call %d: %v", i, err)
		}
	}
	if used := w.Int("select used from api_usage"); passed != limit || used != limit {
		t.Fatalf("%d passed, %d counted, want %d", passed, used, limit)
	}
}

func testNoCap(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	Together(20, func(int) {
		r, err := c.Start(context.Background(), c.Run(phone, Begin, 1))
		if err != nil || r.Usage.Cap != puntuale.UncountedCap {
			t.Errorf("answer = %+v, %v", r, err)
		}
	})
	if used := w.Int("select used from api_usage"); used != 20 {
		t.Fatalf("%d counted", used)
	}
}

// testAlwaysCounted checks calls that are counted but never refused, because the cap must never prevent an opt-out.
func testAlwaysCounted(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(1)) })
	c.MustStart(phone, Begin, 1)
	stopped, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
	if err != nil || stopped.Usage != (puntuale.Usage{Cap: 1, Used: 2}) || stopped.Usage.Remaining() != 0 {
		t.Fatalf("stop = %+v, %v", stopped, err)
	}
	if _, err := CancelPending(ctx, c, nil, true, Day, Begin); err != nil {
		t.Fatal(err)
	}
	if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{phone}}, Day, Begin); err != nil {
		t.Fatal(err)
	}
	if used := w.Int("select used from api_usage"); used != 5 {
		t.Fatalf("%d counted, want 5", used)
	}
	_, err = c.Start(ctx, c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeCapReached)
	tomorrow := c.Run(phone, Begin, 1)
	tomorrow.Day = Day.AddDays(1)
	if r, err := c.Start(ctx, tomorrow); err != nil || r.Usage.Used != 1 {
		t.Fatalf("tomorrow = %+v, %v", r, err)
	}
}

// testUncounted checks that the cap never counts or refuses actions in dashboards. Apart from that, these actions must
// do the same as calls.
func testUncounted(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(1)) })
	c.MustStart(phone, Begin, 1)
	_, err := c.Start(ctx, c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeCapReached)
	hand := w.Uncounted(c.ID)
	var ids []puntuale.MessageID
	Together(6, func(i int) {
		r, err := hand.Start(ctx, c.Run(phone, Begin, 2))
		if err != nil || len(r.IDs) != 2 || r.Usage != (puntuale.Usage{Cap: 1, Used: 1}) {
			t.Errorf("start = %+v, %v", r, err)
		}
		if i == 0 {
			ids = r.IDs
		}
	})
	if n := w.Int("select count(*) from message where client_id = $1", c.ID); n != 13 {
		t.Errorf("%d messages, want 13", n)
	}
	again := c.Run(phone, Begin, 1)
	again.IfRunning = puntuale.IfRunningReject
	_, err = hand.Start(ctx, again)
	WantCode(t, err, puntuale.CodeConflict)
	gone := c.Run(phone, Begin, 1)
	gone.Run.Sequence = 987654
	_, err = hand.Start(ctx, gone)
	WantCode(t, err, puntuale.CodeNotFound)
	if done, err := hand.CancelMessages(ctx, ids[:1], Day, Begin); err != nil || len(done) != 1 {
		t.Errorf("cancel = %+v, %v", done, err)
	}
	if r, err := hand.Resend(ctx, c.Again(ids[0])); err != nil || len(r.IDs) != 1 || r.Usage.Used != 1 {
		t.Errorf("re-send = %+v, %v", r, err)
	}
	if stopped, err := hand.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil || len(stopped.IDs) != 13 || stopped.Usage.Used != 1 {
		t.Errorf("stop = %+v, %v", stopped, err)
	}
	if err := hand.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Added: Begin}, Day, nil); err != nil {
		t.Error(err)
	}
	if found, err := hand.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{phone}}, Day, Begin); err != nil || !found {
		t.Errorf("remove: %v, %v", found, err)
	}
	if _, err := CancelPending(ctx, hand, nil, true, Day, Begin); err != nil {
		t.Error(err)
	}
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 1 {
		t.Errorf("%d counted, want 1", used)
	}
}

// testStoredBytes checks that the bytes of a client's calls never exceed the limit of a day. Calls of two nodes count at
// the same time. Other days do not count.
func testStoredBytes(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	second := w.DB.Open(t) // the store of another node
	add := func(store puntuale.Tenant, day puntuale.Date, n int64, want bool) {
		if ok, err := store.AddBytes(context.Background(), day, n, 105); ok != want || err != nil {
			t.Errorf("%d bytes on %v: %v, %v", n, day, ok, err)
		}
	}
	var added atomic.Int64
	Together(20, func(i int) {
		tenant := c.Tenant
		if i%2 == 1 {
			tenant = second.Tenant(c.ID)
		}
		ok, err := tenant.AddBytes(context.Background(), Day, 10, 105)
		if err != nil {
			t.Error(err)
		}
		if ok {
			added.Add(10)
		}
	})
	if added.Load() != 100 {
		t.Errorf("%d bytes were counted", added.Load())
	}
	add(c.Tenant, Day, 6, false)
	add(c.Tenant, Day.AddDays(1), 105, true)
	add(c.Tenant, Day.AddDays(2), 106, false)
	add(c.Tenant, Day, 5, true)
	c.MustStart(phone, Begin, 1) // counting a call keeps the bytes
	add(c.Tenant, Day, 1, false)
}
