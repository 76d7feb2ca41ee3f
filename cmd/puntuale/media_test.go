package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSandboxMedia: with --sandbox-media, a message becomes FAILED before an attempt if its file may not be fetched.
// The message gets the reason. The server calls no private address. Without the flag, the simulated network accepts any
// address.
func TestSandboxMedia(t *testing.T) {
	t.Parallel()
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	go func() {
		for {
			c, err := inside.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { inside.Close() })
	for _, test := range []struct {
		flag, state, says string
		sent              int
	}{
		{"--sandbox-media=true", `"stato":"FAILED"`, `"risposta":"Indirizzo del file non ammesso","dettaglio_risposta":"media: `, 0},
		{"--sandbox-media=false", `"stato":"COMPLETED"`, `"risposta":"Inviato"`, 1},
	} {
		for _, address := range []string{"http://" + inside.Addr().String() + "/foto.jpg", "http://127.0.0.1/foto.jpg", "http://[64:ff9b::a9fe:a9fe]/foto.jpg"} {
			term := newConsole(t, nil)
			server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data", test.flag)
			base := server.logged.waitFor(t, `"url":"([^"]+)"`)
			partner := term.besideServer(t)(t, "", "partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
			_, body := call(t, "POST", base+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
			key := field(t, body, "api_key")
			_, body = call(t, "POST", base+"/api/sequences", key, `{"name": "s", "steps": [{"media": "`+address+`", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`)
			if status, body := call(t, "POST", base+"/api/start/"+field(t, body, "id"), key, `{"phone": "+393331234567"}`); status != http.StatusOK {
				t.Fatalf("start: %d %s", status, body)
			} else {
				id := strings.Split(body, `"`)[3]
				eventually(t, address+" is "+test.state+" with "+test.flag, func() bool {
					_, details := call(t, "GET", base+"/api/messages/details?message_ids[]="+id, key, "")
					return strings.Contains(details, test.state) && strings.Contains(details, test.says) && strings.Contains(details, `"invio_effettivo":null`) == (test.sent == 0)
				})
			}
			if _, body := call(t, "GET", base+"/api/sandbox/messages", key, ""); strings.Count(body, "message_id") != test.sent {
				t.Errorf("%s: the sandbox shows %s", test.flag, body)
			}
			if code := server.end(); code != exitDone {
				t.Errorf("exit code %d", code)
			}
			if left, err := os.ReadDir(filepath.Join(term.dir, "data", "media")); err != nil || len(left) > 0 {
				t.Errorf("%s: the media folder holds %v, %v", test.flag, left, err)
			}
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}
