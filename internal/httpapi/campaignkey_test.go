package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// listed returns how many recipients a campaign's list really has.
func (s *service) listed(id string) int {
	s.t.Helper()
	return s.count("select count(*) from recipient r join campaign c on c.client_id = r.client_id and c.list_id = r.list_id where c.id = " + id)
}

// TestRefusedCampaignLeavesItsKeyFree: a refused creation stores nothing, and its Idempotency-Key can be used again.
// This is so in whatever step the call is refused: its recipients, its check or its start.
func TestRefusedCampaignLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		long := strings.Repeat("x", 5000)
		wide := make([]string, 201)
		for i := range wide {
			wide[i] = fmt.Sprintf(`"f%d":"x"`, i)
		}
		const good = `{"name":"Auguri","content":{"text":"Ciao {{nome}}"},"recipients":[{"phone":"3331234567","nome":"Anna"},{"phone":"3331234568","nome":"Bea"}]}`
		for what, c := range map[string]struct {
			query, body, before string
			status              int
		}{
			"a long value":      {"", strings.Replace(good, "Anna", long, 1), "", 422},
			"too many fields":   {"", strings.Replace(good, `"nome":"Anna"`, strings.Join(wide[:100], ",")+"},{"+strings.Join(wide[100:], ","), 1), "", 422},
			"no such tag":       {"", `{"name":"x","content":{"text":"Ciao"},"from":{"tags":["nessuno"]}}`, "", 422},
			"nobody to send to": {"?start=true", `{"name":"x","content":{"text":"Ciao"}}`, "", 409},
			"the daily cap":     {"?start=true", good[:len(good)-1] + `,"reference":"r"}`, "update client set cap = 0", 429},
		} {
			a := s.sending(strings.ReplaceAll(what, " ", "") + "@x")
			if c.before != "" {
				s.sql(c.before + " where id = " + a.ID)
			}
			for range 2 {
				if got := s.call("POST", "/api/campaigns"+c.query, a.Key, c.body, "Idempotency-Key", "k"); got.status != c.status {
					t.Fatalf("%s: %d %s", what, got.status, got.body)
				}
			}
			if n := s.count("select count(*) from campaign where client_id = " + a.ID); n != 0 {
				t.Errorf("%s left %d campaigns", what, n)
			}
			s.sql("update client set cap = null where id = " + a.ID)
			var made campaignOf
			s.must(&made, "POST", "/api/campaigns?start=true", a.Key, good, "Idempotency-Key", "k")
			if n := s.listed(made.ID); made.State != "running" || made.Counts["recipients"] != 2 || n != 2 {
				t.Errorf("after %s: %+v, %d rows", what, made, n)
			}
		}
	})
}

// TestRepeatFinishesCampaign: if the server stops between the creation of a campaign and its start, a repeat of the call
// checks and starts the campaign. If a person edited the campaign meanwhile, a repeat starts nothing.
func TestRepeatFinishesCampaign(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("finish@x")
		const body = `{"name":"Auguri","content":{"text":"Ciao"},"recipients":[{"phone":"3331234567"}]}`
		create := func(query string) (made campaignOf, again bool) {
			t.Helper()
			got := s.must(&made, "POST", "/api/campaigns"+query, a.Key, body, "Idempotency-Key", "k")
			return made, got.header.Get("Idempotent-Replayed") == "true"
		}
		first, again := create("?start=true")
		if first.State != "running" || again {
			t.Fatalf("first %+v, a repeat: %v", first, again)
		}
		// The server stopped before the check, during the check, and before the start.
		for _, left := range []string{"state = 0, checked = ''", "state = 1, checked = '', checked_at = 0", "state = 2"} {
			s.sql("update campaign set started_at = 0, frozen = '', " + left + " where id = " + first.ID)
			if made, again := create("?start=true"); made.ID != first.ID || made.State != "running" || !again {
				t.Errorf("after a stop with %s: %+v, a repeat: %v", left, made, again)
			}
		}
		if n := s.count("select count(*) from campaign where client_id = " + a.ID); n != 1 {
			t.Errorf("there are %d campaigns", n)
		}
		s.sql("update campaign set started_at = 0, frozen = '', state = 0, checked = '' where id = " + first.ID)
		if made, again := create(""); made.State != "draft" || !again {
			t.Errorf("a repeat that starts nothing: %+v, a repeat: %v", made, again)
		}
		s.must(nil, "PUT", "/api/campaigns/"+first.ID, a.Key, `{"name":"Auguri","content":{"text":"Ciao a tutti"}}`)
		if made, _ := create("?start=true"); made.State != "draft" {
			t.Errorf("a repeat started what a person had edited: %+v", made)
		}
	})
}

// TestCampaignCreatedTogether: equal calls at the same time create one campaign, with the whole list.
func TestCampaignCreatedTogether(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("together@x")
		const body = `{"name":"Auguri","content":{"text":"Ciao"},"recipients":[{"phone":"3331234567"},{"phone":"3331234568"}]}`
		answers := together(4, func(int) response {
			return s.call("POST", "/api/campaigns", a.Key, body, "Idempotency-Key", "k")
		})
		ids := map[string]bool{}
		for _, got := range answers {
			var made campaignOf
			if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.status != 200 || made.Counts["recipients"] != 2 || s.listed(made.ID) != 2 {
				t.Errorf("%d %s, %v", got.status, got.body, err)
			}
			ids[made.ID] = true
		}
		if len(ids) != 1 {
			t.Errorf("campaigns %v", ids)
		}
	})
}

// together makes n calls at the same time.
func together(n int, call func(i int) response) []response {
	var calls sync.WaitGroup
	begin, answers := make(chan struct{}), make([]response, n)
	for i := range answers {
		calls.Go(func() {
			<-begin
			answers[i] = call(i)
		})
	}
	close(begin)
	calls.Wait()
	return answers
}

// TestRecipientsAddedTogether: of recipients that several calls add at the same time, none is lost that a call answered
// with 200. This is so for the first recipients of a campaign, too.
func TestRecipientsAddedTogether(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("added@x")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Auguri","content":{"text":"Ciao"}}`)
		path := "/api/campaigns/" + made.ID
		want := 0
		for round := range 3 {
			for _, got := range together(4, func(i int) response {
				return s.call("POST", path+"/recipients", a.Key, fmt.Sprintf(`{"recipients":[{"phone":"33300000%d%d","campo%d":"x"}]}`, round, i, i))
			}) {
				if got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
				want++
			}
			if n := s.listed(made.ID); n != want {
				t.Fatalf("after round %d the list has %d recipients, want %d", round, n, want)
			}
		}
		// A new mapping copies the list. What is added meanwhile must be in the copy, or the mapping is refused.
		for round := range 3 {
			for i, got := range together(3, func(i int) response {
				if i == 0 {
					return s.call("POST", path+"/columns", a.Key, `{"columns":"phone:phone,nome:campo1"}`)
				}
				return s.call("POST", path+"/recipients", a.Key, fmt.Sprintf(`{"recipients":[{"phone":"33310000%d%d"}]}`, round, i))
			}) {
				if i > 0 {
					want++
				}
				if got.status != 200 && (i > 0 || got.status != 409) {
					t.Errorf("call %d: %d %s", i, got.status, got.body)
				}
			}
			if n := s.listed(made.ID); n != want {
				t.Fatalf("beside mapping %d the list has %d recipients, want %d", round, n, want)
			}
		}
	})
}

// TestResendAfterPauseIsValidAsBefore: a pause extends the deadline of a message, but not of its re-send.
func TestResendAfterPauseIsValidAsBefore(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("valid@x")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"Prova","content":{"text":"Ciao"},"canary":0,"recipients":[{"phone":"3330000001"},{"phone":"3330000002"}]}`, "Idempotency-Key", "k")
		ids, path := s.feedAll(a, made.ID), "/api/campaigns/"+made.ID
		s.must(nil, "POST", path+"/pause", a.Key, "")
		s.clock.Advance(72 * time.Hour)
		s.must(nil, "POST", path+"/resume", a.Key, "")
		s.feed(a, made.ID, func(c puntuale.Campaign) bool { return c.State == puntuale.CampaignRunning })
		validity := func(id any) int {
			return s.count(fmt.Sprintf("select (valid_until - due_at) / 3600000000 from message where resent_from = %v", id))
		}
		s.must(nil, "POST", "/api/messages/reschedule/all", a.Key, fmt.Sprintf(`{"id":[%d]}`, ids[0]))
		s.end(a, fmt.Sprint(ids[1]), "+393330000002", refused)
		s.must(nil, "POST", path+"/retry", a.Key, "")
		for _, id := range ids {
			if n := validity(id); n != 24 {
				t.Errorf("a message that was sent again after a pause of 72 hours is valid for %d hours", n)
			}
		}
	})
}
