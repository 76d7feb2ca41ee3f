package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// testKnownPersons checks that the store reports which of many people a session knows.
func testKnownPersons(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	const wrote, met, cold = "+393330000001", "+393330000002", "+393330000003"
	c.mustHear(wrote, Begin, Begin)
	if err := w.NoteKnown(ctx, c.ID, c.Session, met, Begin); err != nil {
		t.Fatal(err)
	}
	got, err := c.KnownPersons(ctx, c.Session, []string{wrote, met, cold})
	if err != nil || len(got) != 2 || !got[wrote].Window.Equal(Begin.Add(24*time.Hour)) || !got[wrote].Known || !got[met].Window.IsZero() || !got[met].Known {
		t.Errorf("contacts: %+v, %v", got, err)
	}
	if got, err := other.KnownPersons(ctx, c.Session, []string{wrote}); err != nil || len(got) > 0 {
		t.Errorf("another client's: %+v, %v", got, err)
	}
}

// testSessionLoad checks the count of a session's messages in a day, and the count of recipients for the business
// limit. Meta counts the recipients of all numbers of a business together.
func testSessionLoad(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node, at := w.MustJoin(), Begin.Add(time.Minute)
	load := func(id puntuale.SessionID, want puntuale.SessionUsage) {
		t.Helper()
		got, err := c.SessionLoad(ctx, id, at.Add(-time.Second))
		got.Portfolio.Holder = 0
		if err != nil || got != want {
			t.Errorf("session %d: %+v, %v, want %+v", id, got, err, want)
		}
	}
	first, second, foreign := c.MustOfficial(false), c.MustOfficial(false), c.MustOfficial(false)
	for id, account := range map[puntuale.SessionID]string{first: "55", second: "55", foreign: "56"} {
		if err := w.NoteOfficial(ctx, id, "10"+id.String(), account); err != nil {
			t.Fatal(err)
		}
	}
	for phone, session := range map[string]puntuale.SessionID{"+393330000001": first, "+393330000002": second, "+393330000003": foreign, "+393330000004": first} {
		ids := c.MustStart(phone, Begin, 1)
		w.Exec("update message set session_id = $1 where id = $2", int64(session), int64(ids[0]))
		c.MustEnd(node, at, puntuale.Outcome{Verdict: puntuale.Sent}, ids...)
	}
	if _, err := w.KeepInbound(ctx, at, []puntuale.TakenMessage{{
		InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: first, Phone: "+393330000004", At: Begin}, Names: []string{"+393330000004"},
	}}); err != nil {
		t.Fatal(err)
	}
	load(first, puntuale.SessionUsage{Sent: 2, Portfolio: puntuale.Portfolio{Used: 2}})
	for range 2 {
		if err := w.KeepHealth(ctx, []puntuale.HealthReport{{Client: c.ID, Session: first, Kind: puntuale.HealthLimit, Value: "2000", At: at}}, at); err != nil {
			t.Fatal(err)
		}
	}
	load(first, puntuale.SessionUsage{Sent: 2, Portfolio: puntuale.Portfolio{Limit: 2000, Used: 2, Room: 1998}})
	load(foreign, puntuale.SessionUsage{Sent: 1, Portfolio: puntuale.Portfolio{Used: 1}})
	if err := w.NoteOfficial(ctx, first, "other", "55"); err != nil {
		t.Fatal(err)
	}
	load(first, puntuale.SessionUsage{Sent: 2, Portfolio: puntuale.Portfolio{Used: 2}})

	if err := w.NoteKnown(ctx, c.ID, c.Session, phone, at); err != nil {
		t.Fatal(err)
	}
	c.MustSend(node, at, c.MustStart(phone, Begin, 1)...)
	load(c.Session, puntuale.SessionUsage{Sent: 1, Met: 1})
	if _, err := c.SessionLoad(ctx, 987654, at); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("of nothing: %v", err)
	}
}

// charged returns a receipt that contains a charge.
func charged(f *fed, m puntuale.DueMessage, k puntuale.ReceiptKind, country, category string, billable bool) puntuale.DeliveryReceipt {
	return puntuale.DeliveryReceipt{
		MessageRef: puntuale.MessageRef{Client: f.ID, ID: m.ID}, Session: f.Session, Kind: k, At: Begin,
		Charge: puntuale.Charge{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: billable},
	}
}

func (f *fed) wantCharges(want ...puntuale.ChargeCount) {
	f.w.t.Helper()
	if got, err := f.Charges(context.Background(), f.id); err != nil || !slices.Equal(got, want) {
		f.w.t.Errorf("charges are %+v, %v, want %+v", got, err, want)
	}
}

func counted(country, category string, billable bool, n int) puntuale.ChargeCount {
	return puntuale.ChargeCount{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: billable, Messages: n}
}

// testCharges checks that the charge of a campaign's message counts once, when the message is delivered. The charges of
// other messages must not count.
func testCharges(t *testing.T, w *World) {
	f := w.running(4)
	f.mustFeed(4, Begin)
	due := f.due(Begin)
	for _, m := range due {
		f.MustSend(f.node, Begin.Add(time.Minute), m.ID)
	}
	single := f.MustStart(phone, Begin, 1)
	f.MustSend(f.node, Begin.Add(time.Minute), single...)
	f.wantCharges()
	w.mustKeep(Begin, charged(f, due[0], puntuale.ReceiptSent, "IT", "marketing", true)) // not delivered yet, so the charge does not count
	f.wantCharges()
	for range 2 {
		w.mustKeep(Begin,
			charged(f, due[0], puntuale.ReceiptDelivered, "IT", "marketing", true), charged(f, due[0], puntuale.ReceiptRead, "IT", "marketing", true),
			charged(f, due[1], puntuale.ReceiptRead, "IT", "marketing", true), charged(f, due[2], puntuale.ReceiptDelivered, "", "service", false),
			charged(f, due[3], puntuale.ReceiptDelivered, "", "", false), // this receipt contains no charge
			charged(f, puntuale.DueMessage{ID: single[0]}, puntuale.ReceiptDelivered, "IT", "marketing", true))
		f.wantCharges(counted("", "service", false, 1), counted("IT", "marketing", true, 2))
	}
	w.mustKeep(Begin, charged(f, due[3], puntuale.ReceiptRead, "DE", "utility", true)) // this later receipt of the same message contains a charge
	f.wantCharges(counted("", "service", false, 1), counted("DE", "utility", true, 1), counted("IT", "marketing", true, 2))
}

// testChargesTogether checks that a charge counts once, even if several servers get the same webhook request at the
// same time.
func testChargesTogether(t *testing.T, w *World) {
	const messages, tellers = 20, 4
	f := w.running(messages)
	f.mustFeed(messages, Begin)
	var receipts []puntuale.DeliveryReceipt
	for i, m := range f.due(Begin) {
		f.MustSend(f.node, Begin.Add(time.Minute), m.ID)
		receipts = append(receipts, charged(f, m, puntuale.ReceiptDelivered, []string{"IT", "DE"}[i%2], "marketing", true))
	}
	var all sync.WaitGroup
	errs := make(chan error, tellers)
	for i := range tellers {
		all.Go(func() {
			mine := slices.Clone(receipts)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			_, err := w.KeepReceipts(context.Background(), Begin, mine)
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	f.wantCharges(counted("DE", "marketing", true, messages/2), counted("IT", "marketing", true, messages/2))
}
