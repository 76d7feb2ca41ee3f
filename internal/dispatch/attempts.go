package dispatch

import (
	"time"

	"puntuale"
)

// attempts are the attempts of this process. Only of these does memory know for certain.
type attempts struct {
	open map[puntuale.MessageID]*queuedMessage // without a recorded outcome, whatever became of their session queue

	// unsent are the tokens of claims whose answer was lost, and since when. Nothing of theirs was sent.
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
