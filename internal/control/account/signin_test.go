package account_test

import (
	"net/netip"
	"testing"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/store/storetest"
)

// TestNewPasswordBeginsNewCounts: after too many wrong passwords, a person who gets a new password from the operator can
// sign in at once. The wait of the old password stays.
func TestNewPasswordBeginsNewCounts(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), storetest.SQLite(t)
	store := db.Open(t)
	vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	keys := control.New(control.Config{Tenants: store, Devices: store, Clock: db.Clock, Vault: vault})
	c := account.New(account.Config{Control: keys, Tenants: store, Partners: store, SignIn: store, Clock: db.Clock, Vault: vault})
	const email, old, fresh = "anna@agenzia.example", "una password lunga", "un'altra password lunga"
	if _, _, err := c.CreatePartner(ctx, account.NewPartner{Name: "Agenzia", Email: email, Password: old}); err != nil {
		t.Fatal(err)
	}
	signIn := func(password string) ([]*account.Person, error) {
		return c.SignIn(ctx, account.SignIn{Email: email, Password: password, Address: netip.MustParseAddr("192.0.2.1")})
	}
	first, err := signIn(old)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for ; puntuale.CodeOf(err) != puntuale.CodeRateLimited; tries++ {
		if _, err = signIn("una password sbagliata"); tries > 20 {
			t.Fatalf("%d wrong passwords: %v", tries, err)
		}
	}
	if _, err := signIn(old); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Fatalf("the old password while it must wait: %v", err)
	}
	if err := c.ResetUser(ctx, first[0].User(), fresh, false); err != nil {
		t.Fatal(err)
	}
	if _, err := signIn(fresh); err != nil {
		t.Errorf("the new password after %d wrong ones: %v", tries, err)
	}
}
