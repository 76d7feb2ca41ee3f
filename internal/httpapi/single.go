package httpapi

import (
	"context"
	"net/http"
	"slices"

	"puntuale"
	"puntuale/internal/control"
)

func registerSingle(a *api) {
	const all = "/api/messages"
	client(a, operation{
		id: "sendMessage", method: http.MethodPost, path: all, body: singleBody{}, creates: createsAlways, idempotent: true,
		summary: "Send one message, now or at a date", refusals: []int{http.StatusConflict},
	}, sendSingle)
	client(a, operation{
		id: "listMessages", method: http.MethodGet, path: all, strict: true,
		summary: "List messages, newest first",
	}, listMessages)
}

// singleBody documents the body of a single send.
type singleBody struct {
	_         struct{}              `additionalProperties:"true"`
	Phone     string                `json:"phone" read:"phone" doc:"A phone number, or a group id: <digits>@g.us, <digits>@lid, or 22 characters. Official sessions take Meta's ids of persons (US.…) and groups, too. A number is taken too."`
	Latitude  *float64              `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees; together with longitude"`
	Longitude *float64              `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees; together with latitude"`
	Template  string                `json:"template,omitempty" doc:"Name of a template, whose fields are further members of the body"`
	Session   string                `json:"id_sessione,omitempty" read:"id" doc:"The session that sends; else the default one"`
	Name      string                `json:"name,omitempty" maxLength:"200" doc:"Name of the send, kept as nome_invio"`
	Purpose   string                `json:"purpose,omitempty" enum:"service,marketing" default:"service" doc:"Marketing leaves only with consent"`
	Timezone  string                `json:"timezone,omitempty" doc:"IANA name of the zone that the date is reckoned in; else the client's"`
	Reference string                `json:"reference,omitempty" read:"id" maxLength:"255" doc:"Your own name of what this is about. Where the template names a field reference, this is that field"`
	ValidFor  *puntuale.Validity    `json:"valid_for,omitempty" doc:"How long after its moment the message may still leave; else 24 hours"`
	Buttons   []puntuale.StepButton `json:"buttons,omitempty" maxItems:"3" doc:"Under the message. Networks without buttons show numbered lines instead, which count into the 1,024 characters that the text may then have"`
	Interact  *puntuale.Interactive `json:"interactive,omitempty" doc:"Instead of buttons: exactly one of list, link and ask. Networks without it show numbered lines or the address below the text, or only the text of a question"`

	// Of the following, only the type is checked here. The planner reads them, as fields.
	Text      string `json:"text,omitempty" doc:"Sent as it is written"`
	Media     string `json:"media,omitempty" doc:"Address of an online media file"`
	MediaName string `json:"media_name,omitempty" doc:"File name of the media"`
	Date      string `json:"date,omitempty" read:"-" doc:"When it leaves: 2026-11-20T10:30, 20/11/2026 10:30, or a day alone (09:00); else now"`
}

type singleInput struct {
	OnceInput
	Reference string `query:"reference" maxLength:"255" doc:"The same as the body's reference, also where the template names a field reference"`
}

func sendSingle(ctx context.Context, c *control.Client, in *call, p *singleInput) (startedAnswer, error) {
	o, err := in.object()
	if err != nil {
		return startedAnswer{}, err
	}
	var body singleBody
	o.into(&body)
	if err := o.err(); err != nil {
		return startedAnswer{}, err
	}
	requested := control.SingleCall{
		Phone: body.Phone, Fields: o.members, Latitude: body.Latitude, Longitude: body.Longitude,
		Template: body.Template, Session: body.Session, Name: body.Name, Purpose: body.Purpose, Timezone: body.Timezone,
		Reference: control.Reference{Query: p.Reference, Body: body.Reference},
		ValidFor:  body.ValidFor, Buttons: body.Buttons, Interactive: body.Interact, Body: in.body, Scope: in.scope, Key: p.Key, Faults: slices.Concat(refuseDry(in.query), in.repeated("reference")),
	}
	if len(requested.Faults) > 0 {
		requested.Key = "" // a dry run must not get the stored answer of a real call
	}
	requested.Faults = append(requested.Faults, *o.refused...)
	sent, err := c.Send(ctx, requested)
	if err != nil {
		return startedAnswer{}, err
	}
	if sent.Replayed {
		in.header.Set(replayedHeader, "true")
	}
	return startedAnswer{idTexts(sent.IDs), usageOf(sent.Usage), skippedOf(sent.Skipped), notesOf(sent.Notes)}, nil
}

type messagesInput struct {
	ListInput
	State     string `query:"state" enum:"PENDING,COMPLETED,FAILED,CANCELLED,RESCHEDULED,BLACKLISTED"`
	Sequence  string `query:"sequence" doc:"ID of a sequence"`
	Phone     string `query:"phone" doc:"Recipient"`
	Reference string `query:"reference" maxLength:"255" doc:"What the call gave as its reference"`
	Text      string `query:"text" maxLength:"200" doc:"Words of the text and of the name that the call gave of the recipient (nome or name), in any order and case, with or without accents"`
	Origin    string `query:"origin" enum:"SINGLE,SEQUENCE,MASSIVE,AUTOMATION"`
	Start     string `query:"start" doc:"Planned from this moment on, or from this day: 20/11/2026 10:30, 2026-11-20. Also read as from, start_date, inizio"`
	End       string `query:"end" doc:"Planned up to this minute, or to the end of this day. Also read as to, end_date, fine"`
}

// listedMessage is a message in the form that the contract defines, with the message's id.
type listedMessage struct {
	ID int64 `json:"id"`
	MessageDetail
}

type messagesAnswer struct {
	Messages []listedMessage `json:"messages"`
	Next     *string         `json:"next_cursor"`
}

func listMessages(ctx context.Context, c *control.Client, in *call, p *messagesInput) (messagesAnswer, error) {
	in.allow(append(periodNames[0], periodNames[1]...)...)
	rows, next, err := c.Messages(ctx, control.MessageQuery{
		State: p.State, Origin: p.Origin, Sequence: p.Sequence, Phone: p.Phone, Reference: p.Reference, Text: p.Text, Period: in.period(), Page: p.page(in),
	})
	if err != nil {
		return messagesAnswer{}, err
	}
	messages := each(rows, func(m puntuale.MessageDetail) listedMessage { return listedMessage{int64(m.ID), detailOf(&m)} })
	return messagesAnswer{messages, textOrNull(next)}, nil
}
