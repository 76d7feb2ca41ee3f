package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"puntuale/internal/store/storetest"
)

// sessionView is a session as the API shows it.
type sessionView struct {
	ID, State, Number, QR string
	Code                  string `json:"pairing_code"`
	Expires               string `json:"expires_at"`
	Detail                string `json:"state_detail"`
}

func view(t *testing.T, method, url, key, body string) sessionView {
	t.Helper()
	status, text := call(t, method, url, key, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s %s: %d %s", method, url, body, status, text)
	}
	var v sessionView
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLink unlinks a sandbox session, and shows its codes until the simulated phone links it. Then it waits until
// pending messages leave. Each call goes to the next of several servers. One of the servers owns the session.
func TestLink(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		term := newConsole(t, nil)
		server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data")
		rehearse(t, term, "sqlite:"+term.dir+"/data/puntuale.db", server)
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		database := storetest.Postgres(t).Config.Database
		var servers []*running
		var term *console
		for range 2 {
			term = newConsole(t, map[string]string{"PUNTUALE_DATABASE": database, "PUNTUALE_KEY": strings.Repeat("k", 32)})
			servers = append(servers, start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox"))
		}
		rehearse(t, term, database, servers...)
	})
}

func rehearse(t *testing.T, term *console, database string, servers ...*running) {
	t.Helper()
	var bases []string
	for _, s := range servers {
		bases = append(bases, s.logged.waitFor(t, `"url":"([^"]+)"`))
	}
	turn := 0
	next := func() string { turn++; return bases[turn%len(bases)] } // each call goes to another server
	beside := newConsole(t, nil)
	beside.program.lookupEnv, beside.dir = term.program.lookupEnv, term.dir
	args := []string{"partner", "create", "--name", "A", "--email", "a@example.com", "--password", "una frase lunga", "--json"}
	if strings.HasPrefix(database, "sqlite:") {
		args = append(args, "--data", "data")
	}
	if code := beside.run(context.Background(), args); code != exitDone {
		t.Fatalf("exit code %d: %s", code, beside.errs.String())
	}
	partner := field(t, beside.out.String(), "api_key")
	_, body := call(t, "POST", next()+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	key, session := field(t, body, "api_key"), "/api/sessions/"+field(t, body, "id_sessione")
	send := func(text string) string {
		t.Helper()
		status, body := call(t, "POST", next()+"/api/messages", key, `{"phone": "+393331234567", "text": "`+text+`"}`)
		if status != http.StatusOK {
			t.Fatalf("send: %d %s", status, body)
		}
		return body
	}
	arrived := func(n int) func() bool {
		return func() bool {
			_, body := call(t, "GET", next()+"/api/sandbox/messages", key, "")
			return strings.Count(body, "message_id") == n
		}
	}
	send("prima")
	eventually(t, "the first message arrived", arrived(1))

	settled := func(what, url string) { // while the session changes from one server to another, the status may be 409
		t.Helper()
		eventually(t, what, func() bool {
			status, body := call(t, "DELETE", next()+url, key, "")
			if status != http.StatusOK && !strings.Contains(body, `"busy"`) {
				t.Fatalf("%s: %d %s", what, status, body)
			}
			return status == http.StatusOK
		})
	}
	settled("the session is unlinked", session+"/pair")
	send("intanto")
	for range bases { // every server shows the same state
		if v := view(t, "GET", next()+session, key, ""); v.State != "unlinked" || v.QR != "" {
			t.Errorf("unlinked, as shown: %+v", v)
		}
	}
	codes := map[string]bool{}
	first := view(t, "POST", next()+session+"/pair", key, `{"method": "qr"}`)
	if first.State != "pairing" || first.QR == "" || first.Expires == "" {
		t.Fatalf("pairing: %+v", first)
	}
	codes[first.QR] = true
	if db, err := sql.Open(driverOf(database), strings.TrimPrefix(database, "sqlite:")); err != nil {
		t.Fatal(err)
	} else {
		noSecret(t, db, first.QR)
		db.Close()
	}
	var last sessionView
	eventually(t, "the phone linked the session", func() bool {
		last = view(t, "GET", next()+session, key, "")
		if last.QR != "" {
			codes[last.QR] = true
		}
		if last.State == "unlinked" { // on a slow machine a server may lose its lease, and then the pairing ends
			if last.Detail != "Collegamento interrotto" {
				t.Fatalf("the pairing ended: %+v", last)
			}
			call(t, "POST", next()+session+"/pair", key, `{"method": "qr"}`)
		}
		return last.State == "online"
	})
	if len(codes) < 2 || last.Number == "" || last.QR != "" {
		t.Errorf("%d codes were shown, and then %+v", len(codes), last)
	}
	eventually(t, "the waiting message arrived", arrived(2))
	if status, body := call(t, "POST", next()+session+"/pair", key, `{"method": "qr"}`); status != http.StatusConflict {
		t.Errorf("linked already: %d %s", status, body)
	}
	// Deleting a session waits for the messages in flight. Here the network answers after two seconds.
	_, body = call(t, "POST", next()+"/api/sessions", key, `{"name": "Seconda", "connection_type": "Socket"}`)
	second := field(t, body, "id")
	status, body := call(t, "POST", next()+"/api/messages", key, `{"phone": "+393331239903", "text": "x", "id_sessione": "`+second+`"}`)
	if status != http.StatusOK {
		t.Fatalf("send: %d %s", status, body)
	}
	eventually(t, "it is being sent", arrived(3))
	settled("a session is deleted", "/api/sessions/"+second+"?pending=cancel")
	if _, body := call(t, "GET", next()+"/api/messages?state=COMPLETED", key, ""); !strings.Contains(body, "+393331239903") {
		t.Errorf("what was in flight: %s", body)
	}
	for _, rest := range []string{"pending=cancel", "move_to=" + strings.TrimPrefix(session, "/api/sessions/")} {
		leftBehind(t, next, settled, key, database, rest)
	}
	for _, s := range servers {
		for code := range codes {
			if strings.Contains(s.logged.String(), code) {
				t.Errorf("a code is in the log")
			}
		}
	}
}

func driverOf(database string) string {
	if strings.HasPrefix(database, "sqlite:") {
		return "sqlite"
	}
	return "pgx"
}

// noSecret checks that the code is in no stored session and in no stored command.
func noSecret(t *testing.T, db *sql.DB, code string) {
	t.Helper()
	secret := strings.SplitN(code, ",", 2)[1]
	for _, table := range []string{"session", "command"} {
		rows, err := db.QueryContext(t.Context(), "select * from "+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			found++
			for i, v := range values {
				if text := fmt.Sprintf("%s", *v.(*any)); strings.Contains(text, secret) || strings.Contains(text, `"method"`) {
					t.Errorf("%s.%s holds a code or an order that can be read", table, columns[i])
				}
			}
		}
		if err := rows.Err(); err != nil || found == 0 {
			t.Errorf("%s: %d rows, %v", table, found, err)
		}
	}
}

// leftBehind deletes a session that cannot send. A killed server left one of the session's attempts in flight.
func leftBehind(t *testing.T, next func() string, settled func(what, url string), key, database, rest string) {
	t.Helper()
	_, body := call(t, "POST", next()+"/api/sessions", key, `{"name": "Staccata", "connection_type": "Socket"}`)
	id := field(t, body, "id")
	session := "/api/sessions/" + id
	settled("a new session is unlinked", session+"/pair")
	if status, body := call(t, "POST", next()+"/api/messages", key, `{"phone": "+393331234567", "text": "x", "id_sessione": "`+id+`"}`); status != http.StatusOK {
		t.Fatalf("send: %d %s", status, body)
	}
	db, err := sql.Open(driverOf(database), strings.TrimPrefix(database, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("update message set intent = 1, intent_at = next_at + 1, attempt = 1 where session_id = $1", id); err != nil {
		t.Fatal(err)
	}
	settled("a session that cannot send is deleted, "+rest, session+"?"+rest)
	if _, body := call(t, "GET", next()+"/api/messages?state=FAILED", key, ""); !strings.Contains(body, "Esito incerto") {
		t.Errorf("what was left behind: %s", body)
	}
}
