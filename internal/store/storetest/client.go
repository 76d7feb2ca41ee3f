package storetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"puntuale"
)

func testClients(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	clients := []*Client{w.Client(puntuale.AccountFull), w.Client(puntuale.AccountTest), w.Client(puntuale.AccountBaby)}
	first, next, err := p.Clients(ctx, puntuale.Page{Limit: 2})
	if err != nil || next == "" || len(first) != 2 || first[0].ID != clients[0].ID || first[1].ID != clients[1].ID {
		t.Fatalf("first page = %+v, %q, %v", first, next, err)
	}
	rest, next, err := p.Clients(ctx, puntuale.Page{Limit: 2, Cursor: next})
	if err != nil || next != "" || len(rest) != 1 || rest[0].ID != clients[2].ID || rest[0].RefillTo != 2000 || rest[0].Connection != puntuale.Socket {
		t.Fatalf("second page = %+v, %q, %v", rest, next, err)
	}
	found, err := p.ClientsByID(ctx, []puntuale.ClientID{clients[2].ID, 999, clients[0].ID, clients[2].ID})
	if err != nil || len(found) != 2 || !reflect.DeepEqual(found[clients[2].ID], rest[0]) || found[clients[0].ID].ID != clients[0].ID {
		t.Fatalf("by id = %+v, %v", found, err)
	}
}

// testUpdateClient changes each field that a partner may change. The other fields must stay the same.
func testUpdateClient(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c := w.Client(puntuale.AccountTest)
	before, err := p.Client(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	before.Revision++ // the revision may grow even without a change, because a comparison would cost more
	if got, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{}, Begin); err != nil || !reflect.DeepEqual(got, before) {
		t.Fatalf("no change = %+v, %v", got, err)
	}
	want := before
	want.Name, want.Phone, want.Profile, want.Refill, want.RefillTo, want.RefillAt = "Nuovo", "+39 06 1", "Oro", puntuale.RefillMonthly, 500, Begin.Add(time.Hour)
	want.Cap, want.Credits, want.Expires, want.ExpiresAt = nil, new(int64(7)), puntuale.Date{Year: 2027, Month: 1, Day: 31}, Begin.Add(48*time.Hour)
	want.Zone, want.Region, want.Suspended, want.Features = "Europe/London", "GB", true, []string{"a", "b"}
	want.Closed = []puntuale.Date{{Year: 2026, Month: 12, Day: 24}, {Year: 2026, Month: 12, Day: 31}}
	want.Revision = before.Revision + 1
	patch := puntuale.ClientPatch{Cap: To[*int64](nil), Credits: To(new(int64(7))), Profile: To(want.Profile), Refill: To(want.Refill), RefillTo: To(want.RefillTo),
		Expires: To(want.Expires), Features: To(want.Features), Name: To(want.Name), Phone: To(want.Phone),
		Zone: To(want.Zone), Region: To(want.Region), Closed: To(want.Closed), Suspended: To(true),
		Derive: func(c puntuale.Client) puntuale.Client {
			if c.Zone != want.Zone || c.Refill != want.Refill || c.Expires != want.Expires {
				t.Errorf("derived from %+v", c)
			}
			c.RefillAt, c.ExpiresAt = want.RefillAt, want.ExpiresAt
			return c
		}}
	if n := reflect.TypeOf(patch).NumField(); n != 22 { // other tests cover Quotas, Settings, Known, Plan, PlanSince, Budget and Currency
		t.Errorf("%d fields may be changed, 22 are tried", n)
	}
	got, err := p.UpdateClient(ctx, c.ID, patch, Begin)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("changed = %+v, %v, want %+v", got, err, want)
	}
	if got, err = p.Client(ctx, c.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("stored = %+v, %v, want %+v", got, err, want)
	}
	alone := want // the owner of a key is read without settings and quotas
	alone.Settings, alone.Quotas = puntuale.ClientSettings{}, nil
	if principal, err := w.Principal(ctx, c.Key, Begin); err != nil || !reflect.DeepEqual(principal.Client, alone) {
		t.Fatalf("principal = %+v, %v", principal, err)
	}
	ledger(t, w)
	back := puntuale.ClientPatch{Expires: To(puntuale.Date{}), Derive: func(c puntuale.Client) puntuale.Client {
		c.ExpiresAt, c.RefillAt = time.Time{}, time.Time{}
		return c
	}, Cap: To(new(int64(3))), Features: To([]string(nil)), Closed: To([]puntuale.Date(nil))}
	if got, err = p.UpdateClient(ctx, c.ID, back, Begin); err != nil || !got.Expires.IsZero() || !got.ExpiresAt.IsZero() || !got.RefillAt.IsZero() || *got.Cap != 3 || len(got.Features)+len(got.Closed) != 0 {
		t.Fatalf("back = %+v, %v", got, err)
	}
	turn := w.Int("select turn from result_counter")
	if _, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Zone: To(want.Zone)}, Begin); err != nil || w.Int("select turn from result_counter") != turn {
		t.Errorf("the client's own zone waits for who counts results: %v", err)
	}
	if _, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Zone: To("Europe/Rome")}, Begin); err != nil || w.Int("select turn from result_counter") == turn {
		t.Errorf("another zone does not wait for who counts results: %v", err)
	}
	_, err = p.UpdateClient(ctx, 999, back, Begin)
	WantCode(t, err, puntuale.CodeNotFound)
}

// testCreditsByHand lets a partner change credits. After each change, the sum of the ledger must be the number of
// credits left, even while messages are in flight.
func testCreditsByHand(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	var sum int64
	check := func(patch puntuale.ClientPatch, want int64) {
		t.Helper()
		got, err := p.UpdateClient(ctx, c.ID, patch, Begin)
		if err != nil || got.Credits == nil || *got.Credits != want {
			t.Fatalf("credits = %v, %v, want %d", got.Credits, err, want)
		}
		if sum = w.Int("select sum(amount) from credit_entry where client_id = $1", c.ID); sum != want {
			t.Fatalf("the ledger says %d, want %d", sum, want)
		}
	}
	check(puntuale.ClientPatch{CreditsAdd: To(int64(5))}, 105)
	check(puntuale.ClientPatch{CreditsAdd: To(int64(-105))}, 0)
	check(puntuale.ClientPatch{Credits: To(new(int64(3)))}, 3)
	for _, test := range []struct {
		patch puntuale.ClientPatch
		at    string
	}{
		{puntuale.ClientPatch{CreditsAdd: To(int64(-4))}, "body.credits_add"},
		{puntuale.ClientPatch{CreditsAdd: To(int64(1<<63 - 1))}, "body.credits_add"},
		{puntuale.ClientPatch{CreditsAdd: To(int64(1)), Credits: To(new(int64(1)))}, "body.credits_add"},
		{puntuale.ClientPatch{Credits: To(new(int64(-1)))}, "body.credits"},
	} {
		test.patch.Name = To("non cambia")
		_, err := p.UpdateClient(ctx, c.ID, test.patch, Begin)
		if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 1 || e.Faults[0].Location != test.at {
			t.Errorf("%+v: %v", test.patch, err)
		}
	}
	check(puntuale.ClientPatch{}, 3)
	ids := c.MustStart(phone, Begin, 2)
	items := c.Items(phone, 0, ids...)
	token, _ := w.MustClaim(node, Begin.Add(time.Minute), items...)
	check(puntuale.ClientPatch{}, 1)
	if got, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Credits: To[*int64](nil)}, Begin); err != nil || got.Credits != nil {
		t.Fatalf("unlimited = %+v, %v", got, err)
	}
	_, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{CreditsAdd: To(int64(1))}, Begin)
	WantCode(t, err, puntuale.CodeInvalid)
	w.MustRecord(Begin, items[0], token, puntuale.Outcome{Verdict: puntuale.Refused})
	check(puntuale.ClientPatch{Credits: To(new(int64(10)))}, 10)
	w.MustRecord(Begin, items[1], token, puntuale.Outcome{Verdict: puntuale.Refused})
	check(puntuale.ClientPatch{}, 11)
	c.MustStart(phone, Begin, 6)
	Together(8, func(i int) {
		if i < 4 {
			if _, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{CreditsAdd: To(int64(i - 1))}, Begin); err != nil {
				t.Error(err)
			}
			return
		}
		c.attempt(node, phone)
	})
	check(puntuale.ClientPatch{}, 9) // 11 credits, plus the changes -1, 0, 1 and 2, minus 4 claimed messages
}

func testDeleteClient(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	email := "libera@example.com"
	w.Exec("update login set email = $1 where client_id = $2", email, c.ID)
	var ids []puntuale.MessageID
	for range 21 { // these are more messages than one chunk contains
		ids = append(ids, c.MustStart(phone, Begin, puntuale.MaxSteps)...)
	}
	kept := other.MustStart(phone, Begin, 1)
	items := c.Items(phone, 0, ids[:2]...)
	token, _ := w.MustClaim(node, Begin.Add(time.Minute), items...)
	if err := p.DeleteClient(ctx, c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	if n := w.Int("select count(*) from message where client_id = $1 and state = 3", c.ID); n != int64(len(ids)-2) {
		t.Errorf("%d of %d cancelled", n, len(ids))
	}
	if d := other.Detail(kept[0]); d.State != puntuale.Pending {
		t.Errorf("another client's became %v", d.State)
	}
	_, err := w.Principal(ctx, c.Key, Begin)
	WantCode(t, err, puntuale.CodeUnauthorized)
	_, err = p.Client(ctx, c.ID)
	WantCode(t, err, puntuale.CodeNotFound)
	if all, _, err := p.Clients(ctx, puntuale.Page{}); err != nil || len(all) != 1 || all[0].ID != other.ID {
		t.Errorf("clients = %+v, %v", all, err)
	}
	if _, sessions, err := w.Roster(ctx, node); err != nil || len(sessions) != 1 {
		t.Errorf("roster = %+v, %v", sessions, err)
	}
	// The message in flight ends, and the ledger must contain its entries.
	w.MustRecord(Begin, items[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
	w.MustRecord(Begin, items[1], token, puntuale.Outcome{Verdict: puntuale.Refused})
	if d := c.Detail(ids[0]); d.State != puntuale.Completed {
		t.Errorf("in flight became %v", d.State)
	}
	ledger(t, w)
	n := newClient()
	n.Login.Email = email
	if _, err := p.CreateClient(ctx, n, nil); err != nil {
		t.Errorf("the login is not free: %v", err)
	}
	WantCode(t, p.DeleteClient(ctx, c.ID, Begin), puntuale.CodeNotFound)
}

// testDeletedClientStaysDeleted checks that no call makes a deleted client exist again.
func testDeletedClientStaysDeleted(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c := w.Client(puntuale.AccountBaby, func(c *puntuale.Client) { c.RefillAt = Begin })
	node := w.MustJoin()
	old := c.MustStart(phone, Begin, 2)
	items := c.Items(phone, 0, old...)
	token, _ := w.MustClaim(node, Begin.Add(time.Minute), items[0])
	if err := p.DeleteClient(ctx, c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	w.MustRecord(Begin, items[0], token, puntuale.Outcome{Verdict: puntuale.Retry, Next: Begin})
	if _, granted := w.MustClaim(node, Begin.Add(time.Minute), items...); granted[0] == puntuale.ClaimGranted || granted[1] == puntuale.ClaimGranted {
		t.Errorf("granted = %v", granted)
	}
	_, started := c.Start(ctx, c.Run(phone, Begin, 1))
	_, resent := c.Resend(ctx, c.Again(old...))
	_, session := c.CreateSession(ctx, puntuale.Session{Type: puntuale.Socket}, nil)
	_, updated := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Suspended: To(false)}, Begin)
	_, key := p.CreateKey(ctx, c.ID, puntuale.Key{Hash: KeyHash()}, nil)
	for i, err := range []error{started, resent, session, updated, key} {
		if puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n, err := w.Refill(ctx, Begin, func(puntuale.Client) time.Time { return time.Time{} }); n != 0 || err != nil {
		t.Errorf("refilled %d, %v", n, err)
	}
}

func testClientKeys(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	keys := func(at time.Time) []puntuale.Key {
		t.Helper()
		all, err := p.Keys(ctx, c.ID, at)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := keys(Begin)
	if len(first) != 1 || first[0].Hash != c.Key || first[0].Name != "prima" {
		t.Fatalf("keys = %+v", first)
	}
	second := puntuale.Key{Name: "seconda", Prefix: "ck_ab", Hash: KeyHash(), Created: Begin}
	var err error
	if second.ID, err = p.CreateKey(ctx, c.ID, second, nil); err != nil {
		t.Fatal(err)
	}
	if all := keys(Begin); len(all) != 2 || all[1] != second {
		t.Fatalf("keys = %+v, want %+v", all, second)
	}
	grace := Begin.Add(time.Hour)
	third := puntuale.Key{Name: "terza", Hash: KeyHash(), Created: Begin}
	if third.ID, err = p.RotateClientKey(ctx, c.ID, second.ID, third, grace, Begin, nil); err != nil {
		t.Fatal(err)
	}
	if all := keys(Begin); len(all) != 3 || !all[1].Expires.Equal(grace) || all[2] != third {
		t.Fatalf("in grace = %+v", all)
	}
	if all := keys(grace); len(all) != 2 {
		t.Fatalf("after grace = %+v", all)
	}
	_, err = p.RotateClientKey(ctx, c.ID, second.ID, puntuale.Key{Hash: KeyHash()}, grace, grace, nil)
	WantCode(t, err, puntuale.CodeNotFound)
	_, err = p.RotateClientKey(ctx, other.ID, third.ID, puntuale.Key{Hash: KeyHash()}, grace, Begin, nil)
	WantCode(t, err, puntuale.CodeNotFound)
	WantCode(t, p.RevokeKey(ctx, other.ID, third.ID, Begin), puntuale.CodeNotFound)
	if err := p.RevokeKey(ctx, c.ID, third.ID, Begin); err != nil {
		t.Fatal(err)
	}
	WantCode(t, p.RevokeKey(ctx, c.ID, third.ID, Begin), puntuale.CodeNotFound)
	_, err = w.Principal(ctx, third.Hash, Begin)
	WantCode(t, err, puntuale.CodeUnauthorized)
	if _, err := w.Principal(ctx, c.Key, Begin); err != nil {
		t.Error(err)
	}
	_, err = p.Keys(ctx, 999, Begin)
	WantCode(t, err, puntuale.CodeNotFound)
}

// testRefillOnce lets two stores refill at the same time. Each client must be refilled once, and the ledger must
// contain one entry for the refill.
func testRefillOnce(t *testing.T, w *World) {
	ctx := context.Background()
	due := func(c *puntuale.Client) { c.RefillAt, c.Credits = Begin, new(int64(5)) }
	clients := []*Client{w.Client(puntuale.AccountBaby, due), w.Client(puntuale.AccountBaby, due), w.Client(puntuale.AccountBaby, due)}
	later := w.Client(puntuale.AccountBaby, func(c *puntuale.Client) { c.RefillAt, c.Credits = Begin.Add(time.Second), new(int64(5)) })
	never := w.Client(puntuale.AccountTest)
	stores := []puntuale.Operator{w.Store, w.DB.Open(t)}
	next := func(c puntuale.Client) time.Time { return c.RefillAt.AddDate(1, 0, 0) }
	var mu sync.Mutex
	total := 0
	Together(6, func(i int) {
		n, err := stores[i%2].Refill(ctx, Begin, next)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		total += n
		mu.Unlock()
	})
	if total != len(clients) {
		t.Errorf("%d refills, want %d", total, len(clients))
	}
	for _, c := range clients {
		got, err := w.Store.Partner(w.Partner).Client(ctx, c.ID)
		if err != nil || *got.Credits != 2000 || !got.RefillAt.Equal(Begin.AddDate(1, 0, 0)) {
			t.Errorf("client = %+v, %v", got, err)
		}
		if n := w.Int("select count(*) from credit_entry where client_id = $1 and kind = 'refill' and amount = 1995", c.ID); n != 1 {
			t.Errorf("%d entries", n)
		}
	}
	if later.credits() != 5 || never.credits() != 100 {
		t.Errorf("others have %d and %d", later.credits(), never.credits())
	}
	ledger(t, w)
}

// testRefillKeepsMore checks that a refill never removes credits and does not change unlimited credits. The refills
// here are the clients' last ones: no time for a next refill may be left.
func testRefillKeepsMore(t *testing.T, w *World) {
	ctx := context.Background()
	more := w.Client(puntuale.AccountBaby, func(c *puntuale.Client) { c.RefillAt, c.Credits = Begin, new(int64(3000)) })
	unlimited := w.Client(puntuale.AccountBaby, func(c *puntuale.Client) { c.RefillAt, c.Credits = Begin, nil })
	for i, want := range []int{2, 0} {
		if n, err := w.Refill(ctx, Begin.Add(time.Hour), func(puntuale.Client) time.Time { return time.Time{} }); n != want || err != nil {
			t.Fatalf("refill %d: %d, %v", i, n, err)
		}
	}
	p := w.Store.Partner(w.Partner)
	for _, test := range []struct {
		c    *Client
		want *int64
	}{{more, new(int64(3000))}, {unlimited, nil}} {
		if got, err := p.Client(ctx, test.c.ID); err != nil || !reflect.DeepEqual(got.Credits, test.want) || !got.RefillAt.IsZero() {
			t.Errorf("client = %+v, %v", got, err)
		}
	}
	ledger(t, w)
}

// blacklisted returns the id of an entry in the client's blacklist.
func (c *Client) blacklisted() (int64, error) {
	all, _, err := c.Blacklist(context.Background(), puntuale.Page{Limit: 1})
	if err != nil || len(all) == 0 {
		return 0, errors.Join(errors.New("no entry"), err)
	}
	return all[0].ID, nil
}

// template returns the id of the client's only template.
func (c *Client) template() puntuale.TemplateID {
	all, _, err := c.Templates(context.Background(), puntuale.Page{})
	if err != nil || len(all) != 1 {
		c.w.t.Fatalf("templates: %v, %v", all, err)
	}
	return all[0].ID
}

// login returns the id of the client's first user.
func (c *Client) login() puntuale.UserID {
	return puntuale.UserID(c.w.Int("select id from login where client_id = $1", c.ID))
}
