package storetest

import (
	"context"
	"testing"
	"time"

	"puntuale"
)

func (c *Client) mustHear(phone string, at, now time.Time) int {
	c.w.t.Helper()
	n, err := c.w.KeepInbound(context.Background(), now, []puntuale.TakenMessage{{
		InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: phone, At: at}, Names: []string{phone},
	}})
	if err != nil {
		c.w.t.Fatalf("keep what was heard: %v", err)
	}
	return n
}

func (c *Client) window(session puntuale.SessionID, phone string) time.Time {
	c.w.t.Helper()
	windowEnd, err := c.w.ReplyWindowEnd(context.Background(), c.ID, session, phone)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return windowEnd
}

// testWindow checks that a window is open for 24 hours after the person's last message, even if messages are reported
// in another order.
func testWindow(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	if windowEnd := c.window(c.Session, phone); !windowEnd.IsZero() {
		t.Errorf("never wrote: %v", windowEnd)
	}
	for _, at := range []time.Duration{0, time.Hour, 30 * time.Minute, -48 * time.Hour} {
		c.mustHear(phone, Begin.Add(at), Begin.Add(2*time.Hour))
	}
	if windowEnd := c.window(c.Session, phone); !windowEnd.Equal(Begin.Add(25 * time.Hour)) {
		t.Errorf("open until %v", windowEnd)
	}
	c.mustHear("+393330000001", Begin.Add(time.Hour), Begin) // the clock of the network is ahead
	if windowEnd := c.window(c.Session, "+393330000001"); !windowEnd.Equal(Begin.Add(24 * time.Hour)) {
		t.Errorf("from the future: %v", windowEnd)
	}
	if !c.window(other.Session, phone).IsZero() || !other.window(other.Session, phone).IsZero() {
		t.Error("it is open for others, too")
	}
}

// testReplyStops checks that a reply stops runs that began before it. Their sequence must stop on a reply, and they
// must use the session that got the reply.
func testReplyStops(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	q := puntuale.Sequence{ID: c.Sequence, Name: "promemoria", StopOnReply: true, Steps: []puntuale.Step{{Text: "uno"}, {Text: "due"}}}
	if err := c.UpdateSequence(ctx, q); err != nil {
		t.Fatal(err)
	}
	steady, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "altra", Created: Begin, Updated: Begin, Steps: []puntuale.Step{{Text: "uno"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	due := Begin.Add(time.Hour)
	stopped := c.MustStart(phone, due, 2)
	someone := c.MustStart("+393330000001", due, 2)
	run := c.Run(phone, due, 1)
	run.Run.Sequence = steady
	goesOn, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.mustHear(phone, Begin.Add(-time.Minute), Begin); n != 0 {
		t.Errorf("a message from before stopped %d", n)
	}
	sign := puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: phone, At: Begin, Kind: puntuale.ReplyReaction, Text: "👍"}
	if n, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{{InboundMessage: sign, Names: []string{phone}}}); err != nil || n != 0 {
		t.Errorf("a sign under a message stopped %d, %v", n, err)
	}
	if n := c.mustHear(phone, Begin, Begin.Add(time.Minute)); n != 2 {
		t.Errorf("%d messages were stopped", n)
	}
	if n := c.mustHear(phone, Begin, Begin.Add(time.Minute)); n != 0 {
		t.Errorf("a repeat stopped %d", n)
	}
	for id, want := range map[puntuale.MessageID]puntuale.State{
		stopped[0]: puntuale.Cancelled, stopped[1]: puntuale.Cancelled, someone[0]: puntuale.Pending, goesOn.IDs[0]: puntuale.Pending,
	} {
		if d := c.Detail(id); d.State != want {
			t.Errorf("message %d is %v, want %v", id, d.State, want)
		}
	}
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 3 {
		t.Errorf("%d calls were counted: a reply is none", used)
	}
}
