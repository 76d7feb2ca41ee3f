package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/draft"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// builderRoutes are the pages that make templates at Meta, follow them, and change them.
var builderRoutes = []page.Route{
	page.Get("/c/{client}/sessions/{id}/templates/new", page.ClientSide, puntuale.Staff, newDraft),
	page.Get("/c/{client}/sessions/{id}/templates/library", page.ClientSide, puntuale.Staff, draftLibrary),
	page.Post("/c/{client}/sessions/{id}/templates/new", page.ClientSide, puntuale.Staff, "session.submit", submitDraft),
	page.Post("/c/{client}/sessions/{id}/templates/draft", page.ClientSide, puntuale.Staff, page.Unaudited, showDraft),
	page.Get("/c/{client}/sessions/{id}/templates/{template}", page.ClientSide, puntuale.Reader, networkTemplate),
	page.Get("/c/{client}/sessions/{id}/templates/{template}/edit", page.ClientSide, puntuale.Staff, editDraft),
	page.Post("/c/{client}/sessions/{id}/templates/{template}/edit", page.ClientSide, puntuale.Staff, "session.edit", submitEdit),
	page.Post("/c/{client}/sessions/{id}/templates/{template}/unpause", page.ClientSide, puntuale.Staff, "session.unpause", unpauseTemplate),
	page.Post("/c/{client}/sessions/{id}/templates/{template}/delete", page.ClientSide, puntuale.Staff, "session.withdraw", deleteTemplate),
	page.Post("/c/{client}/sessions/{id}/templates/{template}/accept", page.ClientSide, puntuale.Staff, "session.accept", acceptCategory),
	page.Post("/c/{client}/approvals", page.ClientSide, puntuale.Staff, page.Unaudited, draftOfStep),
}

// languages are the languages that the form offers, as Meta writes them.
var languages = []string{"it", "en", "en_US", "en_GB", "de", "fr", "es", "pt_PT", "pt_BR", "nl", "ro", "sq", "uk", "ar", "zh_CN"}

const maxStepText = 1024 // characters of a step's text that the address of the form carries

// newDraft shows the form of a new template. The query may name a text of the library, a template to copy, or a text.
func newDraft(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	language := view.Or(v.Query("language"), v.Frame.Language.Code)
	d := puntuale.TemplateDraft{Language: language, Category: puntuale.CategoryUtility, Text: strings.ToValidUTF8(v.Query("text"), "")}
	for _, e := range draft.Library() {
		if e.Name == v.Query("library") {
			d = e.Draft(language)
		}
	}
	if from := v.Query("copy"); from != "" {
		session, id, _ := strings.Cut(from, ".")
		if d, err = draftFrom(v, session, id); err != nil {
			return err
		}
		if v.Query("language") != "" {
			d.Language = language
		}
	}
	return v.Show(Builder(Drafting{Form: draftForm(d), Sender: sender(v, found)}))
}

// draftFrom returns a draft with the content of a template that Meta has.
func draftFrom(v *page.Request, session, id string) (d puntuale.TemplateDraft, err error) {
	t, err := v.Client.NetworkTemplate(v.Ctx(), session, id)
	if err != nil {
		return d, err
	}
	requests, err := v.Client.TemplateRequests(v.Ctx(), session)
	return control.DraftOf(t, requests), err
}

// draftForm returns the form of a draft.
func draftForm(d puntuale.TemplateDraft) *view.Form {
	f := view.NewForm("name", d.Name, "language", d.Language, "category", d.Category, "text", d.Text, "footer", d.Footer, "own", "on")
	if h := d.Header; h != nil {
		f.Values.Set("header.kind", h.Kind)
		f.Values.Set("header.text", h.Text)
		f.Values.Set("header.media", h.Media)
	}
	for i, b := range d.Buttons {
		at := fmt.Sprintf("buttons[%d].", i)
		for name, value := range map[string]string{"kind": b.Kind, "text": b.Text, "url": b.URL, "phone": b.Phone, "code": b.Code} {
			f.Values.Set(at+name, value)
		}
	}
	for name, value := range d.Examples {
		f.Values.Set("examples."+name, value)
	}
	return f
}

// readDraft reads a draft from its form.
func readDraft(f *view.Form) puntuale.TemplateDraft {
	d := puntuale.TemplateDraft{
		Name: strings.TrimSpace(f.Value("name")), Language: f.Value("language"), Category: f.Value("category"), Text: f.Value("text"), Footer: f.Value("footer"), Examples: map[string]string{},
	}
	switch kind := f.Value("header.kind"); kind {
	case "", "none":
	case "text":
		d.Header = &puntuale.DraftHeader{Kind: kind, Text: f.Value("header.text")}
	case "location":
		d.Header = &puntuale.DraftHeader{Kind: kind}
	default:
		d.Header = &puntuale.DraftHeader{Kind: kind, Media: strings.TrimSpace(f.Value("header.media"))}
	}
	for i := range puntuale.MaxButtons {
		at := fmt.Sprintf("buttons[%d].", i)
		b := puntuale.DraftButton{Kind: f.Value(at + "kind")}
		switch b.Kind {
		case "":
			continue
		case "url":
			b.URL = strings.TrimSpace(f.Value(at + "url"))
		case "phone":
			b.Phone = strings.TrimSpace(f.Value(at + "phone"))
		case "copy_code":
			b.Code = strings.TrimSpace(f.Value(at + "code"))
		}
		if b.Kind != "copy_code" {
			b.Text = strings.TrimSpace(f.Value(at + "text"))
		}
		d.Buttons = append(d.Buttons, b)
	}
	for name := range f.Values {
		if field, ok := strings.CutPrefix(name, "examples."); ok {
			d.Examples[field] = f.Value(name)
		}
	}
	return d
}

// draftFields returns the names of the form's fields, in the order of the page.
func draftFields(f *view.Form) []string {
	all := []string{"name", "language", "category", "header.kind", "header.text", "header.media", "text", "footer"}
	var more []string
	for name := range f.Values {
		if strings.HasPrefix(name, "buttons[") || strings.HasPrefix(name, "examples.") {
			more = append(more, name)
		}
	}
	for _, name := range control.Prepared(readDraft(f)).Placeholders() {
		more = append(more, "examples."+name)
	}
	slices.Sort(more)
	return append(all, slices.Compact(more)...)
}

// showDraft shows the form again, with a new preview or with one more button.
func showDraft(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	d := Drafting{Form: f, Sender: sender(v, found), ID: f.Value("id"), Status: f.Value("status")}
	switch {
	case f.Value("do") == "button":
		n, _ := strconv.Atoi(f.Value("count"))
		f.Values.Set("count", strconv.Itoa(min(n+1, puntuale.MaxButtons)))
	case v.Partial():
		return v.Show(DraftPreview(d))
	}
	if v.Partial() {
		return v.Show(BuilderForm(d))
	}
	return v.Show(Builder(d))
}

func submitDraft(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	read := readDraft(f)
	done, err := v.Client.CreateNetworkTemplate(v.Ctx(), found.ID.String(), control.NewDraft{TemplateDraft: read})
	if err != nil {
		d := Drafting{Form: f, Sender: sender(v, found)}
		return v.ShowRefused(err, f, BuilderForm(d), Builder(d), draftFields(f)...)
	}
	v.SetAuditTarget(found.ID.String())
	if f.Is("own", "on") && (read.Header == nil || read.Header.Kind != "location") {
		// A template with this name may exist already, for example in another language. Then it stays as it is.
		if _, err := v.Client.CreateTemplate(v.Ctx(), control.NewTemplate{Template: control.OwnTemplate(read)}, control.Once[control.Template]{}); err != nil && puntuale.CodeOf(err) != puntuale.CodeConflict &&
			puntuale.CodeOf(err) != puntuale.CodeInvalid {
			return err
		}
	}
	return submitted(v, found, done)
}

// submitted goes to the page of the template, or to the list while Meta's answer is not known.
func submitted(v *page.Request, s control.Session, done control.RequestedTemplate) error {
	at := sessionURL(v, s.ID) + "/templates"
	if done.NetworkID == "" {
		v.Say("builder.under_way", "")
		return v.Redirect(at)
	}
	v.Say("builder.submitted", "")
	return v.Redirect(at + "/" + done.NetworkID)
}

// networkTemplate shows one template: its state, what Meta says about it, and its other languages.
func networkTemplate(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	t, err := v.Client.NetworkTemplate(v.Ctx(), found.ID.String(), v.Path("template"))
	if err != nil {
		return err
	}
	p := TemplatePage{Sender: sender(v, found), Template: t}
	if p.Requests, err = v.Client.TemplateRequests(v.Ctx(), found.ID.String()); err != nil {
		return err
	}
	p.Requests = slices.DeleteFunc(p.Requests, func(r puntuale.TemplateRequest) bool { return r.Name != t.Name || r.Language != t.Language })
	if p.Languages, err = v.Client.TemplateLanguages(v.Ctx(), found.ID.String(), t.Name); err != nil {
		return err
	}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, s := range sessions {
		if s.ID != found.ID && s.Type == puntuale.Official && !s.Sandbox {
			p.Others = append(p.Others, s.Session)
		}
	}
	if err != nil {
		return err
	}
	return v.Show(TemplateAtMeta(p))
}

func editDraft(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	t, err := v.Client.NetworkTemplate(v.Ctx(), found.ID.String(), v.Path("template"))
	if err != nil {
		return err
	}
	d, err := draftFrom(v, found.ID.String(), t.ID)
	if err != nil {
		return err
	}
	d.Category = t.Category
	f := draftForm(d)
	f.Values.Set("id", t.ID)
	f.Values.Set("status", string(t.Status))
	return v.Show(Builder(Drafting{Form: f, Sender: sender(v, found), ID: t.ID, Status: string(t.Status)}))
}

func submitEdit(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	id := v.Path("template")
	done, err := v.Client.EditNetworkTemplate(v.Ctx(), found.ID.String(), id, control.NewDraft{TemplateDraft: readDraft(f)})
	if err != nil {
		d := Drafting{Form: f, Sender: sender(v, found), ID: id, Status: f.Value("status")}
		return v.ShowRefused(err, f, BuilderForm(d), Builder(d), draftFields(f)...)
	}
	v.SetAuditTarget(found.ID.String())
	return submitted(v, found, done)
}

func unpauseTemplate(v *page.Request) error {
	return changeAtMeta(v, "builder.unpaused", v.Client.UnpauseNetworkTemplate)
}

func deleteTemplate(v *page.Request) error {
	return changeAtMeta(v, "builder.deleted", v.Client.DeleteNetworkTemplate)
}

func acceptCategory(v *page.Request) error {
	return changeAtMeta(v, "builder.accepted", func(ctx context.Context, session, id string) (control.RequestedTemplate, error) {
		return control.RequestedTemplate{}, v.Client.AcceptCategory(ctx, session, id)
	})
}

// changeAtMeta makes one change of a template, and goes back to its page. What Meta refuses is told above the page.
func changeAtMeta(v *page.Request, says string, change func(ctx context.Context, session, id string) (control.RequestedTemplate, error)) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	id := v.Path("template")
	done, err := change(v.Ctx(), found.ID.String(), id)
	switch refused, _ := page.Refusal(err); {
	case err == nil && done.ID != 0 && done.State < puntuale.RequestDone:
		v.Say("builder.under_way", "")
	case err == nil:
		v.SetAuditTarget(found.ID.String())
		v.Say(says, "")
	case refused != nil && refused.Code == puntuale.CodeConflict:
		v.Toast("bad", v.Frame.Language.Fault(refused.Reason), "")
	default:
		return err
	}
	return v.Redirect(sessionURL(v, found.ID) + "/templates/" + id)
}

func draftLibrary(v *page.Request) error {
	found, err := official(v)
	if err != nil {
		return err
	}
	return v.Show(Library(sender(v, found), view.Or(v.Query("language"), v.Frame.Language.Code)))
}

// draftOfStep begins a template with the text of a step, for the first Official number of the client.
func draftOfStep(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	text := []rune(f.Value(f.Value("of") + ".text"))
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return err
	}
	wanted := f.Value("id_sessione")
	chosen := puntuale.SessionID(0)
	for _, s := range sessions {
		if s.Type == puntuale.Official && !s.Sandbox && (chosen == 0 || s.ID.String() == wanted) {
			chosen = s.ID
		}
	}
	if chosen == 0 {
		v.Say("builder.no_number", "")
		return v.Redirect(v.Frame.Place.Base + "/sessions")
	}
	return v.Redirect(view.WithQuery(sessionURL(v, chosen)+"/templates/new", "text", string(text[:min(len(text), maxStepText)])))
}

// prepared returns the draft of a form as Meta would get it.
func prepared(f *view.Form) puntuale.TemplateDraft { return control.Prepared(readDraft(f)) }
