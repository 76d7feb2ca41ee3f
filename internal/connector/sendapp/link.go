package sendapp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// How often a number is looked at. Gateways report no disconnection, so only a status check notices one.
const (
	lookAgain = time.Minute
	lookWait  = 75 * time.Second // how long one look may take: a gateway may take 60 s
)

// Why a session cannot send, or what is wrong although it can.
const (
	reasonNoKeys     puntuale.ReasonCode = "sendapp.no_keys"
	reasonNoNumber   puntuale.ReasonCode = "sendapp.no_number"
	reasonSilent     puntuale.ReasonCode = "sendapp.silent"
	reasonOffline    puntuale.ReasonCode = "sendapp.offline"
	reasonNoPublic   puntuale.ReasonCode = "sendapp.no_public_url"
	reasonNoHook     puntuale.ReasonCode = "sendapp.no_webhook"
	reasonRestricted puntuale.ReasonCode = "sendapp.restricted"
	reasonUnproven   puntuale.ReasonCode = "sendapp.unproven"
)

// formerRestricted is the Italian sentence that earlier versions stored in place of the code reasonRestricted.
const formerRestricted = "WhatsApp limita questo numero: gli invii riprendono tra un'ora"

// Open takes charge of a session. The session is online after its gateway said that the number is online.
func (c *Connector) Open(s puntuale.Session) {
	a := c.newAccount(s)
	c.mu.Lock()
	old := c.open[s.ID]
	c.open[s.ID] = a
	c.mu.Unlock()
	if old != nil {
		old.close()
	}
	a.work.Go(a.keep)
}

// Close lets a session go. Messages in flight end with their own context.
func (c *Connector) Close(ctx context.Context, session puntuale.SessionID) {
	c.mu.Lock()
	a := c.open[session]
	delete(c.open, session)
	c.mu.Unlock()
	if a == nil {
		return
	}
	a.close()
	ended := make(chan struct{})
	go func() {
		a.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Unlink ends a pairing, tells the gateway to forget the number, and removes the instance's id from the keys. Address
// and token stay, so that the session can be linked again.
func (c *Connector) Unlink(ctx context.Context, session puntuale.SessionID) error {
	a := c.account(session)
	if a == nil {
		return fmt.Errorf("session %d is not open", session)
	}
	a.endPairing()
	a.asking.Lock()
	defer a.asking.Unlock()
	keys, err := c.readKeys(ctx, a)
	if err != nil || keys == nil {
		return err
	}
	if keys.InstanceID != "" {
		if _, err := c.call(ctx, *keys, "reset_instance", inQuery, nil); err != nil { // the session is unlinked here even if this call fails
			a.log.Warn("the gateway could not be told to unlink a number", "error", err)
		}
	}
	keys.InstanceID = ""
	if err := c.keepInstance(ctx, a, *keys); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state, a.number, a.held, a.hooked = puntuale.LinkUnlinked, "", time.Time{}, hook{}
	return nil
}

// Test ends the hold of a session, and looks at it at once.
func (c *Connector) Test(ctx context.Context, session puntuale.SessionID) error {
	a := c.account(session)
	if a == nil {
		return fmt.Errorf("session %d is not open", session)
	}
	a.mu.Lock()
	a.held = time.Time{}
	a.mu.Unlock()
	return c.checkStatus(ctx, a)
}

// keep looks at a session from time to time, and when it is asked to.
func (a *account) keep() {
	for {
		ctx, cancel := context.WithTimeout(a.ctx, lookWait)
		if err := a.c.checkStatus(ctx, a); err != nil && a.ctx.Err() == nil {
			a.log.Warn("looking at a gateway's number failed", "error", err)
		}
		cancel()
		fired, release := a.c.cfg.Clock.After(lookAgain)
		select {
		case <-fired:
		case <-a.wake:
		case <-a.ctx.Done():
			release()
			return
		}
		release()
	}
}

// checkStatus reads the keys anew, asks the gateway about the number and reports the result. An error means that checkStatus found
// out nothing and reported nothing.
func (c *Connector) checkStatus(ctx context.Context, a *account) error {
	a.asking.Lock()
	defer a.asking.Unlock()
	if a.pairing() {
		return nil // the pairing reports the state
	}
	keys, err := c.readKeys(ctx, a)
	if err != nil {
		return err
	}
	switch {
	case keys == nil:
		a.set(puntuale.LinkUnlinked, reasonNoKeys)
		return nil
	case keys.InstanceID == "":
		a.set(puntuale.LinkUnlinked, reasonNoNumber)
		return nil
	}
	found, err := c.ask(ctx, *keys)
	if ctx.Err() != nil && a.ctx.Err() != nil {
		return nil // the session was let go
	}
	if err != nil {
		a.log.Info("a gateway does not answer about its number", "error", err)
		if a.linked() {
			a.set(puntuale.LinkLinked, reasonSilent)
		} else {
			a.set(puntuale.LinkUnlinked, reasonSilent)
		}
		return nil
	}
	return c.found(ctx, a, *keys, found)
}

// gatewayStatus is what a gateway says about its number.
type gatewayStatus struct {
	state  puntuale.LinkState
	number string // "+…", once it is known
	reason puntuale.ReasonCode
	action action // what the gateway's words ask the connector to do
}

// ask asks the gateway about the number. Only the call reconnect answers this question.
func (c *Connector) ask(ctx context.Context, k puntuale.GatewayKeys) (gatewayStatus, error) {
	a, err := c.call(ctx, k, "reconnect", inQuery, nil)
	if err != nil {
		return gatewayStatus{}, err
	}
	if a.Status == success {
		u := a.user()
		s := gatewayStatus{state: puntuale.LinkOnline, number: numberOf(u.ID)}
		if s.number == "" || u.Connected != nil && !*u.Connected {
			s.state, s.reason = puntuale.LinkLinked, reasonOffline
		}
		return s, nil
	}
	does, reason := meaning(a.text())
	if a.Relogin {
		does, reason = relink, reasonRelink
	}
	if does == unknown {
		return gatewayStatus{}, errors.New("the gateway answers with an error: " + storable(a.text(), 200))
	}
	return gatewayStatus{state: puntuale.LinkUnlinked, reason: reason, action: does}, nil
}

// numberOf makes a gateway's user id, "39333…:7@s.whatsapp.net", a phone number. It returns "" for any other text.
func numberOf(id string) string {
	user, server, ok := strings.Cut(id, "@")
	digits, _, _ := strings.Cut(user, ":")
	if !ok || server != "s.whatsapp.net" && server != "c.us" || len(digits) < 5 || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return "+" + digits
}

// found reports what the gateway said about the number, and sets the gateway's webhook.
func (c *Connector) found(ctx context.Context, a *account, k puntuale.GatewayKeys, s gatewayStatus) error {
	a.mu.Lock()
	if s.number != "" {
		a.number = s.number
	}
	a.mu.Unlock()
	if s.state != puntuale.LinkOnline {
		a.set(s.state, s.reason)
		return nil
	}
	reason := c.setWebhook(ctx, a, k)
	health, err := c.health(ctx, a)
	if err != nil {
		return err
	}
	a.set(puntuale.LinkOnline, cmp.Or(health, reason))
	return nil
}

// setWebhook tells the gateway where to report. It does this once for each instance after the session is opened,
// because another program may have changed the address before. It returns a reason for people to read, or "" if all is
// well.
func (c *Connector) setWebhook(ctx context.Context, a *account, k puntuale.GatewayKeys) puntuale.ReasonCode {
	if c.cfg.Public == "" {
		return reasonNoPublic
	}
	address := strings.TrimSuffix(c.cfg.Public, "/") + a.session.GatewayWebhookPath(c.cfg.Mark)
	wanted := hook{k.BaseURL, k.InstanceID, address}
	a.mu.Lock()
	known := a.hooked == wanted
	a.mu.Unlock()
	if known {
		return ""
	}
	answered, err := c.call(ctx, k, "set_webhook", inQuery, map[string]string{"webhook_url": address, "enable": "true"})
	if err != nil || answered.Status != success {
		a.log.Warn("a gateway refuses its webhook", "error", err, "answer", storable(answered.text(), 200))
		return reasonNoHook
	}
	a.mu.Lock()
	a.hooked = wanted
	a.mu.Unlock()
	return ""
}

// A gateway may say that it is connected and deliver nothing. A warning appears after unprovenMost messages without any
// confirmation.
const (
	unprovenMost = 20
	healthFrom   = 24 * time.Hour
	healthTo     = 10 * time.Minute // messages sent later may still be confirmed
)

// restricted is how long nothing leaves after WhatsApp refused a message because it restricts the number. Each further
// try would make the restriction worse.
const restricted = time.Hour

// health looks at the receipts of the session's messages, no matter which node received them. It returns a reason for
// people to read, or "" if all is well.
func (c *Connector) health(ctx context.Context, a *account) (puntuale.ReasonCode, error) {
	a.mu.Lock()
	client := a.client
	a.mu.Unlock()
	now := c.cfg.Clock.Now()
	h, err := c.cfg.Store.GatewayHealth(ctx, client, a.session, now.Add(-healthFrom), now.Add(-healthTo), unprovenMost, puntuale.Because(reasonRestricted), formerRestricted)
	if err != nil {
		return "", fmt.Errorf("read what became of a gateway's messages: %w", err)
	}
	if restrictedUntil := h.Failed.Add(restricted); now.Before(restrictedUntil) {
		a.wait(restrictedUntil.Sub(now))
		return reasonRestricted, nil
	}
	if h.Unconfirmed >= unprovenMost {
		return reasonUnproven, nil
	}
	return "", nil
}

// readKeys returns the session's keys, or nil if it has none.
func (c *Connector) readKeys(ctx context.Context, a *account) (*puntuale.GatewayKeys, error) {
	client, keys, err := c.keysOf(ctx, a.session)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client, a.keys = client, keys
	if keys == nil {
		return nil, nil
	}
	own := *keys
	return &own, nil
}

// keysOf reads and opens a session's keys. It returns nil if the session has none.
func (c *Connector) keysOf(ctx context.Context, session puntuale.SessionID) (puntuale.ClientID, *puntuale.GatewayKeys, error) {
	client, sealed, err := c.cfg.Store.SealedGateway(ctx, session)
	if err != nil {
		return 0, nil, fmt.Errorf("read a session's keys: %w", err)
	}
	keys, err := c.unseal(session, sealed)
	return client, keys, err
}

// unseal opens sealed keys. It returns nil if sealed is nil.
func (c *Connector) unseal(session puntuale.SessionID, sealed []byte) (*puntuale.GatewayKeys, error) {
	if sealed == nil {
		return nil, nil
	}
	plain, err := c.cfg.Unseal(puntuale.SealedGateway, session.SealPlace(), sealed)
	if err != nil {
		return nil, err
	}
	keys := &puntuale.GatewayKeys{}
	if err := json.Unmarshal(plain, keys); err != nil {
		return nil, errors.New("a session's keys cannot be read") // the error's text would contain a part of the keys
	}
	return keys, nil
}

const faultGatewayKeysReplaced puntuale.ReasonCode = "gateway.keys_replaced"

// keepInstance stores the instance of k. Codes: conflict (another session has the instance), busy (somebody replaced
// the keys after k was read).
func (c *Connector) keepInstance(ctx context.Context, a *account, k puntuale.GatewayKeys) error {
	err := c.cfg.Store.ChangeGateway(ctx, a.session, func(old []byte) ([]byte, string, error) {
		now, err := c.unseal(a.session, old)
		switch {
		case err != nil:
			return nil, "", err
		case now == nil || now.BaseURL != k.BaseURL || now.AccessToken != k.AccessToken:
			return nil, "", &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultGatewayKeysReplaced)}
		}
		return c.cfg.Seal(puntuale.SealedGateway, a.session.SealPlace(), k.JSON()), k.Mark(c.cfg.Mark), nil
	})
	if err != nil {
		return fmt.Errorf("store a session's keys: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = &k
	return nil
}
