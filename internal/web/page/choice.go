package page

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
	"slices"
)

// RowsOfPage is the number of rows that one page of a list shows.
const RowsOfPage = "50"

// MaxChoices is the largest number of entries that a choice offers.
const MaxChoices = "1000"

// maxSequences is the number of newest sequences, or of newest campaigns, that a choice offers. The chosen sequence or
// campaign is added. The number is small, because each sequence is read with all its steps.
const maxSequences = "200"

// SequenceChoices returns the newest sequences, together with the chosen sequence.
func SequenceChoices(v *Request, chosen string) ([]view.Option, error) {
	all, _, err := BookingChoices(v)
	if err != nil {
		return nil, err
	}
	if chosen == "" || slices.ContainsFunc(all, func(o view.Option) bool { return o.Value == chosen }) {
		return all, nil
	}
	if name := SequenceName(v, chosen); name != "" {
		all = append(all, view.Option{Value: chosen, Text: name})
	}
	return all, nil
}

// BookingChoices returns the newest sequences, and those of them that are for bookings.
func BookingChoices(v *Request) (all, bookings []view.Option, err error) {
	found, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: maxSequences}})
	if err != nil {
		return nil, nil, err
	}
	all = make([]view.Option, 0, len(found)+1)
	for _, q := range found {
		o := view.Option{Value: q.ID.String(), Text: q.Name}
		if all = append(all, o); q.Booking != "" {
			bookings = append(bookings, o)
		}
	}
	return all, bookings, nil
}

// CampaignChoices returns those of the newest campaigns that were started, together with the chosen campaign. It
// returns nil if there are none.
func CampaignChoices(v *Request, chosen string) (all []view.Option, err error) {
	found, _, err := v.Client.Campaigns(v.Ctx(), request.Page{Limit: maxSequences})
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
	if name := CampaignName(v, chosen); name != "" {
		all = append(all, view.Option{Value: chosen, Text: name})
	}
	return all, nil
}

// SequenceName returns the name of the sequence with this id. It returns "" if id is "", or if the sequence does not
// exist any more.
func SequenceName(v *Request, id string) string {
	if id == "" {
		return ""
	}
	q, err := v.Client.Sequence(v.Ctx(), id)
	if err != nil {
		return ""
	}
	return q.Name
}

// CampaignName returns the name of the campaign with this id. It returns "" if id is "", or if the campaign does not
// exist.
func CampaignName(v *Request, id string) string {
	if id == "" {
		return ""
	}
	c, err := v.Client.Campaign(v.Ctx(), id)
	if err != nil {
		return ""
	}
	return c.Name
}

// BookingSequences returns the names of the sequences of some bookings. A deleted sequence is missing.
func BookingSequences(v *Request, bookings []puntuale.Booking) map[puntuale.SequenceID]string {
	names := map[puntuale.SequenceID]string{}
	for i := range bookings {
		id := bookings[i].Sequence
		if _, known := names[id]; !known {
			names[id] = SequenceName(v, id.String())
		}
	}
	return names
}
