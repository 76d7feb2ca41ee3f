package store_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"puntuale/internal/store/engine"
)

// TestMain also checks the plans of all statements that the tests of this package make SQLite prepare.
func TestMain(m *testing.M) {
	p := &plans{seen: map[string]bool{}}
	engine.Planned = p.note
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		slices.Sort(p.slow)
		for _, s := range p.slow {
			fmt.Fprintln(os.Stderr, "SQLite reads all rows of a client, or of all clients:", s)
		}
		if len(p.slow) > 0 && code == 0 {
			code = 1
		}
		os.Exit(code)
	}))
}

// plans collects the statements for which SQLite reads all rows that a client has in a big table. SQLite believes that a
// client has ten, so it prefers such a plan to a sort, for example.
type plans struct {
	mu   sync.Mutex
	seen map[string]bool
	slow []string
}

// bigTables grow with a client's people, messages and bookings.
var bigTables = []string{
	"message", "booking", "booking_step", "booking_change", "contact", "reply", "person", "receipt", "conversation", "recipient", "run", "blacklist", "consent",
	"consent_state", "alias", "outbox_event", "outbox_fact", "delivery", "event", "network_id", "former_name", "automation_date", "automation_occurrence", "automation_timer",
}

// readAll are the beginnings of statements that may read all rows.
var readAll = []string{
	"delete from event_stream",                      // asks only whether there is a row
	"insert into event ", "insert into outbox_fact", // after a restore, with the pending messages of all clients
	"insert into unknown_message", "update message set intent_at", "select (select count(distinct client_id)", "select m.client_id, count(*) from message m join client",
	"update booking_step set phone", "delete from booking_step", "update outbox_fact set subject = 0", "delete from blacklist where client_id = $1 and (phone in", // a person is erased or changes number
	"delete from contact where client_id = $1 and session_id = $2",           // a session is deleted
	"select count(*) from contact g where g.client_id = $1 and g.session_id", // a campaign's check counts whom a session met today
	"select (select coalesce(max(r.id)", "select coalesce((select min(r.id)", // the first or last row of an index
	"select case when exists (select 1 from client k",         // a file is removed: does a value name it?
	"insert into result_client (client_id, generation, shown", // after the import of a file without results
	"select s.id, s.client_id, s.name",                        // asks only whether a campaign has a pending message
}

var (
	allOf   = regexp.MustCompile(`^SEARCH (\S+) USING (?:(?:COVERING )?INDEX \S+|PRIMARY KEY) \(client_id=\?\)`)
	allRows = regexp.MustCompile(`^SCAN (\w+)(?: USING|$)`)
	spaces  = regexp.MustCompile(`\s+`)
	wholly  = regexp.MustCompile(`^(delete from \w+ where client_id = \$1|select (client_id|1|count\(\*\)|\w+|seq), [\w, ]+ from \w+|select (1|count\(\*\)) from \w+( limit 1)?)$`)
)

func (p *plans) note(text string, steps []string) {
	text = strings.TrimSpace(spaces.ReplaceAllString(text, " "))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[text] || strings.Contains(text, " limit ") || wholly.MatchString(text) || slices.ContainsFunc(readAll, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		return
	}
	p.seen[text] = true
	for _, step := range steps {
		m := allOf.FindStringSubmatch(step)
		if m == nil {
			m = allRows.FindStringSubmatch(step)
		}
		if m == nil {
			continue
		}
		table := m[1]
		if of := regexp.MustCompile(`(?:from|join|update|into) (\w+)(?: as)? ` + regexp.QuoteMeta(m[1]) + `\b`).FindStringSubmatch(text); of != nil {
			table = of[1]
		}
		if slices.Contains(bigTables, table) {
			p.slow = append(p.slow, step+": "+text)
		}
	}
}
