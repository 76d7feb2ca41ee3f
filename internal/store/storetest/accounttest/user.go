package accounttest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

func testUsers(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	first, err := p.Users(ctx, c.ID)
	if err != nil || len(first) != 1 || first[0].Role != puntuale.Owner || first[0].Client != c.ID || first[0].Partner != w.Partner {
		t.Fatalf("users of a new client = %+v, %v", first, err)
	}
	want := puntuale.User{Partner: w.Partner, Client: c.ID, Email: "Anna@example.com", Name: "Anna", Password: "hash", Role: puntuale.Staff,
		Language: "it", Created: storetest.Begin}
	if want.ID, err = p.CreateUser(ctx, want, nil); err != nil {
		t.Fatal(err)
	}
	want.Second.Recovery, want.Joined = []string{}, true
	got, err := p.User(ctx, c.ID, want.ID)
	if got.Second.Secret = nil; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("user = %+v, %v, want %+v", got, err, want)
	}
	_, err = p.CreateUser(ctx, puntuale.User{Client: other.ID, Email: "Anna@example.com", Role: puntuale.Staff}, nil)
	storetest.WantCode(t, err, puntuale.CodeConflict)
	for _, client := range []puntuale.ClientID{0, other.ID, 999} {
		_, err := p.User(ctx, client, want.ID)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		_, err = p.UpdateUser(ctx, client, want.ID, puntuale.UserPatch{Name: storetest.To("x")}, nil)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		storetest.WantCode(t, p.DeleteUser(ctx, client, want.ID), puntuale.CodeNotFound)
	}
	want.Name, want.Role, want.Language, want.Password, want.Seen = "Anna B.", puntuale.Reader, "en", "other", storetest.Begin.Add(time.Hour)
	want.Second = puntuale.SecondFactor{Secret: []byte{0, 255}, Last: 7, Recovery: []string{"a", "b"}}
	want.Stamp = 1
	patch := puntuale.UserPatch{Name: storetest.To(want.Name), Role: storetest.To(want.Role), Language: storetest.To("en"), Password: storetest.To("other"), Second: storetest.To(want.Second), Seen: storetest.To(want.Seen), EndVisits: true}
	if got, err = p.UpdateUser(ctx, c.ID, want.ID, patch, nil); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("changed = %+v, %v", got, err)
	}
	u, h, err := w.UserByID(ctx, want.ID)
	if err != nil || !reflect.DeepEqual(u, want) || h.Partner.ID != w.Partner || h.Partner.Name != "Rivendita" {
		t.Fatalf("by id = %+v, %+v, %v", u, h, err)
	}
	refused := errors.New("no")
	if _, err := p.UpdateUser(ctx, c.ID, want.ID, puntuale.UserPatch{Name: storetest.To("x")}, func(u puntuale.User) error {
		if u.Name != want.Name {
			t.Errorf("asked about %+v", u)
		}
		return puntuale.Conflict(puntuale.ReasonCode(refused.Error()))
	}); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("refused by its caller: %v", err)
	}
	if err := p.DeleteUser(ctx, c.ID, want.ID); err != nil {
		t.Fatal(err)
	}
	_, _, err = w.UserByID(ctx, want.ID)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
}

// testOwnerStays checks that one user always keeps the role owner, even if all owners try to give it up at the same
// time.
func testOwnerStays(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	for _, client := range []puntuale.ClientID{0, w.Client(puntuale.AccountFull).ID} {
		var owners []puntuale.UserID
		for range 4 {
			if _, err := p.CreateUser(ctx, puntuale.User{Client: client, Email: storetest.Unique("o") + "@example.com", Role: puntuale.Owner}, nil); err != nil {
				t.Fatal(err)
			}
		}
		users, err := p.Users(ctx, client)
		if err != nil || len(users) != 5 {
			t.Fatalf("users = %+v, %v", users, err)
		}
		for _, u := range users {
			owners = append(owners, u.ID)
		}
		var refused atomic.Int64
		storetest.Together(len(owners), func(i int) {
			err := p.DeleteUser(ctx, client, owners[i])
			if i%2 == 0 {
				_, err = p.UpdateUser(ctx, client, owners[i], puntuale.UserPatch{Role: storetest.To(puntuale.Staff)}, nil)
			}
			switch {
			case puntuale.CodeOf(err) == puntuale.CodeConflict:
				refused.Add(1)
			case err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound:
				t.Error(err)
			}
		})
		if n := w.Int(fmt.Sprintf("select count(*) from login where client_id = %d and partner_id = %d and role = 3", client, w.Partner)); n != 1 || refused.Load() == 0 {
			t.Errorf("%d owners are left, %d calls were refused", n, refused.Load())
		}
	}
}

func testUsersByEmail(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	other, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: "altri"}, puntuale.Login{Email: "stessa@example.com"}, puntuale.Key{Hash: storetest.KeyHash()})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := w.Store.Partner(w.Partner).CreateUser(ctx, puntuale.User{Client: c.ID, Email: "Stessa@Example.com", Role: puntuale.Staff}, nil)
	if err != nil {
		t.Fatal(err)
	}
	find := func(partner puntuale.PartnerID, limit int) (ids []puntuale.UserID) {
		t.Helper()
		users, err := w.UsersByEmail(ctx, "STESSA@example.com", partner, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range users {
			ids = append(ids, u.ID)
		}
		return ids
	}
	if all := find(0, 5); len(all) != 2 || all[1] != mine {
		t.Errorf("anybody's: %v", all)
	}
	if one := find(w.Partner, 5); len(one) != 1 || one[0] != mine {
		t.Errorf("the partner's: %v", one)
	}
	if one := find(0, 1); len(one) != 1 {
		t.Errorf("at most one: %v", one)
	}
	if h, err := w.HostSlug(ctx, "altri"); err != nil || h.Partner.ID != other {
		t.Errorf("by slug: %+v, %v", h, err)
	}
	for _, none := range []string{"", "nessuno"} {
		_, err := w.HostSlug(ctx, none)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		_, err = w.HostNamed(ctx, none)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
	}
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	if all := find(0, 5); len(all) != 1 {
		t.Errorf("after the client was deleted: %v", all)
	}
}

func testVisits(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	keep := func(data string, expires time.Time) {
		t.Helper()
		if err := w.KeepVisit(ctx, puntuale.Visit{Token: "t", Data: []byte(data), Expires: expires}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(now time.Time) string {
		t.Helper()
		data, found, err := w.Visit(ctx, "t", now)
		if err != nil || found != (data != nil) {
			t.Fatalf("visit = %q, %v, %v", data, found, err)
		}
		return string(data)
	}
	keep("one", storetest.Begin.Add(time.Hour))
	keep("two", storetest.Begin.Add(2*time.Hour))
	if got := read(storetest.Begin.Add(time.Hour)); got != "two" {
		t.Errorf("kept %q", got)
	}
	if got := read(storetest.Begin.Add(2 * time.Hour)); got != "" {
		t.Errorf("after its end: %q", got)
	}
	if err := w.EndVisit(ctx, "t"); err != nil || read(storetest.Begin) != "" {
		t.Errorf("ended: %v", err)
	}
	keep("three", storetest.Begin.Add(time.Hour))
	if err := w.IssueTicket(ctx, "h", puntuale.PendingStep{Kind: puntuale.UnfinishedTicket, User: 7, Until: storetest.Begin.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := w.PurgeSignIns(ctx, storetest.Begin.Add(time.Minute)); err != nil || read(storetest.Begin) == "" {
		t.Errorf("purged too early: %v", err)
	}
	if err := w.PurgeSignIns(ctx, storetest.Begin.Add(time.Hour)); err != nil || read(storetest.Begin) != "" {
		t.Errorf("not purged: %v", err)
	}
	_, err := w.SpendTicket(ctx, "h", puntuale.UnfinishedTicket)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
	testVisitsOf(t, w)
}

// testVisitsOf checks the list of a user's visits. A visit that its user ended is not stored again.
func testVisitsOf(t *testing.T, w *storetest.World) {
	t.Helper()
	ctx, now := context.Background(), storetest.Begin
	one, two := puntuale.UserID(7001), puntuale.UserID(7002)
	keep := func(token string, user puntuale.UserID, within time.Duration) {
		t.Helper()
		if err := w.KeepVisit(ctx, puntuale.Visit{Token: token, User: user, Data: []byte("of " + token), Expires: now.Add(within)}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(user puntuale.UserID, at time.Time, limit int, want ...string) {
		t.Helper()
		all, err := w.VisitsOf(ctx, user, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range all {
			if got = append(got, v.Token); string(v.Data) != "of "+v.Token || v.User != user {
				t.Errorf("visit %+v", v)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("visits of %d: %v, want %v", user, got, want)
		}
	}
	keep("visit-a", one, time.Hour)
	keep("visit-b", one, 2*time.Hour)
	keep("visit-c", two, time.Hour)
	keep("visit-d", 0, time.Hour)
	has(one, now, 10, "visit-b", "visit-a")
	has(one, now, 1, "visit-b")
	has(one, now.Add(time.Hour), 10, "visit-b")
	has(0, now, 10)
	end := func(user puntuale.UserID, token string) {
		t.Helper()
		if err := w.EndVisitOf(ctx, user, token, now); err != nil {
			t.Fatal(err)
		}
	}
	end(two, "visit-a") // another user's
	end(one, "nobody's")
	has(one, now, 10, "visit-b", "visit-a")
	end(one, "visit-a")
	has(one, now, 10, "visit-b")
	keep("visit-a", one, time.Hour) // a request of the ended visit was still running
	if _, found, err := w.Visit(ctx, "visit-a", now); found || err != nil {
		t.Errorf("an ended visit came back: %v", err)
	}
	has(one, now, 10, "visit-b")
	has(two, now, 10, "visit-c")
}

// testTickets checks that a ticket can be used only once, even if many callers try. A ticket can be used only for the
// kind of pending step for which it was made.
func testTickets(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	want := puntuale.PendingStep{Kind: puntuale.UnfinishedTicket, User: 7, Stamp: 3, Until: storetest.Begin.Add(time.Hour)}
	if err := w.IssueTicket(ctx, "h", want); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Ticket(ctx, "h", puntuale.UnfinishedTicket); err != nil || !got.Until.Equal(want.Until) || got.User != 7 || got.Stamp != 3 || got.Kind != want.Kind {
		t.Errorf("looked at: %+v, %v", got, err)
	}
	_, err := w.Ticket(ctx, "h", puntuale.UnfinishedInvitation)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
	_, err = w.SpendTicket(ctx, "h", puntuale.UnfinishedInvitation)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
	var opened atomic.Int64
	storetest.Together(8, func(int) {
		switch got, err := w.SpendTicket(ctx, "h", puntuale.UnfinishedTicket); {
		case err == nil && got.User == 7 && got.Stamp == 3:
			opened.Add(1)
		case puntuale.CodeOf(err) != puntuale.CodeNotFound:
			t.Errorf("%+v, %v", got, err)
		}
	})
	if opened.Load() != 1 {
		t.Errorf("opened %d times", opened.Load())
	}
}

// testTries checks that attempts are counted exactly, even if several are made at the same time.
func testTries(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	tries := []puntuale.SignInAttempt{{Mark: "account", Free: 5}, {Mark: "address", Free: 20}}
	var passed atomic.Int64
	storetest.Together(16, func(int) {
		wait, err := w.Try(ctx, tries, storetest.Begin)
		if err != nil {
			t.Error(err)
		}
		if wait == 0 {
			passed.Add(1)
		}
	})
	if passed.Load() != 5 {
		t.Errorf("%d of 16 passed, want 5", passed.Load())
	}
	now, last := storetest.Begin, time.Duration(0)
	for range 20 {
		wait, err := w.Try(ctx, tries, now)
		if err != nil || wait < last || wait > puntuale.MaxWait || wait == 0 {
			t.Fatalf("wait %v after %v, %v", wait, last, err)
		}
		last, now = wait, now.Add(wait)
		if wait, err := w.Try(ctx, tries, now); err != nil || wait > puntuale.MaxWait {
			t.Fatalf("after the wait: %v, %v", wait, err)
		}
	}
	if wait, err := w.Try(ctx, []puntuale.SignInAttempt{{Mark: "another", Free: 5}}, now); err != nil || wait != 0 {
		t.Errorf("another account waits %v, %v", wait, err)
	}
	if err := w.Forget(ctx, []string{"account"}, []string{"address"}); err != nil {
		t.Fatal(err)
	}
	if wait, err := w.Try(ctx, tries[:1], now); err != nil || wait != 0 {
		t.Errorf("after somebody came in: %v, %v", wait, err)
	}
	if n := w.Int("select tries from try where mark = 'address'"); n != 24 {
		t.Errorf("%d attempts are counted of the address, want 5 and 20 less 1", n)
	}
	if err := w.PurgeSignIns(ctx, now.Add(puntuale.ForgetTries)); err != nil || w.Int("select count(*) from try") != 0 {
		t.Errorf("old attempts are left: %v", err)
	}
}

func testAudit(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	c := w.Client(puntuale.AccountFull)
	for i := range 5 {
		e := puntuale.AuditEntry{User: 3, Who: "a@b", Action: "client.change", Target: fmt.Sprint(i), At: storetest.Begin.Add(time.Duration(i) * time.Second)}
		if i%2 == 1 {
			e.Client, e.Entry = c.ID, true
		}
		if err := p.AddAudit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	storetest.WantCode(t, p.AddAudit(ctx, puntuale.AuditEntry{Client: 999, Action: "x"}), puntuale.CodeNotFound)
	read := func(client puntuale.ClientID) (targets string) {
		t.Helper()
		cursor := ""
		for {
			page, next, err := p.Audit(ctx, client, puntuale.Page{Limit: 2, Cursor: cursor})
			if err != nil || len(page) > 2 {
				t.Fatalf("%+v, %v", page, err)
			}
			for _, e := range page {
				targets += e.Target
				if e.Who != "a@b" || e.User != 3 || e.Entry != (e.Client != 0) || e.At.IsZero() {
					t.Errorf("entry %+v", e)
				}
			}
			if cursor = next; next == "" {
				return targets
			}
		}
	}
	if all, own := read(0), read(c.ID); all != "43210" || own != "31" {
		t.Errorf("all %q, the client's %q", all, own)
	}
	_, _, err := p.Audit(ctx, 0, puntuale.Page{Cursor: "x"})
	storetest.WantCode(t, err, puntuale.CodeInvalid)
}

func testBrand(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	if h, err := p.Host(ctx); err != nil || h.Brand.Mark != "" || h.Partner.Name != "Rivendita" {
		t.Fatalf("at first: %+v, %v", h, err)
	}
	b := puntuale.Brand{Name: "Messaggi Bianchi", Colour: "#224466", Logo: []byte{1, 0, 255}, LogoKind: "image/png", Host: "msg.example.com"}
	if err := p.SetBrand(ctx, b); err != nil {
		t.Fatal(err)
	}
	_, err := w.HostNamed(ctx, b.Host)
	storetest.WantCode(t, err, puntuale.CodeNotFound) // the partner has not confirmed the name yet
	if err := p.ConfirmHost(ctx, b.Host); err != nil {
		t.Fatal(err)
	}
	h, err := w.HostNamed(ctx, "msg.example.com")
	if err != nil || h.Partner.ID != w.Partner || h.Brand.Name != b.Name || h.Brand.Colour != b.Colour || h.Brand.Mark == "" || h.Brand.Logo != nil || !h.Brand.Confirmed {
		t.Fatalf("stored: %+v, %v", h, err)
	}
	if logo, kind, err := p.Logo(ctx); err != nil || kind != b.LogoKind || string(logo) != string(b.Logo) {
		t.Fatalf("logo: %v %q, %v", logo, kind, err)
	}
	other, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: "altri"}, puntuale.Login{Email: "a@b"}, puntuale.Key{Hash: storetest.KeyHash()})
	if err != nil {
		t.Fatal(err)
	}
	storetest.WantCode(t, w.Store.Partner(other).SetBrand(ctx, b), puntuale.CodeConflict)
	mark := h.Brand.Mark
	b.Colour = "#224467"
	if err := p.SetBrand(ctx, b); err != nil {
		t.Fatal(err)
	}
	if h, err = p.Host(ctx); err != nil || h.Brand.Mark == mark {
		t.Errorf("the mark stayed: %+v, %v", h, err)
	}
	if err := p.SetBrand(ctx, puntuale.Brand{}); err != nil {
		t.Fatal(err)
	}
	if logo, kind, err := p.Logo(ctx); err != nil || logo != nil || kind != "" {
		t.Errorf("no logo: %v %q, %v", logo, kind, err)
	}
}

// testHosts checks that any partner may request a host name. The first partner that confirms the name gets it. The
// partner keeps the name until it requests another name, or until the confirmation is withdrawn.
func testHosts(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	const name = "msg.example.com"
	all := []puntuale.PartnerTenant{w.Store.Partner(w.Partner)}
	for i := range 3 {
		id, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: fmt.Sprint("altri-", i)}, puntuale.Login{Email: "a@b"}, puntuale.Key{Hash: storetest.KeyHash()})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w.Store.Partner(id))
	}
	for _, p := range all {
		storetest.WantCode(t, p.ConfirmHost(ctx, name), puntuale.CodeNotFound) // no partner has requested this name yet
		if err := p.SetBrand(ctx, puntuale.Brand{Host: name}); err != nil {
			t.Fatalf("ask for a name: %v", err)
		}
		storetest.WantCode(t, p.ConfirmHost(ctx, "other.example.com"), puntuale.CodeNotFound)
		storetest.WantCode(t, p.WithdrawHost(ctx), puntuale.CodeNotFound)
	}
	var winner atomic.Int64
	var confirmed atomic.Int64
	storetest.Together(len(all), func(i int) {
		switch err := all[i].ConfirmHost(ctx, name); {
		case err == nil:
			confirmed.Add(1)
			winner.Store(int64(i))
		case puntuale.CodeOf(err) != puntuale.CodeConflict:
			t.Error(err)
		}
	})
	if confirmed.Load() != 1 {
		t.Fatalf("%d partners have the name", confirmed.Load())
	}
	has, other := all[winner.Load()], all[(winner.Load()+1)%int64(len(all))]
	storetest.WantCode(t, other.SetBrand(ctx, puntuale.Brand{Host: name}), puntuale.CodeConflict)
	if err := has.SetBrand(ctx, puntuale.Brand{Name: "Nuovo", Host: name}); err != nil {
		t.Fatal(err)
	}
	if h, err := w.HostNamed(ctx, name); err != nil || h.Brand.Name != "Nuovo" || !h.Brand.Confirmed {
		t.Errorf("other looks lose the name: %+v, %v", h, err)
	}
	if err := has.WithdrawHost(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := w.HostNamed(ctx, name)
	storetest.WantCode(t, err, puntuale.CodeNotFound)
	if err := other.ConfirmHost(ctx, name); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"other.example.com", name} { // the partner requests another name and then this name again, so it must confirm this name again
		if err := other.SetBrand(ctx, puntuale.Brand{Host: host}); err != nil {
			t.Fatal(err)
		}
		_, err := w.HostNamed(ctx, host)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
	}
}

// testInvitations checks that an invitation sets a password once, before its deadline. If several callers use it at the
// same time, exactly one must succeed.
func testInvitations(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	for _, client := range []puntuale.ClientID{0, w.Client(puntuale.AccountFull).ID} {
		expiresAt := storetest.Begin.Add(time.Hour)
		id, err := p.CreateUser(ctx, puntuale.User{Client: client, Email: storetest.Unique("i") + "@example.com", Role: puntuale.Owner}, &puntuale.Invitation{Hash: storetest.Unique("a"), Expires: expiresAt})
		if err != nil {
			t.Fatal(err)
		}
		invite := func(hash string) {
			t.Helper()
			if err := p.Invite(ctx, client, id, puntuale.Invitation{Hash: hash, Expires: expiresAt}); err != nil {
				t.Fatal(err)
			}
		}
		first, second := storetest.Unique("b"), storetest.Unique("c")
		invite(first)
		invite(second)
		if u, err := p.User(ctx, client, id); err != nil || u.Joined || !u.Invited.Equal(expiresAt) {
			t.Errorf("invited: %+v, %v", u, err)
		}
		_, err = w.Invited(ctx, first, storetest.Begin)
		storetest.WantCode(t, err, puntuale.CodeNotFound) // a newer invitation has replaced this invitation
		_, err = w.Invited(ctx, second, expiresAt)
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		_, err = w.TakeInvitation(ctx, second, expiresAt, "late")
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		var joined atomic.Int64
		storetest.Together(8, func(int) {
			switch user, err := w.TakeInvitation(ctx, second, storetest.Begin, "hash"); {
			case err == nil && user == id:
				joined.Add(1)
			case puntuale.CodeOf(err) != puntuale.CodeNotFound:
				t.Errorf("%v, %v", user, err)
			}
		})
		if u, err := p.User(ctx, client, id); err != nil || joined.Load() != 1 || u.Password != "hash" || u.Stamp != 1 || !u.Joined || !u.Invited.IsZero() {
			t.Errorf("used %d times: %+v, %v", joined.Load(), u, err)
		}
		third := storetest.Unique("d")
		invite(third)
		if err := p.Uninvite(ctx, client, id); err != nil {
			t.Fatal(err)
		}
		storetest.WantCode(t, p.Uninvite(ctx, client, id), puntuale.CodeNotFound)
		invite(third)
		if _, err := p.UpdateUser(ctx, client, id, puntuale.UserPatch{Password: storetest.To("other")}, nil); err != nil {
			t.Fatal(err)
		}
		_, err = w.TakeInvitation(ctx, third, storetest.Begin, "hash") // a password was set after the invitation, which ended the invitation
		storetest.WantCode(t, err, puntuale.CodeNotFound)
		storetest.WantCode(t, p.Invite(ctx, 999, id, puntuale.Invitation{}), puntuale.CodeNotFound)
	}
}

// testInvitedOwner checks that the last owner cannot give up the role if the only other owner has not used the
// invitation.
func testInvitedOwner(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p, c := w.Store.Partner(w.Partner), w.Client(puntuale.AccountFull)
	users, err := p.Users(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	hash := storetest.Unique("h")
	id, err := p.CreateUser(ctx, puntuale.User{Client: c.ID, Email: "due@example.com", Role: puntuale.Owner}, &puntuale.Invitation{Hash: hash, Expires: storetest.Begin.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	storetest.WantCode(t, p.DeleteUser(ctx, c.ID, users[0].ID), puntuale.CodeConflict)
	if _, err := w.TakeInvitation(ctx, hash, storetest.Begin, "hash"); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteUser(ctx, c.ID, users[0].ID); err != nil {
		t.Errorf("once the other came: %v", err)
	}
	storetest.WantCode(t, p.DeleteUser(ctx, c.ID, id), puntuale.CodeConflict)
}
