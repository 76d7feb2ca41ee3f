package message

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
)

// unknownRoutes are the pages about messages that may have left before a restore.
var unknownRoutes = []page.Route{
	page.Get("/c/{client}/unknown", page.ClientSide, puntuale.Reader, unknown),
	page.Get("/c/{client}/unknown/resend", page.ClientSide, puntuale.Staff, askAbout("resend")),
	page.Post("/c/{client}/unknown/resend", page.ClientSide, puntuale.Staff, "unknown.resend", resendUnknown),
	page.Get("/c/{client}/unknown/close", page.ClientSide, puntuale.Staff, askAbout("close")),
	page.Post("/c/{client}/unknown/close", page.ClientSide, puntuale.Staff, "unknown.close", closeUnknown),
	page.Post("/c/{client}/unknown/release", page.ClientSide, puntuale.Staff, "unknown.release", releaseHeld),
}

func unknown(v *page.Request) (err error) {
	p := UnknownPage{Cursor: v.Query("cursor")}
	if p.Restored, err = v.Client.Restored(v.Ctx()); err != nil {
		return err
	}
	if p.Rows, p.Next, err = v.Client.UnknownMessages(v.Ctx(), request.Page{Limit: "50", Cursor: p.Cursor}); err != nil {
		return err
	}
	if err := v.NameRecipients(p.Rows); err != nil {
		return err
	}
	return v.Show(Unknown(p))
}

// askAbout returns the handler of a page that asks for confirmation before an action on all unknown messages.
func askAbout(verb string) func(*page.Request) error {
	return func(v *page.Request) error {
		r, err := v.Client.Restored(v.Ctx())
		if err != nil {
			return err
		}
		return v.Show(DecideUnknown(verb, r.Unknown))
	}
}

// unknownCall reads which messages a form chooses: one message, or all.
func unknownCall(v *page.Request) (control.UnknownCall, error) {
	f, err := v.Form()
	if err != nil {
		return control.UnknownCall{}, err
	}
	id := f.Value("id")
	if id == "" {
		return control.UnknownCall{All: true}, nil
	}
	v.SetAuditTarget(id)
	return control.UnknownCall{IDs: []string{id}}, nil
}

func resendUnknown(v *page.Request) error {
	call, err := unknownCall(v)
	if err != nil {
		return err
	}
	ids, err := v.Client.ResendUnknown(v.Ctx(), call)
	if err != nil {
		return err
	}
	v.Say("unknown.resent", "", "N", len(ids))
	return v.Redirect(v.Frame.Place.Base + "/unknown")
}

func closeUnknown(v *page.Request) error {
	call, err := unknownCall(v)
	if err != nil {
		return err
	}
	n, err := v.Client.CloseUnknown(v.Ctx(), call)
	if err != nil {
		return err
	}
	v.Say("unknown.closed", "", "N", n)
	return v.Redirect(v.Frame.Place.Base + "/unknown")
}

func releaseHeld(v *page.Request) error {
	if err := v.Client.ReleaseHeld(v.Ctx()); err != nil {
		return err
	}
	v.Say("unknown.released", "")
	return v.Redirect(v.Frame.Place.Base + "/unknown")
}
