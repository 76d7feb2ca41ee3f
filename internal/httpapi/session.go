package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
)

func registerSessions(a *api) {
	registerNetworkTemplates(a)
	const all, one = "/api/sessions", "/api/sessions/{id}"
	client(a, operation{id: "listSessions", method: http.MethodGet, path: all, strict: true,
		summary: "List the sessions, by id"}, listSessions)
	clientOnce(a, operation{id: "createSession", method: http.MethodPost, path: all, creates: createsAlways, body: sessionBody{},
		summary: "Create a session beside the default one", refusals: []int{http.StatusConflict}}, withBody(createSession))
	client(a, operation{id: "getSession", method: http.MethodGet, path: one, versioned: true,
		summary: "Get a session", refusals: []int{http.StatusNotFound}}, getSession)
	client(a, operation{id: "updateSession", method: http.MethodPut, path: one, body: sessionChangeBody{}, versioned: true,
		summary: "Change a session's name, how much it sends, or which of Meta's optional ways it may use", refusals: changes(http.StatusNotFound)}, withBody(updateSession))
	client(a, operation{id: "pairSession", method: http.MethodPost, path: one + "/pair", creates: createsAlways, body: pairingBody{},
		summary: "Link a session to a number", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(pairSession))
	client(a, operation{id: "unlinkSession", method: http.MethodDelete, path: one + "/pair", prevents: true,
		summary:     "Unlink a session",
		description: "What is pending waits.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, unlinkSession)
	registerLinkingPages(a, one)
	client(a, operation{id: "reconnectSession", method: http.MethodPost, path: one + "/reconnect", creates: createsAlways,
		summary: "Connect a linked number at once, as after another program took its place", refusals: []int{http.StatusNotFound, http.StatusConflict}}, reconnectSession)
	client(a, operation{id: "setOfficialKeys", method: http.MethodPut, path: one + "/official", creates: createsAlways, body: keysBody{},
		summary: "Replace what an Official session needs to reach Meta, or some of it", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(setOfficialKeys))
	client(a, operation{id: "setGateway", method: http.MethodPut, path: one + "/gateway", creates: createsAlways, body: gatewayKeysBody{},
		summary: "Replace what a Send_app session needs to reach its gateway, or some of it", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(setGateway))
	client(a, operation{id: "testSession", method: http.MethodPost, path: one + "/test",
		summary:     "Look whether an Official session, or one with a gateway, can send, and say what is wrong",
		description: "Of Official ones this reads the templates, too.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, testSession)
	client(a, operation{id: "listNetworkTemplates", method: http.MethodGet, path: one + "/templates", strict: true,
		summary: "List the templates of an Official session's business as Meta has them, by name and language", refusals: []int{http.StatusNotFound, http.StatusConflict}}, listNetworkTemplates)
	client(a, operation{id: "deleteSession", method: http.MethodDelete, path: one, prevents: true,
		summary: "Delete a session other than the default one", refusals: []int{http.StatusNotFound, http.StatusConflict}}, deleteSession)
}

// sessionBody documents the body of the call that creates a session.
type sessionBody struct {
	Name    string `json:"name" minLength:"1" maxLength:"200"`
	Type    string `json:"connection_type" enum:"Socket,Send_app,Official" doc:"How it reaches the network; it never changes"`
	Sandbox *bool  `json:"sandbox,omitempty" doc:"Whether the simulated network takes its messages; else as the server is set"`

	Official *officialBody `json:"official,omitempty" doc:"Of an Official session: what it needs to reach Meta. Never shown again; it may also be given later"`
	Gateway  *gatewayBody  `json:"gateway,omitempty" doc:"Of a Send_app session that is no sandbox and sends through a gateway: what it needs to reach it. Never shown again"`
	Device   *struct{}     `json:"device,omitempty" doc:"Of a Send_app session that is no sandbox and whose messages devices take: an empty object"`
	Pace     *paceBody     `json:"pace,omitempty" doc:"How much it sends; what is left out has its default"`
}

type sessionAnswer struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Type       string `json:"connection_type" enum:"Socket,Send_app,Official"`
	Sandbox    bool   `json:"sandbox" doc:"The simulated network takes its messages"`
	Default    bool   `json:"default" doc:"Used by sequences that name none"`
	State      string `json:"state" enum:"unlinked,pairing,connecting,online,waiting,banned,outdated,replaced,logged_out,linked" doc:"Messages wait in all states but online. linked: an Official number that Meta does not answer for at present, or a gateway's that is not connected"`
	Created    string `json:"created_at" format:"date-time"`
	Number     string `json:"number,omitempty" doc:"The linked number, where it is known"`
	Detail     string `json:"state_detail,omitempty" doc:"Why it is in this state, for people"`
	QR         string `json:"qr,omitempty" doc:"While pairing with the method qr: the text to show as a QR code"`
	Code       string `json:"pairing_code,omitempty" doc:"While pairing with the method code: what is typed into the phone. Of a session with devices: the one-time code that links one more"`
	Expires    string `json:"expires_at,omitempty" format:"date-time" doc:"When the code is replaced by another, or ends"`
	Webhook    string `json:"webhook_path,omitempty" doc:"Of an Official session, or one with a gateway: where its network reports, below this server's address. That of a gateway is secret"`
	WebhookURL string `json:"webhook_url,omitempty" format:"uri" doc:"The same as a whole address, where the server's setting public-url names its own"`

	Hint    string        `json:"hint" doc:"What to do, in plain words"`
	Until   string        `json:"until,omitempty" format:"date-time" doc:"In waiting: of the next try; in banned: of the ban's end"`
	Page    string        `json:"linking_page_until,omitempty" format:"date-time" doc:"While the session has a linking page that works: its end"`
	Limited string        `json:"limited_until,omitempty" format:"date-time" doc:"While WhatsApp refuses messages to people who do not know the number: those wait until then, the others leave"`
	Pace    paceAnswer    `json:"pace"`
	Ways    *waysAnswer   `json:"ways,omitempty" doc:"Of an Official session: which of Meta's optional ways it may use"`
	Health  *healthAnswer `json:"health,omitempty" doc:"Only in the answer about one Official session that is no sandbox: what Meta says about the number and its business"`
	Way     string        `json:"way,omitempty" enum:"gateway,device" doc:"Of a Send_app session that is no sandbox: what its messages go through"`
}

type sessionsAnswer struct {
	Sessions []sessionAnswer `json:"sessions"`
	Next     *string         `json:"next_cursor"`
}

func listSessions(ctx context.Context, c *control.Client, in *call, p *ListInput) (sessionsAnswer, error) {
	rows, next, err := c.Sessions(ctx, p.page(in))
	if err != nil {
		return sessionsAnswer{}, err
	}
	return sessionsAnswer{each(rows, sessionOf), textOrNull(next)}, nil
}

func createSession(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *sessionBody) (sessionAnswer, error) {
	requested := control.NewSession{
		Name: body.Name, Type: body.Type, Sandbox: body.Sandbox, Devices: body.Device != nil, Pace: (*control.PaceChange)(body.Pace), Faults: in.refused,
	}
	if body.Official != nil {
		requested.Keys = body.Official.keys()
	}
	if g := body.Gateway; g != nil {
		requested.Gateway = &control.NewGateway{BaseURL: g.BaseURL, AccessToken: g.AccessToken, InstanceID: g.InstanceID}
	}
	created, err := c.CreateSession(ctx, requested, once(in, p, sessionOf))
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(created), nil
}

func getSession(ctx context.Context, c *control.Client, in *call, p *oneInput) (sessionAnswer, error) {
	found, err := c.Session(ctx, p.ID)
	if err != nil {
		return sessionAnswer{}, err
	}
	in.tagged(found.Version())
	answer := sessionOf(found)
	if found.Type == puntuale.Official && !found.Sandbox {
		h, err := c.SessionHealth(ctx, p.ID)
		if err != nil {
			return sessionAnswer{}, err
		}
		answer.Health = healthOf(h)
	}
	return answer, nil
}

// healthAnswer is the health of an Official session.
type healthAnswer struct {
	Quality     *string  `json:"quality" doc:"GREEN, YELLOW or RED; null: unknown"`
	Limit       *int     `json:"limit" doc:"How many people who did not write the portfolio may address in any 24 hours, with all its numbers; null: any number, or unknown"`
	Used        int      `json:"limit_used" doc:"Of these, in the last 24 hours, by the numbers of the business and its portfolio on this server"`
	Reserved    int      `json:"limit_reserved" doc:"People with messages planned for the next 24 hours, which go before campaigns"`
	Near        bool     `json:"limit_near" doc:"true: 80 percent of the limit or more are used or reserved"`
	Free        int64    `json:"free_service_messages" doc:"Service messages of the month, in the client's zone, for which Meta told that it does not bill them. Messages of other programs are not in it"`
	FreeLimit   int64    `json:"free_service_limit" doc:"How many of a number Meta does not bill in a month, in the time zone of the business account"`
	Until       *string  `json:"restricted_until" format:"date-time" doc:"null: not restricted, or no end is known"`
	Restriction *string  `json:"restriction" doc:"Meta's word for what restricts the number and that Meta confirmed; null: nothing"`
	DisplayName *string  `json:"display_name" doc:"approved, pending or declined; null: unknown"`
	Paused      []string `json:"paused_templates" doc:"The names of templates that Meta paused, at most 100"`
	DirectSend  string   `json:"direct_send" enum:"unknown,on,off,blocked"`
	Checked     *string  `json:"checked_at" format:"date-time" doc:"When the server last asked Meta; null: never"`
}

func healthOf(h control.SessionHealth) *healthAnswer {
	a := &healthAnswer{
		Quality: textOrNull(h.Quality), Used: h.Portfolio.Used, Reserved: h.Portfolio.Reserved, Restriction: textOrNull(h.Restriction), DisplayName: textOrNull(h.DisplayName),
		Paused: append([]string{}, h.PausedTemplates...), DirectSend: string(h.DirectSend), Until: stampOrNull(h.RestrictedUntil), Checked: stampOrNull(h.Checked),
	}
	a.Near, a.Free, a.FreeLimit = h.Portfolio.Near(), h.FreeService, puntuale.FreeServiceMessages
	if h.Limit > 0 {
		a.Limit = &h.Limit
	}
	return a
}

func sessionOf(s control.Session) sessionAnswer {
	a := sessionAnswer{
		ID: s.ID.String(), Name: s.Name, Type: string(s.Type), Sandbox: s.Sandbox, Default: s.Default,
		State: s.Word(), Created: stamp(s.Created), Number: s.Number, Detail: catalogue.Italian.Sentence(s.Detail), Hint: catalogue.Italian.Sentence(s.Hint), Pace: paceOf(s.Pace),
	}
	if s.Code == nil && !s.Until.IsZero() {
		a.Until = stamp(s.Until)
	}
	if !s.Limited.IsZero() {
		a.Limited = stamp(s.Limited)
	}
	if !s.PageUntil.IsZero() {
		a.Page = stamp(s.PageUntil)
	}
	a.Webhook, a.WebhookURL = s.WebhookPath, s.Webhook
	if s.Type == puntuale.Official && !s.Sandbox {
		a.Ways = &waysAnswer{s.Ways.DirectSend, s.Ways.Marketing, s.Ways.Creative}
	}
	switch {
	case s.ByDevice():
		a.Way = "device"
	case s.Type == puntuale.SendApp && !s.Sandbox:
		a.Way = "gateway"
	}
	if s.Code != nil {
		a.Expires = stamp(s.Until)
		if s.Code.Method == puntuale.PairQR {
			a.QR = s.Code.Text
		} else {
			a.Code = s.Code.Text
		}
	}
	return a
}

// pairingBody documents the body of the call that links a session.
type pairingBody struct {
	Method string `json:"method,omitempty" enum:"qr,code" doc:"qr: the phone scans a code; code: a person types it into the phone. Required but for sessions with devices"`
	Phone  string `json:"phone,omitempty" read:"phone" doc:"With the method code: the number of the phone. A number is taken too."`
}

func pairSession(ctx context.Context, c *control.Client, in *call, p *oneInput, body *pairingBody) (sessionAnswer, error) {
	linking, err := c.Pair(ctx, p.ID, control.Pairing{Method: body.Method, Phone: body.Phone, Faults: in.refused})
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(linking), nil
}

// registerLinkingPages registers the calls about linking pages. A partner makes a client with its session, and sends the
// page's address to the person who has the phone.
func registerLinkingPages(a *api, one string) {
	const path = "/linking-page"
	missing := []int{http.StatusNotFound, http.StatusConflict}
	register(a, eitherSide, operation{id: "makeLinkingPage", method: http.MethodPost, path: one + path, creates: createsAlways,
		summary:     "Make a page with which somebody without an account links the session's number, once",
		description: "The page works for 24 hours. An earlier page of the session ends.", refusals: missing}, makeLinkingPage)
	register(a, eitherSide, operation{id: "endLinkingPage", method: http.MethodDelete, path: one + path,
		summary: "End the session's linking page", refusals: missing}, endLinkingPage)
}

// clientOf returns the call's client: the key's own, or the client of the partner that has the session.
func (c *call) clientOf(ctx context.Context, session string) (*control.Client, error) {
	if c.partner != nil {
		return c.partner.ClientOfSession(ctx, session)
	}
	return c.client, nil
}

// linkingPageAnswer contains the address of a linking page.
type linkingPageAnswer struct {
	URL     string `json:"url" format:"uri" doc:"The page's address. Whoever has it can link a number to the session; it is never shown again"`
	Expires string `json:"expires_at" format:"date-time" doc:"The page's end. It ends earlier when the number is linked, when another page is made, and with DELETE"`
}

func makeLinkingPage(ctx context.Context, in *call, p *oneInput) (linkingPageAnswer, error) {
	c, err := in.clientOf(ctx, p.ID)
	if err != nil {
		return linkingPageAnswer{}, err
	}
	made, err := c.OfferLinkingPage(ctx, p.ID, "")
	if err != nil {
		return linkingPageAnswer{}, err
	}
	return linkingPageAnswer{made.Address, stamp(made.Until)}, nil
}

func endLinkingPage(ctx context.Context, in *call, p *oneInput) (messageAnswer, error) {
	c, err := in.clientOf(ctx, p.ID)
	if err != nil {
		return messageAnswer{}, err
	}
	if _, err := c.EndLinkingPage(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Pagina di collegamento terminata"}, nil
}

func reconnectSession(ctx context.Context, c *control.Client, _ *call, p *oneInput) (sessionAnswer, error) {
	found, err := c.Reconnect(ctx, p.ID)
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

func unlinkSession(ctx context.Context, c *control.Client, _ *call, p *oneInput) (sessionAnswer, error) {
	found, err := c.Unlink(ctx, p.ID)
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

type deleteSessionInput struct {
	ID      string `path:"id" doc:"ID"`
	Pending string `query:"pending" enum:"cancel" doc:"Pending messages are cancelled"`
	MoveTo  string `query:"move_to" doc:"ID of the session that sends pending messages instead"`
}

func deleteSession(ctx context.Context, c *control.Client, _ *call, p *deleteSessionInput) (messageAnswer, error) {
	if err := c.DeleteSession(ctx, p.ID, p.Pending, p.MoveTo); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Sessione eliminata"}, nil
}

// paceBody documents how fast a session sends.
type paceBody struct {
	PerMinute     *int `json:"per_minute,omitempty" minimum:"0" maximum:"6000" doc:"Messages a minute at most, evenly; 0: no limit"`
	PerDay        *int `json:"per_day,omitempty" minimum:"0" maximum:"1000000" doc:"Messages in any 24 hours at most; 0: no limit"`
	ColdPerMinute *int `json:"cold_per_minute,omitempty" minimum:"0" maximum:"6000" doc:"Of these, to people who neither wrote to the number nor got anything from it; 0: no limit"`
	ColdPerDay    *int `json:"cold_per_day,omitempty" minimum:"0" maximum:"1000000" doc:"Likewise in any 24 hours; 0: no limit"`
	Jitter        *int `json:"jitter,omitempty" minimum:"0" maximum:"600" doc:"Seconds, by up to which the time between two messages is longer at random"`
}

type paceAnswer struct {
	PerMinute     int `json:"per_minute" doc:"0: no limit"`
	PerDay        int `json:"per_day"`
	ColdPerMinute int `json:"cold_per_minute"`
	ColdPerDay    int `json:"cold_per_day"`
	Jitter        int `json:"jitter" doc:"Seconds"`
}

func paceOf(p puntuale.Pace) paceAnswer {
	return paceAnswer{p.PerMinute, p.PerDay, p.ColdPerMinute, p.ColdPerDay, p.Jitter}
}

// waysBody documents which of Meta's optional ways a session may use.
type waysBody struct {
	DirectSend *bool `json:"direct_send,omitempty" doc:"Service messages outside the 24-hour window leave by Meta's Direct Send, without an approved template, where Meta has enabled it"`
	Marketing  *bool `json:"marketing_messages,omitempty" doc:"Marketing templates leave by Meta's own path for marketing"`
	Creative   *bool `json:"creative_features,omitempty" doc:"On this path, Meta may change how messages look. false: the server tells Meta once not to"`
}

type waysAnswer struct {
	DirectSend bool `json:"direct_send"`
	Marketing  bool `json:"marketing_messages"`
	Creative   bool `json:"creative_features"`
}

// sessionChangeBody documents the body of the call that changes a session.
type sessionChangeBody struct {
	Pace *paceBody `json:"pace,omitempty" doc:"What is left out stays as it is"`
	Name *string   `json:"name,omitempty" maxLength:"200" doc:"What people call it"`
	Ways *waysBody `json:"ways,omitempty" doc:"Of an Official session. What is left out stays as it is"`
}

func updateSession(ctx context.Context, c *control.Client, in *call, p *changeInput, body *sessionChangeBody) (sessionAnswer, error) {
	known, faults := in.knownVersions()
	found, err := c.ChangeSession(ctx, p.ID, control.SessionChange{
		Name: body.Name, Pace: (*control.PaceChange)(body.Pace), Ways: (*control.WaysChange)(body.Ways), Known: known, Faults: append(in.refused, faults...),
	})
	if err != nil {
		return sessionAnswer{}, err
	}
	in.tagged(found.Version())
	return sessionOf(found), nil
}

// gatewayBody documents the address, token and instance with which a Send_app session reaches its gateway.
type gatewayBody struct {
	BaseURL     string `json:"base_url,omitempty" format:"uri" maxLength:"2048" doc:"Of the API of a gateway of SendApp's family; else SendApp Cloud's"`
	AccessToken string `json:"access_token" minLength:"1" maxLength:"512" doc:"Of the account at the gateway"`
	InstanceID  string `json:"instance_id,omitempty" maxLength:"64" doc:"Of a number that is there already; without it, linking makes one"`
}

// gatewayKeysBody documents the body of the call that changes a gateway's address, token or instance. If a member is
// missing, its value does not change.
type gatewayKeysBody struct {
	BaseURL     string `json:"base_url,omitempty" format:"uri" maxLength:"2048" doc:"Another one needs access_token, too, and has no instance_id unless one is given"`
	AccessToken string `json:"access_token,omitempty" maxLength:"512"`
	InstanceID  string `json:"instance_id,omitempty" maxLength:"64"`
}

func setGateway(ctx context.Context, c *control.Client, in *call, p *oneInput, body *gatewayKeysBody) (sessionAnswer, error) {
	found, err := c.SetGateway(ctx, p.ID, control.NewGateway{BaseURL: body.BaseURL, AccessToken: body.AccessToken, InstanceID: body.InstanceID, Faults: in.refused})
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

func registerPairs(a *api) {
	const path = "/api/session/{id_session}/defaultSequence"
	client(a, operation{id: "getDefaultSequences", method: http.MethodGet, path: path, versioned: true,
		summary: "Get a session's default sequences", refusals: []int{http.StatusNotFound}}, getPair)
	client(a, operation{id: "setDefaultSequences", method: http.MethodPut, path: path, body: pairBody{}, versioned: true,
		summary: "Set a session's default sequences, as a pair", refusals: changes(http.StatusNotFound)}, withBody(setPair))
}

type pairInput struct {
	ID string `path:"id_session" doc:"ID of the session"`
}

type pairChangeInput struct {
	ID    string `path:"id_session" doc:"ID of the session"`
	Match string `header:"If-Match" doc:"Entity tags, as ETag showed them: the change is made if what is stored has one of them, else the answer is 412. * or nothing: it is made in any case"`
}

// pairBody documents the body of the call that sets a session's default sequences. Null means no sequence. An absent
// member is refused, because the caller may expect that the value does not change.
type pairBody struct {
	Start string `json:"start" read:"id,given" nullable:"true" doc:"ID of the start sequence; empty or null: none. A number is taken too."`
	Stop  string `json:"stop" read:"id,given" nullable:"true" doc:"ID of the stop sequence; empty or null: none. A number is taken too."`
}

type pairAnswer struct {
	Start string `json:"start" doc:"ID of the start sequence; empty: none"`
	Stop  string `json:"stop" doc:"ID of the stop sequence; empty: none"`
}

func getPair(ctx context.Context, c *control.Client, in *call, p *pairInput) (pairAnswer, error) {
	s, err := c.Session(ctx, p.ID)
	if err != nil {
		return pairAnswer{}, err
	}
	in.tagged(s.PairVersion())
	return pairOf(s), nil
}

func setPair(ctx context.Context, c *control.Client, in *call, p *pairChangeInput, body *pairBody) (pairAnswer, error) {
	known, faults := in.knownVersions()
	s, err := c.SetDefaultPair(ctx, p.ID, body.Start, body.Stop, known, append(in.refused, faults...)...)
	if err != nil {
		return pairAnswer{}, err
	}
	in.tagged(s.PairVersion())
	return pairOf(s), nil
}

func pairOf(s control.Session) pairAnswer {
	text := func(id puntuale.SequenceID) string {
		if id == 0 {
			return ""
		}
		return id.String()
	}
	return pairAnswer{text(s.Start), text(s.Stop)}
}
