package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/httpkit"
)

// A page of sequences ends early if its rows are long. All pages together contain all sequences.
func TestLongSequencesArePaged(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		step := `{"text":"` + strings.Repeat("x", puntuale.MaxText) + `","timing":{"anchor":"start","offset":{"amount":0}}}`
		long := strings.TrimSuffix(strings.Repeat(step+",", puntuale.MaxSteps), ",")
		s.newSequence(key, long)
		const all = 25 // more sequences than one page contains; they are copied in the database, because creating each by a call would take seconds
		for n := 1; n < all; n++ {
			if _, err := s.db.SQL.Exec(fmt.Sprintf(`insert into sequence (client_id, id, name, if_running, steps, created_at, updated_at)
				select client_id, id + %d, name, if_running, steps, created_at, updated_at from sequence order by id limit 1`, n)); err != nil {
				t.Fatal(err)
			}
		}
		type page struct {
			Sequences []struct {
				ID string `json:"id"`
			} `json:"sequences"`
			Next string `json:"next_cursor"`
		}
		seen, pages := map[string]bool{}, 0
		for cursor := ""; ; pages++ {
			var p page
			a := s.must(&p, "GET", "/api/sequences?limit=1000&cursor="+cursor, key, "")
			if len(a.body) > 6<<20 {
				t.Errorf("page %d has %d bytes", pages, len(a.body))
			}
			for _, q := range p.Sequences {
				seen[q.ID] = true
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if len(seen) != all || pages == 0 {
			t.Errorf("%d sequences on %d pages", len(seen), pages+1)
		}
	})
}

// An array that is far too long is refused before its entries are checked. The refusal contains one fault for the
// length, and none for the entries.
func TestLongArraysAreRefused(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		const at = `"timing":{"anchor":"start","offset":{"amount":0}`
		many := func(value string, n int) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }
		for name, c := range map[string]struct {
			body   string
			status int
			says   string
		}{
			"steps":           {`{"name":"x","steps":[` + many("{}", 51) + `]}`, 422, "holds 51 steps, of at most 50"},
			"very many steps": {`{"name":"x","steps":[` + many("{}", 300_000) + `]}`, 400, fmt.Sprintf("holds more than %d values", httpkit.MaxValues)},
			"weekdays":        {`{"name":"x","steps":[{"text":"x",` + at + `,"window":{"weekdays":[` + many("1", 9_000) + `]}}}]}`, 422, "holds 9000 days, of at most 7"},
			"a weekday twice": {`{"name":"x","steps":[{"text":"x",` + at + `,"window":{"weekdays":[1,2,1]}}}]}`, 422, "names a day twice"},
			"fields":          {`{"name":"x","steps":[` + many(`{"text":"%s",`+at+`}}`, 3) + `]}`, 422, "name 1500 fields, of at most 1000"},
		} {
			body := c.body
			if name == "fields" {
				texts := make([]any, 3)
				for i := range texts {
					var b strings.Builder
					for n := range 500 {
						fmt.Fprintf(&b, "{{f%d_%d}}", i, n)
					}
					texts[i] = b.String()
				}
				body = fmt.Sprintf(body, texts...)
			}
			a := s.call(http.MethodPost, "/api/sequences", key, body)
			if a.status != c.status || strings.Count(a.body, `"message"`) != 1 || !strings.Contains(a.body, c.says) {
				t.Errorf("%s: %d %.300s", name, a.status, a.body)
			}
		}
	})
}
