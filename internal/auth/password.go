package auth

import (
	"context"
	"fmt"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// params are OWASP's for argon2id with 19 MiB (Password Storage Cheat Sheet, read 2025). They are written into each
// hash, so changing them leaves older hashes valid.
var params = &argon2id.Params{Memory: 19456, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// hashing bounds how many hashes are computed at once: each takes 19 MiB and a core for tens of milliseconds, and a
// burst of them must not push the process out of memory or keep messages waiting.
var hashing = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// HashPassword returns the argon2id hash of a password of any length, with its parameters and a new salt. It waits for
// its turn, or for the context, whose error it returns.
func HashPassword(ctx context.Context, plain string) (string, error) {
	release, err := turn(ctx)
	if err != nil {
		return "", fmt.Errorf("wait to hash a password: %w", err)
	}
	defer release()
	hash, err := argon2id.CreateHash(plain, params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// CheckPassword reports whether the password is the one that the hash was made of. A hash that cannot be read is an
// error.
func CheckPassword(ctx context.Context, plain, hash string) (bool, error) {
	release, err := turn(ctx)
	if err != nil {
		return false, fmt.Errorf("wait to check a password: %w", err)
	}
	defer release()
	same, err := argon2id.ComparePasswordAndHash(plain, hash)
	if err != nil {
		return false, fmt.Errorf("check a password: %w", err)
	}
	return same, nil
}

func turn(ctx context.Context) (release func(), err error) {
	select {
	case hashing <- struct{}{}:
		return func() { <-hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
