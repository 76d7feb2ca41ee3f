package delivery

import (
	"testing"
	"time"

	"puntuale"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// TestRetries follows a delivery whose attempts all fail. Its waits are about 75 hours in total. After the attempt that
// follows the last wait, the delivery is given up.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, random := range []float64{0, 0.5, 1} {
		now, a := noon, &answer{status: 500}
		for attempt, wait := range puntuale.WebhookRetries {
			state, next := ending(attempt, a, now, random)
			took := next.Sub(now)
			if state != puntuale.DeliveryWaiting || took < wait || took > wait+wait/5 {
				t.Errorf("attempt %d: %s, again after %v, wanted %v with its jitter", attempt, state, took, wait)
			}
			now = next
		}
		if total := now.Sub(noon); total < 75*time.Hour || total > 91*time.Hour {
			t.Errorf("given up after %v", total)
		}
		if state, _ := ending(len(puntuale.WebhookRetries), a, now, random); state != puntuale.DeliveryFailed {
			t.Errorf("after the last retry it is %s", state)
		}
	}
	for status, want := range map[int]puntuale.DeliveryState{
		0: puntuale.DeliveryWaiting, 199: puntuale.DeliveryWaiting, 200: puntuale.DeliveryDone, 204: puntuale.DeliveryDone, 299: puntuale.DeliveryDone, 301: puntuale.DeliveryWaiting,
		400: puntuale.DeliveryWaiting, 401: puntuale.DeliveryWaiting, 404: puntuale.DeliveryWaiting, 410: puntuale.DeliveryFailed, 429: puntuale.DeliveryWaiting, 503: puntuale.DeliveryWaiting,
	} {
		if state, _ := ending(0, &answer{status: status}, noon, 0); state != want {
			t.Errorf("%d: %s", status, state)
		}
	}
}

func TestAskedWaits(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 120 ": 2 * time.Minute, "0": 0, "-3": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0, "18446744073709551615": 24 * time.Hour,
		"90000": 24 * time.Hour, "Wed, 25 Nov 2026 12:01:00 GMT": time.Minute, "Wed, 25 Nov 2026 11:00:00 GMT": 0, "Fri, 25 Dec 2026 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(value, noon); got != want {
			t.Errorf("%q: %v, should be %v", value, got, want)
		}
	}
	// Retry-After can make a wait longer, but never shorter.
	if _, next := ending(0, &answer{status: 503, retryAfter: time.Hour}, noon, 0); !next.Equal(noon.Add(time.Hour)) {
		t.Errorf("asked for an hour: %v", next)
	}
	if _, next := ending(1, &answer{status: 503, retryAfter: time.Second}, noon, 0); !next.Equal(noon.Add(5 * time.Minute)) {
		t.Errorf("asked for a second: %v", next)
	}
}

// TestRests checks that one failure does not delay other deliveries of the receiver. A receiver that keeps failing gets
// fewer and fewer attempts: at the end, one a minute.
func TestRests(t *testing.T) {
	t.Parallel()
	var before time.Duration
	for failures := range 20 {
		got := retryWait(failures, 0, 0)
		if failures < failingAfter && got != 0 || failures >= failingAfter && (got < firstRest || got > longestRest || got < before) {
			t.Errorf("%d failures: %v", failures, got)
		}
		before = got
	}
	if before != longestRest {
		t.Errorf("at last %v", before)
	}
	if got := retryWait(1, 24*time.Hour, 0); got != askedRest {
		t.Errorf("a receiver rests for %v", got)
	}
}

// TestFairQueue checks that a client with many deliveries does not delay another client.
func TestFairQueue(t *testing.T) {
	t.Parallel()
	var q fairQueue
	for i := range 100 {
		q.push(puntuale.DueDelivery{Delivery: puntuale.Delivery{Client: 1, Seq: int64(i)}})
	}
	q.push(puntuale.DueDelivery{Delivery: puntuale.Delivery{Client: 2, Seq: 1000}})
	if first, second := q.pop(), q.pop(); first.Seq != 0 || second.Seq != 1000 {
		t.Errorf("first %d, then %d", first.Seq, second.Seq)
	}
	if rest := q.cut(3); q.size != 3 || len(rest) != 96 {
		t.Errorf("%d stay, %d go", q.size, len(rest))
	}
	for i := range 3 {
		if d := q.pop(); d.Seq != int64(i+1) {
			t.Errorf("%d. is %d", i, d.Seq)
		}
	}
}
