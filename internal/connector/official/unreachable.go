package official

import (
	"maps"
	"sync"
	"time"

	"puntuale"
)

// unreachableFor is how long the connector sends nothing to a person that Meta could not reach. The wait ends earlier
// if the person writes.
const unreachableFor = 24 * time.Hour

// unreachable contains the persons that Meta could not reach. It is safe for concurrent use.
type unreachable struct {
	mu  sync.Mutex
	all map[string]refusedSend
}

// refusedSend says when Meta could not reach a person, and which send error the message got.
type refusedSend struct {
	at      time.Time
	refusal *puntuale.SendError
}

func (u *unreachable) note(to string, at time.Time, refusal *puntuale.SendError, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string]refusedSend{}
	}
	if len(u.all) >= maxPairs {
		maps.DeleteFunc(u.all, func(_ string, m refusedSend) bool { return now.Sub(m.at) >= unreachableFor })
	}
	if at.After(u.all[to].at) {
		u.all[to] = refusedSend{at, refusal}
	}
}

// refusalFor returns the send error for a message to a person that Meta could not reach. It returns nil if the refusal
// is older than unreachableFor, or if the person wrote after the refusal.
func (u *unreachable) refusalFor(to string, wrote, now time.Time) *puntuale.SendError {
	u.mu.Lock()
	defer u.mu.Unlock()
	m, known := u.all[to]
	if !known || now.Sub(m.at) >= unreachableFor || wrote.After(m.at) {
		return nil
	}
	return m.refusal
}

func (u *unreachable) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.all)
}
