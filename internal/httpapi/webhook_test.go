package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control/webhook"
	"puntuale/internal/delivery"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
)

// newWebhooks makes the webhooks of a service. If plain is true, receivers are on this machine and use http.
func newWebhooks(tenants puntuale.TenantStore, vault *auth.Vault, c clock.Clock, plain bool) *webhook.Webhooks {
	return newWebhooksWith(inboxes{}, tenants, vault, c, plain)
}

// newWebhooksWith makes webhooks, with links to the given Chatwoot server.
func newWebhooksWith(chatwoot puntuale.ChatwootCaller, tenants puntuale.TenantStore, vault *auth.Vault, c clock.Clock, plain bool) *webhook.Webhooks {
	cfg := delivery.CallerConfig{Clock: c, Within: 5 * time.Second, Unseal: func(w *puntuale.Webhook, sealed []byte) ([]byte, error) {
		return vault.Open(puntuale.SealedWebhook, w.SealPlace(), sealed)
	}}
	if plain {
		cfg.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	return webhook.New(webhook.Config{
		Tenants: tenants, Vault: vault, Clock: c, Caller: delivery.NewCaller(cfg), Chatwoot: chatwoot, Public: "https://puntuale.example",
	})
}

// inboxes replaces all Chatwoot servers. Package chatwoot tests the calls themselves with its own server.
type inboxes struct{ puntuale.ChatwootCaller }

func (inboxes) MakeInbox(_ context.Context, _ puntuale.ChatwootLink, token, _, _ string) (int64, error) {
	if token == "wrong" {
		return 0, puntuale.Invalid(puntuale.Fault{Location: "body.api_access_token", Code: puntuale.FaultChatwootToken})
	}
	return 7, nil
}

// TestChatwootCalls: each fault is reported at its location. A link that Chatwoot refuses stays unfinished. The token
// is never shown.
func TestChatwootCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, options{internet: true})
	a := s.newAccount("chatwoot@x", "full")
	const one = "/api/sessions/1/chatwoot"
	s.refusedAt(422, "PUT", one, a.Key, `{"base_url":"https://x.example:99999","api_access_token":"t","account_id":"1"}`, "body.base_url")
	s.refusedAt(422, "PUT", one, a.Key, `{"base_url":"ftp://x","account_id":"x","inbox_id":"0"}`, "body.base_url", "body.api_access_token", "body.account_id", "body.inbox_id")
	s.refusedAt(422, "PUT", one, a.Key, `{"base_url":"http://chat.example","api_access_token":"t","account_id":"3"}`, "body.base_url")
	s.refusedAt(422, "PUT", one, a.Key, `{"base_url":"https://chat.example","api_access_token":"t","account_id":"3","acount":1}`, "body.acount")
	s.refusedAt(422, "PUT", one, a.Key, `{"base_url":"https://chat.example","api_access_token":"wrong","account_id":"3"}`, "body.api_access_token")
	if got := s.must(nil, "GET", one, a.Key, "").body; !strings.Contains(got, `"inbox_id":null,"active":false`) {
		t.Error(got)
	}
	made := s.must(nil, "PUT", one, a.Key, `{"base_url":"https://chat.example/","api_access_token":"secret-token","account_id":3}`).body
	if want := `{"id_sessione":"1","base_url":"https://chat.example","account_id":"3","inbox_id":"7","active":true,"reason":null,"last_success_at":null,"failing_since":null}`; strings.TrimSpace(made) != want {
		t.Errorf("got %s, want %s", made, want)
	}
	if got := s.must(nil, "GET", one, a.Key, "").body; got != made || strings.Contains(got, "secret-token") {
		t.Error(got)
	}
	s.must(nil, "DELETE", one, a.Key, "")
	if got := s.call("DELETE", one, a.Key, ""); got.status != 404 {
		t.Errorf("deleted again: %d", got.status)
	}
}

// slowInboxes is a Chatwoot server that answers when the test allows it.
type slowInboxes struct {
	puntuale.ChatwootCaller
	asked, answer chan struct{}
}

func (s slowInboxes) MakeInbox(ctx context.Context, _ puntuale.ChatwootLink, _, _, _ string) (int64, error) {
	close(s.asked)
	select {
	case <-s.answer:
		return 7, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestSlowChatwootHoldsNoSeat: while a call waits for Chatwoot, other calls can use its seat. The call succeeds even
// though it waits longer than any call may wait for a seat.
func TestSlowChatwootHoldsNoSeat(t *testing.T) {
	t.Parallel()
	s := newService(t, options{internet: true})
	a := s.newAccount("chatwoot@x", "full")
	slow := slowInboxes{asked: make(chan struct{}), answer: make(chan struct{})}
	const patience = 50 * time.Millisecond
	h, err := httpapi.New(httpapi.Config{
		Control: s.control, Accounts: s.accounts, Webhooks: newWebhooksWith(slow, s.tenants, testVault(t), s.clock, false), Now: s.clock.Now,
		Logger: slog.New(slog.DiscardHandler), Admit: admission.Limits{Gate: admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: patience, Now: time.Now})},
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, target, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+a.Key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	linked := make(chan int, 1)
	go func() {
		linked <- call("PUT", "/api/sessions/1/chatwoot", `{"base_url":"https://chat.example","api_access_token":"t","account_id":"3"}`)
	}()
	select {
	case <-slow.asked:
	case code := <-linked:
		t.Fatalf("Chatwoot was not asked: %d", code)
	}
	asked := time.Now()
	if code := call("GET", "/api/sequences", ""); code != http.StatusOK {
		t.Errorf("another call meanwhile: %d", code)
	}
	<-time.After(patience - time.Since(asked))
	close(slow.answer)
	if code := <-linked; code != http.StatusOK {
		t.Errorf("the link: %d", code)
	}
}

type issuedWebhook struct {
	ID, Secret, URL, Description string
	Types                        []string
	Active                       bool
}

// TestWebhooks creates, lists, changes and deletes webhooks of a client and of a partner. Neither of them sees the
// other's webhooks.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true, internet: true}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		var mine, wide issuedWebhook
		s.must(&mine, "POST", "/api/webhooks", a.Key, `{"url":"https://crm.example/hook","types":["message.sent","message.failed"],"description":"CRM"}`)
		if !strings.HasPrefix(mine.Secret, "whsec_") || len(mine.Types) != 2 || !mine.Active || mine.URL != "https://crm.example/hook" {
			t.Fatalf("made: %+v", mine)
		}
		s.must(&wide, "POST", "/api/webhooks", s.partner, `{"url":"https://crm.example/all"}`)
		if len(wide.Types) != len(puntuale.AllEvents.Types()) {
			t.Errorf("without types: %v", wide.Types)
		}
		for key, want := range map[string]string{a.Key: mine.ID, s.partner: wide.ID} {
			list := s.must(nil, "GET", "/api/webhooks", key, "").body
			if !strings.Contains(list, `"id":"`+want+`"`) || strings.Count(list, `"url"`) != 1 || strings.Contains(list, "whsec_") {
				t.Errorf("listed: %s", list)
			}
		}
		if list := s.must(nil, "GET", "/api/webhooks", b.Key, "").body; list != `{"webhooks":[]}` {
			t.Errorf("another client's: %s", list)
		}
		for _, other := range []string{b.Key, s.partner} {
			for _, call := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/test"}, {"POST", "/rotate"}, {"GET", "/deliveries"}, {"POST", "/replay"}, {"GET", "/deliveries/1"}} {
				body := ""
				if call[0] == "PATCH" {
					body = `{"active":false}`
				}
				if got := s.call(call[0], "/api/webhooks/"+mine.ID+call[1], other, body); got.status != http.StatusNotFound {
					t.Errorf("%s %s by another: %d %s", call[0], call[1], got.status, got.body)
				}
			}
		}
		changed := s.must(nil, "PATCH", "/api/webhooks/"+mine.ID, a.Key, `{"types":["reply.received"],"active":false,"id_sessione":"`+a.Session+`"}`).body
		if !strings.Contains(changed, `"types":["reply.received"]`) || !strings.Contains(changed, `"active":false`) || !strings.Contains(changed, `"id_sessione":"`+a.Session+`"`) || !strings.Contains(changed, `"description":"CRM"`) {
			t.Errorf("changed: %s", changed)
		}
		var rotated struct {
			Secret string
			Until  string `json:"secret_before_until"`
		}
		s.must(&rotated, "POST", "/api/webhooks/"+mine.ID+"/rotate", a.Key, "")
		if rotated.Secret == mine.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") || rotated.Until != "2026-11-21T09:30:00.123456Z" {
			t.Errorf("rotated: %+v", rotated)
		}
		s.must(nil, "DELETE", "/api/webhooks/"+mine.ID, a.Key, "")
		if got := s.call("GET", "/api/webhooks/"+mine.ID, a.Key, ""); got.status != http.StatusNotFound {
			t.Errorf("deleted: %d", got.status)
		}

		const path = "/api/webhooks"
		for body, at := range map[string]string{
			`{}`:                            "body.url",
			`{"url":"https://10.1.2.3/"}`:   "body.url",
			`{"url":"https://LOCALHOST./"}`: "body.url",
			`{"url":"https://[fd00::1]/"}`:  "body.url",
			`{"url":"http://1.1.1.1/"}`:     "body.url",
			`{"url":"ftp://x.example/"}`:    "body.url",
			`{"url":"http://x.example/"}`:   "body.url",
			`{"url":"https://u:p@x.it/"}`:   "body.url",
			`{"url":"https://x.example/` + strings.Repeat("a", 2048) + `"}`: "body.url",
			`{"url":"https://x.example:65536/"}`:                            "body.url", `{"url":"https://x.example:0/"}`: "body.url",
			`{"url":"https://x.example/","types":["message.flew"]}`:                         "body.types[0]",
			`{"url":"https://x.example/","types":[]}`:                                       "body.types",
			`{"url":"https://x.example/","id_sessione":"99"}`:                               "body.id_sessione",
			`{"url":"https://x.example/","description":"` + strings.Repeat("d", 201) + `"}`: "body.description",
			`{"url":"https://x.example/","secret":"mine"}`:                                  "body.secret",
		} {
			s.refusedAt(http.StatusUnprocessableEntity, "POST", path, a.Key, body, at)
		}
		s.refusedAt(http.StatusUnprocessableEntity, "POST", path, s.partner, `{"url":"https://x.example/","id_sessione":"`+a.Session+`"}`, "body.id_sessione")
		if strings.Contains(s.log.String(), "crm.example") {
			t.Error("the log has an address")
		}
		for i := range puntuale.MaxWebhooks {
			s.must(nil, "POST", path, b.Key, fmt.Sprintf(`{"url":"https://x.example/%d"}`, i))
		}
		if got := s.call("POST", path, b.Key, `{"url":"https://x.example/one-more"}`); got.status == http.StatusOK {
			t.Errorf("beyond the quota: %s", got.body)
		}
	})
}

// TestWebhookOnce: a repeat with the same Idempotency-Key gets the same secret, and creates no second webhook.
func TestWebhookOnce(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		const body = `{"url":"https://crm.example/hook"}`
		first := s.must(nil, "POST", "/api/webhooks", a.Key, body, "Idempotency-Key", "k1")
		again := s.must(nil, "POST", "/api/webhooks", a.Key, body, "Idempotency-Key", "k1")
		if first.body != again.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s\n%s", first.body, again.body)
		}
		if list := s.must(nil, "GET", "/api/webhooks", a.Key, "").body; strings.Count(list, `"url"`) != 1 {
			t.Errorf("made twice: %s", list)
		}
	})
}

// TestWebhookTest: the test event arrives with a signature. For some time after a rotation, the event also has a
// signature with the old secret. The answer contains the receiver's answer.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		var secrets []string
		verified := make(chan string, 8)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for _, secret := range secrets {
				hook, err := standardwebhooks.NewWebhook(secret)
				if err == nil {
					err = hook.VerifyIgnoringTimestamp(body, r.Header)
				}
				if err != nil {
					verified <- err.Error()
				}
			}
			verified <- string(body)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "thank you")
		}))
		defer receiver.Close()
		var made issuedWebhook
		s.must(&made, "POST", "/api/webhooks", a.Key, `{"url":"`+receiver.URL+`/hook"}`)
		secrets = []string{made.Secret}
		got := s.must(nil, "POST", "/api/webhooks/"+made.ID+"/test", a.Key, "").body
		if !strings.HasPrefix(got, `{"delivered":true,"status":202,`) || !strings.Contains(got, `"answer":"thank you"`) {
			t.Errorf("the answer: %s", got)
		}
		if body := <-verified; !strings.HasPrefix(body, `{"type":"webhook.test",`) {
			t.Errorf("the receiver got %s", body)
		}
		var rotated issuedWebhook
		s.must(&rotated, "POST", "/api/webhooks/"+made.ID+"/rotate", a.Key, "")
		secrets = append(secrets, rotated.Secret)
		s.must(nil, "POST", "/api/webhooks/"+made.ID+"/test", a.Key, "")
		if body := <-verified; !strings.HasPrefix(body, `{"type":"webhook.test",`) {
			t.Errorf("after a rotation: %s", body)
		}
		receiver.Close()
		if got := s.must(nil, "POST", "/api/webhooks/"+made.ID+"/test", a.Key, "").body; !strings.HasPrefix(got, `{"delivered":false,"status":null,`) || !strings.Contains(got, `"answer":null,"error":"`) {
			t.Errorf("nobody listens: %s", got)
		}
	})
}

// TestReplay: a call that delivers events again chooses them by number, by period and by failure. If the call has
// several of these, an event must meet all of them.
func TestReplay(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true, internet: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		var hook issuedWebhook
		s.must(&hook, "POST", "/api/webhooks", a.Key, `{"url":"https://crm.example/hook"}`)
		id := s.newSequence(a.Key, stepDate)
		for _, phone := range []string{"3331234567", "3331234568"} {
			s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"`+phone+`","quando":"2026-12-01T10:00"}`)
		}
		s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
		s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234568"}`)
		s.number()
		var feed struct {
			Events []struct{ Seq int64 }
		}
		s.must(&feed, "GET", "/api/events", a.Key, "")
		if len(feed.Events) != 2 {
			t.Fatalf("events: %+v", feed)
		}
		now := s.clock.Now()
		seq, before, after := feed.Events[0].Seq, now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339)
		for body, want := range map[string]int{
			`{}`: 2, `{"failed":true}`: 0, fmt.Sprintf(`{"seqs":[%d]}`, seq): 1, `{"seqs":[]}`: 0,
			`{"from":"` + before + `"}`: 2, `{"from":"` + after + `"}`: 0, `{"to":"` + before + `"}`: 0,
			fmt.Sprintf(`{"seqs":[%d],"from":%q,"to":%q}`, seq, before, after): 1,
			fmt.Sprintf(`{"seqs":[%d],"from":%q}`, seq, after):                 0,
			fmt.Sprintf(`{"seqs":[%d],"to":%q}`, seq, before):                  0,
			fmt.Sprintf(`{"seqs":[%d],"failed":true}`, seq):                    0,
		} {
			var got struct{ Deliveries int }
			s.must(&got, "POST", "/api/webhooks/"+hook.ID+"/replay", a.Key, body)
			if got.Deliveries != want {
				t.Errorf("%s: %d deliveries, want %d", body, got.Deliveries, want)
			}
		}
	})
}

// TestFeed reads a client's events by number. A reader can wait for the first event.
func TestFeed(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		type feed struct {
			Events []struct {
				Seq  int64
				Type string
				Data struct {
					Message   int64 `json:"message_id"`
					Phone     string
					Reference string
					State     string `json:"stato"`
				}
			}
			Next int64 `json:"next_after"`
		}
		var got feed
		for _, key := range []string{a.Key, b.Key} { // a feed gets events only after its first read
			if body := s.must(nil, "GET", "/api/events", key, "").body; body != `{"events":[],"next_after":0}` {
				t.Errorf("an empty feed: %s", body)
			}
		}
		id := s.newSequence(a.Key, stepDate)
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","quando":"2026-12-01T10:00","reference":"booking-1"}`)
		s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
		s.number()
		s.must(&got, "GET", "/api/events?wait=30", a.Key, "")
		if len(got.Events) != 1 || got.Events[0].Type != "message.cancelled" || got.Events[0].Data.Phone != "+393331234567" || got.Events[0].Data.Reference != "booking-1" ||
			got.Events[0].Data.State != "CANCELLED" || fmt.Sprint(got.Events[0].Data.Message) != run.ID[0] || got.Next != got.Events[0].Seq {
			t.Fatalf("the feed: %+v", got)
		}
		if body := s.must(nil, "GET", fmt.Sprint("/api/events?after=", got.Next), a.Key, "").body; !strings.HasPrefix(body, `{"events":[],`) {
			t.Errorf("after the last: %s", body)
		}
		if body := s.must(nil, "GET", "/api/events?types=message.sent,reply.received", a.Key, "").body; !strings.HasPrefix(body, `{"events":[],`) {
			t.Errorf("other types: %s", body)
		}
		if body := s.must(nil, "GET", "/api/events", b.Key, "").body; !strings.HasPrefix(body, `{"events":[],`) {
			t.Errorf("another client's: %s", body)
		}
		for query, at := range map[string]string{"after=-1": "query.after", "after=x": "query.after", "types=x": "query.types", "wait=31": "query.wait", "limit=0": "query.limit", "limit=1001": "query.limit", "since=1": "query.since"} {
			s.refusedAt(http.StatusUnprocessableEntity, "GET", "/api/events?"+query, a.Key, "", at)
		}
		s.refusedAt(http.StatusForbidden, "GET", "/api/events", s.partner, "")
	})
}

// number gives events their numbers, as a node does.
func (s *service) number() {
	s.t.Helper()
	if _, err := s.outbox.NumberEvents(s.t.Context(), s.clock.Now()); err != nil {
		s.t.Fatal(err)
	}
}
