package campaign

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// trialRoutes send a campaign's message to the person who writes the campaign, before anybody else gets it.
var trialRoutes = []page.Route{
	page.Post("/c/{client}/campaigns/{id}/trial", page.ClientSide, puntuale.Staff, "campaign.trial", sendTrial),
}

// trialForm returns the form of a trial, and the sessions that can send it: the campaign's, and simulated ones. It returns
// no sessions for a campaign that uses a sequence, because the sequence itself can be started for one person.
func trialForm(v *page.Request, found puntuale.Campaign) (*view.Form, []view.Option, error) {
	if found.Draft.Step == nil {
		return nil, nil, nil
	}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return nil, nil, err
	}
	f := view.NewForm("phone", "", "id_sessione", "", "key", v.Frame.Request)
	var options []view.Option
	for _, s := range sessions {
		own := s.ID == found.Session || found.Session == 0 && s.Default
		if !own && !s.Sandbox {
			continue
		}
		text := s.Name
		if s.Sandbox {
			text = v.T("campaign.trial_phone", "Name", s.Name)
		}
		options = append(options, view.Option{Value: s.ID.String(), Text: text})
		if own {
			f.Values.Set("id_sessione", s.ID.String())
		}
	}
	return f, options, nil
}

// sendTrial sends the message that the first valid recipient would get. It is no part of the campaign, so the campaign's
// figures do not count it.
func sendTrial(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return err
	}
	if found.Draft.Step == nil || len(found.Checked.Samples) == 0 {
		return puntuale.Conflict(puntuale.FaultCampaignChangedSinceCheck)
	}
	call, err := trialCall(v, found.Campaign, f)
	if err != nil {
		return err
	}
	started, err := v.Client.Send(v.Ctx(), call)
	if err != nil {
		p, failed := checkPage(v, found, wizard(found, "check"))
		if failed != nil {
			return failed
		}
		p.Trial = f
		return v.ShowRefused(err, f, TrialForm(p), CampaignChecked(p), "phone", "id_sessione")
	}
	v.SetAuditTarget(v.Path("id"))
	v.Say("campaign.trial_done", v.Frame.Place.Base+"/messages/"+started.IDs[0].String()+"/cancel", "Phone", view.Grouped(f.Value("phone")))
	return v.Redirect(campaignAddress(v, found.ID, "/check"))
}

// trialCall is the call of a single send with the content for the first valid recipient.
func trialCall(v *page.Request, found puntuale.Campaign, f *view.Form) (call control.SingleCall, err error) {
	sample := found.Checked.Samples[0]
	step := found.Draft.Variants()[min(max(0, puntuale.VariantOf(sample.Variant)), len(found.Draft.Others))]
	call = control.SingleCall{
		Phone: f.Value("phone"), Purpose: puntuale.PurposeService.String(), Session: f.Value("id_sessione"), Template: step.Template,
		Fields: map[string]json.RawMessage{}, Scope: http.MethodPost + " campaigns/trial", Key: f.Value("key"),
	}
	members := map[string]string{"phone": call.Phone, "id_sessione": call.Session}
	if step.Template == "" {
		members["text"], members["media"], members["media_name"] = sample.Text, step.Media, step.MediaName
	} else if err := trialFields(v, found, sample.Line, members); err != nil {
		return call, err
	}
	for name, text := range members {
		if name == "phone" || name == "id_sessione" || text == "" {
			continue
		}
		if call.Fields[name], err = json.Marshal(text); err != nil {
			return call, fmt.Errorf("write a call: %w", err)
		}
	}
	if call.Body, err = json.Marshal(members); err != nil {
		return call, fmt.Errorf("write a call: %w", err)
	}
	return call, nil
}

// trialFields adds the fields of the recipient in a line of the list.
func trialFields(v *page.Request, found puntuale.Campaign, line int, members map[string]string) error {
	list, err := v.Client.RecipientsOf(v.Ctx(), found.ID.String())
	if err != nil {
		return err
	}
	rows, err := v.Client.ListRecipients(v.Ctx(), found.ID.String(), control.RecipientQuery{State: puntuale.RecipientWaiting.String(), Limit: 1})
	if err != nil {
		return err
	}
	maps.Copy(members, found.Draft.Fields)
	for name, at := range list.Mapping {
		if name != "phone" && len(rows) > 0 && rows[0].Line == line && at < len(rows[0].Cells) && rows[0].Cells[at] != "" {
			members[name] = rows[0].Cells[at]
		}
	}
	return nil
}
