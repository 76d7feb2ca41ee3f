package push

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// keyName is the name of the sealed private key in the store, and also the vault's purpose and place for the key.
const keyName = puntuale.SealedPushKey

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

// Keys are the installation's present key and the one before it. Phones that subscribed under the former key get pushes that
// it signs, until they subscribe again at the next start of their app. It is safe for concurrent use.
type Keys struct {
	secrets puntuale.SecretStore
	vault   Sealer
	clock   clock.Clock

	mu   sync.Mutex
	kept []Key // the present one first
	read time.Time
}

// keysFor is how long a server uses keys that it read, so that it follows a replacement.
const keysFor = time.Minute

// OpenKeys returns the installation's keys, and makes one at the first start. Several nodes may call it at once.
func OpenKeys(ctx context.Context, secrets puntuale.SecretStore, vault Sealer, c clock.Clock) (*Keys, error) {
	k := &Keys{secrets: secrets, vault: vault, clock: c}
	for {
		all, _, err := readKeys(ctx, secrets, vault)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			k.kept, k.read = all, c.Now()
			return k, nil
		}
		// Another node may store a key at the same time. Then both nodes read the key that was stored first.
		if _, err := storeKey(ctx, secrets, vault, nil, nil); err != nil {
			return nil, err
		}
	}
}

// Public returns the present public key.
func (k *Keys) Public(ctx context.Context) (string, error) {
	all, err := k.all(ctx)
	if err != nil {
		return "", err
	}
	return all[0].Public(), nil
}

func (k *Keys) all(ctx context.Context) ([]Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.clock.Now(); now.Sub(k.read) >= keysFor {
		all, _, err := readKeys(ctx, k.secrets, k.vault)
		if err != nil {
			return nil, err
		}
		k.kept, k.read = all, now
	}
	return k.kept, nil
}

// ErrNoKey says that the installation has sent no pushes so far, and so has no key.
var ErrNoKey = errors.New("there is no key of pushes")

// ReplaceKey makes a new key. The present one becomes the former one, and the former one ends. Servers that run use the new
// key after a minute at most.
func ReplaceKey(ctx context.Context, secrets puntuale.SecretStore, vault Sealer) (Key, error) {
	for {
		all, old, err := readKeys(ctx, secrets, vault)
		if err != nil {
			return Key{}, err
		}
		if len(all) == 0 {
			return Key{}, ErrNoKey
		}
		if fresh, err := storeKey(ctx, secrets, vault, old, all[0].private.Bytes()); err != nil || fresh != nil {
			return Key{fresh}, err
		}
	}
}

// storeKey makes a key and stores it before the former one. It returns nil if the stored keys are no longer old.
func storeKey(ctx context.Context, secrets puntuale.SecretStore, vault Sealer, old, former []byte) (*ecdh.PrivateKey, error) {
	fresh, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of pushes: %w", err)
	}
	set, err := secrets.SetSecret(ctx, keyName, old, vault.Seal(keyName, keyName, append(fresh.Bytes(), former...)))
	if err != nil {
		return nil, fmt.Errorf("store the key of pushes: %w", err)
	}
	if !set {
		return nil, nil //nolint:nilnil // the caller reads again
	}
	return fresh, nil
}

// keySize is the length of a private key, in bytes.
const keySize = 32

// readKeys returns the stored keys, and how they are stored. Without any, it returns none.
func readKeys(ctx context.Context, secrets puntuale.SecretStore, vault Sealer) (all []Key, kept []byte, err error) {
	if kept, err = secrets.Secret(ctx, keyName); err != nil || kept == nil {
		if err != nil {
			err = fmt.Errorf("read the key of pushes: %w", err)
		}
		return nil, nil, err
	}
	plain, err := vault.Open(keyName, keyName, kept)
	if err != nil {
		return nil, nil, err
	}
	for one := range slices.Chunk(plain, keySize) {
		private, err := ecdh.P256().NewPrivateKey(one)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: the key of pushes: %w", puntuale.ErrUntrusted, err)
		}
		all = append(all, Key{private})
	}
	return all, kept, nil
}
