package puntuale

import (
	"context"
	"time"
)

// GatewayKeys contains what a session of type Send_app needs to reach its gateway. The gateway is an HTTP service of
// SendApp's family, to which the number is linked. The vault seals the JSON form.
type GatewayKeys struct {
	BaseURL     string `json:"base_url"`              // address of the gateway's API, without a slash at the end
	AccessToken string `json:"access_token"`          // token of the account at the gateway
	InstanceID  string `json:"instance_id,omitempty"` // the gateway's id of the number; "": pairing asks the gateway for one
}

// Limits of a gateway's address and keys, in characters.
const (
	MaxGatewayURL = 2048
	MaxGatewayKey = 512
)

// DefaultGateway is the address of SendApp Cloud's API.
const DefaultGateway = "https://app.sendapp.cloud/api"

// JSON returns the form that the vault seals.
func (k GatewayKeys) JSON() []byte { return jsonOf(k) }

// Mark returns the keyed hash of the number's id at the gateway. Stores compare marks to find two sessions with the
// same number. Mark returns "" if there is no id yet. The argument hash is the vault's method Mark.
func (k GatewayKeys) Mark(hash func(purpose string, parts ...string) string) string {
	if k.InstanceID == "" {
		return ""
	}
	return hash("instance of a gateway", k.BaseURL, k.InstanceID)
}

// SealedGateway is the argument purpose of Vault.Seal for a gateway's keys. Their place is [SessionID.SealPlace].
const SealedGateway = "gateway"

// GatewayWebhooks is the beginning of the path of every gateway's webhook. After it come the session's id and a
// secret.
const GatewayWebhooks = "/webhooks/gateway/"

// GatewayWebhookPath returns the path of the session's webhook, which the session's gateway calls. Gateways do not sign
// their calls, so the path ends with a secret: a keyed hash of the session's id. Every node can compute this hash, so
// nothing stores it. The argument hash is the vault's method Mark.
func (id SessionID) GatewayWebhookPath(hash func(purpose string, parts ...string) string) string {
	return GatewayWebhooks + id.String() + "/" + hash("webhook of a gateway", id.String())
}

// NetworkID is the id that a gateway gave to one of our messages.
type NetworkID struct {
	MessageRef
	Session SessionID
	ID      string    // the gateway's id of the message
	Token   int64     // token of the attempt that the gateway answered with ID
	At      time.Time // when the gateway reported the id
}

// OpenAttempt is an attempt without an outcome: it is in flight, or its answer was lost.
type OpenAttempt struct {
	MessageRef
	Token   int64
	Begun   time.Time
	Content Content
}

// GatewayTenant creates a client's gateway sessions with their keys. It is part of a [Tenant], which cannot read the
// keys.
type GatewayTenant interface {
	// CreateGateway is [SessionStore.CreateSession] with keys. The store calls the function seal inside the
	// transaction, with the new id, perhaps more than once. The argument mark is the keyed hash of the gateway's
	// number, or "" if there is none yet. Codes: conflict (another session has the same number).
	CreateGateway(ctx context.Context, s Session, mark string, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)
}

// GatewayStore has the methods that the connector of gateway sessions uses. Many goroutines may call them at the same
// time.
type GatewayStore interface {
	// SealedGateway returns the session's client and its sealed keys. The keys are nil if the session has none.
	// Codes: not_found (also if the session is not of type Send_app, or is a sandbox).
	SealedGateway(ctx context.Context, session SessionID) (ClientID, []byte, error)

	// ChangeGateway does the same as [OfficialTenant.ChangeKeys], for a session of type Send_app that is no sandbox.
	ChangeGateway(ctx context.Context, session SessionID, change KeyChange) error

	// KeepNetworkID stores which message has a gateway's id. A later call for the same id changes nothing.
	KeepNetworkID(ctx context.Context, client ClientID, n NetworkID) error

	// NetworkIDs returns what KeepNetworkID stored for the ids in this session. It leaves out unknown ids.
	NetworkIDs(ctx context.Context, client ClientID, session SessionID, ids []string) (map[string]NetworkID, error)

	// OpenAttempts returns the session's attempts without an outcome. It returns only attempts to the recipient, and
	// only those that began after the time in the argument since.
	OpenAttempts(ctx context.Context, client ClientID, session SessionID, recipient string, since time.Time) ([]OpenAttempt, error)

	// GatewayHealth reads those messages of the session whose outcome was recorded at or after the time in the argument
	// from. Unconfirmed counts sent messages that are neither delivered nor read. The count begins with the latest
	// message whose outcome was recorded before the time in the argument to, and goes back in time. The count ends at
	// the first message that was delivered or read, or at limit. Failed is when a message last failed for the reason in
	// the argument failure. Instead of this reason, rows of earlier versions may contain the sentence in the argument
	// former.
	GatewayHealth(ctx context.Context, client ClientID, session SessionID, from, to time.Time, limit int, failure Reason, former string) (GatewayHealth, error)
}

// GatewayHealth says whether the gateway seems to deliver a session's latest messages.
type GatewayHealth struct {
	Unconfirmed int       // number of the latest sent messages that are neither delivered nor read
	Failed      time.Time // when a message last failed for the given reason; zero: no message did
}
