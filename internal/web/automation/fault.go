package automation

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// ofList matches the location of a fault in a list that the form shows as one text.
var ofList = regexp.MustCompile(`^(body\.(?:trigger\.words|conditions\.tags|conditions\.booking_status|actions\[\d+\]\.(?:add|remove)))\[\d+\]$`)

// atRows moves faults to the form's fields. A fault of a mapping moves to the mapping's row, and a fault of a list to
// the list's text.
func atRows(err error, f *view.Form) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err
	}
	moved := *e
	moved.Faults = slices.Clone(e.Faults)
	for i, fault := range moved.Faults {
		if m := ofList.FindStringSubmatch(fault.Location); m != nil {
			moved.Faults[i].Location = m[1]
		}
		moved.Faults[i].Location = ofBooking(moved.Faults[i].Location, f)
		if name, ok := strings.CutPrefix(fault.Location, "body.trigger.map."); ok {
			moved.Faults[i].Location = "body." + mapRow(f, name)
		}
		if strings.HasPrefix(fault.Location, "body.actions[") && !strings.Contains(fault.Location, "].") && nothingToShow(fault.Code) {
			moved.Faults[i].Location += ".text"
		}
	}
	return &moved
}

// ofBooking returns the location of a fault in a form's fields about bookings, which have their own choices.
func ofBooking(location string, f *view.Form) string {
	action, sequence := strings.CutSuffix(location, ".sequence")
	switch {
	case location == "body.trigger.sequence" && f.Value("trigger.kind") == string(puntuale.TriggerBooking):
		return "body.trigger.booking"
	case location == "body.trigger.is" && f.Value("trigger.kind") == string(puntuale.TriggerBooking):
		return "body.trigger.becomes"
	case sequence && f.Value(strings.TrimPrefix(action, "body.")+".kind") == string(puntuale.ActionBook):
		return action + ".booking"
	}
	return location
}

func nothingToShow(code puntuale.ReasonCode) bool {
	return code == puntuale.FaultSequenceNothingToShow || code == puntuale.FaultSequenceNothingToShowOrTemplate
}

// mapRow finds the row of a mapping for one field. The argument name names this field. mapRow returns the name of the
// form's input that contains the row's path, or "trigger.map" if there is no such row.
func mapRow(f *view.Form, name string) string {
	for i := range rowCount(f, "map") {
		if at := rowName("map", i); f.Value(at+".field") == name {
			return at + ".path"
		}
	}
	return "trigger.map"
}

func (e Editor) heading(ctx context.Context) string {
	if e.ID == "" {
		return view.T(ctx, "automation.new")
	}
	return view.Or(e.Form.Value("name"), view.T(ctx, "automation.new"))
}

func (e Editor) back(ctx context.Context) string {
	if e.ID == "" {
		return view.Base(ctx) + "/automations"
	}
	return view.Base(ctx) + "/automations/" + e.ID
}

// sequencesOf returns the options for the sequence of a start or a stop. Options that are possible only for a stop are
// hidden for a start.
func (e Editor) sequencesOf(ctx context.Context, at string) []view.Option {
	return e.options(ctx, view.T(ctx, "automation.choose_sequence"), e.Form.Value(at+".sequence"),
		view.Option{Value: string(puntuale.SequenceDefault), Text: view.T(ctx, "automation.default")},
		view.Option{Value: string(puntuale.SequenceAll), Text: view.T(ctx, "automation.all")})
}

func (e Editor) templateOptions(none, chosen string) []view.Option {
	all := []view.Option{{Value: "", Text: none}}
	for _, name := range e.Templates {
		all = append(all, view.Option{Value: name, Text: name})
	}
	if chosen != "" && !slices.Contains(e.Templates, chosen) {
		all = append(all, view.Option{Value: chosen, Text: chosen})
	}
	return all
}
