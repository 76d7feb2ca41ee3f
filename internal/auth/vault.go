package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"puntuale"
)

// Vault seals data that must not be readable in the database. It makes keyed hashes of data that must be found, but not
// read. All its keys derive from one data key of the installation; each purpose has its own key. Many goroutines may
// use it at once.
type Vault struct{ data []byte }

// DataKeySize is the length of a data key, in bytes.
const DataKeySize = 32

// NewVault takes the data key.
func NewVault(dataKey []byte) (*Vault, error) {
	if len(dataKey) != DataKeySize {
		return nil, fmt.Errorf("a data key has %d bytes, not %d", DataKeySize, len(dataKey))
	}
	return &Vault{data: append([]byte{}, dataKey...)}, nil
}

// Seal makes plain unreadable without the data key. The sealed data open only for the same purpose and place. The place
// names the owner, such as "session 12". So a copy in another row does not open.
func (v *Vault) Seal(purpose, place string, plain []byte) []byte {
	return v.sealer(purpose).Seal(nil, nil, plain, []byte(place)) //nolint:gosec // the cipher makes the random nonce
}

// Open is the inverse of Seal.
func (v *Vault) Open(purpose, place string, sealed []byte) ([]byte, error) {
	plain, err := v.sealer(purpose).Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("open what was sealed for %s: %w", purpose, err)
	}
	return plain, nil
}

// Mark returns a keyed hash of the parts, 43 characters of base64. Equal parts have equal marks, and different parts have different marks.
// Without the data key nobody can tell which parts a mark belongs to.
func (v *Vault) Mark(purpose string, parts ...string) string {
	sum := hmac.New(sha256.New, derive(v.data, "puntuale: mark: "+purpose))
	for _, part := range parts { // a length before each part makes ("ab", "c") differ from ("a", "bc")
		sum.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		sum.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func (v *Vault) sealer(purpose string) cipher.AEAD {
	return newCipher(derive(v.data, "puntuale: seal: "+purpose))
}

// derive makes a key of 32 bytes from a random one. It uses only the expand step of HKDF, which is enough for a random
// key.
func derive(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + "\x01"))
	return mac.Sum(nil)
}

// newCipher makes a cipher from a key of 32 bytes. It cannot fail with such a key.
func newCipher(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("make a cipher: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("make a cipher: " + err.Error())
	}
	return aead
}

// The store keeps the data key under this name. The first byte says the form. Then the key follows, plain or wrapped.
const (
	dataKeyName = "data key"
	asItIs      = 'p'
	wrapped     = 'w'
)

// MinMasterKey is the least length of the text that wraps the data key, in bytes. The text is not stretched, so it must
// be random, such as 32 random bytes in base64.
const MinMasterKey = 32

// ErrMasterKey says that the data key cannot be unwrapped, because the master key is wrong or missing.
var ErrMasterKey = errors.New("the stored secrets are sealed under another key")

// OpenVault returns the vault of the installation, making its data key at the first start. master wraps the data key; nil leaves it
// unwrapped in the database. When a master key is given later, it wraps a data key that is unwrapped. Any number of nodes may do this at
// once. [ErrMasterKey]: a wrong or missing master key.
func OpenVault(ctx context.Context, secrets puntuale.SecretStore, master []byte) (*Vault, error) {
	for {
		kept, err := secrets.Secret(ctx, dataKeyName)
		if err != nil {
			return nil, fmt.Errorf("read the data key: %w", err)
		}
		key, err := unwrap(kept, master)
		if err != nil {
			return nil, err
		}
		if kept == nil {
			key = make([]byte, DataKeySize)
			if _, err := rand.Read(key); err != nil {
				return nil, fmt.Errorf("read random bytes for the data key: %w", err)
			}
		}
		if kept != nil && (master == nil || kept[0] == wrapped) {
			return NewVault(key)
		}
		// Another node may do the same at this moment. The second node reads the key of the first.
		if _, err := secrets.SetSecret(ctx, dataKeyName, kept, wrap(key, master)); err != nil {
			return nil, fmt.Errorf("store the data key: %w", err)
		}
	}
}

// Sealed reports whether there is a data key that needs a master key.
func Sealed(ctx context.Context, secrets puntuale.SecretStore) (bool, error) {
	kept, err := secrets.Secret(ctx, dataKeyName)
	return len(kept) > 0 && kept[0] == wrapped, err
}

func wrap(key, master []byte) []byte {
	if master == nil {
		return append([]byte{asItIs}, key...)
	}
	return append([]byte{wrapped}, wrapper(master).Seal(nil, nil, key, []byte(dataKeyName))...) //nolint:gosec // as in Seal
}

// unwrap returns the data key, or nil if none is stored.
func unwrap(kept, master []byte) ([]byte, error) {
	switch {
	case kept == nil:
		return nil, nil
	case len(kept) == 1+DataKeySize && kept[0] == asItIs:
		return kept[1:], nil
	case len(kept) == 0 || kept[0] != wrapped:
		return nil, fmt.Errorf("%w: the data key in the database is damaged", puntuale.ErrUntrusted)
	case master == nil:
		return nil, fmt.Errorf("%w, and none was given", ErrMasterKey)
	}
	key, err := wrapper(master).Open(nil, nil, kept[1:], []byte(dataKeyName))
	if err != nil {
		return nil, ErrMasterKey
	}
	return key, nil
}

func wrapper(master []byte) cipher.AEAD { return newCipher(derive(master, "puntuale: data key")) }
