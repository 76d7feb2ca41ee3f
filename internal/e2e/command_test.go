//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lines collects the output of a process, and reports whether it matched a pattern.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) read(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		l.mu.Lock()
		l.text.WriteString(s.Text() + "\n")
		l.mu.Unlock()
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestDemo does what a new user does. It starts the demo, waits for its messages, pastes the curl line, and waits for
// the new message.
func TestDemo(t *testing.T) {
	cmd := exec.Command(binary, "demo", "--addr", freeAddr(t))
	cmd.Dir = t.TempDir()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	printed := &lines{}
	go printed.read(out)

	eventually(t, 20*time.Second, "a curl line and a first message are printed", func() bool {
		text := printed.String()
		return strings.Contains(text, "curl ") && strings.Contains(text, "+39")
	})
	curl := curlLine(printed.String())
	before := len(printed.String())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := exec.CommandContext(ctx, "bash", "-c", curl).Output()
	if err != nil {
		t.Fatalf("%s: %v", curl, err)
	}
	var started struct {
		ID []string `json:"id"`
	}
	if err := json.Unmarshal(answer, &started); err != nil || len(started.ID) == 0 {
		t.Fatalf("the curl line answered %s (%v)\n%s", answer, err, curl)
	}
	eventually(t, 10*time.Second, "the pasted call's first message is printed", func() bool {
		return len(printed.String()) > before
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(25*time.Second, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM the demo ends with %v", err)
	}
}

// curlLine finds the curl command in a text, and removes its colours. The command may have several lines that end with
// a backslash.
func curlLine(text string) string {
	text = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(text, "")
	_, command, _ := strings.Cut(text, "curl ")
	var out []string
	for line := range strings.SplitSeq("curl "+command, "\n") {
		out = append(out, line)
		if !strings.HasSuffix(strings.TrimSpace(line), `\`) {
			break
		}
	}
	return strings.Join(out, "\n")
}

// TestPartnerCreatedBesideServer creates a partner while a server runs, and uses the printed key immediately. It also
// checks that all passwords are stored as argon2id hashes. It runs on both databases.
func TestPartnerCreatedBesideServer(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		key := createPartner(t, database)
		who := createTenant(t, s.base, key, "test", step("ciao", 0, ""))
		var answer struct {
			ID        []string `json:"id"`
			Cap       int      `json:"daily_api_cap"`
			Used      int      `json:"daily_api_used"`
			Remaining int      `json:"daily_api_remaining"`
		}
		must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "347 1234567"}).into(t, &answer)
		if len(answer.ID) != 1 || answer.Cap != 100 || answer.Used != 1 || answer.Remaining != 99 {
			t.Errorf("start answered %+v", answer)
		}
		if a, _ := call("POST", s.base+"/api/client/create", who.key, map[string]any{}); a.status != http.StatusForbidden {
			t.Errorf("a client's key on the partner's side: %d %s", a.status, a.body)
		}
		for _, hash := range passwords(t, database) {
			if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
				t.Errorf("a password is kept as %q", hash)
			}
		}
	})
}

// passwords returns the password hashes of all logins. There are at least two: the partner's and its client's.
func passwords(t *testing.T, database string) (hashes []string) {
	t.Helper()
	db := open(t, database)
	rows, err := db.Query(`select password from login`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var hash string
		if err := rows.Scan(&hash); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	if err := rows.Err(); err != nil || len(hashes) < 2 {
		t.Fatalf("%d passwords, %v", len(hashes), err)
	}
	return hashes
}

// TestFaultsOfConfigurationAllAtOnce: one refusal names every wrong setting.
func TestFaultsOfConfigurationAllAtOnce(t *testing.T) {
	cmd := exec.Command(binary, "serve", "--addr", "nowhere", "--database", "mysql://x", "--sandbox-latency", "fast")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("exit code 0:\n%s", out)
	}
	for _, w := range []string{"addr", "database", "sandbox-latency"} {
		if !strings.Contains(string(out), w) {
			t.Errorf("the refusal does not name %s:\n%s", w, out)
		}
	}
}

// TestKeyIsNeverLogged sends valid and invalid keys in every form, at the most detailed log level.
func TestKeyIsNeverLogged(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--log-level", "debug")
		partner := createPartner(t, database)
		who := createTenant(t, s.base, partner, "full", step("ciao", 0, ""))
		forged := who.key[:len(who.key)-1] + "x"
		for _, key := range []string{who.key, forged} {
			for _, path := range []string{"/api/sequences", "/api/nothing", "/api/sandbox/messages?cursor=%zz"} {
				_, _ = call("GET", s.base+path, key, nil)
				_, _ = call("POST", s.base+path, "", map[string]any{"api_key": key}, "Authorization", "Bearer "+key)
			}
		}
		must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393471234567"})
		s.terminate(20 * time.Second)
		log, err := os.ReadFile(s.log)
		if err != nil {
			t.Fatal(err)
		}
		for name, secret := range map[string]string{"partner": partner, "client": who.key, "forged": forged} {
			if strings.Contains(string(log), secret[4:]) {
				t.Errorf("the %s key is in the log", name)
			}
		}
		if strings.Contains(string(log), "3471234567") {
			t.Error("a phone number is in the log")
		}
	})
}
