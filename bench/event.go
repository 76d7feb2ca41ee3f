package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/delivery"
)

const (
	receiverTakes = 10 * time.Millisecond
	manyReceivers = 100
	hangingOfMany = 30
	eventsOfEach  = 5 // how many events each receiver gets in a second
	eventLease    = 24 * time.Hour
	eventsAtOnce  = 10 // how many events one statement processes
	shortBacklog  = 10_000
	fromBacklog   = 5_000 // how many events of each backlog are measured
	minEventsRate = 1000
)

// The functions below return the names of figures about events.
func eventsToOne(engine string) string {
	return onEngine("events delivered a second to one receiver that takes "+receiverTakes.String(), engine)
}

func eventLate(quantile, engine string) string {
	return onEngine(fmt.Sprintf("an event, until it arrives, %d of %d receivers hang, %s", hangingOfMany, manyReceivers, quantile), engine)
}

func eventsOutOf(backlog int, engine string) string {
	return onEngine("events delivered a second out of a backlog of "+count(backlog), engine)
}

func outcomesWithoutWebhooks(engine string) string {
	return onEngine("outcomes recorded a second, claims included, no client has a webhook", engine)
}

func outcomesWithWebhooks(engine string) string {
	return onEngine("outcomes recorded a second, claims included, each client has a webhook", engine)
}

func numbersLate(engine string) string {
	return onEngine("the last event has its number, after the last outcome was recorded", engine)
}

// eventTargets returns the targets for the delivery of events to webhooks.
func eventTargets() (all []target) {
	for _, engine := range []string{postgres, sqlite} {
		all = append(all, target{figure: eventsToOne(engine), lowest: minEventsRate}, target{figure: eventLate("p99", engine), highest: 1000})
		all = append(all, target{figure: outcomesWithWebhooks(engine), divisor: outcomesWithoutWebhooks(engine), lowest: 0.7})
		for _, long := range []int{quickPending, 1_000_000} {
			all = append(all, target{figure: eventsOutOf(long, engine), divisor: eventsOutOf(shortBacklog, engine), lowest: 0.85})
		}
	}
	return all
}

// events measures the sender of webhooks. Receivers and sender run in this process.
func (b *bench) events(ctx context.Context) (failed error) {
	long := 1_000_000
	if b.quick {
		long = quickPending
	}
	for _, engine := range b.engines() {
		failed = errors.Join(failed,
			b.withEvents(ctx, engine, func(ctx context.Context, t *webhookFixture) error { return b.outcomes(ctx, t, false) }),
			b.withEvents(ctx, engine, func(ctx context.Context, t *webhookFixture) error { return b.outcomes(ctx, t, true) }),
			b.withEvents(ctx, engine, b.eventsToOne),
			b.withEvents(ctx, engine, b.eventsBesideHanging),
			b.withEvents(ctx, engine, func(ctx context.Context, t *webhookFixture) error { return b.eventsOutOf(ctx, t, shortBacklog) }),
			b.withEvents(ctx, engine, func(ctx context.Context, t *webhookFixture) error { return b.eventsOutOf(ctx, t, long) }))
	}
	return failed
}

// outcomes measures the dispatcher, from the first claim until the last outcome is on disk. If told is true, each
// client has a webhook, and events get their numbers during the measurement. Nothing is sent to the webhooks.
func (b *bench) outcomes(ctx context.Context, t *webhookFixture, told bool) error {
	what := outcomesWithoutWebhooks(t.engine)
	if told {
		what = outcomesWithWebhooks(t.engine)
		now := time.Now()
		for _, of := range t.clients {
			w := puntuale.Webhook{Client: of.id, URL: "https://example.com/", Types: puntuale.AllEvents, Active: true, Created: now}
			if _, err := t.store.Tenant(of.id).CreateWebhook(ctx, w, make([]byte, 32), now, nil); err != nil {
				return err
			}
		}
	}
	if err := t.put(ctx, load{first: 1, n: b.rows, steps: 1, due: time.Now().Add(-time.Minute).UnixMicro()}); err != nil {
		return fmt.Errorf("plan messages: %w", err)
	}
	b.calm(t.engine)
	counts := newTally(b.rows)
	w := b.watch(t.engine)
	stop, err := t.dispatchers(ctx, 1, counts, puntuale.NoMeter{})
	if err != nil {
		return err
	}
	over, numbered := make(chan struct{}), make(chan error, 1)
	go func() { numbered <- t.number(ctx, over) }()
	took, err := counts.wait(ctx, 30*time.Second+time.Duration(b.rows/2000)*time.Second)
	recorded := time.Now()
	close(over)
	if err = errors.Join(err, <-numbered); err == nil && told {
		b.sheet.note(numbersLate(t.engine), seconds, time.Since(recorded).Seconds())
	}
	if err == nil {
		b.sheet.note(what, perSecond, float64(b.rows)/took.Seconds())
		w.note(what, b.rows)
	}
	var events int
	if err == nil {
		err = t.db.QueryRowContext(ctx, `select count(*) from outbox_event`).Scan(&events)
	}
	if err == nil && told != (events >= b.rows) {
		err = fmt.Errorf("%d events have numbers", events)
	}
	return errors.Join(err, stop())
}

// number gives events their numbers. It returns when the channel in the argument over is closed, and every event has a
// number.
func (t *webhookFixture) number(ctx context.Context, over <-chan struct{}) error {
	for ended := false; ; {
		begun := time.Now()
		n, err := t.store.NumberEvents(ctx, begun)
		if err != nil || ended && n == 0 {
			return err
		}
		select {
		case <-over:
			ended = true
		case <-time.After(max(time.Millisecond, delivery.RestAfter(time.Since(begun)))):
		}
	}
}

// webhookFixture is a fixture whose clients have webhooks.
type webhookFixture struct {
	*fixture
	db      *sql.DB
	calls   *delivery.Caller
	arrived chan arrival
	over    chan struct{} // closed at the end, so that hanging receivers answer
	servers []*httptest.Server
}

// arrival is one event at one receiver.
type arrival struct {
	id string
	at time.Time
}

func (b *bench) withEvents(ctx context.Context, engine string, take func(context.Context, *webhookFixture) error) error {
	f, err := b.fixture(ctx, engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	db, err := plain(engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	t := &webhookFixture{fixture: f, db: db, arrived: make(chan arrival, 1<<20), over: make(chan struct{})}
	t.calls = delivery.NewCaller(delivery.CallerConfig{
		Unseal: func(_ *puntuale.Webhook, sealed []byte) ([]byte, error) { return sealed, nil },
		Clock:  clock.System(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	defer func() {
		close(t.over)
		for _, s := range t.servers {
			s.CloseClientConnections()
			s.Close()
		}
	}()
	return take(ctx, t)
}

// receiver starts a receiver, and makes a client's webhook with the receiver's address. A receiver that hangs answers
// only when t.over is closed.
func (t *webhookFixture) receiver(ctx context.Context, owner client, hangs bool) (puntuale.WebhookID, error) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if hangs {
			select {
			case <-t.over:
			case <-r.Context().Done():
			}
			return
		}
		t.arrived <- arrival{r.Header.Get("webhook-id"), time.Now()}
		time.Sleep(receiverTakes)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.servers = append(t.servers, s)
	now := time.Now()
	return t.store.Tenant(owner.id).CreateWebhook(ctx, puntuale.Webhook{Client: owner.id, URL: s.URL, Types: puntuale.AllEvents, Active: true, Created: now}, make([]byte, 32), now, nil)
}

// send starts a sender. The caller stops it with the returned function.
func (t *webhookFixture) send(ctx context.Context) (stop func() error, err error) {
	node, err := t.store.Join(ctx, eventLease)
	if err != nil {
		return nil, err
	}
	s := delivery.New(delivery.Config{Store: t.store, Caller: t.calls, Node: func() puntuale.NodeID { return node }, Logger: quiet()})
	s.Start()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return s.Stop(ctx)
	}, nil
}

// emit writes facts of a client into the database, as the product's transactions do.
func (t *webhookFixture) emit(ctx context.Context, receiver client, n int) error {
	_, err := t.db.ExecContext(ctx, `with recursive c(x) as (select 1 union all select x + 1 from c where x < $1)
 insert into outbox_fact (client_id, type, subject, detail, at) select $2, $3, x, '{"name":"Natale"}', $4 from c`,
		n, int64(receiver.id), int64(puntuale.EventCampaignDone), time.Now().UnixMicro())
	if err != nil {
		return fmt.Errorf("write facts: %w", err)
	}
	return nil
}

// await waits until n different events arrived. It returns the time at which each event first arrived.
func (t *webhookFixture) await(ctx context.Context, n int, within time.Duration) (map[string]time.Time, error) {
	first := make(map[string]time.Time, n)
	timeout := time.After(within)
	for len(first) < n {
		select {
		case a := <-t.arrived:
			if first[a.id].IsZero() {
				first[a.id] = a.at
			}
		case <-timeout:
			return nil, fmt.Errorf("%d of %d events arrived within %v", len(first), n, within)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return first, nil
}

func latest(all map[string]time.Time) (last time.Time) {
	for _, at := range all {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// eventsToOne measures the time from the commit of the facts to the arrival of the last event.
func (b *bench) eventsToOne(ctx context.Context, t *webhookFixture) error {
	n := int(b.idle.Seconds()) * minEventsRate
	receiver := t.clients[0]
	if _, err := t.receiver(ctx, receiver, false); err != nil {
		return err
	}
	stop, err := t.send(ctx)
	if err != nil {
		return err
	}
	if err = t.emit(ctx, receiver, 1); err == nil { // this first event shows that the receiver answers
		_, err = t.await(ctx, 1, time.Minute)
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	w := b.watch(t.engine)
	begun := time.Now()
	if err := t.emit(ctx, receiver, n); err != nil {
		return errors.Join(err, stop())
	}
	all, err := t.await(ctx, n, 5*time.Minute)
	if err == nil {
		b.sheet.note(eventsToOne(t.engine), perSecond, float64(n)/latest(all).Sub(begun).Seconds())
		w.note(eventsToOne(t.engine), n)
	}
	return errors.Join(err, stop())
}

// eventsBesideHanging measures how long events to answering receivers take, while other receivers never answer. Each
// hanging receiver has more waiting events than it can get at the same time.
func (b *bench) eventsBesideHanging(ctx context.Context, t *webhookFixture) error {
	for i := range manyReceivers {
		if _, err := t.receiver(ctx, t.clients[i], i < hangingOfMany); err != nil {
			return err
		}
	}
	stop, err := t.send(ctx)
	if err != nil {
		return err
	}
	answering := manyReceivers - hangingOfMany
	each := max(1, int(b.idle.Seconds())) * eventsOfEach
	for i := range manyReceivers {
		n := 1
		if i < hangingOfMany {
			n = 50
		}
		if err := t.emit(ctx, t.clients[i], n); err != nil {
			return errors.Join(err, stop())
		}
	}
	if _, err := t.await(ctx, answering, time.Minute); err != nil {
		return errors.Join(err, stop())
	}
	var mu sync.Mutex
	emitted := make(map[string]time.Time, answering*each)
	var receiver [manyReceivers]atomic.Int64
	var d delays
	from := time.Now()
	err = steadily(answering*each, float64(answering*eventsOfEach), from, 8, func(i int) error {
		c := hangingOfMany + i%answering
		began := time.Now()
		err := t.emit(ctx, t.clients[c], 1)
		mu.Lock()
		emitted[fmt.Sprintf("evt_%d_%d", t.clients[c].id, 1+receiver[c].Add(1))] = began
		mu.Unlock()
		return err
	})
	if err == nil {
		var all map[string]time.Time
		if all, err = t.await(ctx, answering*each, time.Minute); err == nil {
			for id, at := range all {
				d.add(at.Sub(emitted[id]))
			}
			err = d.note(&b.sheet, func(quantile string) string { return eventLate(quantile, t.engine) }, answering*each)
		}
	}
	return errors.Join(err, stop())
}

// eventsOutOf measures how fast the first events of a backlog are delivered.
func (b *bench) eventsOutOf(ctx context.Context, t *webhookFixture, backlog int) error {
	receiver := t.clients[0]
	webhook, err := t.receiver(ctx, receiver, false)
	if err != nil {
		return err
	}
	at := time.Now().Add(-time.Hour).UnixMicro()
	const numbers = `with recursive c(x) as (select 1 union all select x + 1 from c where x < $1) `
	if _, err := t.db.ExecContext(ctx, numbers+`insert into outbox_event (client_id, seq, type, subject, detail, at)
 select $2, x, $3, x, '{"name":"Natale"}', cast($4 as bigint) + x from c`, backlog, int64(receiver.id), int64(puntuale.EventCampaignDone), at); err != nil {
		return fmt.Errorf("make a backlog: %w", err)
	}
	if _, err := t.db.ExecContext(ctx, numbers+`insert into delivery (webhook_id, at, client_id, seq, type, next_at)
 select $5, cast($4 as bigint) + x, $2, x, $3, cast($4 as bigint) + x from c`, backlog, int64(receiver.id), int64(puntuale.EventCampaignDone), at, int64(webhook)); err != nil {
		return fmt.Errorf("make a backlog: %w", err)
	}
	if _, err := t.db.ExecContext(ctx, `update event_stream set last_seq = $1 where client_id = $2`, backlog, int64(receiver.id)); err != nil {
		return fmt.Errorf("make a backlog: %w", err)
	}
	if err := collectStatistics(ctx, t.db, t.engine); err != nil {
		return err
	}
	b.calm(t.engine)
	w := b.watch(t.engine)
	stop, err := t.send(ctx)
	if err != nil {
		return err
	}
	if _, err = t.await(ctx, 1, time.Minute); err != nil {
		return errors.Join(err, stop())
	}
	begun := time.Now()
	all, err := t.await(ctx, fromBacklog, 5*time.Minute)
	if err == nil {
		b.sheet.note(eventsOutOf(backlog, t.engine), perSecond, float64(fromBacklog)/latest(all).Sub(begun).Seconds())
		w.note(eventsOutOf(backlog, t.engine), fromBacklog)
	}
	return errors.Join(err, stop())
}
