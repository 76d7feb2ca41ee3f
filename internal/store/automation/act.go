package automation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

const (
	// MoveDates sets the next day of dates, except dates that changed after the act was planned.
	MoveDates = `update automation_date set day = u.n from $u(c bigint, r bigint, p bigint, v bigint, d integer, n integer)
 where automation_date.client_id = u.c and automation_date.rule_id = u.r and automation_date.person_id = u.p and automation_date.version = u.v and automation_date.day = u.d
 returning automation_date.rule_id, automation_date.person_id`

	// KeepRuns stores for each date which run was started for it.
	KeepRuns = `update automation_date set run_id = u.i from $u(c bigint, r bigint, p bigint, i bigint)
 where automation_date.client_id = u.c and automation_date.rule_id = u.r and automation_date.person_id = u.p`

	// CountFirings adds the firings of one transaction to the rules' counts.
	CountFirings = `update automation set fired = automation.fired + u.n, fired_at = $2::bigint from $u(r bigint, n bigint) where automation.client_id = $1 and automation.id = u.r`

	// LockPersons locks the contacts with the given phone numbers.
	LockPersons = `select p.id from $u(c bigint, p text) cross join person p where p.client_id = u.c and p.phone = u.p order by p.client_id, p.id for share of p`
)

// ActTransaction is the part of an acting transaction that handles rules, triggers, timers, dates and the log. Package
// store adds the part that handles runs and messages.
type ActTransaction struct {
	*puntuale.ActBatch
	A engine.Querier

	Live []*puntuale.AutomationAct // the acts that the transaction still has to execute
}

// Lock locks the client's row in automation_client, so that only one transaction at a time acts for a client.
// Afterwards all acts are in Live.
func (x *ActTransaction) Lock(ctx context.Context) error {
	x.Live = x.Live[:0]
	for _, act := range x.Acts {
		act.Outcome, act.Message, act.Reached = puntuale.ActDone, nil, 0
		x.Live = append(x.Live, act)
	}
	return lockClient(ctx, x.A, x.Client)
}

// drop removes some acts from Live, and sets their outcome.
func (x *ActTransaction) drop(outcome puntuale.ActOutcome, matches func(*puntuale.AutomationAct) bool) {
	x.Live = slices.DeleteFunc(x.Live, func(act *puntuale.AutomationAct) bool {
		dropped := matches(act)
		if dropped {
			act.Outcome = outcome
		}
		return dropped
	})
}

// DropChanged drops the acts whose rules changed after the acts were planned. It locks the contacts of the other acts.
func (x *ActTransaction) DropChanged(ctx context.Context) error {
	stamps := map[puntuale.AutomationID]int64{}
	if err := x.A.Query(ctx, `select a.id, a.stamp from $u(i bigint) cross join automation a where a.client_id = $1 and a.id = u.i and a.active = 1`, []any{x.Client, engine.Columns{
		engine.Column(x.Live, func(act **puntuale.AutomationAct) int64 { return int64((*act).Rule) }),
	}}, func(r engine.Row) error {
		var id puntuale.AutomationID
		var stamp int64
		err := r.Scan(&id, &stamp)
		stamps[id] = stamp
		return err
	}); err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	x.drop(puntuale.ActAgain, func(act *puntuale.AutomationAct) bool { return stamps[act.Rule] != act.Stamp })
	if len(x.Live) == 0 {
		return nil
	}
	names, err := alias.Names(ctx, x.A, x.Client, x.phones()...)
	if err != nil {
		return err
	}
	if _, err := engine.QueryAll(ctx, x.A, LockPersons, []any{engine.Columns{clientColumn(x.Client, len(names)), names}}, engine.ScanOne[int64]); err != nil {
		return fmt.Errorf("lock contacts: %w", err)
	}
	return nil
}

func (x *ActTransaction) phones() []string {
	return engine.Column(x.Live, func(act **puntuale.AutomationAct) string { return (*act).Phone })
}

// Begin drops the acts whose trigger, timer or date was removed or changed, and the acts whose occurrence is already
// stored. For the other acts it stores the occurrence, removes the timer, and moves the date to its next day.
func (x *ActTransaction) Begin(ctx context.Context) error {
	for _, step := range []func(context.Context) error{x.triggers, x.timers, x.dates, x.occurrences} {
		if len(x.Live) == 0 {
			return nil
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *ActTransaction) triggers(ctx context.Context) error {
	some := slices.DeleteFunc(slices.Clone(x.Live), func(act *puntuale.AutomationAct) bool { return act.Trigger == nil })
	if len(some) == 0 {
		return nil
	}
	there := map[int64]bool{}
	if err := x.A.Query(ctx, `select t.id from $u(i bigint, n bigint) cross join automation_trigger t where t.id = u.i and t.next_at = u.n for update of t`, []any{engine.Columns{
		engine.Column(some, func(act **puntuale.AutomationAct) int64 { return (*act).Trigger.ID }),
		engine.Column(some, func(act **puntuale.AutomationAct) int64 { return (*act).Trigger.Lease }),
	}}, func(r engine.Row) error {
		var id int64
		err := r.Scan(&id)
		there[id] = true
		return err
	}); err != nil {
		return fmt.Errorf("lock triggers: %w", err)
	}
	x.drop(puntuale.ActDropped, func(act *puntuale.AutomationAct) bool { return act.Trigger != nil && !there[act.Trigger.ID] })
	return nil
}

type timerKey struct {
	rule puntuale.AutomationID
	run  puntuale.RunID
}

func (x *ActTransaction) timers(ctx context.Context) error {
	some := slices.DeleteFunc(slices.Clone(x.Live), func(act *puntuale.AutomationAct) bool { return act.Timer == nil })
	if len(some) == 0 {
		return nil
	}
	columns := engine.Columns{
		engine.Column(some, func(act **puntuale.AutomationAct) int64 { return int64((*act).Timer.Rule) }),
		engine.Column(some, func(act **puntuale.AutomationAct) int64 { return int64((*act).Timer.Run) }),
		engine.Column(some, func(act **puntuale.AutomationAct) int64 { return engine.Micros((*act).Timer.Due) }),
	}
	there := map[timerKey]bool{}
	if err := x.A.Query(ctx, `select t.rule_id, t.run_id
 from $u(r bigint, i bigint, d bigint) cross join automation_timer t where t.client_id = $1 and t.rule_id = u.r and t.run_id = u.i and t.due_at = u.d for update of t`, []any{x.Client, columns}, func(r engine.Row) error {
		var k timerKey
		err := r.Scan(&k.rule, &k.run)
		there[k] = true
		return err
	}); err != nil {
		return fmt.Errorf("look for timers: %w", err)
	}
	if err := findAnswered(ctx, x.A, engine.Column(some, func(act **puntuale.AutomationAct) *puntuale.AutomationTimer { return (*act).Timer })); err != nil {
		return err
	}
	if _, err := x.A.Exec(ctx, `delete from automation_timer where client_id = $1 and (rule_id, run_id, due_at) in (select u.r, u.i, u.d from $u(r bigint, i bigint, d bigint))`,
		x.Client, columns); err != nil {
		return fmt.Errorf("remove timers: %w", err)
	}
	x.drop(puntuale.ActDropped, func(act *puntuale.AutomationAct) bool {
		return act.Timer != nil && !there[timerKey{act.Timer.Rule, act.Timer.Run}]
	})
	return nil
}

type dateKey struct {
	rule   puntuale.AutomationID
	person puntuale.ContactID
}

func (x *ActTransaction) dates(ctx context.Context) error {
	some := slices.DeleteFunc(slices.Clone(x.Live), func(act *puntuale.AutomationAct) bool { return act.Date == nil })
	if len(some) == 0 {
		return nil
	}
	type A = *puntuale.AutomationAct
	there := map[dateKey]bool{}
	if err := x.A.Query(ctx, MoveDates, []any{engine.Columns{
		clientColumn(x.Client, len(some)),
		engine.Column(some, func(a *A) int64 { return int64((*a).Date.Rule) }),
		engine.Column(some, func(a *A) int64 { return int64((*a).Date.Contact.ID) }),
		engine.Column(some, func(a *A) int64 { return (*a).Date.Version }),
		engine.Column(some, func(a *A) int64 { return int64((*a).Date.Day.Int()) }),
		engine.Column(some, func(a *A) int64 { return dayNumber((*a).Date.Next) }),
	}}, func(r engine.Row) error {
		var k dateKey
		err := r.Scan(&k.rule, &k.person)
		there[k] = true
		return err
	}); err != nil {
		return fmt.Errorf("move dates on: %w", err)
	}
	x.drop(puntuale.ActDropped, func(act *puntuale.AutomationAct) bool {
		return act.Date != nil && !there[dateKey{act.Date.Rule, act.Date.Contact.ID}]
	})
	return nil
}

// noDay is the stored day of a date that does not come again.
const noDay = 99999999

func dayNumber(d puntuale.Date) int64 {
	if d.IsZero() {
		return noDay
	}
	return int64(d.Int())
}

func (x *ActTransaction) occurrences(ctx context.Context) error {
	type A = *puntuale.AutomationAct
	if err := x.dropOtherNames(ctx); err != nil || len(x.Live) == 0 {
		return err
	}
	fresh := map[string]bool{}
	if err := x.A.Query(ctx, `insert into automation_occurrence (client_id, rule_id, phone, occurrence, keep_until)
 select $1::bigint, u.r, u.p, u.o, u.k from $u(r bigint, p text, o text, k bigint) where true
 on conflict (client_id, rule_id, phone, occurrence) do nothing returning phone`, []any{x.Client, engine.Columns{
		engine.Column(x.Live, func(a *A) int64 { return int64((*a).Rule) }),
		engine.Column(x.Live, func(a *A) string { return (*a).Phone }),
		engine.Column(x.Live, func(a *A) string { return (*a).Occurrence }),
		engine.Column(x.Live, func(a *A) int64 { return engine.Micros((*a).Keep) }),
	}}, func(r engine.Row) error {
		var phone string
		err := r.Scan(&phone)
		fresh[phone] = true
		return err
	}); err != nil {
		return fmt.Errorf("note occurrences: %w", err)
	}
	x.drop(puntuale.ActDropped, func(act *puntuale.AutomationAct) bool { return !fresh[act.Phone] })
	return nil
}

// dropOtherNames drops the acts whose occurrence is already stored under another name of the person.
func (x *ActTransaction) dropOtherNames(ctx context.Context) error {
	var rules []int64
	var names, occurrences []string
	var acts []*puntuale.AutomationAct
	var places []int64
	if err := alias.Each(ctx, x.A, clientColumn(x.Client, len(x.Live)), x.phones(), func(i int, name string) {
		if act := x.Live[i]; name != act.Phone {
			rules, names, occurrences = append(rules, int64(act.Rule)), append(names, name), append(occurrences, act.Occurrence)
			acts, places = append(acts, act), append(places, int64(len(places)))
		}
	}); err != nil || len(acts) == 0 {
		return err
	}
	twice := map[*puntuale.AutomationAct]bool{}
	if err := x.A.Query(ctx, `select u.n from $u(n bigint, r bigint, p text, o text) cross join automation_occurrence o
 where o.client_id = $1 and o.rule_id = u.r and o.phone = u.p and o.occurrence = u.o`, []any{x.Client, engine.Columns{places, rules, names, occurrences}}, func(r engine.Row) error {
		var n int
		err := r.Scan(&n)
		twice[acts[n]] = true
		return err
	}); err != nil {
		return fmt.Errorf("look for occurrences: %w", err)
	}
	x.drop(puntuale.ActDropped, func(act *puntuale.AutomationAct) bool { return twice[act] })
	return nil
}

// Decide calls the Decide function of each act, with facts that the transaction reads. It drops an act if the contact
// changed after the act was planned, because such an act must be planned again.
func (x *ActTransaction) Decide(ctx context.Context) error {
	if len(x.Live) == 0 {
		return nil
	}
	var wanted puntuale.WantedFacts
	for _, act := range x.Live {
		wanted = wanted.Union(act.Wanted)
	}
	wanted.First = false // the plan has already checked this fact, and the first reply does not change
	known, err := FactsOf(ctx, x.A, x.Client, x.phones(), wanted, x.Now)
	if err != nil {
		return err
	}
	var stale []*puntuale.AutomationAct
	for _, act := range x.Live {
		f := known[act.Phone]
		if !sameContact(f.Contact, act.Contact) {
			stale = append(stale, act)
			continue
		}
		if act.Timer != nil {
			f.Replied = act.Timer.Answered
		}
		if act.Reason == "" && act.Decide != nil {
			act.Reason = act.Decide(*f)
		}
	}
	return x.takeBack(ctx, stale)
}

func sameContact(a, b *puntuale.Contact) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Changed.Equal(b.Changed)
}

// takeBack drops acts that must be planned again, and undoes what Begin wrote for them.
func (x *ActTransaction) takeBack(ctx context.Context, stale []*puntuale.AutomationAct) error {
	if len(stale) == 0 {
		return nil
	}
	type A = *puntuale.AutomationAct
	x.drop(puntuale.ActAgain, func(act *puntuale.AutomationAct) bool { return slices.Contains(stale, act) })
	if _, err := x.A.Exec(ctx, `delete from automation_occurrence where client_id = $1 and (rule_id, phone, occurrence) in (select u.r, u.p, u.o from $u(r bigint, p text, o text))`, x.Client, engine.Columns{
		engine.Column(stale, func(a *A) int64 { return int64((*a).Rule) }),
		engine.Column(stale, func(a *A) string { return (*a).Phone }),
		engine.Column(stale, func(a *A) string { return (*a).Occurrence }),
	}); err != nil {
		return fmt.Errorf("take occurrences back: %w", err)
	}
	for _, act := range stale {
		if d := act.Date; d != nil {
			if _, err := x.A.Exec(ctx, `update automation_date set day = $4::integer where client_id = $1 and rule_id = $2 and person_id = $3`, x.Client, d.Rule, d.Contact.ID, d.Day.Int()); err != nil {
				return fmt.Errorf("take a date back: %w", err)
			}
		}
		if t := act.Timer; t != nil {
			if _, err := x.A.Exec(ctx, `insert into automation_timer (client_id, rule_id, run_id, phone, since, due_at) values ($1, $2, $3, $4, $5, $6)`,
				x.Client, t.Rule, t.Run, t.Phone, engine.Micros(t.Since), engine.Micros(t.Due)); err != nil {
				return fmt.Errorf("take a timer back: %w", err)
			}
		}
	}
	return nil
}

// End writes the log, the events and the counts, and stores which runs were started for dates. It removes each trigger,
// unless an act of this trigger must be planned again.
func (x *ActTransaction) End(ctx context.Context) error {
	if err := x.log(ctx); err != nil {
		return err
	}
	return RemoveTriggers(ctx, x.A, slices.DeleteFunc(slices.Clone(x.Triggers), func(t puntuale.TakenTrigger) bool {
		return slices.ContainsFunc(x.Acts, func(act *puntuale.AutomationAct) bool {
			return act.Outcome == puntuale.ActAgain && act.Trigger != nil && act.Trigger.ID == t.ID
		})
	}))
}

func (x *ActTransaction) log(ctx context.Context) error {
	if len(x.Live) == 0 {
		return nil
	}
	type A = *puntuale.AutomationAct
	messages := make([]string, len(x.Live))
	fired := map[puntuale.AutomationID]int64{}
	var facts []outbox.Fact
	var dated []A
	for i, act := range x.Live {
		if len(act.Message) > 0 {
			messages[i] = "[" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(act.Message)), ","), "[]") + "]"
		}
		if act.Reason != "" {
			continue
		}
		fired[act.Rule]++
		detail, err := firedDetail(act)
		if err != nil {
			return err
		}
		facts = append(facts, outbox.Fact{Client: x.Client, Type: puntuale.EventAutomationFired, Subject: int64(act.Rule), Detail: detail})
		if act.Date != nil && len(act.Message) > 0 {
			dated = append(dated, act)
		}
	}
	if _, err := x.A.Exec(ctx, `insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted, reached, reason, detail, depth, messages)
 select $1::bigint, u.r, u.p, $2::bigint, u.o, u.a, u.n, u.w, u.d, u.y, u.m from $u(r bigint, p text, o text, a smallint, n smallint, w text, d text, y smallint, m text)`, x.Client, engine.Micros(x.Now), engine.Columns{
		engine.Column(x.Live, func(a *A) int64 { return int64((*a).Rule) }),
		engine.Column(x.Live, func(a *A) string { return (*a).Phone }),
		engine.Column(x.Live, func(a *A) string { return (*a).Occurrence }),
		engine.Column(x.Live, func(a *A) int64 { return engine.Bit((*a).Reason == "") }),
		engine.Column(x.Live, func(a *A) int64 { return int64((*a).Reached) }),
		engine.Column(x.Live, func(a *A) string { return string((*a).Reason) }),
		engine.Column(x.Live, func(a *A) string { return (*a).Detail }),
		engine.Column(x.Live, func(a *A) int64 { return int64((*a).Depth) }),
		messages,
	}); err != nil {
		return fmt.Errorf("write the log of rules: %w", err)
	}
	if err := x.count(ctx, fired); err != nil {
		return err
	}
	if len(dated) > 0 {
		if _, err := x.A.Exec(ctx, KeepRuns, engine.Columns{
			clientColumn(x.Client, len(dated)),
			engine.Column(dated, func(a *A) int64 { return int64((*a).Date.Rule) }),
			engine.Column(dated, func(a *A) int64 { return int64((*a).Date.Contact.ID) }),
			engine.Column(dated, func(a *A) int64 { return int64((*a).Message[0]) }),
		}); err != nil {
			return fmt.Errorf("keep runs of dates: %w", err)
		}
	}
	return outbox.Emit(ctx, x.A, x.Now, facts)
}

// count adds the firings to the rules' counts.
func (x *ActTransaction) count(ctx context.Context, fired map[puntuale.AutomationID]int64) error {
	if len(fired) == 0 {
		return nil
	}
	rules := slices.Sorted(maps.Keys(fired))
	if _, err := x.A.Exec(ctx, CountFirings, x.Client, engine.Micros(x.Now), engine.Columns{
		engine.Column(rules, func(id *puntuale.AutomationID) int64 { return int64(*id) }),
		engine.Column(rules, func(id *puntuale.AutomationID) int64 { return fired[*id] }),
	}); err != nil {
		return fmt.Errorf("count firings: %w", err)
	}
	return nil
}

// firedDetail returns the detail of the event about an act. It contains no data of the person: a receiver finds the
// person through the messages.
func firedDetail(act *puntuale.AutomationAct) (string, error) {
	ids := make([]string, len(act.Message))
	for i, id := range act.Message {
		ids[i] = id.String()
	}
	text, err := json.Marshal(map[string]any{"automation": act.Rule.String(), "messages": ids})
	if err != nil {
		return "", fmt.Errorf("write an event: %w", err)
	}
	return string(text), nil
}

// Blacklisted returns the blacklist entries that the acts add, sorted by phone.
func (x *ActTransaction) Blacklisted() (all []puntuale.BlacklistEntry) {
	for _, act := range x.Live {
		if act.Reason == "" && act.Blacklist != nil {
			all = append(all, *act.Blacklist)
		}
	}
	engine.Sort(all, func(a, b puntuale.BlacklistEntry) int { return strings.Compare(a.Phone, b.Phone) })
	return all
}
