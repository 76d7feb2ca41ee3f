package automation

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

func (s *Rules) SetTimers(ctx context.Context, all []puntuale.AutomationTimer, triggers []puntuale.TakenTrigger) error {
	if len(all) == 0 && len(triggers) == 0 {
		return nil
	}
	type T = puntuale.AutomationTimer
	if err := s.db.EventWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
		if len(all) > 0 {
			// There is no timer if the rule has already acted for the run, or if the person was erased. The run of an erased person has no phone.
			if _, err := a.Exec(ctx, `insert into automation_timer as x (client_id, rule_id, run_id, phone, since, due_at)
 select u.c, u.r, u.i, u.p, u.s, u.d from $u(c bigint, r bigint, i bigint, p text, s bigint, d bigint)
 where not exists (select 1 from automation_occurrence o where o.client_id = u.c and o.rule_id = u.r and o.phone = u.p and o.occurrence = cast(u.i as text))
  and exists (select 1 from run r where r.client_id = u.c and r.id = u.i and r.phone <> '')
 on conflict (client_id, rule_id, run_id) do update set since = greatest(x.since, excluded.since), due_at = greatest(x.due_at, excluded.due_at)`, engine.Columns{
				engine.Column(all, func(t *T) int64 { return int64(t.Client) }),
				engine.Column(all, func(t *T) int64 { return int64(t.Rule) }),
				engine.Column(all, func(t *T) int64 { return int64(t.Run) }),
				engine.Column(all, func(t *T) string { return t.Phone }),
				engine.Column(all, func(t *T) int64 { return engine.Micros(t.Since) }),
				engine.Column(all, func(t *T) int64 { return engine.Micros(t.Due) }),
			}); err != nil {
				return fmt.Errorf("set timers: %w", err)
			}
		}
		return RemoveTriggers(ctx, a, triggers)
	}), false); err != nil {
		return fmt.Errorf("set timers: %w", err)
	}
	return nil
}

// RemoveTriggers removes trigger rows, except those that another runner has taken in the meantime.
func RemoveTriggers(ctx context.Context, a engine.Querier, all []puntuale.TakenTrigger) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `delete from automation_trigger where (id, next_at) in (select u.i, u.n from $u(i bigint, n bigint))`, leases(all)); err != nil {
		return fmt.Errorf("remove triggers: %w", err)
	}
	return nil
}

// leases returns the ids of triggers, and the leases with which a runner took them.
func leases(all []puntuale.TakenTrigger) engine.Columns {
	return engine.Columns{
		engine.Column(all, func(t *puntuale.TakenTrigger) int64 { return t.ID }),
		engine.Column(all, func(t *puntuale.TakenTrigger) int64 { return t.Lease }),
	}
}

// dueTimers reads due timers, except those of the clients in the batch.
const dueTimers = `
select t.client_id, t.rule_id, t.run_id, t.phone, t.since, t.due_at, coalesce(r.session_id, 0), coalesce(r.depth, 0)
from (select * from automation_timer d where d.due_at <= $1 and d.client_id not in (select u.c from $u(c bigint)) order by d.due_at limit $2) t left join run r on r.client_id = t.client_id and r.id = t.run_id`

// wroteSince finds the timers whose persons wrote at or after a time. Reactions and phone calls do not count.
const wroteSince = `select distinct u.i from $u(i bigint, c bigint, p text, s bigint) cross join reply y
where y.client_id = u.c and y.phone = u.p and y.own = 0 and y.at >= u.s and y.kind not in ('reaction', 'call')`

// findAnswered sets the field Answered of timers whose persons wrote since, under any name.
func findAnswered(ctx context.Context, a engine.Querier, all []*puntuale.AutomationTimer) error {
	type T = *puntuale.AutomationTimer
	var places, clients, since []int64
	var names []string
	if err := alias.Each(ctx, a, engine.Column(all, func(t *T) int64 { return int64((*t).Client) }), engine.Column(all, func(t *T) string { return (*t).Phone }), func(i int, name string) {
		places, clients, since = append(places, int64(i)), append(clients, int64(all[i].Client)), append(since, engine.Micros(all[i].Since))
		names = append(names, name)
	}); err != nil || len(all) == 0 {
		return err
	}
	for _, t := range all {
		t.Answered = false
	}
	if err := a.Query(ctx, wroteSince, []any{engine.Columns{places, clients, names, since}}, func(r engine.Row) error {
		var i int
		err := r.Scan(&i)
		all[i].Answered = true
		return err
	}); err != nil {
		return fmt.Errorf("look for answers: %w", err)
	}
	return nil
}

func (s *Rules) DueTimers(ctx context.Context, now time.Time, limit int, busy []puntuale.ClientID) ([]puntuale.AutomationTimer, error) {
	all, err := engine.QueryAll(ctx, s.db.DispatchReads, dueTimers, []any{engine.Micros(now), limit, clientIDs(busy)}, func(r engine.Row, t *puntuale.AutomationTimer) error {
		return r.Scan(&t.Client, &t.Rule, &t.Run, &t.Phone, engine.ScanTime(&t.Since), engine.ScanTime(&t.Due), &t.Session, &t.Depth)
	})
	if err == nil {
		err = findAnswered(ctx, s.db.DispatchReads, engine.Column(all, func(t *puntuale.AutomationTimer) *puntuale.AutomationTimer { return t }))
	}
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for timers: %w", err))
	}
	return all, nil
}

func (s *Rules) DropTimers(ctx context.Context, all []puntuale.AutomationTimer) error {
	if len(all) == 0 {
		return nil
	}
	type T = puntuale.AutomationTimer
	return s.db.EventWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from automation_timer where (client_id, rule_id, run_id, due_at) in (select u.c, u.r, u.i, u.d from $u(c bigint, r bigint, i bigint, d bigint))`, engine.Columns{
			engine.Column(all, func(t *T) int64 { return int64(t.Client) }),
			engine.Column(all, func(t *T) int64 { return int64(t.Rule) }),
			engine.Column(all, func(t *T) int64 { return int64(t.Run) }),
			engine.Column(all, func(t *T) int64 { return engine.Micros(t.Due) }),
		})
		return err
	}), false)
}
