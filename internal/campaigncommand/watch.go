package campaigncommand

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"puntuale/internal/client"
)

const (
	shortLook  = time.Second      // time between two reads of a campaign
	longLook   = 30 * time.Second // longest time between two reads, if the server needs much time for its counts
	rateWindow = time.Minute      // the period over which the rate is measured
)

// follow shows the progress of a campaign until it ends, or pauses by itself.
func (r *run) follow(ctx context.Context) error {
	var rate messageRate
	for state := ""; ; {
		begun := r.cfg.Clock.Now()
		now, err := r.look(ctx)
		if err != nil {
			return err
		}
		at := r.cfg.Clock.Now()
		done, total := ended(now.Counts)
		perMinute := rate.add(at, done)
		text := ""
		if now.State != "running" {
			text = ", " + now.State
		}
		if perMinute > 0 {
			text += fmt.Sprintf(", %.0f a minute", perMinute)
		}
		if !now.Ended() && total > done {
			text += r.endText(at, float64(total-done), perMinute)
		}
		r.cfg.Bar.Show("campaign", done, total, text, countsText(now.Counts), now.State != state)
		state = now.State
		if now.Ended() || state == "paused" && now.Reason != "" {
			r.cfg.Bar.End()
			return r.outcome(ctx, now)
		}
		if err := r.cfg.Clock.Sleep(ctx, min(max(shortLook, 10*at.Sub(begun)), longLook)); err != nil {
			return err
		}
	}
}

// outcome returns how a campaign ended, or why it paused.
func (r *run) outcome(ctx context.Context, c client.Campaign) error {
	if c.Started != nil {
		if err := r.saveRefused(ctx); err != nil {
			return err
		}
	}
	switch {
	case c.State == "paused":
		return OutcomeError(fmt.Sprintf("campaign %s paused by itself: %s.\n  let it go on:  %s\n  cancel it:     %s",
			r.id, words(pausedWords, c.Reason), r.commandLine(" --resume"), r.commandLine(" --cancel")))
	case c.State != "done" && c.Reason != "":
		return OutcomeError(fmt.Sprintf("campaign %s is %s: %s", r.id, c.State, words(pausedWords, c.Reason)))
	case c.State != "done":
		return OutcomeError(fmt.Sprintf("campaign %s is %s", r.id, c.State))
	}
	n := c.Counts
	_, err := fmt.Fprintf(r.cfg.Out, "Campaign %s is done: %s in all, %d completed, %d failed, %d cancelled, %d blacklisted; %s refused.\n",
		r.id, plural(n.Pending+n.Completed+n.Failed+n.Cancelled+n.Blacklisted, "message"),
		n.Completed, n.Failed, n.Cancelled, n.Blacklisted, plural(n.Refused, "recipient"))
	return err
}

// lastLook bounds how long a command that ends early waits for the campaign's state.
const lastLook = 3 * time.Second

// stateText returns the campaign's state for a command that ends before the campaign, and the commands to continue.
func (r *run) stateText(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	r.cfg.Client.Lost = func(error, int, time.Duration) {}
	now, err := r.cfg.Client.Campaign(ctx, r.id)
	state, hint, verb := "was not started", "drop it:     ", "cancel"
	if r.cfg.ID == "" {
		state += "; the same command goes on with it"
	}
	switch {
	case r.verb != "" && err != nil:
		state, hint, verb = "perhaps got --"+r.verb+": the server did not confirm it", "try again:   ", r.verb
	case r.verb != "":
		state, hint, verb = "is "+now.State+", and perhaps --"+r.verb+" is still on its way", "try again:   ", r.verb
	case err != nil && r.started:
		state, hint, verb = "has started, and goes on without this command", "pause it:    ", "pause"
	case r.starting && (err != nil || now.Started == nil):
		state, hint = "was told to start, and perhaps does: the server did not confirm it", "cancel it:   "
	case err != nil && r.cfg.ID != "":
		state, hint = "did not hear from this command, and the server does not say how it is", ""
	case err != nil:
	case now.Ended():
		state, hint = "is "+now.State, ""
	case now.State == "paused":
		state, hint, verb = "is paused", "let it go on:", "resume"
	case now.Started != nil:
		state, hint, verb = "is "+now.State+", and goes on without this command", "pause it:    ", "pause"
	}
	text := fmt.Sprintf("campaign %s %s.\n  look at it:   %s", r.id, state, r.commandLine(""))
	if hint != "" {
		text += "\n  " + hint + " " + r.commandLine(" --"+verb)
	}
	return text
}

// commandLine returns a command line for the same campaign.
func (r *run) commandLine(verb string) string {
	line := "puntuale campaign --id " + quoted(r.id) + verb
	for _, flag := range r.cfg.ServerFlags {
		line += " " + quoted(flag)
	}
	return line
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// endText returns when the campaign will probably end. It assumes the current rate, but never returns a time before the
// last message's time in the check.
func (r *run) endText(now time.Time, left, perMinute float64) string {
	end := r.last
	if perMinute > 0 {
		if at := now.Add(time.Duration(left / perMinute * float64(time.Minute))); at.After(end) {
			end = at
		}
	}
	if !end.After(now) {
		return ""
	}
	form := "15:04:05"
	if end.Sub(now) > 12*time.Hour {
		form = "Mon 2 Jan 15:04"
	}
	return ", ends about " + end.Local().Format(form)
}

// ended returns the number of messages that ended, and the total. It assumes that waiting recipients get as many
// messages on average as the others.
func ended(n client.Counts) (done, total int64) {
	done = int64(n.Completed + n.Failed + n.Cancelled + n.Blacklisted)
	planned := done + int64(n.Pending)
	if n.Fed == 0 {
		return done, int64(n.Waiting)
	}
	return done, planned + planned*int64(n.Waiting)/int64(n.Fed)
}

// messageRate measures how many messages end in a minute.
type messageRate struct {
	at    []time.Time
	ended []int64
}

// add records a count, and returns the messages per minute. It returns 0 while there are too few counts.
func (m *messageRate) add(now time.Time, ended int64) float64 {
	for len(m.at) > 1 && now.Sub(m.at[0]) > rateWindow {
		m.at, m.ended = m.at[1:], m.ended[1:]
	}
	m.at, m.ended = append(m.at, now), append(m.ended, ended)
	took := now.Sub(m.at[0])
	if took <= 0 {
		return 0
	}
	return float64(ended-m.ended[0]) / took.Minutes()
}
