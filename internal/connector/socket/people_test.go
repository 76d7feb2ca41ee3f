//go:build !nosocket

package socket_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/socket/whatsapptest"
)

// asked counts the queries in which the shop asked whether people have WhatsApp, and the people in these queries.
func (w *world) asked() (queries, people int) {
	for _, q := range w.net.Queries("usync") {
		if q.From == shopNumber && len(q.About) > 0 && len(q.About[0]) > 0 && q.About[0][:2] == "39" {
			queries++
			people += len(q.About)
		}
	}
	return queries, people
}

// The shop asks once about each person. If messages to other people come during a query, the next query asks about all
// of these people together. A person without WhatsApp gets no message, and the shop does not ask about that person
// again.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	const many = 40
	answer := make(chan struct{})
	w.net.InjectQuery(whatsapptest.QueryFault{From: shopNumber, Group: "usync", Times: 1, Until: answer})
	var all sync.WaitGroup
	for i := range many {
		to := fmt.Sprintf("39334000%04d", i)
		if i%2 == 0 {
			w.net.Account(to)
		}
		all.Go(func() {
			for range 3 {
				_, err := w.conn.Prepare(t.Context(), w.text("+"+to, "ciao"))
				if want := i%2 == 0; (err == nil) != want || err != nil && kindOf(err) != puntuale.Final {
					t.Errorf("%s: %v", to, err)
				}
			}
		})
	}
	eventually(t, "everybody waits for an answer", func() bool {
		_, people := w.asked()
		return people+w.conn.Waiting(theSession) == many
	})
	close(answer)
	all.Wait()
	queries, people := w.asked()
	if people != many || queries > 2 {
		t.Errorf("%d people were asked for in %d queries", people, queries)
	}
	if sent := w.net.Messages(shopNumber); len(sent) != 0 {
		t.Errorf("sent: %+v", sent)
	}
}

// The network may know a person by a number with other digits than the typed one, or only by a LID. The message goes to
// that address, and the connector reports the address as another name of the person.
func TestSendToAnsweredAddress(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"number": false, "LID": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bia := w.net.Phone("551187654321")
			const typed = "+5511987654321"
			w.net.Knows(typed, bia.Account, hidden)
			w.link()
			w.mustSend(w.text(typed, "oi"))
			bia.Await(t, whatsapptest.Text("oi"))
			want := []puntuale.Alias{{Client: theClient, Session: theSession, Name: bia.LID().String(), Phone: typed}}
			if !hidden {
				want = append(want, puntuale.Alias{Client: theClient, Session: theSession, Name: "+" + bia.Number(), Phone: typed})
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, alias := range want {
				if !slices.ContainsFunc(w.told, func(b puntuale.InboundBatch) bool { return slices.Contains(b.Aliases, alias) }) {
					t.Errorf("%+v was not reported: %+v", alias, w.told)
				}
			}
		})
	}
}

// If a query before the message fails, no byte of the message leaves. So the outcome is certain, and the message can be
// tried again.
func TestFailureBeforeWriteIsCertain(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]struct {
		group   string
		toGroup bool
	}{"device list": {"usync", false}, "keys": {"encrypt", false}, "members of a group": {"w:g2", true}, "devices of members": {"usync", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			anna := w.net.Phone(annaNumber)
			w.link()
			e := w.text("+"+annaNumber, "ciao")
			if query.toGroup {
				e = w.text(w.net.Group("Clienti", w.shop, anna.Account).JID().String(), "ciao")
			}
			prepared, err := w.conn.Prepare(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			remove := w.net.InjectQuery(whatsapptest.QueryFault{From: shopNumber, Group: query.group, Code: 500, Text: "internal-server-error"})
			_, err = w.conn.Send(t.Context(), prepared)
			if e := puntuale.AsSendError(err); e == nil || e.Kind == puntuale.Final {
				t.Fatalf("the outcome of a message that never left: %+v", err)
			}
			remove()
			if _, err := w.conn.Send(t.Context(), prepared); err != nil {
				t.Errorf("tried again: %v", err)
			}
		})
	}
}

// After too many queries the number sends no query for a while. Meanwhile messages to known people still leave.
func TestAskedTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.net.Phone(bertNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "prima"))
	remove := w.net.InjectQuery(whatsapptest.QueryFault{From: shopNumber, Group: "usync", Code: 429, Text: "rate-overlimit"})
	for range 3 {
		_, err := w.send(w.text("+"+bertNumber, "ciao"))
		if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Deferred || e.After < 4*time.Minute || e.After > 5*time.Minute {
			t.Fatalf("asked too often: %+v", e)
		}
	}
	if queries, _ := w.asked(); queries > 2 {
		t.Errorf("%d queries", queries)
	}
	_, err := w.send(w.text(w.net.Group("Clienti", w.shop, anna.Account).Code(), "al gruppo"))
	if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Deferred || e.After < 4*time.Minute {
		t.Errorf("to the group of an invitation: %+v", e)
	}
	w.mustSend(w.text("+"+annaNumber, "intanto"))
	anna.Await(t, whatsapptest.Text("intanto"))
	remove()
}

// If the network refuses a query because there were too many, no query about other waiting people leaves either.
func TestWaitingPeopleAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link()
	w.net.InjectQuery(whatsapptest.QueryFault{From: shopNumber, Group: "usync", Code: 429, Text: "rate-overlimit", Delay: 200 * time.Millisecond})
	var wg sync.WaitGroup
	for i := range 120 {
		wg.Go(func() {
			_, err := w.send(w.text(fmt.Sprintf("+3934700%05d", i), "ciao"))
			if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Deferred {
				t.Errorf("asked too often: %+v", err)
			}
		})
	}
	wg.Wait()
	if queries, _ := w.asked(); queries != 1 {
		t.Errorf("%d queries", queries)
	}
}
