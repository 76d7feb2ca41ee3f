// Package connectortest is a test suite with rules for every connector. A connector's tests run the suite against the
// real network or a simulation.
package connectortest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"puntuale"
)

// Network contains a connector that is connected to its network, for one test.
type Network struct {
	Connector puntuale.Connector
	Client    puntuale.ClientID
	Session   puntuale.SessionID // this session is linked and online

	// To returns a recipient that accepts messages: a different one for each n from 0 to 99.
	To func(n int) string
	// Refused is a recipient that the network refuses for good; "" if there is none.
	Refused string
	// Shown returns the messages that recipients see, oldest first. It leaves out repeats that the network hides.
	Shown func(t *testing.T) []Shown
	// Contents says which contents the connector can send.
	Contents Carries
}

// Carries says which contents a connector can send.
type Carries struct{ Text, Media, Location bool }

// Shown is a message as its recipient sees it.
type Shown struct {
	To      string
	Content puntuale.Content
}

// maxWait limits every wait of the suite.
const maxWait = 30 * time.Second

// Run runs the suite. It calls open once for each test. open must return a network that shows no message yet.
func Run(t *testing.T, open func(t *testing.T) Network) {
	type test struct {
		name string
		run  func(*testing.T, Network)
	}
	tests := []test{
		{"Traits", capabilities},
		{"Online", online},
		{"PrepareSendsNothing", prepareSendsNothing},
		{"PrepareMayBeRepeated", prepareMayBeRepeated},
		{"PrepareKeepsTheEnvelope", prepareKeepsEnvelope},
		{"PrepareEndsWithItsContext", prepareEnds},
		{"ContentsArriveUnchanged", contentsArrive},
		{"ButtonsArrive", buttonsArrive},
		{"AnotherIDIsAnotherMessage", anotherID},
		{"RefusalIsFinal", refusalIsFinal},
		{"SendEndsWithItsContext", sendEnds},
		{"ConcurrentSends", concurrentSends},
	}
	if open(t).Connector.Capabilities().Recovery == puntuale.RecoverSameID { // the server repeats messages only at these networks
		tests = append(tests, test{"RepeatIsOneCopy", repeatIsOneCopy}, test{"ConcurrentRepeats", concurrentRepeats})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

var lastID atomic.Int64

// envelope returns an envelope with a new message id.
func (n Network) envelope(to string, c puntuale.Content) puntuale.Envelope {
	id := puntuale.MessageID(1<<40 + lastID.Add(1))
	return puntuale.Envelope{
		Client: n.Client, Session: n.Session, Message: id,
		ConnectorID: puntuale.ConnectorID(id, 0), Attempt: 1, To: to, Content: c,
	}
}

func (n Network) text(i int) puntuale.Envelope {
	return n.envelope(n.To(i), puntuale.Content{Text: fmt.Sprintf("messaggio %d", i)})
}

func (n Network) prepare(t *testing.T, e puntuale.Envelope) puntuale.Prepared {
	t.Helper()
	p, err := n.Connector.Prepare(within(t), e)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return p
}

func (n Network) send(t *testing.T, e puntuale.Envelope) {
	t.Helper()
	if _, err := n.Connector.Send(within(t), n.prepare(t, e)); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

func (n Network) shows(t *testing.T, want ...Shown) {
	t.Helper()
	if diff := cmp.Diff(want, n.Shown(t)); diff != "" {
		t.Errorf("the recipients see (-want +got):\n%s", diff)
	}
}

func capabilities(t *testing.T, n Network) {
	got := n.Connector.Capabilities()
	if got.Name == "" || got.Slots < 1 || got.SendTimeout <= 0 {
		t.Errorf("Traits() = %+v: want a name, at least one slot and a timeout", got)
	}
	if got != n.Connector.Capabilities() {
		t.Error("the traits changed")
	}
}

func online(t *testing.T, n Network) {
	if !n.Connector.Online(n.Session) {
		t.Error("the session is not online")
	}
}

func prepareSendsNothing(t *testing.T, n Network) {
	for i := range 5 {
		n.prepare(t, n.text(i))
	}
	n.shows(t)
}

func prepareMayBeRepeated(t *testing.T, n Network) {
	e := n.text(0)
	for range 3 {
		n.prepare(t, e)
	}
	n.send(t, e)
	n.shows(t, Shown{e.To, e.Content})
}

func prepareKeepsEnvelope(t *testing.T, n Network) {
	e := n.text(0)
	e.Attempt, e.Repeat = 3, true
	if diff := cmp.Diff(e, n.prepare(t, e).Envelope); diff != "" {
		t.Errorf("Prepare changed the envelope (-want +got):\n%s", diff)
	}
}

func prepareEnds(t *testing.T, n Network) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The connector may return anything here except a final refusal, because the message could still be sent later.
		if _, err := n.Connector.Prepare(ctx, n.text(0)); err != nil {
			if e := puntuale.AsSendError(err); e != nil && e.Kind == puntuale.Final {
				t.Errorf("Prepare with an ended context refuses for good: %v", err)
			}
		}
	}()
	wait(t, done)
	n.shows(t)
}

func contentsArrive(t *testing.T, n Network) {
	var contents []puntuale.Content
	if n.Contents.Text {
		contents = append(contents,
			puntuale.Content{Text: "Gentile Ada, l'appuntamento è domani alle 10:30.\nA presto 👋🏽"},
			puntuale.Content{Text: "  spazi, {{parentesi}}, \"virgolette\", <b>segni</b> & \u202e bidi "},
		)
	}
	if n.Contents.Media {
		contents = append(contents,
			puntuale.Content{MediaURL: "https://example.com/a%20b/foto.JPG?x=1&y=2"},
			puntuale.Content{MediaURL: "https://example.com/listino.pdf", MediaName: "Listino 2026.pdf", Text: "Il listino"},
		)
	}
	if n.Contents.Location {
		contents = append(contents, puntuale.Content{Latitude: new(45.4642), Longitude: new(-0.0000001)},
			puntuale.Content{Latitude: new(0.0), Longitude: new(0.0)})
	}
	var want []Shown
	for i, c := range contents {
		e := n.envelope(n.To(i), c)
		n.send(t, e)
		want = append(want, Shown{e.To, c})
	}
	n.shows(t, want...)
}

// buttonsArrive sends contents with buttons, a list and a link. A recipient sees the text, and then the buttons, rows or
// lines with their labels, and the address of the link.
func buttonsArrive(t *testing.T, n Network) {
	buttons := puntuale.Content{Text: "Viene domani alle 10:30?", Asks: &puntuale.ButtonSet{Line: "Risponda:", Buttons: []puntuale.StepButton{
		{Label: "Confermo 👍", Does: puntuale.ButtonConfirms}, {Label: "Annullo", Does: puntuale.ButtonCancels}, {Label: "Forse", Does: puntuale.ButtonAnswers, Payload: "maybe"},
	}}}
	list := puntuale.Content{Text: "Quando?", Interactive: &puntuale.Interactive{List: &puntuale.ChoiceList{Button: "Scegli", Sections: []puntuale.ListSection{
		{Title: "Lunedì", Rows: []puntuale.ListRow{{Title: "10:00", Text: "con Ada", Payload: "l10"}, {Title: "11:00"}}}, {Title: "Martedì", Rows: []puntuale.ListRow{{Title: "9:00"}}},
	}}}}
	link := puntuale.Content{Text: "Ecco il conto", Interactive: &puntuale.Interactive{Link: &puntuale.LinkButton{Label: "Apri", URL: "https://example.com/conto?n=17"}}}
	type shown struct {
		puntuale.Content
		parts []string
	}
	contents := []shown{
		{buttons, []string{buttons.Text, "Confermo 👍", "Annullo", "Forse"}},
		{list, []string{list.Text, "Lunedì", "10:00", "con Ada", "11:00", "Martedì", "9:00"}},
		{link, []string{link.Text, "Apri", "https://example.com/conto?n=17"}},
		{puntuale.Content{Text: "Dove sei?", Interactive: &puntuale.Interactive{Ask: puntuale.AskLocation}}, []string{"Dove sei?"}},
	}
	if n.Contents.Media {
		for _, c := range []shown{contents[0], contents[2]} {
			c.MediaURL = "https://example.com/a%20b/foto.JPG?x=1&y=2"
			contents = append(contents, c)
		}
	}
	for i, c := range contents {
		e := n.envelope(n.To(i), c.Content)
		n.send(t, e)
		all := n.Shown(t)
		if len(all) != i+1 {
			t.Fatalf("the recipients see %+v", all)
		}
		got := all[i]
		if got.To != e.To || got.Content.MediaURL != c.MediaURL {
			t.Errorf("the recipient sees %+v", got)
		}
		rest := got.Content.Shown()
		for _, part := range c.parts {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%q has no %q in its place", got.Content.Shown(), part)
			}
			rest = after
		}
	}
}

func repeatIsOneCopy(t *testing.T, n Network) {
	e := n.text(0)
	n.send(t, e)
	for i := range puntuale.MaxRepeats {
		e.Attempt, e.Repeat = 2+i, true
		n.send(t, e)
	}
	n.shows(t, Shown{e.To, e.Content})
}

func anotherID(t *testing.T, n Network) {
	first, second := n.text(0), n.text(0)
	n.send(t, first)
	n.send(t, second)
	n.shows(t, Shown{first.To, first.Content}, Shown{second.To, second.Content})
}

func refusalIsFinal(t *testing.T, n Network) {
	if n.Refused == "" {
		t.Skip("the network refuses nobody for good")
	}
	e := n.envelope(n.Refused, puntuale.Content{Text: "rifiutato"})
	p, err := n.Connector.Prepare(within(t), e)
	if err == nil {
		_, err = n.Connector.Send(within(t), p)
	}
	refusal := puntuale.AsSendError(err)
	if refusal == nil || refusal.Kind != puntuale.Final {
		t.Fatalf("the answer is %v, want a final refusal", err)
	}
	if refusal.Reason.IsZero() {
		t.Error("the refusal has no reason to show to people")
	}
	n.shows(t)
}

// sendEnds sends with a context that has ended. The answer must come soon and be true: after a success the recipient
// sees the message, and after a refusal no recipient sees it.
func sendEnds(t *testing.T, n Network) {
	e := n.text(0)
	p := n.prepare(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = n.Connector.Send(ctx, p)
	}()
	wait(t, done)
	switch {
	case err == nil:
		n.shows(t, Shown{e.To, e.Content})
	case puntuale.AsSendError(err) != nil:
		n.shows(t)
	}
}

func concurrentSends(t *testing.T, n Network) {
	const messages = 40
	var all sync.WaitGroup
	for i := range messages {
		p := n.prepare(t, n.text(i))
		all.Go(func() {
			if _, err := n.Connector.Send(within(t), p); err != nil {
				t.Errorf("Send: %v", err)
			}
		})
	}
	all.Wait()
	got := map[string]int{}
	for _, s := range n.Shown(t) {
		got[s.To]++
	}
	for i := range messages {
		if got[n.To(i)] != 1 {
			t.Errorf("recipient %d sees %d messages, want 1", i, got[n.To(i)])
		}
	}
}

func concurrentRepeats(t *testing.T, n Network) {
	e := n.text(0)
	p := n.prepare(t, e)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := n.Connector.Send(within(t), p); err != nil {
				t.Errorf("Send: %v", err)
			}
		})
	}
	all.Wait()
	n.shows(t, Shown{e.To, e.Content})
}

func wait(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-within(t).Done():
		t.Fatal("no answer after the context ended")
	}
}
