//go:build !nosocket

package whatsapptest

import (
	"strconv"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"
)

func directoryQueries() []queryKind {
	requested := sh("query", "", maybe(sh("contact", "addressing_mode?=lid")), maybe(sh("business", "", one(sh("verified_name", "")))),
		maybe(sh("disappearing_mode", "")), maybe(sh("username", "")), maybe(sh("status", "")), maybe(sh("picture", "")),
		maybe(sh("devices", "version=2")), maybe(sh("lid", "")))
	user := sh("user", "jid:jid?", maybe(raw("contact", "")), maybe(raw("tctoken", "")))
	return []queryKind{
		{shape: sh("usync", "sid mode=query|full last=true index=0 context=message|interactive|background", one(requested), one(sh("list", "", some(user)))),
			group: "usync", kind: "get", answer: (*connection).lookUp},
		{shape: sh("tokens", "", some(sh("token", "jid:jid t type=trusted_contact"))), group: "privacy", kind: "set", answer: (*connection).issueTokens},
		{shape: sh("privacy", "", maybe(sh("category", "name value"))), group: "privacy", kind: "get", answer: (*connection).privacySettings},
		{shape: sh("privacy", "", one(sh("category", "name value"))), group: "privacy", kind: "set", answer: (*connection).setPrivacy},
		{shape: sh("picture", "query=url type=preview|image id? invite? common_gid?:jid persona_id?", maybe(raw("tctoken", ""))), group: "w:profile:picture",
			kind: "get", target: true, answer: func(c *connection, s stanza) { c.refuse(s, 404, "item-not-found") }},
		{group: "blocklist", kind: "get", answer: func(c *connection, s stanza) { c.result(s, element("list", attrs{"dhash": "0"})) }},
		{shape: sh("sync", "", some(sh("collection", "name version? return_snapshot=true|false", maybe(raw("patch", ""))))), group: "w:sync:app:state", kind: "set", answer: (*connection).appState},
	}
}

// lookUp answers which numbers have WhatsApp, with their LIDs and devices.
func (c *connection) lookUp(s stanza) {
	usync := child(s, "usync")
	requested := child(usync, "query")
	var users []stanza
	for _, user := range childrenOf(child(usync, "list")) {
		if fault := c.checkToken(child(user, "tctoken"), c.n.account(jid(user, "jid"))); fault != "" {
			c.n.misunderstood("%s: %s", fault, s.String())
		}
		if typed := child(user, "contact"); typed.Tag != "" {
			users = append(users, c.lookUpNumber(bytesOf(typed)))
			continue
		}
		address := jid(user, "jid")
		answer := element("user", attrs{"jid": address})
		if a := c.n.account(address); a != nil {
			answer = element("user", attrs{"jid": address}, a.describe(c.device, requested, address.Server)...)
		} else if child(requested, "devices").Tag != "" {
			answer = element("user", attrs{"jid": address}, element("devices", nil, element("error", attrs{"code": "404", "text": "item-not-found"})))
		}
		users = append(users, answer)
	}
	c.result(s, element("usync", attrs{"sid": text(usync, "sid"), "mode": text(usync, "mode"), "last": "true", "index": "0", "context": text(usync, "context")},
		element("result", nil), element("list", nil, users...)))
}

// lookUpNumber returns the answer for a number that a person typed.
func (c *connection) lookUpNumber(typed []byte) stanza {
	number := strings.TrimSuffix(strings.TrimPrefix(string(typed), "+"), "@"+types.LegacyUserServer)
	pn := types.NewJID(number, types.DefaultUserServer)
	if !strings.HasPrefix(string(typed), "+") || !strings.HasSuffix(string(typed), "@"+types.LegacyUserServer) || strings.Trim(number, "0123456789") != "" {
		c.n.misunderstood("a contact %q", typed)
	}
	if other, ok := c.n.typed[number]; ok { // the caller has locked the network
		attributes := attrs{"jid": other.account.LID()}
		if !other.hidden {
			attributes["pn_jid"] = other.account.JID()
		}
		return element("user", attributes, data("contact", attrs{"type": "in"}, typed))
	}
	if a := c.n.account(pn); a != nil {
		return element("user", attrs{"jid": a.LID(), "pn_jid": pn}, data("contact", attrs{"type": "in"}, typed))
	}
	return element("user", attrs{"pn_jid": pn}, data("contact", attrs{"type": "out"}, typed))
}

// describe returns the answers to a query about an account.
func (a *Account) describe(asker *device, requested stanza, space string) (answers []stanza) {
	for _, question := range childrenOf(requested) {
		switch question.Tag {
		case "devices":
			var list []stanza
			for _, d := range a.devices {
				attributes := attrs{"id": strconv.Itoa(int(d.id))}
				if d.id > 0 {
					attributes["key-index"] = strconv.Itoa(int(d.id))
				}
				list = append(list, element("device", attributes))
			}
			answers = append(answers, element("devices", nil, element("device-list", nil, list...)))
			a.watchers[watch{asker, space}] = true
		case "lid":
			answers = append(answers, element("lid", attrs{"val": a.LID()}))
		case "status":
			answers = append(answers, data("status", attrs{"t": seconds(time.Now())}, []byte{}))
		}
	}
	return answers
}

// checkToken returns what is wrong with a device's privacy token for an account, or "" if nothing is.
func (c *connection) checkToken(shown stanza, account *Account) string {
	if shown.Tag == "" || account == nil {
		return ""
	}
	if c.n.tokens[string(bytesOf(shown))] != account.number+">"+c.device.account.number {
		return "a privacy token that was not issued for it"
	}
	return ""
}

// issueTokens gives the devices of a contact a privacy token. With this token they may write to the account.
func (c *connection) issueTokens(s stanza) {
	for _, wanted := range childrenOf(child(s, "tokens")) {
		to := c.n.account(jid(wanted, "jid"))
		if to == nil {
			c.refuse(s, 404, "item-not-found")
			return
		}
		token := random(16)
		c.n.tokens[string(token)] = c.device.account.number + ">" + to.number
		for _, d := range to.devices {
			d.keep(element("notification", attrs{
				"from": c.device.account.JID(), "sender_lid": c.device.account.LID(), "id": c.n.id(), "type": "privacy_token", "t": seconds(time.Now()),
			}, element("tokens", nil, data("token", attrs{"t": text(wanted, "t"), "type": "trusted_contact"}, token))))
		}
	}
	c.result(s)
}

// AwaitToken waits for a privacy token. owner is the number that gives the token, and to is the number that gets it.
func (n *Network) AwaitToken(t TB, owner, to string) {
	t.Helper()
	ctx, cancel := patient()
	defer cancel()
	err := n.await(ctx, func() bool {
		for _, issued := range n.tokens {
			if issued == digits(owner)+">"+digits(to) {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Fatalf("%s gave %s no token", owner, to)
	}
}

func (c *connection) privacySettings(s stanza) {
	var list []stanza
	for name, value := range c.device.account.privacy {
		list = append(list, element("category", attrs{"name": name, "value": value}))
	}
	c.result(s, element("privacy", nil, list...))
}

func (c *connection) setPrivacy(s stanza) {
	changed := child(child(s, "privacy"), "category")
	c.device.account.privacy[text(changed, "name")] = text(changed, "value")
	c.result(s, element("privacy", nil, changed))
}

// presence records which accounts are online, and which devices requested an account's presence.
func (c *connection) presence(s stanza) {
	a := c.device.account
	if text(s, "type") == "subscribe" {
		if account := c.n.account(jid(s, "to")); account != nil {
			account.observers[c.device] = true
			c.sendPresence(account)
		}
		return
	}
	if name := text(s, "name"); name != "" {
		a.name = name
	}
	a.present = text(s, "type") == "available"
	for d := range a.observers {
		if d.connection != nil && d.connection.active {
			d.connection.sendPresence(a)
		}
	}
}

func (c *connection) sendPresence(account *Account) {
	shown := attrs{"from": account.LID()}
	if !account.present {
		shown["type"], shown["last"] = "unavailable", seconds(time.Now())
	}
	c.send(element("presence", shown))
}

// chatstate reports to a chat's recipient that the sender types or records.
func (c *connection) chatstate(s stanza) {
	if len(childrenOf(s)) != 1 {
		c.n.misunderstood("%s", s.String())
		return
	}
	to := jid(s, "to")
	a := c.n.account(to)
	c.n.accepted = append(c.n.accepted, Stanza{
		Tag: "chatstate", From: c.device.account.number, Device: int(c.device.id), Chat: c.n.chatName(to), Type: childrenOf(s)[0].Tag, At: time.Now(),
	})
	if a == nil {
		return
	}
	for _, d := range a.devices {
		if d.connection != nil && d.connection.active {
			d.connection.send(element("chatstate", attrs{"from": c.device.in(to.Server).ToNonAD()}, childrenOf(s)...))
		}
	}
}

// typedNumber is the answer for a typed number that is not the number of the account.
type typedNumber struct {
	account *Account
	hidden  bool
}

// Knows makes the network answer with the account if somebody asks for the typed number, which has other digits. If
// hidden is true, the answer has only the account's LID.
func (n *Network) Knows(typed string, a *Account, hidden bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.typed == nil {
		n.typed = map[string]typedNumber{}
	}
	n.typed[digits(typed)] = typedNumber{a, hidden}
}
