package puntuale

import (
	"context"
	"strconv"
	"strings"
)

// ChatwootLink joins a session with an inbox of Chatwoot, in which a client's people answer together. Messages from
// people go to the inbox. Messages that agents write there go to the people. The link uses a [Webhook] for its events.
// The webhook's address is the base address of the Chatwoot server, and its secret is the access token.
type ChatwootLink struct {
	Webhook
	Chatwoot ChatwootInbox
}

// ChatwootInbox names an inbox by its ids in Chatwoot.
type ChatwootInbox struct {
	Account int64
	Inbox   int64 // 0: the link is not finished
}

// ChatwootEvents are the types of events that a link reports to Chatwoot.
const ChatwootEvents = 1<<EventReplyReceived | 1<<EventMessageSent | 1<<EventMessageDelivered | 1<<EventMessageRead | 1<<EventMessageFailed |
	1<<EventMessageBlacklisted | 1<<EventMessageCancelled

// ChatwootConversation is what a link stores about one person.
type ChatwootConversation struct {
	Webhook      WebhookID
	Client       ClientID
	Phone        string
	Contact      int64  // the contact's id in Chatwoot
	Conversation int64  // the conversation's id in Chatwoot; 0: there is none yet
	Posting      string // name of the last post, stored before the post is made; a later attempt asks Chatwoot whether this post arrived
}

// ChatwootPost returns the name under which a reply, or one of our messages, is posted to Chatwoot. Chatwoot stores
// this name as the message's source_id.
func ChatwootPost(e *Event) string {
	kind := "message"
	if e.Type == EventReplyReceived {
		kind = "reply"
	}
	return "puntuale/" + kind + "/" + strconv.FormatInt(e.Subject, 10)
}

// IsChatwootPost reports whether this service posted the message with this source_id.
func IsChatwootPost(source string) bool { return strings.HasPrefix(source, "puntuale/") }

// chatwootReference is the beginning of the reference of every message that an agent wrote.
const chatwootReference = "chatwoot/"

// ChatwootReference returns the reference of the message that sends an agent's text.
func ChatwootReference(conversation, message int64) string {
	return chatwootReference + strconv.FormatInt(conversation, 10) + "/" + strconv.FormatInt(message, 10)
}

// ParseChatwootReference returns Chatwoot's ids of the conversation and of the message in a reference.
func ParseChatwootReference(reference string) (conversation, message int64, ok bool) {
	rest, ok := strings.CutPrefix(reference, chatwootReference)
	first, second, both := strings.Cut(rest, "/")
	conversation, err := strconv.ParseInt(first, 10, 64)
	message, err2 := strconv.ParseInt(second, 10, 64)
	return conversation, message, ok && both && err == nil && err2 == nil
}

// ChatwootWebhooks is the beginning of the path that Chatwoot calls. The webhook's id and a secret follow.
const ChatwootWebhooks = "/webhooks/chatwoot/"

// ChatwootPath returns the path that Chatwoot calls for a link. The path ends with a secret: a keyed hash of the
// webhook's id. Every node can compute this hash, so nothing stores it. The argument hash is the vault's method Mark.
func (id WebhookID) ChatwootPath(hash func(purpose string, parts ...string) string) string {
	return ChatwootWebhooks + id.String() + "/" + hash("webhook of Chatwoot", id.String())
}

// ChatwootCaller sends requests to Chatwoot servers.
type ChatwootCaller interface {
	// MakeInbox returns the id of the account's inbox whose webhook is address. If there is no such inbox, MakeInbox
	// creates one with the given name. If the link already has an inbox, MakeInbox sets the webhook of that inbox.
	// Codes: invalid, with a fault at the part of the request that the server refused; also if there is no usable answer.
	// rate_limited and overloaded, if too many links are made at once, or if memory is short.
	MakeInbox(ctx context.Context, l ChatwootLink, token, name, address string) (int64, error)
	// SendEvent reports an event to Chatwoot. The argument repeat is true if an earlier attempt failed, because
	// Chatwoot may then have the event already. The answer's Status is the HTTP status of the request that decided the
	// result, or 204 if Chatwoot does not need the event. An error means that there was no answer.
	SendEvent(ctx context.Context, t *WebhookTarget, token string, e *Event, repeat bool) (ChatwootAnswer, error)
}

// ChatwootAnswer is the answer of a Chatwoot server.
type ChatwootAnswer struct {
	Status     int
	Text       string // the beginning of the body
	RetryAfter string // value of the header Retry-After; "": none
}

// Reasons why a Chatwoot server did not accept a request.
const (
	FaultChatwootToken   ReasonCode = "chatwoot.token"   // the access token is wrong, or may not create inboxes
	FaultChatwootMissing ReasonCode = "chatwoot.missing" // there is no such account or inbox
	FaultChatwootAnswer  ReasonCode = "chatwoot.answer"  // no answer, or an answer that is not from Chatwoot; {1}: the HTTP status, or 0 without an answer
)
