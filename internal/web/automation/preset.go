package automation

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control/automation"
	"puntuale/internal/payload"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// presetNames are the names of programs, which are the same in all languages.
var presetNames = map[puntuale.HookPreset]string{
	puntuale.PresetCalCom: "Cal.com", puntuale.PresetCalendly: "Calendly", puntuale.PresetEasyAppointments: "Easy!Appointments", puntuale.PresetWooCommerce: "WooCommerce Bookings",
}

// presets returns the options for the program of a hook.
func presets(ctx context.Context) []view.Option {
	all := []view.Option{{Text: view.T(ctx, "automation.preset_own")}}
	for _, p := range puntuale.HookPresets() {
		all = append(all, view.Option{Value: string(p), Text: presetNames[p]})
	}
	return all
}

// stepCounts is the number of sentences that say what to do in each program.
var stepCounts = map[puntuale.HookPreset]int{
	puntuale.PresetCalCom: 3, puntuale.PresetCalendly: 3, puntuale.PresetEasyAppointments: 3, puntuale.PresetWooCommerce: 3,
}

func stepsOf(ctx context.Context, p puntuale.HookPreset) (all []string) {
	for i := range stepCounts[p] {
		all = append(all, view.T(ctx, fmt.Sprintf("automation.steps.%s_%d", p, i+1)))
	}
	return all
}

// lastPayloadOf returns the last payload of a rule's hook, and what its preset understands.
func lastPayloadOf(v *page.Request, id string) (Payload, error) {
	last, err := rulesOf(v).LastPayload(v.Ctx(), id)
	if err != nil {
		return Payload{}, err
	}
	p := Payload{Came: !last.At.IsZero(), Content: string(last.Content), Members: last.Members}
	if p.Came {
		p.When = v.Frame.Language.FullMoment(last.At.In(v.Frame.Zone))
	}
	if last.Fault != nil {
		p.Fault = v.Frame.Language.Fault(last.Fault.Reason())
	}
	p.Found = understood(v, last)
	return p, nil
}

// understood returns what a call says, with the names that people know.
func understood(v *page.Request, last automation.LastPayload) (all []payload.Member) {
	zone := v.Frame.Zone
	if at, err := time.LoadLocation(last.Fields[puntuale.ZoneField]); err == nil && last.Fields[puntuale.ZoneField] != "" {
		zone = at
	}
	for _, name := range []string{phoneField, "nome", "servizio", puntuale.DateField, puntuale.StatusField, puntuale.ReferenceField, puntuale.FormerField} {
		text := last.Fields[name]
		switch {
		case text == "":
			continue
		case name == puntuale.DateField:
			text = dateText(v, text, zone)
		case name == puntuale.StatusField && last.Fields[puntuale.MovedField] != "":
			text = v.T("automation.call_moved")
		case name == puntuale.StatusField:
			text = v.T("automation.booking." + text)
		}
		all = append(all, payload.Member{Path: v.T("automation.call." + name), Text: text})
	}
	return all
}

// dateText returns a date as people write it. A date without an offset is in the zone.
func dateText(v *page.Request, text string, zone *time.Location) string {
	for _, layout := range []string{time.RFC3339, time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return v.Frame.Language.FullMoment(at.In(zone))
		}
	}
	return text
}
