package web

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// startRoutes start a sequence by hand, for one number.
var startRoutes = []route{
	{"GET /c/{client}/sequences/{id}/start", clientSide, puntuale.Staff, "", (*site).startPage},
	{"POST /c/{client}/sequences/{id}/start", clientSide, puntuale.Staff, "sequence.start", (*site).startByHand},
}

// startPage asks for whom a sequence is to be started.
func (s *site) startPage(v *visit) error {
	found, err := v.client.Sequence(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f := view.NewForm()
	for name, values := range v.r.URL.Query() {
		f.Values[name] = values
	}
	return v.show(view.SequenceStart(view.Starting{Sequence: found.Sequence, Fields: found.Fields, Form: f}))
}

// startByHand shows what a start would do, and then does it.
func (s *site) startByHand(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	found, err := v.client.Sequence(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	call := startCall(v.path("id"), f)
	page := view.Starting{Sequence: found.Sequence, Fields: found.Fields, Form: f}
	fields := []string{"phone"}
	for _, field := range found.Fields {
		fields = append(fields, "fields."+field.Name)
	}
	planned, err := v.client.Preview(v.ctx(), call)
	if err != nil {
		return v.again(fielded(err), f, view.StartForm(page), view.SequenceStart(page), fields...)
	}
	page.Try = &view.Try{Steps: found.Steps, Messages: planned.Messages, Skipped: planned.Skipped, Fields: found.Fields, Now: v.now()}
	if f.Value("do") != "start" {
		v.quiet = true
		if v.partial() {
			return v.show(view.StartForm(page))
		}
		return v.show(view.SequenceStart(page))
	}
	started, err := v.client.Start(v.ctx(), call)
	if err != nil {
		return v.again(fielded(err), f, view.StartForm(page), view.SequenceStart(page), fields...)
	}
	v.did(found.ID.String())
	page.Started = &started
	return v.whole(view.SequenceStarted(page))
}

// startCall is the call of a form, as a program would make it.
func startCall(id string, f *view.Form) control.StartCall {
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
	whole, _ := json.Marshal(body) // strings are always written
	return control.StartCall{Sequence: id, Phone: f.Value("phone"), Fields: body, Body: whole, Scope: "POST /api/start/" + id, Key: f.Value("key")}
}

// fielded gives the faults of fields the names that they have in a form.
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
