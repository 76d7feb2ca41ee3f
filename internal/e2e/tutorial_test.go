//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"puntuale/internal/manual"
)

// startDemo runs `puntuale demo` until the test ends. It returns the server's address, the address of a link that signs
// in, and a client's key.
func startDemo(t *testing.T) (base, ticket, key string) {
	t.Helper()
	addr := freeAddr(t)
	demo := exec.Command(binary, "demo", "--addr", addr, "--data", t.TempDir()+"/demo")
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(syscall.SIGTERM)
		_ = demo.Wait()
	})
	printed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Started for") {
				printed <- all.String()
			}
		}
	}()
	var text string
	select {
	case text = <-printed:
	case <-time.After(time.Minute):
		t.Fatal("the demo did not start")
	}
	found := regexp.MustCompile(`(?s)Open\s+(\S+).*Key\s+(\S+)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the demo printed %s", text)
	}
	return "http://" + addr, found[1], found[2]
}

// tutorial is a reader who follows docs/tutorial.md.
type tutorial struct {
	*browser
	page string // the text of docs/tutorial.md
}

// press clicks on the element with this label. A count may stand behind the label. The tutorial must have the label in bold.
func (r tutorial) press(label string) {
	r.t.Helper()
	if !strings.Contains(r.page, "**"+label+"**") {
		r.t.Errorf("docs/tutorial.md does not say **%s**", label)
	}
	find := fmt.Sprintf(`[...document.querySelectorAll("dialog[open] button, dialog[open] a, nav a, main a, main button")].find(e => e.innerText.trim().replace(/\s*\(?\d[\d.,]*\+?\)?$/, "") === %q && e.offsetParent && !e.disabled)`, label)
	r.waitFor(`document.readyState === "complete" && ((e) => e && (e.scrollIntoView({block: "center"}), e.click(), true))(` + find + `)`)
}

// TestTutorial follows docs/tutorial.md: it presses the tutorial's buttons, checks that the page names each of them, and
// runs the page's shell examples.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	base, ticket, key := startDemo(t)
	r := tutorial{newBrowser(t), string(text)}
	r.speak("en")
	r.do(chromedp.EmulateViewport(1280, 860))
	r.visit(ticket)
	r.reads("Agenzia Demo")
	r.reads("Studio dentistico Bianchi")

	r.press("Sequences")
	r.waitFor(`location.pathname.endsWith("/sequences")`)
	r.press("New sequence")
	r.press("Appointment reminder")
	r.waitFor(`document.querySelectorAll(".step").length === 3 && document.readyState === "complete"`)
	r.fill("name", "My reminder", "steps[0].text", "Hello {{name}}, see you on {{appointment_date:data}}!")
	r.waitFor(`document.querySelector("#timeline .bubble-text")?.innerText.startsWith("Hello Maria, see you on")`)
	r.press("Save the sequence")
	r.waitFor(`/\/sequences\/\d+$/.test(location.pathname)`)
	r.press("Start")
	r.waitFor(`location.pathname.endsWith("/start")`)
	r.fill("phone", "333 765 4321", "fields.name", "Lucia", "fields.appointment_date", fmt.Sprintf("%d-11-30T15:30", time.Now().Year()+1))
	r.press("Start: 3 messages")
	r.reads("Sequence started")
	r.press("See it on the test phone")
	r.waitFor(`document.querySelector(".bubble") && document.body.innerText.includes("Hello Lucia, see you on")`)

	r.press("Messages")
	r.waitFor(`location.pathname.endsWith("/messages") && document.querySelector("[type=search]")`)
	r.fill("text", "333 765 4321")
	r.press("Search")
	r.waitFor(`new URLSearchParams(location.search).get("text")`)
	r.press("Pending")
	r.waitFor(`document.querySelectorAll("main tbody tr").length === 2`)
	r.press("Cancel all")
	r.press("Cancel them")
	r.reads("2 messages cancelled")
	state := must(t, "GET", base+"/api/messages?state=CANCELLED", key, nil)
	if got := strings.Count(string(state.body), "+393337654321"); got < 2 {
		t.Errorf("%d messages are cancelled: %s", got, state.body)
	}

	out, failure := paste(t, t.TempDir(), strings.NewReplacer("http://"+readmeAddr, base, "ck_…", key).Replace(manual.Examples(r.page, "", "sh")))
	if failure != nil || strings.Contains(out, `"request_id"`) {
		t.Fatalf("%v:\n%s", failure, out)
	}
	for _, want := range []string{`"daily_api_used":`, "Hello Lucia, see you on 12/06/", `"message":"1 messaggi`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s was not printed:\n%s", want, out)
		}
	}
}
