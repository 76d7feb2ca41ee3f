package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"puntuale"
)

// Replacement replaces the data key while servers run. It changes only the stored keys. Its caller waits for the servers
// between the steps, and seals again what the former key sealed:
//
//	Begin   there is a new key, which opens. Wait until every server has read it.
//	Switch  the new key seals. Wait until every server has read this, and until what they sealed before is stored.
//	        Seal everything again.
//	End     the former key is gone.
//
// A process may die between any of them: the next one continues. Several processes may do the same replacement at once,
// because a step that another one has made is not made again. A Replacement is not safe for concurrent use.
type Replacement struct {
	secrets puntuale.SecretStore
	master  []byte
	kept    []byte // as stored
	keys    *dataKeys
	next    dataKey
}

// ErrOtherReplacement means that another process ended this replacement and began the next one.
var ErrOtherReplacement = errors.New("another command has begun to replace the data key once more")

// BeginReplacement makes a new data key, or joins the replacement that is under way. Errors: [ErrMasterKey],
// [ErrNothingSealed].
func BeginReplacement(ctx context.Context, secrets puntuale.SecretStore, master []byte) (*Replacement, error) {
	r := &Replacement{secrets: secrets, master: master}
	for {
		if err := r.read(ctx); err != nil {
			return nil, err
		}
		if len(r.keys.Keys) == 2 {
			r.next = r.keys.newest()
			return r, nil
		}
		key, err := newDataKey()
		if err != nil {
			return nil, err
		}
		if _, err := r.store(ctx, &dataKeys{Keys: []dataKey{r.keys.Keys[0], {Key: key}}, Marks: r.keys.marks()}); err != nil {
			return nil, err
		}
	}
}

// Version is the version that every server must have read before the next step.
func (r *Replacement) Version() int64 { return r.keys.Version }

// Switch lets the new key seal. It may be called again.
func (r *Replacement) Switch(ctx context.Context) error {
	for len(r.keys.Keys) == 2 && !r.keys.Switched {
		if err := r.change(ctx, &dataKeys{Keys: []dataKey{r.keys.Keys[1], r.keys.Keys[0]}, Marks: r.keys.Marks, Switched: true}); err != nil {
			return err
		}
	}
	return nil
}

// End removes the former key. It may be called again.
func (r *Replacement) End(ctx context.Context) error {
	for len(r.keys.Keys) == 2 {
		if err := r.change(ctx, &dataKeys{Keys: []dataKey{r.next}, Marks: r.keys.Marks}); err != nil {
			return err
		}
	}
	return nil
}

// ID is what everything that the new key sealed begins with.
func (r *Replacement) ID() []byte { return r.next.id() }

// Again seals with the new key what any key has sealed. It returns an error if none opens it.
func (r *Replacement) Again(purpose, place string, sealed []byte) ([]byte, error) {
	plain, err := r.keys.open(purpose, place, sealed)
	if err != nil {
		return nil, err
	}
	return (&dataKeys{Keys: []dataKey{r.next}}).seal(purpose, place, plain), nil
}

// change stores the next keys. If another process changed them meanwhile, it only reads what they are now.
func (r *Replacement) change(ctx context.Context, next *dataKeys) error {
	if err := r.same(); err != nil {
		return err
	}
	if stored, err := r.store(ctx, next); stored || err != nil {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	return r.same()
}

// same returns an error if another replacement has begun.
func (r *Replacement) same() error {
	if newest := r.keys.newest(); !bytes.Equal(newest.Key, r.next.Key) {
		return ErrOtherReplacement
	}
	return nil
}

func (r *Replacement) store(ctx context.Context, next *dataKeys) (bool, error) {
	next.Version = r.keys.Version + 1
	text := wrap(next, r.master)
	set, err := r.secrets.SetSecret(ctx, dataKeyName, r.kept, text)
	if err != nil {
		return false, fmt.Errorf("store the data keys: %w", err)
	}
	if set {
		r.kept, r.keys = text, next
	}
	return set, nil
}

func (r *Replacement) read(ctx context.Context) (err error) {
	if r.kept, err = r.secrets.Secret(ctx, dataKeyName); err != nil {
		return fmt.Errorf("read the data keys: %w", err)
	}
	if r.keys, err = unwrap(r.kept, r.master); err == nil && r.keys == nil {
		err = ErrNothingSealed
	}
	return err
}
