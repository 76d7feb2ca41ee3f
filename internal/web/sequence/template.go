package sequence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// templateRoutes are the pages of templates: named contents that several sequences can use.
var templateRoutes = []page.Route{
	page.Get("/c/{client}/templates", page.ClientSide, puntuale.Reader, templates),
	page.Get("/c/{client}/templates/new", page.ClientSide, puntuale.Staff, newTemplate),
	page.Get("/c/{client}/templates/{id}", page.ClientSide, puntuale.Reader, template),
	page.Post("/c/{client}/templates", page.ClientSide, puntuale.Staff, "template.create", createTemplate),
	page.Post("/c/{client}/templates/draft", page.ClientSide, puntuale.Staff, page.Unaudited, draftTemplate),
	page.Post("/c/{client}/templates/{id}", page.ClientSide, puntuale.Staff, "template.update", updateTemplate),
	page.Post("/c/{client}/templates/{id}/delete", page.ClientSide, puntuale.Staff, "template.delete", deleteTemplate),
}

func templates(v *page.Request) error {
	rows, next, err := v.Client.Templates(v.Ctx(), request.Page{Limit: "50", Cursor: v.Query("cursor")})
	if err != nil {
		return err
	}
	list := TemplateList{Cursor: v.Query("cursor"), Next: next}
	for _, r := range rows {
		list.Rows = append(list.Rows, TemplateRow{Template: r.Template, Fields: r.Fields})
	}
	if list.Networks, err = networks(v); err != nil {
		return err
	}
	return v.Show(Templates(list))
}

// networks returns the templates stored at Meta, for each of the client's Official sessions.
func networks(v *page.Request) (all []Network, err error) {
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if s.Type != puntuale.Official || s.Sandbox {
			continue
		}
		found, err := v.Client.NetworkTemplates(v.Ctx(), s.ID.String(), request.Page{Limit: page.MaxChoices})
		if puntuale.CodeOf(err) == puntuale.CodeConflict { // this server cannot reach Meta
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Network{Session: s.Session, Synced: found.Synced, All: found.All})
	}
	return all, nil
}

func newTemplate(v *page.Request) error {
	e, err := templateEditor(v, view.NewForm("kind", "text"))
	if err != nil {
		return err
	}
	return v.Show(TemplateEdit(e))
}

func template(v *page.Request) error {
	found, err := v.Client.Template(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	e, err := templateEditor(v, templateForm(found.Template))
	if err != nil {
		return err
	}
	return v.Show(TemplateEdit(e))
}

// templateEditor returns the data that a template's form shows.
func templateEditor(v *page.Request, f *view.Form) (TemplateEditor, error) {
	e := TemplateEditor{Form: f, ID: f.Value("id"), Name: f.Value("was")}
	networks, err := networks(v)
	if err != nil {
		return e, err
	}
	name, language, _ := strings.Cut(f.Value("official"), "|")
	for _, n := range networks {
		e.Networks = append(e.Networks, n.All...)
		if t, found := puntuale.ChooseLanguage(n.All, name, language, ""); found {
			e.Chosen = &t
		}
	}
	try, err := try(v, view.NewForm(), control.NewSequence{Name: "-", Steps: []puntuale.Step{templateStep(readTemplate(f).Template)}})
	if len(try.Messages) > 0 {
		e.Bubble = &try.Messages[0].Content
	}
	return e, err
}

// templateStep returns a step with a template's content.
func templateStep(t puntuale.Template) puntuale.Step {
	return puntuale.Step{Text: t.Text, Media: t.Media, MediaName: t.MediaName, Latitude: t.Latitude, Longitude: t.Longitude,
		Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}
}

// templateForm returns a form that is filled with a template.
func templateForm(t puntuale.Template) *view.Form {
	f := view.NewForm("id", t.ID.String(), view.Version, string(t.Version()), "was", t.Name, "name", t.Name, "kind", kindOf(templateStep(t)), "text", t.Text, "media", t.Media, "media_name", t.MediaName,
		"latitude", degrees(t.Latitude), "longitude", degrees(t.Longitude))
	if a := t.Official; a != nil {
		f.Values.Set("official", a.Name+"|"+a.Language)
		for _, part := range []struct {
			name   string
			places []puntuale.Parameter
		}{{"header", a.Header}, {"body", a.Body}} {
			for i, p := range part.places {
				f.Values.Set(fmt.Sprintf("official.%s[%d].text", part.name, i), p.Text)
				f.Values.Set(fmt.Sprintf("official.%s[%d].name", part.name, i), p.Name)
			}
		}
		for i, b := range a.Buttons {
			at := fmt.Sprintf("official.buttons[%d]", i)
			f.Values.Set(at+".index", strconv.Itoa(b.Index))
			f.Values.Set(at+".type", string(b.Kind))
			f.Values.Set(at+".text", b.Text)
		}
	}
	return f
}

// readTemplate reads a template from its form.
func readTemplate(f *view.Form) control.NewTemplate {
	r := control.NewTemplate{Template: puntuale.Template{Name: strings.TrimSpace(f.Value("name")), Text: f.Value("text")}}
	s := stepReader{f: f, at: "", faults: &r.Faults}
	switch f.Value("kind") {
	case "media":
		r.Media, r.MediaName = s.media("")
	case "location":
		r.Latitude, r.Longitude = s.location("")
	default:
		if strings.TrimSpace(r.Text) == "" {
			s.refuse("text", puntuale.FaultRequired)
		}
	}
	if name, language, ok := strings.Cut(f.Value("official"), "|"); ok {
		r.Official = &puntuale.Approved{Name: name, Language: language, Header: readPlaceholders(f, "header"), Body: readPlaceholders(f, "body")}
		for i := range puntuale.MaxButtons {
			at := fmt.Sprintf("official.buttons[%d]", i)
			if kind := f.Value(at + ".type"); kind != "" {
				index, _ := strconv.Atoi(f.Value(at + ".index")) // the page itself writes this number
				r.Official.Buttons = append(r.Official.Buttons, puntuale.Button{Index: index, Kind: puntuale.ButtonKind(kind), Text: f.Value(at + ".text")})
			}
		}
	}
	return r
}

func readPlaceholders(f *view.Form, part string) (all []puntuale.Parameter) {
	for i := range puntuale.MaxParameters {
		at := fmt.Sprintf("official.%s[%d]", part, i)
		if _, found := f.Values[at+".text"]; !found {
			break
		}
		all = append(all, puntuale.Parameter{Name: f.Value(at + ".name"), Text: f.Value(at + ".text")})
	}
	return all
}

// templateFields returns the names of all fields in a template's form.
func templateFields(f *view.Form) []string {
	all := []string{"name", "text", "media", "media_name", "latitude", "longitude", "official"}
	for name := range f.Values {
		if strings.HasPrefix(name, "official.") && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// draftTemplate shows a template's form again, with a new preview or with the placeholders of another approved
// template.
func draftTemplate(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	e, err := templateEditor(v, f)
	if err != nil {
		return err
	}
	switch {
	case v.Partial() && f.Value("do") == "preview":
		return v.Show(TemplatePreview(e))
	case v.Partial():
		return v.Show(TemplateForm(e))
	}
	return v.Show(TemplateEdit(e))
}

func createTemplate(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	made, err := v.Client.CreateTemplate(v.Ctx(), readTemplate(f), control.Once[control.Template]{})
	if err != nil {
		return templateRefused(v, err, f)
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("template.created", "")
	return v.Redirect(v.Frame.Place.Base + "/templates")
}

func templateRefused(v *page.Request, err error, f *view.Form) error {
	refused, _ := page.Refusal(err)
	if refused == nil {
		return err
	}
	e, failed := templateEditor(v, f)
	if failed != nil {
		return failed
	}
	if refused.Code == puntuale.CodeConflict { // the only possible conflict is that another template has this name
		err = puntuale.Invalid(refused.Reason.At("body.name", nil))
	}
	return v.ShowRefused(err, f, TemplateForm(e), TemplateEdit(e), templateFields(f)...)
}

func updateTemplate(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	old, err := v.Client.Template(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f.Values.Set("id", v.Path("id"))
	f.Values.Set("was", old.Name)
	draft := readTemplate(f)
	draft.Known = page.Versions(f)
	done, err := v.Client.ReplaceTemplate(v.Ctx(), v.Path("id"), draft)
	if err != nil {
		if v.Compare(err, f, old.Version(), v.Frame.Place.Base+"/templates/"+old.ID.String()) {
			v.Differ(f, templateForm(old.Template), page.Label{Name: "name", Key: "template.name"}, page.Label{Name: "text", Key: "step.words"}, page.Label{Name: "media", Key: "step.media_url"},
				page.Label{Name: "media_name", Key: "step.media_name"}, page.Label{Name: "latitude", Key: "step.latitude"}, page.Label{Name: "longitude", Key: "step.longitude"}, page.Label{Name: "official", Key: "template.official"})
		}
		return templateRefused(v, err, f)
	}
	v.SetAuditTarget(done.ID.String())
	v.Say("template.updated", "")
	return v.Redirect(v.Frame.Place.Base + "/templates")
}

func deleteTemplate(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, err := v.Client.Template(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if err := v.Client.DeleteTemplate(v.Ctx(), v.Path("id")); err != nil {
		q := TemplateEditor{ID: v.Path("id"), Name: found.Name}
		return v.ShowRefused(err, f, TemplateDelete(f, q), TemplateDeletePage(f, q))
	}
	v.SetAuditTarget(found.ID.String() + " " + found.Name)
	v.Say("template.deleted", "", "Name", found.Name)
	return v.Redirect(v.Frame.Place.Base + "/templates")
}
