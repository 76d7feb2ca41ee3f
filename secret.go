package puntuale

import "context"

// SecretStore keeps a few small values that protect others. What it holds is as safe as the database, no more.
type SecretStore interface {
	// Secret returns the value, nil when there is none.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SetSecret stores a value where old (nil: none) is still the present one, and reports whether it was.
	SetSecret(ctx context.Context, name string, old, value []byte) (bool, error)
}
