package control

import (
	"context"
	"puntuale/internal/control/request"

	"puntuale"
)

// linkWatch polls a client's sessions, on behalf of all callers that wait for a change of a session. The lock of
// follows guards it.
type linkWatch struct {
	waiting int
	stop    context.CancelFunc
	found   map[puntuale.SessionID]puntuale.Session // the sessions that the latest check found
	looked  chan struct{}                           // closed after the next check
}

// AwaitSession returns a session as soon as its state differs from what the caller saw. It fails when the context ends,
// or the server stops. Codes: not_found; rate_limited if too many callers wait already.
func (c *Client) AwaitSession(ctx context.Context, id string, seen func(Session) bool) (Session, error) {
	w, err := c.watchLinks()
	if err != nil {
		return Session{}, err
	}
	defer c.leaveLinks(w)
	f := &c.control.follows
	f.mu.Lock()
	looked, ended := w.looked, f.end()
	f.mu.Unlock()
	s, err := c.Session(ctx, id)
	for err == nil && seen(s) {
		select {
		case <-looked:
		case <-ended:
			return Session{}, context.Canceled
		case <-ctx.Done():
			return Session{}, ctx.Err()
		}
		f.mu.Lock()
		row, found := w.found[s.ID]
		looked = w.looked
		f.mu.Unlock()
		if !found {
			return c.Session(ctx, id) // the session is gone, so this call returns the error
		}
		s = c.stateOf(row)
	}
	return s, err
}

// watchLinks counts one more caller who waits for a change of a link. The caller must call leaveLinks.
func (c *Client) watchLinks() (*linkWatch, error) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.links[c.account.ID]
	if f.closed || f.all >= followEntire || w != nil && w.waiting >= followClient {
		return nil, errFollowers
	}
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &linkWatch{stop: stop, looked: make(chan struct{})}
		if f.links == nil {
			f.links = map[puntuale.ClientID]*linkWatch{}
		}
		f.links[c.account.ID] = w
		go c.pollLinks(ctx, w)
	}
	w.waiting++
	f.all++
	return w, nil
}

func (c *Client) leaveLinks(w *linkWatch) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	if w.waiting--; w.waiting == 0 {
		w.stop()
		delete(f.links, c.account.ID)
	}
}

// pollLinks reads the client's sessions each linkEvery while callers wait. If the store cannot be read, it reports no
// change.
func (c *Client) pollLinks(ctx context.Context, w *linkWatch) {
	for c.control.clock.Sleep(ctx, linkEvery) == nil {
		found, err := c.allSessions(ctx)
		if err != nil {
			continue
		}
		f := &c.control.follows
		f.mu.Lock()
		w.found = found
		close(w.looked)
		w.looked = make(chan struct{})
		f.mu.Unlock()
	}
}

func (c *Client) allSessions(ctx context.Context) (map[puntuale.SessionID]puntuale.Session, error) {
	all := map[puntuale.SessionID]puntuale.Session{}
	for cursor := ""; ; {
		rows, next, err := c.tenant.Sessions(ctx, puntuale.Page{Limit: request.MaxPageRows, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, s := range rows {
			all[s.ID] = s
		}
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}
