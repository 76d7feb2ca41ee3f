//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// paused is a campaign and its state right after the answer to its pause.
type paused struct {
	*mass
	db       *sql.DB
	campaign int
	fed      int
	attempts map[int64]int // how many attempts each planned message had
}

// pause pauses a campaign. It fails the test if the campaign is not running.
func (m *mass) pause(id string) *paused {
	m.t.Helper()
	if s := m.state(id); s.State != "running" || s.Counts.Completed == s.Counts.Recipients {
		m.t.Fatalf("the campaign was over before its pause, so this shows nothing: %+v", s)
	}
	m.verb(id, "pause")
	p := &paused{mass: m, db: open(m.t, m.s.database)}
	p.campaign, _ = strconv.Atoi(id)
	p.attempts, p.fed = p.begun(), m.state(id).Counts.Fed
	m.t.Logf("when the pause was answered, %d recipients were not fed, %d messages not begun, %d on their way", m.state(id).Counts.Waiting, p.among("attempt = 0"), p.among("intent > 0"))
	return p
}

// begun returns the number of attempts of each of the campaign's messages.
func (p *paused) begun() map[int64]int {
	p.t.Helper()
	rows, err := p.db.Query("select id, attempt from message where campaign_id = " + strconv.Itoa(p.campaign))
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	all := map[int64]int{}
	for rows.Next() {
		var id int64
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			p.t.Fatal(err)
		}
		all[id] = n
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// The method among counts the campaign's messages for which a condition is true.
func (p *paused) among(condition string, args ...any) (n int) {
	p.t.Helper()
	if err := p.db.QueryRow("select count(*) from message where campaign_id = "+strconv.Itoa(p.campaign)+" and "+condition, args...).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// settle waits until each attempt that began before the pause has its outcome.
func (p *paused) settle() {
	p.t.Helper()
	eventually(p.t, 20*time.Second, "what was on its way has arrived", func() bool { return p.among("intent > 0") == 0 })
}

// kill kills the server, which ends all its attempts, and starts the server again. It waits until PostgreSQL has ended
// the statements of the killed server.
func (p *paused) kill() {
	p.t.Helper()
	p.s.kill()
	p.t.Logf("%d attempts were cut off", p.among("intent > 0"))
	if strings.HasPrefix(p.s.database, "postgres") {
		eventually(p.t, 20*time.Second, "the killed server's transactions are over", func() bool {
			var n int
			if err := p.db.QueryRow("select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'").Scan(&n); err != nil {
				p.t.Fatal(err)
			}
			return n == 0
		})
	}
	p.s.start()
}

// arrived counts the campaign's messages that the network has. Each of them must have an attempt that began before the
// answer to the pause.
func (p *paused) arrived() (n int) {
	p.t.Helper()
	for _, r := range ledger(p.t, p.s.base, p.key) {
		attempts, fed := p.attempts[r.ID]
		if fed && attempts == 0 {
			p.t.Errorf("message %d left after the pause was answered", r.ID)
		}
		if fed && attempts > 0 {
			n++
		}
	}
	return n
}

// still checks that no message of the campaign leaves, begins an attempt or is fed, while the same session sends other
// messages. When still is called, nothing may be in flight.
func (p *paused) still() {
	p.t.Helper()
	eventually(p.t, 20*time.Second, "some of the campaign would leave or be fed now, were it not paused", func() bool {
		if p.among("state = 0") == 0 { // all planned messages have left
			return p.state(strconv.Itoa(p.campaign)).Counts.Waiting > 0
		}
		return p.among("state = 0 and intent = 0 and next_at <= $1", time.Now().UnixMicro()) > 0
	})
	before := p.arrived()
	for range 3 {
		p.single()
	}
	if after := p.arrived(); after != before {
		p.t.Errorf("while it was paused, the network received %d messages more", after-before)
	}
	if now := p.begun(); !maps.Equal(now, p.attempts) {
		p.t.Errorf("while it was paused, messages were begun or fed: %s", changed(p.attempts, now))
	}
	if fed := p.state(strconv.Itoa(p.campaign)).Counts.Fed; fed != p.fed {
		p.t.Errorf("while it was paused, %d recipients were fed", fed-p.fed)
	}
}

// single sends a message without a campaign through the same session, and waits until it has left.
func (p *paused) single() {
	p.t.Helper()
	p.singles++
	var made struct{ ID []string }
	must(p.t, "POST", p.s.base+"/api/messages", p.key, map[string]any{"phone": fmt.Sprintf("+39340%07d", p.singles), "text": "subito"}).into(p.t, &made)
	eventually(p.t, 30*time.Second, "a single message leaves beside the paused campaign", func() bool {
		for _, d := range details(p.t, p.s.base, p.key, made.ID) {
			if d.Left == nil {
				return false
			}
		}
		return true
	})
}

// changed returns some of the messages whose number of attempts changed.
func changed(before, after map[int64]int) string {
	var out strings.Builder
	n := 0
	for id, attempts := range after {
		if was, fed := before[id]; !fed || was != attempts {
			if n++; n <= 5 {
				fmt.Fprintf(&out, "message %d, attempt %d (was %d, fed %v); ", id, attempts, was, fed)
			}
		}
	}
	return fmt.Sprintf("%s%d in all", out.String(), n)
}
