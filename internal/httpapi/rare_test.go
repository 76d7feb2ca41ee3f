package httpapi_test

import (
	"net/url"
	"testing"
	"time"

	"puntuale/internal/control"
)

// TestRareState: to find messages in a rare state, the server reads a bounded number of runs for one page. Then the
// page ends, even if it is empty. It contains the cursor of the next page.
func TestRareState(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		var run started
		s.must(&run, "POST", "/api/start/"+s.newSequence(a.Key, stepLater), a.Key, `{"phone":"3331234567","testo":"t"}`)
		old := run.ID[0]
		s.sql(`update message set state = 2, intent = -1, outcome = 2, done_at = 1, reason = 'Numero inesistente' where id = ` + old)
		numbers := "generate_series(1, 12000) as n(i)"
		if !s.db.Postgres {
			numbers = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000) select i from n) as n"
		}
		s.sql(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select r.client_id, r.id + 100000 + n.i, r.sequence_id, r.session_id, r.phone, r.origin, 1, '', r.zone, r.received_at, r.request, '', '', r.content
 from run r cross join ` + numbers + ` where r.id <= ` + old + ` and r.id + r.messages > ` + old)
		s.sql(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, state, intent, outcome, done_at)
 select r.client_id, r.id, r.session_id, r.id, 0, 1, 1, 1, 0, r.origin, r.phone, 1, -1, 1, 2 from run r where r.id > ` + old + ` + 100000`)
		pages, found, cursor := 0, 0, ""
		for more := true; more && pages < 10; pages++ {
			var page struct {
				Messages []struct {
					Stato string `json:"stato"`
				} `json:"messages"`
				Next *string `json:"next_cursor"`
			}
			began := time.Now()
			s.must(&page, "GET", "/api/messages?state=FAILED&limit=10&cursor="+url.QueryEscape(cursor), a.Key, "")
			t.Logf("page %d: %d in %v", pages, len(page.Messages), time.Since(began))
			found += len(page.Messages)
			if more = page.Next != nil; more {
				cursor = *page.Next
			}
			if pages == 0 && (found > 0 || !more) {
				t.Errorf("the first page looked through more than %d calls", control.BriefCalls)
			}
		}
		if found != 1 || pages != 2 {
			t.Errorf("%d found on %d pages", found, pages)
		}
	})
}

func (s *service) sql(statement string) {
	s.t.Helper()
	if _, err := s.db.SQL.Exec(statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}
