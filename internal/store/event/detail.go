package event

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/queue"
)

// SubjectMessages reads the messages that are the subjects of events, without their texts.
const SubjectMessages = `
select u.n, m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at, abs(m.valid_until), m.intent, m.intent_at,
 m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail, m.resent_from, m.outcome <> 0, m.purpose, m.campaign_id,
 r.sequence_id, r.received_at, r.name, r.reference, r.client_name, r.sequence_name, r.zone, r.blanked_at <> 0,
 coalesce(g.sent_at, 0), coalesce(g.failed_at, 0), coalesce(g.delivered_at, 0), coalesce(g.read_at, 0)
from $u(n bigint, c bigint, s bigint) cross join message m cross join run r
 left join receipt g on g.client_id = m.client_id and g.message_id = m.id
where m.client_id = u.c and m.id = u.s and r.client_id = m.client_id and r.id = m.run_id`

const (
	subjectReplies = `
select u.n, y.id, y.session_id, y.phone, y.at, y.own, y.kind, y.text, y.media, y.run_id, case when y.answer > 0 then y.answer + 3 else y.effect end, y.read_at, y.blanked_at <> 0, y.payload, y.button, y.in_reply_to, ` + file.KeptColumn + `
from $u(n bigint, c bigint, s bigint) cross join reply y where y.client_id = u.c and y.id = u.s`

	subjectConsents = `
select u.n, c.id, c.phone, c.purpose, c.change, c.source, c.words, c.message, c.by_whom, c.at, c.entered_at, c.applied
from $u(n bigint, c bigint, s bigint) cross join consent c where c.client_id = u.c and c.id = u.s`
	subjectBookings = `
select u.n, b.id, b.reference, b.phone from $u(n bigint, c bigint, s bigint) cross join booking b where b.client_id = u.c and b.id = u.s and b.erased_at = 0`
)

// fill reads the events' subjects into the events.
func (s *Events) fill(ctx context.Context, q engine.Querier, all []*puntuale.Event) error {
	for _, kind := range []struct {
		types puntuale.EventSet
		text  string
		scan  func(r engine.Row, n *int, next func() *puntuale.Event) error
	}{
		{messageEvents, SubjectMessages, scanMessage},
		{replyEvents, subjectReplies, scanReply},
		{puntuale.EventsOf(puntuale.EventConsentChanged), subjectConsents, scanConsent},
		{bookingEvents, subjectBookings, scanBooking},
	} {
		var events []*puntuale.Event
		for _, e := range all {
			if kind.types.Has(e.Type) {
				events = append(events, e)
			}
		}
		if len(events) == 0 {
			continue
		}
		places := make([]int64, len(events))
		for i := range places {
			places[i] = int64(i)
		}
		var n int
		if err := q.Query(ctx, kind.text, []any{engine.Columns{
			places,
			engine.Column(events, func(e **puntuale.Event) int64 { return int64((*e).Client) }),
			engine.Column(events, func(e **puntuale.Event) int64 { return (*e).Subject }),
		}}, func(r engine.Row) error { return kind.scan(r, &n, func() *puntuale.Event { return events[n] }) }); err != nil {
			return fmt.Errorf("read what events tell of: %w", err)
		}
	}
	return nil
}

func scanMessage(r engine.Row, n *int, next func() *puntuale.Event) error {
	m := &puntuale.MessageDetail{}
	err := r.Scan(n, &m.Client, &m.ID, &m.Session, &m.Run, &m.Step, queue.ScanOrigin(&m.Origin), &m.Phone, engine.ScanTime(&m.Desired), engine.ScanTime(&m.Due),
		engine.ScanTime(&m.Next), engine.ScanTime(&m.ValidUntil), &m.Intent, engine.ScanTime(&m.IntentAt), &m.Attempt, &m.Repeats, &m.Generation, &m.State,
		engine.ScanTime(&m.Done), engine.ScanReason(&m.Reason), engine.ScanReason(&m.Detail), &m.ResentFrom, &m.Ended, &m.Purpose, &m.Campaign,
		&m.Sequence, engine.ScanTime(&m.Received), &m.RunName, &m.Reference, &m.ClientName, &m.SequenceName, &m.Zone, &m.Blanked,
		engine.ScanTime(&m.Departed), engine.ScanTime(&m.GivenUp), engine.ScanTime(&m.Delivered), engine.ScanTime(&m.Read))
	if err == nil {
		next().Message = m
	}
	return err
}

func scanReply(r engine.Row, n *int, next func() *puntuale.Event) error {
	y := &puntuale.Reply{}
	err := r.Scan(n, &y.ID, &y.Session, &y.Phone, engine.ScanTime(&y.At), engine.ScanBool(&y.Own), &y.Kind, &y.Text, engine.ScanOptionalJSON(&y.Media), &y.Run, &y.Effect, engine.ScanTime(&y.Read), &y.Blanked, &y.Payload, &y.Button, &y.InReplyTo, engine.ScanOptionalJSON(&y.Kept))
	if err == nil {
		next().Reply = y
	}
	return err
}

func scanConsent(r engine.Row, n *int, next func() *puntuale.Event) error {
	c := &puntuale.Consent{}
	err := r.Scan(n, &c.ID, &c.Phone, &c.Purpose, &c.Change, &c.Source, &c.Words, &c.Message, &c.EnteredBy, engine.ScanTime(&c.At), engine.ScanTime(&c.Entered), engine.ScanBool(&c.Applied))
	if c.Erased = strings.HasPrefix(c.Phone, puntuale.MarkPrefix); c.Erased {
		c.Phone = ""
	}
	if err == nil {
		next().Consent = c
	}
	return err
}

func scanBooking(r engine.Row, n *int, next func() *puntuale.Event) error {
	b := &puntuale.Booking{}
	err := r.Scan(n, &b.ID, &b.Reference, &b.Phone)
	if err == nil {
		next().Booking = b
	}
	return err
}

// tell reads the subjects for a page of the feed. If the subjects' texts are long, it ends the page early.
func (s ClientEvents) tell(ctx context.Context, all []puntuale.Event, next int64) ([]puntuale.Event, int64, error) {
	refs := make([]*puntuale.Event, len(all))
	for i := range refs {
		refs[i] = &all[i]
	}
	if err := s.fill(ctx, s.db.CallReads, refs); err != nil {
		return nil, 0, engine.PublicError(err)
	}
	sum := 0
	for i, e := range all {
		if e.Reply == nil {
			continue
		}
		if sum += len(e.Reply.Text); sum > engine.PageBytes && i > 0 {
			return all[:i], all[i-1].Seq, engine.TakeMemory(ctx, 0, sum)
		}
	}
	return all, next, engine.TakeMemory(ctx, 0, sum)
}
