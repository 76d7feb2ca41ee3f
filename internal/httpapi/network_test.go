package httpapi_test

import (
	"strconv"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/sandbox"
)

// network replaces the dispatcher and the networks in a test: it decides the outcomes of messages.
type network struct {
	t      *testing.T
	queue  puntuale.Queue
	ledger sandbox.Ledger
	fleet  puntuale.Fleet
	mark   func(client puntuale.ClientID, phone string) string
	node   puntuale.NodeID
	token  int64
	tokens map[puntuale.MessageID]int64 // for each message: the token of its last attempt
}

// clientAccount is the answer to the call that creates a client.
type clientAccount struct {
	ID      string `json:"id_client"`
	Session string `json:"id_sessione"`
	Key     string `json:"api_key"`
}

// newAccount creates a client of the account type.
func (s *service) newAccount(email, accountType string) (a clientAccount) {
	s.t.Helper()
	s.must(&a, "POST", "/api/client/create", s.partner,
		`{"name":"Studio Bianchi","email":"`+email+`","password":"p","phone":"0212345678","account_type":"`+accountType+`"}`)
	return a
}

// begin writes a message's intent, as at the beginning of an attempt. It returns the claimed message, and the store's
// answer.
func (s *service) begin(a clientAccount, id, phone string) (puntuale.ClaimItem, puntuale.ClaimAnswer) {
	s.t.Helper()
	items, granted := s.beginAll(a, phone, id)
	return items[0], granted[0]
}

// beginAll writes the intents of several messages to one recipient.
func (s *service) beginAll(a clientAccount, phone string, ids ...string) ([]puntuale.ClaimItem, []puntuale.ClaimAnswer) {
	s.t.Helper()
	n := s.network
	if n.node == 0 {
		var err error
		if n.node, err = n.fleet.Join(s.t.Context(), time.Hour); err != nil {
			s.t.Fatal(err)
		}
		n.token = int64(n.node) << 32
	}
	n.token++
	client, _ := strconv.ParseInt(a.ID, 10, 64)
	items := make([]puntuale.ClaimItem, len(ids))
	for i, id := range ids {
		message, _ := strconv.ParseInt(id, 10, 64)
		items[i] = puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: puntuale.ClientID(client), ID: puntuale.MessageID(message)}, Phone: phone}
		items[i].Mark = n.mark(items[i].Client, phone)
		if err := s.db.SQL.QueryRow("select campaign_id from message where client_id = $1 and id = $2", client, message).Scan(&items[i].Campaign); err != nil {
			s.t.Fatal(err)
		}
	}
	if n.tokens == nil {
		n.tokens = map[puntuale.MessageID]int64{}
	}
	for _, item := range items {
		n.tokens[item.ID] = n.token
	}
	granted, err := n.queue.Claim(s.t.Context(), puntuale.Claim{Node: n.node, Token: n.token, Now: s.clock.Now(), Messages: items})
	if err != nil {
		s.t.Fatal(err)
	}
	return items, granted
}

// end makes one attempt with this outcome.
func (s *service) end(a clientAccount, id, phone string, o puntuale.Outcome) {
	s.t.Helper()
	item, granted := s.begin(a, id, phone)
	if granted != puntuale.ClaimGranted {
		s.t.Fatalf("message %s may not leave: %d", id, granted)
	}
	s.record(o, item)
}

// record records an outcome for the attempts that the last begin started.
func (s *service) record(o puntuale.Outcome, items ...puntuale.ClaimItem) {
	s.t.Helper()
	s.recordAs(o, s.clock.Now(), items...)
}

func (s *service) recordAs(o puntuale.Outcome, now time.Time, items ...puntuale.ClaimItem) {
	s.t.Helper()
	results := make([]puntuale.Result, len(items))
	for i, item := range items {
		results[i] = puntuale.Result{MessageRef: item.MessageRef, Token: s.network.tokens[item.ID], Outcome: o}
	}
	if _, err := s.network.queue.Record(s.t.Context(), now, results); err != nil {
		s.t.Fatal(err)
	}
}

var (
	sent    = puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid.1")}
	refused = puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero non raggiungibile"), Detail: puntuale.Quoted("404")}
)

// item returns the reference of an account's message.
func (s *service) item(a clientAccount, id string) puntuale.MessageRef {
	s.t.Helper()
	client, err := puntuale.ParseID[puntuale.ClientID](a.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	message, err := puntuale.ParseID[puntuale.MessageID](id)
	if err != nil {
		s.t.Fatal(err)
	}
	return puntuale.MessageRef{Client: client, ID: message}
}
