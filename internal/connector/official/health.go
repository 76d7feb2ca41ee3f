package official

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// accountChange is the content of a change that is about a number or a business. It names no phone_number_id. Each field
// of Meta's webhooks sets some of the members. (Meta, webhooks/reference.)
type accountChange struct {
	Number    string `json:"display_phone_number"`
	Event     string `json:"event"`
	Decision  string `json:"decision"`
	Violation struct {
		Type string `json:"violation_type"`
	} `json:"violation_info"`
	Restrictions []struct {
		Type       string  `json:"restriction_type"`
		Expiration seconds `json:"expiration"`
	} `json:"restriction_info"`
	Ban struct {
		State string          `json:"waba_ban_state"`
		Date  json.RawMessage `json:"waba_ban_date"`
	} `json:"ban_info"`
	Disconnection struct {
		Reason string `json:"reason"`
	} `json:"disconnection_info"`
	Alert struct {
		Type        string `json:"alert_type"`
		Description string `json:"alert_description"`
		Severity    string `json:"alert_severity"`
	} `json:"alert_info"`
	Limit     json.RawMessage `json:"max_daily_conversations_per_business"` // TIER_2K, or a number; -1: no limit
	Current   json.RawMessage `json:"current_limit"`
	Name      string          `json:"requested_verified_name"`
	Rejection string          `json:"rejection_reason"`
	Requester json.RawMessage `json:"requester"`
}

// accountFields contains what each field of Meta's webhooks about a number or a business reports.
var accountFields = map[string]func(*accountChange) []puntuale.HealthReport{
	"account_update": (*accountChange).update,
	"account_review_update": func(v *accountChange) []puntuale.HealthReport {
		return v.one(puntuale.HealthReview, "", v.Decision, "")
	},
	"account_alerts": func(v *accountChange) []puntuale.HealthReport {
		return v.one(puntuale.HealthAlert, v.Alert.Type, cmp.Or(v.Alert.Severity, "INFO"), v.Alert.Description)
	},
	"business_capability_update": (*accountChange).limit,
	"phone_number_quality_update": func(v *accountChange) []puntuale.HealthReport {
		return append(v.limit(), v.one(puntuale.HealthThroughput, "", v.Event, "")...)
	},
	"phone_number_name_update": func(v *accountChange) []puntuale.HealthReport {
		return v.one(puntuale.HealthName, "", nameStatus(v.Decision), strings.TrimPrefix(v.Name+": "+v.Rejection, ": "))
	},
	"security": func(v *accountChange) []puntuale.HealthReport { return v.one(puntuale.HealthSecurity, "", v.Event, "") },
}

// one returns a report with a value, or none without a value.
func (v *accountChange) one(kind puntuale.HealthKind, subject, value, detail string) []puntuale.HealthReport {
	if value = word(value); value == "" {
		return nil
	}
	return []puntuale.HealthReport{{Kind: kind, Subject: word(subject), Value: value, Detail: word(detail)}}
}

// directSendAbuse begins Meta's types of violations by misclassified texts.
const directSendAbuse = "DIRECT_SEND_UTILITY_CATEGORY_ABUSE_"

func (v *accountChange) update() (all []puntuale.HealthReport) {
	switch v.Event {
	case "ACCOUNT_VIOLATION":
		if strings.HasSuffix(v.Violation.Type, "_UNBAN") || strings.HasSuffix(v.Violation.Type, "_RECOVERY") { // it ends one
			break
		}
		all = v.one(puntuale.HealthViolation, "", v.Violation.Type, "")
	case "DISABLED_UPDATE":
		all = v.one(puntuale.HealthBan, "", v.Ban.State, strings.Trim(string(v.Ban.Date), `"`))
	case "ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED", "PARTNER_REMOVED", "PARTNER_APP_UNINSTALLED", puntuale.AccountReconnected:
		all = v.one(puntuale.HealthAccount, "", v.Event, v.Disconnection.Reason)
	}
	for _, x := range v.Restrictions {
		if x.Type != "" {
			all = append(all, puntuale.HealthReport{Kind: puntuale.HealthRestriction, Subject: word(x.Type), Value: "RESTRICTED", Until: x.Expiration.Time})
		}
	}
	if kind, ok := strings.CutPrefix(v.Violation.Type, directSendAbuse); ok {
		switch kind {
		case "STRIKE_1", "STRIKE_2", "OFFBOARD":
			all = append(all, v.one(puntuale.HealthDirectSend, "", "blocked", v.Violation.Type)...)
			all[len(all)-1].Until = v.directSendUntil()
		case "UNBAN":
			all = append(all, v.one(puntuale.HealthDirectSend, "", "on", v.Violation.Type)...)
			all = append(all, puntuale.HealthReport{Kind: puntuale.HealthRestriction, Subject: puntuale.RestrictedDirectSend, Value: "LIFTED", Until: time.Unix(1, 0)})
		}
	}
	return all
}

// directSendUntil returns when the restriction of Direct Send ends, if Meta names the end.
func (v *accountChange) directSendUntil() (end time.Time) {
	for _, x := range v.Restrictions {
		if x.Type == puntuale.RestrictedDirectSend {
			end = x.Expiration.Time
		}
	}
	return end
}

// How long Meta stops Direct Send after misclassified texts, if it names no end.
var strikeTimes = map[string]time.Duration{"STRIKE_1": 7 * 24 * time.Hour, "STRIKE_2": 30 * 24 * time.Hour, "OFFBOARD": 100 * 365 * 24 * time.Hour}

// limit returns the portfolio's new limit. Meta writes it as a number or by the name of a tier.
func (v *accountChange) limit() []puntuale.HealthReport {
	for _, text := range []json.RawMessage{v.Limit, v.Current} {
		name := strings.Trim(string(text), `"`)
		if name == "" || name == "null" {
			continue
		}
		limit, err := strconv.Atoi(name)
		if err != nil {
			var known bool
			if limit, known = limitOf(name); !known {
				continue
			}
		}
		return v.one(puntuale.HealthLimit, "", strconv.Itoa(max(0, limit)), "")
	}
	return nil
}

// nameStatus turns Meta's words for the state of a display name into ours. It returns "" for other words.
func nameStatus(decision string) string {
	switch strings.ToUpper(decision) {
	case "APPROVED", "AVAILABLE_WITHOUT_REVIEW":
		return "approved"
	case "PENDING", "PENDING_REVIEW", "DEFERRED":
		return "pending"
	case "REJECTED", "DECLINED", "EXPIRED":
		return "declined"
	}
	return ""
}

// account reads a change that is about a number or a business.
func (r *reader) account(read func(*accountChange) []puntuale.HealthReport, value json.RawMessage, account string, at seconds) {
	var v accountChange
	if json.Unmarshal(value, &v) != nil || account == "" {
		r.odd++
		return
	}
	r.report(plainNumber(v.Number), account, at, read(&v))
}

// report adds reports to the sessions of a business, or to those that show a number.
func (r *reader) report(number, account string, at seconds, all []puntuale.HealthReport) {
	if len(all) == 0 {
		return
	}
	r.concerns(number, account, func() {
		for _, h := range all {
			h.Client, h.Session, h.At = r.at.client, r.at.session, r.moment(at)
			if h.Kind == puntuale.HealthDirectSend && h.Value == "blocked" && h.Until.IsZero() {
				h.Until = h.At.Add(strikeTimes[strings.TrimPrefix(h.Detail, directSendAbuse)])
			}
			r.at.health = append(r.at.health, h)
		}
	})
}

// templateHealth reads what a change of a template means for people: Meta will change its category, or thinks that it
// has the wrong one. After a change of a template's text the list must be read again.
func (r *reader) templateHealth(field string, value json.RawMessage, account string, at seconds) {
	var v struct {
		templateChange
		DirectName     string `json:"name"`
		DirectLanguage string `json:"language"`
		DirectCategory string `json:"category"`
	}
	if json.Unmarshal(value, &v) != nil || account == "" {
		r.odd++
		return
	}
	if field == "message_template_components_update" {
		r.concerns("", account, func() { r.at.reread = true })
		return
	}
	name, language := cmp.Or(v.Name, v.DirectName), cmp.Or(v.Language, v.DirectLanguage)
	if name == "" {
		return
	}
	h := puntuale.HealthReport{Kind: puntuale.HealthTemplate, Subject: word(name + " " + languageOf(language)), Value: word(v.Correct), Detail: word(cmp.Or(v.Category, v.DirectCategory))}
	switch {
	case h.Value != "":
		if field == "template_category_update" {
			h.Until = v.ChangeAt.Time
		}
	case field == "template_category_update": // the change is done, so its notice ends
		h.Value, h.Until = word(v.Category), time.Unix(1, 0)
	default:
		return
	}
	r.report("", account, at, []puntuale.HealthReport{h})
}

// errors reads the errors of a change. They are about the number, and not about a message.
func (r *reader) errors(value json.RawMessage, at seconds) {
	var v struct {
		change
		Errors []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(value, &v) != nil || v.Metadata.PhoneNumberID == "" || len(v.Errors) == 0 {
		return
	}
	r.concerns(v.Metadata.PhoneNumberID, "", func() {
		for _, text := range v.Errors {
			each(r, text, func(e *graphError) bool {
				r.at.health = append(r.at.health, puntuale.HealthReport{
					Client: r.at.client, Session: r.at.session, Kind: puntuale.HealthError, Subject: strconv.Itoa(e.Code), Value: "ERROR", Detail: word(e.detail()), At: r.moment(at),
				})
				return true
			})
		}
	})
}

// Reasons why Meta's restrictions hold back messages.
const (
	reasonDisabled    puntuale.ReasonCode = "official.disabled"
	reasonReview      puntuale.ReasonCode = "official.in_review"
	reasonAccountGone puntuale.ReasonCode = "official.account_gone"
	reasonNoTemplates puntuale.ReasonCode = "official.restricted_templates"
	reasonNoFreeText  puntuale.ReasonCode = "official.restricted_free_text"
	reasonNoUtility   puntuale.ReasonCode = "official.restricted_utility"
	reasonRestricted  puntuale.ReasonCode = "official.restricted"
	untilLiftedFor                        = 24 * time.Hour // how long a message waits for the end of a restriction without a known end
)

// orders returns what confirmed reports demand: pauses of a part of the messages, or of all. gone means that the business
// is no longer connected to the app.
func orders(all []puntuale.HealthReport, now time.Time) (pauses []puntuale.OfficialPause, gone bool) {
	for _, r := range all {
		if !r.Stops() || r.Confirmed.IsZero() || !r.Until.IsZero() && !now.Before(r.Until) {
			continue
		}
		p := puntuale.OfficialPause{Client: r.Client, Session: r.Session, Kind: puntuale.PauseNumber, At: r.At, Until: r.Until, Detail: cmp.Or(r.Subject, r.Value)}
		if p.Until.IsZero() {
			p.Until = now.Add(untilLiftedFor)
		}
		switch r.Kind {
		case puntuale.HealthBan:
			p.Reason = reasonDisabled
		case puntuale.HealthReview:
			p.Reason = reasonReview
		case puntuale.HealthAccount:
			p.Reason, gone = reasonAccountGone, true
		default:
			p.Kind, p.Subject, p.Reason = restrictionOf(r.Subject)
		}
		pauses = append(pauses, p)
	}
	slices.SortStableFunc(pauses, func(a, b puntuale.OfficialPause) int { return b.Until.Compare(a.Until) })
	return pauses, gone
}

// restrictionOf returns which messages a restriction holds back. A type that this version does not know holds back
// everything, because Meta confirmed that the number is restricted.
func restrictionOf(kind string) (puntuale.PauseKind, string, puntuale.ReasonCode) {
	switch kind {
	case puntuale.RestrictedTemplates:
		return puntuale.PauseTemplates, "", reasonNoTemplates
	case puntuale.RestrictedFreeText:
		return puntuale.PauseFreeText, "", reasonNoFreeText
	case puntuale.RestrictedUtility:
		return puntuale.PauseCategory, "UTILITY", reasonNoUtility
	}
	return puntuale.PauseNumber, "", reasonRestricted
}
