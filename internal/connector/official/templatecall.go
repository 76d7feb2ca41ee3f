package official

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// Times of the calls about templates.
const (
	callTime     = 25 * time.Second // after this time no call of a dead node is under way any more
	retryCall    = time.Minute      // after Meta was busy
	openRequests = 20               // how many open requests one round looks at
)

// Reasons why Meta did not do what a request about a template asks for.
const (
	reasonMetaSays       puntuale.ReasonCode = "official.meta_says" // {1}: what is wrong, {2}: Meta's own words
	reasonDraftRefused   puntuale.ReasonCode = "official.draft_refused"
	reasonAccountChanged puntuale.ReasonCode = "official.account_changed"
	reasonNeverAnswered  puntuale.ReasonCode = "official.never_answered"
	reasonTemplateExists puntuale.ReasonCode = "official.template_exists"
	reasonNoApp          puntuale.ReasonCode = "official.no_app"
	reasonSample         puntuale.ReasonCode = "official.sample_unreadable"
	reasonTemplateGone   puntuale.ReasonCode = "official.template_gone"
	reasonTooMany        puntuale.ReasonCode = "official.too_many_templates"
	reasonFixed          puntuale.ReasonCode = "official.template_fixed"
	reasonFieldLong      puntuale.ReasonCode = "official.field_too_long"
	reasonHeaderPart     puntuale.ReasonCode = "official.header_refused"
	reasonBodyPart       puntuale.ReasonCode = "official.body_refused"
	reasonFooterPart     puntuale.ReasonCode = "official.footer_refused"
	reasonPlaceholders   puntuale.ReasonCode = "official.many_placeholders"
	reasonPlaceholderAt  puntuale.ReasonCode = "official.placeholder_at_end"
)

// subcodes are the reasons of Meta's refusals with code 100. (Meta, templates/template-management.)
var subcodes = map[int]puntuale.ReasonCode{
	2388019: reasonTooMany, duplicate: reasonTemplateExists, 2388039: reasonFixed, 2388040: reasonFieldLong, 2388047: reasonHeaderPart, 2388072: reasonBodyPart,
	2388073: reasonFooterPart, 2388293: reasonPlaceholders, 2388299: reasonPlaceholderAt, missingObject: reasonTemplateGone,
}

// duplicate is the subcode of a template whose name and language are taken.
const duplicate = 2388024

// templateReason returns why Meta refused a call about a template, with Meta's own words for people.
func (e *graphError) templateReason() puntuale.Reason {
	base := puntuale.Because(reasonDraftRefused)
	if code := subcodes[e.Subcode]; code != "" && e.Code == 100 {
		base = puntuale.Because(code)
	} else if e.Code != 100 {
		base = explainTemplates(e)
	}
	words := strings.TrimSuffix(strings.TrimSpace(e.UserTitle), ".")
	if text := strings.TrimSpace(e.UserText); text != "" && words != "" {
		words += ": " + text
	} else if words == "" {
		words = text
	}
	if words == "" {
		words = e.detail()
	}
	return puntuale.Because(reasonMetaSays, base.Stored(), storable(clip(strings.Join(strings.Fields(words), " "), 500)))
}

// CallTemplates makes the calls that the session's open requests about templates need. A request that cannot be finished
// now is finished by a later status check.
func (c *Connector) CallTemplates(ctx context.Context, session puntuale.SessionID) error {
	a := c.account(session)
	if a == nil {
		return fmt.Errorf("session %d is not open", session)
	}
	wait, err := c.finishTemplates(ctx, a)
	if wait > 0 {
		ring(a.wake) // the status check knows when to look again
	}
	return err
}

// finishTemplates makes the calls of open requests. It returns how long to wait until the next try; 0: no request is open.
// It reads the keys after the requests, because a request may need keys that were stored just before it.
func (c *Connector) finishTemplates(ctx context.Context, a *account) (next time.Duration, err error) {
	select {
	case a.calling <- struct{}{}:
		defer func() { <-a.calling }()
	case <-ctx.Done():
		return lookSoon, ctx.Err()
	}
	all, err := c.cfg.Store.OpenTemplateRequests(ctx, a.clientID(), a.session, openRequests)
	if err != nil {
		return lookSoon, fmt.Errorf("read requests about templates: %w", err)
	}
	if len(all) == 0 {
		return 0, nil
	}
	keys, err := c.readKeys(ctx, a)
	if err != nil {
		return lookSoon, err
	}
	for i := range all {
		wait, err := c.finishTemplate(ctx, a, keys, &all[i])
		if err != nil {
			return lookSoon, err
		}
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next, nil
}

// finishTemplate makes the call of one request, or finds out what became of an earlier call. It returns how long to wait
// until the next try; 0: the request has ended.
func (c *Connector) finishTemplate(ctx context.Context, a *account, keys *puntuale.OfficialKeys, r *puntuale.TemplateRequest) (time.Duration, error) {
	now := c.cfg.Clock.Now()
	switch {
	case now.Before(r.Due):
		return r.Due.Sub(now), nil
	case keys == nil || keys.BusinessAccountID != r.Account:
		return 0, c.refuseTemplate(ctx, r, puntuale.Because(reasonAccountChanged))
	}
	var err error
	var known *puntuale.NetworkTemplate
	if r.State == puntuale.RequestCalled {
		if known, err = c.foundTemplate(ctx, *keys, r); err == nil && known != nil {
			return 0, c.endTemplate(ctx, r, known)
		}
	}
	if err == nil && now.Sub(r.Made) >= puntuale.TemplateRequestLife {
		return 0, c.refuseTemplate(ctx, r, puntuale.Because(reasonNeverAnswered))
	}
	handle := ""
	if err == nil && r.Draft.Header != nil && r.Draft.Header.Media != "" {
		var refusal puntuale.Reason
		if handle, refusal, err = c.sample(ctx, *keys, r); !refusal.IsZero() {
			return 0, c.refuseTemplate(ctx, r, refusal)
		}
	}
	if err == nil {
		before := r.State
		r.State, r.Called, r.Due = puntuale.RequestCalled, now, now.Add(callTime)
		mine, stored := c.cfg.Store.ProgressTemplateRequest(ctx, *r, before)
		if stored != nil || !mine {
			return lookSoon, stored
		}
		known, err = c.askTemplate(ctx, *keys, r, handle)
		if err == nil {
			return 0, c.endTemplate(ctx, r, known)
		}
	}
	return c.afterFailure(ctx, a, r, err)
}

// afterFailure decides what a failed call means. Meta's refusal ends the request. A call that certainly did not arrive, or
// that Meta had no time for, is made again. After any other failure nobody knows what Meta did.
func (c *Connector) afterFailure(ctx context.Context, a *account, r *puntuale.TemplateRequest, err error) (time.Duration, error) {
	refusal, refused := errors.AsType[*graphError](err)
	_, unsent := errors.AsType[*unsentError](err)
	now := c.cfg.Clock.Now()
	before, wait := r.State, lookSoon
	var row rule
	if refused {
		row, _ = ruleOf(refusal.Code)
	}
	switch {
	case !refused && now.Sub(r.Made) >= puntuale.TemplateRequestLife:
		return 0, c.refuseTemplate(ctx, r, puntuale.Because(reasonNeverAnswered))
	case refused && row.action != again && row.action != slower && row.reason != reasonQuota:
		return 0, c.refuseTemplate(ctx, r, refusal.templateReason())
	case refused:
		wait = retryCall
	case !unsent:
		a.log.Info("Meta's answer about a template is lost; its list will say what became of it", "error", err)
		return max(r.Due.Sub(now), lookSoon), nil
	}
	r.Due = now.Add(wait)
	_, err = c.cfg.Store.ProgressTemplateRequest(ctx, *r, before)
	return wait, err
}

func (c *Connector) endTemplate(ctx context.Context, r *puntuale.TemplateRequest, known *puntuale.NetworkTemplate) error {
	r.State, r.Ended, r.NetworkID = puntuale.RequestDone, c.cfg.Clock.Now(), known.ID
	if err := c.cfg.Store.EndTemplateRequest(ctx, *r, known); err != nil {
		return fmt.Errorf("store what became of a template: %w", err)
	}
	return nil
}

func (c *Connector) refuseTemplate(ctx context.Context, r *puntuale.TemplateRequest, why puntuale.Reason) error {
	r.State, r.Ended, r.Reason = puntuale.RequestRefused, c.cfg.Clock.Now(), why
	if err := c.cfg.Store.EndTemplateRequest(ctx, *r, nil); err != nil {
		return fmt.Errorf("store why a template was refused: %w", err)
	}
	return nil
}

// askTemplate makes the call of a request. It returns the template as it then is.
func (c *Connector) askTemplate(ctx context.Context, k puntuale.OfficialKeys, r *puntuale.TemplateRequest, handle string) (*puntuale.NetworkTemplate, error) {
	var done struct {
		ID       string `json:"id"`
		Status   string `json:"status"`
		Category string `json:"category"`
		Success  bool   `json:"success"`
	}
	list := url.PathEscape(k.BusinessAccountID) + "/message_templates"
	one := url.PathEscape(r.NetworkID)
	switch r.Kind {
	case puntuale.CreatesTemplate:
		err := c.graph.post(ctx, r.Client, k, list, creation(r.Draft, handle), &done)
		if refusal, ok := errors.AsType[*graphError](err); ok && refusal.Subcode == duplicate { // an earlier call may have arrived
			known, lost := c.foundTemplate(ctx, k, r)
			if lost == nil && known == nil {
				return nil, err
			}
			return known, lost
		}
		if err == nil && done.ID == "" {
			err = errors.New("the answer has no id")
		}
		if err != nil {
			return nil, err
		}
		t := r.Draft.Shown()
		t.ID, t.Status, t.Category = word(done.ID), statusOf(done.Status), word(done.Category)
		if t.Category == "" {
			t.Category = r.Draft.Category
		}
		return &t, nil
	case puntuale.EditsTemplate:
		if err := c.graph.post(ctx, r.Client, k, one, edition(r, handle), &done); err != nil {
			return nil, err
		}
	case puntuale.UnpausesTemplate:
		if err := c.graph.post(ctx, r.Client, k, one+"/unpause", []byte("{}"), &done); err != nil {
			return nil, err
		}
	case puntuale.DeletesTemplate:
		err := c.graph.call(ctx, r.Client, k, http.MethodDelete, list, url.Values{"hsm_id": {r.NetworkID}, "name": {r.Name}}, nil, 0, "", &done)
		if err != nil {
			return nil, err
		}
		return &puntuale.NetworkTemplate{ID: r.NetworkID, Name: r.Name, Language: r.Language, Status: puntuale.TemplateDeleted}, nil
	}
	return c.readTemplate(ctx, k, r)
}

const templateFields = "id,name,language,status,category,quality_score,rejected_reason,parameter_format,components,source"

// readTemplate reads one template by its id.
func (c *Connector) readTemplate(ctx context.Context, k puntuale.OfficialKeys, r *puntuale.TemplateRequest) (*puntuale.NetworkTemplate, error) {
	var found metaTemplate
	if err := c.graph.call(ctx, r.Client, k, http.MethodGet, url.PathEscape(r.NetworkID), url.Values{"fields": {templateFields}}, nil, 0, "", &found); err != nil {
		return nil, err
	}
	t := found.template()
	t.Name, t.Language = r.Name, r.Language
	return &t, nil
}

// foundTemplate finds out whether an earlier call did what the request asks for. It returns nil if it did not. A template
// with the same name and language but another text is another one: Meta refuses ours.
func (c *Connector) foundTemplate(ctx context.Context, k puntuale.OfficialKeys, r *puntuale.TemplateRequest) (*puntuale.NetworkTemplate, error) {
	wanted := r.Draft.Shown()
	switch r.Kind {
	case puntuale.EditsTemplate, puntuale.UnpausesTemplate:
		t, err := c.readTemplate(ctx, k, r)
		if err != nil || r.Kind == puntuale.UnpausesTemplate && t.Status == puntuale.TemplatePaused || r.Kind == puntuale.EditsTemplate && !sameParts(t.Parts, wanted.Parts) {
			return nil, err
		}
		return t, nil
	}
	var found *puntuale.NetworkTemplate
	query := url.Values{"name": {r.Name}}
	err := pagesOf(ctx, c.graph, r.Client, k, url.PathEscape(k.BusinessAccountID)+"/message_templates", templateFields, query, func(t metaTemplate) {
		if t.Name == r.Name && languageOf(t.Language) == r.Language {
			one := t.template()
			found = &one
		}
	})
	switch {
	case err != nil:
		return nil, err
	case r.Kind == puntuale.DeletesTemplate:
		if found == nil {
			found = &puntuale.NetworkTemplate{ID: r.NetworkID, Name: r.Name, Language: r.Language, Status: puntuale.TemplateDeleted}
		} else if found.Status != puntuale.TemplateDeleted && found.Status != puntuale.TemplateDeleting {
			return nil, nil //nolint:nilnil // it is still there
		}
	case found != nil && !sameParts(found.Parts, wanted.Parts):
		return nil, &graphError{Code: 100, Subcode: duplicate}
	}
	return found, nil
}

// sameParts reports whether two lists of parts show the same.
func sameParts(a, b []puntuale.TemplatePart) bool {
	text := func(all []puntuale.TemplatePart) string {
		var out strings.Builder
		for _, kind := range []string{"HEADER", "BODY", "FOOTER", "BUTTONS"} {
			p := puntuale.NetworkTemplate{Parts: all}.Part(kind)
			fmt.Fprintf(&out, "%s\x00%s\x00%s\x00", kind, p.Format, strings.TrimSpace(p.Text))
			for _, b := range p.Buttons {
				label := b.Text
				if b.Kind == "COPY_CODE" { // Meta writes the label
					label = ""
				}
				fmt.Fprintf(&out, "%s\x00%s\x00%s\x00", b.Kind, label, b.URL)
			}
		}
		return strings.ReplaceAll(out.String(), "BODY\x00TEXT\x00", "BODY\x00\x00")
	}
	return text(a) == text(b)
}

// metaPart is a component of a template in Meta's form.
type metaPart struct {
	Kind    string       `json:"type"`
	Format  string       `json:"format,omitempty"`
	Text    string       `json:"text,omitempty"`
	Example any          `json:"example,omitempty"`
	Buttons []metaButton `json:"buttons,omitempty"`
}

type metaButton struct {
	Kind    string `json:"type"`
	Text    string `json:"text,omitempty"`
	URL     string `json:"url,omitempty"`
	Phone   string `json:"phone_number,omitempty"`
	Example any    `json:"example,omitempty"`
}

// creation returns the body of the call that creates a template. handle names the uploaded sample.
func creation(d puntuale.TemplateDraft, handle string) []byte {
	format := "positional"
	if d.Named() {
		format = "named"
	}
	return jsonOf(map[string]any{"name": d.Name, "language": d.Language, "category": d.Category, "parameter_format": format, "components": partsOf(d, handle)})
}

// edition returns the body of the call that edits a template. Meta replaces all components. The category of an approved
// template cannot change.
func edition(r *puntuale.TemplateRequest, handle string) []byte {
	body := map[string]any{"components": partsOf(r.Draft, handle)}
	if !r.WasApproved {
		body["category"] = r.Draft.Category
	}
	return jsonOf(body)
}

// partsOf returns the components of a draft, with an example for each placeholder.
func partsOf(d puntuale.TemplateDraft, handle string) (all []metaPart) {
	named := d.Named()
	example := func(part, text string) any {
		names := puntuale.TemplatePart{Text: text}.Placeholders()
		if len(names) == 0 {
			return nil
		}
		var values []string
		var pairs []map[string]string
		for i, name := range names {
			if !named {
				name = strconv.Itoa(i + 1)
			}
			values = append(values, d.Examples[name])
			pairs = append(pairs, map[string]string{"param_name": name, "example": d.Examples[name]})
		}
		switch {
		case named:
			return map[string]any{part + "_text_named_params": pairs}
		case part == "body":
			return map[string]any{"body_text": [][]string{values}}
		}
		return map[string]any{"header_text": values}
	}
	shown := d.Shown()
	for _, p := range shown.Parts {
		part := metaPart{Kind: p.Kind, Format: p.Format, Text: p.Text}
		switch p.Kind {
		case "HEADER":
			part.Example = example("header", p.Text)
			if handle != "" {
				part.Example = map[string]any{"header_handle": []string{handle}}
			}
		case "BODY":
			part.Example = example("body", p.Text)
		case "BUTTONS":
			for i, b := range d.Buttons {
				button := metaButton{Kind: p.Buttons[i].Kind, Text: p.Buttons[i].Text, URL: p.Buttons[i].URL, Phone: b.Phone}
				switch {
				case b.Kind == "copy_code":
					button.Example = b.Code
				case p.Buttons[i].Open():
					button.Example = []string{d.Example(b.URL)}
				}
				part.Buttons = append(part.Buttons, button)
			}
		}
		all = append(all, part)
	}
	return all
}

// jsonOf encodes a value of this package, which can always be encoded.
func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}
