package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	"puntuale/internal/control/request"
)

// things contains ids of one client's things: one id for each kind of thing that has ids in paths. The map's key is the
// part of a path before the id.
type things map[string]string

// everything creates one thing of each of these kinds for a client.
func (w *world) everything(client puntuale.ClientID) things {
	w.t.Helper()
	ctx := context.Background()
	person := w.person(w.ownerOf(client))
	c, err := person.Client(ctx, client.String())
	w.must(err)
	has := things{"clients": client.String()}
	of, err := w.store.ClientOf(ctx, client)
	w.must(err)
	plan, err := w.store.Partner(of.Partner).CreatePlan(ctx, puntuale.ClientPlan{Name: "Base di " + client.String(), Values: puntuale.PlanValues{
		Credits: puntuale.ChangeTo(new(int64(500))), Refill: puntuale.ChangeTo(puntuale.RefillMonthly), Days: puntuale.ChangeTo(new(int64(365))), Quotas: puntuale.Quotas{puntuale.QuotaSessions: 2}}}, nil)
	w.must(err)
	has["plans"] = plan.String()
	sequence := appointment()
	sequence.Name = "Promemoria visita " + client.String()
	q, err := c.CreateSequence(ctx, sequence, control.Once[control.Sequence]{})
	w.must(err)
	has["sequences"] = q.ID.String()
	t, err := c.CreateTemplate(ctx, control.NewTemplate{Template: puntuale.Template{Name: "conferma", Text: "Ciao {{nome}}, confermato!"}}, control.Once[control.Template]{})
	w.must(err)
	has["templates"] = t.ID.String()
	var picture bytes.Buffer
	w.must(jpeg.Encode(&picture, shop(), nil))
	file, err := c.UploadFile(ctx, control.FileUpload{Name: "vetrina.jpg", Content: &picture})
	w.must(err)
	has["files"] = string(file.ID)
	s, err := c.CreateSession(ctx, control.NewSession{Name: "Sportello", Type: string(puntuale.Official), Sandbox: new(false)}, control.Once[control.Session]{})
	w.must(err)
	has["official"] = s.ID.String()
	has["meta"] = "880001" // see atMeta
	gateway, err := c.CreateSession(ctx, control.NewSession{Name: "Banco", Type: string(puntuale.SendApp), Sandbox: new(false), Gateway: &control.NewGateway{AccessToken: "tok"}}, control.Once[control.Session]{})
	w.must(err)
	has["gateway"] = gateway.ID.String()
	made, err := c.OfferLinkingPage(ctx, has["gateway"], w.base)
	w.must(err)
	has["link"] = made.Address[strings.LastIndex(made.Address, "/")+1:]
	simulated, err := c.CreateSession(ctx, control.NewSession{Name: "Simulata", Type: string(puntuale.Socket), Sandbox: new(true)}, control.Once[control.Session]{})
	w.must(err)
	has["sessions"] = simulated.ID.String()
	byPhone, err := c.CreateSession(ctx, control.NewSession{Name: "Reception", Type: string(puntuale.SendApp), Sandbox: new(false), Devices: true}, control.Once[control.Session]{})
	w.must(err)
	byPhone, err = c.Pair(ctx, byPhone.ID.String(), control.Pairing{})
	w.must(err)
	phone, _, err := w.control.LinkDevice(ctx, control.NewDevice{Code: byPhone.Code.Text, Name: "Pixel di Anna", Assisted: true})
	w.must(err)
	has["by-devices"], has["devices"] = byPhone.ID.String(), fmt.Sprint(phone.ID)
	k, err := w.accounts.KeysOf(c).Create(ctx, "gestionale")
	w.must(err)
	has["keys"] = k.ID.String()
	fields := map[string]json.RawMessage{"nome": json.RawMessage(`"Lucia"`), "data_appuntamento": json.RawMessage(`"30/11/2026 10:00"`)}
	body := []byte(`{"phone":"+393337654321","nome":"Lucia","data_appuntamento":"30/11/2026 10:00"}`)
	started, err := c.Start(ctx, control.StartCall{Sequence: has["sequences"], Phone: "+393337654321", Fields: fields, Body: body})
	w.must(err)
	has["messages"] = started.IDs[1].String()
	visit, err := c.CreateSequence(ctx, bookedVisit(), control.Once[control.Sequence]{})
	w.must(err)
	booked, err := c.PutBooking(ctx, bookingCall(visit.ID.String(), "visita/"+client.String(), "+393337654321", "Lucia", "21/11/2026 15:30"))
	w.must(err)
	has["bookings"], has["visits"] = booked.ID.String(), visit.ID.String()
	has["calendars"] = w.feed(c, visit.ID.String(), feedOf(w.clock.Now())).String()
	campaign, err := c.CreateCampaign(ctx, control.NewCampaign{Name: "Auguri", Purpose: "marketing", Step: &puntuale.Step{Text: "Auguri, {{nome}}! Scrivi STOP per non riceverne più."}, Session: has["sessions"]},
		[]control.Recipient{{"phone": "+393337654321", "nome": "Lucia"}, {"phone": "nessuno", "nome": "Ugo"}}, control.Once[control.Campaign]{})
	w.must(err)
	_, err = c.CheckCampaign(ctx, campaign.ID.String())
	w.must(err)
	has["campaigns"] = campaign.ID.String()
	_, err = c.AddBlacklisted(ctx, "+393330001122", "ha chiesto di non ricevere altro", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	listed, _, err := c.FindBlacklisted(ctx, "", request.Page{})
	w.must(err)
	has["blacklist"] = fmt.Sprint(listed[0].ID)
	contact, err := c.AddContact(ctx, control.NewContact{Phone: "+393337654321", Name: "Lucia Neri", Tags: []string{"cliente", "newsletter"}, Source: "modulo in negozio",
		Fields: map[string]control.ContactValue{"nascita": {Text: "1990-02-28"}, "punti": {Text: "12", Number: true}}}, control.Once[puntuale.Contact]{})
	w.must(err)
	has["contacts"] = contact.ID.String()
	own, err := w.webhooks.OfClient(c, "")
	w.must(err)
	all := w.webhooks.OfPartner(person.Host().Partner.ID, "")
	mine, theirs := w.subscribe(own), w.subscribe(all)
	sandbox, err := puntuale.ParseID[puntuale.SessionID](has["sessions"])
	w.must(err)
	_, err = w.store.KeepInbound(ctx, w.clock.Now(), []puntuale.TakenMessage{{Keep: puntuale.KeepAllReplies, Mark: "everything", Names: []string{"+393337654321"}, InboundMessage: puntuale.InboundMessage{
		Client: client, Session: sandbox, Phone: "+393337654321", At: w.clock.Now(), ID: "everything", Kind: puntuale.ReplyImage, Text: "Ecco!", Media: &puntuale.ReplyMedia{Type: "image/jpeg", Size: 84_000}}}})
	w.must(err)
	replies, _, err := c.Replies(ctx, "+393337654321", false, request.Page{})
	w.must(err)
	has["replies"] = replies[0].ID.String()
	rule, err := w.rules.OfClient(c, "").Create(ctx, automation.Draft{Automation: puntuale.Automation{Name: "Modulo del sito", Active: true,
		Trigger:    puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "cliente.telefono", "nome": "cliente.nome"}},
		Conditions: puntuale.Conditions{Tags: []string{"cliente"}, Fields: []puntuale.FieldCondition{{Name: "nome", Op: puntuale.FieldFilled}}, CooldownHours: 24},
		Actions:    []puntuale.Action{{Kind: puntuale.ActionSend, Text: "Ciao {{nome|}}!"}, {Kind: puntuale.ActionTag, Add: []string{"sito"}}}}}, control.Once[automation.Rule]{})
	w.must(err)
	has["automations"] = rule.ID.String()
	hook, err := w.rules.HookOf(ctx, strings.TrimPrefix(rule.Path, automation.HookPath))
	w.must(err)
	_, err = w.rules.Call(ctx, hook, automation.HookRequest{Body: []byte(`{"cliente":{"nome":"Lucia","telefono":"333 7654321"},"righe":[{"key":"a","valore":1},{"key":"b","valore":2}]}`)})
	w.must(err)
	w.number()
	has["webhooks"], has["deliveries"] = mine.ID.String(), w.failed(own, mine.ID)
	has["partner-webhooks"] = theirs.ID.String()
	w.failed(all, theirs.ID)
	has["users"] = w.letIn(w.accounts.TeamOf(c), account.NewUser{Email: "aiuto" + client.String() + "@example.com", Name: "Aiuto", Role: "reader"}).ID.String()
	return has
}

// atMeta gives the client's Official session a business with a template.
func (w *world) atMeta(has things) {
	id, err := puntuale.ParseID[puntuale.SessionID](has["official"])
	w.must(err)
	w.must(w.store.NoteOfficial(context.Background(), id, "1065403", "1022901"))
	w.must(w.store.KeepNetworkTemplates(context.Background(), id, "1022901", w.clock.Now(), []puntuale.NetworkTemplate{{
		Name: "ordine_pronto", Language: "it", ID: has["meta"], Status: puntuale.TemplatePaused, Category: puntuale.CategoryUtility, Quality: "RED", Named: true,
		Parts: []puntuale.TemplatePart{{Kind: "BODY", Text: "Ciao {{nome}}, il tuo ordine è pronto."}},
	}}, puntuale.Reason{}))
}

// ownerOf returns a user with the role owner in the client's dashboard.
func (w *world) ownerOf(client puntuale.ClientID) puntuale.UserID {
	switch client {
	case w.client:
		return w.clients[puntuale.Owner]
	case w.foreignClient:
		return w.foreignOwner
	}
	return w.partners[puntuale.Owner]
}

// The method of fills the ids of things into a path. It fails the test if an id is missing. Paths of a partner's users
// use the id "partner-users".
func (has things) of(t testing.TB, path string) string {
	t.Helper()
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") || part == "{$}" {
			continue
		}
		noun := parts[i-1]
		switch {
		case part == "{template}":
			noun = "meta"
		case noun == "c":
			noun = "clients"
		case noun == "sessions" && i+1 < len(parts) && (parts[i+1] == "official" || parts[i+1] == "test" || parts[i+1] == "templates"):
			noun = "official"
		case noun == "sessions" && i+1 < len(parts) && parts[i+1] == "gateway":
			noun = "gateway"
		case noun == "sessions" && i+1 < len(parts) && parts[i+1] == "devices":
			noun = "by-devices"
		case noun == "sequences" && i+1 < len(parts) && parts[i+1] == "replan":
			noun = "visits"
		case noun == "webhooks" && strings.HasPrefix(path, "/partner/"):
			noun = "partner-webhooks"
		case path == "/partner/users/{user}" || strings.HasPrefix(path, "/partner/users/{user}/"):
			noun = "partner-users"
		}
		if has[noun] == "" {
			t.Fatalf("%s: this test does not know what %s is: give everything one", path, part)
		}
		parts[i] = has[noun]
	}
	return strings.TrimSuffix(strings.Join(parts, "/"), "{$}")
}

// halfway returns functions that open the pages between the password and the dashboard.
func halfway(w *world) map[string]func(*browser) {
	ctx := context.Background()
	signIn := func(b *browser, email string) {
		b.open("/login")
		b.fill("email", email, "password", password)
		b.click("button.btn-primary")
	}
	return map[string]func(*browser){
		"/login/choose": func(b *browser) {
			for _, p := range []*account.Partner{w.newPartner("Terza Agenzia", "terza@example.com"), w.newPartnerHandle()} {
				_, err := p.CreateClient(ctx, account.NewClient{Name: "Doppio", Email: "doppio@example.com", Password: password, Phone: "1"}, control.Once[account.CreatedClient]{})
				w.must(err)
			}
			signIn(b, "doppio@example.com")
		},
		"/login/code": func(b *browser) {
			v := w.visitor(w.foreignOwner)
			secret := decode(b.t, strings.ReplaceAll(between(v.get("/me/second").body, `class="secret-text">`, "<"), " ", ""))
			v.post("/me/second", map[string][]string{"code": {auth.Code(secret, w.clock.Now())}})
			signIn(b, "estraneo@example.com")
		},
		"/invitation": func(b *browser) {
			_, invitation, err := w.newPartnerHandle().Team().Invite(ctx, account.NewUser{Email: "invitata@example.com", Role: "reader"})
			w.must(err)
			b.open("/invitation?t=" + invitation.Secret)
		},
	}
}
