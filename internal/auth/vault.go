package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Vault encrypts data that must not be readable in the database. It also makes keyed hashes of data that must be found,
// but not read. All its keys derive from data keys of the installation. A purpose says what the data are for, and each
// purpose has its own key. Vault is safe for concurrent use.
//
// The data key can be replaced while servers run (see [Replacement]). Meanwhile there are two: one seals, and both open.
// What a later data key sealed begins with its id, and what the first one sealed has no id. The keyed hashes do not
// change with the data key, because nobody could compute them again for data that are gone.
type Vault struct {
	keys atomic.Pointer[dataKeys]

	secrets puntuale.SecretStore
	clock   clock.Clock // nil: the vault never reads its keys again
	master  func(ctx context.Context) ([]byte, error)
	mu      sync.Mutex
	tried   time.Time    // when somebody last tried to read the keys
	read    atomic.Int64 // when they were last read, in microseconds since 1970
}

// DataKeySize is the length of a data key, in bytes.
const DataKeySize = 32

// NewVault returns a vault with a data key of DataKeySize bytes.
func NewVault(dataKey []byte) (*Vault, error) {
	if len(dataKey) != DataKeySize {
		return nil, fmt.Errorf("a data key has %d bytes, not %d", DataKeySize, len(dataKey))
	}
	v := &Vault{}
	v.keys.Store(firstKeys(append([]byte{}, dataKey...)))
	return v, nil
}

// Seal encrypts the argument plain. Open decrypts the result only with the same purpose and place. The argument place
// identifies the owner, such as "session 12". Therefore, sealed data cannot be copied to another row. The purpose must be
// one of [puntuale.SealPurposes].
func (v *Vault) Seal(purpose, place string, plain []byte) []byte {
	if v.clock != nil && v.clock.Now().Sub(time.UnixMicro(v.read.Load())) >= staleAfter { // for example after the machine slept: the key may be replaced
		_ = v.readOnce(v.keys.Load())
	}
	return v.keys.Load().seal(purpose, place, plain)
}

// Open decrypts data that Seal encrypted. It returns an error for any other data, purpose or place.
func (v *Vault) Open(purpose, place string, sealed []byte) ([]byte, error) {
	keys := v.keys.Load()
	plain, err := keys.open(purpose, place, sealed)
	if err != nil && v.clock != nil && v.readOnce(keys) { // another server may have sealed it with a key that is newer
		plain, err = v.keys.Load().open(purpose, place, sealed)
	}
	if err != nil {
		return nil, fmt.Errorf("open what was sealed for %s: %w", purpose, err)
	}
	return plain, nil
}

// Mark returns a keyed hash of the parts, 43 characters of base64. Equal parts have equal hashes, and different parts
// have different hashes. Without the data key, nobody can find the parts from the hash.
func (v *Vault) Mark(purpose string, parts ...string) string {
	sum := hmac.New(sha256.New, v.keys.Load().markKey(purpose))
	for _, part := range parts { // the length before each part makes ("ab", "c") and ("a", "bc") different
		sum.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		sum.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// How a server follows a replacement of the data key. It reads the keys every ReadKeysEvery. If it has not read them for
// staleAfter, it reads them before it seals. If it cannot open something, it also reads them, but only after
// unknownPause, because anybody may send it something that no key opens.
const (
	ReadKeysEvery = 5 * time.Second
	staleAfter    = 20 * time.Second
	unknownPause  = time.Second
	readWithin    = 5 * time.Second
)

// Follow lets the vault read its keys again, whenever [Vault.ReadAgain] is called, and when it must. The argument master
// returns the master key, which may have been replaced too. Follow must be called before the vault is used.
func (v *Vault) Follow(secrets puntuale.SecretStore, c clock.Clock, master func(ctx context.Context) ([]byte, error)) {
	v.secrets, v.clock, v.master, v.tried = secrets, c, master, c.Now()
	v.read.Store(v.tried.UnixMicro())
}

// Version is the version of the keys that the vault uses. Each step of a replacement raises it.
func (v *Vault) Version() int64 { return v.keys.Load().Version }

// ReadAgain reads the keys again. What a former key sealed can still be opened until the process ends, because the memory
// may have sealed data that were read earlier. [ErrMasterKey]: the keys changed, and they are sealed under another
// master key than this process can read.
func (v *Vault) ReadAgain(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.readLocked(ctx)
}

func (v *Vault) readLocked(ctx context.Context) error {
	begun := v.clock.Now()
	v.tried = begun
	kept, err := v.secrets.Secret(ctx, dataKeyName)
	if err != nil {
		return fmt.Errorf("read the data key: %w", err)
	}
	keys := v.keys.Load()
	if versionOf(kept) != keys.Version {
		master, err := v.master(ctx)
		if err != nil {
			return err
		}
		next, err := unwrap(kept, master)
		switch {
		case err != nil:
			return err
		case next == nil:
			return fmt.Errorf("%w: the data key is gone", puntuale.ErrUntrusted)
		}
		v.keys.Store(next.with(keys))
	}
	v.read.Store(begun.UnixMicro())
	return nil
}

// readOnce reads the keys again, unless this was done after keys was read or was tried just now. It reports whether the
// vault now has other keys than keys.
func (v *Vault) readOnce(keys *dataKeys) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys.Load() == keys && v.clock.Now().Sub(v.tried) >= unknownPause {
		ctx, cancel := context.WithTimeout(context.Background(), readWithin)
		defer cancel()
		_ = v.readLocked(ctx) // the background task reports errors
	}
	return v.keys.Load() != keys
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
