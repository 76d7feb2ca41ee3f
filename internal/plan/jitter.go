package plan

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"puntuale"
)

// jitter sets the final due time and the deadline of each message. Each message has an earliest and a latest time, and
// the seed chooses a time between them. jitter records a fault if a message may leave beyond the horizon.
//
// All messages of a run use the same fraction of the time between their earliest and their latest time. Therefore, two
// messages stay in order if both their earliest and their latest times are in order. keepOrder puts the latest times in
// order.
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

// keepOrder puts the latest times in the order in which the messages are planned. Messages with the same due time leave
// in the order of their steps. Therefore, if the message that is planned first has the higher step number, its latest
// time must be a microsecond earlier.
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

// latest returns the latest time that the jitter of the step allows. This time is at most Jitter seconds after due, and
// in the same opening of the window as due. If the step must leave before its anchor, this time is before the anchor.
func (t *timing) latest(due time.Time) time.Time {
	if t.Jitter <= 0 {
		return due
	}
	// The end of the window is not part of the window. Therefore, the latest time is one microsecond before the end. A
	// microsecond is the precision of times.
	maximum := time.Duration(t.Jitter) * time.Second
	latest := due.Add(maximum)
	if end := t.window.Until(due, t.loc, maximum+time.Microsecond).Add(-time.Microsecond); end.Before(latest) {
		latest = end
	}
	if last := t.anchor.Add(-time.Microsecond); t.before && last.Before(latest) {
		latest = last
	}
	return latest
}

// mix converts a seed into a number whose 64 bits all depend on the seed, so that similar seeds give very different
// numbers. It is the finaliser of the hash function SplitMix64.
func mix(seed uint64) uint64 {
	seed += 0x9E3779B97F4A7C15
	seed = (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
	seed = (seed ^ seed>>27) * 0x94D049BB133111EB
	return seed ^ seed>>31
}
