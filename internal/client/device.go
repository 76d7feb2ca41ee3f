package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"puntuale/internal/clock"
)

// MaxReports is the largest number of reports in one call.
const MaxReports = 100

// longestWait is how long a call that takes messages asks the server to wait.
const longestWait = 30 * time.Second

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

// DeviceOrder is a request to link a device.
type DeviceOrder struct {
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

// HeldMessage is a message that the device holds.
type HeldMessage struct {
	Attempt string          `json:"attempt"`
	Message string          `json:"message_id"`
	Whole   json.RawMessage `json:"-"` // the message, as in docs/device.md
}

// UnmarshalJSON also keeps the text.
func (h *HeldMessage) UnmarshalJSON(text []byte) error {
	type plain HeldMessage
	if err := json.Unmarshal(text, (*plain)(h)); err != nil {
		return err
	}
	h.Whole = bytes.Clone(text)
	return nil
}

// NewDevice returns a client for a device. token is the result of [Client.LinkDevice]. If the server does not know the
// token, every call returns [ErrUnlinked].
func NewDevice(server, token string, c clock.Clock) *Client {
	made := New(server, token, c)
	made.timing = deviceTiming
	return made
}

// LinkDevice uses a one-time code, and returns the token for all other calls of a device.
func (c *Client) LinkDevice(ctx context.Context, order DeviceOrder) (token string, err error) {
	var answer struct {
		Token string `json:"device_token"`
	}
	err = c.call(ctx, http.MethodPost, "/device/link", order, &answer)
	if err == nil && answer.Token == "" {
		err = errors.New("the server gave no token")
	}
	return answer.Token, err
}

// Device returns the server's information about the device.
func (c *Client) Device(ctx context.Context) (d Device, err error) {
	return d, c.call(ctx, http.MethodGet, "/device", nil, &d)
}

// DueList is what a device may take, and what it holds.
type DueList struct {
	Messages []json.RawMessage `json:"messages"` // the messages that the device could take now, in the server's JSON
	Held     []HeldMessage     `json:"held"`
}

// DueMessages returns the messages that the device could take now, and does not take them.
func (c *Client) DueMessages(ctx context.Context) (due DueList, err error) {
	return due, c.call(ctx, http.MethodGet, "/device/due", nil, &due)
}

// TakeMessages takes at most limit messages, and holds them for the lease. If there are none, the server waits. A
// repeated call with the same id returns the same messages.
func (c *Client) TakeMessages(ctx context.Context, id string, limit int, lease time.Duration) ([]HeldMessage, error) {
	order := map[string]any{"take": id, "max": limit, "wait": seconds(longestWait), "lease": seconds(lease)}
	var answer struct {
		Messages []HeldMessage `json:"messages"`
	}
	err := c.within(ctx, longestWait+c.timing.call, func(ctx context.Context, _ func()) error {
		return c.send(ctx, http.MethodPost, "/device/take", order, &answer)
	})
	return answer.Messages, err
}

// RenewHolds extends the holds of attempts, and returns the attempts that the device no longer holds.
func (c *Client) RenewHolds(ctx context.Context, attempts []string, lease time.Duration) (lost []string, err error) {
	order := map[string]any{"attempts": attempts, "lease": seconds(lease)}
	var answer struct {
		Lost []string `json:"lost"`
	}
	return answer.Lost, c.call(ctx, http.MethodPost, "/device/renew", order, &answer)
}

// SendReports sends reports, and returns the server's result for each attempt.
func (c *Client) SendReports(ctx context.Context, reports []Report) (map[string]string, error) {
	var answer struct {
		Results []struct {
			Attempt string `json:"attempt"`
			Result  string `json:"result"`
		} `json:"results"`
	}
	if err := c.call(ctx, http.MethodPost, "/device/report", map[string]any{"reports": reports}, &answer); err != nil {
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
