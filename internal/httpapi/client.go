package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control/account"
)

func registerClients(a *api) {
	partnerOnce(a, operation{
		id: "createClient", method: http.MethodPost, path: "/api/client/create",
		summary:  "Create a client account with its login, its default session and its first key",
		body:     clientBody{},
		refusals: []int{http.StatusConflict},
	}, withBody(createClient))
	const all, one = "/api/plans", "/api/plans/{id}"
	missing := []int{http.StatusNotFound}
	partner(a, operation{id: "listPlans", method: http.MethodGet, path: all, strict: true, summary: "List the plans, by name"}, a.listPlans)
	partnerOnce(a, operation{id: "createPlan", method: http.MethodPost, path: all, body: planBody{},
		summary:     "Create a plan: values that many clients get",
		description: "What the plan leaves out stays as the client has it.", refusals: []int{http.StatusConflict}}, withBody(a.createPlan))
	partner(a, operation{id: "getPlan", method: http.MethodGet, path: one, strict: true, versioned: true, summary: "Get a plan", refusals: missing}, a.getPlan)
	partner(a, operation{id: "replacePlan", method: http.MethodPut, path: one, body: planBody{}, versioned: true,
		summary:     "Replace a plan as a whole",
		description: "Its clients stay as they are, until the plan is applied.", refusals: changes(http.StatusNotFound, http.StatusConflict)}, withBody(a.replacePlan))
	partner(a, operation{id: "deletePlan", method: http.MethodDelete, path: one,
		summary:     "Delete a plan",
		description: "Its clients stay as they are.", refusals: missing}, deletePlan)
	partner(a, operation{id: "applyPlan", method: http.MethodPost, path: one + "/apply",
		summary:     "Give the plan's values to all its clients",
		description: "Also where a client has a value of its own. Each client that differs changes as a whole. One call changes at most 200 clients; repeat it while more is true.", refusals: missing}, applyPlan)
}

// ClientValuesBody documents values of a client, which a plan may have too. It is exported, because huma leaves out
// embedded types that are not exported.
type ClientValuesBody struct {
	Profile  *string               `json:"profile,omitempty" enum:"Account gratuito,Fase di Test,Subscription Mensile,Subscription Annuale"`
	Credits  credits               `json:"credits,omitzero" doc:"An integer, or Illimitati"`
	Refill   *string               `json:"refill_period,omitempty" enum:"Nessuno,Mensile,Annuale" doc:"Counted from the day of creation"`
	RefillTo *int64                `json:"refill_to,omitempty" minimum:"0" doc:"Credits after a refill; else the credits"`
	Cap      nullableMember[int64] `json:"daily_api_cap,omitzero" nullable:"true" minimum:"0" doc:"Calls a day; null: none is refused"`
	Features *[]string             `json:"active_features,omitempty" read:"strings" maxItems:"100"`
	Quotas   *quotasBody           `json:"quotas,omitempty" doc:"How many of each the client may have"`
}

// planBody documents the body of the calls that create and replace a plan.
type planBody struct {
	Name   string                 `json:"name" minLength:"1" maxLength:"200" doc:"No two plans have the same"`
	Days   nullableMember[int64]  `json:"days,omitzero" nullable:"true" minimum:"1" maximum:"36500" doc:"Days of service, from the day on which a client gets the plan; null: it does not expire"`
	Budget nullableMember[string] `json:"budget,omitzero" nullable:"true" doc:"What the messages may cost in a month, such as 49.90, in the currency of the list of prices; null: no budget"`
	ClientValuesBody
	_ closedCheck
}

// PlanAnswer is a plan. It has only the values that the plan sets.
type PlanAnswer struct {
	ID       string                 `json:"id"`
	Name     string                 `json:"name"`
	Days     nullableMember[int64]  `json:"days,omitzero" nullable:"true" doc:"Days of service, from the day on which a client gets the plan; null: it does not expire"`
	Budget   nullableMember[string] `json:"budget,omitzero" nullable:"true" doc:"What the messages may cost in a month, such as 49.90, in the currency of the list of prices; null: no budget"`
	Currency string                 `json:"currency,omitempty" doc:"Of the budget: that of the list of prices. Missing without a budget"`
	ClientValuesBody
}

type plansAnswer struct {
	Plans []PlanAnswer `json:"plans"`
}

func (a *api) planOf(p puntuale.ClientPlan) PlanAnswer {
	v := p.Values
	out := PlanAnswer{ID: p.ID.String(), Name: p.Name, Days: nullableMember[int64](v.Days), ClientValuesBody: ClientValuesBody{
		Profile: valueOf(v.Profile), Credits: credits(v.Credits), Refill: valueOf(v.Refill), RefillTo: valueOf(v.RefillTo),
		Cap: nullableMember[int64](v.Cap), Features: valueOf(v.Features),
	}}
	if v.Budget.Set {
		out.Budget.Set = true
		if v.Budget.To > 0 {
			out.Budget.To, out.Currency = new(puntuale.Money(v.Budget.To)), a.statements.Currency()
		}
	}
	if len(v.Quotas) > 0 {
		member := func(q puntuale.Quota) nullableMember[int64] {
			n, set := v.Quotas[q]
			return nullableMember[int64]{Set: set, To: &n}
		}
		out.Quotas = &quotasBody{Sessions: member(puntuale.QuotaSessions), Sequences: member(puntuale.QuotaSequences), Templates: member(puntuale.QuotaTemplates),
			Users: member(puntuale.QuotaUsers), Keys: member(puntuale.QuotaKeys)}
	}
	return out
}

// valueOf returns the value of a change, or nil for no change.
func valueOf[T any](c puntuale.Change[T]) *T {
	if !c.Set {
		return nil
	}
	return &c.To
}

func (b *planBody) draft(in *call) account.PlanDraft {
	v := puntuale.PlanValues{
		Profile: changeTo(b.Profile), Credits: puntuale.Change[*int64](b.Credits), Refill: changeTo(b.Refill), RefillTo: changeTo(b.RefillTo),
		Cap: puntuale.Change[*int64](b.Cap), Days: puntuale.Change[*int64](b.Days), Features: changeTo(b.Features), Quotas: puntuale.Quotas{},
	}
	for q, limit := range b.Quotas.limits() {
		v.Quotas[q] = q.Default()
		if limit != nil {
			v.Quotas[q] = *limit
		}
	}
	d := account.PlanDraft{Name: b.Name, Values: v, Budget: changeTo(b.Budget.orEmpty()), Faults: in.refused}
	if b.Budget.To != nil {
		d.Budget.To = cmp.Or(*b.Budget.To, "0") // only null means no budget
	}
	return d
}

func (a *api) listPlans(ctx context.Context, p *account.Partner, _ *call, _ *struct{}) (plansAnswer, error) {
	all, err := p.Plans(ctx)
	return plansAnswer{each(all, a.planOf)}, err
}

func (a *api) createPlan(ctx context.Context, p *account.Partner, in *call, q *OnceInput, body *planBody) (PlanAnswer, error) {
	made, err := p.CreatePlan(ctx, body.draft(in), once(in, q, a.planOf))
	return a.planOf(made), err
}

func (a *api) getPlan(ctx context.Context, p *account.Partner, in *call, q *oneInput) (PlanAnswer, error) {
	found, err := p.Plan(ctx, q.ID)
	in.tagged(found.Version())
	return a.planOf(found), err
}

func (a *api) replacePlan(ctx context.Context, p *account.Partner, in *call, q *changeInput, body *planBody) (PlanAnswer, error) {
	d := body.draft(in)
	known, faults := in.knownVersions()
	d.Known, d.Faults = known, append(d.Faults, faults...)
	changed, err := p.ReplacePlan(ctx, q.ID, d)
	if err != nil {
		return PlanAnswer{}, err
	}
	in.tagged(changed.Version())
	return a.planOf(changed), nil
}

func deletePlan(ctx context.Context, p *account.Partner, _ *call, in *oneInput) (messageAnswer, error) {
	return messageAnswer{"Piano eliminato"}, p.DeletePlan(ctx, in.ID)
}

type applyAnswer struct {
	Changed int  `json:"changed" doc:"How many clients changed"`
	More    bool `json:"more" doc:"true: others may still differ; call again"`
}

func applyPlan(ctx context.Context, p *account.Partner, _ *call, in *oneInput) (applyAnswer, error) {
	changed, more, err := p.ApplyPlan(ctx, in.ID)
	return applyAnswer{len(changed), more}, err
}

// clientBody documents the body of the call that creates a client.
type clientBody struct {
	Name     string  `json:"name" minLength:"1" maxLength:"200"`
	Email    string  `json:"email" minLength:"3" maxLength:"320" doc:"Login e-mail: an @ between two parts, unique among the partner's logins"`
	Password string  `json:"password" minLength:"1"`
	Phone    string  `json:"phone" read:"phone" minLength:"1" maxLength:"200" doc:"A number is taken too"`
	Type     string  `json:"account_type,omitempty" enum:"test,baby,full" default:"full" doc:"test: 100 credits, expires after 14 days. baby: 2000 credits a year. full: no limitation"`
	Sandbox  *bool   `json:"sandbox,omitempty" doc:"Whether the simulated network takes the default session's messages; else as the server is set"`
	Plan     *string `json:"plan,omitempty" read:"id" doc:"ID of a plan, whose values the client gets over those of its type; those that are given here win. A number is taken too"`

	Expires nullableMember[string] `json:"expiration_date,omitzero" nullable:"true" format:"date" doc:"Last day of service; null: it does not expire"`
	ClientValuesBody
}

// values returns the plan and the values that win over it.
func (b *clientBody) values() account.ClientChange {
	return account.ClientChange{
		Plan: changeTo(b.Plan), Profile: changeTo(b.Profile), Refill: changeTo(b.Refill), RefillTo: changeTo(b.RefillTo), Expires: changeTo(b.Expires.orEmpty()),
		Features: changeTo(b.Features), Cap: puntuale.Change[*int64](b.Cap), Credits: puntuale.Change[*int64](b.Credits), Quotas: b.Quotas.limits(),
	}
}

type clientAnswer struct {
	ID        string `json:"id_client"`
	Session   string `json:"id_sessione"`
	Key       string `json:"api_key" doc:"The client's key, shown only now"`
	Name      string `json:"nome_account"`
	Phone     string `json:"telefono"`
	Email     string `json:"email_di_login"`
	Type      string `json:"account_type" enum:"test,baby,full"`
	Timestamp string `json:"timestamp" format:"date-time" doc:"Time of the call"`
}

func createClient(ctx context.Context, p *account.Partner, in *call, q *OnceInput, body *clientBody) (clientAnswer, error) {
	created, err := p.CreateClient(ctx, account.NewClient{
		Name: body.Name, Email: body.Email, Password: body.Password, Phone: body.Phone, Type: body.Type, Sandbox: body.Sandbox, Faults: in.refused, Values: body.values(),
	}, once(in, q, createdOf))
	if err != nil {
		return clientAnswer{}, err
	}
	return createdOf(created), nil
}

func createdOf(created account.CreatedClient) clientAnswer {
	account := created.Account
	return clientAnswer{
		ID: created.ID.String(), Session: created.Session.String(), Key: created.Key, Name: account.Name,
		Phone: account.Phone, Email: account.Email, Type: string(account.Type), Timestamp: stamp(account.Created),
	}
}
