package campaign

import (
	"context"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
)

// campaignRoutes are the pages of campaigns: the wizard that creates a campaign, the list, and the progress of each
// campaign. Methods of package control write the changes of state into the audit log.
var campaignRoutes = []page.Route{
	page.Get("/c/{client}/campaigns", page.ClientSide, puntuale.Reader, campaigns),
	page.Get("/c/{client}/campaigns/new", page.ClientSide, puntuale.Staff, newCampaign),
	page.Post("/c/{client}/campaigns", page.ClientSide, puntuale.Staff, "campaign.create", createCampaign),
	page.Get("/c/{client}/campaigns/{id}", page.ClientSide, puntuale.Reader, campaign),
	page.Get("/c/{client}/campaigns/{id}/what", page.ClientSide, puntuale.Staff, campaignWhat),
	page.Post("/c/{client}/campaigns/{id}/what", page.ClientSide, puntuale.Staff, "campaign.update", changeWhat),
	page.Get("/c/{client}/campaigns/{id}/people", page.ClientSide, puntuale.Staff, campaignPeople),
	page.Post("/c/{client}/campaigns/{id}/people", page.ClientSide, puntuale.Staff, "campaign.recipients", uploadPeople),
	page.Post("/c/{client}/campaigns/{id}/tags", page.ClientSide, puntuale.Staff, "campaign.recipients", takeTagged),
	page.Post("/c/{client}/campaigns/{id}/columns", page.ClientSide, puntuale.Staff, "campaign.columns", mapPeople),
	page.Get("/c/{client}/campaigns/{id}/check", page.ClientSide, puntuale.Staff, campaignCheck),
	page.Post("/c/{client}/campaigns/{id}/check", page.ClientSide, puntuale.Staff, "campaign.checking", checkCampaign),
	page.Get("/c/{client}/campaigns/{id}/when", page.ClientSide, puntuale.Staff, campaignWhen),
	page.Post("/c/{client}/campaigns/{id}/when", page.ClientSide, puntuale.Staff, "campaign.update", changeWhen),
	page.Get("/c/{client}/campaigns/{id}/start", page.ClientSide, puntuale.Staff, campaignStart),
	page.Post("/c/{client}/campaigns/{id}/start", page.ClientSide, puntuale.Owner, "campaign.running", startCampaign),
	page.Post("/c/{client}/campaigns/{id}/pause", page.ClientSide, puntuale.Staff, "campaign.paused", pauseCampaign),
	page.Post("/c/{client}/campaigns/{id}/resume", page.ClientSide, puntuale.Owner, "campaign.resuming", resumeCampaign),
	page.Post("/c/{client}/campaigns/{id}/cancel", page.ClientSide, puntuale.Staff, "campaign.cancelling", cancelCampaign),
	page.Post("/c/{client}/campaigns/{id}/retry", page.ClientSide, puntuale.Owner, "campaign.retry", retryCampaign),
	page.Get("/c/{client}/campaigns/{id}/export", page.ClientSide, puntuale.Owner, exportRecipients),
}

func campaignAddress(v *page.Request, id puntuale.CampaignID, more string) string {
	return v.Frame.Place.Base + "/campaigns/" + id.String() + more
}

func campaigns(v *page.Request) error {
	rows, next, err := v.Client.Campaigns(v.Ctx(), request.Page{Limit: "50", Cursor: v.Query("cursor")})
	if err != nil {
		return err
	}
	list := CampaignList{Rows: rows, Cursor: v.Query("cursor"), Next: next}
	if v.Query("part") == "rows" {
		return v.Show(CampaignRows(list))
	}
	if list.Count, err = page.Total(v.Client.CountCampaigns(v.Ctx())); err != nil {
		return err
	}
	return v.Show(Campaigns(list))
}

// campaign shows the progress of a campaign. If the campaign has not started, it redirects to the next wizard step.
func campaign(v *page.Request) error {
	part := v.Query("part")
	found, err := v.Client.CampaignProgress(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if step := wizardStep(found.Campaign); step != "" && part == "" && v.Person.User().Role >= puntuale.Staff {
		return v.Redirect(campaignAddress(v, found.ID, step))
	}
	page := CampaignPage{Campaign: found.Campaign, Counts: found.Counts, Filter: v.Query("state"), Reason: v.Query("reason"), After: v.Query("after")}
	before, _ := strconv.Atoi(v.Query("was"))
	since, _ := strconv.ParseInt(v.Query("since"), 10, 64)
	page.Measure(v.Now(), before, since)
	if part == "live" {
		return v.Show(CampaignLive(page))
	}
	if page.What, page.Session, err = campaignNames(v, found.Campaign); err != nil {
		return err
	}
	bill, err := v.Client.CampaignBill(v.Ctx(), found)
	if err != nil {
		return err
	}
	page.Bill = (*Bill)(bill)
	if err := recipients(v, &page); err != nil {
		return err
	}
	if part == "below" {
		return v.Show(CampaignBelow(page))
	}
	return v.Show(CampaignResults(page))
}

// wizardStep returns the next wizard step of a campaign that has not started. It returns "" if the campaign has
// started.
func wizardStep(c puntuale.Campaign) string {
	switch {
	case !c.Started.IsZero() || c.State.Ended():
		return ""
	case c.List == 0 || c.Feed.Size() == 0:
		return "/people"
	case c.Checked.Digest == "":
		return "/check"
	}
	return "/start"
}

// campaignNames returns the name of the campaign's content, and the name of its session.
func campaignNames(v *page.Request, c puntuale.Campaign) (content, session string, err error) {
	if c.Sequence != 0 {
		if content = c.Frozen.Sequence.Name; content == "" {
			content = page.SequenceName(v, c.Sequence.String())
		}
	}
	if c.Session != 0 {
		found, err := v.Client.Session(v.Ctx(), c.Session.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return content, "", err
		}
		session = found.Name
	}
	return content, session, nil
}

const recipientRows = 50

// recipients reads one page of the rows of a campaign's list of recipients.
func recipients(v *page.Request, p *CampaignPage) error {
	q := control.RecipientQuery{State: p.Filter, Reason: p.Reason, Limit: recipientRows + 1}
	q.After, _ = strconv.ParseInt(p.After, 10, 64)
	rows, err := v.Client.ListRecipients(v.Ctx(), p.Campaign.ID.String(), q)
	if err != nil {
		return err
	}
	if len(rows) > recipientRows {
		rows = rows[:recipientRows]
		p.Next = strconv.FormatInt(rows[recipientRows-1].N, 10)
	}
	p.Recipients = rows
	return v.NamePeople(page.Each(rows, func(r puntuale.Recipient) string { return r.Phone })...)
}

func pauseCampaign(v *page.Request) error {
	return changeCampaign(v, (*control.Client).PauseCampaign, "campaign.said_paused")
}

func resumeCampaign(v *page.Request) error {
	return changeCampaign(v, (*control.Client).ResumeCampaign, "campaign.said_resumed")
}

func cancelCampaign(v *page.Request) error {
	return changeCampaign(v, (*control.Client).CancelCampaign, "campaign.said_cancelled")
}

// changeCampaign calls the method that belongs to a button. The method itself writes the audit log.
func changeCampaign(v *page.Request, verb func(*control.Client, context.Context, string) (control.Campaign, error), said string) error {
	v.Quiet = true
	changed, err := verb(v.Client, v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.Say(said, "", "Name", changed.Name)
	if changed.Started.IsZero() {
		return v.Redirect(v.Frame.Place.Base + "/campaigns")
	}
	return v.Redirect(campaignAddress(v, changed.ID, ""))
}

func retryCampaign(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	retried, err := v.Client.RetryCampaign(v.Ctx(), v.Path("id"), f.Is("uncertain", "on"))
	if err != nil {
		return err
	}
	v.Quiet = retried == 0
	v.SetAuditTarget(v.Path("id"))
	v.Say("campaign.said_again", "", "N", retried)
	return v.Redirect(v.Frame.Place.Base + "/campaigns/" + v.Path("id"))
}

// exportRecipients writes the list of recipients as CSV, with the result of each row.
func exportRecipients(v *page.Request) error {
	found, err := v.Client.Campaign(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	q := control.RecipientQuery{State: v.Query("state"), Reason: v.Query("reason"), Limit: 1000}
	header := []string{v.T("campaign.line"), v.T("campaign.phone"), v.T("campaign.state"), v.T("campaign.why"), v.T("campaign.value"), v.T("campaign.message")}
	return v.SendCSV(v.T("campaign.file")+"-"+found.ID.String(), header, func(string) (rows [][]string, next string, err error) {
		all, err := v.Client.ListRecipients(v.Ctx(), v.Path("id"), q)
		for _, r := range all {
			rows = append(rows, exportedRecipient(v, r))
		}
		if len(all) == q.Limit {
			q.After = all[len(all)-1].N
			next = "more"
		}
		return rows, next, err
	})
}

func exportedRecipient(v *page.Request, r puntuale.Recipient) []string {
	reason, message := "", ""
	if r.Reason != "" {
		reason = v.T("campaign.refused." + r.Reason)
	}
	if r.Run != 0 {
		message = puntuale.MessageID(r.Run).String()
	}
	return []string{strconv.Itoa(r.Line), httpkit.InertCell(r.Phone), v.T("campaign.recipient." + r.State.String()), reason, httpkit.InertCell(v.Frame.Language.Reason(r.Refused())), message}
}
