package httpapi_test

import (
	"encoding/json"
	"testing"

	"puntuale"
	"puntuale/internal/control"
)

// TestSuspendedAnswer: an agent's message from Chatwoot is refused while the client is suspended, like every call.
func TestSuspendedAnswer(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("suspended@x", "full")
		answer := func() error {
			id, _ := idsOf(t, a, a.Session)
			c, err := s.control.OfNetwork(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Answer(t.Context(), control.SingleCall{Phone: "+393331234567", Fields: map[string]json.RawMessage{"text": json.RawMessage(`"Ciao"`)}})
			return err
		}
		if err := answer(); err != nil {
			t.Error(err)
		}
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"suspended":true}`)
		if err := answer(); puntuale.CodeOf(err) != puntuale.CodeForbidden {
			t.Errorf("suspended: %v", err)
		}
	})
}

// TestPushAddress: a push service has a full name. Another address would be in the operator's network.
func TestPushAddress(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("push@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", a.Key, `{"name":"Telefoni","connection_type":"Send_app","sandbox":false,"device":{}}`)
		token := s.linkDevice(a.Key, made.ID, "Tel").Token
		put := func(endpoint string) response {
			return s.call("PUT", "/device/push", token, `{"endpoint":"`+endpoint+pushTarget[len(`{"endpoint":"https://push.example.com/1`):])
		}
		for _, endpoint := range []string{"https://127.0.0.1/x", "https://2130706433/x", "https://127.1/x", "https://127.0.0.1./x", "https://[::1]/x", "https://localhost/x", "https://db/x", "https://0x7f.0x1/x"} {
			if got := put(endpoint); got.status != 422 {
				t.Errorf("%s: %d %s", endpoint, got.status, got.body)
			}
		}
		if got := put("https://fcm.googleapis.com/fcm/send/1"); got.status != 200 {
			t.Errorf("a push service: %d %s", got.status, got.body)
		}
	})
}
