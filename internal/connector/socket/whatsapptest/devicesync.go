//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// settings are the patches of an account's settings, by collection. The account's devices share the patches through the
// server, which cannot read them.
type settings map[string][][]byte

// appState stores a patch from a device, or sends the patches that the device lacks. The caller holds n.mu.
func (c *connection) appState(s stanza) {
	a := c.device.account
	var list []stanza
	for _, requested := range childrenOf(child(s, "sync")) {
		name, from := text(requested, "name"), number(requested, "version")
		if patch := child(requested, "patch"); patch.Tag != "" {
			if from != len(a.settings[name]) {
				list = append(list, element("collection", attrs{"name": name, "type": "error"}, element("error", attrs{"code": "409", "text": "conflict"}), a.patches(name, from)))
				continue
			}
			if err := a.addPatch(name, bytesOf(patch)); err != nil {
				c.n.misunderstood("a patch of %s: %v", name, err)
			}
			for _, d := range a.devices {
				if d != c.device {
					d.keep(element("notification", attrs{"from": a.JID(), "id": c.n.id(), "type": "server_sync", "t": seconds(time.Now())},
						element("collection", attrs{"name": name, "version": strconv.Itoa(len(a.settings[name]))})))
				}
			}
			list = append(list, element("collection", attrs{"name": name, "version": strconv.Itoa(len(a.settings[name]))}))
			continue
		}
		list = append(list, element("collection", attrs{"name": name, "version": strconv.Itoa(len(a.settings[name])), "has_more_patches": "false"}, a.patches(name, from)))
	}
	c.result(s, element("sync", nil, list...))
}

// patches returns those patches of a collection that are later than the version from.
func (a *Account) patches(name string, from int) stanza {
	var list []stanza
	for _, patch := range a.settings[name][min(from, len(a.settings[name])):] {
		list = append(list, data("patch", nil, patch))
	}
	return element("patches", nil, list...)
}

// addPatch gives a patch its number and stores it.
func (a *Account) addPatch(name string, encoded []byte) error {
	var patch waServerSync.SyncdPatch
	if err := proto.Unmarshal(encoded, &patch); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	patch.Version = &waServerSync.SyncdVersion{Version: proto.Uint64(uint64(len(a.settings[name]) + 1))}
	numbered, err := proto.Marshal(&patch)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	a.settings[name] = append(a.settings[name], numbered)
	return nil
}

// Share sends to the account's linked devices the data that a phone sends to a new device. These are the key of the
// account's settings, the phone's name, and the phone's history. The history contains one old message from each account
// that the phone knows, and the secret for tokens of unknown contacts. Share returns once all data were sent. The
// devices must have logged in before.
func (p *Phone) Share(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WaitMost)
	defer cancel()
	keyID, key := []byte{0, 0, 0, 0, 0, 1}, random(32)
	kept, _ := p.client.Store.AppStateKeys.(*memory)
	if kept == nil {
		return errors.New("the phone has no store")
	}
	if known, err := kept.GetAppStateSyncKey(ctx, keyID); err == nil && known != nil {
		key = known.Data
	} else if err := kept.PutAppStateSyncKey(ctx, keyID, store.AppStateSyncKey{Data: key, Timestamp: time.Now().UnixMilli()}); err != nil {
		return fmt.Errorf("keep the key of the settings: %w", err)
	}
	p.n.mu.Lock()
	name, shared := p.name, len(p.settings[string(appstate.WAPatchCriticalBlock)]) > 0
	p.n.mu.Unlock()
	if !shared {
		if err := p.client.SendAppState(ctx, appstate.BuildSettingPushName(name)); err != nil {
			return fmt.Errorf("share the phone's name: %w", err)
		}
	}
	history, err := p.history()
	if err != nil {
		return err
	}
	for _, d := range p.Devices()[1:] {
		for _, content := range []*waE2E.ProtocolMessage{
			{Type: waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(), AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{Keys: []*waE2E.AppStateSyncKey{{
				KeyID:   &waE2E.AppStateSyncKeyId{KeyID: keyID},
				KeyData: &waE2E.AppStateSyncKeyData{KeyData: key, Fingerprint: &waE2E.AppStateSyncKeyFingerprint{RawID: proto.Uint32(1)}, Timestamp: proto.Int64(time.Now().UnixMilli())},
			}}}},
			{Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(), HistorySyncNotification: &waE2E.HistorySyncNotification{
				SyncType: waE2E.HistorySyncType_INITIAL_BOOTSTRAP.Enum(), InitialHistBootstrapInlinePayload: history, ChunkOrder: proto.Uint32(1), Progress: proto.Uint32(100),
			}},
		} {
			if err := p.sendPeer(ctx, uint16(d.ID), &waE2E.Message{ProtocolMessage: content}); err != nil {
				return err
			}
		}
	}
	return nil
}

// history returns the phone's history, compressed.
func (p *Phone) history() ([]byte, error) {
	p.n.mu.Lock()
	p.salt = random(32)
	past := &waHistorySync.HistorySync{
		SyncType: waHistorySync.HistorySync_INITIAL_BOOTSTRAP.Enum(), NctSalt: p.salt, CompanionMetaNonce: proto.String("loopback"),
		ChunkOrder: proto.Uint32(1), Progress: proto.Uint32(100),
	}
	for other := range p.met {
		long := uint64(time.Now().AddDate(0, 0, -30).Unix())
		past.PhoneNumberToLidMappings = append(past.PhoneNumberToLidMappings, &waHistorySync.PhoneNumberToLIDMapping{
			PnJID: proto.String(other.JID().String()), LidJID: proto.String(other.LID().String()),
		})
		past.Pushnames = append(past.Pushnames, &waHistorySync.Pushname{ID: proto.String(other.LID().String()), Pushname: proto.String(other.name)})
		past.Conversations = append(past.Conversations, &waHistorySync.Conversation{ID: proto.String(other.LID().String()), Messages: []*waHistorySync.HistorySyncMsg{{
			Message: &waWeb.WebMessageInfo{
				Key:              &waCommon.MessageKey{RemoteJID: proto.String(other.LID().String()), FromMe: proto.Bool(false), ID: proto.String("OLD" + other.number)},
				MessageTimestamp: &long, Message: &waE2E.Message{Conversation: proto.String("un mese fa")},
			},
		}}})
	}
	p.n.mu.Unlock()
	plain, err := proto.Marshal(past)
	if err != nil {
		return nil, fmt.Errorf("encode the history: %w", err)
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("compress the history: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the history: %w", err)
	}
	return packed.Bytes(), nil
}

// sendPeer sends a message to one of the account's own devices. The library can send such messages only to the phone.
func (p *Phone) sendPeer(ctx context.Context, id uint16, content *waE2E.Message) error {
	plain, err := proto.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode a message to an own device: %w", err)
	}
	inner := p.client.DangerousInternals() //nolint:staticcheck // a phone does what the library has no method for
	to := types.JID{User: p.lid, Device: id, Server: types.HiddenUserServer}
	cipher, first, err := inner.EncryptMessageForDevice(ctx, plain, to, inner.FetchPreKeysNoError(ctx, []types.JID{to})[to], binary.Attrs{}, nil)
	if err != nil {
		return fmt.Errorf("encrypt a message to an own device: %w", err)
	}
	parts := []binary.Node{element("meta", attrs{"appdata": "default"}), *cipher}
	if first {
		parts = append(parts, inner.MakeDeviceIdentityNode())
	}
	message := element("message", attrs{
		"id": whatsmeow.WebMessageIDPrefix + fmt.Sprintf("%X", random(9)), "type": "text", "category": "peer",
		"to": types.JID{User: p.number, Device: id, Server: types.DefaultUserServer},
	}, parts...)
	if err := inner.SendNode(ctx, message); err != nil {
		return fmt.Errorf("send a message to an own device: %w", err)
	}
	return nil
}

// checkContactToken returns what is wrong with a token that replaces a privacy token, or "" if nothing is.
func (a *Account) checkContactToken(shown stanza, to *Account) string {
	if shown.Tag == "" {
		return ""
	}
	mac := hmac.New(sha256.New, a.salt)
	mac.Write([]byte(to.LID().String()))
	if len(a.salt) == 0 || !slices.Equal(mac.Sum(nil), bytesOf(shown)) {
		return "a contact token that is not made from the phone's secret"
	}
	return ""
}
