package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBlacklistEvents lets a person write STOP and take it back, and lets the client block and free the number. Each
// change makes one event, which says who did it and why. After an erasure, no event contains the number.
func TestBlacklistEvents(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		s.must(nil, "GET", "/api/events", a.Key, "")
		const phone = "+393331234567"
		says := func(text string) {
			s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"`+phone+`","text":"`+text+`"}`)
		}
		told := func() (all []string) {
			var feed struct {
				Events []struct {
					Type string
					Data struct {
						Phone  string
						Reason *string
						Origin *string
					}
				}
			}
			s.must(&feed, "GET", "/api/events?types=blacklist.added,blacklist.removed", a.Key, "")
			for _, e := range feed.Events {
				line := []string{e.Type, e.Data.Phone}
				for _, p := range []*string{e.Data.Reason, e.Data.Origin} {
					if p == nil {
						line = append(line, "-")
						continue
					}
					line = append(line, *p)
				}
				all = append(all, strings.Join(line, " "))
			}
			return all
		}
		says("Stop")
		says("Stop") // a number comes on the list once
		says("riprendi")
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"`+phone+`","reason":"Ha telefonato"}`)
		s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"`+phone+`"}`)
		s.number()
		want := []string{"blacklist.added " + phone + " Disiscrizione: Stop person", "blacklist.removed " + phone + " Disiscrizione: Stop person",
			"blacklist.added " + phone + " Ha telefonato client", "blacklist.removed " + phone + " Ha telefonato client"}
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"`+phone+`"}`) // the erasure comes before this event has a number
		s.must(nil, "POST", eraseCall, a.Key, `{"phone":"`+phone+`"}`)
		if places := s.found(phone, "Ha telefonato", "Disiscrizione"); len(places) > 0 {
			t.Errorf("after the erasure: %s", places)
		}
		s.number()
		if got := told(); len(got) != 5 || fmt.Sprint(got[4]) != "blacklist.added  - -" || got[0] != "blacklist.added  - -" {
			t.Errorf("after the erasure: %q", got)
		}
	})
}
