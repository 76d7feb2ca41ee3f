//go:build e2e

package e2e

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestStopEndsEveryWait stops a server while every kind of long call is open and messages become due. Each call gets a
// proper answer, or a half request is cut. The server ends within its time with exit code 0. After the signal it claims
// nothing, and it leaves nothing uncertain. The next server sends the rest, and no message twice.
func TestStopEndsEveryWait(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		w := newStopWorld(t, database)
		ids := w.load()
		calls := w.begin()
		w.allWait(len(calls))
		signalled := time.Now()
		if code := w.s.terminate(stopTakes); code != 0 {
			t.Errorf("exit code %d", code)
		}
		t.Logf("ended %v after SIGTERM", time.Since(signalled).Round(time.Millisecond))
		for name, c := range calls {
			select {
			case got := <-c.done:
				if !slices.Contains(c.want, got) {
					t.Errorf("%s: %q, want one of %q", name, got, c.want)
				}
			case <-time.After(5 * time.Second):
				t.Errorf("%s: no answer", name)
			}
		}
		db := openDatabase(t, database)
		for what, text := range map[string]string{
			"claimed after SIGTERM": fmt.Sprintf("select count(*) from message where intent_at > %d", signalled.Add(time.Second).UnixMicro()),
			"uncertain":             "select count(*) from message where state = 0 and intent > 0",
		} {
			var n int
			if err := db.QueryRow(text).Scan(&n); err != nil || n > 0 {
				t.Errorf("%d messages were %s (%v)", n, what, err)
			}
		}
		w.s.start()
		eventually(t, 30*time.Second, "every message left", func() bool { return len(ledger(t, w.s.base, w.who.key)) >= len(ids) })
		for id, m := range details(t, w.s.base, w.who.key, ids) {
			if m.State != "COMPLETED" {
				t.Errorf("message %s is %v", id, m)
			}
		}
		if n := len(ledger(t, w.s.base, w.who.key)); n != len(ids) {
			t.Errorf("%d messages reached the network, want %d", n, len(ids))
		}
	})
}

// TestSecondSignalEndsAtOnce: a second SIGTERM or SIGINT ends a server that still waits for a message in flight.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := serve(t, filepath.Join(t.TempDir(), "puntuale.db"), "--sandbox-latency", "30s", "--stop-within", "60s")
		who := createTenant(t, s.base, createPartner(t, s.database), "full", step("ciao", 0, "seconds"))
		must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393471234567"})
		eventually(t, 10*time.Second, "the message is in flight", func() bool { return len(ledger(t, s.base, who.key)) == 1 || inFlight(t, s.database) == 1 })
		s.signal(syscall.SIGTERM)
		eventually(t, 10*time.Second, "the server stops", func() bool { return strings.Contains(tail(s.log, 3000), `"stopping"`) })
		s.signal(second)
		select {
		case <-s.exited:
			if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != second {
				t.Errorf("%v: ended with %v", second, s.cmd.ProcessState)
			}
			s.cmd = nil
		case <-time.After(10 * time.Second):
			t.Errorf("%v: still running", second)
		}
	}
}

func inFlight(t *testing.T, database string) (n int) {
	t.Helper()
	if err := openDatabase(t, database).QueryRow("select count(*) from message where state = 0 and intent > 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// openDatabase opens a server's database from outside.
func openDatabase(t *testing.T, database string) *sql.DB {
	t.Helper()
	driver, address := "sqlite", "file:"+database+"?_pragma=busy_timeout(20000)"
	if strings.HasPrefix(database, "postgres") {
		driver, address = "pgx", database
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// stopTakes is the setting --stop-within.
const stopTakes = 16 * time.Second

// stopWorld is a server, and a network address that takes every call and never answers.
type stopWorld struct {
	t     *testing.T
	s     *server
	who   tenant
	hole  *httptest.Server
	fell  atomic.Int64 // calls that reached the hole
	holes int          // calls that must reach it
	long  *http.Client
	page  *reader
}

func newStopWorld(t *testing.T, database string) *stopWorld {
	t.Helper()
	w := &stopWorld{t: t, long: &http.Client{Transport: &http.Transport{}}}
	ended := make(chan struct{})
	w.hole = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.fell.Add(1)
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(ended); w.hole.Close() })
	w.s = prepare(t, database, "--stop-within", stopTakes.String(), "--sandbox-latency", "300ms", "--webhook-allow", "127.0.0.0/8",
		"--gateway-allow", "127.0.0.0/8", "--official-api-url", w.hole.URL)
	w.s.args = append(w.s.args, "--public-url", w.s.base)
	w.s.env = []string{"HTTPS_PROXY=" + w.hole.URL}
	w.s.start()
	w.who = createTenant(t, w.s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
	w.page = &reader{t: t, base: w.s.base}
	w.page.post(http.StatusSeeOther, "/login", url.Values{"email": {"rossi@example.com"}, "password": {"una frase lunga 42"}})
	w.page.post(http.StatusSeeOther, "/partner/clients/"+w.who.id+"/enter", nil)
	return w
}

// load plans messages that become due during the stop. It returns their ids.
func (w *stopWorld) load() (ids []string) {
	w.t.Helper()
	var steps []any
	for i := range 20 {
		steps = append(steps, step(fmt.Sprint("numero ", i), i/2, "seconds"))
	}
	var sequence struct{ ID string }
	must(w.t, "POST", w.s.base+"/api/sequences", w.who.key, map[string]any{"name": "Molti", "steps": steps}).into(w.t, &sequence)
	for i := range 20 {
		var begun struct{ ID []string }
		must(w.t, "POST", w.s.base+"/api/start/"+sequence.ID, w.who.key, map[string]any{"phone": fmt.Sprintf("+3934712%05d", i)}).into(w.t, &begun)
		ids = append(ids, begun.ID...)
	}
	return ids
}

// stopCall is a call that is open when the server stops. done receives its answer: the status and the kind of its body.
type stopCall struct {
	done chan string
	want []string
}

// begin begins the calls.
func (w *stopWorld) begin() map[string]*stopCall {
	w.t.Helper()
	calls := map[string]*stopCall{}
	const stopped = "503 1"
	ask := func(name, method, path string, body any, want ...string) {
		calls[name] = w.ask(method, path, w.who.key, body, want)
	}
	ask("feed", "GET", "/api/events?wait=30&types=campaign.done", nil, `200 {"events":[]`)
	calls["take"] = w.ask("POST", "/device/take", w.device(), map[string]any{"take": "t1", "wait": 30}, []string{`200 {"messages":[]}`})
	ask("check", "POST", "/api/campaigns/"+w.checking()+"/check", nil, "200 {")
	var hook struct{ ID string }
	must(w.t, "POST", w.s.base+"/api/webhooks", w.who.key, map[string]any{"url": w.hole.URL + "/hook", "types": []string{"campaign.done"}}).into(w.t, &hook)
	ask("webhook test", "POST", "/api/webhooks/"+hook.ID+"/test", nil, stopped)
	session := func(more map[string]any) string {
		var made struct{ ID string }
		body := map[string]any{"name": "prova", "sandbox": false}
		for k, v := range more {
			body[k] = v
		}
		must(w.t, "POST", w.s.base+"/api/sessions", w.who.key, body).into(w.t, &made)
		return made.ID
	}
	ask("Chatwoot", "PUT", "/api/sessions/"+session(map[string]any{"connection_type": "Socket"})+"/chatwoot", map[string]any{
		"base_url": w.hole.URL, "api_access_token": "x", "account_id": "1"}, stopped)
	ask("pairing", "POST", "/api/sessions/"+session(map[string]any{"connection_type": "Socket"})+"/pair", map[string]any{"method": "qr"}, stopped)
	ask("gateway", "POST", "/api/sessions/"+session(map[string]any{"connection_type": "Send_app", "gateway": map[string]any{
		"base_url": w.hole.URL, "access_token": "x", "instance_id": "i"}})+"/test", nil, stopped)
	ask("Official", "POST", "/api/sessions/"+session(map[string]any{"connection_type": "Official", "official": map[string]any{
		"phone_number_id": "123456", "access_token": "x", "app_secret": "y", "verify_token": "z"}})+"/test", nil, stopped)
	for i := range 12 {
		calls[fmt.Sprint("sign-in ", i)] = w.signIn(i)
	}
	calls["live page"] = w.stream("/c/" + w.who.id + "/messages/live")
	calls["live link"] = w.stream("/c/" + w.who.id + "/sessions/" + session(map[string]any{"connection_type": "Socket"}) + "/link/live")
	var campaign struct{ ID string }
	must(w.t, "POST", w.s.base+"/api/campaigns", w.who.key, map[string]any{"name": "Lista", "sequence": w.who.sequence}).into(w.t, &campaign)
	calls["upload"] = w.half("PUT", "/api/campaigns/"+campaign.ID+"/recipients?columns=phone:Telefono", "Telefono\r\n+3934712345")
	calls["start"] = w.half("POST", "/api/start/"+w.who.sequence, `{"phone": "+39347`)
	w.holes = 4
	return calls
}

// allWait waits until all calls have reached the server, and those that lead to the hole have reached it.
func (w *stopWorld) allWait(calls int) {
	w.t.Helper()
	eventually(w.t, 20*time.Second, "the calls wait", func() bool {
		a, err := call("GET", w.s.base+"/metrics", "", nil)
		if err != nil {
			return false
		}
		open := 0
		for line := range strings.Lines(string(a.body)) {
			if n, err := fmt.Sscanf(line, "puntuale_connections %d", &open); n == 1 && err == nil {
				break
			}
		}
		return open >= calls-12 && w.fell.Load() >= int64(w.holes) // sign-ins may have been answered
	})
}

// ask begins a call on a connection of its own.
func (w *stopWorld) ask(method, path, key string, body any, want []string) *stopCall {
	c := &stopCall{make(chan string, 1), want}
	go func() {
		a, err := callWith(w.long, method, w.s.base+path, key, body)
		if err != nil {
			c.done <- err.Error()
			return
		}
		c.done <- w.kind(c, a.status, a.header, string(a.body))
	}()
	return c
}

// kind shortens an answer to what the wanted answers say of it: a refusal to its Retry-After.
func (w *stopWorld) kind(c *stopCall, status int, header http.Header, body string) string {
	got := fmt.Sprint(status, " ", body)
	if status == http.StatusServiceUnavailable && strings.Contains(body, "the server is stopping") {
		got = fmt.Sprint(status, " ", header.Get("Retry-After"))
	}
	for _, want := range c.want {
		if strings.HasPrefix(got, want) {
			return want
		}
	}
	return got
}

// signIn tries to sign in with a wrong password. Many of these calls wait for a slot to hash the password.
func (w *stopWorld) signIn(i int) *stopCall {
	c := &stopCall{make(chan string, 1), []string{"answered"}}
	go func() {
		form := url.Values{"email": {"rossi@example.com"}, "password": {fmt.Sprint("sbagliata ", i)}}
		r, err := http.NewRequest(http.MethodPost, w.s.base+"/login", strings.NewReader(form.Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			var a *http.Response
			if a, err = w.long.Do(r); err == nil {
				_, err = io.Copy(io.Discard, a.Body)
				a.Body.Close()
			}
		}
		if err != nil {
			c.done <- err.Error()
			return
		}
		c.done <- "answered"
	}()
	return c
}

// stream opens a live page, and reads it to its end. It returns when the first line has arrived.
func (w *stopWorld) stream(path string) *stopCall {
	w.t.Helper()
	c := &stopCall{make(chan string, 1), []string{"ended"}}
	r, err := http.NewRequest(http.MethodGet, w.s.base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	a, err := (&http.Client{Transport: w.long.Transport, Jar: w.page.jar}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewReader(a.Body)
	if first, err := lines.ReadString('\n'); a.StatusCode != http.StatusOK || err != nil {
		w.t.Fatalf("%s: %d %q %v", path, a.StatusCode, first, err)
	}
	go func() {
		defer a.Body.Close()
		if _, err := io.Copy(io.Discard, lines); err != nil {
			c.done <- err.Error()
			return
		}
		c.done <- "ended"
	}()
	return c
}

// half sends a request without its end.
func (w *stopWorld) half(method, path, body string) *stopCall {
	w.t.Helper()
	c := &stopCall{make(chan string, 1), []string{"503 1", "cut"}}
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.s.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\n%s", method, path, w.who.key, body); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			c.done <- "cut"
			return
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		c.done <- w.kind(c, a.StatusCode, a.Header, string(text))
	}()
	return c
}

// device links a device, and returns its token.
func (w *stopWorld) device() string {
	w.t.Helper()
	var made struct{ ID string }
	must(w.t, "POST", w.s.base+"/api/sessions", w.who.key, map[string]any{
		"name": "telefoni", "connection_type": "Send_app", "sandbox": false, "device": map[string]any{}}).into(w.t, &made)
	var offered struct {
		Code string `json:"pairing_code"`
	}
	must(w.t, "POST", w.s.base+"/api/sessions/"+made.ID+"/pair", w.who.key, map[string]any{}).into(w.t, &offered)
	var linked struct {
		Token string `json:"device_token"`
	}
	must(w.t, "POST", w.s.base+"/device/link", "", map[string]any{"code": offered.Code, "name": "telefono"}).into(w.t, &linked)
	return linked.Token
}

// checking makes a campaign whose check seems to run in another process, and returns its id.
func (w *stopWorld) checking() string {
	w.t.Helper()
	var made struct{ ID string }
	must(w.t, "POST", w.s.base+"/api/campaigns", w.who.key, map[string]any{"name": "Grande", "sequence": w.who.sequence}).into(w.t, &made)
	must(w.t, "POST", w.s.base+"/api/campaigns/"+made.ID+"/recipients", w.who.key, map[string]any{"recipients": []any{map[string]any{"phone": "+393471234567"}}})
	text := fmt.Sprintf("update campaign set state = 1, checked_at = %d where id = %s", time.Now().Add(time.Minute).UnixMicro(), made.ID)
	if _, err := openDatabase(w.t, w.s.database).Exec(text); err != nil {
		w.t.Fatal(err)
	}
	return made.ID
}
