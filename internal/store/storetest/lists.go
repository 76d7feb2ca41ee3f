package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

func testPages(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for range 4 {
		if _, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "altra"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var ids []puntuale.SequenceID
	page := puntuale.Page{Limit: 2}
	for pages := 1; ; pages++ {
		part, next, err := c.Sequences(ctx, puntuale.SequenceFilter{}, page)
		if err != nil || len(part) > 2 {
			t.Fatalf("page = %v, %v", part, err)
		}
		for _, q := range part {
			ids = append(ids, q.ID)
		}
		if next == "" {
			if pages != 3 {
				t.Fatalf("%d pages", pages)
			}
			break
		}
		page.Cursor = next
		if pages == 1 { // a row that is inserted now must not hide rows that were not read yet
			if _, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "nuova"}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(ids) != 6 || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != 6 {
		t.Fatalf("ids = %v", ids)
	}
	_, sequences, err := c.Sequences(ctx, puntuale.SequenceFilter{}, puntuale.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, cursor := range []string{"!", "AAAA", "MTIz", sequences} {
		_, _, err := c.Sessions(ctx, puntuale.Page{Cursor: cursor})
		e, ok := errors.AsType[*puntuale.Error](err)
		if !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 1 || e.Faults[0].Location != "query.cursor" {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func testSequences(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	lat, lon := 45.5, 9.25
	q := puntuale.Sequence{Name: "Buongiorno è 🎉", Session: c.Session, IfRunning: puntuale.IfRunningSkip, StopOnReply: true, Created: Begin, Updated: Begin,
		Steps: []puntuale.Step{{Text: "Ciao {{nome}}", Timing: puntuale.Timing{Anchor: "data", Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.Before}, At: "09:00"}},
			{Latitude: &lat, Longitude: &lon}}}
	var err error
	if q.ID, err = c.CreateSequence(ctx, q, nil); err != nil {
		t.Fatal(err)
	}
	got, err := c.Tenant.Sequence(ctx, q.ID)
	if err != nil || !reflect.DeepEqual(got, q) {
		t.Fatalf("sequence = %+v, %v, want %+v", got, err, q)
	}
	q.Name, q.Updated, q.Steps = "Altro", Begin.Add(time.Hour), q.Steps[:1]
	if err := c.UpdateSequence(ctx, q); err != nil {
		t.Fatal(err)
	}
	got, session, err := c.StartInfo(ctx, q.ID)
	if err != nil || !reflect.DeepEqual(got, q) || session.ID != c.Session {
		t.Fatalf("start info = %+v, %+v, %v", got, session, err)
	}
	if _, session, err := c.StartInfo(ctx, c.Sequence); err != nil || session.ID != c.Session || !session.Default {
		t.Fatalf("start info of the default session = %+v, %v", session, err)
	}
	ids := c.MustStart(phone, Begin, 2)
	WantCode(t, c.DeleteSequence(ctx, c.Sequence, false, false, Begin), puntuale.CodeConflict)
	if _, err := c.Tenant.Sequence(ctx, c.Sequence); err != nil {
		t.Fatalf("after a refused deletion: %v", err)
	}
	w.Exec("update session set start_sequence = $1 where id = $2", c.Sequence, c.Session)
	if err := c.DeleteSequence(ctx, c.Sequence, true, false, Begin); err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(ids[0]); d.State != puntuale.Pending || d.SequenceName != "promemoria" {
		t.Fatalf("kept = %+v", d)
	}
	if s, err := c.Tenant.Session(ctx, c.Session); err != nil || s.Start != 0 {
		t.Fatalf("session = %+v, %v", s, err)
	}
	if stopped, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil || len(stopped.IDs) != 2 {
		t.Fatalf("stop after deletion = %+v, %v", stopped, err)
	}
	run := c.Run(phone, Begin, 2)
	run.Run.Sequence = q.ID
	started, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSequence(ctx, q.ID, false, true, Begin); err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(started.IDs[0]); d.State != puntuale.Cancelled {
		t.Fatalf("cancelled = %+v", d)
	}
	WantCode(t, c.DeleteSequence(ctx, q.ID, false, true, Begin), puntuale.CodeNotFound)
	WantCode(t, c.UpdateSequence(ctx, q), puntuale.CodeNotFound)

	// A deletion can be undone for a short time. Then the whole sequence is restored, but cancelled messages stay
	// cancelled.
	WantCode(t, c.RestoreSequence(ctx, q.ID, Begin.Add(time.Microsecond)), puntuale.CodeNotFound)
	if err := c.RestoreSequence(ctx, q.ID, Begin); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Tenant.Sequence(ctx, q.ID); err != nil || !reflect.DeepEqual(got, q) || c.Detail(started.IDs[0]).State != puntuale.Cancelled {
		t.Fatalf("restored = %+v, %v", got, err)
	}
	if _, err := c.Start(ctx, run); err != nil {
		t.Fatalf("start what was restored: %v", err)
	}
	WantCode(t, c.RestoreSequence(ctx, q.ID, Begin), puntuale.CodeNotFound)
}

func testSessions(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	s := puntuale.Session{Client: c.ID, Name: "seconda", Type: puntuale.Official, Pace: puntuale.Pace{PerMinute: 30, PerDay: 200, ColdPerMinute: 2, ColdPerDay: 20, Jitter: 4}, Created: Begin}
	var err error
	if s.ID, err = c.CreateSession(ctx, s, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Tenant.Session(ctx, s.ID); err != nil || !reflect.DeepEqual(got, s) {
		t.Fatalf("session = %+v, %v, want %+v", got, err, s)
	}
	all, next, err := c.Sessions(ctx, puntuale.Page{})
	if err != nil || next != "" || len(all) != 2 || all[0].ID != c.Session || !all[0].Default || !reflect.DeepEqual(all[1], s) {
		t.Fatalf("sessions = %+v, %q, %v", all, next, err)
	}
	_, err = c.CreateSession(ctx, puntuale.Session{Name: "un'altra predefinita", Type: puntuale.Socket, Default: true}, nil)
	WantCode(t, err, puntuale.CodeConflict)
	_, err = w.Tenant(999).CreateSession(ctx, s, nil)
	WantCode(t, err, puntuale.CodeNotFound)
}

func testBlacklist(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for i := range 3 {
		for range 2 {
			e := puntuale.BlacklistEntry{Phone: fmt.Sprintf("+39333000000%d", i), Reason: "disiscritto", Added: Begin}
			if err := c.AddBlacklisted(ctx, e, Day, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, next, err := c.Blacklist(ctx, puntuale.Page{Limit: 2})
	if err != nil || next == "" || len(all) != 2 || all[0].Phone != "+393330000000" || all[0].Reason != "disiscritto" || !all[0].Added.Equal(Begin) {
		t.Fatalf("blacklist = %+v, %q, %v", all, next, err)
	}
	all, next, err = c.Blacklist(ctx, puntuale.Page{Limit: 2, Cursor: next})
	if err != nil || next != "" || len(all) != 1 || all[0].Phone != "+393330000002" {
		t.Fatalf("second page = %+v, %q, %v", all, next, err)
	}
	for i, want := range []bool{true, false} {
		if found, err := c.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{"+393330000001"}}, Day, Begin); err != nil || found != want {
			t.Fatalf("removal %d = %v, %v", i, found, err)
		}
	}
}

// testFindBlacklisted checks that users find blacklist entries by a part of the number or of the reason, newest first.
// Users can remove an entry by its id, and add many entries together. None of this may count as a call.
func testFindBlacklisted(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	mark := puntuale.MarkPrefix + "12345"
	all := make([]puntuale.BlacklistEntry, 0, 2503)
	for i := range 2500 {
		all = append(all, puntuale.BlacklistEntry{Phone: fmt.Sprintf("+39333%07d", i), Mark: fmt.Sprintf("%s-%d", puntuale.MarkPrefix, i), Reason: "elenco", Added: Begin})
	}
	all = append(all, puntuale.BlacklistEntry{Phone: "+393400000000", Mark: mark, Reason: "Ha scritto 100%", Added: Begin.Add(time.Hour)},
		puntuale.BlacklistEntry{Phone: "+393400000001", Reason: "C_sì", Added: Begin})
	if err := c.AddBlacklisted(ctx, all[7], Day, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{len(all) - 1, 0} {
		if n, err := c.AddAllBlacklisted(ctx, all); err != nil || n != want {
			t.Fatalf("added %d (%d): %v, want %d", n, i, err, want)
		}
	}
	if err := other.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: mark, Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := other.AddAllBlacklisted(ctx, all[2500:2501]); err != nil || n != 0 {
		t.Fatalf("added %d beside the mark: %v", n, err)
	}
	find := func(c *Client, f puntuale.BlacklistFilter, want ...string) []puntuale.BlacklistEntry {
		t.Helper()
		found, next, err := c.FindBlacklisted(ctx, f, puntuale.Page{Limit: 10})
		var phones []string
		for _, e := range found {
			phones = append(phones, e.Phone)
		}
		if err != nil || next != "" || !slices.Equal(phones, want) {
			t.Fatalf("%+v: %v, %q, %v; want %v", f, phones, next, err, want)
		}
		for limit := range len(want) + 2 {
			if n, all, err := c.CountBlacklisted(ctx, f, limit); err != nil || n != min(limit, len(want)) || all != (limit >= len(want)) {
				t.Errorf("%+v up to %d: %d, %v, %v; want %d", f, limit, n, all, err, len(want))
			}
		}
		return found
	}
	find(c, puntuale.BlacklistFilter{Digits: "3400000"}, "+393400000001", "+393400000000")
	find(c, puntuale.BlacklistFilter{Text: "HA SCRITTO 100%"}, "+393400000000")
	find(c, puntuale.BlacklistFilter{Text: "c_s"}, "+393400000001")
	find(c, puntuale.BlacklistFilter{Text: "%%"})
	find(c, puntuale.BlacklistFilter{Digits: "12345", Mark: mark})
	erased := find(other, puntuale.BlacklistFilter{Digits: "12345", Mark: mark}, "")
	if !erased[0].Erased {
		t.Error("an erased person's entry looks like another")
	}
	pageBlacklisted(t, c, len(all))
	blacklistEntry(t, c, other, find(c, puntuale.BlacklistFilter{Digits: "393400000000"}, "+393400000000")[0])
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 1 {
		t.Errorf("%d calls counted", used)
	}
	searchOldBlacklisted(t, w, c)
}

// searchOldBlacklisted checks that a page of a search looks only through so many entries, and that the next pages find the
// older ones. The entry of a whole number is found at once, and only once.
func searchOldBlacklisted(t *testing.T, w *World, c *Client) {
	t.Helper()
	n := "generate_series(1, 20000) as n(i)"
	if !w.DB.Postgres {
		n = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select i from n) as n"
	}
	w.Exec(fmt.Sprintf(`insert into blacklist (client_id, phone, id, reason, added_at) select %d, 'new' || i, 8000000000000000 + i, 'nuovo', 0 from %s`, c.ID, n))
	search := func(f puntuale.BlacklistFilter, limit int, want ...string) {
		t.Helper()
		var pages []string
		for cursor := ""; ; {
			found, next, err := c.FindBlacklisted(context.Background(), f, puntuale.Page{Limit: limit, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			var phones []string
			for _, e := range found {
				phones = append(phones, e.Phone)
			}
			if pages, cursor = append(pages, strings.Join(phones, " ")), next; next == "" {
				break
			}
		}
		if !slices.Equal(pages, want) {
			t.Errorf("%+v: pages %q, want %q", f, pages, want)
		}
	}
	search(puntuale.BlacklistFilter{Text: "C_S"}, 10, "", "+393400000001")
	search(puntuale.BlacklistFilter{Digits: "39333000000", Phone: "+393330000003"}, 4, "+393330000003", "+393330000009 +393330000008 +393330000006 +393330000005", "+393330000004 +393330000002 +393330000001 +393330000000", "+393330000007")
	search(puntuale.BlacklistFilter{Phone: "+393330000003"}, 1, "+393330000003", "", "")
	if n, all, err := c.CountBlacklisted(context.Background(), puntuale.BlacklistFilter{Digits: "39333000000", Phone: "+393330000003"}, 100); err != nil || n != 1 || all {
		t.Errorf("counted %d, %v, %v", n, all, err)
	}
}

// pageBlacklisted reads a client's whole blacklist, page by page, newest first.
func pageBlacklisted(t *testing.T, c *Client, want int) {
	t.Helper()
	seen, cursor := 0, ""
	for last := int64(puntuale.MaxID); ; {
		page, next, err := c.FindBlacklisted(context.Background(), puntuale.BlacklistFilter{}, puntuale.Page{Limit: 999, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.ID >= last {
				t.Fatalf("%d after %d", e.ID, last)
			}
			last = e.ID
		}
		if seen, cursor = seen+len(page), next; next == "" {
			break
		}
	}
	if seen != want {
		t.Errorf("%d of %d entries", seen, want)
	}
	for _, limit := range []int{want - 1, want, want + 1} {
		if n, all, err := c.CountBlacklisted(context.Background(), puntuale.BlacklistFilter{}, limit); err != nil || n != min(limit, want) || all != (limit >= want) {
			t.Errorf("up to %d: %d, %v, %v; want %d", limit, n, all, err, want)
		}
	}
}

// blacklistEntry reads and removes one of the client's entries. Another client must not be able to do either.
func blacklistEntry(t *testing.T, c, other *Client, one puntuale.BlacklistEntry) {
	t.Helper()
	ctx := context.Background()
	if e, err := c.BlacklistEntry(ctx, one.ID); err != nil || e.Phone != one.Phone || e.Reason != one.Reason || !e.Added.Equal(one.Added) {
		t.Errorf("entry = %+v, %v", e, err)
	}
	if _, err := other.BlacklistEntry(ctx, one.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another's entry: %v", err)
	}
	if err := other.RemoveBlacklistEntry(ctx, one.ID, Begin); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another's entry was removed: %v", err)
	}
	for i, want := range []puntuale.Code{"", puntuale.CodeNotFound} {
		if err := c.RemoveBlacklistEntry(ctx, one.ID, Begin); puntuale.CodeOf(err) != want {
			t.Errorf("removal %d: %v", i, err)
		}
	}
}

// testAudit checks that a client's log has the client's entries, and its partner's log those of all its clients. Each is
// counted up to a limit.
func testAudit(t *testing.T, w *World) {
	ctx := context.Background()
	mine := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	for i, client := range []puntuale.ClientID{c.ID, c.ID, other.ID, 0, c.ID} {
		if err := mine.AddAudit(ctx, puntuale.AuditEntry{Client: client, Action: fmt.Sprint(i), At: Begin}); err != nil {
			t.Fatal(err)
		}
	}
	for client, want := range map[puntuale.ClientID][]string{c.ID: {"4", "1", "0"}, other.ID: {"2"}, 0: {"4", "3", "2", "1", "0"}} {
		var actions []string
		for cursor := ""; ; {
			page, next, err := mine.Audit(ctx, client, puntuale.Page{Limit: 2, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				actions = append(actions, e.Action)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if !slices.Equal(actions, want) {
			t.Errorf("client %d: %v, want %v", client, actions, want)
		}
		for limit := range len(want) + 2 {
			if n, all, err := mine.CountAudit(ctx, client, limit); err != nil || n != min(limit, len(want)) || all != (limit >= len(want)) {
				t.Errorf("client %d up to %d: %d, %v, %v; want %d", client, limit, n, all, err, len(want))
			}
		}
	}
	_, _, err := mine.CountAudit(ctx, 999, 10)
	WantCode(t, err, puntuale.CodeNotFound)
}

func testSandbox(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	Together(30, func(i int) {
		m := puntuale.SandboxMessage{Client: c.ID, Message: puntuale.MessageID(i % 10), ConnectorID: puntuale.ConnectorID(puntuale.MessageID(i%10), 0),
			Phone: phone, Content: puntuale.Content{Text: "Ciao"}, Received: Begin}
		if err := w.Receive(ctx, m); err != nil {
			t.Error(err)
		}
	})
	all, next, err := c.SandboxMessages(ctx, puntuale.Page{Limit: 7})
	if err != nil || len(all) != 7 || next == "" {
		t.Fatalf("ledger = %+v, %q, %v", all, next, err)
	}
	rest, next, err := c.SandboxMessages(ctx, puntuale.Page{Limit: 7, Cursor: next})
	if err != nil || len(rest) != 3 || next != "" {
		t.Fatalf("rest = %+v, %q, %v", rest, next, err)
	}
	for _, m := range append(all, rest...) {
		if m.Copies != 3 || m.Content.Text != "Ciao" || m.Client != c.ID || !m.Received.Equal(Begin) || m.Phone != phone {
			t.Errorf("message = %+v", m)
		}
	}
}

// testOddText checks unusual texts. The store must store a text unchanged, or its error must say that the caller's text
// is invalid.
func testOddText(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for name, text := range map[string]string{
		"NUL": "a\x00b", "not UTF-8": "a\xff\xfeb", "half a surrogate": "a\xed\xa0\x80b", "long": strings.Repeat("è-", 20_000), "quotes": `'"{\}$1`,
	} {
		run := c.Run(text, Begin, 1)
		run.Run.Request, run.Run.Name = []byte(text), text
		run.Messages[0].Content.Text = text
		run.Idempotency = Keyed("s", text, "h")
		r, err := c.Start(ctx, run)
		if err == nil {
			if d := c.Detail(r.IDs[0]); d.Phone != text || string(d.Request) != text {
				t.Errorf("%s: became %q", name, d.Phone)
			}
		} else if puntuale.CodeOf(err) != puntuale.CodeInvalid {
			t.Errorf("%s: start: %v", name, err)
		}
		_, err = c.CreateSequence(ctx, puntuale.Sequence{Name: text}, nil)
		other := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: text, Reason: text, Added: Begin}, Day, nil)
		_, stopped := c.Stop(ctx, c.Sequence, []string{text}, "", Day, Begin)
		_, replayed := c.KeptAnswer(ctx, *run.Idempotency)
		for _, err := range []error{err, other, stopped, replayed} {
			if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
