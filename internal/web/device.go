package web

import (
	"cmp"
	"encoding/json"
	"net/url"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// deviceRoutes unlink one of the phones and programs that take a session's messages.
var deviceRoutes = []Route{
	Get("/c/{client}/sessions/{id}/devices/{device}/unlink", ClientSide, puntuale.Staff, askToUnlinkDevice),
	Post("/c/{client}/sessions/{id}/devices/{device}/unlink", ClientSide, puntuale.Staff, "session.unlink_device", unlinkDevice),
	Post("/c/{client}/sessions/{id}/try", ClientSide, puntuale.Staff, "session.try", tryDevices),
}

// createByDevices creates a session whose messages devices take, and offers the first code at once.
func createByDevices(v *Request, f *view.Form) error {
	sandbox := false
	made, err := v.client.CreateSession(v.ctx(), control.NewSession{Name: f.Value("name"), Type: string(puntuale.SendApp), Sandbox: &sandbox, Devices: true}, control.Once[control.Session]{})
	if err != nil {
		return v.again(err, f, view.NewSessionForm(f), view.NewSession(f), "name", "kind")
	}
	v.did(made.ID.String())
	if _, err := v.client.Pair(v.ctx(), made.ID.String(), control.Pairing{}); err != nil {
		return err
	}
	v.say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// devicesOf is what the page of a session shows of its devices; nil where it has none by its kind.
func devicesOf(v *Request, s control.Session) (*view.DeviceSide, error) {
	if !s.ByDevice() {
		return nil, nil
	}
	all, err := v.client.Devices(v.ctx(), s.ID.String())
	if err != nil {
		return nil, err
	}
	side := &view.DeviceSide{Devices: all, App: phoneApp(v, "")}
	if s.Code != nil && v.person.User().Role >= puntuale.Staff {
		here := phoneApp(v, s.Code.Text)
		side.Here, side.Elsewhere = here, v.SiteAddress()+here
	}
	return side, nil
}

// phoneApp is the path of the phone app, which links with a code where one is given. What follows # stays in the browser.
func phoneApp(v *Request, code string) string {
	path, h := assistedPath, v.person.Host()
	if !h.Brand.Confirmed && h.Partner.Slug != "" {
		path += "?" + url.Values{"p": {h.Partner.Slug}}.Encode()
	}
	if code != "" {
		path += "#" + url.Values{"code": {code}}.Encode()
	}
	return path
}

// offerDevice offers a code that links a device. Who has the phone in hand goes on there.
func offerDevice(v *Request, s control.Session, f *view.Form) error {
	offered, err := v.client.Pair(v.ctx(), s.ID.String(), control.Pairing{})
	if err != nil {
		o, missing := oneSession(v, s.ID.String())
		if missing != nil {
			return missing
		}
		o.PairForm = f
		return v.again(err, f, view.LinkPhoneForm(o), view.Session(o))
	}
	v.did(offered.ID.String())
	if f.Value("here") != "" && offered.Code != nil {
		return v.Redirect(phoneApp(v, offered.Code.Text))
	}
	return v.Redirect(sessionURL(v, offered.ID))
}

// tryDevices has one message due now, to a number that the person names: their own, to see how it is done.
func tryDevices(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	found, err := v.client.Session(v.ctx(), v.path("id"))
	if err == nil && !found.ByDevice() {
		err = errNoPage
	}
	if err != nil {
		return err
	}
	text, _ := json.Marshal(v.T("device.try_words", "Name", v.frame.Look.Name)) // strings are always written
	fields := map[string]json.RawMessage{"text": text}
	body, _ := json.Marshal(map[string]any{"phone": f.Value("phone"), "text": text})
	if _, err = v.client.Send(v.ctx(), control.SingleCall{Phone: f.Value("phone"), Session: found.ID.String(), Fields: fields, Body: body}); err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		o.Devices.Try = f
		return v.again(err, f, view.TryForm(o), view.Session(o), "phone")
	}
	v.did(found.ID.String())
	v.say("device.tried", "")
	return v.Redirect(sessionURL(v, found.ID))
}

// aDevice finds the one of the path.
func aDevice(v *Request) (control.Session, puntuale.Device, error) {
	s, err := v.client.Session(v.ctx(), v.path("id"))
	if err == nil && !s.ByDevice() {
		err = errNoPage
	}
	if err != nil {
		return s, puntuale.Device{}, err
	}
	all, err := v.client.Devices(v.ctx(), s.ID.String())
	if err != nil {
		return s, puntuale.Device{}, err
	}
	id, _ := puntuale.ParseID[puntuale.DeviceID](v.path("device")) // what is no id is no device's
	for _, d := range all {
		if d.ID == id {
			return s, d, nil
		}
	}
	return s, puntuale.Device{}, errNoPage
}

func askToUnlinkDevice(v *Request) error {
	found, d, err := aDevice(v)
	if err != nil {
		return err
	}
	return v.show(view.UnlinkDevice(sender(v, found), d))
}

func unlinkDevice(v *Request) error {
	found, d, err := aDevice(v)
	if err != nil {
		return err
	}
	if err := v.client.UnlinkDevice(v.ctx(), found.ID.String(), v.path("device")); err != nil {
		return err
	}
	v.did(found.ID.String() + " " + d.Name)
	v.say("device.unlinked", "", "Name", cmp.Or(d.Name, v.path("device")))
	return v.Redirect(sessionURL(v, found.ID))
}
