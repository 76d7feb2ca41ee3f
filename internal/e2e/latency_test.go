//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

const stamp = "2006-01-02T15:04:05.000000Z"

// TestStartReachesSandboxAtOnce measures, on a machine doing nothing else, from the moment before the call to the
// moment at which the simulated network has the message.
func TestStartReachesSandboxAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		who := createTenant(t, s.base, createPartner(t, database), "full", step("{{n}}", 0, ""))
		const calls = 300
		begun := map[string]time.Time{}
		for n := range calls + 20 {
			now := time.Now()
			must(t, "POST", s.base+"/api/start/"+who.sequence, who.key,
				map[string]any{"phone": fmt.Sprintf("+39347%07d", n), "n": strconv.Itoa(n)})
			if n >= 20 { // the first ones warm the process up
				begun[strconv.Itoa(n)] = now
			}
			time.Sleep(5 * time.Millisecond)
		}
		var took []time.Duration
		eventually(t, 10*time.Second, "all arrive", func() bool {
			took = took[:0]
			for _, r := range ledger(t, s.base, who.key) {
				if at, ok := begun[r.Text]; ok {
					arrived, err := time.Parse(stamp, r.Received)
					if err != nil {
						t.Fatal(err)
					}
					took = append(took, arrived.Sub(at))
				}
			}
			return len(took) == calls
		})
		slices.Sort(took)
		p50, p99 := took[calls/2], took[calls*99/100]
		t.Logf("call to sandbox: p50 %v, p99 %v, max %v", p50, p99, took[calls-1])
		if p99 > 50*time.Millisecond {
			t.Errorf("p99 is %v, more than 50 ms", p99)
		}
	})
}
