//go:build !nosocket

package socket

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/util/dbutil"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"

	"puntuale"
)

// What the library stores is sealed where its tables accept bytes of any length. Pre-keys have a fixed length, so they
// are not sealed. The place of each seal names the session. Each pre-key is used once and then removed, and it is useless without the device's own keys.

// sealer has the functions of the vault that this package needs.
type sealer struct {
	lock   func(purpose, place string, plain []byte) []byte
	unlock func(purpose, place string, sealed []byte) ([]byte, error)
}

func (s sealer) seal(session puntuale.SessionID, plain []byte) []byte {
	return s.lock(puntuale.SealedWhatsApp, session.SealPlace(), plain)
}

func (s sealer) open(session puntuale.SessionID, sealed []byte) ([]byte, error) {
	return s.unlock(puntuale.SealedWhatsApp, session.SealPlace(), sealed)
}

// secretAddress seals the data of one session. It leaves empty data empty.
type secretAddress struct {
	sealer
	session puntuale.SessionID
}

func (p secretAddress) sealValue(plain []byte) []byte {
	if plain == nil {
		return nil
	}
	return p.seal(p.session, plain)
}

func (p secretAddress) unsealValue(sealed []byte, err error) ([]byte, error) {
	if err != nil || sealed == nil {
		return nil, err
	}
	plain, err := p.open(p.session, sealed)
	if err != nil {
		return nil, fmt.Errorf("read what a linked number keeps: %w", err)
	}
	return plain, nil
}

// sealedSessions seals the encryption states. There is one state for each device with which the number exchanges
// messages.
type sealedSessions struct {
	store.SessionStore
	secretAddress
}

func (s sealedSessions) GetSession(ctx context.Context, address string) ([]byte, error) {
	return s.unsealValue(s.SessionStore.GetSession(ctx, address))
}

func (s sealedSessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	all, err := s.SessionStore.GetManySessions(ctx, addresses)
	if err != nil {
		return nil, err
	}
	for address, sealed := range all {
		if all[address], err = s.unsealValue(sealed, nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s sealedSessions) PutSession(ctx context.Context, address string, session []byte) error {
	return s.SessionStore.PutSession(ctx, address, s.sealValue(session))
}

func (s sealedSessions) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	sealed := make(map[string][]byte, len(sessions))
	for address, session := range sessions {
		sealed[address] = s.sealValue(session)
	}
	return s.SessionStore.PutManySessions(ctx, sealed)
}

// sealedSenderKeys seals the keys of groups.
type sealedSenderKeys struct {
	store.SenderKeyStore
	secretAddress
}

func (s sealedSenderKeys) PutSenderKey(ctx context.Context, group, user string, key []byte) error {
	return s.SenderKeyStore.PutSenderKey(ctx, group, user, s.sealValue(key))
}

func (s sealedSenderKeys) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	return s.unsealValue(s.SenderKeyStore.GetSenderKey(ctx, group, user))
}

// sealedAppStateKeys seals the keys that decrypt the settings and contacts that the phone shares with its devices.
type sealedAppStateKeys struct {
	store.AppStateSyncKeyStore
	secretAddress
}

func (s sealedAppStateKeys) PutAppStateSyncKey(ctx context.Context, id []byte, key store.AppStateSyncKey) error {
	key.Data = s.sealValue(key.Data)
	return s.AppStateSyncKeyStore.PutAppStateSyncKey(ctx, id, key)
}

func (s sealedAppStateKeys) GetAppStateSyncKey(ctx context.Context, id []byte) (*store.AppStateSyncKey, error) {
	key, err := s.AppStateSyncKeyStore.GetAppStateSyncKey(ctx, id)
	if err != nil || key == nil {
		return nil, err
	}
	key.Data, err = s.unsealValue(key.Data, nil)
	return key, err
}

func (s sealedAppStateKeys) GetAllAppStateSyncKeys(ctx context.Context) ([]*store.AppStateSyncKey, error) {
	all, err := s.AppStateSyncKeyStore.GetAllAppStateSyncKeys(ctx)
	for _, key := range all {
		if err == nil {
			key.Data, err = s.unsealValue(key.Data, nil)
		}
	}
	return all, err
}

// sealedMessageSecrets seals the secrets of single messages. Answers to a message are encrypted with the message's
// secret.
type sealedMessageSecrets struct {
	store.MsgSecretStore
	secretAddress
}

func (s sealedMessageSecrets) PutMessageSecrets(ctx context.Context, all []store.MessageSecretInsert) error {
	sealed := make([]store.MessageSecretInsert, len(all))
	for i, one := range all {
		one.Secret = s.sealValue(one.Secret)
		sealed[i] = one
	}
	return s.MsgSecretStore.PutMessageSecrets(ctx, sealed)
}

func (s sealedMessageSecrets) PutMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID, secret []byte) error {
	return s.MsgSecretStore.PutMessageSecret(ctx, chat, sender, id, s.sealValue(secret))
}

func (s sealedMessageSecrets) GetMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID) ([]byte, types.JID, error) {
	sealed, person, err := s.MsgSecretStore.GetMessageSecret(ctx, chat, sender, id)
	secret, err := s.unsealValue(sealed, err)
	return secret, person, err
}

// sealedPrivacyTokens seals the tokens that prove that a recipient knows the number. The tokens' table has no foreign
// key, so it would accept rows of a removed device. Therefore this store itself adds no row after the device was
// removed.
type sealedPrivacyTokens struct {
	store.PrivacyTokenStore
	secretAddress
	removed *atomic.Bool
}

func (s sealedPrivacyTokens) PutPrivacyTokens(ctx context.Context, tokens ...store.PrivacyToken) error {
	if s.removed.Load() {
		return errRemoved
	}
	sealed := make([]store.PrivacyToken, len(tokens))
	for i, token := range tokens {
		token.Token = s.sealValue(token.Token)
		sealed[i] = token
	}
	return s.PrivacyTokenStore.PutPrivacyTokens(ctx, sealed...)
}

func (s sealedPrivacyTokens) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	token, err := s.PrivacyTokenStore.GetPrivacyToken(ctx, user)
	if err != nil || token == nil {
		return nil, err
	}
	token.Token, err = s.unsealValue(token.Token, nil)
	return token, err
}

// sealedSalt seals the salt of contact tokens. A contact token replaces the privacy token of a contact that gave no
// privacy token.
type sealedSalt struct {
	store.NCTSaltStore
	secretAddress
}

func (s sealedSalt) PutNCTSalt(ctx context.Context, salt []byte) error {
	return s.NCTSaltStore.PutNCTSalt(ctx, s.sealValue(salt))
}

func (s sealedSalt) GetNCTSalt(ctx context.Context) ([]byte, error) {
	return s.unsealValue(s.NCTSaltStore.GetNCTSalt(ctx))
}

// sealedEvents seals two kinds of messages: sent messages that a device may request again, and received messages that
// are not stored yet.
type sealedEvents struct {
	store.EventBuffer
	secretAddress
}

func (s sealedEvents) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	event, err := s.EventBuffer.GetBufferedEvent(ctx, hash)
	if err != nil || event == nil {
		return nil, err
	}
	event.Plaintext, err = s.unsealValue(event.Plaintext, nil)
	return event, err
}

func (s sealedEvents) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, at time.Time) error {
	return s.EventBuffer.PutBufferedEvent(ctx, hash, s.sealValue(plaintext), at)
}

func (s sealedEvents) GetOutgoingEvent(ctx context.Context, chat, alternative types.JID, id types.MessageID) (string, []byte, error) {
	format, sealed, err := s.EventBuffer.GetOutgoingEvent(ctx, chat, alternative, id)
	plain, err := s.unsealValue(sealed, err)
	return format, plain, err
}

func (s sealedEvents) AddOutgoingEvent(ctx context.Context, chat types.JID, id types.MessageID, format string, plaintext []byte) error {
	return s.EventBuffer.AddOutgoingEvent(ctx, chat, id, format, s.sealValue(plaintext))
}

// manyPreKeys stores the hundreds of keys of a new device in one transaction. The library would use one transaction for
// each key, which takes seconds on a disk. manyPreKeys takes its lock before a database connection, because there may
// be only one connection.
type manyPreKeys struct {
	store.PreKeyStore
	db   *dbutil.Database
	lock *sync.Mutex
}

func (s manyPreKeys) GetOrGenPreKeys(ctx context.Context, count uint32) (all []*keys.PreKey, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	err = s.db.DoTxn(ctx, nil, func(ctx context.Context) (err error) {
		all, err = s.PreKeyStore.GetOrGenPreKeys(ctx, count)
		return err
	})
	return all, err
}

func (s manyPreKeys) GenOnePreKey(ctx context.Context) (*keys.PreKey, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.PreKeyStore.GenOnePreKey(ctx)
}
