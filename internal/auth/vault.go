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

// Vault encrypts data that must not be readable in the database. It also makes keyed hashes of data that must be found,
// but not read. All its keys derive from one data key of the installation. A purpose says what the data are for, and
// each purpose has its own key. Vault is safe for concurrent use.
type Vault struct{ data []byte }

// DataKeySize is the length of a data key, in bytes.
const DataKeySize = 32

// NewVault returns a vault with a data key of DataKeySize bytes.
func NewVault(dataKey []byte) (*Vault, error) {
	if len(dataKey) != DataKeySize {
		return nil, fmt.Errorf("a data key has %d bytes, not %d", DataKeySize, len(dataKey))
	}
	return &Vault{data: append([]byte{}, dataKey...)}, nil
}

// Seal encrypts the argument plain. Open decrypts the result only with the same purpose and place. The argument place
// identifies the owner, such as "session 12". Therefore, sealed data cannot be copied to another row.
func (v *Vault) Seal(purpose, place string, plain []byte) []byte {
	return v.sealer(purpose).Seal(nil, nil, plain, []byte(place)) //nolint:gosec // the cipher makes the random nonce
}

// Open decrypts data that Seal encrypted. It returns an error for any other data, purpose or place.
func (v *Vault) Open(purpose, place string, sealed []byte) ([]byte, error) {
	plain, err := v.sealer(purpose).Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("open what was sealed for %s: %w", purpose, err)
	}
	return plain, nil
}

// Mark returns a keyed hash of the parts, 43 characters of base64. Equal parts have equal hashes, and different parts
// have different hashes. Without the data key, nobody can find the parts from the hash.
func (v *Vault) Mark(purpose string, parts ...string) string {
	sum := hmac.New(sha256.New, derive(v.data, "puntuale: mark: "+purpose))
	for _, part := range parts { // the length before each part makes ("ab", "c") and ("a", "bc") different
		sum.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		sum.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func (v *Vault) sealer(purpose string) cipher.AEAD {
	return newCipher(derive(v.data, "puntuale: seal: "+purpose))
}

// derive derives a key of 32 bytes from a random key. It uses only the expand step of HKDF, which is enough for a
// random key.
func derive(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + "\x01"))
	return mac.Sum(nil)
}

// newCipher returns a cipher for a key of 32 bytes. It cannot fail with such a key.
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

// The store contains the data key under this name. The first byte is the form of the rest: the plain data key, or the
// wrapped one.
const (
	dataKeyName = "data key"
	asItIs      = 'p'
	wrapped     = 'w'
)

// MinMasterKey is the least length of the text that wraps the data key, in bytes. The text must be random, such as 32
// random bytes in base64, because no slow hash protects a weak text.
const MinMasterKey = 32

// ErrMasterKey means that the data key cannot be unwrapped, because the master key is wrong or missing.
var ErrMasterKey = errors.New("the stored secrets are sealed under another key")

// OpenVault returns the vault of the installation, and creates its data key at the first start. The argument master is
// the master key, which wraps (encrypts) the data key. If master is nil, the data key is in the database unwrapped. If
// a master key is given later, it wraps the existing data key. Any number of nodes may call OpenVault at the same time.
// The error is [ErrMasterKey] if the master key is wrong or missing.
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
		// Another node may store a data key at the same time. Then both nodes read the key that was stored first.
		if _, err := secrets.SetSecret(ctx, dataKeyName, kept, wrap(key, master)); err != nil {
			return nil, fmt.Errorf("store the data key: %w", err)
		}
	}
}

// Sealed reports whether the stored data key needs a master key.
func Sealed(ctx context.Context, secrets puntuale.SecretStore) (bool, error) {
	kept, err := secrets.Secret(ctx, dataKeyName)
	return len(kept) > 0 && kept[0] == wrapped, err
}

// ErrNothingSealed means that the installation has no data key yet.
var ErrNothingSealed = errors.New("nothing was sealed yet")

// Rewrap wraps the data key with another master key. What is sealed stays as it is, so running nodes notice nothing; a
// node that starts afterwards needs the new key. old is nil if the data key is not wrapped yet. Errors: [ErrMasterKey] if
// old is not the present key, [ErrNothingSealed]; then nothing has changed.
func Rewrap(ctx context.Context, secrets puntuale.SecretStore, old, master []byte) error {
	kept, err := secrets.Secret(ctx, dataKeyName)
	if err != nil {
		return fmt.Errorf("read the data key: %w", err)
	}
	key, err := unwrap(kept, old)
	switch {
	case err != nil:
		return err
	case key == nil:
		return ErrNothingSealed
	}
	set, err := secrets.SetSecret(ctx, dataKeyName, kept, wrap(key, master))
	switch {
	case err != nil:
		return fmt.Errorf("store the data key: %w", err)
	case !set:
		return fmt.Errorf("%w: another command has just replaced it", ErrMasterKey)
	}
	return nil
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
