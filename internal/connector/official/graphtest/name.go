package graphtest

import "strings"

// Name is the name by which Meta calls a recipient.
type Name struct {
	Number string // digits; "" hides it
	ID     string // the person's id at this business; "": Meta names none
}

// Know gives a recipient other names at Meta. to is the recipient as messages name it.
func (p *Peer) Know(to string, n Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[to] = n
}

// nameOf returns the name by which Meta calls a recipient.
func (p *Peer) nameOf(to string) Name {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.names[to]; ok {
		return n
	}
	return Name{Number: strings.TrimPrefix(to, "+")}
}

// contact returns how an answer names a recipient.
func (p *Peer) contact(to string) map[string]any {
	c := map[string]any{"input": to}
	n := p.nameOf(to)
	if n.Number != "" && strings.HasPrefix(to, "+") {
		c["wa_id"] = n.Number
	}
	if n.ID != "" {
		c["user_id"] = n.ID
	}
	return c
}
