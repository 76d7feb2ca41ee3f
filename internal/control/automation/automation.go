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

// Config is what [New] needs. All fields except Media must be set.
type Config struct {
	Control *control.Control
	Tenants puntuale.TenantStore
	Hooks   puntuale.HookStore
	Vault   *auth.Vault
	Clock   clock.Clock
	Media   []string // allowed file name extensions of media, without the dot; nil: the default of package plan
}

// Automations gives access to the automations of all clients, and to their hooks. It is safe for concurrent use.
type Automations struct {
	cfg   Config
	zones request.Zones
}

// New returns Automations.
func New(cfg Config) *Automations { return &Automations{cfg: cfg} }

// Rules gives access to the automations of one client.
type Rules struct {
	all    *Automations
	client *control.Client
	store  puntuale.Tenant
	key    string // the caller's API key; it encrypts stored answers that contain a secret; "" in a dashboard
}

// OfClient returns the automations of a client. plain is the call's API key in plain text, or "" in a dashboard.
func (d *Automations) OfClient(c *control.Client, plain string) *Rules {
	return &Rules{d, c, d.cfg.Tenants.Tenant(c.ID()), plain}
}

// Rule is an automation with the path of its hook.
type Rule struct {
	puntuale.Automation
	Path string // "/hooks/…", which contains a secret; "": no hook, or an entry of a list
}

// Draft is a request to create an automation, or to replace one as a whole.
type Draft struct {
	puntuale.Automation                    // its id, times and counts are ignored
	Known               []puntuale.Version // only for a replacement: the stored version must be one of these; empty: any version
	Faults              []puntuale.Fault   // faults that the caller found while it read the request
}

// Create creates an automation. Codes: invalid, forbidden, conflict (a call with a different body used the idempotency
// key), quota_reached.
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

// Replace replaces a stored automation. Runs that the old automation started or planned do not change. Codes:
// not_found, invalid, precondition_failed.
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

// Switch turns an automation on or off. Its version must be one of known; if known is empty, any version is allowed.
// Codes: not_found; precondition_failed, also if another request changes the automation at the same time.
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

// check returns the automation of a request, without needless spaces. If the request has faults, check returns an error
// with the code invalid and all faults.
func (r *Rules) check(ctx context.Context, d Draft) (puntuale.Automation, error) {
	a := tidy(d.Automation)
	f := request.Faults(d.Faults)
	for _, found := range automation.Check(a, r.all.cfg.Media...) {
		if f.At(found.Location) || f.At("body.trigger") && strings.HasPrefix(found.Location, "body.trigger.") {
			continue // the caller's fault at this location is more precise
		}
		f = append(f, found)
	}
	byDefault := a.Trigger.Kind == puntuale.TriggerDate || a.Trigger.Kind == puntuale.TriggerHook
	for i := range a.Actions {
		if x := &a.Actions[i]; x.Kind == puntuale.ActionSend {
			if err := r.client.CheckSentFile(ctx, &f, request.At("body.actions", i), x, a.Conditions.Session, byDefault); err != nil {
				return a, err
			}
		}
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

// maxRule is the largest size of an automation's trigger, conditions and actions together, in bytes of JSON. It limits
// the size of a list of all automations.
const maxRule = 64 << 10

func size(a puntuale.Automation) (bytes int) {
	for _, part := range []any{a.Trigger, a.Conditions, a.Actions} {
		text, err := json.Marshal(part)
		if err != nil {
			continue // this cannot happen, because the part contains only texts and numbers
		}
		bytes += len(text)
	}
	return bytes
}

// tidy removes white space around names and words, because people do not see it.
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

// List returns all automations, sorted by id, without the paths of their hooks.
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

// Delete deletes an automation and its log. Runs that it started continue. Codes: not_found.
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
