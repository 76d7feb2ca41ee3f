package control

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// Template is a template with the fields that it contains.
type Template struct {
	puntuale.Template
	Fields []puntuale.Field
}

// NewTemplate is a request to create a template, or to replace a whole template.
type NewTemplate struct {
	puntuale.Template                    // ID, Created and Updated are zero
	Known             []puntuale.Version // for a replacement: the stored version must be one of these; empty: any version
	Faults            []puntuale.Fault   // the faults that the calling package already found in the request
}

// CreateTemplate stores a new template. Codes: invalid, conflict (another template has the name), forbidden.
func (c *Client) CreateTemplate(ctx context.Context, r NewTemplate, o Once[Template]) (Template, error) {
	if err := c.MayCreate(); err != nil {
		return Template{}, err
	}
	f := request.Faults(r.Faults)
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return Template{}, err
	}
	t := r.Template
	if err := c.checkTemplate(ctx, &f, &t); err != nil {
		return Template{}, err
	}
	if clash != nil {
		return Template{}, clash
	}
	t.Created = c.control.clock.Now()
	t.Updated = t.Created
	result := func(stored any) Template {
		t.ID, _ = stored.(puntuale.TemplateID)
		return templateFields(t)
	}
	id, err := c.tenant.CreateTemplate(ctx, t, once.Keep(result))
	if err != nil {
		return Template{}, fmt.Errorf("create a template: %w", err)
	}
	return result(id), nil
}

// ReplaceTemplate replaces a stored template. Runs that started earlier do not change. Codes: not_found, invalid,
// precondition_failed, conflict (another template has the name, or the name of a template that a sequence uses would
// change).
func (c *Client) ReplaceTemplate(ctx context.Context, id string, r NewTemplate) (Template, error) {
	old, err := c.Template(ctx, id)
	if err != nil {
		return Template{}, err
	}
	f := request.Faults(r.Faults)
	t := r.Template
	if err := c.checkTemplate(ctx, &f, &t); err != nil {
		return Template{}, err
	}
	t.ID, t.Created, t.Updated = old.ID, old.Created, c.control.clock.Now()
	if err := c.tenant.UpdateTemplate(ctx, t, r.Known...); err != nil {
		return Template{}, fmt.Errorf("update template %d: %w", t.ID, err)
	}
	return templateFields(t), nil
}

// Template returns one template. Codes: not_found.
func (c *Client) Template(ctx context.Context, id string) (Template, error) {
	wanted, err := templateID(id)
	if err != nil {
		return Template{}, err
	}
	t, err := c.tenant.Template(ctx, wanted)
	if err != nil {
		return Template{}, fmt.Errorf("read template %d: %w", wanted, err)
	}
	return templateFields(t), nil
}

// Templates lists the client's templates, ordered by id. Codes: invalid.
func (c *Client) Templates(ctx context.Context, p request.Page) ([]Template, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Template, string, error) { return c.tenant.Templates(ctx, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list templates: %w", err)
	}
	templates := make([]Template, len(rows))
	for i, t := range rows {
		templates[i] = templateFields(t)
	}
	return templates, next, nil
}

// DeleteTemplate removes a template. Codes: not_found, conflict (a sequence uses the template).
func (c *Client) DeleteTemplate(ctx context.Context, id string) error {
	wanted, err := templateID(id)
	if err != nil {
		return err
	}
	if err := c.tenant.DeleteTemplate(ctx, wanted); err != nil {
		return fmt.Errorf("delete template %d: %w", wanted, err)
	}
	return nil
}

// checkTemplate checks a template, and gives an uploaded file its name.
func (c *Client) checkTemplate(ctx context.Context, f *request.Faults, t *puntuale.Template) error {
	f.Required("body.name", t.Name, puntuale.MaxName)
	*f = append(*f, plan.CheckContent("body", filled(puntuale.Step{}, *t), c.control.media...)...)
	var network puntuale.Session // only Official numbers send a template of Meta
	if t.Official != nil {
		network.Type = puntuale.Official
	}
	if err := c.CheckFile(ctx, f, "body.media", t.Media, &t.MediaName, network); err != nil {
		return err
	}
	*f = append(*f, plan.CheckApproved("body.official", t.Official)...)
	return f.Err()
}

// templateID parses a template's id from a path. A text that is not an id is not_found.
func templateID(text string) (puntuale.TemplateID, error) {
	id, err := puntuale.ParseID[puntuale.TemplateID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoTemplate)
	}
	return id, nil
}

func templateFields(t puntuale.Template) Template {
	return Template{t, plan.Fields(puntuale.Sequence{Steps: []puntuale.Step{filled(puntuale.Step{}, t)}})}
}

// filled returns a copy of a step with the content of a template.
func filled(step puntuale.Step, t puntuale.Template) puntuale.Step {
	step.Text, step.Media, step.MediaName = t.Text, t.Media, t.MediaName
	step.Latitude, step.Longitude, step.Official = t.Latitude, t.Longitude, t.Official
	return step
}

// Filled returns copies of steps, with the contents of their templates in the steps and in their variants.
func (c *Client) Filled(ctx context.Context, steps []puntuale.Step) ([]puntuale.Step, error) {
	expanded, err := c.expand(ctx, puntuale.Sequence{Steps: steps})
	if err != nil {
		return nil, err
	}
	return expanded[0].Steps, nil
}

// expand returns copies of sequences, in which each step contains the content of its template, and so does each of its
// variants, as [puntuale.Texts] yields them. If a template is missing, its step does not change. The given sequences do not
// change.
func (c *Client) expand(ctx context.Context, sequences ...puntuale.Sequence) ([]puntuale.Sequence, error) {
	var names []string
	varied := false
	for _, s := range sequences {
		for i, step := range puntuale.Texts(s.Steps) {
			if varied = varied || len(s.Steps[i].Variants) > 0; step.Template != "" && !slices.Contains(names, step.Template) {
				names = append(names, step.Template)
			}
		}
	}
	line, err := c.buttonLine(ctx, sequences...)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && line == "" && !varied {
		return sequences, nil
	}
	templates, err := c.templatesNamed(ctx, names)
	if err != nil {
		return nil, err
	}
	expanded := slices.Clone(sequences)
	for i := range expanded {
		expanded[i].Steps = slices.Clone(expanded[i].Steps)
		for j, step := range expanded[i].Steps {
			step.Variants = slices.Clone(step.Variants)
			n := 0
			for text := range step.Texts() {
				x := *text
				if t, ok := templates[x.Template]; ok && x.Template != "" {
					x = filled(x, t)
				}
				if x.ButtonLine = line; len(step.Variants) == 0 {
					step = x
				} else {
					step.Variants[n].Filled = &x
				}
				n++
			}
			expanded[i].Steps[j] = step
		}
	}
	return expanded, nil
}

// buttonLine returns the client's own line above the numbers that stand for buttons. If no step has buttons, or the
// client has no line of its own, it returns "".
func (c *Client) buttonLine(ctx context.Context, sequences ...puntuale.Sequence) (string, error) {
	asks := func(step puntuale.Step) bool { return len(step.Buttons) > 0 || step.Interactive != nil }
	if !slices.ContainsFunc(sequences, func(s puntuale.Sequence) bool { return slices.ContainsFunc(s.Steps, asks) }) {
		return "", nil
	}
	set, err := c.tenant.Settings(ctx)
	if err != nil {
		return "", fmt.Errorf("read settings: %w", err)
	}
	return set.ButtonLine, nil
}

// templatesNamed returns the client's templates with these names. It ignores texts that cannot be names.
func (c *Client) templatesNamed(ctx context.Context, names []string) (map[string]puntuale.Template, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		var f request.Faults
		f.Required("", name, puntuale.MaxName)
		return len(f) > 0
	})
	if len(names) == 0 {
		return nil, nil //nolint:nilnil // no template has such a name
	}
	templates, err := c.tenant.TemplatesNamed(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return templates, nil
}

// unfilled reports whether the template of a step, or of one of its variants, does not exist. After expand, such a text has
// no content.
func unfilled(step *puntuale.Step) bool {
	if len(step.Variants) == 0 { // as almost always, also at each start
		return noContent(step)
	}
	for x := range step.Texts() {
		if noContent(x) {
			return true
		}
	}
	return false
}

func noContent(x *puntuale.Step) bool {
	return x.Template != "" && x.Text == "" && x.Media == "" && x.Latitude == nil
}
