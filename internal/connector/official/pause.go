package official

import (
	"context"
	"time"

	"puntuale"
)

// subjects returns what a hold of a refused message concerns. It returns nil if that is not known: a status does not
// name the message's template.
func (r rule) subjects(code int, to refusedMessage) []string {
	switch r.pause.scope {
	case puntuale.PausePerson, puntuale.PauseMarketing:
		return to.names
	case puntuale.PauseCountry:
		return given(to.country)
	case puntuale.PauseTemplate:
		return given(to.template)
	case puntuale.PauseCategory:
		if code == 131064 {
			return []string{"MARKETING", "UTILITY"}
		}
		return []string{"MARKETING"}
	}
	return []string{""}
}

func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// refusedMessage is what is known about a message that Meta refused.
type refusedMessage struct {
	origin
	names    []string // the names under which messages to the person may be sent
	country  string   // "": unknown
	template string   // "": none, or unknown
	at       time.Time
	ended    time.Time // when Meta's restriction of the business ends; zero: unknown
}

// pauses returns what a refusal holds back.
func (r rule) pauses(e *graphError, m refusedMessage) (all []puntuale.OfficialPause) {
	if r.pause.scope == 0 {
		return nil
	}
	w := puntuale.OfficialPause{
		Client: m.client, Session: m.session, Kind: r.pause.scope, Code: e.Code, Reason: r.reason, Final: r.pause.final, Detail: clip(e.detail(), 600),
		At: m.at, Until: m.at.Add(r.pause.wait),
	}
	switch {
	case r.reason == reasonQuota && e.wait > 0:
		w.Until = m.at.Add(min(e.wait, maxQuotaWait))
	case r.pause.business && r.reason != reasonQuota && r.pause.scope == puntuale.PauseNumber && m.ended.After(w.Until):
		w.Until = m.ended
	}
	if r.pause.business && m.account != "" {
		w.Session, w.Account = 0, m.account
	}
	for _, w.Subject = range r.subjects(e.Code, m) {
		all = append(all, w)
	}
	if e.Code == 131064 {
		w.Kind, w.Subject = puntuale.PauseDirectSend, ""
		all = append(all, w)
	}
	return all
}

// heldBack returns the send error for a message that a pause holds back.
func heldBack(w puntuale.OfficialPause, now time.Time) *puntuale.SendError {
	refusal := &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(w.Reason), Detail: puntuale.Quoted(w.Detail), After: w.Until.Sub(now)}
	if w.Final {
		refusal.Kind, refusal.After = puntuale.Final, 0
	}
	return refusal
}

// applies reports whether a pause holds back a message now. Pauses for a person end when the person writes. A message by
// Direct Send is a utility message that the business begins, as one with a template is.
func applies(w puntuale.OfficialPause, p *payload, wrote, now time.Time) bool {
	template, category := p.template != "", p.category
	if p.way == puntuale.WayDirectSend {
		template, category = true, "UTILITY"
	}
	switch {
	case !now.Before(w.Until):
		return false
	case w.Kind == puntuale.PausePerson:
		return !wrote.After(w.At)
	case w.Kind == puntuale.PauseMarketing:
		return category == "MARKETING" && !wrote.After(w.At)
	case w.Kind == puntuale.PauseTemplate:
		return p.template != ""
	case w.Kind == puntuale.PauseCategory: // Meta did not list the template: it may be of any category
		return template && (category == w.Subject || category == "" && w.Subject == "UTILITY")
	}
	switch w.Kind {
	case puntuale.PauseTemplates:
		return template
	case puntuale.PauseFreeText:
		return !template
	}
	return w.Kind == puntuale.PauseCountry
}

// keepPauses stores pauses, so that a restart or another node obeys them, too. If they cannot be stored, they are in force
// only in the memory of this node, or until the next refusal.
func (c *Connector) keepPauses(ctx context.Context, a *account, all []puntuale.OfficialPause) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := c.cfg.Store.KeepOfficialPauses(ctx, all); err != nil {
		a.log.Warn("what Meta's refusal holds back could not be kept", "code", all[0].Code, "error", err)
	}
}

// pauseSubject names a pause of an account that concerns more than one person.
type pauseSubject struct {
	scope   puntuale.PauseKind
	subject string
}

// follow does what new pauses demand of an open session. It also remembers the pauses for templates, categories and
// countries, because messages that are already prepared must obey them, too. paused is true if the number is paused.
func (a *account) follow(all []puntuale.OfficialPause) (paused bool) {
	for _, w := range all {
		switch w.Kind {
		case puntuale.PauseNumber:
			paused = true
			a.hold(puntuale.LinkLinked, w.Reason, w.Code, w.Until)
		case puntuale.PauseTemplate, puntuale.PauseCategory, puntuale.PauseCountry:
			a.mu.Lock()
			_, known := a.holds[pauseSubject{w.Kind, w.Subject}]
			a.holds[pauseSubject{w.Kind, w.Subject}] = w
			a.mu.Unlock()
			if !known && w.Kind != puntuale.PauseCountry {
				a.log.Error("Meta refuses a template; it is held back", "reason", string(w.Reason), "subject", w.Subject)
				a.reconsider() // Meta's list shows whether the template may be used again
			}
		}
	}
	return paused
}

// learn replaces what the memory has about the pauses of a key by what the store has. all are the pauses in the store. It
// returns false if the number is paused, so that no message may leave.
func (a *account) learn(k puntuale.PauseKey, all []puntuale.OfficialPause) bool {
	a.mu.Lock()
	for _, x := range []pauseSubject{{puntuale.PauseTemplate, k.Template}, {puntuale.PauseCategory, "MARKETING"}, {puntuale.PauseCategory, "UTILITY"}, {puntuale.PauseCountry, k.Country}} {
		delete(a.holds, x)
	}
	for _, w := range all {
		if w.Kind == puntuale.PauseTemplate || w.Kind == puntuale.PauseCategory || w.Kind == puntuale.PauseCountry {
			a.holds[pauseSubject{w.Kind, w.Subject}] = w
		}
	}
	a.mu.Unlock()
	for _, w := range all {
		if w.Kind == puntuale.PauseNumber {
			a.pause(puntuale.LinkLinked, w.Reason, w.Code, w.Until)
			return false
		}
	}
	return true
}

// mayLeave returns why a prepared message may not leave after all, or nil.
func (a *account) mayLeave(p *payload, now time.Time) *puntuale.SendError {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range []pauseSubject{{puntuale.PauseCountry, p.country}, {puntuale.PauseTemplate, p.template}, {puntuale.PauseCategory, "MARKETING"}, {puntuale.PauseCategory, "UTILITY"}} {
		if w, ok := a.holds[x]; ok && (!p.path || w.Code != puntuale.CodeMarketingClosed) && applies(w, p, time.Time{}, now) {
			return heldBack(w, now)
		}
	}
	for _, w := range a.orders {
		if applies(w, p, time.Time{}, now) {
			return heldBack(w, now)
		}
	}
	return nil
}
