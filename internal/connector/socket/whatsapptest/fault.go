//go:build !nosocket

package whatsapptest

import (
	"context"
	"slices"
	"time"
)

// Fault is what happens to messages that clients send. The first fault that matches a message takes it.
type Fault struct {
	From, To string // number of the sender, number or group's id of the chat; "" matches any
	Retries  bool   // also takes messages that are sent again to a device that asked
	Times    int    // how many messages; 0: until it is removed

	AckError int             // the server refuses the message with this code: 463, 479, 429…
	Lose     bool            // the server never saw the message
	Discard  bool            // the message is acknowledged, and never delivered
	DropAck  bool            // the message is delivered, and never acknowledged
	AckDelay time.Duration   // the message is delivered, and acknowledged this much later
	AckHold  <-chan struct{} // the message is delivered, and acknowledged once this is closed
	Corrupt  bool            // the ciphertext is damaged on the way to the other side's devices
	Cut      bool            // the message is delivered; then the connection breaks instead of the ack
}

// fault is a Fault with the count of messages that are left. A nil fault does nothing.
type fault struct {
	Fault
	left int // negative: without end
}

// Inject makes messages suffer a fault from now on. It returns a function that ends the fault.
func (n *Network) Inject(what Fault) (remove func()) {
	what.From, what.To = digits(what.From), digits(what.To)
	f := &fault{Fault: what, left: what.Times}
	if what.Times == 0 {
		f.left = -1
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, f)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.faults = slices.DeleteFunc(n.faults, func(other *fault) bool { return other == f })
	}
}

// messageFault finds the fault of a message. The caller holds n.mu.
func (n *Network) messageFault(message Stanza) *fault {
	for _, f := range n.faults {
		if f.left == 0 || f.From != "" && f.From != message.From || f.To != "" && f.To != message.Chat || message.Retry && !f.Retries {
			continue
		}
		if f.left > 0 {
			f.left--
		}
		return f
	}
	return nil
}

func (f *fault) lost() bool { return f != nil && f.Lose }

func (f *fault) discards() bool { return f != nil && f.Discard }

func (f *fault) code() int {
	if f == nil {
		return 0
	}
	return f.AckError
}

// corrupt damages a ciphertext, if the fault asks for it. It does not damage the last bytes, because readers may ignore
// them.
func (f *fault) corrupt(other bool, cipher stanza) stanza {
	if f == nil || !f.Corrupt || !other {
		return cipher
	}
	damaged := slices.Clone(bytesOf(cipher))
	if len(damaged) > 30 {
		damaged[len(damaged)-30] ^= 0xff
	}
	cipher.Content = damaged
	return cipher
}

// acknowledge sends the ack, or does what the fault says. It reports whether the ack was withheld. The caller holds
// n.mu.
func (f *fault) acknowledge(c *connection, ack stanza) (withheld bool) {
	switch {
	case f == nil:
		c.send(ack)
		return false
	case f.Cut:
		c.cut()
		return true
	case f.DropAck:
		return true
	case f.AckHold != nil:
		hold := f.AckHold
		c.n.open.Go(func() {
			select {
			case <-hold:
				c.later(ack)
			case <-c.ctx.Done():
			}
		})
		return true
	case f.AckDelay > 0:
		time.AfterFunc(f.AckDelay, func() { c.later(ack) })
		return true
	}
	c.send(ack)
	return false
}

// later sends a stanza unless the connection ended.
func (c *connection) later(s stanza) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.ctx.Err() == nil {
		c.send(s)
	}
}

// QueryFault is what happens to info queries. The first that matches takes a query.
type QueryFault struct {
	From  string // number of the client that asks; "" matches any, also clients that are not linked
	Group string // the query's namespace: usync, encrypt, w:g2, w:m, md, privacy, w:p…
	Tag   string // the tag of the query's first child; "" matches any
	Times int    // how many queries; 0: until it is removed

	// Without Code, Delay and Until the query gets no answer at all.
	Code  int             // the error of the answer, such as 429
	Text  string          // the error's text, such as rate-overlimit
	Delay time.Duration   // how long the answer waits
	Until <-chan struct{} // closed by the test: the query is answered then
}

type queryFault struct {
	QueryFault
	left int
}

// InjectQuery makes queries suffer a fault from now on. It returns a function that ends the fault.
func (n *Network) InjectQuery(fault QueryFault) (remove func()) {
	fault.From = digits(fault.From)
	f := &queryFault{QueryFault: fault, left: fault.Times}
	if fault.Times == 0 {
		f.left = -1
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing = append(n.failing, f)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.failing = slices.DeleteFunc(n.failing, func(other *queryFault) bool { return other == f })
	}
}

// queryFault finds the fault of a query. The caller holds n.mu.
func (n *Network) queryFault(c *connection, s stanza, tag string) *queryFault {
	from := ""
	if c.device != nil {
		from = c.device.account.number
	}
	for _, f := range n.failing {
		if f.left == 0 || f.From != "" && f.From != from || f.Group != text(s, "xmlns") || f.Tag != "" && f.Tag != tag {
			continue
		}
		if f.left > 0 {
			f.left--
		}
		return f
	}
	return nil
}

// LoseReceipts makes the server pass on no receipts of one kind from one number, from now on. Kind "" means delivery
// receipts, and number "" means all numbers. It returns a function that lets these receipts pass again.
func (n *Network) LoseReceipts(from, kind string) (remove func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := digits(from) + "|" + kind
	n.lost[key] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.lost, key)
	}
}

func (n *Network) receiptLost(from, kind string) bool {
	return n.lost[from+"|"+kind] || n.lost["|"+kind]
}

// patient returns a context for callers who wait without a deadline.
func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), WaitMost)
}
