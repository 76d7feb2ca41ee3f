package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/calendar"
	"puntuale/internal/clock"
)

// refusesHTTP is the rule about addresses of a service that allows no private networks.
func refusesHTTP(_ context.Context, address string) puntuale.ReasonCode {
	switch {
	case strings.HasPrefix(address, "http:"):
		return puntuale.FaultWebhookNotHTTPS
	case strings.Contains(address, "//10."):
		return puntuale.FaultWebhookPrivate
	}
	return ""
}

// feed is the server of a calendar. It counts what was asked.
type feed struct {
	mu     sync.Mutex
	body   string
	status int
	header http.Header
	asked  []*http.Request
}

func (f *feed) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	status, body := max(f.status, http.StatusOK), f.body
	if f.status == 0 && f.header.Get("ETag") != "" && r.Header.Get("If-None-Match") == f.header.Get("ETag") {
		status, body = http.StatusNotModified, ""
	}
	header := f.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// event is one event of a feed.
func event(uid, title string, start time.Time, more ...string) string {
	return "BEGIN:VEVENT\r\nUID:" + uid + "\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:" + start.UTC().Format("20060102T150405Z") + "\r\nSUMMARY:" + title + "\r\n" + strings.Join(more, "") + "END:VEVENT\r\n"
}

func ics(events ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//\r\n" + strings.Join(events, "") + "END:VCALENDAR\r\n"
}

// oneRound is a clock whose sleeps fail, so that a reader ends after one round.
type oneRound struct{ *clock.Fake }

var errRoundOver = errors.New("the round is over")

func (oneRound) Sleep(context.Context, time.Duration) error { return errRoundOver }

// calendarOf is an answer about a calendar.
type calendarOf struct {
	ID         string
	Host       string
	Started    *string `json:"started_at"`
	Next       string  `json:"next_read_at"`
	Read       *string `json:"last_read_at"`
	Error      *string
	Failures   int
	Entries    int `json:"total"`
	Understood int
	Gone       int
}

type entryOf struct {
	Reference  string
	Phone      *string
	Nome       *string
	Title      string
	Understood bool
	Problem    *string
	Booked     bool
	Error      *string
}

// fed is a client with a calendar.
type fed struct {
	*booked
	feed *feed
	id   string
}

func newFed(t *testing.T, s *service) *fed {
	t.Helper()
	f := &fed{booked: newBooked(t, s), feed: &feed{}}
	var made calendarOf
	f.must(&made, "POST", "/api/calendars", f.Key, `{"name":"Agenda","url":"webcal://calendar.example/private-abc/basic.ics","sequence":"`+f.sequence+`"}`)
	f.id = made.ID
	return f
}

// read lets all due calendars be read once, a minute or the given time later.
func (f *fed) read(after ...time.Duration) calendarOf {
	f.t.Helper()
	for _, d := range after {
		f.clock.Advance(d)
	}
	f.reader(f.feed).Run(f.t.Context())
	return f.state()
}

// reader returns a reader on a new node, which ends after one round.
func (f *fed) reader(feeds http.RoundTripper) *calendar.Reader {
	f.t.Helper()
	node, err := f.store.Join(f.t.Context(), time.Minute)
	if err != nil {
		f.t.Fatal(err)
	}
	return calendar.NewReader(calendar.Config{
		Store: f.store, Node: func() puntuale.NodeID { return node }, Feeds: feeds, Clock: oneRound{f.clock}, Logger: slog.New(slog.NewTextHandler(failing{f.t}, nil)), Address: f.service.calendar.Address,
		Account: f.service.calendar.Account,
	})
}

// failing fails a test that logs something.
type failing struct{ t *testing.T }

func (w failing) Write(line []byte) (int, error) {
	w.t.Errorf("logged: %s", line)
	return len(line), nil
}

func (f *fed) state() (c calendarOf) {
	f.t.Helper()
	f.must(&c, "GET", "/api/calendars/"+f.id, f.Key, "")
	return c
}

func (f *fed) entries() (all []entryOf) {
	f.t.Helper()
	var list struct {
		Entries []entryOf `json:"calendar_entries"`
	}
	f.must(&list, "GET", "/api/calendars/"+f.id+"/entries", f.Key, "")
	return list.Entries
}

func (f *fed) start() {
	f.t.Helper()
	f.must(nil, "POST", "/api/calendars/"+f.id+"/start", f.Key, "")
}

const every = 17 * time.Minute // more than CalendarEvery with its jitter

// TestCalendar reads a feed, shows what was understood, plans nothing before it is started, and then follows it.
func TestCalendar(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		f.feed.body = ics(
			event("a@x", "Ada Rossi 333 123 4567", at),
			event("b@x", "Riunione interna", at.Add(time.Hour)),
			event("c@x", "Due numeri 333 123 4567 e 347 765 4321", at.Add(2*time.Hour)),
			event("old@x", "Vecchio 333 123 4567", at.Add(-96*time.Hour)),
		)
		if r := s.call("POST", "/api/calendars/"+f.id+"/start", f.Key, ""); r.status != http.StatusConflict {
			t.Errorf("a start before the first reading: %d %s", r.status, r.body)
		}
		c := f.read()
		f.want("host", c.Host, "calendar.example")
		f.want("understood", fmt.Sprint(c.Understood, " of ", c.Entries), "1 of 3")
		if c.Started != nil {
			t.Error("it is started")
		}
		for _, e := range f.entries() {
			switch e.Reference {
			case "a@x":
				f.want("phone", *e.Phone, "+393331234567")
				f.want("name", *e.Nome, "Ada Rossi")
			default:
				if e.Understood || e.Problem == nil {
					t.Errorf("%s: understood %v", e.Reference, e.Understood)
				}
			}
		}
		f.read(every)
		if r := s.call("GET", "/api/bookings/a@x", f.Key, ""); r.status != http.StatusNotFound {
			t.Fatalf("a booking before the start: %d", r.status)
		}
		f.start()
		f.read(time.Second)
		b := f.view("a@x")
		f.want("status", b.Status, "open")
		f.want("messages", f.states("a@x"), []string{"0 PENDING", "1 PENDING"})

		f.feed.body = ics(event("a@x", "Ada Rossi 333 123 4567", at.Add(24*time.Hour)))
		f.read(every)
		moved := f.view("a@x")
		f.want("revision", moved.Revision, b.Revision+1)
		f.want("messages after the move", f.states("a@x"), []string{"0 PENDING", "1 CANCELLED", "1 PENDING", "2 PENDING"})

		f.feed.body = ics(event("a@x", "Ada Rossi 333 123 4567", at.Add(24*time.Hour), "STATUS:CANCELLED\r\n"))
		f.read(every)
		f.want("status", f.view("a@x").Status, "cancelled")

		f.feed.body = ics(event("a@x", "Ada Rossi 333 123 4567", at.Add(24*time.Hour)))
		f.read(every)
		f.want("status", f.view("a@x").Status, "open")
	})
}

// TestCalendarGone: an entry that vanishes is cancelled after two readings that agree. If many vanish at once, a person
// decides.
func TestCalendarGone(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		var all []string
		for i := range 10 {
			all = append(all, event(fmt.Sprint("e", i), fmt.Sprintf("Persona %c 333 123 450%d", 'A'+i, i), at.Add(time.Duration(i)*time.Hour)))
		}
		f.feed.body = ics(all...)
		f.read()
		f.start()
		f.read(time.Second)
		f.feed.body = ics(all[1:]...)
		f.read(every)
		f.want("after one reading", f.view("e0").Status, "open")
		f.feed.body = ics(all...)
		f.read(every)
		f.feed.body = ics(all[1:]...)
		f.read(every)
		f.want("after a reading that disagreed", f.view("e0").Status, "open")
		f.read(every)
		f.want("after two readings", f.view("e0").Status, "cancelled")

		f.feed.body = ics(all[6:]...)
		f.read(every)
		c := f.read(every)
		f.want("gone", c.Gone, 5)
		f.want("a person decides", f.view("e1").Status, "open")
		f.want("notices", f.notices(), 1)
		f.read(every)
		f.want("notices", f.notices(), 1)
		if r := s.call("POST", "/api/calendars/"+f.id+"/cancel-gone", f.Key, `{"count":4}`); r.status != http.StatusConflict {
			t.Errorf("another count: %d %s", r.status, r.body)
		}
		f.must(nil, "POST", "/api/calendars/"+f.id+"/cancel-gone", f.Key, `{"count":5}`)
		c = f.read(time.Minute)
		f.want("gone", c.Gone, 0)
		f.want("cancelled", f.view("e1").Status, "cancelled")
		f.want("those that stayed", f.view("e7").Status, "open")
	})
}

func (f *fed) notices() (n int) {
	f.t.Helper()
	if err := f.db.SQL.QueryRow("select count(*) from notice where kind = 14").Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestCalendarBad: a feed that fails, is cut off, is empty or is no calendar changes nothing, and people are told.
func TestCalendarBad(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		good := ics(event("a@x", "Ada 333 123 4567", at))
		f.feed.body, f.feed.header = good, http.Header{"Etag": {`"1"`}}
		f.read()
		f.start()
		f.read(time.Second)
		f.want("status", f.view("a@x").Status, "open")
		for _, bad := range []struct {
			what, body string
			status     int
		}{
			{"cut off", strings.TrimSuffix(good, "END:VCALENDAR\r\n"), 0}, {"empty", "", 0}, {"without events", ics(), 0}, {"a page", "<html>login</html>", 0},
			{"more than 20 MB", strings.TrimSuffix(good, "END:VCALENDAR\r\n") + strings.Repeat("X-PADDING:"+strings.Repeat("x", 1000)+"\r\n", 21_000) + "END:VCALENDAR\r\n", 0},
			{"gone", "", http.StatusNotFound}, {"unauthorized", "", http.StatusUnauthorized},
		} {
			f.feed.body, f.feed.status, f.feed.header = bad.body, bad.status, nil
			before := f.notices()
			for range 3 {
				c := f.read(8 * time.Hour / 3)
				if c.Error == nil {
					t.Errorf("%s: no error", bad.what)
				}
			}
			f.want(bad.what, f.view("a@x").Status, "open")
			f.want(bad.what+": notices", f.notices()-before, 1)
			f.feed.body, f.feed.status = good, 0
			if c := f.read(8 * time.Hour); c.Error != nil || c.Failures != 0 {
				t.Errorf("after %s: %v", bad.what, *c.Error)
			}
		}
		f.feed.status, f.feed.header = http.StatusTooManyRequests, http.Header{"Retry-After": {"7200"}}
		c := f.read(every)
		next, err := time.Parse(time.RFC3339, c.Next)
		if err != nil || next.Before(s.clock.Now().Add(119*time.Minute)) {
			t.Errorf("after 429 it is read at %s, now is %s", c.Next, s.clock.Now())
		}
		asked := f.feed.count()
		f.read(time.Hour)
		f.want("requests before Retry-After", f.feed.count()-asked, 0)
		f.want("status", f.view("a@x").Status, "open")
	})
}

// paused is a feed whose server answers only after proceed is closed.
type paused struct {
	*feed
	asking, proceed chan struct{}
}

func (p paused) RoundTrip(r *http.Request) (*http.Response, error) {
	close(p.asking)
	<-p.proceed
	return p.feed.RoundTrip(r)
}

// TestCalendarTakenOver: if a node dies while it reads, another node reads the calendar once the first one's lease has
// ended. What the first one then still wants to store is refused.
func TestCalendarTakenOver(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at))
		f.read()
		f.start()
		f.read(time.Second)
		old := paused{&feed{body: ics()}, make(chan struct{}), make(chan struct{})}
		old.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(5*time.Hour)))
		s.clock.Advance(every)
		slow := f.reader(old)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			slow.Run(t.Context())
		}()
		<-old.asking
		asked := f.feed.count()
		f.read()
		f.want("requests while the other node reads", f.feed.count()-asked, 0)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(24*time.Hour)))
		if _, err := f.db.SQL.Exec("update node set lease_until = 0"); err != nil {
			t.Fatal(err)
		}
		f.read(time.Second)
		f.want("requests after its lease", f.feed.count()-asked, 1)
		moved := f.view("a@x")
		close(old.proceed)
		<-ended
		f.want("the booking after the late reading", f.view("a@x").Revision, moved.Revision)
		f.read(every)
		f.want("the booking", f.view("a@x").Revision, moved.Revision)
	})
}

// TestCalendarChanged: a new address must be looked at and started again, and a reading of the old one stores nothing. The
// bookings of a deleted calendar stay.
func TestCalendarChanged(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at))
		f.read()
		f.start()
		f.read(time.Second)
		for _, bad := range []string{`{"url":"ftp://x.example/a"}`, `{"url":"https://x.example:70000/a"}`, `{"url":"http://x.example/a"}`, `{"url":"https://10.1.2.3/a"}`, `{"url":""}`, `{"phone_from":[]}`, `{"phone_from":["title","title"]}`, `{"phone_from":["oroscopo"]}`, `{"name":""}`, `{"sequence":"999"}`} {
			if r := s.call("PATCH", "/api/calendars/"+f.id, f.Key, bad); r.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d %s", bad, r.status, r.body)
			}
		}
		f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"name":"Altro"}`)
		if f.state().Started == nil {
			t.Error("another name stopped it")
		}
		f.must(nil, "PATCH", "/api/calendars/"+f.id, f.Key, `{"url":"https://anna:segreta@other.example/b.ics"}`)
		c := f.state()
		f.want("host", c.Host, "other.example")
		if c.Started != nil || c.Read != nil {
			t.Error("a new address needs no new start")
		}
		f.feed.body = ics(event("b@x", "Bea 333 123 4568", at))
		f.read()
		last := f.feed.asked[len(f.feed.asked)-1]
		user, password, _ := last.BasicAuth()
		f.want("sign-in", user+":"+password, "anna:segreta")
		f.want("address", last.URL.String(), "https://other.example/b.ics")
		if r := s.call("GET", "/api/bookings/b@x", f.Key, ""); r.status != http.StatusNotFound {
			t.Errorf("a booking of the new address before the start: %d", r.status)
		}
		f.want("the booking of the old address", f.view("a@x").Status, "open")
		f.must(nil, "DELETE", "/api/calendars/"+f.id, f.Key, "")
		f.want("the booking of a deleted calendar", f.view("a@x").Status, "open")
		if strings.Contains(f.log.String(), "segreta") || strings.Contains(f.log.String(), "private-abc") {
			t.Error("the log has the address of a calendar")
		}
	})
}

// TestCalendarErased: an erased person's entry is not read again, and a held client's calendars rest.
func TestCalendarErased(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		f := newFed(t, s)
		at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at), event("b@x", "Bea 333 123 4568", at))
		f.read()
		f.start()
		f.read(time.Second)
		f.must(nil, "POST", "/api/contacts/erase", f.Key, `{"phone":"+393331234567"}`)
		f.feed.body = ics(event("a@x", "Ada 333 123 4567", at.Add(time.Hour)), event("b@x", "Bea 333 123 4568", at))
		f.read(every)
		f.read(every)
		if all := f.entries(); len(all) != 1 || all[0].Reference != "b@x" {
			t.Errorf("entries: %v", all)
		}
		if r := s.call("GET", "/api/bookings/a@x", f.Key, ""); r.status != http.StatusNotFound {
			t.Errorf("the erased booking: %d %s", r.status, r.body)
		}
		if _, err := f.db.SQL.Exec("update client set held_at = 1"); err != nil {
			t.Fatal(err)
		}
		asked := f.feed.count()
		f.read(every)
		f.want("requests while held", f.feed.count()-asked, 0)
	})
}

// TestCalendarMany reads a feed with as many entries as a calendar may have, and with one more.
func TestCalendarMany(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	s.undescribed = true
	f := newFed(t, s)
	at := s.clock.Now().Add(72 * time.Hour).Truncate(time.Hour)
	var all []string
	for i := range puntuale.MaxCalendarEntries + 1 {
		all = append(all, event(fmt.Sprint("e", i), fmt.Sprintf("P 333 %07d", i), at.Add(time.Duration(i)*time.Minute)))
	}
	f.feed.body = ics(all...)
	c := f.read()
	if c.Error == nil || c.Entries != 0 {
		t.Errorf("one entry too many: %v, %d entries", c.Error, c.Entries)
	}
	f.feed.body = ics(all[1:]...)
	if c = f.read(every); c.Error != nil || c.Entries != puntuale.MaxCalendarEntries {
		t.Errorf("%v, %d entries", c.Error, c.Entries)
	}
}
