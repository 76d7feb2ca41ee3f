package chatwoot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/outside"
)

// Config is what [New] needs. Store, HTTP and Message must be set.
type Config struct {
	Store  Store
	HTTP   http.RoundTripper    // must reach only addresses that the operator permits
	Memory outside.MemoryGrants // pays for the answers that no call waits for; nil: they are only bounded
	Within time.Duration        // the time limit for all requests of one event; default [defaultWithin]
	// Open fetches the file of a reply. nil: Chatwoot gets only the file's name.
	Open func(ctx context.Context, client puntuale.ClientID, r puntuale.Reply) (*puntuale.ReplyFile, error)
	// Message returns a client's message with its content. Codes: not_found.
	Message func(ctx context.Context, client puntuale.ClientID, id puntuale.MessageID) (puntuale.MessageDetail, error)
	// Name returns the name of a client's contact, or "" if it is not known. nil: no name is known.
	Name func(ctx context.Context, client puntuale.ClientID, phone string) string
}

const (
	defaultWithin = 30 * time.Second
	filesAtOnce   = 2
	maxFile       = 40 << 20 // the largest reply's file that is sent, in bytes; Chatwoot accepts 40 MB
)

// Bridge sends events to Chatwoot. It is safe for concurrent use. Each link has one attempt at a time, because the
// sender of events never makes two attempts for a link at the same time.
type Bridge struct {
	cfg   Config
	files chan struct{} // limits how many files are in memory
}

var _ puntuale.ChatwootCaller = (*Bridge)(nil)

// New returns a bridge.
func New(cfg Config) *Bridge {
	cfg.Within = cmp.Or(cfg.Within, defaultWithin)
	return &Bridge{cfg: cfg, files: make(chan struct{}, filesAtOnce)}
}

// notSent is the answer for an event that is not sent to Chatwoot, or whose object Chatwoot no longer has. It says
// nothing about the link. Chatwoot itself never gives this answer.
var notSent = puntuale.ChatwootAnswer{Status: http.StatusNoContent}

// SendEvent sends one event to Chatwoot; see [puntuale.ChatwootCaller].
func (b *Bridge) SendEvent(ctx context.Context, t *puntuale.WebhookTarget, token string, e *puntuale.Event, repeat bool) (puntuale.ChatwootAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Within)
	defer cancel()
	ctx, done := b.cfg.Memory.Client(ctx, e.Client)
	defer done()
	w := &eventAttempt{b: b, s: b.server(t.URL, t.Chatwoot.Account, token), t: t, e: e, repeat: repeat}
	err := w.send(ctx)
	var r *refusal
	switch {
	case errors.As(err, &r):
		return r.ChatwootAnswer, nil
	case err != nil:
		return puntuale.ChatwootAnswer{}, err
	case !w.accepted:
		return notSent, nil
	}
	return puntuale.ChatwootAnswer{Status: http.StatusOK}, nil
}

// eventAttempt is one attempt to send an event to Chatwoot.
type eventAttempt struct {
	b *Bridge
	s *server
	t *puntuale.WebhookTarget
	e *puntuale.Event

	repeat   bool // an earlier attempt failed
	accepted bool
}

func (w *eventAttempt) send(ctx context.Context) error {
	switch m, y := w.e.Message, w.e.Reply; {
	case y != nil && y.Phone != "" && !y.Own:
		return w.reply(ctx, y)
	case m == nil || m.Phone == "":
		return nil
	default:
		if conversation, message, ok := puntuale.ParseChatwootReference(m.Reference); ok {
			return w.status(ctx, conversation, message, m)
		}
		return w.note(ctx, m)
	}
}

// statuses are the names of message statuses in Chatwoot.
var statuses = map[puntuale.EventType]string{
	puntuale.EventMessageDelivered:   "delivered",
	puntuale.EventMessageRead:        "read",
	puntuale.EventMessageFailed:      "failed",
	puntuale.EventMessageBlacklisted: "failed",
	puntuale.EventMessageCancelled:   "failed",
}

// status shows agents the delivery status of an agent's message.
func (w *eventAttempt) status(ctx context.Context, conversation, message int64, m *puntuale.MessageDetail) error {
	status := statuses[w.e.Type]
	if status == "" {
		return nil
	}
	reason := ""
	if status == "failed" {
		reason = catalogue.Italian.Sentence(m.Response())
	}
	return w.missing(w.s.setStatus(ctx, conversation, message, status, reason))
}

func (s *server) setStatus(ctx context.Context, conversation, message int64, status, reason string) error {
	in := map[string]any{"status": status}
	if reason != "" {
		in["external_error"] = reason
	}
	return s.call(ctx, http.MethodPatch, fmt.Sprintf("/conversations/%d/messages/%d", conversation, message), in, nil)
}

// missing returns nil if the error says that an object no longer exists in Chatwoot. It returns any other error.
func (w *eventAttempt) missing(err error) error {
	var r *refusal
	if errors.As(err, &r) && r.Status == http.StatusNotFound {
		return nil
	}
	w.accepted = err == nil
	return err
}

// note posts a private note with the text of a message that Puntuale sent, if the person has a conversation. Chatwoot
// never sends a private note to the person as an agent's message.
func (w *eventAttempt) note(ctx context.Context, m *puntuale.MessageDetail) error {
	if w.e.Type != puntuale.EventMessageSent {
		return nil
	}
	c, err := w.b.cfg.Store.ChatwootConversation(ctx, w.t.ID, w.e.Client, m.Phone)
	if err != nil || c.Conversation == 0 {
		return err
	}
	full, err := w.b.cfg.Message(ctx, w.e.Client, m.ID)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound || err == nil && full.Blanked {
		return nil
	}
	if err != nil {
		return err
	}
	return w.missing(w.post(ctx, &c, chatMessage{text: noteOf(&full), kind: "outgoing", private: true}))
}

// noteOf returns the text of a note.
func noteOf(m *puntuale.MessageDetail) string {
	lines := []string{markdownOf(m.Content.Shown())}
	if _, uploaded := puntuale.UploadedFile(m.Content.MediaURL); uploaded { // nobody can open its address there
		lines = append(lines, "📎 "+markdownOf(cmp.Or(m.Content.MediaName, puntuale.MediaKind(m.Content.MediaURL))))
	} else if m.Content.MediaURL != "" {
		lines = append(lines, m.Content.MediaURL)
	}
	if m.Content.Latitude != nil && m.Content.Longitude != nil {
		lines = append(lines, puntuale.LocationText("", "", *m.Content.Latitude, *m.Content.Longitude))
	}
	title := "Puntuale"
	if name := cmp.Or(m.SequenceName, m.RunName); name != "" {
		title += ", " + name
	}
	return "**" + title + "**\n" + strings.TrimSpace(strings.Join(lines, "\n"))
}

// reply posts a reply. If its conversation no longer exists in Chatwoot, reply makes another one.
func (w *eventAttempt) reply(ctx context.Context, y *puntuale.Reply) error {
	c, err := w.b.cfg.Store.ChatwootConversation(ctx, w.t.ID, w.e.Client, y.Phone)
	if err != nil {
		return err
	}
	p := chatMessage{text: markdownOf(y.Text), kind: "incoming"}
	if y.Media != nil {
		p.file, err = w.open(ctx, y)
		if err != nil {
			return err
		}
		if p.file != nil {
			defer p.file.Close()
		} else {
			p.text = strings.TrimSpace(p.text + "\n[" + cmp.Or(y.Media.Name, string(y.Kind)) + "]")
		}
		p.name, p.media = cmp.Or(y.Media.Name, string(y.Kind)), y.Media.Type
	}
	if p.text == "" && p.file == nil {
		p.text = "[" + string(y.Kind) + "]"
	}
	if c.Conversation != 0 {
		err = w.post(ctx, &c, p)
		var r *refusal
		if !errors.As(err, &r) || r.Status != http.StatusNotFound {
			w.accepted = err == nil
			return err
		}
		c.Contact, c.Conversation = 0, 0
	}
	if err := w.converse(ctx, &c); err != nil {
		return err
	}
	err = w.post(ctx, &c, p)
	w.accepted = err == nil
	return err
}

// open fetches the file of a reply. It returns nil if the file no longer exists or is too large. Then Chatwoot gets
// only the file's name.
func (w *eventAttempt) open(ctx context.Context, y *puntuale.Reply) (*puntuale.ReplyFile, error) {
	if w.b.cfg.Open == nil || y.Media.Size > maxFile {
		return nil, nil
	}
	f, err := w.b.cfg.Open(ctx, w.e.Client, *y)
	switch puntuale.CodeOf(err) {
	case "":
	case puntuale.CodeGone, puntuale.CodeNotFound, puntuale.CodeTooLarge:
		return nil, nil
	default:
		return nil, err
	}
	if f.Size > maxFile {
		_ = f.Close()
		return nil, nil
	}
	return f, nil
}

// converse finds or makes the person's contact and conversation, and stores their ids.
func (w *eventAttempt) converse(ctx context.Context, c *puntuale.ChatwootConversation) error {
	source, err := w.contact(ctx, c)
	if err != nil {
		return err
	}
	var all struct {
		Payload []struct {
			ID    int64 `json:"id"`
			Inbox int64 `json:"inbox_id"`
		} `json:"payload"`
	}
	if err := w.s.call(ctx, http.MethodGet, fmt.Sprintf("/contacts/%d/conversations", c.Contact), nil, &all); err != nil {
		return err
	}
	for _, existing := range all.Payload {
		if existing.Inbox == w.t.Chatwoot.Inbox {
			c.Conversation = max(c.Conversation, existing.ID)
		}
	}
	if c.Conversation == 0 {
		var made struct {
			ID int64 `json:"id"`
		}
		if err := w.s.call(ctx, http.MethodPost, "/conversations", map[string]any{"source_id": source, "inbox_id": w.t.Chatwoot.Inbox, "contact_id": c.Contact, "status": "open"}, &made); err != nil {
			return err
		}
		c.Conversation = made.ID
	}
	return w.b.cfg.Store.StoreChatwootConversation(ctx, *c)
}

// contact is a contact in Chatwoot's JSON.
type contact struct {
	ID         int64          `json:"id"`
	Phone      *string        `json:"phone_number"`
	Identifier *string        `json:"identifier"`
	Inboxes    []contactInbox `json:"contact_inboxes"`
}

// contactInbox is the entry of a contact in one inbox.
type contactInbox struct {
	Source string `json:"source_id"`
	Inbox  struct {
		ID int64 `json:"id"`
	} `json:"inbox"`
}

// contact finds or makes the person's contact, and returns the contact's source_id in the inbox. In an account of
// Chatwoot no two contacts have the same number or the same identifier.
func (w *eventAttempt) contact(ctx context.Context, c *puntuale.ChatwootConversation) (source string, err error) {
	var found struct {
		Payload []contact `json:"payload"`
	}
	if err := w.s.call(ctx, http.MethodGet, "/contacts/search?q="+url.QueryEscape(c.Phone), nil, &found); err != nil {
		return "", err
	}
	for _, existing := range found.Payload {
		if (existing.Phone == nil || *existing.Phone != c.Phone) && (existing.Identifier == nil || *existing.Identifier != c.Phone) {
			continue
		}
		c.Contact = existing.ID
		for _, at := range existing.Inboxes {
			if at.Inbox.ID == w.t.Chatwoot.Inbox {
				return at.Source, nil
			}
		}
		var made contactInbox
		err := w.s.call(ctx, http.MethodPost, fmt.Sprintf("/contacts/%d/contact_inboxes", c.Contact), map[string]any{"inbox_id": w.t.Chatwoot.Inbox}, &made)
		return made.Source, err
	}
	name := c.Phone
	if w.b.cfg.Name != nil {
		name = cmp.Or(w.b.cfg.Name(ctx, c.Client, c.Phone), name)
	}
	in := map[string]any{"inbox_id": w.t.Chatwoot.Inbox, "name": name}
	if strings.HasPrefix(c.Phone, "+") {
		in["phone_number"] = c.Phone
	} else {
		in["identifier"] = c.Phone
	}
	var made struct {
		Payload struct {
			Contact      contact      `json:"contact"`
			ContactInbox contactInbox `json:"contact_inbox"`
		} `json:"payload"`
	}
	if err := w.s.call(ctx, http.MethodPost, "/contacts", in, &made); err != nil {
		return "", err
	}
	c.Contact = made.Payload.Contact.ID
	return made.Payload.ContactInbox.Source, nil
}

// chatMessage is a message to post in a conversation.
type chatMessage struct {
	text        string
	kind        string // incoming or outgoing
	private     bool
	file        *puntuale.ReplyFile // nil: no file
	name, media string              // the file's name and media type
}

// post posts a message once. Chatwoot does not recognise repeats. So after a failed attempt, post checks whether the
// message arrived. If this process ends during a post, no failed attempt is recorded. Therefore post first stores the
// message's name. An attempt that finds this name in the store also checks whether the message arrived.
func (w *eventAttempt) post(ctx context.Context, c *puntuale.ChatwootConversation, p chatMessage) error {
	name := puntuale.ChatwootPost(w.e)
	at := fmt.Sprintf("/conversations/%d/messages", c.Conversation)
	if w.repeat || c.Posting == name {
		arrived, err := w.arrived(ctx, at, name)
		if err != nil || arrived {
			return err
		}
	}
	if c.Posting != name {
		c.Posting = name
		if err := w.b.cfg.Store.StoreChatwootConversation(ctx, *c); err != nil {
			return err
		}
	}
	if p.file == nil {
		return w.s.call(ctx, http.MethodPost, at, map[string]any{"content": p.text, "message_type": p.kind, "private": p.private, "source_id": name}, nil)
	}
	select {
	case w.b.files <- struct{}{}:
		defer func() { <-w.b.files }()
	case <-ctx.Done():
		return fmt.Errorf("wait for a file's turn: %w", ctx.Err())
	}
	send, err := form(p, name)
	if err != nil {
		return err
	}
	return w.s.send(ctx, http.MethodPost, at, send, nil)
}

// arrived reports whether one of the conversation's latest messages has the name. Chatwoot lists the latest 20.
func (w *eventAttempt) arrived(ctx context.Context, at, name string) (bool, error) {
	var latest struct {
		Payload []struct {
			Source *string `json:"source_id"`
		} `json:"payload"`
	}
	if err := w.s.call(ctx, http.MethodGet, at, nil, &latest); err != nil {
		return false, err
	}
	for _, m := range latest.Payload {
		if m.Source != nil && *m.Source == name {
			return true, nil
		}
	}
	return false, nil
}

// form returns a message with its file as an HTML form. It reads the file, at most [maxFile] bytes, into memory.
func form(p chatMessage, name string) (body, error) {
	var b bytes.Buffer
	f := multipart.NewWriter(&b)
	for _, field := range [][2]string{{"content", p.text}, {"message_type", p.kind}, {"private", strconv.FormatBool(p.private)}, {"source_id", name}} {
		if err := f.WriteField(field[0], field[1]); err != nil {
			return body{}, fmt.Errorf("write a form: %w", err)
		}
	}
	part, err := f.CreatePart(fileHeader(p.name, p.media))
	if err == nil {
		_, err = io.Copy(part, io.LimitReader(p.file, maxFile))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return body{}, fmt.Errorf("write a file into a form: %w", err)
	}
	return body{f.FormDataContentType(), &b, int64(b.Len())}, nil
}

var quoted = strings.NewReplacer(`\`, `_`, `"`, `_`, "\r", "_", "\n", "_")

func fileHeader(name, kind string) map[string][]string {
	return map[string][]string{
		"Content-Disposition": {`form-data; name="attachments[]"; filename="` + quoted.Replace(name) + `"`},
		"Content-Type":        {cmp.Or(quoted.Replace(kind), "application/octet-stream")},
	}
}
