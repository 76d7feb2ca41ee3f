package httpapi

import (
	"context"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
)

// officialBody documents the ids and secrets with which an Official session reaches Meta.
type officialBody struct {
	Groups        bool   `json:"groups_api,omitempty" doc:"The account has Meta's Groups API, and writes to groups by the ids that it gives"`
	PhoneNumberID string `json:"phone_number_id" read:"id" maxLength:"64" pattern:"^[0-9]+$" doc:"Meta's id of the number, not the number. A number is taken too."`
	AccessToken   string `json:"access_token" minLength:"1" maxLength:"4096" doc:"Of a system user, with the permission whatsapp_business_messaging"`
	AppSecret     string `json:"app_secret" minLength:"1" maxLength:"4096" doc:"Of the app that the token belongs to"`
	VerifyToken   string `json:"verify_token" minLength:"1" maxLength:"4096" doc:"Chosen by you, and given to Meta with the webhook's address"`
	Account       string `json:"business_account_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"Meta's id of the WhatsApp Business account that has the number; without it templates are neither listed nor watched. A number is taken too."`
}

// keysBody documents the body of the call that changes the ids and secrets of an Official session. If a member is
// missing, its value does not change.
type keysBody struct {
	Groups        *bool   `json:"groups_api,omitempty"`
	PhoneNumberID string  `json:"phone_number_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"As at the creation of a session. A number is taken too."`
	AccessToken   string  `json:"access_token,omitempty" maxLength:"4096"`
	AppSecret     string  `json:"app_secret,omitempty" maxLength:"4096"`
	VerifyToken   string  `json:"verify_token,omitempty" maxLength:"4096"`
	Account       *string `json:"business_account_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"Empty: none. A number is taken too."`
}

func (b *officialBody) keys() *puntuale.OfficialKeys {
	return &puntuale.OfficialKeys{
		PhoneNumberID: b.PhoneNumberID, AccessToken: b.AccessToken, AppSecret: b.AppSecret, VerifyToken: b.VerifyToken, BusinessAccountID: b.Account, GroupsAPI: b.Groups,
	}
}

func setOfficialKeys(ctx context.Context, c *control.Client, in *call, p *oneInput, body *keysBody) (sessionAnswer, error) {
	requested := control.NewKeys{
		OfficialKeys: puntuale.OfficialKeys{PhoneNumberID: body.PhoneNumberID, AccessToken: body.AccessToken, AppSecret: body.AppSecret, VerifyToken: body.VerifyToken},
		KeepGroups:   body.Groups == nil, NoAccount: body.Account != nil, Faults: in.refused,
	}
	if body.Groups != nil {
		requested.GroupsAPI = *body.Groups
	}
	if body.Account != nil {
		requested.BusinessAccountID = *body.Account
	}
	found, err := c.SetKeys(ctx, p.ID, requested)
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

type testAnswer struct {
	OK        bool            `json:"ok" doc:"Whether messages leave now"`
	Message   string          `json:"message" doc:"What is wrong, in plain Italian, or that nothing is"`
	English   string          `json:"message_en" doc:"The same in English"`
	Session   sessionAnswer   `json:"session"`
	Templates templatesStatus `json:"templates"`
}

// templatesStatus says when the session's templates were last read from Meta, and whether this succeeded.
type templatesStatus struct {
	Number  string `json:"phone_number_id,omitempty" doc:"Of the keys that the session has; the other keys are never shown"`
	Account string `json:"business_account_id,omitempty"`
	Synced  string `json:"synchronised_at,omitempty" format:"date-time" doc:"When the list was last read from Meta"`
	Problem string `json:"problem,omitempty" doc:"Why it could not be read the last time, in plain Italian"`
	English string `json:"problem_en,omitempty" doc:"The same in English"`
}

func templatesStatusOf(t puntuale.NetworkTemplates) templatesStatus {
	out := templatesStatus{Number: t.Number, Account: t.Account, Problem: catalogue.Italian.Sentence(t.Problem), English: catalogue.English.Sentence(t.Problem)}
	if !t.Synced.IsZero() {
		out.Synced = stamp(t.Synced)
	}
	return out
}

func testSession(ctx context.Context, c *control.Client, _ *call, p *oneInput) (testAnswer, error) {
	t, err := c.TestSession(ctx, p.ID)
	if err != nil {
		return testAnswer{}, err
	}
	return testAnswer{OK: t.OK, Message: catalogue.Italian.Sentence(t.Message), English: catalogue.English.Sentence(t.Message), Session: sessionOf(t.Session), Templates: templatesStatusOf(t.Templates)}, nil
}

// networkTemplateAnswer is a template, as Meta lists it.
type networkTemplateAnswer struct {
	Name     string       `json:"name"`
	Language string       `json:"language"`
	ID       string       `json:"id"`
	Status   string       `json:"status" doc:"Meta's word: APPROVED, PENDING, REJECTED, PAUSED, DISABLED, IN_APPEAL, DELETED and others"`
	Usable   bool         `json:"usable" doc:"Whether messages by it leave"`
	Why      string       `json:"why,omitempty" doc:"Why they do not, in plain Italian"`
	English  string       `json:"why_en,omitempty" doc:"The same in English"`
	Category string       `json:"category,omitempty" doc:"MARKETING, UTILITY, AUTHENTICATION"`
	Quality  string       `json:"quality,omitempty" doc:"GREEN, YELLOW, RED, UNKNOWN"`
	Reason   string       `json:"reason,omitempty" doc:"Meta's word why it is in this state"`
	Named    bool         `json:"named" doc:"Its places have names; else they are numbered"`
	Parts    []partAnswer `json:"components"`
	Changed  string       `json:"changed_at" format:"date-time" doc:"When its state was last heard of"`
}

type partAnswer struct {
	Kind         string         `json:"type" doc:"HEADER, BODY, FOOTER, BUTTONS"`
	Format       string         `json:"format,omitempty" doc:"Of a header: TEXT, IMAGE, VIDEO, DOCUMENT, LOCATION"`
	Text         string         `json:"text,omitempty"`
	Placeholders []string       `json:"places,omitempty" doc:"What has to be filled in, in order"`
	Buttons      []buttonAnswer `json:"buttons,omitempty"`
}

type buttonAnswer struct {
	Kind string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	Open bool   `json:"open" doc:"It needs an entry in buttons"`
}

type networkTemplatesAnswer struct {
	Status    templatesStatus         `json:"status"`
	Templates []networkTemplateAnswer `json:"templates"`
	Next      *string                 `json:"next_cursor"`
}

// networkTemplatesInput documents the query of the list of templates.
type networkTemplatesInput struct {
	ID string `path:"id" doc:"ID"`
	ListInput
}

func listNetworkTemplates(ctx context.Context, c *control.Client, in *call, p *networkTemplatesInput) (networkTemplatesAnswer, error) {
	found, err := c.NetworkTemplates(ctx, p.ID, p.page(in))
	if err != nil {
		return networkTemplatesAnswer{}, err
	}
	return networkTemplatesAnswer{templatesStatusOf(found.NetworkTemplates), each(found.All, networkTemplateOf), textOrNull(found.Next)}, nil
}

func networkTemplateOf(t puntuale.NetworkTemplate) networkTemplateAnswer {
	use, why := t.Status.Use()
	return networkTemplateAnswer{
		Name: t.Name, Language: t.Language, ID: t.ID, Status: string(t.Status), Usable: use == puntuale.TemplateUsable, Why: catalogue.Italian.Sentence(why), English: catalogue.English.Sentence(why),
		Category: t.Category, Quality: t.Quality, Reason: t.Reason, Named: t.Named, Parts: each(t.Parts, partOf), Changed: stamp(t.Changed),
	}
}

func partOf(p puntuale.TemplatePart) partAnswer {
	out := partAnswer{Kind: p.Kind, Format: p.Format, Text: p.Text, Placeholders: p.Placeholders()}
	if len(p.Buttons) > 0 {
		out.Buttons = each(p.Buttons, func(b puntuale.TemplateButton) buttonAnswer { return buttonAnswer{b.Kind, b.Text, b.URL, b.Open()} })
	}
	return out
}
