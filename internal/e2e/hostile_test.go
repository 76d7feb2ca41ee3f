//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bounds of the test with hostile connections.
const (
	hostileMemory = 400 // the server's memory, in MB
	hostileDelay  = 250 * time.Millisecond

	keptConnections    = 4096 // how many connections the server keeps
	hostileConnections = 5300 // a fifth of the connections pause between two attacks, and the server closes the connections above its limit
)

// TestHostileMix opens more connections than the server keeps. Each connection tries in its own way to use up memory or
// a permit. Some send bodies that never end, for every kind of route. Some do not read the answers. Some send imports,
// or webhook requests for sessions that do not exist. The server stays below its memory bound, and answers another
// client's starts in time.
func TestHostileMix(t *testing.T) {
	withoutDisk(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		partner := createPartner(t, database)
		victim := createTenant(t, s.base, partner, "full", step("{{n}}", 1, "hours"))
		mix := newHostileMix(t, s, partner)
		if _, err := timedStart(s, victim, 0); err != nil {
			t.Fatal(err)
		}

		window, windows := 6*time.Second, 3
		if long {
			window, windows = time.Minute, 3
		}
		attackers := mix.begin(t)
		var delays []time.Duration
		for tries, disturbed := 0, 0; tries < windows && disturbed < maxDisturbed; { // a repeated try cannot lower the highest memory use, so the memory bound must hold at the first try
			took := hostTook(func() { delays = startDelays(t, s, victim, window) })
			seen := attackers.seen()
			t.Logf("%d starts, p50 %v, p99 %v, max %v; %d MB at most; %v; the host took %.0f %%", len(delays),
				quantile(delays, 0.5), quantile(delays, 0.99), quantile(delays, 1), peak(t, s), seen, 100*took)
			good := quantile(delays, 0.99) <= hostileDelay && seen.Open >= keptConnections
			if good && !long {
				break
			}
			if !good && took > hostShare {
				disturbed++
			} else {
				tries++
			}
		}
		seen := attackers.end(t)
		if p99 := quantile(delays, 0.99); p99 > hostileDelay {
			t.Errorf("another client's starts: p99 %v", p99)
		}
		if highest := peak(t, s); highest > hostileMemory {
			t.Errorf("%d MB", highest)
		}
		if seen.Open < keptConnections {
			t.Errorf("only %d connections were open at once", seen.Open)
		}
		for _, a := range mix.Attacks {
			if seen.Made[a.Name] == 0 {
				t.Errorf("no connection attacked by: %s", a.Name)
			}
		}
		if log, err := os.ReadFile(s.log); err != nil || bytes.Contains(log, []byte(`"level":"ERROR"`)) {
			at := bytes.Index(log, []byte(`"level":"ERROR"`))
			t.Errorf("the log has an error: %s, %v", log[max(0, at-100):min(len(log), max(0, at)+300)], err)
		}
	})
}

// startDelays makes one start after the other, as a normal client does. It returns how long each start took.
func startDelays(t *testing.T, s *server, who tenant, within time.Duration) (delays []time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < within; {
		took, err := timedStart(s, who, rand.Int64N(10_000_000))
		if err != nil {
			t.Error(err)
			return delays
		}
		delays = append(delays, took)
		<-time.After(10 * time.Millisecond)
	}
	slices.Sort(delays)
	return delays
}

func timedStart(s *server, who tenant, n int64) (time.Duration, error) {
	began := time.Now()
	a, err := call("POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": fmt.Sprintf("+39347%07d", n), "n": n})
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("a start: %d %s", a.status, a.body)
	}
	return time.Since(began), err
}

func newHostileMix(t *testing.T, s *server, partner string) hostileMix {
	t.Helper()
	text := strings.Repeat("x", 4096)
	var steps []any
	for range 50 {
		steps = append(steps, step(text, 1, "hours"))
	}
	attacker := createTenant(t, s.base, partner, "full", steps...)
	for range 79 { // makes the longest sequences that a client may have
		must(t, "POST", s.base+"/api/sequences", attacker.key, map[string]any{"name": "x", "steps": steps})
	}
	var started struct {
		ID []string `json:"id"`
	}
	must(t, "POST", s.base+"/api/start/"+attacker.sequence, attacker.key, map[string]any{"phone": "+393470000000"}).into(t, &started)
	cookie := signedIn(t, s, attacker.id)
	m := hostileMix{Addr: strings.TrimPrefix(s.base, "http://"), Connections: hostileConnections}
	add := func(name, head, body string, drips, reads bool) {
		m.Attacks = append(m.Attacks, hostileAttack{name, strings.ReplaceAll(head, "\n", "\r\n") + "\r\nHost: x\r\n\r\n" + body, drips, reads})
	}
	half, key := strings.Repeat("x", 512<<10), "\nAuthorization: Bearer "+attacker.key
	form := "\nContent-Type: application/x-www-form-urlencoded"
	signature := "\nX-Hub-Signature-256: sha256=" + strings.Repeat("0", 64)
	page := "/c/" + attacker.id

	add("unfinished sign-in", "POST /login HTTP/1.1\nContent-Length: 1048576"+form, half, true, false)
	add("chunked sign-in", "POST /login HTTP/1.1\nTransfer-Encoding: chunked"+form, "80000\r\n"+half, true, false)
	add("slow sign-in", "POST /login HTTP/1.1\nContent-Length: 16000"+form, "email=", true, false)
	add("unfinished start without a key", "POST /api/start/1 HTTP/1.1\nContent-Length: 1048576", half, true, false)
	add("unfinished start with a wrong key", "POST /api/start/1 HTTP/1.1\nContent-Length: 1048576\nAuthorization: Bearer ck_"+strings.Repeat("a", 43), half, true, false)
	add("unfinished sequence", "POST /api/sequences HTTP/1.1\nContent-Length: 1048576"+key, half, true, false)
	add("slow sequence", "POST /api/sequences HTTP/1.1\nContent-Length: 1048576"+key, "{", true, false)
	add("sequence of empty steps", "POST /api/sequences HTTP/1.1\nContent-Length: 900023"+key, `{"name":"x","steps":[`+strings.Repeat("{},", 299_999)+`{}]}`, false, true)
	add("webhook of nobody", "POST /webhooks/official/424242 HTTP/1.1\nContent-Length: 3145728"+signature, half, true, false)
	add("slow webhook of nobody", "POST /webhooks/official/424242 HTTP/1.1\nContent-Length: 3145728", "x", true, false)
	add("sequences unread", "GET /api/sequences?limit=1000 HTTP/1.1"+key, "", false, false)
	add("a sequence unread", "GET /api/sequences/"+attacker.sequence+" HTTP/1.1"+key, "", false, false)
	add("messages unread", "GET /api/messages/details?message_ids="+strings.Join(started.ID, ",")+" HTTP/1.1"+key, "", false, false)
	add("document unread", "GET /openapi.json HTTP/1.1", "", false, false)
	add("page unread", "GET "+page+"/sequences/"+attacker.sequence+"/edit HTTP/1.1"+cookie, "", false, false)
	add("file unread", "GET "+page+"/sequences/"+attacker.sequence+"/export HTTP/1.1"+cookie, "", false, false)
	add("events", "GET "+page+"/messages/live HTTP/1.1\nAccept: text/event-stream"+cookie, "", false, false)
	add("unfinished form", "POST "+page+"/sequences/draft HTTP/1.1\nContent-Length: 1048576"+form+cookie, half, true, false)
	steps300 := url.Values{"content": {`{"name":"x","steps":[` + strings.Repeat("{},", 99_999) + `{}]}`}}.Encode()
	add("import", fmt.Sprintf("POST %s/sequences/import HTTP/1.1\nContent-Length: %d%s%s", page, len(steps300), form, cookie), steps300, false, true)
	add("head that does not end", "GET / HTTP/1.1\nX-A: b", "", true, false)
	m.Attacks[len(m.Attacks)-1].Request = "GET / HTTP/1.1\r\nX-A: b"
	return m
}

// signedIn returns the cookie header of a user. The user signed in to the partner's dashboard, and from there entered a
// client's dashboard.
func signedIn(t *testing.T, s *server, client string) string {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(path, cookie string, form url.Values) *http.Response {
		r, err := http.NewRequest(http.MethodPost, s.base+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		a, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %d", path, a.StatusCode)
		}
		return a
	}
	var pairs []string
	for _, c := range post("/login", "", url.Values{"email": {"rossi@example.com"}, "password": {"una frase lunga 42"}}).Cookies() {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	cookie := strings.Join(pairs, "; ")
	post("/partner/clients/"+client+"/enter", cookie, nil)
	return "\nCookie: " + cookie
}
