package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// Each step of the wizard is a page about one draft, which the server stores. The steps are message, recipients, check,
// time and start. If the person reloads a page, nothing is lost, and another person can continue.

// campaignDraft reads the campaign in the path for a wizard step. If the campaign has started, campaignDraft redirects
// to the campaign's page, and answered is true.
func campaignDraft(v *page.Request) (found control.Campaign, answered bool, err error) {
	if found, err = v.Client.Campaign(v.Ctx(), v.Path("id")); err != nil {
		return found, false, err
	}
	if wizardStep(found.Campaign) == "" {
		return found, true, v.Redirect(campaignAddress(v, found.ID, ""))
	}
	return found, false, nil
}

func wizard(c control.Campaign, step string) Wizard {
	return Wizard{ID: c.ID, Name: c.Name, Step: step, List: c.List != 0 && c.Feed.Size() > 0, Ready: c.Checked.Digest != ""}
}

// The first wizard step: the content.

func newCampaign(v *page.Request) error {
	f := view.NewForm("what", "text")
	if id := v.Query("sequence"); id != "" {
		f = view.NewForm("what", "sequence", "sequence", id)
	}
	f.Values.Set("tag", v.Query("tag"))
	p, err := whatPage(v, Wizard{Step: "what"}, f)
	if err != nil {
		return err
	}
	return v.Show(CampaignWhat(p))
}

func whatPage(v *page.Request, w Wizard, f *view.Form) (p WhatPage, err error) {
	p = WhatPage{Wizard: w, Form: f}
	if p.Sequences, err = page.SequenceChoices(v, f.Value("sequence")); err != nil {
		return p, err
	}
	templates, _, err := v.Client.Templates(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return p, err
	}
	for _, t := range templates {
		p.Templates = append(p.Templates, view.Option{Value: t.Name, Text: t.Name})
	}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, x := range sessions {
		p.Sessions = append(p.Sessions, view.Option{Value: x.ID.String(), Text: x.Name})
	}
	return p, err
}

// whatFields are the fields of the first wizard step.
var whatFields = []string{"name", "purpose", "what", "text", "media", "media_name", "text_b", "text_c", "text_d", "share_a", "share_b", "share_c", "share_d", "holdout",
	"template", "sequence", "id_sessione"}

// readWhat returns the argument call, changed to the values in the form of the first wizard step.
func readWhat(f *view.Form, call control.NewCampaign) control.NewCampaign {
	call.Name, call.Purpose, call.Session, call.Faults = f.Value("name"), f.Value("purpose"), f.Value("id_sessione"), nil
	before := call.Step
	stored := call
	call.Sequence, call.Step, call.Others, call.Shares, call.Holdout = "", nil, nil, nil, 0
	if call.Purpose == "" {
		call.Faults = append(call.Faults, puntuale.Fault{Location: "body.purpose", Code: puntuale.FaultRequired})
	}
	need := func(name string) {
		if strings.TrimSpace(f.Value(name)) == "" {
			call.Faults = append(call.Faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultRequired})
		}
	}
	switch f.Value("what") {
	case "sequence":
		need("sequence")
		call.Sequence = f.Value("sequence")
	case "template":
		need("template")
		call.Step = &puntuale.Step{Template: f.Value("template")}
		if before != nil && before.Template == call.Step.Template { // a program chose these variants
			call.Others, call.Shares, call.Holdout = stored.Others, stored.Shares, stored.Holdout
		}
	default:
		if f.Value("media") == "" { // a file may have no words
			need("text")
		}
		call.Step = &puntuale.Step{}
		if before != nil && before.Template == "" { // the stored draft may have media and a location, which only a program can set
			*call.Step = *before
		}
		call.Step.Text = f.Value("text")
		call.Step.Media, call.Step.MediaName = strings.TrimSpace(f.Value("media")), strings.TrimSpace(f.Value("media_name"))
		readVariants(f, &call, stored)
		call.Holdout = wholeOr(&call.Faults, f, "holdout", 0, puntuale.MaxHoldout)
	}
	if call.Sequence == "" && call.Step == nil {
		call.Step = &puntuale.Step{}
	}
	return call
}

// whatErr changes the locations of faults into names of the form's fields. It keeps only the first fault of each field.
func whatErr(err error, f *view.Form) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Faults = nil
	seen := map[string]bool{}
	for _, fault := range e.Faults {
		fault.Location = variantField(f, fault.Location)
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

// draftCall returns the call that would create the stored draft.
func draftCall(c puntuale.Campaign, author puntuale.UserID) control.NewCampaign {
	d := c.Draft
	call := control.NewCampaign{
		Name: c.Name, Purpose: d.Purpose, Reference: d.Reference, Step: d.Step, Fields: d.Fields, PerMinute: d.PerMinute, Window: d.Window, IfRunning: string(d.IfRunning),
		Canary: d.Canary, Timezone: d.Zone, CreatedBy: author, Others: d.Others, Shares: d.Shares, Holdout: d.Holdout,
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

func createCampaign(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if f.Value("do") == "look" && v.Partial() {
		v.Quiet = true
		return v.Show(WhatPreview(f))
	}
	made, err := v.Client.CreateCampaign(v.Ctx(), readWhat(f, control.NewCampaign{CreatedBy: v.Person.User().ID}), nil, control.Once[control.Campaign]{})
	if err != nil {
		return whatAgain(v, err, Wizard{Step: "what"}, f)
	}
	v.SetAuditTarget(made.ID.String())
	if tag := f.Value("tag"); tag != "" {
		return v.Redirect(view.WithQuery(campaignAddress(v, made.ID, "/people"), "tag", tag))
	}
	return v.Redirect(campaignAddress(v, made.ID, "/people"))
}

func whatAgain(v *page.Request, err error, w Wizard, f *view.Form) error {
	p, failed := whatPage(v, w, f)
	if failed != nil {
		return failed
	}
	return v.ShowRefused(whatErr(err, f), f, WhatForm(p), CampaignWhat(p), whatFields...)
}

func campaignWhat(v *page.Request) error {
	found, answered, err := campaignDraft(v)
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
		f.Values.Set("media", call.Step.Media)
		f.Values.Set("media_name", call.Step.MediaName)
		fillVariants(f, call)
	}
	p, err := whatPage(v, wizard(found, "what"), f)
	if err != nil {
		return err
	}
	return v.Show(CampaignWhat(p))
}

func changeWhat(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return err
	}
	changed, err := v.Client.UpdateCampaign(v.Ctx(), v.Path("id"), readWhat(f, draftCall(found.Campaign, v.Person.User().ID)))
	if err != nil {
		return whatAgain(v, err, wizard(found, "what"), f)
	}
	v.SetAuditTarget(changed.ID.String())
	return v.Redirect(campaignAddress(v, changed.ID, "/people"))
}

// The second wizard step: the recipients.

func campaignPeople(v *page.Request) error {
	p, answered, err := peoplePage(v, view.NewForm())
	if err != nil || answered {
		return err
	}
	return v.Show(CampaignPeople(p))
}

func peoplePage(v *page.Request, f *view.Form) (p PeoplePage, answered bool, err error) {
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return p, answered, err
	}
	list, err := v.Client.RecipientsOf(v.Ctx(), v.Path("id"))
	if err != nil {
		return p, false, err
	}
	p = PeoplePage{
		Wizard: wizard(found, "people"), Form: f, Size: list.Size, Columns: list.Columns, Mapping: list.Mapping, Preview: list.Preview, Missing: list.Missing,
		Unread: list.Unread, Common: found.Draft.Fields, Columned: view.NewForm(), Tagged: view.NewForm(fromTags, v.Query("tag")),
	}
	v.ShowNumbers(list.ImportReport)
	p.Hidden, _ = strconv.Atoi(v.Query("hidden")) // without a number, none is hidden
	for _, field := range list.Fields {
		p.Fields = append(p.Fields, field.Name)
		if field.Required {
			p.Required = append(p.Required, field.Name)
		}
	}
	for name, at := range list.Mapping {
		p.Columned.Values.Set("column."+name, strconv.Itoa(at+1))
	}
	p.Tags, err = v.Client.ContactTags(v.Ctx())
	return p, false, err
}

// fromTags is the location of the tags in a call.
const fromTags = "from.tags"

// takeTagged replaces the list with the contacts that have one of the chosen tags.
func takeTagged(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	p, answered, err := peoplePage(v, view.NewForm())
	if err != nil || answered {
		return err
	}
	v.Pass.LeaveSeat() // each of the transactions waits for its own seat
	_, err = v.Client.RecipientsFrom(v.Ctx(), v.Path("id"), f.Values[fromTags])
	if _, returnErr := v.Pass.Return(v.Ctx()); returnErr != nil && err == nil {
		err = returnErr
	}
	if err != nil {
		p.Tagged = f
		return v.ShowRefused(err, f, PeopleTags(p), CampaignPeople(p), fromTags)
	}
	v.SetAuditTarget(v.Path("id"))
	return v.Redirect(v.Frame.Place.Base + "/campaigns/" + v.Path("id") + "/people")
}

// uploadPeople reads a list from a file or from pasted text, while the list arrives. First it shows what it finds. If the
// person takes the list, the browser sends it again, and it is stored. If one row is wrong, no row is stored.
func uploadPeople(v *page.Request) error {
	if _, answered, err := campaignDraft(v); err != nil || answered {
		return err
	}
	f := view.NewForm()
	var found control.Recipients
	err := v.UploadList(f, func(ctx context.Context, file io.Reader, kind string) (err error) {
		found, err = v.Client.PutRecipients(ctx, v.Path("id"), file, kind, v.FileImport(f, false))
		return err
	})
	switch {
	case err != nil:
		return listRefused(v, f, err)
	case !found.Checked:
		v.SetAuditTarget(v.Path("id"))
		address := v.Frame.Place.Base + "/campaigns/" + v.Path("id")
		switch {
		case found.Hidden > 0:
			return v.Redirect(view.WithQuery(address+"/people", "hidden", strconv.Itoa(found.Hidden)))
		case len(found.Missing) > 0:
			return v.Redirect(address + "/people")
		}
		return v.Redirect(address + "/check")
	}
	p, answered, err := peoplePage(v, f)
	if err != nil || answered {
		return err
	}
	p.Found, p.Checked, p.Rows = v.ShowImport(f, found.ImportReport), true, found.Size
	if v.Partial() {
		return v.Show(PeopleFound(p))
	}
	return v.Show(CampaignPeople(p))
}

// listRefused shows the second wizard step again, with the fault of the file.
func listRefused(v *page.Request, f *view.Form, err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	p, answered, failed := peoplePage(v, f)
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
			p.Faults = append(p.Faults, view.LineFault{Line: line, Says: v.Frame.Language.Fault(fault.Reason())})
		}
	}
	if len(p.Faults) > 0 {
		shown.Faults, shown.Reason = nil, puntuale.Because(puntuale.FaultListNothingAdded)
	}
	return v.ShowRefused(&shown, p.Form, PeopleFound(p), CampaignPeople(p), "file")
}

// mapPeople stores the column of each field.
func mapPeople(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	p, answered, err := peoplePage(v, view.NewForm())
	if err != nil || answered {
		return err
	}
	var pairs, dated []string
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		field, ok := strings.CutPrefix(name, "column.")
		at, order, isDate := strings.Cut(f.Value(name), view.DateMark)
		if !ok || at == "" {
			continue
		}
		if pairs = append(pairs, field+":"+at); isDate {
			dated = append(dated, field+":"+order)
		}
	}
	same := len(pairs) == len(p.Mapping) && len(p.Unread) == 0
	for name, at := range p.Mapping {
		same = same && slices.Contains(pairs, fmt.Sprintf("%s:%d", name, at+1))
	}
	if v.Quiet = same; !same {
		p.Columned = f
		if f.Value("column.phone") == "" {
			err = puntuale.Invalid(puntuale.Fault{Location: "body.column.phone", Code: puntuale.FaultRequired})
		} else {
			_, err = v.Client.MapRecipients(v.Ctx(), v.Path("id"), strings.Join(pairs, ","), strings.Join(dated, ","))
		}
		if err != nil {
			return v.ShowRefused(datesErr(err), f, PeopleColumns(p), CampaignPeople(p), columnNames(p)...)
		}
	}
	v.SetAuditTarget(v.Path("id"))
	next := "/check"
	if f.Value("do") == "look" {
		next = "/people"
	}
	return v.Redirect(v.Frame.Place.Base + "/campaigns/" + v.Path("id") + next)
}

// datesErr moves the questions about dates to the choices of their columns.
func datesErr(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	moved := *e
	moved.Faults = slices.Clone(e.Faults)
	for i := range moved.Faults {
		if fault := &moved.Faults[i]; fault.Location == "body.dates" && fault.Code == control.FaultContactDates {
			fault.Location = "body.column." + fault.Args[0]
		}
	}
	return &moved
}

// The fourth wizard step: the time of the start.

var whenFields = []string{"begin", "start_at", "per_minute", "window.weekdays", "window.from", "window.to", "window.holidays", "if_running", "canary"}

func campaignWhen(v *page.Request) error {
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return err
	}
	f := whenForm(v, found.Draft)
	return v.Show(CampaignWhen(WhenPage{Wizard: wizard(found, "when"), Form: f, OfSequence: found.Sequence != 0}))
}

// whenForm returns the form of the fourth wizard step, filled from a draft.
func whenForm(v *page.Request, d puntuale.CampaignDraft) *view.Form {
	f := view.NewForm("begin", "now", "if_running", string(d.IfRunning), "canary", strconv.Itoa(d.CanarySize()))
	if !d.StartAt.IsZero() {
		f.Values.Set("begin", "date")
		f.Values.Set("start_at", d.StartAt.In(v.Frame.Zone).Format("2006-01-02T15:04"))
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

func changeWhen(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, answered, err := campaignDraft(v)
	if err != nil || answered {
		return err
	}
	if sameWhen(f, whenForm(v, found.Draft)) {
		v.Quiet = true
		return v.Redirect(campaignAddress(v, found.ID, "/start"))
	}
	call := draftCall(found.Campaign, v.Person.User().ID)
	call.Window, call.IfRunning, call.StartAt = page.ReadWindow(f, "window"), f.Value("if_running"), ""
	if f.Value("begin") == "date" {
		if call.StartAt = f.Value("start_at"); call.StartAt == "" {
			call.Faults = append(call.Faults, puntuale.Fault{Location: "body.start_at", Code: puntuale.FaultRequired})
		}
	}
	call.PerMinute = wholeOr(&call.Faults, f, "per_minute", 0, puntuale.MaxCampaignRate)
	canary := wholeOr(&call.Faults, f, "canary", puntuale.CanaryRecipients, puntuale.CampaignAhead)
	call.Canary = &canary
	if _, err = v.Client.UpdateCampaign(v.Ctx(), v.Path("id"), call); err != nil {
		p := WhenPage{Wizard: wizard(found, "when"), Form: f, OfSequence: found.Sequence != 0}
		return v.ShowRefused(page.Below(err, "pace"), f, WhenForm(p), CampaignWhen(p), whenFields...)
	}
	v.SetAuditTarget(v.Path("id"))
	return v.Redirect(campaignAddress(v, found.ID, "/start"))
}

// sameWhen reports whether the form changes nothing. If so, the check stays valid.
func sameWhen(f, before *view.Form) bool {
	return !slices.ContainsFunc(whenFields, func(name string) bool {
		if f.Value("begin") == "now" && name == "start_at" || name == "if_running" && f.Values[name] == nil {
			return false
		}
		return strings.Join(f.Values[name], ",") != strings.Join(before.Values[name], ",")
	})
}

// wholeOr reads a whole number from 0 to limit. If the field is empty, wholeOr returns the argument other. If the field
// contains any other text, wholeOr adds a fault.
func wholeOr(faults *[]puntuale.Fault, f *view.Form, name string, other, limit int) int {
	text := strings.TrimSpace(f.Value(name))
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		*faults = append(*faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultNotInRange, Args: []string{"0", strconv.Itoa(limit)}})
		return other
	}
	return n
}

// The last wizard step: the start.

func startCampaign(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	v.Quiet = true // package control writes the entry in the audit log
	started, _, err := v.Client.StartCampaign(v.Ctx(), v.Path("id"), f.Value("digest"))
	if err != nil {
		found, answered, failed := campaignDraft(v)
		if failed != nil || answered {
			return failed
		}
		p, failed := checkPage(v, found, wizard(found, "start"))
		if failed != nil {
			return failed
		}
		if _, changed := errors.AsType[*control.Changed](err); changed {
			err = puntuale.Conflict(puntuale.FaultCampaignChangedSinceCheck)
		}
		return v.ShowRefused(err, p.Form, CampaignStartForm(p), CampaignStart(p))
	}
	v.Say("campaign.said_started", "", "Name", started.Name)
	return v.Redirect(campaignAddress(v, started.ID, ""))
}

// limitText returns the name of the text that explains a limit.
func limitText(l *puntuale.CampaignLimit) string {
	if l.Reserved > 0 {
		return "campaign.limit.portfolio_reserved"
	}
	return "campaign.limit." + l.Code
}
