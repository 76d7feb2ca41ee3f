package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// TestResultsAreSoonTold runs the whole program with a clock that stands still unless the test sets it, and records outcomes.
// Five seconds later results tell them, and say that they are not older. Before, they do not say to be newer than they are.
func TestResultsAreSoonTold(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); resultsAreSoonTold(t, nil) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		resultsAreSoonTold(t, map[string]string{"PUNTUALE_DATABASE": storetest.Postgres(t).Config.Database, "PUNTUALE_KEY": strings.Repeat("k", 32)})
	})
}

func resultsAreSoonTold(t *testing.T, env map[string]string) {
	const late = 5 * time.Second
	fake := clock.NewFake(time.Now().UTC().Truncate(24 * time.Hour).Add(34 * time.Hour)) // in the morning, when messages leave
	term := newConsole(t, env)
	term.clock = fake
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data", "--sandbox", "--lease", "10m") // a lease of the real time
	r := newOfficial(t, graphtest.New(t), term, []string{"--data", "data"}, server)
	results := func() (sent, planned int, asOf time.Time) {
		t.Helper()
		var told struct {
			Total struct{ Sent, Planned int }
			AsOf  time.Time `json:"as_of"`
		}
		if err := json.Unmarshal([]byte(r.must("GET", "/api/results?by=day", "")), &told); err != nil {
			t.Fatal(err)
		}
		return told.Total.Sent, told.Total.Planned, told.AsOf
	}
	for n := 1; n <= 5; n++ {
		id := r.ids("/api/messages", fmt.Sprintf(`{"phone": "+3933312345%02d", "text": "Ciao"}`, n))[0]
		eventually(t, "the message leaves", func() bool {
			if state, _ := r.state(id); state == "COMPLETED" {
				return true
			}
			fake.Advance(50 * time.Millisecond)
			return false
		})
		recorded := fake.Now()
		if sent, _, asOf := results(); sent < n && asOf.After(recorded) {
			t.Errorf("the outcome is not counted, but results are said to be of %v, and it is of %v", asOf, recorded)
		}
		for step := range 10 { // the counter works between the steps, as a machine lets it
			fake.Set(recorded.Add(late * time.Duration(step+1) / 10))
			results()
		}
		eventually(t, fmt.Sprintf("results tell %d messages that were sent %v ago", n, late), func() bool {
			sent, planned, asOf := results()
			return sent == n && planned == n && fake.Now().Sub(asOf) <= late
		})
	}
}
