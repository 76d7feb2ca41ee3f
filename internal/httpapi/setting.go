package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"puntuale"
	"puntuale/internal/control"
)

func registerSettings(a *api) {
	client(a, operation{id: "getSettings", method: http.MethodGet, path: "/api/settings", strict: true, versioned: true,
		summary: "Read what the client decided about the people that it writes to"}, getSettings)
	client(a, operation{id: "changeSettings", method: http.MethodPatch, path: "/api/settings", body: SettingsBody{}, strict: true, versioned: true,
		summary: "Change some of these decisions", refusals: changes()}, withBody(changeSettings))
}

type settingsInput struct {
	Match string `header:"If-Match" doc:"Entity tags, as ETag showed them: the change is made if what is stored has one of them, else the answer is 412. * or nothing: it is made in any case"`
}

// SettingsBody documents the body of the call that changes settings. It is exported, because huma leaves out embedded
// types that are not exported.
type SettingsBody struct {
	Remember      *bool                 `json:"remember,omitempty" doc:"true: everybody who is written to becomes a contact"`
	KeepReplies   *puntuale.KeepReplies `json:"keep_replies,omitempty" enum:"known,all,none" doc:"known: of contacts, of people written to within 30 days or with a planned message, and replies that had an effect"`
	Consent       *puntuale.ConsentRule `json:"consent,omitempty" enum:"free,required" doc:"required: marketing needs a person's consent"`
	OptOutWords   *[]string             `json:"opt_out_words,omitempty" maxItems:"50" doc:"A message that is one of them, as a whole, is an opt-out. Empty: the usual words"`
	OptOutAnswer  *string               `json:"opt_out_answer,omitempty" maxLength:"4096" doc:"Confirms an opt-out, once; empty: nothing does"`
	TakeoverHours *int                  `json:"takeover_hours,omitempty" minimum:"0" maximum:"720" doc:"How long automations leave a person alone whom the client's people answered"`
	AutomatedMost *int                  `json:"automated_most,omitempty" minimum:"0" maximum:"100" doc:"How many starts and sends of automations a person gets in 24 hours. 0: none"`
	ConfirmWords  *[]string             `json:"confirm_words,omitempty" maxItems:"50" doc:"A message that is one of them, as a whole, confirms the booking that the person was asked about. Empty: the usual words"`
	CancelWords   *[]string             `json:"cancel_words,omitempty" maxItems:"50" doc:"The same for cancelling"`
	ButtonLine    *string               `json:"button_line,omitempty" maxLength:"100" doc:"The line above the numbered lines that stand for buttons where the network shows none; empty: the usual line"`
	FlattenValues *bool                 `json:"flatten_values,omitempty" doc:"true: in values of approved templates each run of line breaks, tabs and spaces that Meta refuses becomes one space. false: such a value is a fault"`
	PauseCostlier *bool                 `json:"pause_if_marketing,omitempty" doc:"true: messages with a template wait when Meta makes it MARKETING, until a person accepts that. false: they leave, at the price of marketing"`
	TrackLinks    *bool                 `json:"track_links,omitempty" doc:"true: addresses in texts become links of this service, which count who follows them, unless the sequence says otherwise"`
	KeepMedia     *bool                 `json:"keep_media,omitempty" doc:"true: files in people's replies are fetched and kept as files of the client. false: they stay at their network"`
	_             closedCheck
}

type settingsAnswer struct {
	Remember      bool     `json:"remember"`
	KeepReplies   string   `json:"keep_replies" enum:"known,all,none"`
	Consent       string   `json:"consent" enum:"free,required"`
	OptOutWords   []string `json:"opt_out_words"`
	OptOutAnswer  string   `json:"opt_out_answer"`
	TakeoverHours int      `json:"takeover_hours"`
	AutomatedMost int      `json:"automated_most"`
	ConfirmWords  []string `json:"confirm_words"`
	CancelWords   []string `json:"cancel_words"`
	ButtonLine    string   `json:"button_line"`
	FlattenValues bool     `json:"flatten_values"`
	PauseCostlier bool     `json:"pause_if_marketing"`
	TrackLinks    bool     `json:"track_links"`
	KeepMedia     bool     `json:"keep_media"`
}

func settingsOf(s puntuale.ClientSettings) settingsAnswer {
	optOut, confirm, cancel := s.Words()
	line := cmp.Or(s.ButtonLine, puntuale.DefaultButtonLine)
	return settingsAnswer{s.Remember, string(s.KeepReplies), string(s.Consent), optOut, s.OptOutAnswer, s.TakeoverHours, s.AutomatedMost, confirm, cancel, line, s.FlattenValues, s.PauseCostlier, s.TrackLinks, s.KeepMedia}
}

func getSettings(ctx context.Context, c *control.Client, in *call, _ *struct{}) (settingsAnswer, error) {
	if len(in.unknown) > 0 {
		return settingsAnswer{}, puntuale.Invalid(in.unknown...)
	}
	s, err := c.Settings(ctx)
	if err != nil {
		return settingsAnswer{}, err
	}
	in.tagged(s.Version())
	return settingsOf(s), nil
}

func changeSettings(ctx context.Context, c *control.Client, in *call, _ *settingsInput, body *SettingsBody) (settingsAnswer, error) {
	known, faults := in.knownVersions()
	s, err := c.UpdateSettings(ctx, body.patch(), known, slices.Concat(in.unknown, in.refused, faults)...)
	if err != nil {
		return settingsAnswer{}, err
	}
	in.tagged(s.Version())
	return settingsOf(s), nil
}

func (b *SettingsBody) patch() puntuale.SettingsPatch {
	return puntuale.SettingsPatch{
		Remember: b.Remember, KeepReplies: b.KeepReplies, Consent: b.Consent, OptOutWords: b.OptOutWords, OptOutAnswer: b.OptOutAnswer,
		TakeoverHours: b.TakeoverHours, AutomatedMost: b.AutomatedMost, ConfirmWords: b.ConfirmWords, CancelWords: b.CancelWords, ButtonLine: b.ButtonLine, FlattenValues: b.FlattenValues, PauseCostlier: b.PauseCostlier, TrackLinks: b.TrackLinks, KeepMedia: b.KeepMedia,
	}
}
