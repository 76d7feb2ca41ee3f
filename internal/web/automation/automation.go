package automation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

func rulesOf(v *page.Request) *automation.Rules { return v.Site.Automations.OfClient(v.Client, "") }

func list(v *page.Request) error {
	all, err := rulesOf(v).List(v.Ctx())
	if err != nil {
		return err
	}
	n, err := namesOf(v, all...)
	if err != nil {
		return err
	}
	return v.Show(Automations(ListPage{Rows: all, names: n}))
}

// namesOf reads the names of the sequences and sessions in the given automations.
func namesOf(v *page.Request, all ...puntuale.Automation) (names, error) {
	n := names{map[puntuale.SequenceChoice]string{}, map[string]string{}}
	wanted := map[puntuale.SequenceChoice]bool{}
	sessions := false
	for _, a := range all {
		wanted[a.Trigger.Sequence], wanted[a.Conditions.NotIn] = true, true
		for _, x := range a.Actions {
			wanted[x.Sequence] = true
		}
		sessions = sessions || a.Conditions.Session != ""
	}
	for _, c := range slices.Sorted(maps.Keys(wanted)) {
		if c.ID() == 0 {
			continue
		}
		s, err := v.Client.Sequence(v.Ctx(), string(c))
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			continue
		}
		if err != nil {
			return n, err
		}
		n.sequences[c] = s.Name
	}
	if !sessions {
		return n, nil
	}
	found, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, s := range found {
		n.sessions[s.ID.String()] = s.Name
	}
	return n, err
}

func show(v *page.Request) error {
	found, err := rulesOf(v).Rule(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	p := RulePage{Automation: found.Automation, Cursor: v.Query("cursor"), Question: view.NewForm()}
	if found.Path != "" {
		p.Hook = v.SiteAddress() + found.Path
	}
	p.HookLost = found.Path == ""
	if found.Trigger.Preset != "" {
		if p.Payload, err = lastPayloadOf(v, v.Path("id")); err != nil {
			return err
		}
	}
	if p.names, err = namesOf(v, found.Automation); err != nil {
		return err
	}
	p.Firings, p.Next, err = rulesOf(v).Firings(v.Ctx(), v.Path("id"), request.Page{Limit: page.RowsOfPage, Cursor: p.Cursor})
	if err != nil {
		return page.Lost(err)
	}
	if err := v.NamePeople(page.Each(p.Firings, func(f puntuale.Firing) string { return f.Phone })...); err != nil {
		return err
	}
	return v.Show(Rule(p))
}

func newRule(v *page.Request) error {
	a, like := beginning(v)
	f := formOf(a)
	f.Values.Set("like", like)
	e, err := editor(v, f, "")
	if err != nil {
		return err
	}
	return v.Show(Edit(e))
}

func edit(v *page.Request) error {
	found, err := rulesOf(v).Rule(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f := formOf(found.Automation)
	f.Values.Set("id", found.ID.String())
	f.Values.Set(view.Version, string(found.Version()))
	e, err := editor(v, f, "")
	if err != nil {
		return err
	}
	return v.Show(Edit(e))
}

// editor returns the data that the editor shows for a form. focus is the name of the row that gets the focus.
func editor(v *page.Request, f *view.Form, focus string) (Editor, error) {
	read := readForm(f)
	e := Editor{Form: f, ID: f.Value("id"), Kind: read.Trigger.Kind, Like: f.Value("like"), Focus: focus, Rule: read.Automation}
	var err error
	if e.names, err = namesOf(v, read.Automation); err != nil {
		return e, err
	}
	if err = e.choices(v); err != nil {
		return e, err
	}
	if e.ID != "" && e.Kind == puntuale.TriggerHook {
		if e.Payload, err = lastPayloadOf(v, e.ID); err != nil {
			return e, err
		}
		if _, found := f.Values["try.payload"]; !found {
			f.Values.Set("try.payload", e.Payload.Content)
		}
	}
	e.Try, err = try(v, f, read)
	return e, err
}

// choices reads the sequences, sessions, templates and fields that a person can choose in the editor.
func (e *Editor) choices(v *page.Request) (err error) {
	if e.Sequences, e.Bookings, err = page.BookingChoices(v); err != nil {
		return err
	}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return err
	}
	for _, s := range sessions {
		e.Sessions = append(e.Sessions, view.Option{Value: s.ID.String(), Text: s.Name})
		if s.Default {
			e.Pair.Session = s.Name
			if e.Pair.Start, err = nameOf(v, s.Start); err == nil {
				e.Pair.Stop, err = nameOf(v, s.Stop)
			}
			if err != nil {
				return err
			}
		}
	}
	templates, _, err := v.Client.Templates(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return err
	}
	for _, t := range templates {
		e.Templates = append(e.Templates, t.Name)
	}
	e.Fields, err = fieldNames(v)
	return err
}

func nameOf(v *page.Request, id puntuale.SequenceID) (string, error) {
	if id == 0 {
		return "", nil
	}
	s, err := v.Client.Sequence(v.Ctx(), id.String())
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return "", nil
	}
	return s.Name, err
}

// maxFields is the number of fields that the editor offers. maxRead is the number of contacts, and of sequences, that
// are searched for these fields.
const (
	maxFields = 12
	maxRead   = "50"
)

// fieldNames returns "nome", then the fields of some contacts, then the fields of the newest sequences.
func fieldNames(v *page.Request) ([]string, error) {
	all := []string{"nome"}
	add := func(name string) {
		if len(all) < maxFields && !slices.Contains(all, name) && name != phoneField {
			all = append(all, name)
		}
	}
	contacts, _, err := v.Client.Contacts(v.Ctx(), control.ContactQuery{}, request.Page{Limit: maxRead})
	if err != nil {
		return nil, err
	}
	for _, c := range contacts {
		for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
			add(name)
		}
	}
	sequences, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: maxRead}})
	for _, s := range sequences {
		for _, f := range s.Fields {
			add(f.Name)
		}
	}
	return all, err
}

// draft shows the form again, with one row more or less, or with the result of a trial.
func draft(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	do := f.Value("do")
	f.Values.Del("do")
	focus := ""
	if do != "try" {
		focus = change(f, do)
	}
	e, err := editor(v, f, focus)
	if err != nil {
		return err
	}
	switch {
	case !v.Partial():
		return v.Show(Edit(e))
	case do == "try":
		return v.Show(TryResult(e))
	}
	return v.Show(RuleForm(e))
}

func create(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	f.Values.Del("id")
	made, err := rulesOf(v).Create(v.Ctx(), readForm(f), control.Once[automation.Rule]{})
	if err != nil {
		return refused(v, err, f)
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("automation.created", "")
	return v.Redirect(address(v, made.ID))
}

func address(v *page.Request, id puntuale.AutomationID) string {
	return v.Frame.Place.Base + "/automations/" + id.String()
}

func update(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	f.Values.Set("id", v.Path("id"))
	done, err := rulesOf(v).Replace(v.Ctx(), v.Path("id"), readForm(f))
	if err != nil {
		if missing := compare(v, err, f); missing != nil {
			return missing
		}
		return refused(v, err, f)
	}
	v.SetAuditTarget(done.ID.String())
	v.Say("automation.updated", "")
	return v.Redirect(address(v, done.ID))
}

// compare shows what somebody else saved since the form was filled.
func compare(v *page.Request, err error, f *view.Form) error {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return nil
	}
	found, missing := rulesOf(v).Rule(v.Ctx(), v.Path("id"))
	if missing != nil {
		return missing
	}
	typed := readForm(f).Automation
	n, missing := namesOf(v, typed, found.Automation)
	if missing != nil {
		return missing
	}
	v.Compare(err, f, found.Version(), address(v, found.ID)+"/edit")
	f.Differ(v.T("automation.name"), typed.Name, found.Name)
	ctx := view.With(v.Ctx(), v.Frame)
	f.Differ(v.T("automation.state"), v.T(stateKey(typed.Active)), v.T(stateKey(found.Active)))
	f.Differ(v.T("automation.in_words"), wholeWords(ctx, typed, n), wholeWords(ctx, found.Automation, n))
	return nil
}

// wholeWords describes a rule completely, including its full texts and its mapping.
func wholeWords(ctx context.Context, a puntuale.Automation, n names) string {
	parts := []string{sentence(ctx, a, n)}
	for _, x := range a.Actions {
		parts = append(parts, strings.Join(slices.DeleteFunc([]string{x.Text, x.Media, x.MediaName, x.Purpose, x.Reference, x.Status}, func(s string) bool { return s == "" }), " · "))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Trigger.Map)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, a.Trigger.Map[name]))
	}
	return strings.Join(parts, "\n")
}

// refused shows a form again, with its faults.
func refused(v *page.Request, err error, f *view.Form) error {
	if e, _ := page.Refusal(err); e == nil {
		return err
	}
	e, failed := editor(v, f, "")
	if failed != nil {
		return failed
	}
	return v.ShowRefused(atRows(err, f), f, RuleForm(e), Edit(e), formFields(f)...)
}

func switchRule(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	done, err := rulesOf(v).Switch(v.Ctx(), v.Path("id"), f.Is("active", "on"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(done.ID.String() + " " + onOff(done.Active))
	v.Say("automation.switched_"+onOff(done.Active), "", "Name", done.Name)
	if returnTo := v.HTTP.Referer(); strings.HasSuffix(returnTo, "/automations") {
		return v.Redirect(v.Frame.Place.Base + "/automations")
	}
	return v.Redirect(address(v, done.ID))
}

func rotate(v *page.Request) error {
	done, err := rulesOf(v).Rotate(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(done.ID.String())
	v.Say("automation.rotated", "")
	return v.Redirect(address(v, done.ID))
}

func deleteRule(v *page.Request) error {
	found, err := rulesOf(v).Rule(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if err := rulesOf(v).Delete(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("automation.deleted", "", "Name", found.Name)
	return v.Redirect(v.Frame.Place.Base + "/automations")
}
