package session

import (
	"crypto/rand"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// officialRoutes are the additional pages of an Official session: its keys, the test of the connection, and its
// templates.
var officialRoutes = []page.Route{
	page.Get("/c/{client}/sessions/{id}/official", page.ClientSide, puntuale.Owner, officialSetup),
	page.Post("/c/{client}/sessions/{id}/official", page.ClientSide, puntuale.Owner, "session.official", setOfficial),
	page.Post("/c/{client}/sessions/{id}/ways", page.ClientSide, puntuale.Owner, "session.ways", setWays),
	page.Post("/c/{client}/sessions/{id}/test", page.ClientSide, puntuale.Staff, "session.test", testSession),
	page.Get("/c/{client}/sessions/{id}/templates", page.ClientSide, puntuale.Reader, networkTemplates),
	page.Post("/c/{client}/sessions/{id}/templates", page.ClientSide, puntuale.Staff, "session.templates", syncTemplates),
}

// metaSide returns the data about Meta for an Official session's page.
func metaSide(v *page.Request, s control.Session) (*MetaSide, error) {
	about, err := v.Client.NetworkTemplates(v.Ctx(), s.ID.String(), request.Page{Limit: "1"})
	if err != nil {
		return nil, err
	}
	h, err := v.Client.SessionHealth(v.Ctx(), s.ID.String())
	if err != nil {
		return nil, err
	}
	m := &MetaSide{NetworkTemplates: about.NetworkTemplates, Webhook: s.Webhook, Health: HealthSide{h.SessionHealth, h.Portfolio}, Checks: h.Checks()}
	if m.Webhook == "" {
		m.Webhook = page.ReadAt(v.HTTP) + s.ID.WebhookPath()
	}
	m.Reachable = page.Reachable(m.Webhook)
	return m, nil
}

// official returns the session in the path. It fails if the session does not send through Meta.
func official(v *page.Request) (control.Session, error) {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err == nil && !sender(v, found).ToMeta() {
		err = page.ErrNoPage
	}
	return found, err
}

// officialSetup stores the session's keys for Meta. A stored key is never shown again. If a field is empty, its stored
// key does not change.
func officialSetup(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	about, err := metaSide(v, found)
	if err != nil {
		return err
	}
	f := view.NewForm("phone_number_id", about.Number, "business_account_id", about.Account)
	replaces := about.Number != ""
	if !replaces {
		f.Values.Set("verify_token", rand.Text()[:20])
	}
	return v.Show(OfficialSetup(f, sender(v, found), replaces))
}

func setOfficial(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	keys := puntuale.OfficialKeys{
		PhoneNumberID: f.Value("phone_number_id"), AccessToken: f.Value("access_token"), AppSecret: f.Value("app_secret"), VerifyToken: f.Value("verify_token"),
		BusinessAccountID: f.Value("business_account_id"), AppID: f.Value("app_id"), GroupsAPI: f.Is("groups_api", "on"),
	}
	before, err := metaSide(v, found)
	if err != nil {
		return err
	}
	replaces := before.Number != ""
	call := control.NewKeys{OfficialKeys: keys, NoAccount: true, KeepGroups: replaces && f.Value("groups_api") == ""}
	if _, err := v.Client.SetKeys(v.Ctx(), found.ID.String(), call); err != nil {
		shown := sender(v, found)
		return v.ShowRefused(err, f, OfficialForm(f, shown, replaces), OfficialSetup(f, shown, replaces),
			"phone_number_id", "business_account_id", "app_id", "access_token", "app_secret", "verify_token")
	}
	v.SetAuditTarget(found.ID.String())
	o, err := oneSession(v, found.ID.String())
	if err != nil {
		return err
	}
	o.Meta.Setup = true
	return v.Whole(OfficialWebhook(o, strings.TrimSpace(keys.VerifyToken)))
}

// testSession tests the connection. During the setup, the result is shown in the present page, because this page
// contains texts that are shown only once.
func testSession(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	switch session := sender(v, found); {
	case session.ToGateway():
		return testGateway(v, f, session)
	case !session.ToMeta():
		return page.ErrNoPage
	}
	tried, err := v.Client.TestSession(v.Ctx(), found.ID.String())
	o, missing := oneSession(v, found.ID.String())
	if missing != nil {
		return missing
	}
	o.Meta.Setup = f.Value("from") == "setup"
	if err != nil {
		return v.ShowRefused(err, f, TestForm(f, o), Session(o))
	}
	v.SetAuditTarget(found.ID.String())
	o.Meta.Test = &TestResult{OK: tried.OK, Message: tried.Message}
	if o.Meta.Setup && v.Partial() {
		return v.Show(TestForm(view.NewForm(), o))
	}
	return v.Whole(Session(o))
}

func networkTemplates(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	all, err := v.Client.NetworkTemplates(v.Ctx(), found.ID.String(), request.Page{Limit: "50", Cursor: v.Query("cursor")})
	if err != nil {
		return err
	}
	list := ApprovedList{NetworkTemplates: all.NetworkTemplates, All: all.All, Cursor: v.Query("cursor"), Next: all.Next}
	if list.Open, err = v.Client.TemplateRequests(v.Ctx(), found.ID.String()); err != nil {
		return err
	}
	list.Open = slices.DeleteFunc(list.Open, func(r puntuale.TemplateRequest) bool { return r.State >= puntuale.RequestDone })
	return v.Show(NetworkTemplates(sender(v, found), list))
}

// syncTemplates reads the templates from Meta again. It calls the connection test, which also reads the templates.
func syncTemplates(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	tried, err := v.Client.TestSession(v.Ctx(), found.ID.String())
	if err != nil {
		return err
	}
	v.SetAuditTarget(found.ID.String())
	switch {
	case !tried.OK:
		v.Toast("bad", v.Frame.Language.Says(tried.Message), "")
	case tried.Templates.Problem.IsZero():
		v.Say("official.synced_now", "")
	}
	return v.Redirect(sessionURL(v, found.ID) + "/templates")
}

// setWays stores which of Meta's optional ways the session may use.
func setWays(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	ways := &control.WaysChange{DirectSend: new(f.Is("direct_send", "on")), Marketing: new(f.Is("marketing_messages", "on")), Creative: new(f.Is("creative_features", "on"))}
	if _, err := v.Client.ChangeSession(v.Ctx(), found.ID.String(), control.SessionChange{Ways: ways, Known: page.Versions(f)}); err != nil {
		o, missing := oneSession(v, found.ID.String())
		if missing != nil {
			return missing
		}
		o.WaysForm = f
		v.Compare(err, f, o.Version(), sessionURL(v, o.ID))
		return v.ShowRefused(page.Below(err, "ways"), f, WaysForm(o), Session(o), "direct_send", "marketing_messages", "creative_features")
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("session.saved", "")
	return v.Redirect(sessionURL(v, found.ID))
}
