package admission

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"puntuale"
)

// ConnectionLimiter bounds a server's open connections. If a new connection exceeds the limit, the limiter closes one
// that waits: it is idle, or sends its request very slowly. It belongs to the partner with the most connections, and
// there to the caller with the most. Of this caller's connections, it has waited longest. So a caller with many
// connections loses its own.
//
// When the server stops, [ConnectionLimiter.GiveUp] ends the connections that still wait for a request, or for the rest
// of a request. All other connections may finish. This loses no accepted request, because a request is accepted only
// when it has arrived completely. Many goroutines may call the methods at the same time.
type ConnectionLimiter struct {
	limit  int       // 0: no limit
	closed func(int) // called with the number of connections that were closed because of the limit

	mu       sync.Mutex
	open     map[net.Conn]*exchange
	partners map[puntuale.PartnerID]map[CallerKey]*connectionHolder // 0: callers that are not known
}

// connectionHolder is a caller that has open connections.
type connectionHolder struct {
	open    int
	waiting list.List // connections (*exchange) that wait for data of a request; the first has waited longest
}

// beyond is the number of connections above the limit that are allowed while no connection waits. If there are more,
// the new connection itself is closed.
const beyond = 256

// exchange is the current request on one connection.
type exchange struct {
	all     *ConnectionLimiter
	conn    net.Conn
	partner puntuale.PartnerID
	caller  CallerKey
	wait    *list.Element // the element in the caller's waiting list; nil: the request was read to its end
}

// set records whether the request was read to its end. It acquires the lock.
func (e *exchange) set(complete bool) {
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	if e.all.open[e.conn] == e {
		e.mark(complete)
	}
}

// mark records whether the request was read to its end. Its caller must hold the lock.
func (e *exchange) mark(complete bool) {
	waiting := &e.all.partners[e.partner][e.caller].waiting
	if e.wait != nil {
		waiting.Remove(e.wait)
		e.wait = nil
	}
	if !complete {
		e.wait = waiting.PushBack(e)
	}
}

// join counts the connection for a caller. Its caller must hold the lock.
func (e *exchange) join(partner puntuale.PartnerID, caller CallerKey) {
	e.partner, e.caller = partner, caller
	callers := e.all.partners[partner]
	if callers == nil {
		callers = map[CallerKey]*connectionHolder{}
		e.all.partners[partner] = callers
	}
	if callers[caller] == nil {
		callers[caller] = &connectionHolder{}
	}
	callers[caller].open++
}

// leave ends what join began. Its caller must hold the lock.
func (e *exchange) leave() {
	e.mark(true)
	callers := e.all.partners[e.partner]
	if callers[e.caller].open--; callers[e.caller].open == 0 {
		delete(callers, e.caller)
	}
	if len(callers) == 0 {
		delete(e.all.partners, e.partner)
	}
}

// Owned records who makes the present request on a connection. Until then, the connection counts for the last caller
// that used it, or for its address.
func Owned(ctx context.Context, partner puntuale.PartnerID, caller CallerKey) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return
	}
	e.all.mu.Lock()
	defer e.all.mu.Unlock()
	if e.all.open[e.conn] != e || e.partner == partner && e.caller == caller {
		return
	}
	complete := e.wait == nil
	e.leave()
	e.join(partner, caller)
	e.mark(complete)
}

// NewConnectionLimiter allows limit open connections, and beyond more while no connection waits. The limit 0 means no
// limit. When the limiter closes a connection because of the limit, it calls closed with the number of closed
// connections. The limiter holds its lock during this call. closed may be nil.
func NewConnectionLimiter(limit int, closed func(int)) *ConnectionLimiter {
	if closed == nil {
		closed = func(int) {}
	}
	return &ConnectionLimiter{
		limit: limit, closed: closed, open: map[net.Conn]*exchange{}, partners: map[puntuale.PartnerID]map[CallerKey]*connectionHolder{},
	}
}

type exchangeKey struct{}

// Began must be the server's ConnContext.
func (c *ConnectionLimiter) Began(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &exchange{all: c, conn: conn}
	c.open[conn] = e
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // another kind of address is the zero address
	e.join(0, AddressKey(from.Addr().Unmap()))
	if c.limit > 0 && len(c.open) > c.limit {
		c.makeRoom(conn)
	}
	e.mark(false)
	return context.WithValue(ctx, exchangeKey{}, e)
}

// makeRoom closes a waiting connection. If no connection waits, it closes the new connection, but only if there are more
// than beyond connections above the limit.
func (c *ConnectionLimiter) makeRoom(fresh net.Conn) {
	switch next := c.heaviest(); {
	case next != nil:
		next.leave()
		delete(c.open, next.conn)
		_ = next.conn.Close() // this fails only if the connection is already closed
	case len(c.open) > c.limit+beyond:
		_ = fresh.Close()
	default:
		return
	}
	c.closed(1)
}

// heaviest returns the waiting connection that is closed next, or nil if none waits.
func (c *ConnectionLimiter) heaviest() (next *exchange) {
	most := 0
	for _, callers := range c.partners {
		all, own := 0, (*connectionHolder)(nil)
		for _, of := range callers {
			all += of.open
			if of.waiting.Len() > 0 && (own == nil || of.open > own.open) {
				own = of
			}
		}
		if own != nil && all > most {
			most, next = all, own.waiting.Front().Value.(*exchange) //nolint:forcetypeassert // nothing else is in the list
		}
	}
	return next
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
		e.leave()
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
	if errors.Is(err, io.EOF) {
		b.exchange.set(true)
	}
	return n, err
}

// GiveUp ends all reads of requests that have not arrived completely. A handler that was reading a body answers that
// the body could not be read. If the server was reading a header, it closes the connection.
func (c *ConnectionLimiter) GiveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, e := range c.open {
		if e.wait != nil {
			_ = conn.SetReadDeadline(longAgo) // a failure means that the connection is closed
		}
	}
}
