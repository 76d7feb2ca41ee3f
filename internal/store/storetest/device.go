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

// post is a client with a session for which devices send.
type post struct {
	*Client
	session puntuale.SessionID
	takes   int
}

func (w *World) post(change ...func(*puntuale.Client)) *post {
	w.t.Helper()
	return w.Client(puntuale.AccountTest, change...).post()
}

func (c *Client) post() *post {
	c.w.t.Helper()
	c.w.MustJoin() // devices cannot take messages until a node has joined after the last failover
	id, err := c.CreateSession(context.Background(), puntuale.Session{Name: "telefoni", Type: puntuale.SendApp, Way: puntuale.WayDevice, Created: Begin}, nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return &post{Client: c, session: id}
}

// posted makes a session whose device holds one message and could take another. Later calls return the same session.
func (c *Client) posted() *heldPost {
	c.w.t.Helper()
	if c.heldPost != nil {
		return c.heldPost
	}
	p := &heldPost{post: c.post()}
	c.heldPost = p
	p.device = p.link(false)
	p.start(number(1), Begin)
	p.held = p.take(p.device, Begin)[0]
	p.start(number(2), Begin)
	return p
}

// MustHold makes a device of the client hold a message. The device also subscribes to pushes.
func (c *Client) MustHold() {
	c.w.t.Helper()
	if err := c.KeepPush(context.Background(), c.posted().device.ID, []byte("sealed")); err != nil {
		c.w.t.Fatal(err)
	}
}

type heldPost struct {
	*post
	device puntuale.Device
	held   puntuale.HeldMessage
}

// link links a device to the session.
func (p *post) link(dedupes bool) puntuale.Device {
	p.w.t.Helper()
	d, _ := p.linkToken(dedupes)
	return d
}

func (p *post) linkToken(dedupes bool) (puntuale.Device, puntuale.KeyHash) {
	p.w.t.Helper()
	mark, token := Unique("mark"), KeyHash()
	if err := p.OfferDevice(context.Background(), p.session, []byte("code"), mark, Begin.Add(time.Minute)); err != nil {
		p.w.t.Fatal(err)
	}
	d, err := p.w.LinkDevice(context.Background(), mark, puntuale.Device{Name: "telefono", Dedupes: dedupes}, token, Begin)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return d, token
}

// start starts a run of one message in the session, and returns its id.
func (p *post) start(to string, due time.Time, change ...func(*puntuale.StartRun)) puntuale.MessageID {
	p.w.t.Helper()
	run := p.Run(to, due, 1)
	run.Run.Session = p.session
	for _, f := range change {
		f(&run)
	}
	r, err := p.Start(context.Background(), run)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return r.IDs[0]
}

const lease = 2 * time.Minute

func (p *post) call(d puntuale.Device, now time.Time) puntuale.DeviceTake {
	p.takes++
	return puntuale.DeviceTake{Device: d.ID, Session: p.session, ID: fmt.Sprint("take ", p.takes), Most: 100, Now: now, Until: now.Add(lease),
		GiveUp: now.Add(24 * time.Hour), Mark: func(string) string { return "" }}
}

// take takes all messages that the device may take.
func (p *post) take(d puntuale.Device, now time.Time) []puntuale.HeldMessage {
	p.w.t.Helper()
	return p.taken(p.call(d, now))
}

func (p *post) taken(k puntuale.DeviceTake) []puntuale.HeldMessage {
	p.w.t.Helper()
	held, err := p.Take(context.Background(), k)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return held
}

// wantTaken checks which messages a device got from a take.
func (p *post) wantTaken(what string, got []puntuale.HeldMessage, want ...puntuale.MessageID) {
	p.w.t.Helper()
	ids := []puntuale.MessageID{}
	for _, h := range got {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		p.w.t.Errorf("%s: took %v, want %v", what, ids, want)
	}
}

func refOf(h puntuale.HeldMessage) puntuale.HeldRef {
	return puntuale.HeldRef{Message: h.ID, Token: h.Intent}
}

// report reports one outcome of a held message.
func (p *post) report(d puntuale.Device, now time.Time, h puntuale.HeldMessage, v puntuale.Verdict) puntuale.ReportResult {
	p.w.t.Helper()
	r := puntuale.DeviceReport{HeldRef: refOf(h), Outcome: puntuale.Outcome{Verdict: v, Detail: puntuale.Quoted("dichiarato"), Next: now}, Returned: v == puntuale.Retry}
	if v == puntuale.Uncertain {
		r.Outcome.Next = now.Add(24 * time.Hour)
	}
	all, err := p.Report(context.Background(), p.session, d.ID, []puntuale.DeviceReport{r}, now)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return all[0]
}

func (p *post) wantReport(what string, got, want puntuale.ReportResult) {
	p.w.t.Helper()
	if got != want {
		p.w.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func (p *post) wantState(what string, id puntuale.MessageID, want puntuale.State) {
	p.w.t.Helper()
	if d := p.Detail(id); d.State != want {
		p.w.t.Errorf("%s: message %d is %v (%s, %s), want %v", what, id, d.State, d.Reason, d.Message.Detail, want)
	}
}

// testLinkDevice checks that a code links only one device, and only before the code expires. The session must be online
// while it has a device.
func testLinkDevice(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	state := func(want puntuale.LinkState) {
		t.Helper()
		if s, err := p.Tenant.Session(ctx, p.session); err != nil || s.LinkOf() != want || !s.ByDevice() {
			t.Errorf("%v by %q, %v, want %v", s.LinkOf(), s.Way, err, want)
		}
	}
	state(puntuale.LinkUnlinked)
	for _, mark := range []string{"old", "mine"} { // the second code replaces the first
		if err := p.OfferDevice(ctx, p.session, []byte("sealed"), mark, Begin.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(mark string, at time.Time, token puntuale.KeyHash) (puntuale.Device, error) {
		return w.LinkDevice(ctx, mark, puntuale.Device{Name: "telefono", Assisted: true}, token, at)
	}
	for _, bad := range []string{"", "old", "nobody's"} {
		_, err := link(bad, Begin, KeyHash())
		WantCode(t, err, puntuale.CodeNotFound)
	}
	_, err := link("mine", Begin.Add(time.Minute), KeyHash())
	WantCode(t, err, puntuale.CodeNotFound)
	token := KeyHash()
	d, err := link("mine", Begin, token)
	if err != nil || d.Session != p.session || d.Client != p.ID {
		t.Fatalf("%+v, %v", d, err)
	}
	state(puntuale.LinkOnline)
	_, err = link("mine", Begin, KeyHash())
	WantCode(t, err, puntuale.CodeNotFound)
	client, found, err := w.DeviceOf(ctx, token)
	if err != nil || client.ID != p.ID || found != d {
		t.Errorf("%+v of %d, %v, want %+v", found, client.ID, err, d)
	}
	if err := p.SeenDevice(ctx, d.ID, Begin.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	all, err := p.Devices(ctx, p.session)
	if err != nil || len(all) != 1 || !all[0].Assisted || all[0].Dedupes || !all[0].Seen.Equal(Begin.Add(time.Hour)) {
		t.Errorf("%+v, %v", all, err)
	}
	WantCode(t, p.UnlinkDevices(ctx, p.session, d.ID+1000, Begin), puntuale.CodeNotFound)
	if err := p.UnlinkDevices(ctx, p.session, d.ID, Begin); err != nil {
		t.Fatal(err)
	}
	state(puntuale.LinkUnlinked)
	_, _, err = w.DeviceOf(ctx, token)
	WantCode(t, err, puntuale.CodeUnauthorized)
	for range puntuale.MaxDevices {
		d = p.link(false)
	}
	WantCode(t, p.OfferDevice(ctx, p.session, nil, "more", Begin), puntuale.CodeConflict)
	WantCode(t, p.OfferDevice(ctx, p.Session, nil, "sandbox", Begin), puntuale.CodeNotFound) // devices do not send for this session
	if err := p.UnlinkDevices(ctx, p.session, 0, Begin); err != nil {
		t.Fatal(err)
	}
	_, err = p.Take(ctx, p.call(d, Begin.Add(time.Hour)))
	if all, listed := p.Devices(ctx, p.session); listed != nil || len(all) != 0 || err != nil {
		t.Errorf("%+v, %v, %v", all, listed, err)
	}
}

// testTake checks that takes keep the recipient order. A device must not be able to take a message that could not be
// claimed.
func testTake(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	a, b := p.link(false), p.link(false)
	first, second := p.start(number(1), Begin), p.start(number(1), Begin.Add(time.Second))
	blocked, stopped, late, later := p.start(number(2), Begin), p.start(number(3), Begin), p.start(number(4), Begin, func(r *puntuale.StartRun) {
		r.Messages[0].ValidUntil = Begin.Add(time.Minute)
	}), p.start(number(5), Begin.Add(time.Hour))
	night := p.start(number(6), Begin, func(r *puntuale.StartRun) {
		r.Messages[0].Window = &puntuale.Window{From: "23:00", To: "23:30"}
	})
	if err := p.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: number(2), Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CancelMessages(ctx, []puntuale.MessageID{stopped}, Day, Begin); err != nil {
		t.Fatal(err)
	}
	now := Begin.Add(2 * time.Minute)
	due, err := p.Takeable(ctx, p.session, a.ID, now, 10)
	if err != nil {
		t.Fatal(err)
	}
	p.wantTaken("due", due, first, blocked) // the blacklist is checked only when a message is claimed
	p.wantState("claims nothing", first, puntuale.Pending)
	one := p.call(a, now)
	one.Message = second
	_, err = p.Take(ctx, one)
	WantCode(t, err, puntuale.CodeConflict) // another message to the recipient comes first
	k := p.call(a, now)
	held := p.taken(k)
	p.wantTaken("first", held, first)
	if len(held) != 1 || held[0].Content.Text != "testo 0" || !held[0].Until.Equal(now.Add(lease)) || held[0].Phone != number(1) {
		t.Fatalf("%+v", held)
	}
	if d := p.Detail(first); !d.Held() || d.Uncertain() || !d.Planned().Equal(now) {
		t.Errorf("held: %+v", d.Message)
	}
	if all, _, err := p.Uncertain(ctx, Begin); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v are uncertain, and only held", all, err)
	}
	p.wantState("blacklisted", blocked, puntuale.Blacklisted)
	p.wantState("late", late, puntuale.Pending) // the session's node will close the message
	if d := p.Detail(night); d.State != puntuale.Pending || d.Intent != 0 {
		t.Errorf("outside of its window: %+v", d.Message)
	}
	p.wantTaken("another device", p.take(b, now)) // the second message must wait for the first
	again := p.taken(k)
	if len(again) != 1 || refOf(again[0]) != refOf(held[0]) {
		t.Errorf("repeated: %+v, want %+v", again, held)
	}
	p.wantReport("sent", p.report(a, now, held[0], puntuale.Sent), puntuale.ReportRecorded)
	p.wantReport("twice", p.report(a, now, held[0], puntuale.Refused), puntuale.ReportKnown)
	p.wantState("sent", first, puntuale.Completed)
	p.wantTaken("its turn", p.take(b, now), second)
	p.wantTaken("an hour later", p.take(b, Begin.Add(time.Hour)), later)
	for _, other := range []puntuale.DeviceTake{{Device: b.ID + 99}, {Device: a.ID, Session: p.Session}} {
		k := p.call(a, Begin.Add(48*time.Hour))
		k.Device, k.Session = other.Device, max(other.Session, p.session)
		if other.Session != 0 {
			k.Session = other.Session
		}
		if taken, err := p.Take(ctx, k); len(taken) > 0 {
			t.Errorf("a device of another session took %v, %v", taken, err)
		}
	}
}

// testTakeBudget checks that devices get no marketing while a budget is used up, but messages that are not marketing, and
// what they hold already. Afterwards they get the marketing that waited.
func testTakeBudget(t *testing.T, w *World) {
	p := w.post()
	if _, err := p.UpdateSettings(context.Background(), puntuale.SettingsPatch{Consent: new(puntuale.ConsentFree)}); err != nil {
		t.Fatal(err)
	}
	d := p.link(true)
	held := p.start(number(1), Begin)
	p.wantTaken("before the end of the budget", p.take(d, Begin), held)
	waits, reminder := p.start(number(2), Begin), p.start(number(3), Begin)
	ends := Begin.Add(30 * time.Minute)
	w.Exec("update message set purpose = 1 where id <> $1", reminder)
	w.Exec("update client set marketing_from = $1 where id = $2", ends.UnixMicro(), p.ID)
	p.wantTaken("the budget is used up", p.take(d, Begin.Add(time.Second)), reminder)
	if m := p.Detail(waits); m.State != puntuale.Pending || m.Detail.Code != puntuale.ReasonBudget || m.Attempt != 0 {
		t.Errorf("marketing waits: %+v", m.Message)
	}
	again := p.take(d, Begin.Add(lease))
	p.wantTaken("its hold ended", again, held) // the device may have sent it, and sends it only once
	p.wantReport("sent", p.report(d, Begin.Add(lease), again[0], puntuale.Sent), puntuale.ReportRecorded)
	p.wantTaken("before the next month", p.take(d, ends.Add(-time.Second)), reminder)
	p.wantTaken("in the next month", p.take(d, ends.Add(puntuale.MarketingSpread)), waits)
}

// number returns the phone number of person n.
func number(n int) string { return fmt.Sprintf("+39333%07d", n) }

// testTakeTogether lets devices take at the same time. No two devices may get the same message, and exactly the right
// number of credits must be taken.
func testTakeTogether(t *testing.T, w *World) {
	credits := int64(25)
	p := w.post(func(c *puntuale.Client) { c.Credits = &credits })
	const n, devices = 40, 4
	for i := range n {
		p.start(number(i), Begin)
	}
	linked := make([]puntuale.Device, devices)
	for i := range linked {
		linked[i] = p.link(false)
	}
	var mu sync.Mutex
	var all []puntuale.MessageID
	var group sync.WaitGroup
	for _, d := range linked {
		var calls []puntuale.DeviceTake
		for range 10 {
			k := p.call(d, Begin)
			k.Most = 3
			calls = append(calls, k)
		}
		group.Go(func() {
			for _, k := range calls {
				held, err := p.Take(context.Background(), k)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, h := range held {
					all = append(all, h.ID)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	taken := len(all)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != taken || int64(taken) != credits {
		t.Errorf("%d taken, %d messages, want %d", taken, len(all), credits)
	}
}

// testHolds checks that a hold ends with a report, at its end time, or when its device is unlinked. After the end time,
// the device can still report an outcome, but it can no longer return the message.
func testHolds(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	a, b := p.link(false), p.link(false)
	id := p.start(number(1), Begin)
	held := p.take(a, Begin)
	first := held[0]
	p.wantReport("returned", p.report(a, Begin, held[0], puntuale.Retry), puntuale.ReportRecorded)
	p.wantReport("an old attempt", p.report(a, Begin, held[0], puntuale.Sent), puntuale.ReportLate)
	held = p.take(b, Begin)
	p.wantTaken("due at once", held, id)
	p.wantReport("another device's", p.report(a, Begin, held[0], puntuale.Sent), puntuale.ReportLate)
	p.wantLateSent(a, id, first)
	renew := func(at time.Time) int {
		t.Helper()
		still, err := p.Renew(ctx, p.session, b.ID, []puntuale.HeldRef{refOf(held[0])}, at.Add(lease), at)
		if err != nil {
			t.Fatal(err)
		}
		return len(still)
	}
	if renew(Begin.Add(time.Minute)) != 1 || renew(Begin.Add(150*time.Second)) != 1 || renew(Begin.Add(time.Hour)) != 0 {
		t.Error("a hold is renewed while it lasts, and only then")
	}
	over := Begin.Add(time.Hour)
	due, err := w.Due(ctx, []puntuale.QueueCursor{{Session: p.session}}, over, 10)
	if err != nil || len(due) != 1 || due[0].Intent != held[0].Intent {
		t.Errorf("its node finds %+v, %v", due, err)
	}
	p.wantTaken("nobody gets it", p.take(a, over))
	p.wantReport("returned late", p.report(b, over, held[0], puntuale.Retry), puntuale.ReportLate)
	shown, err := p.HeldBy(ctx, p.session, b.ID)
	if err != nil || len(shown) != 1 || refOf(shown[0]) != refOf(held[0]) {
		t.Errorf("still to be declared: %+v, %v", shown, err)
	}
	p.wantReport("unknown", p.report(b, over, held[0], puntuale.Uncertain), puntuale.ReportRecorded)
	if d := p.Detail(id); !d.Uncertain() || d.Message.Detail.String() != "dichiarato" {
		t.Errorf("unknown: %+v", d.Message)
	}
	p.wantReport("sent after all", p.report(b, over, held[0], puntuale.Sent), puntuale.ReportRecorded)
	p.wantState("settled", id, puntuale.Completed)

	lost := p.start(number(2), Begin)
	held = p.take(a, Begin)
	if err := p.UnlinkDevices(ctx, p.session, a.ID, Begin.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	due, err = w.Due(ctx, []puntuale.QueueCursor{{Session: p.session}}, Begin.Add(time.Second), 10)
	if err != nil || len(due) != 1 || due[0].ID != lost || due[0].Intent == 0 {
		t.Errorf("of an unlinked device: %+v, %v", due, err)
	}
	p.wantTaken("nobody gets what it held", p.take(b, Begin.Add(time.Hour)))
	for _, given := range []struct {
		verdict puntuale.Verdict
		want    puntuale.State
	}{{puntuale.Refused, puntuale.Failed}, {puntuale.Sent, puntuale.Completed}} {
		id := p.start(number(3), Begin)
		held := p.take(b, Begin)
		p.wantReport("reported", p.report(b, Begin.Add(time.Hour), held[0], given.verdict), puntuale.ReportRecorded)
		p.wantState("reported", id, given.want)
	}
	given := p.start(number(4), Begin)
	held = p.take(b, Begin)
	if err := w.Settle(ctx, 0, over, []puntuale.Settlement{{MessageRef: puntuale.MessageRef{Client: p.ID, ID: given}, Intent: held[0].Intent,
		State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}); err != nil {
		t.Fatal(err)
	}
	p.wantReport("sent, after it was given up", p.report(b, over, held[0], puntuale.Sent), puntuale.ReportRecorded)
	p.wantState("sent, after it was given up", given, puntuale.Completed)
}

// wantLateSent reports twice that a device sent a message nevertheless, after another took it. The message's history
// then shows it once.
func (p *post) wantLateSent(a puntuale.Device, id puntuale.MessageID, first puntuale.HeldMessage) {
	p.w.t.Helper()
	for range 2 {
		late := []puntuale.DeviceReport{{HeldRef: refOf(first), Outcome: puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("by phone A")}}}
		if got, err := p.Report(context.Background(), p.session, a.ID, late, Begin); err != nil || got[0] != puntuale.ReportLate {
			p.w.t.Errorf("sent late: %v, %v", got, err)
		}
	}
	events, err := p.MessageEvents(context.Background(), id)
	if n := len(slices.DeleteFunc(events, func(e puntuale.MessageEvent) bool {
		return e.Kind != "late sent" || e.Detail.Stored() != puntuale.Quoted("by phone A").Stored()
	})); err != nil || n != 1 {
		p.w.t.Errorf("%d late reports in the history, %v", n, err)
	}
}

// testDedupingDevice checks a device that sends a message only once, even if it takes the message twice. This device
// may take the message again, but no other device may.
func testDedupingDevice(t *testing.T, w *World) {
	p := w.post()
	a, b := p.link(true), p.link(true)
	id := p.start(number(1), Begin)
	held := p.take(a, Begin)
	over := Begin.Add(time.Hour)
	if due, err := w.Due(context.Background(), []puntuale.QueueCursor{{Session: p.session}}, over, 10); err != nil || len(due) != 0 {
		t.Errorf("its node finds %+v, %v", due, err)
	}
	p.wantTaken("another device", p.take(b, over))
	again := p.take(a, over)
	p.wantTaken("the same device", again, id)
	if len(again) == 1 && (again[0].Intent == held[0].Intent || again[0].Until != over.Add(lease)) {
		t.Errorf("%+v", again[0])
	}
	p.wantReport("the first attempt", p.report(a, over, held[0], puntuale.Sent), puntuale.ReportLate)
	if len(again) == 1 {
		p.wantReport("the second", p.report(a, over, again[0], puntuale.Sent), puntuale.ReportRecorded)
	}
	p.wantState("sent", id, puntuale.Completed)

	first := p.start(number(3), Begin)
	p.take(a, Begin)
	next := p.start(number(3), Begin.Add(time.Minute))
	repeat := p.take(a, over)
	p.wantTaken("the repeat before the person's next message", repeat, first)
	if len(repeat) == 1 {
		p.report(a, over, repeat[0], puntuale.Sent)
	}
	p.wantTaken("the person's next message", p.take(a, over), next)

	asked := p.start(number(2), Begin, func(r *puntuale.StartRun) { r.Messages[0].Content.Resend = true })
	c := p.link(false)
	p.wantTaken("first", p.take(c, Begin), asked)
	p.wantTaken("too soon", p.take(b, Begin.Add(5*time.Minute)))
	p.wantTaken("sent once more, as its content asks", p.take(b, Begin.Add(puntuale.ResendAfter)), asked)
}

// testTakePace checks that the session's pace limits how many messages devices may take.
func testTakePace(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	d := p.link(false)
	pace := puntuale.Pace{PerMinute: 2, PerDay: 3}
	if err := p.UpdateSession(ctx, p.session, puntuale.SessionPatch{Pace: puntuale.Change[puntuale.Pace]{Set: true, To: pace}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p.start(number(i), Begin)
	}
	var got []int
	for _, at := range []time.Duration{0, time.Second, 29 * time.Second, 30 * time.Second, 10 * time.Minute, 20 * time.Minute, 23 * time.Hour} {
		got = append(got, len(p.take(d, Begin.Add(at))))
	}
	if want := []int{1, 0, 0, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

// testRepeatBeforeNew checks that a device gets a repeat before new messages if the session's pace allows only one message.
func testRepeatBeforeNew(t *testing.T, w *World) {
	p := w.post()
	d := p.link(true)
	pace := puntuale.Pace{PerMinute: 2}
	if err := p.UpdateSession(context.Background(), p.session, puntuale.SessionPatch{Pace: puntuale.Change[puntuale.Pace]{Set: true, To: pace}}); err != nil {
		t.Fatal(err)
	}
	earlier, id := Begin.Add(-time.Minute), p.start(number(9), Begin.Add(-2*time.Minute))
	p.wantTaken("the first take", p.take(d, earlier), id)
	for i := range 5 {
		p.start(number(i), Begin.Add(-time.Hour))
	}
	p.wantTaken("after the hold", p.take(d, Begin.Add(time.Hour)), id)
}

// testHeldIsBusy checks that neither the person nor the session can be removed while a device holds a message. The
// reason is that the device may be sending the message now.
func testHeldIsBusy(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	d := p.link(false)
	id := p.start(number(1), Begin)
	p.take(d, Begin)
	erase := func(now time.Time) error {
		_, err := p.Erase(ctx, puntuale.Erasure{Person: puntuale.Person{Names: []string{number(1)}, Mark: func(string) string { return "m" }}, Day: Day, Now: now})
		return err
	}
	WantCode(t, erase(Begin.Add(time.Second)), puntuale.CodeBusy)
	WantCode(t, p.DeleteSession(ctx, p.session, true, 0, Begin.Add(time.Second)), puntuale.CodeBusy)
	WantCode(t, p.GiveUp(ctx, p.session, Begin.Add(time.Second)), puntuale.CodeBusy)
	p.wantState("held", id, puntuale.Pending)
	over := Begin.Add(time.Hour)
	if err := p.GiveUp(ctx, p.session, over); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteSession(ctx, p.session, true, 0, over); err != nil {
		t.Fatal(err)
	}
	p.wantState("given up", id, puntuale.Failed)
	if err := erase(over); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take(ctx, p.call(d, over)); err != nil {
		t.Errorf("a take of a deleted session: %v", err)
	}
}

// testTakeFence checks that after a failover no device can take messages before a node has joined. The reason is that
// the database may have lost which messages devices took.
func testTakeFence(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.post()
	d := p.link(false)
	id := p.start(number(1), Begin)
	w.fail(1)
	_, err := p.Take(ctx, p.call(d, Begin))
	WantCode(t, err, puntuale.CodeUnavailable)
	w.MustJoin()
	p.wantTaken("after a server joined", p.take(d, Begin), id)
	w.fail(0) // a failover that may have lost commits
	p.start(number(2), Begin)
	w.MustJoin()
	p.wantTaken("set aside", p.take(d, Begin.Add(time.Second)))
}
