//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"puntuale/internal/manual"
)

// receiverAddr is the address at which the receivers of docs/webhooks.md listen. Each test replaces it with a free
// port.
const receiverAddr = "127.0.0.1:8090"

// receiverStarts maps the file of each receiver in docs/webhooks.md to the command that starts the receiver.
var receiverStarts = map[string]string{
	"site/receive.php": "php -S 127.0.0.1:8090 -t site",
	"receive.mjs":      "node receive.mjs",
	"receive.py":       "python3 receive.py",
	"receive.go":       "go run receive.go",
}

// webhooksPage returns the text of docs/webhooks.md, and the programs in it by their names.
func webhooksPage(t *testing.T) (page string, programs map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	programs = map[string]string{}
	for _, m := range regexp.MustCompile("(?s)\n```(?:php|python|js|go)\n((?:<\\?php )?(?://|#) ([a-z]+\\.[a-z]+)\n.*?\n)```\n").FindAllStringSubmatch(string(text), -1) {
		programs[m[2]] = m[1]
	}
	if len(programs) != 5 {
		t.Fatalf("the page has %d programs", len(programs))
	}
	return string(text), programs
}

// TestWebhooksPage pastes the commands under "In five minutes" in docs/webhooks.md, with PHP.
func TestWebhooksPage(t *testing.T) {
	beside(t)
	needPrograms(t, "php")
	page, programs := webhooksPage(t)
	database, folder, addr := filepath.Join(t.TempDir(), "puntuale.db"), t.TempDir(), freeAddr(t)
	s := serve(t, database, "--webhook-allow", "127.0.0.0/8")
	if err := os.Mkdir(filepath.Join(folder, "site"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, program := range map[string]string{"site/receive.php": programs["receive.php"], "work.php": programs["work.php"]} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.NewReplacer(readmeAddr, strings.TrimPrefix(s.base, "http://"), receiverAddr, addr, "partner=pk_…", "partner="+createPartner(t, database)).Replace(manual.Examples(page, "In five minutes, with PHP", "sh"))
	out, failure := paste(t, folder, script)
	if failure != nil {
		t.Fatalf("%v:\n%s", failure, out)
	}
	for _, want := range []string{`{"delivered":true,"status":204`, "_test_", `{"type":"message.sent"`, "webhook.test \n", "message.sent +393331234567\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q was not printed:\n%s", want, out)
		}
	}
}

func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(program + " is not installed; make e2e installs it")
		}
	}
}

// TestReceiverPrograms runs each receiver of docs/webhooks.md. The receiver stores a real event, and stores a repeated
// event only once. It accepts a request with several signatures if one of them is right. It refuses wrong and old
// signatures.
func TestReceiverPrograms(t *testing.T) {
	needPrograms(t, "php", "node", "python3", "go")
	page, programs := webhooksPage(t)
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--webhook-allow", "127.0.0.0/8")
	partner := createPartner(t, database)
	for file, command := range receiverStarts {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if !strings.Contains(page, command) {
				t.Errorf("the page does not say %q", command)
			}
			who, addr, folder := createTenant(t, s.base, partner, "full", step("Ciao", 0, "")), freeAddr(t), t.TempDir()
			var made struct{ ID, Secret string }
			must(t, "POST", s.base+"/api/webhooks", who.key, map[string]any{"url": "http://" + addr + "/receive.php"}).into(t, &made)
			program := strings.NewReplacer(receiverAddr, addr, "8090", addr[strings.LastIndex(addr, ":")+1:])
			startReceiver(t, folder, file, program.Replace(programs[filepath.Base(file)]), program.Replace(command), made.Secret)
			r := &programReceiver{t: t, url: "http://" + addr + "/receive.php", folder: filepath.Join(folder, "events"), secret: made.Secret}
			eventually(t, time.Minute, "the receiver takes a test", func() bool {
				return strings.HasPrefix(string(must(t, "POST", s.base+"/api/webhooks/"+made.ID+"/test", who.key, nil).body), `{"delivered":true,"status":204`)
			})
			must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": "3331234567", "text": "Ciao"})
			eventually(t, 30*time.Second, "the event is kept", func() bool { return strings.Contains(r.kept(), `{"type":"message.sent"`) })
			files := r.count()

			// After a rotation, both secrets sign. The receiver knows one of them. The repeat has the same id as the
			// first delivery.
			must(t, "POST", s.base+"/api/webhooks/"+made.ID+"/rotate", who.key, nil)
			must(t, "POST", s.base+"/api/webhooks/"+made.ID+"/replay", who.key, map[string]any{})
			eventually(t, 30*time.Second, "the repeat is taken", func() bool {
				list := string(must(t, "GET", s.base+"/api/webhooks/"+made.ID+"/deliveries", who.key, nil).body)
				return strings.Contains(list, `"state":"delivered"`) && !strings.Contains(list, `"state":"waiting"`)
			})
			if n := r.count(); n != files {
				t.Errorf("%d files, and %d after a repeat", files, n)
			}
			r.verifies()
		})
	}
}

// startReceiver runs a program until the test ends.
func startReceiver(t *testing.T, folder, file, program, command, secret string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, file), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SECRET="+secret)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s printed %s", command, out.String())
		}
	})
}

// programReceiver is a running receiver, with the folder in which it stores events.
type programReceiver struct {
	t                   *testing.T
	url, folder, secret string
}

func (r *programReceiver) files() []string {
	all, err := filepath.Glob(filepath.Join(r.folder, "*.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func (r *programReceiver) count() int { return len(r.files()) }

// kept returns the contents of all files that the receiver stored.
func (r *programReceiver) kept() string {
	var all strings.Builder
	for _, file := range r.files() {
		text, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// verifies posts the test's own requests with right and wrong signatures. A published library makes the signatures.
func (r *programReceiver) verifies() {
	r.t.Helper()
	right, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		r.t.Fatal(err)
	}
	wrong, err := standardwebhooks.NewWebhookRaw(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		r.t.Fatal(err)
	}
	const body = `{"type":"message.sent","data":{}}`
	now := time.Now()
	sign := func(webhook *standardwebhooks.Webhook, id string, at time.Time) string {
		text, err := webhook.Sign(id, at, []byte(body))
		if err != nil {
			r.t.Fatal(err)
		}
		return text
	}
	for i, c := range []struct {
		what, id   string
		at         time.Time
		signature  string
		body       string
		wantStatus int
	}{
		{"right", "evt_1_90", now, sign(right, "evt_1_90", now), body, 204},
		{"one of several", "evt_1_91", now, sign(wrong, "evt_1_91", now) + " v1a,x " + sign(right, "evt_1_91", now), body, 204},
		{"another secret", "evt_1_92", now, sign(wrong, "evt_1_92", now), body, 401},
		{"another body", "evt_1_92", now, sign(right, "evt_1_92", now), body + " ", 401},
		{"another id", "evt_1_92", now, sign(right, "evt_1_93", now), body, 401},
		{"another version", "evt_1_92", now, strings.Replace(sign(right, "evt_1_92", now), "v1,", "v2,", 1), body, 401},
		{"none", "evt_1_92", now, "", body, 401},
		{"old", "evt_1_92", now.Add(-6 * time.Minute), sign(right, "evt_1_92", now.Add(-6*time.Minute)), body, 401},
		{"of the future", "evt_1_92", now.Add(6 * time.Minute), sign(right, "evt_1_92", now.Add(6*time.Minute)), body, 401},
		{"a path for an id", "../evt", now, sign(right, "../evt", now), body, 401},
	} {
		before := r.count()
		request, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(c.body))
		if err != nil {
			r.t.Fatal(err)
		}
		request.Header.Set("webhook-id", c.id)
		request.Header.Set("webhook-timestamp", fmt.Sprint(c.at.Unix()))
		request.Header.Set("webhook-signature", c.signature)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			r.t.Errorf("%d, %s: %v", i, c.what, err)
			continue
		}
		answer.Body.Close()
		grew := r.count() - before
		if answer.StatusCode != c.wantStatus || (grew == 1) != (c.wantStatus == 204) {
			r.t.Errorf("%s: %d, %d files more", c.what, answer.StatusCode, grew)
		}
	}
}
