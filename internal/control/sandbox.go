package control

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/keyword"
	"puntuale/internal/plan"
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
	Button    string // the label of a button, or the title of a row, that the phone presses, instead of a text
	Row       string // the position of a row in the list of Message, instead of its title; "": none
	Shares    string // what the phone shares because a message asked for it, instead of a text: location or phone; "": nothing
	Latitude  *float64
	Longitude *float64
	Message   string // id of the message with the button or the question; "": the latest one with such a button or question
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
	faultSandboxNotAsked puntuale.ReasonCode = "sandbox.not_asked"
)

// Coordinates of the position that a simulated phone shares, if the caller gives none.
const (
	sandboxLatitude  = 45.46420
	sandboxLongitude = 9.18999
)

// AnswerFromSandbox handles a reply as if a network had delivered it. The call does not count in the client's usage. It
// returns the reply with its session, phone, text and id filled in. Codes: invalid, conflict (this server accepts no
// replies).
func (c *Client) AnswerFromSandbox(ctx context.Context, r SandboxReply) (SandboxReply, error) {
	f := request.Faults(r.Faults)
	r.Phone = c.recipient(&f, "body.phone", r.Phone)
	if strings.HasSuffix(r.Phone, "@g.us") || puntuale.IsNetworkGroup(r.Phone) {
		f.Add("body.phone", faultSandboxGroup, nil)
	}
	r.check(&f)
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
	if r.Button+r.Row+r.Shares != "" && len(f) == 0 {
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
	r.Session, r.Text = s.ID.String(), h.Text
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

// check checks what the phone does: it writes, presses or shares.
func (r *SandboxReply) check(f *request.Faults) {
	instead := "button"
	if r.Shares != "" {
		f.Word("body.shares", r.Shares, string(puntuale.AskLocation), string(puntuale.AskPhone))
		instead = "shares"
	}
	f.Text("body.button", r.Button, puntuale.MaxReply)
	switch {
	case r.Button+r.Row+r.Shares == "":
		f.Required("body.text", r.Text, puntuale.MaxReply)
	case r.Text != "":
		f.Add("body.text", puntuale.FaultGoesWithout, nil, instead)
	case r.Button != "" && r.Shares != "":
		f.Add("body.button", puntuale.FaultGoesWithout, nil, instead)
	}
	if r.Latitude != nil || r.Longitude != nil {
		*f = append(*f, plan.CheckContent("body", puntuale.Step{Latitude: r.Latitude, Longitude: r.Longitude})...)
	}
}

// pressed returns the message that a network sends when the owner of a phone presses a button or a row, or shares what a
// message asks for.
func (c *Client) pressed(ctx context.Context, f *request.Faults, s puntuale.Session, r SandboxReply) (h puntuale.InboundMessage, err error) {
	rows, err := c.tenant.SandboxChat(ctx, s.ID, r.Phone, request.MaxPageRows)
	if err != nil {
		return h, fmt.Errorf("list what the sandbox received: %w", err)
	}
	for _, m := range rows { // the newest first
		if r.Message != "" && m.Message.String() != r.Message {
			continue
		}
		if x := m.Content.Interactive; r.Shares != "" && x != nil && string(x.Ask) == r.Shares {
			h.InReplyTo = m.Message
			if h.Kind, h.Text = puntuale.ReplyContact, r.Phone; x.Ask == puntuale.AskLocation {
				at := [2]float64{sandboxLatitude, sandboxLongitude}
				if r.Latitude != nil && r.Longitude != nil {
					at = [2]float64{*r.Latitude, *r.Longitude}
				}
				h.Kind, h.Text = puntuale.ReplyLocation, puntuale.LocationText("", "", at[0], at[1])
			}
			return h, nil
		}
		for i, b := range m.Content.Choices() {
			if r.Row != "" && r.Row == strconv.Itoa(i) || r.Button != "" && (keyword.Whole(b.Label) == keyword.Whole(r.Button) || b.Payload == r.Button) {
				h.Kind, h.Text = puntuale.ReplyButton, b.Label
				h.Payload = c.control.vault.TapPayload(c.account.ID, puntuale.Tap{Message: m.Message, Button: i, Payload: b.Payload})
				return h, nil
			}
		}
	}
	if r.Shares != "" {
		f.Add("body.shares", faultSandboxNotAsked, r.Shares)
	} else {
		f.Add("body.button", faultSandboxNoButton, r.Button)
	}
	return h, nil
}
