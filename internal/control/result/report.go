package result

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
)

// MaxDays is the longest period of a report.
const MaxDays = 366

// defaultDays is the period of a report whose caller names none: up to today.
const defaultDays = 30

// Report is a request for a report. Texts that are "" choose all.
type Report struct {
	By         string // see [puntuale.ResultGroup]; "": sequence, of a partner client
	Start, End string // YYYY-MM-DD; "": the 30 days up to today
	Client     string // only a partner's
	Sequence   string // "0": messages of none. So with Campaign, Rule and Session
	Step       string
	Campaign   string
	Rule       string
	Template   string
	None       string // "template": messages without one
	Session    string
	Variant    string // key of a variant of the step, or else of the campaign
	Hours      bool   // also count when messages were read
	Faults     []puntuale.Fault
}

// Codes of the faults of reports.
const (
	faultPeriodLength puntuale.ReasonCode = "result.period_too_long"
	faultNeedsClient  puntuale.ReasonCode = "result.needs_client"
	faultPartnerOnly  puntuale.ReasonCode = "result.partner_only"
)

// filter checks the request. today is the default end of the period.
func (r Report) filter(f *request.Faults, today puntuale.Date, partner bool) puntuale.ResultFilter {
	out := puntuale.ResultFilter{Template: r.Template, Hours: r.Hours}
	groups := slices.Clone(puntuale.ResultGroups)
	if partner { // contents are the client's
		groups = slices.DeleteFunc(groups, func(g puntuale.ResultGroup) bool { return g == puntuale.ResultByVariant })
	}
	standard := puntuale.ResultBySequence
	if partner && r.Client == "" {
		groups, standard = []puntuale.ResultGroup{puntuale.ResultByClient, puntuale.ResultByDay}, puntuale.ResultByClient
	}
	if out.By = puntuale.ResultGroup(cmp.Or(r.By, string(standard))); !slices.Contains(groups, out.By) {
		switch {
		case partner && r.Client == "" && slices.Contains(puntuale.ResultGroups, out.By):
			f.Add("query.client", faultNeedsClient, nil, r.By)
		default:
			words := make([]string, len(groups))
			for i, g := range groups {
				words[i] = string(g)
			}
			f.Add("query.by", puntuale.FaultNotOneOf, r.By, strings.Join(words, ", "))
		}
	}
	f.Text("query.template", r.Template, puntuale.MaxName)
	id(f, puntuale.ResultBySequence, r.Sequence, &out.Sequence, &out.None)
	id(f, puntuale.ResultByCampaign, r.Campaign, &out.Campaign, &out.None)
	id(f, puntuale.ResultByRule, r.Rule, &out.Rule, &out.None)
	id(f, puntuale.ResultBySession, r.Session, &out.Session, &out.None)
	switch r.None {
	case "":
	case string(puntuale.ResultByTemplate):
		out.None = append(out.None, puntuale.ResultByTemplate)
	default:
		f.Add("query.none", puntuale.FaultNotOneOf, r.None, string(puntuale.ResultByTemplate))
	}
	if r.Step != "" {
		step, err := strconv.ParseInt(r.Step, 10, 32) // the first step of a sequence has the id 0
		if err != nil || step < 0 {
			f.Add("query.step", control.FaultNotID, r.Step)
		}
		out.Step = new(int(step))
	}
	if r.Variant != "" {
		variant := puntuale.VariantOf(r.Variant)
		if variant < 0 {
			f.Add("query.variant", puntuale.FaultNotOneOf, r.Variant, "A, B, C, D")
		}
		if r.Sequence == "" && r.Step == "" {
			out.Step = &variant
		} else {
			out.Variant = variant + 1
		}
	}
	if out.By == puntuale.ResultByVariant || r.Variant != "" {
		switch {
		case r.Sequence == "" && r.Step == "":
			if out.Campaign == 0 {
				f.Add("query.campaign", puntuale.FaultRequired, nil)
			}
		case r.Step == "":
			f.Add("query.step", puntuale.FaultRequired, nil)
		}
	}
	if (out.By == puntuale.ResultByStep || r.Step != "") && (r.Sequence == "" || r.Sequence == "0") {
		f.Add("query.sequence", puntuale.FaultRequired, nil)
	}
	r.period(f, today, &out)
	return out
}

// id reads an id. 0 chooses messages that belong to none, if none is not nil.
func id[T ~int64](f *request.Faults, group puntuale.ResultGroup, text string, into *T, none *[]puntuale.ResultGroup) {
	if text == "" {
		return
	}
	if text == "0" && none != nil {
		*none = append(*none, group)
		return
	}
	found, err := puntuale.ParseID[T](text)
	if err != nil {
		f.Add("query."+string(group), control.FaultNotID, text)
	}
	*into = found
}

func (r Report) period(f *request.Faults, today puntuale.Date, out *puntuale.ResultFilter) {
	read := func(name, text string, otherwise puntuale.Date) (puntuale.Date, bool) {
		if text == "" {
			return otherwise, true
		}
		day, err := puntuale.ParseDate(strings.TrimSpace(text))
		if err != nil || day.Year < 1 {
			f.Add("query."+name, puntuale.FaultNotDay, text)
			return otherwise, false
		}
		return day, true
	}
	var ends, begins bool
	out.End, ends = read("end", r.End, today)
	out.Start, begins = read("start", r.Start, out.End.AddDays(1-defaultDays))
	switch {
	case !ends || !begins:
	case out.End.Before(out.Start):
		f.Add("query.start", request.FaultAfterEnd, r.Start)
	case out.Start.AddDays(MaxDays - 1).Before(out.End):
		f.Add("query.start", faultPeriodLength, r.Start, strconv.Itoa(MaxDays))
	}
}

// Read returns a client's report. Codes: invalid.
func Read(ctx context.Context, client *control.Client, r Report) (puntuale.ResultReport, puntuale.ResultFilter, error) {
	f := request.Faults(r.Faults)
	if r.Client != "" {
		f.Add("query.client", faultPartnerOnly, r.Client)
	}
	today, err := client.Day()
	if err != nil {
		return puntuale.ResultReport{}, puntuale.ResultFilter{}, err
	}
	filter := r.filter(&f, today, false)
	if err := f.Err(); err != nil {
		return puntuale.ResultReport{}, filter, err
	}
	out, err := client.Results(ctx, filter)
	if err == nil && filter.By == puntuale.ResultByStep {
		err = nameSteps(ctx, client, filter.Sequence, &out)
	}
	if err == nil && filter.By == puntuale.ResultByVariant {
		err = compareVariants(ctx, client, filter, &out)
	}
	return out, filter, err
}

// ReadPartner returns a report about a partner's clients, or about one of them. Codes: invalid, not_found.
func ReadPartner(ctx context.Context, p *account.Partner, r Report) (puntuale.ResultReport, puntuale.ResultFilter, error) {
	f := request.Faults(r.Faults)
	var client puntuale.ClientID
	id(&f, puntuale.ResultByClient, r.Client, &client, nil)
	filter := r.filter(&f, p.Day(), true)
	if err := f.Err(); err != nil {
		return puntuale.ResultReport{}, filter, err
	}
	out, err := p.Results(ctx, client, filter)
	return out, filter, err
}

// longestStep is how much of a step's text is its name, in characters.
const longestStep = 40

// nameSteps names steps by their texts, and sorts them as they stand in the sequence. A step that was removed has no name.
func nameSteps(ctx context.Context, client *control.Client, sequence puntuale.SequenceID, out *puntuale.ResultReport) error {
	s, err := client.Sequence(ctx, sequence.String())
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	steps, err := client.Filled(ctx, s.Steps)
	if err != nil {
		return err
	}
	place := placesOf(steps)
	for i := range out.All {
		if n := place[out.All[i].Key]; n > 0 {
			step := steps[n-1]
			out.All[i].Name = strconv.Itoa(n) + ". " + shortened(cmp.Or(step.Text, step.Template))
		}
	}
	slices.SortStableFunc(out.All, func(x, y puntuale.ResultRow) int {
		a, b := place[x.Key], place[y.Key]
		if a == 0 || b == 0 {
			return b - a // removed steps come last
		}
		return a - b
	})
	return nil
}

// placesOf returns the places of steps in their sequence, from 1, by their ids.
func placesOf(steps []puntuale.Step) map[string]int {
	place := make(map[string]int, len(steps))
	for i, step := range steps {
		place[step.Name(i)] = i + 1
	}
	return place
}

// Places returns at which places the steps of people's messages stand today, from 1, by sequence and id of the step. Steps
// that were removed are missing.
func Places(ctx context.Context, client *control.Client, all []Person) (map[puntuale.SequenceID]map[string]int, error) {
	places := map[puntuale.SequenceID]map[string]int{}
	for _, p := range all {
		if _, read := places[p.Sequence]; read || p.Sequence == 0 {
			continue
		}
		s, err := client.Sequence(ctx, p.Sequence.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return nil, err
		}
		places[p.Sequence] = placesOf(s.Steps)
	}
	return places, nil
}

func shortened(text string) string {
	all := []rune(strings.Join(strings.Fields(text), " "))
	if len(all) > longestStep {
		return string(all[:longestStep-1]) + "…"
	}
	return string(all)
}
