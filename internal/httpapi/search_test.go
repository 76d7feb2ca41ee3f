package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// foundBy is a result of GET /api/search, as far as tests compare it.
type foundBy struct {
	People    []struct{ Phone, Name, Contact string }
	Messages  []struct{ ID, Phone, Text, Stato string }
	Bookings  []struct{ Reference, Status string }
	Sequences []struct{ ID, Name string }
	Campaigns []struct{ ID, Name string }
	Templates []struct{ ID, Name string }
	Clients   []struct{ ID, Name string }
	More      []string
	Complete  bool
}

func (s *service) find(key, text string) (found foundBy) {
	s.t.Helper()
	s.must(&found, "GET", "/api/search?"+url.Values{"text": {text}}.Encode(), key, "")
	return found
}

// TestSearch: one text finds people by name with typing errors, and by number in any way of writing it, their messages and
// bookings, and everything else by name, reference and id.
func TestSearch(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		var sequence, visits, template struct{ ID string }
		s.must(&sequence, "POST", "/api/sequences", a.Key, `{"name":"Promemoria igiene","steps":[{"text":"Ciao {{nome}}, ti aspettiamo al banco","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		s.must(&visits, "POST", "/api/sequences", a.Key, visit)
		s.must(&template, "POST", "/api/templates", a.Key, `{"name":"Benvenuto","text":"Ciao"}`)
		var campaign, others struct{ ID string }
		s.must(&campaign, "POST", "/api/campaigns", a.Key, `{"name":"Sconto di Natale","sequence":`+sequence.ID+`}`)
		s.must(&others, "POST", "/api/campaigns", b.Key, `{"name":"Natale altrui","content":{"text":"Ciao"}}`)
		s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"3331234567","name":"Mario Rossi"}`)
		s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"3337654321","name":"Anna Bianchi"}`)
		var run struct{ ID []string }
		s.must(&run, "POST", "/api/start/"+sequence.ID, a.Key, `{"phone":"3331234567","nome":"Mario","reference":"ORD-77"}`)
		var other struct{ ID []string }
		s.must(&other, "POST", "/api/start/"+sequence.ID, a.Key, `{"phone":"3339998887","nome":"Carla Zucchi"}`)
		day := s.clock.Now().AddDate(0, 0, 9).Format("02/01/2006")
		s.must(nil, "PUT", "/api/bookings/VIS-12", a.Key, `{"sequence":"`+visits.ID+`","phone":"3331234567","nome":"Mario Rossi","appuntamento":"`+day+` 15:30"}`)
		s.must(nil, "POST", "/api/contacts", b.Key, `{"phone":"3331234567","name":"Mario Rossi Altrui"}`)

		for _, text := range []string{"mario rossi", "Rosi Mario", "mrio rsosi", "+39 333 12 34 567", "333/1234567", "0039 333 1234567", "+393331234567"} {
			f := s.find(a.Key, text)
			if len(f.People) == 0 || f.People[0].Phone != "+393331234567" || f.People[0].Name != "Mario Rossi" || f.People[0].Contact == "" {
				t.Errorf("%q finds %+v", text, f.People)
			}
			if len(f.Messages) != 3 || len(f.Bookings) != 1 || f.Bookings[0].Reference != "VIS-12" || !f.Complete {
				t.Errorf("%q finds the messages %+v and the bookings %+v", text, f.Messages, f.Bookings)
			}
		}
		c := s.newAccount("c@x", "full")
		var greeting struct{ ID string }
		s.must(&greeting, "POST", "/api/sequences", c.Key, `{"name":"Saluto","steps":[{"text":"Ciao","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		for i, name := range []string{"Mario Rossi", "Maria Rossi"} {
			s.must(nil, "POST", "/api/contacts", c.Key, fmt.Sprintf(`{"phone":"333555000%d","name":%q}`, i, name))
			s.must(nil, "POST", "/api/start/"+greeting.ID, c.Key, fmt.Sprintf(`{"phone":"333555000%d"}`, i))
		}
		if f := s.find(c.Key, "rossi MARIO"); len(f.Messages) != 2 || f.Messages[0].Phone != "+393335550000" {
			t.Errorf("messages of the person with this name come first: %+v", f.Messages)
		}
		if f := s.find(a.Key, "333123"); len(f.People) != 1 || f.People[0].Name != "Mario Rossi" {
			t.Errorf("the beginning of a number: %+v", f.People)
		}
		if f := s.find(a.Key, "3339998887"); len(f.People) != 1 || f.People[0].Name != "Carla Zucchi" || f.People[0].Contact != "" || len(f.Messages) != 1 {
			t.Errorf("somebody who is no contact: %+v", f)
		}
		for text, id := range map[string]string{"ORD-77": run.ID[0], run.ID[0]: run.ID[0], "zucchi": other.ID[0], "aspettiamo carla": other.ID[0]} {
			if f := s.find(a.Key, text); len(f.Messages) != 1 || f.Messages[0].ID != id || f.Messages[0].Stato != "PENDING" {
				t.Errorf("%q finds the messages %+v, want %s", text, f.Messages, id)
			}
		}
		if f := s.find(a.Key, "VIS-12"); len(f.Bookings) != 1 || f.Bookings[0].Status != "open" {
			t.Errorf("a booking by its reference: %+v", f.Bookings)
		}
		if f := s.find(a.Key, "igiene"); len(f.Sequences) != 1 || f.Sequences[0].ID != sequence.ID {
			t.Errorf("a sequence: %+v", f)
		}
		for _, text := range []string{"natale", "SCONTO di nat", campaign.ID} {
			if f := s.find(a.Key, text); len(f.Campaigns) != 1 || f.Campaigns[0].ID != campaign.ID || f.Campaigns[0].Name != "Sconto di Natale" {
				t.Errorf("%q finds the campaigns %+v", text, f.Campaigns)
			}
		}
		if f := s.find(a.Key, others.ID); len(f.Campaigns) > 0 {
			t.Errorf("another client's campaign: %+v", f.Campaigns)
		}
		if f := s.find(a.Key, "BENVENUTO"); len(f.Templates) != 1 || f.Templates[0].ID != template.ID {
			t.Errorf("a template: %+v", f)
		}
		for i := range 9 {
			s.must(nil, "POST", "/api/contacts", a.Key, fmt.Sprintf(`{"phone":"34012345%02d","name":"Luigi Tanti"}`, i))
		}
		if f := s.find(a.Key, "luigi"); len(f.People) != 8 || !slices.Contains(f.More, "people") {
			t.Errorf("9 of a name: %d, more: %v", len(f.People), f.More)
		}
		for _, text := range []string{"altrui", "nessuno", "9007199254740991", "%", "_", "'", `"`, "+", "()"} {
			if f := s.find(a.Key, text); len(f.People)+len(f.Messages)+len(f.Bookings)+len(f.Sequences)+len(f.Campaigns)+len(f.Templates)+len(f.Clients) > 0 {
				t.Errorf("%q finds %+v", text, f)
			}
		}
		for _, query := range []string{"", "?text=", "?text=%20", "?text=x&other=1", "?text=" + strings.Repeat("x", 201), "?text=%00"} {
			if r := s.call("GET", "/api/search"+query, a.Key, ""); r.status != 422 && r.status != 400 {
				t.Errorf("%.40s: %d %s", query, r.status, r.body)
			}
		}
		if f := s.find(s.partner, "a@x"); len(f.Clients) != 1 || f.Clients[0].Name != "Studio Bianchi" {
			t.Errorf("a partner finds the clients %+v", f.Clients)
		}
		if f := s.find(s.partner, "mario rossi"); len(f.People)+len(f.Messages)+len(f.Clients) > 0 {
			t.Errorf("a partner finds inside of its clients: %+v", f)
		}
		s.must(nil, "POST", "/api/contacts/erase", a.Key, `{"phone":"3331234567"}`)
		for _, text := range []string{"mario rossi", "mrio rsosi", "3331234567", "VIS-12", "ORD-77"} {
			if f := s.find(a.Key, text); len(f.People)+len(f.Messages)+len(f.Bookings) > 0 {
				t.Errorf("after the erasure %q finds %+v", text, f)
			}
		}
	})
}

// TestSearchReadsAPart: words are compared with the next 1,000 bookings and the newest 1,000 calls. If there are more, the answer
// is not complete, and says which list goes on. There the booking is.
func TestSearchReadsAPart(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBooked(t, s)
		b.book("first")
		const columns = "client_id, sequence_id, session_id, phone, zone, fields, status, status_by, revision, as_of, as_of_kind, told_at, moments, created_at, changed_at, erased_at"
		copyOf := func(from, to int) {
			t.Helper()
			_, err := s.db.SQL.Exec(fmt.Sprintf(`insert into booking (id, reference, date_at, %s) with recursive n(i) as (select %d union all select i + 1 from n where i < %d)
 select id + 1000000 + i, 'x' || i, date_at + i, %[1]s from booking cross join n where reference = 'first'`, columns, from, to))
			if err != nil {
				t.Fatal(err)
			}
		}
		copyOf(1, 997)
		b.put("last", `{"sequence":"`+b.sequence+`","phone":"3339876543","nome":"Zenobia","appuntamento":"21/01/2027 15:30"}`)
		listed := func() (n int) {
			cursor := ""
			for {
				var page struct {
					Bookings []struct{ Reference string }
					Next     string `json:"next_cursor"`
				}
				s.must(&page, "GET", "/api/bookings?"+url.Values{"text": {"zenobia"}, "cursor": {cursor}}.Encode(), b.Key, "")
				if n += len(page.Bookings); page.Next == "" {
					return n
				}
				cursor = page.Next
			}
		}
		if f := s.find(b.Key, "zenobia"); len(f.Bookings) != 1 || !f.Complete || len(f.More) > 0 {
			t.Errorf("among 999 bookings: %+v", f)
		}
		copyOf(998, 1000)
		if f := s.find(b.Key, "zenobia"); len(f.Bookings) > 0 || f.Complete || !slices.Equal(f.More, []string{"bookings"}) || listed() != 1 {
			t.Errorf("behind 1,000 bookings: %+v; the list has %d", f, listed())
		}
		if f := s.find(b.Key, "ada"); len(f.Bookings) != 8 || !f.Complete || !slices.Equal(f.More, []string{"messages", "bookings"}) && !slices.Equal(f.More, []string{"bookings"}) {
			t.Errorf("more than are shown: %d bookings, complete %t, more %v", len(f.Bookings), f.Complete, f.More)
		}
	})
}
