package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// claims checks which devices must get a push at a moment, and returns them.
func (p *post) claims(after time.Duration, want ...puntuale.Device) []puntuale.Push {
	p.w.t.Helper()
	all, err := p.w.ClaimPushes(context.Background(), Begin.Add(after), 100)
	if err != nil {
		p.w.t.Fatal(err)
	}
	var got, wanted []puntuale.DeviceID
	for _, c := range all {
		got = append(got, c.Device)
		if c.Client != p.ID || c.Session != p.session || string(c.Target) != fmt.Sprint("target ", c.Device) {
			p.w.t.Errorf("after %s: %+v", after, c)
		}
	}
	for _, d := range want {
		wanted = append(wanted, d.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		p.w.t.Errorf("after %s: told %v, want %v", after, got, wanted)
	}
	return all
}

// sendAll makes a device send all messages that it holds or can take.
func (p *post) sendAll(d puntuale.Device, at time.Time) {
	p.w.t.Helper()
	for {
		p.take(d, at)
		held, err := p.HeldBy(context.Background(), p.session, d.ID)
		if err != nil {
			p.w.t.Fatal(err)
		}
		if len(held) == 0 {
			return
		}
		for _, h := range held {
			p.report(d, at, h, puntuale.Sent)
		}
	}
}

func (p *post) subscribe(d puntuale.Device) {
	p.w.t.Helper()
	if err := p.KeepPush(context.Background(), d.ID, fmt.Append(nil, "target ", d.ID)); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *post) endPush(c puntuale.Push, end puntuale.PushOutcome, again time.Duration) {
	p.w.t.Helper()
	if err := p.w.EndPush(context.Background(), c, end, Begin.Add(again)); err != nil {
		p.w.t.Fatal(err)
	}
}

// Devices get a push about messages that became due since the last push. They get at most one a minute. They get it only for messages that
// they could take.
func testPushes(t *testing.T, w *World) {
	const s = time.Second
	p := w.post()
	a, b := p.link(false), p.link(false)
	p.link(false) // it has no push subscription
	p.subscribe(a)
	p.claims(9 * s)
	p.start(number(1), Begin.Add(10*s))
	p.start(number(1), Begin.Add(15*s)) // it waits for the first message
	p.claims(9 * s)
	p.claims(12*s, a)
	p.claims(13 * s)
	p.start(number(2), Begin.Add(20*s))
	p.subscribe(b)
	p.claims(30*s, b)
	p.claims(71 * s)
	p.claims(72*s, a)
	p.claims(600 * s) // there is nothing new
	p.sendAll(a, Begin.Add(600*s))
	p.start(number(1), Begin.Add(650*s))
	p.start(number(1), Begin.Add(651*s))
	p.take(b, Begin.Add(655*s))
	p.claims(660 * s) // the second message waits for the first, which is held
	p.sendAll(b, Begin.Add(661*s))
	p.start(number(3), Begin.Add(710*s), func(r *puntuale.StartRun) { r.Messages[0].ValidUntil = Begin.Add(720 * s) })
	p.claims(730 * s) // the hold is over

	night := p.start(number(4), Begin.Add(740*s), func(r *puntuale.StartRun) {
		r.Messages[0].Window = &puntuale.Window{From: "23:00", To: "23:30"}
	})
	p.claims(800 * s) // the message is outside of its window
	opens := p.Detail(night).Next.Sub(Begin)
	p.claims(opens - s)
	p.claims(opens+3*s, a, b)
}

// A push that failed is tried again, but not too early. If the push service says that a subscription has ended, it is removed, unless there
// is a new one.
func testPushEnds(t *testing.T, w *World) {
	const s = time.Second
	p := w.post()
	a, b := p.link(false), p.link(false)
	p.subscribe(a)
	p.subscribe(b)
	p.start(number(1), Begin)
	all := p.claims(10*s, a, b)
	p.endPush(all[0], puntuale.PushFailed, 500*s)
	p.endPush(all[1], puntuale.PushArrived, 500*s)
	p.claims(499 * s)
	failing := all[0].Device
	if again := p.claims(500*s, puntuale.Device{ID: failing}); again[0].Failures != 1 {
		t.Errorf("%+v", again)
	} else {
		p.endPush(again[0], puntuale.PushFailed, 900*s)
	}
	if again := p.claims(900*s, puntuale.Device{ID: failing}); again[0].Failures != 2 {
		t.Errorf("%+v", again)
	} else {
		p.endPush(again[0], puntuale.PushArrived, 0)
	}
	p.start(number(2), Begin.Add(1000*s))
	all = p.claims(1010*s, a, b)
	if all[0].Failures+all[1].Failures != 0 {
		t.Errorf("%+v", all)
	}
	old := all[0]
	old.Target = []byte("target before")
	p.endPush(old, puntuale.PushUnsubscribed, 0)
	p.endPush(all[1], puntuale.PushUnsubscribed, 0)
	p.start(number(3), Begin.Add(2000*s))
	p.claims(2010*s, puntuale.Device{ID: old.Device})
	if err := p.UnlinkDevices(context.Background(), p.session, 0, Begin); err != nil {
		t.Fatal(err)
	}
	p.start(number(4), Begin.Add(3000*s))
	p.claims(3010 * s)
}

// Servers that claim at the same time never send a device the same push twice.
func testPushesTogether(t *testing.T, w *World) {
	p := w.post()
	const devices = puntuale.MaxDevices
	for range devices {
		p.subscribe(p.link(false))
	}
	p.start(number(1), Begin)
	var mu sync.Mutex
	told := map[puntuale.DeviceID]int{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				all, err := w.ClaimPushes(context.Background(), Begin.Add(10*time.Second), 3)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, c := range all {
					told[c.Device]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for id, n := range told {
		if n != 1 {
			t.Errorf("device %d was told %d times", id, n)
		}
	}
	if len(told) != devices {
		t.Errorf("%d devices were told, want %d", len(told), devices)
	}
}
