package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Pairing is a request to link a session.
type Pairing struct {
	Method string           // qr or code
	Phone  string           // the phone's number; only with method code
	Faults []puntuale.Fault // the faults that the calling package already found in the request
}

// Codes of the faults that this file reports.
const (
	faultNotPhone            puntuale.ReasonCode = "fault.not_phone"
	faultSessionGoesWithCode puntuale.ReasonCode = "session.goes_with_code"
	faultSessionNoAddress    puntuale.ReasonCode = "session.no_address"
	faultSessionNoPage       puntuale.ReasonCode = "session.no_page"
)

// Pair begins to link a session. If a pairing is already in progress, Pair ends it and begins a new one. It returns the
// session with the first pairing code. [Client.Session] returns later pairing codes. Error codes: forbidden, not_found,
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
	order := c.pairOrder(&f, r)
	if err := f.Err(); err != nil {
		return Session{}, err
	}
	if err := c.canLink(found); err != nil {
		return Session{}, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandPair, order.JSON()); err != nil {
		return Session{}, fmt.Errorf("link session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}

// canLink returns an error if no number can be linked to the session now. Codes: conflict.
func (c *Client) canLink(s Session) error {
	switch {
	case c.control.vault == nil || s.ByDevice() || !c.control.sessions.links(s.Session):
		return puntuale.NoLinker()
	case s.State == puntuale.LinkOnline || s.State == puntuale.LinkLinked:
		return puntuale.AlreadyLinked()
	}
	return nil
}

// pairOrder parses how a number is to be linked.
func (c *Client) pairOrder(f *request.Faults, r Pairing) puntuale.PairOrder {
	order := puntuale.PairOrder{Method: puntuale.PairMethod(r.Method)}
	switch order.Method {
	case puntuale.PairCode:
		order.Phone = c.pairPhone(f, r.Phone)
	case puntuale.PairQR:
		if r.Phone != "" {
			f.Add("body.phone", faultSessionGoesWithCode, nil)
		}
	case "":
		f.Add("body.method", puntuale.FaultRequired, nil)
	default:
		f.Word("body.method", r.Method, string(puntuale.PairQR), string(puntuale.PairCode))
	}
	return order
}

// pairPhone parses the number of the phone that is to be linked. A group is a fault.
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

// Unlink ends a session's link, or the pairing in progress, and returns the session. Pending messages wait. If the
// session is not linked and has no keys, nothing changes. Codes: not_found, busy (messages are in flight, or the
// session's node did not answer in time).
func (c *Client) Unlink(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	if err == nil && found.ByDevice() {
		if err := c.tenant.UnlinkDevices(ctx, found.ID, 0, c.control.clock.Now()); err != nil {
			return Session{}, fmt.Errorf("unlink the devices of session %d: %w", found.ID, err)
		}
		c.control.wakeup(found.ID, c.control.clock.Now())
		return c.Session(ctx, id)
	}
	keyed := found.Type == puntuale.Official && !found.Sandbox // the session may have stored keys, which the node must delete even if they are invalid
	if err != nil || found.Link.State == puntuale.LinkUnlinked && !keyed || c.control.vault == nil || !c.control.sessions.links(found.Session) {
		return found, err
	}
	if err := c.command(ctx, found.ID, puntuale.CommandUnlink, nil); err != nil {
		return Session{}, fmt.Errorf("unlink session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}

// LinkingPath is the path of the pages with which people link numbers without signing in. The page's code follows.
const LinkingPath = "/link/"

// NewLinkingPage is a linking page that was made now. Only its maker gets the address, because the store has only a keyed
// hash of the code in it.
type NewLinkingPage struct {
	Session Session
	Address string
	Until   time.Time
}

// OfferLinkingPage makes a page with which somebody links the session's number without signing in. An earlier page of the
// session ends, and with it the pairing that somebody began with it. here is the service's address as the caller reads it, for a
// service that knows no address of its own; "": unknown. Codes: forbidden, not_found, conflict (the session is linked, nobody
// links it by a code, or the service has no address), busy (the earlier page ended, but its pairing may still run, and no page
// was made).
func (c *Client) OfferLinkingPage(ctx context.Context, id, here string) (NewLinkingPage, error) {
	if err := c.MayCreate(); err != nil {
		return NewLinkingPage{}, err
	}
	found, err := c.Session(ctx, id)
	if err != nil {
		return NewLinkingPage{}, err
	}
	if found.Type == puntuale.Official && !found.Sandbox {
		return NewLinkingPage{}, puntuale.Conflict(faultSessionNoPage)
	}
	if err := c.canLink(found); err != nil {
		return NewLinkingPage{}, err
	}
	site, err := c.site(ctx)
	if err != nil {
		return NewLinkingPage{}, err
	}
	if site = cmp.Or(site, here); site == "" {
		return NewLinkingPage{}, puntuale.Conflict(faultSessionNoAddress)
	}
	code := rand.Text()
	until := c.control.clock.Now().Add(puntuale.UnfinishedPage.Lifetime()).Truncate(time.Microsecond)
	if _, err := c.endPage(ctx, found.ID); err != nil {
		return NewLinkingPage{}, err
	}
	if _, err := c.tenant.OfferLinkingPage(ctx, found.ID, c.control.pageMark(code), until); err != nil {
		return NewLinkingPage{}, fmt.Errorf("store a linking page of session %d: %w", found.ID, err)
	}
	if err := c.noteKey(ctx, "session.page", found.ID); err != nil {
		return NewLinkingPage{}, err
	}
	if found, err = c.Session(ctx, id); err != nil {
		return NewLinkingPage{}, err
	}
	return NewLinkingPage{found, site + LinkingPath + code, until}, nil
}

// EndLinkingPage ends the session's linking page, and the pairing that somebody began with it. If the session has no page,
// nothing changes. Codes: not_found, conflict (the session has devices), busy (the page ended, but its pairing may still
// run; see [Client.Unlink]).
func (c *Client) EndLinkingPage(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	ended, err := c.endPage(ctx, found.ID)
	if noted := c.noteKey(ctx, "session.page_end", found.ID); noted != nil {
		return Session{}, errors.Join(err, noted)
	}
	return ended, err
}

// endPage ends the session's linking page. If somebody began to link with it, endPage then ends the pairing that is in
// progress, because the code on that person's screen would still link a number. If it cannot, its next call does.
func (c *Client) endPage(ctx context.Context, id puntuale.SessionID) (Session, error) {
	begun, err := c.tenant.OfferLinkingPage(ctx, id, "", time.Time{})
	if err != nil {
		return Session{}, fmt.Errorf("end the linking page of session %d: %w", id, err)
	}
	if !begun {
		return c.Session(ctx, id.String())
	}
	found, err := c.stopPairing(ctx, id.String())
	if err != nil {
		return found, err
	}
	if _, err := c.tenant.OfferLinkingPage(ctx, id, "", time.Time{}); err != nil { // it forgets who began
		return found, fmt.Errorf("end the linking page of session %d: %w", id, err)
	}
	return found, nil
}

// stopPairing ends the pairing of a session that is in progress, and returns the session.
func (c *Client) stopPairing(ctx context.Context, id string) (Session, error) {
	found, err := c.Session(ctx, id)
	if err != nil || found.State != puntuale.LinkPairing {
		return found, err
	}
	return c.Unlink(ctx, id)
}

// noteKey writes an audit entry if a program acts with a key. The pages write the entries of people themselves.
func (c *Client) noteKey(ctx context.Context, action string, id puntuale.SessionID) error {
	if c.actor.Who != puntuale.ActorKey {
		return nil
	}
	return c.note(ctx, puntuale.AuditEntry{Who: puntuale.ActorKey, Action: action, Target: id.String()})
}

// note writes an audit entry of the client now.
func (c *Client) note(ctx context.Context, e puntuale.AuditEntry) error {
	e.Client, e.At = c.account.ID, c.control.clock.Now()
	if err := c.control.tenants.Partner(c.account.Partner).AddAudit(context.WithoutCancel(ctx), e); err != nil {
		return fmt.Errorf("note what was done: %w", err)
	}
	return nil
}

// pageMark returns the keyed hash under which a store finds a linking page.
func (c *Control) pageMark(code string) string { return c.vault.Mark("code of a linking page", code) }

// LinkingPage is what somebody without an account may see of one session, and do.
type LinkingPage struct {
	Host puntuale.Host // the partner, whose brand the page has
	Open bool          // the page works; otherwise Code is nil and Start refuses
	Used bool          // the number was linked, so the page never works again
	By   puntuale.ConnectionType
	Code *puntuale.PairingCode // not nil while there is a code to show
	// Pairing: a pairing runs. Failure: why the latest one failed; often the zero reason. Hint: what to do now, if the phone
	// asks for something.
	Pairing       bool
	Failure, Hint puntuale.Reason
	Number        string // the number that is linked, "+…"; "": none, or unknown
	State         puntuale.LinkState
	stored        puntuale.LinkingPage
	client        *Client
}

// LinkingPage finds the page whose address contains the code. Codes: not_found (nobody made it, or another page or nothing
// took its place).
func (c *Control) LinkingPage(ctx context.Context, code string) (*LinkingPage, error) {
	if len(code) != len(rand.Text()) || c.vault == nil {
		return nil, puntuale.NotFound(puntuale.NoPage)
	}
	stored, err := c.devices.store.LinkingPage(ctx, c.pageMark(code))
	if err != nil {
		return nil, fmt.Errorf("look for a linking page: %w", err)
	}
	client, err := c.OfNetwork(ctx, stored.Client)
	if err != nil {
		return nil, err
	}
	client.page = stored.Session
	p := &LinkingPage{stored: stored, client: client}
	if p.Host, err = c.tenants.Partner(client.account.Partner).Host(ctx); err != nil {
		return nil, fmt.Errorf("read the partner's look: %w", err)
	}
	s, err := client.Session(ctx, stored.Session.String())
	if err != nil {
		return nil, err
	}
	p.show(s)
	return p, nil
}

// show takes over what the page may show of the session.
func (p *LinkingPage) show(s Session) {
	linked := s.State == puntuale.LinkLinked || s.State == puntuale.LinkOnline
	p.Used = p.stored.Until.IsZero() || linked
	p.Open = !p.Used && p.client.control.clock.Now().Before(p.stored.Until) && p.client.MayCreate() == nil
	p.By, p.State, p.Number, p.Code, p.Pairing = s.Type, s.State, "", nil, false
	p.Failure, p.Hint = puntuale.Reason{}, puntuale.Reason{}
	if linked {
		p.Number = s.Number
	}
	if !p.Open {
		return
	}
	p.Code, p.Pairing = s.Code, s.State == puntuale.LinkPairing
	if s.Condition == puntuale.NeedsPasskey {
		p.Hint = s.Hint
	}
	if s.State == puntuale.LinkUnlinked && p.stored.Starts > 0 {
		p.Failure = s.Detail
	}
}

// ByCode reports whether a person may type a code into the phone, instead of scanning one.
func (p *LinkingPage) ByCode() bool { return p.By != puntuale.SendApp }

// Version returns a text that changes when the page shows something else. It does not contain the code. It ends with a
// keyed hash, so that nobody but this service can make it; see Shown.
func (p *LinkingPage) Version() string {
	version := fmt.Sprintf("%t-%t-%d-%t-%s", p.Open, p.Used, p.State, p.Pairing, p.Hint.Code)
	if p.Code != nil {
		version += "-" + p.client.control.pageMark(p.Code.Text)[:12]
	}
	return version + "." + p.proof(version)
}

// Shown reports whether this service showed a version of this very page, so that the caller saw it before.
func (p *LinkingPage) Shown(version string) bool {
	i := strings.LastIndexByte(version, '.')
	return i >= 0 && subtle.ConstantTimeCompare([]byte(version[i+1:]), []byte(p.proof(version[:i]))) == 1
}

func (p *LinkingPage) proof(version string) string {
	return p.client.control.vault.Mark("version of a linking page", p.stored.Mark, version)[:24]
}

// Start begins to link, as [Client.Pair] does. While a QR code is shown, another request for one changes nothing, so that
// nobody who opens the page twice takes the code from the first reader. address is the IP address of the browser. Codes:
// invalid, conflict, busy; not_found if the page does not work any more; rate_limited.
func (p *LinkingPage) Start(ctx context.Context, method, phone, address string) error {
	if !p.Open {
		return puntuale.NotFound(puntuale.NoPage)
	}
	if p.Code != nil && p.Code.Method == puntuale.PairQR && method == string(puntuale.PairQR) {
		return nil
	}
	c, id := p.client, p.stored.Session.String()
	var f request.Faults
	if order := c.pairOrder(&f, Pairing{Method: method, Phone: phone}); order.Method == puntuale.PairCode && !p.ByCode() {
		f.Word("body.method", method, string(puntuale.PairQR))
	}
	if err := f.Err(); err != nil {
		return err
	}
	if err := c.control.devices.store.StartLinkingPage(ctx, p.stored, c.control.clock.Now()); err != nil {
		return fmt.Errorf("start a linking page: %w", err)
	}
	// The attempt is noted before it is made, so that nothing that a stranger began is missing in the log.
	if err := c.note(ctx, puntuale.AuditEntry{Who: puntuale.ActorPage, Action: "session.page_start", Target: id, Address: address}); err != nil {
		return err
	}
	if _, err := c.Pair(ctx, id, Pairing{Method: method, Phone: phone}); err != nil {
		return err
	}
	_, err := c.control.devices.store.LinkingPage(ctx, p.stored.Mark)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound { // the page ended while the pairing began
		_, stopped := c.stopPairing(ctx, id)
		return errors.Join(err, stopped)
	}
	return err
}

// Await waits until the page shows something else than the version that the caller knows, or until the page ends. It
// fails as [Client.AwaitSession] does.
func (p *LinkingPage) Await(ctx context.Context, known string) error {
	_, err := p.client.AwaitSession(ctx, p.stored.Session.String(), func(s Session) bool {
		now := *p
		now.show(s)
		return now.Version() == known && s.Link.PageUntil.Equal(p.stored.Until)
	})
	return err
}

// drained calls the function do while no message of the session is in flight. If do returns an error, drained lets the
// session send again. The drain ends by itself after maxDrain, because this process may stop before that.
func (c *Client) drained(ctx context.Context, id puntuale.SessionID, do func() error) error {
	order := puntuale.DrainOrder{Until: c.control.clock.Now().Add(maxDrain)}
	err := c.command(ctx, id, puntuale.CommandDrain, order.JSON())
	if err == nil {
		err = do()
	}
	if err != nil {
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeWait)
		defer cancel()
		_, _ = c.give(timeout, id, puntuale.CommandResume, nil) // if this fails, the session sends again when the drain ends by itself
	}
	return err
}

// stateOf returns the session's link state, as its last owner stored it. If the session has no owner now, stateOf omits
// the states that only an owner can keep up to date.
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
	case shown.State == puntuale.LinkPairing && (!owned || !now.Before(s.Link.Since.Add(puntuale.UnfinishedPairing.Lifetime()))):
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
	if unlinked := shown.State == puntuale.LinkUnlinked || shown.State == puntuale.LinkPairing; unlinked && now.Before(s.Link.PageUntil) {
		shown.PageUntil = s.Link.PageUntil
	}
	shown.WebhookPath = c.webhookPath(s)
	if c.control.sessions.public != "" && shown.WebhookPath != "" {
		shown.Webhook = c.control.sessions.public + shown.WebhookPath
	}
	shown.Hint = puntuale.Because(shown.advice())
	return shown
}

// webhookPath returns the path of the session's network webhook, or "" if the session has none.
func (c *Client) webhookPath(s puntuale.Session) string {
	switch {
	case s.Sandbox:
	case s.Type == puntuale.Official:
		return s.ID.WebhookPath()
	case s.Type == puntuale.SendApp && !s.ByDevice() && c.control.vault != nil: // the path contains a secret that is derived from the vault's key
		return s.ID.GatewayWebhookPath(c.control.vault.Mark)
	}
	return ""
}

// openCode decrypts a pairing code. It returns nil if this fails, for example after the installation's key changed.
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
	// codeGrace is how long a code is still shown after its end. The next code may not be stored yet, and a caller must
	// always get a code.
	codeGrace  = 2 * time.Second
	maxDrain   = 40 * time.Second
	resumeWait = 5 * time.Second
)

// linkWatch polls a client's sessions for all callers that wait for a change of a session. The mutex of follows guards
// it.
type linkWatch struct {
	waiting int
	stop    context.CancelFunc
	found   map[puntuale.SessionID]puntuale.Session // the sessions that the latest poll found
	fault   error                                   // the error of the latest poll, if it panicked; nil: it did not
	looked  chan struct{}                           // closed after the next poll
}

// AwaitSession waits until the session's state differs from the state that the caller saw, and returns the session.
// seen reports whether the caller already saw this state. AwaitSession fails when the context ends, or the server
// stops. Codes: not_found; rate_limited if too many callers wait already.
func (c *Client) AwaitSession(ctx context.Context, id string, seen func(Session) bool) (Session, error) {
	w, leave, err := c.watchLinks()
	if err != nil {
		return Session{}, err
	}
	defer leave()
	defer c.leaveLinks(w)
	f := &c.control.follows
	f.mu.Lock()
	looked := w.looked
	f.mu.Unlock()
	s, err := c.Session(ctx, id)
	for err == nil && seen(s) {
		select {
		case <-looked:
		case <-c.control.stopping:
			return Session{}, puntuale.ErrStopping
		case <-ctx.Done():
			return Session{}, ctx.Err()
		}
		f.mu.Lock()
		row, found := w.found[s.ID]
		fault := w.fault
		looked = w.looked
		f.mu.Unlock()
		if fault != nil {
			return Session{}, fault
		}
		if !found {
			return c.Session(ctx, id) // the session was deleted, so this call returns the error
		}
		s = c.stateOf(row)
	}
	return s, err
}

// watchLinks adds one caller that waits for a change of a link. The caller must call leaveLinks.
func (c *Client) watchLinks() (w *linkWatch, leave func(), err error) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	leave, ok := c.followShare()
	if !ok {
		return nil, nil, errFollowers
	}
	w = f.links[c.account.ID]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &linkWatch{stop: stop, looked: make(chan struct{})}
		if f.links == nil {
			f.links = map[puntuale.ClientID]*linkWatch{}
		}
		f.links[c.account.ID] = w
		go c.pollLinks(ctx, w)
	}
	w.waiting++
	return w, leave, nil
}

func (c *Client) leaveLinks(w *linkWatch) {
	f := &c.control.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.stop()
		delete(f.links, c.account.ID)
	}
}

// pollLinks reads the client's sessions each linkEvery, as long as callers wait. If the store cannot be read, pollLinks
// reports no change. A panic would come again, so the callers get it as their error.
func (c *Client) pollLinks(ctx context.Context, w *linkWatch) {
	for c.control.clock.Sleep(ctx, linkEvery) == nil {
		var found map[puntuale.SessionID]puntuale.Session
		err := puntuale.Recovered(func() (err error) {
			found, err = c.allSessions(ctx)
			return err
		})
		fault := c.faultOf(err)
		if err != nil && fault == nil {
			continue
		}
		f := &c.control.follows
		f.mu.Lock()
		w.found, w.fault = found, fault
		close(w.looked)
		w.looked = make(chan struct{})
		f.mu.Unlock()
	}
}

func (c *Client) allSessions(ctx context.Context) (map[puntuale.SessionID]puntuale.Session, error) {
	all := map[puntuale.SessionID]puntuale.Session{}
	for cursor := ""; ; {
		rows, next, err := c.tenant.Sessions(ctx, puntuale.Page{Limit: request.MaxPageRows, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, s := range rows {
			all[s.ID] = s
		}
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}
