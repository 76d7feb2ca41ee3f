package official_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// TestOtherNames: Meta writes the numbers of some countries in another form than callers, and gives an id for people
// who hide their number. An inbound message opens the window under each name of its writer.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	const to, written, id = "+5511987654321", "551187654321", "BR.1502576394655843"
	for name, test := range map[string]struct {
		first, then graphtest.Name // the name that Meta uses at first, and the name that Meta uses after the connector knows the alias
		send        bool           // true: the name comes in the answer to a send; false: in an inbound message
	}{
		"another number, by an answer":          {graphtest.Name{Number: written}, graphtest.Name{Number: written}, true},
		"an id beside it, by an answer":         {graphtest.Name{Number: written, ID: id}, graphtest.Name{ID: id}, true},
		"an id beside the number, by a message": {graphtest.Name{Number: to[1:], ID: id}, graphtest.Name{ID: id}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, driver storetest.Driver) {
				w := newWorld(t, setup{driver: driver})
				w.peer.Know(to, test.first)
				if test.send {
					w.deliver(w.peer.Status(w.must(to, approved("uno")), "delivered", w.clock.Now()))
				} else {
					w.deliver(w.peer.Wrote(w.number.ID, to, w.clock.Now()))
				}
				w.clock.Advance(48 * time.Hour)
				w.until("online again", func() bool { return w.conn.Online(w.session) })
				w.refusedBy(to, text("x"), puntuale.Final)
				w.peer.Know(to, test.then)
				w.deliver(w.peer.Wrote(w.number.ID, to, w.clock.Now()))
				w.must(to, text("y"))
				n := w.w.Int("select count(*) from alias")
				for range 3 { // all aliases are already stored, so these rounds must store no other
					w.deliver(w.peer.Status(w.must(to, text("z")), "read", w.clock.Now()))
				}
				if again := w.w.Int("select count(*) from alias"); again != n {
					t.Errorf("%d names, then %d", n, again)
				}
				w.deliver(w.peer.Prefers(w.number.ID, to, "stop", w.clock.Now()))
				if change := w.marketing(to); change != puntuale.ConsentWithdraw {
					t.Errorf("after the opt-out: %v", change)
				}
				w.clock.Advance(time.Second)
				w.deliver(w.peer.Prefers(w.number.ID, to, "resume", w.clock.Now()))
				if change := w.marketing(to); change != puntuale.ConsentUndo {
					t.Errorf("after all: %v", change)
				}
			})
		})
	}
}

// marketing returns the latest change of a person's consent to marketing.
func (w *world) marketing(phone string) puntuale.ConsentChange {
	w.t.Helper()
	states, err := w.c.ConsentStatuses(w.t.Context(), puntuale.Person{Names: []string{phone}})
	if err != nil {
		w.t.Fatal(err)
	}
	return states[puntuale.PurposeMarketing].Change
}

// TestPersonID: messages to a person with a hidden number are sent to the person's id. Otherwise they are sent like
// messages to a number.
func TestPersonID(t *testing.T) {
	t.Parallel()
	const id = "US.ENT.11815799212886844830"
	w := newWorld(t, setup{})
	w.peer.Know(id, graphtest.Name{ID: id})
	w.refusedBy(id, text("x"), puntuale.Final)
	w.deliver(w.peer.Wrote(w.number.ID, id, w.clock.Now()))
	if m := w.must(id, text("x")).Message; m.Person != id || m.To != "" {
		t.Errorf("sent to %q, %q", m.To, m.Person)
	}
	for _, to := range []string{"120363025246125016@g.us", "20482973843@lid", "AbCdEfGhIjKlMnOpQrStUv", "US.x y", "us.12"} {
		if _, err := w.send(to, text("x")); !strings.Contains(italian(w.refused(err, puntuale.Final).Reason), "gruppi") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// allowGroups lets the session write to groups.
func (w *world) allowGroups() {
	w.t.Helper()
	keys := keysOf(w.number)
	keys.GroupsAPI = true
	if err := w.c.SetKeys(context.Background(), w.session, w.vault.Seal(puntuale.SealedOfficial, w.session.SealPlace(), keys.JSON())); err != nil {
		w.t.Fatal(err)
	}
	w.test()
}

// TestGroups: an account with the Groups API sends to a group by its id, after a person wrote in the group. In any
// other account the message is refused with the reason.
func TestGroups(t *testing.T) {
	t.Parallel()
	const group = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
	w := newWorld(t, setup{})
	_, err := w.send(group, approved("uno"))
	if e := w.refused(err, puntuale.Final); !strings.Contains(italian(e.Reason), "che questo account non usa") || english(e.Reason) == italian(e.Reason) {
		t.Errorf("without the API: %+v", e)
	}
	w.allowGroups()
	w.refusedBy(group, text("x"), puntuale.Final)
	w.deliver(w.peer.Event("101", "messages", "messages", map[string]any{"from": person[1:], "type": "text", "group_id": group, "timestamp": fmt.Sprint(w.clock.Now().Unix())}))
	if m := w.must(group, text("x")).Message; m.RecipientType != "group" || m.To != group {
		t.Errorf("sent %+v", m)
	}
	w.refusedBy(person, text("x"), puntuale.Final) // a message in the group does not open its writer's window
	w.refusedBy("120363025246125016@g.us", text("x"), puntuale.Final)
}

// TestSecondSendKnowsNothingOfTheFirst: no error of a repeat proves that the first attempt did not arrive.
func TestSecondSendKnowsNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	const phone = "+393331111111"
	w := newWorld(t, setup{})
	w.wrote(phone)
	for _, code := range []int{131026, 131016, 130429, 131056, 190} {
		w.peer.Answer(func(graphtest.Message) graphtest.Reply { return graphtest.Reply{Code: code} })
		w.test()
		e := w.envelope(phone, text("x"))
		e.Repeat = true
		p, err := w.conn.Prepare(w.within(), e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.conn.Send(context.Background(), p); err == nil || puntuale.AsSendError(err) != nil {
			t.Errorf("%d: %v", code, err)
		}
		w.clock.Advance(time.Minute)
	}
}
