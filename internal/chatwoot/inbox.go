package chatwoot

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/outside"
)

// inbox is an inbox in Chatwoot's JSON.
type inbox struct {
	ID      int64  `json:"id"`
	Type    string `json:"channel_type"`
	Webhook string `json:"webhook_url"`
}

const channelAPI = "Channel::Api"

// MakeInbox makes or changes an inbox; see [puntuale.ChatwootCaller]. A repeat finds the inbox that an earlier call
// made.
func (b *Bridge) MakeInbox(ctx context.Context, l puntuale.ChatwootLink, token, name, address string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Within)
	defer cancel()
	ctx, done := b.cfg.Memory.Client(ctx, l.Client)
	defer done()
	s := b.server(l.URL, l.Chatwoot.Account, token)
	channel := map[string]any{"type": "api", "webhook_url": address}
	var made inbox
	if l.Chatwoot.Inbox != 0 {
		at := "/inboxes/" + strconv.FormatInt(l.Chatwoot.Inbox, 10)
		err := s.call(ctx, http.MethodGet, at, nil, &made)
		if err == nil && made.Type != channelAPI {
			return 0, puntuale.Invalid(puntuale.Fault{Location: "body.inbox_id", Code: puntuale.FaultChatwootMissing})
		}
		if err == nil {
			err = s.call(ctx, http.MethodPatch, at, map[string]any{"channel": map[string]any{"webhook_url": address}}, nil)
		}
		return l.Chatwoot.Inbox, b.public(err, "body.inbox_id")
	}
	var all struct {
		Payload []inbox `json:"payload"`
	}
	if err := s.call(ctx, http.MethodGet, "/inboxes", nil, &all); err != nil {
		return 0, b.public(err, "body.account_id")
	}
	for _, i := range all.Payload {
		if i.Type == channelAPI && i.Webhook == address {
			return i.ID, nil
		}
	}
	err := s.call(ctx, http.MethodPost, "/inboxes", map[string]any{"name": name, "channel": channel}, &made)
	if err == nil && made.ID == 0 {
		err = &refusal{puntuale.ChatwootAnswer{Status: http.StatusBadGateway}}
	}
	return made.ID, b.public(err, "body.account_id")
}

// public returns the error that a person sees. missing is the location of the fault if the server does not know an id.
func (b *Bridge) public(err error, missing string) error {
	var r *refusal
	var large *outside.TooLargeError
	switch {
	case err == nil:
		return nil
	case puntuale.CodeOf(err) == puntuale.CodeOverloaded, puntuale.CodeOf(err) == puntuale.CodeRateLimited:
		return err
	case errors.As(err, &large):
		return puntuale.Invalid(puntuale.Fault{Location: "body.base_url", Code: puntuale.ReasonAnswerTooLarge})
	case !errors.As(err, &r):
		return puntuale.Invalid(puntuale.Fault{Location: "body.base_url", Code: puntuale.FaultChatwootAnswer, Args: []string{"0"}})
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return puntuale.Invalid(puntuale.Fault{Location: "body.api_access_token", Code: puntuale.FaultChatwootToken})
	case r.Status == http.StatusNotFound:
		return puntuale.Invalid(puntuale.Fault{Location: missing, Code: puntuale.FaultChatwootMissing})
	}
	return puntuale.Invalid(puntuale.Fault{Location: "body.base_url", Code: puntuale.FaultChatwootAnswer, Args: []string{strconv.Itoa(r.Status)}})
}
