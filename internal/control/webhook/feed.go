package webhook

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// FeedQuery is a request for the events after a number. Its members are as the caller wrote them.
type FeedQuery struct {
	After   string // "": from the first stored event
	Types   string // names of event types, separated by commas; "": all types
	Limit   string // the largest number of events, at most 1,000; "": 100
	Wait    string // how long to wait for the first event, in seconds, at most 30; "": do not wait
	Unknown []puntuale.Fault
}

// maxWait bounds how long a reader of the feed waits, in seconds.
const maxWait = 30

// waitEvery is the time between two reads of a client's last number while readers of its feed wait.
const waitEvery = 500 * time.Millisecond

// feedWatches contains the clients whose readers wait for events. For each client, the store is read once, no matter how
// many readers wait.
type feedWatches struct {
	mu      sync.Mutex
	clients map[puntuale.ClientID]*feedWatch
}

type feedWatch struct {
	readers int
	stop    context.CancelFunc
	last    int64         // the number of the last event that was seen
	broken  bool          // true: the latest read panicked
	changed chan struct{} // closed when last or broken changes
}

// poll reads the client's last number as long as readers wait. If the store cannot be read, poll reports no change. A panic
// would come again, so the readers stop waiting.
func (d *Webhooks) poll(ctx context.Context, w *feedWatch, client puntuale.ClientID, store puntuale.Tenant) {
	mu := &d.feeds.mu
	for d.cfg.Clock.Sleep(ctx, waitEvery) == nil {
		var last int64
		err := puntuale.Recovered(func() (err error) {
			last, err = store.LastEvent(ctx)
			return err
		})
		broken := puntuale.Panicked(err)
		if broken {
			d.cfg.Logger.Error("reading the last event panicked", "client_id", int64(client), "error", err)
		}
		mu.Lock()
		if w.broken = broken; broken || err == nil && last != w.last {
			w.last = max(last, w.last)
			close(w.changed)
			w.changed = make(chan struct{})
		}
		mu.Unlock()
	}
}

// Feed reads a client's events after a number. It is not safe for concurrent use.
type Feed struct {
	all    *Webhooks
	client *control.Client
	watch  *feedWatch
	seen   int64 // the last number at the end of the latest pause; it was read, even if no event had a wanted type

	store puntuale.Tenant
	cfg   Config
	after int64
	types puntuale.EventSet
	limit int
	Wait  time.Duration // the rest of the time to wait for the first event
}

// Feed checks a request, and returns the feed. Codes: invalid.
func (d *Webhooks) Feed(c *control.Client, q FeedQuery) (*Feed, error) {
	f := request.Faults(q.Unknown)
	feed := &Feed{all: d, client: c, store: d.cfg.Tenants.Tenant(c.ID()), cfg: d.cfg, types: puntuale.AllEvents, limit: request.PageRows}
	feed.after = int64(wholeNumber(&f, "after", q.After, 0, puntuale.MaxID, 0))
	feed.limit = wholeNumber(&f, "limit", q.Limit, 1, request.MaxPageRows, request.PageRows)
	feed.Wait = time.Duration(wholeNumber(&f, "wait", q.Wait, 0, maxWait, 0)) * time.Second
	if q.Types != "" {
		feed.types = 0
		for _, name := range strings.Split(q.Types, ",") {
			t, err := puntuale.ParseEventType(strings.TrimSpace(name))
			if err != nil {
				f.Add("query.types", faultNotType, name)
			}
			feed.types |= puntuale.EventsOf(t)
		}
	}
	return feed, f.Err()
}

// wholeNumber parses a whole number of a query, from least to maximum. If the text is "" or has a fault, it returns the
// argument none.
func wholeNumber(f *request.Faults, name, text string, least, maximum, none int) int {
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maximum || strconv.Itoa(n) != text {
		f.Add("query."+name, puntuale.FaultNotWholeInRange, text, strconv.Itoa(least), strconv.Itoa(maximum))
		return none
	}
	return n
}

// Read returns the events that exist now, and the number after which the next call must read.
func (f *Feed) Read(ctx context.Context) ([]puntuale.Event, int64, error) {
	all, next, err := f.store.Events(ctx, f.after, f.types, f.limit, f.cfg.Clock.Now())
	if err != nil {
		return nil, 0, fmt.Errorf("read a feed: %w", err)
	}
	f.after = max(f.after, next)
	return all, f.after, nil
}

// Begin counts a reader that begins to wait. The reader must call end. Codes: rate_limited if too many calls of the
// client wait already.
func (f *Feed) Begin() (end func(), err error) {
	leave, err := f.client.Wait()
	if err != nil {
		return nil, err
	}
	all, id := &f.all.feeds, f.client.ID()
	all.mu.Lock()
	defer all.mu.Unlock()
	w := all.clients[id]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &feedWatch{stop: stop, changed: make(chan struct{})}
		if all.clients == nil {
			all.clients = map[puntuale.ClientID]*feedWatch{}
		}
		all.clients[id] = w
		go f.all.poll(ctx, w, id, f.store)
	}
	w.readers++
	f.watch = w
	return func() {
		leave()
		all.mu.Lock()
		defer all.mu.Unlock()
		if w.readers--; w.readers == 0 {
			w.stop()
			delete(all.clients, id)
		}
	}, nil
}

// Pause waits until there is an event that was not read yet. It returns false if the waiting time is over, the request
// ended, the server stops, or a fault in the program prevents it from seeing new events.
func (f *Feed) Pause(ctx context.Context) bool {
	begun := f.cfg.Clock.Now()
	over, stop := f.cfg.Clock.After(f.Wait)
	defer stop()
	for {
		f.all.feeds.mu.Lock()
		last, broken, changed := f.watch.last, f.watch.broken, f.watch.changed
		f.all.feeds.mu.Unlock()
		if last > max(f.after, f.seen) {
			f.seen = last
			f.Wait -= f.cfg.Clock.Now().Sub(begun)
			return true
		}
		if broken {
			return false
		}
		select {
		case <-changed:
		case <-over:
			return false
		case <-f.client.Stopping():
			return false
		case <-ctx.Done():
			return false
		}
	}
}
