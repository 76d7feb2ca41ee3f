package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/outside"
)

// timing says how long a client waits for the server, and how it repeats a call.
type timing struct {
	call        time.Duration // the longest time for one call
	first, last time.Duration // the pause after the first failure, which doubles after each further failure, and the longest pause
	asked       time.Duration // the longest wait that the header Retry-After may ask for
	none        time.Duration // if there is no first answer within this time, there is no server; 0: the client never gives up
	away        time.Duration // if there is no later answer within this time, the server does not come back; 0: the same
}

// forever reports whether the client never gives up.
func (t timing) forever() bool { return t.away == 0 }

// A person waits for a command, but nobody waits for a device. A server answers a check of a campaign after at most
// 15 s.
var (
	personTiming = timing{call: time.Minute, first: 500 * time.Millisecond, last: 15 * time.Second, asked: time.Minute, none: 10 * time.Second, away: time.Hour}
	deviceTiming = timing{call: 20 * time.Second, first: time.Second, last: time.Minute, asked: time.Hour}
)

// Refusal is an answer whose status is not 200, or that this program cannot read.
type Refusal struct {
	Status int
	Code   string // the error code, as in docs/api.md; "": the answer contains none
	Detail string // a text for people
	Faults []Fault

	after time.Duration // how long to wait before the next try, from the header Retry-After
}

// Fault is one error in a request, and its location.
type Fault struct {
	Location string          `json:"location"`
	Message  string          `json:"message"`
	Value    json.RawMessage `json:"value"`
}

// Error contains every fault.
func (r *Refusal) Error() string {
	text := r.Detail
	for _, f := range r.Faults {
		where := strings.TrimPrefix(strings.TrimPrefix(f.Location, "body"), ".")
		text += "\n  " + strings.TrimSpace(where+" "+f.Message)
	}
	return text
}

// finalError is an error after which no call is repeated, such as an error of this machine's disk.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// slowError means that a call took too long.
type slowError struct{ limit time.Duration }

func (e slowError) Error() string { return fmt.Sprintf("nothing came within %v", e.limit) }

// Client sends requests to a server. It is safe for concurrent use, after its fields were set.
type Client struct {
	// Lost is called when a call failed for the nth time and is repeated after a pause. It is called with nil when the
	// server answers again. New sets it to a function that does nothing.
	Lost func(err error, n int, pause time.Duration)

	Transport http.RoundTripper // how requests reach the server; New sets it

	server, key string
	timing      timing
	clock       clock.Clock
	answered    atomic.Bool // true: the server has answered at least once
}

// New returns a client of the server at an address. key is the key of an API client, or "".
func New(server, key string, c clock.Clock) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library sets this type
	return &Client{
		Lost: func(error, int, time.Duration) {}, Transport: transport,
		server: strings.TrimSuffix(server, "/"), key: key, timing: personTiming, clock: c,
	}
}

// call sends JSON once, and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, order, answer any, header ...string) error {
	return c.within(ctx, c.timing.call, func(ctx context.Context, _ func()) error {
		return c.send(ctx, method, path, order, answer, header...)
	})
}

// within calls do. The function do must call moved at least once in each period of the length limit. If it does not,
// within cancels the context of do.
func (c *Client) within(ctx context.Context, limit time.Duration, do func(ctx context.Context, moved func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	moves, watched := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			timeout, stop := c.clock.After(limit)
			select {
			case <-moves:
				stop()
				continue
			case <-timeout:
				cancel(slowError{limit})
			case <-ctx.Done():
			}
			stop()
			return
		}
	}()
	err := do(ctx, func() {
		select {
		case moves <- struct{}{}:
		default: // the watcher will receive an earlier value
		}
	})
	if slow, ok := errors.AsType[slowError](context.Cause(ctx)); ok && err != nil {
		err = slow
	}
	cancel(nil)
	<-watched
	return err
}

// send makes one request. order is nil, an [io.Reader], or becomes JSON. The JSON of the response is decoded into
// answer. If answer is an [io.Writer], the response is copied unchanged. If answer is nil, only the status counts.
func (c *Client) send(ctx context.Context, method, path string, order, answer any, header ...string) error {
	body, stream := order.(io.Reader)
	if order != nil && !stream {
		text, err := json.Marshal(order)
		if err != nil {
			return finalError{err}
		}
		body, header = bytes.NewReader(text), append(header, "Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return finalError{err} // the address is invalid
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect must not receive the key
	response, err := (&http.Client{Transport: c.Transport, CheckRedirect: stay}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	c.answered.Store(true)
	if response.StatusCode != http.StatusOK {
		return c.refused(ctx, response)
	}
	unreadable := false
	switch to := answer.(type) {
	case nil:
	case io.Writer:
		from := outside.CommandFile.Body(ctx, response.Body)
		defer from.Close()
		_, err = io.Copy(to, from)
	default:
		var text []byte
		if text, err = outside.Command.Read(ctx, response.Body); err == nil {
			err = outside.Command.Parse(text, to)
			unreadable = err != nil
		}
	}
	if _, large := errors.AsType[*outside.TooLargeError](err); large || unreadable {
		return &Refusal{Status: http.StatusOK, Detail: fmt.Sprintf("%s answers %s in no form that this program knows: %v", c.server, path, err)}
	}
	return err
}

// refused decodes a problem. If the answer contains no problem, the error contains the status.
func (c *Client) refused(ctx context.Context, response *http.Response) error {
	if response.StatusCode == http.StatusUnauthorized && c.timing.forever() {
		return finalError{ErrUnlinked}
	}
	var problem struct {
		Code   string  `json:"code"`
		Title  string  `json:"title"`
		Detail string  `json:"detail"`
		Errors []Fault `json:"errors"`
	}
	_ = outside.Command.Decode(ctx, response.Body, &problem) // if there is no body, the status is enough
	if response.StatusCode == http.StatusRequestEntityTooLarge && problem.Code == "" {
		problem.Detail = fmt.Sprintf("a proxy before %s refuses bodies of this size (413); it must take 101 MB, in nginx with "+
			"client_max_body_size 101m (docs/operate.md has complete blocks)", c.server)
	}
	return &Refusal{
		Status: response.StatusCode, Code: problem.Code, Faults: problem.Errors, after: c.retryAfter(response.Header.Get("Retry-After")),
		Detail: cmp.Or(problem.Detail, problem.Title, "the server answered "+response.Status),
	}
}

// retryAfter parses the header Retry-After: seconds, or a time (RFC 9110, 10.2.3).
func (c *Client) retryAfter(text string) (wait time.Duration) {
	if n, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(n, int(c.timing.asked/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = min(at.Sub(c.clock.Now()), c.timing.asked)
	}
	return max(wait, 0)
}

// Repeat repeats a call whose failure may be temporary. Errors: a [*Refusal], an error of this machine, the context's
// error, or the last error.
func (c *Client) Repeat(ctx context.Context, do func() error) error {
	began := c.clock.Now()
	for n := 1; ; n++ {
		err := do()
		if final, ok := errors.AsType[finalError](err); ok {
			return final.error
		}
		refusal, refused := errors.AsType[*Refusal](err)
		if err == nil || refused && !c.passes(refusal) {
			if n > 1 {
				c.Lost(nil, 0, 0)
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		maxWait := c.timing.away
		if !c.answered.Load() {
			maxWait = c.timing.none
		}
		if maxWait > 0 && c.clock.Now().Sub(began) > maxWait {
			return err
		}
		wait := c.Pause(n)
		if refused {
			wait += refusal.after
		}
		c.Lost(err, n, wait)
		if err := c.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// passes reports whether a failure may be temporary, so that the same call may succeed later. A device also waits until
// a person has repaired the server.
func (c *Client) passes(r *Refusal) bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return r.Code == "busy"
	case http.StatusTooManyRequests:
		return c.timing.forever() || r.Code != "cap_reached"
	case http.StatusServiceUnavailable:
		return c.timing.forever() || r.Code != "store_full" && r.Code != "store_damaged"
	}
	return c.timing.forever() && (r.Status == http.StatusOK || r.Status >= http.StatusInternalServerError)
}

// Pause returns how long to wait after the nth failure, with jitter. Because of the jitter, programs that failed
// together try again at different times.
func (c *Client) Pause(n int) time.Duration {
	longest := min(c.timing.first<<min(n-1, 10), c.timing.last)
	return longest/2 + rand.N(longest/2) //nolint:gosec // the random number only spreads the programs over time
}
