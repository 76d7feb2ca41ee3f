package web

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// gatewayRoutes are what a session that sends through a gateway has besides: its keys. Its test is that of all sessions.
var gatewayRoutes = []Route{
	Get("/c/{client}/sessions/{id}/gateway", ClientSide, puntuale.Owner, gatewayKeys),
	Post("/c/{client}/sessions/{id}/gateway", ClientSide, puntuale.Owner, "session.gateway", setGateway),
}

// gatewayFields are the fields of the forms that take a gateway's keys.
var gatewayFields = []string{"name", "access_token", "base_url", "instance_id"}

func readGateway(f *view.Form) control.NewGateway {
	return control.NewGateway{BaseURL: f.Value("base_url"), AccessToken: f.Value("access_token"), InstanceID: f.Value("instance_id")}
}

// createGateway creates a session that sends through a gateway. The choice of this kind leads to a form for the keys.
func createGateway(v *Request, f *view.Form) error {
	if !f.Values.Has("access_token") {
		return v.whole(view.NewGateway(view.NewForm("name", f.Value("name"))))
	}
	sandbox, gateway := false, readGateway(f)
	made, err := v.client.CreateSession(v.ctx(), control.NewSession{
		Name: f.Value("name"), Type: string(puntuale.SendApp), Sandbox: &sandbox, Gateway: &gateway,
	}, control.Once[control.Session]{})
	if err != nil {
		return v.again(below(err, "gateway"), f, view.NewGatewayForm(f), view.NewGateway(f), gatewayFields...)
	}
	v.did(made.ID.String())
	v.say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// gateway returns a session that sends through a gateway.
func gateway(v *Request) (view.Sender, error) {
	found, err := v.client.Session(v.ctx(), v.path("id"))
	s := sender(v, found)
	if err == nil && !s.ToGateway() {
		err = errNoPage
	}
	return s, err
}

// gatewayKeys takes other keys. Those that are stored are never shown, and stay where nothing else is given.
func gatewayKeys(v *Request) error {
	of, err := gateway(v)
	if err != nil {
		return err
	}
	return v.show(view.GatewayKeys(view.NewForm(), of))
}

func setGateway(v *Request) error {
	of, err := gateway(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	if _, err := v.client.SetGateway(v.ctx(), of.ID.String(), readGateway(f)); err != nil {
		return v.again(err, f, view.GatewayKeysForm(f, of), view.GatewayKeys(f, of), gatewayFields...)
	}
	v.did(of.ID.String())
	v.say("gateway.saved", "")
	return v.Redirect(sessionURL(v, of.ID))
}

// testGateway asks the gateway about the number, and says what came of it on the session's page.
func testGateway(v *Request, f *view.Form, of view.Sender) error {
	tried, err := v.client.TestSession(v.ctx(), of.ID.String())
	if err != nil {
		o, missing := oneSession(v, of.ID.String())
		if missing != nil {
			return missing
		}
		return v.again(err, f, view.GatewayTest(f, o), view.Session(o))
	}
	v.did(of.ID.String())
	tone := "bad"
	if tried.OK {
		tone = "ok"
	}
	v.toast(tone, v.frame.Language.Says(tried.Message), "")
	return v.Redirect(sessionURL(v, of.ID))
}
