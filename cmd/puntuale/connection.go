package main

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections knows which connections wait for a request, or for the rest of one. So a stop can give these up and let
// the others finish. A call whose request never came to its end was never accepted. It keeps no more connections than
// most. For a new one the one that has waited longest goes, whether it is idle or sends its request drop by drop.
type connections struct {
	most   int       // 0: any number
	closed func(int) // told how many were closed for others

	mu      sync.Mutex
	open    map[net.Conn]*exchange
	waiting list.List // of net.Conn, the longest first
}

// beyond is how many more there may be while none waits; what comes then is closed itself.
const beyond = 256

// exchange is one connection's present request.
type exchange struct {
	all  *connections
	conn net.Conn
	wait *list.Element // nil once the request was read to its end
}

// set tells whether the request was read to its end.
func (e *exchange) set(complete bool) {
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	e.mark(complete)
}

// mark is set with the lock held.
func (e *exchange) mark(complete bool) {
	if e.wait != nil {
		e.all.waiting.Remove(e.wait)
		e.wait = nil
	}
	if !complete {
		e.wait = e.all.waiting.PushBack(e.conn)
	}
}

// newConnections keeps at most so many, 0 for any number. closed is told of those that were closed for others; nil:
// nobody counts.
func newConnections(most int, closed func(int)) *connections {
	if closed == nil {
		closed = func(int) {}
	}
	return &connections{most: most, closed: closed, open: map[net.Conn]*exchange{}}
}

type exchangeKey struct{}

// begun is the server's ConnContext.
func (c *connections) begun(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &exchange{all: c, conn: conn}
	c.open[conn] = e
	if c.most > 0 && len(c.open) > c.most {
		c.makeRoom(conn)
	}
	e.mark(false)
	return context.WithValue(ctx, exchangeKey{}, e)
}

// makeRoom closes the connection that has waited longest, or the new one when none waits.
func (c *connections) makeRoom(fresh net.Conn) {
	oldest := c.waiting.Front()
	switch {
	case oldest != nil:
		conn := oldest.Value.(net.Conn) //nolint:forcetypeassert // nothing else is in the list
		c.open[conn].mark(true)
		_ = conn.Close() // fails only where it is closed already
	case len(c.open) > c.most+beyond:
		_ = fresh.Close()
	default:
		return
	}
	c.closed(1)
}

// count returns how many connections there are.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// changed is the server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.open[conn]
	if e == nil {
		return
	}
	switch state {
	case http.StateIdle: // the next request, if there is one, has not come
		e.mark(false)
	case http.StateClosed, http.StateHijacked:
		e.mark(true)
		delete(c.open, conn)
	case http.StateNew, http.StateActive:
	}
}

// watch tells when a request was read to its end.
func (c *connections) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
			if r.Body == nil || r.Body == http.NoBody {
				e.set(true)
			} else {
				r.Body = &watchedBody{r.Body, e}
			}
		}
		h.ServeHTTP(w, r)
	})
}

type watchedBody struct {
	io.ReadCloser
	exchange *exchange
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.exchange.set(true)
	}
	return n, err
}

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// giveUp ends every read of a request that has not come to its end. A handler that reads a body then answers that it
// could not be read; a server that reads a header closes the connection.
func (c *connections) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		_ = e.Value.(net.Conn).SetReadDeadline(longAgo) //nolint:forcetypeassert // fails only where there is nothing to end
	}
}
