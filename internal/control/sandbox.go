package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// SandboxMessages lists the messages that the simulated network received from the client, oldest first. If it returns
// a cursor, the page lacks no message before the cursor. For this, the call waits for up to two seconds, until late
// transactions have committed. Codes: invalid.
func (c *Client) SandboxMessages(ctx context.Context, p request.Page) ([]puntuale.SandboxMessage, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) (rows []puntuale.SandboxMessage, next string, err error) {
		err = c.follow(ctx, func(time.Time) (complete time.Time, err error) {
			rows, next, err = c.tenant.SandboxMessages(ctx, p)
			if next != "" {
				complete = rows[len(rows)-1].Received
			}
			return complete, err
		})
		return rows, next, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list sandbox messages: %w", err)
	}
	return rows, next, nil
}

// SandboxReply is a reply from a phone of the simulated network.
type SandboxReply struct {
	Session   string // the id of a sandbox; "": the client's default session
	Phone     string // the phone that replies
	Text      string
	NetworkID string // the network's id of the reply; a second reply with the same id is a repeat; "": a new id

	Faults     []puntuale.Fault // the faults that the calling package already found in the request
	Scope, Key string           // if NetworkID is "", it is derived from the scope and the idempotency key
}

// Codes of the faults in a reply from the simulated network.
const (
	faultSandboxOnly  puntuale.ReasonCode = "sandbox.only"
	faultSandboxGroup puntuale.ReasonCode = "sandbox.group"
	faultSandboxTaken puntuale.ReasonCode = "sandbox.not_taken"
)

// AnswerFromSandbox handles a reply as if a network had delivered it. The call does not count in the client's usage. It
// returns the reply with its session, phone and id filled in. Codes: invalid, conflict (this server accepts no
// replies).
func (c *Client) AnswerFromSandbox(ctx context.Context, r SandboxReply) (SandboxReply, error) {
	f := request.Faults(r.Faults)
	r.Phone = c.recipient(&f, "body.phone", r.Phone)
	if strings.HasSuffix(r.Phone, "@g.us") || puntuale.IsNetworkGroup(r.Phone) {
		f.Add("body.phone", faultSandboxGroup, nil)
	}
	f.Required("body.text", r.Text, puntuale.MaxReply)
	f.Text("body.network_id", r.NetworkID, maxIdempotencyKey)
	if !sane(r.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, fmt.Sprint(maxIdempotencyKey))
	}
	s, err := c.sessionFor(ctx, &f, r.Session)
	if err != nil {
		return SandboxReply{}, err
	}
	if s.ID != 0 && !s.Sandbox {
		f.Add("body.id_sessione", faultSandboxOnly, nil)
	}
	if err := f.Err(); err != nil {
		return SandboxReply{}, err
	}
	if c.control.take == nil {
		return SandboxReply{}, puntuale.Conflict(faultSandboxTaken)
	}
	r.Session = s.ID.String()
	switch {
	case r.NetworkID != "":
	case r.Key != "":
		r.NetworkID = "key." + hashOf([]byte(r.Scope+"\n"+r.Key))
	default:
		r.NetworkID = "sandbox." + rand.Text()
	}
	h := puntuale.InboundMessage{
		Client: c.account.ID, Session: s.ID, Phone: r.Phone, At: c.control.clock.Now(), ID: r.NetworkID, Kind: puntuale.ReplyText, Text: r.Text,
	}
	if err := c.control.take(ctx, s.ID, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{h.Storable()}}); err != nil {
		return SandboxReply{}, fmt.Errorf("take a reply of the simulated network: %w", err)
	}
	return r, nil
}
