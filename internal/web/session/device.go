package session

import (
	"cmp"
	"encoding/json"
	"net/url"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// deviceRoutes are the pages that unlink a phone or a program from a session.
var deviceRoutes = []page.Route{
	page.Get("/c/{client}/sessions/{id}/devices/{device}/unlink", page.ClientSide, puntuale.Staff, askToUnlinkDevice),
	page.Post("/c/{client}/sessions/{id}/devices/{device}/unlink", page.ClientSide, puntuale.Staff, "session.unlink_device", unlinkDevice),
	page.Post("/c/{client}/sessions/{id}/try", page.ClientSide, puntuale.Staff, "session.try", tryDevices),
}

// createByDevices creates a session that sends through devices, and its first code for linking.
func createByDevices(v *page.Request, f *view.Form) error {
	sandbox := false
	made, err := v.Client.CreateSession(v.Ctx(), control.NewSession{Name: f.Value("name"), Type: string(puntuale.SendApp), Sandbox: &sandbox, Devices: true}, control.Once[control.Session]{})
	if err != nil {
		return v.ShowRefused(err, f, NewSessionForm(f), NewSession(f), "name", "kind")
	}
	v.SetAuditTarget(made.ID.String())
	if _, err := v.Client.Pair(v.Ctx(), made.ID.String(), control.Pairing{}); err != nil {
		return err
	}
	v.Say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// devicesOf returns the data about devices for a session's page, or nil if the session does not send through devices.
func devicesOf(v *page.Request, s control.Session) (*DeviceSide, error) {
	if !s.ByDevice() {
		return nil, nil
	}
	all, err := v.Client.Devices(v.Ctx(), s.ID.String())
	if err != nil {
		return nil, err
	}
	side := &DeviceSide{Devices: all, App: phoneApp(v, "")}
	if s.Code != nil && v.Person.User().Role >= puntuale.Staff {
		onPhone := phoneApp(v, s.Code.Text)
		side.Here, side.Elsewhere = onPhone, v.SiteAddress()+onPhone
	}
	return side, nil
}

// phoneApp returns the path of the phone app. If code is set, the app links itself with the code. The code comes after
// #, so that the browser does not send it to the server.
func phoneApp(v *page.Request, code string) string {
	path, h := page.AssistedPath, v.Person.Host()
	if !h.Brand.Confirmed && h.Partner.Slug != "" {
		path += "?" + url.Values{"p": {h.Partner.Slug}}.Encode()
	}
	if code != "" {
		path += "#" + url.Values{"code": {code}}.Encode()
	}
	return path
}

// offerDevice creates a code that links a device. A browser on a phone is redirected to the app.
func offerDevice(v *page.Request, s control.Session, f *view.Form) error {
	offered, err := v.Client.Pair(v.Ctx(), s.ID.String(), control.Pairing{})
	if err != nil {
		o, missing := oneSession(v, s.ID.String())
		if missing != nil {
			return missing
		}
		o.PairForm = f
		return v.ShowRefused(err, f, LinkPhoneForm(o), Session(o))
	}
	v.SetAuditTarget(offered.ID.String())
	if f.Value("here") != "" && offered.Code != nil {
		return v.Redirect(phoneApp(v, offered.Code.Text))
	}
	return v.Redirect(sessionURL(v, offered.ID))
}

// tryDevices creates a message that is due immediately, to test the session. The person enters a number, usually their
// own.
func tryDevices(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err == nil && !found.ByDevice() {
		err = page.ErrNoPage
	}
	if err != nil {
		return err
	}
	text, _ := json.Marshal(v.T("device.try_words", "Name", v.Frame.Look.Name)) // encoding strings as JSON cannot fail
	fields := map[string]json.RawMessage{"text": text}
	body, _ := json.Marshal(map[string]any{"phone": f.Value("phone"), "text": text})
	if _, err = v.Client.Send(v.Ctx(), control.SingleCall{Phone: f.Value("phone"), Session: found.ID.String(), Fields: fields, Body: body}); err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		o.Devices.Try = f
		return v.ShowRefused(err, f, TryForm(o), Session(o), "phone")
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("device.tried", "")
	return v.Redirect(sessionURL(v, found.ID))
}

// aDevice returns the device in the path, and its session.
func aDevice(v *page.Request) (control.Session, puntuale.Device, error) {
	s, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err == nil && !s.ByDevice() {
		err = page.ErrNoPage
	}
	if err != nil {
		return s, puntuale.Device{}, err
	}
	all, err := v.Client.Devices(v.Ctx(), s.ID.String())
	if err != nil {
		return s, puntuale.Device{}, err
	}
	id, _ := puntuale.ParseID[puntuale.DeviceID](v.Path("device")) // for a text that is not an id, no device is found
	for _, d := range all {
		if d.ID == id {
			return s, d, nil
		}
	}
	return s, puntuale.Device{}, page.ErrNoPage
}

func askToUnlinkDevice(v *page.Request) error {
	found, d, err := aDevice(v)
	if err != nil {
		return err
	}
	return v.Show(UnlinkDevice(sender(v, found), d))
}

func unlinkDevice(v *page.Request) error {
	found, d, err := aDevice(v)
	if err != nil {
		return err
	}
	if err := v.Client.UnlinkDevice(v.Ctx(), found.ID.String(), v.Path("device")); err != nil {
		return err
	}
	v.SetAuditTarget(found.ID.String() + " " + d.Name)
	v.Say("device.unlinked", "", "Name", cmp.Or(d.Name, v.Path("device")))
	return v.Redirect(sessionURL(v, found.ID))
}
