package sequence

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/bookings"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// sequenceRoutes are the pages of sequences.
var sequenceRoutes = []page.Route{
	page.Get("/c/{client}/sequences", page.ClientSide, puntuale.Reader, sequences),
	page.Get("/c/{client}/sequences/new", page.ClientSide, puntuale.Staff, newSequence),
	page.Get("/c/{client}/sequences/{id}", page.ClientSide, puntuale.Reader, sequence),
	page.Get("/c/{client}/sequences/{id}/edit", page.ClientSide, puntuale.Staff, editSequence),
	page.Post("/c/{client}/sequences", page.ClientSide, puntuale.Staff, "sequence.create", createSequence),
	page.Post("/c/{client}/sequences/draft", page.ClientSide, puntuale.Staff, page.Unaudited, draft),
	page.Post("/c/{client}/sequences/file", page.ClientSide, puntuale.Staff, page.Unaudited, tryFile),
	page.Post("/c/{client}/sequences/{id}", page.ClientSide, puntuale.Staff, "sequence.update", updateSequence),
	page.Post("/c/{client}/sequences/{id}/copy", page.ClientSide, puntuale.Staff, "sequence.copy", copySequence),
	page.Post("/c/{client}/sequences/{id}/restore", page.ClientSide, puntuale.Staff, "sequence.restore", restoreSequence),
	page.Post("/c/{client}/sequences/{id}/delete", page.ClientSide, puntuale.Staff, "sequence.delete", deleteSequence),
}

// sequences shows the list of sequences. While a person types a search, htmx sends the request again, and sequences
// sends only the list.
func sequences(v *page.Request) error {
	l, err := sequenceList(v, "/sequences")
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Show(SequenceTable(l))
	}
	return v.Show(Sequences(l))
}

// sequenceList reads a part of the client's sequences, newest first, for the page at the given path.
func sequenceList(v *page.Request, path string) (SequenceList, error) {
	l := SequenceList{URL: v.Frame.Place.Base + path, Text: strings.TrimSpace(v.Query("text")), Cursor: v.Query("cursor")}
	rows, next, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Text: l.Text, Newest: true, Page: request.Page{Limit: page.RowsOfPage, Cursor: l.Cursor}})
	if err != nil {
		return l, page.Lost(err)
	}
	l.Rows, l.Next = sequenceRows(rows), next
	l.Count, err = page.Total(v.Client.CountSequences(v.Ctx(), l.Text))
	return l, err
}

func sequenceRows(rows []control.Sequence) []SequenceRow {
	out := make([]SequenceRow, len(rows))
	for i, r := range rows {
		out[i] = SequenceRow{Sequence: r.Sequence, Fields: r.Fields}
	}
	return out
}

// sequence shows what one sequence does for a person, and how a program starts the sequence.
func sequence(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f := draftForm(found.Sequence)
	for name, values := range v.HTTP.URL.Query() {
		if name == "phone" || strings.HasPrefix(name, "fields.") || strings.HasPrefix(name, "preview.") {
			f.Values[name] = values
		}
	}
	example(v, f, found.Fields)
	try, err := try(v, f, control.NewSequence{Name: found.Name, Steps: found.Steps, Session: sessionText(found.Session), Booking: found.Booking})
	if err != nil {
		return err
	}
	defaults, err := defaultsOf(v, found.ID)
	if err != nil {
		return err
	}
	page := SequencePage{Sequence: found.Sequence, Fields: found.Fields, Form: f, Try: try, Question: view.NewForm(), DefaultOf: defaults.names}
	page.Snippets = snippets(v, found, f)
	if err := page.replans(v); err != nil {
		return err
	}
	if v.Partial() && v.HTTP.Header.Get("HX-Target") == "div#preview" {
		return v.Show(Preview(f, try))
	}
	return v.Show(SequenceShow(page))
}

// replans finds out whether the bookings of an edited sequence may be updated, or are being updated.
func (p *SequencePage) replans(v *page.Request) (err error) {
	if p.Booking == "" || !view.Has(view.With(v.Ctx(), v.Frame), puntuale.Staff) {
		return nil
	}
	found, err := bookings.ReplanOf(v.Ctx(), v.Client, p.ID.String())
	if p.Replanning = found.Word() == "running" || found.Word() == "paused" || found.Word() == "held"; err != nil || p.Replanning || v.Query("edited") == "" {
		return err
	}
	p.Booked, err = bookings.CountReplan(v.Ctx(), v.Client, p.ID.String())
	return err
}

func sessionText(id puntuale.SessionID) string {
	if id == 0 {
		return ""
	}
	return id.String()
}

// try computes the preview of the form's sequence for the form's person.
func try(v *page.Request, f *view.Form, r control.NewSequence) (Try, error) {
	done, err := v.Client.Rehearse(v.Ctx(), control.RehearsalCall{Sequence: r, Phone: f.Value("phone"), Fields: samples(f.Values), Change: f.Value("preview.change"), MovedTo: view.Picked(f.Value("preview.to"))})
	if err != nil {
		return Try{}, err
	}
	if c := done.Change; c != nil && f.Value("preview.to") == "" {
		f.Values.Set("preview.to", c.To.In(v.Frame.Zone).Format(view.Picker))
	}
	t := Try{ForBookings: r.Booking != "", Change: done.Change, Steps: r.Steps, Messages: done.Plan.Messages, Skipped: done.Plan.Skipped, Fields: done.Fields, MissingFields: done.MissingFields, Faults: variantFields(done.Faults), Now: done.Now}
	for _, d := range done.Dates {
		t.Dates = append(t.Dates, Mark{Name: d.Name, At: d.At})
	}
	for _, w := range done.Warnings {
		t.Warnings = append(t.Warnings, StepWarning{Step: w.Step, Says: v.Frame.Language.Says(w.Reason)})
	}
	return t, nil
}

// example gives example values to the recipient's fields in the form. It does not change a field that the form already
// contains, even if the user left it empty.
func example(v *page.Request, f *view.Form, fields []puntuale.Field) {
	for _, field := range fields {
		name := "fields." + field.Name
		if _, found := f.Values[name]; found {
			continue
		}
		f.Values.Set(name, exampleOf(v, field))
	}
	if _, found := f.Values["phone"]; !found {
		f.Values.Set("phone", "+39 333 123 4567")
	}
}

func exampleOf(v *page.Request, field puntuale.Field) string {
	if text := control.Example(field, v.Now().In(v.Frame.Zone)); text != "" {
		return text
	}
	name := strings.ToLower(field.Name)
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch word {
		case "ora", "orario", "ore", "time", "hour":
			return "15:30"
		case "data", "date", "giorno", "day":
			return v.T("sequence.example_day")
		case "link", "url", "sito", "site":
			return "https://example.com/"
		}
	}
	switch {
	case strings.Contains(name, "cognome"), strings.Contains(name, "surname"):
		return "Rossi"
	case strings.Contains(name, "nome"), strings.Contains(name, "name"):
		return "Maria"
	}
	return v.T("sequence.example_value")
}

func newSequence(v *page.Request) error {
	found := control.Sequence{Sequence: beginning(v)}
	return edit(v, found)
}

// beginning returns the sequence that a new form shows: an example, or one empty step.
func beginning(v *page.Request) puntuale.Sequence {
	timing := func(amount int, unit puntuale.Unit, d puntuale.Direction, anchor, at string) puntuale.Timing {
		return puntuale.Timing{Anchor: anchor, Offset: puntuale.Offset{Amount: amount, Unit: unit, Direction: d}, At: at}
	}
	now := puntuale.Timing{Anchor: puntuale.AnchorStart}
	switch v.Query("like") {
	case "appointment":
		return puntuale.Sequence{Name: v.T("sequence.like.appointment"), Steps: []puntuale.Step{
			{Text: v.T("sequence.like.appointment_1"), Timing: now},
			{Text: v.T("sequence.like.appointment_2"), Timing: timing(2, puntuale.Days, puntuale.Before, v.T("sequence.field.appointment"), "09:00")},
			{Text: v.T("sequence.like.appointment_3"), Timing: timing(1, puntuale.Days, puntuale.After, v.T("sequence.field.appointment"), "18:00")},
		}}
	case "booking":
		date := v.T("sequence.field.appointment")
		return puntuale.Sequence{Name: v.T("sequence.like.booking"), Booking: date, Steps: []puntuale.Step{
			{Text: v.T("sequence.like.booking_1"), Timing: now},
			{Text: v.T("sequence.like.booking_2"), Timing: timing(1, puntuale.Days, puntuale.Before, date, "10:00")},
			{Text: v.T("sequence.like.booking_3"), Timing: puntuale.Timing{Anchor: puntuale.BookingMovedAnchor}},
			{Text: v.T("sequence.like.booking_4"), Timing: puntuale.Timing{Anchor: puntuale.BookingCancelledAnchor}},
			{Text: v.T("sequence.like.booking_5"), OnlyIf: []string{puntuale.BookingArrived.String()}, Timing: timing(1, puntuale.Days, puntuale.After, date, "18:00")},
		}}
	case "birthday":
		return puntuale.Sequence{Name: v.T("sequence.like.birthday"), Steps: []puntuale.Step{
			{Text: v.T("sequence.like.birthday_1"), Timing: timing(0, puntuale.Days, puntuale.After, v.T("automation.field.birthday"), "09:00")},
		}}
	case "renewal":
		return puntuale.Sequence{Name: v.T("sequence.like.renewal"), Steps: []puntuale.Step{
			{Text: v.T("sequence.like.renewal_1"), Timing: timing(14, puntuale.Days, puntuale.Before, v.T("automation.field.renewal"), "09:30")},
		}}
	case "welcome":
		return puntuale.Sequence{Name: v.T("sequence.like.welcome"), Steps: []puntuale.Step{
			{Text: v.T("sequence.like.welcome_1"), Timing: now},
			{Text: v.T("sequence.like.welcome_2"), Timing: timing(3, puntuale.Days, puntuale.After, puntuale.AnchorStart, "10:00")},
		}}
	case "expiry":
		return puntuale.Sequence{Name: v.T("sequence.like.expiry"), Steps: []puntuale.Step{
			{Text: v.T("sequence.like.expiry_1"), Timing: timing(7, puntuale.Days, puntuale.Before, v.T("sequence.field.expiry"), "09:30")},
			{Text: v.T("sequence.like.expiry_2"), Timing: timing(1, puntuale.Days, puntuale.Before, v.T("sequence.field.expiry"), "09:30")},
		}}
	}
	return puntuale.Sequence{Steps: []puntuale.Step{{Timing: now}}}
}

func editSequence(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	return edit(v, found)
}

func edit(v *page.Request, found control.Sequence) error {
	f := draftForm(found.Sequence)
	if found.ID != 0 {
		f.Values.Set("id", found.ID.String())
		f.Values.Set(view.Version, string(found.Version()))
	}
	e, err := editor(v, f, -1)
	if err != nil {
		return err
	}
	return v.Show(SequenceEdit(e))
}

// editor returns the data that the editor shows for a form. at is the number of the step that gets the focus.
func editor(v *page.Request, f *view.Form, at int) (Editor, error) {
	e := Editor{Form: f, ID: f.Value("id"), Steps: stepCount(f), At: at}
	var err error
	if e.Try, err = tryDraft(v, f); err != nil {
		return e, err
	}
	templates, _, err := v.Client.Templates(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return e, err
	}
	for _, t := range templates {
		e.Templates = append(e.Templates, t.Name)
	}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, x := range sessions {
		e.Sessions = append(e.Sessions, x.Session)
	}
	return e, err
}

// tryDraft computes the preview of the form's sequence. New fields get example values.
func tryDraft(v *page.Request, f *view.Form) (Try, error) {
	r := readDraft(f)
	first, err := v.Client.Rehearse(v.Ctx(), control.RehearsalCall{Sequence: r})
	if err != nil {
		return Try{}, err
	}
	example(v, f, first.Fields)
	return try(v, f, r)
}

// draft shows a sequence's form again, after a button changed the steps or a person changed a value.
func draft(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	do := f.Value("do")
	f.Values.Del("do")
	if do == "preview" && v.Partial() {
		try, err := tryDraft(v, f)
		if err != nil {
			return err
		}
		return v.Show(Preview(f, try))
	}
	e, err := editor(v, f, change(f, do))
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Show(SequenceForm(e))
	}
	return v.Show(SequenceEdit(e))
}

// refused shows a sequence's form again, with its faults.
func refused(v *page.Request, err error, f *view.Form) error {
	if e, _ := page.Refusal(err); e == nil {
		return err
	}
	e, failed := editor(v, f, -1)
	if failed != nil {
		return failed
	}
	return v.ShowRefused(atBooking(atTexts(err), f), f, SequenceForm(e), SequenceEdit(e), draftFields(f)...)
}

// atTexts changes the location of a fault "step without content" to the step's text field.
func atTexts(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	moved := *e
	moved.Faults = variantFields(slices.Clone(e.Faults))
	for i, f := range moved.Faults {
		missing := slices.ContainsFunc(e.Faults, func(o puntuale.Fault) bool {
			return strings.HasPrefix(o.Location, f.Location+".") && o.Code == puntuale.FaultRequired
		})
		if (f.Code == puntuale.FaultSequenceNothingToShow || f.Code == puntuale.FaultSequenceNothingToShowOrTemplate) && !missing { // if a file or a location is missing, the fault of that field is more exact, so this fault keeps its location
			moved.Faults[i].Location = strings.TrimSuffix(f.Location, ".text") + ".text"
		}
	}
	return &moved
}

// atBooking changes the location of a fault of the main date to the field that names it. A sequence that something else
// uses cannot become one for bookings: this is a fault of the choice.
func atBooking(err error, f *view.Form) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	moved := *e
	if moved.Faults = slices.Clone(e.Faults); e.Code == puntuale.CodeConflict && strings.HasPrefix(string(e.Reason.Code), "booking.") {
		moved.Faults = append(moved.Faults, e.Reason.At("body.for_bookings", nil))
	}
	name := "body.booking"
	if f.Value("booking") == "+" {
		name = "body.booking_new"
	}
	for i := range moved.Faults {
		if moved.Faults[i].Location == "body.booking.date" {
			moved.Faults[i].Location = name
		}
	}
	return &moved
}

func createSequence(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	created, err := v.Client.CreateSequence(v.Ctx(), readDraft(f), control.Once[control.Sequence]{})
	if err != nil {
		return refused(v, err, f)
	}
	v.SetAuditTarget(created.ID.String())
	v.Say("sequence.created", "")
	return v.Redirect(sequenceAddress(v, created.ID))
}

func sequenceAddress(v *page.Request, id puntuale.SequenceID) string {
	return v.Frame.Place.Base + "/sequences/" + id.String()
}

func updateSequence(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if _, err := v.Client.Sequence(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	f.Values.Set("id", v.Path("id"))
	draft := readDraft(f)
	draft.Known = page.Versions(f)
	done, err := v.Client.ReplaceSequence(v.Ctx(), v.Path("id"), draft)
	if err != nil {
		if missing := compareSequence(v, err, f, v.Path("id")); missing != nil {
			return missing
		}
		return refused(v, err, f)
	}
	v.SetAuditTarget(done.ID.String())
	v.Say("sequence.updated", "")
	if done.Booking != "" {
		return v.Redirect(sequenceAddress(v, done.ID) + "?edited=yes")
	}
	return v.Redirect(sequenceAddress(v, done.ID))
}

func copySequence(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	name := []rune(v.T("sequence.copy_name", "Name", found.Name))
	made, err := v.Client.CreateSequence(v.Ctx(), control.NewSequence{Name: string(name[:min(len(name), puntuale.MaxName)]), Session: sessionText(found.Session),
		IfRunning: string(found.IfRunning), StopOnReply: found.StopOnReply, TrackLinks: found.TrackLinks.Choice(), Purpose: found.Purpose.String(), Booking: found.Booking, Steps: found.Steps}, control.Once[control.Sequence]{})
	if err != nil {
		return err
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("sequence.copied", "")
	return v.Redirect(sequenceAddress(v, made.ID) + "/edit")
}

// deleteSequence deletes a sequence. If messages are pending, it first asks what to do with them.
func deleteSequence(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	defaults, err := defaultsOf(v, found.ID)
	if err != nil {
		return err
	}
	if err := v.Client.DeleteSequence(v.Ctx(), v.Path("id"), f.Value("pending")); err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeConflict && f.Value("pending") == "" {
			f.Values.Set("asked", "1")
		}
		page := SequencePage{Sequence: found.Sequence, Fields: found.Fields, Question: f, DefaultOf: defaults.names}
		return v.ShowRefused(err, f, SequenceDelete(page), SequenceDeletePage(page), "pending")
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("sequence.deleted", sequenceAddress(v, found.ID)+"/restore?"+url.Values{"start": defaults.start, "stop": defaults.stop}.Encode(), "Name", found.Name)
	return v.Redirect(v.Frame.Place.Base + "/sequences")
}

// defaults contains the names of the sessions that have the sequence as a default sequence.
type defaults struct{ names, start, stop []string }

func defaultsOf(v *page.Request, id puntuale.SequenceID) (d defaults, err error) {
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, s := range sessions {
		if s.Start == id {
			d.start = append(d.start, s.ID.String())
		}
		if s.Stop == id {
			d.stop = append(d.stop, s.ID.String())
		}
		if s.Start == id || s.Stop == id {
			d.names = append(d.names, s.Name)
		}
	}
	return d, err
}

// restoreSequence undoes a deletion.
func restoreSequence(v *page.Request) error {
	query := v.HTTP.URL.Query()
	found, err := v.Client.RestoreSequence(v.Ctx(), v.Path("id"), query["start"], query["stop"])
	if err != nil {
		return err
	}
	v.SetAuditTarget(found.ID.String())
	v.Say("sequence.restored", "", "Name", found.Name)
	return v.Redirect(sequenceAddress(v, found.ID))
}

// compareSequence calls [page.Request.Compare] for a sequence. It also shows the differences, step by step.
func compareSequence(v *page.Request, err error, f *view.Form, id string) error {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return nil
	}
	found, missing := v.Client.Sequence(v.Ctx(), id)
	if missing != nil {
		return missing
	}
	v.Compare(err, f, found.Version(), sequenceAddress(v, found.ID)+"/edit")
	v.Differ(f, draftForm(found.Sequence), page.Label{Name: "name", Key: "sequence.name"}, page.Label{Name: "purpose", Key: "purpose.label"})
	typed := readDraft(f)
	ctx := view.With(v.Ctx(), v.Frame)
	for i := range max(len(typed.Steps), len(found.Steps)) {
		f.Differ(v.T("step.number", "Number", i+1), StepWords(ctx, typed.Steps, i), StepWords(ctx, found.Steps, i))
	}
	settings := func(session, ifRunning string, stop bool, links *bool, date string) string {
		words := []string{v.T("editor.running." + firstText(ifRunning, string(puntuale.IfRunningAllow)))}
		if date = strings.TrimSpace(date); date != "" {
			words = []string{v.T("editor.for_bookings"), v.T("editor.main_date") + " " + date}
		}
		if session != "" {
			words = append(words, v.T("editor.session")+" "+session)
		}
		if stop {
			words = append(words, v.T("editor.stop_on_reply"))
		}
		if links != nil {
			words = append(words, v.T("editor.link_rule."+linkWord(links)))
		}
		return strings.Join(words, " · ")
	}
	f.Differ(v.T("editor.more"), settings(typed.Session, typed.IfRunning, typed.StopOnReply, typed.TrackLinks, typed.Booking), settings(sessionText(found.Session), string(found.IfRunning), found.StopOnReply, found.TrackLinks.Choice(), found.Booking))
	return nil
}
