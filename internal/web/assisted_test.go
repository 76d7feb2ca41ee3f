package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// standIn is the devices' part of the API for one phone.
type standIn struct {
	mu      sync.Mutex
	due     []map[string]any
	held    []map[string]any
	takes   map[string]string
	reports []string
	linked  bool
	cut     bool
	lost    []string
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		panic(http.ErrAbortHandler)
	}
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	var in struct {
		Code, Take string
		MessageID  string `json:"message_id"`
		Attempts   []string
		Reports    []struct{ Attempt, Outcome, Detail string }
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	device := map[string]any{"id": "1", "name": "Telefono", "session": map[string]any{"id": "7", "name": "Segreteria"}, "push_key": "BAAA", "push": false}
	if r.URL.Path != "/device/link" && (!s.linked || r.Header.Get("Authorization") != "Bearer dt_1") {
		answer(401, map[string]any{"title": "Unauthorized"})
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /device/link":
		if in.Code != "ABCD2345" {
			answer(404, map[string]any{})
			return
		}
		s.linked = true
		answer(200, map[string]any{"device_token": "dt_1", "device": device})
	case "GET /device":
		answer(200, device)
	case "GET /device/due":
		answer(200, map[string]any{"messages": append([]map[string]any{}, s.due...), "held": append([]map[string]any{}, s.held...)})
	case "POST /device/take":
		at := slices.IndexFunc(s.due, func(m map[string]any) bool { return m["message_id"] == in.MessageID })
		if at < 0 || in.Take == "" {
			answer(409, map[string]any{})
			return
		}
		m := s.due[at]
		s.due = slices.Delete(s.due, at, at+1)
		m["attempt"], m["lease_until"] = "a"+in.MessageID, "2026-11-23T10:00:00Z"
		s.held = append(s.held, m)
		answer(200, map[string]any{"messages": []map[string]any{m}})
	case "POST /device/renew":
		answer(200, map[string]any{"messages": []any{}, "lost": append([]string{}, s.lost...)})
	case "POST /device/report":
		results := []map[string]any{}
		for _, report := range in.Reports {
			s.reports = append(s.reports, report.Attempt+" "+report.Outcome+" "+report.Detail)
			result := "late"
			if at := slices.IndexFunc(s.held, func(m map[string]any) bool { return m["attempt"] == report.Attempt }); at >= 0 {
				if report.Outcome == "returned" {
					s.due = append(s.due, s.held[at])
				}
				s.held = slices.Delete(s.held, at, at+1)
				result = "recorded"
			}
			results = append(results, map[string]any{"attempt": report.Attempt, "result": result})
		}
		answer(200, map[string]any{"results": results})
	default:
		answer(200, map[string]any{"message": "ok"})
	}
}

func (s *standIn) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// oddText is a text in which everything has to be escaped that an address knows.
const oddText = "Ciao Anna 👋🏽,\nsconto del 20% & caffè + dolce?\n#1 = “tu”"

// TestAssisted is a person's first minutes with the phone app.
func TestAssisted(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		s := &standIn{}
		for i := range 4 {
			s.due = append(s.due, map[string]any{"message_id": fmt.Sprint(i), "phone": fmt.Sprint("+39333123450", i), "text": oddText, "due_at": "2026-11-23T09:00:00Z", "valid_until": "2026-11-23T18:00:00Z"})
		}
		s.due[1]["media_url"], s.due[1]["media_name"] = "https://files.example/listino.pdf", "listino.pdf"
		s.due[1]["latitude"], s.due[1]["longitude"] = 45.4642, 9.19
		s.due = append(s.due, map[string]any{"message_id": "9", "phone": "120363000000000000@g.us", "text": "A tutti"})
		w.calls = s
		windows := b.windows()
		b.open("/phone#code=WRONG")
		b.until(`document.querySelector("#assisted-code")?.value === "WRONG"`)
		if hash := evaluate[string](b, `location.hash`); hash != "" {
			t.Errorf("the code stays in the address: %q", hash)
		}
		b.check("link")
		b.tap("form .btn-primary")
		b.until(`document.querySelector("#assisted-fault").innerText !== ""`)
		b.check("link-refused")
		evaluate[bool](b, `(e => { e.value = "ABCD2345"; e.dispatchEvent(new Event("input")); return true })(document.querySelector("#assisted-code"))`)
		b.tap("form .btn-primary")
		b.reads("+393331234500")
		b.check("list")
		b.tap(".assisted-cards [x-text='m.phone']")
		b.click("ul:not([style*=none]) li .btn-primary")
		b.until(`document.querySelector(".assisted-held .assisted-answers")`)
		b.check("held")
		if got, want := <-windows, "https://wa.me/393331234500?text="+strings.ReplaceAll(url.QueryEscape(oddText), "+", "%20"); got != want {
			t.Errorf("WhatsApp opens with %s, want %s", got, want)
		}
		b.air(true)
		b.until(`document.querySelector(".assisted-notices").innerText.length > 20`)
		b.check("offline")
		b.click(".assisted-held .assisted-answers .btn")
		b.until(`!document.querySelector(".assisted-held")`)
		b.check("offline-declared")
		if got := s.told(); len(got) != 0 {
			t.Errorf("without a network the server heard %q", got)
		}
		b.air(false)
		b.until(`document.querySelector(".assisted-notices").innerText.trim() === ""`)
		if got := s.told(); len(got) != 1 || got[0] != "a0 sent " {
			t.Errorf("the server heard %q", got)
		}
	})
}

// windows are the addresses of the windows that the page opens.
func (b *browser) windows() <-chan string {
	b.t.Helper()
	opened := make(chan string, 10)
	b.listen(func(event any) {
		if e, ok := event.(*page.EventWindowOpen); ok {
			opened <- e.URL
		}
	})
	return opened
}

// air takes the network away, as a phone does in a lift, and gives it back.
func (b *browser) air(away bool) {
	b.t.Helper()
	rules := []*network.Conditions{{Offline: away, DownloadThroughput: -1, UploadThroughput: -1}}
	command(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{EmulateOfflineServiceWorker: &away, MatchedNetworkConditions: rules})
	command(b, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: away, DownloadThroughput: -1, UploadThroughput: -1})
}
