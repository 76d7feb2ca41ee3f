//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// flood makes calls at a fixed rate, even if earlier calls have not ended. It has many connections, and each call uses
// any free one. flood stores the answers in its own record.
type flood struct {
	t       *testing.T
	base    string
	prefix  string // beginning of the recipients' numbers and of the texts; different for each flood
	tenants []tenant
	rate    int // how many calls the flood makes in a second
	calls   sync.WaitGroup

	next   atomic.Int64
	halted chan struct{}

	mu       sync.Mutex
	accepted []time.Duration
	refused  []time.Duration
	statuses map[string]int
	book     map[string][]string // the ids of accepted messages, by the client's key
	wrong    []string
	broken   []error
}

// newFlood starts a flood.
func newFlood(t *testing.T, base, prefix string, rate, connections int, tenants ...tenant) *flood {
	t.Helper()
	f := &flood{t: t, base: base, prefix: prefix, tenants: tenants, rate: rate, halted: make(chan struct{}),
		statuses: map[string]int{}, book: map[string][]string{}}
	due := make(chan struct{}, 1)
	for range connections {
		f.calls.Go(func() {
			c := floodCaller{flood: f}
			defer c.hangUp()
			for range due {
				c.call()
			}
		})
	}
	f.calls.Go(func() {
		defer close(due)
		begun := time.Now()
		for sent := 0; ; {
			for deadline := int(time.Since(begun).Seconds() * float64(rate)); sent < deadline; sent++ {
				select {
				case due <- struct{}{}:
				case <-f.halted:
					return
				default: // every connection waits for an answer, so the flood skips this call
				}
			}
			select {
			case <-f.halted:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return f
}

// end ends the flood after every call in progress was answered.
func (f *flood) end() {
	close(f.halted)
	f.calls.Wait()
	slices.Sort(f.accepted)
	slices.Sort(f.refused)
}

func (f *flood) String() string {
	return fmt.Sprintf("%s: accepted %d, p50 %v, p99 %v, max %v; refused %d, p50 %v, p99 %v, max %v; %v", f.prefix,
		len(f.accepted), quantile(f.accepted, 0.5), quantile(f.accepted, 0.99), quantile(f.accepted, 1),
		len(f.refused), quantile(f.refused, 0.5), quantile(f.refused, 0.99), quantile(f.refused, 1), f.statuses)
}

// floodCaller is one connection.
type floodCaller struct {
	*flood
	conn net.Conn
	in   *bufio.Reader
}

func (c *floodCaller) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// call starts a sequence once. If the connection breaks, the flood records no answer.
func (c *floodCaller) call() {
	n := c.next.Add(1)
	who := c.tenants[int(n)%len(c.tenants)]
	body := fmt.Sprintf(`{"phone":"+39%s%07d","n":"%s-%d"}`, c.prefix, n, c.prefix, n)
	begun := time.Now()
	status, header, closed, text, err := c.exchange("POST", "/api/start/"+who.sequence, who.key, body)
	took := time.Since(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.statuses["broken"]++
		c.broken = append(c.broken, err)
		c.hangUp()
		return
	}
	c.statuses[strconv.Itoa(status)]++
	switch status {
	case http.StatusOK:
		var answer struct {
			ID []string `json:"id"`
		}
		if err := json.Unmarshal(text, &answer); err != nil || len(answer.ID) == 0 {
			c.wrong = append(c.wrong, fmt.Sprintf("accepted without ids: %s", text))
		}
		c.accepted = append(c.accepted, took)
		c.book[who.key] = append(c.book[who.key], answer.ID...)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		c.refused = append(c.refused, took)
		after, err := strconv.Atoi(header.Get("Retry-After"))
		if err != nil || after < 1 || after > 60 || header.Get("Content-Type") != "application/problem+json" {
			c.wrong = append(c.wrong, fmt.Sprintf("refused with Retry-After %q, %s: %s", header.Get("Retry-After"), header.Get("Content-Type"), text))
		}
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("%d %s", status, text))
	}
	if closed {
		c.hangUp()
	}
}

func (c *floodCaller) exchange(method, path, key, body string) (status int, header http.Header, closed bool, text []byte, err error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
		if err != nil {
			return 0, nil, false, nil, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: e2e\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, key, len(body), body); err != nil {
		return 0, nil, false, nil, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, false, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, response.Header, response.Close, text, err
}
