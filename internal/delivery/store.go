package delivery

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods that the sender of webhooks uses.
type Store interface {
	// NumberEvents gives numbers to about a thousand events that have no number yet. In the same transaction it makes
	// the deliveries of these events. NumberEvents returns how many events got a number. Any number of nodes may call
	// it at the same time.
	NumberEvents(ctx context.Context, now time.Time) (int, error)

	// OwnWebhooks makes the node the owner of active webhooks that have due deliveries and no living owner. It returns
	// all webhooks that the node owns. Only the owner sends to a webhook. Codes: see [puntuale.Fleet].
	OwnWebhooks(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.WebhookTarget, error)

	// DueDeliveries returns at most limit due deliveries for each webhook, with their events. The delivery that is due
	// first comes first. DueDeliveries leaves out deliveries for which skip returns true, because an attempt of such a
	// delivery is running.
	DueDeliveries(ctx context.Context, webhooks []puntuale.WebhookID, now time.Time, limit int, skip func(puntuale.Delivery) bool) ([]puntuale.DueDelivery, error)

	// EndAttempts records attempts. It disables a webhook that had no success for [puntuale.DisableWebhookAfter], or whose
	// receiver answered 410, and emits an event about it.
	EndAttempts(ctx context.Context, now time.Time, all []puntuale.DeliveryResult) error

	// OutboxBacklog measures the facts and deliveries that wait.
	OutboxBacklog(ctx context.Context, now time.Time) (puntuale.OutboxBacklog, error)
}
