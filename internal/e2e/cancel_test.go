//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// TestManyCancelled cancels many messages: the answer is larger than the memory that an answer may use. The answer
// names each message once, in the contract's form. The server uses no more memory than for a few messages.
func TestManyCancelled(t *testing.T) {
	beside(t)
	const many = 150_000
	databases(t, func(t *testing.T, database string) {
		s := prepare(t, database)
		s.env = []string{"GODEBUG=gctrace=1"} // at each garbage collection, the log says how much memory is still used
		s.start()
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
		var made struct{ ID []string }
		must(t, "POST", s.base+"/api/messages", who.key, map[string]any{"phone": "+393471234567", "text": "x", "date": time.Now().Add(72 * time.Hour).UTC().Format(stamp)}).into(t, &made)
		copies(t, database, made.ID[0], many-1)
		before := len(mustRead(t, s.log))

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/api/messages/cancel/pending", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+who.key)
		began := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		n := readCancelled(t, json.NewDecoder(response.Body))
		log := mustRead(t, s.log)
		idle, live := peakAlive(t, forced.Find(log[:before])), peakAlive(t, log[before:])
		t.Logf("%d messages were cancelled in %v, with %d MB alive before and at most %d MB during the call", n, time.Since(began).Round(time.Millisecond), idle, live)
		if n != many {
			t.Errorf("%d messages were named, of %d", n, many)
		}
		if live-idle > 6 { // an earlier version had the whole answer in memory, which took at least 11 MB more
			t.Errorf("%d MB were alive, %d MB more than before", live, live-idle)
		}
		if left := number(t, database, "select count(*) from message where state = 0"); left != 0 {
			t.Errorf("%d messages are still open", left)
		}
	})
}

// readCancelled reads an answer while it arrives, and returns how many messages the answer names.
func readCancelled(t *testing.T, d *json.Decoder) (n int) {
	t.Helper()
	token := func(want any) any {
		t.Helper()
		got, err := d.Token()
		if err != nil || want != nil && got != want {
			t.Fatalf("read %v, %v; want %v", got, err, want)
		}
		return got
	}
	token(json.Delim('{'))
	token("message")
	says := token(nil)
	token("messages")
	token(json.Delim('['))
	seen := map[int64]bool{}
	for d.More() {
		var m struct {
			ID      int64     `json:"id"`
			Desired time.Time `json:"desired_date"`
		}
		if err := d.Decode(&m); err != nil || m.Desired.IsZero() || seen[m.ID] {
			t.Fatalf("message %d: %+v, %v", n, m, err)
		}
		seen[m.ID] = true
		n++
	}
	token(json.Delim(']'))
	token(json.Delim('}'))
	if want := strconv.Itoa(n) + " messaggi annullati"; says != want {
		t.Errorf("it says %v, not %s", says, want)
	}
	return n
}

// copies makes n copies of a message that is due later.
func copies(t *testing.T, database, id string, n int) {
	t.Helper()
	db := open(t, database)
	const same = "client_id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, state, phone"
	if _, err := db.Exec(fmt.Sprintf(`insert into message (id, %s) with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)
 select id + i, %[1]s from message cross join n where id = %[3]s`, same, n, id)); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// collected matches the runtime's log line about a garbage collection. Its group is the memory that is still used, in
// MB.
var collected = regexp.MustCompile(`(?m)^gc \d+ .* \d+->\d+->(\d+) MB, `)

// forced matches the log line of the collection that a server forces when it has started.
var forced = regexp.MustCompile(`(?m)^gc \d+ .* \(forced\)$`)

// peakAlive returns the largest memory in use, in MB, at any garbage collection in the log.
func peakAlive(t *testing.T, log []byte) (highest int) {
	t.Helper()
	all := collected.FindAllSubmatch(log, -1)
	if len(all) == 0 {
		t.Error("there was no collection, so this shows nothing")
	}
	for _, one := range all {
		n, err := strconv.Atoi(string(one[1]))
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, n)
	}
	return highest
}
