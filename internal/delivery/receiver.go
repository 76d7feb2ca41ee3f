package delivery

import (
	"slices"
	"time"

	"puntuale"
)

const (
	longAttempt = time.Second // a receiver with a longer attempt counts as slow
	quickAnswer = 50 * time.Millisecond
	fullQueue   = 128 // the most deliveries of one receiver in memory
	slowQueue   = 8   // the most deliveries of one slow receiver in memory
)

// receiver is the scheduler's state of one webhook that this node owns. Only the scheduler's goroutine uses it.
type receiver struct {
	target   puntuale.WebhookTarget
	account  *account
	queue    fairQueue
	begun    []time.Time // when the attempts in flight began, oldest first
	proven   bool        // the receiver accepted an event, and has not failed failingAfter times in a row since then
	failures int         // number of failures since the last success
	resting  time.Time   // no attempt begins before this time
	average  time.Duration
	listed   bool // the last answer of OwnWebhooks contained this webhook
}

// slow reports whether the receiver may hang. Attempts of a slow receiver use the slow pool, so that they do not block
// other receivers.
func (r *receiver) slow(now time.Time) bool {
	return !r.proven || r.failures >= failingAfter || r.average > longAttempt || len(r.begun) > 0 && now.Sub(r.begun[0]) > longAttempt
}

// inFlightLimit returns how many attempts the receiver may have in flight.
func (r *receiver) inFlightLimit() int {
	switch {
	case !r.proven || r.failures >= failingAfter:
		return 1
	case r.target.Chatwoot.Inbox != 0: // so that messages of one conversation stay in order
		return 1
	case r.average > 0 && r.average < quickAnswer:
		return 2 * puntuale.WebhookAtOnce
	}
	return puntuale.WebhookAtOnce
}

// capacity returns how many deliveries of the receiver may be in memory.
func (r *receiver) capacity(now time.Time) int {
	switch {
	case !now.Before(r.resting) && !r.slow(now):
		return fullQueue
	case r.failures >= failingAfter:
		return 1
	}
	return slowQueue
}

// end records the answer to an attempt. The argument random, from 0 to 1, varies the waits of different receivers.
func (r *receiver) end(begun time.Time, a *answer, now time.Time, random float64) {
	if i := slices.Index(r.begun, begun); i >= 0 {
		r.begun = slices.Delete(r.begun, i, i+1)
	}
	switch {
	case a.noCall:
	case a.taken():
		r.failures, r.proven, r.resting = 0, true, time.Time{}
		if r.average == 0 {
			r.average = a.took
		}
		r.average = (7*r.average + a.took) / 8
	case a.isGone():
		r.failures, r.proven = failingAfter, false // the store disables this webhook
		r.resting = now.Add(retryWait(r.failures+2, 0, random))
	default:
		r.failures++
		if r.failures >= failingAfter {
			r.proven = false
		}
		r.resting = now.Add(retryWait(r.failures, a.retryAfter, random))
	}
}

// fairQueue contains the deliveries of one webhook. In each round, pop takes one delivery of each client. A partner's
// webhook has many clients, and a client's webhook has one.
type fairQueue struct {
	clients []puntuale.ClientID // clients with deliveries; pop takes from the first
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

// pop removes and returns the first delivery of the next client. The queue must not be empty.
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

// cut keeps the deliveries that pop would return first, at most size of them. It removes and returns the others.
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

// account is a group of receivers: all webhooks of one client, or one webhook of a partner. It is not the account of a
// client. The scheduler starts attempts for one account after the other.
type account struct {
	receivers []*receiver
	next      int
	active    bool // the account is in scheduler.active
}

// pick returns the account's next receiver that has a delivery and for which allowed returns true. It returns nil if
// there is none. The result empty means that no receiver of the account has a delivery.
func (a *account) pick(allowed func(*receiver) bool) (picked *receiver, empty bool) {
	empty = true
	for range a.receivers {
		r := a.receivers[a.next%len(a.receivers)]
		a.next++
		if r.queue.size == 0 {
			continue
		}
		if empty = false; allowed(r) {
			return r, false
		}
	}
	return nil, empty
}
