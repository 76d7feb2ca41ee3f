package official

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

// The times between status checks of a number, and the limit for one check.
const (
	lookAgain   = time.Hour        // while the number can send
	lookSoon    = 10 * time.Second // while Meta or the database cannot be reached
	lookLater   = time.Minute      // while a person must act
	lookUnknown = 5 * time.Minute  // while Meta does not say whether it confirms a report
	lookWait    = 12 * time.Second // how long one status check may take
)

// Open opens a session. If the stored session was online, it is online again once its keys were read, even while Meta
// does not answer.
func (c *Connector) Open(s puntuale.Session) {
	a := c.newAccount(s)
	c.mu.Lock()
	old := c.open[s.ID]
	c.open[s.ID] = a
	c.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	go c.keep(a)
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
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	select {
	case <-a.ended:
	case <-ctx.Done():
	}
}

const faultSessionOfficialHasKeys puntuale.ReasonCode = "session.official_has_keys"

// Pair always returns an error, because an Official number is linked by its keys.
func (c *Connector) Pair(context.Context, puntuale.SessionID, puntuale.PairMethod, string) error {
	return puntuale.Conflict(faultSessionOfficialHasKeys)
}

// Unlink removes the session's keys.
func (c *Connector) Unlink(ctx context.Context, session puntuale.SessionID) error {
	if err := c.cfg.Store.ForgetKeys(ctx, session); err != nil {
		return fmt.Errorf("forget a session's keys: %w", err)
	}
	if a := c.account(session); a != nil {
		a.mu.Lock()
		a.keys, a.state = nil, puntuale.LinkUnlinked
		a.mu.Unlock()
	}
	return nil
}

// Test ends the pauses that release ends, and runs a status check immediately.
func (c *Connector) Test(ctx context.Context, session puntuale.SessionID) error {
	a := c.account(session)
	if a == nil {
		return fmt.Errorf("session %d is not open", session)
	}
	leave, err := a.enter(ctx) // so that a status check that is running does not begin a pause again which ends now
	if err != nil {
		return err
	}
	defer leave()
	o := a.origin()
	if err := c.cfg.Store.EndOfficialPauses(ctx, o.client, session, o.account, 0, ""); err != nil {
		return fmt.Errorf("end what Meta's refusals hold back: %w", err)
	}
	a.release()
	if _, err = c.checkStatusAlone(ctx, a); err != nil || !a.online(c.cfg.Clock.Now()) {
		ring(a.wake) // the next check may be due earlier
		return err
	}
	return c.keepSubscription(ctx, a, true)
}

// keepSubscription stores whether the business sends its reports to the app.
func (c *Connector) keepSubscription(ctx context.Context, a *account, subscribe bool) error {
	a.mu.Lock()
	keys := a.keys
	a.mu.Unlock()
	if keys == nil {
		return nil
	}
	r := c.subscription(ctx, a, *keys, subscribe)
	if r.Value == "" {
		return nil
	}
	o, now := a.origin(), c.cfg.Clock.Now()
	r.Client, r.Session, r.At = o.client, o.session, now
	if err := c.cfg.Store.KeepHealth(ctx, []puntuale.HealthReport{r}, now); err != nil {
		return fmt.Errorf("keep whether Meta sends reports: %w", err)
	}
	return nil
}

// keep runs a status check from time to time, and also when a pause begins or ends.
func (c *Connector) keep(a *account) {
	defer close(a.ended)
	for {
		ctx, cancel := context.WithTimeout(a.ctx, lookWait)
		wait := lookUnknown // after a panic
		err := puntuale.Recovered(func() (err error) {
			if wait, err = c.checkStatus(ctx, a); err == nil {
				wait, err = c.finishLater(a, wait)
			}
			return err
		})
		cancel()
		if err != nil && a.ctx.Err() == nil {
			a.log.Warn("looking at an Official number failed", "error", err)
		}
		c.warnOfVersion()
		fired, release := c.cfg.Clock.After(wait)
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

// finishLater finishes the open requests about templates, also while the number is paused. It returns how long to wait
// until the next round, at most the given time.
func (c *Connector) finishLater(a *account, wait time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(a.ctx, lookWait)
	defer cancel()
	open, err := c.finishTemplates(ctx, a)
	if open > 0 {
		wait = min(wait, open)
	}
	return wait, err
}

// checkStatus reads the keys, requests the number's data from Meta, and reports the result. While the number is paused,
// it requests nothing. It returns how long to wait until the next check. It returns an error only if the store fails or
// the keys cannot be read.
func (c *Connector) checkStatus(ctx context.Context, a *account) (time.Duration, error) {
	leave, err := a.enter(ctx)
	if err != nil {
		return lookSoon, err
	}
	defer leave()
	return c.checkStatusAlone(ctx, a)
}

// checkStatusAlone is checkStatus for a caller that entered the account.
func (c *Connector) checkStatusAlone(ctx context.Context, a *account) (time.Duration, error) {
	keys, err := c.readKeys(ctx, a)
	if err != nil {
		return lookSoon, err
	}
	if keys == nil {
		a.set(puntuale.LinkUnlinked, puntuale.Because(reasonNoKeys))
		return lookLater, nil
	}
	if err := c.cfg.Store.NoteOfficial(ctx, a.session, keys.PhoneNumberID, keys.BusinessAccountID); err != nil {
		return lookSoon, fmt.Errorf("note how a session is known: %w", err)
	}
	if err := c.loadReach(ctx, a); err != nil {
		return lookSoon, err
	}
	now := c.cfg.Clock.Now()
	asked, err := c.obey(ctx, a, *keys, now)
	if err != nil {
		return lookSoon, err
	}
	key := puntuale.PauseKey{Client: a.clientID(), Session: a.session, Account: keys.BusinessAccountID, Now: now}
	_, pauses, err := c.cfg.Store.OfficialPauses(ctx, key)
	if err != nil {
		return lookSoon, fmt.Errorf("read what Meta's refusals hold back: %w", err)
	}
	a.follow(pauses)
	if heldUntil := a.pauseEnd(now); !heldUntil.IsZero() {
		if asked == 0 {
			asked = heldUntil.Sub(now)
		}
		return min(heldUntil.Sub(now), asked), nil
	}
	found, err := c.ask(ctx, a.clientID(), *keys)
	if refusal, ok := errors.AsType[*graphError](err); ok && !passing(refusal) {
		a.set(puntuale.LinkUnlinked, withCode(explain(refusal), refusal.Code))
		return lookLater, nil
	}
	if err != nil {
		a.mu.Lock()
		before := a.state
		a.mu.Unlock()
		if before != puntuale.LinkOnline {
			a.set(puntuale.LinkLinked, puntuale.Because(reasonSilent))
		} else {
			a.set(before, puntuale.Because(reasonSilentAboutNumber))
		}
		a.log.Info("Meta does not answer about a number", "error", err)
		if refusal, ok := errors.AsType[*graphError](err); ok { // Meta works on it, or the calls of the hour are used up
			return max(lookLater, refusal.wait), nil
		}
		return lookSoon, nil
	}
	if limit, told := limitOf(found.Tier); told {
		a.persons().setLimit(limit)
	}
	a.mu.Lock()
	a.number = plainNumber(found.Number)
	a.mu.Unlock()
	a.set(puntuale.LinkOnline, puntuale.Reason{})
	if err := c.cfg.Store.KeepHealth(ctx, found.reports(a.origin(), now), now); err != nil {
		return lookSoon, fmt.Errorf("keep the health of a number: %w", err)
	}
	if err := c.syncTemplates(ctx, a, *keys, now); err != nil {
		return lookSoon, fmt.Errorf("keep what is known of templates: %w", err)
	}
	return cmp.Or(asked, lookAgain), nil
}

// readKeys returns the session's keys, or nil if it has none.
func (c *Connector) readKeys(ctx context.Context, a *account) (*puntuale.OfficialKeys, error) {
	client, sealed, err := c.cfg.Store.SealedKeys(ctx, a.session)
	if err != nil {
		return nil, fmt.Errorf("read a session's keys: %w", err)
	}
	var keys *puntuale.OfficialKeys
	if sealed != nil {
		if keys, err = c.unseal(a.session, sealed); err != nil {
			return nil, err
		}
	}
	shared := c.reachOf(client, keys)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client, a.keys = client, keys
	if shared != nil && a.reach != shared {
		a.reach, a.loaded = shared, false
	}
	return keys, nil
}

func (c *Connector) unseal(session puntuale.SessionID, sealed []byte) (*puntuale.OfficialKeys, error) {
	plain, err := c.cfg.Unseal(puntuale.SealedOfficial, session.SealPlace(), sealed)
	if err != nil {
		return nil, err
	}
	keys := &puntuale.OfficialKeys{}
	if err := json.Unmarshal(plain, keys); err != nil {
		return nil, errors.New("a session's keys cannot be read") // err is left out, because its text would contain a part of the keys
	}
	return keys, nil
}

// loadReach reads from the store, once, which persons the session addressed before.
func (c *Connector) loadReach(ctx context.Context, a *account) error {
	a.mu.Lock()
	loaded, client := a.loaded, a.client
	a.mu.Unlock()
	if loaded {
		return nil
	}
	all, err := c.cfg.Store.Addressed(ctx, client, a.session, c.cfg.Clock.Now().Add(-reachTime))
	if err != nil {
		return fmt.Errorf("read whom a session addressed: %w", err)
	}
	a.persons().load(all)
	a.mu.Lock()
	a.loaded = true
	before := a.state
	a.mu.Unlock()
	if before == puntuale.LinkOnline {
		a.set(before, puntuale.Reason{})
	}
	return nil
}

// readOthers adds the persons that other nodes addressed lately with the numbers of the same business.
func (c *Connector) readOthers(ctx context.Context, a *account, now time.Time) error {
	persons := a.persons()
	since, due := persons.readDue(now)
	if !due {
		return nil
	}
	all, err := c.cfg.Store.Addressed(ctx, a.clientID(), a.session, since)
	if err != nil {
		return fmt.Errorf("read whom a business addressed: %w", err)
	}
	persons.load(all)
	return nil
}

// missingObject is a subcode of error 100: the id does not exist, or the token may not see the object.
const missingObject = 33

// Reasons why a number cannot be used, or why its state is unknown.
const (
	reasonNoKeys            puntuale.ReasonCode = "official.no_keys"
	reasonSilent            puntuale.ReasonCode = "official.silent"
	reasonSilentAboutNumber puntuale.ReasonCode = "official.silent_about_number"
	reasonSilentTryAgain    puntuale.ReasonCode = "official.silent_try_again"
	reasonNoSuchNumber      puntuale.ReasonCode = "official.no_such_number"
	reasonAppSecret         puntuale.ReasonCode = "official.wrong_app_secret"
	reasonRenewToken        puntuale.ReasonCode = "official.renew_token"
	reasonRefuses           puntuale.ReasonCode = "official.refuses"   // {1}: Meta's text
	reasonWithCode          puntuale.ReasonCode = "official.with_code" // {1}: what is wrong, {2}: Meta's code
)

// explain returns why a number cannot be used.
func explain(e *graphError) puntuale.Reason {
	switch {
	case e.Code == 100 && e.Subcode == missingObject:
		return puntuale.Because(reasonNoSuchNumber)
	case e.Code == 100 && strings.Contains(strings.ToLower(e.Message), "appsecret_proof"):
		return puntuale.Because(reasonAppSecret)
	case e.Code == 190:
		return puntuale.Because(reasonRenewToken)
	}
	r, known := ruleOf(e.Code)
	switch {
	case !known, r.action == failMessage:
		return puntuale.Because(reasonRefuses, clip(storable(e.Message), 200))
	case passing(e):
		return puntuale.Because(reasonSilentTryAgain)
	}
	return puntuale.Because(r.reason)
}

// passing reports whether a refusal says nothing about the number, and ends by itself.
func passing(e *graphError) bool {
	r, _ := ruleOf(e.Code)
	return r.action == again || r.action == slower || r.reason == reasonQuota
}

// plainNumber turns a number such as "+39 333 123-4567" into "+393331234567".
func plainNumber(shown string) string {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, shown)
	if digits == "" {
		return ""
	}
	return "+" + digits
}
