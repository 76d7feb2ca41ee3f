package web

import (
	"context"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// keyRoutes are the API keys of a client, and of the partner itself. Who may see one may do with it all that its owner may.
var keyRoutes = []Route{
	Get("/partner/keys", PartnerSide, puntuale.Owner, keys),
	Post("/partner/keys", PartnerSide, puntuale.Owner, "key.create", createOwnKey),
	Post("/partner/keys/{key}/rotate", PartnerSide, puntuale.Owner, "key.rotate", rotateOwnKey),
	Post("/partner/keys/{key}/revoke", PartnerSide, puntuale.Owner, "key.revoke", revokeOwnKey),

	Get("/c/{client}/keys", ClientSide, puntuale.Owner, keys),
	Post("/c/{client}/keys", ClientSide, puntuale.Owner, "key.create", createOwnKey),
	Post("/c/{client}/keys/{key}/rotate", ClientSide, puntuale.Owner, "key.rotate", rotateOwnKey),
	Post("/c/{client}/keys/{key}/revoke", ClientSide, puntuale.Owner, "key.revoke", revokeOwnKey),
}

// ring is what the pages of keys ask, of a client or of the partner itself.
type ring struct {
	base   string
	list   func(context.Context) ([]puntuale.Key, error)
	create func(ctx context.Context, name string) (control.IssuedKey, error)
	rotate func(ctx context.Context, key string) (control.IssuedKey, error)
	revoke func(ctx context.Context, key string) error
}

func ringOf(v *Request) ring {
	if c := v.client; c != nil {
		return ring{v.frame.Place.Base + "/keys", c.Keys, c.CreateKey, c.RotateKey, c.RevokeKey}
	}
	p := v.partner
	return ring{"/partner/keys", p.OwnKeys, p.CreateOwnKey, p.RotateOwnKey, p.RevokeOwnKey}
}

func keys(v *Request) error {
	r := ringOf(v)
	all, err := r.list(v.ctx())
	if err != nil {
		return err
	}
	return v.show(view.Keys(r.base, all, nil))
}

func createOwnKey(v *Request) error {
	r := ringOf(v)
	f, err := v.form()
	if err != nil {
		return err
	}
	key, err := r.create(v.ctx(), f.Value("name"))
	if err != nil {
		all, missing := r.list(v.ctx())
		if missing != nil {
			return missing
		}
		return v.again(err, f, view.KeyForm(f, r.base), view.Keys(r.base, all, f), "name")
	}
	v.did(key.Prefix)
	return v.whole(view.KeyIssued(key.Plain, key.Name, r.base))
}

func rotateOwnKey(v *Request) error {
	r := ringOf(v)
	key, err := r.rotate(v.ctx(), v.path("key"))
	if err != nil {
		return err
	}
	v.did(key.Prefix)
	return v.whole(view.KeyIssued(key.Plain, key.Name, r.base))
}

func revokeOwnKey(v *Request) error {
	r := ringOf(v)
	if err := r.revoke(v.ctx(), v.path("key")); err != nil {
		return err
	}
	v.did(v.path("key"))
	v.say("key.revoked", "")
	return v.Redirect(r.base)
}
