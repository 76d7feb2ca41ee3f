package campaignclient

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
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/outside"
)

const (
	callTakes   = time.Minute      // longest time for one call; the server answers a check after at most 15 s
	fileTakes   = 10 * time.Minute // longest time for each piece of an uploaded list, and for the answer after the last piece
	shortPause  = 500 * time.Millisecond
	longPause   = 15 * time.Second
	firstAnswer = 10 * time.Second // if there is no first answer within this time, there is no server
	anyAnswer   = time.Hour        // if there is no later answer within this time, the server does not come back
)

// Refusal is an answer whose status is not 200.
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

// passes reports whether the failure may be temporary, so that the same call may succeed later.
func (r *Refusal) passes() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return r.Code == "busy"
	case http.StatusTooManyRequests:
		return r.Code != "cap_reached"
	case http.StatusServiceUnavailable:
		return r.Code != "store_full" && r.Code != "store_damaged"
	}
	return false
}

// localError is an error of this machine, such as an unreadable file. The call is not repeated after it.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

// slowError means that a call took too long.
type slowError struct{ limit time.Duration }

func (e slowError) Error() string { return fmt.Sprintf("nothing came within %v", e.limit) }

// Client sends requests to a server with a client's key. It is not safe for concurrent use.
type Client struct {
	// Lost is called when a call failed and is repeated. It is called with nil when the server answers again. New sets
	// it to a function that does nothing.
	Lost func(error)

	server, key string
	http        *http.Client
	clock       clock.Clock
	answered    bool // true: the server has answered at least once
}

// New returns a client of the server at an address.
func New(server, key string, c clock.Clock) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library sets this type
	return &Client{server: strings.TrimSuffix(server, "/"), key: key, clock: c, Lost: func(error) {}, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect must not receive the key
	}}
}

// call sends JSON, repeats the call until there is an answer, and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, order, answer any, header ...string) error {
	var body []byte
	if order != nil {
		var err error
		if body, err = json.Marshal(order); err != nil {
			return err
		}
		header = append(header, "Content-Type", "application/json")
	}
	return c.persist(ctx, func() error {
		return c.within(ctx, callTakes, func(ctx context.Context, _ func()) error {
			return c.tryOnce(ctx, method, path, bytes.NewReader(body), answer, header...)
		})
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
			case <-timeout:
				cancel(slowError{limit})
				return
			case <-ctx.Done():
				stop()
				return
			case <-moves:
				stop()
			}
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

// persist repeats a call whose failure may be temporary. Errors: a [*Refusal], an error of this machine, the context's
// error, or the last error.
func (c *Client) persist(ctx context.Context, do func() error) error {
	began, pause, lost := c.clock.Now(), shortPause, false
	for {
		err := do()
		refusal, refused := errors.AsType[*Refusal](err)
		if err == nil || refused {
			c.answered = true
		}
		if err == nil || refused && !refusal.passes() {
			if lost {
				c.Lost(nil)
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if local, ok := errors.AsType[localError](err); ok {
			return local.error
		}
		maxWait := anyAnswer
		if !c.answered {
			maxWait = firstAnswer
		}
		if c.clock.Now().Sub(began) > maxWait {
			return err
		}
		if !lost {
			lost = true
			c.Lost(err)
		}
		wait := pause/2 + rand.N(pause/2) //nolint:gosec // the random number only spreads the clients over time
		if refused {
			wait = max(wait, refusal.after)
		}
		if err := c.clock.Sleep(ctx, wait); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// tryOnce makes one call. It decodes the JSON of the response into answer. If answer is an [io.Writer], it copies the
// response unchanged.
func (c *Client) tryOnce(ctx context.Context, method, path string, body io.Reader, answer any, header ...string) error {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return localError{err} // the address is invalid
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refused(ctx, response)
	}
	if w, ok := answer.(io.Writer); ok {
		body := outside.CommandFile.Body(ctx, response.Body)
		defer body.Close()
		_, err := io.Copy(w, body)
		return tooLarge(err)
	}
	text, err := outside.Command.Read(ctx, response.Body)
	if err != nil {
		return tooLarge(err)
	}
	if err := outside.Command.Parse(text, answer); err != nil {
		return &Refusal{Detail: fmt.Sprintf("%s answers %s in no form that this program knows: %v", c.server, path, err)}
	}
	return nil
}

// tooLarge makes an error final if the answer was too large, because the same call would get the same answer again.
func tooLarge(err error) error {
	if _, ok := errors.AsType[*outside.TooLargeError](err); ok {
		return localError{err}
	}
	return err
}

// refused decodes a problem. If the answer contains no problem, the error contains the status.
func refused(ctx context.Context, response *http.Response) error {
	var problem struct {
		Code   string  `json:"code"`
		Detail string  `json:"detail"`
		Errors []Fault `json:"errors"`
	}
	_ = outside.Command.Decode(ctx, response.Body, &problem) // if there is no body, the status is enough
	r := &Refusal{
		Status: response.StatusCode, Code: problem.Code, Faults: problem.Errors,
		Detail: cmp.Or(problem.Detail, "the server answered "+response.Status),
	}
	if n, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && n > 0 {
		r.after = min(time.Duration(n)*time.Second, time.Minute)
	}
	return r
}
