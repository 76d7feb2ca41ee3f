package admission

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// ConnectionLimiter bounds a server's open connections. For a new one beyond the bound it closes the one that has waited longest. That one
// is idle, or sends its request drop by drop. It knows which connections wait for a request, or for the rest of one. So a stop can close
// these connections and let the others finish: a request that never came to its end was never accepted. Safe for concurrent use.
type ConnectionLimiter struct {
	most   int       // 0: any number
	closed func(int) // told how many were closed for others

	mu      sync.Mutex
	open    map[net.Conn]*exchange
	waiting list.List // of net.Conn, the longest first
}

// beyond is how many more connections there may be while none waits. After that, a new connection itself is closed.
const beyond = 256

// exchange is one connection's present request.
type exchange struct {
	all  *ConnectionLimiter
	conn net.Conn
	wait *list.Element // nil once the request was read to its end
}

// set notes whether the request was read to its end.
func (e *exchange) set(complete bool) {
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	e.mark(complete)
}

// The caller of mark holds the lock.
func (e *exchange) mark(complete bool) {
	if e.wait != nil {
		e.all.waiting.Remove(e.wait)
		e.wait = nil
	}
	if !complete {
		e.wait = e.all.waiting.PushBack(e.conn)
	}
}

// NewConnectionLimiter keeps at most so many connections open; 0 means any number. It calls closed with the number of connections that it
// closed for others. The limiter's lock is then held. closed may be nil.
func NewConnectionLimiter(most int, closed func(int)) *ConnectionLimiter {
	if closed == nil {
		closed = func(int) {}
	}
	return &ConnectionLimiter{most: most, closed: closed, open: map[net.Conn]*exchange{}}
}

type exchangeKey struct{}

// Began is the server's ConnContext.
func (c *ConnectionLimiter) Began(ctx context.Context, conn net.Conn) context.Context {
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
func (c *ConnectionLimiter) makeRoom(fresh net.Conn) {
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

// Count returns how many connections there are.
func (c *ConnectionLimiter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// Changed is the server's ConnState.
func (c *ConnectionLimiter) Changed(conn net.Conn, state http.ConnState) {
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

// Watch notes when a request was read to its end.
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
	if errors.Is(err, io.EOF) {
		b.exchange.set(true)
	}
	return n, err
}

// GiveUp ends every read of a request that has not come to its end. A handler that reads a body then answers that it
// could not be read; a server that reads a header closes the connection.
func (c *ConnectionLimiter) GiveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		_ = e.Value.(net.Conn).SetReadDeadline(longAgo) //nolint:forcetypeassert // fails only where there is nothing to end
	}
}
