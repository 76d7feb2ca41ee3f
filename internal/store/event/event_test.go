package event_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestMain checks that closing a store leaves no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const phone = "+393331234567"

var begin = storetest.Begin

// both runs a test on both databases.
func both(t *testing.T, test func(t *testing.T, w *storetest.World)) {
	for name, open := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, storetest.NewWorld(t, open(t)))
		})
	}
}

// eventClient is a client whose events a test compares.
type eventClient struct {
	*storetest.Client
	t    *testing.T
	w    *storetest.World
	node puntuale.NodeID
	read int64
}

func newEventClient(t *testing.T, w *storetest.World) *eventClient {
	t.Helper()
	s := &eventClient{Client: w.Client(puntuale.AccountFull), t: t, w: w, node: w.MustJoin()}
	s.events() // the first read turns the feed on
	return s
}

// events numbers the waiting facts, and returns the types of the events since the last call.
func (s *eventClient) events() (all []string) {
	s.t.Helper()
	for _, e := range s.all() {
		all = append(all, e.Type.String())
	}
	return all
}

func (s *eventClient) all() []puntuale.Event {
	s.t.Helper()
	ctx := context.Background()
	if _, err := s.w.NumberEvents(ctx, begin); err != nil {
		s.t.Fatal(err)
	}
	all, next, err := s.Events(ctx, s.read, puntuale.AllEvents, 1000, begin)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range all {
		if e.Seq <= s.read || e.Client != s.ID {
			s.t.Errorf("event %+v after %d", e, s.read)
		}
		s.read = e.Seq
	}
	if next < s.read {
		s.t.Errorf("next %d is before %d", next, s.read)
	}
	return all
}

func (s *eventClient) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// claimed starts and claims a message.
func (s *eventClient) claimed() (puntuale.ClaimItem, int64) {
	s.t.Helper()
	item := s.Items(phone, 0, s.MustStart(phone, begin, 1)...)[0]
	token, answers := s.w.MustClaim(s.node, begin, item)
	if answers[0] != puntuale.ClaimGranted {
		s.t.Fatalf("claim: %v", answers)
	}
	return item, token
}

// ended starts and claims a message, and records the given outcomes for it.
func (s *eventClient) ended(all ...puntuale.Outcome) (puntuale.ClaimItem, int64) {
	s.t.Helper()
	item, token := s.claimed()
	for _, o := range all {
		s.w.MustRecord(begin.Add(time.Second), item, token, o)
	}
	return item, token
}

var (
	sent      = puntuale.Outcome{Verdict: puntuale.Sent}
	refused   = puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")}
	retry     = puntuale.Outcome{Verdict: puntuale.Retry, Next: begin.Add(time.Minute)}
	uncertain = puntuale.Outcome{Verdict: puntuale.Uncertain, Next: begin.Add(time.Minute), Detail: puntuale.Quoted("lost")}
)

func (s *eventClient) receipts(item puntuale.ClaimItem, token int64, kinds ...puntuale.ReceiptKind) {
	s.t.Helper()
	for _, k := range kinds {
		s.must(s.w.KeepReceipts(context.Background(), begin.Add(time.Minute), []puntuale.DeliveryReceipt{{MessageRef: item.MessageRef, Session: s.Session, Token: token, Kind: k, At: begin.Add(time.Second)}}))
	}
}

func (s *eventClient) settle(item puntuale.ClaimItem, intent int64, st puntuale.State, next time.Time) {
	s.t.Helper()
	s.must(nil, s.w.Settle(context.Background(), s.node, begin.Add(time.Second), []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: intent, State: st, Next: next,
		Reason: puntuale.Because(puntuale.ReasonUncertain)}}))
}

func (s *eventClient) wrote(m puntuale.TakenMessage) {
	s.t.Helper()
	m.Client, m.Session, m.Phone, m.Names, m.At, m.Kind, m.Mark = s.ID, s.Session, phone, []string{phone}, begin.Add(time.Hour), puntuale.ReplyText, storetest.Unique("mark")
	m.ID = m.Mark
	s.must(s.w.KeepInbound(context.Background(), begin.Add(time.Hour), []puntuale.TakenMessage{m}))
}

func (s *eventClient) agreed(change puntuale.ConsentChange, at time.Duration) {
	s.t.Helper()
	s.must(s.w.EnterConsent(context.Background(), puntuale.ConsentEntry{Client: s.ID, Consent: puntuale.Consent{Phone: phone, Purpose: puntuale.PurposeMarketing, Change: change,
		Source: "form", At: begin.Add(at), Entered: begin.Add(at)}}))
}

// moveCase is one change, and the events that it must cause.
type moveCase struct {
	move func(s *eventClient)
	want []string
}

// moves contains all ways in which a message changes its visible state, and all changes of replies and consent. Each
// entry lists the events that the change must cause.
var moves = map[string]moveCase{
	"start":                {func(s *eventClient) { s.MustStart(phone, begin, 2) }, nil},
	"claim":                {func(s *eventClient) { s.claimed() }, nil},
	"sent":                 {func(s *eventClient) { s.ended(sent) }, []string{"message.sent"}},
	"sent twice":           {func(s *eventClient) { s.ended(sent, sent) }, []string{"message.sent"}},
	"refused":              {func(s *eventClient) { s.ended(refused) }, []string{"message.failed"}},
	"retry":                {func(s *eventClient) { s.ended(retry) }, nil},
	"uncertain":            {func(s *eventClient) { s.ended(uncertain) }, []string{"message.uncertain"}},
	"uncertain again":      {func(s *eventClient) { s.ended(uncertain, uncertain) }, []string{"message.uncertain"}},
	"uncertain, then sent": {func(s *eventClient) { s.ended(uncertain, sent) }, []string{"message.uncertain", "message.sent"}},
	"delivered and read": {func(s *eventClient) {
		item, token := s.ended(sent)
		s.receipts(item, token, puntuale.ReceiptSent, puntuale.ReceiptDelivered, puntuale.ReceiptDelivered, puntuale.ReceiptRead, puntuale.ReceiptRead)
	}, []string{"message.sent", "message.delivered", "message.read"}},
	"uncertain, then delivered": {func(s *eventClient) {
		item, token := s.ended(uncertain)
		s.receipts(item, token, puntuale.ReceiptDelivered)
	}, []string{"message.uncertain", "message.sent", "message.delivered"}},
	"given up by the network": {func(s *eventClient) {
		item, token := s.ended(sent)
		s.receipts(item, token, puntuale.ReceiptFailed)
	}, []string{"message.sent", "message.failed"}},
	"failed, then delivered after all": {func(s *eventClient) {
		item, token := s.ended(sent)
		s.receipts(item, token, puntuale.ReceiptFailed, puntuale.ReceiptDelivered)
	}, []string{"message.sent", "message.failed", "message.sent", "message.delivered"}},
	"blacklisted": {func(s *eventClient) {
		s.must(nil, s.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Added: begin}, storetest.Day, nil))
		s.w.MustClaim(s.node, begin, s.Items(phone, 0, s.MustStart(phone, begin, 1)...)...)
	}, []string{"blacklist.added", "message.blacklisted"}},
	"no consent": {func(s *eventClient) {
		s.agreed(puntuale.ConsentWithdraw, 0)
		r := s.Run(phone, begin, 1)
		r.Messages[0].Purpose = puntuale.PurposeMarketing
		started, err := s.Start(context.Background(), r)
		s.must(started, err)
		s.w.MustClaim(s.node, begin, s.Items(phone, 0, started.IDs...)...)
	}, []string{"consent.changed", "message.failed"}},
	"expired": {func(s *eventClient) {
		s.settle(s.Items(phone, 0, s.MustStart(phone, begin, 1)...)[0], 0, puntuale.Failed, time.Time{})
	}, []string{"message.failed"}},
	"postponed": {func(s *eventClient) {
		s.settle(s.Items(phone, 0, s.MustStart(phone, begin, 1)...)[0], 0, puntuale.Pending, begin.Add(time.Hour))
	}, nil},
	"found without an answer": {func(s *eventClient) {
		item, token := s.claimed()
		s.settle(item, token, puntuale.Pending, begin.Add(time.Hour))
		s.settle(item, token, puntuale.Pending, begin.Add(2*time.Hour))
	}, []string{"message.uncertain"}},
	"given up, then sent after all": {func(s *eventClient) {
		item, token := s.ended(uncertain)
		s.settle(item, token, puntuale.Failed, time.Time{})
		s.w.MustRecord(begin.Add(time.Minute), item, token, sent)
	}, []string{"message.uncertain", "message.failed", "message.sent"}},
	"uncertain in two attempts": {func(s *eventClient) {
		item, _ := s.ended(uncertain, retry)
		s.events()
		token, _ := s.w.MustClaim(s.node, begin.Add(time.Hour), item)
		s.w.MustRecord(begin.Add(time.Hour), item, token, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: begin.Add(2 * time.Hour)})
	}, nil},
	"stopped": {func(s *eventClient) {
		s.MustStart(phone, begin, 2)
		s.must(s.Stop(context.Background(), s.Sequence, []string{phone}, "", storetest.Day, begin))
	}, []string{"message.cancelled", "message.cancelled"}},
	"stopped in flight": {func(s *eventClient) {
		item, token := s.claimed()
		s.must(s.Stop(context.Background(), s.Sequence, []string{phone}, "", storetest.Day, begin))
		s.w.MustRecord(begin.Add(time.Second), item, token, retry)
	}, []string{"message.cancelled"}},
	"cancelled by id": {func(s *eventClient) {
		ids := s.MustStart(phone, begin, 2)
		s.must(s.CancelMessages(context.Background(), ids[:1], storetest.Day, begin))
		s.must(s.CancelMessages(context.Background(), ids[:1], storetest.Day, begin))
	}, []string{"message.cancelled"}},
	"restarted": {func(s *eventClient) {
		s.MustStart(phone, begin, 1)
		r := s.Run(phone, begin, 1)
		r.IfRunning = puntuale.IfRunningRestart
		s.must(s.Start(context.Background(), r))
	}, []string{"message.cancelled"}},
	"sent again": {func(s *eventClient) {
		s.MustResend(s.MustStart(phone, begin, 1)...)
	}, nil},
	"delivered after it was sent again": {func(s *eventClient) {
		item, token := s.ended(refused)
		s.MustResend(item.ID)
		s.receipts(item, token, puntuale.ReceiptDelivered)
	}, []string{"message.failed", "message.delivered"}},
	"session deleted": {func(s *eventClient) {
		id, err := s.CreateSession(context.Background(), puntuale.Session{Name: "altra", Type: puntuale.Socket, Sandbox: true, Created: begin}, nil)
		s.must(id, err)
		var ids []puntuale.MessageID
		for range 2 {
			r := s.Run(phone, begin, 1)
			r.Run.Session = id
			started, err := s.Start(context.Background(), r)
			s.must(started, err)
			ids = append(ids, started.IDs...)
		}
		item := s.Items(phone, 0, ids[0])[0]
		token, _ := s.w.MustClaim(s.node, begin, item)
		s.w.MustRecord(begin.Add(time.Second), item, token, uncertain)
		s.must(nil, s.DeleteSession(context.Background(), id, true, 0, begin.Add(2*time.Second)))
	}, []string{"message.uncertain", "message.cancelled", "message.failed"}},
	"attempts of a session given up": {func(s *eventClient) {
		s.claimed()
		s.must(nil, s.GiveUp(context.Background(), s.Session, begin.Add(time.Minute)))
	}, []string{"message.failed"}},
	"erased": {func(s *eventClient) {
		s.MustStart(phone, begin, 1)
		s.must(s.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(string) string { return "~x" }}, Day: storetest.Day, Now: begin}))
	}, []string{"message.cancelled"}},
	"unknown ones closed": {func(s *eventClient) {
		item, _ := s.ended(uncertain)
		s.w.Exec("insert into unknown_message (client_id, message_id, since, at) values ($1, $2, 1, 2)", s.ID, item.ID)
		s.must(s.CloseUnknown(context.Background(), []puntuale.MessageID{item.ID}, storetest.Day, begin))
	}, []string{"message.uncertain", "message.failed"}},
	"client deleted": {func(s *eventClient) {
		s.MustStart(phone, begin, 1)
		s.must(nil, s.w.Store.Partner(s.w.Partner).DeleteClient(context.Background(), s.ID, begin))
		if n := s.w.Int("select count(*) from outbox_fact where client_id = $1", s.ID); n != 0 {
			s.t.Errorf("%d facts of a deleted client", n)
		}
		s.Client = s.w.Client(puntuale.AccountFull)
	}, nil},
	"reply":        {func(s *eventClient) { s.wrote(puntuale.TakenMessage{Keep: puntuale.KeepAllReplies}) }, []string{"reply.received"}},
	"reply unkept": {func(s *eventClient) { s.wrote(puntuale.TakenMessage{Keep: puntuale.KeepNoReplies}) }, nil},
	"own message": {func(s *eventClient) {
		s.wrote(puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Own: true}})
	}, nil},
	"reply that stops": {func(s *eventClient) {
		q, err := s.CreateSequence(context.Background(), puntuale.Sequence{Name: "corteggia", StopOnReply: true, Steps: []puntuale.Step{{Text: "x"}}}, nil)
		s.must(q, err)
		r := s.Run(phone, begin.Add(24*time.Hour), 1)
		r.Run.Sequence = q
		s.must(s.Start(context.Background(), r))
		s.wrote(puntuale.TakenMessage{Keep: puntuale.KeepAllReplies})
	}, []string{"message.cancelled", "reply.received"}},
	"consent": {func(s *eventClient) {
		s.agreed(puntuale.ConsentGrant, 2*time.Hour)
		s.agreed(puntuale.ConsentGrant, 3*time.Hour)    // this change is stored, but has no effect
		s.agreed(puntuale.ConsentWithdraw, time.Hour)   // this change is ignored, because there is a later change
		s.agreed(puntuale.ConsentWithdraw, 4*time.Hour) // this change takes effect
	}, []string{"consent.changed", "consent.changed"}},
}

func TestMoves(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) { testMoves(t, w, moves) })
}

func testMoves(t *testing.T, w *storetest.World, all map[string]moveCase) {
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			s := newEventClient(t, w)
			m.move(s)
			if got := s.events(); !slices.Equal(got, m.want) {
				t.Errorf("events %v, want %v", got, m.want)
			}
			for range 2 { // the second round must cause no event
				if got := s.events(); len(got) > 0 {
					t.Errorf("then %v", got)
				}
			}
		})
	}
}

// TestWanted checks that an event without a subscription is not written, and that each webhook gets the events that it
// subscribed to.
func TestWanted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		node := w.MustJoin()
		c.MustSend(node, begin, c.MustStart(phone, begin, 1)...)
		if n := w.Int("select count(*) from outbox_fact"); n != 0 {
			t.Errorf("%d facts that nobody wants", n)
		}
		hook := func(of puntuale.WebhookStore, types puntuale.EventSet, session puntuale.SessionID) puntuale.WebhookID {
			id, err := of.CreateWebhook(ctx, puntuale.Webhook{URL: "https://example.com", Types: types, Session: session, Active: true}, []byte("s"), begin, nil)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		failures := hook(c, puntuale.EventsOf(puntuale.EventMessageFailed), 0)
		mine := hook(c, puntuale.AllEvents, c.Session)
		elsewhere := hook(c, puntuale.AllEvents, 0)
		if _, err := c.UpdateWebhook(ctx, elsewhere, puntuale.WebhookPatch{Session: new(puntuale.SessionID(0)), Active: new(false)}, begin); err != nil {
			t.Fatal(err)
		}
		partner := hook(w.Store.Partner(w.Partner), puntuale.EventsOf(puntuale.EventMessageSent), 0)
		fresh := w.Client(puntuale.AccountFull) // a client that was created after its partner's webhook
		for _, one := range []*storetest.Client{c, other, fresh} {
			one.MustSend(node, begin, one.MustStart(phone, begin, 1)...)
			one.MustEnd(node, begin, refused, one.MustStart(phone, begin, 1)...)
		}
		c.MustWaitForFile(phone)
		c.MustKeepFile()
		if n, err := w.NumberEvents(ctx, begin); n != 6 || err != nil {
			t.Errorf("%d events, %v", n, err)
		}
		for id, want := range map[puntuale.WebhookID]int64{failures: 1, mine: 4, elsewhere: 0, partner: 3} {
			if n := w.Int("select count(*) from delivery where webhook_id = $1", id); n != want {
				t.Errorf("webhook %d has %d deliveries, want %d", id, n, want)
			}
		}
		for range puntuale.MaxWebhooks - 3 {
			hook(c, puntuale.AllEvents, 0)
		}
		if _, err := c.CreateWebhook(ctx, puntuale.Webhook{URL: "https://x"}, []byte("s"), begin, nil); puntuale.CodeOf(err) != puntuale.CodeQuotaReached {
			t.Errorf("one too many: %v", err)
		}
		if _, err := c.CreateWebhook(ctx, puntuale.Webhook{URL: "https://x", Session: other.Session}, []byte("s"), begin, nil); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("another's session: %v", err)
		}
		if err := w.Store.Partner(w.Partner).DeleteWebhook(ctx, partner); err != nil {
			t.Fatal(err)
		}
		other.MustSend(node, begin, other.MustStart(phone, begin, 1)...)
		if n := w.Int("select count(*) from outbox_fact") + w.Int("select count(*) from delivery where webhook_id = $1", partner); n != 0 {
			t.Errorf("%d rows are left of a deleted webhook", n)
		}
	})
}
