package webhook

import (
	"slices"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/control/webhook"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// webhookRoutes are the pages of a client's or a partner's webhooks, below the address base. A webhook sends data to
// another server, so only owners may change it.
func webhookRoutes(base string, partner bool) []page.Route {
	side := page.ClientSide
	if partner {
		side = page.PartnerSide
	}
	one := base + "/{webhook}"
	return []page.Route{
		page.Get(base, side, puntuale.Reader, webhooks),
		page.Get(base+"/new", side, puntuale.Owner, newWebhook),
		page.Post(base, side, puntuale.Owner, "webhook.create", createWebhook),
		page.Get(one, side, puntuale.Reader, oneWebhook),
		page.Get(one+"/edit", side, puntuale.Owner, editWebhook),
		page.Post(one+"/edit", side, puntuale.Owner, "webhook.change", changeWebhook),
		page.Post(one+"/on", side, puntuale.Owner, "webhook.on", switchOn),
		page.Post(one+"/off", side, puntuale.Owner, "webhook.off", switchOff),
		page.Post(one+"/rotate", side, puntuale.Owner, "webhook.rotate", rotateSecret),
		page.Post(one+"/test", side, puntuale.Owner, page.Unaudited, testWebhook),
		page.Post(one+"/delete", side, puntuale.Owner, "webhook.delete", deleteWebhook),
		page.Post(one+"/replay", side, puntuale.Owner, "webhook.replay", replayMany),
		page.Get(one+"/deliveries/{delivery}", side, puntuale.Reader, delivery),
		page.Post(one+"/deliveries/{delivery}/again", side, puntuale.Owner, "webhook.replay", replayOne),
	}
}

// ownerOf returns the webhooks of the page's client or partner, and the address of their pages.
func ownerOf(v *page.Request) (*webhook.Owner, string, error) {
	if v.Client == nil {
		return v.Site.Webhooks.OfPartner(v.Partner.ID(), "").InZone(v.Frame.Zone), "/partner/webhooks", nil
	}
	o, err := v.Site.Webhooks.OfClient(v.Client, "")
	return o, v.Frame.Place.Base + "/webhooks", err
}

func webhooks(v *page.Request) error {
	o, base, err := ownerOf(v)
	if err != nil {
		return err
	}
	all, err := o.List(v.Ctx())
	if err != nil {
		return err
	}
	return v.Show(Webhooks(List{Base: base, Partner: v.Client == nil, Rows: all}))
}

// editorOf returns the page with the form, with the client's sessions as choices.
func editorOf(v *page.Request, base string, f *view.Form) (Editor, error) {
	e := Editor{Form: f, Base: base, Partner: v.Client == nil}
	if e.Partner {
		return e, nil
	}
	all, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, s := range all {
		e.Sessions = append(e.Sessions, view.Option{Value: s.ID.String(), Text: s.Name})
	}
	return e, err
}

var webhookFields = []string{"url", "description", "types", "id_sessione"}

func newWebhook(v *page.Request) error {
	_, base, err := ownerOf(v)
	if err != nil {
		return err
	}
	e, err := editorOf(v, base, view.NewForm("which", "all"))
	if err != nil {
		return err
	}
	return v.Show(WebhookEdit(e))
}

// readWebhook reads the form. A partner's webhook has no session.
func readWebhook(v *page.Request, f *view.Form) webhook.NewWebhook {
	call := webhook.NewWebhook{URL: new(f.Value("url")), Description: new(f.Value("description")), Types: f.Values["types"]}
	if f.Is("which", "all") {
		call.Types = nil
		for _, t := range puntuale.AllEvents.Types() {
			call.Types = append(call.Types, t.String())
		}
	} else if call.Types == nil {
		call.Types = []string{}
	}
	if v.Client != nil {
		call.Session = new(f.Value("id_sessione"))
	}
	return call
}

func createWebhook(v *page.Request) error {
	o, base, err := ownerOf(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	made, err := o.Create(v.Ctx(), readWebhook(v, f), control.Once[webhook.IssuedWebhook]{})
	if err != nil {
		e, missing := editorOf(v, base, f)
		if missing != nil {
			return missing
		}
		return v.ShowRefused(err, f, WebhookForm(e), WebhookEdit(e), webhookFields...)
	}
	v.SetAuditTarget(made.ID.String())
	return v.Whole(SecretShown(WebhookSecret{Webhook: made.Webhook, Secret: made.Secret, Base: base}))
}

// pathWebhook returns the webhook in the path, with its owner and the address of the owner's pages.
func pathWebhook(v *page.Request) (o *webhook.Owner, base string, w puntuale.Webhook, err error) {
	if o, base, err = ownerOf(v); err == nil {
		w, err = o.Webhook(v.Ctx(), v.Path("webhook"))
	}
	return o, base, w, err
}

func oneWebhook(v *page.Request) error {
	p, err := webhookPage(v)
	if err != nil {
		return err
	}
	return v.Show(WebhookPage(p))
}

// webhookPage reads a webhook and one page of its deliveries.
func webhookPage(v *page.Request) (p WebhookDetail, err error) {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return p, err
	}
	p = WebhookDetail{Webhook: w, Base: base, State: v.Query("state"), Cursor: v.Query("cursor"), Replay: view.NewForm("failed", "on")}
	if p.Overlap, err = o.Overlap(v.Ctx(), w.ID); err != nil {
		return p, err
	}
	if w.Session != 0 {
		if s, err := v.Client.Session(v.Ctx(), w.Session.String()); err == nil { // a deleted session has no name, so the page shows none
			p.Session = s.Name
		}
	}
	p.Rows, p.Next, err = o.Deliveries(v.Ctx(), w.ID.String(), webhook.DeliveryQuery{State: p.State, Page: request.Page{Limit: page.RowsOfPage, Cursor: p.Cursor}})
	if err != nil {
		return p, page.Lost(err)
	}
	clients := make([]puntuale.ClientID, 0, len(p.Rows))
	for _, d := range p.Rows {
		if !slices.Contains(clients, d.Client) {
			clients = append(clients, d.Client)
		}
	}
	p.Names, err = clientNames(v, clients...)
	return p, err
}

// clientNames returns the clients' names for a partner's page, and nil for a client's own page.
func clientNames(v *page.Request, ids ...puntuale.ClientID) (map[puntuale.ClientID]string, error) {
	if v.Client != nil {
		return nil, nil
	}
	return v.Partner.ClientNames(v.Ctx(), ids)
}

func editWebhook(v *page.Request) error {
	_, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	f := view.NewForm("url", w.URL, "description", w.Description, "which", "some")
	if w.Types == puntuale.AllEvents {
		f.Values.Set("which", "all")
	} else {
		for _, t := range w.Types.Types() {
			f.Values.Add("types", t.String())
		}
	}
	if w.Session != 0 {
		f.Values.Set("id_sessione", w.Session.String())
	}
	e, err := editorOf(v, base, f)
	if err != nil {
		return err
	}
	e.Webhook = w
	return v.Show(WebhookEdit(e))
}

func changeWebhook(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if _, err := o.Update(v.Ctx(), w.ID.String(), readWebhook(v, f)); err != nil {
		e, missing := editorOf(v, base, f)
		if missing != nil {
			return missing
		}
		e.Webhook = w
		return v.ShowRefused(err, f, WebhookForm(e), WebhookEdit(e), webhookFields...)
	}
	v.SetAuditTarget(w.ID.String())
	v.Say("webhook.saved", "")
	return v.Redirect(oneURL(base, w.ID))
}

func switchOn(v *page.Request) error  { return switched(v, true) }
func switchOff(v *page.Request) error { return switched(v, false) }

// switched turns a webhook on or off. Turning on also enables a webhook that was disabled because of its failures.
func switched(v *page.Request, enabled bool) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	if _, err := o.Update(v.Ctx(), w.ID.String(), webhook.NewWebhook{Active: &enabled}); err != nil {
		return err
	}
	v.SetAuditTarget(w.ID.String())
	if enabled {
		v.Say("webhook.is_on", oneURL(base, w.ID)+"/off")
	} else {
		v.Say("webhook.is_off", oneURL(base, w.ID)+"/on")
	}
	return v.Redirect(oneURL(base, w.ID))
}

func rotateSecret(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	next, oldValidUntil, err := o.Rotate(v.Ctx(), w.ID.String())
	if err != nil {
		return err
	}
	v.SetAuditTarget(w.ID.String())
	return v.Whole(SecretShown(WebhookSecret{Webhook: w, Secret: next.Secret, Until: oldValidUntil, Base: base}))
}

// testWebhook sends a test event and shows the result. htmx gets the result beside the button, and a browser without
// scripts gets the webhook's page.
func testWebhook(v *page.Request) error {
	o, _, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the receiver may be slow, and waiting for it needs no seat
	result, err := o.Test(v.Ctx(), w.ID.String())
	if err != nil {
		return err
	}
	if _, err := v.Pass.Return(v.Ctx()); err != nil {
		return err
	}
	if v.Partial() {
		return v.Show(TestResult(&result))
	}
	p, err := webhookPage(v)
	if err != nil {
		return err
	}
	p.Test = &result
	return v.Show(WebhookPage(p))
}

func deleteWebhook(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	if err := o.Delete(v.Ctx(), w.ID.String()); err != nil {
		return err
	}
	v.SetAuditTarget(w.ID.String())
	v.Say("webhook.deleted", "")
	return v.Redirect(base)
}
