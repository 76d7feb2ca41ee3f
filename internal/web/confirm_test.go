package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

var confirmLink = regexp.MustCompile(`https://([a-z.]+)(/conferma\?t=([A-Z2-7]{26}))`)

// visits makes a sequence for bookings whose message contains the address of the page, and returns its id.
func (w *world) visits() string {
	w.t.Helper()
	start := puntuale.Timing{Anchor: puntuale.AnchorStart}
	s, err := w.Client().CreateSequence(context.Background(), control.NewSequence{Name: "Visita", Booking: "giorno", Steps: []puntuale.Step{
		{Text: "Ciao {{nome}}, conferma qui: {{conferma}}", Timing: start},
	}}, control.Once[control.Sequence]{})
	w.must(err)
	return s.ID.String()
}

// booked makes or changes a booking.
func (w *world) booked(reference, sequence string, fields string) control.BookingAnswer {
	w.t.Helper()
	var members map[string]json.RawMessage
	w.must(json.Unmarshal([]byte(fields), &members))
	a, err := w.Client().PutBooking(context.Background(), control.BookingCall{Reference: reference, Sequence: sequence, Phone: "+393331234567", Fields: members, Door: puntuale.DoorAPI, Body: []byte(fields)})
	w.must(err)
	return a
}

// linkOf returns the address in the latest message to a phone: the host name, and the path.
func (w *world) linkOf(phone string) (host, path string) {
	w.t.Helper()
	all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Phone: phone, Page: request.Page{Limit: "1"}})
	w.must(err)
	found := confirmLink.FindStringSubmatch(all[0].Content.Text)
	if found == nil {
		w.t.Fatalf("no address in %q", all[0].Content.Text)
	}
	return found[1], found[2]
}

func (w *world) statusOf(reference string) string {
	w.t.Helper()
	v, err := w.Client().Booking(context.Background(), reference)
	w.must(err)
	return v.Status.String()
}

// TestConfirmPage: the page in a message confirms and cancels a booking, without signing in and without scripts. Only its
// buttons act, because previews of chats fetch every address.
func TestConfirmPage(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	sequence := w.visits()
	w.booked("v1", sequence, `{"nome":"Ada","giorno":"2027-01-20T15:30"}`)
	host, path := w.linkOf("+393331234567")
	if host != "app.example" {
		t.Errorf("the address is at %s", host)
	}
	them := w.visitor(0)
	form := func(does string) url.Values {
		t.Helper()
		page := them.get(path)
		values := url.Values{"does": {does}}
		for _, name := range []string{"t", "date"} {
			found := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page.body)
			if found == nil {
				t.Fatalf("no %s in %s", name, page.body)
			}
			values.Set(name, found[1])
		}
		return values
	}
	page := them.get(path)
	for name, want := range map[string]string{"Referrer-Policy": "same-origin", "X-Robots-Tag": "noindex, nofollow", "Cache-Control": "no-store"} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if page.status != http.StatusOK || strings.Contains(page.body, "<script") || !strings.Contains(page.body, "20 gennaio 2027") || !strings.Contains(page.body, "15:30") {
		t.Errorf("the page: %d %s", page.status, page.body)
	}
	if len(page.header.Values("Set-Cookie")) > 0 {
		t.Errorf("a cookie: %v", page.header.Values("Set-Cookie"))
	}
	them.do(http.MethodHead, path, nil, nil)
	if got := w.statusOf("v1"); got != "open" {
		t.Errorf("after reading: %s", got)
	}
	if r := them.do(http.MethodPost, "/conferma", form("confirm"), http.Header{"Sec-Fetch-Site": {"cross-site"}}); r.status != http.StatusForbidden || w.statusOf("v1") != "open" {
		t.Errorf("from another site: %d, %s", r.status, w.statusOf("v1"))
	}
	confirmed := form("confirm")
	if r := them.post("/conferma", confirmed); r.to() != path || w.statusOf("v1") != "confirmed" {
		t.Errorf("confirm: %d to %q, %s", r.status, r.to(), w.statusOf("v1"))
	}
	if page := them.get(path).body; !strings.Contains(page, "Hai confermato") {
		t.Errorf("after confirming: %s", page)
	}
	if v, err := w.Client().Booking(context.Background(), "v1"); err != nil || v.Answer == nil || v.Answer.Matched != puntuale.MatchPage || v.StatusBy != puntuale.DoorPerson {
		t.Errorf("the booking: %+v, %v", v.Booking, err)
	}
	w.booked("v1", "", `{"giorno":"2027-01-21T15:30"}`)
	if r := them.post("/conferma", confirmed); r.to() != path+"&unclear=1" || w.statusOf("v1") != "open" {
		t.Errorf("a page about another date: %q, %s", r.to(), w.statusOf("v1"))
	}
	if n := w.unclear(); n != 1 {
		t.Errorf("%d notices", n)
	}
	if r := them.post("/conferma", form("cancel")); r.to() != path || w.statusOf("v1") != "cancelled" {
		t.Errorf("cancel: %q, %s", r.to(), w.statusOf("v1"))
	}
	if r := them.post("/conferma", form("confirm")); r.to() != path || w.statusOf("v1") != "confirmed" {
		t.Errorf("the person may change their mind: %q, %s", r.to(), w.statusOf("v1"))
	}
	for _, bad := range []url.Values{{"does": {"open"}, "t": form("x")["t"], "date": form("x")["date"]}, {"does": {"confirm"}, "t": {"AAAA"}}, {}} {
		if r := them.post("/conferma", bad); r.status != http.StatusNotFound {
			t.Errorf("%v: %d", bad, r.status)
		}
	}
	w.booked("v1", "", `{"giorno":"2027-01-22T15:30"}`)
	_, err := w.Client().PutBooking(context.Background(), control.BookingCall{Reference: "v1", Phone: "+393339876543", Door: puntuale.DoorAPI, Body: []byte("{}")})
	w.must(err)
	if r := them.get(path); r.status != http.StatusNotFound {
		t.Errorf("the page of somebody whose booking it is no more: %d", r.status)
	}
	_, path = w.linkOf("+393339876543")
	if r := them.get(path); r.status != http.StatusOK {
		t.Errorf("the other person's: %d", r.status)
	}
	w.clock.Set(time.Date(2027, 1, 22, 14, 30, 0, 0, time.UTC))
	if page := them.get(path).body; strings.Contains(page, "<button") || !strings.Contains(page, "La data è passata") {
		t.Errorf("after the date: %s", page)
	}
	w.clock.Advance(24*time.Hour + time.Second)
	if r := them.get(path); r.status != http.StatusNotFound || !strings.Contains(r.body, "non più disponibile") {
		t.Errorf("a day later: %d", r.status)
	}
}

// TestConfirmPageLooks: the page speaks the person's language, and is at the partner's host in the partner's look.
func TestConfirmPageLooks(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	p := w.store.Partner(w.partner)
	w.must(p.SetBrand(context.Background(), puntuale.Brand{Name: "Messaggi Aurora", Host: "sms.aurora.example", Colour: "#aa3344"}))
	w.must(p.ConfirmHost(context.Background(), "sms.aurora.example"))
	_, err := w.Client().AddContact(context.Background(), control.NewContact{Phone: "+393331234567", Language: "en"}, control.Once[puntuale.Contact]{})
	w.must(err)
	w.booked("v1", w.visits(), `{"nome":"Ada","giorno":"2027-01-20T15:30"}`)
	host, path := w.linkOf("+393331234567")
	if host != "sms.aurora.example" {
		t.Errorf("the address is at %s", host)
	}
	page := w.visitor(0).do(http.MethodGet, path, nil, http.Header{"Host": {host}}).body
	for _, want := range []string{`lang="en"`, "Your appointment", "I confirm", "Messaggi Aurora", "/style.css"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
}

// TestConfirmStory presses both buttons of the page in a browser.
func TestConfirmStory(t *testing.T) {
	t.Parallel()
	startChromium(t)
	for _, look := range screens(t) {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorldAt(t, "https://app.example")
			w.booked("v1", w.visits(), `{"nome":"Ada","giorno":"2027-01-20T15:30"}`)
			_, path := w.linkOf("+393331234567")
			b := newBrowser(t, w, look)
			b.open(path)
			b.check("asked")
			b.leaves(func() { b.click(`button[value="confirm"]`) })
			b.until(`!document.querySelector('button[value="confirm"]')`)
			b.check("confirmed")
			b.leaves(func() { b.click(`button[value="cancel"]`) })
			b.until(`!document.querySelector('button[value="cancel"]')`)
			b.check("cancelled")
			if status := w.statusOf("v1"); status != "cancelled" {
				t.Errorf("the booking is %s", status)
			}
		})
	}
}

// unclear counts the notices about answers that people must look at.
func (w *world) unclear() (n int) {
	w.t.Helper()
	w.must(w.sql.QueryRow("select count(*) from notice where kind = 13").Scan(&n))
	return n
}
