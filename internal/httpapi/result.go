package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/control/result"
)

func registerResults(a *api) {
	const all, people = "/api/results", "/api/results/people"
	register(a, eitherSide, operation{id: "getResults", method: http.MethodGet, path: all, strict: true,
		summary: "Count what became of messages, by what they belong to or by day",
		description: "A message counts on the day on which it was due. A moved or re-sent message counts once, together with the one that took its place. " +
			"What the network cannot tell is null, never 0. A partner's key counts all its clients, by client or day, or one of them.",
		refusals: []int{http.StatusNotFound}}, results)
	client(a, operation{id: "listResultPeople", method: http.MethodGet, path: people, strict: true,
		summary:     "List the people behind a count",
		description: "By the days on which the messages were due. A page may be shorter than asked. Messages in the archive are left out."}, resultPeople)
	export := operation{id: "exportResultPeople", method: http.MethodGet, path: people + "/export", strict: true, summary: "Download the people behind a count as CSV"}
	client(a, export, a.exportResultPeople)
	documentCSV(a, export)
}

// resultsInput documents the query of a report.
type resultsInput struct {
	By     string `query:"by" enum:"sequence,step,campaign,rule,template,session,day,variant,client" doc:"sequence without it, or client with a partner's key. variant needs a campaign, or a sequence and a step"`
	Client string `query:"client" doc:"Only with a partner's key: one of its clients"`
	ResultChoice
}

// ResultChoice documents which messages a report is about.
type ResultChoice struct {
	Start    string `query:"start" format:"date" doc:"First day on which messages were due; 30 days in all without it"`
	End      string `query:"end" format:"date" doc:"Last such day; today without it. At most 366 days"`
	Sequence string `query:"sequence" doc:"ID of a sequence; 0: messages without one"`
	Step     string `query:"step" doc:"ID of a step of this sequence"`
	Campaign string `query:"campaign" doc:"ID of a campaign; 0: messages without one"`
	Rule     string `query:"rule" doc:"ID of the automation that started the messages; 0: messages that none started"`
	Template string `query:"template" doc:"Name of a template"`
	None     string `query:"none" enum:"template" doc:"template: messages without a template"`
	Session  string `query:"session" doc:"ID of a session; 0: messages without one"`
	Variant  string `query:"variant" enum:"A,B,C,D" doc:"A variant of this step, or else of this campaign"`
}

func (c *ResultChoice) asked(faults []puntuale.Fault) result.Report {
	return result.Report{Start: c.Start, End: c.End, Sequence: c.Sequence, Step: c.Step, Campaign: c.Campaign, Rule: c.Rule, Template: c.Template, None: c.None, Session: c.Session, Variant: c.Variant, Faults: faults}
}

// ResultsAnswer is a report.
type ResultsAnswer struct {
	Results  []resultRow  `json:"results"`
	Total    resultRow    `json:"total"`
	Told     knownResult  `json:"told" doc:"What the networks of these messages tell; what they do not tell is null"`
	AsOf     string       `json:"as_of" format:"date-time" doc:"What changed before this moment is counted"`
	HeldOut  *int         `json:"held_out,omitempty" doc:"Only of a campaign's variants: people of its holdout, who got nothing"`
	Compared []comparison `json:"compared,omitempty" doc:"Only by variant: the two variants with the largest shares of a count"`
	Counting bool         `json:"counting" doc:"All messages are being counted again, for example after an update; until then counts may be missing or old"`
}

type comparison struct {
	Count  string `json:"count" enum:"read,answered,clicked"`
	Best   string `json:"best" enum:"A,B,C,D"`
	Next   string `json:"next" enum:"A,B,C,D"`
	Chance bool   `json:"chance" doc:"true: the difference may be chance. false: it is larger than chance would explain"`
	More   int64  `json:"more" doc:"About so many more messages would show it; 0: the difference is clear, or more messages would hardly show one"`
}

type resultRow struct {
	Key  string `json:"key" doc:"An ID, a template's name, or a day; 0 or empty: what belongs to none"`
	Name string `json:"name"`
	ResultCounts
	Of       resultOf         `json:"of" doc:"How many sent messages the networks can tell about: what delivered, read and answered are parts of"`
	Bookings *bookingResults  `json:"bookings" doc:"Bookings whose date is in the period; null if the report is not about bookings"`
	Buttons  map[string]int64 `json:"buttons" doc:"How many people pressed a button, by its label; empty with a partner's key"`
	Reasons  map[string]int64 `json:"reasons" doc:"Why messages failed or were skipped, by the code of the reason"`
}

// ResultCounts are the counts of a row, or of one message the answers yes and no.
type ResultCounts struct {
	Planned   int64  `json:"planned" doc:"What people were meant to get"`
	Sent      int64  `json:"sent"`
	Delivered *int64 `json:"delivered"`
	Read      *int64 `json:"read"`
	Answered  *int64 `json:"answered" doc:"A reply within 72 hours that no later message explains better"`
	Clicked   *int64 `json:"clicked" doc:"The person followed a tracked link; null: no link of these messages is tracked"`
	OptedOut  *int64 `json:"opted_out" doc:"Within 72 hours"`
	Failed    int64  `json:"failed"`
	Skipped   int64  `json:"skipped" doc:"The blacklist, or a missing consent"`
	Cancelled int64  `json:"cancelled"`
}

type resultOf struct {
	Delivered int64 `json:"delivered"`
	Read      int64 `json:"read"`
	Answered  int64 `json:"answered"`
	Clicked   int64 `json:"clicked"`
}

type knownResult struct {
	Delivered bool `json:"delivered"`
	Read      bool `json:"read"`
	Answered  bool `json:"answered"`
	Clicked   bool `json:"clicked"`
}

type bookingResults struct {
	Open      int64 `json:"open"`
	Confirmed int64 `json:"confirmed"`
	Cancelled int64 `json:"cancelled"`
	Arrived   int64 `json:"arrived"`
	NoShow    int64 `json:"no_show"`
}

// Schema describes the member to huma, which itself can only describe an object that is never null.
func (bookingResults) Schema(r huma.Registry) *huma.Schema {
	type countedBookings bookingResults
	s := *r.Schema(reflect.TypeFor[countedBookings](), false, "")
	s.Nullable, s.AdditionalProperties = true, nil
	return &s
}

func results(ctx context.Context, in *call, p *resultsInput) (ResultsAnswer, error) {
	asked := p.asked(in.unknown)
	asked.By, asked.Client = p.By, p.Client
	var found puntuale.ResultReport
	var err error
	if in.partner != nil {
		found, _, err = result.ReadPartner(ctx, in.partner, asked)
	} else {
		found, _, err = result.Read(ctx, in.client, asked)
	}
	if err != nil {
		return ResultsAnswer{}, err
	}
	told := found.Total.Told
	out := ResultsAnswer{
		Results: each(found.All, resultRowOf), Total: resultRowOf(found.Total), AsOf: stamp(found.AsOf), Counting: found.Counting,
		Told: knownResult{Delivered: told(puntuale.ResultDelivered), Read: told(puntuale.ResultRead), Answered: told(puntuale.ResultAnswered), Clicked: told(puntuale.ResultClicked)},
	}
	if p.By == string(puntuale.ResultByVariant) && p.Sequence == "" {
		out.HeldOut = &found.HeldOut
	}
	for _, x := range found.Comparisons {
		out.Compared = append(out.Compared, comparison{x.Mark.String(), x.Best, x.Next, x.Chance, x.More})
	}
	return out, nil
}

func resultRowOf(r puntuale.ResultRow) resultRow {
	told := func(mark puntuale.ResultMarks) *int64 {
		if !r.Told(mark) {
			return nil
		}
		return new(r.Of(mark))
	}
	out := resultRow{Key: r.Key, Name: r.Name, Of: resultOf{r.TellDelivered, r.TellRead, r.TellAnswered, r.TellClicked}, Buttons: r.Buttons, Reasons: r.Reasons, ResultCounts: ResultCounts{
		Planned: r.Planned, Sent: r.Sent, Delivered: told(puntuale.ResultDelivered), Read: told(puntuale.ResultRead), Answered: told(puntuale.ResultAnswered),
		Clicked: told(puntuale.ResultClicked), OptedOut: told(puntuale.ResultOptedOut), Failed: r.Failed, Skipped: r.Skipped, Cancelled: r.Cancelled,
	}}
	if out.Buttons == nil { // a partner's report
		out.Buttons = map[string]int64{}
	}
	if out.Reasons == nil { // a variant without messages
		out.Reasons = map[string]int64{}
	}
	if b := r.Bookings; b != nil {
		out.Bookings = (*bookingResults)(b)
	}
	return out
}

type resultPeopleInput struct {
	ListInput
	ResultPeopleChoice
}

// ResultPeopleChoice documents which people a list is about.
type ResultPeopleChoice struct {
	ResultChoice
	Is     string `query:"is" doc:"Counts in which the message is, with commas: planned, sent, delivered, read, answered, opted_out, failed, skipped, cancelled, clicked"`
	Not    string `query:"not" doc:"Counts in which it is not. People whose network does not tell are left out"`
	Reason string `query:"reason" doc:"Code of the reason why it failed or was skipped"`
	Button string `query:"button" doc:"Label of a button that the person pressed"`
}

func (c *ResultPeopleChoice) people(page request.Page) result.PersonQuery {
	return result.PersonQuery{Report: c.asked(page.Unknown), Is: c.Is, Not: c.Not, Reason: c.Reason, Button: c.Button, Page: request.Page{Limit: page.Limit, Cursor: page.Cursor}}
}

// ResultPeopleAnswer is a page of the people behind a count.
type ResultPeopleAnswer struct {
	People   []resultPerson `json:"people"`
	Total    *int           `json:"total" doc:"Messages on all pages, up to 10,000; null on further pages"`
	Complete bool           `json:"total_complete" doc:"false: there may be more than total, or total is null"`
	Next     *string        `json:"next_cursor"`
}

type resultPerson struct {
	Message   string  `json:"message_id" doc:"The first one, if it was moved or sent again"`
	Phone     *string `json:"phone" doc:"null: the person was erased"`
	Name      *string `json:"name"`
	Day       string  `json:"day" format:"date" doc:"On which the message was due"`
	Of        *string `json:"of" doc:"Name of the sequence, of the campaign, or of the send"`
	Sequence  *string `json:"sequence"`
	Step      *string `json:"step" doc:"Of the sequence, as in results by step"`
	Campaign  *string `json:"campaign"`
	Variant   *string `json:"variant" doc:"A to D; null: there is only one text"`
	Sent      bool    `json:"sent"`
	Delivered *bool   `json:"delivered" doc:"null: the network does not tell. So with read, answered and opted_out"`
	Read      *bool   `json:"read"`
	Answered  *bool   `json:"answered"`
	OptedOut  *bool   `json:"opted_out"`
	Failed    bool    `json:"failed"`
	Skipped   bool    `json:"skipped"`
	Cancelled bool    `json:"cancelled"`
	Clicked   *bool   `json:"clicked" doc:"null: no link is tracked"`
}

func resultPeople(ctx context.Context, c *control.Client, in *call, p *resultPeopleInput) (ResultPeopleAnswer, error) {
	rows, next, err := result.List(ctx, c, p.people(p.page(in)))
	if err != nil {
		return ResultPeopleAnswer{}, err
	}
	out := ResultPeopleAnswer{People: each(rows, resultPersonOf), Next: textOrNull(next)}
	if p.Cursor == "" {
		n, all, err := result.Count(ctx, c, p.people(request.Page{Unknown: in.unknown}))
		if err != nil {
			return ResultPeopleAnswer{}, err
		}
		out.Total, out.Complete = &n, all
	}
	return out, nil
}

func resultPersonOf(p result.Person) resultPerson {
	told := func(mark puntuale.ResultMarks) *bool {
		if mark.Untold(p.Told) != 0 {
			return nil
		}
		return new(p.Marks&mark != 0)
	}
	out := resultPerson{
		Of: textOrNull(p.Of), Variant: textOrNull(p.Letter()),
		Message: p.ID.String(), Phone: textOrNull(p.Phone), Name: textOrNull(p.Name), Day: p.Day.String(), Sent: p.Marks&puntuale.ResultSent != 0,
		Delivered: told(puntuale.ResultDelivered), Read: told(puntuale.ResultRead),
		Answered: told(puntuale.ResultAnswered), OptedOut: told(puntuale.ResultOptedOut),
		Failed: p.Marks&puntuale.ResultFailed != 0, Skipped: p.Marks&puntuale.ResultSkipped != 0, Cancelled: p.Marks&puntuale.ResultCancelled != 0,
		Clicked: told(puntuale.ResultClicked),
	}
	if p.Sequence != 0 {
		out.Sequence, out.Step = new(p.Sequence.String()), new(strconv.Itoa(p.Step))
	}
	if p.Campaign != 0 {
		out.Campaign = new(p.Campaign.String())
	}
	return out
}

func (a *api) exportResultPeople(ctx context.Context, c *control.Client, in *call, p *ResultPeopleChoice) (writtenBytes, error) {
	return a.sendCSV(ctx, in, "results", result.Columns, func(ctx context.Context, cursor string) ([][]string, string, error) {
		rows, next, err := result.List(ctx, c, p.people(request.Page{Limit: strconv.Itoa(maxRows), Cursor: cursor, Unknown: in.unknown}))
		return each(rows, func(r result.Person) []string { return result.Cells(r, inert) }), next, err
	})
}
