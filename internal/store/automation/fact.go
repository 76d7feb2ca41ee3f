package automation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// A decision about a person needs a few facts. Each statement reads one kind of fact for many persons. The cross join makes
// SQLite begin with the persons. The client is a column, not a constant. With a constant, PostgreSQL may begin with all rows
// of the client: before it has counted a table's rows, it assumes that there are few.
const (
	PersonsOf = `
select p.phone, p.id, p.name, p.language, p.source, p.fields, p.tags, p.created_at, p.changed_at
from $u(c bigint, p text) cross join person p where p.client_id = u.c and p.phone = u.p`
	AnsweredOf = `select g.phone, g.answered_at from $u(c bigint, p text) cross join conversation g where g.client_id = u.c and g.phone = u.p and g.answered_at > 0`
	AssignedOf = `select h.phone from $u(c bigint, p text) cross join chatwoot_conversation h where h.client_id = u.c and h.phone = u.p and h.assigned_at > 0`
	ReachedOf  = `
select f.phone, sum(f.reached) from $u(c bigint, p text) cross join automation_firing f
where f.client_id = u.c and f.phone = u.p and f.at > $1 and f.reached > 0 group by f.phone`
	ActedOf = `
select f.phone, f.rule_id, max(f.at) from $u(c bigint, p text) cross join automation_firing f
where f.client_id = u.c and f.phone = u.p and f.acted = 1 group by f.phone, f.rule_id`
	// FirstOf finds replies in the index of phone numbers, and then reads them by their keys. Otherwise SQLite would read
	// all replies of the client. The order by has all columns of the index, so PostgreSQL reads only one row for each person.
	FirstOf = `
select u.p, coalesce((select k.id from reply k cross join reply y where k.client_id = u.c and k.phone = u.p and y.client_id = k.client_id and y.id = k.id and y.own = 0
 order by k.client_id, k.phone, k.id limit 1), 0) from $u(c bigint, p text)`
	// RunningOf finds the sequences with pending messages; "intent >= 0" means pending.
	RunningOf = `
select distinct u.p, r.sequence_id from $u(c bigint, p text, q bigint) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and r.sequence_id = u.q and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union
select distinct u.p, r.sequence_id from $u(c bigint, p text, q bigint) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and r.sequence_id = u.q and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`
)

// FactsOf reads the facts about persons that decisions need, under all names of each person. It returns them by the given
// phone.
func FactsOf(ctx context.Context, a engine.Querier, client puntuale.ClientID, phones []string, wanted puntuale.WantedFacts, now time.Time,
) (map[string]*puntuale.AutomationFacts, error) {
	all := make(map[string]*puntuale.AutomationFacts, len(phones))
	for _, p := range phones {
		all[p] = &puntuale.AutomationFacts{Acted: map[puntuale.AutomationID]time.Time{}, Running: map[puntuale.SequenceID]bool{}}
	}
	of, names, err := phonesByName(ctx, a, client, phones)
	if err != nil {
		return nil, err
	}
	each := func(name string, do func(f *puntuale.AutomationFacts)) {
		for _, p := range of[name] {
			do(all[p])
		}
	}
	column := engine.Columns{clientColumn(client, len(names)), names}
	var phone string
	var at time.Time
	var rule puntuale.AutomationID
	for _, q := range []struct {
		wanted bool
		text   string
		args   []any
		scan   func(r engine.Row) error
	}{
		{true, PersonsOf, []any{column}, func(r engine.Row) error {
			c := &puntuale.Contact{}
			var fault error // fields that cannot be decoded count as missing
			err := r.Scan(engine.ScanFaulty(&fault, &c.Phone, &c.ID, &c.Name, &c.Language, &c.Source, engine.ScanJSON(&c.Fields), engine.ScanJSON(&c.Tags), engine.ScanTime(&c.Created), engine.ScanTime(&c.Changed))...)
			for _, p := range of[c.Phone] {
				if f := all[p]; f.Contact == nil || c.Phone == p {
					f.Contact = c
				}
			}
			return err
		}},
		{wanted.Takeover, AnsweredOf, []any{column}, func(r engine.Row) error {
			err := r.Scan(&phone, engine.ScanTime(&at))
			each(phone, func(f *puntuale.AutomationFacts) { f.Answered = later(f.Answered, at) })
			return err
		}},
		{wanted.Takeover, AssignedOf, []any{column}, func(r engine.Row) error {
			err := r.Scan(&phone)
			each(phone, func(f *puntuale.AutomationFacts) { f.Assigned = true })
			return err
		}},
		{wanted.Limit, ReachedOf, []any{engine.Micros(now.Add(-puntuale.AutomatedWithin)), column}, func(r engine.Row) error {
			var n int
			err := r.Scan(&phone, &n)
			each(phone, func(f *puntuale.AutomationFacts) { f.Reached += n })
			return err
		}},
		{wanted.Cooldown, ActedOf, []any{column}, func(r engine.Row) error {
			err := r.Scan(&phone, &rule, engine.ScanTime(&at))
			each(phone, func(f *puntuale.AutomationFacts) { f.Acted[rule] = later(f.Acted[rule], at) })
			return err
		}},
		{wanted.First, FirstOf, []any{column}, func(r engine.Row) error {
			var id puntuale.ReplyID
			err := r.Scan(&phone, &id)
			each(phone, func(f *puntuale.AutomationFacts) {
				if f.First == 0 || id != 0 && id < f.First {
					f.First = id
				}
			})
			return err
		}},
	} {
		if !q.wanted {
			continue
		}
		if err := a.Query(ctx, q.text, q.args, q.scan); err != nil {
			return nil, fmt.Errorf("read what is known of a person: %w", err)
		}
	}
	return all, errors.Join(readStatus(ctx, a, client, wanted.Booking, all), readRunning(ctx, a, client, names, wanted.Sequences, func(name string, q puntuale.SequenceID) {
		each(name, func(f *puntuale.AutomationFacts) { f.Running[q] = true })
	}))
}

// readStatus sets the status of a booking in the facts.
func readStatus(ctx context.Context, a engine.Querier, client puntuale.ClientID, reference string, all map[string]*puntuale.AutomationFacts) error {
	if reference == "" {
		return nil
	}
	var status puntuale.BookingStatus
	found, err := engine.QueryOne(ctx, a, `select status from booking where client_id = $1 and reference = $2 and erased_at = 0`, []any{client, reference}, &status)
	if err != nil {
		return fmt.Errorf("read a booking's status: %w", err)
	}
	for _, f := range all {
		if f.Status = ""; found {
			f.Status = status.String()
		}
	}
	return nil
}

// phonesByName returns all names of the people, and for each name the given phones of the same person.
func phonesByName(ctx context.Context, a engine.Querier, client puntuale.ClientID, phones []string) (of map[string][]string, names []string, err error) {
	of = map[string][]string{}
	err = alias.Each(ctx, a, clientColumn(client, len(phones)), phones, func(i int, name string) {
		if of[name] = append(of[name], phones[i]); len(of[name]) == 1 {
			names = append(names, name)
		}
	})
	return of, names, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// clientColumn returns a column with the client in each row.
func clientColumn(client puntuale.ClientID, rows int) []int64 {
	return slices.Repeat([]int64{int64(client)}, rows)
}

// readRunning finds the sequences that have pending messages for the persons.
func readRunning(ctx context.Context, a engine.Querier, client puntuale.ClientID, phones []string, sequences []puntuale.SequenceID, found func(name string, q puntuale.SequenceID)) error {
	if len(sequences) == 0 {
		return nil
	}
	var phone string
	var phoneColumn []string
	var sequenceColumn []int64
	for _, p := range phones {
		for _, q := range sequences {
			phoneColumn, sequenceColumn = append(phoneColumn, p), append(sequenceColumn, int64(q))
		}
	}
	if err := a.Query(ctx, RunningOf, []any{engine.Columns{clientColumn(client, len(phoneColumn)), phoneColumn, sequenceColumn}}, func(r engine.Row) error {
		var q puntuale.SequenceID
		err := r.Scan(&phone, &q)
		found(phone, q)
		return err
	}); err != nil {
		return fmt.Errorf("look for running messages: %w", err)
	}
	return nil
}

// AutomationFacts returns the facts about a person that a rule's decision needs.
func (s RuleStore) AutomationFacts(ctx context.Context, phone string, wanted puntuale.WantedFacts, now time.Time) (puntuale.AutomationFacts, error) {
	all, err := FactsOf(ctx, s.db.CallReads, s.client, []string{phone}, wanted, now)
	if err != nil {
		return puntuale.AutomationFacts{}, engine.PublicError(err)
	}
	return *all[phone], nil
}
