package dispatch

import (
	"time"

	"puntuale"
)

// attempts has the attempts of this process. The dispatcher knows their state from memory. For all other attempts it
// asks the store.
type attempts struct {
	// open has the attempts without a recorded outcome, even those of sessions that this node lost.
	open map[puntuale.MessageID]*queuedMessage

	// unsent has the token of each claim whose answer was lost, with the moment of the loss. No message of these
	// claims was sent.
	unsent map[int64]time.Time
}

// unsentFor is how long the tokens of lost claims are kept. The next polls find the rows with such a token.
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
