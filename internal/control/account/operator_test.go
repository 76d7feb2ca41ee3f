package account_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/store/storetest"
)

func TestPartnersAndKeys(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := driver(t)
			store := db.Open(t)
			keys := control.New(control.Config{Tenants: store, Devices: store, Clock: db.Clock})
			c := account.New(account.Config{Control: keys, Tenants: store, Partners: store, Clock: db.Clock})
			testPartners(t, c)
			testRotation(t, c, keys, db)
		})
	}
}

func testPartners(t *testing.T, c *account.Accounts) {
	ctx := t.Context()
	seen := map[puntuale.PartnerID]bool{}
	for range 3 { // partners may have the same name, but each gets its own slug
		id, key, err := c.CreatePartner(ctx, account.NewPartner{Name: "Agenzia Città & Co.", Email: "info@x", Password: "una frase lunga 42"})
		if err != nil || seen[id] || !strings.HasPrefix(key, "pk_") {
			t.Fatal(id, key, err)
		}
		seen[id] = true
	}
	if _, _, err := c.CreatePartner(ctx, account.NewPartner{Name: "Agenzia", Email: "info@x", Password: "short"}); puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("a password that sign-in would refuse later: %v", err)
	}
	_, _, err := c.CreatePartner(ctx, account.NewPartner{Name: " ", Email: "x"})
	e, ok := err.(*puntuale.Error) //nolint:errorlint // not wrapped
	if !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 3 {
		t.Errorf("a partner with every fault: %v", err)
	}
}

func testRotation(t *testing.T, c *account.Accounts, keys *control.Control, db *storetest.Database) {
	ctx := t.Context()
	_, old, err := c.CreatePartner(ctx, account.NewPartner{Name: "Altra", Email: "a@x", Password: "una frase lunga 42"})
	if err != nil {
		t.Fatal(err)
	}
	valid := func(key string) bool {
		caller, err := keys.Authenticate(ctx, key)
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := c.Partner(caller); err != nil {
				t.Error(err)
			}
			if _, err := caller.Client(); puntuale.CodeOf(err) != puntuale.CodeForbidden {
				t.Errorf("a partner's key is a client's: %v", err)
			}
		}
		return err == nil
	}
	next, err := c.RotateKey(ctx, old, time.Hour)
	if err != nil || next == old || !valid(old) || !valid(next) {
		t.Fatal(next, err)
	}
	db.Clock.Advance(time.Hour - time.Microsecond)
	if !valid(old) {
		t.Error("the grace period ended early")
	}
	db.Clock.Advance(time.Microsecond)
	if valid(old) || !valid(next) {
		t.Error("the grace period did not end")
	}
	for _, key := range []string{old, "", "pk_x", next[:len(next)-1] + "0", next + " "} {
		if _, err := c.RotateKey(ctx, key, time.Hour); puntuale.CodeOf(err) != puntuale.CodeUnauthorized && key != next {
			t.Errorf("%q was rotated: %v", key, err)
		}
	}
	last, err := c.RotateKey(ctx, next, 0)
	if err != nil || valid(next) || !valid(last) {
		t.Error("a rotation without grace", err)
	}
}
