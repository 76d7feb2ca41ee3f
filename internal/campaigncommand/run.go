package campaigncommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
	"puntuale/internal/localfile"
	"puntuale/internal/terminal"
)

// Config contains the parts and settings for [Run].
type Config struct {
	Client      *client.Client
	Server      string   // the server's address, as the user wrote it
	ServerFlags []string // the command-line flags that select the same server and key
	Clock       clock.Clock

	In          io.Reader       // the list, if File is "-"
	Lines       *terminal.Lines // the user's answers to questions
	Out         io.Writer
	Err         io.Writer
	Bar         *terminal.Progress // the progress bar, which writes to Out
	Interactive bool               // true: a person uses the terminal

	Order   client.CampaignOrder // what a new campaign sends
	File    string               // the file with the list of a new campaign; "-" is In
	Columns string               // which column is which field; "": the server guesses
	ID      string               // the id of an existing campaign; "": create a new campaign
	Verb    string               // the order for the existing campaign: pause, resume or cancel; "": only show the campaign
	Refused string               // the file to which the refused rows are written; "": none
	Yes     bool                 // true: start without a question
}

// UsageError says what is missing in the command line.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// OutcomeError says how a campaign ended, and what the user can do now.
type OutcomeError string

func (e OutcomeError) Error() string { return string(e) }

// Run creates a campaign from a list, or continues a campaign, and follows it to its end. If the user repeats the same
// command, it continues where the first command ended, and sends nothing twice. The error describes the campaign's
// state, and how to continue. It may be an [OutcomeError], or a [UsageError] if no person can answer a question.
func Run(ctx context.Context, cfg Config) (err error) {
	r := &run{cfg: cfg, id: cfg.ID}
	cfg.Client.Lost = r.lost
	switch {
	case cfg.Verb != "":
		err = r.change(ctx, cfg.Verb)
	case cfg.ID != "":
		err = r.continueCampaign(ctx)
	default:
		err = r.send(ctx)
	}
	cfg.Bar.End()
	_, printed := errors.AsType[OutcomeError](err)
	_, usage := errors.AsType[UsageError](err)
	switch {
	case err == nil || printed || usage:
		return err
	case ctx.Err() != nil && r.id == "":
		return errors.New("interrupted; nothing was started")
	case ctx.Err() != nil:
		return errors.New("interrupted; " + r.stateText(ctx))
	case r.known:
		return fmt.Errorf("%w\n  %s", err, r.stateText(ctx))
	}
	return err
}

// run is the state of a running command.
type run struct {
	cfg Config

	id                string
	verb              string // the order for the campaign; "": none
	known             bool   // true: the campaign exists
	starting, started bool
	recipients        int       // how many recipients the list has
	last              time.Time // the time of the last message, according to the check
}

// lost prints once that the server does not answer, or, if err is nil, that the server answers again.
func (r *run) lost(err error, n int, _ time.Duration) {
	if n > 1 {
		return
	}
	r.cfg.Bar.End()
	if err == nil {
		fmt.Fprintln(r.cfg.Err, "The server answers again.")
		return
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	text := "No answer from"
	if _, refused := errors.AsType[*client.Refusal](err); refused {
		text = "Not now, says"
	}
	fmt.Fprintf(r.cfg.Err, "%s %s (%v); trying again.\n", text, r.cfg.Server, err)
}

// send creates a campaign, and follows it to its end. A repeated command continues where the first command ended.
func (r *run) send(ctx context.Context) error {
	list, err := r.openList(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = list.free() }()
	now, err := r.make(ctx, list)
	if err != nil {
		return err
	}
	if now.State == "checking" { // an earlier command was killed, and its check still runs
		if _, err := r.check(ctx); err != nil {
			return err
		}
	}
	if now.Started == nil && !now.Ended() {
		err := r.upload(ctx, list)
		if err == nil {
			return r.launch(ctx)
		}
		switch refusal, ok := errors.AsType[*client.Refusal](err); {
		case ok && (refusal.Status == http.StatusUnprocessableEntity || refusal.Status == http.StatusRequestEntityTooLarge):
			_, _ = r.cfg.Client.ChangeCampaign(ctx, r.id, "cancel") // without a list the draft is useless
			r.known = false
			return err
		case !ok || refusal.Status != http.StatusConflict:
			return err
		}
		if now, lookErr := r.look(ctx); lookErr != nil || now.Started == nil { // if the campaign has started, another process of the same command started it in the meantime
			return err
		}
	}
	fmt.Fprintf(r.cfg.Out, "Campaign %s was made of the same list and message before, and nothing is sent twice. Another --name makes another campaign.\n", r.id)
	return r.follow(ctx)
}

// make creates a draft, or finds the campaign that the same command created before. If an earlier campaign of this
// command has ended without a start, make creates a new draft.
func (r *run) make(ctx context.Context, list *list) (now client.Campaign, err error) {
	order := r.cfg.Order
	for try := range maxDropped {
		once, err := list.createOnce(order, try)
		if err != nil {
			return now, err
		}
		made, err := r.cfg.Client.CreateCampaign(ctx, order, once)
		if err != nil {
			return now, fmt.Errorf("make the campaign: %w", err)
		}
		r.id = made.ID
		if now, err = r.look(ctx); err != nil || now.Started != nil || !now.Ended() {
			return now, err
		}
	}
	return now, errors.New("the same command was dropped too often; give another --name")
}

// maxDropped bounds how many drafts of one command may end without a start in a day.
const maxDropped = 50

// continueCampaign continues with an existing campaign.
func (r *run) continueCampaign(ctx context.Context) error {
	now, err := r.look(ctx)
	switch {
	case err != nil:
		return err
	case now.Started != nil || now.Ended():
		return r.follow(ctx)
	case now.Counts.Recipients == 0:
		return OutcomeError(fmt.Sprintf("campaign %s has no list yet: give the command with --file again", r.id))
	case !r.cfg.Interactive && !r.cfg.Yes:
		return UsageError("the campaign has not started, and nobody can be asked here whether to start it: give --yes")
	}
	return r.launch(ctx)
}

// look reads the campaign's state from the server.
func (r *run) look(ctx context.Context) (client.Campaign, error) {
	now, err := r.cfg.Client.Campaign(ctx, r.id)
	if err != nil {
		return now, fmt.Errorf("look at campaign %s: %w", r.id, err)
	}
	r.known, r.started, r.recipients = true, r.started || now.Started != nil, now.Counts.Recipients
	return now, nil
}

// change pauses, resumes or cancels a campaign.
func (r *run) change(ctx context.Context, verb string) error {
	r.verb = verb
	changed, err := r.cfg.Client.ChangeCampaign(ctx, r.id, verb)
	if err != nil {
		return fmt.Errorf("%s campaign %s: %w", verb, r.id, err)
	}
	_, err = fmt.Fprintf(r.cfg.Out, "Campaign %s is %s: %s.\n", r.id, changed.State, countsText(changed.Counts))
	return err
}

// upload sends the file to the server, and shows what the server read.
func (r *run) upload(ctx context.Context, list *list) error {
	file := client.File{From: list.file, Size: list.size}
	put, err := r.cfg.Client.UploadList(ctx, r.id, file, r.cfg.Columns, func(sent int64) { r.cfg.Bar.Count("uploading", terminal.Bytes(list.size), sent, list.size) })
	r.cfg.Bar.End()
	if err != nil {
		return fmt.Errorf("upload the list: %w", err)
	}
	r.recipients = put.Recipients
	return writeList(r.cfg.Out, put)
}

// launch checks a campaign, asks the user, starts exactly what the check showed, and follows the campaign.
func (r *run) launch(ctx context.Context) error {
	check, err := r.check(ctx)
	if err != nil {
		return err
	}
	for changes := 0; ; changes++ {
		if err := r.show(ctx, check); err != nil {
			return err
		}
		if err := r.agree(ctx); err != nil {
			return err
		}
		r.starting = true
		_, err := r.cfg.Client.StartCampaign(ctx, r.id, check.Digest)
		changed, ok := errors.AsType[*client.ChangedError](err)
		if refusal, refused := errors.AsType[*client.Refusal](err); ok || refused && refusal.Status/100 == 4 {
			r.starting = false
		}
		if !ok || changes == maxChanges {
			if err != nil {
				return fmt.Errorf("start campaign %s: %w", r.id, err)
			}
			break
		}
		fmt.Fprintln(r.cfg.Out, "Something was changed since the check, and nothing was started. This is what would be sent now.")
		if check = changed.Check; check.Digest == "" { // the campaign must be checked again
			if check, err = r.check(ctx); err != nil {
				return err
			}
		}
	}
	r.started = true
	fmt.Fprintf(r.cfg.Out, "Campaign %s has started. It goes on when this command ends; %s shows it again.\n", r.id, r.commandLine(""))
	return r.follow(ctx)
}

// maxChanges bounds how many checks may become invalid before the start.
const maxChanges = 5

// check starts the check of the campaign on the server, and waits for its result.
func (r *run) check(ctx context.Context) (client.Check, error) {
	fmt.Fprintf(r.cfg.Out, "Checking campaign %s …\n", r.id)
	found, err := r.cfg.Client.CheckCampaign(ctx, r.id, func(c client.Check) {
		if c.Done > 0 {
			r.cfg.Bar.Count("checking", terminal.Recipients, int64(c.Done), int64(max(c.Done, r.recipients)))
		}
	})
	r.cfg.Bar.End()
	if err != nil {
		return found, fmt.Errorf("check campaign %s: %w", r.id, err)
	}
	return found, nil
}

// show prints the result of the check, and writes the refused rows to a file.
func (r *run) show(ctx context.Context, check client.Check) error {
	if err := writeCheck(r.cfg.Out, check); err != nil {
		return err
	}
	if check.Last != nil {
		r.last = *check.Last
	}
	if err := r.saveRefused(ctx); err != nil {
		return err
	}
	if check.Valid == 0 {
		return fmt.Errorf("nobody would get a message of campaign %s: every recipient is refused", r.id)
	}
	return nil
}

// agree asks the user, and returns nil if the user agrees to the start.
func (r *run) agree(ctx context.Context) error {
	if r.cfg.Yes {
		return nil
	}
	fmt.Fprint(r.cfg.Out, "Start? [y/N] ")
	answer, err := r.cfg.Lines.Next(ctx)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return OutcomeError(fmt.Sprintf("not started; campaign %s stays as it is.\n  ask again:  %s\n  drop it:    %s", r.id, r.commandLine(""), r.commandLine(" --cancel")))
}

// saveRefused writes the refused rows to the file in the command line, if there is one.
func (r *run) saveRefused(ctx context.Context) error {
	if r.cfg.Refused == "" {
		return nil
	}
	out, err := localfile.Create(r.cfg.Refused, true)
	if err != nil {
		return err
	}
	err = r.cfg.Client.RefusedRows(ctx, r.id, func() (io.Writer, error) {
		if err := out.Truncate(0); err != nil {
			return nil, err
		}
		_, err := out.Seek(0, io.SeekStart)
		return out, err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("save the refused rows: %w", err), out.Remove())
	}
	if err := out.Finish(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.cfg.Out, "The refused rows are in %s.\n", out.Target())
	return err
}
