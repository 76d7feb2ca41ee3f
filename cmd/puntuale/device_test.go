package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/push/pushtest"
)

// TestDevice runs a server with two devices: a phone that gets Web Push, and a program that sends. The test links the
// program with a code, restarts the server, and unlinks the program.
func TestDevice(t *testing.T) {
	t.Parallel()
	service := pushtest.New(t)
	term := newConsole(t, nil)
	term.push = service.Transport()
	args := []string{"serve", "--data", "data", "--public-url", "https://messages.example.com", "--log-level", "debug", "--addr"}
	server := start(t, term, append(args, "127.0.0.1:0")...)
	r := newOfficial(t, graphtest.New(t, graphtest.NewNumber("101")), term, []string{"--data", "data"}, server)
	r.session = field(t, r.must("POST", "/api/sessions", `{"name": "modem", "connection_type": "Send_app", "sandbox": false, "device": {}}`), "id")

	program := newConsole(t, nil)
	code := field(t, r.must("POST", "/api/sessions/"+r.session+"/pair", "{}"), "pairing_code")
	link := []string{"device", "link", "--server", r.base, "--name", "modem", "--dedupes", "--code", code}
	if code := program.run(context.Background(), link); code != exitDone {
		t.Fatal(program.errs.String())
	}
	file := filepath.Join(program.dir, "puntuale-device.token")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	if code := program.run(context.Background(), link); code != exitFailed || !strings.Contains(program.errs.String(), "exists already") {
		t.Errorf("linked again: exit code %d, %s", code, program.errs.String())
	}
	browser := r.phone(service)
	beside := newConsole(t, nil)
	beside.dir = term.dir
	if code, out, said := beside.runs("", "key", "push", "--data", "data"); code != exitDone || !strings.Contains(out, "new key") {
		t.Errorf("key push: exit code %d, %s%s", code, out, said)
	}

	const wrong, right = "+393331234568", "+393331234567"
	send := func(to string) string {
		return r.ids("/api/messages", `{"phone": "`+to+`", "text": "Ciao", "id_sessione": "`+r.session+`"}`)[0]
	}
	refused, first := send(wrong), send(right)
	eventually(t, "the phone is told", func() bool { return len(service.Received()) == 1 })
	if got := service.Received()[0]; got.Browser != browser || got.Payload != `{"session":"`+r.session+`"}` {
		t.Errorf("the phone read %+v", got)
	}
	eventually(t, "the push is counted", func() bool {
		_, figures := call(t, "GET", r.base+"/metrics", "", "")
		return strings.Contains(figures, `puntuale_pushes_total{result="arrived"} 1`)
	})
	program.out.Reset()
	if code := program.run(context.Background(), []string{"device", "due", "--server", r.base}); code != exitDone || strings.Count(program.out.String(), `"message_id"`) != 2 {
		t.Errorf("due: exit code %d, %s%s", code, program.out.String(), program.errs.String())
	}

	work := []string{"device", "run", "--server", r.base, "--command",
		`m=$(cat); case "$m" in *` + wrong + `*) echo "no such number" >&2; exit 65;; esac; echo "$m" >>"` + program.dir + `/sent"; echo "line 1"`}
	device := start(t, program, work...)
	eventually(t, "both are decided", func() bool {
		a, _ := r.state(refused)
		b, _ := r.state(first)
		return a == "FAILED" && b == "COMPLETED"
	})
	if _, text := r.state(refused); !strings.Contains(text, "no such number") {
		t.Errorf("refused: %s", text)
	}
	if code := server.end(); code != exitDone {
		t.Errorf("the server ended with %d", code)
	}
	device.logged.waitFor(t, "it is asked again")
	start(t, term, append(args, strings.TrimPrefix(r.base, "http://"))...)
	var second string
	eventually(t, "the server is there again", func() bool { _, err := http.Get(r.base + "/readyz"); return err == nil })
	second = send(right)
	eventually(t, "what came later is sent", func() bool { state, _ := r.state(second); return state == "COMPLETED" })
	if code := device.end(); code != exitDone {
		t.Errorf("the device ended with %d: %s", code, device.logged.String())
	}
	if sent, err := os.ReadFile(filepath.Join(program.dir, "sent")); err != nil || strings.Count(string(sent), "\n") != 2 || strings.Contains(string(sent), wrong) {
		t.Errorf("the command sent %s, %v", sent, err)
	}
	r.must("DELETE", "/api/sessions/"+r.session+"/pair", "")
	if code := program.run(context.Background(), work); code != exitFailed || !strings.Contains(program.errs.String(), "link it again") {
		t.Errorf("unlinked: exit code %d, %s", code, program.errs.String())
	}
}

// phone links a phone that wants pushes, in the same way as the page in the phone's browser.
func (r *officialRig) phone(service *pushtest.Service) *pushtest.Browser {
	r.t.Helper()
	code := field(r.t, r.must("POST", "/api/sessions/"+r.session+"/pair", "{}"), "pairing_code")
	must := func(method, path, token, body string) string {
		r.t.Helper()
		status, answer := call(r.t, method, r.base+path, token, body)
		if status != http.StatusOK {
			r.t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}
	token := field(r.t, must("POST", "/device/link", "", fmt.Sprintf(`{"code": %q, "name": "phone", "assisted": true}`, code)), "device_token")
	b := service.Subscribe(field(r.t, must("GET", "/device", token, ""), "push_key"))
	must("PUT", "/device/push", token, fmt.Sprintf(`{"endpoint": %q, "p256dh": %q, "auth": %q}`, b.Endpoint, b.P256dh, b.Auth))
	return b
}

// TestDeviceCommandLine: the command reports faults of its flags before it calls the server or uses up the code.
func TestDeviceCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"device run --command true": "link the device first",
		"device run --command true --max 0 --lease 5s --server x --timeout 0s": "4 things are wrong",
		"device run": "--command",
		"device link --server http://127.0.0.1:1 --code X":                                  "--name",
		"device link --name a --server http://127.0.0.1:1 --token-file /nowhere/x --code X": "/nowhere",
		"device due": "link the device first",
	} {
		code, _, said := newConsole(t, nil).runs("", strings.Fields(line)...)
		if code == exitDone || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, %s", line, code, said)
		}
	}
}
