//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// fewKeys is how many one-time keys a phone makes together. A real phone makes 812, which takes long.
const fewKeys = 24

// memory is a phone's store. It lives as long as the test, also when the phone's connections end.
type memory struct {
	changing   sync.Mutex        // held while an encryption state changes; lock changing before mu
	sending    map[string][]byte // the encryption states that a send has read
	mu         sync.Mutex
	identities map[string][32]byte
	sessions   map[string][]byte
	once       map[uint32]*keys.PreKey
	uploaded   uint32 // the id of the newest uploaded key
	last       uint32 // the id of the newest key
	senderKeys map[string][]byte
	stateKeys  map[string]store.AppStateSyncKey
	lastKey    []byte
	versions   map[string]stateVersion
	macs       map[string][]byte
	contacts   map[types.JID]types.ContactInfo
	chats      map[types.JID]types.LocalChatSettings
	secrets    map[string]secret
	tokens     map[types.JID]store.PrivacyToken
	salt       []byte
	outgoing   map[string]outgoingEvent
	lidOf      map[string]string // the LID of each number
	numberOf   map[string]string // the number of each LID
}

type stateVersion struct {
	version uint64
	hash    [128]byte
}

type secret struct {
	sender types.JID
	value  []byte
}

type outgoingEvent struct {
	format string
	plain  []byte
}

var _ store.AllStores = (*memory)(nil)

func newMemory() *memory {
	return &memory{
		identities: map[string][32]byte{}, sessions: map[string][]byte{}, once: map[uint32]*keys.PreKey{}, senderKeys: map[string][]byte{},
		stateKeys: map[string]store.AppStateSyncKey{}, versions: map[string]stateVersion{}, macs: map[string][]byte{}, contacts: map[types.JID]types.ContactInfo{},
		chats: map[types.JID]types.LocalChatSettings{}, secrets: map[string]secret{}, tokens: map[types.JID]store.PrivacyToken{},
		outgoing: map[string]outgoingEvent{}, lidOf: map[string]string{}, numberOf: map[string]string{},
	}
}

func (m *memory) locked() func() {
	m.mu.Lock()
	return m.mu.Unlock
}

func (m *memory) PutDevice(context.Context, *store.Device) error    { return nil }
func (m *memory) DeleteDevice(context.Context, *store.Device) error { return nil }

func (m *memory) PutIdentity(_ context.Context, address string, key [32]byte) error {
	defer m.locked()()
	m.identities[address] = key
	return nil
}

func (m *memory) DeleteAllIdentities(_ context.Context, phone string) error {
	defer m.locked()()
	maps.DeleteFunc(m.identities, func(address string, _ [32]byte) bool { return strings.HasPrefix(address, phone+":") })
	return nil
}

func (m *memory) DeleteIdentity(_ context.Context, address string) error {
	defer m.locked()()
	delete(m.identities, address)
	return nil
}

func (m *memory) IsTrustedIdentity(_ context.Context, address string, key [32]byte) (bool, error) {
	defer m.locked()()
	known, found := m.identities[address]
	return !found || known == key, nil
}

func (m *memory) GetSession(_ context.Context, address string) ([]byte, error) {
	defer m.locked()()
	return m.sessions[address], nil
}

func (m *memory) HasSession(_ context.Context, address string) (bool, error) {
	defer m.locked()()
	_, found := m.sessions[address]
	return found, nil
}

func (m *memory) GetManySessions(_ context.Context, addresses []string) (map[string][]byte, error) {
	defer m.locked()()
	found := make(map[string][]byte, len(addresses))
	for _, address := range addresses {
		found[address] = m.sessions[address]
	}
	m.sending = maps.Clone(found)
	return found, nil
}

func (m *memory) PutSession(_ context.Context, address string, session []byte) error {
	defer m.locked()()
	m.sessions[address] = session
	return nil
}

// errMoved says that a message was decrypted while another message was encrypted for the same device. If one state
// overwrote the other, messages would be lost. The library's own store overwrites the state. This store returns
// errMoved.
var errMoved = errors.New("the session changed meanwhile")

func (m *memory) PutManySessions(_ context.Context, sessions map[string][]byte) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	defer m.locked()()
	for address := range sessions {
		if !bytes.Equal(m.sending[address], m.sessions[address]) {
			return errMoved
		}
	}
	maps.Copy(m.sessions, sessions)
	return nil
}

func (m *memory) DeleteAllSessions(_ context.Context, phone string) error {
	defer m.locked()()
	maps.DeleteFunc(m.sessions, func(address string, _ []byte) bool { return strings.HasPrefix(address, phone+":") })
	return nil
}

func (m *memory) DeleteSession(_ context.Context, address string) error {
	defer m.locked()()
	delete(m.sessions, address)
	return nil
}

func (m *memory) MigratePNToLID(_ context.Context, pn, lid types.JID) error {
	defer m.locked()()
	from, to := pn.SignalAddressUser()+":", lid.SignalAddressUser()+":"
	rename(m.sessions, from, to)
	rename(m.identities, from, to)
	rename(m.senderKeys, from, to)
	return nil
}

// rename moves the entries of one user to another user. A key may contain a group before the user.
func rename[V any](all map[string]V, from, to string) {
	for key, value := range all {
		group, address, grouped := strings.Cut(key, "|")
		if !grouped {
			group, address = "", key
		}
		if rest, own := strings.CutPrefix(address, from); own {
			delete(all, key)
			if grouped {
				all[group+"|"+to+rest] = value
			} else {
				all[to+rest] = value
			}
		}
	}
}

func (m *memory) newKey() *keys.PreKey {
	m.last++
	key := keys.NewPreKey(m.last)
	m.once[m.last] = key
	return key
}

func (m *memory) GetOrGenPreKeys(_ context.Context, count uint32) ([]*keys.PreKey, error) {
	defer m.locked()()
	var fresh []*keys.PreKey
	for range min(count, fewKeys) {
		fresh = append(fresh, m.newKey())
	}
	return fresh, nil
}

func (m *memory) GenOnePreKey(context.Context) (*keys.PreKey, error) {
	defer m.locked()()
	return m.newKey(), nil
}

func (m *memory) GetPreKey(_ context.Context, id uint32) (*keys.PreKey, error) {
	defer m.locked()()
	return m.once[id], nil
}

func (m *memory) RemovePreKey(_ context.Context, id uint32) error {
	defer m.locked()()
	delete(m.once, id)
	return nil
}

func (m *memory) MarkPreKeysAsUploaded(_ context.Context, upToID uint32) error {
	defer m.locked()()
	m.uploaded = max(m.uploaded, upToID)
	return nil
}

func (m *memory) UploadedPreKeyCount(context.Context) (int, error) {
	defer m.locked()()
	count := 0
	for id := range m.once {
		if id <= m.uploaded {
			count++
		}
	}
	return count, nil
}

func (m *memory) PutSenderKey(_ context.Context, group, user string, session []byte) error {
	defer m.locked()()
	m.senderKeys[group+"|"+user] = session
	return nil
}

func (m *memory) GetSenderKey(_ context.Context, group, user string) ([]byte, error) {
	defer m.locked()()
	return m.senderKeys[group+"|"+user], nil
}

func (m *memory) PutAppStateSyncKey(_ context.Context, id []byte, key store.AppStateSyncKey) error {
	defer m.locked()()
	m.stateKeys[string(id)], m.lastKey = key, id
	return nil
}

func (m *memory) GetAppStateSyncKey(_ context.Context, id []byte) (*store.AppStateSyncKey, error) {
	defer m.locked()()
	if key, found := m.stateKeys[string(id)]; found {
		return &key, nil
	}
	return nil, nil
}

func (m *memory) GetLatestAppStateSyncKeyID(context.Context) ([]byte, error) {
	defer m.locked()()
	return m.lastKey, nil
}

func (m *memory) GetAllAppStateSyncKeys(context.Context) (all []*store.AppStateSyncKey, _ error) {
	defer m.locked()()
	for _, key := range m.stateKeys {
		all = append(all, &key)
	}
	return all, nil
}

func (m *memory) PutAppStateVersion(_ context.Context, name string, version uint64, hash [128]byte) error {
	defer m.locked()()
	m.versions[name] = stateVersion{version, hash}
	return nil
}

func (m *memory) GetAppStateVersion(_ context.Context, name string) (uint64, [128]byte, error) {
	defer m.locked()()
	v := m.versions[name]
	return v.version, v.hash, nil
}

func (m *memory) DeleteAppStateVersion(_ context.Context, name string) error {
	defer m.locked()()
	delete(m.versions, name)
	return nil
}

func (m *memory) PutAppStateMutationMACs(_ context.Context, name string, _ uint64, mutations []store.AppStateMutationMAC) error {
	defer m.locked()()
	for _, mutation := range mutations {
		m.macs[name+"|"+string(mutation.IndexMAC)] = mutation.ValueMAC
	}
	return nil
}

func (m *memory) DeleteAppStateMutationMACs(_ context.Context, name string, indexMACs [][]byte) error {
	defer m.locked()()
	for _, index := range indexMACs {
		delete(m.macs, name+"|"+string(index))
	}
	return nil
}

func (m *memory) GetAppStateMutationMAC(_ context.Context, name string, indexMAC []byte) ([]byte, error) {
	defer m.locked()()
	return m.macs[name+"|"+string(indexMAC)], nil
}

func (m *memory) PutPushName(_ context.Context, user types.JID, name string) (bool, string, error) {
	defer m.locked()()
	known := m.contacts[user]
	before := known.PushName
	known.Found, known.PushName = true, name
	m.contacts[user] = known
	return before != name, before, nil
}

func (m *memory) PutBusinessName(_ context.Context, user types.JID, name string) (bool, string, error) {
	defer m.locked()()
	known := m.contacts[user]
	before := known.BusinessName
	known.Found, known.BusinessName = true, name
	m.contacts[user] = known
	return before != name, before, nil
}

func (m *memory) PutContactName(_ context.Context, user types.JID, full, first string) error {
	defer m.locked()()
	known := m.contacts[user]
	known.Found, known.FullName, known.FirstName = true, full, first
	m.contacts[user] = known
	return nil
}

func (m *memory) PutAllContactNames(ctx context.Context, contacts []store.ContactEntry) error {
	for _, c := range contacts {
		if err := m.PutContactName(ctx, c.JID, c.FullName, c.FirstName); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) PutManyRedactedPhones(context.Context, []store.RedactedPhoneEntry) error { return nil }

func (m *memory) GetContact(_ context.Context, user types.JID) (types.ContactInfo, error) {
	defer m.locked()()
	return m.contacts[user], nil
}

func (m *memory) GetAllContacts(context.Context) (map[types.JID]types.ContactInfo, error) {
	defer m.locked()()
	return maps.Clone(m.contacts), nil
}

func (m *memory) chat(jid types.JID, change func(*types.LocalChatSettings)) error {
	defer m.locked()()
	settings := m.chats[jid]
	settings.Found = true
	change(&settings)
	m.chats[jid] = settings
	return nil
}

func (m *memory) PutMutedUntil(_ context.Context, chat types.JID, mutedUntil time.Time) error {
	return m.chat(chat, func(s *types.LocalChatSettings) { s.MutedUntil = mutedUntil })
}

func (m *memory) PutPinned(_ context.Context, chat types.JID, pinned bool) error {
	return m.chat(chat, func(s *types.LocalChatSettings) { s.Pinned = pinned })
}

func (m *memory) PutArchived(_ context.Context, chat types.JID, archived bool) error {
	return m.chat(chat, func(s *types.LocalChatSettings) { s.Archived = archived })
}

func (m *memory) GetChatSettings(_ context.Context, chat types.JID) (types.LocalChatSettings, error) {
	defer m.locked()()
	return m.chats[chat], nil
}

func secretKey(chat, sender types.JID, id types.MessageID) string {
	return chat.ToNonAD().String() + "|" + sender.ToNonAD().String() + "|" + id
}

func (m *memory) PutMessageSecrets(ctx context.Context, inserts []store.MessageSecretInsert) error {
	for _, i := range inserts {
		if err := m.PutMessageSecret(ctx, i.Chat, i.Sender, i.ID, i.Secret); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) PutMessageSecret(_ context.Context, chat, sender types.JID, id types.MessageID, value []byte) error {
	defer m.locked()()
	m.secrets[secretKey(chat, sender, id)] = secret{sender.ToNonAD(), value}
	return nil
}

func (m *memory) GetMessageSecret(_ context.Context, chat, sender types.JID, id types.MessageID) ([]byte, types.JID, error) {
	defer m.locked()()
	found := m.secrets[secretKey(chat, sender, id)]
	return found.value, found.sender, nil
}

func (m *memory) PutPrivacyTokens(_ context.Context, tokens ...store.PrivacyToken) error {
	defer m.locked()()
	for _, token := range tokens {
		token.User = token.User.ToNonAD()
		if known, found := m.tokens[token.User]; found {
			if token.Timestamp.Before(known.Timestamp) {
				continue
			}
			if token.SenderTimestamp.IsZero() {
				token.SenderTimestamp = known.SenderTimestamp
			}
		}
		m.tokens[token.User] = token
	}
	return nil
}

func (m *memory) GetPrivacyToken(_ context.Context, user types.JID) (*store.PrivacyToken, error) {
	defer m.locked()()
	if token, found := m.tokens[user.ToNonAD()]; found {
		return &token, nil
	}
	return nil, nil
}

func (m *memory) DeleteExpiredPrivacyTokens(_ context.Context, cutoff time.Time) (int64, error) {
	defer m.locked()()
	before := len(m.tokens)
	maps.DeleteFunc(m.tokens, func(_ types.JID, token store.PrivacyToken) bool { return token.Timestamp.Before(cutoff) })
	return int64(before - len(m.tokens)), nil
}

func (m *memory) PutNCTSalt(_ context.Context, salt []byte) error {
	defer m.locked()()
	m.salt = bytes.Clone(salt)
	return nil
}

func (m *memory) GetNCTSalt(context.Context) ([]byte, error) {
	defer m.locked()()
	return slices.Clone(m.salt), nil
}

func (m *memory) DeleteNCTSalt(context.Context) error {
	defer m.locked()()
	m.salt = nil
	return nil
}

// The following methods buffer nothing. The library still runs each decryption as a transaction.

func (m *memory) GetBufferedEvent(context.Context, [32]byte) (*store.BufferedEvent, error) {
	return nil, nil
}

func (m *memory) PutBufferedEvent(context.Context, [32]byte, []byte, time.Time) error { return nil }

func (m *memory) DoDecryptionTxn(ctx context.Context, decrypt func(context.Context) error) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	return decrypt(ctx)
}

func (m *memory) ClearBufferedEventPlaintext(context.Context, [32]byte) error { return nil }

func (m *memory) DeleteOldBufferedHashes(context.Context) error { return nil }

func (m *memory) GetOutgoingEvent(_ context.Context, chat, alternative types.JID, id types.MessageID) (string, []byte, error) {
	defer m.locked()()
	for _, jid := range []types.JID{chat, alternative} {
		if found, ok := m.outgoing[jid.String()+"|"+id]; ok {
			return found.format, found.plain, nil
		}
	}
	return "", nil, nil
}

func (m *memory) AddOutgoingEvent(_ context.Context, chat types.JID, id types.MessageID, format string, plain []byte) error {
	defer m.locked()()
	m.outgoing[chat.String()+"|"+id] = outgoingEvent{format, plain}
	return nil
}

func (m *memory) DeleteOldOutgoingEvents(context.Context) error { return nil }

func (m *memory) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for _, mapping := range mappings {
		if err := m.PutLIDMapping(ctx, mapping.LID, mapping.PN); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) PutLIDMapping(_ context.Context, lid, pn types.JID) error {
	defer m.locked()()
	if lid.Server == types.HiddenUserServer && pn.Server == types.DefaultUserServer {
		m.lidOf[pn.User], m.numberOf[lid.User] = lid.User, pn.User
	}
	return nil
}

func (m *memory) GetPNForLID(_ context.Context, lid types.JID) (types.JID, error) {
	defer m.locked()()
	if number, found := m.numberOf[lid.User]; found && lid.Server == types.HiddenUserServer {
		return types.JID{User: number, Device: lid.Device, Server: types.DefaultUserServer}, nil
	}
	return types.EmptyJID, nil
}

func (m *memory) GetLIDForPN(_ context.Context, pn types.JID) (types.JID, error) {
	defer m.locked()()
	if lid, found := m.lidOf[pn.User]; found && pn.Server == types.DefaultUserServer {
		return types.JID{User: lid, Device: pn.Device, Server: types.HiddenUserServer}, nil
	}
	return types.EmptyJID, nil
}

func (m *memory) GetManyLIDsForPNs(ctx context.Context, pns []types.JID) (map[types.JID]types.JID, error) {
	found := map[types.JID]types.JID{}
	for _, pn := range pns {
		if lid, err := m.GetLIDForPN(ctx, pn); err == nil && !lid.IsEmpty() {
			found[pn] = lid
		}
	}
	return found, nil
}
