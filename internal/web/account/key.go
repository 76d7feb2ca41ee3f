package account

import (
	"context"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/web/page"
)

// keyRoutes are the pages of a client's API keys, and of the partner's own API keys. A person who sees a key can do
// everything that the key's owner may do.
var keyRoutes = []page.Route{
	page.Get("/partner/keys", page.PartnerSide, puntuale.Owner, keys),
	page.Post("/partner/keys", page.PartnerSide, puntuale.Owner, "key.create", createOwnKey),
	page.Post("/partner/keys/{key}/rotate", page.PartnerSide, puntuale.Owner, "key.rotate", rotateOwnKey),
	page.Post("/partner/keys/{key}/revoke", page.PartnerSide, puntuale.Owner, "key.revoke", revokeOwnKey),

	page.Get("/c/{client}/keys", page.ClientSide, puntuale.Owner, keys),
	page.Post("/c/{client}/keys", page.ClientSide, puntuale.Owner, "key.create", createOwnKey),
	page.Post("/c/{client}/keys/{key}/rotate", page.ClientSide, puntuale.Owner, "key.rotate", rotateOwnKey),
	page.Post("/c/{client}/keys/{key}/revoke", page.ClientSide, puntuale.Owner, "key.revoke", revokeOwnKey),
}

// keySet contains the methods that the pages about keys need. The keys belong to a client, or to the partner itself.
type keySet struct {
	base   string
	list   func(context.Context) ([]puntuale.Key, error)
	create func(ctx context.Context, name string) (account.IssuedKey, error)
	rotate func(ctx context.Context, key string) (account.IssuedKey, error)
	revoke func(ctx context.Context, key string) error
}

func ringOf(v *page.Request) keySet {
	if c := v.Client; c != nil {
		keys := v.Site.Accounts.KeysOf(c)
		return keySet{v.Frame.Place.Base + "/keys", keys.List, keys.Create, keys.Rotate, keys.Revoke}
	}
	p := v.Partner
	return keySet{"/partner/keys", p.OwnKeys, p.CreateOwnKey, p.RotateOwnKey, p.RevokeOwnKey}
}

func keys(v *page.Request) error {
	r := ringOf(v)
	all, err := r.list(v.Ctx())
	if err != nil {
		return err
	}
	return v.Show(Keys(r.base, all, nil))
}

func createOwnKey(v *page.Request) error {
	r := ringOf(v)
	f, err := v.Form()
	if err != nil {
		return err
	}
	key, err := r.create(v.Ctx(), f.Value("name"))
	if err != nil {
		all, missing := r.list(v.Ctx())
		if missing != nil {
			return missing
		}
		return v.ShowRefused(err, f, KeyForm(f, r.base), Keys(r.base, all, f), "name")
	}
	v.SetAuditTarget(key.Prefix)
	return v.Whole(KeyIssued(key.Plain, key.Name, r.base))
}

func rotateOwnKey(v *page.Request) error {
	r := ringOf(v)
	key, err := r.rotate(v.Ctx(), v.Path("key"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(key.Prefix)
	return v.Whole(KeyIssued(key.Plain, key.Name, r.base))
}

func revokeOwnKey(v *page.Request) error {
	r := ringOf(v)
	if err := r.revoke(v.Ctx(), v.Path("key")); err != nil {
		return err
	}
	v.SetAuditTarget(v.Path("key"))
	v.Say("key.revoked", "")
	return v.Redirect(r.base)
}
