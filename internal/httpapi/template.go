package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerTemplates(a *api) {
	const all, one = "/api/templates", "/api/templates/{id}"
	missing, clash := http.StatusNotFound, http.StatusConflict
	client(a, operation{id: "listTemplates", method: http.MethodGet, path: all, strict: true,
		summary: "List the templates, by id"}, listTemplates)
	clientOnce(a, operation{id: "createTemplate", method: http.MethodPost, path: all, creates: createsAlways, body: templateBody{},
		summary:     "Create a template",
		description: "Content that steps and single sends may name.", refusals: []int{clash}}, withBody(createTemplate))
	client(a, operation{id: "getTemplate", method: http.MethodGet, path: one, versioned: true,
		summary: "Get a template", refusals: []int{missing}}, getTemplate)
	client(a, operation{id: "replaceTemplate", method: http.MethodPut, path: one, body: templateBody{}, versioned: true,
		summary:     "Replace a template as a whole",
		description: "What was started before stays as it was.", refusals: changes(missing, clash)}, withBody(replaceTemplate))
	client(a, operation{id: "deleteTemplate", method: http.MethodDelete, path: one,
		summary: "Delete a template that no sequence names", refusals: []int{missing, clash}}, deleteTemplate)
}

// templateBody documents the body of a template.
type templateBody struct {
	Name      string   `json:"name" minLength:"1" maxLength:"200" doc:"Unique among the client's templates"`
	Text      string   `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}, as in a step"`
	Media     string   `json:"media,omitempty" doc:"Address of a media file, http or https; may hold fields"`
	MediaName string   `json:"media_name,omitempty" doc:"File name of the media; may hold fields"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees; together with longitude"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees; together with latitude"`

	Official *puntuale.Approved `json:"official,omitempty" doc:"The template that Meta approved, by which an Official session sends this one. Media and location go into its header"`
}

// approvedBody documents a [puntuale.Approved], in bodies and in answers.
type approvedBody struct {
	Name     string               `json:"name" pattern:"^[a-z0-9_]{1,512}$" doc:"The template's name at Meta"`
	Language string               `json:"language" doc:"As Meta writes it: it, en_US. Empty: the contact's language, else Italian, else English, else the first that there is"`
	Header   []puntuale.Parameter `json:"header,omitempty" maxItems:"100" doc:"What fills a text header"`
	Body     []puntuale.Parameter `json:"body,omitempty" maxItems:"100" doc:"What fills the places of the body, in their order"`
	Buttons  []puntuale.Button    `json:"buttons,omitempty" maxItems:"10" doc:"What fills those buttons that need something"`
}

type buttonBody struct {
	Index int    `json:"index" read:"need" minimum:"0" maximum:"9" doc:"The button's place among the template's, from 0"`
	Kind  string `json:"type" enum:"url,quick_reply,copy_code"`
	Text  string `json:"text" doc:"The end of the address, what comes back when it is pressed, or the code to copy; with {{field}} and {{field|fallback}}"`
}

type parameterBody struct {
	Name string `json:"name,omitempty" doc:"The place's name; of a template with numbered places none has one"`
	Text string `json:"text" doc:"With {{field}} and {{field|fallback}}"`
}

type templateAnswer struct {
	ID        string             `json:"id"`
	Name      string             `json:"name"`
	Text      string             `json:"text,omitempty"`
	Media     string             `json:"media,omitempty"`
	MediaName string             `json:"media_name,omitempty"`
	Latitude  *float64           `json:"latitude,omitempty"`
	Longitude *float64           `json:"longitude,omitempty"`
	Official  *puntuale.Approved `json:"official,omitempty"`
	Fields    []fieldAnswer      `json:"fields" doc:"The parametric fields that the template names"`
	Created   string             `json:"created_at" format:"date-time"`
	Updated   string             `json:"updated_at" format:"date-time"`
}

type templatesAnswer struct {
	Templates []templateAnswer `json:"templates"`
	Next      *string          `json:"next_cursor"`
}

func listTemplates(ctx context.Context, c *control.Client, in *call, p *ListInput) (templatesAnswer, error) {
	rows, next, err := c.Templates(ctx, p.page(in))
	if err != nil {
		return templatesAnswer{}, err
	}
	return templatesAnswer{each(rows, templateOf), textOrNull(next)}, nil
}

func createTemplate(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *templateBody) (templateAnswer, error) {
	created, err := c.CreateTemplate(ctx, body.requested(in.refused), once(in, p, templateOf))
	if err != nil {
		return templateAnswer{}, err
	}
	return templateOf(created), nil
}

func getTemplate(ctx context.Context, c *control.Client, in *call, p *oneInput) (templateAnswer, error) {
	found, err := c.Template(ctx, p.ID)
	if err != nil {
		return templateAnswer{}, err
	}
	in.tagged(found.Version())
	return templateOf(found), nil
}

func replaceTemplate(ctx context.Context, c *control.Client, in *call, p *changeInput, body *templateBody) (templateAnswer, error) {
	known, faults := in.knownVersions()
	requested := body.requested(append(in.refused, faults...))
	requested.Known = known
	replaced, err := c.ReplaceTemplate(ctx, p.ID, requested)
	if err != nil {
		return templateAnswer{}, err
	}
	in.tagged(replaced.Version())
	return templateOf(replaced), nil
}

func deleteTemplate(ctx context.Context, c *control.Client, _ *call, p *oneInput) (messageAnswer, error) {
	if err := c.DeleteTemplate(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Template eliminato"}, nil
}

func (b *templateBody) requested(faults []puntuale.Fault) control.NewTemplate {
	return control.NewTemplate{Template: puntuale.Template{
		Name: b.Name, Text: b.Text, Media: b.Media, MediaName: b.MediaName, Latitude: b.Latitude, Longitude: b.Longitude, Official: b.Official,
	}, Faults: faults}
}

func templateOf(t control.Template) templateAnswer {
	return templateAnswer{
		ID: idText64(t.ID), Name: t.Name, Text: t.Text, Media: t.Media, MediaName: t.MediaName, Latitude: t.Latitude,
		Longitude: t.Longitude, Official: t.Official, Fields: each(t.Fields, fieldOf), Created: stamp(t.Created), Updated: stamp(t.Updated),
	}
}
