//go:build !nosocket

package whatsapptest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Stanza is a message or chat state as the server accepted it from a client, without its content.
type Stanza struct {
	Tag     string // message, chatstate, or peer for messages between an account's own devices
	From    string // number of the sender
	Device  int    // which of the sender's devices sent the stanza
	Chat    string // number of the other person, or the group's id
	ID      string
	Type    string // a message has text, media…; a chat state has composing or paused
	Media   string // set only in a message with media: image, video, audio, ptt, document…
	At      time.Time
	Error   int  // code of the refusal; 0 if the message was accepted
	Unacked bool // the server sent no ack
	Retry   bool // the message was sent again, to one device that requested it
	Token   bool // the message contains a privacy token from the recipient
	Parts   int  // the number of devices for which the message was encrypted
}

var messageShape = sh("message", "id type=text|media|reaction|poll to:jid peer_recipient_pn:jid? addressing_mode?=lid|pn edit? phash? category?=peer push_priority? privacy_sensitive? device_fanout?=false participant:jid? recipient:jid? t?",
	maybe(sh("participants", "", many(sh("to", "jid:jid", one(cipherShape))))), maybe(cipherShape), maybe(raw("device-identity", "")),
	maybe(sh("meta", "appdata? polltype? thread_msg_id? thread_msg_sender_jid:jid?")), maybe(raw("tctoken", "")), maybe(raw("cstoken", "")),
	maybe(sh("reporting", "", maybe(raw("reporting_token", "v")))),
	maybe(sh("biz", "", maybe(sh("buttons_response", "")), maybe(sh("list_response", "type? v?")), maybe(sh("interactive_response", ""))))) // set in an answer to buttons or to a list

var cipherShape = raw("enc", "v=2 type=msg|pkmsg|skmsg mediatype? decrypt-fail?=hide count?")

// Stanzas lists all messages and chat states that clients sent so far, oldest first.
func (n *Network) Stanzas() []Stanza {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.accepted)
}

// Messages lists all messages from one number so far, including refused ones.
func (n *Network) Messages(from string) []Stanza {
	from = digits(from)
	return slices.DeleteFunc(n.Stanzas(), func(s Stanza) bool { return s.Tag != "message" || s.From != from })
}

// AwaitMessage waits for a message from a number for which match returns true, and returns the first one. If match is
// nil, any message matches.
func (n *Network) AwaitMessage(t TB, from string, match func(Stanza) bool) Stanza {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	var found Stanza
	from = digits(from)
	err := n.await(ctx, func() bool {
		i := slices.IndexFunc(n.accepted, func(s Stanza) bool { return s.Tag == "message" && s.From == from && (match == nil || match(s)) })
		if i >= 0 {
			found = n.accepted[i]
		}
		return i >= 0
	})
	if err != nil {
		t.Fatalf("no such message of %s reached the server; it has %+v", from, n.Messages(from))
	}
	return found
}

// chatName returns the name of a chat in tests: a number or a group's id. The caller holds n.mu.
func (n *Network) chatName(address types.JID) string {
	if a := n.account(address.ToNonAD()); a != nil {
		return a.number
	}
	return address.User
}

// message delivers a message to the devices for which it is encrypted. The caller holds n.mu.
func (c *connection) message(s stanza) {
	to := jid(s, "to")
	note := Stanza{
		Tag: "message", From: c.device.account.number, Device: int(c.device.id), Chat: c.n.chatName(to), ID: text(s, "id"), Type: text(s, "type"), At: time.Now(),
		Token: child(s, "tctoken").Tag != "", Parts: len(childrenOf(child(s, "participants"))),
	}
	if fault := c.checkMessage(s); fault != "" {
		c.n.misunderstood("%s: %s", fault, s.String())
	}
	note.Media = mediaType(s)
	if text(s, "category") == "peer" {
		note.Tag = "peer"
	}
	deliver := func(*fault) (errorCode int, phash string) { return 479, "" }
	switch {
	case text(s, "category") == "peer":
		deliver = func(*fault) (int, string) { return c.deliverPeer(s), "" }
	case child(s, "enc").Tag != "" && child(s, "participants").Tag == "":
		note.Retry = true
		deliver = func(f *fault) (int, string) { return c.deliverRetry(s, f), "" }
	case to.Server == types.GroupServer:
		deliver = func(f *fault) (int, string) { return c.deliverGroup(s, f) }
	case to.Server == types.DefaultUserServer || to.Server == types.HiddenUserServer:
		deliver = func(f *fault) (int, string) { return c.deliverDirect(s, f) }
	default:
		c.n.misunderstood("a message to %s", to)
	}
	f := c.n.messageFault(note)
	answer := attrs{"class": "message", "id": note.ID, "from": to, "t": seconds(note.At)}
	if f.lost() {
		note.Unacked = true
	} else {
		code, phash := f.code(), ""
		if code == 0 && !f.discards() {
			code, phash = deliver(f)
		}
		if code != 0 {
			answer["error"] = strconv.Itoa(code)
		}
		if phash != "" {
			answer["phash"] = phash
		}
		note.Error = code
		note.Unacked = f.acknowledge(c, element("ack", answer))
	}
	c.n.accepted = append(c.n.accepted, note)
}

// messageID matches the ids that web clients make.
var messageID = regexp.MustCompile("^3EB0[0-9A-F]{18}$")

// checkMessage returns what is wrong with a message apart from its shape, or "" if nothing is.
func (c *connection) checkMessage(s stanza) string {
	if !messageID.MatchString(text(s, "id")) {
		return "an id unlike those of web clients"
	}
	first := text(child(s, "enc"), "type") == "pkmsg"
	for _, to := range childrenOf(child(s, "participants")) {
		first = first || text(child(to, "enc"), "type") == "pkmsg"
	}
	shown := child(s, "device-identity")
	if first != (shown.Tag != "") {
		return "a device's identity without a new session, or the other way round"
	}
	if !first {
		return ""
	}
	var signed waAdv.ADVSignedDeviceIdentity
	a, d := c.device.account, c.device
	if err := proto.Unmarshal(bytesOf(shown), &signed); err != nil {
		return "a device's identity that cannot be read"
	}
	if !slices.Equal(signed.AccountSignatureKey, a.identity.Pub[:]) || len(signed.AccountSignature) != 64 || !a.verify(&signed, d.keys.identity) ||
		!ecc.VerifySignature(ecc.NewDjbECPublicKey(*a.identity.Pub), slices.Concat([]byte{6, 0}, signed.Details, d.keys.identity), [64]byte(signed.AccountSignature)) {
		return "a device's identity that its phone did not sign"
	}
	return ""
}

func mediaType(s stanza) string {
	kind := text(child(s, "enc"), "mediatype")
	for _, to := range childrenOf(child(s, "participants")) {
		if of := text(child(to, "enc"), "mediatype"); of != "" {
			kind = of
		}
	}
	return kind
}

// deliverDirect delivers a message to the recipient's devices and to the sender's other devices.
func (c *connection) deliverDirect(s stanza, f *fault) (code int, phash string) {
	to, own := jid(s, "to"), c.device.account
	a := c.n.account(to)
	if a == nil {
		return 404, ""
	}
	if fault := c.checkToken(child(s, "tctoken"), a); fault != "" {
		c.n.misunderstood("%s: %s", fault, s.String())
	}
	if fault := own.checkContactToken(child(s, "cstoken"), a); fault != "" {
		c.n.misunderstood("%s: %s", fault, s.String())
	}
	if own.cold(a) {
		return 463, ""
	}
	all := slices.Clone(a.devices)
	if own != a {
		all = append(all, own.devices...)
	}
	reached, theirs := 1, own == a // reached begins at one, because the sending device has the message
	var deliveries []func()
	for _, part := range childrenOf(child(s, "participants")) {
		d := c.n.find(jid(part, "jid"))
		if d == nil || d == c.device || !slices.Contains(all, d) {
			continue
		}
		reached, theirs = reached+1, theirs || d.account == a
		attributes := attrs{"from": c.device.in(to.Server)}
		if d.account == own && own != a {
			attributes["recipient"] = to.ToNonAD()
			attributes["peer_recipient_pn"] = a.JID()
		} else if to.Server == types.HiddenUserServer {
			attributes["sender_pn"] = own.JID()
		} else {
			attributes["sender_lid"] = own.LID()
		}
		part := c.forward(s, attributes, f.corrupt(d.account != own, child(part, "enc")))
		deliveries = append(deliveries, func() { d.keep(part) })
	}
	if !theirs {
		return 479, ""
	}
	for _, deliver := range deliveries {
		deliver()
	}
	a.met[own], own.met[a] = true, true
	if reached != len(all) {
		return 0, hashOf(all, to.Server)
	}
	return 0, ""
}

// forward returns the stanza for one device: that device's ciphertext, with the sender.
func (c *connection) forward(s stanza, attributes attrs, ciphers ...stanza) stanza {
	attributes["id"], attributes["type"], attributes["t"] = text(s, "id"), text(s, "type"), seconds(time.Now())
	if c.device.account.name != "" {
		attributes["notify"] = c.device.account.name
	}
	for _, copied := range []string{"edit", "category"} {
		if value := text(s, copied); value != "" {
			attributes[copied] = value
		}
	}
	for _, kept := range []string{"device-identity", "meta", "reporting"} {
		if found := child(s, kept); found.Tag != "" {
			ciphers = append(ciphers, found)
		}
	}
	return element("message", attributes, ciphers...)
}

// deliverPeer delivers a message to one of the sender's own devices. If the address names no device, the message goes
// to the primary device.
func (c *connection) deliverPeer(s stanza) int {
	d := c.n.find(jid(s, "to"))
	if d == nil || d.account != c.device.account {
		c.n.misunderstood("a peer message to %s", jid(s, "to"))
		return 404
	}
	d.keep(c.forward(s, attrs{"from": c.device.in(jid(s, "to").Server)}, child(s, "enc")))
	return 0
}

// deliverRetry delivers a message again, to the device that requested it.
func (c *connection) deliverRetry(s stanza, f *fault) int {
	to := jid(s, "to")
	attributes := attrs{"from": c.device.in(to.Server)}
	d := c.n.find(to)
	if to.Server == types.GroupServer {
		g := c.n.groups[to.User]
		if d = c.n.find(jid(s, "participant")); g == nil || d == nil {
			return 404
		}
		attributes = g.sender(c.device)
	} else if d != nil && d.account == c.device.account {
		attributes["recipient"] = jid(s, "recipient")
	} else {
		attributes["sender_pn"] = c.device.account.JID()
	}
	if d == nil {
		return 404
	}
	d.keep(c.forward(s, attributes, f.corrupt(true, child(s, "enc"))))
	return 0
}

// receiptShape allows delivery, read and played receipts, and receipts that request a message again.
var receiptShape = sh("receipt", "id to:jid type?=inactive|read|read-self|played|played-self|sender|retry|peer_msg|hist_sync|server-error t? participant:jid? recipient:jid? category?=peer",
	maybe(sh("list", "", some(sh("item", "id")))), maybe(sh("retry", "count id t v")), maybe(raw("registration", "")),
	maybe(sh("keys", "", one(raw("type", "")), one(raw("identity", "")), one(sh("key", "", one(raw("id", "")), one(raw("value", "")))),
		one(sh("skey", "", one(raw("id", "")), one(raw("value", "")), one(raw("signature", "")))), one(raw("device-identity", "")))),
	maybe(sh("encrypt", "", one(raw("enc_p", "")), one(raw("enc_iv", "")))))

// receipt handles a device's receipt. A receipt also acknowledges the message. The server forwards the receipt to the
// message's sender. The caller holds n.mu.
func (c *connection) receipt(s stanza) {
	to, kind, participant := jid(s, "to"), text(s, "type"), jid(s, "participant")
	if kind != "retry" {
		c.device.settle(ackKey("message", text(s, "id"), to, text(s, "participant"), ""))
	}
	answer := attrs{"class": "receipt", "id": text(s, "id"), "from": to}
	for _, copied := range []string{"type", "participant"} {
		if value, found := s.Attrs[copied]; found {
			answer[copied] = value
		}
	}
	c.send(element("ack", answer))
	if kind == "peer_msg" || kind == "hist_sync" || kind == "server-error" {
		return
	}
	if c.n.receiptLost(c.device.account.number, kind) {
		return
	}
	sender := to
	own := attrs{"from": c.device.in(to.Server)}
	if to.Server == types.GroupServer {
		g := c.n.groups[to.User]
		if g == nil || participant.IsEmpty() {
			c.n.misunderstood("%s", s.String())
			return
		}
		sender, own = participant, attrs{"from": to, "participant": c.device.in(participant.Server)}
	}
	a := c.n.account(sender.ToNonAD())
	if a == nil {
		c.n.misunderstood("a receipt to nobody: %s", s.String())
		return
	}
	shown := with(s, attrs{"to": nil, "participant": nil, "t": seconds(time.Now())})
	for name, value := range own {
		shown.Attrs[name] = value
	}
	if strings.HasPrefix(kind, "read") || strings.HasPrefix(kind, "played") {
		c.showRead(s, shown, a)
		return
	}
	for _, d := range a.devices {
		if kind == "retry" && d.id != sender.Device || d == c.device {
			continue
		}
		d.keep(shown)
	}
}

// showRead reports to the sender of a message, and to the reader's other devices, that the message was read.
func (c *connection) showRead(s, shown stanza, sender *Account) {
	to := jid(s, "to")
	if kind := text(s, "type"); !strings.HasSuffix(kind, "-self") {
		whole := with(shown, attrs{"from": jid(shown, "from").ToNonAD()})
		if to.Server == types.GroupServer {
			whole = with(shown, attrs{"participant": jid(shown, "participant").ToNonAD()})
		}
		for _, d := range sender.devices {
			d.keep(whole)
		}
	}
	for _, d := range c.device.account.devices {
		if d == c.device {
			continue
		}
		own := with(shown, attrs{"from": c.device.in(to.Server), "recipient": to.ToNonAD()})
		if to.Server == types.GroupServer {
			own = shown
		}
		d.keep(own)
	}
}

// AwaitStanzas returns when the clients have sent count messages and chat states, or when done is closed.
func (n *Network) AwaitStanzas(t TB, count int, done <-chan struct{}) {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	for {
		n.mu.Lock()
		accepted, changed := len(n.accepted), n.changed
		n.mu.Unlock()
		if accepted >= count {
			return
		}
		select {
		case <-changed:
		case <-done:
			return
		case <-ctx.Done():
			t.Fatalf("%d messages and chat states, want %d", accepted, count)
		}
	}
}
