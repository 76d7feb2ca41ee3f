package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/draft"
)

// officialBody documents the ids and secrets with which an Official session reaches Meta.
type officialBody struct {
	Groups        bool   `json:"groups_api,omitempty" doc:"The account has Meta's Groups API, and writes to groups by the ids that it gives"`
	PhoneNumberID string `json:"phone_number_id" read:"id" maxLength:"64" pattern:"^[0-9]+$" doc:"Meta's id of the number, not the number. A number is taken too."`
	AccessToken   string `json:"access_token" minLength:"1" maxLength:"4096" doc:"Of a system user, with the permission whatsapp_business_messaging"`
	AppSecret     string `json:"app_secret" minLength:"1" maxLength:"4096" doc:"Of the app that the token belongs to"`
	VerifyToken   string `json:"verify_token" minLength:"1" maxLength:"4096" doc:"Chosen by you, and given to Meta with the webhook's address"`
	AppID         string `json:"app_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"Meta's id of the app that the token belongs to; only templates with a sample file need it. A number is taken too."`
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
	AppID         *string `json:"app_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"Empty: none. A number is taken too."`
	Account       *string `json:"business_account_id,omitempty" read:"id" maxLength:"64" pattern:"^[0-9]*$" doc:"Empty: none. A number is taken too."`
}

func (b *officialBody) keys() *puntuale.OfficialKeys {
	return &puntuale.OfficialKeys{
		PhoneNumberID: b.PhoneNumberID, AccessToken: b.AccessToken, AppSecret: b.AppSecret, VerifyToken: b.VerifyToken, BusinessAccountID: b.Account, AppID: b.AppID, GroupsAPI: b.Groups,
	}
}

func setOfficialKeys(ctx context.Context, c *control.Client, in *call, p *oneInput, body *keysBody) (sessionAnswer, error) {
	requested := control.NewKeys{
		OfficialKeys: puntuale.OfficialKeys{PhoneNumberID: body.PhoneNumberID, AccessToken: body.AccessToken, AppSecret: body.AppSecret, VerifyToken: body.VerifyToken},
		KeepGroups:   body.Groups == nil, NoAccount: body.Account != nil, NoApp: body.AppID != nil, Faults: in.refused,
	}
	if body.Groups != nil {
		requested.GroupsAPI = *body.Groups
	}
	if body.Account != nil {
		requested.BusinessAccountID = *body.Account
	}
	if body.AppID != nil {
		requested.AppID = *body.AppID
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
	Checks    []linkCheck     `json:"checks" doc:"What the session needs besides its keys. A test subscribes the app to the account's reports if this is missing"`
}

// linkCheck is one thing that a session needs, and whether it is there.
type linkCheck struct {
	Check   string `json:"check" enum:"webhook,subscription,display_name,payment,portfolio"`
	State   string `json:"state" enum:"ok,to_do,unknown"`
	Message string `json:"message" doc:"In plain Italian"`
	English string `json:"message_en" doc:"The same in English"`
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
	out := testAnswer{OK: t.OK, Message: catalogue.Italian.Sentence(t.Message), English: catalogue.English.Sentence(t.Message), Session: sessionOf(t.Session), Templates: templatesStatusOf(t.Templates)}
	out.Checks = each(t.Checks, func(k control.LinkCheck) linkCheck {
		return linkCheck{k.Check, k.State, catalogue.Italian.Sentence(k.Text), catalogue.English.Sentence(k.Text)}
	})
	return out, nil
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
	Wanted   string       `json:"category_wanted,omitempty" doc:"The category that the client asked for or accepted"`
	Advice   string       `json:"recommendation,omitempty" doc:"What Meta recommends after a rejection, in Meta's words"`
	Held     bool         `json:"held" doc:"Messages wait, because Meta made the template MARKETING; see pause_if_marketing in the settings"`
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
		Wanted: t.Wanted, Advice: t.Advice, Held: t.Held,
	}
}

func partOf(p puntuale.TemplatePart) partAnswer {
	out := partAnswer{Kind: p.Kind, Format: p.Format, Text: p.Text, Placeholders: p.Placeholders()}
	if len(p.Buttons) > 0 {
		out.Buttons = each(p.Buttons, func(b puntuale.TemplateButton) buttonAnswer { return buttonAnswer{b.Kind, b.Text, b.URL, b.Open()} })
	}
	return out
}

// draftBody documents the body of the calls that make and edit templates at Meta.
type draftBody struct {
	Name     string                 `json:"name,omitempty" pattern:"^[a-z0-9_]{0,512}$" doc:"Required for a new template. An edit may leave it out"`
	Language string                 `json:"language,omitempty" doc:"As Meta writes it: it, en_US. Required for a new template"`
	Category string                 `json:"category" enum:"UTILITY,MARKETING" doc:"Meta may give another one"`
	Text     string                 `json:"text" minLength:"1" maxLength:"4096" doc:"The body, at most 1,024 characters. Fields may be written as in a step; Meta gets their names in small letters. Or {{1}}, {{2}}"`
	Header   *puntuale.DraftHeader  `json:"header,omitempty"`
	Footer   string                 `json:"footer,omitempty" maxLength:"60"`
	Buttons  []puntuale.DraftButton `json:"buttons,omitempty" maxItems:"10"`
	Examples map[string]string      `json:"examples,omitempty" doc:"A value for each field, which Meta's reviewers see"`
}

type draftHeaderBody struct {
	Kind  string `json:"kind" enum:"text,image,video,document,location"`
	Text  string `json:"text,omitempty" maxLength:"60" doc:"Of a text; at most one field"`
	Media string `json:"media,omitempty" format:"uri" doc:"Address of a sample: jpg or png, mp4, pdf. The server uploads it to Meta; this needs app_id among Meta's values"`
}

type draftButtonBody struct {
	Kind  string `json:"kind" enum:"quick_reply,url,phone,copy_code"`
	Text  string `json:"text,omitempty" maxLength:"25" doc:"The label; a copy_code has Meta's"`
	URL   string `json:"url,omitempty" maxLength:"2000" doc:"May end with one field"`
	Phone string `json:"phone,omitempty" maxLength:"20" pattern:"^[+][0-9]*$"`
	Code  string `json:"code,omitempty" maxLength:"20" doc:"An example of the code"`
}

// requestedAnswer is what became of a request about a template.
type requestedAnswer struct {
	ID       string `json:"id" doc:"Meta's id of the template; empty while Meta's answer is not known"`
	Status   string `json:"status" doc:"Meta's word, or SUBMITTING while Meta's answer is not known: the server then finds out by itself"`
	Category string `json:"category" doc:"As Meta has it"`
}

type findingsAnswer struct {
	Findings []findingAnswer `json:"findings"`
}

type findingAnswer struct {
	Code     string `json:"code"`
	Location string `json:"location" doc:"The member of the body"`
	Text     string `json:"text" doc:"In plain Italian"`
	English  string `json:"text_en" doc:"The same in English"`
}

// oneTemplateInput documents the path of one template at Meta.
type oneTemplateInput struct {
	ID       string `path:"id" doc:"ID"`
	Template string `path:"template" doc:"Meta's id of the template"`
}

func registerNetworkTemplates(a *api) {
	const all, one = "/api/sessions/{id}/templates", "/api/sessions/{id}/templates/{template}"
	missing, clash := http.StatusNotFound, http.StatusConflict
	client(a, operation{id: "createNetworkTemplate", method: http.MethodPost, path: all, creates: createsAlways, body: draftBody{},
		summary: "Ask Meta to approve a template", description: "A second call with the same body makes no second template.",
		refusals: []int{missing, clash, http.StatusTooManyRequests}}, withBody(createNetworkTemplate))
	client(a, operation{id: "lintNetworkTemplate", method: http.MethodPost, path: all + "/lint", body: draftBody{},
		summary: "Tell what Meta may refuse in a template, or take for marketing", refusals: []int{missing, clash}}, withBody(lintNetworkTemplate))
	client(a, operation{id: "editNetworkTemplate", method: http.MethodPut, path: one, body: draftBody{}, creates: createsAlways,
		summary: "Ask Meta to replace the content of a template", refusals: []int{missing, clash}}, withBody(editNetworkTemplate))
	client(a, operation{id: "unpauseNetworkTemplate", method: http.MethodPost, path: one + "/unpause", creates: createsAlways,
		summary: "Ask Meta to end the pause of a template", refusals: []int{missing, clash}}, unpauseNetworkTemplate)
	client(a, operation{id: "deleteNetworkTemplate", method: http.MethodDelete, path: one,
		summary: "Ask Meta to delete one language of a template", description: "Meta then locks the name for 30 days.", refusals: []int{missing, clash}}, deleteNetworkTemplate)
}

func (b *draftBody) requested(faults []puntuale.Fault) control.NewDraft {
	return control.NewDraft{TemplateDraft: puntuale.TemplateDraft{
		Name: b.Name, Language: b.Language, Category: b.Category, Text: b.Text, Header: b.Header, Footer: b.Footer, Buttons: b.Buttons, Examples: b.Examples,
	}, Faults: faults}
}

func requestedOf(r control.RequestedTemplate) requestedAnswer {
	category := r.Template.Category
	if category == "" {
		category = r.Draft.Category
	}
	return requestedAnswer{r.NetworkID, r.Status(), category}
}

func createNetworkTemplate(ctx context.Context, c *control.Client, in *call, p *oneInput, body *draftBody) (requestedAnswer, error) {
	r, err := c.CreateNetworkTemplate(ctx, p.ID, body.requested(in.refused))
	return requestedOf(r), err
}

func lintNetworkTemplate(ctx context.Context, c *control.Client, in *call, p *oneInput, body *draftBody) (findingsAnswer, error) {
	all, err := c.LintTemplate(ctx, p.ID, body.requested(in.refused))
	return findingsAnswer{each(all, func(f draft.Finding) findingAnswer {
		return findingAnswer{string(f.Reason.Code), f.Location, catalogue.Italian.Sentence(f.Reason), catalogue.English.Sentence(f.Reason)}
	})}, err
}

func editNetworkTemplate(ctx context.Context, c *control.Client, in *call, p *oneTemplateInput, body *draftBody) (requestedAnswer, error) {
	r, err := c.EditNetworkTemplate(ctx, p.ID, p.Template, body.requested(in.refused))
	return requestedOf(r), err
}

func unpauseNetworkTemplate(ctx context.Context, c *control.Client, _ *call, p *oneTemplateInput) (requestedAnswer, error) {
	r, err := c.UnpauseNetworkTemplate(ctx, p.ID, p.Template)
	return requestedOf(r), err
}

func deleteNetworkTemplate(ctx context.Context, c *control.Client, _ *call, p *oneTemplateInput) (requestedAnswer, error) {
	r, err := c.DeleteNetworkTemplate(ctx, p.ID, p.Template)
	return requestedOf(r), err
}
