package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// keyRoutes are the client's API keys. Whoever may see one may do with it all that the client may.
var keyRoutes = []route{
	{"GET /c/{client}/keys", clientSide, puntuale.Owner, "", (*site).keys},
	{"POST /c/{client}/keys", clientSide, puntuale.Owner, "key.create", (*site).createOwnKey},
	{"POST /c/{client}/keys/{key}/rotate", clientSide, puntuale.Owner, "key.rotate", (*site).rotateOwnKey},
	{"POST /c/{client}/keys/{key}/revoke", clientSide, puntuale.Owner, "key.revoke", (*site).revokeOwnKey},
}

func (v *visit) keysURL() string { return v.frame.Place.Base + "/keys" }

func (s *site) keys(v *visit) error {
	all, err := v.client.Keys(v.ctx())
	if err != nil {
		return err
	}
	return v.show(view.Keys(all, nil))
}

func (s *site) createOwnKey(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	key, err := v.client.CreateKey(v.ctx(), f.Value("name"))
	if err != nil {
		all, missing := v.client.Keys(v.ctx())
		if missing != nil {
			return missing
		}
		return v.again(err, f, view.KeyForm(f, v.keysURL()), view.Keys(all, f), "name")
	}
	v.did(key.Prefix)
	return v.whole(view.KeyIssued(key.Plain, key.Name, v.keysURL()))
}

func (s *site) rotateOwnKey(v *visit) error {
	key, err := v.client.RotateKey(v.ctx(), v.path("key"))
	if err != nil {
		return err
	}
	v.did(key.Prefix)
	return v.whole(view.KeyIssued(key.Plain, key.Name, v.keysURL()))
}

func (s *site) revokeOwnKey(v *visit) error {
	if err := v.client.RevokeKey(v.ctx(), v.path("key")); err != nil {
		return err
	}
	v.did(v.path("key"))
	v.say("key.revoked", "")
	return v.to(v.keysURL())
}
