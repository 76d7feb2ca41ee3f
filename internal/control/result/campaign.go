package result

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// maxListed is the largest list of people that becomes a campaign's list, in bytes of CSV: more than 100,000 people.
const maxListed = 4 << 20

// Codes of refusals of campaigns for people behind a count.
const (
	faultNobody        puntuale.ReasonCode = "result.nobody"
	faultTooManyPeople puntuale.ReasonCode = "result.too_many_people"
)

// Campaign makes a draft of a campaign for the people behind a count, each once. PersonQuery who were erased are left out.
// Codes: invalid (also if there is nobody, or are too many), and those of [control.Client.CreateCampaign].
func Campaign(ctx context.Context, client *control.Client, p PersonQuery, made control.NewCampaign) (control.Campaign, error) {
	list, err := listed(ctx, client, p)
	if err != nil {
		return control.Campaign{}, err
	}
	c, err := client.CreateCampaign(ctx, made, nil, control.Once[control.Campaign]{})
	if err != nil {
		return control.Campaign{}, err
	}
	if _, err := client.PutRecipients(ctx, c.ID.String(), bytes.NewReader(list), "text/csv; charset=utf-8", control.FileImport{Columns: "phone:phone,nome:nome", Dates: "none", Header: 1}); err != nil {
		_, failed := client.CancelCampaign(ctx, c.ID.String()) // nobody asked for a draft without its people
		return control.Campaign{}, errors.Join(err, failed)
	}
	return c, nil
}

// listed returns the people behind a count as CSV with the columns phone and nome.
func listed(ctx context.Context, client *control.Client, p PersonQuery) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	rows := [][]string{{"phone", "nome"}}
	seen := map[string]bool{}
	p.Page = request.Page{Limit: strconv.Itoa(request.MaxPageRows)}
	for more := true; more; more = p.Page.Cursor != "" {
		all, next, err := List(ctx, client, p)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			if x.Phone != "" && !seen[x.Phone] {
				seen[x.Phone] = true
				rows = append(rows, []string{x.Phone, x.Name})
			}
		}
		if err := w.WriteAll(rows); err != nil {
			return nil, err
		}
		if out.Len() > maxListed {
			return nil, puntuale.Invalid(puntuale.Fault{Location: "query", Code: faultTooManyPeople})
		}
		rows, p.Page.Cursor = nil, next
	}
	if len(seen) == 0 {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "query", Code: faultNobody})
	}
	return out.Bytes(), nil
}
