package auth

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"puntuale"
)

// dataKeys contains the data keys of an installation. It never changes after it was made.
type dataKeys struct {
	Version int64     `json:"version"` // grows with each change; 1: no key was ever replaced
	Keys    []dataKey `json:"keys"`    // the first one seals, and all open
	// Marks has the keys of the keyed hashes, by purpose. They derive from the installation's first data key, and stay
	// when it goes. Purposes that are not in it derive from that of "". nil: the first data key is still there.
	Marks map[string][]byte `json:"marks,omitempty"`
	// Switched says, while there are two keys, that the first one is the newer.
	Switched bool `json:"switched,omitempty"`
}

type dataKey struct {
	Key   []byte `json:"key"`
	First bool   `json:"first,omitempty"` // the installation's first key: what it sealed has no id
}

func firstKeys(key []byte) *dataKeys {
	return &dataKeys{Version: 1, Keys: []dataKey{{Key: key, First: true}}}
}

// newest returns the key that was made last.
func (r *dataKeys) newest() dataKey {
	if len(r.Keys) == 2 && !r.Switched {
		return r.Keys[1]
	}
	return r.Keys[0]
}

// idSize is the length of the id with which sealed data begin. Data of the first key begin with random bytes, so they
// are mistaken for data of another key once in 2^64; then both keys are tried.
const idSize = 8

// id returns what the key's sealed data begin with.
func (k *dataKey) id() []byte {
	if k.First {
		return nil
	}
	return derive(k.Key, "puntuale: key id")[:idSize]
}

func (k *dataKey) cipher(purpose string) cipher.AEAD {
	return newCipher(derive(k.Key, "puntuale: seal: "+purpose))
}

func (r *dataKeys) seal(purpose, place string, plain []byte) []byte {
	if !slices.Contains(puntuale.SealPurposes, purpose) {
		panic("seal for " + purpose + ", which a replacement of the data key would not find")
	}
	return r.Keys[0].cipher(purpose).Seal(r.Keys[0].id(), nil, plain, []byte(place)) //nolint:gosec // the cipher makes the random nonce
}

var errNoKey = errors.New("no key of the installation opens it")

func (r *dataKeys) open(purpose, place string, sealed []byte) ([]byte, error) {
	for i := range r.Keys {
		k := &r.Keys[i]
		if content, ok := bytes.CutPrefix(sealed, k.id()); ok {
			if plain, err := k.cipher(purpose).Open(nil, nil, content, []byte(place)); err == nil {
				return plain, nil
			}
		}
	}
	return nil, errNoKey
}

// with returns the data keys with the keys of an older one, which then also open.
func (r *dataKeys) with(older *dataKeys) *dataKeys {
	all := slices.Clone(r.Keys)
	for _, k := range older.Keys {
		if !slices.ContainsFunc(all, func(o dataKey) bool { return bytes.Equal(o.Key, k.Key) }) {
			all = append(all, k)
		}
	}
	return &dataKeys{Version: r.Version, Keys: all, Marks: r.Marks}
}

// firstMarks lists the purposes of keyed hashes whose keys derive from the first data key directly. It never grows: the
// key of another purpose derives from marksKey, so that it does not depend on which program replaced the data key.
var firstMarks = []string{
	"address of a file", "blacklist", "button of a message", "code of a device", "host name", "ids of messages at WhatsApp", "instance of a gateway",
	"message of a network", "recovery code", "try", "webhook of Chatwoot", "webhook of a gateway",
}

func markKeyOf(key []byte, purpose string) []byte { return derive(key, "puntuale: mark: "+purpose) }

func marksKey(first []byte) []byte { return derive(first, "puntuale: marks") }

// marks returns the keys of all keyed hashes.
func (r *dataKeys) marks() map[string][]byte {
	if r.Marks != nil {
		return r.Marks
	}
	first := r.Keys[0].Key // there is no other key yet
	all := map[string][]byte{"": marksKey(first)}
	for _, purpose := range firstMarks {
		all[purpose] = markKeyOf(first, purpose)
	}
	return all
}

func (r *dataKeys) markKey(purpose string) []byte {
	switch key, ok := r.Marks[purpose]; {
	case ok:
		return key
	case r.Marks != nil:
		return markKeyOf(r.Marks[""], purpose)
	case slices.Contains(firstMarks, purpose):
		return markKeyOf(r.Keys[0].Key, purpose)
	}
	return markKeyOf(marksKey(r.Keys[0].Key), purpose)
}

// The store contains the data key under this name. The first byte is the form of the rest: the plain data key, the
// wrapped one, or all data keys with their version before them, plain or wrapped. The version is not wrapped, so that a server
// with a former master key sees that nothing changed.
const (
	dataKeyName  = "data key"
	asItIs       = 'p'
	wrapped      = 'w'
	allAsTheyAre = 'P'
	allWrapped   = 'W'
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
		keys, err := unwrap(kept, master)
		if err != nil {
			return nil, err
		}
		if kept == nil {
			key, err := newDataKey()
			if err != nil {
				return nil, err
			}
			keys = firstKeys(key)
		}
		if kept != nil && (master == nil || isWrapped(kept)) {
			v := &Vault{}
			v.keys.Store(keys)
			return v, nil
		}
		// Another node may store a data key at the same time. Then both nodes read the key that was stored first.
		if _, err := secrets.SetSecret(ctx, dataKeyName, kept, wrap(keys, master)); err != nil {
			return nil, fmt.Errorf("store the data key: %w", err)
		}
	}
}

func newDataKey() ([]byte, error) {
	key := make([]byte, DataKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("read random bytes for the data key: %w", err)
	}
	return key, nil
}

// Sealed reports whether the stored data key needs a master key.
func Sealed(ctx context.Context, secrets puntuale.SecretStore) (bool, error) {
	kept, err := secrets.Secret(ctx, dataKeyName)
	return isWrapped(kept), err
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
	keys, err := unwrap(kept, old)
	switch {
	case err != nil:
		return err
	case keys == nil:
		return ErrNothingSealed
	}
	set, err := secrets.SetSecret(ctx, dataKeyName, kept, wrap(keys, master))
	switch {
	case err != nil:
		return fmt.Errorf("store the data key: %w", err)
	case !set:
		return fmt.Errorf("%w: another command has just replaced it", ErrMasterKey)
	}
	return nil
}

func isWrapped(kept []byte) bool {
	return len(kept) > 0 && (kept[0] == wrapped || kept[0] == allWrapped)
}

// versionOf returns the version of stored keys; 0 if they are damaged.
func versionOf(kept []byte) int64 {
	switch {
	case len(kept) > 0 && (kept[0] == asItIs || kept[0] == wrapped):
		return 1
	case len(kept) >= allHead:
		return int64(binary.BigEndian.Uint64(kept[1:allHead]))
	}
	return 0
}

const allHead = 1 + 8 // bytes before the stored data keys: their form and their version

// wrap returns the form in which the keys are stored. Before the first replacement it is that of older programs.
func wrap(r *dataKeys, master []byte) []byte {
	form, head, content := byte(asItIs), []byte{}, r.Keys[0].Key
	if r.Version > 1 {
		var err error
		if content, err = json.Marshal(r); err != nil {
			panic("write the data keys: " + err.Error()) // it contains only numbers and bytes, which can always be encoded
		}
		form, head = allAsTheyAre, binary.BigEndian.AppendUint64(nil, uint64(r.Version))
	}
	if master == nil {
		return slices.Concat([]byte{form}, head, content)
	}
	form += wrapped - asItIs
	return wrapper(master).Seal(append([]byte{form}, head...), nil, content, append([]byte(dataKeyName), head...)) //nolint:gosec // as in seal
}

// unwrap returns the stored keys, or nil if none are stored.
func unwrap(kept, master []byte) (*dataKeys, error) {
	damaged := fmt.Errorf("%w: the data key in the database is damaged", puntuale.ErrUntrusted)
	if kept == nil {
		return nil, nil
	}
	head := 1
	if versionOf(kept) == 0 {
		return nil, damaged
	}
	if kept[0] == allAsTheyAre || kept[0] == allWrapped {
		head = allHead
	}
	content := kept[head:]
	switch {
	case !isWrapped(kept):
	case master == nil:
		return nil, fmt.Errorf("%w, and none was given", ErrMasterKey)
	default:
		var err error
		if content, err = wrapper(master).Open(nil, nil, content, append([]byte(dataKeyName), kept[1:head]...)); err != nil {
			return nil, ErrMasterKey
		}
	}
	if head == 1 {
		if len(content) != DataKeySize {
			return nil, damaged
		}
		return firstKeys(content), nil
	}
	r := &dataKeys{}
	if json.Unmarshal(content, r) != nil || r.Version != versionOf(kept) || len(r.Keys) == 0 || r.Marks == nil ||
		slices.ContainsFunc(r.Keys, func(k dataKey) bool { return len(k.Key) != DataKeySize }) {
		return nil, damaged
	}
	return r, nil
}

func wrapper(master []byte) cipher.AEAD { return newCipher(derive(master, "puntuale: data key")) }
