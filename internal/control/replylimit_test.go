package control_test

import (
	"context"
	"encoding/json"
	"math"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control"
)

// replyLimits are the limits of calls about replies, consent, and drafts of templates.
var replyLimits = []limit{
	{"AnswerFromSandbox", "invalid body.phone body.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.AnswerFromSandbox(ctx, control.SandboxReply{Phone: nul, Text: long, Session: w.session})
		return err
	}},
	{"AddConsent", "invalid body.phone body.purpose body.change body.source body.words", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddConsent(ctx, control.ConsentCall{Phone: nul, Purpose: long, Change: long, Source: long, Words: long}, control.Once[puntuale.Consent]{})
		return err
	}},
	{"AddConsent", "invalid body.purpose body.change body.source", func(ctx context.Context, w *limited) error {
		_, err := w.client.AddConsent(ctx, control.ConsentCall{Phone: "3331234567"}, control.Once[puntuale.Consent]{})
		return err
	}},
	{"Consents", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Consents(ctx, nul, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"ConsentStatuses", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.ConsentStatuses(ctx, nul+long)
		return err
	}},
	{"MarketingRefused", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarketingRefused(ctx, nul, long)
		return err
	}},
	{"Replies", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Replies(ctx, nul, true, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"Thread", "invalid query.phone query.limit query.cursor", func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Thread(ctx, nul, wide)
		return sorted(err, "query.phone", "query.limit", "query.cursor")
	}},
	{"Conversations", saysWide, func(ctx context.Context, w *limited) error {
		_, _, err := w.client.Conversations(ctx, true, wide)
		return err
	}},
	{"Conversation", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.Conversation(ctx, nul+long)
		return err
	}},
	{"MarkRead", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarkRead(ctx, nul+long, math.MaxInt64)
		return err
	}},
	{"MarkReadAsked", "invalid body.phone body.last", func(ctx context.Context, w *limited) error {
		_, err := w.client.MarkReadAsked(ctx, nul, long)
		return err
	}},
	{"ReplyWindowEnd", "", func(ctx context.Context, w *limited) error {
		_, err := w.client.ReplyWindowEnd(ctx, math.MaxInt64, nul+long)
		return err
	}},
	{"Person", "invalid body.phone", func(ctx context.Context, w *limited) error {
		_, err := w.client.Person(ctx, long)
		return err
	}},
	{"Answer", "invalid body.phone body.text", func(ctx context.Context, w *limited) error {
		_, err := w.client.Answer(ctx, control.SingleCall{Phone: nul, Fields: map[string]json.RawMessage{"text": json.RawMessage(`"` + long + `"`)}})
		return err
	}},
	{"Send", "invalid body.purpose", func(ctx context.Context, w *limited) error {
		_, err := w.client.Send(ctx, control.SingleCall{Phone: "3331234567", Purpose: nul, Fields: map[string]json.RawMessage{"text": json.RawMessage(`"a"`)}})
		return err
	}},
	{"AnswerBooking", "not_found", func(ctx context.Context, w *limited) error {
		return w.client.AnswerBooking(ctx, puntuale.TakenMessage{}, booking.FoundAnswer{Question: puntuale.Question{Reference: long}})
	}},
	{"UpdateSettings", "invalid body.keep_replies body.consent body.opt_out_words body.opt_out_answer body.takeover_hours body.automated_most", func(ctx context.Context, w *limited) error {
		_, err := w.client.UpdateSettings(ctx, puntuale.SettingsPatch{
			KeepReplies: new(puntuale.KeepReplies(nul)), Consent: new(puntuale.ConsentRule(long)), OptOutWords: &many, OptOutAnswer: new(long), TakeoverHours: new(math.MaxInt), AutomatedMost: new(-1),
		}, nil)
		return err
	}},
	{"UpdateSettings", "invalid body.opt_out_words[0] body.opt_out_words[1]", func(ctx context.Context, w *limited) error {
		_, err := w.client.UpdateSettings(ctx, puntuale.SettingsPatch{OptOutWords: &[]string{"!?", long}}, nil)
		return err
	}},
	{"CreateNetworkTemplate", saysDraft, func(ctx context.Context, w *limited) error {
		_, err := w.client.CreateNetworkTemplate(ctx, w.official, longDraft)
		return err
	}},
	{"LintTemplate", saysDraft, func(ctx context.Context, w *limited) error {
		_, err := w.client.LintTemplate(ctx, w.official, longDraft)
		return err
	}},
	{"EditNetworkTemplate", "not_found", func(ctx context.Context, w *limited) error { // the same checks follow, for a template that there is
		_, err := w.client.EditNetworkTemplate(ctx, w.official, long, longDraft)
		return err
	}},
}

var longDraft = control.NewDraft{TemplateDraft: puntuale.TemplateDraft{
	Name: long, Language: long, Category: long, Text: long, Footer: long, Header: &puntuale.DraftHeader{Kind: "text", Text: long},
	Buttons: []puntuale.DraftButton{{Kind: "quick_reply", Text: long}},
}}

const saysDraft = "invalid body.name body.language body.category body.text body.header.text body.footer body.buttons[0].text"
