package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"puntuale/internal/chatwoot/chatwoottest"
)

// report posts a conversation's event to the link's own address, as a hostile client would.
func (r *chatwootRig) report(inbox int64, conversation int, identifier string) int {
	r.t.Helper()
	return r.tell(r.peer.Inboxes()[0].Webhook, fmt.Sprintf(`{"event": "conversation_updated", "id": %d, "inbox_id": %d, "status": "open",
 "meta": {"assignee": {"id": 1}, "sender": {"identifier": %q}}}`, conversation, inbox, identifier))
}

// tell posts an event to a link's address, and returns the status of the answer.
func (r *chatwootRig) tell(address, body string) int {
	r.t.Helper()
	hook := strings.TrimPrefix(address, "https://puntuale.example")
	got, err := http.Post(r.base+hook, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode
}

// TestChatwootStoresKnownPersonsOnly: events about a text that is no number, or about a person that the client does not
// know, store nothing. An event about a person with another spelling of the number is about this person.
func TestChatwootStoresKnownPersonsOnly(t *testing.T) {
	t.Parallel()
	r := newChatwoot(t)
	r.link()
	inbox := r.peer.Inboxes()[0].ID
	r.must("POST", "/api/messages", `{"phone": "+393331234567", "text": "promemoria"}`)
	for n, text := range []string{strings.Repeat("x", 900_000), "nobody at all", "+393339999999", "333 1234567"} {
		if status := r.report(inbox, 700+n, text); status != http.StatusOK {
			t.Errorf("an event about %.20q: status %d", text, status)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(r.dir, "data", "puntuale.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	var phone string
	if err := db.QueryRow("select count(*), max(phone) from chatwoot_conversation").Scan(&n, &phone); err != nil || n != 1 || phone != "+393331234567" {
		t.Errorf("%d conversations, the last with %.200q, %v", n, phone, err)
	}
}

// TestChatwootSameID: two links may have a message with the same ids, because their servers count on their own. Both
// messages are sent, and each only once.
func TestChatwootSameID(t *testing.T) {
	t.Parallel()
	const anna = "+393331234567"
	r := newChatwoot(t)
	r.link()
	second := field(t, r.must("POST", "/api/sessions", `{"name": "Seconda", "connection_type": "Socket", "sandbox": true}`), "id")
	r.must("PUT", "/api/sessions/"+second+"/chatwoot", `{"base_url": "`+r.peer.URL+`/", "api_access_token": "`+chatwoottest.Token+`", "account_id": 3}`)
	for range 2 { // the second time, both are repeats
		for _, inbox := range r.peer.Inboxes() {
			if status := r.tell(inbox.Webhook, fmt.Sprintf(`{"event": "message_created", "id": 900, "content": "da %d", "message_type": "outgoing",
 "conversation": {"id": 800, "inbox_id": %[1]d, "status": "open", "meta": {"sender": {"phone_number": %q}}}}`, inbox.ID, anna)); status != http.StatusOK {
				t.Errorf("a message in inbox %d: status %d", inbox.ID, status)
			}
		}
	}
	eventually(t, "both messages are sent", func() bool {
		for _, inbox := range r.peer.Inboxes() {
			if r.got(anna, fmt.Sprintf("da %d", inbox.ID)) != 1 {
				return false
			}
		}
		return len(r.peer.Inboxes()) == 2
	})
	if n := strings.Count(r.must("GET", "/api/messages?phone=%2B393331234567", ""), `"contenuto":"da `); n != 2 {
		t.Errorf("the client has %d messages", n)
	}
}

// TestChatwootAnswerTooLarge: a server that answers a huge list gets a fault, not memory.
func TestChatwootAnswerTooLarge(t *testing.T) {
	t.Parallel()
	r := newChatwoot(t)
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"payload":[`+strings.Repeat("{},", 1_000_000)+`{}]}`)
	}))
	t.Cleanup(hostile.Close)
	status, text := call(t, "PUT", r.base+"/api/sessions/1/chatwoot", r.key, `{"base_url": "`+hostile.URL+`", "api_access_token": "x", "account_id": 3}`)
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, "The answer is too large") {
		t.Errorf("%d %s", status, text)
	}
}
