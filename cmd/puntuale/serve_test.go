package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/demo"
)

// printed contains the output of a running command so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// patience is how long a test waits for what takes moments on an idle machine. Beside many others, the first start of a
// server, which creates all tables, can take over a minute.
const patience = 3 * time.Minute

// waitFor polls until the output matches a pattern. It returns the pattern's first group.
func (p *printed) waitFor(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); ; {
		if m := re.FindStringSubmatch(p.String()); m != nil {
			return m[len(m)-1]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not printed within %v:\n%s", pattern, patience, p.String())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// running is a command that runs until the test stops it, as SIGTERM does.
type running struct {
	*console
	printed, logged *printed
	stop            context.CancelFunc
	code            chan int
}

func start(t *testing.T, term *console, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{console: term, printed: &printed{}, logged: &printed{}, stop: stop, code: make(chan int, 1)}
	p := term.program
	p.stdout, p.stderr = r.printed, r.logged
	go func() { r.code <- p.run(ctx, args) }()
	t.Cleanup(func() {
		stop()
		if code := <-r.code; code != exitDone {
			t.Errorf("exit code %d:\n%s", code, r.logged.String())
		}
		r.code <- exitDone
	})
	return r
}

// end stops the command and returns its exit code.
func (r *running) end() int {
	r.stop()
	code := <-r.code
	r.code <- code
	return code
}

func call(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func field(t *testing.T, body, name string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	text, ok := members[name].(string)
	if !ok {
		t.Fatalf("no text %s in %s", name, body)
	}
	return text
}

// TestServe does what an operator does: start a server, create a partner and rotate a key beside the server, read the
// metrics, stop and restart.
func TestServe(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	args := []string{"serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data"}
	server := start(t, term, args...)
	base := server.logged.waitFor(t, `"url":"([^"]+)"`)
	for path, want := range map[string]string{"/healthz": `"ok"`, "/readyz": `"ready"`, "/metrics": "puntuale_lateness_seconds", "/openapi.json": `"openapi"`} {
		if status, body := call(t, "GET", base+path, "", ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}

	beside := term.besideServer(t)
	key := beside(t, "", "partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	next := beside(t, key, "key", "rotate", "--grace", "0s", "--json")
	client := `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`
	if status, body := call(t, "POST", base+"/api/client/create", key, client); status != http.StatusUnauthorized {
		t.Errorf("the old key, without grace: %d %s", status, body)
	}
	status, body := call(t, "POST", base+"/api/client/create", next, client)
	if status != http.StatusOK {
		t.Fatalf("the new key: %d %s", status, body)
	}
	key = field(t, body, "api_key")
	if status, body := call(t, "POST", base+"/api/sequences", key, `{"name": "s", "steps": [{"text": "ciao", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`); status != http.StatusOK {
		t.Fatalf("create a sequence: %d %s", status, body)
	}
	if status, body := call(t, "POST", base+"/api/start/1?api_key="+key, "", `{"phone": "+393331234567"}`); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, body)
	}
	eventually(t, "the message was sent", func() bool {
		_, figures := call(t, "GET", base+"/metrics", "", "")
		return strings.Contains(figures, `outcome="sent"} 1`) &&
			strings.Contains(figures, `puntuale_http_requests_total{route="POST /api/start/{id_sequenza}",status="200"} 1`)
	})
	_, body = call(t, "GET", base+"/api/client/1/keys", next, "")
	id := regexp.MustCompile(`"id":"?(\d+)`).FindStringSubmatch(body)
	if id == nil {
		t.Fatalf("the client's keys: %s", body)
	}
	lost := beside(t, "", "key", "rotate", "--id", id[1], "--json") // nobody has the client's key any more
	for name, k := range map[string]string{"the lost key, within the grace": key, "the client's new key": lost} {
		if status, body := call(t, "GET", base+"/api/sequences", k, ""); status != http.StatusOK || !strings.HasPrefix(k, "ck_") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if code := server.end(); code != exitDone {
		t.Errorf("stopped with exit code %d", code)
	}
	log := server.logged.String()
	if !strings.Contains(log, `"msg":"stopped"`) || strings.Contains(log, key[3:]) || strings.Contains(log, next[3:]) || strings.Contains(log, lost[3:]) || strings.Contains(log, "3331234567") {
		t.Errorf("the log lacks the stop, or holds a key or a number:\n%s", log)
	}

	again := start(t, term, append(args, "--anonymous-rate", "0.2")...)
	base = again.logged.waitFor(t, `"url":"([^"]+)"`)
	if _, body := call(t, "GET", base+"/api/sandbox/messages", key, ""); strings.Count(body, "message_id") != 1 {
		t.Errorf("after a restart the sandbox shows %s", body)
	}
	unknownCallersArePaced(t, base, key)
}

// besideServer returns a function that runs commands on the same data, with a line of input. The function returns the
// key that a command prints.
func (term *console) besideServer(t *testing.T) func(t *testing.T, input string, args ...string) string {
	t.Helper()
	return func(t *testing.T, input string, args ...string) string {
		t.Helper()
		other := newConsole(t, nil)
		other.dir, other.stdin = term.dir, strings.NewReader(input+"\n")
		if code := other.run(context.Background(), append(args, "--data", "data")); code != exitDone {
			t.Fatalf("%v: exit code %d, %s", args, code, other.errs.String())
		}
		return field(t, other.out.String(), "api_key")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// TestServeRefuses: a server that cannot start says why, and closes everything that it opened.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	term := newConsole(t, nil)
	if code := term.run(context.Background(), []string{"serve", "--addr", taken}); code != exitFailed || !strings.Contains(term.errs.String(), taken) {
		t.Errorf("a taken address: exit code %d, %s", code, term.errs.String())
	}
	start(t, term, "serve", "--addr", "127.0.0.1:0").logged.waitFor(t, `"url":"([^"]+)"`)
	second := newConsole(t, nil)
	second.dir = term.dir
	if code := second.run(context.Background(), []string{"serve", "--addr", "127.0.0.1:0"}); code != exitFailed || !strings.Contains(second.errs.String(), "this database is in use: another process") {
		t.Errorf("a second server on one file: exit code %d, %s", code, second.errs.String())
	}
}

// TestServeRefusesPrices: the server names every fault of a price table with its line. It accepts a valid table.
func TestServeRefusesPrices(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	file := filepath.Join(term.dir, "prices.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := []string{"serve", "--addr", "127.0.0.1:0", "--prices", "prices.csv"}
	if code := term.run(t.Context(), serve); code != exitFailed || !strings.Contains(term.errs.String(), "prices.csv") {
		t.Errorf("no file: exit code %d, %s", code, term.errs.String())
	}
	const header = "currency,EUR\ndate,2026-10-01\nsource,prova\ncountry,marketing\n"
	write(header + "Italia,0.1\nFR,\"0,1\"\n")
	if code := term.run(t.Context(), serve); code != exitFailed || !strings.Contains(term.errs.String(), "line 5: ") || !strings.Contains(term.errs.String(), "line 6: ") {
		t.Errorf("a bad file: exit code %d, %s", code, term.errs.String())
	}
	write(header + "IT,0.1\n")
	start(t, term, serve...).logged.waitFor(t, `"url":"([^"]+)"`)
}

// TestMigrate: migrate makes a database. A server that may not migrate accepts this database.
func TestMigrate(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	for range 2 {
		if code := term.run(context.Background(), []string{"migrate"}); code != exitDone {
			t.Fatalf("exit code %d, %s", code, term.errs.String())
		}
	}
	start(t, term, "serve", "--no-migrate", "--addr", "127.0.0.1:0").logged.waitFor(t, `"url":"([^"]+)"`)
}

// TestLargeHeaders: the server bounds the header of a request, because it must read the header before it can know the
// caller.
func TestLargeHeaders(t *testing.T) {
	t.Parallel()
	base := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0").logged.waitFor(t, `"url":"http://([^"]+)"`)
	conn, err := net.Dial("tcp", base)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: "+strings.Repeat("x", 2*32<<10)+"\r\n\r\n")
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %d", response.StatusCode)
	}
}

// demoPhoneHasOne links a phone in the same way as the demo's page, and finds one waiting message. Each connection type
// has its own number.
func demoPhoneHasOne(t *testing.T, text string) {
	t.Helper()
	address := regexp.MustCompile(`(\S+)/phone#code=(\S+)`).FindStringSubmatch(text)
	var linked struct {
		Token string `json:"device_token"`
	}
	status, answer := call(t, "POST", address[1]+"/device/link", "", `{"code": "`+address[2]+`", "name": "Pixel"}`)
	if err := json.Unmarshal([]byte(answer), &linked); err != nil || status != http.StatusOK {
		t.Fatalf("the demo's code: %d %s", status, answer)
	}
	if status, answer := call(t, "GET", address[1]+"/device/due", linked.Token, ""); status != http.StatusOK || !strings.Contains(answer, demo.TextByHand) {
		t.Errorf("the demo's phone has %d %s", status, answer)
	}
	key := regexp.MustCompile(`Bearer (ck_\w+)`).FindStringSubmatch(text)[1]
	_, sessions := call(t, "GET", address[1]+"/api/sessions", key, "")
	for _, kind := range []puntuale.ConnectionType{puntuale.Socket, puntuale.SendApp, puntuale.Official} {
		if !strings.Contains(sessions, `"`+string(kind)+`"`) {
			t.Errorf("the demo shows no number of type %s: %s", kind, sessions)
		}
	}
}

// TestDemo runs the demo, pastes the line that it prints, and ends it. Then it runs the demo again in the same folder.
func TestDemo(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	for range 2 {
		demo := start(t, term, "demo", "--addr", "127.0.0.1:0")
		demo.printed.waitFor(t, `\+393331234567  Ciao Anna`)
		text := demo.printed.String()
		url := regexp.MustCompile(`curl -s (\S+)`).FindStringSubmatch(text)[1]
		key := regexp.MustCompile(`Bearer (ck_\w+)`).FindStringSubmatch(text)[1]
		body := regexp.MustCompile(`-d '(.*)'`).FindStringSubmatch(text)[1]
		if status, answer := call(t, "POST", url, key, body); status != http.StatusOK {
			t.Fatalf("the pasted line answered %d %s\n%s", status, answer, text)
		}
		demo.printed.waitFor(t, `\+393477654321  Ciao Luca`)
		demo.printed.waitFor(t, `\+393331234567  Ci trovi in Via Roma 1`)
		demoPhoneHasOne(t, text)
		if code := demo.end(); code != exitDone {
			t.Fatalf("exit code %d: %s", code, demo.logged.String())
		}
		if log := demo.logged.String(); log != "" {
			t.Errorf("a calm demo logs nothing, but:\n%s", log)
		}
	}
}
