package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/draft"
	"puntuale/internal/plan"
)

// NewKeys is a request to replace some or all keys of an Official session. A blank member changes nothing.
type NewKeys struct {
	puntuale.OfficialKeys
	NoAccount  bool             // true: remove BusinessAccountID
	NoApp      bool             // true: remove AppID
	KeepGroups bool             // true: GroupsAPI does not change
	Faults     []puntuale.Fault // the faults that the calling package already found in the request
}

// SetKeys replaces the keys of an Official session. The session's node then reads the new keys. No call ever returns
// the keys. Codes: forbidden, not_found, invalid (also if a key except BusinessAccountID is blank and not stored),
// conflict (the session is not Official, or is a sandbox).
func (c *Client) SetKeys(ctx context.Context, id string, r NewKeys) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.official(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := c.tenant.ChangeKeys(ctx, found.ID, func(old []byte) ([]byte, string, error) {
		sealed, err := c.mergeKeys(found.ID, old, r)
		return sealed, "", err
	}); err != nil {
		return Session{}, fmt.Errorf("store the keys of session %d: %w", found.ID, err)
	}
	return c.recheckKeys(ctx, id, found.ID)
}

// recheckKeys tells the session's node to check the new keys, and returns the session. It does not wait for the check.
// If the node cannot be reached now, the node checks the keys later.
func (c *Client) recheckKeys(ctx context.Context, id string, session puntuale.SessionID) (Session, error) {
	if _, err := c.give(ctx, session, puntuale.CommandTest, nil); err != nil && puntuale.CodeOf(err) != puntuale.CodeBusy {
		return Session{}, err
	}
	return c.Session(ctx, id)
}

// mergeKeys merges the request into the old sealed keys, and returns the new sealed keys.
func (c *Client) mergeKeys(id puntuale.SessionID, old []byte, r NewKeys) ([]byte, error) {
	var before puntuale.OfficialKeys
	if old != nil {
		plain, err := c.control.vault.Open(puntuale.SealedOfficial, id.SealPlace(), old)
		if err != nil || json.Unmarshal(plain, &before) != nil {
			before = puntuale.OfficialKeys{} // the old keys were sealed under another key of the installation and cannot be read, so the request must contain all keys
		}
	}
	k := r.OfficialKeys
	for _, key := range []struct{ value, stored *string }{
		{&k.PhoneNumberID, &before.PhoneNumberID}, {&k.AccessToken, &before.AccessToken}, {&k.AppSecret, &before.AppSecret}, {&k.VerifyToken, &before.VerifyToken},
	} {
		if strings.TrimSpace(*key.value) == "" {
			*key.value = *key.stored
		}
	}
	if strings.TrimSpace(k.BusinessAccountID) == "" && !r.NoAccount {
		k.BusinessAccountID = before.BusinessAccountID
	}
	if strings.TrimSpace(k.AppID) == "" && !r.NoApp {
		k.AppID = before.AppID
	}
	if r.KeepGroups {
		k.GroupsAPI = before.GroupsAPI
	}
	f := request.Faults(r.Faults)
	c.checkKeys(&f, "body.", &k)
	return c.seal(id, k), f.Err()
}

// SessionTest is the result of a test whether a session can send.
type SessionTest struct {
	Session   Session
	OK        bool                      // true: the session can send now
	Message   puntuale.Reason           // the problem, or a sentence that there is none
	Templates puntuale.NetworkTemplates // the templates that the test read from Meta; Problem says why the read failed
	Checks    []LinkCheck               // of an Official session
}

// Results of a test, for a session without a Detail.
const (
	reasonNumberWell puntuale.ReasonCode = "link.well_number" // {1}: the number
	reasonWell       puntuale.ReasonCode = "link.well"
	reasonNotYet     puntuale.ReasonCode = "link.not_yet"
)

// TestSession makes a session's node test whether the session can send. The session must be Official or have a gateway.
// For an Official session, the node also reads the templates. Codes: not_found, conflict (another kind of session),
// busy (the node did not answer in time).
func (c *Client) TestSession(ctx context.Context, id string) (SessionTest, error) {
	found, err := c.Session(ctx, id)
	if err == nil && !found.toGateway() {
		found, err = c.official(ctx, id)
	}
	if err != nil {
		return SessionTest{}, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandTest, nil); err != nil {
		return SessionTest{}, fmt.Errorf("test session %d: %w", found.ID, err)
	}
	if found, err = c.Session(ctx, id); err != nil {
		return SessionTest{}, err
	}
	var about puntuale.NetworkTemplates
	var checks []LinkCheck
	if found.Type == puntuale.Official {
		if about, _, _, err = c.tenant.NetworkTemplates(ctx, found.ID, puntuale.Page{Limit: 1}); err != nil {
			return SessionTest{}, fmt.Errorf("read about the templates of session %d: %w", found.ID, err)
		}
		h, err := c.SessionHealth(ctx, id)
		if err != nil {
			return SessionTest{}, err
		}
		checks = h.Checks()
	}
	t := SessionTest{Session: found, Checks: checks, OK: found.State == puntuale.LinkOnline && found.Detail.IsZero(), Message: found.Detail, Templates: about}
	switch {
	case t.OK && found.Number != "":
		t.Message = puntuale.Because(reasonNumberWell, found.Number)
	case t.OK:
		t.Message = puntuale.Because(reasonWell)
	case t.Message.IsZero():
		t.Message = puntuale.Because(reasonNotYet)
	}
	return t, nil
}

// NetworkTemplates is one page of the templates of an Official session's business, as Meta lists them.
type NetworkTemplates struct {
	puntuale.NetworkTemplates
	All  []puntuale.NetworkTemplate
	Next string // cursor of the next page; "": this is the last page
}

// NetworkTemplates lists the templates of an Official session's business, ordered by name and language. The list is as
// old as the server's last read from Meta. Codes: not_found, invalid, conflict (the session is not Official, or is a
// sandbox).
func (c *Client) NetworkTemplates(ctx context.Context, id string, p request.Page) (NetworkTemplates, error) {
	found, err := c.official(ctx, id)
	if err != nil {
		return NetworkTemplates{}, err
	}
	var out NetworkTemplates
	out.All, out.Next, err = request.List(p, func(p puntuale.Page) (all []puntuale.NetworkTemplate, next string, err error) {
		out.NetworkTemplates, all, next, err = c.tenant.NetworkTemplates(ctx, found.ID, p)
		return all, next, err
	})
	if err != nil {
		return NetworkTemplates{}, fmt.Errorf("list the templates of session %d: %w", found.ID, err)
	}
	return out, nil
}

// Codes of the faults that this file reports.
const (
	faultMoreCharacters        puntuale.ReasonCode = "fault.more_characters"
	faultOfficialAccountID     puntuale.ReasonCode = "official.account_id"
	faultOfficialAppID         puntuale.ReasonCode = "official.app_id"
	faultOfficialIsSandbox     puntuale.ReasonCode = "official.is_sandbox"
	faultOfficialKeyCharacters puntuale.ReasonCode = "official.key_characters"
	faultOfficialNotOfficial   puntuale.ReasonCode = "official.not_official"
	faultOfficialNumberID      puntuale.ReasonCode = "official.number_id"
)

// official returns a session that sends through Meta, or an error for any other session.
func (c *Client) official(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return Session{}, err
	case found.Type != puntuale.Official:
		return Session{}, puntuale.Conflict(faultOfficialNotOfficial)
	case found.Sandbox:
		return Session{}, puntuale.Conflict(faultOfficialIsSandbox)
	case c.control.vault == nil:
		return Session{}, puntuale.NoLinker()
	}
	return found, nil
}

// storeSession creates a session with the given keys. nil means that the session has no keys yet.
func (c *Client) storeSession(ctx context.Context, s puntuale.Session, keys *puntuale.OfficialKeys, once *puntuale.Idempotency) (puntuale.SessionID, error) {
	if keys == nil || c.control.vault == nil {
		return c.tenant.CreateSession(ctx, s, once)
	}
	return c.tenant.CreateOfficial(ctx, s, func(id puntuale.SessionID) []byte { return c.seal(id, *keys) }, once)
}

func (c *Client) seal(id puntuale.SessionID, keys puntuale.OfficialKeys) []byte {
	return c.control.vault.Seal(puntuale.SealedOfficial, id.SealPlace(), keys.JSON())
}

// checkKeys adds faults of the keys to f. The faults never contain the values. It removes surrounding white space from
// the keys, because copied keys often have some.
func (c *Client) checkKeys(f *request.Faults, at string, k *puntuale.OfficialKeys) {
	for _, key := range []struct {
		name    string
		text    *string
		maximum int
	}{
		{"phone_number_id", &k.PhoneNumberID, puntuale.MaxPhoneNumberID}, {"access_token", &k.AccessToken, puntuale.MaxOfficialKey},
		{"app_secret", &k.AppSecret, puntuale.MaxOfficialKey}, {"verify_token", &k.VerifyToken, puntuale.MaxOfficialKey},
		{"business_account_id", &k.BusinessAccountID, puntuale.MaxPhoneNumberID}, {"app_id", &k.AppID, puntuale.MaxPhoneNumberID},
	} {
		*key.text = strings.TrimSpace(*key.text)
		switch text := *key.text; {
		case text == "" && (key.name == "business_account_id" || key.name == "app_id"): // these keys may be blank; without them, the server reads no templates, or uploads no samples
		case text == "":
			f.Add(at+key.name, puntuale.FaultRequired, nil)
		case utf8.RuneCountInString(text) > key.maximum:
			f.Add(at+key.name, faultMoreCharacters, nil, strconv.Itoa(key.maximum))
		case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			f.Add(at+key.name, faultOfficialKeyCharacters, nil)
		case key.name == "phone_number_id" && strings.Trim(text, "0123456789") != "":
			f.Add(at+key.name, faultOfficialNumberID, nil)
		case key.name == "business_account_id" && strings.Trim(text, "0123456789") != "":
			f.Add(at+key.name, faultOfficialAccountID, nil)
		case key.name == "app_id" && strings.Trim(text, "0123456789") != "":
			f.Add(at+key.name, faultOfficialAppID, nil)
		}
	}
}

// NewDraft is a request to make a template at the network, or to edit one.
type NewDraft struct {
	puntuale.TemplateDraft
	Faults []puntuale.Fault // the faults that the calling package already found in the request
}

// RequestedTemplate is the state of a request about a template at the network.
type RequestedTemplate struct {
	puntuale.TemplateRequest
	Template puntuale.NetworkTemplate // zero: the network does not have the template yet
}

// Status returns the network's word for the template. "SUBMITTING" means that the network's answer is not known yet.
func (r RequestedTemplate) Status() string {
	if r.State < puntuale.RequestDone {
		return "SUBMITTING"
	}
	return string(r.Template.Status)
}

// TemplateLanguages returns the languages of a template of the session's business. Codes: not_found, conflict.
func (c *Client) TemplateLanguages(ctx context.Context, session, name string) ([]puntuale.NetworkTemplate, error) {
	found, err := c.official(ctx, session)
	if err != nil {
		return nil, err
	}
	all, err := c.tenant.NetworkTemplatesNamed(ctx, found.ID, []string{name})
	if err != nil {
		return nil, fmt.Errorf("read the languages of a template: %w", err)
	}
	return all, nil
}

// Prepared turns the fields of a draft's texts into placeholders that the network allows, and gives each its example.
func Prepared(d puntuale.TemplateDraft) puntuale.TemplateDraft {
	var values []puntuale.Parameter
	d.Name, d.Language, d.Category = strings.TrimSpace(d.Name), strings.TrimSpace(d.Language), strings.ToUpper(strings.TrimSpace(d.Category))
	d.Text, values = plan.Places(strings.ReplaceAll(strings.TrimSpace(d.Text), "\r\n", "\n"), values)
	if d.Header != nil {
		h := *d.Header
		h.Text, values = plan.Places(strings.TrimSpace(h.Text), values)
		d.Header = &h
	}
	d.Footer, d.Buttons = strings.TrimSpace(d.Footer), slices.Clone(d.Buttons)
	for i := range d.Buttons {
		d.Buttons[i].URL, values = plan.Places(strings.TrimSpace(d.Buttons[i].URL), values)
	}
	examples := map[string]string{}
	for _, name := range d.Placeholders() {
		examples[name] = d.Examples[name]
		for _, v := range values {
			if field := strings.Trim(v.Text, "{}"); v.Name == name && examples[name] == "" {
				field, _, _ = strings.Cut(field, "|")
				examples[name] = d.Examples[field]
			}
		}
	}
	d.Examples = examples
	return d
}

// LintTemplate returns what the network may refuse in a draft, or take for marketing. Codes: not_found, conflict (the
// session is not Official), invalid.
func (c *Client) LintTemplate(ctx context.Context, session string, r NewDraft) ([]draft.Finding, error) {
	if _, err := c.official(ctx, session); err != nil {
		return nil, err
	}
	f := request.Faults(r.Faults)
	d := Prepared(r.TemplateDraft)
	for _, fault := range draft.Check(d) { // the examples may still be missing
		if !strings.HasPrefix(fault.Location, "body.examples") && fault.Location != "body.header.media" {
			f = append(f, fault)
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return draft.Lint(d), nil
}

// CreateNetworkTemplate asks the network to approve a template. The request is stored before the call, and a second call with
// the same draft returns the same request. Codes: not_found, invalid, forbidden, rate_limited (too many creations in an
// hour), conflict (the session is not Official or knows no business account, or the name is taken or locked).
func (c *Client) CreateNetworkTemplate(ctx context.Context, session string, r NewDraft) (RequestedTemplate, error) {
	d := Prepared(r.TemplateDraft)
	f := append(request.Faults(r.Faults), draft.Check(d)...)
	return c.requestTemplate(ctx, session, f, puntuale.TemplateRequest{Kind: puntuale.CreatesTemplate, Name: d.Name, Language: d.Language, Draft: d}, func(u puntuale.TemplateUsage) error {
		t := u.Known
		switch {
		case u.Creations >= puntuale.MaxTemplateCreations:
			return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultCreationsSpent, strconv.Itoa(puntuale.MaxTemplateCreations)), RetryAfter: u.OldestOf.Add(time.Hour).Sub(u.Now)}
		case t == nil:
		case t.Status == puntuale.TemplateDeleted && !t.LockedAt.IsZero() && u.Now.Before(t.LockedAt.Add(puntuale.TemplateNameLock)):
			return puntuale.Conflict(faultTemplateLocked, puntuale.DateOf(t.LockedAt.Add(puntuale.TemplateNameLock)).String())
		case t.Status != puntuale.TemplateDeleted:
			return puntuale.Conflict(faultNetworkTemplateExists)
		}
		return nil
	})
}

// EditNetworkTemplate asks the network to replace a template's content. Name and language do not change. Codes: those of
// CreateNetworkTemplate; conflict also if the template's state, or the number of its edits, forbids it.
func (c *Client) EditNetworkTemplate(ctx context.Context, session, id string, r NewDraft) (RequestedTemplate, error) {
	t, err := c.networkTemplate(ctx, session, id)
	if err != nil {
		return RequestedTemplate{}, err
	}
	d := Prepared(r.TemplateDraft)
	f := request.Faults(r.Faults)
	if d.Name != "" && d.Name != t.Name {
		f.Add("body.name", faultTemplateNameFixed, nil)
	}
	if d.Language != "" && d.Language != t.Language {
		f.Add("body.language", faultTemplateNameFixed, nil)
	}
	d.Name, d.Language = t.Name, t.Language
	approved := t.Status == puntuale.TemplateApproved
	if approved && d.Category != t.Category {
		f.Add("body.category", faultCategoryFixed, nil)
	}
	f = append(f, draft.Check(d)...)
	asked := puntuale.TemplateRequest{Kind: puntuale.EditsTemplate, Name: t.Name, Language: t.Language, NetworkID: t.ID, Draft: d, WasApproved: approved}
	return c.requestTemplate(ctx, session, f, asked, func(u puntuale.TemplateUsage) error {
		switch s := t.Status; {
		case s != puntuale.TemplateApproved && s != puntuale.TemplateRejected && s != puntuale.TemplatePaused:
			return puntuale.Conflict(faultTemplateStateFixed, string(s))
		case approved && u.EditsDay >= puntuale.MaxTemplateEditsDay:
			return puntuale.Conflict(faultEditedToday, c.localTime(u.LastEdit.Add(24*time.Hour)))
		case approved && u.EditsMonth >= puntuale.MaxTemplateEditsMonth:
			return puntuale.Conflict(faultEditedMonth, strconv.Itoa(puntuale.MaxTemplateEditsMonth), c.localTime(u.FirstEdit.Add(30*24*time.Hour)))
		}
		return nil
	})
}

// UnpauseNetworkTemplate asks the network to end the pause of a template. Codes: not_found, forbidden, conflict (the
// template is not paused).
func (c *Client) UnpauseNetworkTemplate(ctx context.Context, session, id string) (RequestedTemplate, error) {
	return c.changeTemplate(ctx, session, id, puntuale.UnpausesTemplate, func(t puntuale.NetworkTemplate) bool { return t.Status == puntuale.TemplatePaused })
}

// DeleteNetworkTemplate asks the network to delete one language of a template. Its name is then locked for
// [puntuale.TemplateNameLock]. Codes: not_found, forbidden, conflict (a disabled or deleted template).
func (c *Client) DeleteNetworkTemplate(ctx context.Context, session, id string) (RequestedTemplate, error) {
	return c.changeTemplate(ctx, session, id, puntuale.DeletesTemplate, func(t puntuale.NetworkTemplate) bool {
		return t.Status != puntuale.TemplateDisabled && t.Status != puntuale.TemplateDeleted && t.Status != puntuale.TemplateDeleting
	})
}

func (c *Client) changeTemplate(ctx context.Context, session, id string, kind puntuale.TemplateRequestKind, may func(puntuale.NetworkTemplate) bool) (RequestedTemplate, error) {
	t, err := c.networkTemplate(ctx, session, id)
	if err != nil {
		return RequestedTemplate{}, err
	}
	return c.requestTemplate(ctx, session, nil, puntuale.TemplateRequest{Kind: kind, Name: t.Name, Language: t.Language, NetworkID: t.ID}, func(puntuale.TemplateUsage) error {
		if !may(t) {
			return puntuale.Conflict(faultTemplateStateFixed, string(t.Status))
		}
		return nil
	})
}

// AcceptCategory lets the messages with a template leave that the network made marketing. Codes: not_found, conflict.
func (c *Client) AcceptCategory(ctx context.Context, session, id string) error {
	found, err := c.official(ctx, session)
	if err != nil {
		return err
	}
	if err := c.tenant.AcceptCategory(ctx, found.ID, id); err != nil {
		return fmt.Errorf("accept the category of a template: %w", err)
	}
	return nil
}

// NetworkTemplate returns a template of the session's business by the network's id. Codes: not_found, conflict.
func (c *Client) NetworkTemplate(ctx context.Context, session, id string) (puntuale.NetworkTemplate, error) {
	return c.networkTemplate(ctx, session, id)
}

func (c *Client) networkTemplate(ctx context.Context, session, id string) (puntuale.NetworkTemplate, error) {
	found, err := c.official(ctx, session)
	if err != nil {
		return puntuale.NetworkTemplate{}, err
	}
	t, err := c.tenant.NetworkTemplateWithID(ctx, found.ID, id)
	if err != nil {
		return t, fmt.Errorf("read a template of session %d: %w", found.ID, err)
	}
	return t, nil
}

// shownRequests is how many requests about templates a page shows.
const shownRequests = 100

// TemplateRequests returns the latest requests about the templates of the session's business, the newest first. Codes:
// not_found, conflict.
func (c *Client) TemplateRequests(ctx context.Context, session string) ([]puntuale.TemplateRequest, error) {
	found, err := c.official(ctx, session)
	if err != nil {
		return nil, err
	}
	all, err := c.tenant.TemplateRequests(ctx, found.ID, shownRequests)
	if err != nil {
		return nil, fmt.Errorf("read requests about templates: %w", err)
	}
	return all, nil
}

// errSameDraft ends a transaction that would store a request a second time.
var errSameDraft = errors.New("the same draft was submitted before")

// requestTemplate stores a request, lets the session's node make the call, and returns what became of it. If the node does
// not answer in time, the request stays open, and the node finishes it later.
func (c *Client) requestTemplate(ctx context.Context, session string, f request.Faults, r puntuale.TemplateRequest, decide func(puntuale.TemplateUsage) error) (RequestedTemplate, error) {
	if err := c.MayCreate(); err != nil {
		return RequestedTemplate{}, err
	}
	found, err := c.official(ctx, session)
	if err != nil {
		return RequestedTemplate{}, err
	}
	about, _, _, err := c.tenant.NetworkTemplates(ctx, found.ID, puntuale.Page{Limit: 1})
	if err != nil {
		return RequestedTemplate{}, fmt.Errorf("read about the templates of session %d: %w", found.ID, err)
	}
	if err := c.checkSample(ctx, &f, r.Draft.Header, found.Session); err != nil {
		return RequestedTemplate{}, err
	}
	if err := f.Err(); err != nil {
		return RequestedTemplate{}, err
	}
	if about.Account == "" {
		return RequestedTemplate{}, puntuale.Conflict(faultNoBusinessAccount)
	}
	r.Session, r.Account, r.Made = found.ID, about.Account, c.control.clock.Now()
	var same puntuale.TemplateRequestID
	id, err := c.tenant.RequestTemplate(ctx, r, func(u puntuale.TemplateUsage) error {
		if old := u.Created; r.Kind == puntuale.CreatesTemplate && old != nil && old.State != puntuale.RequestRefused && bytes.Equal(old.Draft.JSON(), r.Draft.JSON()) &&
			(u.Known == nil || u.Known.Status != puntuale.TemplateDeleted) {
			same = old.ID
			return errSameDraft
		}
		if u.Open {
			return puntuale.Conflict(faultRequestOpen)
		}
		return decide(u)
	})
	if errors.Is(err, errSameDraft) {
		id, err = same, nil
	}
	if err != nil {
		return RequestedTemplate{}, fmt.Errorf("request a template: %w", err)
	}
	if err := c.command(ctx, found.ID, puntuale.CommandTemplates, nil); err != nil && puntuale.CodeOf(err) != puntuale.CodeBusy && puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		return RequestedTemplate{}, err
	}
	return c.requested(ctx, found.ID, id)
}

// requested returns what became of a request. Codes: invalid, if the network refused a draft; conflict, if it refused
// something else.
func (c *Client) requested(ctx context.Context, session puntuale.SessionID, id puntuale.TemplateRequestID) (RequestedTemplate, error) {
	r, err := c.tenant.TemplateRequest(ctx, id)
	if err != nil {
		return RequestedTemplate{}, fmt.Errorf("read a request about a template: %w", err)
	}
	switch {
	case r.State == puntuale.RequestRefused && len(r.Draft.Text) > 0:
		return RequestedTemplate{}, puntuale.Invalid(r.Reason.At("body", nil))
	case r.State == puntuale.RequestRefused:
		return RequestedTemplate{}, &puntuale.Error{Code: puntuale.CodeConflict, Reason: r.Reason}
	}
	out := RequestedTemplate{TemplateRequest: r}
	if r.NetworkID == "" {
		return out, nil
	}
	out.Template, err = c.tenant.NetworkTemplateWithID(ctx, session, r.NetworkID)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound { // the session's business changed meanwhile
		err = nil
	}
	return out, err
}

// localTime returns a moment in the client's zone, for people.
func (c *Client) localTime(at time.Time) string {
	if zone, err := c.zone(); err == nil {
		at = at.In(zone)
	}
	return at.Format("02/01/2006 15:04")
}

// Codes of the conflicts and faults of requests about templates.
const (
	faultCreationsSpent        puntuale.ReasonCode = "official.creations_spent" // {1}: how many creations an hour has
	faultTemplateLocked        puntuale.ReasonCode = "official.template_locked" // {1}: until when
	faultNetworkTemplateExists puntuale.ReasonCode = "official.name_taken"
	faultTemplateNameFixed     puntuale.ReasonCode = "official.name_fixed"
	faultCategoryFixed         puntuale.ReasonCode = "official.category_fixed"
	faultTemplateStateFixed    puntuale.ReasonCode = "official.state_fixed"  // {1}: the state, as Meta names it
	faultEditedToday           puntuale.ReasonCode = "official.edited_today" // {1}: when the next edit may be
	faultEditedMonth           puntuale.ReasonCode = "official.edited_month" // {1}: how many edits a month has, {2}: when the next may be
	faultNoBusinessAccount     puntuale.ReasonCode = "official.no_business_account"
	faultRequestOpen           puntuale.ReasonCode = "official.request_open"
)

// OwnTemplate returns a template of the client that sends a draft: the values of its placeholders are the fields of the
// draft's texts, as they are written there.
func OwnTemplate(d puntuale.TemplateDraft) puntuale.Template {
	_, body := plan.Places(d.Text, nil)
	all := body
	t := puntuale.Template{Name: d.Name, Text: d.Text}
	official := &puntuale.Approved{Name: d.Name, Language: d.Language, Body: body}
	if h := d.Header; h != nil {
		t.Media = h.Media
		var text string
		text, all = plan.Places(h.Text, all)
		for _, name := range (puntuale.TemplatePart{Text: text}).Placeholders() {
			for _, v := range all {
				if v.Name == name {
					official.Header = append(official.Header, v)
				}
			}
		}
	}
	for i, b := range d.Buttons {
		switch {
		case b.Kind == "copy_code":
			official.Buttons = append(official.Buttons, puntuale.Button{Index: i, Kind: puntuale.ButtonCode, Text: b.Code})
		case b.Kind == "url" && strings.Contains(b.URL, "{{"):
			official.Buttons = append(official.Buttons, puntuale.Button{Index: i, Kind: puntuale.ButtonURL, Text: b.URL[strings.Index(b.URL, "{{"):]})
		}
	}
	t.Official = official
	return t
}

// DraftOf returns a draft with the content of a template, to begin another one from. The latest request that made the
// template is complete; a template that was made elsewhere has no examples. Numbered placeholders stay numbers.
func DraftOf(t puntuale.NetworkTemplate, requests []puntuale.TemplateRequest) puntuale.TemplateDraft {
	for _, r := range requests {
		if r.Name == t.Name && r.Language == t.Language && r.Draft.Text != "" && r.State == puntuale.RequestDone {
			return r.Draft
		}
	}
	d := puntuale.TemplateDraft{Name: t.Name, Language: t.Language, Category: t.Category, Text: t.Part("BODY").Text, Footer: t.Part("FOOTER").Text}
	if h := t.Part("HEADER"); h.Format != "" {
		d.Header = &puntuale.DraftHeader{Kind: strings.ToLower(h.Format), Text: h.Text}
	}
	for _, b := range t.Part("BUTTONS").Buttons {
		kind := map[string]string{"QUICK_REPLY": "quick_reply", "URL": "url", "PHONE_NUMBER": "phone", "COPY_CODE": "copy_code"}[b.Kind]
		if kind != "" {
			d.Buttons = append(d.Buttons, puntuale.DraftButton{Kind: kind, Text: b.Text, URL: b.URL})
		}
	}
	return d
}
