package httpapi

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
)

// checkAnswer is what a check of a campaign found.
type checkAnswer struct {
	Digest     *string         `json:"digest" doc:"null while the check goes on"`
	State      string          `json:"state" enum:"draft,checking,ready"`
	Done       int             `json:"done" doc:"Recipients looked at so far"`
	Recipients int             `json:"recipients"`
	Valid      int             `json:"valid"`
	HeldOut    int             `json:"held_out" doc:"Recipients of the holdout: neither valid nor refused"`
	Variants   []variantCount  `json:"variants,omitempty" doc:"Valid recipients of each variant"`
	Messages   int             `json:"messages"`
	Needed     int             `json:"credits_needed"`
	Left       string          `json:"credits_left" doc:"A number, or Illimitati"`
	First      *string         `json:"first" format:"date-time" doc:"When the first message leaves"`
	Last       *string         `json:"last" format:"date-time" doc:"And the last one, at this pace, in this window and within the session's limits"`
	Refused    []refusedAnswer `json:"refused"`
	Samples    []sampleAnswer  `json:"samples"`
	Longest    int             `json:"longest_text" doc:"Characters"`
	Limit      *limitAnswer    `json:"limit,omitempty" doc:"The limit that decides when it ends"`
	Warnings   []warningOfStep `json:"warnings" doc:"What may be wrong, although the campaign may start"`
	Ways       []wayAnswer     `json:"ways,omitempty" doc:"Of an Official session: how the messages would leave, as things are now"`
	Cost       *costAnswer     `json:"cost" doc:"What Meta takes for the messages, by the price table; null for other sessions than Official ones"`
}

// wayAnswer says how many messages leave in one way.
type wayAnswer struct {
	Way      string `json:"way" enum:"free_text,direct_send,template,refused"`
	Reason   string `json:"way_reason" doc:"In plain Italian"`
	Messages int    `json:"messages"`
}

type variantCount struct {
	Key        string `json:"key" enum:"A,B,C,D"`
	Recipients int    `json:"recipients"`
}

type refusedAnswer struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

type sampleAnswer struct {
	Line    int    `json:"line"`
	Written string `json:"written" doc:"The number as the list has it"`
	Phone   string `json:"phone"`
	At      string `json:"at" format:"date-time"`
	Text    string `json:"text"`
	Variant string `json:"variant,omitempty" doc:"Of a campaign with several: which one this is"`
}

type limitAnswer struct {
	Code      string `json:"code" enum:"session_per_minute,session_per_day,cold_per_minute,cold_per_day,portfolio" doc:"The session's own pace; its pace for people who do not know it; how many people Meta lets the business write to first"`
	PerMinute int    `json:"per_minute,omitempty"`
	PerDay    int    `json:"per_day,omitempty"`
	Days      int    `json:"days,omitempty" doc:"On which messages leave"`
	Used      int    `json:"used,omitempty" doc:"Only of portfolio: people of the last 24 hours, by all numbers of the business"`
	Reserved  int    `json:"reserved,omitempty" doc:"Only of portfolio: people with messages planned for the next 24 hours, which go first"`
}

type warningOfStep struct {
	Code string `json:"code" enum:"no_opt_out,not_shown" doc:"no_opt_out: marketing text that gives no hint how to get no more of it. not_shown: the session's network shows text instead of the list, the link button or the question"`
	Step int    `json:"step" doc:"From 0"`
}

// costAnswer is the price that a network bills for messages.
type costAnswer struct {
	Currency string    `json:"currency"`
	Amount   string    `json:"amount" doc:"An exact decimal number, without the messages that have no price. Where the partner set its own price, at this one"`
	Date     string    `json:"date" format:"date" doc:"Of the price table"`
	Rows     []costRow `json:"rows" doc:"By country and category: the 20 with the most messages"`
	Unknown  int       `json:"unknown" doc:"Messages without a price: their country or category is not in the table, or not known"`
}

// TransformSchema documents that the value may be null.
func (*costAnswer) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

type costRow struct {
	Country  *string `json:"country" doc:"Two letters, of the recipient's number"`
	Category *string `json:"category" doc:"marketing, utility, authentication, service, or Meta's other words"`
	Messages int     `json:"messages"`
	Amount   *string `json:"amount" doc:"null: there is no price"`
}

func checkOf(k puntuale.CampaignCheck, left string) checkAnswer {
	out := checkAnswer{
		Digest: textOrNull(k.Digest), State: puntuale.CampaignReady.String(), Done: k.Done, Recipients: k.Recipients, Valid: k.Valid, HeldOut: k.HeldOut,
		Messages: k.Messages, Needed: k.Messages, Left: left, First: stampOrNull(k.First), Last: stampOrNull(k.Last), Longest: k.Longest,
		Refused: each(k.Refused, func(g puntuale.RefusedGroup) refusedAnswer { return refusedAnswer(g) }),
		Samples: each(k.Samples, func(s puntuale.CampaignSample) sampleAnswer {
			return sampleAnswer{s.Line, s.Written, s.Phone, stamp(s.At), s.Text, s.Variant}
		}),
	}
	out.Warnings = each(k.Warnings, func(w puntuale.CampaignWarning) warningOfStep { return warningOfStep(w) })
	for i, n := range k.Variants {
		out.Variants = append(out.Variants, variantCount{puntuale.VariantKey(i), n})
	}
	for _, w := range k.Ways {
		out.Ways = append(out.Ways, wayAnswer{string(w.Way), catalogue.Italian.Sentence(puntuale.Because(w.Reason)), w.Messages})
	}
	out.Cost = costOf(k.Cost)
	if k.Digest == "" {
		out.State = puntuale.CampaignChecking.String()
	} else {
		out.Done = k.Recipients
	}
	if k.Limit != nil {
		out.Limit = (*limitAnswer)(k.Limit)
	}
	return out
}

func costOf(c *puntuale.CampaignCost) *costAnswer {
	if c == nil {
		return nil
	}
	return &costAnswer{c.Currency, c.Amount, c.Date, each(c.Rows, func(r puntuale.CostRow) costRow {
		return costRow{textOrNull(r.Country), textOrNull(r.Category), r.Messages, textOrNull(r.Amount)}
	}), c.Unknown}
}

func creditsLeft(c *control.Client) string {
	if left := c.Account().Credits; left != nil {
		return strconv.FormatInt(*left, 10)
	}
	return puntuale.UnlimitedCredits
}

// billAnswer compares the estimated cost of a campaign with the network's bill.
type billAnswer struct {
	Estimated *costAnswer `json:"estimated" doc:"By the last check; null: it said nothing"`
	Reported  *costAnswer `json:"reported" doc:"Of the messages that Meta delivered and bills, as its webhooks told so far, at the prices of the present table"`
	Free      int         `json:"free" doc:"Messages that Meta delivered for nothing"`
}

// TransformSchema documents that the value may be null.
func (*billAnswer) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

func billOf(b *control.CampaignBill) *billAnswer {
	if b == nil {
		return nil
	}
	return &billAnswer{costOf(b.Estimated), costOf(b.Reported), b.Free}
}

// variantBody documents one variant of a campaign's message.
type variantBody struct {
	Share    int              `json:"share" read:"need" minimum:"1" maximum:"99" doc:"Percent of the recipients; 100 in all"`
	Template string           `json:"template,omitempty" doc:"Name of a template; else content"`
	Content  *campaignContent `json:"content,omitempty"`
	_        closedCheck
}

func (b *variantBody) step() puntuale.Step {
	if b.Content == nil {
		return puntuale.Step{Template: b.Template}
	}
	return b.Content.step()
}

func (c *campaignContent) step() puntuale.Step {
	return puntuale.Step{
		Text: c.Text, Media: c.Media, MediaName: c.MediaName, Latitude: c.Latitude, Longitude: c.Longitude, OnUncertain: puntuale.OnUncertain(c.OnUncertain),
	}
}

type variantAnswer struct {
	Key      string `json:"key" enum:"A,B,C,D"`
	Share    int    `json:"share"`
	Text     string `json:"text,omitempty"`
	Template string `json:"template,omitempty"`
}
