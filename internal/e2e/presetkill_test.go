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

// TestPresetsKilled kills the server with SIGKILL while a program tells of moved appointments, in any order and twice: 3
// times, or 40 times with PUNTUALE_LONG=1. At the end, each appointment is one open booking with its last date and one
// reminder, and its former reference names none.
func TestPresetsKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--lease", "2s")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
		var made struct{ ID string }
		must(t, "POST", s.base+"/api/sequences", who.key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "quando"},
			"steps": []any{bookedStep("A domani", "quando", 24)}}).into(t, &made)
		day := func(n int) string { return time.Now().UTC().AddDate(0, 0, 10+n).Format("2006-01-02") }
		days := [2]string{day(0), day(1)}
		var stop atomic.Bool
		told := make(chan struct{})
		var programs sync.WaitGroup
		moved := make([]int, 4)
		for i := range moved {
			var rule struct{ Path string }
			must(t, "POST", s.base+"/api/automations", who.key, map[string]any{"name": fmt.Sprint("Calendly ", i), "trigger": map[string]any{"kind": "hook", "preset": "calendly"},
				"actions": []any{map[string]any{"kind": "book", "sequence": made.ID}}}).into(t, &rule)
			programs.Go(func() {
				for ; !stop.Load(); moved[i]++ {
					invitee := func(n int) string {
						return fmt.Sprintf("https://api.calendly.com/scheduled_events/E/invitees/k%d-%d-%d", i, moved[i], n)
					}
					event := func(kind string, n int, more map[string]any) map[string]any {
						payload := map[string]any{"uri": invitee(n), "text_reminder_number": fmt.Sprintf("+39333%d%06d", i, moved[i]), "scheduled_event": map[string]any{"start_time": days[n] + "T09:00:00Z"}}
						for name, value := range more {
							payload[name] = value
						}
						return map[string]any{"event": kind, "created_at": fmt.Sprintf("2026-11-20T10:0%d:00Z", n), "payload": payload}
					}
					calls := []map[string]any{event("invitee.created", 0, nil), event("invitee.created", 1, map[string]any{"old_invitee": invitee(0)}),
						event("invitee.canceled", 0, map[string]any{"rescheduled": true, "new_invitee": invitee(1)})}
					for _, n := range append(rand.Perm(len(calls)), rand.IntN(len(calls))) {
						eventually(t, 2*time.Minute, "a call of the program", func() bool {
							a, err := call("POST", s.base+rule.Path, "", calls[n])
							return err == nil && a.status == http.StatusOK
						})
					}
					select {
					case told <- struct{}{}:
					default: // nobody counts now
					}
				}
			})
		}
		for range pick(3, 40) {
			for range 3 + rand.IntN(12) { // kill after so many appointments
				<-told
			}
			s.kill()
			s.start()
		}
		stop.Store(true)
		programs.Wait()
		eventually(t, time.Minute, "the rules to act", func() bool { return number(t, database, `select count(*) from automation_trigger`) == 0 })
		all := 0
		for i, n := range moved {
			for j := range n {
				former, reference := fmt.Sprintf("calendly:k%d-%d-0", i, j), fmt.Sprintf("calendly:k%d-%d-1", i, j)
				var b struct {
					Status, Date string
					Messages     []struct{ Stato, Occurrence string }
				}
				must(t, "GET", s.base+"/api/bookings/"+reference, who.key, nil).into(t, &b)
				reminders := ""
				for _, m := range b.Messages {
					if m.Stato == "PENDING" {
						reminders += m.Occurrence[:10]
					}
				}
				if b.Status != "open" || !strings.HasPrefix(b.Date, days[1]) || reminders != days[1] {
					t.Errorf("%s: %+v", reference, b)
				}
				if left := number(t, database, `select count(*) from booking where reference = '`+former+`'`); left != 0 {
					t.Errorf("%s is left", former)
				}
			}
			all += n
		}
		if marks := number(t, database, `select count(*) from booking_former`); marks != all {
			t.Errorf("%d former references of %d appointments", marks, all)
		}
		t.Logf("%d appointments", all)
	})
}
