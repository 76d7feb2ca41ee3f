package chatwoot

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods that deliver events to Chatwoot and handle Chatwoot's requests.
type Store interface {
	// ChatwootTarget returns a finished link with its sealed token. The link may be inactive. Codes: not_found.
	ChatwootTarget(ctx context.Context, id puntuale.WebhookID) (puntuale.WebhookTarget, error)
	// ChatwootConversation returns what a link stores about a person, or the zero value if it stores nothing.
	ChatwootConversation(ctx context.Context, id puntuale.WebhookID, client puntuale.ClientID, phone string) (puntuale.ChatwootConversation, error)
	// ChatwootPerson returns the phone of the person in a conversation. It returns "" if the link does not know the
	// conversation.
	ChatwootPerson(ctx context.Context, id puntuale.WebhookID, conversation int64) (string, error)
	// StoreChatwootConversation stores c, except whether the conversation is assigned to an agent.
	StoreChatwootConversation(ctx context.Context, c puntuale.ChatwootConversation) error
	// AssignChatwoot stores whether an agent is assigned to the person's conversation now. While an agent is assigned,
	// automations do not act for the person. If the link has no inbox, or if the client does not know the person,
	// AssignChatwoot changes nothing.
	AssignChatwoot(ctx context.Context, id puntuale.WebhookID, client puntuale.ClientID, phone string, assigned bool, now time.Time) error
}
