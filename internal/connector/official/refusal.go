package official

import (
	"context"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// action is what happens to the message that Meta refused.
type action int8

const (
	again       action = iota + 1 // send the same message later, with backoff
	slower                        // slow the number down, because it sends too fast
	slowerPair                    // slow down the messages to one person, because the person gets too many
	pauseNumber                   // no message of the number leaves until the rule's pause ends
	noAccess                      // no message of the number leaves for noAccessFor, because the token or its rights are wrong
	waitPause                     // the message pauses until the rule's pause ends
	failMessage                   // fail this message
	optedOut                      // fail it, and record that this person opted out of marketing
)

// rule is one row of the table of refusals.
type rule struct {
	action
	reason puntuale.ReasonCode
	pause  pauseRule
}

// pauseRule says what a refusal pauses besides the message. It is stored as [puntuale.OfficialPause].
type pauseRule struct {
	scope    puntuale.PauseKind // 0: nothing
	wait     time.Duration
	business bool // all numbers of the business have to wait
	final    bool // messages that are held back fail
}

// The duration of each hold. The holds of a number, a country, a template and a category, and the hold of a person
// that Meta could not reach, end earlier if a user tests the session.
const (
	pauseTime      = time.Hour        // of a number
	noAccessFor    = time.Minute      // of a number whose token is wrong or lacks a right
	quotaTime      = 5 * time.Minute  // of a number whose hourly quota is used up, if Meta does not say how long
	maintenance    = 5 * time.Minute  // of a number that Meta works on
	templateFor    = 15 * time.Minute // of a template
	templateOut    = 24 * time.Hour   // of a template that can never be sent
	formFor        = time.Hour        // of a template with a form
	tomorrowWait   = 24 * time.Hour   // of marketing to a person
	untilTheyWrite = 30 * 24 * time.Hour
	unreachableFor = 24 * time.Hour // of a person that Meta could not reach
	countryFor     = 24 * time.Hour
	categoryFor    = time.Hour
	directSendFor  = 7 * 24 * time.Hour // of Direct Send after misclassified texts; Meta's first strike
	directSendOff  = 24 * time.Hour     // of Direct Send for a business that does not have it

	maxSlowWait     = time.Minute
	maxQuotaWait    = 24 * time.Hour
	maxPairRefusals = 5 // after this number of refusals in a row the wait stays at 4^5 s, about 17 minutes
)

var (
	ofNumber      = pauseRule{scope: puntuale.PauseNumber, wait: pauseTime}
	ofAccount     = pauseRule{scope: puntuale.PauseNumber, wait: pauseTime, business: true}
	ofQuota       = pauseRule{scope: puntuale.PauseNumber, wait: quotaTime}
	ofTemplate    = pauseRule{scope: puntuale.PauseTemplate, wait: templateFor, business: true}
	ofPerson      = pauseRule{scope: puntuale.PausePerson, wait: unreachableFor, final: true}
	ofMisuse      = pauseRule{scope: puntuale.PauseCategory, wait: categoryFor, business: true}
	ofMarketing   = pauseRule{scope: puntuale.PauseMarketing, wait: tomorrowWait}
	ofNoMarketing = pauseRule{scope: puntuale.PauseMarketing, wait: untilTheyWrite, final: true}
)

// Reasons why Meta refuses a message or a number.
const (
	reasonBusy           puntuale.ReasonCode = "official.busy"
	reasonMaintenance    puntuale.ReasonCode = "official.maintenance"
	reasonTooFast        puntuale.ReasonCode = "official.too_fast"
	reasonQuota          puntuale.ReasonCode = "official.quota"
	reasonTooOften       puntuale.ReasonCode = "official.too_often" // the person got too many messages
	reasonSpam           puntuale.ReasonCode = "official.spam"
	reasonWrongCategory  puntuale.ReasonCode = "official.wrong_category"
	reasonPayment        puntuale.ReasonCode = "official.payment"
	reasonBlockedAWhile  puntuale.ReasonCode = "official.blocked_a_while"
	reasonBlocked        puntuale.ReasonCode = "official.blocked"
	reasonDisplayName    puntuale.ReasonCode = "official.display_name"
	reasonCountry        puntuale.ReasonCode = "official.country"
	reasonNumber         puntuale.ReasonCode = "official.number_not_registered"
	reasonRegistration   puntuale.ReasonCode = "official.registration"
	reasonToken          puntuale.ReasonCode = "official.token_expired"
	reasonRights         puntuale.ReasonCode = "official.no_right_to_send"
	reasonTemplateLong   puntuale.ReasonCode = "official.template_too_long"
	reasonTemplateRules  puntuale.ReasonCode = "official.template_breaks_rules"
	reasonTemplate       puntuale.ReasonCode = "official.template_not_usable"
	reasonForm           puntuale.ReasonCode = "official.form_throttled"
	reasonTemplateDirect puntuale.ReasonCode = "official.template_of_direct_send"
	reasonTemplateClash  puntuale.ReasonCode = "official.template_conflict"
	reasonSyncing        puntuale.ReasonCode = "official.template_syncing"
	reasonKind           puntuale.ReasonCode = "official.kind_not_allowed"
	reasonMedia          puntuale.ReasonCode = "official.file_refused"
	reasonGone           puntuale.ReasonCode = "official.not_available"
	reasonInvalid        puntuale.ReasonCode = "official.not_accepted"
	reasonSelf           puntuale.ReasonCode = "official.sender_is_recipient"
	reasonNeedsNumber    puntuale.ReasonCode = "official.needs_number"
	reasonNotReceiving   puntuale.ReasonCode = "official.recipient_unreachable"
	reasonBlocksThem     puntuale.ReasonCode = "official.recipient_blocked"
	reasonNoMarketing    puntuale.ReasonCode = "official.no_marketing_wanted"
	reasonMarketingLimit puntuale.ReasonCode = "official.marketing_limit"
	reasonMarketingUS    puntuale.ReasonCode = "official.no_marketing_us"
	reasonExperiment     puntuale.ReasonCode = "official.experiment"
	reasonMarketingPath  puntuale.ReasonCode = "official.marketing_path"
	reasonPathFailed     puntuale.ReasonCode = "official.marketing_path_failed"
	reasonNotMarketing   puntuale.ReasonCode = "official.not_marketing"
	reasonDirectOff      puntuale.ReasonCode = "official.direct_send_off"
	reasonDirectBlocked  puntuale.ReasonCode = "official.direct_send_blocked"
	reasonCalls          puntuale.ReasonCode = "official.calls"
	reasonGroupRefused   puntuale.ReasonCode = "official.group_refused"
)

// rules is the table of refusals, by error.code. (Meta, support/error-codes.)
var rules = map[int]rule{
	1: {action: again, reason: reasonBusy}, 2: {action: again, reason: reasonBusy}, 131000: {action: again, reason: reasonBusy},
	131016: {action: again, reason: reasonBusy}, 131057: {action: again, reason: reasonMaintenance}, 133004: {action: again, reason: reasonBusy},

	130429: {action: slower, reason: reasonTooFast}, 131208: {action: slower, reason: reasonTooFast},
	131056: {action: slowerPair, reason: reasonTooOften},

	4:       {pauseNumber, reasonQuota, ofQuota},
	80007:   {pauseNumber, reasonQuota, pauseRule{scope: puntuale.PauseNumber, wait: quotaTime, business: true}},
	2494100: {pauseNumber, reasonMaintenance, pauseRule{scope: puntuale.PauseNumber, wait: maintenance}},
	131048:  {pauseNumber, reasonSpam, ofNumber},
	131037:  {pauseNumber, reasonDisplayName, ofNumber},
	131045:  {pauseNumber, reasonNumber, ofNumber}, 133010: {pauseNumber, reasonNumber, ofNumber}, 33: {pauseNumber, reasonNumber, ofNumber},
	131042: {pauseNumber, reasonPayment, ofAccount},
	368:    {pauseNumber, reasonBlockedAWhile, ofAccount},
	131031: {pauseNumber, reasonBlocked, ofAccount},

	0: {action: noAccess, reason: reasonToken}, 190: {action: noAccess, reason: reasonToken},
	3: {action: noAccess, reason: reasonRights}, 10: {action: noAccess, reason: reasonRights}, 131005: {action: noAccess, reason: reasonRights},

	132000: {waitPause, puntuale.ReasonTemplateValues, ofTemplate}, 132012: {waitPause, puntuale.ReasonTemplateValues, ofTemplate},
	132018: {waitPause, puntuale.ReasonTemplateValues, ofTemplate}, // see ruleFor
	132001: {waitPause, puntuale.ReasonNoTemplate, ofTemplate},
	132005: {waitPause, reasonTemplateLong, ofTemplate},
	132007: {waitPause, reasonTemplateRules, ofTemplate},
	132015: {waitPause, puntuale.ReasonTemplatePaused, ofTemplate},
	132016: {waitPause, puntuale.ReasonTemplateDisabled, ofTemplate},
	132068: {waitPause, reasonTemplate, ofTemplate},
	132069: {waitPause, reasonForm, pauseRule{scope: puntuale.PauseTemplate, wait: formFor, business: true}},
	134101: {waitPause, reasonSyncing, pauseRule{scope: puntuale.PauseTemplate, wait: 10 * time.Minute, business: true}},

	131064: {waitPause, reasonWrongCategory, ofMisuse}, // holds marketing, utility and Direct Send
	131063: {waitPause, reasonMarketingPath, ofMisuse}, // holds marketing

	131047: {action: failMessage, reason: reasonWindow},
	131051: {action: failMessage, reason: reasonKind},
	131053: {action: failMessage, reason: reasonMedia},
	131052: {action: failMessage, reason: reasonGone}, 131060: {action: failMessage, reason: reasonGone},
	131008: {action: failMessage, reason: reasonInvalid}, 131009: {action: failMessage, reason: reasonInvalid}, 100: {action: failMessage, reason: reasonInvalid},
	135000: {action: failMessage, reason: reasonInvalid}, 134011: {action: failMessage, reason: reasonInvalid}, 131059: {action: failMessage, reason: reasonInvalid},
	131021: {action: failMessage, reason: reasonSelf},
	131062: {action: failMessage, reason: reasonNeedsNumber},
	132021: {action: failMessage, reason: reasonTemplateClash},
	131055: {action: failMessage, reason: reasonNotMarketing}, 134100: {action: failMessage, reason: reasonNotMarketing},
	134102: {failMessage, reasonPathFailed, pauseRule{scope: puntuale.PauseMarketingPath, wait: pauseTime, business: true}},
	139200: {failMessage, reasonDirectBlocked, pauseRule{scope: puntuale.PauseDirectSend, wait: directSendFor, business: true}},
	138000: {action: failMessage, reason: reasonCalls}, 138006: {action: failMessage, reason: reasonCalls}, 138018: {action: failMessage, reason: reasonCalls},
	131020: {action: failMessage, reason: reasonGroupRefused}, 131041: {action: failMessage, reason: reasonGroupRefused},
	133000: {action: failMessage, reason: reasonRegistration}, 133005: {action: failMessage, reason: reasonRegistration}, 133006: {action: failMessage, reason: reasonRegistration},
	133008: {action: failMessage, reason: reasonRegistration}, 133009: {action: failMessage, reason: reasonRegistration}, 133015: {action: failMessage, reason: reasonRegistration},
	133016: {action: failMessage, reason: reasonRegistration},

	131026: {failMessage, reasonNotReceiving, ofPerson},
	130403: {failMessage, reasonBlocksThem, ofPerson},
	130497: {failMessage, reasonCountry, pauseRule{scope: puntuale.PauseCountry, wait: countryFor}},
	131050: {action: optedOut, reason: reasonNoMarketing},

	131049: {waitPause, reasonMarketingLimit, ofMarketing}, // see ruleFor
	130472: {failMessage, reasonExperiment, ofNoMarketing},
}

// ruleOf returns the row of a code, and whether there is one.
func ruleOf(code int) (rule, bool) {
	if r, ok := rules[code]; ok {
		return r, true
	}
	switch {
	case code >= 200 && code <= 299: // Meta uses these codes for errors of permissions
		return rule{action: noAccess, reason: reasonRights}, true
	case code >= 131201 && code <= 131215: // groups
		return rule{action: failMessage, reason: reasonGroupRefused}, true
	}
	return rule{action: failMessage, reason: reasonInvalid}, false
}

// ruleFor returns the rule for a refusal of a message to a person of the given country. Some codes have several
// meanings.
func ruleFor(e *graphError, country string) (r rule, known bool) {
	r, known = ruleOf(e.Code)
	details := strings.ToLower(e.Data.Details + " " + e.Message)
	switch {
	case e.Code == 100 && strings.Contains(details, "requires direct send"):
		return rule{failMessage, reasonDirectOff, pauseRule{scope: puntuale.PauseDirectSend, wait: directSendOff, business: true}}, true
	case e.Code == 132018 && strings.Contains(details, "direct send"):
		return rule{failMessage, reasonTemplateDirect, pauseRule{scope: puntuale.PauseTemplate, wait: templateOut, business: true, final: true}}, true
	case e.Code == 131049 && country == "US": // Meta delivers no marketing to such numbers
		return rule{failMessage, reasonMarketingUS, ofNoMarketing}, true
	}
	return r, known
}

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

	wait time.Duration // how long Meta says that the caller must wait, from a header; 0: unknown

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

// refuse does the action of a refusal, stores what it holds back, and returns the message's send error. template is ""
// for a message without a template.
func (c *Connector) refuse(ctx context.Context, a *account, e *graphError, to, template string) *puntuale.SendError {
	now := a.clock.Now()
	country := c.countryOf(to)
	r, known := ruleFor(e, country)
	if !known {
		c.unknownCode(a, e)
	}
	refusal := &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(r.reason), Detail: puntuale.Quoted(e.detail()), Err: e}
	pauses := r.pauses(e, refusedMessage{origin: a.origin(), names: given(to), country: country, template: template, at: now, ended: a.restrictionEnd()})
	switch r.action {
	case again:
		refusal.Kind = puntuale.Transient
	case slower:
		refusal.Kind, refusal.After = puntuale.Throttled, a.slowDown(now)
	case slowerPair:
		refusal.Kind, refusal.After = puntuale.Deferred, a.pairs.refused(to, now)
	case pauseNumber:
		refusal.Kind = puntuale.SessionDown
	case noAccess:
		refusal.Kind = puntuale.SessionDown
		a.pause(puntuale.LinkUnlinked, r.reason, e.Code, now.Add(noAccessFor))
	case waitPause:
		if len(pauses) > 0 {
			refusal.Kind, refusal.After = puntuale.Deferred, pauses[0].Until.Sub(now)
		}
	}
	c.keepPauses(ctx, a, pauses)
	if a.follow(pauses) {
		ring(a.wake)
	}
	return refusal
}

// unknownCode informs the operator about a code that is not in the table of refusals. Such a refusal is final for the
// message.
func (c *Connector) unknownCode(a *account, e *graphError) {
	log := c.cfg.Logger
	if a != nil {
		log = a.log
	}
	log.Warn("Meta refuses a message with a code that this version does not know", "code", e.Code, "subcode", e.Subcode)
	if c.cfg.UnknownCode != nil {
		c.cfg.UnknownCode()
	}
}

// countryOf returns the country of a person as two letters, or "" if it is unknown. Meta's id of a person begins with
// the country.
func (c *Connector) countryOf(to string) string {
	switch {
	case puntuale.IsPersonID(to):
		return to[:2]
	case c.cfg.Country != nil && strings.HasPrefix(to, "+"):
		return c.cfg.Country(to)
	}
	return ""
}
