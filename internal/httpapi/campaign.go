package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
)

// Bounds of files and bodies with recipients.
const (
	maxList    = 100 << 20 // the largest size of a file, in bytes
	maxInline  = 16 << 20  // the largest size of a body, in bytes
	listValues = 200_000   // the largest number of values in a body
)

func registerCampaigns(a *api) {
	const all, one = "/api/campaigns", "/api/campaigns/{id}"
	known := []int{http.StatusNotFound, http.StatusConflict}
	client(a, operation{id: "listCampaigns", method: http.MethodGet, path: all, strict: true,
		summary:     "List the campaigns, newest first",
		description: "Without the counts of their messages."}, listCampaigns)
	clientOnce(a, operation{id: "createCampaign", method: http.MethodPost, path: all, creates: createsAlways, body: campaignBody{}, bodyBytes: maxInline, strict: true,
		summary:     "Make a campaign",
		description: "A draft, or with start=true one that runs.", refusals: []int{http.StatusConflict}}, createCampaign)
	client(a, operation{id: "getCampaign", method: http.MethodGet, path: one,
		summary: "Get a campaign, with how far it is", refusals: []int{http.StatusNotFound}}, getCampaign)
	client(a, operation{id: "replaceCampaign", method: http.MethodPut, path: one, body: campaignBody{},
		summary:     "Change a campaign that has not started",
		description: "Its recipients stay.", refusals: known}, replaceCampaign)
	client(a, operation{id: "uploadRecipients", method: http.MethodPut, path: one + "/recipients", upload: maxList, strict: true,
		summary:     "Put the recipients of a file in the place of the campaign's",
		description: "CSV or XLSX with a header row, at most 100 MiB and 1,000,000 rows. A file with a fault changes nothing.",
		refusals:    known}, uploadRecipients)
	documentUpload(a, one+"/recipients")
	client(a, operation{id: "addRecipients", method: http.MethodPost, path: one + "/recipients", body: recipientsBody{}, bodyBytes: maxInline,
		summary: "Append recipients to the campaign's, or put contacts in their place", refusals: known}, addRecipients)
	client(a, operation{id: "listRecipients", method: http.MethodGet, path: one + "/recipients", strict: true,
		summary: "List the campaign's recipients, by their place", refusals: []int{http.StatusNotFound}}, listRecipients)
	client(a, operation{id: "mapRecipients", method: http.MethodPost, path: one + "/columns", body: columnsBody{},
		summary: "Change which column of the list is which field", refusals: known}, withBody(mapRecipients))
	client(a, operation{id: "checkCampaign", method: http.MethodPost, path: one + "/check",
		summary:     "Look at every recipient, and show what a start would send",
		description: "Without a digest the check goes on: ask again.", refusals: known}, checkCampaign)
	refused := operation{id: "listRefused", method: http.MethodGet, path: one + "/refused", strict: true,
		summary: "Download the refused recipients as CSV", refusals: []int{http.StatusNotFound}}
	client(a, refused, a.listRefused)
	documentCSV(a, refused)
	client(a, operation{id: "startCampaign", method: http.MethodPost, path: one + "/start", creates: createsAlways, body: digestBody{},
		summary:     "Start what the check with this digest showed, and count one call",
		description: "Anything changed since is a conflict, which shows the new check; a repeat counts nothing.", refusals: known}, withBody(startCampaign))
	for _, verb := range []struct {
		id, path, summary string
		prevents          bool
		do                func(*control.Client, context.Context, string) (control.Campaign, error)
	}{
		{"pauseCampaign", "/pause", "Pause a campaign; when the answer is there, nothing more of it begins to leave", true, (*control.Client).PauseCampaign},
		{"resumeCampaign", "/resume", "Let a paused campaign go on. The moments of what has not left move by the length of the pause, but for those that come from a date", false, (*control.Client).ResumeCampaign},
		{"cancelCampaign", "/cancel", "Cancel what is pending of a campaign, and send nothing more of it", true, (*control.Client).CancelCampaign},
	} {
		client(a, operation{id: verb.id, method: http.MethodPost, path: one + verb.path, summary: verb.summary, prevents: verb.prevents, refusals: known},
			func(ctx context.Context, c *control.Client, _ *call, p *oneInput) (CampaignAnswer, error) {
				changed, err := verb.do(c, ctx, p.ID)
				return campaignOf(changed), err
			})
	}
	client(a, operation{id: "retryCampaign", method: http.MethodPost, path: one + "/retry", creates: createsAlways, body: retryBody{}, optional: true,
		summary: "Send the failed messages of a campaign again, and count one call", refusals: known}, retryCampaign)
}

// campaignBody documents the body of a campaign.
type campaignBody struct {
	Name       string           `json:"name" minLength:"1" maxLength:"200"`
	Purpose    string           `json:"purpose,omitempty" enum:"marketing,service"`
	Reference  string           `json:"reference,omitempty" read:"id" maxLength:"255" doc:"Your own name of the campaign. Details, lists and events of its messages show it"`
	Sequence   string           `json:"sequence,omitempty" read:"id" doc:"ID of the sequence to start. Else content or template"`
	Session    string           `json:"id_sessione,omitempty" read:"id" doc:"The session that sends; else the sequence's, else the default one"`
	StartAt    string           `json:"start_at,omitempty" doc:"The first recipient's moment, such as 2026-11-20T10:30; else at once"`
	IfRunning  string           `json:"if_running,omitempty" enum:"allow,skip,restart,reject" doc:"For recipients for whom the sequence runs; else the sequence's own setting"`
	Timezone   string           `json:"timezone,omitempty" doc:"IANA name of the zone that days and dates are reckoned in; else the client's"`
	Canary     *int             `json:"canary,omitempty" minimum:"0" maximum:"2000" doc:"So many recipients go first; the campaign pauses if more than a third of their messages fail. 20 without it"`
	Fields     recipientFields  `json:"fields,omitempty" doc:"The same for every recipient; a recipient's own go first"`
	Template   string           `json:"template,omitempty" doc:"Name of a template: one message"`
	Content    *campaignContent `json:"content,omitempty" doc:"One message"`
	Variants   []variantBody    `json:"variants,omitempty" read:"capped" minItems:"2" maxItems:"4" doc:"In the place of content and template: texts of which each person gets one"`
	Holdout    int              `json:"holdout,omitempty" minimum:"0" maximum:"50" doc:"Percent of the recipients who get nothing, so that others can be compared with them. Not with a sequence"`
	_          contentCheck
	Pace       *campaignPace     `json:"pace,omitempty"`
	Window     *puntuale.Window  `json:"window,omitempty" doc:"When recipients have their moment; the rest waits for the next opening"`
	Recipients []recipientFields `json:"recipients,omitempty" maxItems:"10000" doc:"Each with its phone and its fields"`
	From       *fromBody         `json:"from,omitempty" doc:"Contacts as recipients"`
}

// fromBody documents how a campaign chooses its recipients from the contacts.
type fromBody struct {
	Tags []string `json:"tags" minItems:"1" maxItems:"50" doc:"Contacts that have any of these tags"`
	_    closedCheck
}

// campaignContent documents the content of one message.
type campaignContent struct {
	Text        string   `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}"`
	Media       string   `json:"media,omitempty" doc:"Address of a media file, http or https; may hold fields"`
	MediaName   string   `json:"media_name,omitempty"`
	Latitude    *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90"`
	Longitude   *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180"`
	OnUncertain string   `json:"on_uncertain,omitempty" enum:"never,resend"`
}

type campaignPace struct {
	PerMinute pacedNumber `json:"per_minute" read:"need" minimum:"1" maximum:"6000" doc:"Recipients a minute at most; the session's own pace holds besides"`
}

// pacedNumber is at least 1. Any smaller number becomes -1, which control refuses together with all other faults.
type pacedNumber int

func (n *pacedNumber) readJSON(o *object, name string, _ json.RawMessage) {
	if o.read(name, "", (*int)(n)); *n < 1 {
		*n = -1
	}
}

// contentCheck adds a fault if a campaign has both.
type contentCheck struct{}

func (contentCheck) check(o *object, to any) {
	b := to.(*campaignBody)
	if b.Content != nil && b.Template != "" {
		o.refuse("template", puntuale.FaultGoesWithout, nil, "content")
	}
	for i, v := range b.Variants {
		if v.Content != nil && v.Template != "" {
			o.refuse("variants["+strconv.Itoa(i)+"].template", puntuale.FaultGoesWithout, nil, "content")
		}
	}
	if b.Variants != nil && (b.Content != nil || b.Template != "") {
		o.refuse("variants", puntuale.FaultGoesWithout, nil, "content, template")
	}
}

// recipientFields are the fields of a recipient, or of all. A number is taken as it is written, and null is no value.
type recipientFields map[string]string

func (f *recipientFields) readJSON(o *object, name string, raw json.RawMessage) {
	fields := o.inner(name, raw)
	*f = make(recipientFields, len(fields.members))
	for _, name := range slices.Sorted(maps.Keys(fields.members)) {
		var text string
		switch raw := fields.members[name]; {
		case raw[0] == 'n':
			continue
		case name == "phone":
			fields.read(name, "phone", &text)
		case isNumber(raw):
			text = string(raw)
		default:
			fields.read(name, "", &text)
		}
		(*f)[name] = text
	}
}

type recipientsBody struct {
	Recipients []recipientFields `json:"recipients,omitempty" minItems:"1" maxItems:"10000" doc:"Each with its phone and its fields"`
	From       *fromBody         `json:"from,omitempty" doc:"Contacts take the place of the campaign's recipients: with phone, nome and their fields"`
}

type columnsBody struct {
	Columns string `json:"columns" doc:"Fields with their columns: phone:Telefono,nome:Nome. A column by its number where its header has a comma or a colon: phone:2"`
	Dates   string `json:"dates,omitempty" doc:"As in the upload of the list"`
}

type digestBody struct {
	Digest string `json:"digest" doc:"Of the check"`
}

type retryBody struct {
	Uncertain bool `json:"uncertain,omitempty" doc:"true: those of uncertain fate, too; they may arrive twice"`
}

type campaignInput struct {
	OnceInput
	Start string `query:"start" enum:"true,false" doc:"true: check it and start it, with the recipients of the body"`
}

type uploadInput struct {
	ID      string `path:"id" doc:"ID"`
	Columns string `query:"columns" doc:"Fields with their columns: phone:Telefono,nome:Nome; without it they are guessed by the header"`
	Dates   string `query:"dates" doc:"Fields that are dates, with the order of their numbers: quando:dmy,scade:mdy. none: no field is. Without it, each column decides as a whole"`
	Header  string `query:"header" doc:"The line of the header row. Without it the server looks for it, also below a title"`
	Check   string `query:"check" enum:"true,false" doc:"true: store nothing, and answer what would be stored"`
}

type recipientsInput struct {
	ID     string `path:"id" doc:"ID"`
	State  string `query:"state" enum:"waiting,fed,refused"`
	Reason string `query:"reason" enum:"invalid_phone,duplicate,missing_field,bad_field,blacklisted,no_consent,running,past,no_window,erased,held_out" doc:"Of refused ones"`
	After  string `query:"after" pattern:"^[0-9]+$" doc:"The place of the last row of the page before"`
	Limit  string `query:"limit" pattern:"^[0-9]+$" doc:"Rows at most: 1 to 1000, else 100"`
}

type refusedInput struct {
	ID     string `path:"id" doc:"ID"`
	Reason string `query:"reason" enum:"invalid_phone,duplicate,missing_field,bad_field,blacklisted,no_consent,running,past,no_window,erased,held_out" doc:"Only these"`
}

// CampaignAnswer is a campaign as callers see it.
type CampaignAnswer struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	State      string            `json:"state" enum:"draft,checking,ready,running,paused,resuming,cancelling,done,cancelled,failed"`
	Reason     *string           `json:"reason" doc:"Why it paused or ended by itself: canary, no_credit, client_held, number_restricted, budget (it waits), restored, failover, session_deleted, sequence_deleted; or why it waits while it runs: portfolio"`
	Purpose    *string           `json:"purpose"`
	Reference  string            `json:"reference,omitempty" doc:"Your own name of the campaign, which its messages have"`
	Sequence   *string           `json:"sequence"`
	Session    *string           `json:"id_sessione"`
	Recipients int               `json:"recipients" doc:"Rows of its list"`
	Pace       *campaignPace     `json:"pace,omitempty"`
	Fields     map[string]string `json:"fields"`
	Variants   []variantAnswer   `json:"variants,omitempty" doc:"Only of a campaign with several"`
	Holdout    int               `json:"holdout,omitempty" doc:"Percent of the recipients who get nothing"`
	Created    string            `json:"created_at" format:"date-time"`
	Started    *string           `json:"started_at" format:"date-time"`
	Paused     *string           `json:"paused_at" format:"date-time"`
	Ended      *string           `json:"ended_at" format:"date-time"`
	Counts     campaignCounts    `json:"counts"`
	Cost       *billAnswer       `json:"cost" doc:"Of a campaign on an Official session, where one campaign is asked for; else null"`
}

// campaignCounts counts a campaign's recipients, and the messages that the feeder created for them.
type campaignCounts struct {
	Recipients  int `json:"recipients" doc:"refused, held_out, waiting and fed together"`
	Refused     int `json:"refused"`
	HeldOut     int `json:"held_out" doc:"The holdout"`
	Waiting     int `json:"waiting"`
	Fed         int `json:"fed" doc:"Their messages are planned"`
	Pending     int `json:"pending" doc:"This and the following count messages. A list of campaigns has 0"`
	Completed   int `json:"completed"`
	Failed      int `json:"failed"`
	Cancelled   int `json:"cancelled"`
	Blacklisted int `json:"blacklisted"`
}

type campaignsAnswer struct {
	Campaigns []CampaignAnswer `json:"campaigns"`
	Next      *string          `json:"next_cursor"`
}

type listAnswer struct {
	Recipients int            `json:"recipients"`
	Columns    []columnAnswer `json:"columns" doc:"The header, with the field that each column fills"`
	Missing    []string       `json:"missing" doc:"Required fields that neither the list nor the campaign fills"`
	Preview    [][]string     `json:"preview" doc:"The first rows"`
	Numbers    []numberAnswer `json:"numbers" doc:"The numbers of these rows"`
	Dates      []datesAnswer  `json:"dates" doc:"After an upload: the fields of the texts that are dates"`
	Header     int            `json:"header,omitempty" doc:"After an upload: the line of the header row"`
	Hidden     int            `json:"hidden,omitempty" doc:"After an upload: rows that the spreadsheet hides, for example by a filter. They are recipients like the others"`
}

type numberAnswer struct {
	Written string  `json:"written" doc:"As the list has it"`
	Phone   *string `json:"phone" doc:"As the server stores it; null: it is not a number"`
}

func numbersOf(all []control.ReadNumber) []numberAnswer {
	return each(all, func(n control.ReadNumber) numberAnswer { return numberAnswer{n.Written, textOrNull(n.Phone)} })
}

type columnAnswer struct {
	Name  string  `json:"name"`
	Field *string `json:"field"`
}

type startedCampaign struct {
	CampaignAnswer
	Usage
}

type recipientAnswer struct {
	Place  int64   `json:"place"`
	Line   int     `json:"line"`
	Phone  string  `json:"phone"`
	State  string  `json:"state" enum:"waiting,fed,refused"`
	Reason *string `json:"reason"`
	Value  *string `json:"value" doc:"What was refused"`
	Run    *string `json:"run" doc:"The ID of its first message"`
}

type recipientsAnswer struct {
	Recipients []recipientAnswer `json:"recipients"`
	Next       *string           `json:"next" doc:"To be given as after"`
}

type retriedAnswer struct {
	Again int `json:"again" doc:"Messages that are sent again"`
}

func listCampaigns(ctx context.Context, c *control.Client, in *call, p *ListInput) (campaignsAnswer, error) {
	rows, next, err := c.Campaigns(ctx, p.page(in))
	if err != nil {
		return campaignsAnswer{}, err
	}
	return campaignsAnswer{each(rows, func(r puntuale.Campaign) CampaignAnswer { return campaignOf(control.Campaign{Campaign: r}) }), textOrNull(next)}, nil
}

func createCampaign(ctx context.Context, c *control.Client, in *call, p *campaignInput) (CampaignAnswer, error) {
	requested, recipients, err := readCampaign(in)
	if err != nil {
		return CampaignAnswer{}, err
	}
	if requested.From != nil {
		ctx = in.unhurried(ctx)
	}
	requested.Starts = p.Start == "true"
	created, err := c.CreateCampaign(ctx, requested, recipients, once(in, &p.OnceInput, campaignOf))
	made := campaignOf(created)
	if earlier, ok := errors.AsType[*puntuale.Replayed](err); ok && requested.Starts {
		in.header.Set(replayedHeader, "true")
		err = json.Unmarshal(earlier.Answer, &made)
	}
	if err != nil || !requested.Starts {
		return made, err
	}
	started, err := c.StartMade(ctx, made.ID)
	return campaignOf(started), err
}

func getCampaign(ctx context.Context, c *control.Client, _ *call, p *oneInput) (CampaignAnswer, error) {
	found, err := c.Campaign(ctx, p.ID)
	if err != nil {
		return CampaignAnswer{}, err
	}
	bill, err := c.CampaignBill(ctx, found)
	out := campaignOf(found)
	out.Cost = billOf(bill)
	return out, err
}

// Codes of the faults that this file reports.
const (
	faultCampaignCheckAgain  puntuale.ReasonCode = "campaign.check_again"
	faultCampaignOtherDigest puntuale.ReasonCode = "campaign.other_digest"
	faultNotChangedHere      puntuale.ReasonCode = "fault.not_changed_here"
)

func replaceCampaign(ctx context.Context, c *control.Client, in *call, p *oneInput) (CampaignAnswer, error) {
	requested, recipients, err := readCampaign(in)
	if err != nil {
		return CampaignAnswer{}, err
	}
	if len(recipients) > 0 {
		requested.Faults = append(requested.Faults, puntuale.Fault{Location: "body.recipients", Code: faultNotChangedHere})
	}
	if requested.From != nil {
		requested.Faults = append(requested.Faults, puntuale.Fault{Location: "body.from", Code: faultNotChangedHere})
	}
	changed, err := c.UpdateCampaign(ctx, p.ID, requested)
	return campaignOf(changed), err
}

// readCampaign reads the body of a campaign. Codes: unreadable.
func readCampaign(in *call) (control.NewCampaign, []control.Recipient, error) {
	b, err := decode[campaignBody](in, listValues)
	if err != nil {
		return control.NewCampaign{}, nil, err
	}
	requested := control.NewCampaign{
		Name: b.Name, Purpose: b.Purpose, Reference: b.Reference, Sequence: b.Sequence, Session: b.Session, StartAt: b.StartAt, IfRunning: b.IfRunning,
		Timezone: b.Timezone, Canary: b.Canary, Fields: b.Fields, Holdout: b.Holdout, Window: b.Window, From: b.From.tags(), Faults: in.refused,
	}
	for i := range b.Variants {
		requested.Shares = append(requested.Shares, b.Variants[i].Share)
		if i == 0 {
			requested.Step = new(b.Variants[0].step())
		} else {
			requested.Others = append(requested.Others, b.Variants[i].step())
		}
	}
	if c := b.Content; c != nil {
		requested.Step = new(c.step())
	} else if b.Template != "" {
		requested.Step = &puntuale.Step{Template: b.Template}
	}
	if b.Pace != nil {
		requested.PerMinute = int(b.Pace.PerMinute)
	}
	return requested, recipientsOf(b.Recipients), nil
}

func recipientsOf(all []recipientFields) []control.Recipient {
	return each(all, func(f recipientFields) control.Recipient { return control.Recipient(f) })
}

// tags returns the tags of the contacts that become recipients, or nil if the body has no member "from".
func (f *fromBody) tags() []string {
	if f == nil {
		return nil
	}
	return append([]string{}, f.Tags...)
}

func uploadRecipients(ctx context.Context, c *control.Client, in *call, p *uploadInput) (listAnswer, error) {
	put, err := c.PutRecipients(ctx, p.ID, in.file, in.kind, fileImport(p.Columns, p.Dates, p.Header, p.Check, nil))
	return listOf(put), err
}

func addRecipients(ctx context.Context, c *control.Client, in *call, p *oneInput) (listAnswer, error) {
	body, err := decode[recipientsBody](in, listValues)
	if err != nil {
		return listAnswer{}, err
	}
	if body.From != nil {
		if len(body.Recipients) > 0 {
			in.refused = append(in.refused, puntuale.Because(puntuale.FaultGoesWithout, "recipients").At("body.from", nil))
		}
		put, err := c.RecipientsFrom(in.unhurried(ctx), p.ID, body.From.tags(), in.refused...)
		return listOf(put), err
	}
	added, err := c.AddRecipients(ctx, p.ID, recipientsOf(body.Recipients))
	return listOf(added), err
}

func mapRecipients(ctx context.Context, c *control.Client, _ *call, p *oneInput, body *columnsBody) (listAnswer, error) {
	changed, err := c.MapRecipients(ctx, p.ID, body.Columns, body.Dates)
	return listOf(changed), err
}

func listRecipients(ctx context.Context, c *control.Client, _ *call, p *recipientsInput) (recipientsAnswer, error) {
	q := control.RecipientQuery{State: p.State, Reason: p.Reason, Limit: defaultRows}
	if n, err := strconv.Atoi(p.Limit); err == nil {
		q.Limit = min(max(n, 1), maxRows)
	}
	q.After, _ = strconv.ParseInt(p.After, 10, 64)
	rows, err := c.ListRecipients(ctx, p.ID, q)
	if err != nil {
		return recipientsAnswer{}, err
	}
	out := recipientsAnswer{Recipients: each(rows, recipientOf)}
	if len(rows) == q.Limit {
		out.Next = new(strconv.FormatInt(rows[len(rows)-1].N, 10))
	}
	return out, nil
}

const (
	defaultRows = 100
	maxRows     = 1000
)

func checkCampaign(ctx context.Context, c *control.Client, _ *call, p *oneInput) (checkAnswer, error) {
	check, err := c.CheckCampaign(ctx, p.ID)
	if err != nil {
		return checkAnswer{}, err
	}
	return checkOf(check, creditsLeft(c)), nil
}

func startCampaign(ctx context.Context, c *control.Client, _ *call, p *oneInput, body *digestBody) (startedCampaign, error) {
	started, usage, err := c.StartCampaign(ctx, p.ID, body.Digest)
	if changed, ok := errors.AsType[*control.Changed](err); ok {
		refused := puntuale.Conflict(faultCampaignCheckAgain)
		refused.Faults = []puntuale.Fault{{Location: "body.digest", Code: faultCampaignOtherDigest, Value: checkOf(changed.Check, creditsLeft(c))}}
		return startedCampaign{}, refused
	}
	if err != nil {
		return startedCampaign{}, err
	}
	return startedCampaign{campaignOf(started), usageOf(usage)}, nil
}

func retryCampaign(ctx context.Context, c *control.Client, in *call, p *oneInput) (retriedAnswer, error) {
	body := &retryBody{}
	if len(in.body) > 0 {
		var err error
		if body, err = decode[retryBody](in, httpkit.MaxValues); err != nil {
			return retriedAnswer{}, err
		}
	}
	retried, err := c.RetryCampaign(ctx, p.ID, body.Uncertain)
	return retriedAnswer{retried}, err
}

// listRefused writes the refused rows page by page, because there may be a million. While listRefused writes, the call
// has no seat, because the caller may read slowly.
func (a *api) listRefused(ctx context.Context, c *control.Client, in *call, p *refusedInput) (writtenBytes, error) {
	q := control.RecipientQuery{State: puntuale.RecipientRefused.String(), Reason: p.Reason, Limit: exportRows}
	return a.sendCSV(ctx, in, "refused", []string{"line", "phone", "reason", "value"}, func(ctx context.Context, cursor string) (all [][]string, next string, err error) {
		rows, err := c.ListRecipients(ctx, p.ID, q)
		for _, r := range rows {
			all = append(all, []string{strconv.Itoa(r.Line), inert(r.Phone), r.Reason, inert(catalogue.Message(r.Refused()))})
		}
		if err == nil && len(rows) == exportRows {
			q.After = rows[len(rows)-1].N
			next = strconv.FormatInt(q.After, 10)
		}
		return all, next, err
	})
}

// inert changes a CSV cell so that no spreadsheet runs it as a formula. A cell that contains only a phone number stays,
// because programs read it.
func inert(cell string) string {
	if digits, ok := strings.CutPrefix(cell, "+"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		return cell
	}
	return httpkit.InertCell(cell)
}

func campaignOf(c control.Campaign) CampaignAnswer {
	size := c.Feed.Size()
	out := CampaignAnswer{
		ID: c.ID.String(), Name: c.Name, State: c.State.String(), Reason: textOrNull(c.Reason), Purpose: textOrNull(c.Draft.Purpose), Reference: c.Draft.Reference,
		Recipients: size, Fields: c.Draft.Fields, Holdout: c.Draft.Holdout, Created: stamp(c.Created), Started: stampOrNull(c.Started), Ended: stampOrNull(c.Ended),
		Counts: campaignCounts{size, c.Feed.Refused, c.Feed.HeldOut, c.Feed.Waiting, c.Feed.Fed, c.Counts.Pending, c.Counts.Completed, c.Counts.Failed, c.Counts.Cancelled, c.Counts.Blacklisted},
	}
	for i, step := range c.Draft.Variants() {
		if i < len(c.Draft.Shares) {
			out.Variants = append(out.Variants, variantAnswer{puntuale.VariantKey(i), c.Draft.Shares[i], step.Text, step.Template})
		}
	}
	if c.State.HoldsBack() {
		out.Paused = stampOrNull(c.Paused)
	}
	if out.Fields == nil {
		out.Fields = map[string]string{}
	}
	if c.Sequence != 0 {
		out.Sequence = new(c.Sequence.String())
	}
	if c.Session != 0 {
		out.Session = new(c.Session.String())
	}
	if c.Draft.PerMinute > 0 {
		out.Pace = &campaignPace{pacedNumber(c.Draft.PerMinute)}
	}
	return out
}

func listOf(r control.Recipients) listAnswer {
	return listAnswer{Recipients: r.Size, Missing: append([]string{}, r.Missing...), Preview: each(r.Preview, func(row []string) []string { return append([]string{}, row...) }), Columns: columnsOf(r.Columns, r.Mapping), Numbers: numbersOf(r.Numbers), Dates: datesOf(r.Dates), Header: r.Header, Hidden: r.Hidden}
}

// columnsOf returns the columns of a list. Each column names the field that it fills.
func columnsOf(names []string, mapping map[string]int) []columnAnswer {
	all := []columnAnswer{}
	for i, name := range names {
		column := columnAnswer{Name: name}
		for _, field := range slices.Sorted(maps.Keys(mapping)) {
			if mapping[field] == i {
				column.Field = &field
			}
		}
		all = append(all, column)
	}
	return all
}

func recipientOf(r puntuale.Recipient) recipientAnswer {
	out := recipientAnswer{Place: r.N, Line: r.Line, Phone: r.Phone, State: r.State.String(), Reason: textOrNull(r.Reason), Value: textOrNull(catalogue.Message(r.Refused()))}
	if r.Run != 0 {
		out.Run = new(puntuale.MessageID(r.Run).String())
	}
	return out
}

// documentUpload describes the files that an upload accepts.
func documentUpload(a *api, path string) {
	file := &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	item := a.OpenAPI().Paths[path]
	cmp.Or(item.Put, item.Post).RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"text/csv": file, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": file,
	}}
}

// documentCSV describes an answer that is a table.
func documentCSV(a *api, op operation) {
	a.documented(op).Responses["200"].Content = map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: "string"}}}
}
