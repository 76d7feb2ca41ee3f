package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/catalogue"
	"puntuale/internal/chatwoot"
	"puntuale/internal/control"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/media"
	"puntuale/internal/outside"
)

// openChatwoot makes the bridge to Chatwoot servers, and the webhook for their requests. Every node has both.
func (s *server) openChatwoot(cfg *serverConfig, vault *auth.Vault) {
	allowed, _ := networksOf(cfg.WebhookAllow) // the check of the settings has already parsed these networks
	s.chatwoot = chatwoot.New(chatwoot.Config{
		Store: s.store, HTTP: media.WebhookTransport(allowed, nil), Memory: s.payer(), Open: s.openReplyFile, Name: s.contactName,
		Message: func(ctx context.Context, client puntuale.ClientID, id puntuale.MessageID) (puntuale.MessageDetail, error) {
			found, err := s.store.Tenant(client).Details(ctx, []puntuale.MessageID{id})
			if err == nil && len(found) == 0 {
				err = puntuale.NotFound(puntuale.NoMessage)
			}
			if err != nil {
				return puntuale.MessageDetail{}, err
			}
			return found[0], nil
		},
	})
	pace := admission.NewRateLimiter[puntuale.WebhookID](agentRate, agentBurst, cfg.Clock.Now)
	s.agents = chatwoot.NewWebhook(chatwoot.WebhookConfig{
		Store: s.store, Mark: vault.Mark, ReadBody: readDelivery, Pace: pace.Take, Person: s.personOfAgent, Answer: s.answerOfAgent, Sentence: sayRefusal, Clock: cfg.Clock, Logger: cfg.Logger,
	}, s.chatwoot, func(t *puntuale.WebhookTarget) (string, error) {
		token, err := vault.Open(puntuale.SealedWebhook, t.SealPlace(), t.Secret.Present)
		return string(token), err
	})
}

// A link may report this many events a second, and this many more in one burst. An agent who assigns all conversations of
// a page makes a few hundred.
const (
	agentRate  = 20
	agentBurst = 500
)

// payer opens the memory grants of clients and partners, for answers of other servers that no call waits for.
func (s *server) payer() outside.MemoryGrants {
	return func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
		grant := s.memory.Open(admission.CallerKey{Side: side, ID: id})
		return grant, grant.Close
	}
}

// personOfAgent parses a person's number or id that Chatwoot reports. Codes: invalid.
func (s *server) personOfAgent(ctx context.Context, client puntuale.ClientID, text string) (string, error) {
	c, err := s.control.OfNetwork(ctx, client)
	if err != nil {
		return "", err
	}
	return c.ParseRecipient(text)
}

// openReplyFile fetches the file of a client's reply.
func (s *server) openReplyFile(ctx context.Context, client puntuale.ClientID, r puntuale.Reply) (*puntuale.ReplyFile, error) {
	c, err := s.control.OfNetwork(ctx, client)
	if err != nil {
		return nil, err
	}
	return c.OpenMedia(ctx, r)
}

// contactName returns the name by which the client knows a person, as pages show it. It returns "" if there is no name, or
// if the server cannot read it now.
func (s *server) contactName(ctx context.Context, client puntuale.ClientID, phone string) string {
	names, err := s.store.Tenant(client).NamesOf(ctx, []string{phone})
	if err != nil {
		return ""
	}
	return names[phone]
}

// answerOfAgent sends a message that an agent wrote in Chatwoot. Another call with the same message and part sends
// nothing. The message does not count as a call of the client.
func (s *server) answerOfAgent(ctx context.Context, a chatwoot.AgentMessage) error {
	c, err := s.control.OfNetwork(ctx, a.Client)
	if err != nil {
		return err
	}
	fields := map[string]string{"phone": a.Phone}
	for name, value := range map[string]string{"text": a.Text, "media": a.Media, "media_name": a.MediaName} {
		if value != "" {
			fields[name] = value
		}
	}
	request, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(request, &members); err != nil {
		return err
	}
	refund, err := c.Spend(ctx, int64(len(request)))
	if err != nil {
		return err
	}
	_, err = c.Answer(ctx, control.SingleCall{
		Phone: a.Phone, Fields: members, Session: a.Session.String(), Name: "Chatwoot", Reference: control.Reference{Query: a.Reference}, Body: request,
		Scope: "POST " + puntuale.ChatwootWebhooks + "/" + a.Link.String(), Key: a.Reference + "/" + strconv.Itoa(a.Part),
	})
	if err != nil {
		refund()
	}
	return err
}

// sayRefusal returns an Italian text that says why a message was refused.
func sayRefusal(err error) string {
	e := &puntuale.Error{}
	if !errors.As(err, &e) {
		return ""
	}
	if len(e.Faults) == 0 {
		return catalogue.Italian.Sentence(e.Reason)
	}
	var all []string
	for _, f := range e.Faults {
		all = append(all, catalogue.Italian.Sentence(puntuale.Because(f.Code, f.Args...)))
	}
	return strings.Join(all, "; ")
}
