//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReplanKilled kills the server while it applies an edited sequence. The server that comes next goes on: each booking
// gets the new text once, and what was sent before is not sent again.
func TestReplanKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		const n = 600
		s := serve(t, database, "--lease", "2s", "--sandbox-latency", "1ms")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
		sequence := func(reminder string) map[string]any {
			return map[string]any{"name": "Visita", "booking": map[string]any{"date": "quando"}, "steps": []any{
				bookedStep("{{codice}} benvenuto", "start", 0), bookedStep("{{codice}} "+reminder, "quando", 1)}}
		}
		var made struct{ ID string }
		must(t, "POST", s.base+"/api/sequences", who.key, sequence("promemoria")).into(t, &made)
		date := time.Now().AddDate(0, 1, 0).UTC().Format(time.RFC3339)
		for i := range n {
			code := fmt.Sprint("r", i)
			must(t, "PUT", s.base+"/api/bookings/"+code, who.key, map[string]any{"sequence": made.ID, "phone": fmt.Sprintf("+3933312%05d", i), "codice": code, "quando": date})
		}
		eventually(t, time.Minute, "welcomed", func() bool { return len(ledger(t, s.base, who.key)) == n })
		address := s.base + "/api/sequences/" + made.ID
		must(t, "PUT", address, who.key, sequence("a domani"))
		must(t, "POST", address+"/replan", who.key, nil)
		var r struct {
			State    string
			Examined int
		}
		progress := func() int {
			must(t, "GET", address+"/replan", who.key, nil).into(t, &r)
			return r.Examined
		}
		eventually(t, time.Minute, "begun", func() bool { return progress() > 0 })
		s.kill()
		s.start()
		t.Logf("killed after %d of %d bookings", progress(), n)
		eventually(t, 2*time.Minute, "done", func() bool { progress(); return r.State == "done" })
		for i := range n {
			var b struct {
				Revision int
				Messages []struct{ ID, Step, Stato string }
			}
			must(t, "GET", fmt.Sprint(s.base, "/api/bookings/r", i), who.key, nil).into(t, &b)
			if len(b.Messages) != 2 || b.Messages[0].Stato != "COMPLETED" || b.Messages[1].Stato != "PENDING" || b.Revision != 2 {
				t.Fatalf("r%d: %+v", i, b)
			}
			if a := must(t, "GET", s.base+"/api/messages/details?message_ids[]="+b.Messages[1].ID, who.key, nil); !strings.Contains(string(a.body), fmt.Sprintf("r%d a domani", i)) {
				t.Fatalf("r%d: %s", i, a.body)
			}
		}
		if sent := len(ledger(t, s.base, who.key)); sent != n {
			t.Errorf("%d messages left, %d were to leave", sent, n)
		}
	})
}
