package automation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// TakeDue takes due triggers for the node $4, except those of the clients in the batch: it sets their next_at to the end of
// the lease. Until then, no other runner takes them, unless the node dies before; see [puntuale.Fleet].Reap.
const TakeDue = takeFirst + ` and t.kind <> 40` + takeRest

// TakeContacts takes due triggers of changed contacts. An import may write very many of these, so they have their own statement.
const TakeContacts = takeFirst + ` and t.kind = 40` + takeRest

const (
	ofOthers  = ` and t.client_id not in (select u.c from $u(c bigint))`
	takeFirst = `
with picked as materialized (select t.id from automation_trigger t where t.next_at <= $1` + ofOthers
	takeRest = ` order by t.next_at, t.id limit $3 for update of t skip locked)
update automation_trigger set next_at = $2, node = $4 where id in (select id from picked)
returning id, client_id, kind, subject, phone, detail, occurrence, at, attempts`

	// failTriggers counts a failed attempt. A trigger that failed too often is never due again.
	failTriggers = `
update automation_trigger set attempts = attempts + 1, node = 0, next_at = case when attempts + 1 >= $1 then 9223372036854775807 else next_at end
where (id, next_at) in (select u.i, u.n from $u(i bigint, n bigint))`
)

// TakeTriggers first takes the triggers, and then reads their replies and messages. So it returns no data of a person who was erased before the
// read.
func (s *Rules) TakeTriggers(ctx context.Context, node puntuale.NodeID, now time.Time, limit int, busy []puntuale.ClientID) (all []puntuale.TakenTrigger, err error) {
	if all, err = s.take(ctx, `select 1 from automation_trigger t where t.next_at <= $1 and t.kind <> 40`+ofOthers+` limit 1`, TakeDue, node, now, limit, busy); err != nil {
		return nil, err
	}
	return all, engine.PublicError(s.fill(ctx, all))
}

func (s *Rules) TakeContacts(ctx context.Context, node puntuale.NodeID, now time.Time, limit int) ([]puntuale.TakenTrigger, error) {
	return s.take(ctx, `select 1 from automation_trigger t where t.next_at <= $1 and t.kind = 40`+ofOthers+` limit 1`, TakeContacts, node, now, limit, nil)
}

// take takes due triggers with the statement text, except those of busy clients, and returns them oldest first. The query look runs first and finds
// out whether a trigger is due. So a poll without due triggers needs no transaction.
func (s *Rules) take(ctx context.Context, look, text string, node puntuale.NodeID, now time.Time, limit int, busy []puntuale.ClientID) (all []puntuale.TakenTrigger, err error) {
	var one int
	without := clientIDs(busy)
	if due, err := engine.QueryOne(ctx, s.db.DispatchReads, look, []any{engine.Micros(now), without}, &one); err != nil || !due {
		return nil, engine.PublicError(err)
	}
	lease := engine.Micros(now.Add(puntuale.TriggerLease))
	if err := s.db.EventWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) (err error) {
		all, err = engine.QueryAll(ctx, a, text, []any{engine.Micros(now), lease, limit, node, without}, func(r engine.Row, t *puntuale.TakenTrigger) error {
			var detail string
			t.Lease = lease
			err := r.Scan(&t.ID, &t.Client, &t.Fact, &t.Subject, &t.Phone, &detail, &t.Occurrence, engine.ScanTime(&t.At), &t.Attempts)
			if err == nil && detail != "" {
				t.Fault = json.Unmarshal([]byte(detail), &t.Fields) // only this trigger fails, and not all that are taken with it
			}
			return err
		})
		return err
	}), false); err != nil {
		return nil, fmt.Errorf("take triggers: %w", err)
	}
	// A person's triggers must keep their order, but an update returns rows in any order.
	engine.Sort(all, func(x, y puntuale.TakenTrigger) int { return cmp.Compare(x.ID, y.ID) })
	return all, nil
}

const (
	// TriggerReplies reads the replies of triggers. The last column is when the run's last message before the reply was
	// sent, if an automation started the run. Networks give the time of a reply in whole seconds, and other clocks may be
	// late, so a message may seem to be sent up to a minute after its reply.
	TriggerReplies = `
select u.n, y.phone, y.session_id, y.kind, y.text, case when y.answer > 0 then y.answer + 3 else y.effect end, y.network_id, y.run_id, y.at, coalesce(r.sequence_id, 0), coalesce(r.depth, 0),
 case when coalesce(r.depth, 0) = 0 then 0 else greatest(r.received_at,
  coalesce((select max(o.done_at) from message o where o.client_id = r.client_id and o.id >= r.id and o.id < r.id + r.messages
   and o.outcome = 1 and o.done_at < y.at + 60000000), 0),
  coalesce((select max(o.done_at) from message o where o.client_id = r.client_id and o.run_id = r.id and o.resent_from <> 0
   and o.outcome = 1 and o.done_at < y.at + 60000000), 0)) end
from $u(n bigint, c bigint, s bigint) cross join reply y left join run r on r.client_id = y.client_id and r.id = y.run_id and y.run_id <> 0
where y.client_id = u.c and y.id = u.s`

	// TriggerMessages reads the messages of triggers.
	TriggerMessages = `
select u.n, m.phone, m.session_id, m.run_id, r.sequence_id, r.depth,
 case when exists (select 1 from message o where o.client_id = r.client_id and o.id >= r.id and o.id < r.id + r.messages and o.state = 0)
  or exists (select 1 from message o where o.client_id = r.client_id and o.run_id = r.id and o.resent_from <> 0 and o.state = 0) then 0 else 1 end,
 coalesce((select max(o.due_at) from message o where o.client_id = r.client_id and o.id >= r.id and o.id < r.id + r.messages), 0)
from $u(n bigint, c bigint, s bigint) cross join message m cross join run r
where m.client_id = u.c and m.id = u.s and r.client_id = m.client_id and r.id = m.run_id`

	// TriggerBookings reads the bookings of triggers, as they are now. Their session is the one that sends their messages.
	TriggerBookings = `
select u.n, b.phone, case when b.session_id <> 0 then b.session_id else coalesce(q.session_id, 0) end, b.sequence_id, b.reference, b.fields
from $u(n bigint, c bigint, s bigint) cross join booking b left join sequence q on q.client_id = b.client_id and q.id = b.sequence_id
where b.client_id = u.c and b.id = u.s and b.erased_at = 0`
)

// fill adds the data of replies, messages and bookings to their triggers. If a reply or a message was deleted, or the person of a booking erased, the
// trigger's phone stays "".
func (s *Rules) fill(ctx context.Context, all []puntuale.TakenTrigger) error {
	for i := range all {
		if t := &all[i]; t.Fact.OfBooking() && t.Fault == nil {
			t.Depth, _ = strconv.Atoi(t.Fields[outbox.DepthMember]) // without the member, the depth is 0
			t.Fields = nil
		}
	}
	for _, part := range []struct {
		text string
		of   func(f puntuale.TriggerFact) bool
		scan func(r engine.Row) error
	}{
		{TriggerReplies, func(f puntuale.TriggerFact) bool { return f == puntuale.FactReply }, func(r engine.Row) error {
			var n int
			var x puntuale.TakenTrigger
			var at, sent time.Time
			if err := r.Scan(&n, &x.Phone, &x.Session, &x.Reply, &x.Text, &x.Effect, &x.Occurrence, &x.Run, engine.ScanTime(&at), &x.Sequence, &x.Depth, engine.ScanTime(&sent)); err != nil {
				return err
			}
			t := &all[n]
			t.Phone, t.Session, t.Reply, t.Text, t.Effect, t.Run, t.Sequence, t.Wrote = x.Phone, x.Session, x.Reply, x.Text, x.Effect, x.Run, x.Sequence, at
			if t.Occurrence = x.Occurrence; t.Occurrence == "" {
				t.Occurrence = puntuale.ReplyID(t.Subject).String()
			}
			if at.Sub(sent) < puntuale.DepthWithin {
				t.Depth = x.Depth
			}
			return nil
		}},
		{TriggerMessages, puntuale.TriggerFact.OfMessage, func(r engine.Row) error {
			var n int
			var x puntuale.TakenTrigger
			if err := r.Scan(&n, &x.Phone, &x.Session, &x.Run, &x.Sequence, &x.Depth, engine.ScanBool(&x.Ended), engine.ScanTime(&x.LastDue)); err != nil {
				return err
			}
			t := &all[n]
			t.Phone, t.Session, t.Run, t.Sequence, t.Depth, t.Ended, t.LastDue = x.Phone, x.Session, x.Run, x.Sequence, x.Depth, x.Ended, x.LastDue
			t.Occurrence = runOccurrence(x.Run)
			return nil
		}},
		{TriggerBookings, puntuale.TriggerFact.OfBooking, func(r engine.Row) error {
			var n int
			var b puntuale.Booking
			if err := r.Scan(&n, &b.Phone, &b.Session, &b.Sequence, &b.Reference, engine.ScanJSON(&b.Fields)); err != nil {
				return err
			}
			t := &all[n]
			t.Phone, t.Session, t.Sequence, t.Fields = b.Phone, b.Session, b.Sequence, b.Texts()
			return nil
		}},
	} {
		var n, clients, subjects []int64
		for i := range all {
			if part.of(all[i].Fact) {
				n, clients, subjects = append(n, int64(i)), append(clients, int64(all[i].Client)), append(subjects, all[i].Subject)
			}
		}
		if len(n) == 0 {
			continue
		}
		if err := s.db.DispatchReads.Query(ctx, part.text, []any{engine.Columns{n, clients, subjects}}, part.scan); err != nil {
			return fmt.Errorf("read what triggers are about: %w", err)
		}
	}
	return nil
}

// FailTriggers counts a failed attempt of triggers, except those that another runner has taken in the meantime.
func (s *Rules) FailTriggers(ctx context.Context, all []puntuale.TakenTrigger) error {
	return s.db.EventWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, failTriggers, puntuale.MaxTriggerAttempts, leases(all))
		return err
	}), false)
}

func runOccurrence(id puntuale.RunID) string { return puntuale.MessageID(id).String() }

const automatedClients = `
select c.id, c.zone, w.since, coalesce(s.keep_replies, 'known'), coalesce(s.takeover_hours, 12), coalesce(s.automated_most, 5)
from $u(c bigint) join automation_client w on w.client_id = u.c join client c on c.id = u.c left join client_setting s on s.client_id = u.c where c.deleted_at = 0`

func clientIDs(ids []puntuale.ClientID) engine.Columns {
	return engine.Columns{engine.Column(ids, func(id *puntuale.ClientID) int64 { return int64(*id) })}
}

func (s *Rules) AutomatedClients(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]*puntuale.AutomatedClient, error) {
	all := map[puntuale.ClientID]*puntuale.AutomatedClient{}
	column := clientIDs(ids)
	err := s.db.DispatchReads.Query(ctx, automatedClients, []any{column}, func(r engine.Row) error {
		c := &puntuale.AutomatedClient{Settings: puntuale.DefaultSettings()}
		err := r.Scan(&c.ID, &c.Zone, engine.ScanTime(&c.Since), &c.Settings.KeepReplies, &c.Settings.TakeoverHours, &c.Settings.AutomatedMost)
		all[c.ID] = c
		return err
	})
	if err == nil {
		err = s.db.DispatchReads.Query(ctx, `select a.client_id, a.stamp, a.armed_at, `+ruleColumns+` from $u(c bigint) join automation a on a.client_id = u.c
 where a.active = 1 order by a.client_id, a.id`, []any{column}, func(r engine.Row) error {
			var client puntuale.ClientID
			var a puntuale.ActiveAutomation
			err := r.Scan(engine.ScanFaulty(&a.Fault, append([]any{&client, &a.Stamp, engine.ScanTime(&a.Armed)}, ruleFields(&a.Automation)...)...)...)
			if c := all[client]; c != nil {
				c.Rules = append(c.Rules, a)
			}
			return err
		})
	}
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read rules: %w", err))
	}
	return all, nil
}

func (s *Rules) PersonFacts(ctx context.Context, client puntuale.ClientID, phones []string, wanted puntuale.WantedFacts, now time.Time) (map[string]*puntuale.AutomationFacts, error) {
	all, err := FactsOf(ctx, s.db.DispatchReads, client, phones, wanted, now)
	return all, engine.PublicError(err)
}
