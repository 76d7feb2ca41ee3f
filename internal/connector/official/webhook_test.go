package official_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, d storetest.Driver)) {
	for name, d := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// stored makes a message with an intent, as the dispatcher would, and sends the message. It records no outcome.
func (w *world) stored(phone string) (puntuale.MessageID, graphtest.Taken, int64) {
	w.t.Helper()
	run := w.c.Run(phone, w.clock.Now(), 1)
	run.Run.Session = w.session
	started, err := w.c.Start(context.Background(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	id := started.IDs[0]
	token, granted := w.w.MustClaim(w.w.MustJoin(), w.clock.Now(), w.c.Items(phone, 0, id)...)
	if granted[0] != puntuale.ClaimGranted {
		w.t.Fatalf("granted %v", granted)
	}
	e := w.envelope(phone, text("x"))
	e.Message, e.ConnectorID, e.Token = id, puntuale.ConnectorID(id, 0), token
	p, err := w.conn.Prepare(w.within(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	_, _ = w.conn.Send(w.within(), p)
	taken := w.peer.Taken()
	return id, taken[len(taken)-1], token
}

func (w *world) record(id puntuale.MessageID, token int64, o puntuale.Outcome) {
	w.t.Helper()
	w.w.MustRecord(w.clock.Now(), puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: w.c.ID, ID: id}}, token, o)
}

func (w *world) deliver(body []byte) {
	w.t.Helper()
	if status := w.peer.Deliver(w.webhook, "101", body); status != http.StatusOK {
		w.t.Fatalf("the webhook answered %d to %s", status, body)
	}
}

// TestWebhooksInDisorder delivers statuses in random order, ten times each, a week late, from many goroutines. For half
// of the messages Meta's answer was lost.
func TestWebhooksInDisorder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := newWorld(t, setup{driver: d})
		w.wrote(person)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		type expected struct {
			state           puntuale.State
			delivered, read bool
		}
		want := map[puntuale.MessageID]expected{}
		var bodies [][]byte
		at := w.clock.Now().Add(-time.Minute)
		for i, statuses := range [][]string{{"sent"}, {"sent", "delivered"}, {"sent", "delivered", "read"}, {"sent", "read"}, {"failed"}, {"sent", "failed"}, {"sent", "failed", "delivered"}} {
			for _, lost := range []bool{false, true} {
				w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Drop: lost} })
				id, taken, token := w.stored(person)
				o := puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(taken.WAMID)}
				if lost {
					o = puntuale.Outcome{Verdict: puntuale.Uncertain, Next: w.clock.Now().Add(24 * time.Hour)}
				}
				w.record(id, token, o)
				x := expected{puntuale.Completed, slices.Contains(statuses, "delivered"), slices.Contains(statuses, "read")}
				if slices.Contains(statuses, "failed") && !x.delivered {
					x.state = puntuale.Failed
				}
				want[id] = x
				for _, s := range statuses {
					var codes []int
					if s == "failed" {
						codes = []int{131026}
					}
					body := w.peer.Status(taken, s, at.Add(time.Duration(i)*time.Second), codes...)
					bodies = append(bodies, slices.Repeat([][]byte{body}, 10)...)
				}
			}
		}
		r.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
		w.clock.Advance(7 * 24 * time.Hour)
		var all sync.WaitGroup
		for part := range slices.Chunk(bodies, len(bodies)/8+1) {
			all.Go(func() {
				for _, body := range part {
					if status := w.peer.Deliver(w.webhook, "101", body); status != http.StatusOK {
						t.Errorf("answered %d", status)
					}
				}
			})
		}
		all.Wait()
		for id, x := range want {
			if got := w.c.Detail(id); got.State != x.state || got.Delivered.IsZero() == x.delivered || got.Read.IsZero() == x.read {
				t.Errorf("message %d is %v %q, delivered %v, read %v, want %+v", id, got.State, got.Response(), got.Delivered, got.Read, x)
			}
		}
	})
}

// TestWebhooksThatSayNothing: a delivery that this server cannot use gets status 200 and has no effect. For example,
// such a delivery concerns an unknown message, another number or an unknown field, or it cannot be decoded.
func TestWebhooksThatSayNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.wrote(person)
	id, taken, token := w.stored(person)
	w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(taken.WAMID)})
	now := w.clock.Now()
	before := w.c.Detail(id)
	change := func(f func(*graphtest.Taken)) []byte {
		x := taken
		f(&x)
		return w.peer.Status(x, "failed", now, 131026)
	}
	const other = "+393339999999"
	for name, body := range map[string][]byte{
		"an unknown message":       change(func(x *graphtest.Taken) { x.Message.Token = "1.0.1" }),
		"another program's":        change(func(x *graphtest.Taken) { x.Message.Token = "order-12" }),
		"a negative message":       change(func(x *graphtest.Taken) { x.Message.Token = "-1.0.1" }),
		"no token":                 change(func(x *graphtest.Taken) { x.Message.Token = "" }),
		"another number's":         change(func(x *graphtest.Taken) { x.Number = "102" }),
		"an unknown status":        w.peer.Status(taken, "warning", now),
		"another number's person":  w.peer.Wrote("102", other, now),
		"a person without number":  w.peer.Event("101", "messages", "messages", map[string]any{"from": "US.123", "type": "text"}),
		"a system message":         w.peer.Event("101", "messages", "messages", map[string]any{"from": other[1:], "type": "system", "timestamp": "1"}),
		"a group":                  w.peer.Event("101", "messages", "messages", map[string]any{"from": other[1:], "type": "text", "group_id": "x", "timestamp": "1"}),
		"our own call":             w.peer.Event("101", "calls", "calls", map[string]any{"from": other[1:], "direction": "BUSINESS_INITIATED"}),
		"an odd preference":        w.peer.Prefers("101", other, "perhaps", now),
		"another field":            w.peer.Event("101", "account_update", "statuses", map[string]any{"id": "x"}),
		"another object":           []byte(`{"object":"page","entry":[]}`),
		"parts of the wrong type":  []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"101"},"statuses":[1,"x",null,{"id":{}}],"messages":[[]]}}]}]}`),
		"a value of another type":  []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":[]}]}]}`),
		"nothing":                  []byte(`{}`),
		"no JSON":                  []byte(`\xff`),
		"an empty body":            {},
		"a message of another one": w.peer.Event("101", "messages", "statuses", map[string]any{"id": "w", "status": "failed", "timestamp": "x", "biz_opaque_callback_data": taken.Message.Token + ".x"}),
	} {
		if status := w.peer.Deliver(w.webhook, "101", body); status != http.StatusOK {
			t.Errorf("%s: answered %d", name, status)
		}
		if after := w.c.Detail(id); after.State != before.State || !reflect.DeepEqual(after.Detail, before.Detail) || !after.Delivered.IsZero() {
			t.Fatalf("%s: the message became %+v", name, after)
		}
	}
	if n := w.w.Int("select count(*) from contact where phone = $1", other); n != 0 {
		t.Error("a window was opened")
	}
	if n := w.w.Int("select count(*) from blacklist"); n != 0 {
		t.Error("somebody is on the blacklist")
	}
}

// TestWebhookOfPeople: a person's message or phone call opens the person's window. An opt-out changes the ledger of
// consent.
func TestWebhookOfPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	now := w.clock.Now()
	const caller = "+393332222222"
	w.deliver(w.peer.Wrote("101", person, now))
	w.deliver(w.peer.Event("101", "calls", "calls", map[string]any{"from": caller[1:], "direction": "USER_INITIATED", "timestamp": fmt.Sprint(now.Unix())}))
	for _, phone := range []string{person, caller} {
		w.must(phone, text("ciao"))
	}
	withdrawn := func(want bool) {
		t.Helper()
		states, err := w.c.ConsentStatuses(context.Background(), puntuale.Person{Names: []string{person}})
		if err != nil || (states[puntuale.PurposeMarketing].Change == puntuale.ConsentWithdraw) != want {
			t.Errorf("consent: %+v, %v", states, err)
		}
		if all, _, err := w.c.Blacklist(context.Background(), puntuale.Page{}); err != nil || len(all) != 0 {
			t.Errorf("the blacklist speaks of more than marketing: %+v, %v", all, err)
		}
	}
	stop, resume := w.peer.Prefers("101", person, "stop", now.Add(-time.Hour)), w.peer.Prefers("101", person, "resume", now.Add(-time.Minute))
	w.deliver(stop)
	withdrawn(true)
	w.deliver(stop)
	withdrawn(true)
	w.deliver(resume)
	withdrawn(false)
	w.deliver(stop) // Meta sends the same delivery again, and late
	withdrawn(false)
	// A failure with Meta's code 131050 also means that the person opted out.
	id, taken, token := w.stored(person)
	w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent})
	w.deliver(w.peer.Status(taken, "failed", now, 131050))
	withdrawn(true)
	if d := w.c.Detail(id); d.State != puntuale.Failed || italian(d.Response()) != "Il destinatario non vuole messaggi di marketing" || !strings.Contains(italian(d.Detail), "131050") || !strings.Contains(italian(d.Detail), taken.WAMID) {
		t.Errorf("message: %+v", d)
	}
	w.deliver(w.peer.Prefers("101", person, "resume", now))
	withdrawn(false)
}

// TestLateFailureHolds: a status with a failure pauses the number if the code requires a pause and the session is open.
// A failure that is too old does not pause the number.
func TestLateFailureHolds(t *testing.T) {
	t.Parallel()
	for code, state := range map[int]puntuale.LinkState{131042: puntuale.LinkLinked, 190: puntuale.LinkUnlinked} {
		w := newWorld(t, setup{})
		w.wrote(person)
		id, taken, token := w.stored(person)
		w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent})
		w.deliver(w.peer.Status(taken, "failed", w.clock.Now().Add(-2*time.Hour), code))
		if !w.conn.Online(w.session) {
			t.Error("an old story holds the number")
		}
		w.deliver(w.peer.Status(taken, "failed", w.clock.Now(), code))
		if w.conn.Online(w.session) || w.last().State != state {
			t.Errorf("code %d: online %v, %+v", code, w.conn.Online(w.session), w.last())
		}
	}
}

// TestForged: without the app's secret no delivery is accepted, and all such deliveries get the same answer. A body
// that is too large is refused with another status.
func TestForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	body := w.peer.Wrote("101", person, w.clock.Now())
	large := make([]byte, 3<<20+1)
	for name, test := range map[string]struct {
		path, signature string
		body            []byte
		want            int
	}{
		"another secret":   {w.webhook, graphtest.Signature("x", body), body, 401},
		"a changed body":   {w.webhook, graphtest.Signature(w.number.Secret, body), append(slices.Clone(body), ' '), 401},
		"re-serialised":    {w.webhook, graphtest.Signature(w.number.Secret, body), []byte(strings.ReplaceAll(string(body), `\u00ec`, "ì")), 401},
		"no signature":     {w.webhook, "", body, 401},
		"odd hex":          {w.webhook, "sha256=zz", body, 401},
		"no session":       {w.webhook + "9", graphtest.Signature("", body), body, 401},
		"another number's": {w.webhook, graphtest.Signature("secret102", body), body, 401},
		"too large":        {w.webhook, graphtest.Signature(w.number.Secret, large), large, 413},
		"as it should be":  {w.webhook, graphtest.Signature(w.number.Secret, body), body, 200},
	} {
		if got := w.peer.DeliverAs(test.path, test.signature, test.body); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	// New keys take effect within a second. After that the replaced keys are never accepted again.
	w.number.Secret = "new"
	if err := w.c.SetKeys(t.Context(), w.session, w.seal(w.session, w.number)); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Second)
	if got := w.peer.DeliverAs(w.webhook, graphtest.Signature("new", body), body); got != 200 {
		t.Errorf("with a new secret: %d", got)
	}
	if err := w.w.ForgetKeys(t.Context(), w.session); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Second)
	for _, secret := range []string{"new", ""} {
		if got := w.peer.DeliverAs(w.webhook, graphtest.Signature(secret, body), body); got != 401 {
			t.Errorf("without keys, by %q: %d", secret, got)
		}
	}
}

// TestWebhookUnkept: if a delivery could not be stored, Meta repeats it.
func TestWebhookUnkept(t *testing.T) {
	t.Parallel()
	fails := errors.New("the disk is full")
	var mu sync.Mutex
	w := newWorld(t, setup{config: func(c *official.Config) {
		take := c.Take
		c.Take = func(ctx context.Context, s puntuale.SessionID, in puntuale.InboundBatch) error {
			mu.Lock()
			defer mu.Unlock()
			if fails != nil {
				return fails
			}
			return take(ctx, s, in)
		}
	}})
	body := w.peer.Wrote("101", person, w.clock.Now())
	if got := w.peer.Deliver(w.webhook, "101", body); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d", got)
	}
	mu.Lock()
	fails = nil
	mu.Unlock()
	w.deliver(body)
	w.must(person, text("ciao"))
	r := httptest.NewRecorder()
	w.conn.NewWebhook().ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodPut, w.session.WebhookPath(), nil))
	if r.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", r.Code)
	}
}
