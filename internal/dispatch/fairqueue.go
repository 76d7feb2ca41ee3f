package dispatch

import (
	"time"

	"puntuale"
)

// fairQueue takes messages from clients in rounds. In each round, each client that has messages sends one message.
type fairQueue struct {
	tenants map[puntuale.ClientID]*tenantQueue
	round   fifo[*tenantQueue] // tenant queues with something to send
	asking  bool               // true: a call is running that asks the store which clients may send again
}

// tenantQueue is the part of the fair queue that belongs to one client.
type tenantQueue struct {
	client  puntuale.ClientID
	queues  fifo[*sessionQueue] // session queues with something to send
	listed  bool                // true: the tenant queue is in the round
	owned   int                 // number of the client's session queues on this node
	stopped bool                // true: the client may not send now
	reason  puntuale.ReasonCode // why the client may not send; "": no read of the reason has ended yet
	erased  bool                // true: the client erased persons, so claims need keyed hashes
	// marketingFrom is until when the client's marketing waits, as the store last told; zero: it does not wait, as far as
	// is known. Each message that waits makes the settler ask the store again.
	marketingFrom time.Time
}

// join adds a session queue of the client, and returns the client's tenant queue.
func (f *fairQueue) join(client puntuale.ClientID) *tenantQueue {
	t := f.tenants[client]
	if t == nil {
		t = &tenantQueue{client: client}
		f.tenants[client] = t
	}
	t.owned++
	return t
}

// leave removes a session queue of the client. If the client has no other session queue, leave also removes the client.
func (f *fairQueue) leave(t *tenantQueue) {
	if t.owned--; t.owned == 0 {
		delete(f.tenants, t.client)
	}
}

// activate puts a session queue into the round if it has messages to send.
func (f *fairQueue) activate(q *sessionQueue) {
	if q.active || q.lost() || q.ready.len()+q.campaign.ready.len()+q.repeats.len() == 0 {
		return
	}
	q.active = true
	q.tenant.queues.push(q)
	if !q.tenant.listed {
		q.tenant.listed = true
		f.round.push(q.tenant)
	}
}

// next removes and returns the next session queue of the round, or returns nil if the round is empty.
func (f *fairQueue) next() *sessionQueue {
	for f.round.len() > 0 {
		t := f.round.pop()
		if t.queues.len() == 0 {
			t.listed = false
			continue
		}
		q := t.queues.pop()
		q.active = false
		if t.queues.len() > 0 {
			f.round.push(t)
		} else {
			t.listed = false
		}
		return q
	}
	return nil
}
