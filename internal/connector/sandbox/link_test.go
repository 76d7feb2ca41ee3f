package sandbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
)

// reports records the reports of the simulated network.
type reports struct {
	mu  sync.Mutex
	got []puntuale.LinkReport
}

func (r *reports) take(report puntuale.LinkReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, report)
}

func (r *reports) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// after moves the clock forward by the duration step, again and again, until there are n reports. It returns the last
// report.
func (r *reports) after(t *testing.T, c *clock.Fake, step time.Duration, n int) puntuale.LinkReport {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); r.count() < n; <-time.After(time.Millisecond) {
		c.Advance(step)
		if time.Now().After(deadline) {
			t.Fatalf("%d reports within a minute, want %d", r.count(), n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[n-1]
}

func linked(t *testing.T) (*sandbox.Connector, *clock.Fake, *reports) {
	t.Helper()
	fake, reported := clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)), &reports{}
	c := sandbox.New(nil, fake, 0).WithLinks(reported.take)
	t.Cleanup(func() { c.Close(context.Background(), 1) })
	return c, fake, reported
}

// A session opens in its stored state. If its pairing began on another node, it opens unlinked.
func TestOpen(t *testing.T) {
	t.Parallel()
	for state, want := range map[puntuale.LinkState]bool{
		puntuale.LinkAsCreated: true, puntuale.LinkLinked: true, puntuale.LinkOnline: true,
		puntuale.LinkUnlinked: false, puntuale.LinkPairing: false,
	} {
		c, _, reports := linked(t)
		if c.Online(1) {
			t.Error("online before it is open")
		}
		c.Open(puntuale.Session{ID: 1, Sandbox: true, Link: puntuale.Link{State: state}})
		if c.Online(1) != want {
			t.Errorf("%v: online is %v", state, !want)
		}
		if n := reports.count(); (n == 1) != (state == puntuale.LinkPairing) {
			t.Errorf("%v: %d reports", state, n)
		}
		c.Close(t.Context(), 1)
		if c.Online(1) {
			t.Error("online after it was closed")
		}
	}
}

// New codes are shown until the simulated phone uses one.
func TestPairing(t *testing.T) {
	t.Parallel()
	for method, phone := range map[puntuale.PairMethod]string{puntuale.PairQR: "", puntuale.PairCode: "+393331234567"} {
		c, fake, reports := linked(t)
		c.Open(puntuale.Session{ID: 1, Sandbox: true, Link: puntuale.Link{State: puntuale.LinkUnlinked}})
		if err := c.Pair(t.Context(), 1, method, phone); err != nil {
			t.Fatal(err)
		}
		began := fake.Now()
		last := reports.after(t, fake, time.Second, 4)
		if last.State != puntuale.LinkOnline || !c.Online(1) || last.Number == "" || phone != "" && last.Number != phone {
			t.Errorf("%s: at last %+v", method, last)
		}
		seen := map[string]bool{}
		for i, r := range reports.got[:3] {
			seen[r.Code.Text] = true
			if r.State != puntuale.LinkPairing || r.Code.Method != method || r.Code.Text == "" || !r.Until.Equal(began.Add(time.Duration(i+1)*sandbox.CodeLife)) {
				t.Errorf("%s: %+v", method, r)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%s: codes repeat: %v", method, seen)
		}
		if err := c.Unlink(t.Context(), 1); err != nil || c.Online(1) {
			t.Errorf("unlinked: %v, online %v", err, c.Online(1))
		}
	}
}

// A phone whose number ends in EndingRefused never links. If a pairing is ended or replaced, it reports nothing more.
func TestPairingEnds(t *testing.T) {
	t.Parallel()
	c, fake, reports := linked(t)
	if err := c.Pair(t.Context(), 1, puntuale.PairQR, ""); err == nil {
		t.Error("a session that is not open is linked")
	}
	c.Open(puntuale.Session{ID: 1, Sandbox: true, Link: puntuale.Link{State: puntuale.LinkUnlinked}})
	if err := c.Pair(t.Context(), 1, puntuale.PairCode, "+39333123"+sandbox.EndingRefused); err != nil {
		t.Fatal(err)
	}
	last := reports.after(t, fake, time.Second, 21)
	if last.State != puntuale.LinkUnlinked || last.Detail.IsZero() || c.Online(1) {
		t.Errorf("in the end %+v", last)
	}
	for _, end := range []func(){
		func() { _ = c.Unlink(t.Context(), 1) },
		func() { c.Close(t.Context(), 1) },
	} {
		if err := c.Pair(t.Context(), 1, puntuale.PairQR, ""); err != nil {
			t.Fatal(err)
		}
		if err := c.Pair(t.Context(), 1, puntuale.PairQR, ""); err != nil {
			t.Fatal(err)
		}
		end()
		before := reports.count()
		fake.Advance(time.Minute)
		if n := reports.count(); n != before || c.Online(1) {
			t.Errorf("%d reports after its end", n-before)
		}
	}
}

// If a message was claimed before the link ended, it does not leave.
func TestSendUnlinked(t *testing.T) {
	t.Parallel()
	c, _, _ := linked(t)
	_, err := c.Send(t.Context(), puntuale.Prepared{Envelope: puntuale.Envelope{Session: 1, To: "+393331234567"}})
	if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.SessionDown || e.Reason.Code != puntuale.ReasonNotLinked {
		t.Errorf("%v", err)
	}
}
