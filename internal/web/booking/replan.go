package booking

import (
	"context"

	"puntuale"
	"puntuale/internal/control/bookings"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// replanRoutes apply an edited sequence to the bookings that there are.
var replanRoutes = []page.Route{
	page.Get("/c/{client}/sequences/{id}/replan", page.ClientSide, puntuale.Staff, replan),
	page.Post("/c/{client}/sequences/{id}/replan", page.ClientSide, puntuale.Staff, "booking.replan", startReplan),
	page.Post("/c/{client}/sequences/{id}/replan/pause", page.ClientSide, puntuale.Staff, "booking.replan_pause", moveReplan(puntuale.ReplanPaused)),
	page.Post("/c/{client}/sequences/{id}/replan/resume", page.ClientSide, puntuale.Staff, "booking.replan_resume", moveReplan(puntuale.ReplanRunning)),
	page.Post("/c/{client}/sequences/{id}/replan/cancel", page.ClientSide, puntuale.Staff, "booking.replan_cancel", moveReplan(puntuale.ReplanCancelled)),
}

// Replan is the page of a replan: first what it would do, and then how far it is.
type Replan struct {
	ID       puntuale.SequenceID
	Name     string
	State    string // none, running, held, paused, cancelled or done
	Bookings int
	Counts   puntuale.ReplanCounts
	Sampled  bool // the counts are only of the first bookings
	Try      bool // the page shows what it would do
	Examples []ReplanExample
}

// ReplanExample is what becomes of one booking.
type ReplanExample struct {
	Row
	Difference *Difference
	Fault      string // why it cannot be planned; "": it can
}

// Active reports whether there is something to wait for.
func (r Replan) Active() bool {
	return r.State == "running" || r.State == "held" || r.State == "paused"
}

func (r Replan) url(ctx context.Context, rest string) string {
	return view.Base(ctx) + "/sequences/" + r.ID.String() + "/replan" + rest
}

// replan shows how far a replan is, or else what a new one would do.
func replan(v *page.Request) error {
	r, err := replanPage(v)
	if err != nil {
		return err
	}
	if v.Query("part") == "now" {
		return v.Show(ReplanNow(r))
	}
	if !r.Active() && v.Query("done") == "" {
		if err := r.look(v); err != nil {
			return err
		}
	}
	return v.Show(ReplanShow(r))
}

func replanPage(v *page.Request) (Replan, error) {
	s, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err == nil && s.Booking == "" {
		err = puntuale.NotFound(puntuale.NoSequence)
	}
	if err != nil {
		return Replan{}, err
	}
	found, err := bookings.ReplanOf(v.Ctx(), v.Client, v.Path("id"))
	return Replan{ID: s.ID, Name: s.Name, State: found.Word(), Bookings: found.Bookings, Counts: found.ReplanCounts}, err
}

// look finds out what a replan would do.
func (r *Replan) look(v *page.Request) error {
	found, err := bookings.TryReplan(v.Ctx(), v.Client, r.ID.String())
	if err != nil {
		return err
	}
	r.Try, r.Bookings, r.Counts, r.Sampled = true, found.Bookings, found.ReplanCounts, !found.Complete
	for _, e := range found.Examples {
		x := ReplanExample{}
		b, err := v.Client.Booking(v.Ctx(), e.Reference)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			continue // it was erased meanwhile
		}
		if err != nil {
			return err
		}
		rows, _, err := rowsOf(v, []puntuale.Booking{b.Booking})
		if err != nil {
			return err
		}
		if x.Row = rows[0]; e.Refused != nil {
			refused, _ := page.Refusal(e.Refused)
			x.Fault = v.Frame.Language.Fault(page.FirstFault(refused))
		} else {
			x.Difference = differenceOf(v.Ctx(), e.Answer, nil)
		}
		r.Examples = append(r.Examples, x)
	}
	return nil
}

func startReplan(v *page.Request) error {
	r, err := replanPage(v)
	if err != nil {
		return err
	}
	_, err = bookings.StartReplan(v.Ctx(), v.Client, v.Path("id"), puntuale.DoorPage)
	return replanned(v, r, err)
}

func moveReplan(to puntuale.ReplanState) func(*page.Request) error {
	return func(v *page.Request) error {
		r, err := replanPage(v)
		if err != nil {
			return err
		}
		_, err = bookings.MoveReplan(v.Ctx(), v.Client, v.Path("id"), to)
		return replanned(v, r, err)
	}
}

// replanned goes back to the page. A refusal is said there, because the page shows what happened meanwhile.
func replanned(v *page.Request, r Replan, err error) error {
	next := r.url(view.With(v.Ctx(), v.Frame), "")
	if err != nil {
		return refused(v, err, next)
	}
	v.SetAuditTarget(r.ID.String())
	return v.Redirect(next + "?done=1")
}

func (r Replan) tone() string {
	switch r.State {
	case "running":
		return "info"
	case "held", "paused":
		return "wait"
	case "done":
		return "ok"
	}
	return "quiet"
}
