package chatwoot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Limits of one request from Chatwoot, which waits five seconds for the answer.
const (
	maxWebhook  = 1 << 20 // the largest body, in bytes
	webhookWait = 4 * time.Second
	maxAttached = 15 // Chatwoot accepts at most 15 files in one message; each file becomes one message to the person
)

// WebhookConfig is what [NewWebhook] needs. All members must be set.
type WebhookConfig struct {
	Store    Store
	Mark     func(purpose string, parts ...string) string // makes the keyed hash in the address
	ReadBody func(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error)
	// Pace admits a request of a link, or refuses it. Codes: rate_limited. nil: every request is admitted.
	Pace func(id puntuale.WebhookID) error
	// Person parses the number or id of a person. Codes: invalid.
	Person func(ctx context.Context, client puntuale.ClientID, text string) (string, error)
	// Answer sends an agent's message, once for each reference and part. Codes: those of a single send.
	Answer func(ctx context.Context, a AgentMessage) error
	// Sentence returns the reason of a refusal as a sentence for people.
	Sentence func(err error) string
	Clock    clock.Clock
	Logger   *slog.Logger
}

// AgentMessage is a message that an agent wrote in Chatwoot, or one of its files.
type AgentMessage struct {
	Link      puntuale.WebhookID // the link of the Chatwoot server; two servers may give messages the same ids
	Client    puntuale.ClientID
	Session   puntuale.SessionID
	Phone     string
	Text      string
	Media     string // address of a file; "": no file
	MediaName string
	Reference string // identifies the message in Chatwoot
	Part      int    // the file's position, from 0; part 0 also has the text
}

// Webhook is the handler of [puntuale.ChatwootWebhooks], on any node. Chatwoot signs its requests only in late
// versions, and never repeats them. So the address contains a secret. If a message cannot be sent, Chatwoot shows it to
// the agent as failed.
type Webhook struct {
	cfg    WebhookConfig
	bridge *Bridge
	token  func(t *puntuale.WebhookTarget) (string, error)
}

// NewWebhook returns the handler. token decrypts the access token of a link.
func NewWebhook(cfg WebhookConfig, b *Bridge, token func(t *puntuale.WebhookTarget) (string, error)) *Webhook {
	return &Webhook{cfg, b, token}
}

// Expects reports whether a request's address contains the secret.
func (h *Webhook) Expects(r *http.Request) bool { return h.webhookAt(r.URL.Path) != 0 }

// webhookAt returns the webhook of an address, or 0 if the secret is wrong. It needs no database.
func (h *Webhook) webhookAt(at string) puntuale.WebhookID {
	text, _, _ := strings.Cut(strings.TrimPrefix(at, puntuale.ChatwootWebhooks), "/")
	id, err := puntuale.ParseID[puntuale.WebhookID](text)
	if err != nil {
		return 0
	}
	x, y := sha256.Sum256([]byte(at)), sha256.Sum256([]byte(id.ChatwootPath(h.cfg.Mark)))
	if subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
		return 0
	}
	return id
}

// ServeHTTP checks the address before it reads the body.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), webhookWait)
	defer cancel()
	w.Header().Set("Cache-Control", "no-store")
	id := h.webhookAt(r.URL.Path)
	if id == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if h.cfg.Pace != nil && h.cfg.Pace(id) != nil {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	link, err := h.cfg.Store.ChatwootTarget(ctx, id)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound: // the link was removed, but Chatwoot still has the link's address
		w.WriteHeader(http.StatusNotFound)
		return
	case err != nil:
		h.cfg.Logger.Error("a link to Chatwoot could not be read", "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	text, err := h.cfg.ReadBody(w, r, maxWebhook)
	switch puntuale.CodeOf(err) {
	case "":
		w.WriteHeader(h.take(ctx, &link, text))
	case puntuale.CodeTooLarge:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case puntuale.CodeOverloaded, puntuale.CodeRateLimited:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

type attachment struct {
	URL string `json:"data_url"`
}

// name returns the file's name, which is the last part of its address.
func (a attachment) name() string {
	at, _, _ := strings.Cut(a.URL, "?")
	name := path.Base(at)
	if name == "." || name == "/" {
		return ""
	}
	return name
}

type conversation struct {
	Number int64  `json:"id"`
	Inbox  int64  `json:"inbox_id"`
	Status string `json:"status"`
	Meta   struct {
		Sender struct {
			Phone      *string `json:"phone_number"`
			Identifier *string `json:"identifier"`
		} `json:"sender"`
		Assignee *struct {
			ID int64 `json:"id"`
		} `json:"assignee"`
		AssigneeType *string `json:"assignee_type"`
	} `json:"meta"`
}

// sender returns the number or the id of the conversation's person, as Chatwoot has it. "": Chatwoot has neither.
func (c *conversation) sender() string {
	for _, text := range []*string{c.Meta.Sender.Phone, c.Meta.Sender.Identifier} {
		if text != nil && *text != "" {
			return *text
		}
	}
	return ""
}

// assigned reports whether an agent is assigned to the conversation. A robot does not count as an agent. A resolved
// conversation has no agent any more.
func (c *conversation) assigned() bool {
	return c.Meta.Assignee != nil && c.Status != "resolved" && (c.Meta.AssigneeType == nil || *c.Meta.AssigneeType == "User")
}

// take handles an event, and returns the HTTP status of the answer.
func (h *Webhook) take(ctx context.Context, l *puntuale.WebhookTarget, text []byte) int {
	var event struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(text, &event) != nil {
		return http.StatusBadRequest
	}
	switch event.Event {
	case "message_created":
		return h.message(ctx, l, text)
	case "conversation_created", "conversation_updated", "conversation_status_changed":
		return h.assign(ctx, l, text)
	}
	return http.StatusOK
}

// assign stores whether an agent is assigned to the conversation.
func (h *Webhook) assign(ctx context.Context, l *puntuale.WebhookTarget, text []byte) int {
	var c conversation
	if json.Unmarshal(text, &c) != nil {
		return http.StatusBadRequest
	}
	if c.Inbox != l.Chatwoot.Inbox {
		return http.StatusOK
	}
	phone, err := h.person(ctx, l, &c)
	if err == nil && phone != "" {
		err = h.cfg.Store.AssignChatwoot(ctx, l.ID, l.Client, phone, c.assigned(), h.cfg.Clock.Now())
	}
	if err != nil {
		h.cfg.Logger.Error("an assignment in Chatwoot could not be stored", "client_id", l.Client, "session_id", l.Session, "error", err)
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// person returns the person of a conversation, or "" if the person is not known. Our own record of the conversation
// comes first, because an agent may change the contact's number.
func (h *Webhook) person(ctx context.Context, l *puntuale.WebhookTarget, c *conversation) (string, error) {
	phone, err := h.cfg.Store.ChatwootPerson(ctx, l.ID, c.Number)
	if err != nil || phone != "" {
		return phone, err
	}
	phone, err = h.cfg.Person(ctx, l.Client, c.sender())
	if puntuale.CodeOf(err) == puntuale.CodeInvalid {
		return "", nil
	}
	return phone, err
}

// message sends an agent's message to the person. It ignores notes, messages from the person, and Chatwoot's own
// messages.
func (h *Webhook) message(ctx context.Context, l *puntuale.WebhookTarget, text []byte) int {
	var r struct {
		ID           int64         `json:"id"`
		Content      *string       `json:"content"`
		Type         string        `json:"message_type"`
		Private      bool          `json:"private"`
		Source       *string       `json:"source_id"`
		Attachments  []attachment  `json:"attachments"`
		Conversation *conversation `json:"conversation"`
	}
	if json.Unmarshal(text, &r) != nil || r.Conversation == nil {
		return http.StatusBadRequest
	}
	c := r.Conversation
	if r.Type != "outgoing" || r.Private || c.Inbox != l.Chatwoot.Inbox || r.Source != nil && puntuale.IsChatwootPost(*r.Source) {
		return http.StatusOK
	}
	log := h.cfg.Logger.With("client_id", l.Client, "session_id", l.Session, "chatwoot_message", r.ID)
	phone, err := h.person(ctx, l, c)
	if err != nil {
		log.Error("the person of a conversation in Chatwoot could not be found", "error", err)
		return http.StatusServiceUnavailable
	}
	a := AgentMessage{Link: l.ID, Client: l.Client, Session: l.Session, Phone: cmp.Or(phone, c.sender()), Reference: puntuale.ChatwootReference(c.Number, r.ID)}
	if r.Content != nil {
		a.Text = whatsAppOf(*r.Content)
	}
	files := r.Attachments[:min(len(r.Attachments), maxAttached)]
	for a.Part = 0; a.Part < max(1, len(files)); a.Part++ {
		if a.Part < len(files) {
			a.Media, a.MediaName = files[a.Part].URL, files[a.Part].name()
		}
		if err := h.cfg.Answer(ctx, a); err != nil {
			return h.refuse(ctx, log, l, c.Number, r.ID, err)
		}
		a.Text = ""
	}
	return http.StatusOK
}

// refuse shows the agent why a message was not sent. If Chatwoot accepts the reason, refuse returns status 200.
// Otherwise it returns an error status, so that Chatwoot shows the message as failed.
func (h *Webhook) refuse(ctx context.Context, log *slog.Logger, l *puntuale.WebhookTarget, conversation, message int64, cause error) int {
	switch puntuale.CodeOf(cause) {
	case puntuale.CodeInvalid, puntuale.CodeForbidden, puntuale.CodeNotFound, puntuale.CodeConflict, puntuale.CodeRateLimited:
	default:
		log.Error("an agent's message could not be stored", "error", cause)
		return http.StatusServiceUnavailable
	}
	log.Info("an agent's message was refused", "code", puntuale.CodeOf(cause))
	token, err := h.token(l)
	if err == nil {
		err = h.bridge.server(l.URL, l.Chatwoot.Account, token).setStatus(ctx, conversation, message, "failed", h.cfg.Sentence(cause))
	}
	if err != nil {
		var r *refusal
		log.Info("the reason of a refusal could not be shown in Chatwoot", "answered", errors.As(err, &r))
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}
