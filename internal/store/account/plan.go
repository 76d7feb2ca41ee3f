package account

import (
	"context"
	"fmt"
	"strconv"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Codes of the faults that functions in this file return.
const (
	faultPlanNameTaken puntuale.ReasonCode = "plan.name_taken"
	faultPlanTooMany   puntuale.ReasonCode = "plan.too_many"
)

// Plans lists the partner's plans by name. There are at most [puntuale.MaxPlans].
func (p Partner) Plans(ctx context.Context) ([]puntuale.ClientPlan, error) {
	all, err := engine.QueryAll(ctx, p.s.CallReads, `select id, name, body from client_plan where partner_id = $1 order by lower(name), id`, []any{p.id},
		func(r engine.Row, plan *puntuale.ClientPlan) error {
			return r.Scan(&plan.ID, &plan.Name, engine.ScanJSON(&plan.Values))
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list plans: %w", err))
	}
	return all, nil
}

// CreatePlan creates a plan. Codes: conflict (another plan has the name, or the partner has [puntuale.MaxPlans]).
func (p Partner) CreatePlan(ctx context.Context, plan puntuale.ClientPlan, o *puntuale.Idempotency) (id puntuale.PlanID, err error) {
	body, err := engine.ToJSON(plan.Values)
	if err != nil {
		return 0, err
	}
	err = p.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		var n int64
		found, err := engine.QueryOne(ctx, a, `select id from partner where id = $1 for update`, []any{p.id}, &n)
		if err := engine.ThereOr(found, err, puntuale.NoPartner); err != nil {
			return nil, err
		}
		if _, err := engine.QueryOne(ctx, a, `select count(*) from client_plan where partner_id = $1`, []any{p.id}, &n); err != nil {
			return nil, fmt.Errorf("count plans: %w", err)
		}
		if n >= puntuale.MaxPlans {
			return nil, puntuale.Conflict(faultPlanTooMany, strconv.Itoa(puntuale.MaxPlans))
		}
		next, err := engine.NextNumber(ctx, a, "client_plan")
		if err != nil {
			return nil, err
		}
		id = puntuale.PlanID(next)
		_, err = a.Exec(ctx, `insert into client_plan (partner_id, id, name, body) values ($1, $2, $3, $4)`, p.id, id, plan.Name, body)
		return id, planError(err, "insert a plan")
	})
	return id, err
}

// UpdatePlan replaces a plan's name and values. Codes: not_found, conflict (another plan has the name),
// precondition_failed.
func (p Partner) UpdatePlan(ctx context.Context, plan puntuale.ClientPlan, known ...puntuale.Version) error {
	body, err := engine.ToJSON(plan.Values)
	if err != nil {
		return err
	}
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		stored := puntuale.ClientPlan{ID: plan.ID}
		found, err := engine.QueryOne(ctx, a, `select name, body from client_plan where partner_id = $1 and id = $2 for update`, []any{p.id, plan.ID},
			&stored.Name, engine.ScanJSON(&stored.Values))
		if err := engine.ThereOr(found, err, puntuale.NoPlan); err != nil {
			return err
		}
		if err := puntuale.CheckVersion(stored.Version(), known); err != nil {
			return err
		}
		_, err = a.Exec(ctx, `update client_plan set name = $3, body = $4 where partner_id = $1 and id = $2`, p.id, plan.ID, plan.Name, body)
		return planError(err, "update a plan")
	})
}

// DeletePlan deletes a plan. Its clients keep their values. Codes: not_found.
func (p Partner) DeletePlan(ctx context.Context, id puntuale.PlanID) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `delete from client_plan where partner_id = $1 and id = $2`, p.id, id)
		if err != nil {
			return fmt.Errorf("delete a plan: %w", err)
		}
		if n == 0 {
			return puntuale.NotFound(puntuale.NoPlan)
		}
		return nil
	})
}

func planError(err error, action string) error {
	switch {
	case engine.Repeated(err):
		return puntuale.Conflict(faultPlanNameTaken)
	case err != nil:
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}
