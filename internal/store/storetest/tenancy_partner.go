package storetest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// foreignClientCalls contains every method of a partner. Another partner makes the calls. nil: the method is not tried.
var foreignClientCalls = map[string]func(theirs puntuale.PartnerTenant, c *Client, key puntuale.KeyID) (any, error){
	"CreateClient": nil,
	"Client": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.Client(context.Background(), c.ID)
		return nil, err
	},
	"ClientOfSession": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.ClientOfSession(context.Background(), c.Session)
		return nil, err
	},
	"Clients": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		all, _, err := theirs.Clients(context.Background(), puntuale.Page{})
		return all, err
	},
	"ClientsByID": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.ClientsByID(context.Background(), []puntuale.ClientID{c.ID})
		return slices.Collect(maps.Keys(all)), err
	},
	"UpdateClient": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.UpdateClient(context.Background(), c.ID, puntuale.ClientPatch{Name: puntuale.Change[string]{Set: true, To: "x"}}, Begin)
		return nil, err
	},
	"DeleteClient": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.DeleteClient(context.Background(), c.ID, Begin)
	},
	"Keys": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return theirs.Keys(context.Background(), c.ID, Begin)
	},
	"CreateKey": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.CreateKey(context.Background(), c.ID, puntuale.Key{Name: "x", Hash: KeyHash()}, nil)
		return nil, err
	},
	"RotateClientKey": func(theirs puntuale.PartnerTenant, c *Client, key puntuale.KeyID) (any, error) {
		_, err := theirs.RotateClientKey(context.Background(), c.ID, key, puntuale.Key{Name: "x", Hash: KeyHash()}, Begin, Begin, nil)
		return nil, err
	},
	"RevokeKey": func(theirs puntuale.PartnerTenant, c *Client, key puntuale.KeyID) (any, error) {
		return nil, theirs.RevokeKey(context.Background(), c.ID, key, Begin)
	},
	"Users": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return theirs.Users(context.Background(), c.ID)
	},
	"User": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.User(context.Background(), c.ID, c.login())
		return nil, err
	},
	"CreateUser": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.CreateUser(context.Background(), puntuale.User{Client: c.ID, Email: "x@example.com", Role: puntuale.Owner}, nil)
		return nil, err
	},
	"UpdateUser": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		_, err := theirs.UpdateUser(context.Background(), c.ID, c.login(), puntuale.UserPatch{EndVisits: true}, nil)
		return nil, err
	},
	"DeleteUser": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.DeleteUser(context.Background(), c.ID, c.login())
	},
	"AddAudit": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.AddAudit(context.Background(), puntuale.AuditEntry{Client: c.ID, Action: "x"})
	},
	"Audit": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, _, err := theirs.Audit(context.Background(), 0, puntuale.Page{})
		if len(all) == 0 && err == nil {
			all, _, err = theirs.Audit(context.Background(), c.ID, puntuale.Page{})
		}
		return all, err
	},
	"CountAudit": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		n, _, err := theirs.CountAudit(context.Background(), 0, 10)
		if n == 0 && err == nil {
			n, _, err = theirs.CountAudit(context.Background(), c.ID, 10)
		}
		return make([]bool, n), err
	},
	"FindClients": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		all, _, err := theirs.FindClients(context.Background(), puntuale.ClientFilter{}, puntuale.Page{})
		return all, err
	},
	"CountClients": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		n, _, err := theirs.CountClients(context.Background(), puntuale.ClientFilter{}, 10)
		return make([]bool, n), err
	},
	"Pulses": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.Pulses(context.Background(), []puntuale.ClientDay{{Client: c.ID, Day: Day}})
		return slices.Collect(maps.Keys(all)), err
	},
	"ClientNames": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.ClientNames(context.Background(), []puntuale.ClientID{c.ID})
		return slices.Collect(maps.Values(all)), err
	},
	"Expiring": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		return theirs.Expiring(context.Background(), Day, Day.AddDays(400), 10)
	},
	"Totals": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.Totals(context.Background(), 0, Day, Day.AddDays(400), Begin)
		if len(all) == 0 && err == nil {
			all, err = theirs.Totals(context.Background(), c.ID, Day, Day.AddDays(400), Begin)
		}
		return all, err
	},
	"Results": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		of := everyResult
		of.By = puntuale.ResultByClient
		r, err := theirs.Results(context.Background(), of, Begin)
		return r.All, err
	},
	"Budgets": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.Budgets(context.Background(), []puntuale.ClientID{c.ID})
		return slices.Collect(maps.Keys(all)), err
	},
	"DeletedClients": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		if err := c.frozen(202608); err != nil {
			return nil, err
		}
		return theirs.DeletedClients(context.Background(), 202608, 0, 10)
	},
	"Plans": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		return theirs.Plans(context.Background())
	},
	"CreatePlan": nil,
	"UpdatePlan": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.UpdatePlan(context.Background(), puntuale.ClientPlan{ID: 1, Name: "x"})
	},
	"DeletePlan": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.DeletePlan(context.Background(), 1)
	},
	"FirstMonth": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		month, err := theirs.FirstMonth(context.Background())
		return int64(month), err // 0: the partner has no client
	},
	"OwnPrices":    nil, // this method and the next concern only the caller's own prices
	"SetOwnPrices": nil,
	"Host":         nil, // this method and the next two concern only the caller's own host
	"ConfirmHost":  nil,
	"WithdrawHost": nil,
	"Quotas": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		all, err := theirs.Quotas(context.Background(), []puntuale.ClientID{c.ID})
		return slices.Collect(maps.Keys(all)), err
	},
	"Invite": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.Invite(context.Background(), c.ID, c.login(), puntuale.Invitation{Hash: "h", Expires: Begin.Add(time.Hour)})
	},
	"Uninvite": func(theirs puntuale.PartnerTenant, c *Client, _ puntuale.KeyID) (any, error) {
		return nil, theirs.Uninvite(context.Background(), c.ID, c.login())
	},
	"Logo": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		logo, _, err := theirs.Logo(context.Background())
		return logo, err
	},
	"SetBrand": nil,
	"KeptAnswer": func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
		return theirs.KeptAnswer(context.Background(), puntuale.Idempotency{Scope: "s", Key: "k", Hash: "h"})
	},
}

// webhookHandle contains the methods that clients and partners have in common.
type webhookHandle interface {
	puntuale.WebhookStore
	puntuale.DeliveryStore
}

// toldDelivery names one delivery. Its webhook belongs to a client or partner other than the caller.
type toldDelivery struct {
	webhook puntuale.WebhookID
	client  puntuale.ClientID
	seq     int64
}

// ofWebhooks contains every method about webhooks. theirs is the handle of a caller who does not own the delivery d. nil:
// the method is not tried.
var ofWebhooks = map[string]func(theirs webhookHandle, d toldDelivery) (any, error){
	"CreateWebhook": nil,
	"Webhooks": func(theirs webhookHandle, _ toldDelivery) (any, error) {
		return theirs.Webhooks(context.Background())
	},
	"Webhook": func(theirs webhookHandle, d toldDelivery) (any, error) {
		_, err := theirs.Webhook(context.Background(), d.webhook)
		return nil, err
	},
	"UpdateWebhook": func(theirs webhookHandle, d toldDelivery) (any, error) {
		_, err := theirs.UpdateWebhook(context.Background(), d.webhook, puntuale.WebhookPatch{URL: new("https://x")}, Begin)
		return nil, err
	},
	"DeleteWebhook": func(theirs webhookHandle, d toldDelivery) (any, error) {
		return nil, theirs.DeleteWebhook(context.Background(), d.webhook)
	},
	"WebhookSecret": func(theirs webhookHandle, d toldDelivery) (any, error) {
		_, err := theirs.WebhookSecret(context.Background(), d.webhook)
		return nil, err
	},
	"RotateWebhook": func(theirs webhookHandle, d toldDelivery) (any, error) {
		return nil, theirs.RotateWebhook(context.Background(), d.webhook, []byte("x"), Begin)
	},
	"Deliveries": func(theirs webhookHandle, d toldDelivery) (any, error) {
		all, _, err := theirs.Deliveries(context.Background(), d.webhook, puntuale.DeliveryFilter{}, puntuale.Page{})
		return all, err
	},
	"Delivery": func(theirs webhookHandle, d toldDelivery) (any, error) {
		_, _, err := theirs.Delivery(context.Background(), d.webhook, d.client, d.seq)
		return nil, err
	},
	"Replay": func(theirs webhookHandle, d toldDelivery) (any, error) {
		_, err := theirs.Replay(context.Background(), d.webhook, puntuale.Replay{}, Begin)
		return nil, err
	},
}

// mustTell creates a webhook of a client or a partner, and then an event of the client for this webhook.
func (c *Client) mustTell(handle webhookHandle) toldDelivery {
	c.w.t.Helper()
	ctx := context.Background()
	id, err := handle.CreateWebhook(ctx, puntuale.Webhook{URL: "https://example.com", Types: puntuale.AllEvents, Active: true}, []byte("secret"), Begin, nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.MustSend(c.w.MustJoin(), Begin, c.MustStart("+393330000001", Begin, 1)...)
	if n, err := c.w.NumberEvents(ctx, Begin); n != 1 || err != nil {
		c.w.t.Fatalf("%d events, %v", n, err)
	}
	all, _, err := handle.Deliveries(ctx, id, puntuale.DeliveryFilter{}, puntuale.Page{})
	if err != nil || len(all) != 1 {
		c.w.t.Fatalf("deliveries = %+v, %v", all, err)
	}
	return toldDelivery{id, c.ID, all[0].Seq}
}

func testPartnersApart(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	mine := w.Store.Partner(w.Partner)
	once := &puntuale.Idempotency{Scope: "s", Key: "k", Hash: "h", Answer: func(any) ([]byte, error) { return []byte("mine"), nil }}
	key, err := mine.CreateKey(ctx, c.ID, puntuale.Key{Name: "seconda", Hash: KeyHash(), Created: Begin}, once)
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: "altri", Created: Begin}, puntuale.Login{Email: "a@b"}, puntuale.Key{Hash: KeyHash()})
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.AddAudit(ctx, puntuale.AuditEntry{Client: c.ID, Action: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := mine.SetBrand(ctx, puntuale.Brand{Logo: []byte{1}, LogoKind: "image/png"}); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Budget: puntuale.ChangeTo[int64](5_000_000), Currency: "EUR"}, Begin); err != nil {
		t.Fatal(err)
	}
	plan := puntuale.ClientPlan{Name: "Base", Values: puntuale.PlanValues{Days: puntuale.ChangeTo(new(int64(30)))}}
	if plan.ID, err = mine.CreatePlan(ctx, plan, nil); plan.ID != 1 || err != nil {
		t.Fatalf("plan %d, %v", plan.ID, err)
	}
	delivery := c.mustTell(mine)
	before, err := mine.Client(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.MustStart(phone, Begin, 1)
	w.countResults()
	handle := reflect.TypeFor[puntuale.PartnerTenant]()
	for i := range handle.NumMethod() {
		name := handle.Method(i).Name
		call, known := foreignClientCalls[name]
		if about, ok := ofWebhooks[name]; ok {
			if known = true; about != nil {
				call = func(theirs puntuale.PartnerTenant, _ *Client, _ puntuale.KeyID) (any, error) {
					return about(theirs, delivery)
				}
			}
		}
		if !known {
			t.Errorf("%s is not tried with what belongs to another", name)
			continue
		}
		if call == nil {
			continue
		}
		switch got, err := call(w.Store.Partner(other), c, key); {
		case err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound:
			t.Errorf("%s: %v", name, err)
		case err == nil && !empty(got):
			t.Errorf("%s: reached %+v", name, got)
		}
	}
	if after, err := mine.Client(ctx, c.ID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the client became %+v, %v", after, err)
	}
	if w, err := mine.Webhook(ctx, delivery.webhook); err != nil || w.URL != "https://example.com" {
		t.Errorf("the webhook became %+v, %v", w, err)
	}
	if plans, err := mine.Plans(ctx); err != nil || !reflect.DeepEqual(plans, []puntuale.ClientPlan{plan}) {
		t.Errorf("its plans became %+v, %v", plans, err)
	}
	if keys, err := mine.Keys(ctx, c.ID, Begin); err != nil || len(keys) != 2 {
		t.Errorf("its keys became %+v, %v", keys, err)
	}
	// The idempotency keys of a client and of its partner must be separate, even if both have the same id.
	if answer, err := w.Tenant(puntuale.ClientID(w.Partner)).KeptAnswer(ctx, *once); answer != nil || err != nil {
		t.Errorf("a client found its partner's answer: %q, %v", answer, err)
	}
}

// empty reports whether an answer contains no data. If a call returns only an error, its answer is nil, and empty
// returns false. Then the error must show the refusal.
func empty(answer any) bool {
	v := reflect.ValueOf(answer)
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Int64:
		return v.IsZero()
	}
	return false
}

// foreignCall returns the call of a tenant's method, from the table of its subject. delivery belongs to the other client.
// The call is nil if the method has nothing to reach.
func foreignCall(name string, delivery toldDelivery) (call foreign, known bool) {
	for _, calls := range []map[string]foreign{foreignCalls, ofCampaigns, ofReplies, ofRules, ofBookings} {
		if call, known = calls[name]; known {
			return call, true
		}
	}
	about, known := ofWebhooks[name]
	if about == nil {
		return nil, known
	}
	return func(theirs puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		return about(theirs, delivery)
	}, true
}

func testTenantsApart(t *testing.T, w *World) {
	ctx := context.Background()
	other, mine := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	if err := mine.DeleteSequence(ctx, mine.Sequence, false, false, Begin); err != nil { // now this client's lists are empty
		t.Fatal(err)
	}
	run := other.Run(phone, Begin, 1)
	run.Idempotency = Keyed("s", "k", "h")
	started, err := other.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000009", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Receive(ctx, puntuale.SandboxMessage{Client: other.ID, Message: started.IDs[0], ConnectorID: "x.0", Phone: phone, Received: Begin}); err != nil {
		t.Fatal(err)
	}
	sent := other.MustStart("+393330000008", Begin, 1)
	other.MustSend(w.MustJoin(), Begin, sent...)
	lost := other.MustStart("+393330000007", Begin, 1)
	w.MustClaim(w.MustJoin(), Begin, other.Items("+393330000007", 0, lost...)...)
	w.Exec("insert into unknown_message (client_id, message_id, since, at) values ($1, $2, 1, 2)", other.ID, lost[0])
	if _, err := other.CreateTemplate(ctx, puntuale.Template{Name: "benvenuto", Text: "Ciao"},
		&puntuale.Idempotency{Scope: "POST /api/templates", Key: "k", Hash: "h", Answer: func(any) ([]byte, error) { return []byte("theirs"), nil }}); err != nil {
		t.Fatal(err)
	}
	other.mustTake(Begin, other.reply("t", Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Phone: wrote, Text: "STOP"}}))
	other.mustEnter(optOut(wrote, "t", puntuale.ConsentWithdraw, 0))
	delivery := other.mustTell(other.Tenant)
	before := other.Detail(started.IDs[0])
	w.countResults()
	handle := reflect.TypeFor[puntuale.Tenant]()
	for i := range handle.NumMethod() {
		name := handle.Method(i).Name
		call, known := foreignCall(name, delivery)
		if !known {
			t.Errorf("%s is not tried with what belongs to another", name)
			continue
		}
		if call == nil {
			continue
		}
		switch got, err := call(mine.Tenant, other, started.IDs[0]); {
		case err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound:
			t.Errorf("%s: %v", name, err)
		case err == nil && !empty(got):
			t.Errorf("%s: reached %+v", name, got)
		}
	}
	if after := other.Detail(started.IDs[0]); !reflect.DeepEqual(after.Message, before.Message) {
		t.Errorf("the other's message became %+v", after.Message)
	}
	if q, err := other.Tenant.Sequence(ctx, other.Sequence); err != nil || q.Name != "promemoria" {
		t.Errorf("the other's sequence became %+v, %v", q, err)
	}
	if m, err := other.Tenant.Template(ctx, other.template()); err != nil || m.Name != "benvenuto" {
		t.Errorf("the other's template became %+v, %v", m, err)
	}
	answers := map[string]bool{} // data that do not exist and another client's data must get the same answer, byte for byte
	for _, id := range []puntuale.SequenceID{other.Sequence, 987654} {
		_, err := mine.Tenant.Sequence(ctx, id)
		answers[err.Error()] = true
	}
	if len(answers) != 1 {
		t.Errorf("answers = %v", answers)
	}
}
