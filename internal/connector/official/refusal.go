package official

import (
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// action says what the connector does after a refusal.
type action int8

const (
	again      action = iota + 1 // the same message later, with backoff
	slower                       // the number sends too fast
	slowerPair                   // the number sends too much to one person
	holdNumber                   // nothing leaves from the number until a person acts, or holdFor has passed
	noAccess                     // nothing leaves for noAccessFor: the token or its rights are not good
	holdStep                     // no message with this template leaves for templateFor
	lost                         // this message never leaves
	lostPerson                   // no message to this person leaves for a day, unless they write
	optedOut                     // this person wants no more messages
	tomorrow                     // no marketing leaves to this person for 24 hours
)

// rule is a row of the table.
type rule struct {
	action
	says puntuale.ReasonCode
}

// Why Meta refuses a message, or a number.
const (
	reasonBusy           puntuale.ReasonCode = "official.busy"
	reasonMaintenance    puntuale.ReasonCode = "official.maintenance"
	reasonTooFast        puntuale.ReasonCode = "official.too_fast"
	reasonTooOften       puntuale.ReasonCode = "official.too_often" // too many messages went to one person
	reasonSpam           puntuale.ReasonCode = "official.spam"
	reasonWrongCategory  puntuale.ReasonCode = "official.wrong_category"
	reasonPayment        puntuale.ReasonCode = "official.payment"
	reasonBlockedAWhile  puntuale.ReasonCode = "official.blocked_a_while"
	reasonBlocked        puntuale.ReasonCode = "official.blocked"
	reasonCountry        puntuale.ReasonCode = "official.country"
	reasonNumber         puntuale.ReasonCode = "official.number_not_registered"
	reasonToken          puntuale.ReasonCode = "official.token_expired"
	reasonRights         puntuale.ReasonCode = "official.no_right_to_send"
	reasonTemplateLong   puntuale.ReasonCode = "official.template_too_long"
	reasonTemplateRules  puntuale.ReasonCode = "official.template_breaks_rules"
	reasonTemplate       puntuale.ReasonCode = "official.template_not_usable"
	reasonKind           puntuale.ReasonCode = "official.kind_not_allowed"
	reasonMedia          puntuale.ReasonCode = "official.file_refused"
	reasonInvalid        puntuale.ReasonCode = "official.not_accepted"
	reasonSelf           puntuale.ReasonCode = "official.sender_is_recipient"
	reasonNotReceiving   puntuale.ReasonCode = "official.recipient_unreachable"
	reasonBlocksThem     puntuale.ReasonCode = "official.recipient_blocked"
	reasonNoMarketing    puntuale.ReasonCode = "official.no_marketing_wanted"
	reasonMarketingLimit puntuale.ReasonCode = "official.marketing_limit"
	reasonExperiment     puntuale.ReasonCode = "official.experiment"
)

// rules is the table, by error.code. (Meta, support/error-codes.)
var rules = map[int]rule{
	1: {again, reasonBusy}, 2: {again, reasonBusy}, 131000: {again, reasonBusy}, 131016: {again, reasonBusy},
	131057: {again, reasonMaintenance}, 133004: {again, reasonBusy},

	4: {slower, reasonTooFast}, 80007: {slower, reasonTooFast}, 130429: {slower, reasonTooFast},
	131056: {slowerPair, reasonTooOften},

	131048: {holdNumber, reasonSpam},
	131064: {holdNumber, reasonWrongCategory},
	131042: {holdNumber, reasonPayment},
	368:    {holdNumber, reasonBlockedAWhile},
	131031: {holdNumber, reasonBlocked},
	130497: {holdNumber, reasonCountry},
	131045: {holdNumber, reasonNumber}, 133010: {holdNumber, reasonNumber}, 33: {holdNumber, reasonNumber},
	0: {noAccess, reasonToken}, 190: {noAccess, reasonToken},
	3: {noAccess, reasonRights}, 10: {noAccess, reasonRights}, 131005: {noAccess, reasonRights},

	132000: {holdStep, puntuale.ReasonTemplateValues}, 132012: {holdStep, puntuale.ReasonTemplateValues}, 132018: {holdStep, puntuale.ReasonTemplateValues},
	132001: {holdStep, puntuale.ReasonNoTemplate},
	132005: {holdStep, reasonTemplateLong},
	132007: {holdStep, reasonTemplateRules},
	132015: {holdStep, puntuale.ReasonTemplatePaused},
	132016: {holdStep, puntuale.ReasonTemplateDisabled},
	132068: {holdStep, reasonTemplate}, 132069: {holdStep, reasonTemplate}, 131063: {holdStep, reasonTemplate},

	131047: {lost, reasonWindow},
	131051: {lost, reasonKind},
	131053: {lost, reasonMedia},
	131008: {lost, reasonInvalid}, 131009: {lost, reasonInvalid}, 100: {lost, reasonInvalid}, 135000: {lost, reasonInvalid}, 134011: {lost, reasonInvalid},
	131021: {lost, reasonSelf},

	131026: {lostPerson, reasonNotReceiving},
	130403: {lostPerson, reasonBlocksThem},
	131050: {optedOut, reasonNoMarketing},

	131049: {tomorrow, reasonMarketingLimit},
	130472: {tomorrow, reasonExperiment},
}

// ruleOf finds the row of a code, and reports whether there is one.
func ruleOf(code int) (rule, bool) {
	if r, ok := rules[code]; ok {
		return r, true
	}
	if code >= 200 && code <= 299 { // permissions
		return rule{noAccess, reasonRights}, true
	}
	return rule{lost, reasonInvalid}, false
}

// How long a hold lasts. It ends earlier if a person tests the session.
const (
	holdFor      = time.Hour        // how long a number is held
	noAccessFor  = time.Minute      // how long a number is held if its token is the cause
	templateFor  = 15 * time.Minute // how long a template is held
	tomorrowWait = 24 * time.Hour
	slowMost     = time.Minute
	pairMost     = 5 // the longest wait is 4^5 s, about 17 minutes
)

// graphError is Meta's refusal, in the form of its answers and its webhooks.
type graphError struct {
	Code    int    `json:"code"`
	Subcode int    `json:"error_subcode"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
	Trace string `json:"fbtrace_id"`
}

func (e *graphError) Error() string { return e.detail() }

// detail returns Meta's words in one line, for the field dettaglio_risposta.
func (e *graphError) detail() string {
	words := e.Data.Details
	if words == "" {
		words = e.Message
	}
	if words == "" {
		words = e.Title
	}
	text := fmt.Sprintf("Meta %d", e.Code)
	if words = strings.Join(strings.Fields(words), " "); words != "" {
		text += ": " + clip(words, 500)
	}
	if e.Trace != "" {
		text += " (" + clip(e.Trace, 100) + ")"
	}
	return storable(text)
}

// storable changes a text of Meta so that every database can keep it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// clip shortens a text to about limit bytes.
func clip(text string, limit int) string {
	for i := range text {
		if i > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// refuse does to the account what a refusal asks for, and returns the send error of the message. template is "" for a
// message without a template.
func (a *account) refuse(e *graphError, to, template string) *puntuale.SendError {
	r, _ := ruleOf(e.Code)
	refusal := &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(r.says), Detail: puntuale.Quoted(e.detail()), Err: e}
	now := a.clock.Now()
	switch r.action {
	case again:
		refusal.Kind = puntuale.Transient
	case slower:
		refusal.Kind, refusal.After = puntuale.Throttled, a.slowDown(now)
	case slowerPair:
		refusal.Kind, refusal.After = puntuale.Deferred, a.pairs.refused(to, now)
	case holdNumber:
		refusal.Kind = puntuale.SessionDown
		a.hold(puntuale.LinkLinked, r.says, e, holdFor)
	case noAccess:
		refusal.Kind = puntuale.SessionDown
		a.hold(puntuale.LinkUnlinked, r.says, e, noAccessFor)
	case holdStep:
		if template != "" {
			refusal.Kind, refusal.After = puntuale.Deferred, templateFor
			a.holdTemplate(template, refusal, now.Add(templateFor))
		}
	case lostPerson:
		if to != "" {
			a.missing.note(to, now, refusal, now)
		}
	case tomorrow:
		refusal.Kind, refusal.After = puntuale.Deferred, tomorrowWait
		a.weary.rest(to, now.Add(tomorrowWait), now)
	}
	return refusal
}
