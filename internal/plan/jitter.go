package plan

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"puntuale"
)

// jitter moves messages, which have their earliest and their latest moment, to a moment that the seed decides, and sets until when they may
// leave. It records a message that may leave beyond the horizon.
//
// All messages of the run use the same fraction of the span between their earliest and latest moment. So two messages
// keep their order if neither the earliest nor the latest moment of the first lies after the second's. keepOrder
// ensures this for the latest moments.
func (b *builder) jitter(messages []puntuale.PlannedMessage, timings []timing) {
	keepOrder(messages)
	for i := range messages {
		m := &messages[i]
		if b.in.Seed != 0 && m.DueMax.After(m.Due) {
			share, _ := bits.Mul64(uint64(m.DueMax.Sub(m.Due).Microseconds())+1, mix(b.in.Seed))
			m.Due = m.Due.Add(time.Duration(share) * time.Microsecond)
			m.DueMax = m.Due
		}
		if m.DueMax.After(b.horizon) {
			b.stepReason(m.Step, "timing", beyondHorizon(m.DueMax))
		}
		m.ValidUntil = timings[i].validUntil(m.Due)
	}
}

// keepOrder cuts the latest moment of each message to the latest moments of the messages planned after it. Messages
// with the same moment leave in the order of their steps. So a later step must leave a microsecond before an earlier
// step that is planned after it.
func keepOrder(messages []puntuale.PlannedMessage) {
	jittered := func(m puntuale.PlannedMessage) bool { return m.DueMax.After(m.Due) }
	if len(messages) < 2 || !slices.ContainsFunc(messages, jittered) {
		return
	}
	order := make([]*puntuale.PlannedMessage, len(messages))
	for i := range messages {
		order[i] = &messages[i]
	}
	slices.SortStableFunc(order, func(a, b *puntuale.PlannedMessage) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Step, b.Step))
	})
	for i := len(order) - 2; i >= 0; i-- {
		m, next := order[i], order[i+1]
		limit := next.DueMax
		if m.Step > next.Step {
			limit = limit.Add(-time.Microsecond)
		}
		if limit.Before(m.DueMax) {
			m.DueMax = limit
		}
	}
}

// latest returns the latest moment that the step's jitter allows. It lies up to so many seconds later, inside the same
// opening of the window. Where the step must leave before its anchor, it lies before the anchor.
func (t *timing) latest(due time.Time) time.Time {
	if t.Jitter <= 0 {
		return due
	}
	// One microsecond (the precision of moments) before an end that is itself outside.
	most := time.Duration(t.Jitter) * time.Second
	latest := due.Add(most)
	if end := t.window.Until(due, t.loc, most+time.Microsecond).Add(-time.Microsecond); end.Before(latest) {
		latest = end
	}
	if last := t.anchor.Add(-time.Microsecond); t.before && last.Before(latest) {
		latest = last
	}
	return latest
}

// mix spreads a seed over all 64 bits (the finaliser of SplitMix64), so that similar seeds give very different values.
func mix(seed uint64) uint64 {
	seed += 0x9E3779B97F4A7C15
	seed = (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
	seed = (seed ^ seed>>27) * 0x94D049BB133111EB
	return seed ^ seed>>31
}
