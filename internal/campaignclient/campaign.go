package campaignclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Order asks for a campaign: a sequence, a template, or content.
type Order struct {
	Name     string   `json:"name"`
	Sequence string   `json:"sequence,omitempty"`
	Template string   `json:"template,omitempty"`
	Content  *Content `json:"content,omitempty"`
	Session  string   `json:"id_sessione,omitempty"`
	Purpose  string   `json:"purpose,omitempty"`
	StartAt  string   `json:"start_at,omitempty"`
	Pace     *Pace    `json:"pace,omitempty"`
	Canary   *int     `json:"canary,omitempty"`
}

// Content is what one message says.
type Content struct {
	Text string `json:"text"`
}

// Pace bounds how many recipients a minute are fed.
type Pace struct {
	PerMinute int `json:"per_minute"`
}

// Campaign is a campaign with its progress.
type Campaign struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Reason  string     `json:"reason"` // why it paused or ended by itself; a code
	Started *time.Time `json:"started_at"`
	Counts  Counts     `json:"counts"`
}

// Ended reports whether the campaign sends nothing more.
func (c *Campaign) Ended() bool {
	return c.State == "done" || c.State == "cancelled" || c.State == "failed"
}

// Counts are recipients, and the messages of those that were fed.
type Counts struct {
	Recipients, Refused, Waiting, Fed                  int
	Pending, Completed, Failed, Cancelled, Blacklisted int
}

// List is what the server read from a file.
type List struct {
	Recipients int        `json:"recipients"`
	Columns    []Column   `json:"columns"`
	Missing    []string   `json:"missing"` // required fields that nothing fills
	Preview    [][]string `json:"preview"`
}

// Column is a column of the file with the field that it fills, "" for none.
type Column struct {
	Name  string `json:"name"`
	Field string `json:"field"`
}

// Check is what a start would send. Digest is "" while the check still runs.
type Check struct {
	Digest     string     `json:"digest"`
	Done       int        `json:"done"`       // recipients that it has looked at
	Recipients int        `json:"recipients"` // while the check runs, the same as Done
	Valid      int        `json:"valid"`
	Messages   int        `json:"messages"`
	Needed     int        `json:"credits_needed"`
	Left       string     `json:"credits_left"` // a number, or a word
	Cost       *Cost      `json:"cost"`         // nil: the network takes nothing
	Warnings   []Warning  `json:"warnings"`
	First      *time.Time `json:"first"`
	Last       *time.Time `json:"last"`
	Refused    []Group    `json:"refused"`
	Samples    []Sample   `json:"samples"`
	Longest    int        `json:"longest_text"` // characters
	Limit      *Limit     `json:"limit"`
}

// Cost is what the network takes, by the server's price table.
type Cost struct {
	Currency string `json:"currency"`
	Amount   string `json:"amount"`
	Date     string `json:"date"`    // the date of the price table
	Unknown  int    `json:"unknown"` // messages without a price, which the amount leaves out
}

// Warning is what may be wrong with a step, from 0, although the campaign may start.
type Warning struct {
	Code string `json:"code"`
	Step int    `json:"step"`
}

// Group is how many recipients are refused for one reason.
type Group struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Sample is what one recipient gets.
type Sample struct {
	Line  int       `json:"line"`
	Phone string    `json:"phone"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// Limit is what decides when a campaign ends.
type Limit struct {
	Code      string `json:"code"`
	PerMinute int    `json:"per_minute"`
	PerDay    int    `json:"per_day"`
	Days      int    `json:"days"`
}

// ChangedError says that something changed since the check that a start named. Check is the new check. If it has no digest, the campaign
// must be checked again.
type ChangedError struct{ Check Check }

func (e *ChangedError) Error() string { return "the campaign was changed since its check" }

const campaigns = "/api/campaigns"

func campaignPath(id string) string { return campaigns + "/" + url.PathEscape(id) }

// Create makes a draft. A repeat under the same key, also by another process, gives the same draft. Errors: a [*Refusal].
func (c *Client) Create(ctx context.Context, o Order, key string) (made Campaign, err error) {
	return made, c.call(ctx, http.MethodPost, campaigns, o, &made, "Idempotency-Key", key)
}

// Campaign returns how far a campaign is. Errors: a [*Refusal].
func (c *Client) Campaign(ctx context.Context, id string) (found Campaign, err error) {
	return found, c.call(ctx, http.MethodGet, campaignPath(id), nil, &found)
}

// Check starts the check of all recipients, and waits for its end. It calls report with the progress. Errors: a [*Refusal].
func (c *Client) Check(ctx context.Context, id string, report func(Check)) (Check, error) {
	for {
		var found Check
		if err := c.call(ctx, http.MethodPost, campaignPath(id)+"/check", nil, &found); err != nil || found.Digest != "" {
			return found, err
		}
		report(found)
		if err := c.clock.Sleep(ctx, shortPause); err != nil { // a short pause is enough, because the server waited before it answered
			return found, err
		}
	}
}

// Start starts what the check with this digest showed. Errors: a [*ChangedError]; a [*Refusal].
func (c *Client) Start(ctx context.Context, id, digest string) (started Campaign, err error) {
	err = c.call(ctx, http.MethodPost, campaignPath(id)+"/start", map[string]string{"digest": digest}, &started)
	r, ok := errors.AsType[*Refusal](err)
	if !ok || r.Status != http.StatusConflict {
		return started, err
	}
	changed := &ChangedError{}
	for _, f := range r.Faults {
		if f.Location == "body.digest" && json.Unmarshal(f.Value, &changed.Check) == nil {
			return started, changed
		}
	}
	if found, failed := c.Campaign(ctx, id); failed == nil && found.State == "draft" { // an edit dropped its check
		return started, changed
	}
	return started, err
}

// Change lets a campaign "pause", "resume" or "cancel". Errors: a [*Refusal].
func (c *Client) Change(ctx context.Context, id, verb string) (changed Campaign, err error) {
	return changed, c.call(ctx, http.MethodPost, campaignPath(id)+"/"+verb, nil, &changed)
}

// Refused writes the refused recipients as CSV, at most 1 GiB. It calls open, perhaps several times, for an empty writer. Errors: a
// [*Refusal]; those of open and of the writer.
func (c *Client) Refused(ctx context.Context, id string, open func() (io.Writer, error)) error {
	return c.persist(ctx, func() error {
		w, err := open()
		if err != nil {
			return localError{err}
		}
		return c.within(ctx, callTakes, func(ctx context.Context, moved func()) error {
			return c.tryOnce(ctx, http.MethodGet, campaignPath(id)+"/refused", nil, &refusedFile{w, moved})
		})
	})
}

// refusedFile is where refused rows go.
type refusedFile struct {
	w     io.Writer
	moved func()
}

func (p *refusedFile) Write(text []byte) (int, error) {
	p.moved()
	n, err := p.w.Write(text)
	if err != nil {
		err = localError{err}
	}
	return n, err
}
