package web

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/view"
)

// The wizard's steps are pages of one draft, which the server keeps: message, recipients, check, moment, start. So a reload loses
// nothing, and somebody else can go on.

// draft reads the campaign of the path for a step of the wizard. It leads away from one that has started.
func (v *visit) draft() (found control.Campaign, answered bool, err error) {
	if found, err = v.client.Campaign(v.ctx(), v.path("id")); err != nil {
		return found, false, err
	}
	if wizardStep(found.Campaign) == "" {
		return found, true, v.to(v.campaignURL(found.ID, ""))
	}
	return found, false, nil
}

func wizard(c control.Campaign, step string) view.Wizard {
	return view.Wizard{ID: c.ID, Name: c.Name, Step: step, List: c.List != 0 && c.Feed.Waiting+c.Feed.Refused > 0, Ready: c.Checked.Digest != ""}
}

// What is sent.

func (s *site) newCampaign(v *visit) error {
	f := view.NewForm("what", "text")
	if id := v.query("sequence"); id != "" {
		f = view.NewForm("what", "sequence", "sequence", id)
	}
	p, err := v.whatPage(view.Wizard{Step: "what"}, f)
	if err != nil {
		return err
	}
	return v.show(view.CampaignWhat(p))
}

func (v *visit) whatPage(w view.Wizard, f *view.Form) (p view.WhatPage, err error) {
	p = view.WhatPage{Wizard: w, Form: f}
	if p.Sequences, err = v.site.sequenceChoices(v, f.Value("sequence")); err != nil {
		return p, err
	}
	templates, _, err := v.client.Templates(v.ctx(), request.Page{Limit: mostChoices})
	if err != nil {
		return p, err
	}
	for _, t := range templates {
		p.Templates = append(p.Templates, view.Option{Value: t.Name, Text: t.Name})
	}
	sessions, _, err := v.client.Sessions(v.ctx(), request.Page{Limit: mostChoices})
	for _, x := range sessions {
		p.Sessions = append(p.Sessions, view.Option{Value: x.ID.String(), Text: x.Name})
	}
	return p, err
}

// what are the fields of the first step.
var whatFields = []string{"name", "purpose", "what", "text", "template", "sequence", "id_sessione"}

// readWhat puts what the first step says into a call.
func readWhat(f *view.Form, call control.NewCampaign) control.NewCampaign {
	call.Name, call.Purpose, call.Session, call.Faults = f.Value("name"), f.Value("purpose"), f.Value("id_sessione"), nil
	before := call.Step
	call.Sequence, call.Step = "", nil
	if call.Purpose == "" {
		call.Faults = append(call.Faults, puntuale.Fault{Location: "body.purpose", Message: "is required"})
	}
	need := func(name string) {
		if strings.TrimSpace(f.Value(name)) == "" {
			call.Faults = append(call.Faults, puntuale.Fault{Location: "body." + name, Message: "is required"})
		}
	}
	switch f.Value("what") {
	case "sequence":
		need("sequence")
		call.Sequence = f.Value("sequence")
	case "template":
		need("template")
		call.Step = &puntuale.Step{Template: f.Value("template")}
	default:
		need("text")
		call.Step = &puntuale.Step{}
		if before != nil && before.Template == "" { // media and place, which a program gave
			*call.Step = *before
		}
		call.Step.Text = f.Value("text")
	}
	if call.Sequence == "" && call.Step == nil {
		call.Step = &puntuale.Step{}
	}
	return call
}

// whatErr gives faults the names that they have in the form; a fault says one thing once.
func whatErr(err error, f *view.Form) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Faults = nil
	seen := map[string]bool{}
	for _, fault := range e.Faults {
		if rest, ok := strings.CutPrefix(fault.Location, "body.content"); ok {
			fault.Location = "body." + strings.TrimPrefix(rest, ".")
			if rest == "" {
				fault.Location = "body.text"
			}
		}
		if fault.Location == "body.sequence" && f.Value("what") != "sequence" {
			fault.Location = "body." + f.Value("what")
		}
		if !seen[fault.Location] {
			seen[fault.Location] = true
			named.Faults = append(named.Faults, fault)
		}
	}
	return &named
}

// draftCall is the call that would make a stored draft.
func draftCall(c puntuale.Campaign, by puntuale.LoginID) control.NewCampaign {
	d := c.Draft
	call := control.NewCampaign{
		Name: c.Name, Purpose: d.Purpose, Step: d.Step, Fields: d.Fields, PerMinute: d.PerMinute, Window: d.Window, IfRunning: string(d.IfRunning),
		Canary: d.Canary, Timezone: d.Zone, By: by,
	}
	if c.Sequence != 0 {
		call.Sequence = c.Sequence.String()
	}
	if c.Session != 0 {
		call.Session = c.Session.String()
	}
	if !d.StartAt.IsZero() {
		call.StartAt = d.StartAt.Format(time.RFC3339)
	}
	return call
}

func (s *site) createCampaign(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	made, err := v.client.CreateCampaign(v.ctx(), readWhat(f, control.NewCampaign{By: v.person.User().ID}), nil, control.Once[control.Campaign]{})
	if err != nil {
		return v.whatAgain(err, view.Wizard{Step: "what"}, f)
	}
	v.did(made.ID.String())
	return v.to(v.campaignURL(made.ID, "/people"))
}

func (v *visit) whatAgain(err error, w view.Wizard, f *view.Form) error {
	p, failed := v.whatPage(w, f)
	if failed != nil {
		return failed
	}
	return v.again(whatErr(err, f), f, view.WhatForm(p), view.CampaignWhat(p), whatFields...)
}

func (s *site) campaignWhat(v *visit) error {
	found, answered, err := v.draft()
	if err != nil || answered {
		return err
	}
	call := draftCall(found.Campaign, 0)
	f := view.NewForm("name", call.Name, "purpose", call.Purpose, "what", "text", "id_sessione", call.Session, "sequence", call.Sequence)
	switch {
	case call.Step == nil:
		f.Values.Set("what", "sequence")
	case call.Step.Template != "":
		f.Values.Set("what", "template")
		f.Values.Set("template", call.Step.Template)
	default:
		f.Values.Set("text", call.Step.Text)
	}
	p, err := v.whatPage(wizard(found, "what"), f)
	if err != nil {
		return err
	}
	return v.show(view.CampaignWhat(p))
}

func (s *site) changeWhat(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	found, answered, err := v.draft()
	if err != nil || answered {
		return err
	}
	changed, err := v.client.UpdateCampaign(v.ctx(), v.path("id"), readWhat(f, draftCall(found.Campaign, v.person.User().ID)))
	if err != nil {
		return v.whatAgain(err, wizard(found, "what"), f)
	}
	v.did(changed.ID.String())
	return v.to(v.campaignURL(changed.ID, "/people"))
}

// The recipients.

func (s *site) campaignPeople(v *visit) error {
	p, answered, err := v.peoplePage(view.NewForm())
	if err != nil || answered {
		return err
	}
	return v.show(view.CampaignPeople(p))
}

func (v *visit) peoplePage(f *view.Form) (p view.PeoplePage, answered bool, err error) {
	found, answered, err := v.draft()
	if err != nil || answered {
		return p, answered, err
	}
	list, err := v.client.RecipientsOf(v.ctx(), v.path("id"))
	if err != nil {
		return p, false, err
	}
	p = view.PeoplePage{
		Wizard: wizard(found, "people"), Form: f, Size: list.Size, Columns: list.Columns, Mapping: list.Mapping, Preview: list.Preview, Missing: list.Missing,
		Common: found.Draft.Fields, Columned: view.NewForm(),
	}
	for _, field := range list.Fields {
		p.Fields = append(p.Fields, field.Name)
		if field.Required {
			p.Required = append(p.Required, field.Name)
		}
	}
	for name, at := range list.Mapping {
		p.Columned.Values.Set("column."+name, strconv.Itoa(at+1))
	}
	return p, false, nil
}

// mostList bounds the form of an upload: the file and what stands around it.
const mostList = 100<<20 + 1<<20

// uploadPeople reads a list as it comes, from a file or as it was pasted: all of it, or nothing where a row is wrong.
func (s *site) uploadPeople(v *visit) error {
	if err := admission.CheckLength(v.r, mostList); err != nil {
		return v.listRefused(err)
	}
	if _, answered, err := v.draft(); err != nil || answered {
		return err
	}
	v.pass.Rest() // each of its transactions waits for its own place
	v.r.Body = http.MaxBytesReader(v.w, struct {
		io.Reader
		io.Closer
	}{admission.ReadOn(v.w, v.r, clock.System().Now), v.r.Body}, mostList)
	parts, err := v.r.MultipartReader()
	if err != nil {
		return unreadable(err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return v.listRefused(puntuale.Invalid(puntuale.Fault{Location: "body.file", Message: "is required"}))
		}
		if err != nil {
			return unreadable(err)
		}
		content, kind := io.Reader(part), part.Header.Get("Content-Type")
		switch part.FormName() {
		case "file":
			if part.FileName() == "" {
				continue
			}
		case "pasted":
			first := make([]byte, 1)
			if n, _ := part.Read(first); n == 0 {
				continue
			}
			content, kind = io.MultiReader(strings.NewReader(string(first)), part), "text/csv; charset=utf-8"
		default:
			continue
		}
		ctx := puntuale.WithPatience(v.ctx(), puntuale.NewPatience(nil, false)) // how long the file takes says nothing of who waits here
		_, err = v.client.PutRecipients(ctx, v.path("id"), content, kind, "")
		if _, back := v.pass.Return(v.ctx()); back != nil && err == nil {
			err = back
		}
		if err != nil {
			return v.listRefused(err)
		}
		v.did(v.path("id"))
		return v.to(v.frame.Place.Base + "/campaigns/" + v.path("id") + "/people")
	}
}

// listRefused shows the step again, with what is wrong with the file.
func (v *visit) listRefused(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	p, answered, failed := v.peoplePage(view.NewForm())
	if failed != nil || answered {
		return failed
	}
	shown := *e
	if e.Code == puntuale.CodeTooLarge {
		shown.Code, shown.Faults = puntuale.CodeInvalid, nil
	}
	for _, fault := range e.Faults {
		if text, ok := strings.CutPrefix(fault.Location, "body.line["); ok {
			line, _ := strconv.Atoi(strings.TrimSuffix(text, "]"))
			p.Faults = append(p.Faults, view.LineFault{Line: line, Says: v.frame.Language.Fault(fault.Message)})
		}
	}
	if len(p.Faults) > 0 {
		shown.Faults, shown.Message = nil, "nothing was added: mend these lines and try again"
	}
	return v.again(&shown, p.Form, view.PeopleUpload(p), view.CampaignPeople(p), "file")
}

// mapPeople takes which column is which field.
func (s *site) mapPeople(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	p, answered, err := v.peoplePage(view.NewForm())
	if err != nil || answered {
		return err
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		if field, ok := strings.CutPrefix(name, "column."); ok && f.Value(name) != "" {
			pairs = append(pairs, field+":"+f.Value(name))
		}
	}
	same := len(pairs) == len(p.Mapping)
	for name, at := range p.Mapping {
		same = same && slices.Contains(pairs, fmt.Sprintf("%s:%d", name, at+1))
	}
	if v.quiet = same; !same {
		p.Columned = f
		if f.Value("column.phone") == "" {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.column.phone", Message: "is required"})
		} else {
			_, err = v.client.MapRecipients(v.ctx(), v.path("id"), strings.Join(pairs, ","))
		}
		if err != nil {
			return v.again(err, f, view.PeopleColumns(p), view.CampaignPeople(p), "column.phone")
		}
	}
	v.did(v.path("id"))
	next := "/check"
	if f.Value("do") == "look" {
		next = "/people"
	}
	return v.to(v.frame.Place.Base + "/campaigns/" + v.path("id") + next)
}

// The check.

func (s *site) campaignCheck(v *visit) error { return v.checkedPage("check", view.CampaignChecked) }
func (s *site) campaignStart(v *visit) error { return v.checkedPage("start", view.CampaignStart) }

func (v *visit) checkedPage(step string, show func(view.CheckPage) templ.Component) error {
	found, answered, err := v.draft()
	if err != nil || answered {
		return err
	}
	w := wizard(found, step)
	if !w.List {
		return v.to(v.campaignURL(found.ID, "/people"))
	}
	p, err := v.checkPage(found, w)
	if err != nil {
		return err
	}
	return v.show(show(p))
}

func (v *visit) checkPage(found control.Campaign, w view.Wizard) (p view.CheckPage, err error) {
	p = view.CheckPage{Wizard: w, Campaign: found.Campaign, Check: found.Checked, Left: v.client.Account().Credits, Form: view.NewForm("digest", found.Checked.Digest)}
	p.What, p.Session, err = v.campaignNames(found.Campaign)
	return p, err
}

// checkCampaign checks the list, and leads to the page that asked for it. While a long check goes on, the page asks again.
func (s *site) checkCampaign(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	v.quiet = true // the verb notes it
	step := "check"
	if f.Value("step") == "start" {
		step = "start"
	}
	v.pass.Rest()
	check, err := v.client.CheckCampaign(v.ctx(), v.path("id"))
	if _, back := v.pass.Return(v.ctx()); back != nil && err == nil {
		err = back
	}
	if e, status := refusal(err); e != nil {
		return v.showAs(status, view.CheckFailed(v.path("id"), v.frame.Language.Fault(said(e))))
	}
	if err != nil {
		return err
	}
	if check.Digest == "" && v.partial() {
		return v.show(view.CheckGoesOn(v.path("id"), step, check.Done))
	}
	return v.to(v.frame.Place.Base + "/campaigns/" + v.path("id") + "/" + step)
}

// When it is sent.

var whenFields = []string{"begin", "start_at", "per_minute", "window.weekdays", "window.from", "window.to", "window.holidays", "if_running", "canary"}

func (s *site) campaignWhen(v *visit) error {
	found, answered, err := v.draft()
	if err != nil || answered {
		return err
	}
	f := v.whenForm(found.Draft)
	return v.show(view.CampaignWhen(view.WhenPage{Wizard: wizard(found, "when"), Form: f, OfSequence: found.Sequence != 0}))
}

// whenForm shows what a draft says of its moments.
func (v *visit) whenForm(d puntuale.CampaignDraft) *view.Form {
	f := view.NewForm("begin", "now", "if_running", string(d.IfRunning), "canary", strconv.Itoa(d.CanarySize()))
	if !d.StartAt.IsZero() {
		f.Values.Set("begin", "date")
		f.Values.Set("start_at", d.StartAt.In(v.frame.Zone).Format("2006-01-02T15:04"))
	}
	if d.PerMinute > 0 {
		f.Values.Set("per_minute", strconv.Itoa(d.PerMinute))
	}
	if w := d.Window; w != nil {
		for _, day := range w.Weekdays {
			f.Values.Add("window.weekdays", strconv.Itoa(day))
		}
		f.Values.Set("window.from", w.From)
		f.Values.Set("window.to", w.To)
		if w.Holidays != "" {
			f.Values.Set("window.holidays", "on")
		}
	}
	return f
}

func (s *site) changeWhen(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	found, answered, err := v.draft()
	if err != nil || answered {
		return err
	}
	if sameWhen(f, v.whenForm(found.Draft)) {
		v.quiet = true
		return v.to(v.campaignURL(found.ID, "/start"))
	}
	call := draftCall(found.Campaign, v.person.User().ID)
	call.Window, call.IfRunning, call.StartAt = readWindow(f, "window"), f.Value("if_running"), ""
	if f.Value("begin") == "date" {
		if call.StartAt = f.Value("start_at"); call.StartAt == "" {
			call.Faults = append(call.Faults, puntuale.Fault{Location: "body.start_at", Message: "is required"})
		}
	}
	call.PerMinute = wholeOr(&call.Faults, f, "per_minute", 0, puntuale.MaxCampaignRate)
	canary := wholeOr(&call.Faults, f, "canary", puntuale.CanaryRecipients, puntuale.CampaignAhead)
	call.Canary = &canary
	if _, err = v.client.UpdateCampaign(v.ctx(), v.path("id"), call); err != nil {
		p := view.WhenPage{Wizard: wizard(found, "when"), Form: f, OfSequence: found.Sequence != 0}
		return v.again(below(err, "pace"), f, view.WhenForm(p), view.CampaignWhen(p), whenFields...)
	}
	v.did(v.path("id"))
	return v.to(v.campaignURL(found.ID, "/start"))
}

// sameWhen reports that the step changes nothing: the check still holds then.
func sameWhen(f, before *view.Form) bool {
	return !slices.ContainsFunc(whenFields, func(name string) bool {
		if f.Value("begin") == "now" && name == "start_at" || name == "if_running" && f.Values[name] == nil {
			return false
		}
		return strings.Join(f.Values[name], ",") != strings.Join(before.Values[name], ",")
	})
}

// wholeOr reads a whole number from 1 (or 0) to most; an empty field is the other.
func wholeOr(faults *[]puntuale.Fault, f *view.Form, name string, other, most int) int {
	text := strings.TrimSpace(f.Value(name))
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		*faults = append(*faults, puntuale.Fault{Location: "body." + name, Message: fmt.Sprintf("is not 0 to %d", most)})
		return other
	}
	return n
}

// The start.

func (s *site) startCampaign(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	v.quiet = true // the verb notes it
	started, _, err := v.client.StartCampaign(v.ctx(), v.path("id"), f.Value("digest"))
	if err != nil {
		found, answered, failed := v.draft()
		if failed != nil || answered {
			return failed
		}
		p, failed := v.checkPage(found, wizard(found, "start"))
		if failed != nil {
			return failed
		}
		if _, changed := errors.AsType[*control.Changed](err); changed {
			err = puntuale.Conflict("the campaign was changed since its check")
		}
		return v.again(err, p.Form, view.CampaignStartForm(p), view.CampaignStart(p))
	}
	v.say("campaign.said_started", "", "Name", started.Name)
	return v.to(v.campaignURL(started.ID, ""))
}
