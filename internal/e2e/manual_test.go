//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale/internal/manual"
)

// TestManual pastes the examples of docs/api.md, appointments.md, bookings.md, people.md, events.md and sessions.md, one after
// the other. No example
// may be refused.
func TestManual(t *testing.T) {
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--official-api-url", "http://127.0.0.1:9") // no server listens at this address
	script := ""
	for _, name := range []string{"api.md", "appointments.md", "bookings.md", "people.md", "events.md", "sessions.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		script += manual.Examples(string(text), "", "sh")
	}
	addr := strings.TrimPrefix(s.base, "http://")
	script = strings.NewReplacer(readmeAddr, addr, "partner=pk_…", "partner="+createPartner(t, database)).Replace(script)

	out, failure := paste(t, t.TempDir(), script+"\necho; echo \"KEY=$key\"\n")
	if failure != nil || strings.Contains(out, `"request_id"`) {
		t.Fatalf("%v:\n%s", failure, out)
	}
	given := regexp.MustCompile(`KEY=(ck_\S+)`).FindStringSubmatch(out)
	if given == nil {
		t.Fatalf("the examples made no key:\n%s", out)
	}
	eventually(t, 10*time.Second, "the network has refused the number that ends in 9901", func() bool {
		a, err := call(http.MethodGet, s.base+"/api/messages?state=FAILED", given[1], nil)
		return err == nil && strings.Contains(string(a.body), "+393331239901")
	})
}

// TestInstall pastes the commands under "Install" in docs/operate.md, with folders of its own. The last command starts
// a server, which runs until it is stopped.
func TestInstall(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	folder, addr := t.TempDir(), freeAddr(t)
	script := strings.NewReplacer("/usr/local/bin", folder, "/var/lib/puntuale", filepath.Join(folder, "data"),
		"puntuale serve", "timeout 10 puntuale serve --addr "+addr).Replace(manual.Examples(string(text), "Install", "sh"))
	if !strings.Contains(script, "timeout 10") {
		t.Fatalf("no server is started: %s", script)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	ready := make(chan bool, 1)
	go func() {
		for range 600 { // the build may take some minutes
			if response, err := http.Get("http://" + addr + "/readyz"); err == nil {
				response.Body.Close()
				if response.StatusCode == http.StatusOK {
					ready <- true
					return
				}
			}
			time.Sleep(300 * time.Millisecond)
		}
		ready <- false
	}()
	out, _ := paste(t, copySources(t), script) // the program "timeout" stops the server, and its exit code is not 0; the code is ignored
	if !strings.Contains(out, "pk_") || !<-ready {
		t.Errorf("there is no partner, or no server: %s", out)
	}
}

// programName matches the first line of a program in docs/recipes.md.
var programName = regexp.MustCompile(`^(?:<\?php )?(?://|#) ([a-z]+\.(?:php|py|mjs))\n`)

// TestRecipes writes the programs of docs/recipes.md into a folder, and pastes the page's commands there. At the end,
// two messages of one booking are left. Two numbers of the list are in the blacklist, and the output names the third
// number.
func TestRecipes(t *testing.T) {
	for _, program := range []string{"php", "node", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(program + " is not installed; make e2e installs it")
		}
	}
	text, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	database, folder := filepath.Join(t.TempDir(), "puntuale.db"), t.TempDir()
	s := serve(t, database)
	page := strings.NewReplacer(readmeAddr, strings.TrimPrefix(s.base, "http://"), "127.0.0.1:8090", freeAddr(t),
		"partner=pk_…", "partner="+createPartner(t, database)).Replace(string(text))
	programs := 0
	for _, m := range regexp.MustCompile("(?s)\n```(?:php|python|js)\n(.*?\n)```\n").FindAllStringSubmatch(page, -1) {
		name := programName.FindStringSubmatch(m[1])
		if name == nil {
			t.Fatalf("a program has no name: %.100s", m[1])
		}
		programs++
		if err := os.WriteFile(filepath.Join(folder, name[1]), []byte(m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if programs != 11 {
		t.Errorf("the page has %d programs", programs)
	}
	script := strings.Replace(manual.Examples(page, "", "sh"), "python3 resend.py", failing+"python3 resend.py", 1)
	out, failure := paste(t, folder, script+"\necho; echo \"KEY=$KEY\"\n")
	if failure != nil {
		t.Fatalf("%v:\n%s", failure, out)
	}
	for _, want := range []string{"2 messages are planned", "booking-4714: 1 reminder, revision 2", "1 message moved, 0 cancelled", "booking-4712 is cancelled: 0 message",
		"booking-4714 is cancelled: 1 message cancelled", "{'COMPLETED': 5", "{'Sessione non collegata': 1}", "1 messages are sent again", "12 POST /api/blacklist: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q was not printed:\n%s", want, out)
		}
	}
	key := regexp.MustCompile(`KEY=(ck_\S+)`).FindStringSubmatch(out)
	if key == nil {
		t.Fatal(out)
	}
	if former := must(t, "GET", s.base+"/api/messages?state=PENDING&phone=3331234567", key[1], nil); strings.Contains(string(former.body), `"stato"`) {
		t.Errorf("messages to the booking's former person are left: %s", former.body)
	}
	pending := must(t, "GET", s.base+"/api/messages?state=PENDING&phone=3337654321", key[1], nil)
	if got := strings.Count(string(pending.body), `"stato":"PENDING"`); got != 1 || !strings.Contains(string(pending.body), "a domani alle 11:00") {
		t.Errorf("%d messages of the bookings are left: %s", got, pending.body)
	}
	if listed := must(t, "GET", s.base+"/api/blacklist", key[1], nil); strings.Count(string(listed.body), `"phone"`) != 2 {
		t.Errorf("the blacklist has %s", listed.body)
	}
}

// failing is a script. It makes a message that fails because the client's number is not linked, and then links the
// number again.
const failing = `
unlinked=$(echo "$client" | sed -E 's/.*"id_sessione":"([^"]+)".*/\1/')
curl -sf -X DELETE $base/api/sessions/$unlinked/pair -H "Authorization: Bearer $KEY"
short=$(curl -sf $base/api/sequences -H "Authorization: Bearer $KEY" -d '{"name": "Breve", "steps": [{"text": "Ciao",
  "timing": {"anchor": "start", "offset": {"amount": 0}, "valid_for": {"amount": 1, "unit": "seconds"}}}]}' | sed -E 's/^\{"id":"([^"]+)".*/\1/')
curl -sf $base/api/start/$short -H "Authorization: Bearer $KEY" -d '{"phone": "333 555 0001"}'
until curl -sf "$base/api/messages?state=FAILED" -H "Authorization: Bearer $KEY" | grep -q 'non collegata'; do sleep 0.2; done
python3 report.py $(TZ=Europe/Rome date +%F)
`
