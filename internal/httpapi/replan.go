package httpapi

import (
	"context"
	"errors"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/bookings"
)

func registerReplans(a *api) {
	const path = "/api/sequences/{id}/replan"
	both := []int{http.StatusNotFound, http.StatusConflict}
	client(a, operation{id: "replanSequence", method: http.MethodPost, path: path, body: replanBody{}, optional: true, strict: true,
		summary: "Apply an edited sequence for bookings to the bookings that there are",
		description: "Without this, a booking gets the new texts and steps only when it changes. The work is done in the background, a booking at a time. " +
			"If the sequence is edited again meanwhile, all bookings get its newest form.",
		refusals: both}, withOptionalBody(replanSequence))
	client(a, operation{id: "getReplan", method: http.MethodGet, path: path, summary: "Get how far the last replan of a sequence is", refusals: []int{http.StatusNotFound}}, getReplan)
	client(a, operation{id: "pauseReplan", method: http.MethodPost, path: path + "/pause", prevents: true,
		summary: "Pause a replan", refusals: both}, moveReplan(puntuale.ReplanPaused))
	client(a, operation{id: "resumeReplan", method: http.MethodPost, path: path + "/resume",
		summary: "Go on with a paused replan", refusals: both}, moveReplan(puntuale.ReplanRunning))
	client(a, operation{id: "cancelReplan", method: http.MethodPost, path: path + "/cancel", prevents: true,
		summary:     "End a replan",
		description: "Bookings that it has changed stay changed.", refusals: both}, moveReplan(puntuale.ReplanCancelled))
}

// replanBody documents the body of a replan.
type replanBody struct {
	DryRun bool `json:"dry_run,omitempty" doc:"true: only say what it would do"`
	_      closedCheck
}

// ReplanAnswer is how far a replan is, or what it would do.
type ReplanAnswer struct {
	State     string          `json:"state" enum:"none,running,held,paused,cancelled,done" doc:"held: after a restore it waits until a person releases the messages. In a dry run, of the last replan"`
	Bookings  int             `json:"bookings" doc:"How many bookings it concerns"`
	Examined  int             `json:"examined" doc:"How many of them were looked at"`
	Complete  bool            `json:"complete" doc:"All were looked at. false in a dry run: the counts are those of the bookings that were made first"`
	Planned   int             `json:"planned" doc:"Messages that did not exist before"`
	Moved     int             `json:"moved" doc:"Messages that another one replaced"`
	Cancelled int             `json:"cancelled" doc:"Messages taken back that no other one replaced"`
	Refused   int             `json:"refused" doc:"Bookings that cannot be planned, for example because a field is missing. They stay as they were"`
	Started   *string         `json:"started_at" format:"date-time"`
	Ended     *string         `json:"ended_at" format:"date-time"`
	Examples  []replanExample `json:"examples" doc:"In a dry run, at most 5 bookings that would change"`
}

type replanExample struct {
	Reference string           `json:"reference"`
	Planned   []previewMessage `json:"planned" doc:"The messages that would be planned, also those that replace others"`
	Moved     []movedMessage   `json:"moved"`
	Cancelled []string         `json:"cancelled"`
	Faults    []string         `json:"faults" doc:"Why it cannot be planned"`
}

func replanSequence(ctx context.Context, c *control.Client, in *call, p *oneInput, body *replanBody) (ReplanAnswer, error) {
	if faults := append(in.unknown, in.refused...); len(faults) > 0 {
		return ReplanAnswer{}, puntuale.Invalid(faults...)
	}
	if body.DryRun {
		return replanOf(bookings.TryReplan(in.unhurried(ctx), c, p.ID))
	}
	return replanOf(bookings.StartReplan(ctx, c, p.ID, puntuale.DoorAPI))
}

func getReplan(ctx context.Context, c *control.Client, _ *call, p *oneInput) (ReplanAnswer, error) {
	return replanOf(bookings.ReplanOf(ctx, c, p.ID))
}

func moveReplan(to puntuale.ReplanState) clientVerb[oneInput, ReplanAnswer] {
	return func(ctx context.Context, c *control.Client, _ *call, p *oneInput) (ReplanAnswer, error) {
		return replanOf(bookings.MoveReplan(ctx, c, p.ID, to))
	}
}

func replanOf(r bookings.ReplanProgress, err error) (ReplanAnswer, error) {
	if err != nil {
		return ReplanAnswer{}, err
	}
	return ReplanAnswer{
		State: r.Word(), Bookings: r.Bookings, Examined: r.Examined, Complete: r.Complete, Planned: r.Planned, Moved: r.Moved, Cancelled: r.Cancelled, Refused: r.Refused,
		Started: stampOrNull(r.Started), Ended: stampOrNull(r.Ended), Examples: append([]replanExample{}, each(r.Examples, replanExampleOf)...),
	}, nil
}

func replanExampleOf(e bookings.ReplanExample) replanExample {
	b := bookingChangeOf(e.Answer)
	out := replanExample{Reference: e.Reference, Planned: append([]previewMessage{}, b.Preview...), Moved: b.Moved, Cancelled: b.Cancelled, Faults: []string{}}
	if refused, ok := errors.AsType[*puntuale.Error](e.Refused); ok {
		for _, f := range refused.Faults {
			out.Faults = append(out.Faults, f.Location+": "+catalogue.Message(puntuale.Because(f.Code, f.Args...)))
		}
	}
	return out
}
