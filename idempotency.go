package puntuale

import "context"

// Idempotency makes a call that creates or sends have its effect once. The store keeps Answer's result in the transaction of the effect,
// under the tenant, the scope and the key. A later call with the same key and hash has no other effect: it gets those bytes again, as a
// [*Replayed]. With another hash it gets CodeConflict. If an equal call is still running, the later one waits for it.
type Idempotency struct {
	Scope string // method and path: "POST /api/sequences"
	Key   string // the caller's, 1 to 255 bytes
	Hash  string // of the body, to tell a repeat from another call under the same key

	// Answer makes the bytes to keep from what the method returns on success besides its error (nil if the method returns nothing). It is
	// called inside the transaction, perhaps more than once, and must be quick and pure. The bytes are kept as they are and may be sealed.
	Answer func(result any) ([]byte, error)
}

// Replayed is returned as an error by methods that take an Idempotency when the store has an earlier call's answer; it is no failure.
type Replayed struct{ Answer []byte }

func (*Replayed) Error() string { return "the answer of an earlier call stands" }

// IdempotencyStore looks up answers, so that a repeated call need not be checked and prepared first.
type IdempotencyStore interface {
	// Kept returns the answer kept under the key, nil when there is none. Codes: conflict (another body).
	Kept(ctx context.Context, o Idempotency) ([]byte, error)
}
