package sequence

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// startRoutes are the pages that start a sequence by hand, for one number.
var startRoutes = []page.Route{
	page.Get("/c/{client}/sequences/{id}/start", page.ClientSide, puntuale.Staff, startPage),
	page.Post("/c/{client}/sequences/{id}/start", page.ClientSide, puntuale.Staff, "sequence.start", startByHand),
	page.Get("/c/{client}/sequences/{id}/started", page.ClientSide, puntuale.Staff, startedPage),
}

// startPage shows the page that asks for the recipient of a start.
func startPage(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f := view.NewForm()
	for name, values := range v.HTTP.URL.Query() {
		f.Values[name] = values
	}
	return v.Show(SequenceStart(Starting{Sequence: found.Sequence, Fields: found.Fields, Form: f}))
}

// startByHand shows a preview, and starts only after the person saw it. The posted form contains the token of the
// preview that was on the screen. If the present preview is different, startByHand shows the present preview first.
func startByHand(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	do := f.Value("do")
	v.Quiet = do != "start"
	call := startCall(found, f)
	page := Starting{Sequence: found.Sequence, Fields: found.Fields, Form: f}
	fields := startFields(found)
	planned, err := v.Client.Preview(v.Ctx(), call)
	if err != nil && do == "look" {
		return notYet(v, err, page, fields)
	}
	if err != nil {
		return v.ShowRefused(fielded(err), f, StartForm(page), SequenceStart(page), fields...)
	}
	status, err := v.Client.RecipientStatus(v.Ctx(), call.Sequence, call.Phone)
	if err != nil {
		return err
	}
	page.Try = &Try{Steps: found.Steps, Messages: planned.Messages, Skipped: planned.Skipped, Fields: found.Fields, Now: v.Now()}
	for i := range page.Try.Messages {
		page.Try.Messages[i].Variants = nil // the page shows what this person gets
	}
	for _, w := range planned.Notes.Warnings {
		page.Try.Warnings = append(page.Try.Warnings, StepWarning{w.Step, v.Frame.Language.Fault(w.Reason)})
	}
	page.Blacklisted, page.Running = status.Blacklisted, status.Running
	now := tokenOf(call, planned, status, v.Now())
	page.Seen = now.String()
	switch {
	case do == "look":
		return v.Show(StartPreview(page))
	case do == "start" && now.shownBy(f.Value("seen")):
		return start(v, found, call, page, status)
	case do == "start":
		v.Quiet, page.Changed = true, true
	}
	if v.Partial() {
		return v.Show(StartForm(page))
	}
	return v.Show(SequenceStart(page))
}

// start starts the previewed run, and redirects to a page that the person can reload.
func start(v *page.Request, found control.Sequence, call control.StartCall, page Starting, status control.RecipientStatus) error {
	started, err := v.Client.Start(v.Ctx(), call)
	if err != nil {
		return v.ShowRefused(fielded(err), page.Form, StartForm(page), SequenceStart(page), startFields(found)...)
	}
	v.SetAuditTarget(found.ID.String())
	query := url.Values{}
	for _, id := range started.IDs {
		query.Add("m", id.String())
	}
	for _, step := range started.Skipped {
		query.Add("skipped", strconv.Itoa(step.Step+1))
	}
	if status.Running && !started.Replayed {
		query.Set("running", string(found.IfRunning))
	}
	return v.Redirect(sequenceAddress(v, found.ID) + "/started?" + query.Encode())
}

// startedPage shows the result of a start for each message.
func startedPage(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	query := v.HTTP.URL.Query()
	page := Started{Sequence: found.Sequence, Running: query.Get("running")}
	for _, text := range query["skipped"] {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= len(found.Steps) {
			page.Skipped = append(page.Skipped, n)
		}
	}
	if ids := query["m"]; len(ids) > 0 {
		if page.Messages, err = v.Client.Details(v.Ctx(), ids); err != nil {
			return err
		}
	}
	if len(page.Messages) == 0 {
		return v.Show(SequenceStarted(page))
	}
	first := page.Messages[0]
	if first.Phone != "" {
		status, err := v.Client.RecipientStatus(v.Ctx(), v.Path("id"), first.Phone)
		if err != nil {
			return err
		}
		page.Blacklisted = status.Blacklisted
	}
	if page.Unwanted, err = v.Client.Unwanted(v.Ctx(), page.Messages); err != nil {
		return err
	}
	session, err := v.Client.Session(v.Ctx(), first.Session.String())
	if err == nil && session.Sandbox {
		page.Phone = v.Frame.Place.Base + "/sessions/" + session.ID.String() + "/phone?" + url.Values{"phone": {first.Phone}}.Encode()
	}
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return err
	}
	return v.Show(SequenceStarted(page))
}

// notYet shows a form that is not complete yet. It lists the wrong and missing fields, but does not mark them in red.
func notYet(v *page.Request, err error, starting Starting, fields []string) error {
	e, _ := page.Refusal(err)
	if e == nil {
		return err
	}
	faults := view.NewForm()
	if named, ok := errors.AsType[*puntuale.Error](fielded(err)); ok {
		faults.Take(v.Frame.Language, named, fields...)
		starting.Wrong = !slices.ContainsFunc(named.Faults, func(f puntuale.Fault) bool { return f.Code == puntuale.FaultRequired })
	}
	starting.NotYet = faults
	return v.Show(StartPreview(starting))
}

func startFields(s control.Sequence) []string {
	fields := []string{"phone"}
	for _, field := range s.Fields {
		fields = append(fields, "fields."+field.Name)
	}
	return fields
}

// startCall reads a form into a start call.
func startCall(s control.Sequence, f *view.Form) control.StartCall {
	body := map[string]json.RawMessage{}
	put := func(name, text string) {
		if raw, err := json.Marshal(text); err == nil {
			body[name] = raw
		}
	}
	put("phone", f.Value("phone"))
	for name, text := range samples(f.Values) {
		put(name, text)
	}
	whole, _ := json.Marshal(body) // encoding strings as JSON cannot fail
	id := s.ID.String()
	return control.StartCall{Sequence: id, Phone: f.Value("phone"), Fields: body, Body: whole, Scope: "POST /api/start/" + id, Key: f.Value("key")}
}

// fielded changes the locations of faults into names of the form's fields.
func fielded(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return err
	}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, f := range named.Faults {
		if name, ok := strings.CutPrefix(f.Location, "body."); ok && name != "phone" {
			named.Faults[i].Location = "body.fields." + name
		}
	}
	return &named
}
