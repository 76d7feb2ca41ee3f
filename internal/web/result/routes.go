// Package result contains the pages of results: what became of messages, the people behind each count, and a partner's
// results of its clients.
package result

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/control/result"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get("/c/{client}/results", page.ClientSide, puntuale.Reader, results),
	page.Get("/c/{client}/results/people", page.ClientSide, puntuale.Reader, people),
	page.Get("/c/{client}/results/people/export", page.ClientSide, puntuale.Reader, exportPeople),
	page.Post("/c/{client}/results/campaign", page.ClientSide, puntuale.Staff, "campaign.create", makeCampaign),
	page.Get("/partner/results", page.PartnerSide, puntuale.Reader, partnerResults),
}

// choices are the names of the parameters that choose messages.
var choices = []string{"by", "start", "end", "sequence", "step", "campaign", "rule", "template", "none", "session", "variant"}

// more are the further parameters of the people behind a count.
var more = []string{"is", "not", "reason", "button"}

// chosen returns the parameters of the address.
func chosen(v *page.Request, names ...string) url.Values {
	all := url.Values{}
	for _, name := range names {
		if text := strings.TrimSpace(v.Query(name)); text != "" {
			all.Set(name, text)
		}
	}
	return all
}

// asked returns the report that parameters ask for.
func asked(q url.Values) result.Report {
	return result.Report{By: q.Get("by"), Start: q.Get("start"), End: q.Get("end"), Sequence: q.Get("sequence"), Step: q.Get("step"), Campaign: q.Get("campaign"),
		Rule: q.Get("rule"), Template: q.Get("template"), None: q.Get("none"), Session: q.Get("session"), Variant: q.Get("variant")}
}

func results(v *page.Request) error {
	q := chosen(v, choices...)
	return show(v, q, func(r result.Report) (puntuale.ResultReport, puntuale.ResultFilter, error) {
		return result.Read(v.Ctx(), v.Client, r)
	})
}

func partnerResults(v *page.Request) error {
	return show(v, chosen(v, "by", "start", "end"), func(r result.Report) (puntuale.ResultReport, puntuale.ResultFilter, error) {
		return result.ReadPartner(v.Ctx(), v.Partner, r)
	})
}

// show reads the report, its days and the period before, and shows them.
func show(v *page.Request, q url.Values, read func(result.Report) (puntuale.ResultReport, puntuale.ResultFilter, error)) error {
	p := Page{Query: q, Form: view.NewForm("start", q.Get("start"), "end", q.Get("end")), Partner: v.Client == nil, Today: puntuale.DateOf(v.Now().In(v.Frame.Zone))}
	ask := asked(q)
	ask.Hours = !p.Partner
	var err error
	if p.Report, p.Filter, err = read(ask); err != nil {
		return refused(v, err, p)
	}
	p.Form = view.NewForm("start", p.Filter.Start.String(), "end", p.Filter.End.String())
	ask.By, ask.Hours, ask.Start, ask.End = string(puntuale.ResultByDay), false, p.Filter.Start.String(), p.Filter.End.String()
	if p.Days = p.Report; p.Filter.By != puntuale.ResultByDay {
		if p.Days, _, err = read(ask); err != nil {
			return err
		}
	}
	days := p.days()
	ask.Start, ask.End = p.Filter.Start.AddDays(-days).String(), p.Filter.Start.AddDays(-1).String()
	before, _, err := read(ask)
	if err != nil {
		return err
	}
	p.Before = before.Total
	if v.Client != nil {
		if p.Subject, err = subject(v, p.Filter); err != nil {
			return err
		}
		if p.Filter.Sequence != 0 {
			if err := p.varied(v); err != nil {
				return err
			}
		} else if p.Filter.Campaign != 0 {
			c, err := v.Client.Campaign(v.Ctx(), p.Filter.Campaign.String())
			if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
				return err
			}
			p.Running = err == nil && !c.State.Ended()
			p.Variants = len(c.Draft.Shares) > 0 || c.Draft.Holdout > 0
		}
	}
	return v.Show(Results(p))
}

// varied finds out which steps of the report's sequence have several texts.
func (p *Page) varied(v *page.Request) error {
	s, err := v.Client.Sequence(v.Ctx(), p.Filter.Sequence.String())
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return err
	}
	for i := range s.Steps {
		if len(s.Steps[i].Variants) > 0 {
			p.Varied = append(p.Varied, s.Steps[i].Name(i))
		}
	}
	p.Variants = p.Filter.By == puntuale.ResultByVariant || p.Filter.Step != nil && slices.Contains(p.Varied, strconv.Itoa(*p.Filter.Step))
	return nil
}

// refused shows the page with the faults of what a person chose.
func refused(v *page.Request, err error, p Page) error {
	e, _ := page.Refusal(err)
	if e == nil || e.Code != puntuale.CodeInvalid {
		return err
	}
	p.Form.Take(v.Frame.Language, e, "start", "end")
	p.Filter = puntuale.ResultFilter{By: puntuale.ResultBySequence, Start: p.Today, End: p.Today}
	return v.ShowAs(422, Results(p))
}

// subject returns the name of what the report is about, such as a sequence and one of its steps; "": everything.
func subject(v *page.Request, f puntuale.ResultFilter) (string, error) {
	by := f
	part := ""
	add := func(ask result.Report, key string) error {
		ask.Start, ask.End = f.Start.String(), f.End.String()
		found, _, err := result.Read(v.Ctx(), v.Client, ask)
		for _, r := range found.All {
			if r.Key == key {
				part += " · " + view.Or(r.Name, r.Key)
			}
		}
		return err
	}
	if f.Step != nil && f.Sequence != 0 {
		step := strconv.Itoa(*f.Step)
		if err := add(result.Report{By: string(puntuale.ResultByStep), Sequence: f.Sequence.String(), Step: step}, step); err != nil {
			return "", err
		}
		if f.Variant > 0 {
			key := puntuale.VariantKey(f.Variant - 1)
			if err := add(result.Report{By: string(puntuale.ResultByVariant), Sequence: f.Sequence.String(), Step: step, Variant: key}, key); err != nil {
				return "", err
			}
		}
	} else if f.Step != nil && f.Campaign != 0 {
		key := puntuale.VariantKey(*f.Step)
		if err := add(result.Report{By: string(puntuale.ResultByVariant), Campaign: f.Campaign.String(), Variant: key}, key); err != nil {
			return "", err
		}
	}
	switch {
	case f.Campaign != 0:
		by.By = puntuale.ResultByCampaign
	case f.Sequence != 0:
		by.By = puntuale.ResultBySequence
	case f.Rule != 0:
		by.By = puntuale.ResultByRule
	case f.Session != 0:
		by.By = puntuale.ResultBySession
	case f.Template == "" && len(f.None) > 0:
		return view.T(view.With(v.Ctx(), v.Frame), "result.none."+string(f.None[0])), nil
	default:
		return f.Template, nil
	}
	found, err := v.Client.Results(v.Ctx(), by)
	if err != nil || len(found.All) == 0 {
		return "", err
	}
	return found.All[0].Name + part, nil
}

// askedPeople returns the people that parameters ask for.
func askedPeople(q url.Values) result.PersonQuery {
	p := result.PersonQuery{Report: asked(q), Is: q.Get("is"), Not: q.Get("not"), Reason: q.Get("reason"), Button: q.Get("button")}
	p.By = string(puntuale.ResultByDay) // people are not grouped
	return p
}

func people(v *page.Request) error {
	q := chosen(v, append(choices, more...)...)
	ask := askedPeople(q)
	ask.Page = request.Page{Limit: page.RowsOfPage, Cursor: v.Query("cursor")}
	rows, next, err := result.List(v.Ctx(), v.Client, ask)
	if err != nil {
		return page.Lost(err)
	}
	p := PeoplePage{Query: q, Rows: rows, Cursor: v.Query("cursor"), Next: next, Form: view.NewForm()}
	if err := p.named(v); err != nil {
		return page.Lost(err)
	}
	if p.Count, p.All, err = result.Count(v.Ctx(), v.Client, askedPeople(q)); err != nil {
		return page.Lost(err)
	}
	return v.Show(People(p))
}

// named finds out of which period and of what the list is, and at which places of their sequences its messages stand.
func (p *PeoplePage) named(v *page.Request) error {
	var err error
	if p.Places, err = result.Places(v.Ctx(), v.Client, p.Rows); err != nil {
		return err
	}
	about := asked(p.Query)
	about.By = string(puntuale.ResultByDay)
	_, filter, err := result.Read(v.Ctx(), v.Client, about)
	if err != nil {
		return err
	}
	p.Start, p.End = filter.Start, filter.End
	p.Subject, err = subject(v, filter)
	return err
}

func exportPeople(v *page.Request) error {
	ask := askedPeople(chosen(v, append(choices, more...)...))
	return v.SendCSV("results", result.Columns, func(cursor string) (all [][]string, next string, err error) {
		ask.Page = request.Page{Limit: "1000", Cursor: cursor}
		rows, next, err := result.List(v.Ctx(), v.Client, ask)
		for _, r := range rows {
			all = append(all, result.Cells(r, httpkit.InertCell))
		}
		return all, next, err
	})
}

// makeCampaign makes a draft of a campaign for the people of the list.
func makeCampaign(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	q := chosen(v, append(choices, more...)...)
	v.Pass.LeaveSeat() // each of the transactions waits for its own seat
	made, err := result.Campaign(v.Ctx(), v.Client, askedPeople(q), control.NewCampaign{
		Name: f.Value("name"), Step: &puntuale.Step{Text: f.Value("step.text")}, CreatedBy: v.Person.User().ID,
	})
	if _, returnErr := v.Pass.Return(v.Ctx()); returnErr != nil && err == nil {
		err = returnErr
	}
	if err != nil {
		rows, next, failed := result.List(v.Ctx(), v.Client, askedPeople(q))
		if failed != nil {
			return err
		}
		p := PeoplePage{Query: q, Rows: rows, Next: next, Form: f, Open: true}
		if failed := p.named(v); failed != nil {
			return err
		}
		if p.Count, p.All, failed = result.Count(v.Ctx(), v.Client, askedPeople(q)); failed != nil {
			return err
		}
		return v.ShowRefused(err, f, campaignForm(p), People(p), "name", "step.text")
	}
	v.SetAuditTarget(made.ID.String())
	return v.Redirect(v.Frame.Place.Base + "/campaigns/" + made.ID.String() + "/people")
}

// daysBetween returns the number of days from one day to another.
func daysBetween(from, to puntuale.Date) int {
	return int(to.At(0, time.UTC).Sub(from.At(0, time.UTC)) / (24 * time.Hour))
}
