package campaign

import (
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// The third wizard step: the check.

func campaignCheck(v *page.Request) error { return checkedPage(v, "check", CampaignChecked) }
func campaignStart(v *page.Request) error { return checkedPage(v, "start", CampaignStart) }

func checkedPage(v *page.Request, step string, show func(CheckPage) templ.Component) error {
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return err
	}
	w := wizard(found, step)
	if !w.List {
		return v.Redirect(campaignAddress(v, found.ID, "/people"))
	}
	p, err := checkPage(v, found, w)
	if err != nil {
		return err
	}
	return v.Show(show(p))
}

// excludedRowsShown is how many of the refused rows the page of the check shows.
const excludedRowsShown = 20

func checkPage(v *page.Request, found control.Campaign, w Wizard) (p CheckPage, err error) {
	p = CheckPage{Wizard: w, Campaign: found.Campaign, Check: found.Checked, Left: v.Client.Account().Credits, Form: view.NewForm("digest", found.Checked.Digest)}
	p.Check.Samples = slices.Clone(p.Check.Samples)
	for i := range p.Check.Samples {
		s := &p.Check.Samples[i]
		s.Phone = v.ReadAs(s.Written, s.Phone)
	}
	if p.Excluded, err = v.Client.ListRecipients(v.Ctx(), found.ID.String(), control.RecipientQuery{State: puntuale.RecipientRefused.String(), Limit: excludedRowsShown}); err != nil {
		return p, err
	}
	if p.Trial, p.TrialSessions, err = trialForm(v, found.Campaign); err != nil {
		return p, err
	}
	if err := anyRow(v, &p); err != nil {
		return p, err
	}
	p.What, p.Session, err = campaignNames(v, found.Campaign)
	return p, err
}

// anyRow adds the message of the line for which the person asked.
func anyRow(v *page.Request, p *CheckPage) error {
	p.Row = view.NewForm("line", strings.TrimSpace(v.Query("line")))
	if p.Row.Value("line") == "" {
		return nil
	}
	line, err := strconv.Atoi(p.Row.Value("line"))
	if err != nil {
		p.Row.Refuse("line", v.Frame.Language.Fault(puntuale.Because(puntuale.FaultNotWhole)))
		return nil //nolint:nilerr // the form shows the fault
	}
	s, err := v.Client.SampleRecipient(v.Ctx(), p.ID.String(), line)
	if e, _ := page.Refusal(err); e != nil {
		p.Row.Refuse("line", v.Frame.Language.Fault(page.FirstFault(e)))
		return nil
	}
	s.Phone = v.ReadAs(s.Written, s.Phone)
	p.Sample = &s
	return err
}

// checkCampaign checks the list, and redirects to the page that requested the check. If the check takes long, that page
// reloads itself.
func checkCampaign(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	v.Quiet = true // package control writes the entry in the audit log
	step := "check"
	if f.Value("step") == "start" {
		step = "start"
	}
	v.Pass.LeaveSeat()
	check, err := v.Client.CheckCampaign(v.Ctx(), v.Path("id"))
	if _, returnErr := v.Pass.Return(v.Ctx()); returnErr != nil && err == nil {
		err = returnErr
	}
	if e, status := page.Refusal(err); e != nil {
		return v.ShowAs(status, CheckFailed(v.Path("id"), v.Frame.Language.Fault(page.FirstFault(e))))
	}
	if err != nil {
		return err
	}
	if check.Digest == "" && v.Partial() {
		return v.Show(CheckGoesOn(v.Path("id"), step, check.Done))
	}
	return v.Redirect(v.Frame.Place.Base + "/campaigns/" + v.Path("id") + "/" + step)
}
