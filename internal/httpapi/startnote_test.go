package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
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

// TestLinksStay: the check of a sequence and its trial in the editor say if its links should be tracked, but the service has no
// address for them.
func TestLinksStay(t *testing.T) {
	t.Parallel()
	for public, warns := range map[string]bool{"": true, "https://wa.example.com": false} {
		t.Run(public, func(t *testing.T) {
			databases(t, options{sandbox: true, public: public}, func(t *testing.T, s *service) {
				a := s.newAccount("a@x", "full")
				client, _ := idsOf(t, a, a.Session)
				of, err := s.control.OfNetwork(t.Context(), client)
				if err != nil {
					t.Fatal(err)
				}
				on, off := true, false
				for i, c := range []struct {
					client bool
					own    *bool // of the sequence
					asks   bool
				}{{false, nil, false}, {false, &on, true}, {true, nil, true}, {true, &off, false}} {
					s.must(nil, "PATCH", "/api/settings", a.Key, fmt.Sprintf(`{"track_links":%t}`, c.client))
					member := ""
					if c.own != nil {
						member = fmt.Sprintf(`,"track_links":%t`, *c.own)
					}
					made := s.must(nil, "POST", "/api/sequences", a.Key, fmt.Sprintf(`{"name":"s%d"%s,"steps":[{"text":"Senza","timing":{"anchor":"start","offset":{"amount":0}}},
						{"text":"Vedi https://negozio.example/x","timing":{"anchor":"start","offset":{"amount":1,"unit":"days"}}}]}`, i, member))
					const warning = `"warnings":[{"step":1,"message":"I suoi link non si contano`
					if got := strings.Contains(made.body, warning); got != (warns && c.asks) {
						t.Errorf("client %t, sequence %q: %s", c.client, member, made.body)
					}
					at := puntuale.Timing{Anchor: puntuale.AnchorStart}
					trial, err := of.Rehearse(t.Context(), control.RehearsalCall{Sequence: control.NewSequence{Name: "s", TrackLinks: c.own, Steps: []puntuale.Step{{Text: "Senza", Timing: at}, {Text: "Vedi https://negozio.example/x", Timing: at}}}})
					if err != nil || len(trial.Faults) > 0 {
						t.Fatal(err, trial.Faults)
					}
					said := slices.ContainsFunc(trial.Warnings, func(w control.Warning) bool { return w.Step == 1 && w.Reason.Code == "sequence.links_stay" })
					if said != (warns && c.asks) {
						t.Errorf("client %t, trial of a sequence %q: %+v", c.client, member, trial.Warnings)
					}
				}
			})
		})
	}
}

// TestLinkClicked: the event about the first click of a message tells the message, and comes once.
func TestLinkClicked(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true, public: "https://app.example"}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		client, _ := idsOf(t, a, a.Session)
		s.must(nil, "GET", "/api/events", a.Key, "") // from now on there are events
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"track_links":true}`)
		var run started
		s.must(&run, "POST", "/api/messages", a.Key, `{"phone":"+393331234567","text":"Guarda https://negozio.example/x","reference":"ORD-1"}`)
		id, err := puntuale.ParseID[puntuale.MessageID](run.ID[0])
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.store.Tenant(client).Details(t.Context(), []puntuale.MessageID{id})
		if err != nil {
			t.Fatal(err)
		}
		step := puntuale.StepRef{RunRef: puntuale.RunRef{Client: client, ID: all[0].Run}}
		contents, err := s.store.Contents(t.Context(), []puntuale.StepRef{step})
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(contents[step].Content.Text, "https://app.example/r/")
		s.end(a, run.ID[0], "+393331234567", sent)
		link, address, err := s.store.Links.LinkOf(t.Context(), code)
		if err != nil || address != "https://negozio.example/x" {
			t.Fatal(contents[step].Content.Text, address, err)
		}
		for range 2 {
			s.clock.Advance(time.Minute)
			if _, err := s.store.Links.RecordClicks(t.Context(), s.clock.Now(), []puntuale.Click{{LinkRef: link, At: s.clock.Now()}}); err != nil {
				t.Fatal(err)
			}
		}
		s.number()
		body := s.must(nil, "GET", "/api/events?types=link.clicked", a.Key, "").body
		want := `"type":"link.clicked","timestamp":"2026-11-20T09:31:00.123456Z","data":{"message_id":` + run.ID[0] + `,"id_sessione":"` + a.Session +
			`","phone":"+393331234567","sequence":null,"campaign":null,"tipologia":"SINGLE","stato":"COMPLETED","reason":null,"reference":"ORD-1"}}]`
		if strings.Count(body, `"type"`) != 1 || !strings.Contains(body, want) {
			t.Errorf("%s, want one event with %s", body, want)
		}
	})
}

// TestBookingNotes: a change of a booking, its dry run, a start that makes a booking and a comparison of bookings name
// members that are probably misspelled. Members that are fields, or known members of a booking, are never named.
func TestBookingNotes(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBooked(t, s)
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sequences", b.Key, strings.ReplaceAll(visit, "{{nome}}", "{{nome|amica}}"))
		b.sequence = made.ID
		for i, c := range []struct{ body, want string }{
			{`{"sequence":"%s","phone":"3331234567","nome":"Anna","appuntamento":"20/02/2027 15:30"}`, ""},
			{`{"sequence":"%s","phone":"3331234567","Nome":"Anna","ordine":1,"appuntamento":"20/02/2027 15:30"}`, `"unused":["Nome"]`},
			{`{"sequence":"%s","phone":"3331234567","nmoe":"Anna","status":"open","as_of":7,"timezone":"Europe/Rome","appuntamento":"20/02/2027 15:30"}`, `"unused":["nmoe"]`},
			{`{"sequence":"%s","phone":"3331234567","nome":"Anna","Nome":"x","appuntamento":"20/02/2027 15:30"}`, ""},
		} {
			body := fmt.Sprintf(c.body, b.sequence)
			check := func(what, got string) {
				t.Helper()
				if strings.Contains(got, `"unused"`) != (c.want != "") || !strings.Contains(got, c.want) {
					t.Errorf("%s %s: %s, want %s", what, body, got, c.want)
				}
			}
			one, other := fmt.Sprintf("/api/bookings/%d", i), fmt.Sprintf("/api/bookings?reference=other/%d", i)
			check("dry run", s.must(nil, "PUT", one+"?dry_run=true", b.Key, body).body)
			check("change", s.must(nil, "PUT", one, b.Key, body).body)
			check("by query", s.must(nil, "PUT", other, b.Key, body).body)
			check("compare", s.must(nil, "POST", "/api/bookings/reconcile", b.Key,
				fmt.Sprintf(`{"start":"2027-02-20","end":"2027-02-20","as_of":9,"bookings":[{"reference":"list-%d",%s]}`, i, strings.Replace(body[1:], `"as_of":7,`, "", 1))).body)
			if strings.Contains(body, "as_of") { // no start has it
				continue
			}
			for range 2 {
				check("start", s.must(nil, "POST", "/api/start/"+b.sequence, b.Key, strings.Replace(body, `{"sequence"`, `{"was"`, 1), "Idempotency-Key", fmt.Sprint(i)).body)
			}
			check("dry start", s.must(nil, "POST", "/api/start/"+b.sequence+"?dry_run=true", b.Key, strings.Replace(body, `{"sequence"`, `{"was"`, 1)).body)
		}
		s.must(nil, "PUT", "/api/bookings/later", b.Key, `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Anna","appuntamento":"20/02/2027 15:30"}`)
		if got := s.must(nil, "PUT", "/api/bookings/later", b.Key, `{"Nome":"Bea"}`).body; !strings.Contains(got, `"unused":["Nome"]`) {
			t.Errorf("a correction of a stored field: %s", got)
		}
		if got := s.must(nil, "PUT", "/api/bookings/later", b.Key, `{"appuntamento":"21/02/2027 15:30"}`).body; strings.Contains(got, `"unused"`) || strings.Contains(got, `"warnings"`) || strings.Contains(got, `"blacklisted"`) {
			t.Errorf("a new date: %s", got)
		}
		s.must(nil, "POST", "/api/blacklist", b.Key, `{"phone":"3337654321"}`)
		for i, barred := range []bool{false, true} {
			path := fmt.Sprint("/api/bookings/gone", i)
			s.must(nil, "PUT", path, b.Key, `{"sequence":"`+b.sequence+`","phone":"`+[]string{"3331234567", "3337654321"}[i]+`","nome":"Anna","appuntamento":"20/02/2027 15:30"}`)
			for _, query := range []string{"?dry_run=true", ""} {
				if got := s.must(nil, "DELETE", path+query, b.Key, "").body; strings.Contains(got, `"blacklisted":true`) != barred || strings.Contains(got, `"warnings"`) {
					t.Errorf("DELETE %s%s: %s", path, query, got)
				}
			}
		}
		for i, c := range []struct{ body, warning, barred string }{
			{`"phone":"3337654321","appuntamento":"20/02/2027 15:30"`, "", `"blacklisted":true`},
			{`"phone":"3331234567","appuntamento":"20/02/2020 15:30"`, `"warnings":[{"step":1,"moment":"2020-02-20T14:30:00.000000Z"`, ""},
			{`"phone":"3331234567","appuntamento":"20/02/2020 15:30","status":"arrived"`, "", ""}, // a visit of the past
		} {
			body := `{"sequence":"` + b.sequence + `","nome":"Anna",` + c.body + `}`
			calls := []string{fmt.Sprintf("PUT /api/bookings/past%d?dry_run=true", i), fmt.Sprintf("PUT /api/bookings/past%d", i)}
			if !strings.Contains(body, "status") {
				calls = append(calls, "POST /api/start/"+b.sequence+"?dry_run=true", "POST /api/start/"+b.sequence)
			}
			for _, call := range calls {
				method, path, _ := strings.Cut(call, " ")
				got := s.must(nil, method, path, b.Key, body).body
				if strings.Contains(got, `"warnings"`) != (c.warning != "") || !strings.Contains(got, c.warning) || strings.Contains(got, `"blacklisted"`) != (c.barred != "") {
					t.Errorf("%s %s: %s", call, body, got)
				}
			}
		}
	})
}
