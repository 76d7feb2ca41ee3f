package official

import (
	"sync"
	"time"
)

// One person may get a message every 6 s on average. If the person got no message for 45 times 6 s, up to 45 messages may
// leave without a wait. After that, one message may leave every 6 s.
const (
	pairEvery = 6 * time.Second
	pairBurst = 45
	maxPairs  = 10_000 // with this number of persons in memory, persons who need not wait are removed before one more is added
)

// pairs contains what was recently sent to each person. It is safe for concurrent use.
type pairs struct {
	mu  sync.Mutex
	all map[string]*pair
}

// pair limits the messages to one person. The time paid shows whether one more message may leave. Each message moves
// paid forward by pairEvery. If paid is in the past, it is first set to the present time. While paid is in the past,
// pairBurst messages may leave without a wait.
type pair struct {
	paid        time.Time
	refused     int       // how many times in a row Meta refused a message because the person got too many
	pausedUntil time.Time // no message leaves before this time, because Meta refused one
}

func newPairs() *pairs { return &pairs{all: map[string]*pair{}} }

// wait returns the time left until a person may get one more message. 0 means now.
func (p *pairs) wait(to string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[to].wait(now)
}

func (x *pair) wait(now time.Time) time.Duration {
	if x == nil {
		return 0
	}
	return max(0, x.pausedUntil.Sub(now), x.paid.Add(-(pairBurst-1)*pairEvery).Sub(now))
}

// take counts a message to a person if the message may leave now. Otherwise it returns how long to wait.
func (p *pairs) take(to string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.pairFor(to, now)
	if wait := x.wait(now); wait > 0 {
		return wait
	}
	if x.paid.Before(now) {
		x.paid = now
	}
	x.paid = x.paid.Add(pairEvery)
	return 0
}

// refused records that Meta refused one more message to a person. It returns the wait: 1 s, 4 s, 16 s and so on, up
// to about 17 minutes. After Meta accepted a message, the next wait is 1 s again.
func (p *pairs) refused(to string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.pairFor(to, now)
	wait := time.Second << (2 * min(x.refused, maxPairRefusals))
	x.refused++
	x.pausedUntil = now.Add(wait)
	return wait
}

func (p *pairs) accepted(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.all[to]; x != nil {
		x.refused, x.pausedUntil = 0, time.Time{}
	}
}

func (p *pairs) pairFor(to string, now time.Time) *pair {
	x := p.all[to]
	if x == nil {
		if len(p.all) >= maxPairs {
			p.sweep(now)
		}
		x = &pair{}
		p.all[to] = x
	}
	return x
}

// sweep removes the persons who may get pairBurst messages without a wait again.
func (p *pairs) sweep(now time.Time) {
	for to, x := range p.all {
		if !x.paid.After(now) && now.Sub(x.pausedUntil) > time.Hour {
			delete(p.all, to)
		}
	}
}

// recipientCount counts the persons that were addressed without an open 24-hour window, by a number or by all numbers
// of a business. Meta limits this count for any 24 hours. It is safe for concurrent use.
type recipientCount struct {
	mu    sync.Mutex
	limit int // 0: no limit
	all   map[string]time.Time
	read  time.Time // when the people that other nodes address were last read; zero: never
}

// reachTime is how long a person is counted after the last message to that person.
const reachTime = 24 * time.Hour

func newReach() *recipientCount { return &recipientCount{all: map[string]time.Time{}} }

// load adds the persons that the session addressed before this node opened it.
func (r *recipientCount) load(all map[string]time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for to, at := range all {
		if at.After(r.all[to]) {
			r.all[to] = at
		}
	}
}

// othersEvery is the time between two reads of the people that other nodes address. Messages under way may take othersBack
// until their outcomes are on disk.
const (
	othersEvery = 10 * time.Second
	othersBack  = time.Minute
)

// readDue reports whether the people that other nodes address must be read now, and since when. Then the caller reads them.
func (r *recipientCount) readDue(now time.Time) (since time.Time, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == 0 || now.Sub(r.read) < othersEvery && !now.Before(r.read) {
		return time.Time{}, false
	}
	since, r.read = r.read.Add(-othersBack), now
	if now.Sub(since) > reachTime || since.After(now) {
		since = now.Add(-reachTime)
	}
	return since, true
}

func (r *recipientCount) setLimit(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = limit
}

// wait returns the time left until a person may be addressed. 0 means now.
func (r *recipientCount) wait(to string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.room(to, now)
}

func (r *recipientCount) room(to string, now time.Time) time.Duration {
	if at, ok := r.all[to]; r.limit == 0 || len(r.all) < r.limit || ok && now.Sub(at) < reachTime {
		return 0
	}
	first := now
	for phone, at := range r.all {
		switch {
		case now.Sub(at) >= reachTime:
			delete(r.all, phone)
		case at.Before(first):
			first = at
		}
	}
	if len(r.all) < r.limit {
		return 0
	}
	return max(time.Second, first.Add(reachTime).Sub(now))
}

// take counts a person if the person may be addressed now. Otherwise it returns how long to wait. fresh means that the
// person was not counted before.
func (r *recipientCount) take(to string, now time.Time) (fresh bool, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait := r.room(to, now); wait > 0 {
		return false, wait
	}
	at, ok := r.all[to]
	r.all[to] = now // the 24 hours begin again with this message
	return !ok || now.Sub(at) >= reachTime, 0
}

// undo removes a fresh person from the count, because the message did not arrive.
func (r *recipientCount) undo(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, to)
}
