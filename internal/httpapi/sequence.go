package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

func registerSequences(a *api) {
	const all, one = "/api/sequences", "/api/sequences/{id}"
	client(a, operation{id: "listSequences", method: http.MethodGet, path: all, strict: true,
		summary: "List the sequences, by id; those with a name, or all"}, listSequences)
	clientOnce(a, operation{id: "createSequence", method: http.MethodPost, path: all, creates: createsAlways, body: sequenceBody{},
		summary: "Create a sequence", refusals: []int{http.StatusConflict}}, createSequence)
	client(a, operation{id: "getSequence", method: http.MethodGet, path: one, versioned: true,
		summary: "Get a sequence", refusals: []int{http.StatusNotFound}}, getSequence)
	client(a, operation{id: "replaceSequence", method: http.MethodPut, path: one, body: sequenceBody{}, versioned: true,
		summary: "Replace a sequence as a whole; what was started before stays as it was", refusals: changes(http.StatusNotFound)}, replaceSequence)
	client(a, operation{id: "deleteSequence", method: http.MethodDelete, path: one, prevents: true,
		summary: "Delete a sequence", refusals: []int{http.StatusNotFound, http.StatusConflict}}, deleteSequence)
}

// sequenceBody documents the body of a sequence.
type sequenceBody struct {
	Name        string  `json:"name" minLength:"1" maxLength:"200" doc:"Need not be unique"`
	Session     *string `json:"id_sessione,omitempty" doc:"The session that sends; else the default one at each start"`
	IfRunning   string  `json:"if_running,omitempty" enum:"allow,skip,restart,reject" default:"allow" doc:"What a start does while the sequence runs for the same recipient"`
	StopOnReply bool    `json:"stop_on_reply,omitempty"`
	Purpose     string  `json:"purpose,omitempty" enum:"service,marketing" default:"service" doc:"Marketing leaves only with consent"`
	Steps       steps   `json:"steps"`
}

// ListInput documents the query of a list.
type ListInput struct {
	Limit  string `query:"limit" pattern:"^[0-9]+$" doc:"Rows at most: 1 to 1000, else 100"`
	Cursor string `query:"cursor" doc:"The next_cursor of the page before"`
}

// sequencesInput documents the query of a list of sequences.
type sequencesInput struct {
	ListInput
	Text string `query:"text" maxLength:"200" doc:"Words of the name, in any order and case, with or without accents; or the ID"`
}

func (in *ListInput) page(c *call) request.Page {
	return request.Page{Limit: in.Limit, Cursor: in.Cursor, Unknown: c.unknown}
}

type oneInput struct {
	ID string `path:"id" doc:"ID"`
}

type deleteInput struct {
	ID      string `path:"id" doc:"ID"`
	Pending string `query:"pending" enum:"cancel,keep" doc:"What becomes of pending messages; without it, they are a reason to refuse"`
}

type sequenceAnswer struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Session     *string       `json:"id_sessione"`
	IfRunning   string        `json:"if_running" enum:"allow,skip,restart,reject"`
	StopOnReply bool          `json:"stop_on_reply"`
	Purpose     string        `json:"purpose" enum:"service,marketing"`
	Steps       steps         `json:"steps"`
	Fields      []fieldAnswer `json:"fields" doc:"The parametric fields that the steps name"`
	Created     string        `json:"created_at" format:"date-time"`
	Updated     string        `json:"updated_at" format:"date-time"`

	Warnings []warningAnswer `json:"warnings,omitempty" doc:"What will go wrong as things are. Not in lists"`
}

type warningAnswer struct {
	Step    int    `json:"step" doc:"From 0"`
	Message string `json:"message" doc:"In Italian, for people"`
	English string `json:"message_en"`
}

type fieldAnswer struct {
	Name     string `json:"name"`
	Kind     string `json:"kind" enum:"text,date,media"`
	Required bool   `json:"required"`
}

type sequencesAnswer struct {
	Sequences []sequenceAnswer `json:"sequences"`
	Next      *string          `json:"next_cursor"`
}

type messageAnswer struct {
	Message string `json:"message"`
}

func listSequences(ctx context.Context, c *control.Client, in *call, p *sequencesInput) (sequencesAnswer, error) {
	rows, next, err := c.Sequences(ctx, control.SequenceSearch{Text: p.Text, Page: p.page(in)})
	if err != nil {
		return sequencesAnswer{}, err
	}
	return sequencesAnswer{each(rows, sequenceOf), textOrNull(next)}, nil
}

func createSequence(ctx context.Context, c *control.Client, in *call, p *OnceInput) (sequenceAnswer, error) {
	requested, err := readSequence(in)
	if err != nil {
		return sequenceAnswer{}, err
	}
	created, err := c.CreateSequence(ctx, requested, once(in, p, sequenceOf))
	if err != nil {
		return sequenceAnswer{}, err
	}
	return sequenceOf(created), nil
}

func getSequence(ctx context.Context, c *control.Client, in *call, p *oneInput) (sequenceAnswer, error) {
	found, err := c.Sequence(ctx, p.ID)
	if err != nil {
		return sequenceAnswer{}, err
	}
	in.tagged(found.Version())
	return sequenceOf(found), nil
}

func replaceSequence(ctx context.Context, c *control.Client, in *call, p *changeInput) (sequenceAnswer, error) {
	requested, err := readSequence(in)
	if err != nil {
		return sequenceAnswer{}, err
	}
	known, faults := in.knownVersions()
	requested.Known, requested.Faults = known, append(requested.Faults, faults...)
	replaced, err := c.ReplaceSequence(ctx, p.ID, requested)
	if err != nil {
		return sequenceAnswer{}, err
	}
	in.tagged(replaced.Version())
	return sequenceOf(replaced), nil
}

func deleteSequence(ctx context.Context, c *control.Client, _ *call, p *deleteInput) (messageAnswer, error) {
	if err := c.DeleteSequence(ctx, p.ID, p.Pending); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Sequenza eliminata"}, nil
}

func sequenceOf(s control.Sequence) sequenceAnswer {
	out := sequenceAnswer{
		ID: s.ID.String(), Name: s.Name, IfRunning: string(s.IfRunning), StopOnReply: s.StopOnReply, Purpose: s.Purpose.String(), Steps: s.Steps,
		Fields:  each(s.Fields, fieldOf),
		Created: stamp(s.Created), Updated: stamp(s.Updated),
	}
	if s.Session != 0 {
		out.Session = new(s.Session.String())
	}
	for _, w := range s.Warnings {
		out.Warnings = append(out.Warnings, warningAnswer{w.Step, catalogue.Italian.Sentence(w.Reason), catalogue.English.Sentence(w.Reason)})
	}
	return out
}

func fieldOf(f puntuale.Field) fieldAnswer { return fieldAnswer{f.Name, string(f.Kind), f.Required} }

// each converts the rows of a list. The result is never nil, so that JSON shows [] and not null.
func each[T, U any](rows []T, convert func(T) U) []U {
	out := make([]U, len(rows))
	for i, row := range rows {
		out[i] = convert(row)
	}
	return out
}

// readSequence reads the body of a sequence. Codes: unreadable.
func readSequence(in *call) (control.NewSequence, error) {
	body, err := in.object()
	if err != nil {
		return control.NewSequence{}, err
	}
	requested := control.NewSequence{
		Name: body.text("name"), Session: body.id("id_sessione"), IfRunning: body.text("if_running"), Purpose: body.text("purpose"),
		Steps: readSteps(body),
	}
	if flag := body.flag("stop_on_reply"); flag != nil {
		requested.StopOnReply = *flag
	}
	requested.Faults = *body.refused
	return requested, body.err()
}

// readSteps reads the steps of a sequence. If there are too many, control refuses the number, so readSteps does not
// read the steps.
func readSteps(body *object) []puntuale.Step {
	if n := len(body.list("steps")); n > puntuale.MaxSteps {
		return make([]puntuale.Step, n)
	}
	return each(body.objects("steps"), readStep)
}

func readStep(o *object) puntuale.Step {
	s := puntuale.Step{
		Text: o.text("text"), Media: o.text("media"), MediaName: o.text("media_name"),
		Latitude: o.number("latitude"), Longitude: o.number("longitude"), Template: o.text("template"),
	}
	s.OnUncertain = puntuale.OnUncertain(o.text("on_uncertain"))
	if o.need("timing") {
		s.Timing = readTiming(o.object("timing"))
	}
	return s
}

func readTiming(o *object) puntuale.Timing {
	t := puntuale.Timing{
		Anchor: o.text("anchor"), At: o.text("at"), Jitter: o.wholeNumber("jitter"), IfPast: puntuale.IfPast(o.text("if_past")),
	}
	if strings.TrimSpace(t.Anchor) == "" {
		t.Anchor = puntuale.AnchorStart // a valid anchor, so that the rest of the step can be checked
		o.blank("anchor")
	}
	if o.need("offset") {
		offset := o.object("offset")
		offset.need("amount")
		t.Offset = puntuale.Offset{
			Amount: offset.wholeNumber("amount"), Unit: puntuale.Unit(offset.text("unit")),
			Direction: puntuale.Direction(offset.text("direction")),
		}
	}
	t.Window = readWindow(o)
	t.ValidFor = o.validity()
	return t
}

// readWindow reads the member window. It returns nil if the member is absent.
func readWindow(o *object) *puntuale.Window {
	window := o.object("window")
	if window == nil {
		return nil
	}
	return &puntuale.Window{Weekdays: window.wholes("weekdays"), From: window.text("from"), To: window.text("to"), Holidays: window.text("holidays")}
}

// validity reads the member valid_for. It returns nil if the member is absent.
func (o *object) validity() *puntuale.Validity {
	valid := o.object("valid_for")
	if valid == nil {
		return nil
	}
	return &puntuale.Validity{Amount: valid.wholeNumber("amount"), Unit: puntuale.Unit(valid.text("unit"))}
}

// steps are the steps of a sequence. Package puntuale defines their JSON form, and this file documents the form.
type steps []puntuale.Step

// Schema describes a step to huma.
func (steps) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: "array", Items: r.Schema(reflect.TypeFor[step](), true, ""),
		MinItems: new(1), MaxItems: new(puntuale.MaxSteps),
	}
}

// step, timing, offset, window and validity only document the members of a step. The server creates no values of these
// types.
type step struct {
	Text      string   `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}; of a date field, {{field:data}}, {{field:ora}}, {{field:giorno}} too"`
	Media     string   `json:"media,omitempty" doc:"Address of a media file, http or https; may hold fields"`
	MediaName string   `json:"media_name,omitempty" doc:"File name of the media; may hold fields"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees; together with longitude"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees; together with latitude"`
	Template  string   `json:"template,omitempty" doc:"Name of a template of the client"`
	Timing    timing   `json:"timing"`

	OnUncertain string `json:"on_uncertain,omitempty" enum:"never,resend" doc:"What to do when nobody knows whether the network took the message, and it would show a repeat as a second one (Official): never send it again by itself, which is the default; or send it once more after ten minutes without word, perhaps twice in all"`
}

type timing struct {
	Anchor   string    `json:"anchor" doc:"start, the moment of the call, or the name of a date field"`
	Offset   offset    `json:"offset" doc:"Distance from the anchor"`
	At       string    `json:"at,omitempty" doc:"HH:MM: the time of day, with offsets in days and longer units"`
	Window   *window   `json:"window,omitempty" doc:"When the message may leave"`
	Jitter   int       `json:"jitter,omitempty" minimum:"0" maximum:"86400" doc:"Seconds at most that are added by chance; a step never passes the one planned after it"`
	IfPast   string    `json:"if_past,omitempty" enum:"skip,send_now,reject" doc:"What to do with a moment more than five minutes ago; else skip"`
	ValidFor *validity `json:"valid_for,omitempty" doc:"How long after its moment the message may still leave; else 24 hours"`
}

type offset struct {
	Amount    int    `json:"amount" minimum:"0"`
	Unit      string `json:"unit,omitempty" enum:"seconds,minutes,hours,days,weeks,months" doc:"Needed unless the amount is 0. Days and longer are reckoned by the calendar"`
	Direction string `json:"direction,omitempty" enum:"before,after" doc:"before needs a date field as the anchor; with the amount 0, too, the message leaves before the date"`
}

type window struct {
	Weekdays []int  `json:"weekdays,omitempty" maxItems:"7" uniqueItems:"true" doc:"1 Monday to 7 Sunday; none: every day"`
	From     string `json:"from,omitempty" doc:"HH:MM"`
	To       string `json:"to,omitempty" doc:"HH:MM, exclusive; earlier than from: on the next day"`
	Holidays string `json:"holidays,omitempty" enum:"avoid"`
}

type validity struct {
	Amount int    `json:"amount" minimum:"1"`
	Unit   string `json:"unit" enum:"seconds,minutes,hours,days,weeks,months"`
}
