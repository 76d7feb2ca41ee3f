//go:build !nosocket

package whatsapptest

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/types"
)

// Login is one try to log in, or to begin a pairing.
type Login struct {
	Number  string // "": the client began a pairing
	Device  int
	Version uint32 // the last part of the client's version
	At      time.Time
	Failure int // the code of the refusal; 0 if the login succeeded

	Replaced bool // another connection of the same device was open, and was closed
}

// refusal makes the next logins fail.
type refusal struct {
	reason int
	times  int // how many logins are still refused; negative: all
}

type ban struct {
	code  int
	until time.Time
}

// FailLogins refuses the next logins of the account's linked devices with a reason code. 401, 403 and 406 log the
// device out. 405 means that the client is outdated, and 503 that the service is unavailable. If times is 0, logins are
// refused until AllowLogins.
func (a *Account) FailLogins(reason, times int) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	if times == 0 {
		times = -1
	}
	a.refusals = append(a.refusals, &refusal{reason: reason, times: times})
}

// AllowLogins ends all effects of FailLogins and Ban.
func (a *Account) AllowLogins() {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.refusals, a.ban = nil, ban{}
}

// Ban bans the account for the duration d. It cuts the connections of the account's linked devices. It refuses their
// logins with reason 402, the code (101 to 106) and the remaining time.
func (a *Account) Ban(code int, d time.Duration) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.ban = ban{code: code, until: time.Now().Add(d)}
	for _, d := range a.devices[1:] {
		if d.connection != nil {
			d.connection.cut()
		}
	}
}

// RequireVersion refuses logins and pairings of clients with an older version, with reason 405. It cuts the connections
// of older clients, and shows the version on the page that clients read. 0 refuses no client.
func (n *Network) RequireVersion(version uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version = version
	for c := range n.connections {
		if c.payload != nil && clientVersion(c.payload) < version && (c.device == nil || c.device.id > 0) {
			c.cut()
		}
	}
}

// Logins lists all logins so far, oldest first.
func (n *Network) Logins() []Login {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.logins)
}

// VersionReads returns how often clients requested the page with the current version.
func (n *Network) VersionReads() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pageReads
}

// FailVersionPage makes the page with the current version answer with an HTTP status. 0 ends this.
func (n *Network) FailVersionPage(status int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pageStatus = status
}

// PeakArriving returns the largest number of connections that were logging in at the same time.
func (n *Network) PeakArriving() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peakArriving
}

// arrived removes the connection from those that are logging in. The caller holds n.mu.
func (c *connection) arrived() {
	if c.arriving {
		c.arriving = false
		c.n.arriving--
	}
}

// versionPage writes the page with the current version.
func (n *Network) versionPage(w http.ResponseWriter) {
	n.mu.Lock()
	n.pageReads++
	version, failing := n.version, n.pageStatus
	n.mu.Unlock()
	if failing != 0 {
		http.Error(w, "failing", failing)
		return
	}
	if version == 0 {
		version = 1047769893
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, `<!doctype html><script>requireLazy([],{"server_revision":%[1]d,"client_revision":%[1]d,"tier":""})</script>`, version)
}

func clientVersion(p *waWa6.ClientPayload) uint32 {
	return p.GetUserAgent().GetAppVersion().GetTertiary()
}

// greet handles the client's first payload, which begins a login or a pairing. The caller holds n.mu.
func (c *connection) greet() {
	login := Login{Version: clientVersion(c.payload), At: time.Now()}
	var refused attrs
	if c.payload.Username == nil {
		refused = c.greetGuest()
	} else {
		login.Number, login.Device = strconv.FormatUint(c.payload.GetUsername(), 10), int(c.payload.GetDevice())
		refused, login.Replaced = c.greetDevice()
	}
	if refused != nil {
		login.Failure, _ = strconv.Atoi(refused["reason"].(string))
		c.dismiss(element("failure", refused))
	}
	c.n.logins = append(c.n.logins, login)
}

// greetGuest checks a client that wants to be linked, and sends it the references for its QR codes.
func (c *connection) greetGuest() (refused attrs) {
	p := c.payload.GetDevicePairingData()
	if len(p.GetERegid()) != 4 || !bytes.Equal(p.GetEKeytype(), []byte{ecc.DjbType}) || len(p.GetEIdent()) != 32 || len(p.GetESkeyID()) != 3 ||
		len(p.GetESkeyVal()) != 32 || len(p.GetESkeySig()) != 64 || len(p.GetDeviceProps()) == 0 {
		c.n.misunderstood("a registration without its keys")
		return attrs{"reason": "400"}
	}
	signed := slices.Concat([]byte{ecc.DjbType}, p.GetESkeyVal())
	if !ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(p.GetEIdent())), signed, [64]byte(p.GetESkeySig())) {
		c.n.misunderstood("a registration whose signed key is not signed")
		return attrs{"reason": "400"}
	}
	v := c.payload.GetUserAgent().GetAppVersion()
	if hash := md5.Sum(fmt.Appendf(nil, "%d.%d.%d", v.GetPrimary(), v.GetSecondary(), v.GetTertiary())); !bytes.Equal(p.GetBuildHash(), hash[:]) {
		c.n.misunderstood("a registration whose build is not its version")
	}
	if clientVersion(c.payload) < c.n.version {
		return attrs{"reason": "405", "location": "loopback"}
	}
	c.offerPairing()
	return nil
}

// greetDevice accepts the login of a linked device, unless there is a reason to refuse it.
func (c *connection) greetDevice() (refused attrs, replaced bool) {
	d := c.n.find(types.JID{User: strconv.FormatUint(c.payload.GetUsername(), 10), Server: types.DefaultUserServer, Device: uint16(c.payload.GetDevice())})
	switch {
	case d == nil || d.noise != c.noise:
		return attrs{"reason": "401", "location": "loopback"}, false
	case d.id > 0:
		if refused := d.account.refused(clientVersion(c.payload)); refused != nil {
			return refused, false
		}
	}
	old := d.connection
	if old != nil {
		d.connection = nil
		old.dismiss(element("stream:error", nil, element("conflict", attrs{"type": "replaced"})))
	}
	d.connection, d.known, c.device = c, true, d
	c.send(element("success", attrs{
		"t": seconds(time.Now()), "props": "1", "location": "loopback", "lid": d.lid(), "display_name": d.account.name,
	}))
	return nil, old != nil
}

// refused returns why the account's linked devices may not log in now, or nil if they may. The caller holds n.mu.
func (a *Account) refused(version uint32) attrs {
	if left := time.Until(a.ban.until); left > 0 {
		return attrs{"reason": "402", "code": strconv.Itoa(a.ban.code), "expire": strconv.Itoa(int(left.Seconds()) + 1), "location": "loopback"}
	}
	if len(a.refusals) > 0 {
		r := a.refusals[0]
		if r.times--; r.times == 0 {
			a.refusals = a.refusals[1:]
		}
		return attrs{"reason": strconv.Itoa(r.reason), "location": "loopback"}
	}
	if version < a.n.version {
		return attrs{"reason": "405", "location": "loopback"}
	}
	return nil
}

// activate begins to send the stanzas that are stored for the device.
func (c *connection) activate(s stanza) {
	c.result(s)
	if c.active {
		return
	}
	c.active = true
	c.arrived()
	c.preview()
	for _, p := range c.device.pending {
		c.send(p.stanza)
	}
	c.send(element("ib", attrs{"from": server}, element("offline", attrs{"count": strconv.Itoa(len(c.device.pending))})))
}

// preview announces the stored stanzas that will be sent. It also reports to a new device that its account's settings
// changed.
func (c *connection) preview() {
	counts := map[string]int{}
	for _, p := range c.device.pending {
		counts[p.Tag]++
	}
	c.send(element("ib", attrs{"from": server}, element("offline_preview", attrs{
		"count": strconv.Itoa(len(c.device.pending)), "appdata": "0", "message": strconv.Itoa(counts["message"]),
		"notification": strconv.Itoa(counts["notification"]), "receipt": strconv.Itoa(counts["receipt"]),
	})))
	if !c.device.greeted {
		c.device.greeted = true
		c.send(element("ib", attrs{"from": server}, element("dirty", attrs{"type": "account_sync", "timestamp": seconds(time.Now())})))
	}
}

// logout removes the device that requests it.
func (c *connection) logout(s stanza) {
	removed := jid(child(s, "remove-companion-device"), "jid")
	if removed != c.device.pn() {
		c.n.misunderstood("%s asks to remove %s", c.device.pn(), removed)
		c.refuse(s, 403, "forbidden")
		return
	}
	c.result(s)
	c.device.account.remove(c.device)
}

// Kick is a kind of stream error. The service sends stream errors to linked devices when it ends their connections.
type Kick int

// The kinds of stream errors.
const (
	Replaced    Kick = iota // another client logged in with the same keys
	Unavailable             // 503: the server restarts
	Restart                 // 515: the client must reconnect
	Removed                 // the owner removed the device from the list on the phone
	BadRequest              // an error that no client knows
)

// Kick sends a stream error to the account's linked devices that are online. Removed also unlinks these devices.
func (a *Account) Kick(kick Kick) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	for _, d := range slices.Clone(a.devices[1:]) {
		c := d.connection
		if c != nil {
			c.dismiss(kick.stanza())
		}
		if kick == Removed {
			a.remove(d)
		}
	}
}

func (k Kick) stanza() stanza {
	switch k {
	case Replaced:
		return element("stream:error", nil, element("conflict", attrs{"type": "replaced"}))
	case Unavailable:
		return element("stream:error", attrs{"code": "503"})
	case Restart:
		return element("stream:error", attrs{"code": "515"})
	case Removed:
		return element("stream:error", attrs{"code": "401"}, element("conflict", attrs{"type": "device_removed"}))
	default:
		return element("stream:error", attrs{"code": "400"})
	}
}

// Cut breaks the connections of the account's linked devices without a closing frame.
func (a *Account) Cut() {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	for _, d := range a.devices[1:] {
		if d.connection != nil {
			d.connection.cut()
		}
	}
}

// Deafen makes the network ignore everything on the present connections of the account's linked devices. The
// connections stay open, but keepalives, queries and messages get no answer.
func (a *Account) Deafen() {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	for _, d := range a.devices[1:] {
		if d.connection != nil {
			d.connection.deaf = true
		}
	}
}

// remove unlinks a device from the account. The caller holds n.mu.
func (a *Account) remove(removed *device) {
	a.devices = slices.DeleteFunc(a.devices, func(d *device) bool { return d == removed })
	for _, other := range a.n.accounts {
		delete(other.watchers, watch{removed, types.DefaultUserServer})
		delete(other.watchers, watch{removed, types.HiddenUserServer})
		delete(other.observers, removed)
	}
	a.announceDevices("remove", removed)
}
