package account

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// accountRoutes are a partner's pages about one client.
var accountRoutes = []page.Route{
	page.Get("/partner/clients/new", page.PartnerSide, puntuale.Staff, newAccount),
	page.Post("/partner/clients/new", page.PartnerSide, puntuale.Staff, "client.create", createAccount),
	page.Get("/partner/clients/{id}", page.PartnerSide, puntuale.Reader, clientAccount),
	page.Get("/partner/clients/{id}/edit", page.PartnerSide, puntuale.Staff, editAccount),
	page.Post("/partner/clients/{id}/edit", page.PartnerSide, puntuale.Staff, "client.change", changeAccount),
	page.Post("/partner/clients/{id}/credits", page.PartnerSide, puntuale.Staff, "client.credits", addCredits),
	page.Post("/partner/clients/{id}/budget", page.PartnerSide, puntuale.Staff, "client.budget", setBudget),
	page.Post("/partner/clients/{id}/suspend", page.PartnerSide, puntuale.Staff, "client.suspend", suspendAccount),
	page.Post("/partner/clients/{id}/resume", page.PartnerSide, puntuale.Staff, "client.resume", resumeAccount),
	page.Post("/partner/clients/{id}/delete", page.PartnerSide, puntuale.Owner, "client.delete", deleteAccount),
	page.Post("/partner/clients/{id}/keys", page.PartnerSide, puntuale.Owner, "key.create", createKey),
	page.Post("/partner/clients/{id}/keys/{key}/rotate", page.PartnerSide, puntuale.Owner, "key.rotate", rotateKey),
	page.Post("/partner/clients/{id}/keys/{key}/revoke", page.PartnerSide, puntuale.Owner, "key.revoke", revokeKey),
}

func newAccount(v *page.Request) error {
	plans, err := v.Partner.Plans(v.Ctx())
	if err != nil {
		return err
	}
	return v.Show(AccountNew(view.NewForm("account_type", string(puntuale.AccountTest)), plans))
}

func createAccount(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	call := account.NewClient{
		Name: f.Value("name"), Email: f.Value("email"), Password: f.Value("password"), Invite: true, Phone: f.Value("phone"), Type: f.Value("account_type"),
		Spoken: v.Frame.Language.Code, Values: account.ClientChange{Plan: puntuale.ChangeTo(f.Value("plan"))},
	}
	taken, err := v.Partner.HasUser(v.Ctx(), call.Email)
	if err != nil {
		return err
	}
	if taken { // the page shows this fault together with all other faults; CreateClient alone would report it only after the others are corrected
		call.Faults = []puntuale.Fault{{Location: "body.email", Code: puntuale.FaultUserEmailTaken}}
	}
	created, err := v.Partner.CreateClient(v.Ctx(), call, control.Once[account.CreatedClient]{})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.email", Code: puntuale.FaultUserEmailTaken})
		}
		plans, readErr := v.Partner.Plans(v.Ctx())
		if readErr != nil {
			return readErr
		}
		return v.ShowRefused(err, f, AccountNewForm(f, plans), AccountNew(f, plans), "name", "email", "password", "phone", "account_type", "plan")
	}
	v.SetAuditTarget(created.ID.String())
	fresh := FreshAccount{Client: created.Account, Key: created.Key, Address: loginAddress(v)}
	if i := created.Invitation; i.Secret != "" {
		fresh.Link, fresh.Expires, fresh.Mailed = v.InvitationAddress(i), i.Expires, i.Mailed
	}
	return v.Whole(AccountCreated(fresh))
}

// loginAddress returns the address where the partner's clients sign in.
func loginAddress(v *page.Request) string {
	h := v.Person.Host()
	if h.Brand.Confirmed {
		return v.SiteAddress() + "/login"
	}
	return v.SiteAddress() + "/p/" + h.Partner.Slug
}

// clientAccount shows a client's page to the partner.
func clientAccount(v *page.Request) error {
	a, err := accountOf(v, v.Path("id"))
	if err != nil {
		return err
	}
	return v.Show(AccountPage(a))
}

func accountOf(v *page.Request, id string) (Account, error) {
	row, err := v.Partner.Row(v.Ctx(), id)
	if err != nil {
		return Account{}, err
	}
	a := Account{ClientRow: ClientRow{Client: row.Client, ClientStatus: row.ClientStatus, Ended: row.Ended}}
	text, err := json.MarshalIndent(account.SnapshotOf(row.Client), "", "  ")
	if err != nil {
		return Account{}, err
	}
	a.Snapshot = string(text)
	if a.Budget, err = v.Site.Statements.BudgetOf(v.Ctx(), v.Partner, id); err != nil {
		return Account{}, err
	}
	a.Currency = v.Site.Statements.Currency()
	if a.Plans, err = v.Partner.Plans(v.Ctx()); err != nil {
		return Account{}, err
	}
	plans, err := plansOf(v, row.Client)
	if err != nil {
		return Account{}, err
	}
	a.Plan = plans[row.ID]
	if a.Keys, err = v.Partner.Keys(v.Ctx(), id); err != nil {
		return Account{}, err
	}
	if a.Days, err = v.Partner.Totals(v.Ctx(), id, daysBack, daysAhead); err != nil {
		return Account{}, err
	}
	return a, nil
}

func editAccount(v *page.Request) error {
	c, err := v.Partner.Account(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f, err := accountForm(v, c)
	if err != nil {
		return err
	}
	return v.Show(AccountEdit(f, c))
}

// accountForm returns the form that changes a client, filled with the present values.
func accountForm(v *page.Request, c puntuale.Client) (*view.Form, error) {
	quotas, err := v.Partner.Quotas(v.Ctx(), c)
	if err != nil {
		return nil, err
	}
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	expires := ""
	if !c.Expires.IsZero() {
		expires = c.Expires.String()
	}
	closed := make([]string, len(c.Closed))
	for i, d := range c.Closed {
		closed[i] = d.String()
	}
	f := view.NewForm(view.Version, string(c.Version()), "was.credits", number(c.Credits), "name", c.Name, "phone", c.Phone, "profile", c.Profile, "credits", number(c.Credits), "refill_period", c.Refill,
		"daily_api_cap", number(c.Cap), "expiration_date", expires, "timezone", c.Zone, "region", c.Region,
		"active_features", strings.Join(c.Features, "\n"), "holidays", strings.Join(closed, "\n"))
	for _, q := range puntuale.AllQuotas {
		limit := strconv.FormatInt(quotas[c.ID].Get(q), 10)
		f.Values.Set(QuotaField(q), limit)
		f.Values.Set("was."+QuotaField(q), limit)
	}
	return f, nil
}

func changeAccount(v *page.Request) error {
	c, err := v.Partner.Account(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	f.Values.Set("holidays", strings.TrimSpace(strings.Join(f.Values["holidays"], "\n")))
	stored, err := accountForm(v, c)
	if err != nil {
		return err
	}
	for _, l := range unversioned() {
		name := l.Name
		if shown, found := f.Values["was."+name]; found {
			stored.Values[name] = shown
		}
	}
	change := readChange(f, stored)
	change.Known = page.Versions(f)
	if endsAtOnce(v, c, change) && !f.Is("past", "on") {
		f.Values.Set("past", "ask")
		change.Faults = append(change.Faults, puntuale.Fault{Location: "body.expiration_date", Code: puntuale.FaultHasPassed})
	}
	if _, err := v.Partner.ChangeClient(v.Ctx(), v.Path("id"), change); err != nil {
		fields := []string{"name", "phone", "profile", "credits", "refill_period", "daily_api_cap", "expiration_date", "timezone", "region", "active_features", "holidays"}
		fields = append(fields, quotaFields()...)
		if v.Compare(err, f, c.Version(), v.HTTP.URL.Path) {
			current, formErr := accountForm(v, c)
			if formErr != nil {
				return formErr
			}
			v.Differ(f, current, page.Label{Name: "name", Key: "account.name"}, page.Label{Name: "phone", Key: "account.phone"}, page.Label{Name: "profile", Key: "account.profile"},
				page.Label{Name: "expiration_date", Key: "clients.expires"}, page.Label{Name: "active_features", Key: "account.features"}, page.Label{Name: "refill_period", Key: "account.refill"},
				page.Label{Name: "daily_api_cap", Key: "account.cap"}, page.Label{Name: "timezone", Key: "account.zone"}, page.Label{Name: "region", Key: "account.region"}, page.Label{Name: "holidays", Key: "account.holidays"})
			differUnversioned(v, f, current)
		}
		return v.ShowRefused(err, f, AccountForm(f, c), AccountEdit(f, c), fields...)
	}
	v.SetAuditTarget(c.ID.String())
	v.Say("account.saved", "")
	return v.Redirect("/partner/clients/" + c.ID.String())
}

// unversioned returns the fields of which the form also has the values that it showed first. Credits are not part of a
// client's version: they change with every message, even while somebody looks at the form.
func unversioned() []page.Label {
	all := []page.Label{{Name: "credits", Key: "clients.credits"}}
	for _, q := range puntuale.AllQuotas {
		all = append(all, page.Label{Name: QuotaField(q), Key: "quota." + string(q)})
	}
	return all
}

// differUnversioned marks each unversioned field that both the person and somebody else changed. A field that the
// person did not change now shows the stored value.
func differUnversioned(v *page.Request, f, stored *view.Form) {
	for _, l := range unversioned() {
		if strings.TrimSpace(f.Value(l.Name)) == f.Value("was."+l.Name) {
			f.Values.Set(l.Name, stored.Value(l.Name))
		} else {
			v.Differ(f, stored, l)
		}
		f.Values.Set("was."+l.Name, stored.Value(l.Name))
	}
}

func quotaFields() (names []string) {
	for _, q := range puntuale.AllQuotas {
		names = append(names, QuotaField(q))
	}
	return names
}

// endsAtOnce reports whether a change sets an expiration day that has already passed in the client's zone.
func endsAtOnce(v *page.Request, c puntuale.Client, change account.ClientChange) bool {
	if !change.Expires.Set {
		return false
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		zone = v.Frame.Zone
	}
	day, err := puntuale.ParseDate(change.Expires.To)
	return err == nil && day.Before(puntuale.DateOf(v.Now().In(zone)))
}

// readChange reads the fields that the person changed. All other fields keep the stored values, because somebody else
// may have changed these fields.
func readChange(f, before *view.Form) (r account.ClientChange) {
	text := func(name string, target *puntuale.Change[string]) {
		if value := strings.TrimSpace(f.Value(name)); value != before.Value(name) {
			*target = puntuale.Change[string]{Set: true, To: value}
		}
	}
	text("name", &r.Name)
	text("phone", &r.Phone)
	text("profile", &r.Profile)
	text("refill_period", &r.Refill)
	text("expiration_date", &r.Expires)
	text("timezone", &r.Zone)
	text("region", &r.Region)
	number := func(name string, target *puntuale.Change[*int64]) {
		value := strings.TrimSpace(f.Value(name))
		if !f.Values.Has(name) || value == before.Value(name) { // the person did not change the value, or a page of the previous program version has no such field
			return
		}
		target.Set = true
		if value == "" {
			return
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			r.Faults = append(r.Faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultNotWhole})
		}
		target.To = &n
	}
	number("credits", &r.Credits)
	number("daily_api_cap", &r.Cap)
	r.Quotas = map[puntuale.Quota]*int64{}
	for _, q := range puntuale.AllQuotas {
		var n puntuale.Change[*int64]
		if number(QuotaField(q), &n); n.Set {
			r.Quotas[q] = n.To
		}
	}
	lines := func(name string, target *puntuale.Change[[]string]) {
		if f.Value(name) != before.Value(name) {
			*target = puntuale.Change[[]string]{Set: true, To: strings.FieldsFunc(f.Value(name), func(c rune) bool { return c == '\n' || c == ',' })}
			for i := range target.To {
				target.To[i] = strings.TrimSpace(target.To[i])
			}
		}
	}
	lines("active_features", &r.Features)
	lines("holidays", &r.Closed)
	for i, text := range r.Closed.To {
		if day, err := time.Parse("2/1/2006", text); err == nil { // people often write a date in this form, such as 25/12/2026
			r.Closed.To[i] = day.Format(time.DateOnly)
		}
	}
	return r
}

// addCredits adds a positive or negative number to the present credits. The result is right even if messages spend
// credits at the same time.
func addCredits(v *page.Request) error {
	if _, err := v.Partner.Account(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	var change account.ClientChange
	n, err := strconv.ParseInt(strings.TrimSpace(f.Value("credits_add")), 10, 64)
	if err != nil {
		change.Faults = append(change.Faults, puntuale.Fault{Location: "body.credits_add", Code: puntuale.FaultNotWhole})
	}
	change.CreditsAdd = puntuale.Change[int64]{Set: true, To: n}
	c, err := v.Partner.ChangeClient(v.Ctx(), v.Path("id"), change)
	if err != nil {
		a, readErr := accountOf(v, v.Path("id"))
		if readErr != nil {
			return readErr
		}
		a.CreditsForm = f
		return v.ShowRefused(err, f, CreditsForm(f, a.ID), AccountPage(a), "credits_add")
	}
	v.SetAuditTarget(c.ID.String() + " " + strconv.FormatInt(n, 10))
	v.Say("account.credits_done", "")
	return v.Redirect("/partner/clients/" + c.ID.String())
}

// setBudget sets what the client's messages may cost in a month.
func setBudget(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	b, err := v.Site.Statements.SetBudget(v.Ctx(), v.Partner, v.Path("id"), f.Value("amount"))
	if err != nil {
		a, readErr := accountOf(v, v.Path("id"))
		if readErr != nil {
			return readErr
		}
		a.BudgetForm = f
		return v.ShowRefused(err, f, BudgetForm(a), AccountPage(a), "amount")
	}
	v.SetAuditTarget(b.Client.String() + " " + puntuale.Money(b.Amount) + " " + b.Currency)
	v.Say("budget.done", "")
	return v.Redirect("/partner/clients/" + b.Client.String())
}

func suspendAccount(v *page.Request) error { return suspend(v, true) }
func resumeAccount(v *page.Request) error  { return suspend(v, false) }

func suspend(v *page.Request, suspended bool) error {
	c, err := v.Partner.ChangeClient(v.Ctx(), v.Path("id"), account.ClientChange{Suspended: puntuale.Change[bool]{Set: true, To: suspended}})
	if err != nil {
		return err
	}
	base := "/partner/clients/" + c.ID.String()
	v.SetAuditTarget(c.ID.String())
	if suspended {
		v.Say("account.suspend_done", base+"/resume", "Name", c.Name)
	} else {
		v.Say("account.resume_done", base+"/suspend", "Name", c.Name)
	}
	return v.Redirect(base)
}

// deleteAccount deletes a client, if the person typed the client's name as confirmation.
func deleteAccount(v *page.Request) error {
	a, err := accountOf(v, v.Path("id"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.Value("confirm")) != strings.TrimSpace(a.Name) {
		err := puntuale.Invalid(puntuale.Fault{Location: "body.confirm", Code: puntuale.FaultNameDiffers})
		return v.ShowRefused(err, f, view.ConfirmForm(f, DeleteQuestion(v.Frame, a.Client)), AccountDelete(f, a.Client), "confirm")
	}
	if err := v.Partner.DeleteClient(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	v.SetAuditTarget(a.ID.String() + " " + a.Name)
	v.Say("account.deleted", "", "Name", a.Name)
	return v.Redirect("/partner")
}

func createKey(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	key, err := v.Partner.CreateKey(v.Ctx(), v.Path("id"), f.Value("name"), control.Once[account.IssuedKey]{})
	if err != nil {
		a, readErr := accountOf(v, v.Path("id"))
		if readErr != nil {
			return readErr
		}
		a.KeyForm = f
		return v.ShowRefused(err, f, KeyForm(f, "/partner/clients/"+a.ID.String()+"/keys"), AccountPage(a), "name")
	}
	v.SetAuditTarget(v.Path("id") + " " + key.Prefix)
	return issued(v, key)
}

// issued shows the page with a new key. The key is shown only once.
func issued(v *page.Request, key account.IssuedKey) error {
	return v.Whole(KeyIssued(key.Plain, key.Name, "/partner/clients/"+v.Path("id")))
}

func rotateKey(v *page.Request) error {
	key, err := v.Partner.RotateKey(v.Ctx(), v.Path("id"), v.Path("key"), nil, control.Once[account.IssuedKey]{})
	if err != nil {
		return err
	}
	v.SetAuditTarget(v.Path("id") + " " + key.Prefix)
	return issued(v, key)
}

func revokeKey(v *page.Request) error {
	if err := v.Partner.RevokeKey(v.Ctx(), v.Path("id"), v.Path("key")); err != nil {
		return err
	}
	v.SetAuditTarget(v.Path("id") + " " + v.Path("key"))
	v.Say("key.revoked", "")
	return v.Redirect("/partner/clients/" + v.Path("id"))
}
