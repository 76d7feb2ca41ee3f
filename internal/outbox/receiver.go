package outbox

import (
	"slices"
	"time"

	"puntuale"
)

const (
	longAttempt = time.Second // an attempt that takes longer counts to the slow pool
	quickAnswer = 50 * time.Millisecond
	fullQueue   = 128 // deliveries of one receiver in memory
	slowQueue   = 8   // of one that is slow
)

// receiver is one webhook, as its owner sends to it. The sender's goroutine owns it.
type receiver struct {
	target   puntuale.WebhookTarget
	account  *account
	queue    fairQueue
	begun    []time.Time // of the attempts in flight, oldest first
	proven   bool        // it took an event, and none since failed for long
	failures int         // since the last success
	resting  time.Time   // no attempt before
	average  time.Duration
	listed   bool // by the last look at what this node owns
}

// slow reports whether the receiver may hang: its attempts must not take the place of others'.
func (r *receiver) slow(now time.Time) bool {
	return !r.proven || r.failures >= patientFor || r.average > longAttempt || len(r.begun) > 0 && now.Sub(r.begun[0]) > longAttempt
}

// most is how many attempts the receiver may have in flight.
func (r *receiver) most() int {
	switch {
	case !r.proven || r.failures >= patientFor:
		return 1
	case r.target.Chatwoot.Inbox != 0: // messages of one conversation must not overtake each other
		return 1
	case r.average > 0 && r.average < quickAnswer:
		return 2 * puntuale.WebhookAtOnce
	}
	return puntuale.WebhookAtOnce
}

// capacity is how many deliveries of the receiver may be in memory.
func (r *receiver) capacity(now time.Time) int {
	switch {
	case !now.Before(r.resting) && !r.slow(now):
		return fullQueue
	case r.failures >= patientFor:
		return 1
	}
	return slowQueue
}

// end notes an attempt's answer. random spreads the rests of receivers.
func (r *receiver) end(begun time.Time, a *answer, now time.Time, random float64) {
	if i := slices.Index(r.begun, begun); i >= 0 {
		r.begun = slices.Delete(r.begun, i, i+1)
	}
	switch {
	case a.taken():
		r.failures, r.proven, r.resting = 0, true, time.Time{}
		if r.average == 0 {
			r.average = a.took
		}
		r.average = (7*r.average + a.took) / 8
	case a.gone():
		r.failures, r.proven = patientFor, false // the store disables it
		r.resting = now.Add(rest(r.failures+2, 0, random))
	default:
		r.failures++
		if r.failures >= patientFor {
			r.proven = false
		}
		r.resting = now.Add(rest(r.failures, a.retryAfter, random))
	}
}

// fairQueue holds deliveries of several clients, by turns. A partner's webhook has many clients, any other one.
type fairQueue struct {
	clients []puntuale.ClientID // with deliveries, the next first
	waiting map[puntuale.ClientID][]puntuale.DueDelivery
	size    int
}

func (q *fairQueue) push(d puntuale.DueDelivery) {
	if q.waiting == nil {
		q.waiting = map[puntuale.ClientID][]puntuale.DueDelivery{}
	}
	if len(q.waiting[d.Client]) == 0 {
		q.clients = append(q.clients, d.Client)
	}
	q.waiting[d.Client] = append(q.waiting[d.Client], d)
	q.size++
}

// pop takes the next client's first delivery. The queue must not be empty.
func (q *fairQueue) pop() puntuale.DueDelivery {
	client := q.clients[0]
	q.clients = q.clients[1:]
	rows := q.waiting[client]
	first := rows[0]
	rows[0] = puntuale.DueDelivery{}
	if rows = rows[1:]; len(rows) == 0 {
		delete(q.waiting, client)
	} else {
		q.waiting[client] = rows
		q.clients = append(q.clients, client)
	}
	q.size--
	return first
}

// cut forgets what is beyond a size, and returns it.
func (q *fairQueue) cut(size int) (rest []puntuale.DueDelivery) {
	var keep []puntuale.DueDelivery
	for q.size > 0 {
		if d := q.pop(); len(keep) < size {
			keep = append(keep, d)
		} else {
			rest = append(rest, d)
		}
	}
	for i := range keep {
		q.push(keep[i])
	}
	return rest
}

// account is a client, or one webhook of a partner, at the fair queue.
type account struct {
	receivers []*receiver
	next      int
	active    bool // it is in the scheduler's list
}

// pick returns the next of the account's receivers that may get an attempt; nil: none may. empty: none has a delivery.
func (a *account) pick(may func(*receiver) bool) (picked *receiver, empty bool) {
	empty = true
	for range a.receivers {
		r := a.receivers[a.next%len(a.receivers)]
		a.next++
		if r.queue.size == 0 {
			continue
		}
		if empty = false; may(r) {
			return r, false
		}
	}
	return nil, empty
}
