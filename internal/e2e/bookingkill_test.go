//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBookingsKilled kills the server with SIGKILL while programs change bookings and messages leave: 3 times, or 40 times
// with PUNTUALE_LONG=1. A program repeats a call that got no answer. At the end, the messages of each booking are those
// that its state wants, and nobody got an occurrence of a step twice.
func TestBookingsKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database, "--lease", "2s", "--sandbox-latency", "20ms")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("x", 0, ""))
		var made struct{ ID string }
		must(t, "POST", s.base+"/api/sequences", who.key, map[string]any{"name": "Visita", "booking": map[string]any{"date": "quando"}, "steps": []any{
			bookedStep("{{codice}} benvenuto", "start", 0), bookedStep("{{codice}} promemoria {{istante}} {{nome}}", "quando", 1),
			bookedStep("{{codice}} spostato {{quando}}", "booking.moved", 0), bookedStep("{{codice}} annullato", "booking.cancelled", 0)}}).into(t, &made)
		var stop atomic.Bool
		answered := make(chan struct{})
		var programs sync.WaitGroup
		all := make([]*bookingProgram, 6)
		for i := range all {
			all[i] = &bookingProgram{database: database, base: s.base, key: who.key, sequence: made.ID, number: i, random: rand.New(rand.NewPCG(uint64(i), 3)), changes: map[string]bookingChange{}}
			programs.Go(func() {
				for !stop.Load() {
					all[i].change(t)
					select {
					case answered <- struct{}{}:
					default: // nobody counts now
					}
				}
			})
		}
		for range pick(3, 40) {
			for range 50 + rand.IntN(200) { // kill after so many answers
				<-answered
			}
			s.kill()
			s.start()
		}
		stop.Store(true)
		programs.Wait()
		texts := map[string]int{}
		for _, m := range ledger(t, s.base, who.key) {
			if strings.Contains(m.Text, "promemoria") || strings.Contains(m.Text, "benvenuto") { // the name is not part of the occurrence
				texts[strings.Join(strings.Fields(m.Text)[:min(3, len(strings.Fields(m.Text)))], " ")]++
			}
		}
		for text, n := range texts {
			if n > 1 {
				t.Errorf("%q was sent %d times", text, n)
			}
		}
		changed := 0
		for _, p := range all {
			changed += p.verify(t)
		}
		t.Logf("%d bookings, %d messages of one occurrence each", changed, len(texts))
	})
}

// bookedStep leaves at its anchor, or hours before it.
func bookedStep(text, anchor string, hours int) map[string]any {
	offset := map[string]any{"amount": hours, "unit": "hours", "direction": "before"}
	if hours == 0 {
		offset = map[string]any{"amount": 0}
	}
	return map[string]any{"text": text, "timing": map[string]any{"anchor": anchor, "offset": offset, "if_past": "send_now"}}
}

// bookingProgram changes its own bookings, one call after the other.
type bookingProgram struct {
	base, key, sequence string
	database            string
	number              int
	random              *rand.Rand
	changes             map[string]bookingChange
}

// bookingChange is the latest change of a booking that was answered.
type bookingChange struct {
	date      time.Time
	cancelled bool
}

// change makes one random change, and repeats it until it is answered.
func (p *bookingProgram) change(t *testing.T) {
	code := fmt.Sprintf("p%d-%d", p.number, p.random.IntN(12))
	known, exists := p.changes[code]
	body := map[string]any{}
	method, address := "PUT", p.base+"/api/bookings/"+code
	switch n := p.random.IntN(10); {
	case !exists, n < 4: // soon, so that reminders leave meanwhile, or in days
		known.date = time.Now().Add(time.Hour + []time.Duration{-time.Second, 2 * time.Second, 72 * time.Hour, 96 * time.Hour}[p.random.IntN(4)]).UTC().Truncate(time.Second)
		body["quando"] = known.date.Format(time.RFC3339) // texts print a date without its seconds
		body["istante"] = body["quando"]
	case n < 6:
		body["nome"] = fmt.Sprintf("Ada%d", p.random.IntN(3))
	case n < 8:
		method, known.cancelled = "DELETE", true
	default:
		body["status"], known.cancelled = "open", false
	}
	if !exists {
		body["sequence"], body["phone"], body["codice"], body["nome"] = p.sequence, fmt.Sprintf("+3933312%05d", p.number*100+len(p.changes)), code, "Ada"
	}
	var content any = body
	if method == "DELETE" {
		content = nil
	}
	if insist(t, method, address, p.key, content) {
		p.changes[code] = known
	}
}

// verify compares each booking with the latest change of it. It returns how many bookings there are.
func (p *bookingProgram) verify(t *testing.T) int {
	for code, known := range p.changes {
		var b struct {
			Status   string
			Date     time.Time
			Messages []struct {
				ID, Step, Occurrence, Stato string
			}
		}
		must(t, "GET", p.base+"/api/bookings/"+code, p.key, nil).into(t, &b)
		if (b.Status == "cancelled") != known.cancelled || !b.Date.Equal(known.date) {
			t.Errorf("%s is %s at %s, want cancelled %v at %s", code, b.Status, b.Date, known.cancelled, known.date)
		}
		reminders, answered := 0, false
		for _, m := range b.Messages {
			if m.Stato == "PENDING" && number(t, p.database, `select count(*) from message where intent = 0 and state = 0 and id = `+m.ID) == 0 {
				m.Stato = "in flight" // it was being sent when its date changed or the server was killed, and is not sent again
			}
			at, err := time.Parse(time.RFC3339, m.Occurrence)
			current := err == nil && at.Equal(b.Date)
			switch {
			case m.Step == "1" && current:
				reminders++
				answered = m.Stato == "PENDING" || m.Stato == "COMPLETED" || m.Stato == "in flight"
			case m.Step == "1" && m.Stato == "PENDING":
				t.Errorf("%s: a reminder for %s is planned, the date is %s", code, m.Occurrence, b.Date)
			}
			if known.cancelled && m.Step != "3" && m.Stato == "PENDING" && time.Until(b.Date) > 2*time.Hour {
				t.Errorf("%s is cancelled, and step %s is planned", code, m.Step)
			}
		}
		if !known.cancelled && time.Until(b.Date) > 2*time.Hour && (reminders != 1 || !answered) {
			t.Errorf("%s has %d reminders for its date: %+v", code, reminders, b.Messages)
		}
	}
	return len(p.changes)
}
