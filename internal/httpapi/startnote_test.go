package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestStartNotes: the answers of a start, of its repeat and of a dry run say that the person is on the blacklist, that
// a member of the body is probably misspelled, and that a date has passed. A good start has none of these members.
func TestStartNotes(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("notes@x", "full")
		sequence := s.newSequence(a.Key, `{"text":"Confermato: {{appuntamento}}, {{nome|amico}}{{luogo|}}","timing":{"anchor":"start","offset":{"amount":1,"unit":"minutes","direction":"after"}}},
 {"text":"A domani","timing":{"anchor":"appuntamento","offset":{"amount":1,"unit":"days","direction":"before"}}},
 {"text":"Com'è andata?","timing":{"anchor":"appuntamento","offset":{"amount":2,"unit":"days","direction":"after"}}}`)
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3330000009"}`)
		const note = `"warnings":[{"step":1,"moment":"2020-01-20T14:30:00.000000Z","reason":"La data «appuntamento» è già passata"}]`
		for _, c := range []struct{ body, want string }{
			{`{"phone":"3331234567","nome":"Anna","appuntamento":"20/01/2027 15:30"}`, ""},
			{`{"phone":"3330000009","nome":"Anna","appuntamento":"20/01/2027 15:30"}`, `"blacklisted":true`},
			{`{"phone":"+39 333 000 0009","nome":"Anna","appuntamento":"20/01/2020 15:30"}`, note + `,"blacklisted":true`},
			{`{"phone":"3331234567","nome":"Anna","appuntamento":"20/01/2020 15:30"}`, note},
			{`{"phone":"3331234567","nome":"Anna","appuntamento":"19/11/2026 15:30"}`, ""}, // the last message leaves in time
			{`{"phone":"3331234567","Nome":"Anna","lugo":"x","ordine":1,"appuntamento":"20/01/2027 15:30"}`, `"unused":["Nome","lugo"]`},
			{`{"phone":"3331234567","nmoe":"Anna","l-uogo":"x","appuntamento":"20/01/2027 15:30"}`, `"unused":["l-uogo","nmoe"]`},
			{`{"phone":"3331234567","nome":"Anna","Nome":"x","appuntamento":"20/01/2027 15:30"}`, ""}, // nothing is left out that is near
		} {
			for _, target := range []string{"?dry_run=true", "", ""} {
				got := s.must(nil, "POST", "/api/start/"+sequence+target, a.Key, c.body, "Idempotency-Key", c.body[:min(200, len(c.body))])
				for _, member := range []string{`"warnings"`, `"unused"`, `"blacklisted"`} {
					if strings.Contains(got.body, member) != strings.Contains(c.want, member) {
						t.Errorf("%s %s: %s", target, c.body, got.body)
					}
				}
				if !strings.Contains(got.body, c.want) {
					t.Errorf("%s %s: %s, want %s", target, c.body, got.body, c.want)
				}
			}
		}
		if got := s.must(nil, "POST", "/api/messages", a.Key, `{"phone":"3330000009","text":"Ciao"}`); !strings.Contains(got.body, `"blacklisted":true`) {
			t.Errorf("a single message: %s", got.body)
		}
	})
}

// TestLinksStay: the check of a sequence says if its links should be tracked, but the service has no address for them.
func TestLinksStay(t *testing.T) {
	t.Parallel()
	for public, warns := range map[string]bool{"": true, "https://wa.example.com": false} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			s := newService(t, options{sandbox: true, public: public})
			a := s.newAccount("a@x", "full")
			for i, c := range []struct {
				client bool
				member string // of the sequence
				asks   bool
			}{{false, "", false}, {false, `,"track_links":true`, true}, {true, "", true}, {true, `,"track_links":false`, false}} {
				s.must(nil, "PATCH", "/api/settings", a.Key, fmt.Sprintf(`{"track_links":%t}`, c.client))
				made := s.must(nil, "POST", "/api/sequences", a.Key, fmt.Sprintf(`{"name":"s%d"%s,"steps":[{"text":"Senza","timing":{"anchor":"start","offset":{"amount":0}}},
					{"text":"Vedi https://negozio.example/x","timing":{"anchor":"start","offset":{"amount":1,"unit":"days"}}}]}`, i, c.member))
				const warning = `"warnings":[{"step":1,"message":"I suoi link non si contano`
				if got := strings.Contains(made.body, warning); got != (warns && c.asks) {
					t.Errorf("client %t, sequence %q: %s", c.client, c.member, made.body)
				}
			}
		})
	}
}
