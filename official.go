package puntuale

import (
	"time"
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
