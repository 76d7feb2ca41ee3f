package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// rule returns a rule that starts the client's sequence. It does not store the rule.
func (c *Client) rule(t puntuale.Trigger, change ...func(*puntuale.Automation)) puntuale.Automation {
	a := puntuale.Automation{Name: "Regola", Active: true, Trigger: t, Created: Begin, Updated: Begin,
		Actions: []puntuale.Action{{Kind: puntuale.ActionStart, Sequence: puntuale.SequenceChoice(c.Sequence.String())}}}
	for _, f := range change {
		f(&a)
	}
	return a
}

func (c *Client) mustRule(a puntuale.Automation) puntuale.Automation {
	c.w.t.Helper()
	id, err := c.CreateAutomation(context.Background(), a, nil, nil)
	if err != nil {
		c.w.t.Fatalf("create a rule: %v", err)
	}
	a.ID = id
	return a
}

// testAutomations checks that rules can be created, changed with a version, and deleted. A rule may name only
// sequences, templates and sessions of the same client. A client may have at most MaxAutomations.
func testAutomations(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	a := c.mustRule(c.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}))
	got, err := c.Automation(ctx, a.ID)
	if err != nil || got.Version() != a.Version() || got.Name != "Regola" || !got.Active {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := other.Automation(ctx, a.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another client reads it: %v", err)
	}
	foreign := other.rule(puntuale.Trigger{Kind: puntuale.TriggerReplyTo, Sequence: puntuale.SequenceChoice(c.Sequence.String())})
	_, err = other.CreateAutomation(ctx, foreign, nil, nil)
	if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 1 || e.Faults[0].Location != "body.trigger.sequence" {
		t.Errorf("a rule with another client's sequence: %v", err)
	}
	changed := a
	changed.Name, changed.Updated = "Altra", Begin.Add(time.Second)
	if err := c.UpdateAutomation(ctx, changed, "x"); puntuale.CodeOf(err) != puntuale.CodePrecondition {
		t.Errorf("another version: %v", err)
	}
	if err := c.UpdateAutomation(ctx, changed, a.Version()); err != nil {
		t.Error(err)
	}
	kind := changed
	kind.Trigger = puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p"}}
	if err := c.UpdateAutomation(ctx, kind); puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("another kind: %v", err)
	}
	for range puntuale.MaxAutomations - 1 {
		c.mustRule(a)
	}
	if _, err := c.CreateAutomation(ctx, a, nil, nil); puntuale.CodeOf(err) != puntuale.CodeQuotaReached {
		t.Errorf("one too many: %v", err)
	}
	all, err := c.Automations(ctx)
	if err != nil || len(all) != puntuale.MaxAutomations || all[0].Name != "Altra" || !slices.IsSortedFunc(all, func(x, y puntuale.Automation) int { return int(x.ID - y.ID) }) {
		t.Errorf("%d rules, %v", len(all), err)
	}
	if err := c.DeleteAutomation(ctx, a.ID); err != nil {
		t.Error(err)
	}
	if err := c.DeleteAutomation(ctx, a.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

// testHooks checks that the store finds a hook by its secret. A repeated call must have no effect, and the last payload
// must be stored.
func testHooks(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	hash := KeyHash()
	id, err := c.CreateAutomation(ctx, c.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p"}}), &puntuale.HookSecret{Hash: hash, Sealed: []byte("s")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := w.HookOf(ctx, hash)
	if err != nil || h.Client != c.ID || h.Automation != id || !h.Active || h.Map["phone"] != "/p" || h.Payload != nil {
		t.Fatalf("%+v, %v", h, err)
	}
	call := puntuale.HookCall{Automation: id, Key: "k", Phone: "+393330000001", Fields: map[string]string{"nome": "Anna"}, Payload: []byte(`{"p":1}`), At: Begin}
	for i, want := range []bool{true, false, false, true} {
		if i == 3 {
			call.At = Begin.Add(puntuale.HookRepeat)
		}
		if fresh, err := w.CallHook(ctx, c.ID, call); err != nil || fresh != want {
			t.Errorf("call %d: %v, %v", i, fresh, err)
		}
	}
	if n := w.Int("select count(*) from automation_trigger where client_id = $1 and kind = 41", c.ID); n != 2 {
		t.Errorf("%d triggers", n)
	}
	if h, err = c.Hook(ctx, id); err != nil || string(h.Payload) != `{"p":1}` || string(h.Sealed) != "s" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := other.Hook(ctx, id); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another client's hook: %v", err)
	}
	next := KeyHash()
	if err := c.SetHookSecret(ctx, id, puntuale.HookSecret{Hash: next, Sealed: []byte("n")}); err != nil {
		t.Error(err)
	}
	if _, err := w.HookOf(ctx, hash); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("the former address: %v", err)
	}
}

// theirRule returns a rule of the client. It creates the rule at the first call.
func (c *Client) theirRule() puntuale.Automation {
	all, err := c.Automations(context.Background())
	if err != nil {
		c.w.t.Fatalf("list rules: %v", err)
	}
	if len(all) > 0 {
		return all[0]
	}
	a := c.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p"}})
	if a.ID, err = c.CreateAutomation(context.Background(), a, &puntuale.HookSecret{Hash: KeyHash(), Sealed: []byte("s")}, nil); err != nil {
		c.w.t.Fatalf("create a rule: %v", err)
	}
	return a
}

// ofRules is a part of foreignCalls: the calls of methods about rules.
var ofRules = map[string]foreign{
	"CreateAutomation": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.CreateAutomation(context.Background(), other.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}), nil, nil)
		if puntuale.CodeOf(err) == puntuale.CodeInvalid { // an allowed answer: the tenant has no sequence with this id
			return nil, puntuale.NotFound(puntuale.NoSequence)
		}
		return nil, err
	},
	"UpdateAutomation": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		a := other.theirRule()
		a.Actions = []puntuale.Action{{Kind: puntuale.ActionBlacklist}}
		return nil, tenant.UpdateAutomation(context.Background(), a)
	},
	"Automation": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.Automation(context.Background(), other.theirRule().ID)
	},
	"Automations": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.theirRule()
		return tenant.Automations(context.Background())
	},
	"DeleteAutomation": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.DeleteAutomation(context.Background(), other.theirRule().ID)
	},
	"Firings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		a := other.theirRule()
		other.w.Exec("insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted) values ($1, $2, '+39333', 4, 'x', 1)", other.ID, a.ID)
		all, _, err := tenant.Firings(context.Background(), a.ID, puntuale.Page{})
		return all, err
	},
	"AutomationFacts": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		f, err := tenant.AutomationFacts(context.Background(), wrote, puntuale.WantedFacts{Sequences: []puntuale.SequenceID{other.Sequence}, Takeover: true, Cooldown: true, Limit: true, First: true}, Begin)
		return f.Contact, errors.Join(err, notZero(f.First))
	},
	"Hook": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.Hook(context.Background(), other.theirRule().ID)
	},
	"SetHookSecret": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.SetHookSecret(context.Background(), other.theirRule().ID, puntuale.HookSecret{Hash: KeyHash(), Sealed: []byte("m")})
	},
}

// notZero returns an error if a reply was found.
func notZero(id puntuale.ReplyID) error {
	if id == 0 {
		return nil
	}
	return errors.New("a reply of another client was found")
}
