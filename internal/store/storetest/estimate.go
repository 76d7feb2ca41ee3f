package storetest

import (
	"context"
	"testing"
	"time"

	"puntuale"
)

// What a session knows of people, for many at once.
func testContacts(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	const wrote, met, stranger = "+393330000001", "+393330000002", "+393330000003"
	c.mustHear(wrote, Begin, Begin)
	if err := w.Met(ctx, c.ID, c.Session, met, Begin); err != nil {
		t.Fatal(err)
	}
	got, err := c.Contacts(ctx, c.Session, []string{wrote, met, stranger})
	if err != nil || len(got) != 2 || !got[wrote].Window.Equal(Begin.Add(24*time.Hour)) || !got[wrote].Known || !got[met].Window.IsZero() || !got[met].Known {
		t.Errorf("contacts: %+v, %v", got, err)
	}
	if got, err := other.Contacts(ctx, c.Session, []string{wrote}); err != nil || len(got) > 0 {
		t.Errorf("another client's: %+v, %v", got, err)
	}
}

// What a session did in a day, and the limit of its business: Meta counts whom all numbers of a business address.
func testSessionLoad(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node, at := w.MustJoin(), Begin.Add(time.Minute)
	load := func(id puntuale.SessionID, want puntuale.SessionLoad) {
		t.Helper()
		if got, err := c.SessionLoad(ctx, id, at); err != nil || got != want {
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
	if _, err := w.KeepHeard(ctx, at, []puntuale.Heard{{Client: c.ID, Session: first, Phone: "+393330000004", At: Begin}}); err != nil {
		t.Fatal(err)
	}
	load(first, puntuale.SessionLoad{Sent: 2, Addressed: 2})
	for range 2 {
		if err := w.NoteLimit(ctx, first, 2000); err != nil {
			t.Fatal(err)
		}
	}
	load(first, puntuale.SessionLoad{Sent: 2, Addressed: 2, Portfolio: 2000})
	load(foreign, puntuale.SessionLoad{Sent: 1, Addressed: 1})
	if err := w.NoteOfficial(ctx, first, "other", "55"); err != nil {
		t.Fatal(err)
	}
	load(first, puntuale.SessionLoad{Sent: 2, Addressed: 2})

	if err := w.Met(ctx, c.ID, c.Session, phone, at); err != nil {
		t.Fatal(err)
	}
	c.MustSend(node, at, c.MustStart(phone, Begin, 1)...)
	load(c.Session, puntuale.SessionLoad{Sent: 1, Met: 1})
	if _, err := c.SessionLoad(ctx, 987654, at); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("of nothing: %v", err)
	}
}
