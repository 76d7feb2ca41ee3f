package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/calendar"
	"puntuale/internal/store"
)

// begin lets the calendar have these events, and starts it.
func (f *fed) begin(events ...string) time.Time {
	f.t.Helper()
	at := f.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
	f.feed.body = ics(events...)
	f.read()
	f.start()
	f.read(time.Second)
	return at
}

// three returns a moment in three days.
func (f *fed) three() time.Time { return f.clock.Now().Add(72 * time.Hour).Truncate(time.Hour) }

// panics is a feed at which the reader panics.
type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("a bad feed") }

// TestCalendarPanics: a panic at one feed does not end the server, and this feed is read again a minute later.
func TestCalendarPanics(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		f.begin(event("a", "Visita Ada 333 123 4567", f.three()))
		s.clock.Advance(time.Hour)
		r := f.reader(panics{})
		r.Logger = slog.New(slog.DiscardHandler)
		r.Run(t.Context())
		f.want("the calendar", say(f.state().Failures, f.state().Error == nil), "0 true")
		read := *f.state().Read
		if f.read(2 * time.Minute); *f.state().Read == read {
			t.Error("the feed is not read again")
		}
	})
}

// TestCalendarsShare: an entry that moves to another calendar keeps its booking.
func TestCalendarsShare(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		ada, bea := event("a@x", "Ada 333 123 4567", f.three()), event("b@x", "Bea 333 123 4568", f.three())
		f.begin(ada, bea)
		other := *f
		other.feed = &feed{body: ics(ada)}
		var made calendarOf
		f.must(&made, "POST", "/api/calendars", f.Key, `{"name":"Altra","url":"https://other.example/b.ics","sequence":"`+f.sequence+`"}`)
		other.id = made.ID
		both := byHost{"calendar.example": f.feed, "other.example": other.feed}
		readBoth := func(after time.Duration) {
			f.clock.Advance(after)
			f.reader(both).Run(t.Context())
			f.reader(both).Run(t.Context()) // one calendar of a client in a round
		}
		readBoth(time.Second)
		other.start()
		readBoth(every)
		f.feed.body = ics(bea)
		for range 3 {
			readBoth(every)
		}
		f.want("the entry that moved", f.view("a@x").Status, "open")
		other.feed.body = ics(event("c@x", "Carla 333 123 4569", f.three()))
		for range 3 {
			readBoth(every)
		}
		f.want("gone from both", f.view("a@x").Status, "cancelled")
	})
}

// byHost sends each request to the feed of its host.
type byHost map[string]*feed

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.URL.Host].RoundTrip(r) }

// TestCalendarMends: what a booking does when its entry changes in unusual ways.
func TestCalendarMends(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *fed){
		"another sequence": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			second := f.sequence
			var made struct{ ID string }
			f.must(&made, "POST", "/api/sequences", f.Key, visit)
			f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"sequence":"`+made.ID+`"}`)
			f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(time.Hour)), event("b@x", "Bea 333 123 4568", at))
			f.read(every)
			f.want("revision of the moved booking", f.view("a@x").Revision, 2)
			var list struct {
				Bookings []struct{ Reference, Sequence string }
			}
			f.must(&list, "GET", "/api/bookings", f.Key, "")
			for _, b := range list.Bookings {
				f.want(b.Reference, b.Sequence, map[string]string{"a@x": second, "b@x": made.ID}[b.Reference])
			}
		},
		"a field is missing": func(_ *testing.T, f *fed) {
			const lacks = `{"name":"x","booking":{"date":"quando"},"steps":[{"text":"{{targa}} {{quando}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`
			const whole = `{"name":"x","booking":{"date":"quando"},"steps":[{"text":"{{nome}} {{quando}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`
			var made struct{ ID string }
			f.must(&made, "POST", "/api/sequences", f.Key, lacks)
			says := func(body string) {
				f.t.Helper()
				if !strings.Contains(body, "{{targa}}") {
					f.t.Errorf("says %s", body)
				}
			}
			says(f.refused("PATCH", "/api/calendars/"+f.id, f.Key, `{"sequence":"`+made.ID+`"}`, http.StatusUnprocessableEntity))
			f.must(nil, "PUT", "/api/sequences/"+made.ID, f.Key, whole)
			f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"sequence":"`+made.ID+`"}`)
			f.must(nil, "PUT", "/api/sequences/"+made.ID, f.Key, lacks)
			f.feed.body = ics(event("a@x", "Ada 333 123 4567", f.three()))
			f.read()
			says(f.refused("POST", "/api/calendars/"+f.id+"/start", f.Key, "", http.StatusConflict))
			f.must(nil, "PUT", "/api/sequences/"+made.ID, f.Key, whole)
			f.start()
			f.must(nil, "PUT", "/api/sequences/"+made.ID, f.Key, lacks)
			f.read(every)
			all := f.entries()
			if len(all) != 1 || all[0].Error == nil || !strings.HasPrefix(*all[0].Error, "targa: ") || all[0].Booked {
				f.t.Errorf("%+v", all)
			}
			f.want("notices", f.notices(), 1)
		},
		"English fields": func(_ *testing.T, f *fed) {
			var made struct{ ID string }
			f.must(&made, "POST", "/api/sequences", f.Key, `{"name":"x","booking":{"date":"appointment"},"steps":[{"text":"{{name}}, {{title}}, {{location|here}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
			f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"sequence":"`+made.ID+`"}`)
			f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			f.want("text", f.details(f.Key, f.view("a@x").Messages[0].ID)[0].Contenuto, "Ada, Ada 333 123 4567, here")
		},
		"a person decides, and nobody does": func(_ *testing.T, f *fed) {
			var all []string
			for i := range 10 {
				all = append(all, event(fmt.Sprint("e", i), fmt.Sprintf("Persona %c 333 123 450%d", 'A'+i, i), f.three().Add(time.Duration(i)*24*time.Hour)))
			}
			f.begin(all...)
			f.feed.body = ics(all[4:]...)
			f.read(every)
			f.want("gone", f.read(every).Gone, 4)
			f.clock.Advance(80 * time.Hour) // the first of the four has begun
			f.want("gone", f.read(every).Gone, 3)
			f.want("nobody decided", f.view("e2").Status, "open")
			f.feed.body = ics(all...)
			f.want("they are back", f.read(every).Gone, 0)
		},
		"what has begun": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()), event("b@x", "Bea 333 123 4568", f.three()))
			f.clock.Set(at.Add(40 * time.Minute))
			before := f.view("a@x")
			f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(15*time.Minute)), event("b@x", "Bea 333 123 4568", at, "STATUS:CANCELLED\r\n"))
			f.read()
			f.read(every)
			f.want("a correction afterwards", f.view("a@x").Revision, before.Revision)
			f.want("a cancellation afterwards", f.view("b@x").Status, "open")
		},
		"moved back": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(-96*time.Hour)))
			f.read(every)
			f.read(every)
			b := f.view("a@x")
			f.want("status", b.Status, "open")
			for _, m := range b.Messages {
				if m.Step == "2" {
					f.t.Errorf("a message tells of a move into the past: %+v", m)
				}
			}
		},
		"another person": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			f.must(nil, "PUT", "/api/bookings/a@x", f.Key, `{"status":"cancelled"}`)
			f.feed.body = ics(event("a@x", "Bruno 347 765 4321", at))
			f.read(every)
			b := f.view("a@x")
			f.want("status", b.Status, "open")
			f.want("phone", b.Phone, "+393477654321")
		},
		"made again": func(_ *testing.T, f *fed) {
			ada := event("a@x", "Ada 333 123 4567", f.three())
			f.begin(ada, event("b@x", "Bea 333 123 4568", f.three()))
			f.feed.body = ics(event("b@x", "Bea 333 123 4568", f.three()))
			f.read(every)
			f.read(every)
			f.want("gone", f.view("a@x").Status, "cancelled")
			f.must(nil, "DELETE", "/api/calendars/"+f.id, f.Key, "")
			var made calendarOf
			f.must(&made, "POST", "/api/calendars", f.Key, `{"name":"Agenda","url":"https://calendar.example/a.ics","sequence":"`+f.sequence+`"}`)
			f.id = made.ID
			f.begin(ada)
			f.want("in a calendar that was made again", f.view("a@x").Status, "open")
		},
		"cancelled without a number": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			f.feed.body = ics(event("a@x", "Annullato: Ada", at, "STATUS:CANCELLED\r\n"))
			f.read(every)
			f.want("status", f.view("a@x").Status, "cancelled")
		},
		"without a number any more": func(_ *testing.T, f *fed) {
			at := f.begin(event("a@x", "Ada 333 123 4567", f.three()))
			f.feed.body = ics(event("a@x", "Ada", at))
			f.read(every)
			f.want("after one reading", f.view("a@x").Status, "open")
			f.read(every)
			b := f.view("a@x")
			f.want("after two readings", b.Status, "cancelled")
			for _, m := range b.Messages {
				if m.Step == "4" {
					f.t.Errorf("the person is told: %+v", m)
				}
			}
		},
		"all day": func(_ *testing.T, f *fed) {
			f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"all_day":true}`)
			day := f.three().Format("20060102")
			f.begin("BEGIN:VEVENT\r\nUID:a@x\r\nDTSTART;VALUE=DATE:" + day + "\r\nSUMMARY:Ada 333 123 4567\r\nEND:VEVENT\r\n")
			f.want("date", strings.Contains(fmt.Sprint(f.fields("a@x")["appuntamento"]), "T"), false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{sandbox: true}, func(t *testing.T, s *service) { test(t, newFed(t, s)) })
		})
	}
}

func (f *fed) fields(reference string) map[string]any {
	f.t.Helper()
	var b struct{ Fields map[string]any }
	f.must(&b, "GET", "/api/bookings/"+reference, f.Key, "")
	return b.Fields
}

// forgetful is a store whose readings end before EndReading.
type forgetful struct{ *store.Store }

var errDied = errors.New("the node died")

func (forgetful) EndReading(context.Context, puntuale.NodeID, *puntuale.Calendar, puntuale.Reason, time.Time) (bool, error) {
	return false, errDied
}

// TestCalendarDiedBetween: a node dies after it stored what it read and before it stored that it did. If the feed then is
// as before, so are the bookings.
func TestCalendarDiedBetween(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		before := ics(event("a@x", "Ada 333 123 4567", f.three()), event("b@x", "Bea 333 123 4568", f.three()))
		at := f.begin(event("a@x", "Ada 333 123 4567", f.three()), event("b@x", "Bea 333 123 4568", f.three()))
		f.clock.Advance(every)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(24*time.Hour)))
		node, err := f.store.Join(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		calendar.NewReader(calendar.Config{
			Store: forgetful{f.store}, Node: func() puntuale.NodeID { return node }, Feeds: f.feed, Clock: oneRound{f.clock}, Logger: slog.New(slog.DiscardHandler), Address: f.service.calendar.Address,
			Account: f.service.calendar.Account,
		}).Run(t.Context())
		if _, err := f.db.SQL.Exec("update node set lease_until = 0"); err != nil {
			t.Fatal(err)
		}
		f.feed.body = before
		f.read(time.Second)
		f.read(every)
		var b struct{ Date string }
		f.must(&b, "GET", "/api/bookings/a@x", f.Key, "")
		if date, err := time.Parse(time.RFC3339, b.Date); err != nil || !date.Equal(at) {
			t.Errorf("the booking is at %s, the calendar says %s", b.Date, at)
		}
		f.want("an entry that the dead node missed", f.view("b@x").Status, "open")
	})
}

// TestCalendarErasedLater: a person is erased after the number was taken out of the entry, or while the calendar is read.
func TestCalendarErasedLater(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := f.begin(event("a@x", "Ada 333 123 4567", f.three()), event("b@x", "Bea 333 123 4568", f.three()))
		f.feed.body = ics(event("a@x", "Ada", at), event("b@x", "Bea 333 123 4568", at))
		f.read(every)
		f.must(nil, "POST", "/api/contacts/erase", f.Key, `{"phone":"+393331234567"}`)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at), event("b@x", "Bea 333 123 4568", at))
		f.read(every)
		f.read(every)
		if r := s.call("GET", "/api/bookings/a@x", f.Key, ""); r.status != http.StatusNotFound {
			t.Errorf("the erased booking: %d %s", r.status, r.body)
		}
		slow := paused{&feed{body: ics(event("b@x", "Bea 333 123 4568", at.Add(time.Hour)))}, make(chan struct{}), make(chan struct{})}
		s.clock.Advance(every)
		ended := make(chan struct{})
		reader := f.reader(slow)
		go func() {
			defer close(ended)
			reader.Run(t.Context())
		}()
		<-slow.asking
		f.must(nil, "POST", "/api/contacts/erase", f.Key, `{"phone":"+393331234568"}`)
		close(slow.proceed)
		<-ended
		if r := s.call("GET", "/api/bookings/b@x", f.Key, ""); r.status != http.StatusNotFound {
			t.Errorf("the booking of a person who was erased during the reading: %d %s", r.status, r.body)
		}
		if all := f.entries(); len(all) != 0 {
			t.Errorf("entries: %+v", all)
		}
	})
}
