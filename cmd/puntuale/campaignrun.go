package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"puntuale/internal/campaignclient"
)

// campaignRun is one run of a [campaignCommand].
type campaignRun struct {
	c      *campaignCommand
	p      *program
	client *campaignclient.Client
	bar    *progress
	in     *bufio.Reader
	asks   bool // a person sits at the terminal

	id                string
	verb              string // what the campaign is told; "" for none
	known             bool   // the campaign is there
	starting, started bool
	recipients        int       // of the list
	last              time.Time // the moment of the last message, as the check said
}

// send makes a campaign, and follows it to its end. A repeat goes on where the first one was.
func (r *campaignRun) send(ctx context.Context) error {
	list, err := r.openList(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = list.free() }()
	now, err := r.make(ctx, list)
	if err != nil {
		return err
	}
	if now.State == "checking" { // of a command that was killed
		if _, err := r.check(ctx); err != nil {
			return err
		}
	}
	if now.Started == nil && !now.Ended() {
		err := r.upload(ctx, list)
		if err == nil {
			return r.launch(ctx)
		}
		switch refusal, ok := errors.AsType[*campaignclient.Refusal](err); {
		case ok && (refusal.Status == http.StatusUnprocessableEntity || refusal.Status == http.StatusRequestEntityTooLarge):
			_, _ = r.client.Change(ctx, r.id, "cancel") // nothing can come of it; what remains is a draft without a list
			r.known = false
			return err
		case !ok || refusal.Status != http.StatusConflict:
			return err
		}
		if now, lookErr := r.look(ctx); lookErr != nil || now.Started == nil { // else the same command started it meanwhile
			return err
		}
	}
	fmt.Fprintf(r.p.stdout, "Campaign %s was made of the same list and message before, and nothing is sent twice. Another --name makes another campaign.\n", r.id)
	return r.follow(ctx)
}

// make makes a draft, or finds the campaign that the same command made before. A draft that was dropped is left alone.
func (r *campaignRun) make(ctx context.Context, list *campaignList) (now campaignclient.Campaign, err error) {
	order := r.c.order()
	for try := range mostDropped {
		once, err := list.once(order, try)
		if err != nil {
			return now, err
		}
		made, err := r.client.Create(ctx, order, once)
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

// mostDropped bounds how many drafts of one command may be dropped in a day.
const mostDropped = 50

// goOn goes on with a campaign that is there.
func (r *campaignRun) goOn(ctx context.Context) error {
	now, err := r.look(ctx)
	switch {
	case err != nil:
		return err
	case now.Started != nil || now.Ended():
		return r.follow(ctx)
	case now.Counts.Recipients == 0:
		return outcomeError(fmt.Sprintf("campaign %s has no list yet: give the command with --file again", r.id))
	case !r.asks && !r.c.Yes:
		return faultsError{"the campaign has not started, and nobody can be asked here whether to start it: give --yes"}
	}
	return r.launch(ctx)
}

// look returns the campaign.
func (r *campaignRun) look(ctx context.Context) (campaignclient.Campaign, error) {
	now, err := r.client.Campaign(ctx, r.id)
	if err != nil {
		return now, fmt.Errorf("look at campaign %s: %w", r.id, err)
	}
	r.known, r.started, r.recipients = true, r.started || now.Started != nil, now.Counts.Recipients
	return now, nil
}

// change pauses, resumes or cancels a campaign.
func (r *campaignRun) change(ctx context.Context, verb string) error {
	r.verb = verb
	changed, err := r.client.Change(ctx, r.id, verb)
	if err != nil {
		return fmt.Errorf("%s campaign %s: %w", verb, r.id, err)
	}
	_, err = fmt.Fprintf(r.p.stdout, "Campaign %s is %s: %s.\n", r.id, changed.State, countsText(changed.Counts))
	return err
}

// upload puts the file into the campaign, and shows what the server read.
func (r *campaignRun) upload(ctx context.Context, list *campaignList) error {
	file := campaignclient.File{From: list.file, Size: list.size}
	put, err := r.client.Upload(ctx, r.id, file, r.c.Columns, func(sent int64) { r.bar.count("uploading", byteUnit(list.size), sent, list.size) })
	r.bar.end()
	if err != nil {
		return fmt.Errorf("upload the list: %w", err)
	}
	r.recipients = put.Recipients
	return writeList(r.p.stdout, put)
}

// launch checks a campaign, asks, starts what the check showed, and follows the campaign.
func (r *campaignRun) launch(ctx context.Context) error {
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
		_, err := r.client.Start(ctx, r.id, check.Digest)
		changed, ok := errors.AsType[*campaignclient.ChangedError](err)
		if refusal, refused := errors.AsType[*campaignclient.Refusal](err); ok || refused && refusal.Status/100 == 4 {
			r.starting = false
		}
		if !ok || changes == mostChanges {
			if err != nil {
				return fmt.Errorf("start campaign %s: %w", r.id, err)
			}
			break
		}
		fmt.Fprintln(r.p.stdout, "Something was changed since the check, and nothing was started. This is what would be sent now.")
		if check = changed.Check; check.Digest == "" { // it goes on
			if check, err = r.check(ctx); err != nil {
				return err
			}
		}
	}
	r.started = true
	fmt.Fprintf(r.p.stdout, "Campaign %s has started. It goes on when this command ends; %s shows it again.\n", r.id, r.again(""))
	return r.follow(ctx)
}

// mostChanges bounds how often a check is void before the start.
const mostChanges = 5

// check has the campaign checked.
func (r *campaignRun) check(ctx context.Context) (campaignclient.Check, error) {
	fmt.Fprintf(r.p.stdout, "Checking campaign %s …\n", r.id)
	found, err := r.client.Check(ctx, r.id, func(c campaignclient.Check) {
		if c.Done > 0 {
			r.bar.count("checking", recipientUnit, int64(c.Done), int64(max(c.Done, r.recipients)))
		}
	})
	r.bar.end()
	if err != nil {
		return found, fmt.Errorf("check campaign %s: %w", r.id, err)
	}
	return found, nil
}

// show says what the check found, and saves the refused rows.
func (r *campaignRun) show(ctx context.Context, check campaignclient.Check) error {
	if err := writeCheck(r.p.stdout, check); err != nil {
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

// agree returns nil when the campaign is to be started.
func (r *campaignRun) agree(ctx context.Context) error {
	if r.c.Yes {
		return nil
	}
	fmt.Fprint(r.p.stdout, "Start? [y/N] ")
	answer, err := r.line(ctx)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return outcomeError(fmt.Sprintf("not started; campaign %s stays as it is.\n  ask again:  %s\n  drop it:    %s", r.id, r.again(""), r.again(" --cancel")))
}

// saveRefused writes the refused rows into the file that the command names.
func (r *campaignRun) saveRefused(ctx context.Context) error {
	if r.c.Refused == "" {
		return nil
	}
	out, err := r.p.createFile(r.c.Refused, true)
	if err != nil {
		return err
	}
	err = r.client.Refused(ctx, r.id, func() (io.Writer, error) {
		if err := out.file.Truncate(0); err != nil {
			return nil, err
		}
		_, err := out.file.Seek(0, io.SeekStart)
		return out.file, err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("save the refused rows: %w", err), out.remove())
	}
	if err := out.finish(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.p.stdout, "The refused rows are in %s.\n", out.name)
	return err
}
