package event

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

const linkColumns = webhookColumns + `, l.account_id, l.inbox_id`

func linkFields(l *puntuale.ChatwootLink) []any {
	return append(webhookFields(&l.Webhook), &l.Chatwoot.Account, &l.Chatwoot.Inbox)
}

// LinkChatwoot creates the session's link: inactive, and without an inbox. If the session has a link already,
// LinkChatwoot replaces the link's address, account and token. The argument token is sealed for the purpose
// [puntuale.SealedWebhook], at [puntuale.Webhook.SealPlace]. Codes: not_found (the session).
//
// LinkChatwoot stores the link before the first request to Chatwoot. So a later call can finish what an earlier call
// began.
func (s ClientEvents) LinkChatwoot(ctx context.Context, l puntuale.ChatwootLink, token []byte, now time.Time) (made puntuale.ChatwootLink, err error) {
	err = s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := s.lockSession(ctx, a, l.Session); err != nil {
			return nil, err
		}
		partner, err := s.lock(ctx, a)
		if err != nil {
			return nil, err
		}
		made = puntuale.ChatwootLink{}
		found, err := engine.QueryOne(ctx, a, `select `+linkColumns+` from chatwoot_link l join webhook w on w.id = l.webhook_id where l.client_id = $1 and l.session_id = $2 for update of w`,
			[]any{s.client, l.Session}, linkFields(&made)...)
		if err != nil {
			return nil, fmt.Errorf("look for a link to Chatwoot: %w", err)
		}
		if found {
			return nil, s.replaceLink(ctx, a, &made, l, token)
		}
		n, err := engine.NextNumber(ctx, a, "webhook")
		if err != nil {
			return nil, err
		}
		made = l
		made.ID, made.Client, made.Active, made.Chatwoot.Inbox = puntuale.WebhookID(n), s.client, false, 0
		if _, err := a.Exec(ctx, `insert into webhook (id, partner_id, client_id, url, types, session_id, description, active, created_at, secret, secret_before)
 values ($1, $2, $3, $4, $5, $6, '', 0, $7, $8, $9)`, n, partner, s.client, l.URL, int64(puntuale.ChatwootEvents), l.Session, engine.Micros(l.Created), token, []byte{}); err != nil {
			return nil, fmt.Errorf("insert the webhook of a link to Chatwoot: %w", err)
		}
		_, err = a.Exec(ctx, `insert into chatwoot_link (client_id, session_id, webhook_id, account_id) values ($1, $2, $3, $4)`, s.client, l.Session, n, l.Chatwoot.Account)
		return nil, err
	})
	return made, err
}

// replaceLink changes a link's server, token or account at Chatwoot. If the server or the account changes, the ids of
// conversations are not valid any more, and replaceLink deletes them.
func (s ClientEvents) replaceLink(ctx context.Context, a engine.Querier, old *puntuale.ChatwootLink, l puntuale.ChatwootLink, token []byte) error {
	if old.URL != l.URL || old.Chatwoot.Account != l.Chatwoot.Account {
		old.Chatwoot.Inbox = 0
		if _, err := a.Exec(ctx, `delete from chatwoot_conversation where client_id = $1 and webhook_id = $2`, s.client, old.ID); err != nil {
			return fmt.Errorf("forget the conversations of a link to Chatwoot: %w", err)
		}
	}
	old.URL, old.Chatwoot.Account, old.Created, old.Active = l.URL, l.Chatwoot.Account, l.Created, false
	if _, err := a.Exec(ctx, `update webhook set url = $2, secret = $3, created_at = $4, active = 0, disabled_at = 0, reason = '', failing_at = 0 where id = $1`,
		old.ID, l.URL, token, engine.Micros(l.Created)); err != nil {
		return fmt.Errorf("replace the webhook of a link to Chatwoot: %w", err)
	}
	if _, err := a.Exec(ctx, `update chatwoot_link set account_id = $3, inbox_id = $4 where client_id = $1 and session_id = $2`, s.client, l.Session, l.Chatwoot.Account, old.Chatwoot.Inbox); err != nil {
		return fmt.Errorf("replace a link to Chatwoot: %w", err)
	}
	return s.subscribe(ctx, a)
}

// FinishChatwoot stores the inbox and makes the link active. Codes: not_found.
func (s ClientEvents) FinishChatwoot(ctx context.Context, id puntuale.WebhookID, inbox int64) (l puntuale.ChatwootLink, err error) {
	err = s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		if _, err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		n, err := a.Exec(ctx, `update chatwoot_link set inbox_id = $3 where client_id = $1 and webhook_id = $2`, s.client, id, inbox)
		if err := engine.ThereOr(n > 0, err, puntuale.NoChatwoot); err != nil {
			return nil, err
		}
		if _, err := a.Exec(ctx, `update webhook set active = 1 where id = $1 and client_id = $2`, id, s.client); err != nil {
			return nil, fmt.Errorf("let the events of a link to Chatwoot flow: %w", err)
		}
		l = puntuale.ChatwootLink{}
		if _, err := engine.QueryOne(ctx, a, `select `+linkColumns+` from chatwoot_link l join webhook w on w.id = l.webhook_id where l.client_id = $1 and l.webhook_id = $2`,
			[]any{s.client, id}, linkFields(&l)...); err != nil {
			return nil, fmt.Errorf("read a link to Chatwoot: %w", err)
		}
		return nil, s.subscribe(ctx, a)
	})
	return l, err
}

// ChatwootLink reads the link of a session. Codes: not_found.
func (s ClientEvents) ChatwootLink(ctx context.Context, session puntuale.SessionID) (l puntuale.ChatwootLink, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+linkColumns+` from chatwoot_link l join webhook w on w.id = l.webhook_id where l.client_id = $1 and l.session_id = $2`,
		[]any{s.client, session}, linkFields(&l)...)
	return l, engine.FoundOr(found, err, puntuale.NoChatwoot)
}

// UnlinkChatwoot deletes the link and all data that is stored for it. Codes: not_found.
//
// UnlinkChatwoot first deletes the link in one transaction, so the link gets no more events. Then it deletes the link's
// deliveries in chunks.
func (s ClientEvents) UnlinkChatwoot(ctx context.Context, session puntuale.SessionID) error {
	var id puntuale.WebhookID
	if err := s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		if _, err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		found, err := engine.QueryOne(ctx, a, `select l.webhook_id from chatwoot_link l where l.client_id = $1 and l.session_id = $2`, []any{s.client, session}, &id)
		if err := engine.ThereOr(found, err, puntuale.NoChatwoot); err != nil {
			return nil, err
		}
		for _, text := range []string{
			`delete from chatwoot_conversation where client_id = $1 and webhook_id = $2`,
			`delete from chatwoot_link where client_id = $1 and webhook_id = $2`,
			`delete from webhook where client_id = $1 and id = $2`,
		} {
			if _, err := a.Exec(ctx, text, s.client, id); err != nil {
				return nil, fmt.Errorf("delete a link to Chatwoot: %w", err)
			}
		}
		return nil, s.subscribe(ctx, a)
	}); err != nil {
		return err
	}
	return s.forgetDeliveries(ctx, id)
}

// unlinkSessions deletes the links of deleted sessions.
func (s *Events) unlinkSessions(ctx context.Context) error {
	type link struct {
		client  puntuale.ClientID
		session puntuale.SessionID
	}
	all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select l.client_id, l.session_id from chatwoot_link l join session x on x.client_id = l.client_id and x.id = l.session_id
 join client k on k.id = l.client_id where x.deleted_at <> 0 and k.deleted_at = 0`, nil, func(r engine.Row, l *link) error { return r.Scan(&l.client, &l.session) })
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for links of deleted sessions: %w", err))
	}
	for _, l := range all {
		if err := s.OfClient(l.client).UnlinkChatwoot(ctx, l.session); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return err
		}
	}
	return nil
}

// ChatwootTarget does not return the link of a deleted session.
func (s *Events) ChatwootTarget(ctx context.Context, id puntuale.WebhookID) (t puntuale.WebhookTarget, err error) {
	found, err := engine.QueryOne(ctx, s.db.DispatchReads, `select `+webhookColumns+`, `+secretColumns+`, l.account_id, l.inbox_id from chatwoot_link l join webhook w on w.id = l.webhook_id
 join session x on x.client_id = l.client_id and x.id = l.session_id where l.webhook_id = $1 and l.inbox_id <> 0 and x.deleted_at = 0`, []any{id}, targetFields(&t)...)
	return t, engine.FoundOr(found, err, puntuale.NoChatwoot)
}

func (s *Events) ChatwootConversation(ctx context.Context, id puntuale.WebhookID, client puntuale.ClientID, phone string) (puntuale.ChatwootConversation, error) {
	c := puntuale.ChatwootConversation{Webhook: id, Client: client, Phone: phone}
	names, err := alias.Names(ctx, s.db.DispatchReads, client, phone)
	if err != nil {
		return c, engine.PublicError(err)
	}
	_, err = engine.QueryOne(ctx, s.db.DispatchReads, `select c.phone, c.contact_id, c.conversation_id, c.posting from $u(p text) cross join chatwoot_conversation c
 where c.client_id = $1 and c.phone = u.p and c.webhook_id = $2 order by c.conversation_id desc limit 1`, []any{client, id, engine.Columns{names}}, &c.Phone, &c.Contact, &c.Conversation, &c.Posting)
	if err != nil {
		return c, engine.PublicError(fmt.Errorf("read a conversation in Chatwoot: %w", err))
	}
	return c, nil
}

func (s *Events) ChatwootPerson(ctx context.Context, id puntuale.WebhookID, conversation int64) (phone string, err error) {
	if _, err = engine.QueryOne(ctx, s.db.DispatchReads, `select c.phone from chatwoot_conversation c where c.webhook_id = $1 and c.conversation_id = $2 and c.conversation_id <> 0`,
		[]any{id, conversation}, &phone); err != nil {
		return "", engine.PublicError(fmt.Errorf("look for the person of a conversation in Chatwoot: %w", err))
	}
	return phone, nil
}

// writeConversation changes a conversation in a transaction. If the link was deleted, nothing changes.
func (s *Events) writeConversation(ctx context.Context, text string, args ...any) error {
	if err := s.db.EventWriter.Do(ctx, engine.Single(s.end, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, text, args...)
		return err
	}), false); err != nil {
		return fmt.Errorf("store a conversation in Chatwoot: %w", err)
	}
	return nil
}

func (s *Events) StoreChatwootConversation(ctx context.Context, c puntuale.ChatwootConversation) error {
	return s.writeConversation(ctx, `insert into chatwoot_conversation as c (client_id, phone, webhook_id, contact_id, conversation_id, posting)
 select l.client_id, $2::text, l.webhook_id, $4::bigint, $5::bigint, $6::text from chatwoot_link l where l.client_id = $1 and l.webhook_id = $3
 on conflict (client_id, phone, webhook_id) do update set contact_id = excluded.contact_id, conversation_id = excluded.conversation_id, posting = excluded.posting`,
		c.Client, c.Phone, c.Webhook, c.Contact, c.Conversation, c.Posting)
}

func (s *Events) AssignChatwoot(ctx context.Context, id puntuale.WebhookID, client puntuale.ClientID, phone string, assigned bool, now time.Time) error {
	at := now
	if !assigned {
		at = time.Time{}
	}
	return s.writeConversation(ctx, `insert into chatwoot_conversation as c (client_id, phone, webhook_id, assigned_at)
 select l.client_id, $2::text, l.webhook_id, $4::bigint from chatwoot_link l where l.client_id = $1 and l.webhook_id = $3 and l.inbox_id <> 0
 and (exists (select 1 from chatwoot_conversation k where k.client_id = $1 and k.phone = $2 and k.webhook_id = $3)
  or exists (select 1 from person k where k.client_id = $1 and k.phone = $2) or exists (select 1 from conversation k where k.client_id = $1 and k.phone = $2)
  or exists (select 1 from run k where k.client_id = $1 and k.phone = $2))
 on conflict (client_id, phone, webhook_id) do update set assigned_at = case when excluded.assigned_at = 0 or c.assigned_at = 0 then excluded.assigned_at else c.assigned_at end`,
		client, phone, id, engine.Micros(at))
}
