package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// CampaignOrder is a request to create a campaign: a sequence, a template, or content.
type CampaignOrder struct {
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

// Content is the content of one message.
type Content struct {
	Text string `json:"text"`
}

// Pace bounds how many recipients are fed in a minute.
type Pace struct {
	PerMinute int `json:"per_minute"`
}

// Campaign is a campaign with its progress.
type Campaign struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Reason  string     `json:"reason"` // why the campaign paused or ended by itself; a code
	Started *time.Time `json:"started_at"`
	Counts  Counts     `json:"counts"`
}

// Ended reports whether the campaign sends nothing more.
func (c *Campaign) Ended() bool {
	return c.State == "done" || c.State == "cancelled" || c.State == "failed"
}

// Counts contains the numbers of recipients, and of the messages to the fed recipients.
type Counts struct {
	Recipients, Refused, Waiting, Fed                  int
	Pending, Completed, Failed, Cancelled, Blacklisted int
}

// List describes a list that the server read from a file.
type List struct {
	Recipients int        `json:"recipients"`
	Columns    []Column   `json:"columns"`
	Missing    []string   `json:"missing"` // required fields that neither the list nor the campaign fills
	Preview    [][]string `json:"preview"`
}

// Column is a column of the file, and the field that it fills; "": none.
type Column struct {
	Name  string `json:"name"`
	Field string `json:"field"`
}

// Check is the report of what a start would send. Digest is "" while the check still runs.
type Check struct {
	Digest     string     `json:"digest"`
	Done       int        `json:"done"`       // recipients that the check has already checked
	Recipients int        `json:"recipients"` // equal to Done while the check runs
	Valid      int        `json:"valid"`
	Messages   int        `json:"messages"`
	Needed     int        `json:"credits_needed"`
	Left       string     `json:"credits_left"` // the client's remaining credits: a number, or a word that means unlimited
	Cost       *Cost      `json:"cost"`         // nil: the network does not bill messages
	Warnings   []Warning  `json:"warnings"`
	First      *time.Time `json:"first"`
	Last       *time.Time `json:"last"`
	Refused    []Group    `json:"refused"`
	Samples    []Sample   `json:"samples"`
	Longest    int        `json:"longest_text"` // length of the longest text, in characters
	Limit      *Limit     `json:"limit"`
}

// Cost is the cost at the network, according to the server's price table.
type Cost struct {
	Currency string `json:"currency"`
	Amount   string `json:"amount"`
	Date     string `json:"date"`    // the date of the price table
	Unknown  int    `json:"unknown"` // messages without a price, which are not in the amount
}

// Warning is a possible problem of a step. The steps are counted from 0. The campaign may start nevertheless.
type Warning struct {
	Code string `json:"code"`
	Step int    `json:"step"`
}

// Group is the number of recipients that are refused for one reason.
type Group struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Sample is the message to one recipient, as an example.
type Sample struct {
	Line  int       `json:"line"`
	Phone string    `json:"phone"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// Limit is the limit that determines when a campaign ends.
type Limit struct {
	Code      string `json:"code"`
	PerMinute int    `json:"per_minute"`
	PerDay    int    `json:"per_day"`
	Days      int    `json:"days"`
}

// ChangedError means that something changed after the check whose digest a start named. Check is the new check. If
// Check has no digest, the campaign must be checked again.
type ChangedError struct{ Check Check }

func (e *ChangedError) Error() string { return "the campaign was changed since its check" }

const campaigns = "/api/campaigns"

func campaignPath(id string) string { return campaigns + "/" + url.PathEscape(id) }

// askCampaign calls the API of campaigns, and repeats the call until there is an answer.
func (c *Client) askCampaign(ctx context.Context, method, path string, order, answer any, header ...string) error {
	return c.Repeat(ctx, func() error { return c.call(ctx, method, path, order, answer, header...) })
}

// CreateCampaign creates a draft. A repeated call with the same key returns the same draft, even from another process.
// Errors: a [*Refusal].
func (c *Client) CreateCampaign(ctx context.Context, o CampaignOrder, key string) (made Campaign, err error) {
	return made, c.askCampaign(ctx, http.MethodPost, campaigns, o, &made, "Idempotency-Key", key)
}

// Campaign returns a campaign with its progress. Errors: a [*Refusal].
func (c *Client) Campaign(ctx context.Context, id string) (found Campaign, err error) {
	return found, c.askCampaign(ctx, http.MethodGet, campaignPath(id), nil, &found)
}

// checkPause is the pause between two calls that ask for the result of a check. It is short, because the server itself
// waits before it answers.
const checkPause = 500 * time.Millisecond

// CheckCampaign starts the check of all recipients, and waits for its end. It calls report with the progress. Errors: a
// [*Refusal].
func (c *Client) CheckCampaign(ctx context.Context, id string, report func(Check)) (Check, error) {
	for {
		var found Check
		if err := c.askCampaign(ctx, http.MethodPost, campaignPath(id)+"/check", nil, &found); err != nil || found.Digest != "" {
			return found, err
		}
		report(found)
		if err := c.clock.Sleep(ctx, checkPause); err != nil {
			return found, err
		}
	}
}

// StartCampaign starts exactly what the check with this digest showed. Errors: a [*ChangedError]; a [*Refusal].
func (c *Client) StartCampaign(ctx context.Context, id, digest string) (started Campaign, err error) {
	err = c.askCampaign(ctx, http.MethodPost, campaignPath(id)+"/start", map[string]string{"digest": digest}, &started)
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
	if found, failed := c.Campaign(ctx, id); failed == nil && found.State == "draft" { // an edit removed the check
		return started, changed
	}
	return started, err
}

// ChangeCampaign pauses, resumes or cancels a campaign. verb is "pause", "resume" or "cancel". Errors: a [*Refusal].
func (c *Client) ChangeCampaign(ctx context.Context, id, verb string) (changed Campaign, err error) {
	return changed, c.askCampaign(ctx, http.MethodPost, campaignPath(id)+"/"+verb, nil, &changed)
}

// RefusedRows writes the refused recipients as CSV, at most 1 GiB. It calls open for an empty writer before each try.
// Errors: a [*Refusal]; errors of open and of the writer.
func (c *Client) RefusedRows(ctx context.Context, id string, open func() (io.Writer, error)) error {
	return c.Repeat(ctx, func() error {
		w, err := open()
		if err != nil {
			return finalError{err}
		}
		return c.within(ctx, c.timing.call, func(ctx context.Context, moved func()) error {
			return c.send(ctx, http.MethodGet, campaignPath(id)+"/refused", nil, &refusedFile{w, moved})
		})
	})
}

// refusedFile is the destination of refused rows.
type refusedFile struct {
	w     io.Writer
	moved func()
}

func (p *refusedFile) Write(text []byte) (int, error) {
	p.moved()
	n, err := p.w.Write(text)
	if err != nil {
		err = finalError{err}
	}
	return n, err
}
