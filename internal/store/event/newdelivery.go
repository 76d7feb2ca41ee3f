package event

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// target is an active webhook, with the client whose events it may want.
type target struct {
	client  puntuale.ClientID
	id      puntuale.WebhookID
	types   puntuale.EventSet
	session puntuale.SessionID
}

// ActiveWebhooks finds the active webhooks of clients and of their partners. It never sees a webhook that another
// transaction is deleting: that transaction has locked the stream, which numbering must lock first.
const ActiveWebhooks = `
select k.id, w.id, w.types, w.session_id from $u(c bigint) cross join client k cross join webhook w
where k.id = u.c and w.partner_id = k.partner_id and w.client_id in (0, k.id) and w.active = 1 order by k.id, w.id`

// DeliverRange makes deliveries for webhooks that want all events of some types. It takes the events from a range of a
// client's numbers. So the program does not need a list of the deliveries.
const DeliverRange = `
insert into delivery (webhook_id, at, client_id, seq, type, next_at)
select u.w, e.at, e.client_id, e.seq, e.type, $1::bigint from $u(w bigint, c bigint, a bigint, b bigint, t bigint) cross join outbox_event e
where e.client_id = u.c and e.seq > u.a and e.seq <= u.b and u.t & (1::bigint << e.type) <> 0`

// fanOut makes the deliveries of the new events.
func (n *numberTask) fanOut(ctx context.Context) error {
	var wide, narrow []target
	if err := n.a.Query(ctx, ActiveWebhooks, []any{clientColumn(n.served())}, func(r engine.Row) error {
		var w target
		err := r.Scan(&w.client, &w.id, &w.types, &w.session)
		if w.session == 0 {
			wide = append(wide, w)
		} else {
			narrow = append(narrow, w)
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for webhooks: %w", err)
	}
	if len(wide) > 0 {
		if err := n.a.Queue(ctx, DeliverRange, []any{engine.Micros(n.now()), engine.Columns{
			engine.Column(wide, func(w *target) int64 { return int64(w.id) }),
			engine.Column(wide, func(w *target) int64 { return int64(w.client) }),
			engine.Column(wide, func(w *target) int64 { return n.before[w.client] }),
			engine.Column(wide, func(w *target) int64 { return n.seqs[w.client] }),
			engine.Column(wide, func(w *target) int64 { return int64(w.types) }),
		}}, nil); err != nil {
			return fmt.Errorf("insert deliveries: %w", err)
		}
	}
	return n.fanOutNarrow(ctx, narrow)
}

// fanOutNarrow makes the deliveries of webhooks that want the events of only one session.
func (n *numberTask) fanOutNarrow(ctx context.Context, all []target) error {
	if len(all) == 0 {
		return nil
	}
	if err := n.findSessions(ctx); err != nil {
		return err
	}
	targets := map[puntuale.ClientID][]target{}
	for _, w := range all {
		targets[w.client] = append(targets[w.client], w)
	}
	var webhooks, at, clients, seqs, kinds []int64
	for _, f := range n.facts {
		for _, w := range targets[f.client] {
			if w.types.Has(f.kind) && w.session == f.session {
				webhooks, at, clients = append(webhooks, int64(w.id)), append(at, f.at), append(clients, int64(f.client))
				seqs, kinds = append(seqs, f.seq), append(kinds, int64(f.kind))
			}
		}
	}
	if len(webhooks) == 0 {
		return nil
	}
	if err := n.a.Queue(ctx, `insert into delivery (webhook_id, at, client_id, seq, type, next_at)
 select u.w, u.a, u.c, u.n, u.t, $1::bigint from $u(w bigint, a bigint, c bigint, n bigint, t smallint)`,
		[]any{engine.Micros(n.now()), engine.Columns{webhooks, at, clients, seqs, kinds}}, nil); err != nil {
		return fmt.Errorf("insert deliveries: %w", err)
	}
	return nil
}

// subjectTables lists the tables from which the sessions of subjects are read.
var subjectTables = []struct {
	table string
	types puntuale.EventSet
}{
	{"message", messageEvents},
	{"reply", replyEvents},
	{"campaign", puntuale.EventsOf(puntuale.EventCampaignStarted, puntuale.EventCampaignPaused, puntuale.EventCampaignDone)},
}

var (
	messageEvents = puntuale.EventsOf(puntuale.EventMessageSent, puntuale.EventMessageDelivered, puntuale.EventMessageRead, puntuale.EventMessageFailed,
		puntuale.EventMessageUncertain, puntuale.EventMessageCancelled, puntuale.EventMessageBlacklisted, puntuale.EventMessageRescheduled, puntuale.EventLinkClicked)
	replyEvents     = puntuale.EventsOf(puntuale.EventReplyReceived, puntuale.EventFileKept, puntuale.EventFileFailed)
	blacklistEvents = puntuale.EventsOf(puntuale.EventBlacklistAdded, puntuale.EventBlacklistRemoved, puntuale.EventNumberChanged) // their details name a person

	bookingEvents = puntuale.EventsOf(puntuale.EventBookingCreated, puntuale.EventBookingMoved, puntuale.EventBookingConfirmed, puntuale.EventBookingCancelled,
		puntuale.EventBookingArrived, puntuale.EventBookingNoShow, puntuale.EventBookingAnswered)
	sessionEvents = puntuale.EventsOf(puntuale.EventSessionOnline, puntuale.EventSessionOffline, puntuale.EventSessionUnlinked, puntuale.EventSessionHealth, puntuale.EventSessionRestricted)
)

// findSessions reads the sessions of the facts. For a fact without a session, such as a change of consent, the session
// is 0.
func (n *numberTask) findSessions(ctx context.Context) error {
	for _, s := range subjectTables {
		var facts []*fact
		for i := range n.facts {
			if f := &n.facts[i]; s.types.Has(f.kind) {
				facts = append(facts, f)
			}
		}
		if len(facts) == 0 {
			continue
		}
		places := make([]int64, len(facts))
		for i := range places {
			places[i] = int64(i)
		}
		if err := n.a.Query(ctx, `select u.n, m.session_id from $u(n bigint, c bigint, s bigint) cross join `+s.table+` m where m.client_id = u.c and m.id = u.s`,
			[]any{engine.Columns{places, engine.Column(facts, func(f **fact) int64 { return int64((*f).client) }),
				engine.Column(facts, func(f **fact) int64 { return (*f).subject })}}, func(r engine.Row) error {
				var i int
				var session puntuale.SessionID
				err := r.Scan(&i, &session)
				facts[i].session = session
				return err
			}); err != nil {
			return fmt.Errorf("look for the sessions of events: %w", err)
		}
	}
	for i := range n.facts {
		if f := &n.facts[i]; sessionEvents.Has(f.kind) {
			f.session = puntuale.SessionID(f.subject)
		}
	}
	return nil
}
