package httpapi

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

func registerMessages(a *api) {
	cancel := operation{
		id: "cancelPendingMessages", method: http.MethodPost, path: "/api/messages/cancel/pending", prevents: true,
		summary:     "Cancel pending messages, all or those to some recipients",
		description: "Strict: what it does not know it refuses.",
		body:        cancelBody{}, optional: true, strict: true,
	}
	client(a, cancel, a.cancelPending)
	a.documentAnswer(cancel, reflect.TypeFor[cancelAnswer]())
	client(a, operation{
		id: "getMessageDetails", method: http.MethodGet, path: "/api/messages/details",
		summary:     "Get message details, in the order asked",
		description: "Unknown ids are left out.",
	}, details)
}

// cancelBody documents the body of the call that cancels messages.
type cancelBody struct {
	Phones []string `json:"phones,omitempty" maxItems:"1000" doc:"Only messages to these; without this member, or without a body, all pending messages are cancelled. Numbers are taken too."`
	_      closedCheck
}

// cancelInput documents the query. The handler reads the list from [call], because huma treats a list with one empty
// entry as no list. A call without a list would cancel everything.
type cancelInput struct {
	Phones []string `query:"phones[],explode" doc:"The same list, in the query"`
}

type cancelAnswer struct {
	Message  string             `json:"message" doc:"How many messages were cancelled"`
	Messages []cancelledMessage `json:"messages"`
}

type cancelledMessage struct {
	ID      int64  `json:"id"`
	Desired string `json:"desired_date" format:"date-time" doc:"When the message was to be sent"`
}

func (a *api) cancelPending(ctx context.Context, c *control.Client, in *call, _ *cancelInput) (writtenBytes, error) {
	location, phones, all, err := in.phones()
	if err != nil {
		return nil, err
	}
	return a.cancelled(ctx, func(took func([]puntuale.CancelledMessage) error) (int, error) {
		return c.CancelPending(ctx, control.CancelCall{Phones: phones, All: all, Location: location, Faults: in.unknown}, took)
	})
}

// cancelled runs a cancellation and writes its [cancelAnswer]. The number of messages has no limit, and the answer
// begins with their count. For this reason the messages stay in a spool until all are cancelled.
func (a *api) cancelled(ctx context.Context, cancel func(took func([]puntuale.CancelledMessage) error) (int, error)) (writtenBytes, error) {
	kept := &spool{folder: a.scratch}
	list := listWriter{to: kept}
	n, err := cancel(func(some []puntuale.CancelledMessage) error {
		for _, m := range some {
			if err := list.add(cancelledMessageOf(m)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, kept.close())
	}
	return func(to huma.Context) {
		defer func() { _ = kept.close() }() // the file has no name, so the system removes it when it is closed
		begin, err := render(cancelAnswer{Message: control.Cancelled(n), Messages: []cancelledMessage{}})
		if err != nil {
			panic(err) // encoding a text as JSON cannot fail
		}
		to.SetHeader("Content-Type", "application/json")
		to.SetStatus(http.StatusOK)
		if err := kept.answer(to.BodyWriter(), bytes.TrimSuffix(begin, []byte("]}")), []byte("]}\n")); err != nil {
			a.logger.InfoContext(ctx, "an answer was cut short", "error", err)
			panic(http.ErrAbortHandler)
		}
	}, nil
}

func cancelledMessageOf(m puntuale.CancelledMessage) cancelledMessage {
	return cancelledMessage{int64(m.ID), stamp(m.Desired)}
}

// Codes of the faults that this file reports.
const (
	faultCallInBodyToo puntuale.ReasonCode = "call.in_body_too"
	faultCallNull      puntuale.ReasonCode = "call.null"
)

// phones reads the recipients whose messages the call cancels. all is true if neither the body nor the query contains
// a list. phones adds unknown members of the body to the call's unknown parameters.
func (c *call) phones() (location string, phones []string, all bool, err error) {
	queried, inQuery := c.query["phones[]"]
	if c.body == nil {
		return "query.phones", queried, !inQuery, nil
	}
	body, err := c.object()
	if err != nil {
		return "", nil, false, err
	}
	body.read("phones", "phone", &phones)
	if err := body.err(); err != nil {
		return "", nil, false, err
	}
	c.unknown = append(c.unknown, *body.refused...)
	for _, name := range slices.Sorted(maps.Keys(body.members)) {
		switch {
		case name != "phones":
			c.refuse("body."+name, faultCallUnknownMember)
		case phones == nil:
			c.refuse("body.phones", faultCallNull)
		case inQuery:
			c.refuse("query.phones", faultCallInBodyToo)
		}
	}
	if _, inBody := body.members["phones"]; inBody || !inQuery {
		return "body.phones", phones, !inBody, nil
	}
	return "query.phones", queried, false, nil
}

func (c *call) refuse(location string, code puntuale.ReasonCode) {
	c.unknown = append(c.unknown, puntuale.Fault{Location: location, Code: code})
}

// detailsInput documents the query. The handler reads the list from [call], after [api.edge] rewrote the query.
type detailsInput struct {
	IDs []string `query:"message_ids[],explode" required:"true" doc:"IDs of the messages, at most 1000"`
}

type detailsAnswer struct {
	Messages []MessageDetail `json:"messages"`
}

// MessageDetail is a message in the form that the contract defines.
type MessageDetail struct {
	Origin    string   `json:"tipologia" enum:"SINGLE,SEQUENCE,MASSIVE,AUTOMATION" doc:"What created the message"`
	RunName   string   `json:"nome_invio" doc:"Name of the send; empty for a sequence"`
	Received  string   `json:"ricezione" format:"date-time" doc:"When the call was accepted"`
	Desired   *string  `json:"invio_desiderato" format:"date-time" doc:"The moment wished for; null when it was at once"`
	Planned   string   `json:"invio_previsto" format:"date-time" doc:"The moment it is or was expected to leave"`
	Left      *string  `json:"invio_effettivo" format:"date-time" doc:"The moment it left; null until then"`
	Phone     string   `json:"telefono"`
	State     string   `json:"stato" enum:"PENDING,COMPLETED,FAILED,CANCELLED,RESCHEDULED,BLACKLISTED"`
	Client    string   `json:"cliente" doc:"Name of the client at the start"`
	Sequence  *string  `json:"sequenza" doc:"Name of the sequence at the start"`
	Template  *string  `json:"template" doc:"Name of the template at the start"`
	Text      string   `json:"contenuto"`
	MediaURL  *string  `json:"media_url"`
	Latitude  *float64 `json:"latitudine"`
	Longitude *float64 `json:"longitudine"`
	MediaName *string  `json:"nome_media"`
	Request   string   `json:"richiesta" doc:"The call's body, byte for byte"`
	Response  string   `json:"risposta" doc:"What became of it, in a short sentence"`
	Detail    *string  `json:"dettaglio_risposta" doc:"The network's words and ids"`
	Removed   bool     `json:"contenuti_rimossi,omitempty" doc:"true once request and contents were removed: after the time they are kept, or with the person's data. Then telefono is empty, too."`
	Departed  *string  `json:"partito,omitempty" format:"date-time" doc:"When it left the network's own servers, once the network said so"`
	Delivered *string  `json:"consegnato,omitempty" format:"date-time" doc:"When it reached the recipient's device, once the network said so"`
	Read      *string  `json:"letto,omitempty" format:"date-time" doc:"When the recipient saw it, once the network said so"`
	Reference string   `json:"reference,omitempty" doc:"What the call gave as its reference"`
	Variant   string   `json:"variant,omitempty" enum:"A,B,C,D" doc:"Of a step or campaign with several texts, in the details of a message: which one the person got"`
	Way       string   `json:"way,omitempty" enum:"free_text,direct_send,template,refused" doc:"Of an Official session, in the details of a message: how it left, or how it would leave now"`
	WayReason string   `json:"way_reason,omitempty" doc:"Why, in plain Italian"`
	Buttons   []string `json:"buttons,omitempty" doc:"Labels of the buttons below the text"`

	Interactive *puntuale.Interactive `json:"interactive,omitempty" doc:"The list, the link or the question below the text"`

	Links []trackedLink `json:"links,omitempty" doc:"The tracked links in the text, in the details of a message"`
}

// trackedLink is an address in the text of a message that became a link of the service.
type trackedLink struct {
	Address  *string `json:"address" doc:"Where it leads; null: it has ended"`
	Clicked  *string `json:"clicked_at" format:"date-time" doc:"When the person first followed it"`
	Clicks   int64   `json:"clicks" doc:"How often the person followed it"`
	Machines int64   `json:"machine_opens" doc:"How often a preview, a scanner or another machine opened it"`
}

func details(ctx context.Context, c *control.Client, in *call, _ *detailsInput) (detailsAnswer, error) {
	found, err := c.Details(ctx, slices.DeleteFunc(in.query["message_ids[]"], func(id string) bool { return id == "" }))
	if err != nil {
		return detailsAnswer{}, err
	}
	messages := make([]MessageDetail, len(found))
	for i := range found {
		messages[i] = detailOf(&found[i])
	}
	return detailsAnswer{messages}, nil
}

// Detail returns a message in the form that the contract defines. Other packages that show messages use it.
func Detail(m *puntuale.MessageDetail) MessageDetail { return detailOf(m) }

func detailOf(m *puntuale.MessageDetail) MessageDetail {
	variant := ""
	if m.Variant > 0 {
		variant = puntuale.VariantKey(m.Variant - 1)
	}
	return MessageDetail{
		Variant: variant,
		Origin:  string(m.Origin), RunName: m.RunName, Received: stamp(m.Received), Desired: stampOrNull(m.Desired),
		Planned: stamp(m.Planned()), Left: stampOrNull(m.LeftAt()), Phone: m.Phone, State: m.State.String(),
		Client: m.ClientName, Sequence: textOrNull(m.SequenceName), Template: textOrNull(m.Content.Template),
		Text: m.Content.Text, MediaURL: textOrNull(m.Content.MediaURL),
		Latitude: m.Content.Latitude, Longitude: m.Content.Longitude,
		MediaName: textOrNull(control.MediaName(m.Content)), Request: string(m.Request),
		Response: catalogue.Italian.Sentence(m.Response()), Detail: textOrNull(catalogue.Italian.Sentence(m.Detail)), Removed: m.Blanked,
		Departed: stampOrNull(m.Departed), Delivered: stampOrNull(m.Delivered), Read: stampOrNull(m.Read), Reference: m.Reference,
		Way: string(m.Way), WayReason: catalogue.Italian.Sentence(puntuale.Because(m.WayReason)),
		Buttons: labelsOf(m.Content.Buttons()), Interactive: m.Content.Interactive, Links: linksOf(m.Links),
	}
}

func linksOf(all []puntuale.TrackedLink) []trackedLink {
	if len(all) == 0 {
		return nil
	}
	return each(all, func(l puntuale.TrackedLink) trackedLink {
		return trackedLink{textOrNull(l.Address), stampOrNull(l.Clicked), l.Clicks, l.Machines}
	})
}

func registerOutcomes(a *api) {
	client(a, operation{
		id: "getMessageOutcomes", method: http.MethodGet, path: "/api/messages/statusByPeriod",
		summary: "Get message outcomes for a period, by the moment they were recorded, oldest first, at most 1000",
	}, outcomes)
	a.OpenAPI().Paths["/api/messages/statusByPeriod"].Get.Responses["200"].Headers = map[string]*huma.Param{"Link": {
		Description: "When there are more: the address of the next ones, without the key",
		Schema:      &huma.Schema{Type: "string"},
	}}
}

// periodNames are the accepted names of a period's start and end. In each list, the first name is the product's own.
var periodNames = [2][]string{{"start", "from", "start_date", "inizio"}, {"end", "to", "end_date", "fine"}}

// period reads a period from the query.
func (c *call) period() (p request.Period) {
	for i, into := range []*[]request.Bound{&p.Start, &p.End} {
		for _, name := range periodNames[i] {
			for _, text := range c.query[name] {
				if strings.TrimSpace(text) != "" { // an empty value counts as absent
					*into = append(*into, request.Bound{Name: name, Text: text})
				}
			}
		}
	}
	return p
}

type outcomesInput struct {
	Start  string `query:"start" doc:"First minute: dd/mm/YYYY HH:MM in the client's zone. Also read as from, start_date, inizio"`
	End    string `query:"end" doc:"Last minute, included. Also read as to, end_date, fine"`
	Cursor string `query:"cursor" doc:"The next_cursor of the answer before"`
}

type outcomesAnswer struct {
	Messages []messageOutcome `json:"messages"`
	Next     *string          `json:"next_cursor,omitempty" doc:"When there are more: what to give as cursor for the next ones"`
}

type messageOutcome struct {
	ID     int64   `json:"message_id"`
	Status string  `json:"status" enum:"SENT,FAILED"`
	Reason *string `json:"reason" doc:"Why it failed; null when it did not"`
}

func outcomes(ctx context.Context, c *control.Client, in *call, p *outcomesInput) (outcomesAnswer, error) {
	period := in.period()
	rows, next, err := c.Outcomes(ctx, control.OutcomeQuery{Period: period, Cursor: p.Cursor, Faults: in.repeated("cursor")})
	if err != nil {
		return outcomesAnswer{}, err
	}
	if next != "" {
		in.header.Set("Link", nextLink(period, next))
	}
	return outcomesAnswer{each(rows, outcomeOf), textOrNull(next)}, nil
}

func outcomeOf(o puntuale.MessageOutcome) messageOutcome {
	if o.Sent {
		return messageOutcome{ID: int64(o.ID), Status: "SENT"}
	}
	reason := catalogue.Italian.Sentence(o.Reason)
	return messageOutcome{int64(o.ID), "FAILED", &reason}
}

// nextLink returns the header with the address of the next page. The address does not contain the key, because somebody
// may log the header.
func nextLink(p request.Period, cursor string) string {
	query := url.Values{"start": {p.Start[0].Text}, "end": {p.End[0].Text}, "cursor": {cursor}}
	return "</api/messages/statusByPeriod?" + query.Encode() + `>; rel="next"`
}
