package webhook

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// waitEvery is the time between two reads of a reader that waits.
const waitEvery = 500 * time.Millisecond

// Feed reads a client's events after a number. It is not safe for concurrent use.
type Feed struct {
	client *control.Client
	store  puntuale.EventStore
	cfg    Config
	after  int64
	types  puntuale.EventSet
	limit  int
	Wait   time.Duration // the rest of the time to wait for the first event
}

// Feed checks a request, and returns the feed. Codes: invalid.
func (d *Webhooks) Feed(c *control.Client, q FeedQuery) (*Feed, error) {
	f := request.Faults(q.Unknown)
	feed := &Feed{client: c, store: d.cfg.Tenants.Tenant(c.ID()), cfg: d.cfg, types: puntuale.AllEvents, limit: request.PageRows}
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

// Pause waits before the next read of the feed. It returns false if the waiting time is over, the request ended, or the
// server stops.
func (f *Feed) Pause(ctx context.Context) bool {
	wait := min(waitEvery, f.Wait)
	f.Wait -= wait
	return wait > 0 && f.client.Pause(ctx, wait)
}
