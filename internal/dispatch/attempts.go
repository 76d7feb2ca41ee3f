package dispatch

import (
	"time"

	"puntuale"
)

// attempts contains the attempts of this process. The dispatcher knows the state of these attempts from memory. For all
// other attempts it asks the store.
type attempts struct {
	// open contains the attempts without a recorded outcome, including attempts of sessions that this node lost.
	open map[puntuale.MessageID]*queuedMessage

	// unsent contains the token of each claim whose answer was lost, with the time of the loss. No message of these
	// claims was sent.
	unsent map[int64]time.Time
}

// unsentFor is how long the tokens of lost claims are stored. In this time, polls find the rows that have such a token.
const unsentFor = time.Hour

func newAttempts() attempts {
	return attempts{open: map[puntuale.MessageID]*queuedMessage{}, unsent: map[int64]time.Time{}}
}

func (a *attempts) add(m *queuedMessage) { a.open[m.row.ID] = m }

func (a *attempts) remove(id puntuale.MessageID) { delete(a.open, id) }

func (a *attempts) has(id puntuale.MessageID) bool { return a.open[id] != nil }

func (a *attempts) count() int { return len(a.open) }

// sweep deletes the tokens that are older than unsentFor.
func (a *attempts) sweep(now time.Time) {
	for token, since := range a.unsent {
		if now.Sub(since) > unsentFor {
			delete(a.unsent, token)
		}
	}
}
