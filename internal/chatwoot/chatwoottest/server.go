// Package chatwoottest is a strict simulation of a Chatwoot server, made from Chatwoot's documentation. It has a ledger
// of inboxes, contacts, conversations and messages, and calls the webhooks of its inboxes.
package chatwoottest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Token is the access token of the account's administrator.
const Token = "chatwoot-token-of-an-admin"

// Account is the id of the only account.
const Account = 3

// Server is a server with one account. Many goroutines may call its methods at the same time.
type Server struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	inboxes  []*Inbox
	contacts []*contact
	talks    []*Conversation
	messages []*Message
	lose     int // how many further posts get no answer
	status   int // the HTTP status of all answers; 0: the usual answers
	rewrite  func(address string) string
	last     int64
	looks    int
}

// Inbox is an inbox of the channel API.
type Inbox struct {
	ID      int64
	Name    string
	Webhook string
}

type contact struct {
	id                int64
	name              string
	phone, identifier string
	seats             map[int64]string // the source_id in each inbox, by inbox id
}

// Conversation is a conversation of a contact in an inbox.
type Conversation struct {
	ID, Contact, Inbox int64
	Status             string
	Assignee           int64 // id of the agent; 0: nobody
	Deleted            bool
}

// Message is a message of a conversation.
type Message struct {
	ID, Conversation int64
	Text, Kind       string // Kind is incoming or outgoing
	Private          bool
	Source           string
	Status, Error    string
	File             []byte
	FileName         string
}

// New starts a server, which stops at the end of the test.
func New(t testing.TB) *Server {
	s := &Server{t: t}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Rewrite sets a function that changes the address of each webhook before the call.
func (s *Server) Rewrite(f func(address string) string) { s.locked(func() { s.rewrite = f }) }

// LoseAnswers stores the next n posted messages, but breaks their connections without an answer.
func (s *Server) LoseAnswers(n int) { s.locked(func() { s.lose = n }) }

// AnswerAll makes the server answer every request with this HTTP status. After AnswerAll(0), the server answers as
// usual again.
func (s *Server) AnswerAll(status int) { s.locked(func() { s.status = status }) }

func (s *Server) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Inboxes returns all inboxes.
func (s *Server) Inboxes() (all []Inbox) {
	s.locked(func() {
		for _, i := range s.inboxes {
			all = append(all, *i)
		}
	})
	return all
}

// Messages returns the messages of all conversations with a contact's number, oldest first.
func (s *Server) Messages(phone string) (all []Message) {
	s.locked(func() {
		for _, m := range s.messages {
			if c := s.talk(m.Conversation); s.contact(c.Contact).phone == phone {
				all = append(all, *m)
			}
		}
	})
	return all
}

// Conversations returns the conversations with a contact's number.
func (s *Server) Conversations(phone string) (all []Conversation) {
	s.locked(func() {
		for _, c := range s.talks {
			if s.contact(c.Contact).phone == phone {
				all = append(all, *c)
			}
		}
	})
	return all
}

// Message returns a message by its id.
func (s *Server) Message(id int64) (found Message) {
	s.locked(func() {
		for _, m := range s.messages {
			if m.ID == id {
				found = *m
			}
		}
	})
	return found
}

// AddContact adds a contact that is in no inbox yet.
func (s *Server) AddContact(name, phone string) {
	s.locked(func() {
		s.contacts = append(s.contacts, &contact{id: s.next(), name: name, phone: phone, seats: map[int64]string{}})
	})
}

// ContactName returns the name of the contact with a number, or "".
func (s *Server) ContactName(phone string) (name string) {
	s.locked(func() {
		for _, c := range s.contacts {
			if c.phone == phone {
				name = c.name
			}
		}
	})
	return name
}

// SetPhone changes a contact's number, as an agent may.
func (s *Server) SetPhone(from, to string) {
	s.locked(func() {
		for _, c := range s.contacts {
			if c.phone == from {
				c.phone = to
			}
		}
	})
}

// Delete deletes a conversation.
func (s *Server) Delete(id int64) { s.locked(func() { s.talk(id).Deleted = true }) }

// Say writes an agent's message into a conversation, and calls the webhook. It returns the message's id.
func (s *Server) Say(conversation int64, text string, private bool, files ...string) int64 {
	var m *Message
	s.locked(func() {
		m = &Message{ID: s.next(), Conversation: conversation, Text: text, Kind: "outgoing", Private: private, Status: "sent"}
		s.messages = append(s.messages, m)
	})
	s.Repeat(m.ID, files...)
	return m.ID
}

// Repeat calls the webhook for a message again. If the webhook refuses the message, the message's status becomes
// failed.
func (s *Server) Repeat(id int64, files ...string) {
	var payload map[string]any
	var hook string
	s.locked(func() {
		for _, m := range s.messages {
			if m.ID == id {
				payload = s.messagePayload(m, files)
				hook = s.hook(s.talk(m.Conversation).Inbox)
			}
		}
	})
	if status := s.post(hook, payload); status != http.StatusOK {
		s.locked(func() {
			for _, m := range s.messages {
				if m.ID == id {
					m.Status, m.Error = "failed", strconv.Itoa(status)
				}
			}
		})
	}
}

// Assign sets a conversation's agent (0: nobody) and status, and calls the webhook.
func (s *Server) Assign(conversation, agent int64, status string) {
	var payload map[string]any
	var hook string
	s.locked(func() {
		c := s.talk(conversation)
		c.Assignee, c.Status = agent, status
		payload = s.conversationPayload(c)
		payload["event"] = "conversation_updated"
		hook = s.hook(c.Inbox)
	})
	if got := s.post(hook, payload); got != http.StatusOK {
		s.t.Errorf("the webhook answered %d to an assignment", got)
	}
}

func (s *Server) hook(inbox int64) string {
	for _, i := range s.inboxes {
		if i.ID == inbox {
			if s.rewrite != nil {
				return s.rewrite(i.Webhook)
			}
			return i.Webhook
		}
	}
	return ""
}

// post calls a webhook like Chatwoot: once, with a time limit of five seconds.
func (s *Server) post(address string, payload map[string]any) int {
	text, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	client := http.Client{Timeout: 5 * time.Second}
	got, err := client.Post(address, "application/json", bytes.NewReader(text))
	if err != nil {
		return 0
	}
	defer got.Body.Close()
	return got.StatusCode
}

func (s *Server) next() int64 { s.last++; return s.last }

func (s *Server) talk(id int64) *Conversation {
	for _, c := range s.talks {
		if c.ID == id {
			return c
		}
	}
	return &Conversation{}
}

func (s *Server) contact(id int64) *contact {
	for _, c := range s.contacts {
		if c.id == id {
			return c
		}
	}
	return &contact{}
}

func (s *Server) conversationPayload(c *Conversation) map[string]any {
	k := s.contact(c.Contact)
	meta := map[string]any{"sender": map[string]any{"id": k.id, "name": k.name, "phone_number": orNull(k.phone), "identifier": orNull(k.identifier), "type": "contact"}, "assignee": nil, "team": nil}
	if c.Assignee != 0 {
		meta["assignee"], meta["assignee_type"] = map[string]any{"id": c.Assignee, "name": "Agente", "type": "user"}, "User"
	}
	return map[string]any{
		"id": c.ID, "inbox_id": c.Inbox, "status": c.Status, "channel": "Channel::Api", "can_reply": true, "meta": meta,
		"contact_inbox": map[string]any{"contact_id": k.id, "inbox_id": c.Inbox, "source_id": k.seats[c.Inbox]},
	}
}

func (s *Server) messagePayload(m *Message, files []string) map[string]any {
	c := s.talk(m.Conversation)
	payload := map[string]any{
		"event": "message_created", "id": m.ID, "content": orNull(m.Text), "message_type": m.Kind, "private": m.Private, "source_id": orNull(m.Source),
		"content_type": "text", "content_attributes": map[string]any{}, "account": map[string]any{"id": Account, "name": "Agenzia"},
		"inbox": map[string]any{"id": c.Inbox, "name": "WhatsApp"}, "sender": map[string]any{"id": 1, "name": "Agente", "type": "user"}, "conversation": s.conversationPayload(c),
	}
	if len(files) > 0 {
		var all []any
		for _, f := range files {
			all = append(all, map[string]any{"id": s.next(), "message_id": m.ID, "file_type": "image", "data_url": f, "file_size": 10})
		}
		payload["attachments"] = all
	}
	return payload
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// ServeHTTP answers those requests of the Application API that a link sends. Any other request fails the test.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, fmt.Sprintf("/api/v1/accounts/%d/", Account))
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
		return
	case !ok:
		answer(w, http.StatusNotFound, map[string]any{"error": "Resource could not be found"})
		return
	case r.Header.Get("api_access_token") != Token:
		answer(w, http.StatusUnauthorized, map[string]any{"error": "Invalid Access Token"})
		return
	}
	parts := strings.Split(path, "/")
	id := int64(0)
	if len(parts) > 1 {
		id, _ = strconv.ParseInt(parts[1], 10, 64)
		parts[1] = "*"
	}
	if path == "contacts/search" {
		parts[1] = "search"
	}
	if len(parts) > 3 {
		parts[3] = "*"
	}
	switch r.Method + " " + strings.Join(parts, "/") {
	case "GET inboxes":
		var all []any
		for _, i := range s.inboxes {
			all = append(all, inboxOf(i))
		}
		answer(w, http.StatusOK, map[string]any{"payload": all})
	case "GET inboxes/*":
		s.oneInbox(w, id, func(*Inbox) {})
	case "PATCH inboxes/*":
		in := s.read(r)
		s.oneInbox(w, id, func(i *Inbox) { i.Webhook = member[string](s, member[map[string]any](s, in, "channel"), "webhook_url") })
	case "POST inboxes":
		in := s.read(r)
		channel := member[map[string]any](s, in, "channel")
		if member[string](s, channel, "type") != "api" {
			s.t.Error("an inbox of another channel was asked for")
		}
		i := &Inbox{s.next(), member[string](s, in, "name"), member[string](s, channel, "webhook_url")}
		s.inboxes = append(s.inboxes, i)
		answer(w, http.StatusOK, inboxOf(i))
	case "GET contacts/search":
		s.search(w, r.URL.Query().Get("q"))
	case "POST contacts":
		s.addContact(w, s.read(r))
	case "POST contacts/*/contact_inboxes":
		c, inbox := s.contact(id), int64(member[float64](s, s.read(r), "inbox_id"))
		c.seats[inbox] = fmt.Sprintf("source-%d-%d", c.id, inbox)
		answer(w, http.StatusOK, seatOf(c, inbox))
	case "GET contacts/*/conversations":
		var all []any
		for _, c := range s.talks {
			if c.Contact == id && !c.Deleted {
				all = append(all, s.conversationPayload(c))
			}
		}
		answer(w, http.StatusOK, map[string]any{"payload": all})
	case "POST conversations":
		s.converse(w, s.read(r))
	case "GET conversations/*/messages":
		s.list(w, id)
	case "POST conversations/*/messages":
		s.store(w, r, id)
	case "PATCH conversations/*/messages/*":
		s.setStatus(w, s.read(r), path)
	default:
		s.t.Errorf("Chatwoot has no call %s %s", r.Method, r.URL.Path)
		answer(w, http.StatusNotFound, map[string]any{"error": "not found"})
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) read(r *http.Request) (in map[string]any) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		s.t.Errorf("%s %s has the content type %q", r.Method, r.URL.Path, kind)
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	return in
}

func member[T any](s *Server, in map[string]any, name string) (v T) {
	v, ok := in[name].(T)
	if !ok {
		s.t.Errorf("the member %s of a call is %v", name, in[name])
	}
	return v
}

func inboxOf(i *Inbox) map[string]any {
	return map[string]any{"id": i.ID, "name": i.Name, "channel_type": "Channel::Api", "webhook_url": i.Webhook}
}

func (s *Server) oneInbox(w http.ResponseWriter, id int64, change func(*Inbox)) {
	for _, i := range s.inboxes {
		if i.ID == id {
			change(i)
			answer(w, http.StatusOK, inboxOf(i))
			return
		}
	}
	answer(w, http.StatusNotFound, map[string]any{"error": "Resource could not be found"})
}

func seatOf(c *contact, inbox int64) map[string]any {
	return map[string]any{"source_id": c.seats[inbox], "inbox": map[string]any{"id": inbox}}
}

func contactOf(c *contact) map[string]any {
	var seats []any
	for inbox := range c.seats {
		seats = append(seats, seatOf(c, inbox))
	}
	return map[string]any{"id": c.id, "name": c.name, "phone_number": orNull(c.phone), "identifier": orNull(c.identifier), "contact_inboxes": seats}
}

// search answers with the contacts whose name, number or identifier contains the text q.
func (s *Server) search(w http.ResponseWriter, q string) {
	var all []any
	for _, c := range s.contacts {
		if q != "" && strings.Contains(c.name+"\n"+c.phone+"\n"+c.identifier, q) {
			all = append(all, contactOf(c))
		}
	}
	answer(w, http.StatusOK, map[string]any{"meta": map[string]any{"count": len(all)}, "payload": all})
}

// addContact adds a contact. It refuses a number or an identifier that another contact has.
func (s *Server) addContact(w http.ResponseWriter, in map[string]any) {
	c := &contact{name: member[string](s, in, "name"), seats: map[int64]string{}}
	c.phone, _ = in["phone_number"].(string)
	c.identifier, _ = in["identifier"].(string)
	for _, other := range s.contacts {
		if c.phone != "" && other.phone == c.phone || c.identifier != "" && other.identifier == c.identifier {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Phone number has already been taken"})
			return
		}
	}
	inbox := int64(member[float64](s, in, "inbox_id"))
	c.id = s.next()
	c.seats[inbox] = fmt.Sprintf("source-%d-%d", c.id, inbox)
	s.contacts = append(s.contacts, c)
	answer(w, http.StatusOK, map[string]any{"payload": map[string]any{"contact": contactOf(c), "contact_inbox": seatOf(c, inbox)}})
}

// converse adds a conversation if contact, inbox and source_id belong together.
func (s *Server) converse(w http.ResponseWriter, in map[string]any) {
	k, inbox := s.contact(int64(member[float64](s, in, "contact_id"))), int64(member[float64](s, in, "inbox_id"))
	if k.id == 0 || k.seats[inbox] == "" || k.seats[inbox] != member[string](s, in, "source_id") {
		answer(w, http.StatusNotFound, map[string]any{"error": "Resource could not be found"})
		return
	}
	c := &Conversation{ID: s.next(), Contact: k.id, Inbox: inbox, Status: "open"}
	s.talks = append(s.talks, c)
	answer(w, http.StatusOK, s.conversationPayload(c))
}

// Looks returns how many requests listed messages.
func (s *Server) Looks() (n int) {
	s.locked(func() { n = s.looks })
	return n
}

// list answers with the latest 20 messages.
func (s *Server) list(w http.ResponseWriter, id int64) {
	s.looks++
	var all []any
	for _, m := range s.messages {
		if m.Conversation == id {
			all = append(all, map[string]any{"id": m.ID, "content": m.Text, "source_id": orNull(m.Source), "message_type": map[string]int{"incoming": 0, "outgoing": 1}[m.Kind]})
		}
	}
	answer(w, http.StatusOK, map[string]any{"meta": map[string]any{}, "payload": all[max(0, len(all)-20):]})
}

// store stores a message, from JSON or from a form with a file.
func (s *Server) store(w http.ResponseWriter, r *http.Request, id int64) {
	c := s.talk(id)
	if c.ID == 0 || c.Deleted {
		answer(w, http.StatusNotFound, map[string]any{"error": "Resource could not be found"})
		return
	}
	m := &Message{Conversation: id, Status: "sent"}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		if err := r.ParseMultipartForm(50 << 20); err != nil {
			s.t.Error(err)
		}
		m.Text, m.Kind, m.Private, m.Source = r.FormValue("content"), r.FormValue("message_type"), r.FormValue("private") == "true", r.FormValue("source_id")
		for _, h := range r.MultipartForm.File["attachments[]"] {
			f, err := h.Open()
			if err != nil {
				s.t.Error(err)
				continue
			}
			m.File, _ = io.ReadAll(f)
			m.FileName = h.Filename
		}
		if m.File == nil {
			s.t.Error("a form has no file")
		}
	} else {
		in := s.read(r)
		m.Text, m.Kind, m.Private, m.Source = member[string](s, in, "content"), member[string](s, in, "message_type"), member[bool](s, in, "private"), member[string](s, in, "source_id")
	}
	if m.Text == "" && m.File == nil {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": "Content can't be blank"})
		return
	}
	m.ID = s.next()
	s.messages = append(s.messages, m)
	if m.Kind == "incoming" && c.Status == "resolved" {
		c.Status = "open"
	}
	if s.lose > 0 {
		s.lose--
		panic(http.ErrAbortHandler)
	}
	answer(w, http.StatusOK, map[string]any{"id": m.ID, "content": m.Text, "source_id": m.Source})
}

// setStatus changes a message's status, which only inboxes of the channel API permit.
func (s *Server) setStatus(w http.ResponseWriter, in map[string]any, path string) {
	id, _ := strconv.ParseInt(path[strings.LastIndex(path, "/")+1:], 10, 64)
	for _, m := range s.messages {
		if m.ID != id {
			continue
		}
		m.Status = member[string](s, in, "status")
		m.Error, _ = in["external_error"].(string)
		answer(w, http.StatusOK, map[string]any{"id": m.ID, "status": m.Status})
		return
	}
	answer(w, http.StatusNotFound, map[string]any{"error": "Resource could not be found"})
}
