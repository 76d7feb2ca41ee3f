package web

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// unknownRoutes are about messages that may have left before a restore.
var unknownRoutes = []Route{
	Get("/c/{client}/unknown", ClientSide, puntuale.Reader, unknown),
	Get("/c/{client}/unknown/resend", ClientSide, puntuale.Staff, askAbout("resend")),
	Post("/c/{client}/unknown/resend", ClientSide, puntuale.Staff, "unknown.resend", resendUnknown),
	Get("/c/{client}/unknown/close", ClientSide, puntuale.Staff, askAbout("close")),
	Post("/c/{client}/unknown/close", ClientSide, puntuale.Staff, "unknown.close", closeUnknown),
	Post("/c/{client}/unknown/release", ClientSide, puntuale.Staff, "unknown.release", releaseHeld),
}

func unknown(v *Request) (err error) {
	p := view.UnknownPage{Cursor: v.query("cursor")}
	if p.Restored, err = v.client.Restored(v.ctx()); err != nil {
		return err
	}
	if p.Rows, p.Next, err = v.client.UnknownMessages(v.ctx(), request.Page{Limit: "50", Cursor: p.Cursor}); err != nil {
		return err
	}
	return v.show(view.Unknown(p))
}

// askAbout asks before something is done to all of them.
func askAbout(verb string) func(*Request) error {
	return func(v *Request) error {
		r, err := v.client.Restored(v.ctx())
		if err != nil {
			return err
		}
		return v.show(view.DecideUnknown(verb, r.Unknown))
	}
}

// unknownCall reads which messages a form names: one, or all.
func unknownCall(v *Request) (control.UnknownCall, error) {
	f, err := v.form()
	if err != nil {
		return control.UnknownCall{}, err
	}
	id := f.Value("id")
	if id == "" {
		return control.UnknownCall{All: true}, nil
	}
	v.did(id)
	return control.UnknownCall{IDs: []string{id}}, nil
}

func resendUnknown(v *Request) error {
	call, err := unknownCall(v)
	if err != nil {
		return err
	}
	ids, err := v.client.ResendUnknown(v.ctx(), call)
	if err != nil {
		return err
	}
	v.say("unknown.resent", "", "N", len(ids))
	return v.Redirect(v.frame.Place.Base + "/unknown")
}

func closeUnknown(v *Request) error {
	call, err := unknownCall(v)
	if err != nil {
		return err
	}
	n, err := v.client.CloseUnknown(v.ctx(), call)
	if err != nil {
		return err
	}
	v.say("unknown.closed", "", "N", n)
	return v.Redirect(v.frame.Place.Base + "/unknown")
}

func releaseHeld(v *Request) error {
	if err := v.client.ReleaseHeld(v.ctx()); err != nil {
		return err
	}
	v.say("unknown.released", "")
	return v.Redirect(v.frame.Place.Base + "/unknown")
}
