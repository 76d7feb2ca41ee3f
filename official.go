package puntuale

import (
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

// CategoryMarketing is the category of templates that Meta calls marketing.
const CategoryMarketing = "MARKETING"

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
// reply buttons. A person whose number is hidden is not known to get such messages.
func (q WayQuery) direct() (may bool, missing ReasonCode) {
	c := &q.Content
	state, _ := q.Ways.DirectState(q.Now)
	switch {
	case !q.Ways.DirectSend || q.Purpose == PurposeMarketing:
		return false, reasonNoTemplate
	case q.Campaign || q.Failed || !strings.HasPrefix(q.To, "+") || c.Text == "" || c.MediaURL != "" || c.Latitude != nil || utf8.RuneCountInString(c.Text) > maxDirectText:
		return false, reasonDirectUnfit
	case state == DirectSendOff:
		return false, reasonDirectMissing
	case state == DirectSendBlocked:
		return false, reasonDirectStopped
	}
	return true, ""
}
