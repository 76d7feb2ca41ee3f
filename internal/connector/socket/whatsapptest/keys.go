//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/util/keys"
)

// keyBundle contains the keys that others need before they can encrypt their first message for a device.
type keyBundle struct {
	registration []byte
	identity     []byte
	signed       keys.PreKey // the signed key, without its private key
	once         []stanza    // one-time keys, as the device uploaded them
}

// lowKeys is the number of one-time keys at which the server requests more from a device.
const lowKeys = 4

func keyQueries() []queryKind {
	value := []childShape{one(raw("id", "")), one(raw("value", ""))}
	upload := sh("iq", "id xmlns type to:jid", one(raw("registration", "")), one(raw("type", "")), one(raw("identity", "")),
		one(sh("list", "", many(sh("key", "", value...)))), one(sh("skey", "", append(value, one(raw("signature", "")))...)))
	return []queryKind{
		{shape: sh("count", ""), group: "encrypt", kind: "get", answer: (*connection).countKeys},
		{shape: sh("key", "", some(sh("user", "jid:jid reason=identity"))), group: "encrypt", kind: "get", answer: (*connection).fetchKeys},
		{shape: shape{tag: "registration"}, whole: &upload, group: "encrypt", kind: "set", answer: (*connection).uploadKeys},
	}
}

func (c *connection) countKeys(s stanza) {
	count := len(c.device.keys.once)
	if c.n.fewKeys {
		count = max(count, 1)
	}
	c.result(s, element("count", attrs{"value": strconv.Itoa(count)}))
}

// FewKeys makes the server report to each newly linked client that the server has one of the client's one-time keys.
// The client then makes 50 more keys instead of 812. With a store on a disk, or under the race detector, linking a
// client spends most of its time on keys.
func (n *Network) FewKeys() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fewKeys = true
}

func (c *connection) uploadKeys(s stanza) {
	d := c.device
	signed := child(s, "skey")
	pub, signature := bytesOf(child(signed, "value")), bytesOf(child(signed, "signature"))
	if !bytes.Equal(bytesOf(child(s, "identity")), d.keys.identity) || !bytes.Equal(bytesOf(child(s, "type")), []byte{ecc.DjbType}) || len(pub) != 32 || len(signature) != 64 {
		c.n.misunderstood("%s uploads keys that are not its own", d.pn())
		c.refuse(s, 400, "bad-request")
		return
	}
	d.keys.registration = bytesOf(child(s, "registration"))
	d.keys.signed = keys.PreKey{KeyPair: keys.KeyPair{Pub: (*[32]byte)(pub)}, KeyID: keyID(bytesOf(child(signed, "id"))), Signature: (*[64]byte)(signature)}
	for _, key := range childrenOf(child(s, "list")) {
		if len(bytesOf(child(key, "id"))) != 3 || len(bytesOf(child(key, "value"))) != 32 {
			c.n.misunderstood("%s uploads a key of another length", d.pn())
			continue
		}
		d.keys.once = append(d.keys.once, key)
	}
	c.result(s)
}

func (c *connection) fetchKeys(s stanza) {
	var users []stanza
	for _, requested := range childrenOf(child(s, "key")) {
		address := jid(requested, "jid")
		d := c.n.find(address)
		if d == nil {
			users = append(users, element("user", attrs{"jid": address}, element("error", attrs{"code": "404", "text": "item-not-found"})))
			continue
		}
		users = append(users, element("user", attrs{"jid": address, "t": seconds(time.Now())}, d.bundle()...))
	}
	c.result(s, element("list", nil, users...))
}

// bundle takes one of the device's one-time keys, if there is one. When few keys are left, it requests more.
func (d *device) bundle() []stanza {
	k := &d.keys
	signed := []stanza{
		data("id", nil, idBytes(k.signed.KeyID)), data("value", nil, k.signed.Pub[:]), data("signature", nil, k.signed.Signature[:]),
	}
	out := []stanza{
		data("registration", nil, k.registration), data("type", nil, []byte{ecc.DjbType}), data("identity", nil, k.identity),
		element("skey", nil, signed...),
	}
	if len(k.once) > 0 {
		out = append(out, k.once[0])
		k.once = k.once[1:]
		if len(k.once) == lowKeys {
			d.keep(element("notification", attrs{"from": server, "id": d.account.n.id(), "type": "encrypt", "t": seconds(time.Now())},
				element("count", attrs{"value": strconv.Itoa(lowKeys)})))
		}
	}
	return out
}

func keyID(three []byte) uint32 {
	return binary.BigEndian.Uint32(append(make([]byte, 4-len(three)), three...))
}

func idBytes(id uint32) []byte {
	four := binary.BigEndian.AppendUint32(nil, id)
	return four[1:]
}
