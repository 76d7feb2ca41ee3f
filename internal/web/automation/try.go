package automation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/automation"
	"puntuale/internal/payload"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// try runs a trial of the form's rule, for the person or the payload in the form.
func try(v *page.Request, f *view.Form, d automation.Draft) (Trial, error) {
	ask := automation.Trial{Phone: strings.TrimSpace(f.Value("try.phone")), Text: strings.TrimSpace(f.Value("try.text"))}
	requested := ask.Phone
	switch d.Trigger.Kind {
	case puntuale.TriggerHook:
		requested = strings.TrimSpace(f.Value("try.payload"))
		ask.Payload = []byte(requested)
	case puntuale.TriggerBooking:
		requested = strings.TrimSpace(f.Value("try.reference"))
		ask.Booking = requested
	}
	if requested == "" {
		return Trial{}, nil
	}
	verdict, err := rulesOf(v).TryDraft(v.Ctx(), d.Automation, ask)
	t := Trial{Asked: true}
	if e, invalid := errors.AsType[*puntuale.Error](err); invalid && e.Code == puntuale.CodeInvalid {
		for _, fault := range e.Faults {
			t.Faults = append(t.Faults, v.Frame.Language.Fault(fault.Reason()))
		}
		return t, nil
	}
	if err != nil {
		return t, err
	}
	n, err := namesOf(v, d.Automation)
	if err != nil {
		return t, err
	}
	ctx := view.With(v.Ctx(), v.Frame)
	t.WouldAct = verdict.WouldAct
	for _, h := range verdict.Why {
		_, key, _ := strings.Cut(string(h.Reason), ".")
		t.Checks = append(t.Checks, Check{h.Held, v.T("automation.check."+key, "Value", h.Value)})
	}
	for _, x := range verdict.Actions {
		t.Actions = append(t.Actions, TrialAction{Says: actionWords(ctx, x, n)})
	}
	for _, p := range verdict.Plans {
		t.Actions[p.Action].planned(ctx, p)
	}
	if len(verdict.Fields) > 0 || d.Trigger.Kind == puntuale.TriggerHook {
		t.Found = append(t.Found, payload.Member{Path: phoneField, Text: verdict.Phone})
		for _, name := range slices.Sorted(maps.Keys(verdict.Fields)) {
			t.Found = append(t.Found, payload.Member{Path: name, Text: verdict.Fields[name]})
		}
	}
	return t, nil
}

// planned adds the messages that a start or a send would create.
func (x *TrialAction) planned(ctx context.Context, p automation.ActionPlan) {
	if p.Reason != "" {
		x.Refused = view.FrameOf(ctx).Language.Fault(puntuale.Because(p.Reason))
	}
	for _, f := range p.Faults {
		x.Faults = append(x.Faults, view.Says(ctx, puntuale.Because(puntuale.ReasonColon, strings.TrimPrefix(f.Location, "body."), f.Reason().Stored())))
	}
	x.Skipped = p.Plan.Skipped
	x.Messages = p.Plan.Messages[:min(len(p.Plan.Messages), firstMessages)]
	x.More = len(p.Plan.Messages) - len(x.Messages)
	for _, w := range p.Warnings {
		if says := view.Says(ctx, w.Reason); !slices.Contains(x.Warnings, says) {
			x.Warnings = append(x.Warnings, says)
		}
	}
}
