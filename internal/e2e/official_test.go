//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestOfficialKilled kills the server with SIGKILL while an Official number sends: 4 times, or 100 times with
// PUNTUALE_LONG=1. Many messages are in flight, and some answers are lost. Meta's ledger has no message twice. After
// Meta's statuses came, the messages that Meta has are COMPLETED. All other messages with an attempt are uncertain.
func TestOfficialKilled(t *testing.T) {
	beside(t)
	kills, each := 4, 80
	if long {
		kills = 100
	}
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		number := graphtest.NewNumber("101")
		peer := graphtest.New(t, number)
		journal := filepath.Join(t.TempDir(), "ledger")
		peer.Journal(journal)
		held := &graphtest.Held{Reply: func(n int) graphtest.Reply { return graphtest.Reply{Drop: n%40 == 0, Break: n%41 == 5} }}
		peer.Answer(held.Answer)
		s := serve(t, database, "--lease", "2s", "--official-api-url", peer.URL, "--official-rate", "1000")
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
		var session struct {
			ID, State string
			Webhook   string `json:"webhook_path"`
		}
		must(t, "POST", s.base+"/api/sessions", who.key, map[string]any{
			"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": json.RawMessage(number.Keys())}).into(t, &session)
		webhook := s.base + session.Webhook
		online := func() bool {
			must(t, "GET", s.base+"/api/sessions/"+session.ID, who.key, nil).into(t, &session)
			return session.State == "online"
		}
		var ids []string
		for kill := range kills {
			eventually(t, 30*time.Second, "the number is online", online)
			answered, flying := random.IntN(each/2), 1+random.IntN(each/2)
			asked := peer.Asked() + answered + flying
			release := held.After(answered)
			for i := range each {
				phone := fmt.Sprintf("+39347%03d%04d", kill, i)
				if status := peer.Deliver(webhook, number.ID, peer.Wrote(number.ID, phone, time.Now())); status != 200 {
					t.Fatalf("the webhook answered %d", status)
				}
				var made struct{ ID []string }
				must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": phone, "text": "ciao", "id_sessione": session.ID}).into(t, &made)
				ids = append(ids, made.ID...)
			}
			eventually(t, 30*time.Second, "some are on their way", func() bool { return peer.Asked() >= asked })
			s.kill()
			release()
			s.start()
		}
		eventually(t, time.Minute, "all were tried", func() bool { return rowsOf(t, database, "select count(*) from message where intent = 0") == 0 })
		eventually(t, time.Minute, "nothing is in flight", func() bool {
			return rowsOf(t, database, "select count(*) from message where intent > 0 and next_at < intent_at + 3600000000") == 0
		})
		unknown := rowsOf(t, database, "select count(*) from message where intent > 0")
		taken := readJournal(t, journal)
		seen := map[string]bool{}
		for _, m := range taken {
			base36, _, _ := strings.Cut(m.Message.Token, ".")
			n, err := strconv.ParseInt(base36, 36, 64)
			if err != nil {
				t.Fatal(err)
			}
			message := strconv.FormatInt(n, 10)
			if seen[message] {
				t.Errorf("message %s was shown twice", message)
			}
			seen[message] = true
			for _, status := range []string{"sent", "delivered"} {
				if got := peer.Deliver(webhook, number.ID, peer.Status(m, status, time.Now())); got != 200 {
					t.Fatalf("the webhook answered %d", got)
				}
			}
		}
		uncertain := 0
		for part := range slices.Chunk(ids, 500) {
			var answer struct {
				Messages []struct {
					State     string `json:"stato"`
					Detail    string `json:"dettaglio_risposta"`
					Delivered string `json:"consegnato"`
				}
			}
			must(t, "GET", s.base+"/api/messages/details?message_ids[]="+strings.Join(part, ","), who.key, nil).into(t, &answer)
			for i, m := range answer.Messages {
				switch {
				case seen[part[i]] && (m.State != "COMPLETED" || m.Delivered == ""):
					t.Errorf("message %s arrived, and is %v: %s", part[i], m.State, m.Detail)
				case !seen[part[i]] && (m.State != "PENDING" || !strings.Contains(m.Detail, "esito incerto")):
					t.Errorf("message %s did not arrive, and is %v: %s", part[i], m.State, m.Detail)
				case !seen[part[i]]:
					uncertain++
				}
			}
		}
		t.Logf("%d kills, %d messages, %d with Meta, of %d nobody knew, %d did not arrive", kills, len(ids), len(taken), unknown, uncertain)
	})
}

// rowsOf returns the number that a query on the server's database returns.
func rowsOf(t *testing.T, database, query string) (n int) {
	t.Helper()
	db := open(t, database)
	defer db.Close() // the database is closed now and not at the test's end, because the function is called often
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func readJournal(t *testing.T, name string) (all []graphtest.Taken) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var m graphtest.Taken
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}
