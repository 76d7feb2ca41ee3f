package account

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// appliedAtOnce is how many clients one call of ApplyPlan changes at most.
const appliedAtOnce = 200

const faultNoPlan puntuale.ReasonCode = "fault.no_plan"

// FaultBudget is the code of an amount that is no budget.
const FaultBudget puntuale.ReasonCode = "statement.budget" // {1}: the largest amount

// PlanDraft is a partner's request to create a plan, or to replace one as a whole.
type PlanDraft struct {
	Name   string
	Values puntuale.PlanValues     // without Budget
	Budget puntuale.Change[string] // such as 49.90 or 49,90; "": no budget
	Known  []puntuale.Version      // the plan's version must be one of these; empty: any version
	Faults []puntuale.Fault        // the faults that the calling package already found in the request
}

// PlanOf is a client's plan.
type PlanOf struct {
	puntuale.ClientPlan
	Differing []string // the API's names of the values that differ from the plan; empty: none
}

// Plans lists the partner's plans by name.
func (p *Partner) Plans(ctx context.Context) ([]puntuale.ClientPlan, error) {
	all, err := p.tenant.Plans(ctx)
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	return all, nil
}

// Plan returns a plan. Codes: not_found.
func (p *Partner) Plan(ctx context.Context, id string) (puntuale.ClientPlan, error) {
	all, err := p.Plans(ctx)
	if err != nil {
		return puntuale.ClientPlan{}, err
	}
	for _, plan := range all {
		if plan.ID.String() == id {
			return plan, nil
		}
	}
	return puntuale.ClientPlan{}, puntuale.NotFound(puntuale.NoPlan)
}

// PlansOf returns the plans of clients, and in which values the clients differ from them. It omits clients without a
// plan, and clients whose plan was deleted. The clients need no quotas.
func (p *Partner) PlansOf(ctx context.Context, clients ...puntuale.Client) (map[puntuale.ClientID]PlanOf, error) {
	clients = slices.DeleteFunc(slices.Clone(clients), func(c puntuale.Client) bool { return c.Plan == 0 })
	if len(clients) == 0 {
		return nil, nil
	}
	plans, err := p.Plans(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.readLimits(ctx, clients); err != nil {
		return nil, err
	}
	all := make(map[puntuale.ClientID]PlanOf, len(clients))
	for _, c := range clients {
		if i := slices.IndexFunc(plans, func(plan puntuale.ClientPlan) bool { return plan.ID == c.Plan }); i >= 0 {
			all[c.ID] = PlanOf{plans[i], plans[i].Values.Differing(c).Members()}
		}
	}
	return all, nil
}

// readLimits reads the quotas and budgets of clients into them, because a list of clients has none.
func (p *Partner) readLimits(ctx context.Context, clients []puntuale.Client) error {
	quotas, err := p.Quotas(ctx, clients...)
	if err != nil {
		return err
	}
	budgets, err := p.budgets(ctx, clients...)
	if err != nil {
		return err
	}
	for i := range clients {
		clients[i].Quotas, clients[i].Budget = quotas[clients[i].ID], budgets[clients[i].ID]
	}
	return nil
}

// budgets returns the amounts of the clients' budgets. A budget in another currency than that of the list of prices is no
// longer counted. Its amount is -1, which differs from every plan.
func (p *Partner) budgets(ctx context.Context, clients ...puntuale.Client) (map[puntuale.ClientID]int64, error) {
	ids := make([]puntuale.ClientID, len(clients))
	for i := range clients {
		ids[i] = clients[i].ID
	}
	found, err := p.tenant.Budgets(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	amounts := make(map[puntuale.ClientID]int64, len(found))
	for id, b := range found {
		if amounts[id] = b.Amount; b.Currency != p.accounts.currency {
			amounts[id] = -1
		}
	}
	return amounts, nil
}

// CreatePlan creates a plan. Codes: invalid; conflict if another plan has the name, or the partner has
// [puntuale.MaxPlans].
func (p *Partner) CreatePlan(ctx context.Context, d PlanDraft, o control.Once[puntuale.ClientPlan]) (puntuale.ClientPlan, error) {
	f := request.Faults(d.Faults)
	once, clash, err := o.Begin(ctx, p.tenant, &f)
	if err != nil {
		return puntuale.ClientPlan{}, err
	}
	plan, err := d.plan(f)
	if err != nil {
		return puntuale.ClientPlan{}, err
	}
	if clash != nil {
		return puntuale.ClientPlan{}, clash
	}
	result := func(stored any) puntuale.ClientPlan {
		plan.ID, _ = stored.(puntuale.PlanID)
		return plan
	}
	id, err := p.tenant.CreatePlan(ctx, plan, once.Keep(result))
	if err != nil {
		return puntuale.ClientPlan{}, fmt.Errorf("create a plan: %w", err)
	}
	return result(id), nil
}

// ReplacePlan replaces a plan's name and values. Its clients stay as they are; see ApplyPlan. Codes: not_found, invalid,
// conflict (another plan has the name), precondition_failed.
func (p *Partner) ReplacePlan(ctx context.Context, id string, d PlanDraft) (puntuale.ClientPlan, error) {
	stored, err := p.Plan(ctx, id)
	if err != nil {
		return puntuale.ClientPlan{}, err
	}
	plan, err := d.plan(d.Faults)
	if err != nil {
		return puntuale.ClientPlan{}, err
	}
	plan.ID = stored.ID
	if err := p.tenant.UpdatePlan(ctx, plan, d.Known...); err != nil {
		return puntuale.ClientPlan{}, fmt.Errorf("change plan %d: %w", plan.ID, err)
	}
	return plan, nil
}

// DeletePlan deletes a plan, and leaves its clients as they are. Codes: not_found.
func (p *Partner) DeletePlan(ctx context.Context, id string) error {
	plan, err := p.Plan(ctx, id)
	if err != nil {
		return err
	}
	if err := p.tenant.DeletePlan(ctx, plan.ID); err != nil {
		return fmt.Errorf("delete plan %d: %w", plan.ID, err)
	}
	return nil
}

// ApplyPlan gives the plan's values to those of its clients that differ from it, each in a transaction of its own. One
// call changes a bounded number of clients, and returns them, also with an error. more reports whether there may be
// others, for a further call. The days of service still count from the day on which the client got the plan. Neither days
// nor credits are taken away; see [puntuale.PlanValues.Applied]. Codes: not_found.
func (p *Partner) ApplyPlan(ctx context.Context, id string) (changed []puntuale.ClientID, more bool, err error) {
	plan, err := p.Plan(ctx, id)
	if err != nil {
		return nil, false, err
	}
	for cursor := ""; ; {
		clients, next, err := p.tenant.FindClients(ctx, puntuale.ClientFilter{Plan: plan.ID}, puntuale.Page{Limit: appliedAtOnce, Cursor: cursor})
		if err != nil {
			return changed, false, fmt.Errorf("list the clients of plan %d: %w", plan.ID, err)
		}
		if err := p.readLimits(ctx, clients); err != nil {
			return changed, false, err
		}
		for _, c := range clients {
			if len(p.applied(plan, c).Members()) == 0 {
				continue
			}
			if len(changed) == appliedAtOnce {
				return changed, true, nil
			}
			done, err := p.applyTo(ctx, plan, c.ID)
			if err != nil {
				return changed, false, fmt.Errorf("apply plan %d to client %d: %w", plan.ID, c.ID, err)
			}
			if done {
				changed = append(changed, c.ID)
			}
		}
		if cursor = next; cursor == "" {
			return changed, false, nil
		}
	}
}

// applied returns what a client of the plan gets now.
func (p *Partner) applied(plan puntuale.ClientPlan, c puntuale.Client) puntuale.PlanValues {
	return plan.Values.Applied(c, p.accounts.control.DayOf(c, p.accounts.clock.Now()))
}

// applyTo gives a client of a plan the values that it lacks. done is false if it lacks none any more, or if the client
// left the plan.
func (p *Partner) applyTo(ctx context.Context, plan puntuale.ClientPlan, id puntuale.ClientID) (done bool, err error) {
	for {
		c, err := p.tenant.Client(ctx, id)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound || err == nil && c.Plan != plan.ID {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		budgets, err := p.budgets(ctx, c)
		if err != nil {
			return false, err
		}
		c.Budget = budgets[id]
		values := p.applied(plan, c)
		if len(values.Members()) == 0 {
			return false, nil
		}
		r := ClientChange{Known: []puntuale.Version{c.Version()}, RefillTo: plan.Values.Granted()}
		if granted := values.Credits.To; granted != nil { // credits that were paid besides the grant stay
			r.least, values.Credits = *granted, puntuale.Change[*int64]{}
		}
		r.take(values, c.PlanSince)
		now := p.accounts.clock.Now()
		patch, err := p.accounts.patch(c, r, now)
		if err != nil {
			return false, err
		}
		_, err = p.tenant.UpdateClient(ctx, id, patch, now)
		switch puntuale.CodeOf(err) {
		case puntuale.CodePrecondition: // somebody changed the client meanwhile
		case puntuale.CodeNotFound:
			return false, nil
		default:
			return err == nil, err
		}
	}
}

// moveTo gives the request the values of the plan that it names, beneath its own. account is the client before the
// change. If the request names no plan of the partner, it gets a fault.
func (p *Partner) moveTo(ctx context.Context, r *ClientChange, account puntuale.Client) error {
	if !r.Plan.Set || r.Plan.To == "" {
		return nil
	}
	plan, err := p.Plan(ctx, r.Plan.To)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		r.Faults = append(r.Faults, puntuale.Fault{Location: "body.plan", Code: faultNoPlan, Value: r.Plan.To})
		return nil
	}
	if err != nil {
		return err
	}
	if r.Zone.Set {
		account.Zone = r.Zone.To
	}
	r.plan = plan.ID
	r.planSince = p.accounts.control.DayOf(account, p.accounts.clock.Now())
	r.take(plan.Values, r.planSince)
	return nil
}

// take sets the members that are not set yet to a plan's values.
func (r *ClientChange) take(v puntuale.PlanValues, since puntuale.Date) {
	under(&r.Profile, v.Profile)
	under(&r.Refill, v.Refill)
	under(&r.Features, v.Features)
	under(&r.Cap, v.Cap)
	under(&r.budget, v.Budget)
	if ends := v.Expires(since); ends.Set {
		text := ""
		if !ends.To.IsZero() {
			text = ends.To.String()
		}
		under(&r.Expires, puntuale.ChangeTo(text))
	}
	if !r.Credits.Set && !r.CreditsAdd.Set {
		under(&r.RefillTo, v.Granted())
		r.Credits = v.Credits
	}
	under(&r.RefillTo, v.RefillTo)
	for q, limit := range v.Quotas {
		if _, set := r.Quotas[q]; !set {
			if r.Quotas == nil {
				r.Quotas = map[puntuale.Quota]*int64{}
			}
			r.Quotas[q] = &limit
		}
	}
}

// under sets a change to a value, unless it is set already.
func under[T any](c *puntuale.Change[T], value puntuale.Change[T]) {
	if !c.Set {
		*c = value
	}
}

// plan checks the request.
func (d PlanDraft) plan(f request.Faults) (puntuale.ClientPlan, error) {
	f.Required("body.name", d.Name, puntuale.MaxName)
	v := d.Values
	r := ClientChange{Profile: v.Profile, Refill: v.Refill, RefillTo: v.RefillTo, Credits: v.Credits, Cap: v.Cap, Features: v.Features, Quotas: map[puntuale.Quota]*int64{}}
	for q, limit := range v.Quotas {
		r.Quotas[q] = &limit
	}
	r.checkTexts(&f)
	r.checkCredits(&f, puntuale.Client{})
	r.checkQuotas(&f)
	if days := v.Days.To; days != nil && (*days < 1 || *days > puntuale.MaxPlanDays) {
		f.Add("body.days", puntuale.FaultNotInRange, *days, "1", strconv.Itoa(puntuale.MaxPlanDays))
	}
	if d.Budget.Set {
		v.Budget.Set = true
		if text := strings.ReplaceAll(strings.TrimSpace(d.Budget.To), ",", "."); text != "" {
			amount, err := puntuale.ParseMoney(text)
			if err != nil || amount == 0 {
				f.Add("body.budget", FaultBudget, d.Budget.To, puntuale.Money(puntuale.MaxBudget))
			}
			v.Budget.To = amount
		}
	}
	return puntuale.ClientPlan{Name: strings.TrimSpace(d.Name), Values: v}, f.Err()
}
