package official

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"puntuale"
)

// Limits for reading the list of templates.
const (
	syncEvery   = time.Hour
	syncSoonest = 5 * time.Minute // the shortest time between two reads, because Meta limits such requests
	pageSize    = "100"
	maxPages    = 60 // enough for 6,000 templates, the most that a business may have
)

// Reasons why templates cannot be read, or why messages with a template must wait.
const (
	reasonNoAccount    puntuale.ReasonCode = "official.no_account"
	reasonOtherAccount puntuale.ReasonCode = "official.other_account"
	reasonNoManagement puntuale.ReasonCode = "official.no_right_to_manage"
	reasonStateAtMeta  puntuale.ReasonCode = "official.template_state" // {1}: the state, as Meta names it
)

// syncTemplates reads the templates of the session's business. It does nothing if the keys name no business, or if the
// templates were read less than syncEvery ago.
func (c *Connector) syncTemplates(ctx context.Context, a *account, k puntuale.OfficialKeys, now time.Time) error {
	if k.BusinessAccountID == "" || !a.syncDue(now) {
		return nil
	}
	all, err := c.readTemplates(ctx, a.clientID(), k)
	refusal, refused := errors.AsType[*graphError](err)
	switch {
	case refused:
		return c.cfg.Store.KeepNetworkTemplates(ctx, a.session, k.BusinessAccountID, now, nil, explainTemplates(refusal))
	case errors.Is(err, errOtherAccount):
		return c.cfg.Store.KeepNetworkTemplates(ctx, a.session, k.BusinessAccountID, now, nil, puntuale.Because(reasonOtherAccount))
	case err != nil:
		a.log.Info("Meta does not answer about templates", "error", err)
		a.syncAgain()
		return c.cfg.Store.KeepNetworkTemplates(ctx, a.session, k.BusinessAccountID, now, nil, puntuale.Because(reasonSilentTryAgain))
	}
	if err := c.cfg.Store.KeepNetworkTemplates(ctx, a.session, k.BusinessAccountID, now, all, puntuale.Reason{}); err != nil {
		a.syncAgain()
		return err
	}
	return nil
}

var errOtherAccount = errors.New("the number is not one of the business's")

// readTemplates reads all templates of a business. It returns an error if the number does not belong to the business.
func (c *Connector) readTemplates(ctx context.Context, client puntuale.ClientID, k puntuale.OfficialKeys) ([]puntuale.NetworkTemplate, error) {
	path := url.PathEscape(k.BusinessAccountID)
	mine := false
	if err := pages(ctx, c.graph, client, k, path+"/phone_numbers", "id", func(n struct {
		ID string `json:"id"`
	}) {
		mine = mine || n.ID == k.PhoneNumberID
	}); err != nil {
		return nil, err
	}
	if !mine {
		return nil, errOtherAccount
	}
	var all []puntuale.NetworkTemplate
	err := pages(ctx, c.graph, client, k, path+"/message_templates", templateFields, func(t metaTemplate) {
		if t.Source == generated { // Meta made it for a direct send, and refuses it in any other message
			return
		}
		if t.Name != "" && t.Language != "" && !slices.ContainsFunc(all, func(o puntuale.NetworkTemplate) bool { return o.Name == t.Name && o.Language == languageOf(t.Language) }) {
			all = append(all, t.template())
		}
	})
	return all, err
}

// badCursor is Meta's code for a cursor that is no longer valid.
const badCursor = 131059

// pages requests all pages of a list, and calls take for each entry. If Meta no longer accepts its own cursor, pages
// begins again, once; take may then get an entry twice.
func pages[T any](ctx context.Context, g *graph, client puntuale.ClientID, k puntuale.OfficialKeys, path, fields string, take func(T)) error {
	return pagesOf(ctx, g, client, k, path, fields, nil, take)
}

// pagesOf is pages with further members of the query.
func pagesOf[T any](ctx context.Context, g *graph, client puntuale.ClientID, k puntuale.OfficialKeys, path, fields string, more url.Values, take func(T)) error {
	after, again := "", true
	for range maxPages {
		var page struct {
			Data   []json.RawMessage `json:"data"`
			Paging struct {
				Cursors struct {
					After string `json:"after"`
				} `json:"cursors"`
				Next string `json:"next"`
			} `json:"paging"`
		}
		query := url.Values{"fields": {fields}, "limit": {pageSize}}
		for name := range more {
			query.Set(name, more.Get(name))
		}
		if after != "" {
			query.Set("after", after)
		}
		err := g.call(ctx, client, k, http.MethodGet, path, query, nil, 0, "", &page)
		if refusal, ok := errors.AsType[*graphError](err); ok && refusal.Code == badCursor && after != "" && again {
			after, again = "", false
			continue
		}
		if err != nil {
			return err
		}
		for _, text := range page.Data {
			var entry T
			if json.Unmarshal(text, &entry) == nil { // an entry in a form of tomorrow does not hide the others
				take(entry)
			}
		}
		// Use only the cursor of the next page, not its address. With the address, the answer could make the connector
		// send the token to any host.
		if after = page.Paging.Cursors.After; page.Paging.Next == "" || after == "" {
			return nil
		}
	}
	return errors.New("a list of Meta's does not end")
}

// metaTemplate is a template in Meta's list.
type metaTemplate struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Language string `json:"language"`
	Status   string `json:"status"`
	Category string `json:"category"`
	Quality  struct {
		Score string `json:"score"`
	} `json:"quality_score"`
	Rejected   string            `json:"rejected_reason"`
	Format     string            `json:"parameter_format"`
	Components []json.RawMessage `json:"components"`
	Source     string            `json:"source"`
}

// parts returns the components. One that this version cannot read is kept without its content.
func (t metaTemplate) parts() (all []puntuale.TemplatePart) {
	for _, text := range t.Components {
		p := part[puntuale.TemplatePart](text)
		if p.Kind == "" {
			p.Kind = cmp.Or(part[struct{ Type string }](text).Type, "UNKNOWN")
		}
		all = append(all, p)
	}
	return all
}

// generated is the source of a template that Meta made itself for a direct send.
const generated = "AUTO_GENERATED"

func (t metaTemplate) template() puntuale.NetworkTemplate {
	out := puntuale.NetworkTemplate{
		Name: word(t.Name), Language: languageOf(t.Language), ID: word(t.ID), Status: statusOf(t.Status), Category: word(t.Category),
		Quality: word(t.Quality.Score), Reason: reasonOf(t.Rejected), Named: strings.EqualFold(t.Format, "NAMED"), Parts: t.parts(),
	}
	for i := range out.Parts {
		p := &out.Parts[i]
		p.Kind, p.Format, p.Text = word(p.Kind), word(p.Format), storable(clip(p.Text, 8000))
		for j := range p.Buttons {
			b := &p.Buttons[j]
			b.Kind, b.Text, b.URL = word(b.Kind), storable(clip(b.Text, 500)), storable(clip(b.URL, 2000))
		}
	}
	return out
}

// statusOf parses a template's state, from the list or from an event. A template that Meta restored, or only warned
// about, is approved.
func statusOf(text string) puntuale.TemplateStatus {
	switch text = strings.ToUpper(word(text)); text {
	case "REINSTATED", "FLAGGED", "UNARCHIVED", "UNPAUSED":
		return puntuale.TemplateApproved
	case "LOCKED", "UNLOCKED": // the event is about who may edit the template, not about sending
		return ""
	}
	return puntuale.TemplateStatus(text)
}

func reasonOf(text string) string {
	if text = word(text); text == "NONE" {
		return ""
	}
	return text
}

// languageOf returns a language with an underscore, as in Meta's lists. Webhooks may use a hyphen.
func languageOf(text string) string { return strings.ReplaceAll(word(text), "-", "_") }

// word returns a text from Meta in a form that can be stored, at most about 600 bytes long.
func word(text string) string { return storable(clip(text, 600)) }

// explainTemplates returns why templates cannot be read.
func explainTemplates(e *graphError) puntuale.Reason {
	r, _ := ruleOf(e.Code)
	reason := explain(e)
	switch {
	case e.Code == 100 && e.Subcode == missingObject:
		reason = puntuale.Because(reasonNoAccount)
	case r.action == noAccess && r.reason == reasonRights:
		reason = puntuale.Because(reasonNoManagement)
	}
	return withCode(reason, e.Code)
}

// usable returns what is known about a template. Its error says why the template must not be used now. The error is nil
// if the template may be used, or if its state is unknown.
func (c *Connector) usable(ctx context.Context, a *account, k puntuale.OfficialKeys, t *puntuale.Approved) (known puntuale.NetworkTemplate, err error) {
	if k.BusinessAccountID == "" {
		return known, nil
	}
	known, found, err := c.cfg.Store.NetworkTemplate(ctx, a.clientID(), k.BusinessAccountID, t.Name, languageOf(t.Language))
	if err != nil || !found {
		return puntuale.NetworkTemplate{}, err
	}
	state := string(known.Status)
	if known.Reason != "" {
		state += " (" + known.Reason + ")"
	}
	detail := puntuale.Because(reasonStateAtMeta, state)
	switch use, reason := known.Status.Use(); use {
	case puntuale.TemplateWaits:
		return known, &puntuale.SendError{Kind: puntuale.Deferred, Reason: reason, Detail: detail, After: templateFor}
	case puntuale.TemplateUnusable:
		return known, &puntuale.SendError{Kind: puntuale.Final, Reason: reason, Detail: detail}
	}
	if known.Held {
		return known, &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(puntuale.ReasonTemplateCostlier), Detail: puntuale.Because(reasonStateAtMeta, known.Category), After: templateFor}
	}
	return known, nil
}
