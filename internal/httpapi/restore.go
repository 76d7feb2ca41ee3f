package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerRestore(a *api) {
	client(a, operation{
		id: "listUnknownMessages", method: http.MethodGet, path: "/api/messages/unknown", strict: true,
		summary:     "List the messages that may have left before a restore",
		description: "After a restore from a backup. The list is by id, and has a message until you send it again or close it.",
	}, listUnknown)
	client(a, operation{
		id: "resendUnknownMessages", method: http.MethodPost, path: "/api/messages/unknown/resend", creates: createsAlways, body: unknownBody{}, strict: true,
		summary:     "Send messages of that list again, now",
		description: "They may arrive twice. Repeated, the call sends nothing more.",
		refusals:    []int{http.StatusNotFound, http.StatusConflict},
	}, resendUnknown)
	client(a, operation{
		id: "closeUnknownMessages", method: http.MethodPost, path: "/api/messages/unknown/close", prevents: true, body: unknownBody{}, strict: true,
		summary:     "Close messages of that list without sending them",
		description: "They are FAILED with an uncertain outcome.",
		refusals:    []int{http.StatusNotFound},
	}, closeUnknown)
	client(a, operation{
		id: "releaseHeldMessages", method: http.MethodPost, path: "/api/messages/held/release",
		summary:     "Let the messages that a restore held leave again",
		description: "After a restore with --hold.",
	}, releaseHeld)
}

// unknownBody documents the body of calls that choose messages which a restore left unknown.
type unknownBody struct {
	ID  []string `json:"id,omitempty" minItems:"1" maxItems:"1000" doc:"IDs of the messages. Numbers are taken too."`
	All bool     `json:"all,omitempty" doc:"true, without id: every message of the list"`
	_   closedCheck
}

type unknownAnswer struct {
	Unknown    int             `json:"unknown" doc:"How many messages the whole list has"`
	Since      *string         `json:"backup_at" format:"date-time" doc:"The backup's moment: what happened later is not in it. null without a restore"`
	RestoredAt *string         `json:"restored_at" format:"date-time" doc:"When it was restored"`
	HeldSince  *string         `json:"held_since" format:"date-time" doc:"Since when nothing of the account leaves until it is released; null when it is not held"`
	Messages   []listedMessage `json:"messages"`
	Next       *string         `json:"next_cursor"`
}

func listUnknown(ctx context.Context, c *control.Client, in *call, p *ListInput) (unknownAnswer, error) {
	rows, next, err := c.UnknownMessages(ctx, p.page(in))
	if err != nil {
		return unknownAnswer{}, err
	}
	r, err := c.Restored(ctx)
	if err != nil {
		return unknownAnswer{}, err
	}
	return unknownAnswer{
		Unknown: r.Unknown, Since: stampOrNull(r.Since), RestoredAt: stampOrNull(r.At), HeldSince: stampOrNull(r.Held),
		Messages: each(rows, func(m puntuale.MessageDetail) listedMessage { return listedMessage{int64(m.ID), detailOf(&m)} }),
		Next:     textOrNull(next),
	}, nil
}

// unknownCall reads which unknown messages the body chooses: those with its ids, or all.
func unknownCall(in *call) (control.UnknownCall, error) {
	body, err := in.object()
	if err != nil {
		return control.UnknownCall{}, err
	}
	var requested control.UnknownCall
	body.read("all", "", &requested.All)
	switch {
	case !requested.All:
		body.read("id", "id,need", &requested.IDs)
	case body.has("id"):
		body.refuse("id", puntuale.FaultGoesWithout, nil, "all")
	}
	if err := body.err(); err != nil {
		return requested, err
	}
	closedCheck{}.check(body, &unknownBody{})
	requested.Faults = append(in.unknown, *body.refused...)
	return requested, nil
}

func resendUnknown(ctx context.Context, c *control.Client, in *call, _ *struct{}) (resendAnswer, error) {
	requested, err := unknownCall(in)
	if err != nil {
		return resendAnswer{}, err
	}
	ids, err := c.ResendUnknown(ctx, requested)
	if err != nil {
		return resendAnswer{}, err
	}
	return resendAnswer{idTexts(ids)}, nil
}

type closedAnswer struct {
	Message string `json:"message"`
	Closed  int    `json:"closed" doc:"How many messages of the list were closed"`
}

func closeUnknown(ctx context.Context, c *control.Client, in *call, _ *struct{}) (closedAnswer, error) {
	requested, err := unknownCall(in)
	if err != nil {
		return closedAnswer{}, err
	}
	n, err := c.CloseUnknown(ctx, requested)
	if err != nil {
		return closedAnswer{}, err
	}
	return closedAnswer{"Messaggi chiusi senza inviarli", n}, nil
}

func releaseHeld(ctx context.Context, c *control.Client, _ *call, _ *struct{}) (messageAnswer, error) {
	if err := c.ReleaseHeld(ctx); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Gli invii sono ripresi"}, nil
}
