package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

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
