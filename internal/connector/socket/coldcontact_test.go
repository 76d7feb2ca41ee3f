//go:build !nosocket

package socket

import (
	"testing"
	"time"

	"go.mau.fi/util/jsontime"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale"
	"puntuale/internal/clock"
)

// A time-lock applies in every state of a linked number, because the network often reports it before the login ends.
func TestTimelockBeforeLogin(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Unix(1_800_000_000, 0).UTC())
	end := fake.Now().Add(time.Hour)
	for state, shown := range map[puntuale.LinkState]bool{puntuale.LinkLinked: true, puntuale.LinkOnline: true, puntuale.LinkUnlinked: false} {
		var last puntuale.LinkReport
		c := New(Config{Clock: fake, Report: func(r puntuale.LinkReport) { last = r }})
		n := c.newNumber(puntuale.Session{ID: 7})
		n.state.set(state, puntuale.ConditionNone, puntuale.Reason{})
		n.timelocked(&events.NotifyAccountReachoutTimelock{IsActive: true, TimeEnforcementEnds: jsontime.UnixString{Time: end}})
		if n.coldContacts.held(fake.Now()) == 0 {
			t.Errorf("%v: strangers are not held", state)
		}
		if last.Limited.Equal(end) != shown {
			t.Errorf("%v: the limit is told as %v", state, last.Limited)
		}
		n.close(t.Context())
		c.Stop()
	}
}
