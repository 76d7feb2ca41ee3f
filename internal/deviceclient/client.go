package deviceclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/outside"
)

const (
	callTakes   = 20 * time.Second // the time limit of one call; the wait that the call asks the server for is added
	longestWait = 30 * time.Second // how long a call that takes messages may ask the server to wait
	maxReports  = 100              // the largest number of reports in one call
)

// ErrUnlinked means that the server does not know the token, because the device was unlinked.
var ErrUnlinked = errors.New("the server does not know this device, or no longer: link it again")

// Device is the server's information about a device.
type Device struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Dedupes bool   `json:"dedupes"`
	Session struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"session"`
}

// LinkOrder is a request to link a device.
type LinkOrder struct {
	Code    string `json:"code"`
	Name    string `json:"name"`
	Dedupes bool   `json:"dedupes"`
}

// Outcome is the result of a message.
type Outcome string

const (
	Sent     Outcome = "sent"
	Refused  Outcome = "refused"  // the message must not be sent again
	Unknown  Outcome = "unknown"  // the message may have left
	Returned Outcome = "returned" // the message did not leave, and may be taken again
)

// Report is a report of the result of an attempt.
type Report struct {
	Message string  `json:"-"`
	Attempt string  `json:"attempt"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
}

// heldMessage is a message that the device holds.
type heldMessage struct {
	Attempt string `json:"attempt"`
	Message string `json:"message_id"`
	whole   json.RawMessage
}

func (h *heldMessage) UnmarshalJSON(text []byte) error {
	type plain heldMessage
	if err := json.Unmarshal(text, (*plain)(h)); err != nil {
		return err
	}
	h.whole = bytes.Clone(text)
	return nil
}

// Client sends requests to a server as one device. It is safe for concurrent use.
type Client struct {
	server, token string
	http          *http.Client
	clock         clock.Clock
}

// NewClient returns a client of the server at an address. The argument token is the result of Link. To call Link
// itself, token may be "".
func NewClient(server, token string, c clock.Clock) *Client {
	return &Client{server: strings.TrimSuffix(server, "/"), token: token, clock: c, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect must not receive the token
	}}
}

// Link uses a one-time code, and returns the token for all other calls.
func (c *Client) Link(ctx context.Context, order LinkOrder) (token string, err error) {
	var answer struct {
		Token string `json:"device_token"`
	}
	if err := c.call(ctx, http.MethodPost, "/device/link", order, &answer, 0); err != nil {
		return "", err
	}
	if answer.Token == "" {
		return "", errors.New("the server gave no token")
	}
	return answer.Token, nil
}

// Device returns the server's information about the device. Errors: [ErrUnlinked].
func (c *Client) Device(ctx context.Context) (d Device, err error) {
	return d, c.call(ctx, http.MethodGet, "/device", nil, &d, 0)
}

// Due returns the messages that the device could take now, in the server's JSON. It does not take them. Errors:
// [ErrUnlinked].
func (c *Client) Due(ctx context.Context) ([]json.RawMessage, error) {
	var answer struct {
		Messages []json.RawMessage `json:"messages"`
	}
	return answer.Messages, c.call(ctx, http.MethodGet, "/device/due", nil, &answer, 0)
}

// holds returns the messages that the device holds.
func (c *Client) holds(ctx context.Context) ([]heldMessage, error) {
	var answer struct {
		Held []heldMessage `json:"held"`
	}
	return answer.Held, c.call(ctx, http.MethodGet, "/device/due", nil, &answer, 0)
}

func (c *Client) take(ctx context.Context, id string, limit int, lease time.Duration) ([]heldMessage, error) {
	order := struct {
		ID    string `json:"take"`
		Most  int    `json:"max"`
		Wait  int    `json:"wait"`
		Lease int    `json:"lease"`
	}{id, limit, seconds(longestWait), seconds(lease)}
	var answer struct {
		Messages []heldMessage `json:"messages"`
	}
	return answer.Messages, c.call(ctx, http.MethodPost, "/device/take", order, &answer, longestWait)
}

// renew extends the holds of attempts, and returns the attempts that the device no longer holds.
func (c *Client) renew(ctx context.Context, attempts []string, lease time.Duration) (lost []string, err error) {
	order := struct {
		Attempts []string `json:"attempts"`
		Lease    int      `json:"lease"`
	}{attempts, seconds(lease)}
	var answer struct {
		Lost []string `json:"lost"`
	}
	return answer.Lost, c.call(ctx, http.MethodPost, "/device/renew", order, &answer, 0)
}

// report sends reports, and returns the server's result for each.
func (c *Client) report(ctx context.Context, reports []Report) (map[string]string, error) {
	var answer struct {
		Results []struct {
			Attempt string `json:"attempt"`
			Result  string `json:"result"`
		} `json:"results"`
	}
	order := map[string]any{"reports": reports}
	if err := c.call(ctx, http.MethodPost, "/device/report", order, &answer, 0); err != nil {
		return nil, err
	}
	results := map[string]string{}
	for _, r := range answer.Results {
		results[r.Attempt] = r.Result
	}
	for _, r := range reports {
		if results[r.Attempt] == "" {
			return nil, errors.New("the server did not answer to every report")
		}
	}
	return results, nil
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// refusal is an answer whose status is not 200.
type refusal struct {
	status int
	text   string
	after  time.Duration // the wait that the header Retry-After asks for
}

func (r *refusal) Error() string { return r.text }

// retryWait reports whether the same call may succeed later. The result wait is the shortest time to wait before that
// call.
func retryWait(err error) (wait time.Duration, ok bool) {
	var r *refusal
	switch {
	case errors.Is(err, ErrUnlinked):
		return 0, false
	case !errors.As(err, &r):
		return 0, true // there was no answer, or an incomplete one
	}
	passing := r.status == http.StatusRequestTimeout || r.status == http.StatusTooManyRequests || r.status >= http.StatusInternalServerError
	return r.after, passing
}

func (c *Client) call(ctx context.Context, method, path string, order, answer any, wait time.Duration) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if order == nil {
		body = nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait+callTakes)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return &refusal{text: err.Error()} // the address is invalid, so a repeat does not help
	}
	if order != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := outside.Command.Read(ctx, response.Body)
	switch {
	case response.StatusCode == http.StatusUnauthorized && c.token != "":
		return ErrUnlinked
	case response.StatusCode != http.StatusOK:
		return c.refused(response, text)
	case err != nil:
		return err
	}
	if err := outside.Command.Parse(text, answer); err != nil {
		return fmt.Errorf("read the server's answer to %s: %w", path, err)
	}
	return nil
}

// refused decodes a problem. If the answer contains no problem, the error contains the status.
func (c *Client) refused(response *http.Response, text []byte) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	_ = outside.Command.Parse(text, &problem) // if there is no body, the status is enough
	r := &refusal{status: response.StatusCode, text: cmp.Or(problem.Detail, "the server answered "+response.Status)}
	after := response.Header.Get("Retry-After")
	if n, err := strconv.Atoi(after); err == nil && n > 0 {
		r.after = time.Duration(min(n, seconds(longestPause))) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		r.after = min(at.Sub(c.clock.Now()), longestPause)
	}
	return r
}
