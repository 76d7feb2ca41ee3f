package automation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	rules "puntuale/internal/automation"
	"puntuale/internal/control"
	"puntuale/internal/payload"
	"puntuale/internal/preset"
)

// HookPath is the beginning of every hook's path. The hook's secret follows it.
const HookPath = "/hooks/"

// phoneField is the field of a mapping that leads to the person's number.
const phoneField = "phone"

// sealPlace returns the text that binds a sealed secret to its hook. The text contains the client's id, and the time at
// which the automation was created.
func (r *Rules) sealPlace(created time.Time) string {
	return "hook of " + r.client.ID().String() + ", " + strconv.FormatInt(created.UnixMicro(), 10)
}

// newSecret makes a secret for a hook. It returns the path that contains the secret, and the form in which the secret
// is stored.
func (r *Rules) newSecret(created time.Time) (path string, s *puntuale.HookSecret, err error) {
	plain, hash, err := auth.NewHookSecret()
	if err != nil {
		return "", nil, fmt.Errorf("make the address of a hook: %w", err)
	}
	return HookPath + plain, &puntuale.HookSecret{Hash: hash, Sealed: r.all.cfg.Vault.Seal(puntuale.SealedHook, r.sealPlace(created), []byte(plain))}, nil
}

// open returns the path of a hook. It returns "" if this server cannot unseal the secret. Then the client must make a
// new path with Rotate.
func (r *Rules) open(created time.Time, sealed []byte) (string, error) {
	plain, err := r.all.cfg.Vault.Open(puntuale.SealedHook, r.sealPlace(created), sealed)
	if err != nil {
		return "", nil //nolint:nilerr // the secret cannot be unsealed, for example after a restore without the installation's key
	}
	return HookPath + string(plain), nil
}

// Rotate gives the hook of an automation a new path. The old path stops working immediately. Codes: not_found, also if
// the automation has no hook.
func (r *Rules) Rotate(ctx context.Context, id string) (Rule, error) {
	rule, err := r.Rule(ctx, id)
	if err != nil {
		return rule, err
	}
	if rule.Trigger.Kind != puntuale.TriggerHook {
		return rule, puntuale.NotFound(puntuale.NoAutomation)
	}
	path, secret, err := r.newSecret(rule.Created)
	if err != nil {
		return rule, err
	}
	if err := r.store.SetHookSecret(ctx, rule.ID, *secret); err != nil {
		return rule, fmt.Errorf("replace the address of automation %d: %w", rule.ID, err)
	}
	rule.Path = path
	return rule, nil
}

// LastPayload is the payload of the last call of a hook.
type LastPayload struct {
	At      time.Time // zero: there was no call yet
	Content []byte    // JSON, even if the call sent a form; nil: there is no payload, or it was removed
	Members []payload.Member
	Fields  map[string]string // only with a preset: what the call says, with the person's phone as "phone"
	Fault   *puntuale.Fault   // only with a preset: why the call says nothing; nil: it does
}

// maxMembers is the largest number of a payload's members that LastPayload returns.
const maxMembers = 200

// LastPayload returns the payload of the hook's last call, so that a person can choose the paths of the mapping. Codes:
// not_found.
func (r *Rules) LastPayload(ctx context.Context, id string) (LastPayload, error) {
	n, err := automationID(id)
	if err != nil {
		return LastPayload{}, err
	}
	h, err := r.store.Hook(ctx, n)
	if err != nil {
		return LastPayload{}, fmt.Errorf("read the hook of automation %d: %w", n, err)
	}
	last := LastPayload{At: h.PayloadAt, Content: h.Payload}
	p, err := payload.Parse("", h.Payload)
	if err != nil {
		return last, nil //nolint:nilerr // there is no payload
	}
	if last.Members = p.Members(maxMembers); h.Preset == "" {
		return last, nil
	}
	phone, fields, faults, err := r.all.understood(ctx, r.client, n, puntuale.Trigger{Preset: h.Preset}, p)
	if err != nil {
		return last, err
	}
	if last.Fields = fields; len(faults) > 0 {
		last.Fault = &faults[0]
	}
	if delete(fields, puntuale.SkippedField); phone != "" {
		fields[phoneField] = phone
	}
	return last, nil
}

// HookOf finds the hook of a secret. If the text cannot be a secret, HookOf does not query the database. Codes:
// not_found.
func (d *Automations) HookOf(ctx context.Context, secret string) (puntuale.Hook, error) {
	hash, ok := auth.ParseHookSecret(secret)
	if !ok {
		return puntuale.Hook{}, puntuale.NotFound(puntuale.NoAutomation)
	}
	h, err := d.cfg.Hooks.HookOf(ctx, hash)
	if err != nil {
		return h, fmt.Errorf("find a hook: %w", err)
	}
	return h, nil
}

// HookRequest is what a program posts to a hook.
type HookRequest struct {
	Key         string // the header Idempotency-Key; "": calls with the same body are repeats
	ContentType string
	Body        []byte
}

// HookResult is the result of a call.
type HookResult struct {
	Accepted bool             // the call has no faults, so the rule will decide about the call, unless Repeated is true
	Repeated bool             // the call repeats an earlier one within [puntuale.HookRepeat], so it has no effect
	Faults   []puntuale.Fault // why the rule will not act on the call
}

// Codes of the faults that this file reports.
const (
	faultHookKey       puntuale.ReasonCode = "hook.key"
	faultHookOff       puntuale.ReasonCode = "hook.off"
	faultNotPhone      puntuale.ReasonCode = "hook.not_phone"
	faultNoPhone       puntuale.ReasonCode = "hook.no_phone"
	faultPresetNoPhone puntuale.ReasonCode = "hook.preset_no_phone"
	faultPayloadEmpty  puntuale.ReasonCode = "payload.empty"
	faultPayloadForm   puntuale.ReasonCode = "payload.form"
	faultPayloadMany   puntuale.ReasonCode = "payload.too_many"
	faultPayloadUTF8   puntuale.ReasonCode = "payload.not_utf8"
)

// maxHookKey is the largest length of the header Idempotency-Key, in bytes.
const maxHookKey = 255

// Call handles one call of a hook. It stores the payload as the hook's last payload, even if the rule is off or the
// payload has no phone. Codes: unreadable, not_found, rate_limited (see [control.Client.Spend]).
func (d *Automations) Call(ctx context.Context, h puntuale.Hook, r HookRequest) (HookResult, error) {
	key := "key " + r.Key
	if r.Key == "" {
		sum := sha256.Sum256(r.Body)
		key = "body " + hex.EncodeToString(sum[:])
	}
	if len(r.Key) > maxHookKey || strings.ContainsFunc(r.Key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return HookResult{}, unreadable(puntuale.Because(faultHookKey, strconv.Itoa(maxHookKey)).At("header.Idempotency-Key", nil))
	}
	p, err := readPayload(r.ContentType, r.Body)
	if err != nil {
		return HookResult{}, err
	}
	client, err := d.cfg.Control.OfNetwork(ctx, h.Client)
	if err != nil {
		return HookResult{}, fmt.Errorf("call a hook: %w", err)
	}
	call := puntuale.HookCall{Automation: h.Automation, Key: key, Payload: p.JSON(), At: d.cfg.Clock.Now()}
	if len(call.Payload) > puntuale.MaxHookBody {
		call.Payload = nil // a form's JSON may be longer than the form; JSON above the limit is not stored
	}
	var faults []puntuale.Fault
	if call.Phone, call.Fields, faults, err = d.understood(ctx, client, h.Automation, puntuale.Trigger{Map: h.Map, Preset: h.Preset}, p); err != nil {
		return HookResult{}, err
	}
	if !h.Active {
		faults = append(faults, puntuale.Because(faultHookOff).At("automation", nil))
	}
	if len(faults) > 0 { // the caller may send a mended body with the same key; only the same body is a repeat
		sum := sha256.Sum256(r.Body)
		call.Key += " faulty " + hex.EncodeToString(sum[:])
	}
	refund, err := client.Spend(ctx, int64(len(r.Body)))
	if err != nil {
		return HookResult{}, err
	}
	fresh, err := d.cfg.Hooks.CallHook(ctx, h.Client, call)
	if err != nil || !fresh {
		refund()
	}
	if err != nil {
		return HookResult{}, fmt.Errorf("call the hook of automation %d: %w", h.Automation, err)
	}
	return HookResult{Accepted: len(faults) == 0, Repeated: !fresh, Faults: faults}, nil
}

// understood finds a payload's phone and fields with the trigger's preset or map. If the payload has no phone, but the
// reference of a booking, the person is that of the booking: some programs tell the number only when they make a booking.
func (d *Automations) understood(ctx context.Context, c *control.Client, rule puntuale.AutomationID, t puntuale.Trigger, p payload.Payload) (string, map[string]string, []puntuale.Fault, error) {
	read := phoneAndFields
	if t.Preset != "" {
		read = presetValues
	}
	phone, fields, faults := read(c, t, p)
	reference := fields[puntuale.ReferenceField]
	if phone != "" || reference == "" || len(faults) > 0 && faults[0].Code != faultNoPhone {
		return phone, fields, faults, nil
	}
	tenant := d.cfg.Tenants.Tenant(c.ID())
	a, err := tenant.Automation(ctx, rule)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound { // a draft names the booking as the program does
		return "", nil, nil, fmt.Errorf("read the rule of a hook: %w", err)
	}
	named, former := rules.BookingReferences(&a, fields, d.cfg.Clock.Now())
	state, err := tenant.MovedBookingState(ctx, named, former, "")
	switch {
	case err != nil:
		return "", nil, nil, fmt.Errorf("read the booking of a hook's call: %w", err)
	case state.Revision != 0 && !state.Erased:
		return state.Phone, fields, nil, nil
	case t.Preset != "":
		return "", fields, []puntuale.Fault{puntuale.Because(faultPresetNoPhone, reference).At("body", nil)}, nil
	}
	return "", fields, append(faults, puntuale.Because(puntuale.NoBooking).At("body", nil)), nil
}

// presetValues finds a payload's phone and fields with the trigger's preset. A call that says nothing about an
// appointment has no phone, and only the reason as its field, which the rule's log then shows.
func presetValues(c *control.Client, t puntuale.Trigger, p payload.Payload) (phone string, fields map[string]string, faults []puntuale.Fault) {
	a, reason := preset.Read(t.Preset, p)
	if reason != "" {
		return "", map[string]string{puntuale.SkippedField: string(reason)}, []puntuale.Fault{puntuale.Because(reason).At("body", nil)}
	}
	for _, text := range a.Phones {
		if number, err := c.Recipient(text); err == nil && strings.HasPrefix(number, "+") {
			return number, a.Values(), nil
		}
	}
	return "", a.Values(), nil
}

// phoneAndFields finds a payload's phone and fields with the trigger's map.
func phoneAndFields(c *control.Client, t puntuale.Trigger, p payload.Payload) (phone string, fields map[string]string, faults []puntuale.Fault) {
	m := t.Map
	fields = map[string]string{}
	for name, text := range m {
		path, err := payload.ParsePath(text)
		if err != nil {
			continue // this cannot happen, because Check accepts only paths
		}
		value := strings.TrimSpace(p.Text(path))
		switch {
		case name != phoneField && value != "":
			fields[name] = value
		case name == phoneField && value == "":
			faults = append(faults, puntuale.Because(faultNoPhone, text).At("body", nil))
		case name == phoneField:
			if phone, err = c.Recipient(value); err != nil || !strings.HasPrefix(phone, "+") {
				phone = "" // the value is not a number, or it is a group; a group cannot trigger the rule
				faults = append(faults, puntuale.Because(faultNotPhone, text).At("body", nil))
			}
		}
	}
	if phone == "" && len(faults) == 0 && fields[puntuale.ReferenceField] == "" { // the mapping has no phone
		faults = append(faults, puntuale.Because(faultNoPhone, m[puntuale.ReferenceField]).At("body", nil))
	}
	return phone, fields, faults
}

// readPayload reads a payload. Codes: unreadable.
func readPayload(contentType string, body []byte) (payload.Payload, error) {
	p, err := payload.Parse(contentType, body)
	for _, known := range payloadFaults {
		if errors.Is(err, known.err) {
			return p, unreadable(puntuale.Because(known.code).At("body", nil))
		}
	}
	return p, err
}

var payloadFaults = []struct {
	err  error
	code puntuale.ReasonCode
}{{payload.ErrEmpty, faultPayloadEmpty}, {payload.ErrEncoding, faultPayloadUTF8}, {payload.ErrTooMany, faultPayloadMany}, {payload.ErrForm, faultPayloadForm}}

func unreadable(faults ...puntuale.Fault) error {
	return &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: faults[0].Reason(), Faults: slices.Clone(faults)}
}
