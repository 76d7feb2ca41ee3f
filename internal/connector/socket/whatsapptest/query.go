//go:build !nosocket

package whatsapptest

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// queryKind is a kind of info query that the server answers.
type queryKind struct {
	shape           // shape of the only child; an empty tag means no child
	group, kind, to string
	whole           *shape // shape of the whole query; set if the query has more than one child
	guest           bool   // a client may send the query before login, too
	target          bool   // the query has the attribute "target"
	answer          func(*connection, stanza)
}

// Query is an info query that a client sent.
type Query struct {
	From  string   // the client's number; "": the client is not linked
	Group string   // the query's namespace: usync, encrypt, w:g2…
	Tag   string   // the tag of the query's first child
	About []string // only in a usync query: the numbers or LIDs in it
	At    time.Time
}

// Queries lists the queries so far with one namespace of the protocol, such as usync. "" lists all queries.
func (n *Network) Queries(group string) []Query {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.asked), func(q Query) bool { return group != "" && q.Group != group })
}

// note records a query for the test. The caller holds n.mu.
func (c *connection) note(s stanza, first string) {
	q := Query{Group: text(s, "xmlns"), Tag: first, At: time.Now()}
	if c.device != nil {
		q.From = c.device.account.number
	}
	for _, user := range childrenOf(child(child(s, "usync"), "list")) {
		about := jid(user, "jid").User
		if typed := bytesOf(child(user, "contact")); len(typed) > 0 {
			about, _, _ = strings.Cut(digits(string(typed)), "@")
		}
		q.About = append(q.About, about)
	}
	c.n.asked = append(c.n.asked, q)
}

// query answers an info query, or handles the client's answer to a query of the server. The caller holds n.mu.
func (c *connection) query(s stanza) {
	if kind := text(s, "type"); kind == "result" || kind == "error" {
		c.answered(s)
		return
	}
	first := ""
	if children := childrenOf(s); len(children) > 0 {
		first = children[0].Tag
	}
	c.note(s, first)
	for _, known := range queries {
		if known.group != text(s, "xmlns") || known.kind != text(s, "type") || known.tag != first {
			continue
		}
		if fault := known.fault(c, s); fault != "" {
			c.n.misunderstood("%s: %s", fault, s.String())
			c.refuse(s, 400, "bad-request")
			return
		}
		if f := c.n.queryFault(c, s, first); f != nil {
			c.suffer(f, s, known)
			return
		}
		known.answer(c, s)
		return
	}
	c.n.misunderstood("%s", s.String())
	c.refuse(s, 501, "feature-not-implemented")
}

// fault returns what is wrong with a query of this kind, or "" if nothing is.
func (k queryKind) fault(c *connection, s stanza) string {
	attributes := "id xmlns type to:jid"
	if k.to == "anywhere" {
		attributes = "id xmlns type to:jid?"
	}
	if k.target {
		attributes += " target:jid?"
	}
	whole := sh("iq", attributes)
	if k.tag != "" {
		whole.children = []childShape{one(k.shape)}
	}
	if k.whole != nil {
		whole = *k.whole
	}
	if fault := whole.check(s); fault != "" {
		return fault
	}
	if c.device == nil && !k.guest {
		return "a query before login"
	}
	if to := jid(s, "to"); k.to == "" && to != server || k.to == "group" && to.Server != "g.us" {
		return "a query to " + to.String()
	}
	return ""
}

// suffer applies a fault to a query. The caller holds n.mu.
func (c *connection) suffer(f *queryFault, s stanza, known queryKind) {
	switch {
	case f.Code != 0:
		c.refuse(s, f.Code, f.Text)
	case f.Delay > 0:
		time.AfterFunc(f.Delay, func() { c.answerLate(s, known) })
	case f.Until != nil:
		go func() {
			select {
			case <-f.Until:
				c.answerLate(s, known)
			case <-c.ctx.Done():
			}
		}()
	}
}

// answerLate answers a query that a fault delayed, if its connection is still open.
func (c *connection) answerLate(s stanza, known queryKind) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.ctx.Err() == nil && (c.device != nil || known.guest) {
		known.answer(c, s)
		c.n.notify()
	}
}

// result sends the result of a query.
func (c *connection) result(s stanza, children ...stanza) {
	from := jid(s, "to")
	if from.IsEmpty() {
		from = server
	}
	c.send(element("iq", attrs{"id": text(s, "id"), "type": "result", "from": from}, children...))
}

// refuse sends an error as the answer to a query.
func (c *connection) refuse(s stanza, code int, words string) {
	from := jid(s, "to")
	if from.IsEmpty() {
		from = server
	}
	c.send(element("iq", attrs{"id": text(s, "id"), "type": "error", "from": from},
		element("error", attrs{"code": strconv.Itoa(code), "text": words})))
}

var queries []queryKind

// init fills the table. The declaration cannot contain the values, because the handlers refer to the table.
func init() {
	queries = slices.Concat(pairQueries(), keyQueries(), directoryQueries(), groupQueries(), []queryKind{
		{group: "w:p", kind: "get", guest: true, answer: func(c *connection, s stanza) { c.result(s) }},
		{shape: sh("active", ""), group: "passive", kind: "set", answer: (*connection).activate},
		{shape: sh("passive", ""), group: "passive", kind: "set", answer: func(c *connection, s stanza) { c.active = false; c.result(s) }},
		{shape: sh("media_conn", ""), group: "w:m", kind: "set", answer: (*connection).mediaHosts},
		{shape: sh("remove-companion-device", "jid:jid reason=user_initiated"), group: "md", kind: "set", answer: (*connection).logout},
		{shape: sh("clean", "type timestamp?"), group: "urn:xmpp:whatsapp:dirty", kind: "set", answer: func(c *connection, s stanza) { c.result(s) }},
	})
}
