package official

import (
	"context"
	"net/url"
	"time"

	"puntuale"
)

// directMark ends the callback of a message by Direct Send.
const directMark = ".d"

// choose sets the way of a message. refusal says why the message may not leave in this way; pauses come before it.
func (c *Connector) choose(ctx context.Context, a *account, keys puntuale.OfficialKeys, e puntuale.Envelope, p *payload, pauses []puntuale.OfficialPause, now time.Time) (refusal, err error) {
	q := puntuale.WayQuery{Content: e.Content, To: e.To, Purpose: e.Purpose, Campaign: e.Campaign, Open: !p.first, Now: now}
	var unusable error
	if t := e.Content.Official; t != nil {
		if p.missing != nil {
			unusable = p.missing
		} else {
			q.Template, unusable = c.usable(ctx, a, keys, t)
		}
		p.replies = quickReplies(q.Template)
	}
	marketing := q.Template.Category == puntuale.CategoryMarketing
	if marketing || p.first {
		if q.Ways, err = c.cfg.Store.OfficialWays(ctx, e.Client, e.Session, now); err != nil {
			return nil, err
		}
	}
	for _, w := range pauses {
		q.Failed = q.Failed || w.Kind == puntuale.PauseDirectSend && now.Before(w.Until)
	}
	p.way, _ = q.Way()
	p.ways = q.Ways
	template := templatePayload{template: p.template, category: q.Template.Category, path: marketing && !puntuale.IsNetworkGroup(e.To) && q.Ways.ByMarketingPath(now)}
	if template.path && (p.way == puntuale.WayTemplate || p.way == puntuale.WayDirectSend) {
		template.path = c.optOut(ctx, a, keys, e, q.Ways)
	}
	if p.way == puntuale.WayTemplate {
		p.category, p.path = template.category, template.path
		return unusable, nil
	}
	p.template = ""
	switch state, _ := q.Ways.DirectState(now); {
	case p.way == puntuale.WayDirectSend && e.Content.Official != nil && unusable == nil:
		p.instead = &template
	case p.way == puntuale.WayRefused && q.Ways.DirectSend && state == puntuale.DirectSendOff:
		return final(reasonDirectOff, puntuale.Because(reasonWroteLongAgo)), nil
	case p.way == puntuale.WayRefused && q.Ways.DirectSend && state == puntuale.DirectSendBlocked:
		return final(reasonDirectBlocked, puntuale.Because(reasonWroteLongAgo)), nil
	case p.way == puntuale.WayRefused:
		return final(reasonWindow, puntuale.Because(reasonWroteLongAgo)), nil
	}
	return nil, nil
}

// byDirectSend turns free text into a message that Meta sends without an approved template.
func (m *outgoing) byDirectSend() {
	m.Category = "utility"
	if m.Text != nil {
		m.Text = &textPart{Body: m.Text.Body}
	}
}

// compose sets the template's content. If Meta would refuse it, there is no template.
func (t *templatePayload) compose(e puntuale.Envelope, replies []int, payloads []string) {
	if t == nil {
		return
	}
	t.message = newOutgoing(e.To)
	content := e.Content
	content.Official = withTaps(*content.Official, replies, payloads)
	if t.message.setTemplate(content, mediaKind{}, "") != nil {
		t.template = ""
	}
}

// timeToLive returns how long Meta may try to deliver a message by Direct Send, in seconds. 0: as long as Meta does by
// itself.
func timeToLive(validUntil, now time.Time) int {
	if validUntil.IsZero() {
		return 0
	}
	return int(min(max(validUntil.Sub(now), puntuale.MinDirectTime), puntuale.MaxDirectTime) / time.Second)
}

// otherWay changes the way of a message after a refusal, if the refusal is about the way and another one is left. It
// stores what the refusal holds back.
func (c *Connector) otherWay(ctx context.Context, a *account, keys puntuale.OfficialKeys, e *graphError, prepared puntuale.Prepared, p *payload) bool {
	now := c.cfg.Clock.Now()
	switch row, _ := ruleFor(e, p.country); {
	case p.way == puntuale.WayDirectSend:
		if t := p.instead; t == nil || t.template == "" || !aboutDirectSend(e, row) {
			return false
		}
		_ = c.refuse(ctx, a, e, prepared.To, "")
		p.way, p.message, p.template, p.category, p.path = puntuale.WayTemplate, p.instead.message, p.instead.template, p.instead.category, p.instead.path
		return true
	case p.path && row.reason == reasonNotMarketing:
		a.reconsider() // the template's category has changed
		p.path = false
		return true
	case p.path && row.reason == reasonPathFailed:
		_ = c.refuse(ctx, a, e, prepared.To, p.template)
		p.path = false
		return true
	case !p.path && e.Code == puntuale.CodeMarketingClosed && p.category == puntuale.CategoryMarketing:
		_ = c.refuse(ctx, a, e, prepared.To, p.template)
		p.ways.Pauses = append(p.ways.Pauses, puntuale.OfficialPause{Kind: puntuale.PauseCategory, Code: e.Code, Until: now.Add(categoryFor)})
		p.path = p.ways.ByMarketingPath(now) && c.optOut(ctx, a, keys, prepared.Envelope, p.ways)
		return p.path
	}
	return false
}

// aboutDirectSend reports whether a refusal is about Direct Send, and not about the message.
func aboutDirectSend(e *graphError, row rule) bool {
	return row.pause.scope == puntuale.PauseDirectSend || e.Code == 132015 || e.Code == 132021
}

// pathNotAccepted is Meta's code for a business that may not use the path for marketing.
const pathNotAccepted = 134102

// creativeFeatures are the ways in which Meta may change how marketing messages look. (Meta,
// marketing-messages/send-marketing-messages.)
var creativeFeatures = []string{
	"image_brightness_and_contrast", "image_touchups", "add_text_overlay", "image_animation", "image_background_gen", "auto_promotion_tag",
	"text_extraction_for_headline", "text_extraction_for_tap_target", "product_extensions", "text_formatting_optimization",
}

// optOut tells Meta once for each business not to change how messages look, unless the client wants it. If the client
// changes its mind, optOut tells Meta this, too. It returns false if Meta does not accept the wish that nothing changes; then
// no message leaves by the path for marketing for some time.
func (c *Connector) optOut(ctx context.Context, a *account, keys puntuale.OfficialKeys, e puntuale.Envelope, w puntuale.OfficialWays) bool {
	if w.Creative == w.OptedOut.IsZero() || w.Creative && !a.mayOptIn() {
		return true
	}
	type feature struct {
		Status string `json:"enroll_status"`
	}
	now := c.cfg.Clock.Now()
	all, wish, noted := map[string]feature{}, feature{"OPT_OUT"}, now
	if w.Creative {
		wish, noted = feature{"OPT_IN"}, time.Time{}
	}
	for _, name := range creativeFeatures {
		all[name] = wish
	}
	body := jsonOf(map[string]any{"degrees_of_freedom_spec": map[string]any{"creative_features_spec": all}})
	err := c.graph.post(ctx, e.Client, keys, url.PathEscape(keys.BusinessAccountID), body, &struct{}{})
	if err == nil {
		err = c.cfg.Store.NoteOptOut(ctx, e.Client, e.Session, noted)
	}
	if err == nil {
		return true
	}
	if w.Creative {
		a.log.Warn("Meta does not take that it may change how marketing looks", "error", err)
		return true
	}
	a.log.Warn("Meta does not take that it must not change how marketing looks; marketing leaves as before", "error", err)
	c.keepPauses(ctx, a, []puntuale.OfficialPause{{
		Client: e.Client, Session: e.Session, Kind: puntuale.PauseMarketingPath, Code: codeOf(err), Reason: reasonPathFailed, Detail: storable(clip(err.Error(), 600)), At: now, Until: now.Add(pauseTime),
	}})
	return false
}

// noteWay stores that Meta took a message by Direct Send, and returns the detail of an accepted message with the mark of
// its way.
func (c *Connector) noteWay(ctx context.Context, a *account, prepared puntuale.Prepared, p *payload, detail string) string {
	switch {
	case p.way == puntuale.WayFreeText && prepared.Content.Official != nil:
		return detail + " " + puntuale.MarkFreeText
	case p.path:
		return detail + " " + puntuale.MarkMarketing
	case p.way != puntuale.WayDirectSend:
		return detail
	}
	a.mu.Lock()
	known := a.direct
	a.direct = true
	a.mu.Unlock()
	if !known && p.ways.Accepted.IsZero() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
		defer cancel()
		if err := c.cfg.Store.NoteDirectSend(ctx, prepared.Client, prepared.Session, c.cfg.Clock.Now()); err != nil {
			a.log.Warn("that Meta takes messages by Direct Send could not be kept", "error", err)
		}
	}
	return detail + " " + puntuale.MarkDirectSend
}

// notDirect returns the pauses after a message by Direct Send failed because of its way: for some time, messages to this
// person leave in another way.
func notDirect(e *graphError, row rule, m refusedMessage) (all []puntuale.OfficialPause) {
	switch e.Code {
	case 132015, 132021, 131000:
	default:
		return nil
	}
	for _, name := range m.names {
		all = append(all, puntuale.OfficialPause{
			Client: m.client, Session: m.session, Kind: puntuale.PauseDirectSend, Subject: name, Code: e.Code, Reason: row.reason, Detail: clip(e.detail(), 600),
			At: m.at, Until: m.at.Add(unreachableFor),
		})
	}
	return all
}
