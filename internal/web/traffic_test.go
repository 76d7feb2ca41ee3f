package web_test

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/store/storetest"
)

// traffic creates a client's day with messages of every kind. The ids of messages are in the order of their creation.
type traffic struct {
	w        *world
	tenant   puntuale.Tenant
	session  puntuale.SessionID
	sequence puntuale.SequenceID
	node     puntuale.NodeID
	request  string // the body of calls; "": a body with only the phone
}

// traffic begins a day with a sequence, and with a node that sends.
func (w *world) traffic() *traffic {
	w.t.Helper()
	ctx := context.Background()
	f := &traffic{w: w, tenant: w.store.Tenant(w.client)}
	sessions, _, err := w.Client().Sessions(ctx, request.Page{})
	w.must(err)
	f.session = sessions[0].ID
	f.sequence, err = f.tenant.CreateSequence(ctx, puntuale.Sequence{Name: "Promemoria appuntamento", Created: w.clock.Now(), Updated: w.clock.Now(), Steps: []puntuale.Step{{Text: "ciao"}}}, nil)
	w.must(err)
	f.node, err = w.store.Join(ctx, 24*time.Hour)
	w.must(err)
	return f
}

// planned schedules one message.
func (f *traffic) planned(phone, text string, due time.Time) puntuale.MessageID {
	f.w.t.Helper()
	now := f.w.clock.Now()
	received := now.Add(-26 * time.Hour)
	request := f.request
	if request == "" {
		request = `{"phone":"` + phone + `"}`
	}
	r, err := f.tenant.Start(context.Background(), puntuale.StartRun{
		Run: puntuale.Run{Client: f.w.client, Sequence: f.sequence, Session: f.session, Phone: phone, Origin: puntuale.OriginSequence, Zone: "Europe/Rome",
			Received: received, Request: []byte(request), ClientName: "Studio Bianchi", SequenceName: "Promemoria appuntamento"},
		Day: storetest.Day, Now: now,
		Messages: []puntuale.PlannedMessage{{Content: puntuale.Content{Text: text}, Desired: due, Due: due, DueMax: due, ValidUntil: due.Add(24 * time.Hour)}},
	})
	f.w.must(err)
	return r.IDs[0]
}

// ended schedules one message, and makes an attempt with this outcome.
func (f *traffic) ended(phone, text string, at time.Time, o puntuale.Outcome) puntuale.MessageID {
	f.w.t.Helper()
	ctx := context.Background()
	id := f.planned(phone, text, at)
	token := storetest.Token(f.node)
	ref := puntuale.MessageRef{Client: f.w.client, ID: id}
	granted, err := f.w.store.Claim(ctx, puntuale.Claim{Node: f.node, Token: token, Now: at, Messages: []puntuale.ClaimItem{{MessageRef: ref, Phone: phone}}})
	f.w.must(err)
	if granted[0] != puntuale.ClaimGranted {
		f.w.t.Fatalf("claim: %v", granted[0])
	}
	_, err = f.w.store.Record(ctx, at.Add(time.Second), []puntuale.Result{{MessageRef: ref, Token: token, Outcome: o}})
	f.w.must(err)
	if o.Verdict == puntuale.Sent {
		f.w.must(f.w.store.Receive(ctx, puntuale.SandboxMessage{Client: f.w.client, Message: id, ConnectorID: fmt.Sprint("c", id), Phone: phone, Content: puntuale.Content{Text: text}, Received: at.Add(time.Second)}))
	}
	return id
}

// day creates the messages of a busy day. It returns a failed and a pending message.
func (f *traffic) day() (failed, pending puntuale.MessageID) {
	now := f.w.clock.Now()
	names := []string{"Giulia", "Marco", "Sara", "Luca", "Elena"}
	for i, name := range names {
		f.ended(fmt.Sprintf("+3933312345%02d", i), "Ciao "+name+", ti aspettiamo domani alle 10:30 in via Roma 12. A presto!", now.Add(time.Duration(i-8)*10*time.Minute), puntuale.Outcome{Verdict: puntuale.Sent})
	}
	failed = f.ended("+393331239901", "Ciao Anna, il tuo appuntamento è confermato.", now.Add(-25*time.Minute), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused"), Detail: puntuale.Because("sandbox.ending", "9901")})
	f.ended("+393331119901", "Ciao Piero, il tuo appuntamento è confermato.", now.Add(-22*time.Minute), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because(puntuale.ReasonUncertain)})
	for i, name := range names {
		id := f.planned(fmt.Sprintf("+3934012345%02d", i), "Ciao "+name+", fra un'ora ci vediamo!", now.Add(time.Duration(i+1)*47*time.Minute))
		if i == 0 {
			pending = id
		}
		f.planned(fmt.Sprintf("+3934112345%02d", i), "Grazie "+name+"! Com'è andata? Raccontacelo in una recensione.", now.Add(time.Duration(i+1)*26*time.Hour))
	}
	return failed, pending
}
