package puntuale

import "context"

// Idempotency makes sure that a call which creates or sends has its effect only once. The store keeps the call's
// answer in the same transaction as the effect, under the tenant, the scope and the key. If a later call has the same
// key and hash, it gets the kept answer as a [*Replayed] and does nothing else. If the hash differs, it gets
// CodeConflict. If an equal call is still running, the later call waits for it.
type Idempotency struct {
	Scope string // method and path: "POST /api/sequences"
	Key   string // the caller's key, 1 to 255 bytes
	Hash  string // hash of the body, to tell a repeat from another call with the same key

	// Answer makes the bytes to keep. result is what the method returns on success besides its error, or nil if it
	// returns only an error. The store calls Answer inside the transaction, perhaps more than once, so it must be
	// quick and pure. The store keeps the bytes unchanged; they may be sealed.
	Answer func(result any) ([]byte, error)
}

// Replayed carries the answer of an earlier call. Methods that take an Idempotency return it as an error, but it is
// no failure.
type Replayed struct{ Answer []byte }

func (*Replayed) Error() string { return "the answer of an earlier call stands" }

// IdempotencyStore looks up kept answers. The caller then does not need to check and prepare a repeated call.
type IdempotencyStore interface {
	// KeptAnswer returns the answer that is kept under the key, or nil if there is none. Codes: conflict (the earlier call
	// had another body).
	KeptAnswer(ctx context.Context, o Idempotency) ([]byte, error)
}
