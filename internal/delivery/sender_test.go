package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/chatwoot"
	"puntuale/internal/delivery"
	"puntuale/internal/media"
	"puntuale/internal/store/storetest"
)

// TestDelivers checks that each event comes once, signed and with its number. On an idle machine it comes soon.
func TestDelivers(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		l := newReceiver(t, nil)
		id := w.webhook(c, l.URL)
		w.start(w.Store, longLease, nil)
		w.emit(c.ID, 1)
		began := time.Now()
		l.has(1, 10*time.Second)
		t.Logf("the first came after %v", time.Since(began))
		for n := 2; n <= 5; n++ { // one event at a time, so that the machine is idle
			began := time.Now()
			w.emit(c.ID, 1)
			l.has(n, 10*time.Second)
			if took := time.Since(began); took > time.Second && !raced {
				t.Errorf("an event took %v", took)
			}
		}
		w.emit(c.ID, 1000)
		l.has(1005, 20*time.Second)
		w.settled(1005)
		l.exactly(c.ID, 1005, 1)
		if l.busiest() > 2*puntuale.WebhookAtOnce {
			t.Errorf("%d at once", l.busiest())
		}
		if n := w.int("select count(*) from delivery where webhook_id = $1 and state = 1 and attempts = 1 and status = 204 and tried_at > 0", int64(id)); n != 1005 {
			t.Errorf("%d rows say so", n)
		}
	})
}

// TestHanging has many receivers, and some of them never answer. The events of the receivers that answer must arrive
// within a second.
func TestHanging(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		receivers, hanging, events := 100, 30, 20
		if raced {
			receivers, hanging, events = 20, 6, 5
		}
		over := make(chan struct{})
		defer close(over)
		block := func(w http.ResponseWriter, r *http.Request, _ int) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
		var all []*receiver
		var clients []*storetest.Client
		proven := func(i int) bool { return i%2 == 0 } // half of the hanging receivers accepted an event earlier
		var hangs atomic.Bool
		for i := range receivers {
			var answer func(http.ResponseWriter, *http.Request, int)
			if i < hanging {
				answer = func(w http.ResponseWriter, r *http.Request, times int) {
					if proven(i) && !hangs.Load() {
						w.WriteHeader(http.StatusNoContent)
						return
					}
					block(w, r, times)
				}
			}
			c, l := w.Client(puntuale.AccountFull), newReceiver(t, answer)
			w.webhook(c, l.URL)
			all, clients = append(all, l), append(clients, c)
		}
		w.start(w.Store, longLease, nil)
		for _, c := range clients {
			w.emit(c.ID, 1)
		}
		for _, l := range all {
			l.has(1, 20*time.Second)
		}
		// others emits events for the receivers that answer, and returns how long the events took. Each receiver had so many
		// events before.
		others := func(before int) []time.Duration {
			emitted := map[string]time.Time{}
			for n := range events {
				for i := hanging; i < receivers; i++ {
					emitted[fmt.Sprintf("%d_%d", clients[i].ID, before+n+1)] = time.Now()
					w.emit(clients[i].ID, 1)
				}
			}
			for i := hanging; i < receivers; i++ {
				all[i].has(before+events, 30*time.Second)
			}
			var delays []time.Duration
			for i := hanging; i < receivers; i++ {
				all[i].mu.Lock()
				for n := range events {
					name := fmt.Sprintf("%d_%d", clients[i].ID, before+n+1)
					delays = append(delays, all[i].first["evt_"+name].Sub(emitted[name]))
				}
				all[i].mu.Unlock()
				all[i].exactly(clients[i].ID, before+events, 1)
			}
			slices.Sort(delays)
			t.Logf("median %v, p99 %v, last %v", delays[len(delays)/2], delays[len(delays)*99/100], delays[len(delays)-1])
			return delays
		}
		alone := others(1)
		hangs.Store(true)
		for i := range hanging { // enough events to fill a pool
			w.emit(clients[i].ID, 50)
		}
		beside := others(1 + events)
		// A busy machine needs longer for both.
		if p99, limit := beside[len(beside)*99/100], max(time.Second, 2*alone[len(alone)*99/100]); p99 > limit && !raced {
			t.Errorf("%d of %d receivers hang: the others' p99 is %v, more than %v", hanging, receivers, p99, limit)
		}
		for i := range hanging {
			if all[i].busiest() > puntuale.WebhookAtOnce*2 || !proven(i) && all[i].busiest() > 1 {
				t.Errorf("receiver %d: %d at once", i, all[i].busiest())
			}
		}
	})
}

// TestFailures checks that an event is sent again with the same id after each kind of failure, until the receiver
// accepts it.
func TestFailures(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		redirected := newReceiver(t, nil)
		ways := map[string]func(http.ResponseWriter, *http.Request){
			"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
			"404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
			"301": func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, redirected.URL, http.StatusMovedPermanently)
			},
			"closes": func(w http.ResponseWriter, _ *http.Request) {
				c, _, _ := w.(http.Hijacker).Hijack()
				c.Close()
			},
			"garbage": func(w http.ResponseWriter, _ *http.Request) {
				c, _, _ := w.(http.Hijacker).Hijack()
				_, _ = c.Write([]byte("220 mail.example.com ESMTP\r\n"))
				c.Close()
			},
			"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		}
		all := map[string]*receiver{}
		clients := map[string]*storetest.Client{}
		for name, way := range ways {
			all[name] = newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				if broken.Load() {
					way(w, r)
					return
				}
				w.WriteHeader(http.StatusOK)
			})
			clients[name] = w.Client(puntuale.AccountFull)
			w.webhook(clients[name], all[name].URL)
		}
		w.start(w.Store, longLease, func(_ *delivery.Config, c *delivery.CallerConfig) { c.Within = 500 * time.Millisecond })
		for _, c := range clients {
			w.emit(c.ID, 2)
		}
		eventually(t, 20*time.Second, "every event was attempted", func() bool {
			return w.int("select count(*) from delivery where attempts >= 1") == int64(2*len(ways))
		})
		for name, l := range all {
			if n := len(l.ledger()); n != 2 {
				t.Errorf("%s: %d events came", name, n)
			}
		}
		broken.Store(false)
		w.clock.jump(7 * time.Second) // the first wait has ended, but the second has not
		w.settled(2 * len(ways))
		for name, l := range all {
			l.exactly(clients[name].ID, 2, 2)
		}
		if n := redirected.calls(); n != 0 {
			t.Errorf("%d redirects were followed", n)
		}
	})
}

// TestGone checks that the answer 410 disables the webhook. The webhook's waiting deliveries are not sent.
func TestGone(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		l := newReceiver(t, status(http.StatusGone))
		id := w.webhook(c, l.URL)
		w.start(w.Store, longLease, nil)
		w.emit(c.ID, 50)
		l.has(1, 10*time.Second)
		eventually(t, 10*time.Second, "the webhook is disabled", func() bool {
			h, err := c.Webhook(t.Context(), id)
			return err == nil && !h.Active && !h.Disabled.IsZero() && h.Reason.Code == puntuale.ReasonWebhookGone
		})
		before := l.calls()
		w.clock.jump(time.Hour)
		w.emit(c.ID, 5)
		other := newReceiver(t, nil)
		w.webhook(c, other.URL)
		w.emit(c.ID, 1)
		other.has(1, 10*time.Second)
		if n := l.calls(); n != before || n > 3 {
			t.Errorf("it was called %d times, %d before it was disabled", n, before)
		}
	})
}

// TestGoneInbox checks that a link to Chatwoot is disabled when only 404 answers its replies for five days. Meanwhile,
// events that need no call, and notes in conversations that are gone, count neither as successes nor as failures.
func TestGoneInbox(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		const anna, bruno = "+393331234567", "+393337654321"
		c, peer := w.Client(puntuale.AccountFull), httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(peer.Close)
		link, err := c.LinkChatwoot(t.Context(), puntuale.ChatwootLink{
			Webhook: puntuale.Webhook{URL: peer.URL, Session: c.Session, Created: w.clock.Now()}, Chatwoot: puntuale.ChatwootInbox{Account: 3},
		}, []byte("sealed:token"), w.clock.Now())
		if err == nil {
			link, err = c.FinishChatwoot(t.Context(), link.ID, 7)
		}
		if err == nil {
			err = w.StoreChatwootConversation(t.Context(), puntuale.ChatwootConversation{Webhook: link.ID, Client: c.ID, Phone: bruno, Contact: 11, Conversation: 12})
		}
		if err != nil {
			t.Fatal(err)
		}
		n := w.start(w.Store, longLease, func(_ *delivery.Config, calls *delivery.CallerConfig) {
			calls.Chatwoot = chatwoot.New(chatwoot.Config{
				Store: w.Store, HTTP: media.WebhookTransport(loopback, nil),
				Message: func(context.Context, puntuale.ClientID, puntuale.MessageID) (puntuale.MessageDetail, error) {
					return puntuale.MessageDetail{Content: puntuale.Content{Text: "Promemoria"}}, nil
				},
			})
		})
		failing := func() int64 { return w.int("select failing_at from webhook where id = $1", int64(link.ID)) }
		needless := 0
		// needNoCall sends one message to somebody without a conversation, and one to somebody whose conversation is gone.
		needNoCall := func() {
			now := w.clock.Now()
			for _, phone := range []string{anna, bruno} {
				c.MustSend(n.id, now, c.MustStart(phone, now, 1)...)
			}
			needless += 2
			w.settled(needless)
		}
		needNoCall()
		if failing() != 0 {
			t.Error("events that need no call count as failures")
		}
		wrote := puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, Mark: "first"}
		wrote.Client, wrote.Session, wrote.ID, wrote.Phone, wrote.Names = c.ID, c.Session, wrote.Mark, anna, []string{anna}
		wrote.At, wrote.Kind, wrote.Text = w.clock.Now(), puntuale.ReplyText, "Ci siete?"
		if _, err := w.KeepInbound(t.Context(), wrote.At, []puntuale.TakenMessage{wrote}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "a reply has failed", func() bool { return failing() != 0 })
		since := failing()
		w.clock.jump(puntuale.DisableWebhookAfter - time.Hour)
		needNoCall()
		if now := failing(); now != since {
			t.Errorf("the link fails since %d, and after events that need no call since %d", since, now)
		}
		w.clock.jump(25 * time.Hour)
		eventually(t, 20*time.Second, "the link is disabled", func() bool {
			l, err := c.ChatwootLink(t.Context(), c.Session)
			return err == nil && !l.Active && l.Reason.Code == puntuale.ReasonWebhookFailing
		})
	})
}

// TestRetryAfter checks that the sender obeys Retry-After.
func TestRetryAfter(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		var busy atomic.Bool
		busy.Store(true)
		l := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			if busy.Load() {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.WriteHeader(http.StatusOK)
		})
		w.webhook(c, l.URL)
		w.start(w.Store, longLease, nil)
		w.emit(c.ID, 20)
		eventually(t, 10*time.Second, "a refusal is recorded", func() bool { return w.int("select count(*) from delivery where attempts = 1 and status = 429") > 0 })
		if early := w.int("select count(*) from delivery where attempts > 0 and next_at < tried_at + 3600000000"); early > 0 {
			t.Errorf("%d are due within the hour", early)
		}
		if n := l.calls(); n > 3 {
			t.Errorf("it was called %d times", n)
		}
		busy.Store(false)
		w.clock.jump(time.Hour + time.Minute)
		w.settled(20)
		l.exactly(c.ID, 20, 2)
	})
}

// TestDown checks that a receiver that is down gets few attempts. Its waiting deliveries lose no retries. These
// deliveries are sent immediately when the receiver works again.
func TestDown(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		l := newReceiver(t, nil)
		w.webhook(c, "http://"+freePort(t))
		var attempts atomic.Int64
		w.start(w.Store, longLease, func(cfg *delivery.Config, _ *delivery.CallerConfig) { cfg.Meter = counter{&attempts} })
		const events = 500
		w.emit(c.ID, events)
		for range 8 { // each round is a minute of the fake clock
			w.clock.jump(time.Minute)
			<-time.After(time.Second)
		}
		tried := attempts.Load()
		t.Logf("%d attempts for %d events in 8 minutes", tried, events)
		if tried < 5 || tried > 40 {
			t.Errorf("%d attempts", tried)
		}
		hooks, err := c.Webhooks(t.Context())
		if err != nil || len(hooks) != 1 {
			t.Fatal(hooks, err)
		}
		if _, err := c.UpdateWebhook(t.Context(), hooks[0].ID, puntuale.WebhookPatch{URL: &l.URL}, w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		l.has(events-int(tried), 20*time.Second)
		t.Logf("the rest came %v after the receiver was back", time.Since(began))
		w.clock.jump(2 * time.Hour)
		w.settled(events)
		l.exactly(c.ID, events, 1)
	})
}

type counter struct{ n *atomic.Int64 }

func (c counter) Attempted(string)         { c.n.Add(1) }
func (counter) TaskDone(string, time.Time) {}
func (counter) TaskFailed(string)          {}

// freePort returns an address on which no program listens.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestTwoNodes checks that two nodes share the webhooks, and that no event comes twice.
func TestTwoNodes(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		webhooks, events := 10, 200
		if raced {
			events = 40
		}
		var clients []*storetest.Client
		var all []*receiver
		for range webhooks {
			c, l := w.Client(puntuale.AccountFull), newReceiver(t, nil)
			w.webhook(c, l.URL)
			clients, all = append(clients, c), append(all, l)
		}
		w.start(w.Store, longLease, nil)
		w.start(w.DB.Open(t), longLease, nil)
		for range events / 10 {
			for _, c := range clients {
				w.emit(c.ID, 10)
			}
		}
		for i, l := range all {
			l.has(events, 60*time.Second)
			l.exactly(clients[i].ID, events, 1)
		}
		w.settled(webhooks * events)
		for i, l := range all { // after everything was recorded, still no event came twice
			l.exactly(clients[i].ID, events, 1)
		}
	})
}

// dyingStore is a store that no longer answers after its node died.
type dyingStore struct {
	delivery.Store
	dead atomic.Bool
}

var errDead = errors.New("the node is dead")

func (s *dyingStore) EndAttempts(ctx context.Context, now time.Time, all []puntuale.DeliveryResult) error {
	if s.dead.Load() {
		return errDead
	}
	return s.Store.EndAttempts(ctx, now, all)
}

func (s *dyingStore) NumberEvents(ctx context.Context, now time.Time) (int, error) {
	if s.dead.Load() {
		return 0, errDead
	}
	return s.Store.NumberEvents(ctx, now)
}

func (s *dyingStore) OwnWebhooks(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.WebhookTarget, error) {
	if s.dead.Load() {
		return nil, errDead
	}
	return s.Store.OwnWebhooks(ctx, node, now)
}

func (s *dyingStore) DueDeliveries(ctx context.Context, webhooks []puntuale.WebhookID, now time.Time, limit int, skip func(puntuale.Delivery) bool) ([]puntuale.DueDelivery, error) {
	if s.dead.Load() {
		return nil, errDead
	}
	return s.Store.DueDeliveries(ctx, webhooks, now, limit, skip)
}

// TestTakeover kills a node while it sends. Another node delivers the other events. The second node also sends again,
// with the same ids, the events whose results the dead node did not record.
func TestTakeover(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		const events = 300
		c := w.Client(puntuale.AccountFull)
		var half atomic.Int64
		dying := &dyingStore{Store: w.Store}
		l := newReceiver(t, func(rw http.ResponseWriter, r *http.Request, _ int) {
			if half.Add(1) == events/2 {
				dying.dead.Store(true)
			}
			<-time.After(20 * time.Millisecond)
			rw.WriteHeader(http.StatusOK)
		})
		w.webhook(c, l.URL)
		dead := w.start(w.Store, 3*time.Second, func(cfg *delivery.Config, _ *delivery.CallerConfig) { cfg.Store = dying })
		w.emit(c.ID, events)
		l.has(events/2, 20*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // Stop must not wait
		if err := dead.Stop(ctx); err == nil {
			t.Log("nothing was under way")
		}
		w.start(w.DB.Open(t), longLease, nil)
		w.settled(events)
		got := l.ledger()
		twice := 0
		for id, times := range got {
			if times > 2 {
				t.Errorf("%s came %d times", id, times)
			}
			if times == 2 {
				twice++
			}
		}
		t.Logf("%d of %d came twice", twice, len(got))
		l.exactly(c.ID, events, 2)
		if twice > 100 && !raced { // only events in flight and events with an unrecorded result may come twice
			t.Errorf("%d came twice", twice)
		}
	})
}

// TestStop checks that Stop waits for the attempts in flight and records their results. It does not wait long for a
// receiver that hangs.
func TestStop(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		var arrived sync.WaitGroup
		arrived.Add(2)
		slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			arrived.Done()
			<-time.After(500 * time.Millisecond)
			w.WriteHeader(http.StatusOK)
		})
		hung := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) { arrived.Done(); <-r.Context().Done() })
		slowID, hungID := w.webhook(c, slow.URL), w.webhook(c, hung.URL)
		n := w.start(w.Store, longLease, nil)
		w.emit(c.ID, 1)
		arrived.Wait()
		began := time.Now()
		n.stop(t)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if w.int("select state from delivery where webhook_id = $1", int64(slowID)) != 1 {
			t.Error("what was in flight is not recorded")
		}
		if w.int("select attempts from delivery where webhook_id = $1", int64(hungID)) != 0 {
			t.Error("a cut attempt counts")
		}
	})
}

// TestStoreAway checks that no event is sent again while the store accepts no results. The log must contain the failure
// once.
func TestStoreAway(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		c := w.Client(puntuale.AccountFull)
		l := newReceiver(t, nil)
		w.webhook(c, l.URL)
		dying := &dyingStore{Store: w.Store}
		n := w.start(w.Store, longLease, func(cfg *delivery.Config, _ *delivery.CallerConfig) { cfg.Store = dying })
		w.emit(c.ID, 10)
		l.has(10, 10*time.Second)
		w.settled(10)
		dying.dead.Store(true)
		w.emit(c.ID, 10)
		eventually(t, 10*time.Second, "the sender is not healthy", func() bool {
			w.clock.jump(time.Second)
			return n.Healthy() != nil
		})
		dying.dead.Store(false)
		l.has(20, 10*time.Second)
		w.settled(20)
		l.exactly(c.ID, 20, 1)
		eventually(t, 10*time.Second, "the sender is healthy", func() bool { return n.Healthy() == nil })
	})
}

// TestPartners checks that a partner's webhook gets the events of all its clients. Each body must contain the client.
func TestPartners(t *testing.T) {
	on(t, func(t *testing.T, w *world) {
		first, second := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		var named atomic.Int64
		l := newReceiver(t, nil)
		if _, err := w.Store.Partner(w.Partner).CreateWebhook(t.Context(), puntuale.Webhook{URL: l.URL, Types: puntuale.AllEvents, Active: true, Created: w.clock.Now()},
			append([]byte("sealed:"), key...), w.clock.Now(), nil); err != nil {
			t.Fatal(err)
		}
		w.start(w.Store, longLease, nil)
		w.emit(first.ID, 20)
		w.emit(second.ID, 20)
		l.has(40, 20*time.Second)
		for id := range l.ledger() {
			if strings.HasPrefix(id, fmt.Sprintf("evt_%d_", first.ID)) {
				named.Add(1)
			}
		}
		if named.Load() != 20 {
			t.Errorf("%d are the first client's", named.Load())
		}
	})
}
