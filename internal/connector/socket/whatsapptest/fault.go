//go:build !nosocket

package whatsapptest

import (
	"context"
	"slices"
	"time"
)

// Fault describes what goes wrong with messages that clients send. If several faults match a message, the first one
// applies.
type Fault struct {
	From, To string // the sender's number, and the recipient's number or the group's id; "" matches any
	Retries  bool   // the fault also matches messages that are sent again to a device that requested them
	Times    int    // how many messages the fault affects; 0: all, until the fault is removed

	AckError int             // the server refuses the message with this code: 463, 479, 429…
	Lose     bool            // the server never saw the message
	Discard  bool            // the message is acknowledged but never delivered
	DropAck  bool            // the message is delivered but never acknowledged
	AckDelay time.Duration   // the message is delivered, and acknowledged after this delay
	AckHold  <-chan struct{} // the message is delivered, and acknowledged once this is closed
	Corrupt  bool            // the ciphertext for the recipient's devices is damaged
	Cut      bool            // the message is delivered, and the connection breaks before the ack
}

// fault is a Fault with the number of messages that it still affects. A nil fault does nothing.
type fault struct {
	Fault
	left int // negative: the fault affects all messages
}

// Inject starts a fault, and returns a function that ends the fault.
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

// messageFault returns the fault that applies to a message, or nil. The caller holds n.mu.
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

// corrupt returns a damaged ciphertext if the fault requires that. It does not damage the last bytes, because readers
// may ignore them.
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

// acknowledge sends the ack, or applies the fault. It returns true if no ack is sent. The caller holds n.mu.
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

// later sends a stanza if the connection is still open.
func (c *connection) later(s stanza) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.ctx.Err() == nil {
		c.send(s)
	}
}

// QueryFault describes what goes wrong with info queries. If several faults match a query, the first one applies.
type QueryFault struct {
	From  string // number of the client; "" matches all clients, also those that are not linked
	Group string // the query's namespace: usync, encrypt, w:g2, w:m, md, privacy, w:p…
	Tag   string // the tag of the query's first child; "" matches any
	Times int    // how many queries the fault affects; 0: all, until the fault is removed

	// If Code, Delay and Until are all unset, the query gets no answer.
	Code  int             // the error code of the answer, such as 429
	Text  string          // the error's text, such as rate-overlimit
	Delay time.Duration   // how long the server waits before the answer
	Until <-chan struct{} // the server answers when the test closes this channel
}

type queryFault struct {
	QueryFault
	left int
}

// InjectQuery starts a fault of queries, and returns a function that ends the fault.
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

// queryFault returns the fault that applies to a query, or nil. The caller holds n.mu.
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

// LoseReceipts makes the server drop receipts of one kind from one number. Kind "" means delivery receipts, and number
// "" means all numbers. LoseReceipts returns a function that ends this.
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

// patient returns a context that ends after WaitMost. The Await methods use it.
func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), WaitMost)
}
