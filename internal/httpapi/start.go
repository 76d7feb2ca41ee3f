package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
)

func registerStart(a *api) {
	client(a, operation{
		id: "startSequence", method: http.MethodPost, path: "/api/start/{id_sequenza}",
		summary: "Start a sequence for one recipient, or see what that would do",
		body:    startBody{}, idempotent: true, creates: startsNow, proven: startsNow,
		refusals: []int{http.StatusNotFound, http.StatusConflict},
	}, start)
	client(a, operation{
		id: "stopSequence", method: http.MethodPost, path: "/api/stop/{id_sequenza}",
		summary:  "Stop a sequence for one recipient",
		body:     stopBody{},
		prevents: true,
		refusals: []int{http.StatusNotFound},
	}, withBody(stop))
}

// startsNow reports whether a request is a real start, not a dry run.
func startsNow(r *http.Request) bool { return !wantsPreview(r) }

// startBody documents the body of a start.
type startBody struct {
	_         struct{} `additionalProperties:"true"`
	Phone     string   `json:"phone" read:"phone" doc:"A phone number, or a group id: <digits>@g.us, <digits>@lid, or 22 characters. Official sessions take Meta's ids of persons (US.…) and groups, too. A number is taken too."`
	Text      string   `json:"text,omitempty" read:"-" doc:"Text for the message copy, where the sequence names the field text"`
	Media     string   `json:"media,omitempty" read:"-" doc:"Address of an online media file, where the sequence names the field media"`
	MediaName string   `json:"media_name,omitempty" read:"-" doc:"File name of the media, where the sequence names the field media_name"`
	Timezone  string   `json:"timezone,omitempty" doc:"IANA name of the zone that days and dates are reckoned in; else the client's"`
	Reference string   `json:"reference,omitempty" read:"id" maxLength:"255" doc:"Your own name of what this is about, such as a booking's number. Details, lists and events show it. Where the sequence names a field reference, this is that field"`
}

type startInput struct {
	Sequence  string `path:"id_sequenza" doc:"ID of the sequence"`
	DryRun    string `query:"dry_run" enum:"true,false" doc:"true: answer what would be scheduled, and store and count nothing"`
	Timezone  string `query:"timezone" doc:"IANA name of the zone that days and dates are reckoned in; else the client's"`
	IfRunning string `query:"if_running" enum:"allow,skip,restart,reject" doc:"What to do while the same sequence runs for the same recipient, or for the call's reference; else the sequence's own setting"`
	Reference string `query:"reference" maxLength:"255" doc:"The same as the body's reference, also where the sequence names a field reference"`
	Key       string `header:"Idempotency-Key" maxLength:"255" doc:"A repeat under the same key gives the first call's answer"`
}

// Usage contains the counts of calls that the contract defines.
type Usage struct {
	Cap       int64 `json:"daily_api_cap" doc:"Calls allowed a day"`
	Used      int64 `json:"daily_api_used" doc:"Calls used today, this one included"`
	Remaining int64 `json:"daily_api_remaining" doc:"Calls remaining today"`
}

func usageOf(u puntuale.Usage) Usage { return Usage{u.Cap, u.Used, u.Remaining()} }

// startAnswer documents both forms of a start's answer as one object. Clients that are generated from the document could
// not tell the forms of a union apart.
type startAnswer struct {
	ID        []string         `json:"id,omitempty" doc:"IDs of all scheduled messages. Absent in a dry run"`
	Cap       int64            `json:"daily_api_cap,omitempty" doc:"Calls allowed a day. Absent in a dry run"`
	Used      int64            `json:"daily_api_used,omitempty" doc:"Calls used today, this one included. Absent in a dry run"`
	Remaining int64            `json:"daily_api_remaining,omitempty" doc:"Calls remaining today. Absent in a dry run"`
	Messages  []previewMessage `json:"messages,omitempty" doc:"Only in a dry run: what would be scheduled"`
	Skipped   []skippedStep    `json:"skipped,omitempty" doc:"Steps left out. In a dry run always present, also if it is empty"`
	StartNotes
}

type startedAnswer struct {
	ID []string `json:"id" doc:"IDs of all scheduled messages"`
	Usage
	Skipped []skippedStep `json:"skipped,omitempty" doc:"Steps left out, when there are some"`
	StartNotes
}

// StartNotes are remarks about a start or a dry run. It is exported, because huma leaves out embedded types that are
// not exported.
type StartNotes struct {
	Warnings    []skippedStep `json:"warnings,omitempty" doc:"What is probably wrong although the messages leave, such as a date that has passed, in the form of skipped"`
	Unused      []string      `json:"unused,omitempty" doc:"Members of the body that no step uses, and whose name is close to a field that the body leaves out"`
	Blacklisted bool          `json:"blacklisted,omitempty" doc:"true: the recipient is on the blacklist, and nothing leaves while it is"`
}

func notesOf(n puntuale.StartNotes) StartNotes {
	return StartNotes{skippedOf(n.Warnings), n.Unused, n.Blacklisted}
}

type skippedStep struct {
	Step   int    `json:"step" doc:"Position in the sequence, from 0"`
	Moment string `json:"moment" format:"date-time" doc:"When it should have left"`
	Reason string `json:"reason"`
}

type previewAnswer struct {
	Messages []previewMessage `json:"messages"`
	Skipped  []skippedStep    `json:"skipped"`
	StartNotes
}

type previewMessage struct {
	Step      int                   `json:"step" doc:"Position in the sequence, from 0"`
	Desired   *string               `json:"invio_desiderato" format:"date-time"`
	Planned   string                `json:"invio_previsto" format:"date-time" doc:"With jitter, the earliest moment"`
	Text      string                `json:"contenuto"`
	MediaURL  *string               `json:"media_url"`
	MediaName *string               `json:"nome_media"`
	Latitude  *float64              `json:"latitudine"`
	Longitude *float64              `json:"longitudine"`
	Buttons   []string              `json:"buttons,omitempty" doc:"Labels of the buttons below the text"`
	Interact  *puntuale.Interactive `json:"interactive,omitempty" doc:"The list, the link or the question below the text; warnings says where the network shows text instead"`
	Latest    *string               `json:"invio_previsto_max,omitempty" format:"date-time" doc:"With jitter, the latest moment"`
	Way       string                `json:"way,omitempty" enum:"free_text,direct_send,template,refused" doc:"Of an Official session: how the message would leave, as things are now"`
	WayReason string                `json:"way_reason,omitempty" doc:"Why it leaves in this way, in plain Italian"`
	Variant   string                `json:"variant,omitempty" enum:"A,B,C,D" doc:"Of a step with variants: which one the person gets"`
	Variants  []variantPreview      `json:"variants,omitempty" doc:"Of a step with variants, in a dry run: all of them"`
}

type variantPreview struct {
	Key  string `json:"key" enum:"A,B,C,D"`
	Text string `json:"contenuto"`
}

// startedOrPreview is the answer to a start, in one of two forms. The member dry_run shows which form it is.
type startedOrPreview struct {
	started *startedAnswer
	preview *previewAnswer
}

func (s startedOrPreview) MarshalJSON() ([]byte, error) {
	var form any = s.started
	if s.preview != nil {
		form = s.preview
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // no answer of this API escapes <, > and &
	err := e.Encode(form)
	return b.Bytes(), err
}

// Schema describes both forms to huma.
func (startedOrPreview) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[startAnswer](), true, "")
}

func start(ctx context.Context, c *control.Client, in *call, p *startInput) (startedOrPreview, error) {
	o, err := in.object()
	if err != nil {
		return startedOrPreview{}, in.confirmed(ctx, err)
	}
	var body startBody
	o.into(&body)
	if err := o.err(); err != nil {
		return startedOrPreview{}, in.confirmed(ctx, err)
	}
	requested := control.StartCall{
		Sequence: p.Sequence, Phone: body.Phone, Fields: o.members, Timezone: p.Timezone,
		BodyZone: body.Timezone, IfRunning: p.IfRunning, Reference: control.Reference{Query: p.Reference, Body: body.Reference}, Body: in.body, Scope: in.scope, Key: p.Key,
	}
	dry, faults := wantsDry(in.query)
	requested.Faults = slices.Concat(*o.refused, faults, in.repeated("timezone", "if_running", "reference"))
	if dry || len(faults) > 0 {
		preview, err := c.Preview(ctx, requested)
		return startedOrPreview{preview: previewOf(preview)}, err
	}
	started, err := c.Start(ctx, requested)
	if err != nil {
		return startedOrPreview{}, err
	}
	if started.Replayed {
		in.header.Set(replayedHeader, "true")
	}
	return startedOrPreview{started: &startedAnswer{idTexts(started.IDs), usageOf(started.Usage), skippedOf(started.Skipped), notesOf(started.Notes)}}, nil
}

// wantsPreview reports whether a start is a dry run, which neither creates nor sends.
func wantsPreview(r *http.Request) bool {
	dry, faults := wantsDry(r.URL.Query())
	return dry && len(faults) == 0
}

// Codes of the faults that this file reports.
const (
	faultCallNotBool   puntuale.ReasonCode = "call.not_bool"
	faultCallNotDryRun puntuale.ReasonCode = "call.not_dry_run"
	faultCallWouldSend puntuale.ReasonCode = "call.would_send"
)

// wantsDry reads dry_run. A caller that misspells the name, or gives an unknown value, probably does not want to send.
// In these cases wantsDry adds a fault, and the call is refused.
func wantsDry(query url.Values) (dry bool, faults []puntuale.Fault) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		folded := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
		if name != "dry_run" && folded == "dryrun" {
			faults = append(faults, puntuale.Fault{Location: "query." + name, Code: faultCallNotDryRun})
		}
	}
	for _, text := range query["dry_run"] {
		flag, err := strconv.ParseBool(text)
		if err != nil {
			faults = append(faults, puntuale.Fault{Location: "query.dry_run", Code: faultCallNotBool, Value: text})
			break
		}
		dry = dry || flag
	}
	return dry, faults
}

// refuseDry adds a fault for dry_run in calls that have no preview, because a caller that asks for a preview does not
// want to send.
func refuseDry(query url.Values) []puntuale.Fault {
	dry, faults := wantsDry(query)
	if dry && len(faults) == 0 {
		faults = append(faults, puntuale.Fault{Location: "query.dry_run", Code: faultCallWouldSend})
	}
	return faults
}

func previewOf(p control.Preview) *previewAnswer {
	messages := make([]previewMessage, len(p.Messages))
	for i, m := range p.Messages {
		messages[i] = previewMessageOf(m)
	}
	return &previewAnswer{messages, append([]skippedStep{}, skippedOf(p.Skipped)...), notesOf(p.Notes)}
}

func previewMessageOf(m puntuale.PlannedMessage) previewMessage {
	out := previewMessage{
		Step: m.Step, Desired: stampOrNull(m.Desired), Planned: stamp(m.Due), Text: m.Content.Text,
		MediaURL: textOrNull(m.Content.MediaURL), MediaName: textOrNull(control.MediaName(m.Content)),
		Latitude: m.Content.Latitude, Longitude: m.Content.Longitude, Buttons: labelsOf(m.Content.Buttons()), Interact: m.Content.Interactive,
		Way: string(m.Way), WayReason: catalogue.Italian.Sentence(puntuale.Because(m.WayReason)),
	}
	if m.Variant > 0 {
		out.Variant = puntuale.VariantKey(int(m.Variant) - 1)
	}
	if m.Variants != nil {
		for i, c := range *m.Variants {
			out.Variants = append(out.Variants, variantPreview{puntuale.VariantKey(i), c.Text})
		}
	}
	if m.DueMax.After(m.Due) {
		out.Latest = stampOrNull(m.DueMax)
	}
	return out
}

func skippedOf(skipped []puntuale.SkippedStep) []skippedStep {
	var steps []skippedStep
	for _, s := range skipped {
		steps = append(steps, skippedStep{s.Step, stamp(s.Moment), catalogue.Italian.Sentence(s.Reason)})
	}
	return steps
}

func idText64[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }

func idTexts(ids []puntuale.MessageID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}

// stopBody documents the body of a stop.
type stopBody struct {
	Phone     string `json:"phone" read:"phone" doc:"The recipient that must stop receiving the sequence's messages. A number is taken too."`
	Reference string `json:"reference,omitempty" read:"id" maxLength:"255" doc:"Only what was started with this reference"`
}

type stopInput struct {
	Sequence  string `path:"id_sequenza" doc:"ID of the sequence whose messages are cancelled"`
	Reference string `query:"reference" maxLength:"255" doc:"The same as the body's reference"`
}

type stopAnswer struct {
	Message string   `json:"message" doc:"How many messages were cancelled"`
	ID      []string `json:"id" doc:"IDs of the cancelled messages"`
	Usage
}

func stop(ctx context.Context, c *control.Client, in *call, p *stopInput, body *stopBody) (stopAnswer, error) {
	reference := control.Reference{Query: p.Reference, Body: body.Reference}
	stopped, err := c.Stop(ctx, p.Sequence, body.Phone, reference, slices.Concat(in.refused, in.repeated("reference"))...)
	if err != nil {
		return stopAnswer{}, err
	}
	return stopAnswer{control.Cancelled(len(stopped.IDs)), idTexts(stopped.IDs), usageOf(stopped.Usage)}, nil
}
