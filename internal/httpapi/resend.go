package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"puntuale"
	"puntuale/internal/control"
)

func registerResend(a *api) {
	clientOnce(a, operation{
		id: "rescheduleMessages", method: http.MethodPost, path: "/api/messages/reschedule/all", creates: createsAlways,
		summary: "Send messages again, all or none", body: resendBody{},
		refusals: []int{http.StatusNotFound, http.StatusConflict},
	}, withBody(resend))
	cancel := operation{
		id: "cancelMessages", method: http.MethodPost, path: "/api/messages/cancel", prevents: true, body: cancelIDsBody{},
		summary:     "Cancel messages by their ids, or by their reference",
		description: "Those that are sent already are not in the answer.",
		refusals:    []int{http.StatusNotFound},
	}
	client(a, cancel, a.cancelMessages)
	a.documentAnswer(cancel, reflect.TypeFor[cancelAnswer]())
}

// resendBody documents the body of the call that sends messages again.
type resendBody struct {
	ID   []string `json:"id" read:"id,need" minItems:"1" maxItems:"1000" doc:"IDs of the messages. Numbers are taken too."`
	Date string   `json:"date,omitempty" format:"date" doc:"The day they leave, in the client's zone; else now"`
	Time string   `json:"time,omitempty" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" doc:"HH:MM, with date; else each message's own time of day"`
}

type resendAnswer struct {
	ID []string `json:"id" doc:"IDs of the new messages, in the order asked"`
}

func resend(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *resendBody) (resendAnswer, error) {
	dry := refuseDry(in.query)
	if len(dry) > 0 {
		p = &OnceInput{} // a dry run must not get the stored answer of a real call
	}
	resent, err := c.Resend(ctx, control.ResendCall{
		IDs: body.ID, Date: body.Date, Time: body.Time, Once: once(in, p, resentOf), Faults: slices.Concat(in.refused, dry),
	})
	if err != nil {
		return resendAnswer{}, err
	}
	return resentOf(resent), nil
}

func resentOf(r puntuale.ResendResult) resendAnswer { return resendAnswer{idTexts(r.IDs)} }

// cancelIDsBody documents the body of the call that cancels messages by their ids, or by a reference.
type cancelIDsBody struct {
	ID        []string `json:"id,omitempty" minItems:"1" maxItems:"1000" doc:"IDs of the messages. Numbers are taken too."`
	Reference string   `json:"reference,omitempty" minLength:"1" maxLength:"255" doc:"In the place of id: all that was started or sent with this reference"`
}

func (a *api) cancelMessages(ctx context.Context, c *control.Client, in *call, _ *struct{}) (writtenBytes, error) {
	body, err := in.object()
	if err != nil {
		return nil, err
	}
	_, named := body.members["id"]
	if referred := body.has("reference"); referred && !named {
		var reference string
		body.read("reference", "id", &reference)
		if err := body.err(); err != nil {
			return nil, err
		}
		return a.cancelled(ctx, func(took func([]puntuale.CancelledMessage) error) (int, error) {
			return c.CancelPending(ctx, control.CancelCall{Reference: &reference, Faults: *body.refused}, took)
		})
	} else if referred {
		body.refuse("reference", puntuale.FaultGoesWithout, nil, "id")
	}
	var ids []string
	body.read("id", "id,need", &ids)
	if err := body.err(); err != nil {
		return nil, err
	}
	return a.cancelled(ctx, func(took func([]puntuale.CancelledMessage) error) (int, error) {
		cancelled, err := c.CancelMessages(ctx, ids, *body.refused...)
		if err != nil {
			return 0, err
		}
		return len(cancelled), took(cancelled)
	})
}
