package automation

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// A decision about a person needs a few facts. They are read for many persons at once, one statement each. A cross join makes SQLite begin with
// the persons.
const (
	personsOf  = `select p.phone, p.id, p.name, p.language, p.source, p.fields, p.tags, p.created_at, p.changed_at from $u(p text) cross join person p where p.client_id = $1 and p.phone = u.p`
	answeredOf = `select g.phone, g.answered_at from $u(p text) cross join conversation g where g.client_id = $1 and g.phone = u.p and g.answered_at > 0`
	assignedOf = `select c.phone from $u(p text) cross join chatwoot_conversation c where c.client_id = $1 and c.phone = u.p and c.assigned_at > 0`
	reachedOf  = `select f.phone, sum(f.reached) from $u(p text) cross join automation_firing f where f.client_id = $1 and f.phone = u.p and f.at > $2 and f.reached > 0 group by f.phone`
	actedOf    = `select f.phone, f.rule_id, max(f.at) from $u(p text) cross join automation_firing f where f.client_id = $1 and f.phone = u.p and f.acted = 1 group by f.phone, f.rule_id`
	firstOf    = `select u.p, min(y.id) from $u(p text) cross join reply y where y.client_id = $1 and y.phone = u.p and y.own = 0 group by u.p`
	// runningOf finds the pending messages of sequences; "intent >= 0" means open.
	runningOf = `
select distinct u.p, r.sequence_id from $u(p text, q bigint) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and r.sequence_id = u.q and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union
select distinct u.p, r.sequence_id from $u(p text, q bigint) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and r.sequence_id = u.q and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`
)

// FactsOf reads what decisions about persons of a client need.
func FactsOf(ctx context.Context, a engine.Querier, client puntuale.ClientID, phones []string, sequences []puntuale.SequenceID, now time.Time,
) (map[string]*puntuale.AutomationFacts, error) {
	all := make(map[string]*puntuale.AutomationFacts, len(phones))
	for _, p := range phones {
		all[p] = &puntuale.AutomationFacts{Acted: map[puntuale.AutomationID]time.Time{}, Running: map[puntuale.SequenceID]bool{}}
	}
	column := engine.Columns{phones}
	var phone string
	var at time.Time
	var rule puntuale.AutomationID
	for _, q := range []struct {
		text string
		args []any
		scan func(r engine.Row) error
	}{
		{personsOf, []any{client, column}, func(r engine.Row) error {
			c := &puntuale.Contact{}
			err := r.Scan(&c.Phone, &c.ID, &c.Name, &c.Language, &c.Source, engine.ScanJSON(&c.Fields), engine.ScanJSON(&c.Tags), engine.ScanTime(&c.Created), engine.ScanTime(&c.Changed))
			if err == nil {
				all[c.Phone].Contact = c
			}
			return err
		}},
		{answeredOf, []any{client, column}, func(r engine.Row) error {
			err := r.Scan(&phone, engine.ScanTime(&at))
			if err == nil {
				all[phone].Answered = at
			}
			return err
		}},
		{assignedOf, []any{client, column}, func(r engine.Row) error {
			err := r.Scan(&phone)
			if err == nil {
				all[phone].Assigned = true
			}
			return err
		}},
		{reachedOf, []any{client, engine.Micros(now.Add(-puntuale.AutomatedWithin)), column}, func(r engine.Row) error {
			var n int
			err := r.Scan(&phone, &n)
			if err == nil {
				all[phone].Reached = n
			}
			return err
		}},
		{actedOf, []any{client, column}, func(r engine.Row) error {
			err := r.Scan(&phone, &rule, engine.ScanTime(&at))
			if err == nil {
				all[phone].Acted[rule] = at
			}
			return err
		}},
		{firstOf, []any{client, column}, func(r engine.Row) error {
			var id puntuale.ReplyID
			err := r.Scan(&phone, &id)
			if err == nil {
				all[phone].First = id
			}
			return err
		}},
	} {
		if err := a.Query(ctx, q.text, q.args, q.scan); err != nil {
			return nil, fmt.Errorf("read what is known of a person: %w", err)
		}
	}
	return all, readRunning(ctx, a, client, phones, sequences, all)
}

// readRunning finds the sequences that have pending messages for the persons.
func readRunning(ctx context.Context, a engine.Querier, client puntuale.ClientID, phones []string, sequences []puntuale.SequenceID, all map[string]*puntuale.AutomationFacts) error {
	if len(sequences) == 0 {
		return nil
	}
	var phone string
	var of []string
	var which []int64
	for _, p := range phones {
		for _, q := range sequences {
			of, which = append(of, p), append(which, int64(q))
		}
	}
	if err := a.Query(ctx, runningOf, []any{client, engine.Columns{of, which}}, func(r engine.Row) error {
		var q puntuale.SequenceID
		err := r.Scan(&phone, &q)
		if err == nil {
			all[phone].Running[q] = true
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for running messages: %w", err)
	}
	return nil
}

func (s RuleStore) AutomationFacts(ctx context.Context, phone string, sequences []puntuale.SequenceID, now time.Time) (puntuale.AutomationFacts, error) {
	all, err := FactsOf(ctx, s.db.CallReads, s.client, []string{phone}, sequences, now)
	if err != nil {
		return puntuale.AutomationFacts{}, engine.PublicError(err)
	}
	return *all[phone], nil
}
