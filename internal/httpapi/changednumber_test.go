package httpapi_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// changed makes the store move a person to a new number, as after a report of the network.
func (s *service) changed(a clientAccount, old, fresh string) {
	s.t.Helper()
	client, err := strconv.ParseInt(a.ID, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	session, err := strconv.ParseInt(a.Session, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	now := s.clock.Now()
	if err := s.store.ChangeNumber(s.t.Context(), now, puntuale.NumberChange{
		Client: puntuale.ClientID(client), Session: puntuale.SessionID(session), ID: "wamid.1", Mark: strconv.FormatInt(now.UnixNano(), 10), At: now, Old: []string{old}, New: []string{fresh},
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestChangedNumber: programs that know only one of a person's numbers reach the person by it: the stop, the blacklist, the
// consent, the booking, the list and the document. A later start to the old number fails. The event tells both numbers.
func TestChangedNumber(t *testing.T) {
	t.Parallel()
	const old, fresh = "+393331110001", "+393332220002"
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("changed@x", "full")
		s.must(nil, "GET", "/api/events", a.Key, "")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"keep_replies":"all"}`)
		step := s.newSequence(a.Key, stepLater)
		var visits struct{ ID string }
		s.must(&visits, "POST", "/api/sequences", a.Key, `{"name":"Visita","booking":{"date":"quando"},"steps":[`+strings.Replace(stepLater, "start", "quando", 1)+`]}`)
		var contact struct{ ID string }
		s.must(&contact, "POST", "/api/contacts", a.Key, `{"phone":"`+old+`","name":"Ada"}`)
		s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"`+old+`","purpose":"marketing","change":"grant","source":"form","words":"accetto"}`)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"`+old+`","text":"eccomi"}`)
		s.must(nil, "PUT", "/api/bookings/pratica-1", a.Key, `{"sequence":"`+visits.ID+`","phone":"`+old+`","testo":"visita","quando":"2027-01-20 10:00"}`)
		var run started
		s.must(&run, "POST", "/api/start/"+step, a.Key, `{"phone":"`+old+`","testo":"x"}`)
		s.clock.Advance(time.Minute)
		s.changed(a, old, fresh)
		s.number()

		for _, phone := range []string{old, fresh} {
			for _, call := range []struct{ target, want string }{
				{"/api/messages?phone=", run.ID[0]}, {"/api/replies?phone=", "eccomi"}, {"/api/contacts?phone=", `"name":"Ada"`}, {"/api/contacts/consent?phone=", "accetto"},
				{"/api/bookings?start=2027-01-20&end=2027-01-20&phone=", "pratica-1"},
			} {
				target := call.target + strings.Replace(phone, "+", "%2B", 1)
				if got := s.must(nil, "GET", target, a.Key, "").body; !strings.Contains(got, call.want) {
					t.Errorf("%s lacks %q: %s", target, call.want, got)
				}
			}
			told := s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"`+phone+`"}`).body
			for _, want := range []string{"Ada", "accetto", "eccomi", "pratica-1", old, fresh, "number_changes", "former_names"} {
				if !strings.Contains(told, want) {
					t.Errorf("the document about %s lacks %q", phone, want)
				}
			}
		}
		if events := s.must(nil, "GET", "/api/events?types=contact.changed_number", a.Key, "").body; !strings.Contains(events, `"old_phone":"`+old+`"`) || !strings.Contains(events, `"phone":"`+fresh+`"`) {
			t.Errorf("events: %s", events)
		}
		if m := s.must(nil, "GET", "/api/messages?phone="+strings.Replace(fresh, "+", "%2B", 1), a.Key, "").body; !strings.Contains(m, `"telefono":"`+fresh+`"`) {
			t.Errorf("the messages did not move: %s", m)
		}

		// A program that knows only the old number changes the booking, and the person stays the same.
		s.must(nil, "PUT", "/api/bookings/pratica-1", a.Key, `{"sequence":"`+visits.ID+`","phone":"`+old+`","testo":"visita","quando":"2027-01-21 10:00"}`)
		if b := s.must(nil, "GET", "/api/bookings/pratica-1", a.Key, "").body; !strings.Contains(b, `"phone":"`+fresh+`"`) || strings.Count(b, `"stato":"PENDING"`) != 1 {
			t.Errorf("the booking: %s", b)
		}

		var late started
		s.must(&late, "POST", "/api/start/"+s.newSequence(a.Key, stepNow), a.Key, `{"phone":"`+old+`","testo":"x"}`)
		if _, answer := s.begin(a, late.ID[0], old); answer != puntuale.ClaimNumberChanged {
			t.Errorf("a later start to the old number: %v", answer)
		}
		if d := s.must(nil, "GET", "/api/messages?phone="+strings.Replace(old, "+", "%2B", 1), a.Key, "").body; !strings.Contains(d, "La persona ha cambiato numero") {
			t.Errorf("the later start: %s", d)
		}

		var undone struct {
			Phone string
			Old   string `json:"old_phone"`
		}
		s.must(&undone, "POST", "/api/contacts/"+contact.ID+"/undo-change", a.Key, "")
		if undone.Phone != old || undone.Old != fresh {
			t.Errorf("undone: %+v", undone)
		}
		var stopped struct{ ID []string }
		s.must(&stopped, "POST", "/api/stop/"+step, a.Key, `{"phone":"`+old+`"}`)
		if len(stopped.ID) != len(run.ID) {
			t.Errorf("a stop after the undo: %v", stopped.ID)
		}
		if r := s.call("POST", "/api/contacts/"+contact.ID+"/undo-change", a.Key, ""); r.status != 404 {
			t.Errorf("a second undo: %d %s", r.status, r.body)
		}
		s.clock.Advance(time.Minute)
		s.changed(a, fresh, old) // another change, which nobody undoes in time
		s.clock.Advance(puntuale.UndoChangeTime)
		if r := s.call("POST", "/api/contacts/"+contact.ID+"/undo-change", a.Key, ""); r.status != 409 {
			t.Errorf("an undo after 30 days: %d %s", r.status, r.body)
		}
		s.must(nil, "POST", eraseCall, a.Key, `{"phone":"`+fresh+`"}`)
		if places := s.found(old[1:], fresh[1:], "eccomi", "accetto"); len(places) > 0 {
			t.Errorf("after the erasure: %s", places)
		}
	})
}
