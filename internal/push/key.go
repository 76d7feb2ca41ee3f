package push

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"puntuale"
)

// The store keeps the sealed private key under this name, which is also the purpose and the place of the seal.
const keyName = "push key"

// Key is the pair that signs the installation's pushes (VAPID). Browsers are given the public half when they subscribe, and their push
// services refuse pushes with any other key.
type Key struct{ private *ecdh.PrivateKey }

// Public is the public half, an uncompressed point of P-256 as base64url.
func (k Key) Public() string { return encode(k.private.PublicKey().Bytes()) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Sealer keeps secrets from people who read the database.
type Sealer interface {
	Seal(purpose, place string, plain []byte) []byte
	Open(purpose, place string, sealed []byte) ([]byte, error)
}

// OpenKey returns the installation's key, making it at the first start. Any number of nodes may do this at once.
func OpenKey(ctx context.Context, secrets puntuale.SecretStore, vault Sealer) (Key, error) {
	for {
		kept, err := secrets.Secret(ctx, keyName)
		if err != nil {
			return Key{}, fmt.Errorf("read the key of pushes: %w", err)
		}
		if kept != nil {
			return unseal(vault, kept)
		}
		fresh, err := ecdh.P256().GenerateKey(rand.Reader)
		if err != nil {
			return Key{}, fmt.Errorf("make the key of pushes: %w", err)
		}
		// Another node may do the same at this moment. Each node reads the key that was stored first.
		if _, err := secrets.SetSecret(ctx, keyName, nil, vault.Seal(keyName, keyName, fresh.Bytes())); err != nil {
			return Key{}, fmt.Errorf("store the key of pushes: %w", err)
		}
	}
}

func unseal(vault Sealer, kept []byte) (Key, error) {
	plain, err := vault.Open(keyName, keyName, kept)
	if err != nil {
		return Key{}, err
	}
	private, err := ecdh.P256().NewPrivateKey(plain)
	if err != nil {
		return Key{}, fmt.Errorf("%w: the key of pushes: %w", puntuale.ErrUntrusted, err)
	}
	return Key{private}, nil
}
