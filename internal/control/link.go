package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Pairing is a request to link a session.
type Pairing struct {
	Method string           // qr or code
	Phone  string           // only with method code: the phone's number
	Faults []puntuale.Fault // the faults that the calling package already found in the request
}

// Codes of the faults that this file reports.
const (
	faultNotPhone            puntuale.ReasonCode = "fault.not_phone"
	faultSessionGoesWithCode puntuale.ReasonCode = "session.goes_with_code"
)

// Pair begins to link a session. If a pairing is under way, Pair ends it and begins a new one. It returns the session
// with the first pairing code. [Client.Session] returns later pairing codes. Error codes: forbidden, not_found,
// invalid. conflict: the session is linked, this build cannot link its type, or the pairing failed. busy: the network,
// or the session's node, did not answer in time.
func (c *Client) Pair(ctx context.Context, id string, r Pairing) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	f := request.Faults(r.Faults)
	if found.ByDevice() {
		if err := f.Err(); err != nil {
			return Session{}, err
		}
		return c.offer(ctx, found)
	}
	order := puntuale.PairOrder{Method: puntuale.PairMethod(r.Method)}
	switch order.Method {
	case puntuale.PairCode:
		order.Phone = c.pairPhone(&f, r.Phone)
	case puntuale.PairQR:
		if r.Phone != "" {
			f.Add("body.phone", faultSessionGoesWithCode, nil)
		}
	case "":
		f.Add("body.method", puntuale.FaultRequired, nil)
	default:
		f.Word("body.method", r.Method, string(puntuale.PairQR), string(puntuale.PairCode))
	}
	if err := f.Err(); err != nil {
		return Session{}, err
	}
	switch {
	case c.control.vault == nil || !c.control.sessions.links(found.Session):
		return Session{}, puntuale.NoLinker()
	case found.State == puntuale.LinkOnline || found.State == puntuale.LinkLinked:
		return Session{}, puntuale.AlreadyLinked()
	}
	if err := c.command(ctx, found.ID, puntuale.CommandPair, order.JSON()); err != nil {
		return Session{}, fmt.Errorf("link session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}

// pairPhone reads the number of the phone that is to be linked. It must not be a group.
func (c *Client) pairPhone(f *request.Faults, text string) string {
	phone, err := request.ParseRecipient(text, c.account.Region)
	refused, _ := errors.AsType[*request.RecipientError](err)
	switch {
	case f.At("body.phone"): // a fault is already noted at this location
	case text == "":
		f.Add("body.phone", puntuale.FaultRequired, nil)
	case refused == nil && phone[0] != '+', refused != nil && refused.IsNoRecipient():
		f.Add("body.phone", faultNotPhone, text)
	case refused != nil:
		f.Add("body.phone", refused.Code, text)
	}
	return phone
}

// Unlink ends a session's link, or the pairing under way, and returns the session. Pending messages wait. If the
// session is not linked, nothing changes. Codes: not_found, busy (messages are being sent; the session's node did not
// answer in time).
func (c *Client) Unlink(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	if err == nil && found.ByDevice() {
		if err := c.tenant.UnlinkDevices(ctx, found.ID, 0, c.control.clock.Now()); err != nil {
			return Session{}, fmt.Errorf("unlink the devices of session %d: %w", found.ID, err)
		}
		c.control.wakeup(found.ID, c.control.clock.Now())
		return c.Session(ctx, id)
	}
	keyed := found.Type == puntuale.Official && !found.Sandbox // the session has keys to forget, valid or not
	if err != nil || found.Link.State == puntuale.LinkUnlinked && !keyed || c.control.vault == nil || !c.control.sessions.links(found.Session) {
		return found, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandUnlink, nil); err != nil {
		return Session{}, fmt.Errorf("unlink session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}

// drained runs a function while no message of the session is in flight. It stops the session's sends only for a bounded
// time, because this process may die before it lets the session go on.
func (c *Client) drained(ctx context.Context, id puntuale.SessionID, do func() error) error {
	order := puntuale.DrainOrder{Until: c.control.clock.Now().Add(drainMost)}
	err := c.command(ctx, id, puntuale.CommandDrain, order.JSON())
	if err == nil {
		err = do()
	}
	if err != nil {
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeWait)
		defer cancel()
		_, _ = c.give(timeout, id, puntuale.CommandResume, nil) // if this fails, the session goes on by itself when the time is over
	}
	return err
}

// stateOf returns the session's link state, as its last owner wrote it. If the session has no owner now, stateOf leaves
// out states that only an owner can keep up to date.
func (c *Client) stateOf(s puntuale.Session) Session {
	shown := Session{Session: s, State: s.LinkOf(), Number: s.Link.Number, Detail: s.Link.Detail, Condition: s.Link.Condition}
	now, owned := c.control.clock.Now(), s.Owner != 0
	numbered := s.Type == puntuale.Socket && !s.Sandbox
	switch {
	case s.ByDevice(): // the whole state of the session is in its row
		if s.Link.Code != "" && now.Before(s.Link.Until) {
			shown.Code, shown.Until = c.openCode(s), s.Link.Until
		}
	case shown.State == puntuale.LinkOnline && !owned && !s.Sandbox:
		shown.State = puntuale.LinkLinked
	case shown.State == puntuale.LinkPairing && (!owned || !now.Before(s.Link.Since.Add(puntuale.UnfinishedPairing.Lasts()))):
		shown.State, shown.Condition = puntuale.LinkUnlinked, puntuale.ConditionNone
	case shown.State == puntuale.LinkPairing && s.Link.Code != "" && now.Before(s.Link.Until.Add(codeGrace)):
		shown.Code, shown.Until = c.openCode(s), s.Link.Until
	}
	if numbered && shown.State == puntuale.LinkLinked && shown.Condition == puntuale.ConditionNone {
		shown.Condition = puntuale.Connecting
	}
	if shown.Condition == puntuale.Waiting || shown.Condition == puntuale.Banned {
		shown.Until = s.Link.Until
	}
	if shown.State == puntuale.LinkOnline && now.Before(s.Link.Limited) {
		shown.Limited = s.Link.Limited
	}
	shown.WebhookPath = c.webhookPath(s)
	if c.control.sessions.public != "" && shown.WebhookPath != "" {
		shown.Webhook = c.control.sessions.public + shown.WebhookPath
	}
	shown.Hint = puntuale.Because(shown.advice())
	return shown
}

// webhookPath returns the path to which a session's network reports, or "" if the session has no webhook.
func (c *Client) webhookPath(s puntuale.Session) string {
	switch {
	case s.Sandbox:
	case s.Type == puntuale.Official:
		return s.ID.WebhookPath()
	case s.Type == puntuale.SendApp && !s.ByDevice() && c.control.vault != nil: // the path has a secret, which is derived from the vault's key
		return s.ID.GatewayWebhookPath(c.control.vault.Mark)
	}
	return ""
}

// openCode opens a pairing code. It returns nil if the code cannot be opened, as after the installation's key was
// changed.
func (c *Client) openCode(s puntuale.Session) *puntuale.PairingCode {
	if c.control.vault == nil {
		return nil
	}
	plain, err := c.control.vault.Open(puntuale.SealedCode, s.ID.SealPlace(), []byte(s.Link.Code))
	if err != nil {
		return nil
	}
	code := &puntuale.PairingCode{}
	if json.Unmarshal(plain, code) != nil {
		return nil
	}
	return code
}

const (
	// codeGrace is how long a code is still shown after its end, because the next code may not be stored yet. So a
	// caller always gets a code, and asks again soon.
	codeGrace  = 2 * time.Second
	drainMost  = 40 * time.Second
	resumeWait = 5 * time.Second
)
