package official

import (
	"sync"
	"time"

	"puntuale"
)

// Almost every delivery repeats an alias that is on disk, so memory keeps the aliases that are on disk. If there are
// more than aliasesMost, memory forgets all of them. It also forgets them after aliasesFor, because the store may have
// removed some of them by then.
const (
	aliasesMost = 50_000
	aliasesFor  = time.Hour
)

// aliases remembers which other names of people are on disk. Its methods may be called by many goroutines at once.
type aliases struct {
	mu    sync.Mutex
	all   map[puntuale.Alias]struct{}
	since time.Time
}

func (s *aliases) known(x puntuale.Alias, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.all[x]
	return known && now.Sub(s.since) < aliasesFor
}

// note remembers aliases that the store has kept.
func (s *aliases) note(all []puntuale.Alias, now time.Time) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all)+len(all) > aliasesMost || now.Sub(s.since) >= aliasesFor {
		s.all, s.since = map[puntuale.Alias]struct{}{}, now
	}
	for _, x := range all {
		s.all[x] = struct{}{}
	}
}
