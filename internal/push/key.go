package push

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"puntuale"
)

// keyName is the name of the sealed private key in the store, and also the vault's purpose and place for the key.
const keyName = "push key"

// Key is the key pair that signs the installation's pushes (VAPID). Browsers get the public key when they subscribe.
// Their push services refuse pushes with any other key.
type Key struct{ private *ecdh.PrivateKey }

// Public returns the public key: an uncompressed point of P-256 as base64url.
func (k Key) Public() string { return encode(k.private.PublicKey().Bytes()) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Sealer encrypts secrets, so that people who read the database cannot read them.
type Sealer interface {
	Seal(purpose, place string, plain []byte) []byte
	Open(purpose, place string, sealed []byte) ([]byte, error)
}

// OpenKey returns the installation's key, and makes it at the first start. Several nodes may call it at once.
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
		// Another node may store a key at the same time. Then both nodes read the key that was stored first.
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
