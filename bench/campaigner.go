package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// campaigner makes campaigns of one client through a server's API. At the same time, it makes start calls of all
// clients. It uses the database only to see the progress of a campaign.
type campaigner struct {
	*fixture
	server *server
	db     *sql.DB
	client client
	http   *http.Client

	called int // how many start calls the campaigner has made
}

// campaignDraft contains the content of a campaign: a sequence, or one text.
type campaignDraft struct {
	Name     string        `json:"name"`
	Sequence string        `json:"sequence,omitempty"`
	Content  *campaignText `json:"content,omitempty"`
	Canary   int           `json:"canary"` // 0: there is no canary
}

type campaignText struct {
	Text string `json:"text"`
}

// call sends a request to the API and decodes the JSON of the response into answer. The body is a value to encode as
// JSON, or a reader.
func (c *campaigner) call(ctx context.Context, method, path string, body, answer any) error {
	kind := "application/json"
	from, streams := body.(io.Reader)
	if streams {
		kind = "text/csv"
	} else if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		from = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.server.address+path, from)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.client.key)
	if body != nil {
		request.Header.Set("Content-Type", kind)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// sequence makes a sequence with the given number of messages. The first message leaves a day after the start.
func (c *campaigner) sequence(ctx context.Context, steps int) (id string, err error) {
	body := map[string]any{"name": "Campagna"}
	var all []any
	for i := range steps {
		all = append(all, map[string]any{"text": sampleText + " {{nome}}",
			"timing": map[string]any{"anchor": "start", "offset": map[string]any{"amount": i + 1, "unit": "days", "direction": "after"}}})
	}
	body["steps"] = all
	var made struct{ ID string }
	err = c.call(ctx, "POST", "/api/sequences", body, &made)
	return made.ID, err
}

func (c *campaigner) draft(ctx context.Context, d campaignDraft) (id string, err error) {
	var made struct{ ID string }
	err = c.call(ctx, "POST", "/api/campaigns", d, &made)
	return made.ID, err
}

// upload uploads a list of n recipients, each with its own number and name. No number has an ending for which the
// simulated network fails.
func (c *campaigner) upload(ctx context.Context, id string, n int) error {
	file, w := io.Pipe()
	go func() {
		lines := []byte("telefono;nome\n")
		for i := range n {
			if lines = fmt.Appendf(lines, "+39333%03d%04d;Maria %d\n", i/9000, i%9000, i); len(lines) > 32<<10 || i == n-1 {
				if _, err := w.Write(lines); err != nil {
					return // the server answered before it read everything
				}
				lines = lines[:0]
			}
		}
		w.Close()
	}()
	defer file.Close()
	return c.call(ctx, "PUT", "/api/campaigns/"+id+"/recipients", file, nil)
}

// check starts the campaign's check, and polls until the check has ended.
func (c *campaigner) check(ctx context.Context, id string) (digest string, err error) {
	for digest == "" && err == nil {
		var found struct{ Digest string }
		err = c.call(ctx, "POST", "/api/campaigns/"+id+"/check", nil, &found)
		digest = found.Digest
	}
	return digest, err
}

// ready makes a campaign with a finished check, so that only the start remains.
func (c *campaigner) ready(ctx context.Context, d campaignDraft, recipients int) (id, digest string, err error) {
	if id, err = c.draft(ctx, d); err == nil {
		err = c.upload(ctx, id, recipients)
	}
	if err == nil {
		digest, err = c.check(ctx, id)
	}
	return id, digest, err
}

func (c *campaigner) start(ctx context.Context, id, digest string) error {
	return c.call(ctx, "POST", "/api/campaigns/"+id+"/start", map[string]string{"digest": digest}, nil)
}

// feedLook is the time between two queries of a campaign's progress in the database. The bench does not use the API for
// this, because the API counts the campaign's messages each time, which takes long.
const feedLook = 20 * time.Millisecond

// await waits until reached returns true for one of the campaign's counts.
func (c *campaigner) await(ctx context.Context, id, column string, reached func(int) bool) error {
	for {
		n, err := c.count(ctx, "select "+column+" from campaign_feed where campaign_id = "+id)
		if err != nil || reached(n) {
			return err
		}
		if err := pass(ctx, feedLook); err != nil {
			return err
		}
	}
}

func (c *campaigner) count(ctx context.Context, query string) (n int, err error) {
	if err := c.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// stopsGrowing returns the time at which the last message came to the simulated network's ledger. It returns when
// nothing has come for a second and no attempt is in flight.
func (c *campaigner) stopsGrowing(ctx context.Context, id string) (last time.Time, err error) {
	last = time.Now()
	seen := -1
	for time.Since(last) < time.Second {
		n, err := c.count(ctx, "select coalesce(max(seq), 0) from sandbox_message")
		if err != nil {
			return last, err
		}
		if now := time.Now(); seen >= 0 && n != seen {
			last = now
		}
		seen = n
		if err := pass(ctx, 2*time.Millisecond); err != nil {
			return last, err
		}
	}
	open, err := c.count(ctx, "select count(*) from message where campaign_id = "+id+" and intent > 0")
	if err == nil && open > 0 {
		err = fmt.Errorf("%d messages are still on their way", open)
	}
	return last, err
}

const (
	callRate    = 200 // how many start calls begin in a second
	callCallers = 16
)

// callsDuring makes start calls of three messages at a steady rate while the function do runs, and returns how long
// each call took. If no connection is free, the call waits, and its time includes the wait.
func (c *campaigner) callsDuring(ctx context.Context, do func() error) (*delays, error) {
	open := make([]*caller, callCallers)
	for i := range open {
		conn, err := dial(c.server.address)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		open[i] = conn
	}
	var took delays
	var isOver atomic.Bool
	ended := make(chan error, 1)
	first := c.called
	from := time.Now()
	const unlimited = 1 << 30 // more calls than the bench ever makes; the calls stop when the function do has returned
	go func() {
		_, err := each(unlimited, callCallers, func(worker, i int) error {
			due := from.Add(time.Duration(i) * time.Second / callRate)
			time.Sleep(time.Until(due))
			if isOver.Load() {
				return errOver
			}
			begun := time.Now()
			if late := begun.Sub(due); late > 5*time.Millisecond { // the timer's own delay must not count as a delay of the server
				begun = due
			}
			to := c.clients[i%len(c.clients)]
			err := open[worker].post("/api/start/"+to.sequence.String(), to.key, "", fmt.Appendf(nil, `{"phone":"+39347%07d","nome":"Maria"}`, first+i))
			took.add(time.Since(begun))
			return err
		})
		if errors.Is(err, errOver) {
			err = nil
		}
		ended <- err
	}()
	err := do()
	isOver.Store(true)
	err = errors.Join(err, <-ended)
	c.called += len(took.all)
	return &took, err
}

// errOver ends the calls of callsDuring after its function do has returned.
var errOver = errors.New("it is over")
