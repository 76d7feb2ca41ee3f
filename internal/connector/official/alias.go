package official

import (
	"sync"
	"time"

	"puntuale"
)

// Aliases are kept in memory, because each is told with almost every delivery, until there are too many, or long enough for
// the store to have removed some.
const (
	aliasesMost = 50_000
	aliasesFor  = time.Hour
)

// aliases are other names of people that are on disk. Its methods may be called by many goroutines at once.
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

// note remembers those that were kept.
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
