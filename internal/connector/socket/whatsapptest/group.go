//go:build !nosocket

package whatsapptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"
)

// Group is a group of accounts.
type Group struct {
	n       *Network
	id      string
	code    string // the invitation code
	mode    string // how the group addresses its members: lid or pn
	created time.Time

	// Guarded by n.mu.
	subject string
	members []*Account
	admins  map[*Account]bool
	revoked []string
}

// Group makes a group of accounts. The first member is its admin.
func (n *Network) Group(subject string, members ...*Account) *Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.newGroup(subject, members)
}

func (n *Network) newGroup(subject string, members []*Account) *Group {
	n.sequence++
	g := &Group{n: n, id: strconv.Itoa(120363000000000000 + n.sequence), mode: "lid", created: time.Now(), subject: subject, members: slices.Clone(members), admins: map[*Account]bool{}}
	g.code = inviteCode()
	if len(members) > 0 {
		g.admins[members[0]] = true
	}
	n.groups[g.id] = g
	return g
}

// inviteCode returns 22 random characters, as at the end of a link to a group.
func inviteCode() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	code := random(22)
	for i := range code {
		code[i] = letters[int(code[i])%len(letters)]
	}
	return string(code)
}

// JID returns the group's address.
func (g *Group) JID() types.JID { return types.NewJID(g.id, types.GroupServer) }

// ID returns the part of the group's address before the @.
func (g *Group) ID() string { return g.id }

// Code returns the group's invitation code of 22 characters.
func (g *Group) Code() string {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	return g.code
}

// RevokeCode makes the invitation code invalid and returns a new one.
func (g *Group) RevokeCode() string {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	g.revoked = append(g.revoked, g.code)
	g.code = inviteCode()
	return g.code
}

// ByNumber makes the group address its members by number instead of LID, as old groups do.
func (g *Group) ByNumber() {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	g.mode = "pn"
}

// Add makes an account a member and notifies the other members.
func (g *Group) Add(a *Account) {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	g.add(a, nil)
}

// Remove removes an account from the group. It notifies the account and the remaining members.
func (g *Group) Remove(a *Account) {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	g.remove(a, nil)
}

func (g *Group) add(a, author *Account) {
	if !slices.Contains(g.members, a) {
		g.members = append(g.members, a)
		g.announce(author, nil, element("add", attrs{"v_id": g.n.id(), "prev_v_id": g.n.id()}, g.participant(a)))
	}
}

func (g *Group) remove(a, author *Account) {
	if slices.Contains(g.members, a) {
		g.members = slices.DeleteFunc(g.members, func(m *Account) bool { return m == a })
		delete(g.admins, a)
		g.announce(author, a, element("remove", attrs{"v_id": g.n.id(), "prev_v_id": g.n.id()}, g.participant(a)))
	}
}

// announce notifies the members' devices, and the account extra, of a change.
func (g *Group) announce(author, extra *Account, change stanza) {
	attributes := attrs{"from": g.JID(), "id": g.n.id(), "type": "w:gp2", "t": seconds(time.Now()), "addressing_mode": g.mode}
	if author != nil {
		attributes["participant"] = g.address(author)
	}
	receivers := slices.Clone(g.members)
	if extra != nil && !slices.Contains(receivers, extra) {
		receivers = append(receivers, extra)
	}
	for _, m := range receivers {
		for _, d := range m.devices {
			d.keep(element("notification", with(stanza{Attrs: attributes}, nil).Attrs, change))
		}
	}
}

// space returns the server part of the members' addresses. It says whether the addresses are numbers or LIDs.
func (g *Group) space() string {
	if g.mode == "pn" {
		return types.DefaultUserServer
	}
	return types.HiddenUserServer
}

func (g *Group) address(a *Account) types.JID {
	if g.mode == "pn" {
		return a.JID()
	}
	return a.LID()
}

// sender returns the attributes that name a device as the sender of a group's message.
func (g *Group) sender(d *device) attrs {
	attributes := attrs{"from": g.JID(), "participant": d.in(g.space()), "addressing_mode": g.mode}
	if g.mode == "pn" {
		attributes["participant_lid"] = d.account.LID()
	} else {
		attributes["participant_pn"] = d.account.JID()
	}
	return attributes
}

func (g *Group) participant(a *Account) stanza {
	attributes := attrs{"jid": g.address(a)}
	if g.mode == "pn" {
		attributes["lid"] = a.LID()
	} else {
		attributes["phone_number"] = a.JID()
	}
	if g.admins[a] {
		attributes["type"] = "superadmin"
	}
	return element("participant", attributes)
}

func (g *Group) describe() stanza {
	attributes := attrs{"id": g.id, "subject": g.subject, "creation": seconds(g.created), "s_t": seconds(g.created), "addressing_mode": g.mode, "size": strconv.Itoa(len(g.members))}
	var members []stanza
	for _, m := range g.members {
		if g.admins[m] && attributes["creator"] == nil {
			attributes["creator"] = g.address(m)
		}
		members = append(members, g.participant(m))
	}
	return element("group", attributes, members...)
}

// deliverGroup delivers a message to every device of every member.
func (c *connection) deliverGroup(s stanza, f *fault) (code int, phash string) {
	g, own := c.n.groups[jid(s, "to").User], c.device.account
	if g == nil {
		return 404, ""
	}
	if !slices.Contains(g.members, own) {
		return 403, ""
	}
	secret := child(s, "enc")
	if secret.Tag == "" || text(secret, "type") != "skmsg" {
		c.n.misunderstood("a group's message without its common part: %s", s.String())
		return 479, ""
	}
	parts := map[*device]stanza{}
	for _, part := range childrenOf(child(s, "participants")) {
		if d := c.n.find(jid(part, "jid")); d != nil {
			parts[d] = child(part, "enc")
		}
	}
	var all []*device
	for _, m := range g.members {
		all = append(all, m.devices...)
	}
	for _, d := range all {
		if d == c.device {
			continue
		}
		var ciphers []stanza
		if key, found := parts[d]; found {
			ciphers = append(ciphers, key)
		}
		d.keep(c.forward(s, g.sender(c.device), append(ciphers, f.corrupt(d.account != own, secret))...))
	}
	if right := hashOf(all, g.space()); text(s, "phash") != right {
		return 0, right
	}
	return 0, ""
}

func groupQueries() []queryKind {
	member := sh("participant", "jid:jid phone_number:jid?", maybe(raw("privacy", "")))
	create := sh("create", "subject?", many(member), maybe(raw("member_add_mode", "")), maybe(sh("locked", "")), maybe(sh("announcement", "")),
		maybe(sh("ephemeral", "expiration trigger?")), maybe(sh("membership_approval_mode", "", one(sh("group_join", "state=on|off")))))
	list := []queryKind{
		{shape: sh("query", "request=interactive"), kind: "get", answer: (*connection).groupInfo},
		{shape: sh("participating", "", maybe(sh("participants", "")), maybe(sh("description", ""))), kind: "get", answer: (*connection).joinedGroups},
		{shape: sh("invite", "code?"), kind: "get", answer: (*connection).invitation},
		{shape: sh("invite", "code?"), kind: "set", answer: (*connection).join},
		{shape: create, kind: "set", answer: (*connection).createGroup},
		{shape: sh("leave", "", some(sh("group", "id:jid"))), kind: "set", answer: (*connection).leaveGroup},
		{shape: raw("subject", ""), kind: "set", answer: (*connection).renameGroup},
	}
	for _, change := range []string{"add", "remove", "promote", "demote"} {
		list = append(list, queryKind{shape: sh(change, "", some(member)), kind: "set", answer: func(c *connection, s stanza) { c.changeMembers(s, change) }})
	}
	for i := range list {
		list[i].group, list[i].to = "w:g2", "group"
	}
	return list
}

// addressed returns the group that a query addresses. If there is no such group, or if the sender is not a member,
// addressed refuses the query and returns nil.
func (c *connection) addressed(s stanza) *Group {
	g := c.n.groups[jid(s, "to").User]
	switch {
	case g == nil:
		c.refuse(s, 404, "item-not-found")
		return nil
	case !slices.Contains(g.members, c.device.account):
		c.refuse(s, 403, "forbidden")
		return nil
	}
	return g
}

func (c *connection) groupInfo(s stanza) {
	if g := c.addressed(s); g != nil {
		c.result(s, g.describe())
	}
}

func (c *connection) joinedGroups(s stanza) {
	var list []stanza
	for _, g := range c.n.groups {
		if slices.Contains(g.members, c.device.account) {
			list = append(list, g.describe())
		}
	}
	c.result(s, element("groups", nil, list...))
}

// byCode returns the group of an invitation code. If the code is unknown or revoked, byCode refuses the query and
// returns nil.
func (c *connection) byCode(s stanza, code string) *Group {
	for _, g := range c.n.groups {
		if g.code == code {
			return g
		}
		if slices.Contains(g.revoked, code) {
			c.refuse(s, 410, "gone")
			return nil
		}
	}
	c.refuse(s, 406, "not-acceptable")
	return nil
}

// If a query contains a code, invitation answers with the code's group. Otherwise it answers with the code of the group
// that the query addresses, if the sender is a member.
func (c *connection) invitation(s stanza) {
	code := text(child(s, "invite"), "code")
	if code == "" {
		if g := c.addressed(s); g != nil {
			c.result(s, element("invite", attrs{"code": g.code}))
		}
		return
	}
	if g := c.byCode(s, code); g != nil {
		c.result(s, g.describe())
	}
}

// If a query contains a code, join makes the sender a member. Otherwise it gives the group a new code.
func (c *connection) join(s stanza) {
	code := text(child(s, "invite"), "code")
	if code == "" {
		if g := c.addressed(s); g != nil {
			g.revoked = append(g.revoked, g.code)
			g.code = inviteCode()
			c.result(s, element("invite", attrs{"code": g.code}))
		}
		return
	}
	if g := c.byCode(s, code); g != nil {
		g.add(c.device.account, c.device.account)
		c.result(s, element("group", attrs{"jid": g.JID()}))
	}
}

func (c *connection) createGroup(s stanza) {
	wanted := child(s, "create")
	if subject := text(wanted, "subject"); len([]rune(subject)) > 100 {
		c.refuse(s, 406, "not-acceptable")
		return
	}
	members := []*Account{c.device.account}
	for _, p := range childrenOf(wanted) {
		if a := c.n.account(jid(p, "jid")); p.Tag == "participant" && a != nil && !slices.Contains(members, a) {
			members = append(members, a)
		}
	}
	g := c.n.newGroup(text(wanted, "subject"), members)
	c.result(s, g.describe())
	g.announce(c.device.account, nil, element("create", attrs{"type": "new", "key": strings.ToUpper(fmt.Sprintf("%x", random(8)))}, g.describe()))
}

func (c *connection) leaveGroup(s stanza) {
	for _, left := range childrenOf(child(s, "leave")) {
		if g := c.n.groups[jid(left, "id").User]; g != nil {
			g.remove(c.device.account, c.device.account)
		}
	}
	c.result(s)
}

func (c *connection) renameGroup(s stanza) {
	g := c.addressed(s)
	if g == nil {
		return
	}
	g.subject = string(bytesOf(child(s, "subject")))
	c.result(s)
	g.announce(c.device.account, nil, element("subject", attrs{"subject": g.subject, "s_t": seconds(time.Now()), "s_o": g.address(c.device.account)}))
}

func (c *connection) changeMembers(s stanza, change string) {
	g := c.addressed(s)
	if g == nil {
		return
	}
	if !g.admins[c.device.account] {
		c.refuse(s, 403, "forbidden")
		return
	}
	var changed []stanza
	for _, p := range childrenOf(child(s, change)) {
		a := c.n.account(jid(p, "jid"))
		if a == nil {
			changed = append(changed, element("participant", attrs{"jid": jid(p, "jid"), "error": "404"}))
			continue
		}
		switch change {
		case "add":
			g.add(a, c.device.account)
		case "remove":
			g.remove(a, c.device.account)
		case "promote":
			g.admins[a] = true
		case "demote":
			delete(g.admins, a)
		}
		changed = append(changed, g.participant(a))
	}
	c.result(s, element(change, nil, changed...))
}
