package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// erasure returns a request to erase a person. Each client has a different mark for the same number.
func (c *Client) erasure(phone string, now time.Time) puntuale.Erasure {
	return puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: c.mark}, Day: Day, Now: now}
}

func (c *Client) person(phone string) puntuale.Person {
	return puntuale.Person{Names: []string{phone}, Mark: c.mark}
}

func (c *Client) mark(phone string) string {
	return fmt.Sprintf("%s%d/%x", puntuale.MarkPrefix, c.ID, strings.TrimPrefix(phone, "+"))
}

func (c *Client) mustErase(phone string, now time.Time) puntuale.ErasureResult {
	c.w.t.Helper()
	done, err := c.Erase(context.Background(), c.erasure(phone, now))
	if err != nil {
		c.w.t.Fatalf("erase: %v", err)
	}
	return done
}

// marked adds the marks of the phones to the items, and returns them.
func (c *Client) marked(items []puntuale.ClaimItem) []puntuale.ClaimItem {
	for i := range items {
		items[i].Mark = c.mark(items[i].Phone)
	}
	return items
}

// mentions searches every column of every table for a text. It returns the columns in which a row of the client
// contains the text.
func (w *World) mentions(client puntuale.ClientID, text string) (places []string) {
	w.t.Helper()
	for table, columns := range map[string][]string{
		"run": {"phone", "name", "request", "content"}, "message": {"phone", "reason", "detail"}, "event": {"detail"},
		"sandbox_message": {"phone", "content"}, "blacklist": {"phone", "reason"}, "idempotency": {"result"}, "contact": {"phone"}, "alias": {"phone", "alias"}, "official_pause": {"subject", "detail"},
	} {
		for _, column := range columns {
			rows, err := w.DB.SQL.Query(fmt.Sprintf("select %s from %s where client_id = %d", column, table, client))
			if err != nil {
				w.t.Fatal(err)
			}
			for rows.Next() {
				var value []byte
				if err := rows.Scan(&value); err != nil {
					w.t.Fatal(err)
				}
				if bytes.Contains(value, []byte(text)) {
					places = append(places, table+"."+column)
				}
			}
			if err := rows.Close(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// testErase erases a person who has messages in every state. Only counts of this person may remain. Other persons and
// other clients must keep their data.
func testErase(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	const number = "393471112223"
	phone := "+" + number
	at := Begin.Add(time.Minute)
	run := c.Run(phone, Begin, 3)
	run.Run.Name, run.Run.Origin = "Promemoria per "+number, puntuale.OriginSingle
	first, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	c.mustHear(phone, Begin, Begin)
	if err := w.KeepAliases(ctx, []puntuale.Alias{{Client: c.ID, Session: c.Session, Name: "IT.12", Phone: phone}, {Client: c.ID, Session: c.Session, Name: phone, Phone: "+390000"}}); err != nil {
		t.Fatal(err)
	}
	sent, failed, uncertain := first.IDs[0], first.IDs[1], first.IDs[2]
	c.MustEnd(node, at, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid " + number)}, sent)
	c.MustEnd(node, at, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero " + number + " non valido"), Detail: puntuale.Quoted(number)}, failed)
	c.MustEnd(node, at, puntuale.Outcome{Verdict: puntuale.Uncertain, Detail: puntuale.Quoted(number), Next: Begin.Add(time.Hour)}, uncertain)
	pending := c.MustStart(phone, Begin.Add(time.Hour), 2)
	retried := c.MustStart(phone, Begin, 1)
	c.MustEnd(node, at, puntuale.Outcome{Verdict: puntuale.Retry, Detail: puntuale.Quoted(number), Next: Begin.Add(time.Hour)}, retried...)
	resent := c.MustResend(sent)
	if err := w.Receive(ctx, puntuale.SandboxMessage{Client: c.ID, Message: sent, ConnectorID: puntuale.ConnectorID(sent, 0), Phone: phone,
		Content: puntuale.Content{Text: number}, Received: Begin}); err != nil {
		t.Fatal(err)
	}
	once := &puntuale.Idempotency{Scope: "POST /api/blacklist", Key: "k", Hash: "h", Answer: func(any) ([]byte, error) { return []byte(`{"phone":"` + phone + `"}`), nil }}
	for _, client := range []*Client{c, other} {
		if err := client.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Mark: client.mark(phone), Reason: number, Added: Begin}, Day, once); err != nil {
			t.Fatal(err)
		}
	}
	kept := c.MustStart("+393470000000", Begin, 1)
	theirs := other.MustStart(phone, Begin, 1)
	credits := w.Int("select credits from client where id = $1", c.ID)
	used := w.Int("select used from api_usage where client_id = $1", c.ID)
	if n := len(w.mentions(c.ID, number)); n != 15 {
		t.Fatalf("the number is in %d places: %v", n, w.mentions(c.ID, number))
	}

	want := puntuale.ErasureResult{Cancelled: 4, Messages: 7, Sandbox: 1, Answers: 1, Blacklisted: true}
	if done := c.mustErase(phone, Begin.Add(2*time.Minute)); done != want {
		t.Errorf("erased %+v, want %+v", done, want)
	}
	if places := w.mentions(c.ID, number); places != nil {
		t.Errorf("the number is still in %v", places)
	}
	states := map[puntuale.MessageID]puntuale.State{sent: puntuale.Completed, failed: puntuale.Failed, uncertain: puntuale.Failed,
		pending[0]: puntuale.Cancelled, pending[1]: puntuale.Cancelled, retried[0]: puntuale.Cancelled, resent[0]: puntuale.Cancelled}
	for id, state := range states {
		d := c.Detail(id)
		if d.State != state || d.Phone != "" || d.RunName != "" || !d.Detail.IsZero() || d.Response().IsZero() {
			t.Errorf("message %d: %+v", id, d)
		}
		c.wantSaid(false, id)
	}
	if d := c.Detail(uncertain); d.Response().Code != puntuale.ReasonUncertain {
		t.Errorf("the uncertain one says %q", d.Response())
	}
	if n := w.Int("select credits from client where id = $1", c.ID); n != credits {
		t.Errorf("%d credits, were %d", n, credits)
	}
	if n := w.Int("select used from api_usage where client_id = $1", c.ID); n != used+1 {
		t.Errorf("%d calls are counted, were %d", n, used)
	}
	c.wantSaid(true, kept...)
	other.wantSaid(true, theirs...)
	if d := other.Detail(theirs[0]); d.Phone != phone || d.State != puntuale.Pending {
		t.Errorf("another client's became %+v", d)
	}
	afterErase(t, w, c, phone, sent, failed, uncertain, *once)
	if done := other.mustErase(phone, Begin); done != (puntuale.ErasureResult{Cancelled: 1, Messages: 1, Answers: 1, Blacklisted: true}) {
		t.Errorf("another client erased %+v", done)
	}
}

// afterErase continues with an erased person's messages. One was sent, one failed, and one is uncertain.
func afterErase(t *testing.T, w *World, c *Client, phone string, sent, failed, uncertain puntuale.MessageID, once puntuale.Idempotency) {
	t.Helper()
	ctx, number := context.Background(), phone[1:]
	// The index run_recipient finds no run of the person any more, so a repeated erasure has nothing to do.
	if done := c.mustErase(phone, Begin.Add(2*time.Minute)); done != (puntuale.ErasureResult{Blacklisted: true}) {
		t.Errorf("erased again %+v", done)
	}
	if _, err := c.Resend(ctx, c.Again(failed)); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("sent again: %v", err)
	}
	// A repeated call must get the answer of the earlier call, but without the number.
	if answer, err := c.KeptAnswer(ctx, once); err != nil || string(answer) != `{"phone":""}` {
		t.Errorf("kept %q, %v", answer, err)
	}
	// A later outcome must be stored without its text.
	w.mustRecordLate(c, uncertain, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(number)})
	w.mustRecordLate(c, sent, puntuale.Outcome{Verdict: puntuale.Refused, Detail: puntuale.Quoted(number)})
	if d := c.Detail(uncertain); d.State != puntuale.Completed || w.mentions(c.ID, number) != nil {
		t.Errorf("after late evidence: %+v, in %v", d, w.mentions(c.ID, number))
	}
}

// testEraseAnswers checks that answers about other numbers stay, even if these numbers look similar.
func testEraseAnswers(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for number, cases := range map[string][]struct{ kept, want string }{
		"+39347123456": {
			{`{"phone":"+39347123456"}`, `{"phone":""}`},
			{`{"phone":"+393471234567"}`, `{"phone":"+393471234567"}`},
			{`["+393471234567","+39347123456"]`, `["+393471234567",""]`},
			{`+39347123456`, ``},
			{`+39347123456+39347123456`, ``},
			{`{"id":"7"}`, `{"id":"7"}`},
		},
		"12036304-39": {
			{`"12036304-39"`, `""`},
			{`"12036304-39-1 x12036304-39 12036304-39_ 112036304-39 12036304-39A"`, `"12036304-39-1 x12036304-39 12036304-39_ 112036304-39 12036304-39A"`},
		},
	} {
		var all []*puntuale.Idempotency
		for i, k := range cases {
			o := &puntuale.Idempotency{Scope: "POST /api/blacklist", Key: fmt.Sprint(number, i), Hash: "h", Answer: func(any) ([]byte, error) { return []byte(k.kept), nil }}
			all = append(all, o)
			if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000009", Added: Begin}, Day, o); err != nil {
				t.Fatal(err)
			}
		}
		c.mustErase(number, Begin)
		for i, k := range cases {
			if answer, err := c.KeptAnswer(ctx, *all[i]); err != nil || string(answer) != k.want {
				t.Errorf("%s of %s became %s, %v; want %s", number, k.kept, answer, err, k.want)
			}
		}
	}
	// These are more answers than one transaction handles.
	for i := range 1200 {
		w.Exec("insert into idempotency (client_id, scope, key, hash, at, result) values ($1, 'bulk', $2, '', 1, $3)", c.ID, fmt.Sprint(i), []byte("+39347123456"))
	}
	if done := c.mustErase("+39347123456", Begin); done.Answers != 1200 || w.mentions(c.ID, "+39347123456") == nil {
		t.Errorf("%+v", done) // the longer number must still be stored
	}
}

func (w *World) mustRecordLate(c *Client, id puntuale.MessageID, o puntuale.Outcome) {
	w.t.Helper()
	if w.MustRecord(Begin.Add(time.Hour), c.Items("", 0, id)[0], 1<<40, o) {
		w.t.Errorf("message %d: a late outcome was applied as it stands", id)
	}
}

// testEraseInFlight checks messages that are in flight or being repeated. They cannot be erased yet, but everything
// else must be erased. The caller gets an error, and the call must not count. When these messages have ended, the same
// call must finish the erasure.
func testEraseInFlight(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	now := Begin.Add(time.Minute)
	flying, repeated := c.MustStart(phone, Begin, 2), c.MustStart(phone, Begin, 1)
	old, pending := c.MustStart(phone, Begin, 1), c.MustStart(phone, Begin.Add(time.Hour), 1)
	c.MustSend(node, now, old...)
	c.MustEnd(node, now, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now}, repeated...)
	again := c.Items(phone, c.Detail(repeated[0]).Intent, repeated...)
	repeat, granted := w.MustClaim(node, now, again...)
	items := c.Items(phone, 0, flying[0])
	token, _ := w.MustClaim(node, now, items...)
	if err := c.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Added: Begin}, Day, nil); err != nil || granted[0] != puntuale.ClaimGranted {
		t.Fatal(err, granted)
	}
	used := w.Int("select used from api_usage where client_id = $1", c.ID)
	busy := func(left ...puntuale.MessageID) {
		t.Helper()
		_, err := c.Erase(context.Background(), c.erasure(phone, now))
		if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeBusy || e.RetryAfter <= 0 {
			t.Fatalf("erase: %v", err)
		}
		for _, id := range left {
			if d := c.Detail(id); d.Intent <= 0 || d.Phone != phone || d.Blanked {
				t.Errorf("what is being sent became %+v", d)
			}
		}
		if n := w.Int("select used from api_usage where client_id = $1", c.ID); n != used {
			t.Errorf("a refused call is counted")
		}
		if list, _, err := c.Blacklist(context.Background(), puntuale.Page{}); err != nil || len(list) != 1 || !list[0].Erased {
			t.Errorf("the blacklist became %v, %v", list, err)
		}
	}
	busy(flying[0], repeated[0])
	c.wantSaid(false, append(old, pending...)...)
	if d := c.Detail(flying[1]); d.State != puntuale.Cancelled {
		t.Errorf("the next one of its run is %v", d.State)
	}
	w.MustRecord(now, items[0], token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(phone)})
	busy(repeated[0])
	c.wantSaid(false, flying...)
	w.MustRecord(now, again[0], repeat, puntuale.Outcome{Verdict: puntuale.Uncertain, Detail: puntuale.Quoted(phone), Next: now.Add(time.Hour)})
	if done := c.mustErase(phone, now); done.Messages != 1 || !done.Blacklisted {
		t.Errorf("erased %+v", done)
	}
	c.wantSaid(false, repeated...)
	if d := c.Detail(flying[0]); d.State != puntuale.Completed || w.mentions(c.ID, phone) != nil {
		t.Errorf("%+v, the number is in %v", d, w.mentions(c.ID, phone))
	}
	if d := c.Detail(repeated[0]); d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonUncertain {
		t.Errorf("%+v", d)
	}
}

// testErasedStaysBlacklisted checks that the blacklist finds an erased number by its mark. The number cannot be added a
// second time. It must still block messages, and it can be removed.
func testErasedStaysBlacklisted(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	now := Begin.Add(time.Minute)
	entry := puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Reason: "ha chiesto", Added: Begin}
	for _, client := range []*Client{c, other} {
		if err := client.AddBlacklisted(ctx, entry, Day, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if done := c.mustErase(phone, now); !done.Blacklisted {
			t.Errorf("erased %+v", done)
		}
		list, _, err := c.Blacklist(ctx, puntuale.Page{})
		if err != nil || len(list) != 1 || !list[0].Erased || list[0].Phone != "" || list[0].Reason != "" || !list[0].Added.Equal(Begin) {
			t.Fatalf("the blacklist is %+v, %v", list, err)
		}
		if err := c.AddBlacklisted(ctx, entry, Day, nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.mentions(c.ID, phone) != nil {
		t.Errorf("the number is in %v", w.mentions(c.ID, phone))
	}
	if list, _, err := other.Blacklist(ctx, puntuale.Page{}); err != nil || len(list) != 1 || list[0].Phone != phone || list[0].Erased {
		t.Errorf("another client's is %+v, %v", list, err)
	}
	permissions, err := w.SendPermissions(ctx, []puntuale.ClientID{c.ID, other.ID})
	if err != nil || !permissions[c.ID].Erased || permissions[other.ID].Erased {
		t.Fatalf("permissions %+v, %v", permissions, err)
	}
	blocked, free := c.MustStart(phone, Begin, 1), c.MustStart("+393339999999", Begin, 1)
	items := append(c.Items(phone, 0, blocked...), c.Items("+393339999999", 0, free...)...)
	before := c.Detail(blocked[0])
	if _, granted := w.MustClaim(node, now, items...); !slices.Equal(granted, []puntuale.ClaimAnswer{puntuale.ClaimUnmarked, puntuale.ClaimUnmarked}) {
		t.Fatalf("without marks: %v", granted)
	}
	if after := c.Detail(blocked[0]); !reflect.DeepEqual(after.Message, before.Message) {
		t.Errorf("%+v, before %+v", after, before)
	}
	if _, granted := w.MustClaim(node, now, c.marked(items)...); !slices.Equal(granted, []puntuale.ClaimAnswer{puntuale.ClaimBlacklisted, puntuale.ClaimGranted}) {
		t.Fatalf("with marks: %v", granted)
	}
	if n := w.Int("select credits from client where id = $1", c.ID); n != 99 {
		t.Errorf("%d credits", n)
	}
	for _, want := range []bool{true, false} {
		if found, err := c.RemoveBlacklisted(ctx, c.person(phone), Day, Begin); err != nil || found != want {
			t.Errorf("removed: %v, %v", found, err)
		}
	}
	if _, granted := w.MustClaim(node, now, c.marked(c.Items(phone, 0, c.MustStart(phone, Begin, 1)...))...); granted[0] != puntuale.ClaimGranted {
		t.Errorf("once it was removed: %v", granted)
	}
}

// testEraseAgain checks that a repeated call finishes an erasure that failed before its end. Each run must be erased
// completely or not at all.
func testEraseAgain(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	for range 25 {
		c.MustStart(phone, Begin.Add(time.Hour), 50)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var left int64 = 25
	wg.Go(func() {
		defer cancel()
		for deadline := time.Now().Add(30 * time.Second); left == 25 && time.Now().Before(deadline); {
			left = w.Int("select count(*) from run where client_id = $1 and phone <> ''", c.ID)
		}
	})
	_, err := c.Erase(ctx, c.erasure(phone, Begin))
	wg.Wait()
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Fatal(err)
	}
	if n := w.Int(`select count(*) from message m join run r on r.client_id = m.client_id and r.id = m.run_id where (m.phone = '') <> (r.phone = '')`); n != 0 {
		t.Errorf("%d messages and their runs differ", n)
	}
	c.mustErase(phone, Begin)
	if n := w.Int("select count(*) from message where client_id = $1 and (phone <> '' or state <> 3)", c.ID); n != 0 || w.mentions(c.ID, phone) != nil {
		t.Errorf("%d messages are left, %v", n, w.mentions(c.ID, phone))
	}
}

// testEraseTogether erases a blacklisted number. At the same time, no message may be sent to it, even by a claim that
// began before the erasure. Messages that are sent again meanwhile must be either erased or kept completely.
func testEraseTogether(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	now := Begin.Add(time.Minute)
	for round := range 5 {
		number := fmt.Sprintf("+3934711122%02d", round)
		if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: number, Added: Begin}, Day, nil); err != nil {
			t.Fatal(err)
		}
		old := c.MustStart(number, Begin.Add(-time.Hour), 3)
		if _, err := c.CancelMessages(ctx, old, Day, Begin); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				_, err := c.Erase(ctx, c.erasure(number, now))
				if puntuale.CodeOf(err) == puntuale.CodeBusy {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
		wg.Go(func() {
			_, err := c.Resend(ctx, c.Again(old[1]))
			if err != nil && puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Error(err)
			}
		})
		for range 2 {
			wg.Go(func() {
				for range 5 {
					ids := c.MustStart(number, Begin, 1)
					_, granted := w.MustClaim(node, now, c.Items(number, 0, ids...)...)
					if granted[0] == puntuale.ClaimUnmarked {
						_, granted = w.MustClaim(node, now, c.marked(c.Items(number, 0, ids...))...)
					}
					if granted[0] == puntuale.ClaimGranted {
						t.Error("a message to a blacklisted number may leave")
					}
				}
			})
		}
		wg.Wait()
		c.mustErase(number, now)
		if places := w.mentions(c.ID, number); places != nil {
			t.Errorf("%s is in %v", number, places)
		}
		if n := w.Int("select count(*) from message where client_id = $1 and state = 0", c.ID); n != 0 {
			t.Errorf("%d messages are open", n)
		}
	}
	if n := w.DB.Meter.Deadlocks.Load(); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}
