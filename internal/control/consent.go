package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// ConsentCall is a change of consent that a program, or a person of the client, records.
type ConsentCall struct {
	Phone   string
	Purpose string // service or marketing
	Change  string // grant or withdraw
	Source  string // where the person gave the consent
	Words   string // what the person said or signed
}

// Limits of the proof of a consent, in characters.
const (
	maxConsentSource = puntuale.MaxName
	maxConsentWords  = puntuale.MaxReply
)

// purposeWords are the purposes that a message may have.
const purposeWords = "marketing, service"

// purposeIn parses a purpose from a request. "" means service.
func purposeIn(f *request.Faults, word string) puntuale.Purpose {
	p, ok := puntuale.ParsePurpose(word)
	if !ok {
		f.Add("body.purpose", puntuale.FaultNotOneOf, word, purposeWords)
	}
	return p
}

// AddConsent adds a person's consent, or its withdrawal, to the ledger. The call counts in the client's usage, but the
// daily cap never refuses it. A withdrawal blocks marketing from now on, and cancels pending marketing. It does not
// change the blacklist. A repeat finishes the cancellation, unless the person gave consent meanwhile. found contains the
// faults that the calling package already found in the request. Codes: invalid, conflict (a call with a different body
// used the idempotency key).
func (c *Client) AddConsent(ctx context.Context, call ConsentCall, o Once[puntuale.Consent], found ...puntuale.Fault) (puntuale.Consent, error) {
	e, entered, err := c.enterConsent(ctx, call, o, found)
	if err != nil && !errors.As(err, new(*puntuale.Replayed)) || e.Change != puntuale.ConsentWithdraw {
		return entered, err
	}
	statuses, failed := c.tenant.ConsentStatuses(ctx, puntuale.Person{Names: []string{e.Phone}, Mark: c.mark})
	if failed == nil && statuses[e.Purpose].Change == puntuale.ConsentWithdraw {
		_, failed = c.tenant.CancelMarketing(ctx, e.Phone, e.Entered)
	}
	if failed != nil {
		return puntuale.Consent{}, fmt.Errorf("cancel marketing: %w", failed)
	}
	return entered, err
}

// enterConsent adds an entry to the ledger. It returns the entry that the call asks for, and the stored entry.
func (c *Client) enterConsent(ctx context.Context, call ConsentCall, o Once[puntuale.Consent], found []puntuale.Fault) (e puntuale.ConsentEntry, entered puntuale.Consent, err error) {
	f := request.Faults(found)
	once, clash, begun := o.Begin(ctx, c.tenant, &f)
	now := c.control.clock.Now()
	e = puntuale.ConsentEntry{Consent: puntuale.Consent{
		Phone: c.recipient(&f, "body.phone", call.Phone), Source: puntuale.Trimmed(call.Source), Words: call.Words, EnteredBy: c.actor.Who, At: now, Entered: now,
	}}
	e.Purpose = purposeIn(&f, call.Purpose)
	var ok bool
	if e.Change, ok = puntuale.ParseConsentChange(call.Change); !ok && call.Change != "" {
		f.Add("body.change", puntuale.FaultNotOneOf, call.Change, "grant, withdraw")
	}
	for _, required := range []struct{ name, value string }{{"purpose", call.Purpose}, {"change", call.Change}, {"source", e.Source}} {
		if required.value == "" {
			f.Add("body."+required.name, puntuale.FaultRequired, nil)
		}
	}
	f.Text("body.source", call.Source, maxConsentSource)
	f.Text("body.words", call.Words, maxConsentWords)
	e.Mark = c.mark
	if begun != nil {
		return e, entered, begun
	}
	if err := f.Err(); err != nil {
		return e, entered, err
	}
	if clash != nil {
		return e, entered, clash
	}
	day, err := c.today(now)
	if err != nil {
		return e, entered, err
	}
	entered, err = c.tenant.AddConsent(ctx, e, day, once.Keep(func(stored any) puntuale.Consent {
		consent, _ := stored.(puntuale.Consent)
		return consent
	}))
	if err != nil {
		return e, puntuale.Consent{}, fmt.Errorf("enter a consent: %w", err)
	}
	return e, entered, nil
}

// Consents lists the ledger's entries of a phone, oldest first. Phone "" means all phones. Codes: invalid.
func (c *Client) Consents(ctx context.Context, phone string, p request.Page) ([]puntuale.Consent, string, error) {
	var f request.Faults
	var person puntuale.Person
	if phone != "" {
		person = c.person(&f, "query.phone", phone)
	}
	p.Unknown = append(p.Unknown, f...)
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Consent, string, error) {
		return c.tenant.Consents(ctx, person, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list consent: %w", err)
	}
	return rows, next, nil
}

// ConsentStatuses returns the current consent of a phone, by purpose. The phone must have the form that messages use.
func (c *Client) ConsentStatuses(ctx context.Context, phone string) (map[puntuale.Purpose]puntuale.ConsentStatus, error) {
	if !possible(phone) {
		return nil, nil
	}
	all, err := c.tenant.ConsentStatuses(ctx, puntuale.Person{Names: []string{phone}, Mark: c.mark})
	if err != nil {
		return nil, fmt.Errorf("read what a person agreed to: %w", err)
	}
	return all, nil
}

// MarketingRefused reports which of the phones get no marketing. A phone gets none after a withdrawal. If the client's
// settings require consent, a phone without consent also gets none. The phones must have the form that messages use.
func (c *Client) MarketingRefused(ctx context.Context, phones ...string) (map[string]bool, error) {
	phones = slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return !possible(phone) })
	refused, err := c.tenant.MarketingRefused(ctx, phones, c.mark)
	if err != nil {
		return nil, fmt.Errorf("look for consent: %w", err)
	}
	return refused, nil
}

// purposesOf returns the purpose of each step of a sequence, and sets how the values of each step fit into its approved
// template. If Meta's category of a step's template, or of one of its variants' templates, is marketing, the
// step's purpose is marketing, even if the sequence has another purpose. The steps must be expanded.
func (c *Client) purposesOf(ctx context.Context, session puntuale.Session, s puntuale.Sequence) ([]puntuale.Purpose, error) {
	all := make([]puntuale.Purpose, len(s.Steps))
	var names []string
	for i, step := range puntuale.Texts(s.Steps) {
		all[i] = s.Purpose
		if step.Official != nil {
			names = append(names, step.Official.Name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	set, err := c.tenant.Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	for _, step := range puntuale.Texts(s.Steps) {
		step.Values.Flatten = set.FlattenValues && step.Official != nil
	}
	if session.Type != puntuale.Official {
		return all, nil
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, session.ID, names)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	for i, step := range puntuale.Texts(s.Steps) {
		if step.Official == nil {
			continue
		}
		t := templateOf(known, step.Official)
		step.Values.Header, step.Values.Body = t.Part("HEADER").Text, t.Part("BODY").Text
		if strings.EqualFold(t.Category, puntuale.PurposeMarketing.String()) {
			all[i] = puntuale.PurposeMarketing
		}
	}
	return all, nil
}

// OfNetwork returns a client for work that starts with a network's report. The client has no key, and its calls do not
// count in the client's usage. Codes: not_found.
func (c *Control) OfNetwork(ctx context.Context, id puntuale.ClientID) (*Client, error) {
	account, err := c.tenants.ClientOf(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read a client: %w", err)
	}
	return c.ClientFor(account, puntuale.Actor{}), nil
}

// ConfirmOptOut sends the confirmation of an opt-out. The text is sent unchanged, and the blacklist does not stop it. A
// second call with the same key sends nothing. The calls do not count in the client's usage. Codes: those of
// [Client.Send].
func (c *Client) ConfirmOptOut(ctx context.Context, session puntuale.SessionID, phone, text, key string) error {
	if err := c.MayCreate(); err != nil {
		return err
	}
	now := c.control.clock.Now()
	s, err := c.tenant.Session(ctx, session)
	if err != nil {
		return fmt.Errorf("read the session of an opt-out: %w", err)
	}
	zone, err := c.zone()
	if err != nil {
		return err
	}
	p := planned{
		origin: puntuale.OriginSingle, name: "opt-out", session: s, phone: phone, zone: zone, ifRunning: puntuale.IfRunningAllow,
		purposes: []puntuale.Purpose{puntuale.PurposeConfirmation},
	}
	p.Messages = []puntuale.PlannedMessage{{Content: puntuale.Content{Text: text}, Due: now, DueMax: now, ValidUntil: now.Add(confirmWithin)}}
	once, clash, err := startOnce("opt-out", key, []byte(text)).look(ctx, c.tenant)
	if _, replayed := startedBefore(err); err != nil {
		return replayed
	}
	if clash == nil { // a clash means that the confirmation was already sent with another text
		_, err = c.start(ctx, p, []byte("{}"), once, now)
	}
	return err
}

// confirmWithin is how long the confirmation may wait until its session can send.
const confirmWithin = time.Hour
