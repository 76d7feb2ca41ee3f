package web

import (
	"crypto/rand"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// officialRoutes are what a session of the type Official has besides: its keys, its test, its templates.
var officialRoutes = []Route{
	Get("/c/{client}/sessions/{id}/official", ClientSide, puntuale.Owner, officialSetup),
	Post("/c/{client}/sessions/{id}/official", ClientSide, puntuale.Owner, "session.official", setOfficial),
	Post("/c/{client}/sessions/{id}/test", ClientSide, puntuale.Staff, "session.test", testSession),
	Get("/c/{client}/sessions/{id}/templates", ClientSide, puntuale.Reader, networkTemplates),
	Post("/c/{client}/sessions/{id}/templates", ClientSide, puntuale.Staff, "session.templates", syncTemplates),
}

// metaSide is what an Official session is to Meta.
func metaSide(v *Request, s control.Session) (*view.MetaSide, error) {
	about, err := v.client.NetworkTemplates(v.ctx(), s.ID.String(), request.Page{Limit: "1"})
	if err != nil {
		return nil, err
	}
	m := &view.MetaSide{NetworkTemplates: about.NetworkTemplates, Webhook: s.Webhook}
	if m.Webhook == "" {
		m.Webhook = readAt(v.HTTP) + s.ID.WebhookPath()
	}
	m.Reachable = reachable(m.Webhook)
	return m, nil
}

// official returns a session that speaks with Meta.
func official(v *Request) (control.Session, error) {
	found, err := v.client.Session(v.ctx(), v.path("id"))
	if err == nil && !sender(v, found).ToMeta() {
		err = errNoPage
	}
	return found, err
}

// officialSetup takes the keys. What is stored of them is never shown again, and stays where nothing else is given.
func officialSetup(v *Request) error {
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
	return v.show(view.OfficialSetup(f, sender(v, found), replaces))
}

func setOfficial(v *Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	keys := puntuale.OfficialKeys{
		PhoneNumberID: f.Value("phone_number_id"), AccessToken: f.Value("access_token"), AppSecret: f.Value("app_secret"), VerifyToken: f.Value("verify_token"),
		BusinessAccountID: f.Value("business_account_id"), GroupsAPI: f.Is("groups_api", "on"),
	}
	before, err := metaSide(v, found)
	if err != nil {
		return err
	}
	replaces := before.Number != ""
	asked := control.NewKeys{OfficialKeys: keys, NoAccount: true, KeepGroups: replaces && f.Value("groups_api") == ""}
	if _, err := v.client.SetKeys(v.ctx(), found.ID.String(), asked); err != nil {
		shown := sender(v, found)
		return v.again(err, f, view.OfficialForm(f, shown, replaces), view.OfficialSetup(f, shown, replaces),
			"phone_number_id", "business_account_id", "access_token", "app_secret", "verify_token")
	}
	v.did(found.ID.String())
	o, err := oneSession(v, found.ID.String())
	if err != nil {
		return err
	}
	o.Meta.Setup = true
	return v.whole(view.OfficialWebhook(o, strings.TrimSpace(keys.VerifyToken)))
}

// testSession tries the connection. While a session is being set up the answer comes into the page that is there, which
// shows what is shown only once.
func testSession(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	found, err := v.client.Session(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	switch of := sender(v, found); {
	case of.ToGateway():
		return testGateway(v, f, of)
	case !of.ToMeta():
		return errNoPage
	}
	tried, err := v.client.TestSession(v.ctx(), found.ID.String())
	o, missing := oneSession(v, found.ID.String())
	if missing != nil {
		return missing
	}
	o.Meta.Setup = f.Value("from") == "setup"
	if err != nil {
		return v.again(err, f, view.TestForm(f, o), view.Session(o))
	}
	v.did(found.ID.String())
	o.Meta.Test = &view.TestResult{OK: tried.OK, Message: tried.Message}
	if o.Meta.Setup && v.partial() {
		return v.show(view.TestForm(view.NewForm(), o))
	}
	return v.whole(view.Session(o))
}

func networkTemplates(v *Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	all, err := v.client.NetworkTemplates(v.ctx(), found.ID.String(), request.Page{Limit: "50", Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	return v.show(view.NetworkTemplates(sender(v, found), view.ApprovedList{NetworkTemplates: all.NetworkTemplates, All: all.All, Cursor: v.query("cursor"), Next: all.Next}))
}

// syncTemplates reads the templates anew: the test does so.
func syncTemplates(v *Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	tried, err := v.client.TestSession(v.ctx(), found.ID.String())
	if err != nil {
		return err
	}
	v.did(found.ID.String())
	switch {
	case !tried.OK:
		v.toast("bad", v.frame.Language.Says(tried.Message), "")
	case tried.Templates.Problem == "":
		v.say("official.synced_now", "")
	}
	return v.Redirect(sessionURL(v, found.ID) + "/templates")
}
