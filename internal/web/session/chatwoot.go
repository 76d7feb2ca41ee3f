package session

import (
	"puntuale"
	"puntuale/internal/control/webhook"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// chatwootRoutes contains the page of a session's link to Chatwoot. A link gives conversations to another service, so
// only owners change it.
var chatwootRoutes = []page.Route{
	page.Get("/c/{client}/sessions/{id}/chatwoot", page.ClientSide, puntuale.Reader, chatwoot),
	page.Post("/c/{client}/sessions/{id}/chatwoot", page.ClientSide, puntuale.Owner, "session.chatwoot", linkChatwoot),
	page.Post("/c/{client}/sessions/{id}/chatwoot/unlink", page.ClientSide, puntuale.Owner, "session.chatwoot_unlink", unlinkChatwoot),
}

// chatwootFields are the fields of the form, in the order of the page. Their names are the members in the API.
var chatwootFields = []string{"base_url", "account_id", "api_access_token", "inbox_id"}

// chatwootLink returns the session's link, or nil if there is no link.
func chatwootLink(v *page.Request, id puntuale.SessionID) (*puntuale.ChatwootLink, error) {
	l, err := v.Site.Webhooks.LinksOf(v.Client).Read(v.Ctx(), id.String())
	if missing(err) {
		return nil, nil
	}
	return &l, err
}

// chatwootSide returns the page's data about the session in the path, without the form.
func chatwootSide(v *page.Request) (ChatwootSide, error) {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err != nil {
		return ChatwootSide{}, err
	}
	side := ChatwootSide{Sender: sender(v, found)}
	side.Link, err = chatwootLink(v, found.ID)
	return side, err
}

func chatwoot(v *page.Request) error {
	side, err := chatwootSide(v)
	if err != nil {
		return err
	}
	return v.Show(Chatwoot(side))
}

func linkChatwoot(v *page.Request) error {
	before, err := chatwootSide(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the Chatwoot server may be slow, and waiting for it needs no seat
	_, err = v.Site.Webhooks.LinksOf(v.Client).Link(v.Ctx(), before.ID.String(), webhook.NewLink{
		BaseURL: f.Value("base_url"), Token: f.Value("api_access_token"), Account: f.Value("account_id"), Inbox: f.Value("inbox_id"),
	})
	_, full := v.Pass.Return(v.Ctx())
	if err == nil { // the link is stored, and this must be shown even if no seat is free
		v.SetAuditTarget(before.ID.String())
		v.Say("chatwoot.linked_now", "")
		return v.Redirect(chatwootURL(v, before.ID))
	}
	if full != nil {
		return full
	}
	return chatwootAgain(v, f, before, err)
}

// chatwootAgain shows the form with its faults. If Chatwoot refused, the link is stored but not complete. So the page
// also shows the link's state, and the audit log gets an entry.
func chatwootAgain(v *page.Request, f *view.Form, before ChatwootSide, refused error) error {
	side, err := chatwootSide(v)
	if err != nil {
		return err
	}
	side.Form = f
	if v.Partial() {
		v.Writer.Header().Set("HX-Retarget", "#chatwoot")
	}
	if err := v.ShowRefused(refused, f, ChatwootParts(side), Chatwoot(side), chatwootFields...); err != nil {
		return err
	}
	if side.Link != nil && (before.Link == nil || !side.Link.Created.Equal(before.Link.Created)) {
		v.SetAuditTarget(side.ID.String())
		v.Quiet = false
	}
	return nil
}

func unlinkChatwoot(v *page.Request) error {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if err := v.Site.Webhooks.LinksOf(v.Client).Unlink(v.Ctx(), found.ID.String()); err != nil {
		return err
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("chatwoot.unlinked", "")
	return v.Redirect(chatwootURL(v, found.ID))
}

func chatwootURL(v *page.Request, id puntuale.SessionID) string {
	return sessionURL(v, id) + "/chatwoot"
}
