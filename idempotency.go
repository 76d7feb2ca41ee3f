package puntuale

import "context"

// Idempotency makes sure that a call which creates or sends something has its effect only once. The transaction that
// stores the effect also stores the call's answer, under the tenant, the scope and the key. If a later call has the
// same key and hash, it gets the stored answer as a [*Replayed] and does nothing else. If the hash differs, the later
// call gets CodeConflict. If an equal call is still running, the later call waits for it.
type Idempotency struct {
	Scope string // method and path: "POST /api/sequences"
	Key   string // the caller's key, 1 to 255 bytes
	Hash  string // hash of the body, to distinguish a repeat from a different call with the same key

	// Answer makes the bytes to store. The argument result is the value that the method returns with a nil error. It is
	// nil if the method returns only an error. The store calls Answer inside the transaction, perhaps more than once,
	// so it must be quick and pure. The store does not change the bytes; they may be sealed.
	Answer func(result any) ([]byte, error)
}

// Replayed contains the answer of an earlier call. Methods that have an argument Idempotency return a Replayed as their
// error, but this is no failure.
type Replayed struct{ Answer []byte }

func (*Replayed) Error() string { return "the answer of an earlier call stands" }

// IdempotencyStore looks up stored answers. A caller that finds an answer need not check and prepare the repeated call.
type IdempotencyStore interface {
	// KeptAnswer returns the answer that is stored under the key, or nil if there is none. Codes: conflict (the earlier
	// call had another body).
	KeptAnswer(ctx context.Context, o Idempotency) ([]byte, error)
}
