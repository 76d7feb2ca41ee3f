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

// ofList is the location of a fault inside a list that the form shows as one text.
var ofList = regexp.MustCompile(`^(body\.(?:trigger\.words|conditions\.tags|actions\[\d+\]\.(?:add|remove)))\[\d+\]$`)

// atRows moves faults to the fields of the form: those of a mapping to their rows, those of a list to its text.
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
		if name, ok := strings.CutPrefix(fault.Location, "body.trigger.map."); ok {
			moved.Faults[i].Location = "body." + mapRow(f, name)
		}
		if strings.HasPrefix(fault.Location, "body.actions[") && !strings.Contains(fault.Location, "].") && nothingToShow(fault.Code) {
			moved.Faults[i].Location += ".text"
		}
	}
	return &moved
}

func nothingToShow(code puntuale.ReasonCode) bool {
	return code == puntuale.FaultSequenceNothingToShow || code == puntuale.FaultSequenceNothingToShowOrTemplate
}

// mapRow is the field of a mapping's row that names where a field stands.
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

// sequencesOf are the choices of a start and of a stop. What only a stop has is hidden for a start.
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
