package web

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// campaignRoutes are the campaigns: the wizard that makes one, the list, and how far each is. The changes of state stand in
// the audit log by their verbs.
var campaignRoutes = []Route{
	Get("/c/{client}/campaigns", ClientSide, puntuale.Reader, campaigns),
	Get("/c/{client}/campaigns/new", ClientSide, puntuale.Staff, newCampaign),
	Post("/c/{client}/campaigns", ClientSide, puntuale.Staff, "campaign.create", createCampaign),
	Get("/c/{client}/campaigns/{id}", ClientSide, puntuale.Reader, campaign),
	Get("/c/{client}/campaigns/{id}/what", ClientSide, puntuale.Staff, campaignWhat),
	Post("/c/{client}/campaigns/{id}/what", ClientSide, puntuale.Staff, "campaign.update", changeWhat),
	Get("/c/{client}/campaigns/{id}/people", ClientSide, puntuale.Staff, campaignPeople),
	Post("/c/{client}/campaigns/{id}/people", ClientSide, puntuale.Staff, "campaign.recipients", uploadPeople),
	Post("/c/{client}/campaigns/{id}/columns", ClientSide, puntuale.Staff, "campaign.columns", mapPeople),
	Get("/c/{client}/campaigns/{id}/check", ClientSide, puntuale.Staff, campaignCheck),
	Post("/c/{client}/campaigns/{id}/check", ClientSide, puntuale.Staff, "campaign.checking", checkCampaign),
	Get("/c/{client}/campaigns/{id}/when", ClientSide, puntuale.Staff, campaignWhen),
	Post("/c/{client}/campaigns/{id}/when", ClientSide, puntuale.Staff, "campaign.update", changeWhen),
	Get("/c/{client}/campaigns/{id}/start", ClientSide, puntuale.Staff, campaignStart),
	Post("/c/{client}/campaigns/{id}/start", ClientSide, puntuale.Owner, "campaign.running", startCampaign),
	Post("/c/{client}/campaigns/{id}/pause", ClientSide, puntuale.Staff, "campaign.paused", pauseCampaign),
	Post("/c/{client}/campaigns/{id}/resume", ClientSide, puntuale.Owner, "campaign.resuming", resumeCampaign),
	Post("/c/{client}/campaigns/{id}/cancel", ClientSide, puntuale.Staff, "campaign.cancelling", cancelCampaign),
	Post("/c/{client}/campaigns/{id}/retry", ClientSide, puntuale.Owner, "campaign.retry", retryCampaign),
	Get("/c/{client}/campaigns/{id}/export", ClientSide, puntuale.Owner, exportRecipients),
}

func campaignURL(v *Request, id puntuale.CampaignID, more string) string {
	return v.frame.Place.Base + "/campaigns/" + id.String() + more
}

func campaigns(v *Request) error {
	rows, next, err := v.client.Campaigns(v.ctx(), request.Page{Limit: "50", Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	list := view.CampaignList{Rows: rows, Cursor: v.query("cursor"), Next: next}
	if v.query("part") == "rows" {
		return v.show(view.CampaignRows(list))
	}
	return v.show(view.Campaigns(list))
}

// campaign shows how far a campaign is. One that has not started leads to the wizard's step that comes next.
func campaign(v *Request) error {
	part := v.query("part")
	found, err := v.client.CampaignProgress(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	if step := wizardStep(found.Campaign); step != "" && part == "" && v.person.User().Role >= puntuale.Staff {
		return v.Redirect(campaignURL(v, found.ID, step))
	}
	page := view.CampaignPage{Campaign: found.Campaign, Counts: found.Counts, Filter: v.query("state"), Reason: v.query("reason"), After: v.query("after")}
	was, _ := strconv.Atoi(v.query("was"))
	since, _ := strconv.ParseInt(v.query("since"), 10, 64)
	page.Measure(v.now(), was, since)
	if part == "live" {
		return v.show(view.CampaignLive(page))
	}
	if page.What, page.Session, err = campaignNames(v, found.Campaign); err != nil {
		return err
	}
	bill, err := v.client.CampaignBill(v.ctx(), found)
	if err != nil {
		return err
	}
	page.Bill = (*view.Bill)(bill)
	if err := recipients(v, &page); err != nil {
		return err
	}
	if part == "below" {
		return v.show(view.CampaignBelow(page))
	}
	return v.show(view.CampaignResults(page))
}

// wizardStep is the next step of a campaign that has not started; "" for one that has.
func wizardStep(c puntuale.Campaign) string {
	switch {
	case !c.Started.IsZero() || c.State.Ended():
		return ""
	case c.List == 0 || c.Feed.Waiting+c.Feed.Refused == 0:
		return "/people"
	case c.Checked.Digest == "":
		return "/check"
	}
	return "/start"
}

// campaignNames are what a campaign sends and by which session, as people call them.
func campaignNames(v *Request, c puntuale.Campaign) (what, session string, err error) {
	if c.Sequence != 0 {
		if what = c.Frozen.Sequence.Name; what == "" {
			what = sequenceName(v, c.Sequence.String())
		}
	}
	if c.Session != 0 {
		found, err := v.client.Session(v.ctx(), c.Session.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return what, "", err
		}
		session = found.Name
	}
	return what, session, nil
}

const recipientRows = 50

// recipients reads a page of the list's rows.
func recipients(v *Request, p *view.CampaignPage) error {
	q := control.RecipientQuery{State: p.Filter, Reason: p.Reason, Limit: recipientRows + 1}
	q.After, _ = strconv.ParseInt(p.After, 10, 64)
	rows, err := v.client.ListRecipients(v.ctx(), p.Campaign.ID.String(), q)
	if err != nil {
		return err
	}
	if len(rows) > recipientRows {
		rows = rows[:recipientRows]
		p.Next = strconv.FormatInt(rows[recipientRows-1].N, 10)
	}
	p.Recipients = rows
	return nil
}

func pauseCampaign(v *Request) error {
	return changeCampaign(v, (*control.Client).PauseCampaign, "campaign.said_paused")
}

func resumeCampaign(v *Request) error {
	return changeCampaign(v, (*control.Client).ResumeCampaign, "campaign.said_resumed")
}

func cancelCampaign(v *Request) error {
	return changeCampaign(v, (*control.Client).CancelCampaign, "campaign.said_cancelled")
}

// changeCampaign does what a button says. The verb notes it in the audit log.
func changeCampaign(v *Request, verb func(*control.Client, context.Context, string) (control.Campaign, error), said string) error {
	v.quiet = true
	changed, err := verb(v.client, v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	v.say(said, "", "Name", changed.Name)
	if changed.Started.IsZero() {
		return v.Redirect(v.frame.Place.Base + "/campaigns")
	}
	return v.Redirect(campaignURL(v, changed.ID, ""))
}

func retryCampaign(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	again, err := v.client.RetryCampaign(v.ctx(), v.path("id"), f.Is("uncertain", "on"))
	if err != nil {
		return err
	}
	v.quiet = again == 0
	v.did(v.path("id"))
	v.say("campaign.said_again", "", "N", again)
	return v.Redirect(v.frame.Place.Base + "/campaigns/" + v.path("id"))
}

// exportRecipients writes the list as CSV, with what became of each row.
func exportRecipients(v *Request) error {
	q := control.RecipientQuery{State: v.query("state"), Reason: v.query("reason"), Limit: 1000}
	found, err := v.client.Campaign(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	rows, err := v.client.ListRecipients(v.ctx(), v.path("id"), q)
	if err != nil {
		return err
	}
	v.answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+v.T("campaign.file")+"-"+found.ID.String()+`.csv"`)
	_, _ = io.WriteString(v.Writer, "\ufeff") // by which spreadsheets know UTF-8
	out := csv.NewWriter(v.Writer)
	if v.frame.Language.Code == "it" {
		out.Comma = ';'
	}
	out.UseCRLF = true
	_ = out.Write([]string{v.T("campaign.line"), v.T("campaign.phone"), v.T("campaign.state"), v.T("campaign.why"), v.T("campaign.value"), v.T("campaign.message")})
	connection := http.NewResponseController(v.Writer)
	for {
		v.pass.Rest() // a slow reader needs no place
		_ = connection.SetWriteDeadline(deadline(exportAllows))
		for _, r := range rows {
			_ = out.Write(exportedRecipient(v, r))
		}
		if out.Flush(); out.Error() != nil || len(rows) < q.Limit {
			return nil //nolint:nilerr // the reader is gone
		}
		q.After = rows[len(rows)-1].N
		if err := v.readOn(); err != nil {
			v.breakOff(err)
		}
		if rows, err = v.client.ListRecipients(v.ctx(), v.path("id"), q); err != nil {
			v.breakOff(err)
		}
	}
}

func exportedRecipient(v *Request, r puntuale.Recipient) []string {
	reason, message := "", ""
	if r.Reason != "" {
		reason = v.T("campaign.refused." + r.Reason)
	}
	if r.Run != 0 {
		message = puntuale.MessageID(r.Run).String()
	}
	return []string{strconv.Itoa(r.Line), inert(r.Phone), v.T("campaign.recipient." + r.State.String()), reason, inert(r.Value), message}
}
