package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/calendar"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	calendars "puntuale/internal/control/calendar"
)

// feedText is what the server of every calendar answers.
type feedText string

func (f feedText) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(f))), Request: r}, nil
}

// oneRound is a clock whose sleeps fail, so that a reader of calendars ends after one round.
type oneRound struct{ *clock.Fake }

func (oneRound) Sleep(context.Context, time.Duration) error { return errors.New("the round is over") }

// readFeeds reads all calendars that are due.
func (w *world) readFeeds(text feedText) {
	w.t.Helper()
	node, err := w.store.Join(context.Background(), time.Minute)
	w.must(err)
	calendar.NewReader(calendar.Config{
		Store: w.store, Node: func() puntuale.NodeID { return node }, Feeds: text, Clock: oneRound{w.clock}, Logger: slog.New(slog.NewTextHandler(testWriter{w.t}, nil)), Address: w.calendar.Address, Account: w.calendar.Account,
	}).Run(context.Background())
}

// feed makes a calendar and reads it.
func (w *world) feed(c *control.Client, sequence string, text feedText) puntuale.CalendarID {
	w.t.Helper()
	made, err := w.calendar.OfClient(c).Create(context.Background(), calendars.NewCalendar{Name: new("Agenda"), Address: new("https://calendar.example/a/basic.ics"), Sequence: &sequence}, control.Once[puntuale.Calendar]{})
	w.must(err)
	w.readFeeds(text)
	return made.ID
}

// feedOf returns a feed with appointments after now, and with entries that are none.
func feedOf(now time.Time, more ...string) feedText {
	var b strings.Builder
	at := now.Add(72 * time.Hour).Truncate(time.Hour)
	for i, title := range append([]string{"Ada Neri 333 123 4501", "Bruno Conti - tel. 333 123 4502", "Riunione", "Carla 333 123 4503 / 347 765 4321"}, more...) {
		fmt.Fprintf(&b, "BEGIN:VEVENT\r\nUID:e%d@feed\r\nDTSTART:%s\r\nSUMMARY:%s\r\nLOCATION:Studio\\, via Roma 1\r\nEND:VEVENT\r\n", i, at.Add(time.Duration(i)*time.Hour).UTC().Format("20060102T150405Z"), title)
	}
	fmt.Fprintf(&b, "BEGIN:VEVENT\r\nUID:day@feed\r\nDTSTART;VALUE=DATE:%s\r\nSUMMARY:Ferie\r\nEND:VEVENT\r\n", at.Format("20060102"))
	return feedText("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//\r\n" + b.String() + "END:VCALENDAR\r\n")
}

// TestFeedStory connects a calendar in a browser: the address, the first reading entry by entry, the start, and the page
// of appointments.
func TestFeedStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		_, err := w.Client().CreateSequence(context.Background(), bookedVisit(), control.Once[control.Sequence]{})
		w.must(err)
		text := feedOf(w.clock.Now())
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/bookings")
		b.leaves(func() { b.click(`a[href$="/calendars"]`) })
		b.check("none")
		b.leaves(func() { b.click(`main a[href$="/calendars/new"]`) })
		evaluate[bool](b, `document.querySelector("details.feed-more").open = true`)
		b.check("new")
		b.fill("name", "Agenda dello studio", "url", "nessun indirizzo")
		b.click("form.form .btn-primary, main form .btn-primary")
		b.until(`document.getElementById("f-url-fault")`)
		b.check("refused")
		b.fill("url", "webcal://calendar.example/private/basic.ics")
		b.leaves(func() { b.click("main form .btn-primary") })
		b.until(`document.querySelector(".feed-state")`)
		b.check("waits")
		w.readFeeds(text)
		b.until(`document.querySelectorAll("#feed tr[data-row]").length === 5 && document.querySelector('form[action$="/start"] button')`)
		b.check("read")
		b.leaves(func() { b.click(`a[href$="only=problems"]`) })
		b.until(`document.querySelectorAll("#feed tr[data-row]").length === 3`)
		b.check("problems")
		if n := w.bookings(); n != 0 {
			t.Errorf("%d bookings before the start", n)
		}
		b.leaves(func() { b.click(`form[action$="/start"] button`) })
		b.until(`!document.querySelector('form[action$="/start"]')`)
		w.readFeeds(text)
		b.until(`document.querySelectorAll("#feed .tag-ok").length >= 3`)
		b.check("started")
		if n := w.bookings(); n != 2 {
			t.Errorf("%d bookings after the start", n)
		}
		w.clock.Advance(time.Hour)
		w.readFeeds("<html>")
		b.until(`document.querySelector("#feed .notice-warn")`)
		b.check("failing")
		b.open(w.pages + "/calendars")
		b.check("list")
		b.click(`a.list-name`)
		b.until(`document.querySelector("[data-open=delete-calendar]")`)
		b.click(`[data-open=delete-calendar]`)
		b.until(`document.querySelector("dialog[open]")`)
		b.check("delete")
		b.leaves(func() { b.click(`dialog[open] .btn-danger`) })
		if n := w.bookings(); n != 2 {
			t.Errorf("%d bookings after the calendar was deleted", n)
		}
	})
}

func (w *world) bookings() (n int) {
	w.t.Helper()
	w.must(w.sql.QueryRow("select count(*) from booking where status < 2").Scan(&n))
	return n
}
