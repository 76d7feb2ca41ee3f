package puntuale

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// OfficialKeys contains what a session of type Official needs to call WhatsApp's Cloud API. It also contains what the
// session needs to check the requests of this API to its webhook. The vault seals the JSON form.
type OfficialKeys struct {
	PhoneNumberID string `json:"phone_number_id"` // Meta's id of the number, only digits
	AccessToken   string `json:"access_token"`
	AppSecret     string `json:"app_secret"`
	VerifyToken   string `json:"verify_token"` // the server returns this token when Meta verifies the webhook

	// BusinessAccountID is Meta's id of the WhatsApp business that owns the number and its templates. If it is "",
	// the server does not read the business's templates.
	BusinessAccountID string `json:"business_account_id,omitempty"`

	// AppID is Meta's id of the app that the token belongs to. If it is "", templates with a sample file cannot be made.
	AppID string `json:"app_id,omitempty"`

	GroupsAPI bool `json:"groups_api,omitempty"` // the account may write to groups
}

// Limits of keys, in characters.
const (
	MaxPhoneNumberID = 64
	MaxOfficialKey   = 4096
)

// JSON returns the form that the vault seals.
func (k OfficialKeys) JSON() []byte { return jsonOf(k) }

// SealedOfficial is the argument purpose of Vault.Seal for an Official session's keys. Their place is [SessionID.SealPlace].
const SealedOfficial = "official"

// OfficialWebhooks is the beginning of the path of every Official session's webhook. After it comes the session's id.
const OfficialWebhooks = "/webhooks/official/"

// WebhookPath returns the path to which Meta posts reports for an Official session.
func (id SessionID) WebhookPath() string { return OfficialWebhooks + id.String() }

// ServiceWindow is the 24-hour window: the time after a person's last message in which the person may get free text.
const ServiceWindow = 24 * time.Hour

// KeyChange makes a session's new sealed keys from the old ones. The argument old is nil if the session has no keys.
// The store may call KeyChange more than once. The result mark is [GatewayKeys.Mark] of the new keys. Keys that are not
// a gateway's have the mark "".
type KeyChange func(old []byte) (sealed []byte, mark string, err error)

// Upload names a file by its content.
type Upload struct {
	Client  ClientID
	Session SessionID
	Number  string // the network's id of the sending number; an upload can be used only with this number
	Hash    string // hash of the content and its media type
}

// PauseKind says which messages of a number an [OfficialPause] holds back. The database contains its number.
type PauseKind int8

// The scopes of pauses. The first two end early when the person writes.
const (
	PausePerson        PauseKind = iota + 1 // all messages to the person in the subject
	PauseMarketing                          // marketing to the person in the subject
	PauseCountry                            // all messages to people of the country in the subject, two letters
	PauseTemplate                           // messages with the template in the subject: its name, a space, its language
	PauseCategory                           // messages with templates of the category in the subject: MARKETING or UTILITY
	PauseNumber                             // everything
	PauseDirectSend                         // utility messages without a template
	PauseMarketingPath                      // messages by Meta's own path for marketing
	PauseTemplates                          // all messages with a template
	PauseFreeText                           // all messages without a template
)

// OfficialPause says that Meta refused a message, and that certain other messages must not leave before a time. One that
// concerns all numbers of a business has no Session but an Account.
type OfficialPause struct {
	Client  ClientID
	Session SessionID
	Account string
	Kind    PauseKind
	Subject string
	Code    int // Meta's code
	Reason  ReasonCode
	Final   bool   // the messages fail instead of waiting
	Detail  string // Meta's text
	At      time.Time
	Until   time.Time
}

// PauseKey names the pauses that may hold back a message, and the person that the message is for.
type PauseKey struct {
	Client   ClientID
	Session  SessionID
	Account  string // "": unknown
	To       string
	Country  string // "": unknown
	Template string // see [PauseTemplate]; "" for a message without a template
	Now      time.Time
}

// WaySettings say which of Meta's optional ways an Official session may use.
type WaySettings struct {
	DirectSend bool // service messages may leave outside the 24-hour window without an approved template
	Marketing  bool // marketing templates leave by Meta's own path for marketing
	Creative   bool // on this path, Meta may change how messages look
}

// DirectSendState says whether Meta takes messages without an approved template.
type DirectSendState string

// The states of Direct Send. Only a message shows whether a business has it.
const (
	DirectSendUnknown DirectSendState = "unknown"
	DirectSendOn      DirectSendState = "on"
	DirectSendOff     DirectSendState = "off"     // the business does not have it
	DirectSendBlocked DirectSendState = "blocked" // Meta stopped it for some time
)

// OfficialWays contains a session's settings, and what Meta's answers say about the ways.
type OfficialWays struct {
	WaySettings
	Accepted time.Time       // when Meta first took a message by Direct Send; zero: never
	OptedOut time.Time       // when the business told Meta not to change how messages look; zero: never
	Pauses   []OfficialPause // those of Direct Send and of the marketing path, and the one that closes the usual path to marketing
}

// CodeMarketingClosed is Meta's code for a business that sends marketing only by Meta's own path for marketing.
const CodeMarketingClosed = 131063

// CodeNotEnabled is Meta's code for a business without Direct Send.
const CodeNotEnabled = 100

// DirectState returns the state of Direct Send, and when it ends. Zero: the state has no known end.
func (w OfficialWays) DirectState(now time.Time) (DirectSendState, time.Time) {
	for _, p := range w.Pauses {
		switch {
		case p.Kind != PauseDirectSend || !now.Before(p.Until):
		case p.Code == CodeNotEnabled:
			return DirectSendOff, p.Until
		default:
			return DirectSendBlocked, p.Until
		}
	}
	if w.Accepted.IsZero() {
		return DirectSendUnknown, time.Time{}
	}
	return DirectSendOn, time.Time{}
}

// ByMarketingPath reports whether marketing templates leave by Meta's own path for marketing: because the client wants
// it, or because Meta takes them nowhere else.
func (w OfficialWays) ByMarketingPath(now time.Time) bool {
	wanted := w.Marketing
	for _, p := range w.Pauses {
		switch {
		case !now.Before(p.Until):
		case p.Kind == PauseMarketingPath:
			return false
		case p.Code == CodeMarketingClosed:
			wanted = true
		}
	}
	return wanted
}

// MessageWay is the way in which a message of an Official session leaves.
type MessageWay string

// The ways of a message.
const (
	WayFreeText   MessageWay = "free_text"
	WayDirectSend MessageWay = "direct_send"
	WayTemplate   MessageWay = "template"
	WayRefused    MessageWay = "refused"
)

// Reasons for the way of a message.
const (
	reasonWindowOpen    ReasonCode = "way.window_open"
	reasonDirectSend    ReasonCode = "way.direct_send"
	reasonWindowClosed  ReasonCode = "way.window_closed"
	reasonTemplateShows ReasonCode = "way.template_shows" // the window is open, but free text cannot replace the template
	reasonMarketingPath ReasonCode = "way.marketing_path"
	reasonNoTemplate    ReasonCode = "way.no_template"
	reasonDirectMissing ReasonCode = "way.direct_send_off"
	reasonDirectStopped ReasonCode = "way.direct_send_blocked"
	reasonDirectUnfit   ReasonCode = "way.direct_send_unfit" // Direct Send cannot send such a message
)

// WayQuery contains all that decides about the way of a message.
type WayQuery struct {
	Content  Content
	To       string
	Purpose  Purpose
	Campaign bool            // the message belongs to a campaign
	Open     bool            // the person's 24-hour window is open when the message leaves
	Template NetworkTemplate // what is known about the content's approved template
	Ways     OfficialWays
	Failed   bool // a message by Direct Send to this person failed a short time ago
	Now      time.Time
}

// Way returns the way of a message, and the reason for it. Planning, checks, previews and sending all use this function.
func (q WayQuery) Way() (MessageWay, ReasonCode) {
	direct, missing := q.direct()
	switch {
	case q.Open && q.freeText():
		return WayFreeText, reasonWindowOpen
	case direct && q.freeText():
		return WayDirectSend, reasonDirectSend
	case q.Content.Official == nil:
		return WayRefused, missing
	case q.Template.Category == CategoryMarketing && !IsNetworkGroup(q.To) && q.Ways.ByMarketingPath(q.Now):
		return WayTemplate, reasonMarketingPath
	case q.Open:
		return WayTemplate, reasonTemplateShows
	}
	return WayTemplate, reasonWindowClosed
}

// freeText reports whether free text can replace the message's template, if it has one. Marketing leaves by its template,
// because the template says how to opt out.
func (q WayQuery) freeText() bool {
	c := &q.Content
	if c.Official == nil {
		return true
	}
	for _, b := range c.Official.Buttons {
		if b.Kind != ButtonReply {
			return false
		}
	}
	return c.Text != "" && c.Latitude == nil && q.Purpose != PurposeMarketing && q.Template.Category != CategoryMarketing &&
		len(q.Template.Part("BUTTONS").Buttons) <= len(c.Buttons())
}

// Marks of a way in the detail of a message that Meta took. Without a mark, the message left as its content says.
const (
	MarkDirectSend = "(direct_send)"
	MarkFreeText   = "(free_text)" // instead of the content's template
	MarkMarketing  = "(marketing_messages)"
)

// taken returns the way of a message that Meta took, as its detail says.
func (m *MessageDetail) taken() (MessageWay, ReasonCode) {
	detail := strings.Join(m.Detail.Args, " ")
	switch {
	case strings.HasSuffix(detail, MarkDirectSend):
		return WayDirectSend, reasonDirectSend
	case strings.HasSuffix(detail, MarkFreeText), m.Content.Official == nil:
		return WayFreeText, reasonWindowOpen
	case strings.HasSuffix(detail, MarkMarketing):
		return WayTemplate, reasonMarketingPath
	}
	return WayTemplate, ""
}

// TellWay sets the way of a message of an Official session. q says what decides about a message that is still open.
func (m *MessageDetail) TellWay(q WayQuery) {
	switch {
	case m.State == Completed:
		m.Way, m.WayReason = m.taken()
	case m.State == Failed && strings.HasSuffix(strings.Join(m.Detail.Args, " "), MarkDirectSend):
		m.Way, m.WayReason = WayDirectSend, reasonDirectSend
	case m.State == Failed && strings.HasPrefix(string(m.Reason.Code), "official.direct_send"), m.State == Failed && m.Reason.Code == "official.outside_window":
		m.Way, m.WayReason = WayRefused, m.Reason.Code
	case m.State == Pending:
		m.Way, m.WayReason = q.Way()
	}
}

// Limits of a message by Direct Send. (Meta, direct-send.)
const (
	maxDirectText = 1024 // characters
	MinDirectTime = 30 * time.Second
	MaxDirectTime = 12 * time.Hour
)

// direct reports whether the message may leave by Direct Send, and why it may not. Meta takes a text, with or without
// reply buttons or a link. A person whose number is hidden is not known to get such messages.
func (q WayQuery) direct() (may bool, missing ReasonCode) {
	c := &q.Content
	state, _ := q.Ways.DirectState(q.Now)
	switch {
	case !q.Ways.DirectSend || q.Purpose == PurposeMarketing:
		return false, reasonNoTemplate
	case q.Campaign || q.Failed || !strings.HasPrefix(q.To, "+") || c.Text == "" || c.MediaURL != "" || c.Latitude != nil || c.Interactive != nil && c.Interactive.Link == nil || utf8.RuneCountInString(c.Text) > maxDirectText:
		return false, reasonDirectUnfit
	case state == DirectSendOff:
		return false, reasonDirectMissing
	case state == DirectSendBlocked:
		return false, reasonDirectStopped
	}
	return true, ""
}

// OfficialFields are the fields of Meta's webhooks to which a business must subscribe the app. A business whose people also
// write in the WhatsApp Business app needs smb_message_echoes, too.
var OfficialFields = []string{
	"messages", "user_preferences", "message_template_status_update", "message_template_quality_update", "message_template_components_update",
	"template_category_update", "template_correct_category_detection", "account_update", "account_review_update", "account_alerts",
	"business_capability_update", "phone_number_quality_update", "phone_number_name_update", "security",
}

// HealthKind says what a [HealthReport] is about. The database contains the word.
type HealthKind string

// The kinds of reports. Some have a subject.
const (
	HealthQuality     HealthKind = "quality"     // of the number: GREEN, YELLOW, RED
	HealthLimit       HealthKind = "limit"       // of the portfolio: how many people in 24 hours; 0: any number
	HealthName        HealthKind = "name"        // of a display name that was asked for: approved, pending, declined
	HealthNameStatus  HealthKind = "name_status" // of the display name that people see now, by Meta's answer; as HealthName
	HealthReview      HealthKind = "review"      // of the business: APPROVED, REJECTED, PENDING, DEFERRED
	HealthBan         HealthKind = "ban"         // of the business: DISABLE, SCHEDULE_FOR_DISABLE, REINSTATE
	HealthAccount     HealthKind = "account"     // Meta's event that connects the business to the app, or ends the connection
	HealthRestriction HealthKind = "restriction" // the subject is Meta's type of restriction
	HealthViolation   HealthKind = "violation"   // the value is Meta's type of violation
	HealthAlert       HealthKind = "alert"       // the subject is Meta's type of alert
	HealthSecurity    HealthKind = "security"    // the value is Meta's event about the PIN
	HealthTemplate    HealthKind = "template"    // the subject is a template: its name, a space, its language; the value is the category that Meta wants
	HealthDirectSend  HealthKind = "direct_send" // of the business: on, off, blocked
	HealthCanSend     HealthKind = "can_send"    // AVAILABLE, LIMITED, BLOCKED
	HealthPortfolio   HealthKind = "portfolio"   // Meta's id of the portfolio
	HealthError       HealthKind = "error"       // the subject is Meta's code
	HealthThroughput  HealthKind = "throughput"  // of the number: Meta's event
	HealthChecked     HealthKind = "checked"     // the server asked Meta about the number
	HealthWebhook     HealthKind = "webhook"     // the subject is "verified" (Meta checked the address) or "delivered" (a signed delivery came)
	HealthSubscribed  HealthKind = "subscribed"  // of the business: "yes", or "no" if Meta sends its reports to no app of ours
	HealthPayment     HealthKind = "payment"     // of the business: "ok" or "problem", as Meta's answer about the number says
)

// HealthReport is something that Meta says about the number or the business of an Official session. A later report about
// the same subject replaces it.
type HealthReport struct {
	Client    ClientID
	Session   SessionID
	Kind      HealthKind
	Subject   string
	Value     string
	Detail    string // Meta's words, which people read
	At        time.Time
	Until     time.Time // when it ends; zero: unknown
	Confirmed time.Time // when Meta's answer about the number confirmed it; zero: it did not
}

// Subjects of a [HealthWebhook].
const (
	WebhookVerified  = "verified"
	WebhookDelivered = "delivered"
)

// Stops reports whether a confirmed report of this kind and value holds back messages.
func (r HealthReport) Stops() bool {
	switch r.Kind {
	case HealthReview:
		return r.Value != "APPROVED"
	case HealthBan:
		return r.Value == "DISABLE" || r.Value == "SCHEDULE_FOR_DISABLE"
	case HealthAccount:
		return r.Value != AccountReconnected
	case HealthRestriction:
		return r.Subject != RestrictedDirectSend && r.Subject != RestrictedAddNumber
	}
	return false
}

// Meta's words for whether a number and its business can send, the worst last. MetaHides is ours: the token may not see them.
const (
	MetaAvailable = "AVAILABLE"
	MetaLimited   = "LIMITED"
	MetaBlocked   = "BLOCKED"
	MetaHides     = "HIDDEN"
)

// ConfirmedBy reports whether Meta's answer about the number and the business confirms a report that stops messages. A
// limited number still sends, so this confirms only restrictions. A business that left the app is hidden, but a token that
// lost a right cannot see it either, so this confirms nothing else.
func (r HealthReport) ConfirmedBy(can string) bool {
	switch {
	case !r.Stops():
		return false
	case r.Kind == HealthRestriction:
		return can == MetaLimited || can == MetaBlocked
	case r.Kind == HealthAccount:
		return can == MetaBlocked || can == MetaHides
	}
	return can == MetaBlocked
}

// AccountReconnected is the value of a [HealthAccount] by which the business is connected again.
const AccountReconnected = "ACCOUNT_RECONNECTED"

// Meta's types of restrictions.
const (
	RestrictedTemplates  = "RESTRICTED_BIZ_INITIATED_MESSAGING"
	RestrictedFreeText   = "RESTRICTED_CUSTOMER_INITIATED_MESSAGING"
	RestrictedUtility    = "RESTRICTED_UTILITY_TEMPLATES"
	RestrictedDirectSend = "RESTRICTED_DIRECT_SEND_UTILITY_TEMPLATES"
	RestrictedAddNumber  = "RESTRICTED_ADD_PHONE_NUMBER_ACTION"
)

// shownFor is how long people see a report that has no end.
const shownFor = 7 * 24 * time.Hour

// inForce reports whether a report counts now. One that stops messages counts only after Meta confirmed it.
func (r HealthReport) inForce(now time.Time) bool {
	switch {
	case !r.Until.IsZero() && !now.Before(r.Until), r.Stops() && r.Confirmed.IsZero():
		return false
	case r.Kind == HealthViolation, r.Kind == HealthAlert, r.Kind == HealthSecurity, r.Kind == HealthError, r.Kind == HealthTemplate:
		return now.Sub(r.At) < shownFor
	}
	return r.Kind != HealthName || now.Sub(r.At) < nameFor
}

// nameFor is how long Meta's decision about a display name that was asked for counts more than the state of the present
// name.
const nameFor = 30 * 24 * time.Hour

// SessionHealth summarises what Meta says about the number and the business of a session.
type SessionHealth struct {
	Quality         string // GREEN, YELLOW, RED; "": unknown
	Limit           int    // how many people the portfolio may address in 24 hours; 0: any number, or unknown
	Restriction     string // Meta's word for the restriction in force; "": none
	RestrictedUntil time.Time
	DisplayName     string   // approved, pending, declined; "": unknown
	PausedTemplates []string // their names
	DirectSend      DirectSendState
	Verified        time.Time    // when Meta last checked the webhook's address; zero: never
	Delivered       time.Time    // when a signed delivery last came, to the hour; zero: never
	Subscribed      HealthReport // see [HealthSubscribed]; without a value: unknown
	Payment         HealthReport // see [HealthPayment]; without a value: unknown
	Checked         time.Time
	FreeService     int64    // service messages of the month for which Meta told that it does not bill them
	Advice          []Reason // what people should know or do, the most important first
}

// HealthOf summarises reports, which are in the order of their kinds, and what Meta's answers say about ways.
func HealthOf(all []HealthReport, ways OfficialWays, paused []string, now time.Time) SessionHealth {
	h := SessionHealth{PausedTemplates: paused}
	h.DirectSend, _ = ways.DirectState(now)
	var stops, others []Reason
	for _, r := range all {
		if r.Kind == HealthChecked {
			h.Checked = r.At
		}
		if !r.inForce(now) {
			continue
		}
		switch r.Kind {
		case HealthQuality:
			if r.Value == "GREEN" || r.Value == "YELLOW" || r.Value == "RED" {
				h.Quality = r.Value
			}
		case HealthLimit:
			h.Limit, _ = strconv.Atoi(r.Value) // the connector wrote the number
		case HealthName:
			h.DisplayName = r.Value
		case HealthNameStatus: // comes after HealthName
			h.DisplayName = cmp.Or(h.DisplayName, r.Value)
		case HealthDirectSend:
			if h.DirectSend == DirectSendUnknown && r.Value == string(DirectSendOn) {
				h.DirectSend = DirectSendOn
			}
		case HealthWebhook:
			if r.Subject == WebhookVerified {
				h.Verified = r.At
			} else {
				h.Delivered = r.At
			}
		case HealthSubscribed:
			h.Subscribed = r
		case HealthPayment:
			h.Payment = r
		}
		if r.Stops() {
			if h.Restriction == "" || r.Until.IsZero() || r.Until.After(h.RestrictedUntil) {
				h.Restriction, h.RestrictedUntil = cmp.Or(r.Subject, r.Value), r.Until
			}
		}
		switch advice := r.advice(); {
		case advice.IsZero():
		case r.Stops():
			stops = append(stops, advice)
		default:
			others = append(others, advice)
		}
	}
	h.Advice = append(stops, others...)
	return h
}

// Codes of what people should know or do about a number's health.
const (
	healthQualityRed     ReasonCode = "health.quality_red"
	healthQualityYellow  ReasonCode = "health.quality_yellow"
	healthNameDeclined   ReasonCode = "health.name_declined" // {1}: Meta's words
	healthReview         ReasonCode = "health.review"
	healthDisabled       ReasonCode = "health.disabled"
	healthDisableSoon    ReasonCode = "health.disable_scheduled"
	healthAccountGone    ReasonCode = "health.account_gone"
	healthNoTemplates    ReasonCode = "health.restricted_templates"
	healthNoFreeText     ReasonCode = "health.restricted_free_text"
	healthNoUtility      ReasonCode = "health.restricted_utility"
	healthNoDirectSend   ReasonCode = "health.restricted_direct_send"
	healthNoNumbers      ReasonCode = "health.restricted_numbers"
	healthRestricted     ReasonCode = "health.restricted"  // {1}: Meta's word
	healthViolation      ReasonCode = "health.violation"   // {1}: Meta's word
	healthAlert          ReasonCode = "health.alert"       // {1}: Meta's words
	healthLimitStays     ReasonCode = "health.limit_stays" // {1}: Meta's words
	healthPINChanged     ReasonCode = "health.pin_changed"
	healthPINRequested   ReasonCode = "health.pin_requested"
	healthTemplateWanted ReasonCode = "health.template_category" // {1}: the template, {2}: the category
	healthDirectBlocked  ReasonCode = "health.direct_send_blocked"
	healthLimited        ReasonCode = "health.limited" // {1}: Meta's words
	healthBlocked        ReasonCode = "health.blocked" // {1}: Meta's words
	healthError          ReasonCode = "health.error"   // {1}: Meta's code, {2}: Meta's words
)

// restrictions has the sentence for each type of restriction.
var restrictions = map[string]ReasonCode{
	RestrictedTemplates: healthNoTemplates, RestrictedFreeText: healthNoFreeText, RestrictedUtility: healthNoUtility,
	RestrictedDirectSend: healthNoDirectSend, RestrictedAddNumber: healthNoNumbers,
}

// advice returns what people should know or do because of a report. It returns the zero value if all is well.
func (r HealthReport) advice() Reason {
	words := Quoted(cmp.Or(r.Detail, r.Value, r.Subject)).Stored()
	switch {
	case r.Kind == HealthQuality && r.Value == "RED":
		return Because(healthQualityRed)
	case r.Kind == HealthQuality && r.Value == "YELLOW":
		return Because(healthQualityYellow)
	case (r.Kind == HealthName || r.Kind == HealthNameStatus) && r.Value == "declined":
		return Because(healthNameDeclined, words)
	case r.Kind == HealthReview && r.Stops():
		return Because(healthReview, r.Value)
	case r.Kind == HealthBan && r.Value == "DISABLE":
		return Because(healthDisabled)
	case r.Kind == HealthBan && r.Stops():
		return Because(healthDisableSoon)
	case r.Kind == HealthAccount && r.Stops():
		return Because(healthAccountGone, r.Value)
	case r.Kind == HealthRestriction && restrictions[r.Subject] != "":
		return Because(restrictions[r.Subject])
	case r.Kind == HealthRestriction:
		return Because(healthRestricted, r.Subject)
	case r.Kind == HealthViolation:
		return Because(healthViolation, words)
	case r.Kind == HealthAlert && strings.HasPrefix(r.Subject, "INCREASED_CAPABILITIES_ELIGIBILITY"):
		return Because(healthLimitStays, words)
	case r.Kind == HealthAlert:
		return Because(healthAlert, words)
	case r.Kind == HealthSecurity && r.Value == "PIN_CHANGED":
		return Because(healthPINChanged)
	case r.Kind == HealthSecurity:
		return Because(healthPINRequested, r.Value)
	case r.Kind == HealthTemplate:
		return Because(healthTemplateWanted, r.Subject, r.Value)
	case r.Kind == HealthDirectSend && r.Value == "blocked":
		return Because(healthDirectBlocked)
	case r.Kind == HealthCanSend && r.Value == "LIMITED":
		return Because(healthLimited, words)
	case r.Kind == HealthCanSend && r.Value == "BLOCKED":
		return Because(healthBlocked, words)
	case r.Kind == HealthError:
		return Because(healthError, r.Subject, words)
	}
	return Reason{}
}
