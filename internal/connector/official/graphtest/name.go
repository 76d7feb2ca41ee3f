package graphtest

import "strings"

// Name is Meta's name for a recipient.
type Name struct {
	Number string // digits; "": Meta hides the number
	ID     string // the person's id at this business; "": Meta gives none
}

// Know sets Meta's name for a recipient. to is the recipient in the sender's messages.
func (p *Peer) Know(to string, n Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[to] = n
}

// nameOf returns Meta's name for a recipient.
func (p *Peer) nameOf(to string) Name {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.names[to]; ok {
		return n
	}
	return Name{Number: strings.TrimPrefix(to, "+")}
}

// contact returns the entry about a recipient in Meta's answer to a message.
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
