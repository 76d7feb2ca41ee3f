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

// pendingStanza is kept for a device until the device acknowledges it.
type pendingStanza struct {
	stanza
	key string
}

// ackKey names a stanza as an ack does.
func ackKey(class, id string, from types.JID, participant, kind string) string {
	return strings.Join([]string{class, id, from.String(), participant, kind}, "|")
}

// keep stores a stanza for the device and sends it if the device is online. Nothing is stored for a device that never
// logged in. The caller holds n.mu.
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

// settle forgets a stanza that the device has. It reports whether there ever was one. The caller holds n.mu.
func (d *device) settle(key string) bool {
	i := slices.IndexFunc(d.pending, func(p *pendingStanza) bool { return p.key == key })
	if i < 0 {
		return d.settled[key]
	}
	d.pending = slices.Delete(d.pending, i, i+1)
	d.settled[key] = true
	return true
}

// ack takes a device's acknowledgement of a stanza. The caller holds n.mu.
func (c *connection) ack(s stanza) {
	if c.device == nil { // this is the notification that a code was entered
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

// Nacks lists what devices refused, as "who refuses a what with code".
func (n *Network) Nacks() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.nacks)
}

// Pending counts the messages, receipts and notifications that the account's linked devices have not acknowledged.
func (a *Account) Pending() int {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	count := 0
	for _, d := range a.devices[1:] {
		count += len(d.pending)
	}
	return count
}

// AwaitSettled returns when the account's devices that are online have acknowledged everything. Most clients
// acknowledge a stanza before they have handled it. They handle one after the other, so the last stanza is handled
// after all others.
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

// hash is the check on the list of an account's devices that clients compare.
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

// id makes an id for a stanza of the server's. The caller holds n.mu.
func (n *Network) id() string {
	n.sequence++
	return fmt.Sprintf("%d-%d", time.Now().UnixNano()%1e9, n.sequence)
}
