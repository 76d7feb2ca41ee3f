//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestCapIsExact: 128 callers call two servers until each caller is refused. The daily cap is 1,000. Exactly 1,000
// calls are accepted. Their answers have the counters 1 to 1,000, each once.
func TestCapIsExact(t *testing.T) {
	database := postgres(t)
	one, two := serve(t, database), serve(t, database)
	partner := createPartner(t, database)
	for round := range pick(10, 100) {
		who := createTenant(t, one.base, partner, "full", step("{{n}}", 1, "hours"))
		must(t, "PATCH", one.base+"/api/client/"+who.id, partner, map[string]any{"daily_api_cap": 1000, "timezone": noonZone()})
		c := &capCallers{who: who, bases: []string{one.base, two.base}, used: map[int]int{}}
		var workers sync.WaitGroup
		for w := range 128 {
			workers.Go(func() { c.call(w) })
		}
		workers.Wait()
		c.judge(t, round)
		if t.Failed() {
			return
		}
	}
}

// noonZone returns a time zone in which it is about noon now, because counters start again at midnight.
func noonZone() string {
	behind := time.Now().UTC().Hour() - 12 // the sign in these zones' names is reversed
	return fmt.Sprintf("Etc/GMT%+d", behind)
}

type capCallers struct {
	who   tenant
	bases []string

	mu       sync.Mutex
	used     map[int]int // for each value of daily_api_used in the answers: how many accepted calls got it
	accepted int
	refused  int
	wrong    []string
}

// call starts runs until a call is refused.
func (c *capCallers) call(worker int) {
	for n := 0; ; n++ {
		a, err := call("POST", c.bases[(worker+n)%len(c.bases)]+"/api/start/"+c.who.sequence, c.who.key,
			map[string]any{"phone": fmt.Sprintf("+39347%03d%04d", worker, n), "n": n})
		if err != nil || !c.note(a) {
			return
		}
	}
}

// note counts an answer, and reports whether the call was accepted.
func (c *capCallers) note(a answer) bool {
	var got struct {
		Cap       int `json:"daily_api_cap"`
		Used      int `json:"daily_api_used"`
		Remaining int `json:"daily_api_remaining"`
	}
	bad := json.Unmarshal(a.body, &got) != nil || got.Cap != 1000 || got.Remaining != 1000-got.Used
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.status == http.StatusOK && !bad:
		c.accepted++
		c.used[got.Used]++
		return true
	case a.status == http.StatusTooManyRequests && !bad && got.Used == 1000:
		c.refused++
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("%d %s", a.status, a.body))
	}
	return false
}

func (c *capCallers) judge(t *testing.T, round int) {
	t.Helper()
	for _, w := range c.wrong {
		t.Errorf("round %d: a call was answered: %s", round, w)
	}
	for n := 1; n <= 1000; n++ {
		if c.used[n] != 1 {
			t.Errorf("round %d: the counter %d was told %d times", round, n, c.used[n])
		}
	}
	if c.accepted != 1000 || c.refused != 128 {
		t.Errorf("round %d: %d calls were accepted and %d refused, should be 1000 and 128", round, c.accepted, c.refused)
	}
}
