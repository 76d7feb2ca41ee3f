package httpapi

import (
	"context"
	"encoding/json"
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
)

// tryBody documents the body of a trial.
type tryBody struct {
	Phone   string          `json:"phone,omitempty" read:"phone" doc:"The person; not for a hook"`
	Text    string          `json:"text,omitempty" maxLength:"4096" doc:"What the person writes; without it, something that fits"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"For a hook: what a program posts; a form as a text"`
	Booking string          `json:"reference,omitempty" maxLength:"255" doc:"For the trigger booking, instead of phone: which booking"`
	_       closedCheck
}

// TrialAnswer is what an automation would do.
type TrialAnswer struct {
	Would   bool              `json:"would"`
	Phone   string            `json:"phone"`
	Fields  map[string]string `json:"fields" doc:"What a hook's mapping found, or the values of the booking"`
	Why     []conditionAnswer `json:"why" doc:"All that decides"`
	Actions []puntuale.Action `json:"actions" doc:"In the order of their effects"`
	Plans   []actionPlan      `json:"plans" doc:"What each start, send and booking would do, planned as a start is"`
}

// actionPlan is the result that a trial predicts for one action, which is a start or a send.
type actionPlan struct {
	Action   int              `json:"action" doc:"Position in actions, from 0"`
	Sequence *string          `json:"sequence" doc:"ID of the sequence; null for a send, or if it cannot be planned"`
	Name     *string          `json:"sequence_name"`
	Session  *string          `json:"id_sessione" doc:"The session that would send"`
	Messages []previewMessage `json:"messages"`
	Skipped  []skippedStep    `json:"skipped"`
	Code     *string          `json:"code" doc:"Why it would not happen, as in the log; null: it would"`
	Why      *string          `json:"why" doc:"The same for people, in Italian"`
	English  *string          `json:"why_en"`
	Errors   []planFault      `json:"errors" doc:"What is wrong with the values"`
	Warnings []planWarning    `json:"warnings" doc:"What the messages would meet as things are now. The start happens nevertheless"`
}

type planFault struct {
	Location string `json:"location" doc:"A field, or a place in a step"`
	Code     string `json:"code"`
	Message  string `json:"message" doc:"For people, in Italian"`
	English  string `json:"message_en"`
}

type planWarning struct {
	Step    int    `json:"step" doc:"Position in the sequence, from 0"`
	Code    string `json:"code" doc:"Such as blacklisted, no_consent, no_credit, not_linked"`
	Message string `json:"message" doc:"For people, in Italian"`
	English string `json:"message_en"`
}

func actionPlanOf(p automation.ActionPlan) actionPlan {
	preview := previewOf(p.Plan)
	out := actionPlan{
		Action: p.Action, Name: textOrNull(p.Sequence.Name), Messages: preview.Messages, Skipped: preview.Skipped, Code: textOrNull(string(p.Reason)),
		Errors: each(p.Faults, func(f puntuale.Fault) planFault {
			return planFault{strings.TrimPrefix(f.Location, "body."), string(f.Code), catalogue.Italian.Sentence(f.Reason()), catalogue.English.Sentence(f.Reason())}
		}),
		Warnings: each(p.Warnings, func(w control.Warning) planWarning {
			return planWarning{w.Step, string(w.Reason.Code), catalogue.Italian.Sentence(w.Reason), catalogue.English.Sentence(w.Reason)}
		}),
	}
	if p.Sequence.ID != 0 {
		out.Sequence = new(p.Sequence.ID.String())
	}
	if p.Session != 0 {
		out.Session = new(p.Session.String())
	}
	if p.Reason != "" {
		why := puntuale.Because(p.Reason)
		out.Why, out.English = new(catalogue.Italian.Sentence(why)), new(catalogue.English.Sentence(why))
	}
	return out
}

type conditionAnswer struct {
	Condition string  `json:"condition" doc:"What the log would say if it does not hold, as a code"`
	Held      bool    `json:"held"`
	Value     *string `json:"value" doc:"What was compared"`
	Message   *string `json:"message" doc:"Why it does not hold, for people, in Italian"`
	English   *string `json:"message_en"`
}

func (a *api) tryAutomation(ctx context.Context, c *control.Client, in *call, p *oneInput, body *tryBody) (TrialAnswer, error) {
	trial := automation.Trial{Phone: body.Phone, Text: body.Text, Payload: body.Payload, Booking: body.Booking, Faults: in.refused}
	if len(body.Payload) > 0 && body.Payload[0] == '"' {
		trial.Payload = []byte(unquote(body.Payload))
	}
	v, err := a.rules(c, in).Try(ctx, p.ID, trial)
	if err != nil {
		return TrialAnswer{}, err
	}
	out := TrialAnswer{Would: v.WouldAct, Phone: v.Phone, Fields: v.Fields, Why: each(v.Why, conditionOf), Actions: append([]puntuale.Action{}, v.Actions...), Plans: each(v.Plans, actionPlanOf)}
	if out.Fields == nil {
		out.Fields = map[string]string{}
	}
	return out, nil
}

func conditionOf(h automation.Condition) conditionAnswer {
	out := conditionAnswer{Condition: string(h.Reason), Held: h.Held, Value: textOrNull(h.Value)}
	if !h.Held {
		why := puntuale.Because(h.Reason)
		out.Message, out.English = new(catalogue.Italian.Sentence(why)), new(catalogue.English.Sentence(why))
	}
	return out
}
