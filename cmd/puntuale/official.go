package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/booking"
	"puntuale/internal/clock"
	"puntuale/internal/connector/official"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/intake"
	"puntuale/internal/logging"
	"puntuale/internal/metrics"
	"puntuale/internal/price"
)

// openOfficial makes the connector to Meta, and the webhook for Meta's reports. Every node has both, because Meta's
// requests may arrive at any node that answers calls. Only a node with the server role dispatch opens sessions.
func (s *server) openOfficial(cfg serverConfig, vault *auth.Vault, m *metrics.Meter) {
	s.networks.intake = intake.New(intake.Config{
		Store: s.store, Clock: cfg.Clock, Logger: cfg.Logger,
		Country: price.Country,
		Mark:    func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) },
		MessageMark: func(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
			return vault.Mark("message of a network", client.String(), session.String(), chat, id)
		},
		Confirm: func(ctx context.Context, m intake.Confirmation) error {
			c, err := s.control.OfNetwork(ctx, m.Client)
			if err != nil {
				return err
			}
			return c.ConfirmOptOut(ctx, m.Session, m.Phone, m.Text, m.Key)
		},
		Tap: vault.ReadTap,
		Answer: func(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) error {
			return s.control.Answer(ctx, m, f)
		},
	})
	c := official.Config{
		Store: s.store, Unseal: vault.Open, Take: s.networks.intake.Take, Report: s.report, ReadBody: readDelivery, Memory: s.payer(), TapPayload: vault.TapPayload,
		Country: price.Country, UnknownCode: m.UnknownCode, Look: s.look(cfg.Clock),
		API: cfg.OfficialAPIURL, Version: cfg.OfficialVersion, Rate: cfg.OfficialRate, Folder: cfg.replyFolder(), Clock: cfg.Clock, Logger: cfg.Logger,
	}
	if s.media != nil {
		c.Media = s.files()
	}
	s.networks.official = official.New(c)
}

// lookTime is how long the node that owns a session may take to learn that Meta reported something about it. A node that
// opens the session later reads the report itself.
const lookTime = time.Minute

// look returns the function that tells the node that owns a session to read Meta's reports.
func (s *server) look(now clock.Clock) func(context.Context, puntuale.ClientID, puntuale.SessionID) error {
	return func(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID) error {
		at := now.Now()
		_, err := s.store.Tenant(client).GiveCommand(ctx, puntuale.Command{Session: session, Verb: puntuale.CommandLook, Created: at, Expires: at.Add(lookTime)})
		switch puntuale.CodeOf(err) {
		case puntuale.CodeNotFound, puntuale.CodeBusy: // the session is gone, or so many commands wait for its node that it looks in any case
			return nil
		}
		return err
	}
}

// report passes a connector's report about a link to the session manager.
func (s *server) report(r puntuale.LinkReport) {
	if s.sessions != nil {
		s.sessions.Report(r)
	}
}

// networkWebhook handles the reports of a network.
type networkWebhook interface {
	http.Handler
	// Expects reports whether a request may come from the network. It does not read the body.
	Expects(r *http.Request) bool
}

// webhooks returns the handler for reports of Meta, of gateways and of Chatwoot. These requests have no key, so they
// are counted by IP address. webhooks returns nil if this server answers no calls.
func (s *server) webhooks(cfg serverConfig, m *metrics.Meter, admit admission.Limits) http.Handler {
	if !cfg.has(roleAPI) {
		return nil
	}
	meta, gateways := s.networks.official.NewWebhook(), s.networks.sendapp.NewWebhook()
	return httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var hook networkWebhook = meta
		path := puntuale.OfficialWebhooks
		switch { // the log gets only the beginning of the path, because the full path contains a secret
		case strings.HasPrefix(r.URL.Path, puntuale.GatewayWebhooks):
			hook, path = gateways, puntuale.GatewayWebhooks
		case strings.HasPrefix(r.URL.Path, puntuale.ChatwootWebhooks):
			hook, path = s.agents, puntuale.ChatwootWebhooks
		}
		httpkit.Matched(r.Context(), r.Method+" "+path+"{id}")
		d := &webhookRequest{}
		err := d.begin(r, admit, hook.Expects)
		defer d.end()
		if err != nil {
			httpkit.Quieten(r.Context())
			httpkit.NewProblem(r.Context(), cfg.Logger, err).Write(w)
			return
		}
		hook.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), webhookRequestKey{}, d)))
	}), httpkit.Config{Logger: logging.Sampled(cfg.Logger, cfg.AccessLog), Now: cfg.Clock.Now, Proxies: cfg.proxies(), Observe: func(route string, status int, took time.Duration) {
		m.Request(route, status, took)
		network := "official"
		switch {
		case strings.Contains(route, puntuale.GatewayWebhooks):
			network = "gateway"
		case strings.Contains(route, puntuale.ChatwootWebhooks):
			network = "chatwoot"
		}
		m.Delivered(network, route, status)
	}})
}

// webhookRequest is one request to a network's webhook, with its permit and its memory grant.
type webhookRequest struct {
	pass    *admission.Permit
	account *admission.MemoryGrant
}

type webhookRequestKey struct{}

// bodyWithin is the longest time in which the body of such a request may arrive.
const bodyWithin = 10 * time.Second

// begin admits a request. If the request cannot come from a network, begin counts it as a request of an unknown caller.
// Codes: overloaded, rate_limited.
func (d *webhookRequest) begin(r *http.Request, admit admission.Limits, expects func(*http.Request) bool) (err error) {
	from := httpkit.UnknownCaller(r)
	if d.pass, _, err = admit.Gate.Enter(r.Context(), from, admission.PriorityWrite); err != nil {
		return err
	}
	d.account = admit.Budget.Open(from)
	if !expects(r) {
		return admit.UnknownCallers.Take(from)
	}
	return nil
}

func (d *webhookRequest) end() {
	d.account.Close()
	d.pass.Leave()
}

// readDelivery reads the body of an admitted request. The request has no seat while its body arrives, so that other
// requests can use the seat.
func readDelivery(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error) {
	d, _ := r.Context().Value(webhookRequestKey{}).(*webhookRequest)
	if d == nil {
		d = &webhookRequest{} // begin did not admit this request, so there are no limits
	}
	release := admission.ReadWithin(w, r, bodyWithin)
	defer release()
	d.pass.LeaveSeat()
	body, err := admission.ReadBody(w, r, maxBytes, d.account)
	if err == nil {
		_, err = d.pass.Return(r.Context())
	}
	return body, err
}
