package puntuale

import (
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

// Mark returns the keyed hash of the number's id at the gateway, together with the account's token. Stores compare marks
// to find two sessions with the same number. Without the token, a stranger who knows the id could occupy the number, and
// learn that somebody uses it. Mark returns "" if there is no id yet. The argument hash is the vault's method Mark.
func (k GatewayKeys) Mark(hash func(purpose string, parts ...string) string) string {
	if k.InstanceID == "" {
		return ""
	}
	return hash("instance of a gateway", k.BaseURL, k.AccessToken, k.InstanceID)
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

// GatewayHealth says whether the gateway seems to deliver a session's latest messages.
type GatewayHealth struct {
	Unconfirmed int       // number of the latest sent messages that are neither delivered nor read
	Failed      time.Time // when a message last failed for the given reason; zero: no message did
}
