package event_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// hooked is a client that has a webhook.
type hooked struct {
	*eventClient
	id puntuale.WebhookID
}

func newHooked(t *testing.T, w *storetest.World) *hooked {
	t.Helper()
	s := newEventClient(t, w)
	id, err := s.CreateWebhook(context.Background(), puntuale.Webhook{URL: "https://example.com", Types: puntuale.AllEvents, Active: true}, []byte("s"), begin, nil)
	s.must(id, err)
	return &hooked{s, id}
}

func (h *hooked) own(node puntuale.NodeID) (mine []puntuale.WebhookID) {
	h.t.Helper()
	all, err := h.w.OwnWebhooks(context.Background(), node, begin.Add(time.Hour))
	h.must(all, err)
	for _, w := range all {
		mine = append(mine, w.ID)
	}
	return mine
}

func (h *hooked) due(now time.Time) []puntuale.DueDelivery {
	h.t.Helper()
	all, err := h.w.DueDeliveries(context.Background(), []puntuale.WebhookID{h.id}, now, 100, nil)
	h.must(all, err)
	return all
}

func (h *hooked) end(now time.Time, r puntuale.DeliveryResult, all ...puntuale.DueDelivery) {
	h.t.Helper()
	var results []puntuale.DeliveryResult
	for _, d := range all {
		r.Webhook, r.Client, r.Seq, r.At = d.Webhook, d.Client, d.Seq, now
		results = append(results, r)
	}
	h.must(nil, h.w.EndAttempts(context.Background(), now, results))
}

// TestOwners checks that one live node owns a webhook. When the owner has left, another node must take over.
func TestOwners(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		h := newHooked(t, w)
		other := w.MustJoin()
		if got := h.own(h.node); len(got) != 0 {
			t.Errorf("owns %v with nothing due", got)
		}
		h.ended(sent)
		h.events()
		if got := h.own(h.node); len(got) != 1 {
			t.Errorf("owns %v", got)
		}
		if got := h.own(other); len(got) != 0 {
			t.Errorf("the other owns %v too", got)
		}
		h.must(nil, w.Leave(ctx, h.node))
		if got, err := w.OwnWebhooks(ctx, h.node, begin.Add(time.Hour)); !errors.Is(err, puntuale.ErrFenced) {
			t.Errorf("a node that left owns %v, %v", got, err)
		}
		if got := h.own(other); len(got) != 1 {
			t.Errorf("the next owner owns %v", got)
		}
	})
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		h := newHooked(t, w)
		for range 3 {
			h.ended(sent)
		}
		h.events()
		due := h.due(begin)
		if len(due) != 3 || due[0].Seq != 1 || due[2].Seq != 3 || due[0].Event.Message == nil || due[0].Event.Message.Phone != phone || due[0].Event.Message.Sequence != h.Sequence {
			t.Fatalf("due: %+v", due)
		}
		some, err := w.DueDeliveries(ctx, []puntuale.WebhookID{h.id}, begin, 1, func(d puntuale.Delivery) bool { return d.Seq < 3 })
		if h.must(some, err); len(some) != 1 || some[0].Seq != 3 {
			t.Errorf("due, but for what is under way: %+v", some)
		}
		now := begin.Add(time.Second)
		h.end(now, puntuale.DeliveryResult{State: puntuale.DeliveryDone, Status: 200, Answer: "ok\x00", Took: time.Millisecond}, due[0])
		h.end(now, puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Next: begin.Add(time.Hour), Status: 500, Answer: "no"}, due[1])
		h.end(now, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Answer: "webhook.timeout"}, due[2])
		if b, err := w.OutboxBacklog(ctx, due[1].At.Add(30*time.Minute)); err != nil || b.Waiting != 1 || b.Oldest != 0 || b.Event != 30*time.Minute {
			t.Errorf("an event waits for its second attempt: %+v, %v", b, err)
		}
		h.end(now, puntuale.DeliveryResult{State: puntuale.DeliveryFailed}, due[0]) // this late result is for a delivery that already has a result
		all, next, err := h.Deliveries(ctx, h.id, puntuale.DeliveryFilter{}, puntuale.Page{})
		if h.must(all, err); len(all) != 3 || next != "" || all[2].State != puntuale.DeliveryDone || all[2].Answer != "ok" || all[2].Took != time.Millisecond ||
			all[1].State != puntuale.DeliveryWaiting || all[1].Attempts != 1 || !all[1].Next.Equal(begin.Add(time.Hour)) || all[0].State != puntuale.DeliveryFailed {
			t.Errorf("deliveries: %+v, %q", all, next)
		}
		one, next, err := h.Deliveries(ctx, h.id, puntuale.DeliveryFilter{}, puntuale.Page{Limit: 2})
		if h.must(one, err); len(one) != 2 || next == "" {
			t.Errorf("a page: %+v, %q", one, next)
		}
		rest, next, err := h.Deliveries(ctx, h.id, puntuale.DeliveryFilter{}, puntuale.Page{Limit: 2, Cursor: next})
		if h.must(rest, err); len(rest) != 1 || next != "" || rest[0].Seq != 1 {
			t.Errorf("the next page: %+v, %q", rest, next)
		}
		failed, _, err := h.Deliveries(ctx, h.id, puntuale.DeliveryFilter{State: new(puntuale.DeliveryFailed)}, puntuale.Page{})
		if h.must(failed, err); len(failed) != 1 || failed[0].Seq != 3 {
			t.Errorf("failed ones: %+v", failed)
		}
		if due := h.due(now); len(due) != 0 {
			t.Errorf("due too early: %+v", due)
		}
		if n, err := h.Replay(ctx, h.id, puntuale.Replay{Failed: true}, now); n != 1 || err != nil {
			t.Errorf("%d again, %v", n, err)
		}
		if n, err := h.Replay(ctx, h.id, puntuale.Replay{Client: h.ID, Seqs: []int64{1}}, now); n != 1 || err != nil {
			t.Errorf("%d again, %v", n, err)
		}
		if due := h.due(now); len(due) != 2 || due[0].Attempts != 0 {
			t.Errorf("due again: %+v", due)
		}
		if due := h.due(begin.Add(time.Hour)); len(due) != 3 {
			t.Errorf("due at last: %+v", due)
		}
	})
}

// TestDisabled checks that a webhook is disabled by the answer 410, and by five days without a success. The client's
// other webhooks and its feed must get an event about it.
func TestDisabled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		for name, disable := range map[string]func(h *hooked, d puntuale.DueDelivery){
			"gone": func(h *hooked, d puntuale.DueDelivery) {
				h.end(begin, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Status: 410, ReceiverGone: true}, d)
			},
			"failing": func(h *hooked, d puntuale.DueDelivery) {
				for _, days := range []int{0, 4, 5} {
					if x, err := h.Webhook(ctx, h.id); err != nil || !x.Active {
						t.Errorf("disabled after less than %d days: %+v, %v", days, x, err)
					}
					h.end(begin.Add(time.Duration(days)*24*time.Hour), puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Next: begin}, d)
				}
			},
			"failing, while some events need no call": func(h *hooked, d puntuale.DueDelivery) {
				h.end(begin, puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Next: begin}, d)
				h.end(begin.Add(4*24*time.Hour), puntuale.DeliveryResult{State: puntuale.DeliveryDone, Status: 204, NoCall: true}, d)
				h.end(begin.Add(5*24*time.Hour), puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Next: begin}, d)
			},
		} {
			t.Run(name, func(t *testing.T) {
				h := newHooked(t, w)
				h.ended(sent)
				h.events()
				disable(h, h.due(begin)[0])
				x, err := h.Webhook(ctx, h.id)
				if h.must(x, err); x.Active || x.Disabled.IsZero() || x.Reason.IsZero() {
					t.Errorf("the webhook is %+v", x)
				}
				if got := h.all(); len(got) != 1 || got[0].Type != puntuale.EventWebhookDisabled || got[0].Subject != int64(h.id) || got[0].Detail == "" {
					t.Errorf("told: %+v", got)
				}
				if n := w.Int("select count(*) from delivery where webhook_id = $1", h.id); n != 1 {
					t.Errorf("it has %d deliveries", n)
				}
				x, err = h.UpdateWebhook(ctx, h.id, puntuale.WebhookPatch{Active: new(true)}, begin)
				if h.must(x, err); !x.Active || !x.Disabled.IsZero() || !x.FailingFrom.IsZero() {
					t.Errorf("enabled again it is %+v", x)
				}
			})
		}
	})
}

// TestErasedAnswers checks that an erasure removes the receivers' answers about the person. It must also remove an
// answer that arrives after the erasure.
func TestErasedAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		h := newHooked(t, w)
		h.ended(sent)
		h.ended(sent)
		h.wrote(puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Text: "ciao", Media: &puntuale.ReplyMedia{Name: "a.pdf"}}})
		h.agreed(puntuale.ConsentGrant, 0)
		for range 2 {
			h.MustWaitForFile(phone)
			h.MustKeepFile()
		}
		h.events()
		due := h.due(begin)
		if len(due) != 8 || due[2].Event.Reply == nil || due[2].Event.Reply.Text != "ciao" || due[2].Event.Reply.Media == nil || due[2].Event.Reply.Media.Name != "a.pdf" || due[3].Event.Consent == nil || due[3].Event.Consent.Phone != phone || !due[3].Event.Consent.Applied ||
			due[5].Event.Type != puntuale.EventFileKept || due[5].Event.Reply.Phone != phone || due[5].Event.Reply.FileOf() == "" {
			t.Fatalf("due: %+v", due)
		}
		quote := puntuale.DeliveryResult{State: puntuale.DeliveryDone, Status: 200, Answer: "for " + phone}
		h.end(begin, quote, due[0], due[2], due[4], due[5])
		h.must(h.Erase(ctx, puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(string) string { return "~x" }}, Day: storetest.Day, Now: begin.Add(time.Hour)}))
		h.end(begin, quote, due[1], due[3], due[6], due[7])
		if n := w.Int("select count(*) from delivery where answer <> ''"); n != 0 {
			t.Errorf("%d answers about an erased person", n)
		}
		for _, d := range due {
			row, e, err := h.Delivery(ctx, h.id, h.ID, d.Seq)
			h.must(e, err)
			if row.Seq != d.Seq || row.Webhook != h.id || row.State != puntuale.DeliveryDone || !row.At.Equal(e.At) || row.At.IsZero() {
				t.Errorf("the delivery: %+v", row)
			}
			if e.Message != nil && e.Message.Phone != "" || e.Reply != nil && (e.Reply.Phone != "" || e.Reply.Text != "" || e.Reply.Kept != nil) || e.Consent != nil && e.Consent.Phone != "" {
				t.Errorf("told of an erased person: %+v", e)
			}
		}
	})
}

// TestKeptFor checks that old events and deliveries are deleted. If a client or a webhook was deleted, all its events
// and deliveries are deleted.
func TestKeptFor(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		old, gone := newHooked(t, w), newHooked(t, w)
		for _, h := range []*hooked{old, gone} {
			h.ended(sent)
			h.events()
		}
		old.must(nil, w.Events.Maintain(ctx, begin.Add(puntuale.KeepEvents)))
		if n := w.Int("select count(*) from outbox_event") + w.Int("select count(*) from delivery"); n != 4 {
			t.Errorf("%d rows are kept", n)
		}
		gone.must(nil, w.Store.Partner(w.Partner).DeleteClient(ctx, gone.ID, begin))
		old.must(nil, w.Events.Maintain(ctx, begin))
		for _, table := range []string{"event_stream", "outbox_event"} {
			if n := w.Int("select count(*) from "+table+" where client_id = $1", gone.ID); n != 0 {
				t.Errorf("%s has %d rows of a deleted client", table, n)
			}
		}
		if n := w.Int("select count(*) from webhook where client_id = $1", gone.ID) + w.Int("select count(*) from delivery where webhook_id = $1", gone.id); n != 0 {
			t.Errorf("%d rows are left of a deleted client's webhook", n)
		}
		old.must(nil, w.Events.Maintain(ctx, begin.Add(puntuale.KeepEvents+time.Minute)))
		if n := w.Int("select count(*) from outbox_event") + w.Int("select count(*) from delivery"); n != 0 {
			t.Errorf("%d rows are kept too long", n)
		}
		old.ended(sent)
		if all := old.all(); len(all) != 1 || all[0].Seq != 2 {
			t.Errorf("then: %+v", all)
		}
	})
}
