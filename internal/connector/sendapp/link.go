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

// The time between status checks of a number. Gateways report no disconnection, so only a status check notices it.
const (
	lookAgain = time.Minute
	lookWait  = 75 * time.Second // how long one status check may take; a gateway may need 60 s
)

// Reasons why a session cannot send, or what is wrong although it can send.
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

// formerRestricted is the Italian sentence that earlier versions stored instead of the code reasonRestricted.
const formerRestricted = "WhatsApp limita questo numero: gli invii riprendono tra un'ora"

// Open opens a session. The session is online once its gateway reports that the number is online.
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

// Close removes a session from memory. It does not stop messages in flight; they end with their own contexts.
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

// Unlink ends a pairing, makes the gateway remove the number, and removes the instance's id from the keys. The keys'
// address and token stay, so that the session can be linked again.
func (c *Connector) Unlink(ctx context.Context, session puntuale.SessionID) error {
	a := c.account(session)
	if a == nil {
		return fmt.Errorf("session %d is not open", session)
	}
	a.endPairing()
	a.asking <- struct{}{}
	defer func() { <-a.asking }()
	keys, err := c.readKeys(ctx, a)
	if err != nil || keys == nil {
		return err
	}
	if keys.InstanceID != "" {
		if _, err := c.call(ctx, a, *keys, "reset_instance", inQuery, nil); err != nil { // the session is unlinked here even if this request fails
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

// Test ends the session's pause, and runs a status check immediately.
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

// keep runs a status check from time to time, and when lookNow requests one.
func (a *account) keep() {
	for {
		ctx, cancel := context.WithTimeout(a.ctx, lookWait)
		if err := puntuale.Recovered(func() error { return a.c.checkStatus(ctx, a) }); err != nil && a.ctx.Err() == nil {
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

// checkStatus reads the keys, requests the number's state from the gateway, and reports the result. If checkStatus
// returns an error, it reported nothing.
func (c *Connector) checkStatus(ctx context.Context, a *account) error {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.pairing() {
		return nil // the pairing under way reports the state itself
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
	found, err := c.ask(ctx, a, *keys)
	if ctx.Err() != nil && a.ctx.Err() != nil {
		return nil // the session was closed
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

// gatewayStatus is a gateway's answer about its number.
type gatewayStatus struct {
	state  puntuale.LinkState
	number string // in the form "+…"; "": the number is not known yet
	reason puntuale.ReasonCode
	action action // what the connector must do after the gateway's text
}

// ask requests the number's state from the gateway. Only the answer to the request "reconnect" contains this state.
func (c *Connector) ask(ctx context.Context, of *account, k puntuale.GatewayKeys) (gatewayStatus, error) {
	a, err := c.call(ctx, of, k, "reconnect", inQuery, nil)
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

// numberOf turns a gateway's user id, such as "39333…:7@s.whatsapp.net", into a phone number. It returns "" for other
// texts.
func numberOf(id string) string {
	user, server, ok := strings.Cut(id, "@")
	digits, _, _ := strings.Cut(user, ":")
	if !ok || server != "s.whatsapp.net" && server != "c.us" || len(digits) < 5 || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return "+" + digits
}

// found reports the number's state, and sets the gateway's webhook.
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

// setWebhook sets the address to which the gateway reports. After each Open, setWebhook tries this until it succeeded
// once for each instance, because another program may have changed the address. It returns a reason to report, or "" if
// all is well.
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
	answered, err := c.call(ctx, a, k, "set_webhook", inQuery, map[string]string{"webhook_url": address, "enable": "true"})
	if err != nil || answered.Status != success {
		a.log.Warn("a gateway refuses its webhook", "error", err, "answer", storable(answered.text(), 200))
		return reasonNoHook
	}
	a.mu.Lock()
	a.hooked = wanted
	a.mu.Unlock()
	return ""
}

// A gateway may report that it is connected although it delivers nothing. A warning appears if maxUnproven messages
// left and none of them was confirmed.
const (
	maxUnproven = 20
	healthFrom  = 24 * time.Hour
	healthTo    = 10 * time.Minute // newer messages do not count, because they may still be confirmed
)

// restricted is how long no message leaves after WhatsApp refused a message because the number is restricted. Each
// further attempt would make the restriction worse.
const restricted = time.Hour

// health checks the receipts of the session's messages, from all nodes. It returns a reason to report, or "" if all is
// well.
func (c *Connector) health(ctx context.Context, a *account) (puntuale.ReasonCode, error) {
	a.mu.Lock()
	client := a.client
	a.mu.Unlock()
	now := c.cfg.Clock.Now()
	h, err := c.cfg.Store.GatewayHealth(ctx, client, a.session, now.Add(-healthFrom), now.Add(-healthTo), maxUnproven, puntuale.Because(reasonRestricted), formerRestricted)
	if err != nil {
		return "", fmt.Errorf("read what became of a gateway's messages: %w", err)
	}
	if restrictedUntil := h.Failed.Add(restricted); now.Before(restrictedUntil) {
		a.wait(restrictedUntil.Sub(now))
		return reasonRestricted, nil
	}
	if h.Unconfirmed >= maxUnproven {
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

// keysOf reads and decrypts a session's keys. It returns nil if the session has none.
func (c *Connector) keysOf(ctx context.Context, session puntuale.SessionID) (puntuale.ClientID, *puntuale.GatewayKeys, error) {
	client, sealed, err := c.cfg.Store.SealedGateway(ctx, session)
	if err != nil {
		return 0, nil, fmt.Errorf("read a session's keys: %w", err)
	}
	keys, err := c.unseal(session, sealed)
	return client, keys, err
}

// unseal decrypts sealed keys. It returns nil if sealed is nil.
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
		return nil, errors.New("a session's keys cannot be read") // err is left out, because its text would contain a part of the keys
	}
	return keys, nil
}

const faultGatewayKeysReplaced puntuale.ReasonCode = "gateway.keys_replaced"

// keepInstance stores the instance of k. Codes: conflict if another session has the instance; busy if somebody replaced
// the keys after k was read.
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
