package admission

import (
	"math/rand/v2"
	"time"
)

// tally counts the calls that were admitted and refused in the last one or two seconds. From these counts it computes
// after how many seconds a refused caller should try again. The times are spread, so that the callers do not return
// together.
type tally struct {
	since       time.Time
	now, before count
}

type count struct{ in, out int }

// longestRetry is the longest time, in seconds, after which a refused caller is asked to try again.
const longestRetry = 30

func (t *tally) advance(now time.Time) {
	if passed := now.Sub(t.since); passed >= time.Second || passed < 0 {
		t.before, t.now, t.since = t.now, count{}, now
		if passed >= 2*time.Second {
			t.before = count{}
		}
	}
}

func (t *tally) admitted(now time.Time) {
	t.advance(now)
	t.now.in++
}

func (t *tally) refused(now time.Time) time.Duration {
	t.advance(now)
	t.now.out++
	in, out := t.now.in+t.before.in, t.now.out+t.before.out
	maximum := min(longestRetry-1, 2+2*out/max(1, in))
	return time.Duration(1+rand.IntN(maximum)) * time.Second //nolint:gosec // the random number only spreads load
}
