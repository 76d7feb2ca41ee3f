package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control/account"
)

func registerKeys(a *api) {
	const all, one = "/api/client/{id}/keys", "/api/client/{id}/keys/{key}"
	missing := []int{http.StatusNotFound}
	partner(a, operation{id: "listKeys", method: http.MethodGet, path: all,
		summary:     "List a client's valid keys, by id",
		description: "The keys themselves are shown only when they are made.", refusals: missing}, listKeys)
	partnerOnce(a, operation{id: "createKey", method: http.MethodPost, path: all, body: keyBody{},
		summary: "Make another key for a client", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(createKey))
	partnerOnce(a, operation{id: "rotateKey", method: http.MethodPost, path: one + "/rotate", body: rotateBody{}, optional: true,
		summary: "Make a key in the place of another, which stays valid for a while", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withOptionalBody(rotateKey))
	partner(a, operation{id: "revokeKey", method: http.MethodDelete, path: one, prevents: true,
		summary: "Revoke a key at once", refusals: missing}, revokeKey)
}

// keyBody documents the body of the call that creates a key.
type keyBody struct {
	Name string `json:"name" minLength:"1" maxLength:"200" doc:"To tell it from others"`
}

// rotateBody documents the body of the call that rotates a key.
type rotateBody struct {
	Grace *int64 `json:"grace,omitempty" minimum:"0" maximum:"7776000" doc:"Seconds that the old key stays valid; else a day"`
}

type keyCreateInput struct {
	OnceInput
	ID string `path:"id" doc:"ID of the client"`
}

type keyInput struct {
	ID  string `path:"id" doc:"ID of the client"`
	Key string `path:"key" doc:"ID of the key"`
}

type keyRotateInput struct {
	OnceInput
	ID  string `path:"id" doc:"ID of the client"`
	Old string `path:"key" doc:"ID of the key"`
}

// KeyAnswer is a key, as a list shows it.
type KeyAnswer struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Prefix  string  `json:"prefix" doc:"The key's first characters, to recognise it by"`
	Created string  `json:"created_at" format:"date-time"`
	Expires *string `json:"expires_at" format:"date-time" doc:"End of the grace after a rotation; null: none"`
	Used    *string `json:"last_used_at" format:"date-time" doc:"Last use, to about five minutes; null: never"`
}

type keysAnswer struct {
	Keys []KeyAnswer `json:"keys"`
}

type issuedAnswer struct {
	KeyAnswer
	Plain string `json:"api_key" doc:"The key, shown only now"`
}

func listKeys(ctx context.Context, p *account.Partner, _ *call, in *oneInput) (keysAnswer, error) {
	keys, err := p.Keys(ctx, in.ID)
	if err != nil {
		return keysAnswer{}, err
	}
	return keysAnswer{each(keys, keyOf)}, nil
}

func createKey(ctx context.Context, p *account.Partner, in *call, q *keyCreateInput, body *keyBody) (issuedAnswer, error) {
	issued, err := p.CreateKey(ctx, q.ID, body.Name, once(in, &q.OnceInput, issuedOf), in.refused...)
	if err != nil {
		return issuedAnswer{}, err
	}
	return issuedOf(issued), nil
}

func rotateKey(ctx context.Context, p *account.Partner, in *call, q *keyRotateInput, body *rotateBody) (issuedAnswer, error) {
	issued, err := p.RotateKey(ctx, q.ID, q.Old, body.Grace, once(in, &q.OnceInput, issuedOf))
	if err != nil {
		return issuedAnswer{}, err
	}
	return issuedOf(issued), nil
}

func revokeKey(ctx context.Context, p *account.Partner, _ *call, in *keyInput) (messageAnswer, error) {
	if err := p.RevokeKey(ctx, in.ID, in.Key); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Chiave revocata"}, nil
}

func keyOf(k puntuale.Key) KeyAnswer {
	return KeyAnswer{idText64(k.ID), k.Name, k.Prefix, stamp(k.Created), stampOrNull(k.Expires), stampOrNull(k.Used)}
}

func issuedOf(k account.IssuedKey) issuedAnswer { return issuedAnswer{keyOf(k.Key), k.Plain} }
