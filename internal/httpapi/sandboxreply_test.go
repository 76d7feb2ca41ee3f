package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"puntuale"
)

// TestSandboxReply: a simulated phone replies in the same way as a person in a real network. The same reply is stored
// only once.
func TestSandboxReply(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		real := s.officialSession(a.Key)
		client, _ := idsOf(t, a, real)
		replies := func() []puntuale.Reply {
			t.Helper()
			all, _, err := s.owner.store.Tenant(client).Replies(t.Context(), puntuale.ReplyFilter{}, puntuale.Page{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"quotas":{"sessions":20}}`)
		if _, err := s.owner.store.Tenant(client).UpdateSettings(t.Context(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
			t.Fatal(err)
		}
		type answer struct {
			Phone     string
			Session   string `json:"id_sessione"`
			NetworkID string `json:"network_id"`
		}
		const path = "/api/sandbox/replies"
		var first, again answer
		s.must(&first, "POST", path, a.Key, `{"phone":"333 123 4567","text":"Sì, a domani","network_id":"n1"}`)
		s.must(&again, "POST", path, a.Key, `{"phone":"333 123 4567","text":"un altro testo","network_id":"n1"}`)
		if first != again || first.Phone != "+393331234567" || first.NetworkID != "n1" || first.Session == "" || first.Session == real {
			t.Errorf("%+v, then %+v", first, again)
		}
		all := replies()
		if len(all) != 1 || all[0].Text != "Sì, a domani" || all[0].Phone != first.Phone || all[0].Session.String() != first.Session || all[0].NetworkID != "n1" || all[0].Kind != puntuale.ReplyText || all[0].Own {
			t.Errorf("kept %+v", all)
		}
		// An idempotency key can replace the id. Without an id and a key, each reply is a new message.
		for _, want := range []int{2, 2} {
			s.must(nil, "POST", path, a.Key, `{"phone":"3331234567","text":"con chiave"}`, "Idempotency-Key", "k1")
			if n := len(replies()); n != want {
				t.Errorf("%d replies, want %d", n, want)
			}
		}
		for range 2 {
			s.must(nil, "POST", path, a.Key, `{"phone":3331234567,"text":"ancora","id_sessione":"`+first.Session+`"}`)
		}
		if n := len(replies()); n != 4 {
			t.Errorf("%d replies, want 4", n)
		}
		for body, at := range map[string][]string{
			`{}`: {"body.phone", "body.text"},
			`{"phone":"abc","text":" ","network_id":"` + strings.Repeat("n", 256) + `"}`:              {"body.phone", "body.text", "body.network_id"},
			`{"phone":"3331234567","text":"x","id_sessione":"` + real + `"}`:                          {"body.id_sessione"},
			`{"phone":"3331234567","text":"x","id_sessione":"999999"}`:                                {"body.id_sessione"},
			`{"phone":"123456-789@g.us","text":"x"}`:                                                  {"body.phone"},
			fmt.Sprintf(`{"phone":"3331234567","text":%q}`, strings.Repeat("è", puntuale.MaxReply+1)): {"body.text"},
			`{"phone":"3331234567","text":"a\u0000b"}`:                                                {"body.text"},
		} {
			s.refusedAt(422, "POST", path, a.Key, body, at...)
		}
		if n := len(replies()); n != 4 {
			t.Errorf("%d replies, want 4", n)
		}
		s.must(nil, "POST", path, a.Key, fmt.Sprintf(`{"phone":"3331234567","text":%q}`, strings.Repeat("è", puntuale.MaxReply)))
		if n := s.used(a); n != 0 {
			t.Errorf("%d calls were counted", n)
		}
	})
}
