//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestOfficialWebhooksWhileSending sends at a number's full rate. Meta reports three statuses for each message. The
// server must answer these reports within Meta's limits: 250 ms at the median, and one second for 99 of 100.
func TestOfficialWebhooksWhileSending(t *testing.T) {
	const rate, seconds = 80, 5
	number := graphtest.NewNumber("101")
	databases(t, func(t *testing.T, database string) {
		peer := graphtest.New(t, number)
		s := serve(t, database, "--official-api-url", peer.URL, "--official-rate", fmt.Sprint(rate))
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
		var session struct {
			ID, State string
			Webhook   string `json:"webhook_path"`
		}
		must(t, "POST", s.base+"/api/sessions", who.key, map[string]any{
			"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": json.RawMessage(number.Keys())}).into(t, &session)
		eventually(t, 30*time.Second, "the number is online", func() bool {
			must(t, "GET", s.base+"/api/sessions/"+session.ID, who.key, nil).into(t, &session)
			return session.State == "online"
		})
		m := &meta{t: t, peer: peer, webhook: s.base + session.Webhook, busy: make(chan struct{}, 64)}
		var sends sync.WaitGroup
		phones := make(chan string, rate*seconds)
		for i := range rate * seconds {
			phone := fmt.Sprintf("+39347%07d", i)
			peer.Know(phone, graphtest.Name{Number: phone[1:], ID: fmt.Sprintf("IT.%015d", i)}) // so the statuses name the persons in every possible way
			phones <- phone
		}
		close(phones)
		for range 8 {
			sends.Go(func() {
				for phone := range phones {
					m.deliver(peer.Wrote(number.ID, phone, time.Now()))
					must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": phone, "text": "ciao", "id_sessione": session.ID})
				}
			})
		}
		begun, look := time.Now(), time.NewTicker(5*time.Millisecond)
		defer look.Stop()
		for told := 0; told < rate*seconds; {
			if time.Since(begun) > time.Minute+seconds*time.Second {
				t.Fatalf("%d of %d with Meta", told, rate*seconds)
			}
			for _, taken := range peer.Taken()[told:] {
				told++
				for _, status := range []string{"sent", "delivered", "read"} {
					m.all.Go(func() { m.deliver(peer.Status(taken, status, time.Now())) })
				}
			}
			<-look.C
		}
		sent := time.Since(begun)
		sends.Wait()
		m.all.Wait()
		slices.Sort(m.took)
		median, p99, highest := m.took[len(m.took)/2], m.took[len(m.took)*99/100], m.took[len(m.took)-1]
		t.Logf("%d messages in %v, %d webhooks: median %v, 99 in 100 %v, at most %v", rate*seconds, sent.Round(time.Millisecond), len(m.took), median, p99, highest)
		if median > 250*time.Millisecond || p99 > time.Second {
			t.Errorf("Meta waited %v at the median, %v at the 99th percentile", median, p99)
		}
		eventually(t, 30*time.Second, "all are read", func() bool {
			return rowsOf(t, database, "select count(*) from message m join receipt r on r.client_id = m.client_id and r.message_id = m.id where m.state = 1 and r.read_at > 0") == rate*seconds
		})
	})
}

// meta delivers webhook requests, and measures how long each answer took.
type meta struct {
	t       *testing.T
	peer    *graphtest.Peer
	webhook string
	busy    chan struct{}
	all     sync.WaitGroup

	mu   sync.Mutex
	took []time.Duration
}

func (m *meta) deliver(body []byte) {
	m.busy <- struct{}{}
	defer func() { <-m.busy }()
	begun := time.Now()
	if status := m.peer.Deliver(m.webhook, "101", body); status != http.StatusOK {
		m.t.Errorf("the webhook answered %d", status)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took = append(m.took, time.Since(begun))
}
