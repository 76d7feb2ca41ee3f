//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"
)

const (
	// maxTwice is the largest number of deliveries that may come twice: a receiver accepted them, but the killed node
	// had not stored their results. A receiver has at most a 16th of 256 deliveries in flight. At most 256 results wait
	// for the disk (internal/delivery).
	maxTwice = 256/16 + 256
	// twiceWithin is how long before a kill the first copy of such a delivery may have come.
	twiceWithin = 5 * time.Second
)

// TestEventsTakenOver delivers the events of two nodes to one webhook. While both nodes live, each event comes once.
// Then the node that owns the webhook is killed, and the other node delivers. Only events whose results the killed node
// had not stored may come twice.
func TestEventsTakenOver(t *testing.T) {
	beside(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	database := postgres(t)
	nodes := []*server{serve(t, database, "--lease", "2s", "--webhook-allow", "127.0.0.0/8"), serve(t, database, "--lease", "2s", "--webhook-allow", "127.0.0.0/8")}
	bases := []string{nodes[0].base, nodes[1].base}
	partner := createPartner(t, database)
	var steps []any
	for i := range eventSteps {
		steps = append(steps, step(fmt.Sprintf("%d", i), 0, "seconds"))
	}
	who := createTenant(t, bases[0], partner, "full", steps...)
	own := newEventReceiver(t, seed)
	own.subscribe(bases[0], who.key)
	var ids []string
	came := func(base string) {
		t.Helper()
		last := time.Time{}
		eventually(t, 90*time.Second, "every event came", func() bool {
			if own.taken() < len(ids) || time.Since(last) < time.Second {
				return false
			}
			last = time.Now()
			for id, m := range details(t, base, who.key, ids) {
				if m.State == "PENDING" || !own.hasEventOf(id, m) {
					return false
				}
			}
			return own.hasAllNumbers()
		})
		time.Sleep(time.Second) // if an event came twice, the second copy would come in this time
	}
	const starts = 60
	ids = append(ids, startSome(bases, who, 0, starts).wait()...)
	came(bases[0])
	if twice := own.twice(); len(twice) > 0 {
		t.Errorf("nothing was killed, and %d events came twice: %v", len(twice), twice)
	}

	for round := range pick(1, 5) {
		before := own.taken()
		calls := startSome(bases, who, (round+1)*starts, (round+2)*starts)
		reached := before + starts*eventSteps/2 + rand.IntN(starts*eventSteps/3) // so more than maxTwice new events have come
		eventually(t, time.Minute, "events come", func() bool { return own.taken() >= reached })
		owner := number(t, database, "select owner from webhook")
		i := slices.IndexFunc(nodes, func(s *server) bool { return nodeOf(t, s) == owner })
		if i < 0 {
			t.Fatalf("node %d, which owns the webhook, is none of the servers", owner)
		}
		nodes[i].kill()
		killed, known := time.Now(), len(own.twice())
		ids = append(ids, calls.wait()...)
		came(bases[1-i])
		twice := own.twice()[known:]
		if len(twice) > maxTwice {
			t.Errorf("%d events came twice after a kill", len(twice))
		}
		for _, e := range twice {
			if e.first.After(killed) || killed.Sub(e.first) > twiceWithin || e.times > 2 {
				t.Errorf("an event that came %v before the kill came %d times", killed.Sub(e.first), e.times)
			}
		}
		t.Logf("the owner was killed after %d events, and %d came twice", reached-before, len(twice))
		nodes[i].start()
	}
	own.verify(details(t, bases[0], who.key, ids))
}

// twice returns the events that the receiver accepted more than once, in the order of their first copies.
func (r *eventReceiver) twice() (all []receivedEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.times > 1 {
			all = append(all, *e)
		}
	}
	slices.SortFunc(all, func(a, b receivedEvent) int { return a.first.Compare(b.first) })
	return all
}

var joined = regexp.MustCompile(`"joined the fleet","node":(\d+)`)

// nodeOf returns the id with which a server last joined.
func nodeOf(t *testing.T, s *server) (node int) {
	t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	all := joined.FindAllSubmatch(log, -1)
	if len(all) == 0 {
		t.Fatal("the server has not joined")
	}
	if _, err := fmt.Sscan(string(all[len(all)-1][1]), &node); err != nil {
		t.Fatal(err)
	}
	return node
}
