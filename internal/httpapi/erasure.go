package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerContacts(a *api) {
	client(a, operation{
		id: "eraseContact", method: http.MethodPost, path: "/api/contacts/erase", prevents: true, body: eraseBody{}, strict: true,
		summary:     "Forget the person behind a number",
		description: "Cancel what is pending, remove the number and all texts; strict: what it does not know it refuses.",
		refusals:    []int{http.StatusConflict},
	}, withBody(eraseContact))
}

// eraseBody documents the body of the call that erases a person.
type eraseBody struct {
	Phone string `json:"phone" read:"phone" doc:"A phone number, or a group id. A number is taken too."`
	_     closedCheck
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

func eraseContact(ctx context.Context, c *control.Client, in *call, _ *struct{}, body *eraseBody) (erasedAnswer, error) {
	done, err := c.Erase(ctx, body.Phone, append(in.unknown, in.refused...)...)
	if err != nil {
		return erasedAnswer{}, err
	}
	return erasedOf(done), nil
}

func erasedOf(e puntuale.ErasureResult) erasedAnswer {
	return erasedAnswer{saysErased, e.Cancelled, e.Messages, e.Sandbox, e.Answers, e.Blacklisted}
}
