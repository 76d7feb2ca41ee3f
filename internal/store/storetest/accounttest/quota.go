package accounttest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// maker returns a function. Each call of this function creates one more thing of the kind that the quota counts.
func maker(t *testing.T, w *storetest.World, c *storetest.Client, q puntuale.Quota) func() error {
	t.Helper()
	ctx, tenant, p := context.Background(), w.Store.Tenant(c.ID), w.Store.Partner(w.Partner)
	switch q {
	case puntuale.QuotaSessions:
		return func() error {
			_, err := tenant.CreateSession(ctx, puntuale.Session{Name: "x", Type: puntuale.Socket, Created: storetest.Begin}, nil)
			return err
		}
	case puntuale.QuotaSequences:
		return func() error {
			_, err := tenant.CreateSequence(ctx, puntuale.Sequence{Name: "x", IfRunning: puntuale.IfRunningAllow, Created: storetest.Begin, Updated: storetest.Begin}, nil)
			return err
		}
	case puntuale.QuotaTemplates:
		return func() error {
			_, err := tenant.CreateTemplate(ctx, puntuale.Template{Name: storetest.Unique("x"), Text: "x", Created: storetest.Begin, Updated: storetest.Begin}, nil)
			return err
		}
	case puntuale.QuotaUsers:
		return func() error {
			_, err := p.CreateUser(ctx, puntuale.User{Client: c.ID, Email: storetest.Unique("u") + "@example.com", Role: puntuale.Reader}, nil)
			return err
		}
	case puntuale.QuotaKeys:
		return func() error {
			_, err := p.CreateKey(ctx, c.ID, puntuale.Key{Name: "x", Hash: storetest.KeyHash(), Created: storetest.Begin}, nil)
			return err
		}
	}
	t.Fatalf("nothing makes %s", q)
	return nil
}

// testQuotas lets many callers create the last allowed thing at the same time. Exactly one must succeed.
func testQuotas(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	for _, q := range puntuale.AllQuotas {
		c := w.Client(puntuale.AccountFull) // this client already has a session, a sequence, a user and a key
		another := maker(t, w, c, q)
		if err := another(); err != nil {
			t.Fatalf("%s below the default: %v", q, err)
		}
		has := int64(2)
		if q == puntuale.QuotaTemplates {
			has = 1
		}
		set := func(maximum *int64) {
			t.Helper()
			if _, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Quotas: map[puntuale.Quota]*int64{q: maximum}}, storetest.Begin); err != nil {
				t.Fatal(err)
			}
		}
		set(new(has + 1))
		var made atomic.Int64
		storetest.Together(8, func(int) {
			switch err := another(); {
			case err == nil:
				made.Add(1)
			case puntuale.CodeOf(err) != puntuale.CodeQuotaReached:
				t.Errorf("%s: %v", q, err)
			}
		})
		if made.Load() != 1 {
			t.Errorf("%s: %d were made, want 1", q, made.Load())
		}
		set(new(int64(0))) // existing things must stay
		if err := another(); puntuale.CodeOf(err) != puntuale.CodeQuotaReached || err.Error() == "" {
			t.Errorf("%s over the limit: %v", q, err)
		}
		if all, err := p.Quotas(ctx, []puntuale.ClientID{c.ID, 999}); err != nil || len(all) != 1 || len(all[c.ID]) != 1 || all[c.ID].Get(q) != 0 {
			t.Errorf("%s: quotas are %v, %v", q, all, err)
		}
		set(nil)
		if err := another(); err != nil {
			t.Errorf("%s by the default again: %v", q, err)
		}
	}
}

// testPartnerKeys checks that a partner may have only a few keys of its own. Replacing a key does not add a key to this
// number, and keys of other partners do not count.
func testPartnerKeys(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	list := func() []puntuale.Key {
		t.Helper()
		keys, err := p.Keys(ctx, 0, storetest.Begin)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	create := func() error {
		_, err := p.CreateKey(ctx, 0, puntuale.Key{Name: "x", Hash: storetest.KeyHash(), Created: storetest.Begin}, nil)
		return err
	}
	for range puntuale.MaxPartnerKeys - len(list()) {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	storetest.WantCode(t, create(), puntuale.CodeConflict)
	rotate := func(id puntuale.KeyID) error {
		_, err := p.RotateClientKey(ctx, 0, id, puntuale.Key{Name: "x", Hash: storetest.KeyHash(), Created: storetest.Begin}, storetest.Begin.Add(time.Hour), storetest.Begin, nil)
		return err
	}
	all := list()
	if err := rotate(all[0].ID); err != nil {
		t.Fatalf("rotate where there is no room: %v", err)
	}
	storetest.WantCode(t, rotate(all[0].ID), puntuale.CodeConflict) // this key was already replaced, so a second replacement would add a key
	for i := 1; i < len(all); i++ {
		if err := rotate(all[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	newest := list()
	storetest.WantCode(t, rotate(newest[len(newest)-1].ID), puntuale.CodeConflict) // too many keys are in their grace period
	if n := len(newest); n != 2*puntuale.MaxPartnerKeys {
		t.Errorf("%d keys are valid", n)
	}
	if err := p.RevokeKey(ctx, 0, all[0].ID, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	storetest.WantCode(t, p.RevokeKey(ctx, 0, all[0].ID, storetest.Begin), puntuale.CodeNotFound)
	other, err := w.CreatePartner(ctx, puntuale.Partner{Name: "Altri", Slug: "altri-keys"}, puntuale.Login{Email: "a@b"}, puntuale.Key{Hash: storetest.KeyHash()})
	if err != nil {
		t.Fatal(err)
	}
	storetest.WantCode(t, w.Store.Partner(other).RevokeKey(ctx, 0, all[1].ID, storetest.Begin), puntuale.CodeNotFound)
	if keys, err := w.Store.Partner(other).Keys(ctx, 0, storetest.Begin); err != nil || len(keys) != 1 {
		t.Errorf("another partner sees %d keys, %v", len(keys), err)
	}
}
