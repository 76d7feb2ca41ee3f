package httpapi

import (
	"context"
	"net/http"
	"slices"

	"puntuale"
	"puntuale/internal/control"
)

func registerResend(a *api) {
	clientOnce(a, operation{
		id: "rescheduleMessages", method: http.MethodPost, path: "/api/messages/reschedule/all", creates: always,
		summary: "Send messages again, all or none", body: resendBody{},
		refusals: []int{http.StatusNotFound, http.StatusConflict},
	}, resend)
	client(a, operation{
		id: "cancelMessages", method: http.MethodPost, path: "/api/messages/cancel", prevents: true, body: cancelIDsBody{},
		summary:  "Cancel messages by their ids; those that are sent already are not in the answer",
		refusals: []int{http.StatusNotFound},
	}, cancelMessages)
}

// resendBody documents the body of a re-send.
type resendBody struct {
	ID   []string `json:"id" minItems:"1" maxItems:"1000" doc:"IDs of the messages. Numbers are taken too."`
	Date string   `json:"date,omitempty" format:"date" doc:"The day they leave, in the client's zone; else now"`
	Time string   `json:"time,omitempty" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" doc:"HH:MM, with date; else each message's own time of day"`
}

type resendAnswer struct {
	ID []string `json:"id" doc:"IDs of the new messages, in the order asked"`
}

func resend(ctx context.Context, c *control.Client, in *call, p *OnceInput) (resendAnswer, error) {
	body, err := in.object()
	if err != nil {
		return resendAnswer{}, err
	}
	dry := refuseDry(in.query)
	if len(dry) > 0 {
		p = &OnceInput{} // a dry run must not get the kept answer of a real call
	}
	asked := control.ResendCall{
		IDs: body.needIDs("id"), Date: body.text("date"), Time: body.text("time"), Once: once(in, p, resentOf),
	}
	if err := body.err(); err != nil {
		return resendAnswer{}, err
	}
	asked.Faults = slices.Concat(*body.refused, dry)
	resent, err := c.Resend(ctx, asked)
	if err != nil {
		return resendAnswer{}, err
	}
	return resentOf(resent), nil
}

func resentOf(r puntuale.ResendResult) resendAnswer { return resendAnswer{idTexts(r.IDs)} }

// cancelIDsBody documents the body of a cancellation by ids.
type cancelIDsBody struct {
	ID []string `json:"id" minItems:"1" maxItems:"1000" doc:"IDs of the messages. Numbers are taken too."`
}

func cancelMessages(ctx context.Context, c *control.Client, in *call, _ *struct{}) (cancelAnswer, error) {
	body, err := in.object()
	if err != nil {
		return cancelAnswer{}, err
	}
	ids := body.needIDs("id")
	if err := body.err(); err != nil {
		return cancelAnswer{}, err
	}
	cancelled, err := c.CancelMessages(ctx, ids, *body.refused...)
	if err != nil {
		return cancelAnswer{}, err
	}
	return cancelledOf(cancelled), nil
}
