package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/webhook"
)

func registerChatwoot(a *api) {
	const one = "/api/sessions/{id}/chatwoot"
	missing := []int{http.StatusNotFound}
	links := func(c *control.Client) *webhook.Links { return a.webhooks.LinksOf(c) }
	client(a, operation{id: "linkChatwoot", method: http.MethodPut, path: one, body: chatwootBody{},
		summary: "Hand the session's conversations over to an inbox of Chatwoot", refusals: []int{http.StatusNotFound, http.StatusConflict}},
		withBody(func(ctx context.Context, c *control.Client, in *call, p *oneInput, body *chatwootBody) (ChatwootAnswer, error) {
			return linkChatwoot(ctx, links(c), in, p, body)
		}))
	client(a, operation{id: "getChatwoot", method: http.MethodGet, path: one, summary: "Read the session's link to Chatwoot", refusals: missing},
		func(ctx context.Context, c *control.Client, _ *call, p *oneInput) (ChatwootAnswer, error) {
			l, err := links(c).Read(ctx, p.ID)
			return chatwootOf(l), err
		})
	client(a, operation{id: "unlinkChatwoot", method: http.MethodDelete, path: one, prevents: true,
		summary:     "End the session's link",
		description: "The inbox stays in Chatwoot.", refusals: missing},
		func(ctx context.Context, c *control.Client, _ *call, p *oneInput) (messageAnswer, error) {
			if err := links(c).Unlink(ctx, p.ID); err != nil {
				return messageAnswer{}, err
			}
			return messageAnswer{"Collegamento a Chatwoot rimosso"}, nil
		})
}

// chatwootBody documents the body of a link to Chatwoot.
type chatwootBody struct {
	BaseURL string `json:"base_url" format:"uri" maxLength:"2048" doc:"Of the server, such as https://app.chatwoot.com"`
	Token   string `json:"api_access_token" maxLength:"512" doc:"Of an administrator; stored sealed, never shown"`
	Account string `json:"account_id" read:"id" doc:"The account's number, as in the addresses of Chatwoot's pages"`
	Inbox   string `json:"inbox_id,omitempty" read:"id" doc:"An inbox of the channel API; without it, one is made"`
	_       closedCheck
}

// ChatwootAnswer is a session's link to Chatwoot.
type ChatwootAnswer struct {
	Session     string  `json:"id_sessione"`
	BaseURL     string  `json:"base_url"`
	Account     string  `json:"account_id"`
	Inbox       *string `json:"inbox_id" doc:"null: the link is not finished; send the same call again"`
	Active      bool    `json:"active"`
	Reason      *string `json:"reason" doc:"Why it was disabled"`
	LastSuccess *string `json:"last_success_at" format:"date-time"`
	FailingFrom *string `json:"failing_since" format:"date-time" doc:"The first failure since the last success"`
}

func chatwootOf(l puntuale.ChatwootLink) ChatwootAnswer {
	out := ChatwootAnswer{
		Session: l.Session.String(), BaseURL: l.URL, Account: strconv.FormatInt(l.Chatwoot.Account, 10), Active: l.Active,
		Reason: textOrNull(catalogue.Italian.Sentence(l.Reason)), LastSuccess: stampOrNull(l.LastSuccess), FailingFrom: stampOrNull(l.FailingFrom),
	}
	if l.Chatwoot.Inbox != 0 {
		out.Inbox = new(strconv.FormatInt(l.Chatwoot.Inbox, 10))
	}
	return out
}

// linkChatwoot has no seat while it waits for the Chatwoot server, which may be slow.
func linkChatwoot(ctx context.Context, links *webhook.Links, in *call, p *oneInput, body *chatwootBody) (ChatwootAnswer, error) {
	requested := webhook.NewLink{BaseURL: body.BaseURL, Token: body.Token, Account: body.Account, Inbox: body.Inbox, Faults: in.refused}
	l, err := links.Link(in.unhurried(ctx), p.ID, requested)
	return chatwootOf(l), err
}
