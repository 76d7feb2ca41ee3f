package webhook

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Links gives access to a client's links to Chatwoot.
type Links struct {
	cfg    Config
	client *control.Client
	store  puntuale.Tenant
}

// LinksOf returns a client's links.
func (d *Webhooks) LinksOf(c *control.Client) *Links {
	return &Links{d.cfg, c, d.cfg.Tenants.Tenant(c.ID())}
}

// NewLink is a request to link a session with an inbox of Chatwoot.
type NewLink struct {
	BaseURL string // the address of the Chatwoot server
	Token   string // the access token of an administrator
	Account string // the account's id in Chatwoot
	Inbox   string // the id of an inbox of the channel API; "": the current inbox, or a new one if there is none
	Faults  []puntuale.Fault
}

// maxToken bounds an access token, in characters. Chatwoot's tokens have 24.
const maxToken = 512

const (
	faultChatwootNoPublic puntuale.ReasonCode = "chatwoot.no_public"
	faultChatwootNotID    puntuale.ReasonCode = "chatwoot.not_id"
)

// Link sends the session's conversations to Chatwoot from now on. It can also replace the server, the account or the
// token of an existing link. If Chatwoot refuses the new values, a working link does not change. If an earlier call
// failed before its end, a repeat finishes it. Codes: forbidden, not_found (the session), invalid (also for values that
// the Chatwoot server refused), conflict (this server has no public address), rate_limited (another link of the client
// waits for its server).
func (l *Links) Link(ctx context.Context, session string, r NewLink) (puntuale.ChatwootLink, error) {
	if err := l.client.MayCreate(); err != nil {
		return puntuale.ChatwootLink{}, err
	}
	s, err := l.client.Session(ctx, session)
	if err != nil {
		return puntuale.ChatwootLink{}, err
	}
	f := request.Faults(r.Faults)
	link := l.check(ctx, &f, r)
	if err := f.Err(); err != nil {
		return link, err
	}
	if l.cfg.Public == "" || l.cfg.Chatwoot == nil {
		return link, puntuale.Conflict(faultChatwootNoPublic)
	}
	leave, err := l.client.BeginLink(ctx)
	if err != nil {
		return link, err
	}
	defer leave()
	link.Session, link.Client, link.Created = s.ID, l.client.ID(), l.cfg.Clock.Now()
	token := strings.TrimSpace(r.Token)
	old, err := l.store.ChatwootLink(ctx, s.ID)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return link, fmt.Errorf("read a link to Chatwoot: %w", err)
	}
	link.ID = old.ID
	if !old.Active {
		if link.ID, err = l.keep(ctx, link, token); err != nil {
			return link, err
		}
	}
	inbox, err := l.cfg.Chatwoot.MakeInbox(ctx, link, token, "WhatsApp "+s.Name, strings.TrimRight(l.cfg.Public, "/")+link.ID.ChatwootPath(l.cfg.Vault.Mark))
	if err != nil {
		return link, fmt.Errorf("make an inbox in Chatwoot: %w", err)
	}
	if old.Active { // the old link works, so it is changed only after Chatwoot accepted the new values
		if _, err = l.keep(ctx, link, token); err != nil {
			return link, err
		}
	}
	link, err = l.store.FinishChatwoot(ctx, link.ID, inbox)
	if err != nil {
		return link, fmt.Errorf("finish a link to Chatwoot: %w", err)
	}
	return link, nil
}

// keep stores a link without its inbox, and returns the id of its webhook.
func (l *Links) keep(ctx context.Context, link puntuale.ChatwootLink, token string) (puntuale.WebhookID, error) {
	made, err := l.store.LinkChatwoot(ctx, link, l.cfg.Vault.Seal(puntuale.SealedWebhook, link.SealPlace(), []byte(token)), link.Created)
	if err != nil {
		return 0, fmt.Errorf("store a link to Chatwoot: %w", err)
	}
	return made.ID, nil
}

// check parses a request, and adds its faults to f.
func (l *Links) check(ctx context.Context, f *request.Faults, r NewLink) (link puntuale.ChatwootLink) {
	link.URL = strings.TrimRight(strings.TrimSpace(r.BaseURL), "/")
	checkAddress(ctx, f, "body.base_url", link.URL, l.cfg.Caller)
	switch token := strings.TrimSpace(r.Token); {
	case token == "":
		f.Add("body.api_access_token", puntuale.FaultRequired, nil)
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		f.Add("body.api_access_token", puntuale.FaultChatwootToken, nil)
	default:
		f.Text("body.api_access_token", token, maxToken)
	}
	if r.Account == "" {
		f.Add("body.account_id", puntuale.FaultRequired, nil)
	} else {
		link.Chatwoot.Account = number(f, "body.account_id", r.Account)
	}
	if r.Inbox != "" {
		link.Chatwoot.Inbox = number(f, "body.inbox_id", r.Inbox)
	}
	return link
}

func number(f *request.Faults, at, text string) int64 {
	n, err := puntuale.ParseID[int64](strings.TrimSpace(text))
	if err != nil {
		f.Add(at, faultChatwootNotID, text)
	}
	return n
}

// Read returns the session's link. Codes: not_found.
func (l *Links) Read(ctx context.Context, session string) (puntuale.ChatwootLink, error) {
	id, err := puntuale.ParseID[puntuale.SessionID](session)
	if err != nil {
		return puntuale.ChatwootLink{}, puntuale.NotFound(puntuale.NoChatwoot)
	}
	link, err := l.store.ChatwootLink(ctx, id)
	if err != nil {
		return link, fmt.Errorf("read a link to Chatwoot: %w", err)
	}
	return link, nil
}

// Unlink ends the session's link. The inbox and its contents remain in Chatwoot. Codes: not_found.
func (l *Links) Unlink(ctx context.Context, session string) error {
	link, err := l.Read(ctx, session)
	if err != nil {
		return err
	}
	if err := l.store.UnlinkChatwoot(ctx, link.Session); err != nil {
		return fmt.Errorf("remove a link to Chatwoot: %w", err)
	}
	return nil
}
