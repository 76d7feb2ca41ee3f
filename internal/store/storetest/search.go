package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// named starts one message with a call that contains the person's name.
func (c *Client) named(name, text string) puntuale.MessageID {
	c.w.t.Helper()
	run := c.Run(phone, Begin.Add(time.Hour), 1)
	run.Run.Request = []byte(fmt.Sprintf(`{"phone":%q,"nome":%q}`, phone, name))
	run.Messages[0].Content.Text = text
	started, err := c.Start(context.Background(), run)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return started.IDs[0]
}

// testSearchMessages checks that a search finds a text in the name and in the message, and ignores case and accents. No
// character is a wildcard. The search must find nothing of another client.
func testSearchMessages(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	nicolo := c.named("Nicolò D'Angelo", "A domani alle 10%")
	maria := c.named("Maria Rossi", "Perché no? \"Sì\" <b>\n100_000")
	other.named("Nicolò Altrui", "domani")
	again := c.MustResend(c.failed(maria))
	for text, want := range map[string][]puntuale.MessageID{
		"nicolo": {nicolo}, "NICOLÒ": {nicolo}, "nicolo\u0300 angelo": {nicolo}, "angelo DOMANI": {nicolo}, "d'a": {nicolo},
		"perche": {again[0], maria}, "rossi si": {again[0], maria}, "\"sì\" <b> 100_0": {again[0], maria},
		"10%": {nicolo}, "%": {nicolo}, "_": {again[0], maria}, "\\": nil, "1_0": nil, "rossi domani": nil, "altrui": nil, phone: nil,
		" ": {again[0], maria, nicolo},
	} {
		found, next, err := c.Messages(ctx, puntuale.MessageFilter{Text: text, Look: 100}, puntuale.Page{})
		if err != nil || next != "" || !slices.Equal(idsOf(found), want) {
			t.Errorf("%q: %v, %q, %v; want %v", text, idsOf(found), next, err, want)
		}
		n, all, err := c.CountMessages(ctx, puntuale.MessageFilter{Text: text, Look: 100}, 10)
		if err != nil || !all || n != len(want) {
			t.Errorf("%q: %d counted, %v, %v", text, n, all, err)
		}
	}
	pending := puntuale.Pending
	found, _, err := c.Messages(ctx, puntuale.MessageFilter{Text: "perche", State: &pending, Phone: phone, Sequence: c.Sequence}, puntuale.Page{})
	if err != nil || !slices.Equal(idsOf(found), again) || found[0].Content.Text == "" {
		t.Errorf("of those that wait: %v, %v", idsOf(found), err)
	}
	testSearchPages(t, w.Client(puntuale.AccountFull))
}

// failed makes a message FAILED and returns it.
func (c *Client) failed(id puntuale.MessageID) puntuale.MessageID {
	c.w.t.Helper()
	c.MustEnd(c.w.MustJoin(), Begin.Add(time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")}, id)
	return id
}

// testSearchPages checks that the pages of a search contain each match once. A page that ends at its limit must have a
// cursor.
func testSearchPages(t *testing.T, c *Client) {
	t.Helper()
	ctx := context.Background()
	var want []puntuale.MessageID
	for i := range 9 {
		if id := c.named([]string{"Ugo", "Ada", "Ida"}[i%3], "ciao"); i%3 == 0 {
			want = append([]puntuale.MessageID{id}, want...)
		}
	}
	for _, look := range []int{0, 2, 100} {
		for _, limit := range []int{1, 2, 10} {
			var got []puntuale.MessageID
			p := puntuale.Page{Limit: limit}
			for pages := 0; pages == 0 || p.Cursor != ""; pages++ {
				found, next, err := c.Messages(ctx, puntuale.MessageFilter{Text: "ugo", Look: look}, p)
				if err != nil || len(found) > limit || pages > 9 || look == 2 && len(found) > 1 {
					t.Fatalf("look %d, limit %d, page %d: %v, %v", look, limit, pages, idsOf(found), err)
				}
				got, p.Cursor = append(got, idsOf(found)...), next
			}
			if !slices.Equal(got, want) {
				t.Errorf("look %d, limit %d: %v, want %v", look, limit, got, want)
			}
		}
	}
	if _, all, err := c.CountMessages(ctx, puntuale.MessageFilter{Text: "ugo", Look: 2}, 10); err != nil || all {
		t.Errorf("a count that did not look at all says so: %v, %v", all, err)
	}
}

// testSearchSequences checks that a search finds sequences by words of the name or by the id. It reads the results page
// by page, in both orders.
func testSearchSequences(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	ids := []puntuale.SequenceID{c.Sequence}
	for _, name := range []string{"Caffè 100%", "Richiamo caffe", "Visita_1", "Caffè freddo"} {
		id, err := c.CreateSequence(ctx, puntuale.Sequence{Name: name, Steps: []puntuale.Step{{Text: "uno"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if _, err := other.CreateSequence(ctx, puntuale.Sequence{Name: "Caffè altrui"}, nil); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]puntuale.SequenceID{
		"": ids, "CAFFE": {ids[1], ids[2], ids[4]}, "caffè richiamo": {ids[2]}, "%": {ids[1]}, "_": {ids[3]}, "altrui": nil,
		" " + ids[3].String() + " ": {ids[3]}, other.Sequence.String(): nil,
	} {
		for _, newest := range []bool{false, true} {
			var got []puntuale.SequenceID
			p := puntuale.Page{Limit: 2}
			for pages := 0; pages == 0 || p.Cursor != ""; pages++ {
				part, next, err := c.Sequences(ctx, puntuale.SequenceFilter{Text: text, Newest: newest}, p)
				if err != nil || len(part) > 2 || pages > 3 {
					t.Fatalf("%q: %v, %v", text, part, err)
				}
				for _, q := range part {
					if len(q.Steps) == 0 {
						t.Errorf("%q: without steps: %+v", text, q)
					}
					got = append(got, q.ID)
				}
				p.Cursor = next
			}
			if newest {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, newest first %v: %v, want %v", text, newest, got, want)
			}
		}
		for limit := range len(want) + 2 {
			if n, all, err := c.CountSequences(ctx, text, limit); err != nil || n != min(limit, len(want)) || all != (limit >= len(want)) {
				t.Errorf("%q up to %d: %d, %v, %v; want %d", text, limit, n, all, err, len(want))
			}
		}
	}
	_, cursor, err := c.Sequences(ctx, puntuale.SequenceFilter{}, puntuale.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Sequences(ctx, puntuale.SequenceFilter{Newest: true}, puntuale.Page{Cursor: cursor})
	WantCode(t, err, puntuale.CodeInvalid)
}

func testLastStarted(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	var ids []puntuale.SequenceID
	for range 3 {
		id, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "altra"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	started := func(id puntuale.SequenceID) {
		run := c.Run(phone, Begin.Add(time.Hour), 1)
		run.Run.Sequence = id
		if _, err := c.Start(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []puntuale.SequenceID{ids[0], ids[1], ids[2], ids[0]} {
		started(id)
	}
	other.MustStart(phone, Begin, 1)
	if err := c.DeleteSequence(ctx, ids[2], true, false, Begin); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int][]puntuale.SequenceID{10: {ids[0], ids[1]}, 1: {ids[0]}} {
		if got, err := c.LastStarted(ctx, limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("the last %d = %v, %v, want %v", limit, got, err, want)
		}
	}
}

// testUncertainFound checks that uncertain messages are listed, latest attempt first. Messages in flight, ended
// messages, messages in retry and messages of another client must not be listed. If there are more open messages than
// the search reads, the result must say so.
func testUncertainFound(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	unsure := func(client *Client, number string, at time.Time) puntuale.MessageID {
		item, token := client.attempt(node, number)
		if !w.MustRecord(at, item, token, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: Begin.Add(24 * time.Hour)}) {
			t.Fatal("not applied")
		}
		return item.ID
	}
	first, last := unsure(c, "+393330000001", Begin), unsure(c, "+393330000002", Begin)
	unsure(other, "+393330000003", Begin)
	c.attempt(node, "+393330000004")
	again, token := c.attempt(node, "+393330000005")
	w.MustRecord(Begin, again, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: Begin.Add(time.Minute)})
	c.MustSend(node, Begin, c.MustStart("+393330000006", Begin, 1)...)
	look := func(after time.Time, whole bool, want ...puntuale.MessageID) {
		t.Helper()
		found, all, err := c.Uncertain(ctx, after)
		var got []puntuale.MessageID
		for _, u := range found {
			if got = append(got, u.ID); !u.At.Equal(Begin) || !u.Next.Equal(Begin.Add(24*time.Hour)) {
				t.Errorf("%+v", u)
			}
		}
		if err != nil || all != whole || !slices.Equal(got, want) {
			t.Errorf("after %s: %v, %v, %v; want %v, %v", after, got, all, err, want, whole)
		}
	}
	look(Begin, true, last, first)
	look(Begin.Add(24*time.Hour), true)
	n := "generate_series(1, 20000) as n(i)"
	if !w.DB.Postgres {
		n = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select i from n) as n"
	}
	w.Exec(fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone)
 select %d, 8000000000000000 + i, %d, 1, 0, %d, %d, %d, 0, 2, '' from %s`, c.ID, c.Session, Begin.UnixMicro()+1, Begin.UnixMicro()+1, Begin.UnixMicro()+2, n))
	look(Begin, false)
	look(Begin.Add(time.Hour), true, last, first)
}

func testAmongBlacklisted(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	for client, number := range map[*Client]string{c: "+393330000001", other: "+393330000002"} {
		if err := client.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: number, Added: Begin}, Day, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.AmongBlacklisted(ctx, []string{"+393330000003", "+393330000002", "+393330000001", "%"}, nil)
	if err != nil || len(got) != 1 || !got["+393330000001"] {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.AmongBlacklisted(ctx, nil, nil); err != nil || len(got) > 0 {
		t.Errorf("of none: %v, %v", got, err)
	}
}

// found returns the names of the contacts that a search by name finds, in order.
func (c *Client) found(text string, limit int) (names []string, more bool) {
	c.w.t.Helper()
	all, more, err := c.FindContacts(context.Background(), text, limit)
	if err != nil {
		c.w.t.Fatalf("find %q: %v", text, err)
	}
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, more
}

// testFindByName checks that a search for a person forgives typing errors, prefers names with the whole words, and never
// finds a name that no contact has any more.
func testFindByName(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	for i, name := range []string{"Mario Rossi", "Maria Rossini", "Rosina Mariotti", "Niccolò D'Angelo", "Giuseppe Buonarroti", "Ugo Bo", "Ян Новак"} {
		c.mustMerge(Begin, puntuale.Contact{Phone: fmt.Sprintf("+3933300000%02d", i), Name: name})
	}
	other.mustMerge(Begin, puntuale.Contact{Phone: phone, Name: "Mario Rossi Altrui"})
	for text, want := range map[string][]string{
		"mario rossi":          {"Mario Rossi", "Maria Rossini"}, // maria differs in one letter, and rossini begins with rossi
		"rosi mario":           {"Mario Rossi", "Rosina Mariotti"},
		"Rsosi":                {"Mario Rossi"},
		"rossii":               {"Mario Rossi", "Maria Rossini"},
		"nicolo dangelo":       {"Niccolò D'Angelo"}, // D'Angelo is two words
		"nicolo angelo":        {"Niccolò D'Angelo"},
		"giusepe buonarotti":   {"Giuseppe Buonarroti"},
		"ugo":                  {"Ugo Bo"},
		"bo":                   {"Ugo Bo"},
		"новок":                {"Ян Новак"},
		"mario verdi":          nil,
		"altrui":               nil,
		"":                     nil,
		"%":                    nil,
		"rossi rossi rossi":    {"Mario Rossi", "Maria Rossini"},
		"angelo niccolo mario": nil,
	} {
		if got, more := c.found(text, 8); !slices.Equal(got, want) || more {
			t.Errorf("%q: %q (more: %v), want %q", text, got, more, want)
		}
	}
	if got, more := c.found("ros", 1); len(got) != 1 || !more {
		t.Errorf("one of several: %q, %v", got, more)
	}
	erased := c.mustMerge(Begin, puntuale.Contact{Phone: "+393331111111", Name: "Zaccaria Quaglia"}).All[0]
	if got, _ := c.found("zacaria quglia", 8); len(got) != 1 {
		t.Errorf("before: %q", got)
	}
	if _, err := c.UpdateContact(ctx, erased.ID, puntuale.ContactPatch{Name: new("Zaccaria Tordo")}, Day, Begin); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.found("zacaria quglia", 8); len(got) != 0 {
		t.Errorf("by the name before: %q", got)
	}
	if got, _ := c.found("torod", 8); len(got) != 1 {
		t.Errorf("by the new name: %q", got)
	}
	c.mustErase("+393331111111", Begin)
	if n := w.Int("select count(*) from person_word where word in ('quaglia', 'zaccaria', 'tordo')"); n != 0 {
		t.Errorf("%d rows are left of an erased name", n)
	}
	if n := w.Int("select count(*) from person_word where word = 'rossi'"); n != 10 { // each client has rossi, ossi, rssi, rosi and ross
		t.Errorf("a word that others have has %d forms", n)
	}
	testFindNamed(t, c, other)
}

// testFindNamed checks the search for sequences, campaigns and templates.
func testFindNamed(t *testing.T, c, other *Client) {
	t.Helper()
	ctx := context.Background()
	named := func(client *Client, name string) puntuale.TemplateID {
		id, err := client.CreateTemplate(ctx, puntuale.Template{Name: name, Text: "x", Created: Begin, Updated: Begin}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, second := named(c, "Caffè del mattino"), named(c, "Caffè della sera")
	named(other, "Caffè altrui")
	for text, want := range map[string][]int64{"CAFFE": {int64(second), int64(first)}, "mattino caffe": {int64(first)}, first.String(): {int64(first)}, "altrui": nil, "": nil} {
		found, err := c.FindNamed(ctx, text, 8)
		var got []int64
		for _, n := range found[puntuale.NamedTemplate] {
			got = append(got, n.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("templates %q: %v, %v; want %v", text, got, err, want)
		}
	}
	if found, err := c.FindNamed(ctx, "caffe", 1); err != nil || len(found[puntuale.NamedTemplate]) != 1 {
		t.Errorf("one of two: %v, %v", found, err)
	}
	if found, err := c.FindNamed(ctx, c.Sequence.String(), 8); err != nil || len(found[puntuale.NamedSequence]) != 1 {
		t.Errorf("a sequence by its id: %v, %v", found, err)
	}
}

// frozen closes an empty month of the client.
func (c *Client) frozen(month puntuale.Month) error {
	ctx, until := context.Background(), Begin.Add(time.Hour)
	claimed, err := c.ClaimStatement(ctx, month, Begin, until)
	if err != nil || !claimed {
		return fmt.Errorf("claimed %v: %w", claimed, err)
	}
	frozen, err := c.FreezeStatement(ctx, puntuale.Statement{Month: month, Zone: "Europe/Rome", Frozen: Begin, CountedTo: Begin}, until)
	if err != nil || !frozen {
		return fmt.Errorf("frozen %v: %w", frozen, err)
	}
	return nil
}

// testStatementOnce checks that one node at a time counts a month, that another one goes on after its deadline, and that a
// closed month never changes.
func testStatementOnce(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	first, second := Begin.Add(time.Minute), Begin.Add(time.Hour)
	claim := func(now, until time.Time, want bool) {
		t.Helper()
		if got, err := c.ClaimStatement(ctx, 202610, now, until); err != nil || got != want {
			t.Errorf("claim at %v: %v, %v", now, got, err)
		}
	}
	freeze := func(calls int64, until time.Time, want bool) {
		t.Helper()
		if got, err := c.FreezeStatement(ctx, puntuale.Statement{Month: 202610, Calls: calls, Frozen: Begin, CountedTo: Begin}, until); err != nil || got != want {
			t.Errorf("freeze %d: %v, %v", calls, got, err)
		}
	}
	claim(Begin, first, true)
	claim(Begin, second, false)
	if all, err := w.Store.UnclosedMonths(ctx, 202610, Begin.AddDate(0, -2, 0), Begin.AddDate(1, 0, 0), Begin, 0, 10); err != nil || len(all) != 0 {
		t.Errorf("while it is counted: %v, %v", all, err)
	}
	claim(first, second, true)
	freeze(1, first, false) // too late
	freeze(2, second, true)
	freeze(3, second, false)
	claim(second.Add(time.Hour), second.Add(2*time.Hour), false)
	if s, found, err := c.Statement(ctx, 202610); err != nil || !found || s.Calls != 2 || !s.Frozen.Equal(Begin) {
		t.Errorf("the statement: %+v, %v, %v", s, found, err)
	}
	if all, err := w.Store.UnclosedMonths(ctx, 202609, Begin.AddDate(0, -2, 0), Begin.AddDate(1, 0, 0), Begin, 0, 10); err != nil || len(all) != 1 || all[0].Client != c.ID {
		t.Errorf("another month: %v, %v", all, err)
	}
}

// testStatementParts checks that what a month counted is found by its messages, that other counts of the month and other months
// do not matter, and that it goes when no correction needs it any more.
func testStatementParts(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	line := func(category string) puntuale.StatementLine {
		return puntuale.StatementLine{MessageKind: puntuale.MessageKind{Country: "IT", Category: category}, Network: puntuale.Official, Origin: puntuale.OriginSingle, Source: puntuale.PriceEstimated}
	}
	keep := func(month puntuale.Month, to time.Time, n int, parts ...puntuale.StatementPart) {
		t.Helper()
		for range 2 { // the same parts again change nothing
			if err := c.KeepStatementParts(ctx, month, to, n, parts); err != nil {
				t.Fatal(err)
			}
		}
	}
	find := func(month puntuale.Month, want map[puntuale.MessageID]string) {
		t.Helper()
		got, err := c.StatementLines(ctx, month, Begin, []puntuale.MessageID{3, 5, 7, puntuale.MaxID, 1100, 2000})
		if err != nil || len(got) != len(want) {
			t.Errorf("%v: %v, %v", month, got, err)
		}
		for id, category := range want {
			if got[id] != line(category) {
				t.Errorf("%v: message %d is in %+v", month, id, got[id])
			}
		}
	}
	keep(202610, Begin.Add(-time.Hour), 0, puntuale.StatementPart{Line: line("service"), Messages: []puntuale.MessageID{3, 5, 7, 2000}}) // of a node that stopped
	keep(202610, Begin, 0, puntuale.StatementPart{Line: line("marketing"), Messages: []puntuale.MessageID{puntuale.MaxID, 5, 3}}, puntuale.StatementPart{Line: line("utility"), Messages: []puntuale.MessageID{4}})
	for i := range 150 {
		keep(202610, Begin, 2+i, puntuale.StatementPart{Line: line("utility"), Messages: []puntuale.MessageID{puntuale.MessageID(1000 + i)}})
	}
	keep(202609, Begin, 0, puntuale.StatementPart{Line: line("service"), Messages: []puntuale.MessageID{7}})
	october := map[puntuale.MessageID]string{3: "marketing", 5: "marketing", puntuale.MaxID: "marketing", 1100: "utility"}
	find(202610, october)
	find(202609, map[puntuale.MessageID]string{7: "service"})
	for _, step := range []struct {
		now  time.Time
		kept map[puntuale.MessageID]string
	}{{time.Date(2027, 1, 4, 0, 0, 0, 0, time.UTC), october}, {time.Date(2027, 1, 6, 0, 0, 0, 0, time.UTC), nil}} {
		if err := w.Store.Maintain(ctx, step.now, Begin); err != nil {
			t.Fatal(err)
		}
		find(202610, step.kept)
		find(202609, nil)
	}
}
