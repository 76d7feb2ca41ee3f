package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerContacts(a *api) {
	client(a, operation{
		id: "eraseContact", method: http.MethodPost, path: "/api/contacts/erase", prevents: true, body: eraseBody{}, strict: true, closed: true,
		summary:  "Forget the person behind a number: cancel what is pending, remove the number and all texts; strict: what it does not know it refuses",
		refusals: []int{http.StatusConflict},
	}, eraseContact)
}

// eraseBody documents the body of the call that erases a person.
type eraseBody struct {
	Phone string `json:"phone" doc:"A phone number, or a group id. A number is taken too."`
}

type erasedAnswer struct {
	Message     string `json:"message"`
	Cancelled   int    `json:"cancelled" doc:"Messages that were pending, and are never sent"`
	Messages    int    `json:"messages" doc:"Messages without number and texts from now on, the cancelled ones among them"`
	Sandbox     int    `json:"sandbox_messages" doc:"What the simulated network had received, without number and text from now on"`
	Answers     int    `json:"answers" doc:"Answers kept for repeats of calls, without the number from now on"`
	Blacklisted bool   `json:"blacklisted" doc:"The number is in the blacklist, as a keyed hash from now on"`
}

const saysErased = "Dati del destinatario rimossi"

func eraseContact(ctx context.Context, c *control.Client, in *call, _ *struct{}) (erasedAnswer, error) {
	body, err := in.object()
	if err != nil {
		return erasedAnswer{}, err
	}
	phone := body.phone("phone")
	if err := body.err(); err != nil {
		return erasedAnswer{}, err
	}
	body.refuseUndocumented(eraseBody{})
	done, err := c.Erase(ctx, phone, append(in.unknown, *body.refused...)...)
	if err != nil {
		return erasedAnswer{}, err
	}
	return erasedOf(done), nil
}

func erasedOf(e puntuale.ErasureResult) erasedAnswer {
	return erasedAnswer{saysErased, e.Cancelled, e.Messages, e.Sandbox, e.Answers, e.Blacklisted}
}
