package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerSettings(a *api) {
	client(a, operation{id: "getSettings", method: http.MethodGet, path: "/api/settings", strict: true,
		summary: "Read what the client decided about the people that it writes to"}, getSettings)
	client(a, operation{id: "changeSettings", method: http.MethodPatch, path: "/api/settings", body: settingsBody{}, strict: true, closed: true,
		summary: "Change some of these decisions"}, changeSettings)
}

// settingsBody documents the body of the call that changes settings.
type settingsBody struct {
	Remember      *bool    `json:"remember,omitempty" doc:"true: everybody who is written to becomes a contact"`
	KeepReplies   string   `json:"keep_replies,omitempty" enum:"known,all,none" doc:"known: of contacts, of people written to within 30 days, and replies that had an effect"`
	Consent       string   `json:"consent,omitempty" enum:"free,required" doc:"required: marketing needs a person's consent"`
	OptOutWords   []string `json:"opt_out_words,omitempty" maxItems:"50" doc:"A message that is one of them, as a whole, is an opt-out. Empty: the usual words"`
	OptOutAnswer  *string  `json:"opt_out_answer,omitempty" maxLength:"4096" doc:"Confirms an opt-out, once; empty: nothing does"`
	TakeoverHours *int     `json:"takeover_hours,omitempty" minimum:"0" maximum:"720" doc:"How long automations leave a person alone whom the client's people answered"`
	AutomatedMost *int     `json:"automated_most,omitempty" minimum:"0" maximum:"100" doc:"How many starts and sends of automations a person gets in 24 hours. 0: none"`
}

type settingsAnswer struct {
	Remember      bool     `json:"remember"`
	KeepReplies   string   `json:"keep_replies" enum:"known,all,none"`
	Consent       string   `json:"consent" enum:"free,required"`
	OptOutWords   []string `json:"opt_out_words"`
	OptOutAnswer  string   `json:"opt_out_answer"`
	TakeoverHours int      `json:"takeover_hours"`
	AutomatedMost int      `json:"automated_most"`
}

func settingsOf(s puntuale.ClientSettings) settingsAnswer {
	words := s.OptOutWords
	if words == nil {
		words = puntuale.DefaultOptOutWords()
	}
	return settingsAnswer{s.Remember, string(s.KeepReplies), string(s.Consent), words, s.OptOutAnswer, s.TakeoverHours, s.AutomatedMost}
}

func getSettings(ctx context.Context, c *control.Client, in *call, _ *struct{}) (settingsAnswer, error) {
	if len(in.unknown) > 0 {
		return settingsAnswer{}, puntuale.Invalid(in.unknown...)
	}
	s, err := c.Settings(ctx)
	if err != nil {
		return settingsAnswer{}, err
	}
	return settingsOf(s), nil
}

func changeSettings(ctx context.Context, c *control.Client, in *call, _ *struct{}) (settingsAnswer, error) {
	body, err := in.object()
	if err != nil {
		return settingsAnswer{}, err
	}
	patch := readSettings(body)
	if err := body.err(); err != nil {
		return settingsAnswer{}, err
	}
	body.refuseUndocumented(settingsBody{})
	s, err := c.UpdateSettings(ctx, patch, append(in.unknown, *body.refused...)...)
	if err != nil {
		return settingsAnswer{}, err
	}
	return settingsOf(s), nil
}

// readSettings reads the settings that a body changes.
func readSettings(o *object) (p puntuale.SettingsPatch) {
	p.Remember = o.flag("remember")
	if text := o.text("keep_replies"); o.has("keep_replies") {
		p.KeepReplies = new(puntuale.KeepReplies(text))
	}
	if text := o.text("consent"); o.has("consent") {
		p.Consent = new(puntuale.ConsentRule(text))
	}
	if words := o.texts("opt_out_words"); o.has("opt_out_words") {
		if words == nil {
			words = []string{}
		}
		p.OptOutWords = &words
	}
	if text := o.text("opt_out_answer"); o.has("opt_out_answer") {
		p.OptOutAnswer = &text
	}
	if n := o.wholeOrNil("takeover_hours"); o.has("takeover_hours") {
		p.TakeoverHours = n
	}
	if n := o.wholeOrNil("automated_most"); o.has("automated_most") {
		p.AutomatedMost = n
	}
	return p
}
