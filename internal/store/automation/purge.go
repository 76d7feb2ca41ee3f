package automation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// ruleRows lists the tables with rows of a rule. key contains the columns that, with client_id and rule_id, identify a row.
var ruleRows = []struct{ table, key string }{
	{"automation_timer", "run_id"},
	{"automation_date", "person_id"},
	{"automation_occurrence", "phone, occurrence"},
	{"automation_firing", "id"},
}

// forgetRule deletes the rows of a deleted rule, in several transactions.
func (s *Rules) forgetRule(ctx context.Context, client puntuale.ClientID, id puntuale.AutomationID) error {
	for _, t := range ruleRows {
		for more := true; more; {
			if err := s.db.EventWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
				n, err := a.Exec(ctx, fmt.Sprintf(`delete from %[1]s where client_id = $1 and rule_id = $2 and (%[2]s) in
 (select %[2]s from %[1]s where client_id = $1 and rule_id = $2 limit $3)`, t.table, t.key), client, id, engine.Chunk)
				more = n == engine.Chunk
				return err
			}).ForOwner(int64(client)), false); err != nil {
				return fmt.Errorf("delete %s of a rule: %w", t.table, err)
			}
		}
	}
	return nil
}

// firingKey identifies a line of the log.
type firingKey struct{ client, id int64 }

// occurrenceKey identifies an occurrence.
type occurrenceKey struct {
	client, rule      int64
	phone, occurrence string
}

// Maintain removes old lines of the log, occurrences that cannot be repeated any more, rows of deleted rules, and rules
// of deleted clients. It also blanks payloads and lines of the log that are older than the time in blank. If blank is
// zero, it blanks nothing.
func (s *Rules) Maintain(ctx context.Context, now, blank time.Time) error {
	return errors.Join(s.purgeFirings(ctx, engine.Micros(now.Add(-puntuale.KeepFirings))), s.purgeOccurrences(ctx, engine.Micros(now)), s.blankPayloads(ctx, blank), s.blankFirings(ctx, blank),
		s.forgetOrphans(ctx), s.forgetClients(ctx))
}

func (s *Rules) purgeFirings(ctx context.Context, before int64) error {
	return engine.Purge(ctx, s.db, "firings", `select client_id, id from automation_firing where at < $1 order by at limit $2`, before,
		func(r engine.Row, k *firingKey) error { return r.Scan(&k.client, &k.id) },
		func(a, b firingKey) int { return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.id, b.id)) },
		func(ctx context.Context, a engine.Querier, part []firingKey) error {
			_, err := a.Exec(ctx, `delete from automation_firing where (client_id, id) in (select u.c, u.i from $u(c bigint, i bigint))`, engine.Columns{
				engine.Column(part, func(k *firingKey) int64 { return k.client }),
				engine.Column(part, func(k *firingKey) int64 { return k.id }),
			})
			return err
		})
}

func (s *Rules) purgeOccurrences(ctx context.Context, before int64) error {
	return engine.Purge(ctx, s.db, "occurrences", `select client_id, rule_id, phone, occurrence from automation_occurrence where keep_until < $1 order by keep_until limit $2`, before,
		func(r engine.Row, k *occurrenceKey) error { return r.Scan(&k.client, &k.rule, &k.phone, &k.occurrence) },
		func(a, b occurrenceKey) int {
			return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.rule, b.rule), cmp.Compare(a.phone, b.phone), cmp.Compare(a.occurrence, b.occurrence))
		},
		func(ctx context.Context, a engine.Querier, part []occurrenceKey) error {
			_, err := a.Exec(ctx, `delete from automation_occurrence where keep_until < $1 and (client_id, rule_id, phone, occurrence) in
 (select u.c, u.r, u.p, u.o from $u(c bigint, r bigint, p text, o text))`, before, engine.Columns{
				engine.Column(part, func(k *occurrenceKey) int64 { return k.client }),
				engine.Column(part, func(k *occurrenceKey) int64 { return k.rule }),
				engine.Column(part, func(k *occurrenceKey) string { return k.phone }),
				engine.Column(part, func(k *occurrenceKey) string { return k.occurrence }),
			})
			return err
		})
}

// blankPayloads removes the payloads of hooks that were last called before the given time.
func (s *Rules) blankPayloads(ctx context.Context, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	if err := s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update automation set payload = null, payload_phone = '' where payload_at < $1 and payload is not null`, engine.Micros(before))
		return err
	}); err != nil {
		return fmt.Errorf("blank payloads of hooks: %w", err)
	}
	return nil
}

// blankFirings removes contents from lines of the log that are older than the time in blank. It removes the occurrence,
// such as the day of a date, and the detail of the reason. It skips the lines that this process has already blanked.
func (s *Rules) blankFirings(ctx context.Context, blank time.Time) error {
	if blank.IsZero() {
		return nil
	}
	type line struct{ client, id, at int64 }
	from, before := s.blanked.Load(), engine.Micros(blank)
	for {
		part, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select f.client_id, f.id, f.at from automation_firing f
 where f.at >= $1 and f.at < $2 and (f.occurrence <> '' or f.detail <> '') order by f.at limit $3`, []any{from, before, engine.Chunk},
			func(r engine.Row, l *line) error { return r.Scan(&l.client, &l.id, &l.at) })
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for old firings: %w", err))
		}
		if len(part) > 0 {
			from = part[len(part)-1].at
			engine.Sort(part, func(a, b line) int { return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.id, b.id)) })
			if err := s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
				_, err := a.Exec(ctx, `update automation_firing set occurrence = '', detail = '' where (client_id, id) in (select u.c, u.i from $u(c bigint, i bigint))`, engine.Columns{
					engine.Column(part, func(l *line) int64 { return l.client }), engine.Column(part, func(l *line) int64 { return l.id }),
				})
				return err
			}); err != nil {
				return fmt.Errorf("blank firings: %w", err)
			}
		}
		if len(part) < engine.Chunk {
			s.blanked.Store(before)
			return nil
		}
	}
}

// forgetOrphans deletes rows of deleted rules. Such rows exist if the deletion of a rule failed in the middle.
func (s *Rules) forgetOrphans(ctx context.Context) error {
	type ref struct {
		client puntuale.ClientID
		id     puntuale.AutomationID
	}
	for _, t := range ruleRows {
		all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, fmt.Sprintf(`select distinct x.client_id, x.rule_id from %s x
 where not exists (select 1 from automation a where a.client_id = x.client_id and a.id = x.rule_id) limit $1`, t.table), []any{puntuale.MaxAutomations},
			func(r engine.Row, x *ref) error { return r.Scan(&x.client, &x.id) })
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for rows of deleted rules: %w", err))
		}
		for _, x := range all {
			if err := s.forgetRule(ctx, x.client, x.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetClients deletes the rules and triggers of deleted clients. Then forgetOrphans can delete the rows of these rules.
func (s *Rules) forgetClients(ctx context.Context) error {
	var n int64
	there, err := engine.QueryOne(ctx, s.db.MaintenanceReads, `select w.client_id from automation_client w join client c on c.id = w.client_id where c.deleted_at <> 0 limit 1`, nil, &n)
	if err != nil || !there {
		return engine.PublicError(err)
	}
	return s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
		const gone = ` where client_id in (select w.client_id from automation_client w join client c on c.id = w.client_id where c.deleted_at <> 0)`
		for _, table := range []string{"automation", "automation_trigger", "automation_client"} {
			if _, err := a.Exec(ctx, `delete from `+table+gone); err != nil {
				return fmt.Errorf("delete %s of deleted clients: %w", table, err)
			}
		}
		return nil
	})
}

// namesOf is an SQL query for all names of a person. Its statement gets the names as a batch.
const namesOf = `select u.p from $u(p text)`

// Disarm removes a person's triggers, timers and dates. An erasure calls Disarm before it looks for the person's runs. So a rule that has
// already decided about the person cannot start another run afterwards.
func Disarm(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string) error {
	kinds := []any{int64(puntuale.FactReply), int64(puntuale.FactBooked)}
	for _, step := range []struct {
		text string
		args []any
	}{
		{`delete from automation_trigger where client_id = $1 and (phone <> '' and phone in (` + namesOf + `)
 or kind = $2::smallint and exists (select 1 from reply y where y.client_id = automation_trigger.client_id and y.id = automation_trigger.subject and y.phone in (` + namesOf + `))
 or kind < $3::smallint and kind <> $2::smallint and exists (select 1 from message m join run r on r.client_id = m.client_id and r.id = m.run_id
  where m.client_id = automation_trigger.client_id and m.id = automation_trigger.subject and r.phone in (` + namesOf + `))
 or kind between $3::smallint and $4::smallint and exists (select 1 from booking b
  where b.client_id = automation_trigger.client_id and b.id = automation_trigger.subject and b.phone in (` + namesOf + `)))`, append(kinds, int64(puntuale.FactAnswered))},
		{`delete from automation_timer where client_id = $1 and phone in (` + namesOf + `)`, nil},
		{`delete from automation_date where client_id = $1 and person_id in (select p.id from person p where p.client_id = $1 and p.phone in (` + namesOf + `))`, nil},
	} {
		if _, err := a.Exec(ctx, step.text, slices.Concat([]any{client}, step.args, []any{engine.Columns{names}})...); err != nil {
			return fmt.Errorf("disarm automations for a person: %w", err)
		}
	}
	return nil
}

// DisarmBookings removes the triggers of erased bookings, in the transaction that erases them.
func DisarmBookings(ctx context.Context, a engine.Querier, client puntuale.ClientID, ids []puntuale.BookingID) error {
	if _, err := a.Exec(ctx, `delete from automation_trigger where client_id = $1 and kind between $2 and $3 and subject in (select u.i from $u(i bigint))`,
		client, int64(puntuale.FactBooked), int64(puntuale.FactAnswered), engine.Columns{engine.Column(ids, func(id *puntuale.BookingID) int64 { return int64(*id) })}); err != nil {
		return fmt.Errorf("disarm automations for bookings: %w", err)
	}
	return nil
}

// Erase removes a person's data from automations, in a transaction of an erasure. contacts are the ids of the person's contacts, which the
// transaction deleted. Lines of the log stay, but lose phone, occurrence and detail. Afterwards no rule acts for the person.
func Erase(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string, contacts []puntuale.ContactID) error {
	for _, step := range []struct {
		text string
		args []any
	}{
		{`delete from automation_trigger where client_id = $1 and phone <> '' and phone in (` + namesOf + `)`, []any{engine.Columns{names}}},
		{`delete from automation_timer where client_id = $1 and phone in (` + namesOf + `)`, []any{engine.Columns{names}}},
		{`delete from automation_occurrence where client_id = $1 and phone <> '' and phone in (` + namesOf + `)`, []any{engine.Columns{names}}},
		{`update automation_firing set phone = '', occurrence = '', detail = '' where client_id = $1 and phone <> '' and phone in (` + namesOf + `)`, []any{engine.Columns{names}}},
		// A payload without a valid phone may contain anybody's data, so it is removed, too.
		{`update automation set payload = null, payload_phone = '' where client_id = $1 and payload is not null and (payload_phone = '' or payload_phone in (` + namesOf + `))`, []any{engine.Columns{names}}},
		{`delete from automation_date where client_id = $1 and person_id in (select u.i from $u(i bigint))`, []any{
			engine.Columns{engine.Column(contacts, func(id *puntuale.ContactID) int64 { return int64(*id) })},
		}},
	} {
		if _, err := a.Exec(ctx, step.text, append([]any{client}, step.args...)...); err != nil {
			return fmt.Errorf("forget a person's automations: %w", err)
		}
	}
	return nil
}
