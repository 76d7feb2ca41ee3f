package automation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

const dateRules = `select a.client_id, a.stamp, a.armed_at, a.scanned_to, ` + ruleColumns + ` from automation a join client c on c.id = a.client_id
 where a.kind = 4 and a.active = 1 and c.deleted_at = 0 order by a.client_id, a.id`

func (s *Rules) DateRules(ctx context.Context) ([]puntuale.DateRule, error) {
	all, err := engine.QueryAll(ctx, s.db.DispatchReads, dateRules, nil, func(r engine.Row, d *puntuale.DateRule) error {
		var to int64
		err := r.Scan(engine.ScanFaulty(&d.Rule.Fault, append([]any{&d.Client, &d.Rule.Stamp, engine.ScanTime(&d.Rule.Armed), &to}, ruleFields(&d.Rule.Automation)...)...)...)
		d.Scanned = to == puntuale.MaxID
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list rules for dates: %w", err))
	}
	return all, nil
}

// scanAtOnce is the largest number of contacts that one transaction reads.
const scanAtOnce = 500

// manyContacts is a threshold. For this number of contacts or more, the code first checks which rules have any date of these contacts.
const manyContacts = 50

func (s *Rules) ScanDates(ctx context.Context, d puntuale.DateRule, limit int, now time.Time, next func(string, time.Time) puntuale.Date) (more bool, err error) {
	limit = max(1, min(limit, scanAtOnce))
	err = s.db.FeedWriter.Do(ctx, engine.SingleTimestamped(s.dates, func(ctx context.Context, a engine.Querier) error {
		more = false
		if err := lockClient(ctx, a, d.Client); err != nil {
			return err
		}
		var from int64
		found, err := engine.QueryOne(ctx, a, `select scanned_to from automation where client_id = $1 and id = $2 and stamp = $3 and active = 1`, []any{d.Client, d.Rule.ID, d.Rule.Stamp}, &from)
		if err != nil || !found || from == puntuale.MaxID {
			return err
		}
		ids, err := scanned(ctx, a, d, from, limit)
		if err != nil {
			return err
		}
		to := int64(puntuale.MaxID)
		if more = len(ids) == limit; more {
			to = int64(ids[len(ids)-1])
		}
		f := &dateFollower{a: a, client: d.Client, now: now, scan: true, next: func(_ puntuale.ActiveAutomation, value string, from time.Time) puntuale.Date {
			return next(value, from)
		}}
		if err := f.follow(ctx, []puntuale.ActiveAutomation{d.Rule}, ids); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update automation set scanned_to = $3 where client_id = $1 and id = $2`, d.Client, d.Rule.ID, to); err != nil {
			return fmt.Errorf("keep how far contacts were read: %w", err)
		}
		if more || from == 0 || !s.db.Dialect.Postgres {
			return nil
		}
		// The scan may have added many dates, so PostgreSQL's statistics are wrong. Without new statistics, PostgreSQL may choose slow query plans.
		if _, err := a.Exec(ctx, `analyze automation_date`); err != nil {
			return fmt.Errorf("count dates: %w", err)
		}
		return nil
	}).ForOwner(int64(d.Client)), false)
	return more, err
}

const (
	scanContacts = `select p.id from person p where p.client_id = $1 and p.id > $2 order by p.id limit $3`
	scanRows     = `select d.person_id from automation_date d where d.client_id = $1 and d.person_id > $2 and d.rule_id = $4 order by d.client_id, d.rule_id, d.person_id limit $3`
)

// scanned returns the next contacts of a scan. It also returns deleted contacts that still have a date row: they were deleted while the rule was
// off.
func scanned(ctx context.Context, a engine.Querier, d puntuale.DateRule, from int64, limit int) (ids []puntuale.ContactID, err error) {
	args := []any{d.Client, from, limit}
	if ids, err = engine.QueryAll(ctx, a, scanContacts, args, engine.ScanOne[puntuale.ContactID]); err != nil {
		return nil, fmt.Errorf("read contacts: %w", err)
	}
	rows, err := engine.QueryAll(ctx, a, scanRows, append(args, d.Rule.ID), engine.ScanOne[puntuale.ContactID])
	if err != nil {
		return nil, fmt.Errorf("read dates: %w", err)
	}
	ids = append(ids, rows...)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], nil
}

func lockClient(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	var n int64
	if _, err := engine.QueryOne(ctx, a, `select client_id from automation_client w where w.client_id = $1 for update of w`, []any{client}, &n); err != nil {
		return fmt.Errorf("lock a client's automations: %w", err)
	}
	return nil
}

const clientDateRules = `select a.stamp, a.armed_at, ` + ruleColumns + ` from automation a where a.client_id = $1 and a.kind = 4 and a.active = 1 order by a.id`

// FollowContacts first locks the client's rules, and then reads them. If it did not lock first, a rule could change
// after the read. Then these contacts would get dates of the old rule.
func (s *Rules) FollowContacts(ctx context.Context, client puntuale.ClientID, triggers []puntuale.TakenTrigger, now time.Time,
	next func(puntuale.ActiveAutomation, string, time.Time) puntuale.Date,
) error {
	ids := engine.Column(triggers, func(t *puntuale.TakenTrigger) puntuale.ContactID { return puntuale.ContactID(t.Subject) })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if err := s.db.FeedWriter.Do(ctx, engine.SingleTimestamped(s.dates, func(ctx context.Context, a engine.Querier) error {
		if err := lockClient(ctx, a, client); err != nil {
			return err
		}
		rules, err := engine.QueryAll(ctx, a, clientDateRules, []any{client}, func(r engine.Row, a *puntuale.ActiveAutomation) error {
			return r.Scan(append([]any{&a.Stamp, engine.ScanTime(&a.Armed)}, ruleFields(&a.Automation)...)...)
		})
		if err != nil {
			return fmt.Errorf("read rules for dates: %w", err)
		}
		f := &dateFollower{a: a, client: client, now: now, next: next}
		if err := f.follow(ctx, rules, ids); err != nil {
			return err
		}
		return RemoveTriggers(ctx, a, triggers)
	}).ForOwner(int64(client)), false); err != nil {
		return fmt.Errorf("follow contacts: %w", err)
	}
	return nil
}

const (
	// LockContacts locks contacts, and reads their fields.
	LockContacts = `select p.id, p.phone, p.fields, p.changed_at from $u(c bigint, i bigint) cross join person p where p.client_id = u.c and p.id = u.i order by p.client_id, p.id for share of p`

	// RulesDated returns for each rule whether it has a date of a contact between two ids. The order by has all columns of
	// the key. So PostgreSQL reads only one row, even if it assumes that the table is empty.
	RulesDated = `
select u.r, coalesce((select 1 from automation_date d where d.client_id = u.c and d.rule_id = u.r and d.person_id >= u.f and d.person_id <= u.t
 order by d.client_id, d.rule_id, d.person_id limit 1), 0) from $u(c bigint, r bigint, f bigint, t bigint)`

	// DatesOf reads the stored dates of contacts, by rule and contact.
	DatesOf = `select d.rule_id, d.person_id, d.value, d.version, d.day, d.run_id from $u(c bigint, r bigint, i bigint) cross join automation_date d
 where d.client_id = u.c and d.rule_id = u.r and d.person_id = u.i`
)

// dateFollower updates the stored dates of contacts for rules, in one transaction.
type dateFollower struct {
	a      engine.Querier
	client puntuale.ClientID
	now    time.Time
	scan   bool // true: the rule reads all contacts again, and skips days that came while the rule was off
	next   func(puntuale.ActiveAutomation, string, time.Time) puntuale.Date

	rules  map[puntuale.AutomationID]puntuale.ActiveAutomation
	people map[puntuale.ContactID]puntuale.Contact
	bad    map[puntuale.ContactID]bool // contacts whose fields cannot be decoded: their stored dates stay as they are
	rows   map[dateKey]dateRow
	sets   []dateRow // rows to insert or replace
	moved  []dateRow // rows whose value is the same, but whose day changes
	gone   []dateRow // rows to delete
	ended  []dateRow // replaced or deleted rows for which runs were started: the messages are cancelled
}

type dateRow struct {
	dateKey
	value   string
	version int64
	since   time.Time // the time from which the rule could know the value
	day     int64
	run     puntuale.RunID
}

func (f *dateFollower) follow(ctx context.Context, rules []puntuale.ActiveAutomation, ids []puntuale.ContactID) error {
	if len(ids) == 0 {
		return nil
	}
	f.rules = map[puntuale.AutomationID]puntuale.ActiveAutomation{}
	for _, r := range rules {
		f.rules[r.ID] = r
	}
	if err := f.read(ctx, ids); err != nil {
		return err
	}
	for _, id := range ids {
		for _, r := range f.rules {
			if !f.bad[id] {
				f.compare(r, id)
			}
		}
	}
	return f.write(ctx)
}

func (f *dateFollower) read(ctx context.Context, ids []puntuale.ContactID) error {
	column := engine.Columns{clientColumn(f.client, len(ids)), engine.Column(ids, func(id *puntuale.ContactID) int64 { return int64(*id) })}
	f.people, f.bad, f.rows = map[puntuale.ContactID]puntuale.Contact{}, map[puntuale.ContactID]bool{}, map[dateKey]dateRow{}
	if err := f.a.Query(ctx, LockContacts,
		[]any{column}, func(r engine.Row) error {
			var c puntuale.Contact
			var fault error
			err := r.Scan(engine.ScanFaulty(&fault, &c.ID, &c.Phone, engine.ScanJSON(&c.Fields), engine.ScanTime(&c.Changed))...)
			f.people[c.ID], f.bad[c.ID] = c, fault != nil
			return err
		}); err != nil {
		return fmt.Errorf("read contacts: %w", err)
	}
	of, err := f.dated(ctx, ids)
	if err != nil {
		return err
	}
	var rules, who []int64 // rule and contact of each row that may exist
	for _, rule := range of {
		for _, id := range ids {
			rules, who = append(rules, int64(rule)), append(who, int64(id))
		}
	}
	if len(rules) == 0 {
		return nil
	}
	if err := f.a.Query(ctx, DatesOf,
		[]any{engine.Columns{clientColumn(f.client, len(rules)), rules, who}}, func(r engine.Row) error {
			var d dateRow
			err := r.Scan(&d.rule, &d.person, &d.value, &d.version, &d.day, &d.run)
			f.rows[d.dateKey] = d
			return err
		}); err != nil {
		return fmt.Errorf("read dates: %w", err)
	}
	return nil
}

// dated returns the rules that may have stored dates of the contacts. It saves time when a rule reads all contacts for
// the first time, because such a rule has no dates of most contacts.
func (f *dateFollower) dated(ctx context.Context, ids []puntuale.ContactID) (all []puntuale.AutomationID, err error) {
	rules := slices.Sorted(maps.Keys(f.rules))
	if len(ids) < manyContacts || len(rules) == 0 {
		return rules, nil
	}
	err = f.a.Query(ctx, RulesDated, []any{engine.Columns{
		clientColumn(f.client, len(rules)), engine.Column(rules, func(id *puntuale.AutomationID) int64 { return int64(*id) }),
		slices.Repeat([]int64{int64(slices.Min(ids))}, len(rules)), slices.Repeat([]int64{int64(slices.Max(ids))}, len(rules)),
	}}, func(r engine.Row) error {
		var id puntuale.AutomationID
		var there bool
		err := r.Scan(&id, engine.ScanBool(&there))
		if there {
			all = append(all, id)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for dates: %w", err)
	}
	return all, nil
}

// compare records how a contact's stored date must change for a rule. The rule could know a new date since the last change of the
// contact or the rule. So if a failover came after that change, the date counts as missed. The date's version is the present time. So the version
// grows even if the row was deleted and is inserted again.
func (f *dateFollower) compare(r puntuale.ActiveAutomation, id puntuale.ContactID) {
	key := dateKey{r.ID, id}
	row, known := f.rows[key]
	value := ""
	if field, ok := f.people[id].Fields[r.Trigger.Field]; ok && field.Kind == puntuale.FieldDate {
		value = field.Value
	}
	since := f.since(r, id)
	switch {
	case value == "" && !known:
		return
	case value == row.value && known:
		// The rule may already have acted for this day. Then the stored occurrence prevents a second run.
		if day := dayNumber(f.next(r, value, since)); f.scan && row.day != day {
			row.day = day
			f.moved = append(f.moved, row)
		}
		return
	}
	if row.run != 0 {
		f.ended = append(f.ended, row)
	}
	if value == "" {
		f.gone = append(f.gone, row)
		return
	}
	f.sets = append(f.sets, dateRow{dateKey: key, value: value, version: max(engine.Micros(f.now), row.version+1), since: since, day: dayNumber(f.next(r, value, since))})
}

// since returns the time from which the rule could know a contact's date. A server that was down reads the date later.
func (f *dateFollower) since(r puntuale.ActiveAutomation, id puntuale.ContactID) time.Time {
	at := f.people[id].Changed
	if r.Updated.After(at) {
		at = r.Updated
	}
	if at.IsZero() || at.After(f.now) {
		return f.now
	}
	return at
}

func (f *dateFollower) write(ctx context.Context) error {
	if err := f.cancel(ctx); err != nil {
		return err
	}
	type D = dateRow
	if len(f.gone) > 0 {
		if _, err := f.a.Exec(ctx, `delete from automation_date where client_id = $1 and (rule_id, person_id) in (select u.r, u.p from $u(r bigint, p bigint))`, f.client, engine.Columns{
			engine.Column(f.gone, func(d *D) int64 { return int64(d.rule) }), engine.Column(f.gone, func(d *D) int64 { return int64(d.person) }),
		}); err != nil {
			return fmt.Errorf("delete dates: %w", err)
		}
	}
	if len(f.moved) > 0 {
		if _, err := f.a.Exec(ctx, `update automation_date set day = u.d from $u(r bigint, p bigint, d integer)
 where automation_date.client_id = $1 and automation_date.rule_id = u.r and automation_date.person_id = u.p`, f.client, engine.Columns{
			engine.Column(f.moved, func(d *D) int64 { return int64(d.rule) }), engine.Column(f.moved, func(d *D) int64 { return int64(d.person) }),
			engine.Column(f.moved, func(d *D) int64 { return d.day }),
		}); err != nil {
			return fmt.Errorf("move dates on: %w", err)
		}
	}
	if len(f.sets) == 0 {
		return nil
	}
	if _, err := f.a.Exec(ctx, `insert into automation_date as d (client_id, rule_id, person_id, value, version, since, day)
 select $1::bigint, u.r, u.p, u.v, u.n, u.s, u.d from $u(r bigint, p bigint, v text, n bigint, s bigint, d integer) where true
 on conflict (client_id, rule_id, person_id) do update set value = excluded.value, version = excluded.version, since = excluded.since, day = excluded.day, run_id = 0`,
		f.client, engine.Columns{
			engine.Column(f.sets, func(d *D) int64 { return int64(d.rule) }), engine.Column(f.sets, func(d *D) int64 { return int64(d.person) }),
			engine.Column(f.sets, func(d *D) string { return d.value }), engine.Column(f.sets, func(d *D) int64 { return d.version }),
			engine.Column(f.sets, func(d *D) int64 { return engine.Micros(d.since) }), engine.Column(f.sets, func(d *D) int64 { return d.day }),
		}); err != nil {
		return fmt.Errorf("keep dates: %w", err)
	}
	return nil
}

// RunsOfDates finds all runs that automations started for the persons of the given runs. A rule may have started several runs for one value of a
// date.
const RunsOfDates = `
select u.n, o.id, o.request from $u(n bigint, i bigint) cross join run r cross join run o
where r.client_id = $1 and r.id = u.i and o.client_id = r.client_id and o.phone = r.phone and o.origin = 4 and o.phone <> ''`

// runs returns the runs that were started for the dates in f.ended. The map's value is the index of the run's date in
// f.ended. A date may have several runs. Its row contains the last one, so runs always returns this one. It finds the
// earlier ones by the person's phone. So it does not find the earlier runs of an erased person.
func (f *dateFollower) runs(ctx context.Context) (map[puntuale.RunID]int, error) {
	all := map[puntuale.RunID]int{}
	places := make([]int64, len(f.ended))
	for i, d := range f.ended {
		places[i], all[d.run] = int64(i), i
	}
	if err := f.a.Query(ctx, RunsOfDates, []any{f.client, engine.Columns{places, engine.Column(f.ended, func(d *dateRow) int64 { return int64(d.run) })}}, func(r engine.Row) error {
		var i int
		var id puntuale.RunID
		var request []byte
		err := r.Scan(&i, &id, &request)
		if err == nil && puntuale.StartedFor(request, f.ended[i].rule, f.ended[i].version) {
			all[id] = i
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for runs of former dates: %w", err)
	}
	return all, nil
}

// MessagesOfRuns finds the pending messages of runs.
const MessagesOfRuns = `
select m.client_id, m.id, r.id from $u(i bigint) cross join run r cross join message m
where r.client_id = $1 and r.id = u.i and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id, m.run_id from $u(i bigint) cross join message m where m.client_id = $1 and m.run_id = u.i and m.resent_from <> 0 and m.intent >= 0`

// cancel cancels the pending messages for old dates. It logs each date for which it cancelled a message.
func (f *dateFollower) cancel(ctx context.Context) error {
	if len(f.ended) == 0 {
		return nil
	}
	dateOf, err := f.runs(ctx)
	if err != nil {
		return err
	}
	runs := map[puntuale.MessageID]puntuale.RunID{}
	sorted := slices.Sorted(maps.Keys(dateOf))
	refs, err := engine.QueryAll(ctx, f.a, MessagesOfRuns, []any{f.client, engine.Columns{engine.Column(sorted, func(id *puntuale.RunID) int64 { return int64(*id) })}},
		func(r engine.Row, ref *puntuale.MessageRef) error {
			var run puntuale.RunID
			err := r.Scan(&ref.Client, &ref.ID, &run)
			runs[ref.ID] = run
			return err
		})
	if err != nil {
		return fmt.Errorf("look for messages of former dates: %w", err)
	}
	engine.Sort(refs, queue.CompareRefs)
	done, err := queue.CancelOpen(ctx, f.a, refs, f.now)
	if err != nil || len(done) == 0 {
		return err
	}
	cancelled := map[int]bool{}
	for _, m := range done {
		cancelled[dateOf[runs[m.ID]]] = true
	}
	var ended []dateRow
	for i, d := range f.ended {
		if cancelled[i] {
			ended = append(ended, d)
		}
	}
	if _, err := f.a.Exec(ctx, `insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted, reason)
 select $1::bigint, u.r, u.p, $2::bigint, u.o, 0, $3::text from $u(r bigint, p text, o text)`, f.client, engine.Micros(f.now), string(puntuale.FiringChanged), engine.Columns{
		engine.Column(ended, func(d *dateRow) int64 { return int64(d.rule) }),
		engine.Column(ended, func(d *dateRow) string { return f.people[d.person].Phone }),
		engine.Column(ended, func(d *dateRow) string {
			if f.people[d.person].Phone == "" {
				return "" // the contact was deleted, so the log must not contain its date
			}
			return d.value
		}),
	}); err != nil {
		return fmt.Errorf("log changed dates: %w", err)
	}
	return nil
}

// DueDates finds the earliest dates of a rule that come on or before a day.
const DueDates = `
select d.value, d.version, d.since, d.day, d.run_id, p.id, p.phone, p.name, p.language, p.source, p.fields, p.tags, p.created_at, p.changed_at
from (select * from automation_date x where x.client_id = $1 and x.rule_id = $2 and x.day <= $3 order by x.day limit $4) d
join person p on p.client_id = d.client_id and p.id = d.person_id`

func (s *Rules) DueDates(ctx context.Context, d puntuale.DateRule, by puntuale.Date, limit int) ([]puntuale.AutomationDate, error) {
	all, err := engine.QueryAll(ctx, s.db.DispatchReads, DueDates, []any{d.Client, d.Rule.ID, by.Int(), limit}, func(r engine.Row, x *puntuale.AutomationDate) error {
		var day int
		x.Client, x.Rule = d.Client, d.Rule.ID
		c := &x.Contact
		var fault error
		err := r.Scan(engine.ScanFaulty(&fault, &x.Value, &x.Version, engine.ScanTime(&x.Since), &day, &x.Run, &c.ID, &c.Phone, &c.Name, &c.Language, &c.Source, engine.ScanJSON(&c.Fields), engine.ScanJSON(&c.Tags),
			engine.ScanTime(&c.Created), engine.ScanTime(&c.Changed))...)
		x.Day = puntuale.DateFromInt(day)
		if fault != nil { // the stored date is right; all other fields that cannot be decoded count as missing
			c.Fields = map[string]puntuale.ContactField{d.Rule.Trigger.Field: {Kind: puntuale.FieldDate, Value: x.Value}}
		}
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for dates: %w", err))
	}
	return all, nil
}
