//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestClicksSurviveStop: a tracked link leads to its address, a retry of the same request too, and a server that stops
// writes the clicks that it still had in memory.
func TestClicksSurviveStop(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := prepare(t, database)
		s.args = append(s.args, "--public-url", s.base)
		s.start()
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
		must(t, "PATCH", s.base+"/api/settings", who.key, map[string]any{"track_links": true})
		const address = "https://negozio.example/orari?x=1"
		must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": "+393331234567", "text": "Guarda " + address + "."})
		link := regexp.MustCompile(regexp.QuoteMeta(s.base) + `/r/[0-9A-Za-z]{8}`)
		found := ""
		eventually(t, time.Minute, "the message left with a link", func() bool {
			found = string(link.Find(must(t, "GET", s.base+"/api/sandbox/messages", who.key, nil).body))
			return found != ""
		})
		time.Sleep(1100 * time.Millisecond) // before, whoever opens the link is a machine
		browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for _, agent := range []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "WhatsApp/2.24"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("User-Agent", agent)
			a, err := browser.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != http.StatusFound || a.Header.Get("Location") != address {
				t.Fatalf("%d to %q", a.StatusCode, a.Header.Get("Location"))
			}
		}
		if code := s.terminate(25 * time.Second); code != 0 {
			t.Fatalf("the server ended with %d", code)
		}
		s.start()
		body := string(must(t, "GET", s.base+"/api/messages/details?message_ids[]="+fmt.Sprint(ledger(t, s.base, who.key)[0].ID), who.key, nil).body)
		if !strings.Contains(body, `"clicks":1,"machine_opens":1`) || !strings.Contains(body, `"contenuto":"Guarda `+address+`."`) {
			t.Errorf("%s", body)
		}
		eventually(t, 30*time.Second, "results count the click", func() bool {
			return strings.Contains(string(must(t, "GET", s.base+"/api/results", who.key, nil).body), `"clicked":1`)
		})
	})
}
