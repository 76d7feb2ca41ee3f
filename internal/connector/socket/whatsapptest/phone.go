//go:build !nosocket

package whatsapptest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
)

// libsignal makes its logger at the first use, without a lock, and by default that logger writes to the standard error.
func init() {
	var quiet logger.Loggable = silence{}
	logger.Setup(&quiet)
}

type silence struct{}

func (silence) Debug(string, string)   {}
func (silence) Info(string, string)    {}
func (silence) Warning(string, string) {}
func (silence) Error(string, string)   {}
func (silence) Configure(string)       {}

// Phone is an account whose primary device is a real client, which decrypts and encrypts messages.
type Phone struct {
	*Account
	client *whatsmeow.Client

	// Guarded by n.mu.
	online        bool
	receipts      []Receipt
	undecryptable int
}

// Receipt is a receipt that a phone got for one of its messages.
type Receipt struct {
	ID   string
	From string // the number that sent the receipt
	Type string // "": delivered; otherwise read, played…
}

// Phone returns the phone of a number, switched on and online. It registers the number if it is new.
func (n *Network) Phone(number string) *Phone {
	n.t.Helper()
	p := &Phone{Account: n.Account(number)}
	n.t.Cleanup(p.SwitchOff)
	if err := p.install(); err != nil {
		n.t.Fatalf("make a phone: %v", err)
	}
	if err := p.SwitchOn(context.Background()); err != nil {
		n.t.Fatalf("switch a phone on: %v", err)
	}
	return p
}

// install gives the phone a new client, with an empty store and the account's keys.
func (p *Phone) install() error {
	a, n, kept := p.Account, p.n, newMemory()
	signed, err := a.certify(0, a.identity.Pub[:])
	if err != nil {
		return err
	}
	signed.DeviceSignature = sign(a.identity, slices.Concat([]byte{6, 1}, signed.Details, a.identity.Pub[:], a.identity.Pub[:]))
	address, noise := a.JID(), keys.NewKeyPair()
	n.mu.Lock()
	primary := a.devices[0]
	primary.noise = *noise.Pub
	if a.name == "" {
		a.name = "phone " + a.number
	}
	own := &store.Device{
		Log: waLog.Noop, NoiseKey: noise, IdentityKey: a.identity, SignedPreKey: a.signed, RegistrationID: keyID(primary.keys.registration),
		AdvSecretKey: random(32), ID: &address, LID: a.LID(), Account: signed, PushName: a.name, Initialized: true, LIDs: kept, Container: kept,
	}
	n.mu.Unlock()
	own.SetAllStores(kept)
	p.client = whatsmeow.NewClient(own, nil)
	via := n.HTTPClient()
	p.client.SetWebsocketHTTPClient(via)
	p.client.SetMediaHTTPClient(via)
	p.client.SetForceActiveDeliveryReceipts(true)
	p.client.UseRetryMessageStore = true
	p.client.EnableDecryptedEventBuffer = true // each decryption is a transaction
	p.client.AddEventHandler(p.handle)
	return nil
}

// Reinstall gives the phone new keys and an empty memory, under the same number. It removes the linked devices, and
// notifies all devices that had requested the account's device list. The phone cannot decrypt the messages that were
// stored for it, and requests them again. Do not call Reinstall while other methods of the phone run.
func (p *Phone) Reinstall(ctx context.Context) error {
	p.SwitchOff()
	p.Kick(Removed)
	p.n.mu.Lock()
	p.identity = keys.NewKeyPair()
	p.signed = p.identity.CreateSignedPreKey(1)
	p.n.sequence++
	primary := p.devices[0]
	primary.keys = keyBundle{registration: binary.BigEndian.AppendUint32(nil, uint32(p.n.sequence)), identity: p.identity.Pub[:], signed: *p.signed}
	for w := range p.watchers {
		if w.device.account != p.Account {
			w.device.keep(element("notification", attrs{"from": types.NewJID(p.addressIn(w.space), w.space), "id": p.n.id(), "type": "encrypt", "t": seconds(time.Now())},
				element("identity", nil)))
		}
	}
	p.n.mu.Unlock()
	if err := p.install(); err != nil {
		return err
	}
	return p.SwitchOn(ctx)
}

// Client returns the phone's client, for actions for which Phone has no method.
func (p *Phone) Client() *whatsmeow.Client { return p.client }

// SwitchOn connects the phone and returns once it is online. Then the phone gets the messages that were stored for it.
func (p *Phone) SwitchOn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WaitMost)
	defer cancel()
	if err := p.client.Connect(); err != nil && !errors.Is(err, whatsmeow.ErrAlreadyConnected) {
		return fmt.Errorf("connect: %w", err)
	}
	return p.n.await(ctx, func() bool { return p.online && p.there() })
}

// AwaitOnline returns once the phone is online. After a connection broke, the phone connects again by itself.
func (p *Phone) AwaitOnline(t TB) {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	if err := p.n.await(ctx, p.there); err != nil {
		t.Fatalf("the phone %s is not online", p.number)
	}
}

// there reports whether the phone is connected and has received all that it missed. The caller holds n.mu.
func (p *Phone) there() bool {
	c := p.devices[0].connection
	return c != nil && c.active && !c.closing && c.ctx.Err() == nil
}

// SwitchOff disconnects the phone. The server stores the messages to the phone meanwhile.
func (p *Phone) SwitchOff() {
	p.client.Disconnect()
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.online = false
}

// InBackground(true) makes the phone's delivery receipts have the type inactive, like those of clients in the
// background.
func (p *Phone) InBackground(background bool) { p.client.SetForceActiveDeliveryReceipts(!background) }

// Send sends a text to a number, or to a group if to is a whole address. It returns the message's id.
func (p *Phone) Send(ctx context.Context, to, text string) (id string, err error) {
	return p.SendMessage(ctx, to, &waE2E.Message{Conversation: proto.String(text)})
}

// Reply sends a text that quotes a message, to the same chat. It returns the new message's id.
func (p *Phone) Reply(ctx context.Context, to Message, text string) (id string, err error) {
	return p.SendMessage(ctx, p.chat(to).String(), &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: proto.String(text), ContextInfo: &waE2E.ContextInfo{
			StanzaID: proto.String(to.ID), Participant: proto.String(p.sender(to).String()), QuotedMessage: to.raw,
		},
	}})
}

// SendMessage sends any message to a number, or to a group if to is a whole address. It returns the message's id.
func (p *Phone) SendMessage(ctx context.Context, to string, content *waE2E.Message) (id string, err error) {
	address := types.NewJID(digits(to), types.DefaultUserServer)
	if parsed, err := types.ParseJID(to); err == nil && parsed.User != "" {
		address = parsed
	}
	sent, err := p.client.SendMessage(ctx, address, content)
	for errors.Is(err, errMoved) && ctx.Err() == nil {
		sent, err = p.client.SendMessage(ctx, address, content)
	}
	if err != nil {
		return "", fmt.Errorf("send from the phone: %w", err)
	}
	return sent.ID, nil
}

// Download fetches and decrypts the media of a message.
func (p *Phone) Download(ctx context.Context, m Message) ([]byte, error) {
	media := downloadable(m.raw)
	if media == nil {
		return nil, errors.New("the message has no media, or was read from a file")
	}
	content, err := p.client.Download(ctx, media)
	if err != nil {
		return nil, fmt.Errorf("download at the phone: %w", err)
	}
	return content, nil
}

// downloadable returns the part of a message that has media, or nil if the message has none.
func downloadable(m *waE2E.Message) whatsmeow.DownloadableMessage {
	switch {
	case m.GetImageMessage() != nil:
		return m.GetImageMessage()
	case m.GetVideoMessage() != nil:
		return m.GetVideoMessage()
	case m.GetAudioMessage() != nil:
		return m.GetAudioMessage()
	case m.GetDocumentMessage() != nil:
		return m.GetDocumentMessage()
	}
	return nil
}

// MarkRead sends a read receipt. All messages must have the same chat and the same sender.
func (p *Phone) MarkRead(ctx context.Context, messages ...Message) error {
	return p.mark(ctx, types.ReceiptTypeRead, messages)
}

// MarkPlayed sends a receipt that voice messages were played.
func (p *Phone) MarkPlayed(ctx context.Context, messages ...Message) error {
	return p.mark(ctx, types.ReceiptTypePlayed, messages)
}

func (p *Phone) mark(ctx context.Context, kind types.ReceiptType, messages []Message) error {
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 {
		return errors.New("no message")
	}
	if err := p.client.MarkRead(ctx, ids, time.Now(), p.chat(messages[0]), p.sender(messages[0]), kind); err != nil {
		return fmt.Errorf("mark as %s: %w", kind, err)
	}
	return nil
}

// chat returns the address under which the phone knows a message's chat.
func (p *Phone) chat(m Message) types.JID {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if g := p.n.groups[m.Chat]; g != nil {
		return g.JID()
	}
	if a := p.n.accounts[m.Chat]; a != nil {
		return a.LID()
	}
	return types.NewJID(m.Chat, types.DefaultUserServer)
}

// sender returns the address under which the phone knows a message's sender.
func (p *Phone) sender(m Message) types.JID {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	a := p.n.accounts[m.From]
	if g := p.n.groups[m.Chat]; g != nil && a != nil {
		return g.address(a)
	}
	if a != nil {
		return a.LID()
	}
	return types.NewJID(m.From, types.DefaultUserServer)
}

// Messages lists all messages that the phone has shown: those from others, and those that its owner wrote on other
// devices.
func (p *Phone) Messages() []Message {
	return slices.DeleteFunc(p.n.ledger.All(), func(m Message) bool { return m.Phone != p.number })
}

// Await waits for a message on the phone for which match returns true, and returns the first one. If match is nil, any
// message matches. Await fails the test after WaitMost.
func (p *Phone) Await(t TB, match func(Message) bool) Message {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	var found Message
	err := p.n.await(ctx, func() bool {
		i := slices.IndexFunc(p.n.ledger.entries, func(m Message) bool { return m.Phone == p.number && (match == nil || match(m)) })
		if i >= 0 {
			found = p.n.ledger.entries[i]
		}
		return i >= 0
	})
	if err != nil {
		t.Fatalf("the phone %s shows no such message; it shows %+v", p.number, p.Messages())
	}
	return found
}

// AwaitReceipt waits until the phone got a receipt of this kind for one of its messages.
func (p *Phone) AwaitReceipt(t TB, id, kind string) Receipt {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	var found Receipt
	err := p.n.await(ctx, func() bool {
		i := slices.IndexFunc(p.receipts, func(r Receipt) bool { return r.ID == id && r.Type == kind })
		if i >= 0 {
			found = p.receipts[i]
		}
		return i >= 0
	})
	if err != nil {
		t.Fatalf("the phone %s has no receipt %q for %s; it has %+v", p.number, kind, id, p.receipts)
	}
	return found
}

// Undecryptable returns how many messages the phone could not decrypt. The phone requested these messages again.
func (p *Phone) Undecryptable() int {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	return p.undecryptable
}

func (p *Phone) handle(event any) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	switch e := event.(type) {
	case *events.Connected:
		p.online = true
	case *events.Disconnected, *events.StreamReplaced, *events.LoggedOut:
		p.online = false
	case *events.Message:
		if m, shown := p.n.read(p.Account, e); shown {
			p.n.ledger.add(m)
		}
	case *events.UndecryptableMessage:
		p.undecryptable++
	case *events.Receipt:
		for _, id := range e.MessageIDs {
			p.receipts = append(p.receipts, Receipt{ID: id, From: p.n.chatName(e.Sender.ToNonAD()), Type: string(e.Type)})
		}
	}
	p.n.notify()
}
