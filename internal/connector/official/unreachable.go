package official

import (
	"maps"
	"sync"
	"time"

	"puntuale"
)

// unreachableFor is how long nobody is tried again whom Meta could not reach, unless they write.
const unreachableFor = 24 * time.Hour

// unreachable are persons whom Meta says it cannot reach. Its methods may be called by many goroutines at once.
type unreachable struct {
	mu  sync.Mutex
	all map[string]missed
}

// missed is when Meta said so, and how.
type missed struct {
	at   time.Time
	says *puntuale.SendError
}

func (u *unreachable) note(to string, at time.Time, says *puntuale.SendError, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string]missed{}
	}
	if len(u.all) >= pairsMost {
		maps.DeleteFunc(u.all, func(_ string, m missed) bool { return now.Sub(m.at) >= unreachableFor })
	}
	if at.After(u.all[to].at) {
		u.all[to] = missed{at, says}
	}
}

// says is why a person is not tried now, nil when they are: it is long ago, or they wrote since.
func (u *unreachable) says(to string, wrote, now time.Time) *puntuale.SendError {
	u.mu.Lock()
	defer u.mu.Unlock()
	m, known := u.all[to]
	if !known || now.Sub(m.at) >= unreachableFor || wrote.After(m.at) {
		return nil
	}
	return m.says
}

func (u *unreachable) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.all)
}
