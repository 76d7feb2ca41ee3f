package web

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// accountRoutes are a partner's pages of one client.
var accountRoutes = []Route{
	Get("/partner/clients/new", PartnerSide, puntuale.Staff, newAccount),
	Post("/partner/clients/new", PartnerSide, puntuale.Staff, "client.create", createAccount),
	Get("/partner/clients/{id}", PartnerSide, puntuale.Reader, account),
	Get("/partner/clients/{id}/edit", PartnerSide, puntuale.Staff, editAccount),
	Post("/partner/clients/{id}/edit", PartnerSide, puntuale.Staff, "client.change", changeAccount),
	Post("/partner/clients/{id}/credits", PartnerSide, puntuale.Staff, "client.credits", addCredits),
	Post("/partner/clients/{id}/suspend", PartnerSide, puntuale.Staff, "client.suspend", suspendAccount),
	Post("/partner/clients/{id}/resume", PartnerSide, puntuale.Staff, "client.resume", resumeAccount),
	Post("/partner/clients/{id}/delete", PartnerSide, puntuale.Owner, "client.delete", deleteAccount),
	Post("/partner/clients/{id}/keys", PartnerSide, puntuale.Owner, "key.create", createKey),
	Post("/partner/clients/{id}/keys/{key}/rotate", PartnerSide, puntuale.Owner, "key.rotate", rotateKey),
	Post("/partner/clients/{id}/keys/{key}/revoke", PartnerSide, puntuale.Owner, "key.revoke", revokeKey),
}

func newAccount(v *Request) error {
	return v.show(view.AccountNew(view.NewForm("account_type", string(puntuale.AccountTest))))
}

func createAccount(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	asked := control.NewClient{
		Name: f.Value("name"), Email: f.Value("email"), Password: f.Value("password"), Invite: true, Phone: f.Value("phone"), Type: f.Value("account_type"),
	}
	taken, err := v.partner.HasUser(v.ctx(), asked.Email)
	if err != nil {
		return err
	}
	if taken { // said beside all other faults, of which a call to the API gets to know first
		asked.Faults = []puntuale.Fault{{Location: "body.email", Message: "the partner has a login with this e-mail"}}
	}
	created, err := v.partner.CreateClient(v.ctx(), asked, control.Once[control.CreatedClient]{})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.email", Message: "the partner has a login with this e-mail"})
		}
		return v.again(err, f, view.AccountNewForm(f), view.AccountNew(f), "name", "email", "password", "phone", "account_type")
	}
	v.did(created.ID.String())
	fresh := view.FreshAccount{Client: created.Account, Key: created.Key, Address: loginAddress(v)}
	if i := created.Invitation; i.Secret != "" {
		fresh.Link, fresh.Expires = v.invitationAddress(i), i.Expires
	}
	return v.whole(view.AccountCreated(fresh))
}

// loginAddress is where the partner's clients sign in.
func loginAddress(v *Request) string {
	h := v.person.Host()
	if h.Brand.Confirmed {
		return v.SiteAddress() + "/login"
	}
	return v.SiteAddress() + "/p/" + h.Partner.Slug
}

// account is a client as its partner sees it.
func account(v *Request) error {
	a, err := accountOf(v, v.path("id"))
	if err != nil {
		return err
	}
	return v.show(view.AccountPage(a))
}

func accountOf(v *Request, id string) (view.Account, error) {
	row, err := v.partner.Row(v.ctx(), id)
	if err != nil {
		return view.Account{}, err
	}
	a := view.Account{ClientRow: view.ClientRow{Client: row.Client, Pulse: row.Pulse, Ended: row.Ended}}
	text, err := json.MarshalIndent(control.SnapshotOf(row.Client), "", "  ")
	if err != nil {
		return view.Account{}, err
	}
	a.Snapshot = string(text)
	if a.Keys, err = v.partner.Keys(v.ctx(), id); err != nil {
		return view.Account{}, err
	}
	if a.Days, err = v.partner.Totals(v.ctx(), id, daysBack, daysAhead); err != nil {
		return view.Account{}, err
	}
	return a, nil
}

func editAccount(v *Request) error {
	c, err := v.partner.Account(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f, err := accountForm(v, c)
	if err != nil {
		return err
	}
	return v.show(view.AccountEdit(f, c))
}

// accountForm is a client as the form of its fields.
func accountForm(v *Request, c puntuale.Client) (*view.Form, error) {
	quotas, err := v.partner.Quotas(v.ctx(), c)
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
		limit := strconv.FormatInt(quotas[c.ID].Of(q), 10)
		f.Values.Set(view.QuotaField(q), limit)
		f.Values.Set("was."+view.QuotaField(q), limit)
	}
	return f, nil
}

func changeAccount(v *Request) error {
	c, err := v.partner.Account(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	f.Values.Set("holidays", strings.TrimSpace(strings.Join(f.Values["holidays"], "\n")))
	stored, err := accountForm(v, c)
	if err != nil {
		return err
	}
	for _, l := range unversioned() {
		name := l.name
		if shown, there := f.Values["was."+name]; there {
			stored.Values[name] = shown
		}
	}
	change := readChange(f, stored)
	change.Known = Versions(f)
	if endsAtOnce(v, c, change) && !f.Is("past", "on") {
		f.Values.Set("past", "ask")
		change.Faults = append(change.Faults, puntuale.Fault{Location: "body.expiration_date", Message: "has passed"})
	}
	if _, err := v.partner.ChangeClient(v.ctx(), v.path("id"), change); err != nil {
		fields := []string{"name", "phone", "profile", "credits", "refill_period", "daily_api_cap", "expiration_date", "timezone", "region", "active_features", "holidays"}
		fields = append(fields, quotaFields()...)
		if v.compare(err, f, c.Version(), v.HTTP.URL.Path) {
			current, formErr := accountForm(v, c)
			if formErr != nil {
				return formErr
			}
			v.differ(f, current, label{name: "name", key: "account.name"}, label{name: "phone", key: "account.phone"}, label{name: "profile", key: "account.profile"},
				label{name: "expiration_date", key: "clients.expires"}, label{name: "active_features", key: "account.features"}, label{name: "refill_period", key: "account.refill"},
				label{name: "daily_api_cap", key: "account.cap"}, label{name: "timezone", key: "account.zone"}, label{name: "region", key: "account.region"}, label{name: "holidays", key: "account.holidays"})
			differUnversioned(v, f, current)
		}
		return v.again(err, f, view.AccountForm(f, c), view.AccountEdit(f, c), fields...)
	}
	v.did(c.ID.String())
	v.say("account.saved", "")
	return v.Redirect("/partner/clients/" + c.ID.String())
}

// unversioned are the fields that no version of a client has. Messages are paid for while somebody looks at the form, and
// quotas are kept apart.
func unversioned() []label {
	all := []label{{name: "credits", key: "clients.credits"}}
	for _, q := range puntuale.AllQuotas {
		all = append(all, label{name: view.QuotaField(q), key: "quota." + string(q)})
	}
	return all
}

// differUnversioned notes which of these fields the person changed, and somebody else, too. A field that the person left
// alone shows what is stored now.
func differUnversioned(v *Request, f, stored *view.Form) {
	for _, l := range unversioned() {
		if strings.TrimSpace(f.Value(l.name)) == f.Value("was."+l.name) {
			f.Values.Set(l.name, stored.Value(l.name))
		} else {
			v.differ(f, stored, l)
		}
		f.Values.Set("was."+l.name, stored.Value(l.name))
	}
}

func quotaFields() (names []string) {
	for _, q := range puntuale.AllQuotas {
		names = append(names, view.QuotaField(q))
	}
	return names
}

// endsAtOnce reports whether a change lets an account expire on a day that has passed where the client is.
func endsAtOnce(v *Request, c puntuale.Client, change control.ClientChange) bool {
	if !change.Expires.Set {
		return false
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		zone = v.frame.Zone
	}
	day, err := puntuale.ParseDate(change.Expires.To)
	return err == nil && day.Before(puntuale.DateOf(v.now().In(zone)))
}

// readChange takes over what somebody changed, and leaves what they did not touch to whoever changed it meanwhile.
func readChange(f, before *view.Form) (r control.ClientChange) {
	text := func(name string, into *puntuale.Change[string]) {
		if value := strings.TrimSpace(f.Value(name)); value != before.Value(name) {
			*into = puntuale.Change[string]{Set: true, To: value}
		}
	}
	text("name", &r.Name)
	text("phone", &r.Phone)
	text("profile", &r.Profile)
	text("refill_period", &r.Refill)
	text("expiration_date", &r.Expires)
	text("timezone", &r.Zone)
	text("region", &r.Region)
	number := func(name string, into *puntuale.Change[*int64]) {
		value := strings.TrimSpace(f.Value(name))
		if !f.Values.Has(name) || value == before.Value(name) { // a page of the version before has no such field
			return
		}
		into.Set = true
		if value == "" {
			return
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			r.Faults = append(r.Faults, puntuale.Fault{Location: "body." + name, Message: "is not a whole number"})
		}
		into.To = &n
	}
	number("credits", &r.Credits)
	number("daily_api_cap", &r.Cap)
	r.Quotas = map[puntuale.Quota]*int64{}
	for _, q := range puntuale.AllQuotas {
		var n puntuale.Change[*int64]
		if number(view.QuotaField(q), &n); n.Set {
			r.Quotas[q] = n.To
		}
	}
	lines := func(name string, into *puntuale.Change[[]string]) {
		if f.Value(name) != before.Value(name) {
			*into = puntuale.Change[[]string]{Set: true, To: strings.FieldsFunc(f.Value(name), func(c rune) bool { return c == '\n' || c == ',' })}
			for i := range into.To {
				into.To[i] = strings.TrimSpace(into.To[i])
			}
		}
	}
	lines("active_features", &r.Features)
	lines("holidays", &r.Closed)
	for i, text := range r.Closed.To {
		if day, err := time.Parse("2/1/2006", text); err == nil { // as people write it
			r.Closed.To[i] = day.Format(time.DateOnly)
		}
	}
	return r
}

// addCredits adds to the credits, or takes from them, whatever is spent meanwhile.
func addCredits(v *Request) error {
	if _, err := v.partner.Account(v.ctx(), v.path("id")); err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	var change control.ClientChange
	n, err := strconv.ParseInt(strings.TrimSpace(f.Value("credits_add")), 10, 64)
	if err != nil {
		change.Faults = append(change.Faults, puntuale.Fault{Location: "body.credits_add", Message: "is not a whole number"})
	}
	change.CreditsAdd = puntuale.Change[int64]{Set: true, To: n}
	c, err := v.partner.ChangeClient(v.ctx(), v.path("id"), change)
	if err != nil {
		a, readErr := accountOf(v, v.path("id"))
		if readErr != nil {
			return readErr
		}
		a.CreditsForm = f
		return v.again(err, f, view.CreditsForm(f, a.ID), view.AccountPage(a), "credits_add")
	}
	v.did(c.ID.String() + " " + strconv.FormatInt(n, 10))
	v.say("account.credits_done", "")
	return v.Redirect("/partner/clients/" + c.ID.String())
}

func suspendAccount(v *Request) error { return suspend(v, true) }
func resumeAccount(v *Request) error  { return suspend(v, false) }

func suspend(v *Request, suspended bool) error {
	c, err := v.partner.ChangeClient(v.ctx(), v.path("id"), control.ClientChange{Suspended: puntuale.Change[bool]{Set: true, To: suspended}})
	if err != nil {
		return err
	}
	base := "/partner/clients/" + c.ID.String()
	v.did(c.ID.String())
	if suspended {
		v.say("account.suspend_done", base+"/resume", "Name", c.Name)
	} else {
		v.say("account.resume_done", base+"/suspend", "Name", c.Name)
	}
	return v.Redirect(base)
}

// deleteAccount deletes a client, once its name was typed.
func deleteAccount(v *Request) error {
	a, err := accountOf(v, v.path("id"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.Value("confirm")) != strings.TrimSpace(a.Name) {
		err := puntuale.Invalid(puntuale.Fault{Location: "body.confirm", Message: "does not match the name"})
		return v.again(err, f, view.ConfirmForm(f, view.DeleteQuestion(v.frame, a.Client)), view.AccountDelete(f, a.Client), "confirm")
	}
	if err := v.partner.DeleteClient(v.ctx(), v.path("id")); err != nil {
		return err
	}
	v.did(a.ID.String() + " " + a.Name)
	v.say("account.deleted", "", "Name", a.Name)
	return v.Redirect("/partner")
}

func createKey(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	key, err := v.partner.CreateKey(v.ctx(), v.path("id"), f.Value("name"), control.Once[control.IssuedKey]{})
	if err != nil {
		a, readErr := accountOf(v, v.path("id"))
		if readErr != nil {
			return readErr
		}
		a.KeyForm = f
		return v.again(err, f, view.KeyForm(f, "/partner/clients/"+a.ID.String()+"/keys"), view.AccountPage(a), "name")
	}
	v.did(v.path("id") + " " + key.Prefix)
	return issued(v, key)
}

// issued shows a key, which is shown only now.
func issued(v *Request, key control.IssuedKey) error {
	return v.whole(view.KeyIssued(key.Plain, key.Name, "/partner/clients/"+v.path("id")))
}

func rotateKey(v *Request) error {
	key, err := v.partner.RotateKey(v.ctx(), v.path("id"), v.path("key"), nil, control.Once[control.IssuedKey]{})
	if err != nil {
		return err
	}
	v.did(v.path("id") + " " + key.Prefix)
	return issued(v, key)
}

func revokeKey(v *Request) error {
	if err := v.partner.RevokeKey(v.ctx(), v.path("id"), v.path("key")); err != nil {
		return err
	}
	v.did(v.path("id") + " " + v.path("key"))
	v.say("key.revoked", "")
	return v.Redirect("/partner/clients/" + v.path("id"))
}
