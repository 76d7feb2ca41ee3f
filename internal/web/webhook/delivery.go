package webhook

import (
	"strconv"

	"puntuale/internal/control/request"
	"puntuale/internal/control/webhook"
	"puntuale/internal/web/page"
)

func delivery(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	d, err := o.Delivery(v.Ctx(), w.ID.String(), v.Path("delivery"))
	if err != nil {
		return err
	}
	names, err := clientNames(v, d.Client)
	if err != nil {
		return err
	}
	return v.Show(DeliveryPage(DeliveryDetail{Delivery: d.Delivery, Webhook: w, Base: base, Name: v.Path("delivery"), Whose: names[d.Client], Request: d.Request, Signed: d.Signed, Replaced: d.Replaced}))
}

// replayMany sends again the events of a period, or all events that failed.
func replayMany(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	call := webhook.ReplayCall{Failed: f.Is("failed", "on"), Period: request.Period{
		Start: []request.Bound{{Name: "from", Text: f.Value("from")}}, End: []request.Bound{{Name: "to", Text: f.Value("to")}},
	}}
	n, err := o.Replay(v.Ctx(), w.ID.String(), call)
	if err != nil {
		p, missing := webhookPage(v)
		if missing != nil {
			return missing
		}
		p.Replay, p.Refused = f, true
		return v.ShowRefused(err, f, ReplayForm(p), WebhookPage(p), "from", "to", "failed")
	}
	v.SetAuditTarget(w.ID.String() + " " + strconv.Itoa(n))
	return replayed(v, n, oneURL(base, w.ID))
}

func replayOne(v *page.Request) error {
	o, base, w, err := pathWebhook(v)
	if err != nil {
		return err
	}
	d, err := o.Delivery(v.Ctx(), w.ID.String(), v.Path("delivery"))
	if err != nil {
		return err
	}
	call := webhook.ReplayCall{Seqs: []int64{d.Seq}}
	if v.Client == nil {
		call.Client = d.Client.String()
	}
	n, err := o.Replay(v.Ctx(), w.ID.String(), call)
	if err != nil {
		return err
	}
	v.SetAuditTarget(w.ID.String() + " " + strconv.Itoa(n))
	return replayed(v, n, deliveryURL(base, d.Delivery))
}

// replayed shows how many events wait for another delivery.
func replayed(v *page.Request, n int, address string) error {
	if n == 0 {
		v.Quiet = true
		v.Toast("info", v.T("webhook.nothing_again"), "")
	} else {
		v.Say("webhook.again", "", "N", n)
	}
	return v.Redirect(address)
}
