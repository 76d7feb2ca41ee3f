package automation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"puntuale"
)

// actions plans the actions of a rule into act. If an action cannot be planned, actions returns the reason, and the rule must do nothing.
func (w *clientWork) actions(ctx context.Context, a *puntuale.Automation, o Occasion, c *puntuale.Contact, act *puntuale.AutomationAct, asOf time.Time) (reason puntuale.ReasonCode, detail string, err error) {
	for i := range a.Actions {
		x := &a.Actions[i]
		switch x.Kind {
		case puntuale.ActionStop:
			id := x.Sequence.ID()
			if x.Sequence == puntuale.SequenceDefault {
				if _, id, err = w.planner.DefaultPair(ctx, o.Session); err != nil {
					return gone(err)
				}
				if id == 0 {
					return puntuale.FiringNoDefault, "", nil
				}
			}
			act.Stops = append(act.Stops, id)
		case puntuale.ActionStart, puntuale.ActionSend:
			if reason, detail, err = w.start(ctx, a, x, o, c, act, asOf); reason != "" || err != nil {
				return reason, detail, err
			}
		case puntuale.ActionBook, puntuale.ActionCancelBooking:
			if reason, detail, err = w.book(ctx, a, x, o, c, act); reason != "" || err != nil {
				return reason, detail, err
			}
		case puntuale.ActionTag:
			act.Add, act.Remove = append(act.Add, x.Add...), append(act.Remove, x.Remove...)
		case puntuale.ActionBlacklist:
			act.Blacklist = &puntuale.BlacklistEntry{Phone: act.Phone, Mark: w.planner.Mark(act.Phone), Reason: a.Name, Added: w.now}
		}
	}
	return "", "", nil
}

// gone returns a reason for the error not_found, and returns any other error unchanged.
func gone(err error) (puntuale.ReasonCode, string, error) {
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return puntuale.FiringGone, "", nil
	}
	return "", "", err
}

// start plans a start or a send into act.
func (w *clientWork) start(ctx context.Context, a *puntuale.Automation, x *puntuale.Action, o Occasion, c *puntuale.Contact, act *puntuale.AutomationAct, asOf time.Time) (puntuale.ReasonCode, string, error) {
	p, err := w.planOf(ctx, a, x, o)
	if err != nil {
		return gone(err)
	}
	if p == nil {
		return puntuale.FiringNoDefault, "", nil
	}
	values := fields(o, c, p.Fields())
	seed := rand.Uint64() | 1 //nolint:gosec // the random number only spreads load
	if w.dry {
		seed = 0
	}
	run, err := p.Plan(Recipient{
		Phone: act.Phone, Fields: values, Name: a.Name, Depth: act.Depth + 1, Request: puntuale.ActRequest(a.ID, act.Occurrence, act.Phone, texts(values)),
		Now: w.now, AsOf: asOf, Seed: seed,
	})
	if puntuale.CodeOf(err) == puntuale.CodeInvalid {
		w.faults = faultsOf(err)
		return puntuale.FiringRefused, firstFault(w.faults), nil
	}
	if err != nil {
		return "", "", err
	}
	if w.last = run; len(run.Messages) == 0 {
		return puntuale.FiringPast, "", nil
	}
	for _, other := range act.Starts {
		if other.Run.Sequence != 0 && other.Run.Sequence == run.Run.Sequence {
			return "", "", nil // an earlier action already starts this sequence: one action names the sequence, and the other action says "default"
		}
	}
	run.Run.Rule = a.ID
	act.Starts = append(act.Starts, run)
	return "", "", nil
}

// planOf returns the plan of an action, or nil if the session has no default sequence. It caches plans until the round ends.
func (w *clientWork) planOf(ctx context.Context, a *puntuale.Automation, x *puntuale.Action, o Occasion) (Plan, error) {
	key := fmt.Sprintf("send %d %p %d", a.ID, x, o.Session)
	id := x.Sequence.ID()
	if x.Kind == puntuale.ActionStart {
		if x.Sequence == puntuale.SequenceDefault {
			var err error
			if id, _, err = w.planner.DefaultPair(ctx, o.Session); err != nil || id == 0 {
				return nil, err
			}
		}
		key = "start " + id.String()
	}
	if p, ok := w.plans[key]; ok {
		return p, nil
	}
	var p Plan
	var err error
	if x.Kind == puntuale.ActionStart {
		p, err = w.planner.Sequence(ctx, id)
	} else {
		p, err = w.planner.Send(ctx, o.Session, *x)
	}
	if err == nil {
		w.plans[key] = p
	}
	return p, err
}

// faultsOf returns the faults of a refused plan.
func faultsOf(err error) []puntuale.Fault {
	refused, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return nil
	}
	return refused.Faults
}

// firstFault returns the first fault as text: the field, and what is wrong with its value.
func firstFault(all []puntuale.Fault) string {
	if len(all) == 0 {
		return ""
	}
	return puntuale.Because(puntuale.ReasonColon, strings.TrimPrefix(all[0].Location, "body."), all[0].Reason().Stored()).Stored()
}
