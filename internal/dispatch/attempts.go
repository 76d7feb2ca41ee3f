package dispatch

import (
	"time"

	"puntuale"
)

// attempts are the attempts of this process. Memory is certain only about these.
type attempts struct {
	open map[puntuale.MessageID]*queuedMessage // attempts without a recorded outcome, even if their session queue was dropped

	// unsent has the tokens of claims whose answer was lost, and when it was lost. No message of these claims was sent.
	unsent map[int64]time.Time
}

// unsentFor is how long tokens of lost claims are remembered. The next polls find the rows that carry one.
const unsentFor = time.Hour

func newAttempts() attempts {
	return attempts{open: map[puntuale.MessageID]*queuedMessage{}, unsent: map[int64]time.Time{}}
}

func (a *attempts) add(m *queuedMessage) { a.open[m.row.ID] = m }

func (a *attempts) remove(id puntuale.MessageID) { delete(a.open, id) }

func (a *attempts) has(id puntuale.MessageID) bool { return a.open[id] != nil }

func (a *attempts) count() int { return len(a.open) }

// sweep forgets old tokens.
func (a *attempts) sweep(now time.Time) {
	for token, since := range a.unsent {
		if now.Sub(since) > unsentFor {
			delete(a.unsent, token)
		}
	}
}
