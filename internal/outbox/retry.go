package outbox

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

const (
	jitter      = 0.2            // a wait is longer by up to this share
	mostAsked   = 24 * time.Hour // the longest Retry-After that is honoured
	firstRest   = time.Second    // of a receiver that keeps failing, before the next attempt of any delivery
	longestRest = time.Minute
	askedRest   = 10 * time.Minute // the longest rest of a whole receiver that asks for one
	patientFor  = 3                // failures without a success between them, after which a receiver keeps failing
)

// ending says what comes of a delivery after an attempt, and when the next attempt is.
func ending(attempts int, a *answer, now time.Time, random float64) (puntuale.DeliveryState, time.Time) {
	switch {
	case a.taken():
		return puntuale.DeliveryDone, time.Time{}
	case a.gone() || attempts >= len(puntuale.WebhookRetries):
		return puntuale.DeliveryFailed, time.Time{}
	}
	wait := puntuale.WebhookRetries[attempts]
	wait += time.Duration(float64(wait) * jitter * random)
	return puntuale.DeliveryWaiting, now.Add(max(wait, a.retryAfter))
}

// rest is how long a receiver gets no attempt after so many failures without a success between them.
func rest(failures int, asked time.Duration, random float64) time.Duration {
	asked = min(asked, askedRest)
	if failures < patientFor {
		return asked
	}
	wait := longestRest
	if doubled := failures - patientFor; doubled < 6 {
		wait = min(wait, firstRest<<doubled)
	}
	return max(asked, wait+time.Duration(float64(wait)*jitter*random))
}

// retryAfter reads how long a receiver wants to be left alone: seconds, or a moment (RFC 9110, 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(mostAsked/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), mostAsked)
	}
	return 0
}
