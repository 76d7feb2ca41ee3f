package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
)

// World is a store with one partner, and with methods that help tests.
type World struct {
	t testing.TB
	*store.Store
	DB      *Database
	Partner puntuale.PartnerID
}

// Client is a client of the world.
type Client struct {
	w *World
	puntuale.Tenant
	ID       puntuale.ClientID
	Session  puntuale.SessionID
	Sequence puntuale.SequenceID // a sequence of three steps
	Key      puntuale.KeyHash
	heldPost *heldPost           // the method posted sets it; nil: posted was not called yet
	ready    puntuale.CampaignID // the method campaigned sets it; 0: campaigned was not called yet
	listed   puntuale.ListID     // the list of that campaign's recipients
}

// Day is the date at Begin in the clients' time zone.
var Day = puntuale.DateOf(Begin)

var serial atomic.Int64

// Unique returns a name that no other test uses.
func Unique(prefix string) string { return fmt.Sprintf("%s%d", prefix, serial.Add(1)) }

// KeyHash returns the hash of a key that no other test uses.
func KeyHash() puntuale.KeyHash { return sha256.Sum256([]byte(Unique("key"))) }

// To returns a change that sets the value v.
func To[T any](v T) puntuale.Change[T] { return puntuale.Change[T]{Set: true, To: v} }

// Together runs f(0) to f(n-1) at the same time, and waits for all of them.
func Together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

// WantCode fails the test if the error's code is not code.
func WantCode(t *testing.T, err error, code puntuale.Code) {
	t.Helper()
	if puntuale.CodeOf(err) != code {
		t.Fatalf("error = %v, want code %q", err, code)
	}
}

// NewWorld opens a store on the database and creates a partner.
func NewWorld(t testing.TB, d *Database) *World {
	t.Helper()
	w := WorldOf(t, d)
	var err error
	w.Partner, err = w.CreatePartner(context.Background(), puntuale.Partner{Name: "Rivendita", Created: Begin},
		puntuale.Login{Email: Unique("p") + "@example.com", Password: "x"}, puntuale.Key{Name: "prima", Hash: KeyHash(), Created: Begin})
	if err != nil {
		t.Fatalf("create a partner: %v", err)
	}
	return w
}

// WorldOf returns a world whose database is in use already, for example by another node.
func WorldOf(t testing.TB, d *Database) *World {
	t.Helper()
	return &World{t: t, Store: d.Open(t), DB: d}
}

// Test returns the test for which the world was made.
func (w *World) Test() testing.TB { return w.t }

// Client creates a client with the given account type, and with a session and a sequence of three steps. Each function
// in change may modify the account before it is stored.
func (w *World) Client(account puntuale.AccountType, change ...func(*puntuale.Client)) *Client {
	w.t.Helper()
	c := puntuale.NewAccount(account, Day)
	c.Name, c.Created = "Cliente", Begin
	for _, f := range change {
		f(&c)
	}
	out := &Client{w: w, Key: KeyHash()}
	ctx := context.Background()
	created, err := w.Store.Partner(w.Partner).CreateClient(ctx, puntuale.NewClient{
		Client: c, Login: puntuale.Login{Email: Unique("c") + "@example.com", Password: "x"},
		Session: puntuale.Session{Name: "predefinita", Type: puntuale.Socket, Sandbox: true, Created: Begin},
		Key:     puntuale.Key{Name: "prima", Hash: out.Key, Created: Begin},
	}, nil)
	if err != nil {
		w.t.Fatalf("create a client: %v", err)
	}
	out.ID, out.Session = created.Client, created.Session
	out.Tenant = w.Tenant(out.ID)
	out.Sequence, err = out.CreateSequence(ctx, puntuale.Sequence{Name: "promemoria", Created: Begin, Updated: Begin,
		Steps: []puntuale.Step{{Text: "uno"}, {Text: "due"}, {Text: "tre"}}}, nil)
	if err != nil {
		w.t.Fatalf("create a sequence: %v", err)
	}
	return out
}

// Run returns a start of the client's sequence for the phone. The run has n messages. The first message is due at the
// time due, and each further message is due one second later.
func (c *Client) Run(phone string, due time.Time, n int) puntuale.StartRun {
	now := c.w.DB.Clock.Now()
	r := puntuale.StartRun{
		Run: puntuale.Run{Client: c.ID, Sequence: c.Sequence, Session: c.Session, Phone: phone, Origin: puntuale.OriginSequence,
			Zone: "Europe/Rome", Received: now, Request: []byte(`{"phone":"` + phone + `"}`), ClientName: "Cliente", SequenceName: "promemoria"},
		Day: Day, Now: now,
	}
	for i := range n {
		at := due.Add(time.Duration(i) * time.Second)
		r.Messages = append(r.Messages, puntuale.PlannedMessage{Step: i, Content: puntuale.Content{Text: fmt.Sprintf("testo %d", i)},
			Desired: at, Due: at, DueMax: at, ValidUntil: at.Add(24 * time.Hour)})
	}
	return r
}

// Booking returns a put that makes a booking of the client's sequence, with one message in an hour.
func (c *Client) Booking(reference string) puntuale.PutBooking {
	now := c.w.DB.Clock.Now()
	run := c.Run("+393331234567", now.Add(time.Hour), 1)
	return puntuale.PutBooking{Reference: reference, Phone: run.Run.Phone, Day: Day, Now: now, Run: run.Run, Decide: func(s puntuale.BookingState) (puntuale.BookingChange, error) {
		b := s.Booking
		b.Sequence, b.Phone, b.Status, b.StatusBy = c.Sequence, run.Run.Phone, puntuale.BookingOpen, puntuale.DoorAPI
		b.Date, b.Created, b.Updated, b.Revision = now.Add(24*time.Hour), now, now, b.Revision+1
		change := puntuale.BookingChange{Booking: b, Changed: true, By: puntuale.DoorAPI, What: []string{"created"}, Events: []puntuale.EventType{puntuale.EventBookingCreated}}
		for i, old := range s.Steps { // each put replaces the message
			if old.Pending() && old.Intent == 0 {
				change.New = append(change.New, puntuale.NewBookingMessage{Before: i, Same: true, WantedMessage: puntuale.WantedMessage{PlannedMessage: run.Messages[0], Key: old.Key, Timing: "t", Digest: "d"}})
			}
		}
		if s.Revision == 0 {
			change.New = append(change.New, puntuale.NewBookingMessage{Before: -1, WantedMessage: puntuale.WantedMessage{
				PlannedMessage: run.Messages[0], Key: puntuale.BookingKey{Sequence: c.Sequence, Step: "0", Occurrence: 1}, Timing: "t", Digest: "d"}})
		}
		return change, nil
	}}
}

// MustStart starts a run and returns the ids of its messages.
func (c *Client) MustStart(phone string, due time.Time, n int) []puntuale.MessageID {
	c.w.t.Helper()
	r, err := c.Start(context.Background(), c.Run(phone, due, n))
	if err != nil {
		c.w.t.Fatalf("start: %v", err)
	}
	return r.IDs
}

// Again returns a call that sends messages again. The new messages are due from an hour after Begin.
func (c *Client) Again(ids ...puntuale.MessageID) puntuale.Resend {
	r := puntuale.Resend{Day: Day, Now: c.w.DB.Clock.Now()}
	due := Begin.Add(time.Hour)
	for _, id := range ids {
		r.Messages = append(r.Messages, puntuale.ResendMessage{ID: id, Desired: due, Due: due, ValidUntil: due.Add(24 * time.Hour)})
	}
	return r
}

// MustResend sends messages again, and returns the ids of the new messages.
func (c *Client) MustResend(ids ...puntuale.MessageID) []puntuale.MessageID {
	c.w.t.Helper()
	r, err := c.Resend(context.Background(), c.Again(ids...))
	if err != nil {
		c.w.t.Fatalf("re-send: %v", err)
	}
	return r.IDs
}

// MustSend claims messages at the time now, and records that they were sent.
func (c *Client) MustSend(node puntuale.NodeID, now time.Time, ids ...puntuale.MessageID) {
	c.w.t.Helper()
	c.MustEnd(node, now, puntuale.Outcome{Verdict: puntuale.Sent}, ids...)
}

// MustEnd claims messages at the time now, and then records the outcome o of each.
func (c *Client) MustEnd(node puntuale.NodeID, now time.Time, o puntuale.Outcome, ids ...puntuale.MessageID) {
	c.w.t.Helper()
	c.MustEndTo("", node, now, o, ids...)
}

// MustEndTo does the same as MustEnd for messages to a phone, as a dispatcher does. "": to any phone.
func (c *Client) MustEndTo(phone string, node puntuale.NodeID, now time.Time, o puntuale.Outcome, ids ...puntuale.MessageID) {
	c.w.t.Helper()
	items := c.Items(phone, 0, ids...)
	token, granted := c.w.MustClaim(node, now, items...)
	for i, item := range items {
		if granted[i] != puntuale.ClaimGranted || !c.w.MustRecord(now, item, token, o) {
			c.w.t.Fatalf("message %d: %v", item.ID, granted[i])
		}
	}
}

// Detail reads one message.
func (c *Client) Detail(id puntuale.MessageID) puntuale.MessageDetail {
	c.w.t.Helper()
	d, err := c.Details(context.Background(), []puntuale.MessageID{id})
	if err != nil || len(d) != 1 {
		c.w.t.Fatalf("details of %d: %v, %v", id, d, err)
	}
	return d[0]
}

// MustJoin registers a node and returns its id.
func (w *World) MustJoin() puntuale.NodeID {
	w.t.Helper()
	node, err := w.Join(context.Background(), time.Minute)
	if err != nil {
		w.t.Fatalf("join: %v", err)
	}
	return node
}

var tokens atomic.Int64

// Token returns the token of a new attempt. No token is returned twice.
func Token(node puntuale.NodeID) int64 { return int64(node)<<32 | tokens.Add(1) }

// Items returns claim items for the client's open messages, as if a dispatcher had read them.
func (c *Client) Items(phone string, intent int64, ids ...puntuale.MessageID) []puntuale.ClaimItem {
	items := make([]puntuale.ClaimItem, len(ids))
	for i, id := range ids {
		items[i] = puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: c.ID, ID: id}, Phone: phone, Intent: intent}
	}
	return items
}

// MustClaim claims messages at the time now. It returns the token and the answers.
func (w *World) MustClaim(node puntuale.NodeID, now time.Time, items ...puntuale.ClaimItem) (int64, []puntuale.ClaimAnswer) {
	w.t.Helper()
	token := Token(node)
	granted, err := w.Claim(context.Background(), puntuale.Claim{Node: node, Token: token, Now: now, Messages: items})
	if err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	return token, granted
}

// begin returns cursors at the beginning of each session's queue.
func begin(sessions ...puntuale.SessionID) (places []puntuale.QueueCursor) {
	for _, id := range sessions {
		places = append(places, puntuale.QueueCursor{Session: id})
	}
	return places
}

// MustRecord records one outcome. It reports whether the outcome changed the message.
func (w *World) MustRecord(now time.Time, item puntuale.ClaimItem, token int64, o puntuale.Outcome) bool {
	w.t.Helper()
	applied, err := w.Record(context.Background(), now, []puntuale.Result{{MessageRef: item.MessageRef, Token: token, Outcome: o}})
	if err != nil {
		w.t.Fatalf("record: %v", err)
	}
	return applied[0]
}

// Int returns one number that the query reads from the database.
func (w *World) Int(query string, args ...any) int64 {
	w.t.Helper()
	var n int64
	if err := w.DB.SQL.QueryRow(query, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// Exec changes the database directly, without the store.
func (w *World) Exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.DB.SQL.Exec(query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}
