package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

const (
	jitter       = 0.2            // the longest random part of a wait, as a share of the wait
	maxAsked     = 24 * time.Hour // the longest Retry-After that this server obeys
	firstRest    = time.Second    // the first wait of a receiver that keeps failing, for all of its deliveries
	longestRest  = time.Minute
	askedRest    = 10 * time.Minute // the longest Retry-After that delays all deliveries of a receiver
	failingAfter = 3                // a receiver with this many failures in a row counts as one that keeps failing
)

// ending returns the state of a delivery after an attempt, and the time of the next attempt. The argument attempts is
// the number of earlier attempts.
func ending(attempts int, a *answer, now time.Time, random float64) (puntuale.DeliveryState, time.Time) {
	switch {
	case a.taken():
		return puntuale.DeliveryDone, time.Time{}
	case a.isGone() || attempts >= len(puntuale.WebhookRetries):
		return puntuale.DeliveryFailed, time.Time{}
	}
	wait := puntuale.WebhookRetries[attempts]
	wait += time.Duration(float64(wait) * jitter * random)
	return puntuale.DeliveryWaiting, now.Add(max(wait, a.retryAfter))
}

// retryWait returns how long a receiver gets no attempt, after a number of failures in a row. The argument requested is
// the wait that the receiver requested.
func retryWait(failures int, requested time.Duration, random float64) time.Duration {
	requested = min(requested, askedRest)
	if failures < failingAfter {
		return requested
	}
	wait := longestRest
	if doubled := failures - failingAfter; doubled < 6 {
		wait = min(wait, firstRest<<doubled)
	}
	return max(requested, wait+time.Duration(float64(wait)*jitter*random))
}

// retryAfter parses the header Retry-After: seconds, or a time (RFC 9110, 10.2.3). It returns how long to wait.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxAsked/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), maxAsked)
	}
	return 0
}
