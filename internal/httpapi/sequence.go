package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

func registerSequences(a *api) {
	const all, one = "/api/sequences", "/api/sequences/{id}"
	client(a, operation{id: "listSequences", method: http.MethodGet, path: all, strict: true,
		summary:     "List the sequences, by id",
		description: "Those with a name, or all."}, listSequences)
	clientOnce(a, operation{id: "createSequence", method: http.MethodPost, path: all, creates: createsAlways, body: sequenceBody{},
		summary: "Create a sequence", refusals: []int{http.StatusConflict}}, withBody(createSequence))
	client(a, operation{id: "getSequence", method: http.MethodGet, path: one, versioned: true,
		summary: "Get a sequence", refusals: []int{http.StatusNotFound}}, getSequence)
	client(a, operation{id: "replaceSequence", method: http.MethodPut, path: one, body: sequenceBody{}, versioned: true,
		summary:     "Replace a sequence as a whole",
		description: "What was started before stays as it was.", refusals: changes(http.StatusNotFound, http.StatusConflict)}, withBody(replaceSequence))
	client(a, operation{id: "deleteSequence", method: http.MethodDelete, path: one, prevents: true,
		summary: "Delete a sequence", refusals: []int{http.StatusNotFound, http.StatusConflict}}, deleteSequence)
}

// sequenceBody documents the body of a sequence.
type sequenceBody struct {
	Name        string          `json:"name" minLength:"1" maxLength:"200" doc:"Need not be unique"`
	Session     string          `json:"id_sessione,omitempty" read:"id" doc:"The session that sends; else the default one at each start"`
	IfRunning   string          `json:"if_running,omitempty" enum:"allow,skip,restart,reject" default:"allow" doc:"What a start does while the sequence runs for the same recipient"`
	Purpose     string          `json:"purpose,omitempty" enum:"service,marketing" default:"service" doc:"Marketing leaves only with consent"`
	Steps       []puntuale.Step `json:"steps" read:"capped" minItems:"1" maxItems:"50"`
	StopOnReply bool            `json:"stop_on_reply,omitempty"`
	TrackLinks  *bool           `json:"track_links,omitempty" doc:"Whether addresses in the texts become tracked links; without it, as the client's settings say"`
	Booking     *sequenceDate   `json:"booking,omitempty" doc:"Makes it a sequence for bookings: its messages follow their appointment"`
}

// sequenceDate says which field of a sequence is the date of its appointments.
type sequenceDate struct {
	Date string `json:"date" read:"need" doc:"Name of the field with the date of the appointment"`
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
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Session     *string         `json:"id_sessione"`
	IfRunning   string          `json:"if_running" enum:"allow,skip,restart,reject"`
	StopOnReply bool            `json:"stop_on_reply"`
	Purpose     string          `json:"purpose" enum:"service,marketing"`
	Steps       []puntuale.Step `json:"steps" minItems:"1" maxItems:"50"`
	TrackLinks  *bool           `json:"track_links,omitempty" doc:"Missing: as the client's settings say"`
	Booking     *sequenceDate   `json:"booking,omitempty" doc:"Only of a sequence for bookings"`
	Fields      []fieldAnswer   `json:"fields" doc:"The parametric fields that the steps name"`
	Created     string          `json:"created_at" format:"date-time"`
	Updated     string          `json:"updated_at" format:"date-time"`

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

func createSequence(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *sequenceBody) (sequenceAnswer, error) {
	created, err := c.CreateSequence(ctx, body.requested(in.refused), once(in, p, sequenceOf))
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

func replaceSequence(ctx context.Context, c *control.Client, in *call, p *changeInput, body *sequenceBody) (sequenceAnswer, error) {
	known, faults := in.knownVersions()
	requested := body.requested(append(in.refused, faults...))
	requested.Known = known
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
		TrackLinks: s.TrackLinks.Choice(), Fields: each(s.Fields, fieldOf),
		Created: stamp(s.Created), Updated: stamp(s.Updated),
	}
	out.Steps = slices.Clone(s.Steps)
	for i := range out.Steps {
		out.Steps[i].ID = s.Steps[i].Name(i)
	}
	if s.Booking != "" {
		out.Booking = &sequenceDate{s.Booking}
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

func (b *sequenceBody) requested(faults []puntuale.Fault) control.NewSequence {
	date := ""
	if b.Booking != nil {
		date = cmp.Or(b.Booking.Date, " ") // a blank name is a fault, while an empty one means an ordinary sequence
	}
	return control.NewSequence{
		Booking: date, Name: b.Name, Session: b.Session, IfRunning: b.IfRunning, Purpose: b.Purpose, Steps: b.Steps, StopOnReply: b.StopOnReply, TrackLinks: b.TrackLinks, Faults: faults,
	}
}

// step, timing, offset, window and validity document the JSON form that package puntuale defines, in bodies and in
// answers. The server creates no values of these types.
type step struct {
	ID          string                 `json:"id,omitempty" read:"id" doc:"Stays with the step when others are added or removed. A replacement names the steps that stay by it; without any id, equal steps keep theirs. Ignored in a new sequence"`
	Text        string                 `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}; of a date field, {{field:data}}, {{field:ora}}, {{field:giorno}} too"`
	Media       string                 `json:"media,omitempty" doc:"Address of a media file, http or https; may hold fields"`
	MediaName   string                 `json:"media_name,omitempty" doc:"File name of the media; may hold fields"`
	Latitude    *float64               `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees; together with longitude"`
	Longitude   *float64               `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees; together with latitude"`
	Template    string                 `json:"template,omitempty" doc:"Name of a template of the client"`
	OnUncertain string                 `json:"on_uncertain,omitempty" enum:"never,resend" doc:"What to do when nobody knows whether the network took the message, and it would show a repeat as a second one (Official): never send it again by itself, which is the default; or send it once more after ten minutes without word, perhaps twice in all"`
	OnlyIf      []string               `json:"only_if,omitempty" read:"strings" uniqueItems:"true" doc:"Of bookings: the statuses in which the step is wanted (open, confirmed, cancelled, arrived, no_show). Else: before the date and from start, open and confirmed; after the date also arrived; booking.X the status that X names"`
	Buttons     []puntuale.StepButton  `json:"buttons,omitempty" maxItems:"3" doc:"Under the message. Networks without buttons show numbered lines instead, which count into the 1,024 characters that the text may then have"`
	Interactive *puntuale.Interactive  `json:"interactive,omitempty" doc:"Instead of buttons: exactly one of list, link and ask. Networks without it show numbered lines or the address below the text, or only the text of a question"`
	Variants    []puntuale.StepVariant `json:"variants,omitempty" read:"capped" minItems:"2" maxItems:"4" doc:"In the place of text or template: texts of which each person gets one, and keeps it. Answers have the first one as the step's text, too"`
	Timing      puntuale.Timing        `json:"timing" read:"need"`
}

type stepVariant struct {
	Share    int                  `json:"share" read:"need" minimum:"1" maximum:"99" doc:"Percent of the people; 100 in all"`
	Template string               `json:"template,omitempty" doc:"Name of a template; else content. All variants have one, or none"`
	Content  puntuale.VariantText `json:"content,omitempty"`
	_        closedCheck
}

type variantText struct {
	Text string `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}. Media, buttons and the moment are the step's"`
	_    closedCheck
}

type stepButton struct {
	Label   string `json:"label" maxLength:"20" doc:"No number; the labels of one message differ"`
	Does    string `json:"does,omitempty" enum:"confirm,cancel,answer" default:"answer" doc:"confirm and cancel change the booking, so they belong to sequences for bookings; answer is only told"`
	Payload string `json:"payload,omitempty" maxLength:"128" doc:"Your own name of the choice, which the reply tells. In a step it may hold fields"`
	_       effectCheck
}

// effectCheck gives a button without an effect the effect answer.
type effectCheck struct{}

func (effectCheck) check(_ *object, to any) {
	if b := to.(*puntuale.StepButton); b.Does == "" {
		b.Does = puntuale.ButtonAnswers
	}
}

// interactive and the types below document what a message may have instead of buttons. In a step, all texts may hold
// fields.
type interactive struct {
	List *puntuale.ChoiceList `json:"list,omitempty" doc:"A list that opens when the person presses its button"`
	Link *puntuale.LinkButton `json:"link,omitempty" doc:"A button that opens a page"`
	Ask  string               `json:"ask,omitempty" enum:"location,phone" doc:"Asks the person for their position, or for their number"`
}

type choiceList struct {
	Button   string                 `json:"button" maxLength:"20"`
	Sections []puntuale.ListSection `json:"sections" maxItems:"10" doc:"At most 10 rows in all"`
	Line     string                 `json:"line,omitempty" read:"-" doc:"In answers about messages: the client's own line above the numbers, where the network shows no lists"`
}

type listSection struct {
	Title string             `json:"title,omitempty" maxLength:"24" doc:"Needed with several sections"`
	Rows  []puntuale.ListRow `json:"rows" maxItems:"10"`
}

type listRow struct {
	Title   string `json:"title" maxLength:"24"`
	Text    string `json:"text,omitempty" maxLength:"72" doc:"Below the title"`
	Payload string `json:"payload,omitempty" maxLength:"128" doc:"Your own name of the choice, which the reply tells"`
}

type linkButton struct {
	Label string `json:"label" maxLength:"20"`
	URL   string `json:"url" maxLength:"2000" doc:"Begins with https://. In a step, the values of fields are percent-encoded, except of a field at the beginning"`
}

type timing struct {
	Anchor   string `json:"anchor" doc:"start, the moment of the call, or the name of a date field. In a sequence for bookings also booking.moved, booking.confirmed, booking.cancelled, booking.arrived and booking.no_show: a minute after that change"`
	At       string `json:"at,omitempty" doc:"HH:MM: the time of day, with offsets in days and longer units"`
	Jitter   int    `json:"jitter,omitempty" minimum:"0" maximum:"86400" doc:"Seconds at most that are added by chance; a step never passes the one planned after it"`
	IfPast   string `json:"if_past,omitempty" enum:"skip,send_now,reject" doc:"What to do with a moment more than five minutes ago; else skip"`
	_        anchorCheck
	Offset   puntuale.Offset    `json:"offset" read:"need" doc:"Distance from the anchor"`
	Window   *puntuale.Window   `json:"window,omitempty" doc:"When the message may leave"`
	ValidFor *puntuale.Validity `json:"valid_for,omitempty" doc:"How long after its moment the message may still leave; else 24 hours"`
}

// anchorCheck adds a fault if the anchor of a step is missing or blank.
type anchorCheck struct{}

func (anchorCheck) check(o *object, to any) {
	if t := to.(*puntuale.Timing); strings.TrimSpace(t.Anchor) == "" {
		t.Anchor = puntuale.AnchorStart // a valid anchor, so that the rest of the step can be checked
		o.required("anchor")
	}
}

type offset struct {
	Amount    int    `json:"amount" read:"need" minimum:"0"`
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
