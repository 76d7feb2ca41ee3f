package dispatch

import (
	"sync"
	"time"
)

// workerPools contains the pools that prepare messages.
type workerPools struct{ text, media *workerPool }

func newWorkerPools(s *scheduler) workerPools {
	return workerPools{text: newWorkerPool(s, textWorkers, textPerSession), media: newWorkerPool(s, mediaWorkers, mediaPerSession)}
}

func (p workerPools) submit(m *queuedMessage) {
	if m.content.MediaURL != "" {
		p.media.submit(m)
	} else {
		p.text.submit(m)
	}
}

// workerPool prepares messages with a limited number of goroutines, one session after the other. It begins with
// one goroutine. While preparations are slow, relief doubles the number of goroutines. Quick preparations therefore use
// few goroutines, and do not delay messages that are due now.
type workerPool struct {
	s                 *scheduler
	limit, perSession int

	mu       sync.Mutex
	running  int // number of goroutines
	done     int // number of preparations since relief last checked
	relieved bool
	jobs     map[*sessionQueue]*sessionJobs
	waiting  fifo[*sessionJobs] // sessions with work for which another goroutine may start
}

// sessionJobs contains the waiting work of one session in a pool.
type sessionJobs struct {
	queue     *sessionQueue
	messages  fifo[*queuedMessage]
	campaigns fifo[*queuedMessage] // messages of campaigns, which are prepared only if no other message waits
	workers   int
	listed    bool
}

func (j *sessionJobs) waiting() int { return j.messages.len() + j.campaigns.len() }

func (j *sessionJobs) pop() *queuedMessage {
	if j.messages.len() > 0 {
		return j.messages.pop()
	}
	return j.campaigns.pop()
}

func newWorkerPool(s *scheduler, limit, atPriority int) *workerPool {
	return &workerPool{s: s, limit: limit, perSession: atPriority, jobs: map[*sessionQueue]*sessionJobs{}}
}

func (p *workerPool) submit(m *queuedMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[m.queue]
	if j == nil {
		j = &sessionJobs{queue: m.queue}
		p.jobs[m.queue] = j
	}
	if m.row.Campaign != 0 {
		j.campaigns.push(m)
	} else {
		j.messages.push(m)
	}
	p.list(j)
	if p.running == 0 {
		p.grow(1)
	}
	if !p.relieved {
		p.relieved = true
		p.s.life.wg.Go(p.relief)
	}
}

// list puts the session into the pool's queue, if it has work and may have another goroutine. The caller must hold the
// pool's lock.
func (p *workerPool) list(j *sessionJobs) {
	if !j.listed && j.waiting() > 0 && j.workers < p.perSession {
		j.listed = true
		p.waiting.push(j)
	}
}

// grow starts n more goroutines, up to the limit of the pool. The caller must hold the pool's lock.
func (p *workerPool) grow(n int) {
	for range min(n, p.limit-p.running) {
		p.running++
		p.s.life.wg.Go(p.work)
	}
}

// relief adds goroutines while work waits and all goroutines are busy. It returns when no work waits.
func (p *workerPool) relief() {
	for p.s.cfg.Clock.Sleep(p.s.life.ctx, reliefEvery) == nil {
		p.mu.Lock()
		if p.waiting.len() == 0 {
			p.relieved = false
			p.mu.Unlock()
			return
		}
		if p.done < p.running {
			p.grow(min(p.running, p.waiting.len()*p.perSession))
		}
		if p.running == 0 {
			p.grow(1)
		}
		p.done = 0
		p.mu.Unlock()
	}
}

const reliefEvery = time.Millisecond

// work prepares messages until no message waits.
func (p *workerPool) work() {
	p.mu.Lock()
	for p.waiting.len() > 0 {
		j := p.waiting.pop()
		j.listed = false
		m := j.pop()
		j.workers++
		p.list(j)
		p.mu.Unlock()
		p.s.prepare(m)
		p.mu.Lock()
		p.done++
		j.workers--
		p.list(j)
		if j.workers == 0 && j.waiting() == 0 {
			delete(p.jobs, j.queue)
		}
	}
	p.running--
	p.mu.Unlock()
}
