package control

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

// Limits of waiting for changes.
const (
	linkEvery     = time.Second // between two looks at the links of a client's sessions
	followEvery   = 2 * time.Second
	followClient  = 40
	followEntire  = 1000
	followAgainIn = 10 * time.Second
)

// follows are the clients whose messages or links somebody waits for. The store is asked once for each client, no
// matter how many callers wait for changes of this client.
type follows struct {
	mu      sync.Mutex
	clients map[puntuale.ClientID]*followed
	links   map[puntuale.ClientID]*linkWatch
	all     int
	ended   chan struct{} // closed when the server stops; nil: not made yet
	closed  bool
}

// followed is one client whose messages somebody follows.
type followed struct {
	followers int
	stop      context.CancelFunc
	version   string        // the latest version; "" until it was read
	changed   chan struct{} // closed when the version changes
}

// Following tells when a client's messages have changed. Only one goroutine may use it.
type Following struct {
	client *Client
	known  string
	once   sync.Once
}

// Follow begins to look for changes of the client's messages. known is the version that the caller has, or "" for none.
// The caller must call Stop. Codes: rate_limited if too many callers follow already.
func (c *Client) Follow(known string) (*Following, error) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.clients[c.account.ID]
	if f.closed || f.all >= followEntire || own != nil && own.followers >= followClient {
		return nil, errFollowers
	}
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
	f.all++
	return &Following{client: c, known: known}, nil
}

const faultMessageTooManyLook puntuale.ReasonCode = "message.too_many_look"

var errFollowers = &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultMessageTooManyLook), RetryAfter: followAgainIn}

// Stop tells the Client that the caller no longer looks for changes.
func (w *Following) Stop() {
	w.once.Do(func() {
		f := &w.client.control.follows
		f.mu.Lock()
		defer f.mu.Unlock()
		own := f.clients[w.client.account.ID]
		f.all--
		if own.followers--; own.followers == 0 {
			own.stop()
			delete(f.clients, w.client.account.ID)
		}
	})
}

// Next waits until the version changes, and returns the new one. It fails when the context ends, or the server stops.
func (w *Following) Next(ctx context.Context) (string, error) {
	f := &w.client.control.follows
	for {
		f.mu.Lock()
		own := f.clients[w.client.account.ID]
		version, changed, ended := own.version, own.changed, f.end()
		f.mu.Unlock()
		if version != "" && version != w.known {
			w.known = version
			return version, nil
		}
		select {
		case <-changed:
		case <-ended:
			return "", context.Canceled
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (f *follows) end() chan struct{} {
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	return f.ended
}

// Stopping returns a channel that is closed when the server stops. Then every caller that waits must return.
func (c *Control) Stopping() <-chan struct{} {
	f := &c.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end()
}

// EndFollowing ends all waiting for changes, because the server stops.
func (c *Control) EndFollowing() {
	f := &c.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.end())
	}
}

// poll reads the version again and again while somebody follows. If the store cannot be read, poll reports no change.
func (c *Client) poll(ctx context.Context, own *followed) {
	f := &c.control.follows
	for ctx.Err() == nil {
		version, err := c.Version(ctx)
		f.mu.Lock()
		if err == nil && version != own.version {
			own.version = version
			close(own.changed)
			own.changed = make(chan struct{})
		}
		f.mu.Unlock()
		if c.control.clock.Sleep(ctx, followEvery) != nil {
			return
		}
	}
}

// feedLag is the longest time by which a transaction may commit a row late, with an earlier moment. So the last two
// seconds of a feed are not final. A feed gives no cursor for them, and does not say that a period is complete.
const feedLag = 2 * time.Second

// follow reads a part of a feed. read also returns the moment up to which its answer should be complete, or the zero
// time if it should not be. If this moment is less than feedLag ago, follow waits for the rest of feedLag and reads
// again.
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
