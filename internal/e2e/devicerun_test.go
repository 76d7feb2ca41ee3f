//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/devicecommand"
	"puntuale/internal/manual"
)

// TestDeviceProgramKilled kills `puntuale device run` with SIGKILL while it sends. At that time the command for a
// message may be half done. No message is sent twice. Each kill leaves at most one unknown outcome. All other messages
// were sent and are COMPLETED.
func TestDeviceProgramKilled(t *testing.T) {
	beside(t)
	kills, each := 6, 15
	if long {
		kills, each = 100, 15
	}
	for _, dedupes := range []bool{false, true} {
		t.Run(fmt.Sprintf("dedupes=%t", dedupes), func(t *testing.T) {
			p := newDevicePost(t, filepath.Join(t.TempDir(), "puntuale.db"))
			d := newDeviceProgram(p, dedupes)
			for kill := range kills {
				for i := range each {
					p.begin(i)
				}
				d.start()
				before := len(d.sent())
				eventually(t, 30*time.Second, "some more were sent", func() bool { return len(d.sent()) >= before+each/3 })
				<-time.After(time.Duration(p.random.IntN(60)) * time.Millisecond)
				d.kill()
				if dedupes && kill == 0 {
					<-time.After(11 * time.Second) // after this time the holds have ended, and messages without a report are offered again
				}
			}
			d.start()
			d.compare(kills)
		})
	}
}

// deviceProgram is a running `puntuale device run`. Its command writes the message's id into a ledger.
type deviceProgram struct {
	p      *devicePost
	folder string
	cmd    *exec.Cmd
}

func newDeviceProgram(p *devicePost, dedupes bool) *deviceProgram {
	p.t.Helper()
	d := &deviceProgram{p: p, folder: p.t.TempDir()}
	var offered struct {
		Code string `json:"pairing_code"`
	}
	must(p.t, "POST", p.nodes[0].base+"/api/sessions/"+p.session+"/pair", p.key, map[string]any{}).into(p.t, &offered)
	args := []string{"device", "link", "--server", p.nodes[0].base, "--token-file", d.file("token"), "--name", "modem", "--code", offered.Code}
	if dedupes {
		args = append(args, "--dedupes")
	}
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	p.t.Cleanup(func() {
		d.kill()
		if p.t.Failed() {
			p.t.Logf("the program's log:\n%s", tail(d.file("log"), 3000))
		}
	})
	return d
}

func (d *deviceProgram) file(name string) string { return filepath.Join(d.folder, name) }

func (d *deviceProgram) start() {
	d.p.t.Helper()
	log, err := os.OpenFile(d.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.p.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(binary, "device", "run", "--server", d.p.nodes[0].base, "--token-file", d.file("token"), "--lease", "10s",
		"--command", `sed -n 's/.*"message_id":"\([0-9]*\)".*/\1/p' >>"`+d.file("ledger")+`"`)
	d.cmd.Stderr = log
	if err := d.cmd.Start(); err != nil {
		d.p.t.Fatal(err)
	}
}

// kill sends SIGKILL to the program. A command that the program started continues.
func (d *deviceProgram) kill() {
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// sent returns the ids in the ledger.
func (d *deviceProgram) sent() []string {
	text, _ := os.ReadFile(d.file("ledger")) // the file does not exist before the first message
	return strings.Fields(string(text))
}

// compare waits until every message has an outcome. Then it compares the ledger with the answers of the client's API.
func (d *deviceProgram) compare(kills int) {
	t := d.p.t
	t.Helper()
	var now map[string]detail
	eventually(t, 30*time.Second, "every message has an outcome", func() bool {
		now = details(t, d.p.nodes[0].base, d.p.key, d.p.ids)
		for _, m := range now {
			if m.State == "PENDING" && (m.Detail == nil || *m.Detail == "") { // an uncertain message has a detail, which the device or the server wrote
				return false
			}
		}
		return true
	})
	sent := map[string]int{}
	for _, id := range d.sent() {
		sent[id]++
	}
	unknown := 0
	for _, id := range d.p.ids {
		switch m := now[id]; {
		case sent[id] > 1:
			t.Errorf("message %s was sent %d times", id, sent[id])
		case m.State == "PENDING":
			unknown++
		case m.State != "COMPLETED" || sent[id] != 1:
			t.Errorf("message %s was sent %d times, and is %s", id, sent[id], m)
		}
	}
	if unknown > kills {
		t.Errorf("%d outcomes are unknown after %d kills", unknown, kills)
	}
	t.Logf("%d messages, %d kills: %d sent, %d unknown", len(d.p.ids), kills, len(sent), unknown)
}

// TestDeviceManual runs the example command of docs/device.md with a modem that accepts everything.
func TestDeviceManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("python3 is not installed; make e2e installs it")
	}
	folder := t.TempDir()
	script := filepath.Join(folder, "send-message")
	for name, text := range map[string]string{
		script:                         manual.Examples(string(page), "", "sh"),
		filepath.Join(folder, "gammu"): "#!/bin/sh\n[ ! -e " + folder + "/off ] || exit 1\n[ \"$1\" = identify ] || printf '%s\\n' \"$@\" >" + folder + "/modem\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	send := devicecommand.Command(script, time.Minute, os.Stderr)
	for message, want := range map[string]client.Outcome{
		`{"attempt": "1.2", "message_id": "1", "phone": "+393331234567", "text": "A 'domani'\nalle 8 $HOME"}`: client.Sent,
		`{"attempt": "1.2", "message_id": "1", "phone": "12036302@g.us", "text": "ciao"}`:                     client.Refused,
		`{"attempt": "1.2", "message_id": "1", "phone": "+393331234567", "latitude": 45.5}`:                   client.Refused,
	} {
		if outcome, detail, err := send([]byte(message)); outcome != want || err != nil {
			t.Errorf("%s: %s, %q, %v", message, outcome, detail, err)
		}
	}
	told, err := os.ReadFile(filepath.Join(folder, "modem"))
	if want := "sendsms\nTEXT\n+393331234567\n-autolen\n1000\n-text\nA 'domani'\nalle 8 $HOME\n"; err != nil || string(told) != want {
		t.Errorf("the modem was told %q, %v", told, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if outcome, detail, err := send([]byte(`{"phone": "+393331234567", "text": "ciao"}`)); outcome != client.Returned || detail != "the modem does not answer" || err != nil {
		t.Errorf("without a modem: %s, %q, %v", outcome, detail, err)
	}
}
