package admission

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"puntuale"
)

// ConnectionLimiter bounds a server's open connections. If a new connection exceeds the limit, the limiter closes the
// connection that has waited longest. A waiting connection is idle, or sends its request very slowly.
//
// When the server stops, [ConnectionLimiter.GiveUp] ends the connections that still wait for a request, or for the rest
// of a request. All other connections may finish. This loses no accepted request, because a request is accepted only
// when it has arrived completely. Many goroutines may call the methods at the same time.
type ConnectionLimiter struct {
	limit  int       // 0: no limit
	closed func(int) // called with the number of connections that were closed because of the limit

	mu      sync.Mutex
	open    map[net.Conn]*exchange
	gaveUp  bool      // GiveUp was called
	waiting list.List // connections (net.Conn) that wait for data of a request; the first has waited longest
}

// beyond is the number of connections above the limit that are allowed while no connection waits. If there are more,
// the new connection itself is closed.
const beyond = 256

// exchange is the current request on one connection.
type exchange struct {
	all  *ConnectionLimiter
	conn net.Conn
	wait *list.Element // the connection's element in waiting; nil: the request was read to its end
}

// set records whether the request was read to its end. It acquires the lock.
func (e *exchange) set(complete bool) {
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	e.mark(complete)
}

// mark records whether the request was read to its end. Its caller must hold the lock.
func (e *exchange) mark(complete bool) {
	if e.wait != nil {
		e.all.waiting.Remove(e.wait)
		e.wait = nil
	}
	if !complete {
		e.wait = e.all.waiting.PushBack(e.conn)
	}
}

// NewConnectionLimiter allows limit open connections, and beyond more while no connection waits. The limit 0 means no
// limit. When the limiter closes a connection because of the limit, it calls closed with the number of closed
// connections. The limiter holds its lock during this call. closed may be nil.
func NewConnectionLimiter(limit int, closed func(int)) *ConnectionLimiter {
	if closed == nil {
		closed = func(int) {}
	}
	return &ConnectionLimiter{limit: limit, closed: closed, open: map[net.Conn]*exchange{}}
}

type exchangeKey struct{}

// Began must be the server's ConnContext.
func (c *ConnectionLimiter) Began(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &exchange{all: c, conn: conn}
	c.open[conn] = e
	if c.limit > 0 && len(c.open) > c.limit {
		c.makeRoom(conn)
	}
	e.mark(false)
	return context.WithValue(ctx, exchangeKey{}, e)
}

// makeRoom closes the connection that has waited longest. If no connection waits, it closes the new connection, but
// only if there are more than beyond connections above the limit.
func (c *ConnectionLimiter) makeRoom(fresh net.Conn) {
	oldest := c.waiting.Front()
	switch {
	case oldest != nil:
		conn := oldest.Value.(net.Conn) //nolint:forcetypeassert // nothing else is in the list
		c.open[conn].mark(true)
		_ = conn.Close() // this fails only if the connection is already closed
	case len(c.open) > c.limit+beyond:
		_ = fresh.Close()
	default:
		return
	}
	c.closed(1)
}

// Count returns the number of open connections.
func (c *ConnectionLimiter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// Changed must be the server's ConnState.
func (c *ConnectionLimiter) Changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.open[conn]
	if e == nil {
		return
	}
	switch state {
	case http.StateIdle: // the next request has not begun
		e.mark(false)
	case http.StateClosed, http.StateHijacked:
		e.mark(true)
		delete(c.open, conn)
	case http.StateNew, http.StateActive:
	}
}

// Watch wraps the server's handler, and records when a request was read to its end.
func (c *ConnectionLimiter) Watch(h http.Handler) http.Handler {
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
	switch {
	case errors.Is(err, io.EOF):
		b.exchange.set(true)
	case err != nil && b.exchange.all.stopping():
		err = puntuale.ErrStopping
	}
	return n, err
}

// GiveUp ends all reads of requests that have not arrived completely. A handler that was reading a body gets
// [puntuale.ErrStopping]. If the server was reading a header, it closes the connection.
func (c *ConnectionLimiter) GiveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaveUp = true
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		_ = e.Value.(net.Conn).SetReadDeadline(longAgo) //nolint:forcetypeassert // only connections are in the list; a failure means that the connection is closed
	}
}

// stopping reports whether GiveUp was called.
func (c *ConnectionLimiter) stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gaveUp
}
