//go:build !nosocket

package whatsapptest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"
)

// pendingStanza is stored for a device until the device acknowledges it.
type pendingStanza struct {
	stanza
	key string
}

// ackKey returns the key of a stanza. It is made from the values that an ack for the stanza also contains.
func ackKey(class, id string, from types.JID, participant, kind string) string {
	return strings.Join([]string{class, id, from.String(), participant, kind}, "|")
}

// keep stores a stanza for the device, and sends it if the device is online. If the device never logged in, keep does
// nothing. The caller holds n.mu.
func (d *device) keep(s stanza) {
	if !d.known {
		return
	}
	kind := ""
	if s.Tag != "message" {
		kind = text(s, "type")
	}
	d.pending = append(d.pending, &pendingStanza{stanza: s, key: ackKey(s.Tag, text(s, "id"), jid(s, "from"), text(s, "participant"), kind)})
	if c := d.connection; c != nil && c.active {
		c.send(s)
	}
}

// settle removes a stanza that the device acknowledged. It returns false if the stanza was never stored for the device.
// The caller holds n.mu.
func (d *device) settle(key string) bool {
	i := slices.IndexFunc(d.pending, func(p *pendingStanza) bool { return p.key == key })
	if i < 0 {
		return d.settled[key]
	}
	d.pending = slices.Delete(d.pending, i, i+1)
	d.settled[key] = true
	return true
}

// ack handles a device's acknowledgement of a stanza. The caller holds n.mu.
func (c *connection) ack(s stanza) {
	if c.device == nil { // the client is not linked yet, so this ack is for the notification that a code was entered, which is stored for no device
		return
	}
	class := text(s, "class")
	key := ackKey(class, text(s, "id"), jid(s, "to"), text(s, "participant"), text(s, "type"))
	if !c.device.settle(key) {
		c.n.misunderstood("an ack of what was not sent: %s", s.String())
	}
	if code := number(s, "error"); code != 0 {
		c.n.nacks = append(c.n.nacks, fmt.Sprintf("%s refuses a %s with %d", c.device.pn(), class, code))
	}
}

// Nacks lists the stanzas that devices refused. Each entry has the form "<device> refuses a <stanza> with <code>".
func (n *Network) Nacks() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.nacks)
}

// Pending returns how many messages, receipts and notifications the account's linked devices have not acknowledged.
func (a *Account) Pending() int {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	count := 0
	for _, d := range a.devices[1:] {
		count += len(d.pending)
	}
	return count
}

// AwaitSettled returns when the account's online devices have acknowledged everything. Most clients acknowledge a
// stanza before they have handled it. They handle stanzas one after the other, so they handle the last stanza last.
func (a *Account) AwaitSettled(t TB) {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	var left []string
	err := a.n.await(ctx, func() bool {
		left = nil
		for _, d := range a.devices {
			for _, p := range d.pending {
				if d.connection != nil {
					left = append(left, p.key)
				}
			}
		}
		return len(left) == 0
	})
	if err != nil {
		t.Fatalf("%s has not acknowledged %q", a.number, left)
	}
}

// hash returns the hash of an account's device list, which clients compare with their own.
func (a *Account) hash(space string) string { return hashOf(a.devices, space) }

func hashOf(devices []*device, space string) string {
	list := make([]string, len(devices))
	for i, d := range devices {
		list[i] = d.in(space).ADString()
	}
	slices.Sort(list)
	sum := sha256.Sum256([]byte(strings.Join(list, "")))
	return "2:" + base64.RawStdEncoding.EncodeToString(sum[:6])
}

// id returns a new id for a stanza from the server. The caller holds n.mu.
func (n *Network) id() string {
	n.sequence++
	return fmt.Sprintf("%d-%d", time.Now().UnixNano()%1e9, n.sequence)
}
