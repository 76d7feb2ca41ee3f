package control

import (
	"slices"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// startCache stores the data for plans of starts, so that the calls of a busy client need not read them each time. The
// data may be out of date. The store accepts a start with these data only if the client's revision has not changed
// ([puntuale.ErrStale]). For every other result, the call reads the data again.
type startCache struct {
	mu      sync.Mutex
	callers generations[puntuale.KeyHash, puntuale.Principal]
	starts  generations[startKey, startInfo]
}

// Servers of the previous version may change a client without a change of its revision. Therefore, no data are stored
// for long.
const (
	rememberFor   = time.Second
	maxRemembered = 4096     // the most entries of each kind
	rememberSize  = 16 << 10 // the largest size of a sequence's steps, in bytes
)

// startKey identifies a sequence at one revision of its client.
type startKey struct {
	client   puntuale.ClientID
	sequence puntuale.SequenceID
	revision int64
}

// startInfo is a sequence, with its templates filled in, and the session that sends it.
type startInfo struct {
	sequence puntuale.Sequence
	session  puntuale.Session
	purposes []puntuale.Purpose // purpose of each step
}

func (m *startCache) caller(hash puntuale.KeyHash, now time.Time) (puntuale.Principal, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.callers.get(hash, now)
	return p, ok && (p.Expires.IsZero() || now.Before(p.Expires))
}

func (m *startCache) keepCaller(hash puntuale.KeyHash, p puntuale.Principal, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callers.put(hash, p, now)
}

func (m *startCache) start(k startKey, now time.Time) (startInfo, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts.get(k, now)
}

func (m *startCache) keepStart(k startKey, info startInfo, now time.Time) {
	size := 0
	for _, s := range puntuale.Texts(info.sequence.Steps) {
		size += 256 + len(s.Text) + len(s.Media) + len(s.MediaName) + plan.ChoicesSize(*s)
		if a := s.Official; a != nil {
			for _, p := range slices.Concat(a.Header, a.Body) {
				size += 64 + len(p.Name) + len(p.Text)
			}
			size += 128 * len(a.Buttons)
		}
	}
	if size > rememberSize {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts.put(k, info, now)
}

// generations is a map whose entries expire after [rememberFor]. It never contains more than twice [maxRemembered]
// entries.
type generations[K comparable, V any] struct {
	young, old map[K]dated[V]
	begun      time.Time // when the map young was created
}

type dated[V any] struct {
	value V
	at    time.Time
}

func (g *generations[K, V]) get(k K, now time.Time) (V, bool) {
	e, ok := g.young[k]
	if !ok {
		e, ok = g.old[k]
	}
	age := now.Sub(e.at)
	return e.value, ok && age >= 0 && age < rememberFor
}

func (g *generations[K, V]) put(k K, v V, now time.Time) {
	if age := now.Sub(g.begun); g.young == nil || len(g.young) >= maxRemembered || age < 0 || age >= rememberFor {
		g.old, g.young, g.begun = g.young, map[K]dated[V]{}, now
	}
	g.young[k] = dated[V]{v, now}
}
