package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/link"
	"puntuale/internal/store/queue"
)

// answerBytes limits the bytes of stored requests and contents in one answer. Each message of an answer may have a
// different stored request of up to 1 MiB. A request counts again for each message, because the answer repeats the
// request.
const answerBytes = 2 * engine.PageBytes

// detailColumns leaves out the long columns of runs. They are read later, once for all messages of a run. A negative
// valid_until means that the message was stopped in flight (queue.CancelMessages).
const detailColumns = `m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 abs(m.valid_until), m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, r.blanked_at <> 0,
 octet_length(r.request), octet_length(r.content), coalesce(g.delivered_at, 0), coalesce(g.read_at, 0),
 coalesce(g.sent_at, 0), coalesce(g.failed_at, 0), m.outcome <> 0, m.purpose, r.reference, r.sequence_id, m.campaign_id`

// detailReceipts joins the receipts of messages. Most messages have none.
const detailReceipts = ` left join receipt g on g.client_id = m.client_id and g.message_id = m.id`

// A cross join makes SQLite read the tables in the written order. Otherwise it may read all runs of the client.
const (
	messageDetails = `
select ` + detailColumns + `
from $u(i bigint) cross join message m cross join run r` + detailReceipts + `
where m.client_id = $1 and m.id = u.i and r.client_id = m.client_id and r.id = m.run_id`
	runContents = ` from $u(i bigint) cross join run r where r.client_id = $1 and r.id = u.i`
)

// details are messages without their long columns, which are read later.
type details struct {
	all              []puntuale.MessageDetail
	request, content []int // for each message, the length of its request and of its content, in bytes
}

func (d *details) scan(rows engine.Row) error {
	var m puntuale.MessageDetail
	var request, content int
	err := rows.Scan(&m.Client, &m.ID, &m.Session, &m.Run, &m.Step, queue.ScanOrigin(&m.Origin), &m.Phone, engine.ScanTime(&m.Desired),
		engine.ScanTime(&m.Due), engine.ScanTime(&m.Next), engine.ScanTime(&m.ValidUntil), &m.Intent, engine.ScanTime(&m.IntentAt), &m.Attempt, &m.Repeats,
		&m.Generation, &m.State, engine.ScanTime(&m.Done), engine.ScanReason(&m.Reason), engine.ScanReason(&m.Detail), &m.ResentFrom, engine.ScanTime(&m.Received), &m.RunName,
		&m.ClientName, &m.SequenceName, &m.Zone, &m.Blanked, &request, &content,
		engine.ScanTime(&m.Delivered), engine.ScanTime(&m.Read), engine.ScanTime(&m.Departed), engine.ScanTime(&m.GivenUp), &m.Ended, &m.Purpose, &m.Reference, &m.Sequence, &m.Campaign)
	d.all, d.request, d.content = append(d.all, m), append(d.request, request), append(d.content, content)
	return err
}

// fit returns how many of the messages, from the first on, fit into one answer. It returns at least 1. It also returns
// the total bytes of their requests and contents.
func (d *details) fit() (n, bytes int) {
	seen := map[puntuale.RunID]bool{}
	for i := range d.all {
		more := d.request[i]
		if run := d.all[i].Run; !seen[run] {
			seen[run] = true
			more += d.content[i]
		}
		if bytes+more > answerBytes && i > 0 {
			return i, bytes
		}
		bytes += more
	}
	return len(d.all), bytes
}

const faultMessageRequestsTooLong puntuale.ReasonCode = "message.requests_too_long"

// Details returns the messages with the given ids, in the order of the ids. It leaves out ids without a message. If
// an id is given twice, its message comes once. Messages of one run share the bytes of their Request. Codes:
// invalid, at query.message_ids, if the answer would be longer than 8 MiB.
func (t tenant) Details(ctx context.Context, ids []puntuale.MessageID) ([]puntuale.MessageDetail, error) {
	d, err := t.details(ctx, ids)
	if err != nil {
		return nil, err
	}
	n, bytes := d.fit()
	if n < len(d.all) {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "query.message_ids",
			Code: faultMessageRequestsTooLong, Args: []string{strconv.Itoa(n)}})
	}
	if err := engine.TakeMemory(ctx, n, bytes); err != nil {
		return nil, err
	}
	all := inOrder(d.all, ids)
	if err := t.fill(ctx, all); err != nil {
		return all, err
	}
	return all, link.OfMessages(ctx, t.s.CallReads, t.id, all)
}

// Outlines is Details without Content and Request. Its answer has no limit in bytes.
func (t tenant) Outlines(ctx context.Context, ids []puntuale.MessageID) ([]puntuale.MessageDetail, error) {
	d, err := t.details(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := inOrder(d.all, ids)
	// Read the runs one at a time, and keep only the windows and validities of their steps.
	return all, t.eachRun(ctx, all, `select r.id, r.content, null`+runContents+` and (r.content like '%"window":%' or r.content like '%"validity":%')`, func(content string, _ []byte, messages []*puntuale.MessageDetail) error {
		var steps []struct {
			Window   *puntuale.Window `json:"window"`
			Validity time.Duration    `json:"validity"`
		}
		if err := json.Unmarshal([]byte(content), &steps); err != nil {
			return fmt.Errorf("read the windows of a run: %w", err)
		}
		for _, m := range messages {
			if m.Step < 0 || m.Step >= len(steps) {
				return queue.ErrStep(m, len(steps))
			}
			m.Window, m.Validity = steps[m.Step].Window, steps[m.Step].Validity
		}
		return nil
	})
}

func (t tenant) details(ctx context.Context, ids []puntuale.MessageID) (*details, error) {
	placesOf := engine.Column(ids, func(id *puntuale.MessageID) int64 { return int64(*id) })
	slices.Sort(placesOf)
	d := &details{}
	if err := t.s.CallReads.Query(ctx, messageDetails, []any{t.id, engine.Columns{slices.Compact(placesOf)}}, d.scan); err != nil {
		return nil, engine.PublicError(fmt.Errorf("read messages: %w", err))
	}
	return d, nil
}

// inOrder returns the messages of all in the order in which ids lists them, each only once.
func inOrder(all []puntuale.MessageDetail, ids []puntuale.MessageID) []puntuale.MessageDetail {
	found := make(map[puntuale.MessageID]*puntuale.MessageDetail, len(all))
	for i := range all {
		found[all[i].ID] = &all[i]
	}
	sorted := make([]puntuale.MessageDetail, 0, len(found))
	for _, id := range ids {
		if m, ok := found[id]; ok {
			sorted = append(sorted, *m)
			delete(found, id)
		}
	}
	return sorted
}

// fill reads the long columns. All messages of a run share one request.
func (t tenant) fill(ctx context.Context, all []puntuale.MessageDetail) error {
	if err := t.eachRun(ctx, all, `select r.id, r.content, r.request`+runContents,
		func(content string, request []byte, messages []*puntuale.MessageDetail) error {
			var steps []puntuale.FrozenStep
			if err := json.Unmarshal([]byte(content), &steps); err != nil {
				return fmt.Errorf("read the steps of a run: %w", err)
			}
			for _, m := range messages {
				if m.Blanked = m.Blanked || len(steps) == 0; m.Blanked { // the content may have been removed since the message was read
					continue
				}
				if m.Step < 0 || m.Step >= len(steps) {
					return queue.ErrStep(m, len(steps))
				}
				m.OfSequence, m.Variant = steps[m.Step].Step, int(steps[m.Step].Variant)
				m.Content, m.Window, m.Validity, m.Request = steps[m.Step].Content, steps[m.Step].Window, steps[m.Step].Validity, request
			}
			return nil
		}); err != nil {
		return err
	}
	return t.campaignVariants(ctx, all)
}

// campaignVariants sets the variants of messages of campaigns without a sequence: there each text is a step.
func (t tenant) campaignVariants(ctx context.Context, all []puntuale.MessageDetail) error {
	var ids []int64
	for i := range all {
		if m := &all[i]; m.Campaign != 0 && m.Sequence == 0 && !m.Blanked {
			ids = append(ids, int64(m.Campaign))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	varied, err := engine.QueryAll(ctx, t.s.CallReads, `select c.id from $u(i bigint) cross join campaign c where c.client_id = $1 and c.id = u.i and c.draft like '%"shares":[%'`,
		[]any{t.id, engine.Columns{slices.Compact(ids)}}, engine.ScanOne[puntuale.CampaignID])
	if err != nil {
		return engine.PublicError(fmt.Errorf("read which campaigns have several texts: %w", err))
	}
	for i := range all {
		if m := &all[i]; m.Sequence == 0 && !m.Blanked && slices.Contains(varied, m.Campaign) {
			m.Variant = m.OfSequence + 1
		}
	}
	return nil
}

// eachRun reads the runs of the messages. The argument text is the SQL statement that selects the runs. eachRun calls the
// function use for each selected run, with the messages of this run.
func (t tenant) eachRun(ctx context.Context, all []puntuale.MessageDetail, text string,
	use func(content string, request []byte, messages []*puntuale.MessageDetail) error,
) error {
	if len(all) == 0 {
		return nil
	}
	ofRun := map[int64][]*puntuale.MessageDetail{}
	var runs []int64
	for i := range all {
		run := int64(all[i].Run)
		if ofRun[run] == nil {
			runs = append(runs, run)
		}
		ofRun[run] = append(ofRun[run], &all[i])
	}
	if err := t.s.CallReads.Query(ctx, text, []any{t.id, engine.Columns{runs}}, func(rows engine.Row) error {
		var run int64
		var content string
		var request []byte
		if err := rows.Scan(&run, &content, &request); err != nil {
			return err
		}
		return use(content, request, ofRun[run])
	}); err != nil {
		return engine.PublicError(fmt.Errorf("read the runs of messages: %w", err))
	}
	return nil
}
