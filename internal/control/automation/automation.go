package automation

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/automation"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Config is what [New] needs. All but Media must be set.
type Config struct {
	Control *control.Control
	Tenants puntuale.TenantStore
	Hooks   puntuale.HookStore
	Vault   *auth.Vault
	Clock   clock.Clock
	Media   []string // extensions that a media URL may have, without dot; nil: the planner's own list
}

// Automations serves the automations of all clients, and their hooks. It keeps no state. Many goroutines may use it at once.
type Automations struct {
	cfg   Config
	zones request.Zones
}

// New returns Automations.
func New(cfg Config) *Automations { return &Automations{cfg: cfg} }

// Rules reaches the automations of one client.
type Rules struct {
	all    *Automations
	client *control.Client
	store  puntuale.Tenant
	key    string // the caller's API key, under which answers with a secret are kept; "" in a dashboard
}

// Of returns the automations of a client. plain is the API key of the call, "" in a dashboard.
func (d *Automations) Of(c *control.Client, plain string) *Rules {
	return &Rules{d, c, d.cfg.Tenants.Tenant(c.ID()), plain}
}

// Rule is an automation with the path of its hook.
type Rule struct {
	puntuale.Automation
	Path string // "/hooks/…": a secret. "" without a hook, and in lists
}

// Draft is a request to create an automation, or to replace one as a whole.
type Draft struct {
	puntuale.Automation                    // only what people decide: its id, its moments and its counts do not matter
	Known               []puntuale.Version // for a replacement: the stored version must be one of these; none: any
	Faults              []puntuale.Fault   // found by the caller in the request itself
}

// Create makes an automation. Codes: invalid, forbidden, conflict (the idempotency key with another body), quota_reached.
func (r *Rules) Create(ctx context.Context, d Draft, once control.Once[Rule]) (Rule, error) {
	if err := r.client.MayCreate(); err != nil {
		return Rule{}, err
	}
	f := request.Faults(d.Faults)
	keyed, clash, err := once.BeginSealed(ctx, r.store, r.key, &f)
	if err != nil {
		return Rule{}, err
	}
	d.Faults = f
	made, err := r.check(ctx, d)
	if err != nil {
		return Rule{}, err
	}
	if clash != nil {
		return Rule{}, clash
	}
	made.Created = r.all.cfg.Clock.Now()
	made.Updated = made.Created
	created := Rule{Automation: made}
	var secret *puntuale.HookSecret
	if made.Trigger.Kind == puntuale.TriggerHook {
		if created.Path, secret, err = r.newSecret(made.Created); err != nil {
			return Rule{}, err
		}
	}
	result := func(stored any) Rule {
		created.ID, _ = stored.(puntuale.AutomationID)
		return created
	}
	id, err := r.store.CreateAutomation(ctx, made, secret, keyed.Keep(result))
	if err != nil {
		return Rule{}, fmt.Errorf("create an automation: %w", keyed.Opened(err))
	}
	return result(id), nil
}

// Replace replaces a stored automation. What it started or planned stays. Codes: not_found, invalid, precondition_failed.
func (r *Rules) Replace(ctx context.Context, id string, d Draft) (Rule, error) {
	old, err := r.Rule(ctx, id)
	if err != nil {
		return Rule{}, err
	}
	changed, err := r.check(ctx, d)
	if err != nil {
		return Rule{}, err
	}
	return r.update(ctx, old, changed, d.Known...)
}

// Switch turns an automation on or off, if its version is one of those known (none: any). Codes: not_found, precondition_failed, also when
// somebody changed it at this very moment.
func (r *Rules) Switch(ctx context.Context, id string, on bool, known ...puntuale.Version) (Rule, error) {
	old, err := r.Rule(ctx, id)
	if err != nil || old.Active == on && len(known) == 0 {
		return old, err
	}
	if err := puntuale.CheckVersion(old.Version(), known); err != nil {
		return old, err
	}
	changed := old.Automation
	changed.Active = on
	return r.update(ctx, old, changed, old.Version())
}

func (r *Rules) update(ctx context.Context, old Rule, changed puntuale.Automation, known ...puntuale.Version) (Rule, error) {
	changed.ID, changed.Created, changed.Updated = old.ID, old.Created, r.all.cfg.Clock.Now()
	changed.Fired, changed.LastFired = old.Fired, old.LastFired
	if err := r.store.UpdateAutomation(ctx, changed, known...); err != nil {
		return Rule{}, fmt.Errorf("change automation %d: %w", changed.ID, err)
	}
	return Rule{changed, old.Path}, nil
}

// check reads a request as a whole. Codes: invalid.
func (r *Rules) check(ctx context.Context, d Draft) (puntuale.Automation, error) {
	a := tidy(d.Automation)
	f := request.Faults(d.Faults)
	for _, found := range automation.Check(a, r.all.cfg.Media...) {
		if f.At(found.Location) || f.At("body.trigger") && strings.HasPrefix(found.Location, "body.trigger.") {
			continue // the caller's own fault says more
		}
		f = append(f, found)
	}
	if size(a) > maxRule {
		f.Add("body", puntuale.FaultLongerThanBytes, nil, strconv.Itoa(maxRule))
	}
	if a.Trigger.Kind == puntuale.TriggerDate && len(a.Actions) == 1 && a.Actions[0].Sequence.ID() != 0 {
		s, err := r.store.Sequence(ctx, a.Actions[0].Sequence.ID())
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			f.Add("body.actions[0].sequence", puntuale.FaultAutomationNotOwnSequence, nil)
		case err != nil:
			return a, fmt.Errorf("read the sequence of an automation: %w", err)
		default:
			f = append(f, automation.CheckDate(a.Trigger, s)...)
		}
	}
	return a, f.Err()
}

// maxRule bounds the trigger, the conditions and the actions of an automation together, in bytes of JSON, so that a list of all is bounded.
const maxRule = 64 << 10

func size(a puntuale.Automation) (bytes int) {
	for _, part := range []any{a.Trigger, a.Conditions, a.Actions} {
		text, err := json.Marshal(part)
		if err != nil {
			continue // it has only texts and numbers, which always become JSON
		}
		bytes += len(text)
	}
	return bytes
}

// tidy drops white space around names and words, which people do not see.
func tidy(a puntuale.Automation) puntuale.Automation {
	a.Name = strings.TrimSpace(a.Name)
	a.Trigger.Words = trimmed(a.Trigger.Words)
	a.Trigger.Field = strings.TrimSpace(a.Trigger.Field)
	a.Conditions.Tags = trimmed(a.Conditions.Tags)
	actions := make([]puntuale.Action, len(a.Actions))
	for i, x := range a.Actions {
		x.Add, x.Remove = trimmed(x.Add), trimmed(x.Remove)
		actions[i] = x
	}
	a.Actions = actions
	return a
}

func trimmed(texts []string) []string {
	if texts == nil {
		return nil
	}
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strings.TrimSpace(text)
	}
	return out
}

// List returns all automations, by id, without the paths of their hooks.
func (r *Rules) List(ctx context.Context) ([]puntuale.Automation, error) {
	all, err := r.store.Automations(ctx)
	if err != nil {
		return nil, fmt.Errorf("list automations: %w", err)
	}
	bytes := 0
	for _, a := range all {
		bytes += size(a)
	}
	return all, puntuale.TakeMemory(ctx, 2*int64(bytes))
}

// Rule returns one automation. Codes: not_found.
func (r *Rules) Rule(ctx context.Context, id string) (Rule, error) {
	n, err := automationID(id)
	if err != nil {
		return Rule{}, err
	}
	found, err := r.store.Automation(ctx, n)
	if err != nil {
		return Rule{}, fmt.Errorf("read automation %d: %w", n, err)
	}
	rule := Rule{Automation: found}
	if found.Trigger.Kind != puntuale.TriggerHook {
		return rule, nil
	}
	h, err := r.store.Hook(ctx, n)
	if err != nil {
		return Rule{}, fmt.Errorf("read the hook of automation %d: %w", n, err)
	}
	rule.Path, err = r.open(found.Created, h.Sealed)
	return rule, err
}

// Delete removes an automation and its log. What it started goes on. Codes: not_found.
func (r *Rules) Delete(ctx context.Context, id string) error {
	n, err := automationID(id)
	if err != nil {
		return err
	}
	if err := r.store.DeleteAutomation(ctx, n); err != nil {
		return fmt.Errorf("delete automation %d: %w", n, err)
	}
	return nil
}

// Firings lists the log of an automation, newest first. Codes: not_found, invalid.
func (r *Rules) Firings(ctx context.Context, id string, p request.Page) ([]puntuale.Firing, string, error) {
	n, err := automationID(id)
	if err != nil {
		return nil, "", err
	}
	if _, err := r.store.Automation(ctx, n); err != nil {
		return nil, "", fmt.Errorf("read automation %d: %w", n, err)
	}
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Firing, string, error) { return r.store.Firings(ctx, n, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list the firings of automation %d: %w", n, err)
	}
	return rows, next, nil
}

func (r *Rules) zone() (*time.Location, error) {
	loc, err := r.all.zones.Load(r.client.Account().Zone)
	if err != nil {
		return nil, fmt.Errorf("load a client's zone: %w", err)
	}
	return loc, nil
}

func automationID(text string) (puntuale.AutomationID, error) {
	id, err := puntuale.ParseID[puntuale.AutomationID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoAutomation)
	}
	return id, nil
}
