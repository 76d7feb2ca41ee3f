package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/keyword"
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
	Button    string // the label of a button that the phone presses, instead of a text
	Message   string // id of the message with the button; "": the latest one with such a button
	NetworkID string // the network's id of the reply; a second reply with the same id is a repeat; "": a new id

	Faults     []puntuale.Fault // the faults that the calling package already found in the request
	Scope, Key string           // if NetworkID is "", it is derived from the scope and the idempotency key
}

// Codes of the faults in a reply from the simulated network.
const (
	faultSandboxOnly  puntuale.ReasonCode = "sandbox.only"
	faultSandboxGroup puntuale.ReasonCode = "sandbox.group"
	faultSandboxTaken puntuale.ReasonCode = "sandbox.not_taken"

	faultSandboxNoButton puntuale.ReasonCode = "sandbox.no_button"
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
	if r.Button == "" {
		f.Required("body.text", r.Text, puntuale.MaxReply)
	} else if f.Text("body.button", r.Button, puntuale.MaxReply); r.Text != "" {
		f.Add("body.text", puntuale.FaultGoesWithout, nil, "button")
	}
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
	h := puntuale.InboundMessage{Kind: puntuale.ReplyText, Text: r.Text}
	if r.Button != "" && len(f) == 0 {
		if h, err = c.pressed(ctx, &f, s, r); err != nil {
			return SandboxReply{}, err
		}
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
	h.Client, h.Session, h.Phone, h.At, h.ID = c.account.ID, s.ID, r.Phone, c.control.clock.Now(), r.NetworkID
	if err := c.control.take(ctx, s.ID, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{h.Storable()}}); err != nil {
		return SandboxReply{}, fmt.Errorf("take a reply of the simulated network: %w", err)
	}
	return r, nil
}

// pressed returns the message that a network sends when the owner of a phone presses a button.
func (c *Client) pressed(ctx context.Context, f *request.Faults, s puntuale.Session, r SandboxReply) (h puntuale.InboundMessage, err error) {
	rows, err := c.tenant.SandboxChat(ctx, s.ID, r.Phone, request.MaxPageRows)
	if err != nil {
		return h, fmt.Errorf("list what the sandbox received: %w", err)
	}
	for _, m := range rows { // the newest first
		if r.Message != "" && m.Message.String() != r.Message {
			continue
		}
		for i, b := range m.Content.Buttons() {
			if keyword.Whole(b.Label) == keyword.Whole(r.Button) {
				h.Kind, h.Text, h.Payload = puntuale.ReplyButton, b.Label, c.control.vault.TapPayload(c.account.ID, puntuale.Tap{Message: m.Message, Button: i})
				return h, nil
			}
		}
	}
	f.Add("body.button", faultSandboxNoButton, r.Button)
	return h, nil
}
