package web

import (
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
	"slices"
)

// rowsOfPage is how many rows a list shows at once.
const rowsOfPage = "50"

// mostChoices is how many entries a choice offers.
const mostChoices = "1000"

// mostSequences is how many sequences the list of messages may be narrowed to, besides the one that it is narrowed to: the
// newest ones. Each is read with all its steps.
const mostSequences = "200"

// sequenceChoices are the newest sequences and the chosen one.
func sequenceChoices(v *Request, chosen string) ([]view.Option, error) {
	found, _, err := v.client.Sequences(v.ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: mostSequences}})
	if err != nil {
		return nil, err
	}
	all := make([]view.Option, 0, len(found)+1)
	for _, q := range found {
		all = append(all, view.Option{Value: q.ID.String(), Text: q.Name})
	}
	if chosen == "" || slices.ContainsFunc(all, func(o view.Option) bool { return o.Value == chosen }) {
		return all, nil
	}
	if name := sequenceName(v, chosen); name != "" {
		all = append(all, view.Option{Value: chosen, Text: name})
	}
	return all, nil
}

// campaignChoices are the newest campaigns, and the chosen one; none where the client has none.
func campaignChoices(v *Request, chosen string) (all []view.Option, err error) {
	found, _, err := v.client.Campaigns(v.ctx(), request.Page{Limit: mostSequences})
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if !c.Started.IsZero() {
			all = append(all, view.Option{Value: c.ID.String(), Text: c.Name})
		}
	}
	if chosen == "" || slices.ContainsFunc(all, func(o view.Option) bool { return o.Value == chosen }) {
		return all, nil
	}
	if name := campaignName(v, chosen); name != "" {
		all = append(all, view.Option{Value: chosen, Text: name})
	}
	return all, nil
}

// sequenceName is what a search's sequence is called; "" where it asks for none, or it is gone.
func sequenceName(v *Request, id string) string {
	if id == "" {
		return ""
	}
	q, err := v.client.Sequence(v.ctx(), id)
	if err != nil {
		return ""
	}
	return q.Name
}

// campaignName is what a search's campaign is called; "" where it asks for none, or it is not there.
func campaignName(v *Request, id string) string {
	if id == "" {
		return ""
	}
	c, err := v.client.Campaign(v.ctx(), id)
	if err != nil {
		return ""
	}
	return c.Name
}
