//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestHistoriesAreLinearizable: several callers start, stop and cancel messages to the same recipient, at about the
// times when the messages are due. Meanwhile the three servers are killed and stopped. At the end the test checks the
// history of each message.
func TestHistoriesAreLinearizable(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := &fleet{t: t, database: postgres(t), lease: lease(), random: rand.New(rand.NewPCG(seed, 0))}
	for range 3 {
		f.join()
	}
	f.tenants = loadTenants(t, f.nodes[0].base, createPartner(t, f.database), 12)
	f.settled()
	r := &race{load: &load{begun: time.Now()}}
	for _, s := range f.nodes {
		r.bases = append(r.bases, s.base)
	}
	var all sync.WaitGroup
	ended := make(chan struct{})
	for i := range 24 {
		random := rand.New(rand.NewPCG(seed, uint64(i+1)))
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				r.fight(f.tenants[random.IntN(len(f.tenants))], fmt.Sprintf("+39347%02d%05d", i, n), random)
			}
		})
	}
	for range pick(2, 10) {
		time.Sleep(2 * time.Second)
		s := f.any()
		s.kill()
		time.Sleep(time.Duration(f.random.IntN(int(f.lease))))
		s.start()
		s = f.any()
		s.signal(syscall.SIGSTOP)
		time.Sleep(f.lease + time.Second)
		s.signal(syscall.SIGCONT)
	}
	time.Sleep(2 * time.Second)
	close(ended)
	all.Wait()
	r.judge(f)
}

// race records everything that the callers did.
type race struct {
	*load

	mu         sync.Mutex
	recipients []*recipientRecord
}

// recipientRecord records everything that was done about one recipient.
type recipientRecord struct {
	tenant tenant
	phone  string
	// One step is due this long after the start. The callers act at this time, because messages of earlier steps are
	// already sent then.
	target time.Duration

	mu      sync.Mutex
	started []callRecord
	taken   []callRecord
	meet    time.Time // the time at which the callers act; set when a message was started
}

// callRecord is one call and its answer.
type callRecord struct {
	single, stop bool
	event
	ids []string // the messages that the answer named
}

// fight makes four callers start, send, stop and cancel messages to one recipient.
func (r *race) fight(who tenant, phone string, random *rand.Rand) {
	m := &recipientRecord{tenant: who, phone: phone, target: loadSteps[random.IntN(len(loadSteps)-1)]}
	r.mu.Lock()
	r.recipients = append(r.recipients, m)
	r.mu.Unlock()
	callers := make([]*caller, 4)
	for i := range callers {
		callers[i] = &caller{load: r.load, random: rand.New(rand.NewPCG(random.Uint64(), 0)), name: phone + "-" + strconv.Itoa(i), phone: phone, tenant: who}
	}
	callers[0].begin(m)
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() {
			if i > 0 && c.random.IntN(3) == 0 {
				time.Sleep(time.Duration(c.random.IntN(200)) * time.Millisecond)
				c.begin(m)
			}
			for range 3 {
				c.aim(m)
				c.end(m)
			}
		})
	}
	all.Wait()
}

// begin starts a run or sends a single message.
func (c *caller) begin(m *recipientRecord) {
	d := callRecord{single: c.random.IntN(4) == 0, event: event{kind: starts, from: moment(time.Now())}}
	meet := time.Now().Add(m.target)
	var made []*promise
	if d.single {
		made = c.single()
	} else {
		made = c.start()
	}
	d.to = moment(time.Now()) + 1
	for _, p := range made {
		d.ids = append(d.ids, p.id)
		if d.single {
			meet = p.at
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = append(m.started, d)
	if m.meet.IsZero() {
		m.meet = meet
	}
}

// aim waits until about the time when a message is due, because mistakes are most likely then.
func (c *caller) aim(m *recipientRecord) {
	m.mu.Lock()
	at := m.meet.Add(time.Duration(c.random.IntN(60_000)-20_000) * time.Microsecond)
	m.mu.Unlock()
	time.Sleep(max(time.Until(at), time.Duration(c.random.IntN(20))*time.Millisecond))
}

// end repeats a stop or a cancel until a server answers.
func (c *caller) end(m *recipientRecord) {
	d := callRecord{stop: c.random.IntN(2) == 0}
	for answered := false; !answered; {
		var a answer
		d.event = event{kind: unanswered, from: moment(time.Now()), to: endless}
		if d.stop {
			a, answered = c.try("POST", "/api/stop/"+c.tenant.sequence, map[string]any{"phone": c.phone})
		} else {
			a, answered = c.try("POST", "/api/messages/cancel/pending", map[string]any{"phones": []string{c.phone}})
		}
		if answered {
			d.kind, d.to = passes, moment(time.Now())+1
			if d.stop {
				d.ids = c.ids(a)
			} else {
				d.ids = c.cancelledIDs(a)
			}
		}
		m.mu.Lock()
		m.taken = append(m.taken, d)
		m.mu.Unlock()
	}
}

// judge builds each message's history and checks it.
func (r *race) judge(f *fleet) {
	f.t.Helper()
	for _, w := range r.wrong {
		f.t.Error(w)
	}
	count := map[string]int{}
	histories, troubled, contested, bad := 0, 0, 0, 0
	for _, who := range f.tenants {
		v := newVerifier(f.t, f.nodes[0].base, who, count)
		for _, m := range r.recipients {
			if m.tenant.key == who.key {
				m.promises(v)
			}
		}
		v.settle()
		v.network()
		for _, m := range r.recipients {
			if m.tenant.key != who.key {
				continue
			}
			for _, d := range m.started {
				for _, id := range d.ids {
					h, inFlight := m.history(v, d, id)
					histories++
					count[v.rows[id].State]++
					if inFlight {
						troubled++
					}
					if h.contested() {
						contested++
					}
					if !h.linearizable() && bad < 5 {
						bad++
						f.t.Errorf("message %s has no right order of what was done about it (milliseconds):\n%v", id, h)
					}
				}
			}
		}
	}
	f.t.Logf("%d histories in %d calls, %d with effects at the same time, %d sent, %d cancelled; %d stopped in flight and not sent",
		histories, r.calls, contested, count["COMPLETED"], count["CANCELLED"], troubled)
	if contested < 100 || troubled > histories/4 || count["COMPLETED"] < 50 || count["CANCELLED"] < 50 {
		f.t.Error("the callers did not meet often enough to show anything")
	}
}

// promises adds the recipient's messages to a verifier.
func (m *recipientRecord) promises(v *verifier) {
	for _, d := range m.started {
		for i, id := range d.ids {
			p := &promise{id: id, asked: true}
			if !d.single {
				p.after = loadSteps[i]
			}
			v.mine[id] = p
		}
	}
}

// history returns everything that was done about one message. If the message was sent, the history includes the time of
// its claim. This is the time of the last attempt, because a message that is stopped in flight is not tried again. A
// message may be CANCELLED or uncertain although no answer named it. Then one of the calls after its due time stopped
// it in flight.
func (m *recipientRecord) history(v *verifier, start callRecord, id string) (h history, inFlight bool) {
	row, at := v.rows[id], v.arrived[id]
	inFlight = v.held(id) || row.State == "CANCELLED" && !m.answerNames(id)
	due := moment(v.due(v.mine[id], row))
	h = append(h, start.event)
	for _, d := range m.taken {
		if d.stop && start.single {
			continue // a stop ends only runs of its own sequence
		}
		e := d.event
		switch {
		case slices.Contains(d.ids, id):
			e.kind = takes
		case e.kind == passes && inFlight && e.to >= due:
			e.kind = unanswered
		}
		h = append(h, e)
	}
	if !at.IsZero() {
		left := due
		if row.Left != nil {
			if t, err := time.Parse(stamp, *row.Left); err == nil {
				left = moment(t)
			}
		}
		h = append(h, event{sends, left, moment(at) + 1})
	}
	final := map[string]eventKind{"PENDING": isOpen, "CANCELLED": isTaken, "COMPLETED": isSent}[row.State]
	if v.held(id) && !at.IsZero() {
		final = isSent // the message was sent, and the answer was lost
	}
	end := moment(time.Now().Add(time.Hour))
	return append(h, event{final, end, end}), inFlight
}

// answerNames reports whether an answer named the message as cancelled.
func (m *recipientRecord) answerNames(id string) bool {
	return slices.ContainsFunc(m.taken, func(d callRecord) bool { return slices.Contains(d.ids, id) })
}

// contested reports whether a cancellation or a sending overlaps in time with another such event. A stop or cancel
// that did not name the message also counts as such an event. If two events overlap, either may have been first.
func (h history) contested() bool {
	for i, a := range h {
		for j, b := range h {
			if i != j && (a.kind == takes || a.kind == sends) && (b.kind == takes || b.kind == sends || b.kind == passes) && a.from <= b.to && b.from <= a.to {
				return true
			}
		}
	}
	return false
}
