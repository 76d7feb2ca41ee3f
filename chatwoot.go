package puntuale

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// ChatwootLink hands the conversations of a session over to an inbox of Chatwoot, where a client's people answer together. What a person
// writes goes to the inbox, and what an agent writes there goes to the person. The link's [Webhook] carries the events: its address is the
// server's base address, and its secret is the access token.
type ChatwootLink struct {
	Webhook
	Chatwoot ChatwootInbox
}

// ChatwootInbox names an inbox by its ids in Chatwoot.
type ChatwootInbox struct {
	Account int64
	Inbox   int64 // 0: the link is not finished
}

// ChatwootEvents are what a link tells Chatwoot.
const ChatwootEvents = 1<<EventReplyReceived | 1<<EventMessageSent | 1<<EventMessageDelivered | 1<<EventMessageRead | 1<<EventMessageFailed |
	1<<EventMessageBlacklisted | 1<<EventMessageCancelled

// ChatwootConversation is what a link knows of one person.
type ChatwootConversation struct {
	Webhook      WebhookID
	Client       ClientID
	Phone        string
	Contact      int64  // the contact's id in Chatwoot
	Conversation int64  // the conversation's id in Chatwoot; 0: there is none yet
	Posting      string // the name of what was posted last, stored before the post. A later attempt looks whether it arrived
}

// ChatwootPost names a reply or a message of ours in Chatwoot. Chatwoot stores the name as the message's source_id.
func ChatwootPost(e *Event) string {
	kind := "message"
	if e.Type == EventReplyReceived {
		kind = "reply"
	}
	return "puntuale/" + kind + "/" + strconv.FormatInt(e.Subject, 10)
}

// IsChatwootPost reports whether this service posted the message that has the source_id.
func IsChatwootPost(source string) bool { return strings.HasPrefix(source, "puntuale/") }

// chatwootReference begins the reference of a message that an agent wrote.
const chatwootReference = "chatwoot/"

// ChatwootReference is the reference of the message that sends what an agent wrote.
func ChatwootReference(conversation, message int64) string {
	return chatwootReference + strconv.FormatInt(conversation, 10) + "/" + strconv.FormatInt(message, 10)
}

// ParseChatwootReference returns the conversation and the message in Chatwoot that a reference names.
func ParseChatwootReference(reference string) (conversation, message int64, ok bool) {
	rest, ok := strings.CutPrefix(reference, chatwootReference)
	first, second, both := strings.Cut(rest, "/")
	conversation, err := strconv.ParseInt(first, 10, 64)
	message, err2 := strconv.ParseInt(second, 10, 64)
	return conversation, message, ok && both && err == nil && err2 == nil
}

// ChatwootWebhooks is the beginning of the path that Chatwoot calls. After it come the webhook's id and a secret.
const ChatwootWebhooks = "/webhooks/chatwoot/"

// ChatwootPath returns the path that Chatwoot calls for a link. It ends with a secret: a keyed hash of the webhook's id. Every node can
// compute this hash, so nothing stores it. hash makes the keyed hash of texts for a purpose.
func (id WebhookID) ChatwootPath(hash func(purpose string, parts ...string) string) string {
	return ChatwootWebhooks + id.String() + "/" + hash("webhook of Chatwoot", id.String())
}

// ChatwootStore keeps a client's links. A session has at most one.
type ChatwootStore interface {
	// LinkChatwoot makes the session's link, inactive and without an inbox, or replaces address, account and token of the link that it has.
	// token is sealed for [SealedWebhook] at the place of the webhook's Created moment. Codes: not_found (the session).
	LinkChatwoot(ctx context.Context, l ChatwootLink, token []byte, now time.Time) (ChatwootLink, error)
	// FinishChatwoot stores the inbox and lets events flow. Codes: not_found.
	FinishChatwoot(ctx context.Context, id WebhookID, inbox int64) (ChatwootLink, error)
	ChatwootLink(ctx context.Context, session SessionID) (ChatwootLink, error) // not_found
	// UnlinkChatwoot removes the link and what it knows. Codes: not_found.
	UnlinkChatwoot(ctx context.Context, session SessionID) error
}

// ChatwootConversations is what delivering events to Chatwoot, and taking its calls, needs.
type ChatwootConversations interface {
	// ChatwootTarget returns a finished link with its token, as it is stored. The link may be inactive. Codes: not_found.
	ChatwootTarget(ctx context.Context, id WebhookID) (WebhookTarget, error)
	// ChatwootConversation returns what a link knows of a person, zero if nothing.
	ChatwootConversation(ctx context.Context, id WebhookID, client ClientID, phone string) (ChatwootConversation, error)
	// ChatwootPerson returns the phone of a conversation's person, "" where the link does not know the conversation.
	ChatwootPerson(ctx context.Context, id WebhookID, conversation int64) (string, error)
	// KeepChatwoot stores what a link knows of a person, except whether an agent has the conversation.
	KeepChatwoot(ctx context.Context, c ChatwootConversation) error
	// AssignChatwoot stores whether an agent has the person's conversation now. Meanwhile automations leave the person alone. It changes
	// nothing where the link has no inbox.
	AssignChatwoot(ctx context.Context, id WebhookID, client ClientID, phone string, assigned bool, now time.Time) error
}

// ChatwootCaller calls servers of Chatwoot.
type ChatwootCaller interface {
	// MakeInbox finds the account's inbox whose webhook is address, or makes one by a name. If the link names an inbox, MakeInbox sets the
	// webhook of this one. It returns the inbox's id. Codes: invalid, with a fault at the member of the request that the server refused;
	// unavailable (no usable answer).
	MakeInbox(ctx context.Context, l ChatwootLink, token, name, address string) (int64, error)
	// Tell tells an event. repeat says that an earlier attempt failed, so that Chatwoot may have the event already. status is the HTTP status of the answer that decided, or 204 where Chatwoot need not know. err: there was no
	// answer.
	Tell(ctx context.Context, t *WebhookTarget, token string, e *Event, repeat bool) (ChatwootAnswer, error)
}

// ChatwootAnswer is what a server of Chatwoot answered.
type ChatwootAnswer struct {
	Status     int
	Text       string // the beginning of the body
	RetryAfter string // the header
}

// Why a server of Chatwoot did not take a call.
const (
	FaultChatwootToken   ReasonCode = "chatwoot.token"   // the access token is wrong, or may not make inboxes
	FaultChatwootMissing ReasonCode = "chatwoot.missing" // there is no such account or inbox
	FaultChatwootAnswer  ReasonCode = "chatwoot.answer"  // no answer, or not the one of Chatwoot; arg: the status, 0: none
)
