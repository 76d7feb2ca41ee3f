package auth

import (
	"context"
	"flag"
	"fmt"

	"github.com/alexedwards/argon2id"
)

// params are OWASP's parameters for argon2id with 19 MiB (Password Storage Cheat Sheet, read 2025). Each hash contains
// its parameters, so older hashes remain valid if a later version changes params.
var params = &argon2id.Params{Memory: 19456, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// CheapForTests makes all later hashes of this process very cheap, for tests that need hundreds of them. A TestMain
// must call it before anything is hashed. CheapForTests panics outside of tests, because such a hash protects nothing.
func CheapForTests() {
	if flag.Lookup("test.v") == nil { // package testing defines this flag; production code does not import that package
		panic("auth: cheap hashes outside of a test")
	}
	params = &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// HashPassword returns the argon2id hash of a password of any length, with its parameters and a new salt. It waits for
// a slot. Codes: rate_limited, with the time to wait, if too many callers wait. Any other error comes from the context.
func HashPassword(ctx context.Context, a HashCaller, plain string) (string, error) {
	leave, err := hashing.Enter(ctx, a)
	if err != nil {
		return "", err
	}
	defer leave()
	hash, err := argon2id.CreateHash(plain, params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// CheckPassword reports whether the hash was made from the password. An invalid hash is an error. Other errors are as
// for [HashPassword].
func CheckPassword(ctx context.Context, a HashCaller, plain, hash string) (bool, error) {
	t, err := Enter(ctx, a)
	if err != nil {
		return false, err
	}
	defer t.Leave()
	return t.Check(plain, hash)
}

// HashSlot is the right to hash passwords. Only a few callers have a slot at the same time.
type HashSlot struct{ leave func() }

// Enter waits for a slot. Call Leave to release the slot. Errors are as for [HashPassword].
func Enter(ctx context.Context, a HashCaller) (*HashSlot, error) {
	leave, err := hashing.Enter(ctx, a)
	if err != nil {
		return nil, err
	}
	return &HashSlot{leave}, nil
}

// Leave gives the slot to the next waiter. Call it once.
func (t *HashSlot) Leave() { t.leave() }

// Check reports whether the hash was made from the password. An invalid hash is an error.
func (t *HashSlot) Check(plain, hash string) (bool, error) {
	same, err := argon2id.ComparePasswordAndHash(plain, hash)
	if err != nil {
		return false, fmt.Errorf("check a password: %w", err)
	}
	return same, nil
}
