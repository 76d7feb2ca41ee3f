// Package aliascache remembers which aliases of people are already on disk, for the other connectors.
package aliascache

import (
	"sync"
	"time"

	"puntuale"
)

// Almost everything that a network reports contains an alias that is already on disk. Memory contains a copy of such
// aliases, so that they are not written again. The copy is cleared when it has more than maxAliases aliases. It is also
// cleared after aliasesFor, because the store may have removed some of them.
const (
	maxAliases = 50_000
	aliasesFor = time.Hour
)

// Cache contains those aliases that are already on disk. It is safe for concurrent use. The zero value is empty.
type Cache struct {
	mu    sync.Mutex
	all   map[puntuale.Alias]struct{}
	since time.Time
}

// Known reports whether the alias is on disk.
func (s *Cache) Known(x puntuale.Alias, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.all[x]
	return known && now.Sub(s.since) < aliasesFor
}

// Note adds aliases that were stored on disk.
func (s *Cache) Note(all []puntuale.Alias, now time.Time) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all)+len(all) > maxAliases || now.Sub(s.since) >= aliasesFor {
		s.all, s.since = map[puntuale.Alias]struct{}{}, now
	}
	for _, x := range all {
		s.all[x] = struct{}{}
	}
}
