package delivery

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// scheduler contains the sender's queues, and decides which attempts begin. One goroutine owns all its fields.
type scheduler struct {
	sender   *Sender
	recorder *recorder
	attempts context.Context // context of all attempts

	receivers   map[puntuale.WebhookID]*receiver
	stale       map[*receiver]struct{} // receivers for which the store may have more deliveries
	busy        map[*receiver]struct{} // receivers with attempts in flight
	active      []*account             // accounts with deliveries in memory; begin starts attempts for one after the other
	nextAccount int
	// held contains the deliveries in memory: those that wait, those in flight, and those whose result is not on disk
	// yet. It does not change while a read is running.
	held       map[deliveryKey]struct{}
	released   []deliveryKey // deliveries to remove from held when the running read ends
	queued     int
	inFlight   int
	unrecorded int

	reading  bool
	slowRead bool      // the next read is for slow receivers
	ownedAt  time.Time // when the store last returned the webhooks of this node; zero: the node owns none
	ownAgain time.Time // when to read again which webhooks this node owns
	looked   time.Time // when look last marked some or all receivers
	atAll    time.Time // when look last marked all receivers
	rotation []*receiver
	pending  bool // new deliveries were made, so look must mark all receivers
}

func newScheduler(s *Sender, r *recorder, attempts context.Context) *scheduler {
	return &scheduler{
		sender: s, recorder: r, attempts: attempts, held: map[deliveryKey]struct{}{},
		receivers: map[puntuale.WebhookID]*receiver{}, stale: map[*receiver]struct{}{}, busy: map[*receiver]struct{}{},
	}
}

// run sends until ctx ends, and then waits for the attempts in flight.
func (l *scheduler) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := l.sender.cfg.Clock.Now()
		l.look(now)
		l.begin(now)
		l.read(ctx, now)
		fired, stop := l.sender.cfg.Clock.After(lookPoll - now.Sub(l.looked))
		select {
		case <-ctx.Done():
		case <-fired:
		case <-l.sender.numbered:
			l.pending = true
			if soon := now.Add(ownSoon); soon.Before(l.ownAgain) { // the new deliveries may belong to a webhook that no node owns yet
				l.ownAgain = soon
			}
		case e := <-l.sender.ended:
			l.end(&e)
		case f := <-l.sender.found:
			l.take(&f)
		case batch := <-l.recorder.done:
			l.recorded(batch)
		}
		stop()
		l.drain()
	}
	for l.inFlight > 0 {
		select {
		case e := <-l.sender.ended:
			l.end(&e)
		case batch := <-l.recorder.done:
			l.recorded(batch)
		}
	}
	if l.reading {
		<-l.sender.found
	}
}

// drain handles the results that are already there, so that each round of run handles many of them.
func (l *scheduler) drain() {
	for range maxAtOnce {
		select {
		case e := <-l.sender.ended:
			l.end(&e)
		case batch := <-l.recorder.done:
			l.recorded(batch)
		default:
			return
		}
	}
}

// look marks receivers as stale, so that the next reads ask the store for their deliveries. If new deliveries were
// made, look marks all receivers, but less often if there are many, to limit the cost. Otherwise look marks a part of
// the receivers, and another part next time.
func (l *scheduler) look(now time.Time) {
	since := now.Sub(l.looked)
	switch {
	case l.pending && now.Sub(l.atAll) >= time.Duration(len(l.receivers))*perLook:
		l.pending, l.atAll, l.rotation = false, now, nil
		for _, r := range l.receivers {
			l.stale[r] = struct{}{}
		}
	case since >= lookPoll || since < 0:
		if len(l.rotation) == 0 {
			l.rotation = slices.Collect(maps.Values(l.receivers))
		}
		n := min(len(l.rotation), maxLook)
		for _, r := range l.rotation[:n] {
			if r.listed {
				l.stale[r] = struct{}{}
			}
		}
		l.rotation = l.rotation[n:]
	default:
		return
	}
	l.looked = now
}

// begin starts the attempts that may begin now. It goes through the accounts in rounds, and starts at most one attempt
// for each account in a round.
func (l *scheduler) begin(now time.Time) {
	if l.queued == 0 || now.Sub(l.ownedAt) > ownedFor || l.unrecorded >= maxUnrecorded || l.recorder.failing.Load() {
		// No attempt may begin: nothing waits, or another node may own the webhooks, or too many results are not
		// recorded yet, or recording fails. If this node crashed, the events without a recorded result would be sent
		// twice.
		return
	}
	var quick, slow int
	for r := range l.busy {
		if r.slow(now) {
			slow += len(r.begun)
		} else {
			quick += len(r.begun)
		}
	}
	allowed := func(r *receiver) bool {
		used := quick
		if r.slow(now) {
			used = slow
		}
		free := poolSize - used
		return free > 0 && len(r.begun) < min(r.inFlightLimit(), max(1, free/perFree)) && !now.Before(r.resting)
	}
	for idle := 0; idle < len(l.active) && l.inFlight < maxAtOnce; {
		l.nextAccount %= len(l.active)
		r, empty := l.active[l.nextAccount].pick(allowed)
		switch {
		case empty:
			l.active[l.nextAccount].active = false
			l.active = slices.Delete(l.active, l.nextAccount, l.nextAccount+1)
			continue
		case r == nil:
			idle++
			l.nextAccount++
			continue
		}
		idle = 0
		l.nextAccount++
		if r.slow(now) {
			slow++
		} else {
			quick++
		}
		d := r.queue.pop()
		l.queued--
		l.inFlight++
		r.begun = append(r.begun, now)
		l.busy[r] = struct{}{}
		go l.sender.attempt(l.attempts, r.target, d, now)
	}
}

// end handles the result of an attempt. The delivery stays in held until the result is on disk.
func (l *scheduler) end(e *endedAttempt) {
	cfg := &l.sender.cfg
	l.inFlight--
	now, d, a := cfg.Clock.Now(), &e.delivery, &e.answer
	r := l.receivers[d.Webhook]
	if e.cut { // a stop ended the attempt: nothing is recorded, and the next owner repeats the attempt
		return
	}
	if r != nil {
		r.end(e.begun, a, now, cfg.Random())
		if len(r.begun) == 0 {
			delete(l.busy, r)
		}
		l.cut(r, now)
	}
	result := puntuale.DeliveryResult{Webhook: d.Webhook, Client: d.Client, Seq: d.Seq, At: a.at, Status: a.status, Took: a.took, Answer: a.text, ReceiverGone: a.isGone(), NoCall: a.noCall}
	result.State, result.Next = ending(d.Attempts, a, now, cfg.Random())
	cfg.Meter.Attempted(resultName(&result))
	cfg.Logger.Debug("an event was attempted", "webhook", d.Webhook, "client_id", d.Client, "seq", d.Seq, "attempt", d.Attempts+1, "status", a.status, "took", a.took)
	l.unrecorded++
	l.recorder.Add(result)
}

// resultName returns the name of a result in the metrics.
func resultName(r *puntuale.DeliveryResult) string {
	switch {
	case r.State == puntuale.DeliveryDone:
		return "delivered"
	case r.ReceiverGone:
		return "gone"
	case r.State == puntuale.DeliveryFailed:
		return "given_up"
	}
	return "failed"
}

// cut removes from memory the deliveries that will not be sent soon. They stay due in the store.
func (l *scheduler) cut(r *receiver, now time.Time) {
	size := r.capacity(now)
	if r.queue.size <= size {
		return
	}
	for _, d := range r.queue.cut(size) {
		l.queued--
		l.release(keyOf(&d.Delivery))
	}
	l.stale[r] = struct{}{}
}

func (l *scheduler) recorded(batch []puntuale.DeliveryResult) {
	l.unrecorded -= len(batch)
	for i := range batch {
		l.release(deliveryKey{batch[i].Webhook, batch[i].Client, batch[i].Seq})
	}
}

// release removes a delivery from held, so that later reads may return it. While a read is running, the delivery stays in
// held until the read ends. Otherwise a read that began before the result was on disk would return the delivery again.
func (l *scheduler) release(k deliveryKey) {
	if l.reading {
		l.released = append(l.released, k)
		return
	}
	delete(l.held, k)
}

// reading is the result of one call of the method ask.
type reading struct {
	at       time.Time // when the read began
	owned    []puntuale.WebhookTarget
	asked    bool // the read also included the webhooks that this node owns
	ownError error
	due      []puntuale.DueDelivery
	limit    int
	webhooks []puntuale.WebhookID // the webhooks whose deliveries were read
	err      error
}

// read reads from the store the webhooks that this node owns, or the due deliveries, or both. It reads in another
// goroutine. At most one read runs at a time.
func (l *scheduler) read(ctx context.Context, now time.Time) {
	if l.reading {
		return
	}
	own := !now.Before(l.ownAgain) || l.ownAgain.Sub(now) > ownEvery
	webhooks, limit := l.wanted(now)
	if !own && len(webhooks) == 0 {
		return
	}
	if own {
		l.ownAgain = now.Add(ownEvery)
	}
	l.reading = true
	go func() { l.sender.found <- l.ask(ctx, now, own, webhooks, limit) }()
}

// wanted returns receivers that need more deliveries, and how many deliveries each may get. All receivers of one read
// have the same limit. So if both kinds of receivers need deliveries, one read is for slow receivers, and the next read
// is for the others.
func (l *scheduler) wanted(now time.Time) (webhooks []puntuale.WebhookID, limit int) {
	if l.ownedAt.IsZero() {
		return nil, 0
	}
	slow := l.slowRead
	if webhooks = l.needing(now, slow); len(webhooks) == 0 {
		slow = !slow
		webhooks = l.needing(now, slow)
	}
	if len(webhooks) == 0 {
		return nil, 0
	}
	l.slowRead = !slow
	for _, id := range webhooks {
		delete(l.stale, l.receivers[id])
	}
	slices.Sort(webhooks)
	limit = fullQueue
	if slow {
		limit = slowQueue
	}
	return webhooks, max(1, min(limit, (maxQueued-l.queued)/len(webhooks)))
}

func (l *scheduler) needing(now time.Time, slow bool) (webhooks []puntuale.WebhookID) {
	for r := range l.stale {
		capacity := r.capacity(now)
		switch {
		case !r.listed:
			delete(l.stale, r)
		case capacity < fullQueue != slow, r.queue.size > capacity/2, now.Before(r.resting), l.queued >= maxQueued && r.queue.size > 0:
		default:
			if webhooks = append(webhooks, r.target.ID); len(webhooks) == maxRead {
				return webhooks
			}
		}
	}
	return webhooks
}

// ask reads from the store. It does not run in the scheduler's goroutine. It uses held, which does not change
// meanwhile.
func (l *scheduler) ask(ctx context.Context, now time.Time, own bool, webhooks []puntuale.WebhookID, limit int) reading {
	s := l.sender
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	f := reading{at: now, asked: own, webhooks: webhooks, limit: limit}
	if own {
		if node := s.cfg.Node(); node == 0 {
			f.ownError = puntuale.ErrFenced
		} else {
			f.ownError = puntuale.Recovered(func() (err error) {
				f.owned, err = s.cfg.Store.OwnWebhooks(ctx, node, now)
				return err
			})
		}
	}
	if len(webhooks) > 0 {
		f.err = puntuale.Recovered(func() (err error) {
			f.due, err = s.cfg.Store.DueDeliveries(ctx, webhooks, now, limit, func(d puntuale.Delivery) bool {
				_, held := l.held[keyOf(&d)]
				return held
			})
			return err
		})
	}
	return f
}

// take handles the result of a read.
func (l *scheduler) take(f *reading) {
	l.reading = false
	if f.asked {
		l.takeOwned(f)
	}
	if len(f.webhooks) > 0 {
		l.takeDue(f)
	}
	for _, k := range l.released {
		delete(l.held, k)
	}
	l.released = l.released[:0]
}

func (l *scheduler) takeOwned(f *reading) {
	switch {
	case errors.Is(f.ownError, puntuale.ErrFenced): // another node may own the webhooks now, so this node begins no more attempts
		l.ownedAt = time.Time{}
		l.listed(nil)
		return
	case f.ownError != nil:
		if !errors.Is(f.ownError, context.Canceled) {
			l.sender.health.note("own", f.ownError)
		}
		return
	}
	l.sender.health.note("own", nil)
	l.ownedAt = f.at
	l.listed(f.owned)
}

// listed adds a receiver for each new webhook in the list, and removes the receivers whose webhooks are not in it.
func (l *scheduler) listed(all []puntuale.WebhookTarget) {
	changed := false
	for _, r := range l.receivers {
		r.listed = false
	}
	for _, t := range all {
		r := l.receivers[t.ID]
		if r == nil {
			r = &receiver{proven: !t.LastSuccess.IsZero() && t.FailingFrom.IsZero()}
			l.receivers[t.ID], l.stale[r], changed = r, struct{}{}, true
		}
		if r.target.URL != "" && r.target.URL != t.URL { // with another address, the webhook counts as a new receiver
			r.proven, r.failures, r.resting, r.average = false, 0, time.Time{}, 0
		}
		r.target, r.listed = t, true
	}
	for id, r := range l.receivers {
		if r.listed {
			continue
		}
		for _, d := range r.queue.cut(0) {
			l.queued--
			l.release(keyOf(&d.Delivery))
		}
		delete(l.receivers, id)
		delete(l.busy, r)
		changed = true
	}
	if changed {
		l.arrange()
	}
}

// arrange gives each client an account with all its webhooks, and each webhook of a partner its own account.
func (l *scheduler) arrange() {
	byClient := map[puntuale.ClientID]*account{}
	for _, r := range slices.SortedFunc(maps.Values(l.receivers), func(a, b *receiver) int { return cmp.Compare(a.target.ID, b.target.ID) }) {
		own := byClient[r.target.Client]
		if own == nil || r.target.Client == 0 {
			own = &account{}
			byClient[r.target.Client] = own
		}
		own.receivers = append(own.receivers, r)
		r.account = own
	}
	l.active = l.active[:0]
	for _, r := range l.receivers {
		if r.queue.size > 0 {
			l.activate(r.account)
		}
	}
}

func (l *scheduler) activate(a *account) {
	if !a.active {
		a.active = true
		l.active = append(l.active, a)
	}
}

func (l *scheduler) takeDue(f *reading) {
	if errors.Is(f.err, context.Canceled) {
		return
	}
	l.sender.health.note("read", f.err)
	if f.err != nil {
		return
	}
	got := map[puntuale.WebhookID]int{}
	for _, d := range f.due {
		r, k := l.receivers[d.Webhook], keyOf(&d.Delivery)
		if _, held := l.held[k]; held || r == nil || !r.listed {
			continue
		}
		got[d.Webhook]++
		l.held[k] = struct{}{}
		r.queue.push(d)
		l.queued++
		l.activate(r.account)
	}
	for id, n := range got {
		if r := l.receivers[id]; n >= f.limit {
			l.stale[r] = struct{}{} // the store may have more deliveries
		}
	}
}
