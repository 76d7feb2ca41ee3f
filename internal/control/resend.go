package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// ResendCall is a request to resend messages.
type ResendCall struct {
	IDs    []string
	Date   string // YYYY-MM-DD, in the client's zone; "": now
	Time   string // HH:MM, only with Date; "": each message's own time of day
	Faults []puntuale.Fault
	Once   Once[puntuale.ResendResult]

	unknown bool // true: the messages are unknown, because of a restore
}

// Resend resends messages, all or none. The call counts once in the client's usage. For each message, Resend schedules
// one new message, in the order of the ids. An id that is listed twice counts once. Codes: not_found, with each unknown
// id; invalid; conflict, with each message that was resent before or is in flight; cap_reached, forbidden. If Resend
// returns an error, nothing is scheduled or counted.
func (c *Client) Resend(ctx context.Context, call ResendCall) (puntuale.ResendResult, error) {
	if err := c.MayCreate(); err != nil {
		return puntuale.ResendResult{}, err
	}
	f := request.Faults(call.Faults)
	once, clash, err := call.Once.Begin(ctx, c.tenant, &f)
	if err != nil {
		return puntuale.ResendResult{}, err
	}
	found, places, err := c.named(ctx, &f, call.IDs)
	if err != nil {
		return puntuale.ResendResult{}, err
	}
	zone, err := c.zone()
	if err != nil {
		return puntuale.ResendResult{}, err
	}
	now := c.control.clock.Now()
	moments := call.moments(&f, now, zone)
	if err := f.Err(); err != nil {
		return puntuale.ResendResult{}, err
	}
	if clash != nil {
		return puntuale.ResendResult{}, clash
	}
	result := func(stored any) puntuale.ResendResult {
		r, _ := stored.(puntuale.ResendResult)
		return r
	}
	r := puntuale.Resend{Day: puntuale.DateOf(now.In(zone)), Now: now, Idempotency: once.Keep(result), Unknown: call.unknown}
	for i := range found {
		loc, err := c.control.zones.Load(found[i].Zone)
		if err != nil {
			loc = zone // data of an older version may contain an unknown zone
		}
		m := moments.momentsOf(&found[i], loc)
		if !f.At("body.date") {
			f.Horizon("body.date", m.Due, now)
		}
		r.Messages = append(r.Messages, m)
	}
	if err := f.Err(); err != nil {
		return puntuale.ResendResult{}, err
	}
	resent, err := c.tenant.Resend(ctx, r)
	if err != nil {
		err = untilMidnight(placed(err, places), request.Midnight(r.Day, zone).Sub(now))
		return puntuale.ResendResult{}, fmt.Errorf("send messages again: %w", err)
	}
	for i, m := range r.Messages {
		c.control.wakeup(found[i].Session, m.Due)
	}
	return resent, nil
}

// resendMoments contains the data from which the new times of resent messages are computed.
type resendMoments struct {
	now  time.Time
	zone *time.Location
	day  puntuale.Date  // zero: the messages leave now
	at   *time.Duration // the time of day; nil: the message's own time of day
}

// Codes of the faults that this file reports.
const (
	faultBeforeToday         puntuale.ReasonCode = "fault.before_today"
	faultNotTime             puntuale.ReasonCode = "fault.not_time"
	faultMessageGoesWithDate puntuale.ReasonCode = "message.goes_with_date"
	faultMessageNoneNamed    puntuale.ReasonCode = "message.none_named"
	faultMessageNotOfClient  puntuale.ReasonCode = "message.not_of_client"
)

func (call ResendCall) moments(f *request.Faults, now time.Time, zone *time.Location) resendMoments {
	m := resendMoments{now: now, zone: zone}
	call.Date, call.Time = strings.TrimSpace(call.Date), strings.TrimSpace(call.Time)
	if call.Time != "" {
		at, err := puntuale.ParseTimeOfDay(call.Time)
		if err != nil {
			f.Add("body.time", faultNotTime, call.Time)
		}
		if m.at = &at; call.Date == "" {
			f.Add("body.time", faultMessageGoesWithDate, call.Time)
		}
	}
	if call.Date == "" {
		return m
	}
	day, err := puntuale.ParseDate(call.Date)
	today := puntuale.DateOf(now.In(zone))
	switch {
	case err != nil:
		f.Add("body.date", puntuale.FaultNotDay, call.Date)
	case day.Before(today):
		f.Add("body.date", faultBeforeToday, call.Date)
	case day.At(0, zone).After(now.AddDate(puntuale.HorizonYears, 0, 0)):
		f.Horizon("body.date", day.At(0, zone), now)
	case m.at != nil && day.At(*m.at, zone).Before(now.Add(-puntuale.PastGrace)):
		f.Add("body.time", puntuale.FaultHasPassed, call.Time)
	}
	m.day = day
	return m
}

// momentsOf returns the new times of one message. They are inside the message's window, in the zone of its run. The
// message is valid for as long as the one that it replaces.
func (m resendMoments) momentsOf(d *puntuale.MessageDetail, loc *time.Location) puntuale.ResendMessage {
	r := puntuale.ResendMessage{ID: d.ID, Due: m.now}
	if !m.day.IsZero() {
		at := request.TimeOfDay(d.Due.In(m.zone))
		if m.at != nil {
			at = *m.at
		}
		if r.Desired = m.day.At(at, m.zone); r.Desired.After(m.now) {
			r.Due = r.Desired
		} else {
			r.Desired = m.now
		}
	}
	if due, ok := d.Window.Next(r.Due, loc); ok {
		r.Due = due
	}
	r.ValidUntil = d.Deadline(r.Due)
	return r
}

// CancelMessages cancels the given messages that have not left yet, and returns only these. The call counts in the
// client's usage, but the daily cap never refuses it. found contains the faults that the calling package already found
// in the request. Codes: not_found, with each unknown id; invalid. If it returns an error, nothing is cancelled.
func (c *Client) CancelMessages(ctx context.Context, ids []string, found ...puntuale.Fault) ([]puntuale.CancelledMessage, error) {
	f := request.Faults(found)
	messages, places, err := c.named(ctx, &f, ids)
	if err != nil {
		return nil, err
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return nil, err
	}
	wanted := make([]puntuale.MessageID, len(messages))
	for i := range messages {
		wanted[i] = messages[i].ID
	}
	cancelled, err := c.tenant.CancelMessages(ctx, wanted, day, now)
	if err != nil {
		return nil, fmt.Errorf("cancel messages: %w", placed(err, places))
	}
	return cancelled, nil
}

// named reads the messages in a request's list of ids, each message once, in the order of the list. The messages are
// without content and request. places are their positions in the list. Codes: not_found, with each id that is not one
// of the client's messages.
func (c *Client) named(ctx context.Context, f *request.Faults, ids []string) (found []puntuale.MessageDetail, places []int, err error) {
	const location = "body.id"
	switch {
	case len(ids) == 0 && !f.At(location):
		f.Add(location, faultMessageNoneNamed, nil)
	case !f.Entries(location, len(ids), puntuale.MaxRequestIDs):
		return nil, nil, nil
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	wanted := make([]puntuale.MessageID, len(ids))
	for i, text := range ids {
		wanted[i], _ = puntuale.ParseID[puntuale.MessageID](text) // a text that is not an id becomes 0, which finds no message
	}
	rows, err := c.tenant.Outlines(ctx, wanted)
	if err != nil {
		return nil, nil, fmt.Errorf("read messages: %w", err)
	}
	byID := make(map[puntuale.MessageID]*puntuale.MessageDetail, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	missing := puntuale.NotFound(puntuale.NoMessage)
	seen := map[puntuale.MessageID]bool{}
	for i, id := range wanted {
		m := byID[id]
		if m == nil {
			missing.Faults = append(missing.Faults, puntuale.Fault{Location: request.At(location, i), Code: faultMessageNotOfClient})
			continue
		}
		if !seen[id] {
			seen[id] = true
			found, places = append(found, *m), append(places, i)
		}
	}
	if len(missing.Faults) > 0 {
		return nil, nil, missing
	}
	return found, places, nil
}

// placed changes the positions in an error of the store. The store's positions are in a list without repetitions.
// placed replaces them by the positions in the request.
func placed(err error, places []int) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Faults = make([]puntuale.Fault, len(e.Faults))
	for i, f := range e.Faults {
		for j, place := range places {
			if f.Location == request.At("body.id", j) {
				f.Location = request.At("body.id", place)
				break
			}
		}
		moved.Faults[i] = f
	}
	return &moved
}
