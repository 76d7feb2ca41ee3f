package account

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// planRoutes are the pages of a partner's plans.
var planRoutes = []page.Route{
	page.Get("/partner/plans", page.PartnerSide, puntuale.Reader, plans),
	page.Get("/partner/plans/new", page.PartnerSide, puntuale.Staff, newPlan),
	page.Post("/partner/plans/new", page.PartnerSide, puntuale.Staff, "plan.create", createPlan),
	page.Get("/partner/plans/{plan}", page.PartnerSide, puntuale.Reader, plan),
	page.Get("/partner/plans/{plan}/edit", page.PartnerSide, puntuale.Staff, editPlan),
	page.Post("/partner/plans/{plan}/edit", page.PartnerSide, puntuale.Staff, "plan.change", changePlan),
	page.Post("/partner/plans/{plan}/apply", page.PartnerSide, puntuale.Staff, "plan.apply", applyPlan),
	page.Post("/partner/plans/{plan}/delete", page.PartnerSide, puntuale.Staff, "plan.delete", deletePlan),
	page.Post("/partner/clients/{id}/plan", page.PartnerSide, puntuale.Staff, "client.plan", moveToPlan),
}

const faultBoxAndValue puntuale.ReasonCode = "fault.box_and_value"

// planFields are the fields of the form, except those of quotas.
var planFields = []page.Label{
	{Name: "name", Key: "plan.name"}, {Name: "credits", Key: "clients.credits"}, {Name: "refill_period", Key: "account.refill"}, {Name: "refill_to", Key: "plan.refill_to"},
	{Name: "daily_api_cap", Key: "account.cap"}, {Name: "budget", Key: "plan.budget"}, {Name: "days", Key: "plan.days"}, {Name: "profile", Key: "account.profile"}, {Name: "active_features", Key: "account.features"},
}

func plans(v *page.Request) error {
	all, err := v.Partner.Plans(v.Ctx())
	if err != nil {
		return err
	}
	return v.Show(Plans(all, v.Site.Statements.Currency()))
}

// plan shows a plan, and the clients that got it.
func plan(v *page.Request) error {
	p, err := planPage(v)
	if err != nil {
		return err
	}
	return v.Show(PlanShown(p))
}

func planPage(v *page.Request) (p PlanPage, err error) {
	if p.ClientPlan, err = v.Partner.Plan(v.Ctx(), v.Path("plan")); err != nil {
		return p, err
	}
	p.Cursor, p.Currency = v.Query("cursor"), v.Site.Statements.Currency()
	rows, next, err := v.Partner.FindClients(v.Ctx(), account.ClientSearch{Plan: p.ID, Page: request.Page{Limit: page.RowsOfPage, Cursor: p.Cursor}})
	if err != nil {
		return p, page.Lost(err)
	}
	clients := make([]puntuale.Client, len(rows))
	for i, r := range rows {
		clients[i] = r.Client
	}
	p.Rows, p.Next = clientRows(rows), next
	p.Plans, err = plansOf(v, clients...)
	return p, err
}

func plansOf(v *page.Request, clients ...puntuale.Client) (map[puntuale.ClientID]PlanOf, error) {
	found, err := v.Partner.PlansOf(v.Ctx(), clients...)
	all := make(map[puntuale.ClientID]PlanOf, len(found))
	for id, p := range found {
		all[id] = PlanOf(p)
	}
	return all, err
}

func newPlan(v *page.Request) error {
	return v.Show(PlanNew(view.NewForm(), v.Site.Statements.Currency()))
}

func createPlan(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	made, err := v.Partner.CreatePlan(v.Ctx(), readPlan(f), control.Once[puntuale.ClientPlan]{})
	if err != nil {
		return v.ShowRefused(planFault(err), f, PlanForm(f, v.Site.Statements.Currency(), "/partner/plans/new", "/partner/plans"), PlanNew(f, v.Site.Statements.Currency()), planFieldNames()...)
	}
	v.SetAuditTarget(made.ID.String() + " " + made.Name)
	v.Say("plan.created", "", "Name", made.Name)
	return v.Redirect(planURL(made.ID))
}

func editPlan(v *page.Request) error {
	p, err := v.Partner.Plan(v.Ctx(), v.Path("plan"))
	if err != nil {
		return err
	}
	return v.Show(PlanEdit(planForm(v, p), p, v.Site.Statements.Currency()))
}

func changePlan(v *page.Request) error {
	p, err := v.Partner.Plan(v.Ctx(), v.Path("plan"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	d := readPlan(f)
	d.Known = page.Versions(f)
	if _, err := v.Partner.ReplacePlan(v.Ctx(), v.Path("plan"), d); err != nil {
		if v.Compare(err, f, p.Version(), v.HTTP.URL.Path) {
			v.Differ(f, planForm(v, p), planFields...)
		}
		return v.ShowRefused(planFault(err), f, PlanForm(f, v.Site.Statements.Currency(), planURL(p.ID)+"/edit", planURL(p.ID)), PlanEdit(f, p, v.Site.Statements.Currency()), planFieldNames()...)
	}
	v.SetAuditTarget(p.ID.String() + " " + d.Name)
	v.Say("plan.saved", "")
	return v.Redirect(planURL(p.ID))
}

// planFault shows a conflict at the name.
func planFault(err error) error {
	if conflict, ok := errors.AsType[*puntuale.Error](err); ok && conflict.Code == puntuale.CodeConflict {
		return puntuale.Invalid(conflict.Reason.At("body.name", nil))
	}
	return err
}

func planFieldNames() (names []string) {
	for _, l := range planFields {
		names = append(names, l.Name)
	}
	return append(names, quotaFields()...)
}

// planForm returns the form with a plan's values. An empty field is no value of the plan. A box with the suffix ".none"
// stands for "unlimited".
func planForm(v *page.Request, p puntuale.ClientPlan) *view.Form {
	x := p.Values
	f := view.NewForm(view.Version, string(p.Version()), "name", p.Name, "refill_period", x.Refill.To, "profile", x.Profile.To, "active_features", strings.Join(x.Features.To, "\n"))
	number := func(name string, c puntuale.Change[*int64]) {
		if c.Set && c.To == nil {
			f.Values.Set(name+".none", "on")
		} else if c.Set {
			f.Values.Set(name, strconv.FormatInt(*c.To, 10))
		}
	}
	number("credits", x.Credits)
	number("daily_api_cap", x.Cap)
	number("days", x.Days)
	number("refill_to", puntuale.Change[*int64]{Set: x.RefillTo.Set, To: &x.RefillTo.To})
	if x.Budget.To > 0 {
		f.Values.Set("budget", strings.Replace(puntuale.Money(x.Budget.To), ".", v.T("campaign.point"), 1))
	} else if x.Budget.Set {
		f.Values.Set("budget.none", "on")
	}
	if x.Features.Set && len(x.Features.To) == 0 {
		f.Values.Set("active_features.none", "on")
	}
	for q, n := range x.Quotas {
		f.Values.Set(QuotaField(q), strconv.FormatInt(n, 10))
	}
	return f
}

// readPlan reads the form.
func readPlan(f *view.Form) account.PlanDraft {
	d := account.PlanDraft{Name: strings.TrimSpace(f.Value("name"))}
	x := &d.Values
	// both reports a field that has a value although its box says that there is none. Neither is what the person surely means.
	both := func(name string) bool {
		if !f.Is(name+".none", "on") || strings.TrimSpace(f.Value(name)) == "" {
			return false
		}
		d.Faults = append(d.Faults, puntuale.Fault{Location: "body." + name, Code: faultBoxAndValue})
		return true
	}
	number := func(name string) (c puntuale.Change[*int64]) {
		text := strings.TrimSpace(f.Value(name))
		if text == "" || both(name) {
			return puntuale.Change[*int64]{Set: f.Is(name+".none", "on")}
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			d.Faults = append(d.Faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultNotWhole})
			return c
		}
		return puntuale.ChangeTo(&n)
	}
	x.Credits, x.Cap, x.Days = number("credits"), number("daily_api_cap"), number("days")
	if n := number("refill_to"); n.To != nil {
		x.RefillTo = puntuale.ChangeTo(*n.To)
	}
	for _, q := range puntuale.AllQuotas {
		if n := number(QuotaField(q)); n.To != nil {
			if x.Quotas == nil {
				x.Quotas = puntuale.Quotas{}
			}
			x.Quotas[q] = *n.To
		}
	}
	if word := f.Value("refill_period"); word != "" {
		x.Refill = puntuale.ChangeTo(word)
	}
	if word := f.Value("profile"); word != "" {
		x.Profile = puntuale.ChangeTo(word)
	}
	features := []string{}
	for _, text := range strings.FieldsFunc(f.Value("active_features"), func(c rune) bool { return c == '\n' || c == ',' }) {
		if text = strings.TrimSpace(text); text != "" {
			features = append(features, text)
		}
	}
	both("active_features")
	both("budget")
	x.Features = puntuale.Change[[]string]{Set: len(features) > 0 || f.Is("active_features.none", "on"), To: features}
	d.Budget.To = strings.TrimSpace(f.Value("budget"))
	d.Budget.Set = d.Budget.To != "" || f.Is("budget.none", "on")
	return d
}

// applyPlan gives the plan's values to its clients.
func applyPlan(v *page.Request) error {
	p, err := v.Partner.Plan(v.Ctx(), v.Path("plan"))
	if err != nil {
		return err
	}
	changed, more, err := v.Partner.ApplyPlan(v.Ctx(), v.Path("plan"))
	v.SetAuditTarget(appliedTarget(p, changed))
	if err != nil {
		if len(changed) > 0 { // a part is done
			v.Note()
		}
		return err
	}
	if more {
		v.Say("plan.applied_more", "", "N", len(changed))
	} else {
		v.Say("plan.applied", "", "N", len(changed))
	}
	return v.Redirect(planURL(p.ID))
}

// appliedTarget names the plan and the changed clients for the audit log, such as "3 17,18 Base".
func appliedTarget(p puntuale.ClientPlan, changed []puntuale.ClientID) string {
	ids := make([]string, len(changed))
	for i, id := range changed {
		ids[i] = id.String()
	}
	return p.ID.String() + " " + strings.Join(ids, ",") + " " + p.Name
}

func deletePlan(v *page.Request) error {
	p, err := v.Partner.Plan(v.Ctx(), v.Path("plan"))
	if err != nil {
		return err
	}
	if err := v.Partner.DeletePlan(v.Ctx(), v.Path("plan")); err != nil {
		return err
	}
	v.SetAuditTarget(p.ID.String() + " " + p.Name)
	v.Say("plan.deleted", "", "Name", p.Name)
	return v.Redirect("/partner/plans")
}

// moveToPlan gives a client the values of a plan, or takes it out of its plan.
func moveToPlan(v *page.Request) error {
	if _, err := v.Partner.Account(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	c, err := v.Partner.ChangeClient(v.Ctx(), v.Path("id"), account.ClientChange{Plan: puntuale.ChangeTo(f.Value("plan"))})
	if err != nil {
		a, readErr := accountOf(v, v.Path("id"))
		if readErr != nil {
			return readErr
		}
		a.PlanForm = f
		return v.ShowRefused(err, f, MoveForm(f, a), AccountPage(a), "plan")
	}
	v.SetAuditTarget(c.ID.String() + " " + f.Value("plan"))
	v.Say("plan.moved", "")
	return v.Redirect(accountURL(c.ID))
}

// planFact is a value of a plan, in words.
type planFact struct{ Label, Text string }

// planFacts returns what a plan sets, for people.
func planFacts(ctx context.Context, x puntuale.PlanValues, currency string) (all []planFact) {
	add := func(set bool, member, text string) {
		if set {
			all = append(all, planFact{planMember(ctx, member), text})
		}
	}
	number := func(c puntuale.Change[*int64], none string) string {
		if c.To == nil {
			return view.T(ctx, none)
		}
		return view.Number(ctx, *c.To)
	}
	add(x.Credits.Set, "credits", number(x.Credits, "credits.unlimited"))
	add(x.Refill.Set, "refill_period", word(ctx, x.Refill.To))
	add(x.RefillTo.Set, "refill_to", view.Number(ctx, x.RefillTo.To))
	add(x.Cap.Set, "daily_api_cap", number(x.Cap, "plan.no_cap"))
	budget := view.T(ctx, "plan.no_budget")
	if x.Budget.To > 0 {
		budget = view.Money(ctx, x.Budget.To, currency)
	}
	add(x.Budget.Set, "budget", budget)
	add(x.Days.Set, "days", number(x.Days, "plan.no_end"))
	add(x.Profile.Set, "profile", word(ctx, x.Profile.To))
	add(x.Features.Set, "active_features", view.Or(strings.Join(x.Features.To, ", "), view.T(ctx, "plan.no_features")))
	for _, q := range puntuale.AllQuotas {
		n, set := x.Quotas[q]
		add(set, QuotaField(q), view.Number(ctx, n))
	}
	return all
}

// money returns an amount as people write it.
func money(ctx context.Context, millionths int64) string {
	return strings.Replace(puntuale.Money(millionths), ".", view.T(ctx, "campaign.point"), 1)
}

// planMember returns the label of a value that has this name in the API.
func planMember(ctx context.Context, name string) string {
	if name == "expiration_date" {
		return view.T(ctx, "clients.expires")
	}
	for _, l := range planFields {
		if l.Name == name {
			return view.T(ctx, l.Key)
		}
	}
	return view.T(ctx, "quota."+strings.TrimPrefix(name, "quotas."))
}

// differs names the values in which a client differs from its plan; "": none.
func differs(ctx context.Context, p PlanOf) string {
	if len(p.Differing) == 0 {
		return ""
	}
	labels := make([]string, len(p.Differing))
	for i, name := range p.Differing {
		labels[i] = planMember(ctx, name)
	}
	return strings.Join(labels, ", ")
}

// planOptions returns the choice of a plan, with an entry for none.
func planOptions(ctx context.Context, all []puntuale.ClientPlan) []view.Option {
	options := []view.Option{{Value: "", Text: view.T(ctx, "plan.none")}}
	for _, p := range all {
		options = append(options, view.Option{Value: p.ID.String(), Text: p.Name})
	}
	return options
}
