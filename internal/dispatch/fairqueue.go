package dispatch

import "puntuale"

// fairQueue takes messages from clients in rounds. Each round has one message of each client that has something to
// send.
type fairQueue struct {
	tenants map[puntuale.ClientID]*tenantQueue
	round   fifo[*tenantQueue] // tenant queues with something to send
	asking  bool               // a call that asks the store which clients may send again is running
}

// tenantQueue is the part of one client in the fair queue.
type tenantQueue struct {
	client  puntuale.ClientID
	queues  fifo[*sessionQueue] // session queues with something to send
	listed  bool                // the tenant queue is in the round
	owned   int                 // number of the client's session queues on this node
	stopped bool                // the client may not send now
	reason  puntuale.ReasonCode // why the client may not send; "" while this is unknown
	erased  bool                // the client erased persons: claims need marks
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

// leave removes a session queue of the client. With the last one, it forgets the client.
func (f *fairQueue) leave(t *tenantQueue) {
	if t.owned--; t.owned == 0 {
		delete(f.tenants, t.client)
	}
}

// activate puts a session queue into the round, if it has something to send.
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

// next removes and returns the next session queue of the round, or nil if none has anything to send.
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
