package web_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

var messageNumbers = regexp.MustCompile(`/messages/\d+|<dd>\d{9,}</dd>`)

// numbered returns the main part of a page without identifiers, because identifiers depend on the clock.
func numbered(page string) string {
	if from, to := strings.Index(page, "<main"), strings.Index(page, "</main>"); from >= 0 && to > from {
		page = page[from:to]
	}
	return rowNumbers.ReplaceAllString(versions.ReplaceAllString(messageNumbers.ReplaceAllString(page, "/messages/N"), "version=V"), `id="row-N"`)
}

var rowNumbers = regexp.MustCompile(`id="row-\d+"|name="id" value="\d+"`)

var versions = regexp.MustCompile(`version=[0-9a-f.]+`)

// TestMessagesStory shows the usual work with messages. A person finds a failed message and resends it. Then the person
// moves a pending message and undoes this, and cancels it and undoes this. At the end the person resends all failed
// messages.
func TestMessagesStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		failed, pending := f.day()
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/messages")
		b.check("list")

		b.open(w.pages + "/messages/" + failed.String())
		b.click("[data-open=again]")
		b.until(`document.querySelector("dialog[open]")`)
		b.check("again")
		b.click("dialog[open] button.btn-primary")
		b.until(`!location.pathname.endsWith("` + failed.String() + `")`)
		b.check("planned-again")
		if d := detail(t, w, failed); d.State != puntuale.Rescheduled {
			t.Errorf("the failed one is %v", d.State)
		}

		b.open(w.pages + "/messages/" + pending.String())
		b.click("[data-open=move]")
		b.fill("date", "2026-11-19", "time", "09:00")
		b.click("dialog[open] button.btn-primary")
		b.until(`document.querySelector("dialog[open] .fault")`)
		b.check("refused")
		b.fill("date", "2026-11-27", "time", "15:45")
		b.click("dialog[open] button.btn-primary")
		b.until(`document.querySelector("[data-toast] form")`)
		b.check("moved")
		b.click("[data-toast] form button")
		b.until(`document.querySelector(".story") && !document.querySelector("[data-toast] form") && document.querySelector(".facts")?.innerText.includes("10:47")`)

		b.open(w.pages + "/messages/all?state=FAILED")
		b.check("ask-all")
		b.click("#bulk button.btn-primary")
		b.until(`location.pathname.endsWith("/messages")`)
		b.check("all-done")
	})
}

func detail(t *testing.T, w *world, id puntuale.MessageID) *puntuale.MessageDetail {
	t.Helper()
	found, err := w.Client().Details(context.Background(), []string{id.String()})
	if err != nil || len(found) != 1 {
		t.Fatalf("message %d: %v", id, err)
	}
	return &found[0]
}

func TestMessagesGolden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	failed, pending := f.day()
	v := w.visitor(w.clients[puntuale.Staff])
	golden(t, "messages", numbered(v.get(w.pages+"/messages").body))
	golden(t, "message-failed", numbered(v.get(w.pages+"/messages/"+failed.String()).body))
	golden(t, "message-pending", numbered(v.get(w.pages+"/messages/"+pending.String()).body))
	golden(t, "messages-all", numbered(v.get(w.pages+"/messages/all?state=FAILED").body))
}

func TestMessageFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	f.day()
	v := w.visitor(w.clients[puntuale.Reader])
	for query, want := range map[string]string{
		"?state=FAILED":                    "+393331239901",
		"?phone=3401234500":                "+393401234500",
		"?from=2026-11-21&to=2026-11-21":   "+393411234500",
		"?sequence=" + f.sequence.String(): "+393411234504",
	} {
		r := v.get(w.pages + "/messages" + query)
		if r.status != http.StatusOK || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d, without %s", query, r.status, want)
		}
	}
	if r := v.get(w.pages + "/messages?phone=abc&from=x"); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `value="abc"`) {
		t.Errorf("a bad search: %d", r.status)
	}
	if r := v.get(w.pages + "/messages?state=FAILED"); strings.Contains(r.body, "/messages/all") {
		t.Error("a reader is offered to send all again")
	}
}

// TestMessageActions does the same as the buttons, but without scripts.
func TestMessageActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	failed, pending := f.day()
	v := w.visitor(w.clients[puntuale.Staff])
	page := w.pages + "/messages/" + pending.String()
	was := detail(t, w, pending).Planned()

	r := v.post(page+"/move", url.Values{"date": {"2026-11-27"}, "time": {"15:45"}})
	if r.status != http.StatusSeeOther {
		t.Fatalf("move: %d %s", r.status, r.body)
	}
	moved := r.to()
	if d := detail(t, w, pending); d.State != puntuale.Rescheduled {
		t.Errorf("moved: %v", d.State)
	}
	undo := regexp.MustCompile(`action="([^"]+/back\?[^"]+)"`).FindStringSubmatch(v.get(moved).body)
	if undo == nil {
		t.Fatal("nothing takes the move back")
	}
	r = v.post(strings.ReplaceAll(undo[1], "&amp;", "&"), nil)
	back := idIn(t, r.to())
	if d := detail(t, w, back); d.State != puntuale.Pending || !d.Planned().Equal(was) {
		t.Errorf("taken back: %v at %v, was %v", d.State, d.Planned(), was)
	}

	r = v.post(r.to()+"/cancel", nil)
	if d := detail(t, w, back); r.status != http.StatusSeeOther || d.State != puntuale.Cancelled {
		t.Errorf("cancelled: %d, %v", r.status, d.State)
	}
	r = v.post(r.to()+"/restore", nil)
	if d := detail(t, w, idIn(t, r.to())); d.State != puntuale.Pending || !d.Planned().Equal(was) {
		t.Errorf("restored: %v at %v", d.State, d.Planned())
	}
	if r = v.post(page+"/move", url.Values{"date": {"2026-11-27"}, "time": {"15:45"}}); r.status != http.StatusConflict {
		t.Errorf("what was moved is moved once more: %d", r.status)
	}
	if r = v.post(w.pages+"/messages/"+failed.String()+"/again", url.Values{"when": {"date"}, "date": {"2026-11-01"}, "time": {"10:00"}}); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, "2026-11-01") {
		t.Errorf("again in the past: %d", r.status)
	}
}

func idIn(t *testing.T, address string) puntuale.MessageID {
	t.Helper()
	id, err := puntuale.ParseID[puntuale.MessageID](address[strings.LastIndex(address, "/")+1:])
	if err != nil {
		t.Fatalf("%q: %v", address, err)
	}
	return id
}

// TestBulk resends all failed messages, part by part. It does not change messages whose state is different by now.
func TestBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	now := w.clock.Now()
	for range 250 {
		f.ended("+393331239901", "ciao", now.Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")})
	}
	v := w.visitor(w.clients[puntuale.Staff])
	form := regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)
	page := v.get(w.pages + "/messages/all?state=FAILED").body
	if !strings.Contains(page, "250 messaggi") {
		t.Error("the question does not say how many")
	}
	parts := 0
	for ; parts < 5; parts++ {
		values := url.Values{"when": {"now"}}
		for _, m := range form.FindAllStringSubmatch(page, -1) {
			values.Set(m[1], m[2])
		}
		r := v.post(w.pages+"/messages/all", values)
		if r.status == http.StatusSeeOther {
			break
		}
		page = r.body
	}
	left, _, err := w.Client().CountMessages(context.Background(), control.MessageQuery{State: "FAILED"}, 1000)
	w.must(err)
	pending, _, err := w.Client().CountMessages(context.Background(), control.MessageQuery{State: "PENDING"}, 1000)
	w.must(err)
	if parts != 1 || left != 0 || pending != 250 {
		t.Errorf("after %d parts %d are left, %d pending", parts+1, left, pending)
	}
}

// TestExport: a cell that a spreadsheet could run as a formula is written as text.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	for _, text := range []string{`=HYPERLINK("http://evil.example","x")`, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "va bene; \"sì\"\nqui"} {
		f.planned("+393331234567", text, w.clock.Now().Add(time.Hour))
	}
	r := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/messages/export")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/csv") || !strings.HasPrefix(r.body, "\uFEFF") {
		t.Fatalf("%d %v", r.status, r.header)
	}
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(r.body, "\uFEFF")))
	in.Comma = ';'
	rows, err := in.ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("%q would be calculated", cell)
			}
		}
	}
}

// TestSentWords: the words after a message was accepted say whether it leaves now, or later.
func TestSentWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	for when, says := range map[string]string{"now": "Il messaggio parte subito.", "date": "Il messaggio è in programma."} {
		r := v.post(w.pages+"/messages/new", url.Values{"phone": {"+393331234567"}, "text": {"ciao"}, "purpose": {"service"}, "when": {when},
			"date": {w.clock.Now().Add(24*time.Hour).Format("2006-01-02") + "T09:30"}, "key": {when}})
		if r.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", when, r.status, inMain(r.body))
		}
		if _, toast, _ := strings.Cut(v.get(r.to()).body, "data-toast"); !strings.Contains(toast, says) {
			t.Errorf("%s: %s", when, toast)
		}
	}
}

// TestOnlyLiveListsStream: a list that does not reload itself has no stream either. Else an address that somebody wrote by hand
// would read a long period, or search, after each change.
func TestOnlyLiveListsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Reader])
	for path, want := range map[string]int{
		"/bookings/live?day=2026-11-25": http.StatusOK, "/bookings/live?day=2026-11-25&view=week": http.StatusOK,
		"/bookings/live?day=2026-11-25&end=2027-11-20": http.StatusNotFound, "/bookings/live?day=2025-11-25&end=2025-12-24": http.StatusNotFound,
		"/bookings/live?text=anna": http.StatusNotFound, "/bookings/live?day=2026-11-25&cursor=x": http.StatusNotFound,
		"/messages/live": http.StatusOK, "/messages/live?state=failed": http.StatusOK,
		"/messages/live?text=anna": http.StatusNotFound, "/messages/live?cursor=x": http.StatusNotFound,
	} {
		ctx, end := context.WithTimeout(t.Context(), within)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+w.pages+path, nil)
		w.must(err)
		r.Header.Set("Accept", "text/event-stream")
		answered, err := v.http.Do(r)
		w.must(err)
		if answered.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answered.StatusCode, want)
		}
		end()
		answered.Body.Close()
	}
}

// TestLiveMessages: an open list is sent again after a change, and not before a change.
func TestLiveMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	v := w.visitor(w.clients[puntuale.Reader])
	live := regexp.MustCompile(`hx-sse:connect="([^"]+)"`).FindStringSubmatch(v.get(w.pages + "/messages").body)
	if live == nil {
		t.Fatal("the list does not follow")
	}
	ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+strings.ReplaceAll(live[1], "&amp;", "&"), nil)
	w.must(err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := v.http.Do(r)
	w.must(err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != ": here" {
		t.Fatalf("%d %q", response.StatusCode, lines.Text())
	}
	w.looked(ctx)
	w.looked(ctx)
	f.planned("+393339876543", "<b>ciao</b>", w.clock.Now().Add(time.Hour))
	w.looked(ctx)
	var first strings.Builder
	for lines.Scan() && (lines.Text() != "" || first.Len() == 0) {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			first.WriteString(data)
		}
	}
	if !strings.Contains(first.String(), "+393339876543") {
		t.Errorf("the first event is without the new message: %s", first.String())
	}
}

// lookEvery is how long the server rests between two looks for changes of a client that some page follows.
const lookEvery = 2 * time.Second

// looked waits until the server has looked for changes, and lets it look again.
func (w *world) looked(ctx context.Context) {
	w.t.Helper()
	w.must(w.clock.WaitingUntil(ctx, w.clock.Now().Add(lookEvery)))
	w.clock.Advance(lookEvery)
}

// TestLivePages: a message leaves while its own page and its person's page are open. Both then say so: no page shows the
// message as sent in one place and as pending in another.
func TestLivePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	id := f.planned("+393331234567", "ciao", w.clock.Now())
	v := w.visitor(w.clients[puntuale.Reader])
	pages := map[string][2]string{ // the words before, and then
		w.pages + "/messages/" + id.String(): {"In attesa", "Inviato"},
		w.personURL("+393331234567"):         {"uno in attesa", "uno inviato"},
	}
	live := map[string]string{}
	for at, says := range pages {
		page := v.get(at).body
		if text := words(inMain(page)); !strings.Contains(text, says[0]) || strings.Contains(text, says[1]) {
			t.Errorf("%s says before: %s", at, text)
		}
		live[at] = html.UnescapeString(between(page, `hx-sse:connect="`, `"`))
	}
	f.arrives(id)
	for at, says := range pages {
		if text := words(v.event(live[at])); !strings.Contains(text, says[1]) || strings.Contains(text, says[0]) {
			t.Errorf("%s says then: %s", at, text)
		}
	}
}

// TestLiveCounts: an open list shows each change, and counts only at first and ten seconds later. A browser whose connection
// ended between gets the counts at once.
func TestLiveCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	v := w.visitor(w.clients[puntuale.Reader])
	list := v.get(w.pages + "/messages").body
	live := regexp.MustCompile(`hx-sse:connect="([^"]+)"`).FindStringSubmatch(list)
	counted := regexp.MustCompile(`tab-count">([0-9]+)<`)
	before, err := strconv.Atoi(counted.FindStringSubmatch(list)[1])
	w.must(err)
	follow := func(last string) (next func() (id, content string)) {
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		t.Cleanup(end)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+strings.ReplaceAll(live[1], "&amp;", "&"), nil)
		w.must(err)
		r.Header.Set("Accept", "text/event-stream")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		response, err := v.http.Do(r)
		w.must(err)
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		return func() (id, content string) {
			for lines.Scan() {
				if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
					id = text
				}
				if content += lines.Text(); lines.Text() == "" && id != "" {
					return id, content
				}
			}
			t.Fatal("the stream ended")
			return "", ""
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	next := follow("")
	var last string
	for i, want := range []int{before + 1, before + 1} {
		phone := fmt.Sprintf("+39333987650%d", i)
		f.planned(phone, "ciao", w.clock.Now().Add(time.Hour))
		w.looked(ctx)
		id, content := next()
		if !strings.Contains(content, phone) {
			t.Errorf("change %d is not shown: %s", i+1, content)
		}
		if got := counted.FindStringSubmatch(content); got == nil || got[1] != strconv.Itoa(want) {
			t.Errorf("after %d changes: %v messages are counted, want %d", i+1, got, want)
		}
		last = id
	}
	if _, content := follow(last)(); counted.FindStringSubmatch(content)[1] != strconv.Itoa(before+2) {
		t.Errorf("a new connection is not told the counts: %v", counted.FindStringSubmatch(content))
	}
}

// TestHostileMessages shows texts that would run code if they were not escaped.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	text := `<script>alert(1)</script><img src=x onerror=alert(1)>" x-data="{}" hx-get="/x" {{`
	id := f.planned("+393331234567", text, w.clock.Now().Add(time.Hour))
	v := w.visitor(w.clients[puntuale.Reader])
	for _, page := range []string{"", "/messages", "/messages/" + id.String()} {
		r := v.get(w.pages + page)
		if strings.Contains(r.body, "<script>alert") || strings.Contains(r.body, "<img src=x") || !strings.Contains(r.body, "&lt;script&gt;alert(1)") {
			t.Errorf("%q shows it as more than text", page)
		}
	}
}
