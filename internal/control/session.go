package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Session is a client's session with its current state.
type Session struct {
	puntuale.Session
	State  puntuale.LinkState    // the session's state, which is never LinkAsCreated
	Number string                // the linked number, "+…"; "": unknown
	Detail puntuale.Reason       // why the session is in this state; often the zero reason
	Code   *puntuale.PairingCode // not nil while the session is pairing and a code can be shown
	Until  time.Time             // the end of Code, or of Condition
	puntuale.Condition
	PageUntil time.Time       // the end of the session's linking page; zero: it has none that works
	Limited   time.Time       // before this time the session sends nothing to cold contacts; zero: no limit
	Hint      puntuale.Reason // what a person can do
	// WebhookPath is the path of the network's webhook, relative to the service's address. "" means that the session
	// has no webhook. Webhook is the whole address. It is "" if the service's address is not set.
	WebhookPath, Webhook string
}

// Word returns the name of the state in the API.
func (s Session) Word() string { return puntuale.Link{State: s.State, Condition: s.Condition}.Word() }

// NewSession is a request to create a session.
type NewSession struct {
	Name    string
	Type    string                 // Socket, Send_app or Official
	Sandbox *bool                  // nil: the operator's setting
	Keys    *puntuale.OfficialKeys // only for an Official session; nil: no keys yet
	Gateway *NewGateway            // only for a Send_app session; nil: no gateway
	Devices bool                   // only for a Send_app session; true: devices take its messages
	Pace    *PaceChange            // nil: the default pace
	Faults  []puntuale.Fault       // the faults that the calling package already found in the request
}

// Codes of the faults that this file reports.
const (
	FaultNotOwnSequence      puntuale.ReasonCode = "fault.not_own_sequence"
	faultSessionGoesWithType puntuale.ReasonCode = "session.goes_with_type"
	faultSessionItself       puntuale.ReasonCode = "session.itself"
	faultSessionNotCancel    puntuale.ReasonCode = "session.not_cancel"
	faultSessionSandboxAlone puntuale.ReasonCode = "session.sandbox_alone"
	faultSessionWayRequired  puntuale.ReasonCode = "session.way_required"
)

// CreateSession creates a session in addition to the client's default session. Codes: invalid, forbidden.
func (c *Client) CreateSession(ctx context.Context, r NewSession, o Once[Session]) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	f := request.Faults(r.Faults)
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return Session{}, err
	}
	f.Required("body.name", r.Name, puntuale.MaxName)
	kind, err := puntuale.ParseConnectionType(r.Type)
	switch {
	case r.Type == "":
		f.Add("body.connection_type", puntuale.FaultRequired, nil)
	case err != nil:
		f.Add("body.connection_type", puntuale.FaultNotOneOf, r.Type, "Socket, Send_app, Official")
	}
	if r.Keys != nil {
		c.checkKeys(&f, "body.official.", r.Keys)
		if err == nil && r.Type != "" && kind != puntuale.Official {
			f.Add("body.official", faultSessionGoesWithType, nil, "Official")
		}
	}
	var gateway puntuale.GatewayKeys
	if r.Gateway != nil {
		gateway = c.checkGateway(&f, "body.gateway.", *r.Gateway)
		if err == nil && r.Type != "" && kind != puntuale.SendApp {
			f.Add("body.gateway", faultSessionGoesWithType, nil, "Send_app")
		}
	}
	s := puntuale.Session{Client: c.account.ID, Name: r.Name, Type: kind, Sandbox: c.control.sessions.sandbox, Created: c.control.clock.Now()}
	if r.Sandbox != nil {
		s.Sandbox = *r.Sandbox
	}
	if r.Devices {
		s.Way = puntuale.WayDevice
	}
	checkWay(&f, s, r, err == nil)
	s.Pace = r.Pace.applyTo(s.DefaultPace(), &f)
	if err := f.Err(); err != nil {
		return Session{}, err
	}
	if clash != nil {
		return Session{}, clash
	}
	result := func(stored any) Session {
		s.ID, _ = stored.(puntuale.SessionID)
		return c.stateOf(s)
	}
	var id puntuale.SessionID
	if r.Gateway != nil && c.control.vault != nil {
		id, err = c.storeGateway(ctx, s, gateway, once.Keep(result))
	} else {
		id, err = c.storeSession(ctx, s, r.Keys, once.Keep(result))
	}
	if err != nil {
		return Session{}, fmt.Errorf("create a session: %w", err)
	}
	c.control.wakeup(id, time.Time{})
	return result(id), nil
}

// checkWay adds a fault if the gateway or the devices in the request do not fit the session's type. typed is true if
// the request contains a valid type.
func checkWay(f *request.Faults, s puntuale.Session, r NewSession, typed bool) {
	switch {
	case r.Devices && typed && s.Type != puntuale.SendApp:
		f.Add("body.device", faultSessionGoesWithType, nil, "Send_app")
	case r.Devices && r.Gateway != nil:
		f.Add("body.device", puntuale.FaultNotWith, nil, "gateway")
	case r.Devices && s.Sandbox:
		f.Add("body.device", faultSessionSandboxAlone, nil)
	case s.Type == puntuale.SendApp && !s.Sandbox && r.Gateway == nil && !r.Devices:
		f.Add("body.gateway", faultSessionWayRequired, nil)
	}
}

// Session returns one session. Codes: not_found.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	wanted, err := sessionID(id)
	if err != nil {
		return Session{}, err
	}
	s, err := c.tenant.Session(ctx, wanted)
	if err != nil {
		return Session{}, fmt.Errorf("read session %d: %w", wanted, err)
	}
	return c.stateOf(s), nil
}

// Sessions lists the client's sessions, ordered by id. Codes: invalid.
func (c *Client) Sessions(ctx context.Context, p request.Page) ([]Session, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Session, string, error) { return c.tenant.Sessions(ctx, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	sessions := make([]Session, len(rows))
	for i, s := range rows {
		sessions[i] = c.stateOf(s)
	}
	return sessions, next, nil
}

// DeleteSession removes a session, but never the default session. If the argument pending is "cancel", the session's
// pending messages are cancelled. If moveTo is the id of another session of the client, that session sends the
// pending messages. If both arguments are "", and there are pending messages, the deletion is refused. Codes: not_found,
// invalid, conflict, busy.
func (c *Client) DeleteSession(ctx context.Context, id, pending, moveTo string) error {
	found, err := c.Session(ctx, id)
	if err != nil {
		return err
	}
	var f request.Faults
	if pending != "" && pending != "cancel" {
		f.Add("query.pending", faultSessionNotCancel, pending)
	}
	var target Session
	if moveTo != "" {
		target, err = c.Session(ctx, moveTo)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			f.Add("query.move_to", puntuale.FaultNotOwnSession, nil)
		case err != nil:
			return err
		case target.ID == found.ID:
			f.Add("query.move_to", faultSessionItself, moveTo)
		}
		if pending != "" {
			f.Add("query.move_to", puntuale.FaultNotWith, nil, "pending")
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	remove := func() error {
		return c.tenant.DeleteSession(ctx, found.ID, pending != "", target.ID, c.control.clock.Now())
	}
	err = remove()
	switch {
	case puntuale.CodeOf(err) != puntuale.CodeBusy:
	case found.ByDevice(): // no node sends for the session; the attempts in flight belong to its devices
		err = c.removeQuiet(ctx, found.ID, remove)
	case c.control.vault != nil: // a message may be in flight, so the session must stop sending before the deletion
		err = c.drained(ctx, found.ID, func() error { return c.removeQuiet(ctx, found.ID, remove) })
	}
	if err != nil {
		return fmt.Errorf("delete session %d: %w", found.ID, err)
	}
	for _, changed := range []puntuale.SessionID{found.ID, target.ID} {
		if changed != 0 {
			c.control.wakeup(changed, time.Time{})
		}
	}
	return nil
}

// removeQuiet removes a session without messages in flight. After a server stopped, or after a failover, some attempts
// may still look like attempts in flight. removeQuiet ends these attempts. Without this, a session that cannot send
// could not be removed for a day.
func (c *Client) removeQuiet(ctx context.Context, id puntuale.SessionID, remove func() error) error {
	err := remove()
	if puntuale.CodeOf(err) != puntuale.CodeBusy {
		return err
	}
	if err := c.tenant.GiveUp(ctx, id, c.control.clock.Now()); err != nil {
		return fmt.Errorf("give up what was left: %w", err)
	}
	return remove()
}

// SetDefaultPair sets both default sequences of a session. "" means none. known contains the allowed versions of the
// stored pair; an empty list allows any version. found contains the faults that the calling package already found in
// the request. Codes: not_found (the session does not exist), invalid (a sequence that is not the client's),
// precondition_failed.
func (c *Client) SetDefaultPair(ctx context.Context, id, start, stop string, known []puntuale.Version, found ...puntuale.Fault) (Session, error) {
	s, err := c.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	f := request.Faults(found)
	for _, side := range []struct {
		location, id string
		set          *puntuale.SequenceID
	}{{"body.start", start, &s.Start}, {"body.stop", stop, &s.Stop}} {
		*side.set = 0
		if side.id == "" {
			continue
		}
		sequence, err := c.Sequence(ctx, side.id)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			f.Add(side.location, FaultNotOwnSequence, nil)
		case err != nil:
			return Session{}, err
		case sequence.Booking != "":
			f.Add(side.location, puntuale.FaultBookingForBookings, nil)
		}
		*side.set = sequence.ID
	}
	if err := f.Err(); err != nil {
		return Session{}, err
	}
	if err := c.tenant.SetDefaultPair(ctx, s.ID, s.Start, s.Stop, known...); err != nil {
		return Session{}, fmt.Errorf("set the default sequences of session %d: %w", s.ID, err)
	}
	return s, nil
}

// sessionID parses a session's id from a path. A text that is not an id is not_found.
func sessionID(text string) (puntuale.SessionID, error) {
	id, err := puntuale.ParseID[puntuale.SessionID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoSession)
	}
	return id, nil
}

// Codes of advice: what a person can do about a session.
const (
	adviceConnecting    puntuale.ReasonCode = "hint.connecting"
	adviceWaiting       puntuale.ReasonCode = "hint.waiting"
	adviceBanned        puntuale.ReasonCode = "hint.banned"
	adviceOutdated      puntuale.ReasonCode = "hint.outdated"
	adviceReplaced      puntuale.ReasonCode = "hint.replaced"
	adviceLoggedOut     puntuale.ReasonCode = "hint.logged_out"
	advicePasskey       puntuale.ReasonCode = "hint.passkey"
	adviceKeys          puntuale.ReasonCode = "hint.official_keys"
	adviceLinkDevice    puntuale.ReasonCode = "hint.link_device"
	adviceDevicesLinked puntuale.ReasonCode = "hint.devices_linked"
	adviceLinkGateway   puntuale.ReasonCode = "hint.link_gateway"
	adviceLink          puntuale.ReasonCode = "hint.link"
	adviceTypeCode      puntuale.ReasonCode = "hint.type_code"
	adviceScanCode      puntuale.ReasonCode = "hint.scan_code"
	adviceAwaitCode     puntuale.ReasonCode = "hint.await_code"
	adviceLinked        puntuale.ReasonCode = "hint.linked"
	adviceLimited       puntuale.ReasonCode = "hint.limited"
	adviceOnline        puntuale.ReasonCode = "hint.online"
)

// advice returns what a person can do about a session, for every state. Programs and pages get the same advice.
func (s Session) advice() puntuale.ReasonCode {
	switch s.Condition {
	case puntuale.Connecting:
		return adviceConnecting
	case puntuale.Waiting:
		return adviceWaiting
	case puntuale.Banned:
		return adviceBanned
	case puntuale.Outdated:
		return adviceOutdated
	case puntuale.Replaced:
		return adviceReplaced
	case puntuale.LoggedOut:
		return adviceLoggedOut
	case puntuale.NeedsPasskey:
		return advicePasskey
	}
	switch {
	case s.State == puntuale.LinkUnlinked && s.Type == puntuale.Official && !s.Sandbox:
		return adviceKeys
	case s.State == puntuale.LinkUnlinked && s.ByDevice():
		return adviceLinkDevice
	case s.ByDevice():
		return adviceDevicesLinked
	case s.State == puntuale.LinkUnlinked && s.toGateway():
		return adviceLinkGateway
	case s.State == puntuale.LinkUnlinked:
		return adviceLink
	case s.State == puntuale.LinkPairing && s.Code != nil && s.Code.Method == puntuale.PairCode:
		return adviceTypeCode
	case s.State == puntuale.LinkPairing && s.Code != nil:
		return adviceScanCode
	case s.State == puntuale.LinkPairing:
		return adviceAwaitCode
	case s.State == puntuale.LinkLinked:
		return adviceLinked
	case !s.Limited.IsZero():
		return adviceLimited
	}
	return adviceOnline
}
