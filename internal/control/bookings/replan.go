package bookings

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// ReplanProgress is how far a replan is, or what a dry run of it found.
type ReplanProgress struct {
	puntuale.Replan
	Known    bool // there is a replan; false: only a dry run was made
	Examined int  // how many bookings a dry run looked at, in the order in which they were made
	Complete bool // all bookings were looked at
	Examples []ReplanExample
}

// ReplanExample is what a replan does with one booking.
type ReplanExample struct {
	Reference string
	Answer    control.BookingAnswer
	Refused   error // nil: the booking can be planned
}

// Word returns the state in the words of the API.
func (r *ReplanProgress) Word() string {
	switch {
	case !r.Known:
		return "none"
	case r.State == puntuale.ReplanRunning && r.Held:
		return "held"
	}
	return [...]string{"running", "paused", "cancelled", "done"}[r.State]
}

const (
	sampled     = 500             // how many bookings a dry run looks at
	sampleTime  = 3 * time.Second // and how long
	maxExamples = 5
	slack       = 7 * 24 * time.Hour // windows and holidays make messages late
)

// CountReplan counts the bookings that an edited sequence may still concern: not cancelled, and the main date to come, or
// past by no more than the sequence's last step, or with a pending message. Codes: not_found.
func CountReplan(ctx context.Context, client *control.Client, sequence string) (int, error) {
	s, err := client.Sequence(ctx, sequence)
	if err != nil {
		return 0, err
	}
	return client.CountReplan(ctx, rangeOf(s.Sequence, client.Now()))
}

func rangeOf(s puntuale.Sequence, now time.Time) puntuale.ReplanFilter {
	since := now
	for _, step := range s.Steps {
		if o := step.Timing.Offset; o.Direction == puntuale.After && step.Timing.Anchor == s.Booking {
			if before := now.Add(-length(o) - slack); before.Before(since) {
				since = before
			}
		}
	}
	return puntuale.ReplanFilter{Sequence: s.ID, Since: since}
}

// length returns the longest time that an offset may take.
func length(o puntuale.Offset) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(o.Amount) * map[puntuale.Unit]time.Duration{
		puntuale.Seconds: time.Second, puntuale.Minutes: time.Minute, puntuale.Hours: time.Hour, puntuale.Days: day, puntuale.Weeks: 7 * day, puntuale.Months: 31 * day,
	}[o.Unit]
}

// TryReplan finds out what a replan would do. It looks at some bookings, and says whether these are all. Codes: not_found,
// forbidden.
func TryReplan(ctx context.Context, client *control.Client, sequence string) (ReplanProgress, error) {
	s, err := client.Sequence(ctx, sequence)
	if err != nil {
		return ReplanProgress{}, err
	}
	out, err := ReplanOf(ctx, client, sequence)
	if err != nil {
		return ReplanProgress{}, err
	}
	leave, err := client.BeginCompare(ctx)
	if err != nil {
		return ReplanProgress{}, err
	}
	defer leave()
	out.ReplanCounts, out.Complete = puntuale.ReplanCounts{}, false
	r := rangeOf(s.Sequence, client.Now())
	if out.Bookings, err = client.CountReplan(ctx, r); err != nil {
		return ReplanProgress{}, err
	}
	for end := client.Now().Add(sampleTime); out.Examined < sampled && client.Now().Before(end); {
		some, last, err := client.ReplanBookings(ctx, r, maxExamples*2)
		if err != nil {
			return ReplanProgress{}, err
		}
		for _, b := range some {
			answer, refused := client.PutBooking(ctx, control.BookingCall{Reference: b.Reference, Replan: true, Silent: true, DryRun: true, Door: puntuale.DoorAPI})
			counts, err := countsOf(answer, refused)
			if err != nil {
				return ReplanProgress{}, err
			}
			out.Add(counts)
			if out.Examined++; len(out.Examples) < maxExamples && (answer.Changed || counts.Refused > 0) {
				out.Examples = append(out.Examples, ReplanExample{b.Reference, answer, refused})
			}
		}
		if r.After = last; last == 0 {
			out.Complete = true
			break
		}
	}
	return out, nil
}

// StartReplan begins to apply an edited sequence to its bookings, in the background. If the sequence is edited again
// meanwhile, all bookings get its newest form. Codes: not_found; conflict (it is running or paused, or the client is
// held); forbidden.
func StartReplan(ctx context.Context, client *control.Client, sequence string, by puntuale.BookingDoor) (ReplanProgress, error) {
	if err := client.MayCreate(); err != nil {
		return ReplanProgress{}, err
	}
	s, err := client.Sequence(ctx, sequence)
	if err != nil {
		return ReplanProgress{}, err
	}
	if s.Booking == "" {
		return ReplanProgress{}, puntuale.Conflict(puntuale.FaultBookingNotForBookings)
	}
	if err := client.Unheld(ctx); err != nil {
		return ReplanProgress{}, err
	}
	n, err := client.CountReplan(ctx, rangeOf(s.Sequence, client.Now()))
	if err != nil {
		return ReplanProgress{}, err
	}
	if err := client.StartReplan(ctx, puntuale.Replan{Sequence: s.ID, Door: by, Edited: s.Updated, Bookings: n, Started: client.Now()}); err != nil {
		return ReplanProgress{}, err
	}
	return ReplanOf(ctx, client, sequence)
}

// ReplanOf returns how far the last replan of a sequence is. Codes: not_found (the sequence).
func ReplanOf(ctx context.Context, client *control.Client, sequence string) (ReplanProgress, error) {
	s, err := client.Sequence(ctx, sequence)
	if err != nil {
		return ReplanProgress{}, err
	}
	r, found, err := client.Replan(ctx, s.ID)
	return ReplanProgress{Replan: r, Known: found, Examined: r.Done, Complete: r.State == puntuale.ReplanDone}, err
}

// MoveReplan pauses, resumes or cancels a replan. Codes: not_found (the sequence), conflict.
func MoveReplan(ctx context.Context, client *control.Client, sequence string, to puntuale.ReplanState) (ReplanProgress, error) {
	s, err := client.Sequence(ctx, sequence)
	if err != nil {
		return ReplanProgress{}, err
	}
	open := []puntuale.ReplanState{puntuale.ReplanRunning, puntuale.ReplanPaused} // a repeat changes nothing
	from := map[puntuale.ReplanState][]puntuale.ReplanState{
		puntuale.ReplanRunning: open, puntuale.ReplanPaused: open, puntuale.ReplanCancelled: append(open, to),
	}[to]
	if to == puntuale.ReplanRunning {
		if err := client.MayCreate(); err != nil {
			return ReplanProgress{}, err
		}
	}
	if err := client.MoveReplan(ctx, s.ID, to, from...); err != nil {
		return ReplanProgress{}, err
	}
	return ReplanOf(ctx, client, sequence)
}

// countsOf counts what a change of a booking did. A booking that cannot be planned is counted, and is no error.
func countsOf(a control.BookingAnswer, err error) (puntuale.ReplanCounts, error) {
	switch puntuale.CodeOf(err) {
	case puntuale.CodeInvalid:
		return puntuale.ReplanCounts{Done: 1, Refused: 1}, nil
	case puntuale.CodeNotFound: // erased or deleted since it was listed
		return puntuale.ReplanCounts{Done: 1}, nil
	}
	if err != nil {
		return puntuale.ReplanCounts{}, err
	}
	c := puntuale.ReplanCounts{Done: 1}
	for _, n := range a.New {
		if n.Before >= 0 {
			c.Moved++
		} else {
			c.Planned++
		}
	}
	replaced := map[int]bool{}
	for _, n := range a.New {
		replaced[n.Before] = true
	}
	for _, w := range a.Withdraw {
		if !replaced[w.Step] {
			c.Cancelled++
		}
	}
	return c, nil
}

// Planner plans the bookings of one sequence, for the background work.
type Planner struct {
	client *control.Client
	of     puntuale.ReplanFilter
	edited time.Time
	door   puntuale.BookingDoor
}

// NewPlanner returns a planner for a replan. Its calls count in no usage. Codes: not_found (the sequence was deleted).
func NewPlanner(ctx context.Context, all *control.Control, r puntuale.Replan) (*Planner, error) {
	client, err := all.OfNetwork(ctx, r.Client)
	if err != nil {
		return nil, fmt.Errorf("read the client of a replan: %w", err)
	}
	if err := client.MayCreate(); err != nil {
		return nil, err
	}
	s, err := client.Sequence(ctx, r.Sequence.String())
	if err != nil {
		return nil, err
	}
	of := rangeOf(s.Sequence, r.Started)
	of.Last = r.Last
	return &Planner{client, of, s.Updated, r.Door}, nil
}

// Edited returns when the sequence was last changed.
func (p *Planner) Edited() time.Time { return p.edited }

// Next returns the next bookings.
func (p *Planner) Next(ctx context.Context, r puntuale.Replan, limit int) ([]puntuale.Booking, puntuale.BookingID, error) {
	of := p.of
	of.After = r.Cursor
	return p.client.ReplanBookings(ctx, of, limit)
}

// Apply changes one booking.
func (p *Planner) Apply(ctx context.Context, reference string) (puntuale.ReplanCounts, error) {
	return countsOf(p.client.PutBooking(ctx, control.BookingCall{Reference: reference, Replan: true, Silent: true, Door: p.door}))
}
