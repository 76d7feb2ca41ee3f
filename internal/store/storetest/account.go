package storetest

import (
	"context"
	"crypto/sha256"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
)

func testAccounts(t *testing.T, w *World) {
	ctx := context.Background()
	partner := w.Store.Partner(w.Partner)
	account := puntuale.NewAccount(puntuale.AccountTest, Day)
	account.Name, account.Phone, account.Created = "Èlite", "+39 02 123", Begin
	account.ExpiresAt, account.Features = Begin.Add(14*24*time.Hour), []string{"webhook"}
	n := puntuale.NewClient{Client: account, Login: puntuale.Login{Email: "a@b", Password: "hash"},
		Session: puntuale.Session{Name: "prima", Type: puntuale.Socket, Created: Begin}, Key: puntuale.Key{Name: "k", Hash: KeyHash(), Created: Begin}}
	created, err := partner.CreateClient(ctx, n, nil)
	id, session := created.Client, created.Session
	if err != nil {
		t.Fatal(err)
	}
	want := account
	want.ID, want.Partner, want.Email, want.Connection, want.Revision = id, w.Partner, "a@b", puntuale.Socket, 1
	got, err := partner.Client(ctx, id)
	if got.Settings.Consent != puntuale.ConsentRequired || len(got.Quotas) != 0 {
		t.Errorf("settings %+v, quotas %v", got.Settings, got.Quotas)
	}
	if got.Settings, got.Quotas = want.Settings, want.Quotas; err != nil || !reflect.DeepEqual(got, want) { // only the partner's methods read them
		t.Fatalf("client = %+v, %v, want %+v", got, err, want)
	}
	p, err := w.Principal(ctx, n.Key.Hash, Begin)
	if err != nil || p.Side != puntuale.ClientSide || p.Partner != w.Partner || !reflect.DeepEqual(p.Client, want) {
		t.Fatalf("principal = %+v, %v", p, err)
	}
	if s, err := w.Tenant(id).Session(ctx, session); err != nil || !s.Default {
		t.Fatalf("session = %+v, %v", s, err)
	}
	ledger(t, w)
	// Two logins of one partner cannot have the same e-mail. A refused call must create nothing.
	n.Key.Hash = KeyHash()
	_, err = partner.CreateClient(ctx, n, nil)
	WantCode(t, err, puntuale.CodeConflict)
	if n := w.Int("select count(*) from client"); n != 1 {
		t.Fatalf("%d clients", n)
	}
	other, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: "altri", Created: Begin}, puntuale.Login{Email: "a@b"}, puntuale.Key{Hash: KeyHash()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.CreatePartner(ctx, puntuale.Partner{Name: "Ancora", Slug: "altri"}, puntuale.Login{Email: "c@d"}, puntuale.Key{Hash: KeyHash()})
	WantCode(t, err, puntuale.CodeConflict)
	n.Login.Email = "c@d"
	if _, err = w.Store.Partner(other).CreateClient(ctx, n, nil); err != nil {
		t.Fatal(err)
	}
	_, err = w.Store.Partner(999).CreateClient(ctx, n, nil)
	WantCode(t, err, puntuale.CodeNotFound)
	if err := w.Check(ctx); err != nil {
		t.Fatal(err)
	}
}

func testKeys(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	_, err := w.Principal(ctx, sha256.Sum256([]byte("nobody's")), Begin)
	WantCode(t, err, puntuale.CodeUnauthorized)
	next := puntuale.Key{Name: "seconda", Prefix: "ck_abc", Hash: KeyHash(), Created: Begin}
	grace := Begin.Add(time.Hour)
	if err := w.RotateKey(ctx, c.Key, next, grace, Begin); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key   puntuale.KeyHash
		at    time.Time
		valid bool
	}{{c.Key, grace.Add(-time.Second), true}, {c.Key, grace, false}, {next.Hash, grace, true}} {
		p, err := w.Principal(ctx, test.key, test.at)
		if (err == nil) != test.valid || test.valid && p.Client.ID != c.ID || !test.valid && puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
			t.Errorf("at %v: %+v, %v", test.at, p, err)
		}
	}
	WantCode(t, w.RotateKey(ctx, c.Key, puntuale.Key{Hash: KeyHash()}, grace, grace), puntuale.CodeUnauthorized)
	w.Exec("update api_key set revoked_at = 1 where client_id = $1", c.ID)
	_, err = w.Principal(ctx, next.Hash, Begin)
	WantCode(t, err, puntuale.CodeUnauthorized)
	gone := w.Client(puntuale.AccountFull)
	w.Exec("update client set deleted_at = 1 where id = $1", gone.ID)
	_, err = w.Principal(ctx, gone.Key, Begin)
	WantCode(t, err, puntuale.CodeUnauthorized)
}

func testSendPermissions(t *testing.T, w *World) {
	a, b := w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.ExpiresAt = Begin.Add(time.Hour) }), w.Client(puntuale.AccountFull)
	w.Exec("update client set suspended = 1 where id = $1", b.ID)
	all, err := w.SendPermissions(context.Background(), []puntuale.ClientID{a.ID, b.ID, 999})
	if err != nil || len(all) != 2 {
		t.Fatalf("send permissions = %+v, %v", all, err)
	}
	if s := all[a.ID]; s.Credits == nil || *s.Credits != 100 || !s.ExpiresAt.Equal(Begin.Add(time.Hour)) || s.WaitReason(Begin) != "" {
		t.Errorf("first = %+v", s)
	}
	if s := all[b.ID]; s.Credits != nil || !s.Suspended || s.WaitReason(Begin) != puntuale.ReasonSuspended {
		t.Errorf("second = %+v", s)
	}
	w.Exec("delete from counter where noun = 'erasure'") // as if somebody had changed the database by hand
	if all, err := w.SendPermissions(context.Background(), []puntuale.ClientID{a.ID}); err != nil || len(all) != 1 {
		t.Errorf("without the counter of erasures: %v, %v", all, err)
	}
}

// testIDs checks the identifiers that two stores on one database give to messages. No two messages may have the same
// identifier, and each client's identifiers must grow with each start. They must be small enough for JSON readers,
// which round large numbers. They must not reveal how many messages there are.
func testIDs(t *testing.T, w *World) {
	ctx := context.Background()
	stores := []puntuale.Operator{w.Store, w.DB.Open(t)}
	clients := []*Client{w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)}
	var mu sync.Mutex
	seen := map[puntuale.MessageID]bool{}
	Together(6, func(i int) {
		c, tenant := clients[i%3], stores[i%2].Tenant(clients[i%3].ID)
		last := puntuale.MessageID(0)
		for range 5 {
			r, err := tenant.Start(ctx, c.Run(phone, Begin, 3))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, id := range r.IDs {
				if seen[id] || id <= last || id > puntuale.MaxID {
					t.Errorf("id %d after %d, seen %v", id, last, seen[id])
				}
				seen[id], last = true, id
			}
			mu.Unlock()
		}
	})
	third := w.DB.Open(t)
	r, err := third.Tenant(clients[0].ID).Start(ctx, clients[0].Run(phone, Begin, 1))
	if err != nil {
		t.Fatal(err)
	}
	for id := range seen {
		if id >= r.IDs[0] {
			t.Fatalf("a later block gave %d after %d", r.IDs[0], id)
		}
	}
}

func testReopen(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	ids := c.MustStart(phone, Begin, 2)
	before, err := c.Details(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = c.Start(ctx, c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeUnavailable)
	again := w.DB.Open(t)
	after, err := again.Tenant(c.ID).Details(ctx, ids)
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Fatalf("after = %+v, %v, before %+v", after, err, before)
	}
	r, err := again.Tenant(c.ID).Start(ctx, c.Run(phone, Begin, 1))
	if err != nil || r.Usage.Used != 2 || r.IDs[0] <= ids[1] {
		t.Fatalf("start = %+v, %v", r, err)
	}
}

func testDueOrder(t *testing.T, w *World) {
	ctx := context.Background()
	a, b := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	first := a.MustStart(phone, Begin.Add(time.Second), 3)    // these messages are due after 1, 2 and 3 s
	second := b.MustStart(phone, Begin.Add(time.Second/2), 3) // these messages are due after 0.5, 1.5 and 2.5 s
	third := a.MustStart(phone, Begin, 1)
	sessions := []puntuale.SessionID{a.Session, b.Session, 999}
	due := func(horizon time.Duration, limit int) []puntuale.MessageID {
		all, err := w.Due(ctx, begin(sessions...), Begin.Add(horizon), limit)
		if err != nil {
			t.Fatal(err)
		}
		return pickIDs(all)
	}
	if got, want := due(2*time.Second, 10), []puntuale.MessageID{third[0], second[0], first[0], second[1], first[1]}; !slices.Equal(got, want) {
		t.Fatalf("due = %v, want %v", got, want)
	}
	if got, want := due(time.Minute, 1), []puntuale.MessageID{third[0], second[0]}; !slices.Equal(got, want) {
		t.Fatalf("one a session = %v, want %v", got, want)
	}
	if got := due(-time.Second, 10); len(got) != 0 {
		t.Fatalf("before anything is due: %v", got)
	}
	// Reading can continue after any message, even if several messages have the same due time.
	at := []puntuale.QueueCursor{{Session: a.Session, Next: Begin, ID: third[0]}, {Session: b.Session, Next: Begin.Add(3 * time.Second / 2), ID: second[1]}}
	all, err := w.Due(ctx, at, Begin.Add(time.Minute), 2)
	if got, want := pickIDs(all), []puntuale.MessageID{first[0], first[1], second[2]}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("behind %+v: %v, %v, want %v", at, got, err, want)
	}
	same := a.MustStart(phone, Begin, 1)
	if all, err := w.Due(ctx, at[:1], Begin, 2); err != nil || !slices.Equal(pickIDs(all), same) {
		t.Fatalf("behind %+v: %v, %v, want %v", at[0], all, err, same)
	}
	if _, err := a.CancelMessages(ctx, same, Day, Begin); err != nil {
		t.Fatal(err)
	}
	all, err = w.Due(ctx, nil, Begin.Add(time.Hour), 10)
	if err != nil || len(all) != 0 {
		t.Fatalf("no sessions: %v, %v", all, err)
	}
	// Messages in flight stay in the queue and have an intent. Closed messages leave the queue.
	node := w.MustJoin()
	token, _ := w.MustClaim(node, Begin, a.Items(phone, 0, third...)...)
	done, granted := w.MustClaim(node, Begin.Add(time.Second), b.Items(phone, 0, second[0])...)
	if granted[0] != puntuale.ClaimGranted || !w.MustRecord(Begin, b.Items(phone, 0, second[0])[0], done, puntuale.Outcome{Verdict: puntuale.Sent}) {
		t.Fatal("not sent")
	}
	all, err = w.Due(ctx, begin(sessions...), Begin.Add(time.Second/2), 10)
	if err != nil || len(all) != 1 || all[0].ID != third[0] || all[0].Intent != token || !all[0].IntentAt.Equal(Begin) || all[0].Attempt != 1 ||
		all[0].Run != puntuale.RunID(third[0]) || all[0].Phone != phone || all[0].Client != a.ID || all[0].Session != a.Session {
		t.Fatalf("in flight = %+v, %v", all, err)
	}
}

// testExpiring checks which messages of a session must be closed if the session cannot send. They must be sorted by
// their deadlines.
func testExpiring(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	lasting := func(valid ...time.Duration) (ids []puntuale.MessageID) {
		for _, v := range valid {
			run := c.Run(phone, Begin, 1)
			run.Messages[0].ValidUntil = Begin.Add(v)
			r, err := c.Start(ctx, run)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.IDs...)
		}
		return ids
	}
	ids := lasting(3*time.Second, time.Hour, time.Second, 2*time.Second, 4*time.Second, time.Second)
	w.MustClaim(node, Begin, c.Items(phone, 0, ids[4])...)
	if _, err := c.CancelMessages(ctx, ids[5:], Day, Begin); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		by    time.Duration
		limit int
		want  []puntuale.MessageID
	}{{0, 10, nil}, {10 * time.Second, 10, []puntuale.MessageID{ids[2], ids[3], ids[0]}}, {10 * time.Second, 1, ids[2:3]}, {time.Second, 10, ids[2:3]}} {
		all, err := w.Expiring(ctx, c.Session, Begin.Add(test.by), test.limit)
		if err != nil || !slices.Equal(pickIDs(all), test.want) {
			t.Errorf("by %v: %v, %v, want %v", test.by, pickIDs(all), err, test.want)
		}
	}
}

func testRetrying(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	var items []puntuale.ClaimItem
	for i, failed := range []bool{true, false} {
		item, token := c.attempt(node, phone)
		w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: Begin.Add(time.Duration(i+1) * time.Minute), Failed: failed})
		items = append(items, item)
	}
	c.MustStart(phone, Begin, 1)
	other := w.Client(puntuale.AccountFull) // this client has no message that was tried
	other.MustStart(phone, Begin, 3)
	a, b := items[0].ID, items[1].ID
	for _, test := range []struct {
		what         string
		since, until time.Duration
		most         int
		want         []puntuale.MessageID
		crowded      []puntuale.SessionID
	}{
		{"all", -time.Minute, time.Hour, 10, []puntuale.MessageID{a, b}, nil},
		{"as far as a minute", -time.Minute, time.Minute, 10, []puntuale.MessageID{a}, nil},
		{"tried later", 0, time.Hour, 10, nil, nil},
		{"the first of each", -time.Minute, time.Hour, 1, nil, []puntuale.SessionID{c.Session, other.Session}},
		{"two of each", -time.Minute, time.Hour, 2, []puntuale.MessageID{a}, []puntuale.SessionID{c.Session, other.Session}},
		{"three of each", -time.Minute, time.Hour, 3, []puntuale.MessageID{a, b}, []puntuale.SessionID{c.Session, other.Session}},
	} {
		all, crowded, err := w.Retrying(ctx, []puntuale.SessionID{c.Session, other.Session}, Begin.Add(test.since), Begin.Add(test.until), test.most)
		slices.Sort(crowded)
		if err != nil || !slices.Equal(pickIDs(all), test.want) || !slices.Equal(crowded, test.crowded) {
			t.Errorf("%s: %v, crowded %v, %v; want %v, %v", test.what, pickIDs(all), crowded, err, test.want, test.crowded)
		}
	}
}

func pickIDs(all []puntuale.DueMessage) (ids []puntuale.MessageID) {
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	return ids
}
