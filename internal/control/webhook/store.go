package webhook

import (
	"context"
	"time"

	"puntuale"
)

// Caller makes attempts and stores nothing. Many goroutines may use it at the same time.
type Caller interface {
	// Call makes one attempt. It never fails: the result says what went wrong.
	Call(ctx context.Context, t puntuale.WebhookTarget, e puntuale.Event) puntuale.DeliveryResult
	// Request returns the request that an attempt at the time in the argument at would send. The former secret also
	// signs it, until Secret.Until. An error means that a secret cannot be opened.
	Request(t puntuale.WebhookTarget, e puntuale.Event, at time.Time) (puntuale.WebhookRequest, error)
	// Refuses returns why no attempt can reach the address, or "" if an attempt is possible. It asks DNS only about the
	// name in an address with http.
	Refuses(ctx context.Context, address string) puntuale.ReasonCode
}
