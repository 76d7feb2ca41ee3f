package dispatch

import "puntuale"

// fairQueue is round robin between clients: each round has one message of each client that has something to send.
type fairQueue struct {
	tenants map[puntuale.ClientID]*tenantQueue
	round   fifo[*tenantQueue] // tenant queues with something to send
	asking  bool               // the store is asked which clients may send again
}

// tenantQueue is one client's part in the fair queue.
type tenantQueue struct {
	client  puntuale.ClientID
	queues  fifo[*sessionQueue] // session queues with something to send
	listed  bool                // the tenant queue is in the round
	owned   int                 // session queues of the client that this node has
	stopped bool                // the client may not send now
	reason  puntuale.ReasonCode // why, once it is known
	erased  bool                // the client erased persons: claims need marks
}

// join returns the client's queue, for one more session queue.
func (f *fairQueue) join(client puntuale.ClientID) *tenantQueue {
	t := f.tenants[client]
	if t == nil {
		t = &tenantQueue{client: client}
		f.tenants[client] = t
	}
	t.owned++
	return t
}

// leave forgets a client with its last session queue.
func (f *fairQueue) leave(t *tenantQueue) {
	if t.owned--; t.owned == 0 {
		delete(f.tenants, t.client)
	}
}

// activate puts a session queue with something to send into the round.
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

// next takes the session queue that is next in the round. It is nil when none has anything to send.
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
