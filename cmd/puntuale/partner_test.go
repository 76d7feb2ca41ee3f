package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runs runs the program once with a line of input. It returns the exit code and all output.
func (term *console) runs(input string, args ...string) (code int, out, errs string) {
	term.out.Reset()
	term.errs.Reset()
	term.stdin = strings.NewReader(input)
	code = term.run(context.Background(), args)
	return code, term.out.String(), term.errs.String()
}

// TestPartnerCreateRefuses: the refusal names the flags that have faults.
func TestPartnerCreateRefuses(t *testing.T) {
	t.Parallel()
	code, _, said := newConsole(t, nil).runs("\n", "partner", "create", "--name", " ", "--email", "nobody", "--password", "-")
	for _, flag := range []string{"--name", "--email", "--password"} {
		if !strings.Contains(said, flag) {
			t.Errorf("%s is not named in %s", flag, said)
		}
	}
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}

// TestSecondPartner: if the command is run twice, the second run is refused, and only one partner exists.
func TestSecondPartner(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	create := []string{"partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json"}
	code, out, said := term.runs("", create...)
	if code != exitDone || !strings.HasPrefix(out, `{"id":1,"api_key":"pk_`) {
		t.Fatalf("exit code %d, %s %s", code, out, said)
	}
	file := filepath.Join(term.dir, "puntuale-data", "puntuale.db")
	if said != "puntuale: there was no database; made a new one: "+file+"\n" {
		t.Errorf("of the new database it said %q", said)
	}
	create[5] = "Rossi@Example.com"
	code, out, said = term.runs("", create...)
	if code != exitFailed || out != "" || !strings.Contains(said, "exists already: number 1, Agenzia Rossi, of 20") {
		t.Errorf("the second time: exit code %d, %s %s", code, out, said)
	}
	code, out, said = term.runs("", append(create, "--another")...)
	if code != exitDone || !strings.HasPrefix(out, `{"id":2,`) || said != "" {
		t.Errorf("another one, on purpose: exit code %d, %s %s", code, out, said)
	}
}

// TestPartnerCreateSaysWhere: people sign in at the address of the settings, not at an example.
func TestPartnerCreateSaysWhere(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"http://127.0.0.1:8080/login.":        nil,
		"http://localhost:9000/login.":        {"PUNTUALE_ADDR": ":9000"},
		"https://messages.example.com/login.": {"PUNTUALE_ADDR": ":9000", "PUNTUALE_PUBLIC_URL": "https://messages.example.com"},
	} {
		code, out, said := newConsole(t, env).runs("", "partner", "create", "--name", "A", "--email", "a@example.com", "--password", "una frase lunga 42")
		if code != exitDone || !strings.Contains(out, "People sign in as a@example.com at "+want) {
			t.Errorf("%v: %s%s", env, out, said)
		}
	}
}

// TestKeyRotate: the command reads the key only from standard input, because every user of the machine can see a
// command line.
func TestKeyRotate(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("pk_x\n", "key", "rotate"); code != exitFailed || !strings.Contains(said, "there is no database") {
		t.Errorf("without a database: exit code %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(term.dir, "puntuale-data")); err == nil {
		t.Error("it made one")
	}
	_, out, _ := term.runs("", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42", "--json")
	key := field(t, out, "api_key")
	if code, _, said := term.runs("", "key", "rotate", key); code != exitUsage || strings.Contains(said, key[3:]) {
		t.Errorf("as an argument: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs("pk_wrong\n", "key", "rotate"); code != exitFailed || !strings.Contains(said, "not valid") {
		t.Errorf("nobody's key: exit code %d, %s", code, said)
	}
	if code, out, said := term.runs(key+"\n", "key", "rotate"); code != exitDone || !strings.Contains(out, "stays valid for 24h") {
		t.Errorf("exit code %d, %s %s", code, out, said)
	}
	if code, _, said := term.runs("", "key", "rotate", "--id", "77"); code != exitFailed || !strings.Contains(said, "key") {
		t.Errorf("no such id: exit code %d, %s", code, said)
	}
	code, out, said := term.runs("", "key", "rotate", "--id", "2", "--grace", "0s")
	if code != exitDone || !strings.Contains(out, "  pk_") || !strings.Contains(out, "no longer valid") {
		t.Errorf("by its id: exit code %d, %s %s", code, out, said)
	}
	if code, _, said := term.runs("", "key", "rotate", "--id", "2"); code != exitFailed || !strings.Contains(said, "no longer valid") {
		t.Errorf("a key that ended: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs("", "key", "rotate", "--id", "3", "--grace", "2161h"); code != exitUsage || !strings.Contains(said, "--grace") {
		t.Errorf("more than 90 days: exit code %d, %s", code, said)
	}
}

// TestKeyWebhook: the secret of a webhook is replaced while a server runs. Its next events are signed with both secrets.
func TestKeyWebhook(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("", "key", "webhook", "--id", "1", "--data", "data"); code != exitFailed || !strings.Contains(said, "there is no database") {
		t.Errorf("without a database: exit code %d, %s", code, said)
	}
	got := make(chan *http.Request, 9)
	bodies := make(chan []byte, 9)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r
		bodies <- body
	}))
	defer receiver.Close()
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data", "--webhook-allow", "127.0.0.0/8")
	base := server.logged.waitFor(t, `"url":"([^"]+)"`)
	partner := term.besideServer(t)(t, "", "partner", "create", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	_, body := call(t, "POST", base+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	key := field(t, body, "api_key")
	secrets := map[string][]string{}
	for owner, k := range map[string]string{"client": key, "partner": partner} {
		status, body := call(t, "POST", base+"/api/webhooks", k, `{"url": "`+receiver.URL+`/`+owner+`", "types": ["message.sent"]}`)
		if status != http.StatusOK {
			t.Fatalf("a webhook of the %s: %d %s", owner, status, body)
		}
		id := field(t, body, "id")
		beside := newConsole(t, nil)
		beside.dir = term.dir
		code, out, said := beside.runs("", "key", "webhook", "--id", id, "--data", "data", "--json")
		if code != exitDone {
			t.Fatalf("exit code %d, %s", code, said)
		}
		secrets["/"+owner] = []string{field(t, out, "secret"), field(t, body, "secret")}
		if until, err := time.Parse(time.RFC3339, field(t, out, "old_valid_until")); err != nil || time.Until(until) < 23*time.Hour {
			t.Errorf("%s, %v", out, err)
		}
		if code, _, said := beside.runs("", "key", "webhook", "--id", "77", "--data", "data"); code != exitFailed || !strings.Contains(said, "webhook") {
			t.Errorf("no such id: exit code %d, %s", code, said)
		}
	}
	call(t, "POST", base+"/api/sequences", key, `{"name": "s", "steps": [{"text": "ciao", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`)
	if status, body := call(t, "POST", base+"/api/start/1", key, `{"phone": "+393331234567"}`); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, body)
	}
	for range 2 {
		r, body := <-got, <-bodies
		signatures := strings.Fields(r.Header.Get("webhook-signature"))
		if len(signatures) != 2 {
			t.Fatalf("%s: signed with %v", r.URL.Path, signatures)
		}
		for i, secret := range secrets[r.URL.Path] {
			sealed, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
			if err != nil {
				t.Fatal(err)
			}
			mac := hmac.New(sha256.New, sealed)
			mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "."))
			mac.Write(body)
			if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); !slices.Contains(signatures, want) {
				t.Errorf("%s: secret %d does not sign", r.URL.Path, i)
			}
		}
	}
	server.end()
	if log := server.logged.String(); strings.Contains(log, "whsec_") {
		t.Error("a secret is in the log")
	}
}

// TestPartnerPassword: after the command, a user who was locked out can sign in.
func TestPartnerPassword(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	create := []string{"partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json"}
	if code, _, said := term.runs("", create...); code != exitDone {
		t.Fatal(said)
	}
	for _, test := range []struct {
		input, email, want string
		code               int
	}{
		{"tramonto sul lago\n", "nessuno@example.com", "no partner has a user", exitFailed},
		{"corta\n", "rossi@example.com", "--password", exitFailed},
		{"tramonto sul lago\n", "Rossi@example.com", "has the new password", exitDone},
	} {
		code, out, said := term.runs(test.input, "partner", "password", "--email", test.email, "--no-second")
		if code != test.code || !strings.Contains(out+said, test.want) {
			t.Errorf("%q for %s: exit code %d, %s %s", test.input, test.email, code, out, said)
		}
	}
	if code, _, said := term.runs("", append(create, "--another")...); code != exitDone {
		t.Fatal(said)
	}
	if code, _, said := term.runs("tramonto sul lago\n", "partner", "password", "--email", "rossi@example.com"); code != exitFailed || !strings.Contains(said, "--partner says which") {
		t.Errorf("two partners: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs("tramonto sul lago\n", "partner", "password", "--email", "rossi@example.com", "--partner", "2"); code != exitDone {
		t.Errorf("the second: exit code %d, %s", code, said)
	}
}
