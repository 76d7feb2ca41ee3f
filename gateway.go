package puntuale

import (
	"context"
	"time"
)

// GatewayKeys are what a session of type Send_app needs to reach its gateway: an HTTP service of SendApp's family that
// holds the number. The vault seals the JSON form.
type GatewayKeys struct {
	BaseURL     string `json:"base_url"`              // of the gateway's API, without a slash at the end
	AccessToken string `json:"access_token"`          // of the account at the gateway
	InstanceID  string `json:"instance_id,omitempty"` // the gateway's id of the number; "": pairing asks for one
}

// Limits of a gateway's keys, in characters.
const (
	MaxGatewayURL = 2048
	MaxGatewayKey = 512
)

// DefaultGateway is the address of SendApp Cloud's API.
const DefaultGateway = "https://app.sendapp.cloud/api"

// JSON returns the form that the vault seals.
func (k GatewayKeys) JSON() []byte { return jsonOf(k) }

// Mark is the keyed hash by which stores tell whether two sessions have the same number at the gateway, "" if there is none. hash makes the
// keyed hash of texts for a purpose.
func (k GatewayKeys) Mark(hash func(purpose string, parts ...string) string) string {
	if k.InstanceID == "" {
		return ""
	}
	return hash("instance of a gateway", k.BaseURL, k.InstanceID)
}

// SealedGateway is the purpose for which a gateway's keys are sealed. Their place is the session's.
const SealedGateway = "gateway"

// GatewayWebhooks is the path of all gateways' webhooks. Below it, each gateway session has its own webhook, by its id and a secret.
const GatewayWebhooks = "/webhooks/gateway/"

// GatewayWebhookPath is the path of the session's webhook, to which its gateway reports. Gateways sign nothing, so the
// path ends with a secret: a keyed hash of the id, which any node computes and nothing stores. hash makes keyed hashes
// of texts for a purpose.
func (id SessionID) GatewayWebhookPath(hash func(purpose string, parts ...string) string) string {
	return GatewayWebhooks + id.String() + "/" + hash("webhook of a gateway", id.String())
}

// NetworkID is the id that a gateway gave to a message.
type NetworkID struct {
	MessageRef
	Session SessionID
	ID      string    // of the network
	Token   int64     // the token of the attempt that the id answers
	At      time.Time // when the gateway told it
}

// OpenAttempt is an attempt that began and has no outcome: it is in flight, or its answer was lost.
type OpenAttempt struct {
	MessageRef
	Token   int64
	Begun   time.Time
	Content Content
}

// GatewayTenant keeps the keys of a client's gateway sessions. It is part of a [Tenant], which cannot read them.
type GatewayTenant interface {
	// CreateGateway is CreateSession with keys. The store calls seal in the transaction, when the id is known, perhaps more than once. mark
	// is the keyed hash of the gateway's number, "" while there is none. Codes: conflict (another session has the same number).
	CreateGateway(ctx context.Context, s Session, mark string, seal func(SessionID) []byte, o *Idempotency) (SessionID, error)
}

// GatewayStore is the part of the store that the connector of gateway sessions uses. Many goroutines may call its
// methods at once.
type GatewayStore interface {
	// SealedGateway returns the client of a session of type Send_app that is no sandbox, and its sealed keys, nil while it
	// has none. Codes: not_found.
	SealedGateway(ctx context.Context, session SessionID) (ClientID, []byte, error)

	// ChangeGateway is [OfficialTenant.ChangeKeys] for a session of type Send_app that is no sandbox.
	ChangeGateway(ctx context.Context, session SessionID, change KeyChange) error

	// KeepNetworkID stores which message a network's id stands for. A later call for the same id changes nothing.
	KeepNetworkID(ctx context.Context, client ClientID, n NetworkID) error

	// NetworkIDs returns those of the ids that are known in the session.
	NetworkIDs(ctx context.Context, client ClientID, session SessionID, ids []string) (map[string]NetworkID, error)

	// OpenAttempts returns the session's attempts to the recipient that began after since and have no outcome.
	OpenAttempts(ctx context.Context, client ClientID, session SessionID, to string, since time.Time) ([]OpenAttempt, error)

	// GatewayHealth counts the outcomes of the session's messages between two moments. It looks only at the latest ones, at most as many as
	// most. failure is the reason that it looks for. former is the sentence that earlier versions stored for this reason.
	GatewayHealth(ctx context.Context, client ClientID, session SessionID, from, to time.Time, most int, failure Reason, former string) (GatewayHealth, error)
}

// GatewayHealth counts the outcomes of a session's latest messages.
type GatewayHealth struct {
	Unconfirmed int       // how many messages, from the latest back to the last delivered or read one, were only sent
	Failed      time.Time // when a message last failed for the given reason; zero: none did
}
