//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"puntuale"
)

// payload is a prepared message.
type payload struct {
	to      types.JID
	cold    bool
	message *waE2E.Message
}

// Reasons why a message cannot leave, or must wait.
const (
	reasonColdLimited puntuale.ReasonCode = "socket.cold_limited"
	reasonColdLimit   puntuale.ReasonCode = "socket.cold_limit"
	reasonColdPace    puntuale.ReasonCode = "socket.cold_pace"
	reasonNoGroup     puntuale.ReasonCode = "socket.no_group"
	reasonNotInGroup  puntuale.ReasonCode = "socket.not_in_group"
	reasonSlowDown    puntuale.ReasonCode = "socket.slow_down"
	reasonEncryption  puntuale.ReasonCode = "socket.encryption_interrupted"
	reasonKeysInUse   puntuale.ReasonCode = "socket.keys_in_use"
	reasonErrorCode   puntuale.ReasonCode = "socket.error_code" // {1}: WhatsApp's code
	reasonNotAllowed  puntuale.ReasonCode = "socket.not_allowed"
	reasonNoRecipient puntuale.ReasonCode = "socket.no_recipient"
	reasonOverLimit   puntuale.ReasonCode = "socket.over_limit" // {1}: the limit, in bytes
)

// Prepare finds the recipient's address and uploads the file. If the slot of a message to a cold contact is too far
// away, Prepare returns an error of the kind Deferred.
func (c *Connector) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	n := c.number(e.Session)
	if n == nil {
		return puntuale.Prepared{}, offline()
	}
	cli := n.connected()
	if cli == nil {
		return puntuale.Prepared{}, offline()
	}
	p := &payload{}
	var err error
	if p.cold, err = n.coldContacts.isCold(ctx, e.To); err != nil {
		return puntuale.Prepared{}, err
	}
	if p.cold {
		if err := n.admit(ctx, e, soonEnough); err != nil {
			return puntuale.Prepared{}, err
		}
	}
	if p.to, err = n.people.find(ctx, cli, e.To); err != nil {
		return puntuale.Prepared{}, err
	}
	if p.message, err = n.compose(ctx, cli, e); err != nil {
		return puntuale.Prepared{}, err
	}
	return puntuale.Prepared{Envelope: e, Payload: p}, nil
}

// admit refuses a message to a cold contact if the wait for the message's slot is longer than the argument remaining.
// If admit returns nil, the caller waits for the slot.
func (n *number) admit(ctx context.Context, e puntuale.Envelope, remaining time.Duration) error {
	now := n.c.cfg.Clock.Now()
	if wait := n.coldContacts.held(now); wait > 0 {
		return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonColdLimited), Detail: puntuale.Because(reasonColdLimit), After: wait}
	}
	if e.Repeat { // the first attempt used the message's slot, so the repeat needs no slot
		return nil
	}
	slot, err := n.coldContacts.slot(ctx, e.Message)
	if err != nil {
		return err
	}
	if wait := slot.Sub(now); wait > remaining {
		return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Because(reasonColdPace), Detail: puntuale.Quoted("cold_per_minute, cold_per_day"), After: wait}
	}
	return nil
}

// Send gives the message to the network, and waits for the network's acknowledgement. A number sends one message at a
// time, because the library allows no more. A connection is replaced only between two messages.
func (c *Connector) Send(ctx context.Context, prepared puntuale.Prepared) (puntuale.Acceptance, error) {
	p, ok := prepared.Payload.(*payload)
	if !ok {
		return puntuale.Acceptance{}, final(puntuale.ReasonUnprepared, puntuale.Quoted(errPayload.Error()))
	}
	n := c.number(prepared.Session)
	if n == nil {
		return puntuale.Acceptance{}, offline()
	}
	if err := n.step(ctx, prepared.Envelope, p.cold); err != nil {
		return puntuale.Acceptance{}, err
	}
	defer func() { <-n.slot }()
	cli := n.connected()
	if cli == nil {
		return puntuale.Acceptance{}, offline()
	}
	id := c.ids.connectorID(prepared.Message, prepared.ConnectorID)
	err := hand(ctx, cli, p, id)
	if err != nil {
		return puntuale.Acceptance{}, n.notSent(ctx, prepared.Envelope, id, err)
	}
	n.sent(prepared.Envelope)
	return puntuale.Acceptance{Detail: puntuale.Quoted(id)}, nil
}

// hand gives the message to the library. If an encryption state of the recipient changed meanwhile, hand tries once
// more.
func hand(ctx context.Context, cli *whatsmeow.Client, p *payload, id string) error {
	extra := whatsmeow.SendRequestExtra{ID: id, Timeout: ackTakes}
	sent, err := cli.SendMessage(ctx, p.to, p.message, extra)
	if errors.Is(err, errMoved) { // no byte of the message left
		ctx, giveBack := insist(ctx)
		defer giveBack()
		sent, err = cli.SendMessage(ctx, p.to, p.message, extra)
	}
	if err != nil && sent.DebugTimings.Send == 0 { // the library measures this time even if writing fails
		return &unwrittenError{err}
	}
	return err
}

// unwrittenError is an error before the library began to write the message, so no byte of the message left. For example,
// a query about the recipient's devices failed, or the encryption did.
type unwrittenError struct{ error }

func (e *unwrittenError) Unwrap() error { return e.error }

// step waits until the message may be sent. A message to a cold contact first waits for its time slot. Then step takes
// the number's send slot. If step fails, the message did not leave.
func (n *number) step(ctx context.Context, e puntuale.Envelope, cold bool) error {
	interrupted := func(err error) error {
		return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Quoted(err.Error()), Err: err}
	}
	if err := ctx.Err(); err != nil {
		return interrupted(err)
	}
	if cold {
		if err := n.admit(ctx, e, soonEnough); err != nil {
			if puntuale.AsSendError(err) == nil {
				return interrupted(err)
			}
			return err
		}
		slot, err := n.coldContacts.slot(ctx, e.Message)
		if err != nil {
			return interrupted(err)
		}
		clock := n.c.cfg.Clock
		if wait := slot.Sub(clock.Now()); wait > 0 && !e.Repeat {
			if err := clock.Sleep(ctx, wait); err != nil {
				return interrupted(err)
			}
		}
	}
	select {
	case n.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return interrupted(ctx.Err())
	}
}

// sent records that the network acknowledged a message.
func (n *number) sent(e puntuale.Envelope) {
	n.coldContacts.noteSent(e.Message)
	n.mu.Lock()
	n.unheard = nil
	n.state.acknowledged()
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(n.ctx, takeWait)
	defer cancel()
	if err := n.coldContacts.acquaint(ctx, e.To, n.c.cfg.Clock.Now()); err != nil {
		n.log.Warn("that somebody got a first message could not be kept", "message_id", int64(e.Message), "error", err)
	}
}

// notSent returns a send error if err proves that the message did not leave. A refusal by the network proves that. A
// missing answer proves nothing, and neither does an error that may come after the first byte. If the message is a
// repeat, a final refusal does not show what happened to the first attempt.
func (n *number) notSent(ctx context.Context, e puntuale.Envelope, id string, err error) error {
	refusal := n.refusal(ctx, err)
	if unwritten, ok := errors.AsType[*unwrittenError](err); ok && refusal == nil {
		refusal = &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Quoted(clip(err.Error(), 200)), Err: unwritten.error}
		if errors.Is(err, whatsmeow.ErrNotConnected) {
			refusal = offline()
		}
	}
	if refusal == nil {
		if errors.Is(err, whatsmeow.ErrMessageTimedOut) || errors.Is(err, context.DeadlineExceeded) {
			n.unanswered(e.Message)
		}
		return fmt.Errorf("%s: %s", id, clip(err.Error(), 200))
	}
	if e.Repeat && refusal.Kind == puntuale.Final {
		return &puntuale.ReasonError{Reason: puntuale.Colon(puntuale.Quoted(id), refusal.Detail)}
	}
	if refusal.Kind == puntuale.Final {
		n.coldContacts.noteSent(e.Message)
	}
	return refusal
}

// refusal returns a send error if the network refused the message, or if the library refused it before it wrote a byte.
// For all other errors refusal returns nil.
func (n *number) refusal(ctx context.Context, err error) *puntuale.SendError {
	switch {
	case errors.Is(err, whatsmeow.ErrServerReturnedError):
		return n.serverRefusal(ctx, err)
	case errors.Is(err, whatsmeow.ErrGroupNotFound):
		return final(reasonNoGroup, puntuale.Quoted("404"))
	case errors.Is(err, whatsmeow.ErrNotInGroup):
		return final(reasonNotInGroup, puntuale.Quoted("403"))
	case errors.Is(err, whatsmeow.ErrRecipientADJID), errors.Is(err, whatsmeow.ErrUnknownServer), errors.Is(err, whatsmeow.ErrBroadcastListUnsupported):
		return final(reasonInvalidRecipient, puntuale.Quoted(clip(err.Error(), 100)))
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit): // the network refused a query that the library sends before the message
		return &puntuale.SendError{Kind: puntuale.Throttled, Reason: puntuale.Because(reasonSlowDown), Detail: puntuale.Quoted(overLimit), After: throttle, Err: err}
	case errors.Is(err, whatsmeow.ErrNotLoggedIn):
		return offline()
	case errors.Is(err, errMoved), errors.Is(err, errBusy):
		return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(reasonEncryption), Detail: puntuale.Because(reasonKeysInUse), Err: err}
	}
	return nil
}

const throttle = time.Minute

// serverRefusal handles an error that the network sent instead of an acknowledgement. The library reports the error's
// code only in the error's text.
func (n *number) serverRefusal(ctx context.Context, err error) *puntuale.SendError {
	text := err.Error()
	code, _ := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
	detail := puntuale.Because(reasonErrorCode, strconv.Itoa(code))
	switch code {
	case 463:
		limitEnd := n.coldContacts.refused(ctx)
		n.limited(limitEnd)
		return &puntuale.SendError{
			Kind: puntuale.Deferred, Reason: puntuale.Because(reasonColdLimited), Detail: detail,
			After: limitEnd.Sub(n.c.cfg.Clock.Now()) + holdMargin, Err: err,
		}
	case 420, 429:
		return &puntuale.SendError{Kind: puntuale.Throttled, Reason: puntuale.Because(reasonSlowDown), Detail: detail, After: throttle, Err: err}
	case 403, 401:
		return final(reasonNotAllowed, detail)
	case 404:
		return final(reasonNoRecipient, detail)
	}
	return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonNotAccepted), Detail: detail, Err: err}
}

// unansweredMessage contains the messages that the network accepted but did not acknowledge, since its last
// acknowledgement.
type unansweredMessage map[puntuale.MessageID]bool

// After maxUnheard messages without an acknowledgement, the number stops for a while.
const maxUnheard = 3

// unanswered records a message without an acknowledgement. After maxUnheard of them in a row, the number stops for a
// while. If the number continued, each further message would become uncertain.
func (n *number) unanswered(m puntuale.MessageID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.state.link.State != puntuale.LinkOnline {
		return
	}
	if n.unheard == nil {
		n.unheard = unansweredMessage{}
	}
	n.unheard[m] = true
	if len(n.unheard) < maxUnheard {
		return
	}
	n.log.Error("WhatsApp takes a number's messages and does not acknowledge them; the number is quiet for a while", "messages", len(n.unheard))
	n.unheard = nil
	n.change(func(m *linkMachine) {
		m.unacknowledged(puntuale.Because(reasonUnacknowledged), n.c.cfg.Clock.Now())
	})
}
