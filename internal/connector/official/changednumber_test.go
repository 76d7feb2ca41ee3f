package official_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

const (
	leftNumber, nextNumber = "+393331110001", "+393332220002"
	leftID, nextID         = "IT.OLD0001", "IT.NEW0002"
	leftParent, nextParent = "IT.ENT.OLD0001", "IT.ENT.NEW0002"
)

// recorded delivers a webhook as Meta sends it, with the present time.
func (w *world) recorded(name string) {
	w.t.Helper()
	body, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		w.t.Fatal(err)
	}
	w.deliver([]byte(strings.ReplaceAll(string(body), "{{at}}", fmt.Sprint(w.clock.Now().Unix()))))
}

// namesOf returns all names of a person, sorted.
func (w *world) namesOf(name string) string {
	w.t.Helper()
	names, err := w.w.Recipients(context.Background(), w.c.ID, name)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestChangedNumber: after Meta told that a person has another number, the person's window is open at the new number and
// ends when it ended before. The report opens no window, is no reply, and a second one changes nothing.
func TestChangedNumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, driver storetest.Driver) {
		w := newWorld(t, setup{driver: driver})
		w.peer.Know(leftNumber, graphtest.Name{Number: leftNumber[1:], ID: leftID})
		w.deliver(w.peer.Wrote(w.number.ID, leftNumber, w.clock.Now()))
		ids := w.c.MustStart(leftNumber, w.clock.Now().Add(time.Hour), 2)
		end, err := w.w.ReplyWindowEnd(context.Background(), w.c.ID, w.session, leftNumber)
		if err != nil || end.IsZero() {
			t.Fatal(end, err)
		}
		w.clock.Advance(time.Hour)
		replies := w.w.Int("select count(*) from reply") + w.w.Int("select count(*) from inbound_seen")
		for range 2 {
			w.recorded("user_changed_number")
		}
		after, err := w.w.ReplyWindowEnd(context.Background(), w.c.ID, w.session, nextNumber)
		if err != nil || !after.Equal(end) {
			t.Errorf("the window ends %v, before %v, %v", after, end, err)
		}
		if n := w.w.Int("select count(*) from reply") + w.w.Int("select count(*) from inbound_seen"); n != replies {
			t.Errorf("%d rows about replies, before %d", n, replies)
		}
		for _, id := range ids {
			if d := w.c.Detail(id); d.Phone != nextNumber || d.State != puntuale.Pending {
				t.Errorf("message %d: %+v", id, d)
			}
		}
		w.must(nextNumber, text("ciao"))
		if names, want := w.namesOf(nextNumber), strings.Join([]string{nextNumber, leftNumber, nextParent, leftParent, nextID, leftID}, " "); len(strings.Fields(names)) != len(strings.Fields(want)) {
			t.Errorf("names %q, want %q", names, want)
		}
		w.deliver(w.peer.Prefers(w.number.ID, leftNumber, "stop", w.clock.Now()))
		if change := w.marketing(nextNumber); change != puntuale.ConsentWithdraw {
			t.Errorf("an opt-out of the old number: %v", change)
		}

		// Somebody else gets the old number. What Meta tells late of messages to it joins nobody.
		w.clock.Advance(time.Hour)
		w.peer.Know(leftNumber, graphtest.Name{Number: leftNumber[1:], ID: "IT.STRANGER"})
		w.deliver(w.peer.Wrote(w.number.ID, leftNumber, w.clock.Now()))
		w.peer.Know(leftNumber, graphtest.Name{Number: leftNumber[1:], ID: leftID})
		w.deliver(w.peer.Prefers(w.number.ID, leftNumber, "resume", w.clock.Now()))
		if names := w.namesOf(leftNumber); names != leftNumber+" IT.STRANGER" {
			t.Errorf("the stranger's names: %q", names)
		}
		if change := w.marketing(nextNumber); change != puntuale.ConsentWithdraw {
			t.Errorf("a stranger changed the person's consent to %v", change)
		}
	})
}

// TestChangedNumberHidden: a person who hides the new number is written to by the new id.
func TestChangedNumberHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.deliver(w.peer.Wrote(w.number.ID, leftNumber, w.clock.Now()))
	id := w.c.MustStart(leftNumber, w.clock.Now().Add(time.Hour), 1)[0]
	w.clock.Advance(time.Minute)
	w.recorded("user_changed_number_hidden")
	if d := w.c.Detail(id); d.Phone != nextID {
		t.Errorf("the message goes to %s", d.Phone)
	}
	if m := w.must(nextID, text("ciao")).Message; m.Person != nextID {
		t.Errorf("sent to %q, %q", m.To, m.Person)
	}
}

// TestChangedID: another id behind a known number is only another name; of a person known by the id only, everything
// moves to the new one.
func TestChangedID(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"known number": false, "hidden number": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			to, want := leftNumber, leftNumber
			w.peer.Know(leftNumber, graphtest.Name{Number: leftNumber[1:], ID: leftID})
			if hidden {
				to, want = leftID, nextID
				w.peer.Know(leftID, graphtest.Name{ID: leftID})
			}
			w.deliver(w.peer.Wrote(w.number.ID, to, w.clock.Now()))
			id := w.c.MustStart(to, w.clock.Now().Add(time.Hour), 1)[0]
			w.clock.Advance(time.Minute)
			w.recorded("user_changed_user_id")
			if d := w.c.Detail(id); d.Phone != want {
				t.Errorf("the message goes to %s, want %s", d.Phone, want)
			}
			w.peer.Know(nextID, graphtest.Name{ID: nextID})
			w.deliver(w.peer.Prefers(w.number.ID, nextID, "stop", w.clock.Now()))
			if change := w.marketing(to); change != puntuale.ConsentWithdraw {
				t.Errorf("an opt-out under the new id: %v", change)
			}
			if changes, err := w.c.NumberChanges(context.Background(), want); err != nil || (len(changes) == 1) != hidden {
				t.Errorf("people see %+v, %v", changes, err)
			}
		})
	}
}

// TestChangedNumberTakesWaits: how much a person got lately, and since when Meta does not reach the person, moves with the
// person.
func TestChangedNumberTakesWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.deliver(w.peer.Wrote(w.number.ID, leftNumber, w.clock.Now()))
	for range 45 { // as many messages as may leave without a wait
		w.must(leftNumber, text("x"))
	}
	w.recorded("user_changed_number")
	_, err := w.send(nextNumber, text("y"))
	w.refused(err, puntuale.Deferred)
}

// TestParentIDs: the id that linked businesses share is a name of the person, wherever Meta tells it.
func TestParentIDs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"parent_ids": strings.Join([]string{leftNumber, leftParent, leftID}, " "), "parent_ids_hidden": leftParent + " " + leftID,
	} {
		w := newWorld(t, setup{})
		w.recorded(name)
		if names := w.namesOf(leftParent); names != want {
			t.Errorf("%s: %q, want %q", name, names, want)
		}
		w.must(leftParent, text("ciao"))
	}
}
