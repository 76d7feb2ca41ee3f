package control

import (
	"cmp"
	"context"
	"sync"
	"time"

	"puntuale"
)

// Intervals and limits of waiting for changes.
const (
	linkEvery     = time.Second // time between two reads of a client's sessions, to see changes of their links
	followEvery   = 2 * time.Second
	followAgainIn = 10 * time.Second
)

// follows contains the clients whose messages or links some caller follows. The store is queried once for each client,
// no matter how many callers follow this client.
type follows struct {
	mu      sync.Mutex
	clients map[puntuale.ClientID]*followed
	links   map[puntuale.ClientID]*linkWatch
}

// followed is one client whose messages some caller follows.
type followed struct {
	followers int
	stop      context.CancelFunc
	version   string        // the latest version; "" until the first read
	fault     error         // the error of the latest read, if it panicked; nil: it did not
	changed   chan struct{} // closed when the version or the fault changes
}

// Following reports changes of a client's messages. It is not safe for concurrent use.
type Following struct {
	client   *Client
	known    string
	leave    func()
	stopOnce sync.Once
}

// Follow begins to follow a client's messages. known is the version that the caller has already seen; "" means none.
// The caller must call Stop. Codes: rate_limited if too many callers follow already.
func (c *Client) Follow(known string) (*Following, error) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	leave, ok := c.followShare()
	if !ok {
		return nil, errFollowers
	}
	own := f.clients[c.account.ID]
	if own == nil {
		ctx, stop := context.WithCancel(context.Background())
		own = &followed{stop: stop, changed: make(chan struct{})}
		if f.clients == nil {
			f.clients = map[puntuale.ClientID]*followed{}
		}
		f.clients[c.account.ID] = own
		go c.poll(ctx, own)
	}
	own.followers++
	return &Following{client: c, known: known, leave: leave}, nil
}

// followShare counts one more open page of the client. It returns false if there are too many.
func (c *Client) followShare() (leave func(), ok bool) {
	return c.control.shares.pages.TryEnter(c.Holders(clientPages)...)
}

const faultMessageTooManyLook puntuale.ReasonCode = "message.too_many_look"

var errFollowers = &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultMessageTooManyLook), RetryAfter: followAgainIn}

// Stop ends the following.
func (w *Following) Stop() {
	w.stopOnce.Do(func() {
		f := &w.client.control.follows
		f.mu.Lock()
		defer f.mu.Unlock()
		own := f.clients[w.client.account.ID]
		w.leave()
		if own.followers--; own.followers == 0 {
			own.stop()
			delete(f.clients, w.client.account.ID)
		}
	})
}

// Next waits until the version differs from the last one, and returns the new version. It fails when the context ends, the
// server stops, or the version cannot be read because of a fault in the program.
func (w *Following) Next(ctx context.Context) (string, error) {
	f := &w.client.control.follows
	for {
		f.mu.Lock()
		own := f.clients[w.client.account.ID]
		version, fault, changed := own.version, own.fault, own.changed
		f.mu.Unlock()
		if fault != nil {
			return "", fault
		}
		if version != "" && version != w.known {
			w.known = version
			return version, nil
		}
		select {
		case <-changed:
		case <-w.client.control.stopping:
			return "", puntuale.ErrStopping
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Stopping is closed when the server begins to stop.
func (c *Client) Stopping() <-chan struct{} { return c.control.stopping }

// Pause waits for the duration d. It returns false if the request ended, or if the server stops. A caller that waits
// must then answer with what it has.
func (c *Client) Pause(ctx context.Context, d time.Duration) bool {
	fired, release := c.control.clock.After(d)
	defer release()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
	case <-c.control.stopping:
	}
	return false
}

// poll reads the version periodically while some caller follows. If the store cannot be read, poll reports no change. A
// panic would come again, so the callers get it as their error.
func (c *Client) poll(ctx context.Context, own *followed) {
	f := &c.control.follows
	for ctx.Err() == nil {
		var version string
		err := puntuale.Recovered(func() (err error) {
			version, err = c.Version(ctx)
			return err
		})
		fault := c.faultOf(err)
		f.mu.Lock()
		if own.fault = fault; fault != nil || err == nil && version != own.version {
			own.version = cmp.Or(version, own.version)
			close(own.changed)
			own.changed = make(chan struct{})
		}
		f.mu.Unlock()
		if c.control.clock.Sleep(ctx, followEvery) != nil {
			return
		}
	}
}

// faultOf returns the error of a read for callers that wait, if the read panicked, and logs it. Other errors pass.
func (c *Client) faultOf(err error) error {
	if !puntuale.Panicked(err) {
		return nil
	}
	c.control.logger.Error("reading for callers that wait panicked", "client_id", int64(c.account.ID), "error", err)
	return err
}

// feedLag is the longest delay between the time in a row and the commit of its transaction. Therefore, rows of the last
// two seconds may still be missing from a feed. For these seconds a feed returns no cursor, and does not report a
// period as complete.
const feedLag = 2 * time.Second

// follow reads a part of a feed. read also returns the time until which its result must be complete, or the zero time
// if the result need not be complete. If this time is less than feedLag ago, follow waits for the rest of feedLag and
// reads again.
func (c *Client) follow(ctx context.Context, read func(now time.Time) (complete time.Time, err error)) error {
	for left := feedLag; ; {
		now := c.control.clock.Now()
		complete, err := read(now)
		if err != nil || complete.IsZero() {
			return err
		}
		wait := min(complete.Add(feedLag).Sub(now), left)
		if wait <= 0 {
			return nil
		}
		if err := c.control.clock.Sleep(ctx, wait); err != nil {
			return err
		}
		left -= wait
	}
}
