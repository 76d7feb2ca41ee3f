package official

import (
	"sync"

	"puntuale"
)

// aliasesMost are kept in memory before all are forgotten; each is told with almost every delivery.
const aliasesMost = 50_000

// aliases are other names of people that are on disk. Its methods may be called by many goroutines at once.
type aliases struct {
	mu  sync.Mutex
	all map[puntuale.Alias]struct{}
}

func (s *aliases) known(x puntuale.Alias) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.all[x]
	return known
}

// note remembers those that were kept.
func (s *aliases) note(all []puntuale.Alias) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all)+len(all) > aliasesMost {
		s.all = map[puntuale.Alias]struct{}{}
	}
	for _, x := range all {
		s.all[x] = struct{}{}
	}
}
