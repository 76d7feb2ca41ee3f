package puntuale

import (
	"context"
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

// OfficialTenant stores the keys of Official sessions. It is part of a [Tenant], which cannot read the keys.
type OfficialTenant interface {
	// CreateOfficial is [SessionStore.CreateSession] with keys. The store calls the function seal inside the
	// transaction, with the new id, perhaps more than once.
	CreateOfficial(ctx context.Context, s Session, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)

	// SetKeys replaces a session's sealed keys; nil removes them. Codes: not_found.
	SetKeys(ctx context.Context, id SessionID, sealed []byte) error

	// ChangeKeys replaces a session's sealed keys by the result of the function change, in one transaction. If change
	// returns an error, ChangeKeys returns this error and changes nothing. Codes: not_found, conflict (another session
	// has the same mark).
	ChangeKeys(ctx context.Context, id SessionID, change KeyChange) error

	// ReplyWindowOf returns the time until which the phone may get free text from the session. Zero: the person never
	// wrote.
	ReplyWindowOf(ctx context.Context, session SessionID, phone string) (time.Time, error)
}

// KeyChange makes a session's new sealed keys from the old ones. The argument old is nil if the session has no keys.
// The store may call KeyChange more than once. The result mark is [GatewayKeys.Mark] of the new keys. Keys that are not
// a gateway's have the mark "".
type KeyChange func(old []byte) (sealed []byte, mark string, err error)

// OfficialStore has the methods that the connector of Official sessions uses.
type OfficialStore interface {
	// SealedKeys returns the session's client and its sealed keys. The keys are nil if the session has none. Codes:
	// not_found (also if the session is not of type Official, or is a sandbox).
	SealedKeys(ctx context.Context, session SessionID) (ClientID, []byte, error)

	// ForgetKeys removes the session's sealed keys.
	ForgetKeys(ctx context.Context, session SessionID) error

	// ReplyWindowEnd returns the time until which the person may get free text. Zero: the person never wrote.
	ReplyWindowEnd(ctx context.Context, client ClientID, session SessionID, phone string) (time.Time, error)

	// Addressed returns the people that the session wrote to outside their 24-hour windows, since the given time. For
	// each person it returns the latest time at which the session did this. Addressed reads all that the client sent
	// since the given time, so call it only when a session opens.
	Addressed(ctx context.Context, client ClientID, session SessionID, since time.Time) (map[string]time.Time, error)

	// Upload returns the network's id of a file that was uploaded before and is still usable at the time now. It
	// returns "" if there is none.
	Upload(ctx context.Context, u Upload, now time.Time) (string, error)

	// KeepUpload stores the id. The id is valid until the time expiresAt. If id is "", KeepUpload deletes the stored
	// id.
	KeepUpload(ctx context.Context, u Upload, id string, expiresAt time.Time) error
}

// Upload names a file by its content.
type Upload struct {
	Client  ClientID
	Session SessionID
	Number  string // the network's id of the sending number; an upload can be used only with this number
	Hash    string // hash of the content and its media type
}
