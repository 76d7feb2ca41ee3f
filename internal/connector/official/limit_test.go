package official_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// TestPair: one person gets 45 messages without a wait, and then one every six seconds. Messages to other persons do
// not wait.
func TestPair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const phone, other = "+393331111111", "+393332222222"
	w.wrote(phone, other)
	for range 45 {
		w.must(phone, text("x"))
	}
	for range 3 {
		_, err := w.conn.Prepare(w.within(), w.envelope(phone, text("x")))
		if e := w.refused(err, puntuale.Deferred); e.After != 6*time.Second {
			t.Errorf("after %v", e.After)
		}
		w.must(other, text("y"))
		w.clock.Advance(6 * time.Second)
		w.must(phone, text("x"))
	}
	w.clock.Advance(24*time.Hour - time.Minute) // after this time 45 messages may leave without a wait again
	for range 45 {
		w.must(phone, text("x"))
	}
	// All 46 messages are prepared before the first one is sent. A message counts when it leaves. So Meta gets 45
	// messages, and the last one must wait.
	fresh := "+393333333333"
	w.wrote(fresh)
	var prepared []puntuale.Prepared
	for range 46 {
		p, err := w.conn.Prepare(w.within(), w.envelope(fresh, text("x")))
		if err != nil {
			t.Fatal(err)
		}
		prepared = append(prepared, p)
	}
	before := w.peer.Asked()
	for i, p := range prepared {
		_, err := w.conn.Send(w.within(), p)
		if i < 45 && err != nil {
			t.Fatal(err)
		}
		if i == 45 {
			w.refused(err, puntuale.Deferred)
		}
	}
	if asked := w.peer.Asked() - before; asked != 45 {
		t.Errorf("%d were posted", asked)
	}
}

// TestReach: a number addresses no more persons in 24 hours than Meta allows. Persons who wrote, and persons who are
// already counted, do not use up the limit. After a takeover, the new node has the same count.
func TestReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{number: func(n *graphtest.Number) { n.Tier = "TIER_3" }})
	to := func(i int) string { return fmt.Sprintf("+39333000000%d", i) }
	w.wrote(to(9))
	for i := range 3 {
		w.must(to(i), approved("uno"))
		w.clock.Advance(time.Hour)
	}
	w.must(to(9), approved("uno"))
	w.must(to(0), approved("uno"))
	before := w.peer.Asked()
	_, err := w.send(to(3), approved("uno"))
	if e := w.refused(err, puntuale.Deferred); e.After != 22*time.Hour || !strings.Contains(italian(e.Reason), "24 ore") { // in 22 hours the second person is no longer counted
		t.Errorf("after %v: %s", e.After, e.Reason)
	}
	if w.peer.Asked() != before {
		t.Error("Meta was asked")
	}
	w.clock.Advance(22 * time.Hour)
	w.must(to(3), approved("uno"))

	// If Meta refuses a message, its recipient is not counted.
	w = newWorld(t, setup{number: func(n *graphtest.Number) { n.Tier, n.Account = "TIER_1", "" }}) // without a business, the number has a count of its own
	w.peer.Answer(func(m graphtest.Message) graphtest.Reply {
		if m.To == to(0) {
			return graphtest.Reply{Code: 131026}
		}
		return graphtest.Reply{}
	})
	_, err = w.send(to(0), approved("uno"))
	w.refused(err, puntuale.Final)
	w.must(to(1), approved("uno"))

	// After a restart the count is loaded from the store.
	ctx := w.within()
	node := w.w.MustJoin()
	started, err := w.c.Start(ctx, w.c.Run(to(2), w.clock.Now(), 1))
	if err != nil {
		t.Fatal(err)
	}
	w.w.Exec("update message set session_id = $1 where id = $2", int64(w.session), int64(started.IDs[0]))
	w.c.MustEnd(node, w.clock.Now(), puntuale.Outcome{Verdict: puntuale.Sent}, started.IDs...)
	w.conn.Close(ctx, w.session)
	w.open(w.session)
	_, err = w.send(to(3), approved("uno"))
	w.refused(err, puntuale.Deferred)
}

// TestReachOfABusiness: all numbers of a business share one count of addressed persons.
func TestReachOfABusiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{number: func(n *graphtest.Number) { n.Tier = "TIER_2" }})
	for number, account := range map[string]string{"102": w.number.Account, "103": "55103"} {
		n := graphtest.NewNumber(number)
		n.Tier, n.Account = "TIER_2", account
		w.peer.Set(n)
		id := w.newSession(n)
		w.open(id)
		w.until("online", func() bool { return w.conn.Online(id) })
		e := w.envelope("+3933300000"+number, approved("uno"))
		e.Session = id
		p, err := w.conn.Prepare(w.within(), e)
		if err == nil {
			_, err = w.conn.Send(w.within(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.must("+393330000001", approved("uno"))
	w.refusedBy("+393330000002", approved("uno"), puntuale.Deferred)
	w.must("+3933300000102", approved("uno")) // this person is already counted
}

// TestReachOfOtherNodes: persons whom another node addresses, with another number of the business, count within seconds.
func TestReachOfOtherNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{number: func(n *graphtest.Number) { n.Tier = "TIER_2" }})
	w.must("+393330000001", approved("uno"))
	other := w.newSession(graphtest.NewNumber("102")) // not open here
	if err := w.w.NoteOfficial(t.Context(), other, "102", w.number.Account); err != nil {
		t.Fatal(err)
	}
	ids := w.c.MustStart("+393330000002", w.clock.Now(), 1)
	w.w.Exec("update message set session_id = $1 where id = $2", int64(other), int64(ids[0]))
	w.c.MustSend(w.w.MustJoin(), w.clock.Now(), ids...)
	w.clock.Advance(11 * time.Second)
	w.refusedBy("+393330000003", approved("uno"), puntuale.Deferred)
	w.must("+393330000002", approved("uno"))
}

// TestTiers parses Meta's names of limits. An unknown name means no limit.
func TestTiers(t *testing.T) {
	t.Parallel()
	for tier, limited := range map[string]bool{"TIER_1": true, "TIER_UNLIMITED": false, "": false, "TIER_2K": false, "nonsense": false} {
		w := newWorld(t, setup{number: func(n *graphtest.Number) { n.Tier = tier }})
		w.must("+393331111111", approved("uno"))
		if _, err := w.send("+393332222222", approved("uno")); (err != nil) != limited {
			t.Errorf("%s: %v", tier, err)
		}
	}
}

// TestWindow: free text leaves within 24 hours after the person's last message. Later the connector refuses it, without
// a request to Meta.
func TestWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const phone = "+393331111111"
	closed := func() {
		t.Helper()
		before := w.peer.Asked()
		_, err := w.conn.Prepare(w.within(), w.envelope(phone, text("x")))
		if e := w.refused(err, puntuale.Final); !strings.Contains(italian(e.Reason), "finestra di 24 ore") || w.peer.Asked() != before {
			t.Errorf("%s, asked %d", e.Reason, w.peer.Asked()-before)
		}
	}
	closed()
	w.must(phone, approved("uno"))
	w.wrote(phone)
	w.clock.Advance(24*time.Hour - time.Second)
	w.must(phone, text("x"))
	p, err := w.conn.Prepare(w.within(), w.envelope(phone, text("x")))
	if err != nil {
		t.Fatal(err)
	}
	later, err := w.conn.Prepare(w.within(), w.envelope(phone, text("y")))
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Second)
	closed()
	before := w.peer.Asked()
	_, err = w.conn.Send(w.within(), p) // the window closed after Prepare
	if w.refused(err, puntuale.Final); w.peer.Asked() != before {
		t.Error("Meta was asked")
	}
	w.wrote(phone)
	if _, err := w.conn.Send(w.within(), later); err != nil {
		t.Errorf("opened again: %v", err)
	}
	if _, err := w.conn.Prepare(w.within(), w.envelope("120363012345678901@g.us", text("x"))); !strings.Contains(italian(w.refused(err, puntuale.Final).Reason), "Groups API") {
		t.Errorf("a group: %v", err)
	}
}

// TestCapabilities: the dispatcher gets the number's rate, and as many slots as this rate needs.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]puntuale.Capabilities{
		0:    {Name: "official", Slots: 40, PerSecond: 80, SendTimeout: 30 * time.Second, Recovery: puntuale.RecoverNone},
		1:    {Name: "official", Slots: 1, PerSecond: 1, SendTimeout: 30 * time.Second, Recovery: puntuale.RecoverNone},
		1000: {Name: "official", Slots: 500, PerSecond: 1000, SendTimeout: 30 * time.Second, Recovery: puntuale.RecoverNone},
	} {
		if got := official.New(official.Config{Rate: rate}).Capabilities(); got != want {
			t.Errorf("rate %v: %+v", rate, got)
		}
	}
}

// TestVersion checks the warnings before and after a version's end.
func TestVersion(t *testing.T) {
	t.Parallel()
	end := time.Date(2028, 7, 29, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		storetest.Begin: "", end.Add(-91 * 24 * time.Hour): "", end.Add(-89 * 24 * time.Hour): "WARN", end: "ERROR", end.AddDate(1, 0, 0): "ERROR",
	} {
		log := &strings.Builder{}
		official.WarnOfVersion(slog.New(slog.NewTextHandler(log, nil)), "v25.0", at)
		if got := log.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	for text, valid := range map[string]bool{"v25.0": true, "v9.1": true, "25.0": false, "v25": false, "v25.0/../x": false, "": false} {
		if official.ValidVersion(text) != valid {
			t.Errorf("%q is valid: %v", text, !valid)
		}
	}
}
