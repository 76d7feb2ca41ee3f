package puntuale

import (
	"context"
	"time"
)

// OfficialKeys are what a session of type Official needs to reach WhatsApp's Cloud API, and to check webhook deliveries from there. The
// vault seals the JSON form.
type OfficialKeys struct {
	PhoneNumberID string `json:"phone_number_id"` // Meta's id of the number, digits
	AccessToken   string `json:"access_token"`
	AppSecret     string `json:"app_secret"`
	VerifyToken   string `json:"verify_token"` // the server returns it when Meta verifies the webhook

	// BusinessAccountID is Meta's id of the WhatsApp business that owns the number and its templates; "": templates are
	// neither listed nor watched.
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

// SealedOfficial is the purpose for which keys are sealed. Their place is their session's.
const SealedOfficial = "official"

// OfficialWebhooks is the path below which each Official session has its own, by its id.
const OfficialWebhooks = "/webhooks/official/"

// WebhookPath is where Meta delivers what concerns an Official session.
func (id SessionID) WebhookPath() string { return OfficialWebhooks + id.String() }

// ServiceWindow is how long after a person's last message free text may be sent to them.
const ServiceWindow = 24 * time.Hour

// OfficialTenant keeps the keys of Official sessions. It is part of a [Tenant], which cannot read them.
type OfficialTenant interface {
	// CreateOfficial is CreateSession with keys: the store calls seal in the transaction, when the id is known, perhaps more than once.
	CreateOfficial(ctx context.Context, s Session, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)

	// SetKeys replaces a session's sealed keys; nil removes them. Codes: not_found.
	SetKeys(ctx context.Context, id SessionID, sealed []byte) error

	// ChangeKeys replaces a session's sealed keys by the result of change, in one transaction. If change returns an error, ChangeKeys
	// returns it and changes nothing. Codes: not_found, conflict (another session has the mark).
	ChangeKeys(ctx context.Context, id SessionID, change KeyChange) error

	// WindowOf returns until when free text may be sent to a phone through a session; zero: the person never wrote.
	WindowOf(ctx context.Context, session SessionID, phone string) (time.Time, error)
}

// KeyChange makes new sealed keys of a session's old ones, nil for none. It may be called more than once. mark is the keyed
// hash of the number at a gateway, see [GatewayKeys.Mark]; "" for all other keys.
type KeyChange func(old []byte) (sealed []byte, mark string, err error)

// OfficialStore is the part of the store that the connector of Official sessions uses.
type OfficialStore interface {
	// SealedKeys returns the client of a session of type Official that is no sandbox, and its sealed keys, nil while it
	// has none. Codes: not_found.
	SealedKeys(ctx context.Context, session SessionID) (ClientID, []byte, error)

	// ForgetKeys removes the session's sealed keys.
	ForgetKeys(ctx context.Context, session SessionID) error

	// WindowUntil returns until when free text may be sent to the person, zero if they never wrote.
	WindowUntil(ctx context.Context, client ClientID, session SessionID, phone string) (time.Time, error)

	// Addressed returns the people that the session wrote to since a moment, although they had not written in the 24 hours before. Each
	// comes with the latest such moment. It reads all that the client sent since the moment, so call it only when a session opens.
	Addressed(ctx context.Context, client ClientID, session SessionID, since time.Time) (map[string]time.Time, error)

	// Upload returns the network's id of a file that was uploaded before and can still be used at the moment, "" for none.
	Upload(ctx context.Context, u Upload, now time.Time) (string, error)

	// KeepUpload keeps an id until the moment; "" forgets it.
	KeepUpload(ctx context.Context, u Upload, id string, until time.Time) error
}

// Upload names a file by its content.
type Upload struct {
	Client  ClientID
	Session SessionID
	Number  string // the network's id of the sender, which owns uploads
	Hash    string // of the content and its type
}
