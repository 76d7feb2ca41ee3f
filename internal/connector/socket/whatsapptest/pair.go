//go:build !nosocket

package whatsapptest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"google.golang.org/protobuf/proto"
)

// PairingLife is how long the service lets a client wait for a phone: one code of 60 seconds and five codes of 20
// seconds.
const PairingLife = 160 * time.Second

// pairing is a client that waits until a phone links it.
type pairing struct {
	c       *connection
	refs    []string
	offer   string // id of the query in which the server sends the references
	request string // id of the query in which the server sends the signed identity

	// Set if the phone links by code:
	number    string
	ephemeral []byte // the client's key, wrapped with the code
	ref       string
	bundle    []byte // the client's key bundle, encrypted; set once the client answered

	// Set while a phone links the client:
	account *Account
	device  *device
	outcome error
	done    bool
}

func pairQueries() []queryKind {
	return []queryKind{
		{shape: sh("link_code_companion_reg", "jid:jid stage=companion_hello|companion_finish should_show_push_notification?=true|false",
			maybe(raw("link_code_pairing_wrapped_companion_ephemeral_pub", "")), maybe(raw("companion_server_auth_key_pub", "")),
			maybe(raw("companion_platform_id", "")), maybe(raw("companion_platform_display", "")), maybe(raw("link_code_pairing_nonce", "")),
			maybe(raw("link_code_pairing_wrapped_key_bundle", "")), maybe(raw("companion_identity_public", "")), maybe(raw("link_code_pairing_ref", ""))),
			group: "md", kind: "set", guest: true, answer: (*connection).linkByCode},
	}
}

// offerPairing sends the references from which the client makes its QR codes. The caller holds n.mu.
func (c *connection) offerPairing() {
	p := &pairing{c: c, offer: c.n.id()}
	c.pairing = p
	list := make([]stanza, 6)
	for i := range list {
		ref := "2@" + base64.StdEncoding.EncodeToString(random(48))
		p.refs = append(p.refs, ref)
		c.n.refs[ref] = c
		list[i] = data("ref", nil, []byte(ref))
	}
	c.send(element("iq", attrs{"from": server, "id": p.offer, "type": "set", "xmlns": "md"}, element("pair-device", nil, list...)))
	time.AfterFunc(PairingLife, c.end)
}

// ExpireCodes ends all pairings that have begun. The service does this when a client has shown its codes for
// PairingLife.
func (n *Network) ExpireCodes() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.connections {
		if c.pairing != nil {
			c.cut()
		}
	}
}

// RotateCodes makes waiting clients change the secret in their codes. After that the old codes are refused.
func (n *Network) RotateCodes() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.connections {
		if c.pairing != nil {
			c.send(element("notification", attrs{"from": server, "id": n.id(), "type": "companion_reg_refresh", "t": seconds(time.Now())},
				element("companion_reg_refresh", nil)))
		}
	}
}

// ScanQR links a client to the account by the client's QR code, as the account's phone does. It returns once the client
// confirmed. The client then logs in by itself.
func (a *Account) ScanQR(ctx context.Context, code string) error {
	fields := strings.Split(strings.TrimPrefix(code, "https://wa.me/settings/linked_devices#"), ",")
	if !strings.HasPrefix(code, "https://wa.me/settings/linked_devices#") || len(fields) != 5 {
		return fmt.Errorf("not a code to link a device with: %d fields", len(fields))
	}
	var decoded [3][]byte
	for i, field := range fields[1:4] {
		key, err := base64.StdEncoding.DecodeString(field)
		if err != nil || len(key) != 32 {
			return fmt.Errorf("the code's key %d has %d bytes", i, len(key))
		}
		decoded[i] = key
	}
	a.n.mu.Lock()
	c := a.n.refs[fields[0]]
	if c == nil || c.closing || c.ctx.Err() != nil {
		a.n.mu.Unlock()
		return errors.New("the code is not valid any more")
	}
	if a.old {
		c.send(element("ib", attrs{"from": server}, element("downgrade_webclient", nil)))
		a.n.mu.Unlock()
		return ErrOldPhone
	}
	if a.passkey {
		c.send(element("notification", attrs{"from": server, "id": a.n.id(), "type": "passkey_prologue_request", "t": seconds(time.Now())},
			data("passkey_request_options", nil, []byte(passkeyOptions))))
		a.n.mu.Unlock()
		return ErrPasskey
	}
	err := c.pairing.link(a, decoded[0], decoded[1], decoded[2])
	a.n.mu.Unlock()
	if err != nil {
		return err
	}
	return c.pairing.wait(ctx)
}

// ErrOldPhone says that the phone's WhatsApp is too old to link devices. The client got this error, too.
var ErrOldPhone = errors.New("the phone cannot link devices")

// OldPhone(true) makes the account's phone too old to link devices by QR code. OldPhone(false) ends this.
func (a *Account) OldPhone(old bool) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.old = old
}

// ErrPasskey says that the account requires a passkey before it links a client. The client got this error, too.
var ErrPasskey = errors.New("the account asks for a passkey")

// passkeyOptions are the options with which a browser would ask for the passkey.
const passkeyOptions = `{"challenge":"bG9vcGJhY2s","timeout":60000,"rpId":"whatsapp.com","allowCredentials":[],"userVerification":"required","extensions":{}}`

// RequirePasskey makes the account require a passkey when a QR code is scanned. No client in these tests has a passkey.
func (a *Account) RequirePasskey(required bool) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.passkey = required
}

// link sends the client its signed identity. The caller holds n.mu.
func (p *pairing) link(a *Account, noise, identity, secret []byte) error {
	c := p.c
	switch {
	case p.account != nil:
		return errors.New("the code was used before")
	case !slices.Equal(noise, c.noise[:]) || !slices.Equal(identity, c.payload.GetDevicePairingData().GetEIdent()):
		return errors.New("the code has other keys than the client")
	}
	a.lastID++
	signed, err := a.certify(uint32(a.lastID), identity)
	if err != nil {
		return err
	}
	details, err := proto.Marshal(signed)
	if err != nil {
		return fmt.Errorf("encode a signed identity: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(details)
	container, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: details, HMAC: mac.Sum(nil)})
	if err != nil {
		return fmt.Errorf("encode a signed identity: %w", err)
	}
	var about waCompanionReg.DeviceProps
	if err := proto.Unmarshal(c.payload.GetDevicePairingData().GetDeviceProps(), &about); err != nil {
		return fmt.Errorf("decode the client's properties: %w", err)
	}
	registration := c.payload.GetDevicePairingData()
	p.account = a
	p.device = &device{account: a, id: a.lastID, noise: c.noise, known: true, platform: about.GetOs(), settled: map[string]bool{}, keys: keyBundle{
		registration: registration.GetERegid(), identity: identity, signed: keys.PreKey{
			KeyPair: keys.KeyPair{Pub: (*[32]byte)(registration.GetESkeyVal())}, KeyID: keyID(registration.GetESkeyID()),
			Signature: (*[64]byte)(registration.GetESkeySig()),
		},
	}}
	p.request = c.n.id()
	children := []stanza{
		data("device-identity", nil, container),
		element("device", attrs{"jid": p.device.pn(), "lid": p.device.lid()}),
		element("platform", attrs{"name": "android"}),
	}
	if a.business != "" {
		children = append(children, element("biz", attrs{"name": a.business}))
	}
	c.send(element("iq", attrs{"from": server, "id": p.request, "type": "set", "xmlns": "md", "t": seconds(time.Now())},
		element("pair-success", nil, children...)))
	return nil
}

// wait returns once the client confirmed or refused its new identity.
func (p *pairing) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WaitMost)
	defer cancel()
	n := p.c.n
	if err := n.await(ctx, func() bool { return p.done }); err != nil {
		return fmt.Errorf("the client did not confirm: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.outcome
}

// answered handles the client's answer to a query of the server. The caller holds n.mu.
func (c *connection) answered(s stanza) {
	p := c.pairing
	switch {
	case p == nil || text(s, "id") != p.offer && text(s, "id") != p.request:
		c.n.misunderstood("an answer to no query: %s", s.String())
		return
	case text(s, "id") == p.offer:
		if fault := sh("iq", "id type=result to:jid").check(s); fault != "" {
			c.n.misunderstood("%s: %s", fault, s.String())
		}
		return
	case text(s, "type") == "error":
		p.finish(fmt.Errorf("the client refused: %s", text(child(s, "error"), "text")))
		return
	}
	if fault := sh("iq", "id type=result to:jid", one(sh("pair-device-sign", "", one(raw("device-identity", "key-index"))))).check(s); fault != "" {
		c.n.misunderstood("%s: %s", fault, s.String())
		p.finish(errors.New(fault))
		return
	}
	signature := child(child(s, "pair-device-sign"), "device-identity")
	var signed waAdv.ADVSignedDeviceIdentity
	err := proto.Unmarshal(bytesOf(signature), &signed)
	switch {
	case err != nil:
		p.finish(fmt.Errorf("decode the client's signature: %w", err))
	case text(signature, "key-index") != strconv.Itoa(int(p.device.id)) || len(signed.AccountSignatureKey) != 0 || !p.account.verify(&signed, p.device.keys.identity):
		c.n.misunderstood("a device that signed something else")
		p.finish(errors.New("the client's signature is wrong"))
	default:
		p.account.devices = append(p.account.devices, p.device)
		p.account.announceDevices("add", p.device)
		c.dismiss(element("stream:error", attrs{"code": "515"}))
		p.finish(nil)
	}
}

// finish ends the pairing. The caller holds n.mu.
func (p *pairing) finish(err error) {
	p.outcome, p.done = err, true
	p.forget()
	p.c.n.notify()
}

// forget makes the pairing's codes invalid. The caller holds n.mu.
func (p *pairing) forget() {
	if !p.done {
		p.done, p.outcome = true, errors.New("the client went away")
	}
	for _, ref := range p.refs {
		delete(p.c.n.refs, ref)
	}
	if p.c.n.links[p.number] == p {
		delete(p.c.n.links, p.number)
	}
}

// displayName matches the client names that the service accepts in a pairing by code.
var displayName = regexp.MustCompile(`^(Chrome|Edge|Firefox|IE|Opera|Safari|Electron|UWP|Android|Other) \([^()]+\)$`)

// linkByCode handles both requests of a client that pairs by code. The caller holds n.mu.
func (c *connection) linkByCode(s stanza) {
	step := child(s, "link_code_companion_reg")
	p := c.pairing
	if p == nil {
		c.n.misunderstood("a device that is linked asks for a code")
		c.refuse(s, 400, "bad-request")
		return
	}
	field := func(tag string) []byte { return bytesOf(child(step, tag)) }
	switch text(step, "stage") {
	case "companion_hello":
		wrapped := field("link_code_pairing_wrapped_companion_ephemeral_pub")
		if len(wrapped) != 80 || !slices.Equal(field("companion_server_auth_key_pub"), c.noise[:]) || len(field("companion_platform_id")) == 0 ||
			!displayName.Match(field("companion_platform_display")) {
			c.refuse(s, 400, "bad-request")
			return
		}
		p.number, p.ephemeral, p.ref, p.bundle = jid(step, "jid").User, wrapped, c.n.id(), nil
		c.n.links[p.number] = p
		c.result(s, element("link_code_companion_reg", nil, data("link_code_pairing_ref", nil, []byte(p.ref))))
	case "companion_finish":
		if string(field("link_code_pairing_ref")) != p.ref || !slices.Equal(field("companion_identity_public"), c.payload.GetDevicePairingData().GetEIdent()) {
			c.refuse(s, 400, "bad-request")
			return
		}
		p.bundle = field("link_code_pairing_wrapped_key_bundle")
		c.result(s)
	}
}

// EnterCode links a client to the account by the code of 8 characters that the client shows. The account's owner does
// the same on the phone. The code may contain its dash. EnterCode returns an error if the code is wrong, or if no
// client waits for a code with the account's number.
func (a *Account) EnterCode(ctx context.Context, code string) error {
	ctx, cancel := context.WithTimeout(ctx, WaitMost)
	defer cancel()
	code = strings.ReplaceAll(strings.ToUpper(code), "-", "")
	a.n.mu.Lock()
	p := a.n.links[a.number]
	if p == nil {
		a.n.mu.Unlock()
		return errors.New("no client waits for a code")
	}
	wrapped, ref := p.ephemeral, p.ref
	a.n.mu.Unlock()

	key, err := codeKey(code, wrapped[:32])
	if err != nil {
		return err
	}
	own, iv := keys.NewKeyPair(), random(16)
	theirs := wrap(key, wrapped[32:48], wrapped[48:80])
	sealed := slices.Concat(wrapped[:32], iv, wrap(key, iv, own.Pub[:])) // the same salt as the client's, because deriving another key takes long
	a.n.mu.Lock()
	p.c.send(element("notification", attrs{"from": server, "id": a.n.id(), "type": "link_code_companion_reg", "t": seconds(time.Now())},
		element("link_code_companion_reg", attrs{"stage": "primary_hello"},
			data("link_code_pairing_wrapped_primary_ephemeral_pub", nil, sealed),
			data("primary_identity_pub", nil, a.identity.Pub[:]),
			data("link_code_pairing_ref", nil, []byte(ref)))))
	a.n.mu.Unlock()
	if err := a.n.await(ctx, func() bool { return p.bundle != nil || p.done }); err != nil {
		return fmt.Errorf("the client did not answer the code: %w", err)
	}
	a.n.mu.Lock()
	if p.bundle == nil {
		defer a.n.mu.Unlock()
		return p.outcome
	}
	identity, secret, err := a.agree(p.bundle, own, theirs)
	if err == nil {
		err = p.link(a, p.c.noise[:], identity, secret)
	}
	a.n.mu.Unlock()
	if err != nil {
		return err
	}
	return p.wait(ctx)
}

// agree decrypts the client's key bundle and derives the secret that authenticates the client's identity.
func (a *Account) agree(bundle []byte, own *keys.KeyPair, theirs []byte) (identity, secret []byte, err error) {
	if len(bundle) < 44 {
		return nil, nil, errors.New("the client's key bundle is too short")
	}
	shared, err := curve25519.X25519(own.Priv[:], theirs)
	if err != nil {
		return nil, nil, fmt.Errorf("agree on a key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, shared, bundle[:32], "link_code_pairing_key_bundle_encryption_key", 32)
	if err != nil {
		return nil, nil, fmt.Errorf("derive a key: %w", err)
	}
	plain, err := gcmutil.Decrypt(key, bundle[32:44], bundle[44:], nil)
	if err != nil || len(plain) != 96 || !slices.Equal(plain[32:64], a.identity.Pub[:]) {
		return nil, nil, errors.New("the code is wrong")
	}
	both, err := curve25519.X25519(a.identity.Priv[:], plain[:32])
	if err != nil {
		return nil, nil, fmt.Errorf("agree on a key: %w", err)
	}
	secret, err = hkdf.Key(sha256.New, slices.Concat(shared, both, plain[64:]), nil, "adv_secret", 32)
	return plain[:32], secret, err
}

func codeKey(code string, salt []byte) (cipher.Block, error) {
	key, err := pbkdf2.Key(sha256.New, code, salt, 2<<16, 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key from the code: %w", err)
	}
	return aes.NewCipher(key)
}

// wrap encrypts or decrypts another key.
func wrap(key cipher.Block, iv, other []byte) []byte {
	out := make([]byte, len(other))
	cipher.NewCTR(key, iv).XORKeyStream(out, other)
	return out
}

// announceDevices notifies the account's devices that a device was added or removed. It also notifies all devices that
// requested the account's device list. The caller holds n.mu.
func (a *Account) announceDevices(change string, changed *device) {
	now := seconds(time.Now())
	for w := range a.watchers {
		if w.device.account == a {
			continue
		}
		w.device.keep(element("notification", attrs{"from": types.NewJID(a.addressIn(w.space), w.space), "id": a.n.id(), "type": "devices", "t": now},
			element(change, attrs{"device_hash": a.hash(w.space)}, element("device", attrs{"jid": changed.in(w.space)}))))
	}
	var list []stanza
	for _, d := range a.devices {
		list = append(list, element("device", attrs{"jid": d.pn()}))
	}
	for _, d := range a.devices {
		if d != changed {
			d.keep(element("notification", attrs{"from": a.JID(), "id": a.n.id(), "type": "account_sync", "t": now},
				element("devices", attrs{"dhash": a.hash(types.DefaultUserServer)}, list...)))
		}
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
