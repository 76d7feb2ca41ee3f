//go:build !nosocket

package whatsapptest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// Account is a number that has WhatsApp. Its primary device links other devices. The primary device is off unless the
// account belongs to a [Phone].
type Account struct {
	n        *Network
	number   string
	lid      string
	identity *keys.KeyPair // the primary device's key, which signs the other devices
	signed   *keys.PreKey  // the primary device's signed key

	// Guarded by n.mu.
	name      string
	devices   []*device
	lastID    uint16
	met       map[*Account]bool // accounts that wrote to this account, or got a message from it
	watchers  map[watch]bool    // devices that requested the list of this account's devices
	observers map[*device]bool  // devices that requested this account's presence
	present   bool
	business  string // the name that a business shows when it is linked
	ban       ban
	timelock  Timelock
	passkey   bool // linking a device needs a passkey
	old       bool // the phone cannot link devices
	refusals  []*refusal
	privacy   map[string]string
	settings  settings
	salt      []byte // contact tokens are made from this salt
}

// device is one of an account's devices. The primary device has id 0.
type device struct {
	account    *Account
	id         uint16
	noise      [32]byte
	known      bool // the device has logged in once, so stanzas are stored for it
	greeted    bool // the device got the stanzas that it had missed
	platform   string
	keys       keyBundle
	connection *connection
	pending    []*pendingStanza
	settled    map[string]bool
}

// watch records that a device asked for the list of an account's devices. space says whether it asked by number or by LID,
// the hidden address.
type watch struct {
	device *device
	space  string
}

// Device is one entry of the phone's list of linked devices.
type Device struct {
	ID       int    // 0 is the phone itself
	Platform string // the name that the client gave to the platform
	Online   bool
}

// Account returns the account of a number in international format, with or without +. It registers the number if it is
// new.
func (n *Network) Account(number string) *Account {
	number = digits(number)
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.accounts[number]; a != nil {
		return a
	}
	n.sequence++
	identity := keys.NewKeyPair()
	a := &Account{
		n: n, number: number, lid: strconv.Itoa(100000000000000 + n.sequence*7919), identity: identity, signed: identity.CreateSignedPreKey(1),
		met: map[*Account]bool{}, watchers: map[watch]bool{}, observers: map[*device]bool{}, privacy: map[string]string{"readreceipts": "all"}, settings: settings{},
	}
	a.devices = []*device{{account: a, settled: map[string]bool{}, keys: keyBundle{
		registration: binary.BigEndian.AppendUint32(nil, uint32(n.sequence)), identity: identity.Pub[:], signed: *a.signed,
	}}}
	n.accounts[number], n.accounts[a.lid] = a, a
	return a
}

// Number returns the account's number, digits only.
func (a *Account) Number() string { return a.number }

// JID returns the account's address that contains its number.
func (a *Account) JID() types.JID { return types.NewJID(a.number, types.DefaultUserServer) }

// LID returns the account's hidden address. Current clients send from this address.
func (a *Account) LID() types.JID { return types.NewJID(a.lid, types.HiddenUserServer) }

// SetName changes the name that other phones show for the account.
func (a *Account) SetName(name string) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.name = name
}

// SetBusiness makes the account a business with this name. A client learns the name when it is linked. "" makes the
// account private again.
func (a *Account) SetBusiness(name string) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.business = name
}

// Leave removes the number from WhatsApp. Its devices are disconnected and can never log in again.
func (a *Account) Leave() {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	delete(a.n.accounts, a.number)
	delete(a.n.accounts, a.lid)
	for _, d := range a.devices {
		if d.connection != nil {
			d.connection.cut()
		}
	}
}

// Adopt links a device without a client, for tests that begin with linked numbers. own is a new device of a store.
// Adopt gives own its addresses and its signed identity, and adds it to the account. The caller must save own.
func (a *Account) Adopt(own *store.Device) error {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	id := a.lastID + 1
	signed, err := a.certify(uint32(id), own.IdentityKey.Pub[:])
	if err != nil {
		return err
	}
	signed.DeviceSignature = sign(own.IdentityKey, slices.Concat([]byte{6, 1}, signed.Details, own.IdentityKey.Pub[:], a.identity.Pub[:]))
	a.lastID = id
	d := &device{account: a, id: id, noise: *own.NoiseKey.Pub, known: true, platform: "adopted", settled: map[string]bool{}, keys: keyBundle{
		registration: binary.BigEndian.AppendUint32(nil, own.RegistrationID), identity: own.IdentityKey.Pub[:], signed: *own.SignedPreKey,
	}}
	a.devices = append(a.devices, d)
	address := d.pn()
	own.ID, own.LID, own.Account, own.Platform = &address, d.lid(), signed, "android"
	a.announceDevices("add", d)
	return nil
}

// Devices lists the account's devices, the phone itself first.
func (a *Account) Devices() []Device {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	var list []Device
	for _, d := range a.devices {
		list = append(list, Device{ID: int(d.id), Platform: d.platform, Online: d.connection != nil})
	}
	return list
}

// Know makes two accounts acquainted, as if they had written to each other.
func (a *Account) Know(other *Account) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.met[other], other.met[a] = true, true
}

// digits removes the + from a number, because this package stores numbers without it.
func digits(number string) string { return strings.TrimPrefix(number, "+") }

// addressIn returns the user part of the account's address. space is the server part of the address. It says whether
// the address is a number or a LID.
func (a *Account) addressIn(space string) string {
	if space == types.HiddenUserServer {
		return a.lid
	}
	return a.number
}

// device returns one of the account's devices, or nil if it has none with that id. The caller holds n.mu.
func (a *Account) device(id uint16) *device {
	for _, d := range a.devices {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (d *device) pn() types.JID {
	return types.JID{User: d.account.number, Device: d.id, Server: types.DefaultUserServer}
}

func (d *device) lid() types.JID {
	return types.JID{User: d.account.lid, Device: d.id, Server: types.HiddenUserServer}
}

// The method named in returns the device's address. space is the server part of the address. It says whether the
// address is a number or a LID.
func (d *device) in(space string) types.JID {
	if space == types.HiddenUserServer {
		return d.lid()
	}
	return d.pn()
}

// account returns the account of an address, by number or LID, or nil if there is none. The caller holds n.mu.
func (n *Network) account(address types.JID) *Account {
	a := n.accounts[address.User]
	switch {
	case a == nil:
		return nil
	case address.Server == types.HiddenUserServer && address.User == a.lid, address.Server == types.DefaultUserServer && address.User == a.number:
		return a
	}
	return nil
}

// find returns the device of an address, or nil if there is none. The caller holds n.mu.
func (n *Network) find(address types.JID) *device {
	a := n.account(address)
	if a == nil {
		return nil
	}
	return a.device(address.Device)
}

// certify signs the identity of a new device, as the primary device does.
func (a *Account) certify(index uint32, identity []byte) (*waAdv.ADVSignedDeviceIdentity, error) {
	details, err := proto.Marshal(&waAdv.ADVDeviceIdentity{
		RawID: proto.Uint32(1), Timestamp: proto.Uint64(uint64(time.Now().Unix())), KeyIndex: proto.Uint32(index),
		AccountType: waAdv.ADVEncryptionType_E2EE.Enum(), DeviceType: waAdv.ADVEncryptionType_E2EE.Enum(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a device's identity: %w", err)
	}
	return &waAdv.ADVSignedDeviceIdentity{
		Details: details, AccountSignatureKey: a.identity.Pub[:],
		AccountSignature: sign(a.identity, slices.Concat([]byte{6, 0}, details, identity)),
	}, nil
}

// verify checks the signature that a new device makes after certify.
func (a *Account) verify(signed *waAdv.ADVSignedDeviceIdentity, identity []byte) bool {
	if len(signed.DeviceSignature) != 64 {
		return false
	}
	message := slices.Concat([]byte{6, 1}, signed.Details, identity, a.identity.Pub[:])
	return ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(identity)), message, [64]byte(signed.DeviceSignature))
}
