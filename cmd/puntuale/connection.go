package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections knows which connections wait for the rest of a request, so that a stop can give these up and let the
// others finish. A call whose request never came to its end was never accepted.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*exchange
}

// exchange is one connection's present request.
type exchange struct {
	mu       sync.Mutex
	complete bool // it was read to its end
}

func (e *exchange) set(complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete = complete
}

func (e *exchange) waits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.complete
}

func newConnections() *connections { return &connections{open: map[net.Conn]*exchange{}} }

type exchangeKey struct{}

// begun is the server's ConnContext.
func (c *connections) begun(ctx context.Context, conn net.Conn) context.Context {
	e := &exchange{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = e
	return context.WithValue(ctx, exchangeKey{}, e)
}

// changed is the server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateIdle: // the next request, if there is one, has not come
		if e := c.open[conn]; e != nil {
			e.set(false)
		}
	case http.StateClosed, http.StateHijacked:
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
	for conn, e := range c.open {
		if e.waits() {
			_ = conn.SetReadDeadline(longAgo) // fails only where there is nothing to end
		}
	}
}
