package session

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// gatewayRoutes are the pages for the keys of a session that sends through a gateway. sessionRoutes contains the test
// of the connection.
var gatewayRoutes = []page.Route{
	page.Get("/c/{client}/sessions/{id}/gateway", page.ClientSide, puntuale.Owner, gatewayKeys),
	page.Post("/c/{client}/sessions/{id}/gateway", page.ClientSide, puntuale.Owner, "session.gateway", setGateway),
}

// gatewayFields are the fields of the forms that contain a gateway's keys.
var gatewayFields = []string{"name", "access_token", "base_url", "instance_id"}

func readGateway(f *view.Form) control.NewGateway {
	return control.NewGateway{BaseURL: f.Value("base_url"), AccessToken: f.Value("access_token"), InstanceID: f.Value("instance_id")}
}

// createGateway creates a session that sends through a gateway. If the form has no keys yet, it first shows a form for
// the keys.
func createGateway(v *page.Request, f *view.Form) error {
	if !f.Values.Has("access_token") {
		return v.Whole(NewGateway(view.NewForm("name", f.Value("name"))))
	}
	sandbox, gateway := false, readGateway(f)
	made, err := v.Client.CreateSession(v.Ctx(), control.NewSession{
		Name: f.Value("name"), Type: string(puntuale.SendApp), Sandbox: &sandbox, Gateway: &gateway,
	}, control.Once[control.Session]{})
	if err != nil {
		return v.ShowRefused(page.Below(err, "gateway"), f, NewGatewayForm(f), NewGateway(f), gatewayFields...)
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// gateway returns the session in the path. It fails if the session does not send through a gateway.
func gateway(v *page.Request) (Sender, error) {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	s := sender(v, found)
	if err == nil && !s.ToGateway() {
		err = page.ErrNoPage
	}
	return s, err
}

// gatewayKeys replaces the session's keys for its gateway. Stored keys are never shown. If a field is empty, its stored
// key does not change.
func gatewayKeys(v *page.Request) error {
	sender, err := gateway(v)
	if err != nil {
		return err
	}
	return v.Show(GatewayKeys(view.NewForm(), sender))
}

func setGateway(v *page.Request) error {
	sender, err := gateway(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if _, err := v.Client.SetGateway(v.Ctx(), sender.ID.String(), readGateway(f)); err != nil {
		return v.ShowRefused(err, f, GatewayKeysForm(f, sender), GatewayKeys(f, sender), gatewayFields...)
	}
	v.SetAuditTarget(sender.ID.String())
	v.Say("gateway.saved", "")
	return v.Redirect(sessionURL(v, sender.ID))
}

// testGateway tests the connection to the gateway, and shows the result on the session's page.
func testGateway(v *page.Request, f *view.Form, sender Sender) error {
	tried, err := v.Client.TestSession(v.Ctx(), sender.ID.String())
	if err != nil {
		o, missing := oneSession(v, sender.ID.String())
		if missing != nil {
			return missing
		}
		return v.ShowRefused(err, f, GatewayTest(f, o), Session(o))
	}
	v.SetAuditTarget(sender.ID.String())
	tone := "bad"
	if tried.OK {
		tone = "ok"
	}
	v.Toast(tone, v.Frame.Language.Says(tried.Message), "")
	return v.Redirect(sessionURL(v, sender.ID))
}
