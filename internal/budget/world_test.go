package budget

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// world is a real store, opened in the same way as a server opens it.
type world struct {
	*store.Store
	partner puntuale.PartnerID
	tokens  atomic.Int64
	driver  storetest.Driver
}

// client is one client, with a sequence of three steps.
type client struct {
	puntuale.Tenant
	id       puntuale.ClientID
	session  puntuale.SessionID
	sequence puntuale.SequenceID
	key      string
}

func newWorld(t testing.TB, driver storetest.Driver) *world {
	t.Helper()
	db := driver(t)
	db.Config.Clock, db.Config.Logger, db.Config.Meter = nil, quiet(), puntuale.NoMeter{}
	w := &world{Store: db.Open(t), driver: driver}
	_, key := newKey(t, puntuale.PartnerSide)
	var err error
	w.partner, err = w.CreatePartner(t.Context(), puntuale.Partner{Name: "Agenzia", Slug: "agenzia", Created: now()}, puntuale.Login{Email: "p@example.com", Password: "x"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func now() time.Time { return clock.System().Now() }

func newKey(t testing.TB, side puntuale.Side) (plain string, key puntuale.Key) {
	t.Helper()
	plain, key, err := auth.NewKey(side, "budget", now())
	if err != nil {
		t.Fatal(err)
	}
	return plain, key
}

// clients creates n clients without limits.
func (w *world) clients(t testing.TB, n int) (all []*client) {
	t.Helper()
	for range n {
		plain, key := newKey(t, puntuale.ClientSide)
		account := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now()))
		account.Name, account.Created = "Studio Bianchi", now()
		created, err := w.Partner(w.partner).CreateClient(t.Context(), puntuale.NewClient{
			Client: account, Login: puntuale.Login{Email: storetest.Unique("c") + "@example.com", Password: "x"}, Key: key,
			Session: puntuale.Session{Name: "predefinita", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now()},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{Tenant: w.Tenant(created.Client), id: created.Client, session: created.Session, key: plain}
		if c.sequence, err = c.CreateSequence(t.Context(), reminder(), nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// reminder returns a sequence of three steps, each with one placeholder.
func reminder() puntuale.Sequence {
	day := puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.After}}
	return puntuale.Sequence{Name: "Promemoria", Created: now(), Updated: now(), Steps: []puntuale.Step{
		{Text: "Gentile {{nome}}, la sua richiesta è stata ricevuta.", Timing: day},
		{Text: "Gentile {{nome}}, le ricordiamo l'appuntamento di domani.", Timing: day},
		{Text: "Gentile {{nome|cliente}}, grazie della visita.", Timing: day},
	}}
}

const startBody = `{"phone":"+393471234567","nome":"Maria"}`

// run returns a start of n messages, as control gives it to a store. All messages are due at the time due.
func (c *client) run(n int, due time.Time) puntuale.StartRun {
	at := now()
	r := puntuale.StartRun{Day: puntuale.DateOf(at), Now: at, Run: puntuale.Run{
		Client: c.id, Sequence: c.sequence, Session: c.session, Phone: "+393471234567", Origin: puntuale.OriginSequence,
		Zone: "Europe/Rome", Received: at, Request: []byte(startBody), ClientName: "Studio Bianchi", SequenceName: "Promemoria",
	}}
	for step := range n {
		content := puntuale.Content{Text: "Gentile Maria, le ricordiamo l'appuntamento di domani alle 15:30."}
		r.Run.Steps = append(r.Run.Steps, puntuale.FrozenStep{Step: step, Content: content})
		r.Messages = append(r.Messages, puntuale.PlannedMessage{Step: step, Content: content, Desired: due, Due: due, DueMax: due, ValidUntil: due.Add(24 * time.Hour)})
	}
	return r
}

// batch is how many messages one statement handles in the benchmarks.
const batch = 200

// plan starts n due messages, in runs of 50, and returns them in the order of their ids.
func (c *client) plan(t testing.TB, n int) (refs []puntuale.MessageRef) {
	t.Helper()
	due := now().Add(-time.Minute)
	for len(refs) < n {
		started, err := c.Start(t.Context(), c.run(50, due))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range started.IDs {
			refs = append(refs, puntuale.MessageRef{Client: c.id, ID: id})
		}
	}
	return refs[:n]
}

// remind starts n runs of three messages. In each run the first message is due and the others wait until tomorrow, as
// in real reminders. It returns the due messages.
func (c *client) remind(t testing.TB, n int) []puntuale.MessageRef {
	t.Helper()
	due := now().Add(-time.Minute)
	refs, failed := make([]puntuale.MessageRef, n), make(chan error, n)
	var group sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		group.Go(func() {
			for k := next.Add(1) - 1; k < int64(n); k = next.Add(1) - 1 {
				r := c.run(3, due)
				r.Run.Phone = fmt.Sprintf("+39347%07d", k) // each run gets its own recipient, because messages to one recipient would wait for each other
				for i := range r.Messages[1:] {
					m := &r.Messages[1+i]
					m.Due, m.DueMax, m.ValidUntil = m.Due.Add(24*time.Hour), m.DueMax.Add(24*time.Hour), m.ValidUntil.Add(24*time.Hour)
				}
				started, err := c.Start(t.Context(), r)
				if err != nil {
					failed <- err
					return
				}
				refs[k] = puntuale.MessageRef{Client: c.id, ID: started.IDs[0]}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	return refs
}

// join registers a node that claims messages. The node leaves at the end of the benchmark. If it stayed, a later
// dispatcher would get only a part of the sessions.
func (w *world) join(t testing.TB) puntuale.NodeID {
	t.Helper()
	node, err := w.Join(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Leave(context.Background(), node); err != nil {
			t.Error(err)
		}
	})
	return node
}

// claimAll writes the intents of messages, and returns their attempts' token.
func (w *world) claimAll(ctx context.Context, node puntuale.NodeID, refs []puntuale.MessageRef) (int64, error) {
	token := int64(node)<<32 | w.tokens.Add(1)
	c := puntuale.Claim{Node: node, Token: token, Now: now(), Messages: make([]puntuale.ClaimItem, len(refs))}
	for i, r := range refs {
		c.Messages[i] = puntuale.ClaimItem{MessageRef: r, Phone: "+393471234567"}
	}
	granted, err := w.Claim(ctx, c)
	for i, g := range granted {
		if g != puntuale.ClaimGranted {
			return 0, fmt.Errorf("message %d: %v", refs[i].ID, g)
		}
	}
	return token, err
}

// recordAll records that messages were sent.
func (w *world) recordAll(ctx context.Context, refs []puntuale.MessageRef, token int64) error {
	results := make([]puntuale.Result, len(refs))
	accepted := puntuale.Quoted("wamid") // made only once: in production a connector makes it, so its cost must not count here
	for i, r := range refs {
		results[i] = puntuale.Result{MessageRef: r, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent, Detail: accepted}}
	}
	applied, err := w.Record(ctx, now(), results)
	for i, ok := range applied {
		if !ok {
			return fmt.Errorf("the outcome of message %d was not taken", refs[i].ID)
		}
	}
	return err
}
