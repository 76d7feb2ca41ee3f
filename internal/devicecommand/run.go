package devicecommand

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

const (
	idlePause = time.Second     // the wait after a call that took nothing, if the server did not wait
	endWithin = 5 * time.Second // how long sending the last reports may take at the end
)

// Details of a report if the command printed nothing.
const (
	saysStopped = "the device stopped while the command ran"
	saysTooLate = "not sent: its hold ended before its turn came"
)

// Config contains the parts and settings for [Run].
type Config struct {
	Client  *client.Client
	Journal *Journal

	// Do sends a message, which is JSON as in docs/device.md, within a bounded time. An error of Do ends Run after the
	// report.
	Do func(message json.RawMessage) (client.Outcome, string, error)

	Most   int           // how many messages the program takes at once
	Lease  time.Duration // how long the device holds the messages that it took
	Clock  clock.Clock
	Logger *slog.Logger
}

// Run takes messages, passes one after the other to cfg.Do, and reports the outcome of each. When ctx ends, it waits
// for cfg.Do, returns the other messages to the server, and returns nil. Run returns an error if no later try can
// succeed: [client.ErrUnlinked], another permanent refusal, or a journal that cannot be written.
func Run(ctx context.Context, cfg Config) error {
	r := &runner{Config: cfg}
	r.Client.Lost = r.lost
	err := r.start(ctx)
	for err == nil && ctx.Err() == nil {
		err = r.round(ctx)
	}
	if errors.Is(err, client.ErrUnlinked) {
		return err // the server does not know the device, so no report is possible
	}
	r.end(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

type runner struct {
	Config
	dedupes  bool
	repeat   bool // true: the answer to the last call that takes messages may have been lost; the journal contains the call's id
	returned int  // how many messages the command returned since the last message that it sent or refused
}

// start reports the attempts that the program left without an outcome when it stopped. Their outcome is
// [client.Unknown]. It also reads whether the device dedupes.
func (r *runner) start(ctx context.Context) error {
	var device client.Device
	err := r.Client.Repeat(ctx, func() (err error) { device, err = r.Client.Device(ctx); return err })
	if err != nil {
		return err
	}
	r.Logger.Info("taking messages", "device", device.ID, "session", device.Session.ID)
	r.dedupes, r.repeat = device.Dedupes, r.Journal.take != ""
	for _, e := range r.Journal.begun() {
		if err := r.Journal.noteReport(client.Report{Message: e.Message, Attempt: e.Attempt, Outcome: client.Unknown, Detail: saysStopped}); err != nil {
			return err
		}
	}
	return r.flush(ctx)
}

// round takes messages once, and then handles them.
func (r *runner) round(ctx context.Context) error {
	id, begun := r.Journal.take, r.Clock.Now()
	if !r.repeat {
		id = rand.Text()
		if err := r.Journal.noteTake(id); err != nil {
			return err
		}
	}
	var all []client.HeldMessage
	calls := 0
	err := r.Client.Repeat(ctx, func() (err error) {
		calls++
		all, err = r.Client.TakeMessages(ctx, id, r.Most, r.Lease)
		return err
	})
	if err != nil {
		return err
	}
	h := &heldTake{r: r, lost: map[string]bool{}}
	if !r.repeat && calls == 1 {
		h.confirmed = r.Clock.Now()
	}
	r.repeat = false
	if len(all) == 0 && r.Clock.Now().Sub(begun) < idlePause {
		return r.Clock.Sleep(ctx, idlePause) // a server that does not wait must not get requests without a pause
	}
	return r.work(ctx, h, all)
}

// work handles messages that the device holds. During this time, it renews the holds.
func (r *runner) work(ctx context.Context, h *heldTake, all []client.HeldMessage) error {
	for _, m := range all {
		h.attempts = append(h.attempts, m.Attempt)
	}
	during, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer stop()
	renewing.Go(func() { h.keep(during) })
	for _, m := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.handle(ctx, h, m); err != nil {
			return err
		}
	}
	return nil
}

// handle passes one message to the command, unless the message already has an outcome, or the device no longer holds
// it.
func (r *runner) handle(ctx context.Context, h *heldTake, m client.HeldMessage) error {
	if s, ok := r.Journal.settled[m.Message]; ok {
		return r.sendReport(ctx, h, m, s.Outcome, s.Detail)
	}
	switch holds, err := h.stillHeld(ctx, m.Attempt); {
	case err != nil:
		return err
	case !holds && r.dedupes:
		return nil // the server will offer the message again
	case !holds:
		return r.sendReport(ctx, h, m, client.Refused, saysTooLate)
	}
	if err := r.Journal.noteBegun(m); err != nil {
		return err
	}
	outcome, detail, failure := r.Do(m.Whole)
	if err := r.sendReport(ctx, h, m, outcome, detail); err != nil {
		return errors.Join(failure, err)
	}
	if failure != nil || outcome != client.Returned {
		r.returned = 0
		return failure
	}
	r.returned++ // the message is due again at once, so the device waits before it tries a command that cannot send now
	return r.Clock.Sleep(ctx, r.Client.Pause(r.returned))
}

// sendReport writes a report to the journal and sends it.
func (r *runner) sendReport(ctx context.Context, h *heldTake, m client.HeldMessage, outcome client.Outcome, detail string) error {
	h.release(m.Attempt)
	report := client.Report{Message: m.Message, Attempt: m.Attempt, Outcome: outcome, Detail: detail}
	if err := r.Journal.noteReport(report); err != nil {
		_, sent := r.Client.SendReports(context.WithoutCancel(ctx), []client.Report{report})
		return errors.Join(err, sent)
	}
	return r.flush(ctx)
}

// flush sends the reports that the server has not received.
func (r *runner) flush(ctx context.Context) error {
	for reports := r.Journal.reports(); len(reports) > 0; reports = r.Journal.reports() {
		var results map[string]string
		err := r.Client.Repeat(ctx, func() (err error) { results, err = r.Client.SendReports(ctx, reports); return err })
		if err != nil {
			return err
		}
		for _, o := range reports {
			r.Logger.Info("reported", "message_id", o.Message, "outcome", o.Outcome, "result", results[o.Attempt])
		}
		if err := r.Journal.noteAcknowledged(reports); err != nil {
			return err
		}
	}
	return nil
}

// end returns the messages that the device holds and did not begin, and sends the last reports.
func (r *runner) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	err := r.flush(ctx)
	if err == nil {
		err = r.giveBack(ctx)
	}
	if err != nil {
		r.Logger.Warn("the server was not told everything; the journal keeps the reports for the next start", "error", err)
	}
}

// giveBack returns the held messages. It asks the server which messages these are, because the answer to a call that
// takes messages may have been lost.
func (r *runner) giveBack(ctx context.Context) error {
	var due client.DueList
	err := r.Client.Repeat(ctx, func() (err error) { due, err = r.Client.DueMessages(ctx); return err })
	if err != nil {
		return err
	}
	for _, m := range due.Held {
		if r.Journal.knows(m.Attempt) {
			continue // the journal could not store the report of this attempt
		}
		report := client.Report{Message: m.Message, Attempt: m.Attempt, Outcome: client.Returned}
		if s, ok := r.Journal.settled[m.Message]; ok {
			report.Outcome, report.Detail = s.Outcome, s.Detail
		}
		if err := r.Journal.noteReport(report); err != nil {
			return err
		}
	}
	return r.flush(ctx)
}

// lost logs that a call failed and is repeated.
func (r *runner) lost(err error, _ int, pause time.Duration) {
	if err != nil {
		r.Logger.Warn("the server does not answer; it is asked again", "error", err, "in", pause.Round(time.Millisecond))
	}
}
