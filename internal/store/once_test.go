package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestPostgresOnceInDoubt breaks a connection shortly before or after the COMMIT of a call with an idempotency key. The
// call must take effect once, and its answer must be stored.
func TestPostgresOnceInDoubt(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	partner := w.Store.Partner(w.Partner)
	ctx := context.Background()
	ids := c.MustStart("+393331234567", storetest.Begin, 2)
	once := func(key string) *puntuale.Idempotency {
		return &puntuale.Idempotency{Scope: "s", Key: key, Hash: "h", Answer: func(result any) ([]byte, error) { return fmt.Append(nil, result), nil }}
	}
	for i, cut := range []int32{cutBefore, cutAfter} {
		for name, call := range map[string]func(o *puntuale.Idempotency) (any, error){
			"template": func(o *puntuale.Idempotency) (any, error) {
				return c.CreateTemplate(ctx, puntuale.Template{Name: storetest.Unique("t")}, o)
			},
			"client": func(o *puntuale.Idempotency) (any, error) {
				return partner.CreateClient(ctx, puntuale.NewClient{Login: puntuale.Login{Email: storetest.Unique("e") + "@x"},
					Key: puntuale.Key{Hash: puntuale.KeyHash{byte(i + 1)}}, Session: puntuale.Session{Type: puntuale.Socket}}, o)
			},
			"message": func(o *puntuale.Idempotency) (any, error) {
				r := c.Again(ids[i])
				r.Idempotency = o
				return c.Resend(ctx, r)
			},
		} {
			before := w.Int("select count(*) from " + name)
			key := fmt.Sprint(name, cut)
			p.cut.Store(cut)
			result, err := call(once(key))
			if err != nil || p.cut.Load() != cutNothing {
				t.Fatalf("%s, cut %d: %v", name, cut, err)
			}
			_, err = call(once(key))
			if r, ok := errors.AsType[*puntuale.Replayed](err); !ok || string(r.Answer) != fmt.Sprint(result) {
				t.Errorf("%s, cut %d: again %v, want the answer %v", name, cut, err, result)
			}
			if n := w.Int("select count(*) from " + name); n != before+1 {
				t.Errorf("%s, cut %d: %d effects", name, cut, n-before)
			}
		}
	}
	// Without a key, the store cannot find out whether the call was stored, and the caller's error says so.
	third := c.MustStart("+393331234567", storetest.Begin.Add(time.Hour), 1)
	p.cut.Store(cutAfter)
	_, err := c.Resend(ctx, c.Again(third...))
	if puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Errorf("without a key: %v", err)
	}
}
