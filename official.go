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
