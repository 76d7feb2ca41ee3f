package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"puntuale"
)

// fed is a running campaign of a client. Each recipient gets one message.
type fed struct {
	*Client
	id   puntuale.CampaignID
	list puntuale.ListID
	node puntuale.NodeID
}

func recipientNumber(i int) string { return fmt.Sprintf("+39340%07d", i) }

// MustCampaign makes a checked campaign with the given number of recipients. The digest of its check is "d".
func (c *Client) MustCampaign(recipients int) (puntuale.CampaignID, puntuale.ListID) {
	c.w.t.Helper()
	ctx := context.Background()
	must := func(err error) {
		c.w.t.Helper()
		if err != nil {
			c.w.t.Fatal(err)
		}
	}
	step := &puntuale.Step{Text: "ciao {{nome}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}
	id, err := c.CreateCampaign(ctx, puntuale.Campaign{Session: c.Session, Name: "Auguri", Created: Begin, Draft: puntuale.CampaignDraft{Step: step}}, Day, nil)
	must(err)
	l := puntuale.RecipientList{Columns: []string{"phone", "nome"}, Mapping: `{"phone":0,"nome":1}`}
	l.ID, err = c.NewList(ctx, l, Begin)
	must(err)
	rows := make([]puntuale.Recipient, recipients)
	for i := range rows {
		phone := recipientNumber(i + 1)
		rows[i] = puntuale.Recipient{Line: i + 2, Phone: phone, Cells: []string{phone, "Anna"}}
	}
	must(c.AddRecipients(ctx, l, rows, Begin))
	must(c.UseList(ctx, puntuale.Campaign{ID: id}, l.ID))
	must(c.ChangeCampaign(ctx, id, puntuale.CampaignChange{From: []puntuale.CampaignState{puntuale.CampaignDrafted}, To: puntuale.CampaignChecking, Now: Begin}))
	must(c.ChangeCheck(ctx, id, puntuale.CheckProgress{Alive: Begin, Now: Begin, Over: true,
		Check: puntuale.CampaignCheck{Digest: "d", Recipients: recipients, Valid: recipients}}))
	return id, l.ID
}

// campaigned returns a checked campaign of the client. It makes the campaign at the first call.
func (c *Client) campaigned() puntuale.CampaignID {
	c.w.t.Helper()
	if c.ready == 0 {
		c.ready, c.listed = c.MustCampaign(1)
	}
	return c.ready
}

// running starts a campaign with the given number of recipients, on a session that a node owns.
func (w *World) running(recipients int) *fed {
	w.t.Helper()
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	f := &fed{Client: c, node: w.MustJoin()}
	if moved, err := w.Store.Assign(ctx, 0, f.node, []puntuale.SessionID{c.Session}); err != nil || len(moved) != 1 {
		w.t.Fatalf("the session went to nobody: %v %v", moved, err)
	}
	f.id, f.list = c.MustCampaign(recipients)
	if _, err := c.StartCampaign(ctx, f.id, puntuale.CampaignStart{Digest: "d", Session: c.Session, First: Begin, Day: Day, Now: Begin}); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// chunk reads the next n rows, and plans a message for each of them at the given time.
func (f *fed) chunk(n int, at time.Time) puntuale.FeedChunk {
	f.w.t.Helper()
	ctx := context.Background()
	stored := f.campaign()
	rows, err := f.Recipients(ctx, f.list, puntuale.RecipientFilter{State: new(puntuale.RecipientWaiting)}, stored.Feed.Cursor, n)
	if err != nil {
		f.w.t.Fatal(err)
	}
	k := puntuale.FeedChunk{Client: f.ID, Campaign: f.id, List: f.list, From: stored.Feed, Day: Day, Now: at}
	for _, r := range rows {
		run := f.Run(r.Phone, at, 1)
		run.Run.Origin, run.Run.Campaign, run.Run.Sequence = puntuale.OriginMassive, f.id, 0
		k.Rows = append(k.Rows, puntuale.FedRecipient{Recipient: r, Start: run})
		k.To.Cursor = r.N
	}
	k.To.Next = at
	return k
}

func (f *fed) campaign() puntuale.Campaign {
	f.w.t.Helper()
	stored, err := f.Campaign(context.Background(), f.id)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return stored
}

func (f *fed) mustFeed(n int, at time.Time) {
	f.w.t.Helper()
	if stored, err := f.w.Store.Feed(context.Background(), f.node, f.chunk(n, at)); err != nil || !stored {
		f.w.t.Fatalf("nothing was fed: %v %v", stored, err)
	}
}

func (f *fed) change(to puntuale.CampaignState, now time.Time, from ...puntuale.CampaignState) {
	f.w.t.Helper()
	if err := f.ChangeCampaign(context.Background(), f.id, puntuale.CampaignChange{From: from, To: to, Now: now}); err != nil {
		f.w.t.Fatal(err)
	}
}

// due returns the messages in the campaign queue of the session that are due until end.
func (f *fed) due(end time.Time) []puntuale.DueMessage {
	f.w.t.Helper()
	all, err := f.w.Store.Due(context.Background(), []puntuale.QueueCursor{{Session: f.Session, Campaign: true}}, end, 100)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return all
}

func (f *fed) wants(what string, waiting, fed, refused int) {
	f.w.t.Helper()
	if c := f.campaign().Feed; c.Waiting != waiting || c.Fed != fed || c.Refused != refused {
		f.w.t.Errorf("%s: %d waiting, %d fed, %d refused; want %d, %d, %d", what, c.Waiting, c.Fed, c.Refused, waiting, fed, refused)
	}
}

// testCountCampaigns checks that a client's campaigns are counted up to a limit.
func testCountCampaigns(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	other.campaigned()
	for want := range 3 {
		for limit := range want + 2 {
			if n, all, err := c.CountCampaigns(context.Background(), limit); err != nil || n != min(limit, want) || all != (limit >= want) {
				t.Errorf("campaigns up to %d: %d, %v, %v; want %d", limit, n, all, err, want)
			}
		}
		c.MustCampaign(1)
	}
}

// testFeedOnce checks that a chunk is fed only once. At the second try, the campaign's cursor is already past the
// chunk. Fed messages must be in the campaign queue.
func testFeedOnce(t *testing.T, w *World) {
	f := w.running(5)
	k := f.chunk(3, Begin)
	if stored, err := w.Store.Feed(context.Background(), f.node, k); err != nil || !stored {
		t.Fatalf("the first time: %v %v", stored, err)
	}
	if stored, err := w.Store.Feed(context.Background(), f.node, k); err != nil || stored {
		t.Errorf("the same chunk again: %v %v", stored, err)
	}
	f.wants("after one chunk", 2, 3, 0)
	due := f.due(Begin)
	if len(due) != 3 || due[0].Campaign != f.id {
		t.Errorf("the second queue holds %v", due)
	}
	single := f.MustStart(phone, Begin, 1)
	first, err := w.Store.Due(context.Background(), []puntuale.QueueCursor{{Session: f.Session}}, Begin, 100)
	if err != nil || len(first) != 1 || first[0].ID != single[0] || first[0].Campaign != 0 {
		t.Errorf("the first queue holds %v %v", first, err)
	}
	rows, err := f.Recipients(context.Background(), f.list, puntuale.RecipientFilter{State: new(puntuale.RecipientFed)}, 0, 10)
	if err != nil || len(rows) != 3 || puntuale.MessageID(rows[0].Run) != due[0].ID {
		t.Errorf("fed are %v %v", rows, err)
	}
	other := w.MustJoin()
	if err := w.Store.Leave(context.Background(), f.node); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Feed(context.Background(), f.node, f.chunk(2, Begin)); !errors.Is(err, puntuale.ErrFenced) {
		t.Errorf("a node that left fed: %v", err)
	}
	f.node = other
	f.mustFeed(2, Begin)
	f.wants("after another node fed the rest", 0, 5, 0)
}

// testPausedCampaign checks that messages of a paused campaign are not claimed, read or closed. After the pause they
// must have as much time left as before.
func testPausedCampaign(t *testing.T, w *World) {
	ctx := context.Background()
	f := w.running(4)
	f.mustFeed(2, Begin)
	due := f.due(Begin)
	items := f.Items("", 0, due[0].ID, due[1].ID)
	for i := range items {
		items[i].Phone, items[i].Campaign = due[i].Phone, f.id
	}
	now := Begin.Add(time.Minute)
	if _, got := w.MustClaim(f.node, now, items[0]); got[0] != puntuale.ClaimGranted {
		t.Fatalf("a running campaign's message: %v", got)
	}
	f.change(puntuale.CampaignPaused, now, puntuale.CampaignRunning)
	if _, got := w.MustClaim(f.node, now, items[1]); got[0] != puntuale.ClaimPaused {
		t.Errorf("a paused campaign's message: %v", got)
	}
	if due := f.due(Begin.Add(time.Hour)); len(due) > 0 {
		t.Errorf("the second queue shows %v", due)
	}
	if stored, err := w.Store.Feed(ctx, f.node, f.chunk(2, now)); err != nil || stored {
		t.Errorf("a paused campaign was fed: %v %v", stored, err)
	}
	before := f.Detail(due[1].ID)
	if err := w.Store.Settle(ctx, f.node, now, []puntuale.Settlement{{MessageRef: items[1].MessageRef, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}}); err != nil {
		t.Fatal(err)
	}
	if got := f.Detail(due[1].ID).State; got != puntuale.Pending {
		t.Errorf("a held message was closed as %v", got)
	}
	later := now.Add(2 * time.Hour)
	f.change(puntuale.CampaignResuming, later, puntuale.CampaignPaused)
	for after, done := int64(0), false; !done; {
		var err error
		if after, done, err = w.Store.MoveChunk(ctx, f.node, f.ID, f.id, later, after, Begin); err != nil {
			t.Fatal(err)
		}
	}
	moved := f.Detail(due[1].ID)
	if shift := moved.ValidUntil.Sub(before.ValidUntil); shift != 2*time.Hour {
		t.Errorf("its end moved by %v", shift)
	}
	if got := f.campaign(); got.State != puntuale.CampaignRunning || !got.Feed.Next.Equal(Begin.Add(2*time.Hour)) {
		t.Errorf("after the pause it is %v, next at %v", got.State, got.Feed.Next)
	}
	if _, got := w.MustClaim(f.node, later, items[1]); got[0] != puntuale.ClaimGranted {
		t.Errorf("after the pause: %v", got)
	}
}

// resume ends a pause, moves the messages of at most the given number of chunks, and returns where it stopped.
func (f *fed) resume(now time.Time, chunks int) (done bool) {
	f.w.t.Helper()
	f.change(puntuale.CampaignResuming, now, puntuale.CampaignPaused)
	for after := int64(0); chunks > 0 && !done; chunks-- {
		after, done = f.move(now, after)
	}
	return done
}

func (f *fed) move(resumed time.Time, after int64) (next int64, done bool) {
	f.w.t.Helper()
	next, done, err := f.w.Store.MoveChunk(context.Background(), f.node, f.ID, f.id, resumed, after, resumed)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return next, done
}

// testPausedWhileResuming checks that each message moves by the whole time of its pauses, and only once. This must hold
// if the campaign is paused again after the first messages were moved, and if a crash repeats a chunk.
func testPausedWhileResuming(t *testing.T, w *World) {
	f := w.running(502) // more than one chunk
	f.mustFeed(501, Begin)
	due := f.due(Begin.Add(time.Second))
	first, last := due[0].ID, f.dueOf(500)
	before := f.Detail(first)
	paused := Begin.Add(time.Hour)
	f.change(puntuale.CampaignPaused, paused, puntuale.CampaignRunning)
	resumed := paused.Add(10 * time.Hour)
	if f.resume(resumed, 1) {
		t.Fatal("one chunk moved all messages")
	}
	f.move(resumed, 0) // after a crash
	wants := func(what string, id puntuale.MessageID, want time.Duration) {
		t.Helper()
		if d := f.Detail(id); d.Next.Sub(before.Next) != want || d.ValidUntil.Sub(before.ValidUntil) != want {
			t.Errorf("%s: message %d is %v later, and valid for %v more, want %v", what, id, d.Next.Sub(before.Next), d.ValidUntil.Sub(before.ValidUntil), want)
		}
	}
	wants("a moved message", first, 10*time.Hour)
	wants("a message that was not moved", last, 0)
	f.change(puntuale.CampaignPaused, resumed.Add(time.Hour), puntuale.CampaignResuming)
	again := resumed.Add(10 * time.Hour)
	f.change(puntuale.CampaignResuming, again, puntuale.CampaignPaused)
	if _, done := f.move(resumed, 500); !done { // a feeder that does not know of the second pause
		t.Error("the place of the first resumption counted for the second")
	}
	wants("after an old place", last, 0)
	for after, done := int64(0), false; !done; {
		after, done = f.move(again, after)
	}
	wants("after both pauses", first, 20*time.Hour)
	wants("after both pauses", last, 20*time.Hour)
	if got := f.campaign(); got.State != puntuale.CampaignRunning || got.Feed.Next.Sub(Begin) != 20*time.Hour {
		t.Errorf("after both pauses it is %v, next at %v", got.State, got.Feed.Next)
	}
	f.mustFeed(1, again)
	third := again.Add(time.Hour)
	f.change(puntuale.CampaignPaused, third, puntuale.CampaignRunning)
	f.resume(third.Add(time.Hour), 9)
	wants("after a pause of its own", first, 21*time.Hour)
	if d := f.Detail(f.dueOf(501)); !d.Next.Equal(again.Add(time.Hour)) {
		t.Errorf("what was fed between the pauses is planned at %v", d.Next)
	}
}

// dueOf returns the message of the recipient in this place of the list, counted from 0.
func (f *fed) dueOf(place int64) puntuale.MessageID {
	f.w.t.Helper()
	rows, err := f.Recipients(context.Background(), f.list, puntuale.RecipientFilter{}, place, 1)
	if err != nil || len(rows) != 1 {
		f.w.t.Fatalf("recipient %d: %v %v", place, rows, err)
	}
	return puntuale.MessageID(rows[0].Run)
}

// testResentDuringPause checks that a resumption does not move what a person sent again during the pause. Such a message
// must stay valid for as long as it was planned, counted from when it may leave.
func testResentDuringPause(t *testing.T, w *World) {
	f := w.running(4)
	f.mustFeed(4, Begin)
	paused := Begin.Add(time.Hour)
	resumed := paused.Add(10 * time.Hour)
	again := func(place int64, now, due time.Time) puntuale.MessageID {
		t.Helper()
		r, err := f.Resend(context.Background(), puntuale.Resend{Day: Day, Now: now, Messages: []puntuale.ResendMessage{{ID: f.dueOf(place), Due: due, ValidUntil: due.Add(24 * time.Hour)}}})
		if err != nil {
			t.Fatal(err)
		}
		return r.IDs[0]
	}
	type wanted struct {
		due, next time.Time
		valid     time.Duration // longer than 24 hours
	}
	want := map[puntuale.MessageID]wanted{}
	want[again(0, Begin, Begin)] = wanted{Begin, Begin.Add(10 * time.Hour), 10 * time.Hour}
	f.change(puntuale.CampaignPaused, paused, puntuale.CampaignRunning)
	soon, later := paused.Add(time.Hour), paused.Add(30*time.Hour)
	want[again(1, soon, soon)] = wanted{soon, soon, 9 * time.Hour}
	want[again(2, soon, later)] = wanted{later, later, 0}
	f.resume(resumed, 1)
	for id, want := range want {
		if d := f.Detail(id); !d.Due.Equal(want.due) || !d.Next.Equal(want.next) || d.ValidUntil.Sub(d.Due) != 24*time.Hour+want.valid {
			t.Errorf("due at %v, it leaves at %v and is valid until %v, want %+v", d.Due, d.Next, d.ValidUntil, want)
		}
	}
}

// testListCompared checks that a list replaces only the list that its caller read. Rows must not be added to a list that
// the campaign no longer uses.
func testListCompared(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	id, old := c.MustCampaign(1)
	read := func() (puntuale.Campaign, puntuale.RecipientList) {
		t.Helper()
		stored, err := c.Campaign(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.RecipientList(ctx, stored.List)
		if err != nil {
			t.Fatal(err)
		}
		return stored, l
	}
	add := func(l puntuale.RecipientList) error {
		return c.AddRecipients(ctx, l, []puntuale.Recipient{{Line: 9, Phone: phone, Cells: []string{phone}}}, Begin)
	}
	list := func() puntuale.RecipientList {
		t.Helper()
		l := puntuale.RecipientList{Columns: []string{"phone"}, Mapping: `{"phone":0}`}
		var err error
		if l.ID, err = c.NewList(ctx, l, Begin); err != nil {
			t.Fatal(err)
		}
		if err := add(l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	refused := func(what string, err error) {
		t.Helper()
		if puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	before, replaced := read()
	if err := add(replaced); err != nil {
		t.Fatal(err)
	}
	refused("the same rows again", add(replaced))
	next := list()
	refused("a list that does not know the rows that were added", c.UseList(ctx, before, next.ID))
	now, grown := read()
	if err := c.UseList(ctx, now, next.ID); err != nil {
		t.Fatal(err)
	}
	refused("rows for a list that was replaced", add(grown))
	refused("a list in the place of one that was replaced", c.UseList(ctx, now, list().ID))
	now, _ = read()
	if err := c.UseList(ctx, now, old); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("an old list again: %v", err)
	}
	if now, l := read(); now.List != next.ID || l.Size != 1 || now.Feed.Size() != 1 {
		t.Errorf("the campaign has %+v of %+v", now.Feed, l)
	}
}

// testCancelledCampaign checks that a cancellation cancels pending messages, and that the campaign's counts are stored.
func testCancelledCampaign(t *testing.T, w *World) {
	ctx := context.Background()
	f := w.running(6)
	f.mustFeed(4, Begin)
	f.change(puntuale.CampaignCancelling, Begin, puntuale.CampaignRunning)
	for done := false; !done; {
		var err error
		if done, err = w.Store.CancelChunk(ctx, f.node, f.ID, f.id, Begin); err != nil {
			t.Fatal(err)
		}
	}
	stored := f.campaign()
	if counts, err := f.CampaignCounts(ctx, f.id, false); err != nil || counts.Cancelled != 4 || stored.Final != counts || stored.State != puntuale.CampaignCancelled {
		t.Errorf("counts %+v %v, kept %+v, state %v", counts, err, stored.Final, stored.State)
	}
	f.wants("cancelled", 2, 4, 0)
}

// testFinishedCampaign checks that a campaign ends when every recipient was fed and every message has ended.
func testFinishedCampaign(t *testing.T, w *World) {
	ctx := context.Background()
	f := w.running(2)
	finish := func() bool {
		t.Helper()
		done, err := w.Store.FinishCampaign(ctx, f.node, f.ID, f.id, Begin)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	f.mustFeed(1, Begin)
	f.MustEnd(f.node, Begin.Add(time.Minute), puntuale.Outcome{Verdict: puntuale.Sent}, f.due(Begin)[0].ID)
	if finish() {
		t.Error("it ended with a recipient that waits")
	}
	f.mustFeed(1, Begin)
	if finish() {
		t.Error("it ended with a message that is pending")
	}
	f.MustEnd(f.node, Begin.Add(time.Minute), puntuale.Outcome{Verdict: puntuale.Refused}, f.due(Begin)[0].ID)
	if !finish() || f.campaign().State != puntuale.CampaignDone {
		t.Errorf("it did not end: %v", f.campaign().State)
	}
	failed, err := f.FailedOfCampaign(ctx, f.id, false, 0, 10)
	if err != nil || len(failed) != 1 {
		t.Errorf("failed are %v %v", failed, err)
	}
	if f.campaign().Final != (puntuale.CampaignCounts{Completed: 1, Failed: 1}) {
		t.Errorf("it keeps %+v", f.campaign().Final)
	}
}

// testErasedRecipient checks that an erased person is not fed, and that the list contains no data about the person any
// more.
func testErasedRecipient(t *testing.T, w *World) {
	ctx := context.Background()
	f := w.running(3)
	k := f.chunk(3, Begin)
	erased := recipientNumber(2)
	if _, err := f.Erase(ctx, puntuale.Erasure{Person: puntuale.Person{Names: []string{erased}, Mark: func(string) string { return "~m" }}, Day: Day, Now: Begin}); err != nil {
		t.Fatal(err)
	}
	f.wants("after the erasure", 2, 0, 1)
	if stored, err := w.Store.Feed(ctx, f.node, k); err != nil || !stored {
		t.Fatalf("the chunk that was read before: %v %v", stored, err)
	}
	f.wants("after the chunk", 0, 2, 1)
	rows, err := f.Recipients(ctx, f.list, puntuale.RecipientFilter{Reason: puntuale.RefusedErased}, 0, 10)
	if err != nil || len(rows) != 1 || rows[0].Phone != "" || len(rows[0].Cells) > 0 {
		t.Errorf("of the erased person there is %+v %v", rows, err)
	}
	for _, m := range f.due(Begin) {
		if m.Phone == erased {
			t.Error("a message to the erased person was planned")
		}
	}
}

// testStartCampaign checks that a start counts as one call, and that a repeated start does not count. A start with the
// digest of an old check must start nothing.
func testStartCampaign(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	id, _ := c.MustCampaign(1)
	start := puntuale.CampaignStart{Digest: "other", Session: c.Session, First: Begin, Day: Day, Now: Begin}
	if _, err := c.StartCampaign(ctx, id, start); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("another digest: %v", err)
	}
	start.Digest = "d"
	for range 2 {
		if u, err := c.StartCampaign(ctx, id, start); err != nil || u.Used != 1 {
			t.Errorf("the start answers %+v %v", u, err)
		}
	}
	if err := c.UpdateCampaign(ctx, puntuale.Campaign{ID: id, Name: "x"}); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("a running campaign was changed: %v", err)
	}
}

// ofCampaigns contains the methods of a tenant about campaigns.
var ofCampaigns = map[string]foreign{
	"CreateCampaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.CreateCampaign(context.Background(), puntuale.Campaign{Name: "x", Session: other.Session}, Day, nil)
		return nil, err
	},
	"UpdateCampaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UpdateCampaign(context.Background(), puntuale.Campaign{ID: other.campaigned(), Name: "x"})
	},
	"Campaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.Campaign(context.Background(), other.campaigned())
		return nil, err
	},
	"Campaigns": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		all, _, err := tenant.Campaigns(context.Background(), puntuale.Page{})
		return all, err
	},
	"CountCampaigns": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		n, _, err := tenant.CountCampaigns(context.Background(), 10)
		return make([]bool, n), err
	},
	"CampaignCounts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		counts, err := tenant.CampaignCounts(context.Background(), other.campaigned(), true)
		return make([]int, counts.Total()), err
	},
	"ChangeCampaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.ChangeCampaign(context.Background(), other.campaigned(), puntuale.CampaignChange{
			From: []puntuale.CampaignState{puntuale.CampaignReady}, To: puntuale.CampaignCancelled, Now: Begin})
	},
	"StartCampaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.StartCampaign(context.Background(), other.campaigned(), puntuale.CampaignStart{Digest: "d", Day: Day, Now: Begin})
		return nil, err
	},
	"NewList": nil, // the list belongs to no campaign yet
	"AddRecipients": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		return nil, tenant.AddRecipients(context.Background(), puntuale.RecipientList{ID: other.listed, Size: 1}, []puntuale.Recipient{{Line: 1}}, Begin)
	},
	"UseList": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id := other.campaigned()
		return nil, tenant.UseList(context.Background(), puntuale.Campaign{ID: id, List: other.listed}, other.listed)
	},
	"RecipientList": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		_, err := tenant.RecipientList(context.Background(), other.listed)
		return nil, err
	},
	"Recipients": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.campaigned()
		return tenant.Recipients(context.Background(), other.listed, puntuale.RecipientFilter{}, 0, 10)
	},
	"ChangeCheck": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.ChangeCheck(context.Background(), other.campaigned(), puntuale.CheckProgress{Alive: Begin, Now: Begin})
	},
	"FailedOfCampaign": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.FailedOfCampaign(context.Background(), other.campaigned(), true, 0, 10)
	},
}
