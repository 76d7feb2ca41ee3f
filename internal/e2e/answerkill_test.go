//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAnswersKilled kills the server with SIGKILL while people press the buttons of their questions: 3 times, or 40 times
// with PUNTUALE_LONG=1. The network tells a press again until the server takes it. At the end, each press confirmed its
// booking exactly once, and is one reply.
func TestAnswersKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--lease", "2s")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
		must(t, "PATCH", s.base+"/api/settings", who.key, map[string]any{"keep_replies": "all"})
		ask := bookedStep("Confermi?", "start", 0)
		ask["buttons"] = []any{map[string]any{"label": "Confermo", "does": "confirm"}, map[string]any{"label": "Non posso", "does": "cancel"}}
		var made struct{ ID string }
		must(t, "POST", s.base+"/api/sequences", who.key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "quando"},
			"steps": []any{ask, bookedStep("A domani", "quando", 24), bookedStep("Grazie", "booking.confirmed", 0)}}).into(t, &made)
		var stop atomic.Bool
		answered := make(chan struct{})
		var people sync.WaitGroup
		pressed := make([]int, 6)
		for i := range pressed {
			people.Go(func() {
				for ; !stop.Load(); pressed[i]++ {
					code, phone := fmt.Sprintf("p%d-%d", i, pressed[i]), fmt.Sprintf("+39333%d%06d", i, pressed[i])
					insist(t, "PUT", s.base+"/api/bookings/"+code, who.key, map[string]any{
						"sequence": made.ID, "phone": phone, "quando": time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)})
					insist(t, "POST", s.base+"/api/sandbox/replies", who.key, map[string]any{"phone": phone, "button": "Confermo", "network_id": code})
					select {
					case answered <- struct{}{}:
					default: // nobody counts now
					}
				}
			})
		}
		for range pick(3, 40) {
			for range 10 + rand.IntN(60) { // kill after so many presses
				<-answered
			}
			s.kill()
			s.start()
		}
		stop.Store(true)
		people.Wait()
		all := 0
		for i, n := range pressed {
			for j := range n {
				code := fmt.Sprintf("p%d-%d", i, j)
				var b struct {
					Status   string
					Revision int
					Messages []struct{ Step, Stato string }
					History  []struct{ By, What any }
				}
				must(t, "GET", s.base+"/api/bookings/"+code, who.key, nil).into(t, &b)
				var thanks []string
				for _, m := range b.Messages {
					if m.Step == "2" {
						thanks = append(thanks, m.Stato)
					}
				}
				if b.Status != "confirmed" || b.Revision != 2 || len(b.History) != 2 || len(thanks) != 1 || thanks[0] != "PENDING" && thanks[0] != "COMPLETED" {
					t.Errorf("%s: %s, revision %d, history %v, thanks %v", code, b.Status, b.Revision, b.History, thanks)
				}
				if replies := number(t, database, `select count(*) from reply where answer = 1 and in_reply_to <> 0 and network_id = '`+code+`'`); replies != 1 {
					t.Errorf("%s: %d replies", code, replies)
				}
			}
			all += n
		}
		if others := number(t, database, `select count(*) from reply`); others != all {
			t.Errorf("%d replies to %d presses", others, all)
		}
		if facts := number(t, database, `select count(*) from booking_change where door = 6`); facts != all {
			t.Errorf("%d changes by %d presses", facts, all)
		}
		t.Logf("%d presses", all)
	})
}

// insist repeats a call until the server takes it, because the server may be away. A button can be pressed only when its
// message has arrived. insist returns false if the server refuses the call.
func insist(t *testing.T, method, address, key string, body any) (taken bool) {
	t.Helper()
	eventually(t, 2*time.Minute, method+" "+address, func() bool {
		a, err := call(method, address, key, body)
		waits := err != nil || a.status >= 500 || a.status == http.StatusUnprocessableEntity && strings.Contains(string(a.body), "body.button")
		if taken = !waits && a.status == http.StatusOK; !waits && !taken {
			t.Errorf("%s %s %v: %d %s", method, address, body, a.status, a.body)
		}
		return !waits
	})
	return taken
}
