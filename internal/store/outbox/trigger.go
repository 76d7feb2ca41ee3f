package outbox

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// triggering contains the events that may trigger automations.
var triggering = puntuale.EventsOf(puntuale.EventReplyReceived, puntuale.EventMessageSent, puntuale.EventMessageFailed, puntuale.EventMessageRead, puntuale.EventLinkClicked)

// writeTriggers writes a trigger row for each fact that an active automation of the client waits for. A message
// triggers only automations that contain its sequence. A reply triggers every automation that waits for replies.
const writeTriggers = `
insert into automation_trigger (client_id, kind, subject, at, next_at)
select u.c, u.t, u.s, $1::bigint, $1::bigint from $u(c bigint, t smallint, s bigint) cross join automation_client w
where w.client_id = u.c and w.wanted & (1::bigint << u.t) <> 0
 and (u.t = 8 or exists (select 1 from message m cross join run r cross join automation a where m.client_id = u.c and m.id = u.s
 and r.client_id = m.client_id and r.id = m.run_id and r.sequence_id <> 0
 and a.client_id = r.client_id and a.sequence_id = r.sequence_id and a.active = 1 and a.wants & (1::bigint << u.t) <> 0))`

// trigger writes trigger rows for facts, in the transaction that makes the facts true.
func trigger(ctx context.Context, a engine.Querier, at time.Time, facts []Fact) error {
	some := make([]*Fact, 0, len(facts))
	for i := range facts {
		if triggering.Has(facts[i].Type) {
			some = append(some, &facts[i])
		}
	}
	if len(some) == 0 {
		return nil
	}
	if err := a.Queue(ctx, writeTriggers, []any{engine.Micros(at), engine.Columns{
		engine.Column(some, func(f **Fact) int64 { return int64((*f).Client) }),
		engine.Column(some, func(f **Fact) int64 { return int64((*f).Type) }),
		engine.Column(some, func(f **Fact) int64 { return (*f).Subject }),
	}}, nil); err != nil {
		return fmt.Errorf("write triggers: %w", err)
	}
	return nil
}

// writeBookingTriggers writes a trigger row for each fact about a booking that an active automation of the client waits
// for.
const writeBookingTriggers = `
insert into automation_trigger (client_id, kind, subject, detail, occurrence, at, next_at)
select u.c, u.t, u.s, u.d, u.o, $1::bigint, $1::bigint from $u(c bigint, t smallint, s bigint, d text, o text) cross join automation_client w
where w.client_id = u.c and w.wanted & (1::bigint << u.t) <> 0`

// triggerBooked writes trigger rows for facts about bookings. The rows contain no data of the person: a runner reads the
// booking when it takes the row.
func triggerBooked(ctx context.Context, a engine.Querier, at time.Time, facts []Fact) error {
	some := make([]*Fact, 0, len(facts))
	for i := range facts {
		if f := &facts[i]; f.Occurrence != "" && puntuale.TriggerFact(f.Type).OfBooking() {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		return nil
	}
	if err := a.Queue(ctx, writeBookingTriggers, []any{engine.Micros(at), engine.Columns{
		engine.Column(some, func(f **Fact) int64 { return int64((*f).Client) }),
		engine.Column(some, func(f **Fact) int64 { return int64((*f).Type) }),
		engine.Column(some, func(f **Fact) int64 { return (*f).Subject }),
		engine.Column(some, func(f **Fact) string { return depthDetail((*f).Depth) }),
		engine.Column(some, func(f **Fact) string { return (*f).Occurrence }),
	}}, nil); err != nil {
		return fmt.Errorf("write triggers of bookings: %w", err)
	}
	return nil
}

// DepthMember is the member of a trigger row's detail that contains the depth of a change of a booking.
const DepthMember = "depth"

// depthDetail returns the detail of a trigger row, a JSON object of texts.
func depthDetail(depth int) string {
	if depth == 0 {
		return ""
	}
	return `{"` + DepthMember + `":"` + strconv.Itoa(depth) + `"}`
}

// touchContacts writes a trigger row for each changed contact if an automation of the client waits for a date.
const touchContacts = `
insert into automation_trigger (client_id, kind, subject, at, next_at)
select w.client_id, 40, u.i, $2::bigint, $2::bigint from $u(i bigint) cross join automation_client w
where w.client_id = $1 and w.wanted & (1::bigint << 40) <> 0`

// TouchContacts writes trigger rows for contacts, in the transaction that changes or deletes these contacts.
func TouchContacts(ctx context.Context, a engine.Querier, client puntuale.ClientID, at time.Time, ids []puntuale.ContactID) error {
	var one int
	if found, err := engine.QueryOne(ctx, a, `select 1 from automation_client where client_id = $1`, []any{client}, &one); err != nil || !found {
		return err
	}
	if _, err := a.Exec(ctx, touchContacts, client, engine.Micros(at), engine.Columns{
		engine.Column(ids, func(id *puntuale.ContactID) int64 { return int64(*id) }),
	}); err != nil {
		return fmt.Errorf("write triggers of contacts: %w", err)
	}
	return nil
}
