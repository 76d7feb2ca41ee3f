package official

import (
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// action is what the connector does after a refusal.
type action int8

const (
	again         action = iota + 1 // send the same message later, with backoff
	slower                          // slow the number down, because it sends too fast
	slowerPair                      // slow down the messages to one person, because the person gets too many
	pauseNumber                     // no message of the number leaves for pauseTime
	noAccess                        // no message of the number leaves for noAccessFor, because the token or its rights are wrong
	pauseTemplate                   // no message with this template leaves for templateFor
	failMessage                     // fail this message
	pausePerson                     // no message to this person leaves for a day, unless the person writes
	optedOut                        // record that this person opted out of marketing
	noMarketing                     // no marketing to this person leaves for 24 hours
)

// rule is one row of the table of refusals.
type rule struct {
	action
	reason puntuale.ReasonCode
}

// Reasons why Meta refuses a message or a number.
const (
	reasonBusy           puntuale.ReasonCode = "official.busy"
	reasonMaintenance    puntuale.ReasonCode = "official.maintenance"
	reasonTooFast        puntuale.ReasonCode = "official.too_fast"
	reasonTooOften       puntuale.ReasonCode = "official.too_often" // the person got too many messages
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

// rules is the table of refusals, by error.code. (Meta, support/error-codes.)
var rules = map[int]rule{
	1: {again, reasonBusy}, 2: {again, reasonBusy}, 131000: {again, reasonBusy}, 131016: {again, reasonBusy},
	131057: {again, reasonMaintenance}, 133004: {again, reasonBusy},

	4: {slower, reasonTooFast}, 80007: {slower, reasonTooFast}, 130429: {slower, reasonTooFast},
	131056: {slowerPair, reasonTooOften},

	131048: {pauseNumber, reasonSpam},
	131064: {pauseNumber, reasonWrongCategory},
	131042: {pauseNumber, reasonPayment},
	368:    {pauseNumber, reasonBlockedAWhile},
	131031: {pauseNumber, reasonBlocked},
	130497: {pauseNumber, reasonCountry},
	131045: {pauseNumber, reasonNumber}, 133010: {pauseNumber, reasonNumber}, 33: {pauseNumber, reasonNumber},
	0: {noAccess, reasonToken}, 190: {noAccess, reasonToken},
	3: {noAccess, reasonRights}, 10: {noAccess, reasonRights}, 131005: {noAccess, reasonRights},

	132000: {pauseTemplate, puntuale.ReasonTemplateValues}, 132012: {pauseTemplate, puntuale.ReasonTemplateValues}, 132018: {pauseTemplate, puntuale.ReasonTemplateValues},
	132001: {pauseTemplate, puntuale.ReasonNoTemplate},
	132005: {pauseTemplate, reasonTemplateLong},
	132007: {pauseTemplate, reasonTemplateRules},
	132015: {pauseTemplate, puntuale.ReasonTemplatePaused},
	132016: {pauseTemplate, puntuale.ReasonTemplateDisabled},
	132068: {pauseTemplate, reasonTemplate}, 132069: {pauseTemplate, reasonTemplate}, 131063: {pauseTemplate, reasonTemplate},

	131047: {failMessage, reasonWindow},
	131051: {failMessage, reasonKind},
	131053: {failMessage, reasonMedia},
	131008: {failMessage, reasonInvalid}, 131009: {failMessage, reasonInvalid}, 100: {failMessage, reasonInvalid}, 135000: {failMessage, reasonInvalid}, 134011: {failMessage, reasonInvalid},
	131021: {failMessage, reasonSelf},

	131026: {pausePerson, reasonNotReceiving},
	130403: {pausePerson, reasonBlocksThem},
	131050: {optedOut, reasonNoMarketing},

	131049: {noMarketing, reasonMarketingLimit},
	130472: {noMarketing, reasonExperiment},
}

// ruleOf returns the row of a code, and whether there is one.
func ruleOf(code int) (rule, bool) {
	if r, ok := rules[code]; ok {
		return r, true
	}
	if code >= 200 && code <= 299 { // Meta uses these codes for errors of permissions
		return rule{noAccess, reasonRights}, true
	}
	return rule{failMessage, reasonInvalid}, false
}

// The duration of each pause. The pause of a number or a template ends earlier if a person tests the session.
const (
	pauseTime       = time.Hour        // the pause of a number
	noAccessFor     = time.Minute      // the pause of a number whose token is wrong or lacks a right
	templateFor     = 15 * time.Minute // the pause of a template
	tomorrowWait    = 24 * time.Hour
	maxSlowWait     = time.Minute
	maxPairRefusals = 5 // after this number of refusals in a row the wait stays at 4^5 s, about 17 minutes
)

// graphError is a refusal by Meta, as it is in answers and in webhooks.
type graphError struct {
	Code    int    `json:"code"`
	Subcode int    `json:"error_subcode"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
	} `json:"error_data"`
	Trace string `json:"fbtrace_id"`

	UserTitle string `json:"error_user_title"` // what Meta tells people, in the language of the account
	UserText  string `json:"error_user_msg"`
}

func (e *graphError) Error() string { return e.detail() }

// detail returns Meta's text in one line, for the field dettaglio_risposta.
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

// storable changes a text from Meta so that every database can store it.
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

// refuse does the action of a refusal, and returns the message's send error. template is "" for a message without a
// template.
func (a *account) refuse(e *graphError, to, template string) *puntuale.SendError {
	r, _ := ruleOf(e.Code)
	refusal := &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(r.reason), Detail: puntuale.Quoted(e.detail()), Err: e}
	now := a.clock.Now()
	switch r.action {
	case again:
		refusal.Kind = puntuale.Transient
	case slower:
		refusal.Kind, refusal.After = puntuale.Throttled, a.slowDown(now)
	case slowerPair:
		refusal.Kind, refusal.After = puntuale.Deferred, a.pairs.refused(to, now)
	case pauseNumber:
		refusal.Kind = puntuale.SessionDown
		a.pause(puntuale.LinkLinked, r.reason, e, pauseTime)
	case noAccess:
		refusal.Kind = puntuale.SessionDown
		a.pause(puntuale.LinkUnlinked, r.reason, e, noAccessFor)
	case pauseTemplate:
		if template != "" {
			refusal.Kind, refusal.After = puntuale.Deferred, templateFor
			a.pauseTemplate(template, refusal, now.Add(templateFor))
		}
	case pausePerson:
		if to != "" {
			a.unreachable.note(to, now, refusal, now)
		}
	case noMarketing:
		refusal.Kind, refusal.After = puntuale.Deferred, tomorrowWait
		a.marketingPauses.pauseFor(to, now.Add(tomorrowWait), now)
	}
	return refusal
}
