package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The functions below return the names of figures about campaigns with n recipients.
func listed(n int, engine string) string {
	return onEngine(count(n)+" recipients uploaded and checked", engine)
}

func planned(n, steps int, engine string) string {
	return onEngine(fmt.Sprintf("message rows planned while feeding %s recipients, sequences of %d", count(n), steps), engine)
}

func plannedBeside(n, steps int, engine string) string {
	return onEngine(fmt.Sprintf("message rows planned meanwhile, %s recipients, sequences of %d", count(n), steps), engine)
}

func idleCalls(quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, of a server with nothing else to do, %s", callRate, quantile), engine)
}

func callsBeside(steps int, quantile, engine string) string {
	return onEngine(fmt.Sprintf("start calls, %d a second, while sequences of %d are fed, %s", callRate, steps, quantile), engine)
}

func peakMemory(n int, stage, engine string) string {
	return onEngine("memory of the server at most, "+count(n)+" recipients "+stage, engine)
}

func paused(n int, name, engine string) string {
	return onEngine("pause with "+count(n)+" fed: "+name, engine)
}

const (
	answered  = "its answer"
	lastGrown = "until nothing more arrives"
)

// Sizes of lists in a quick run and in a full run.
var (
	quickLists = lists{fed: 20_000, measured: 100_000}
	fullLists  = lists{fed: 100_000, measured: 1_000_000}
)

// lists contains the numbers of recipients in the measured campaigns.
type lists struct {
	fed      int // the number of recipients of each campaign in the measurements of feeding and pausing
	measured int // the number of recipients of the campaign in the measurement of memory
}

// campaignTargets returns the targets for campaigns.
func campaignTargets() (all []target) {
	for _, n := range []lists{fullLists, quickLists} {
		for _, engine := range []string{postgres, sqlite} {
			all = append(all, target{figure: listed(n.fed, engine), highest: 10})
			for _, steps := range fedSteps {
				all = append(all, target{figure: planned(n.fed, steps, engine), lowest: 20_000})
			}
			all = append(all,
				target{figure: peakMemory(n.measured, "being fed", engine), highest: 286}, // the target is 300 MB, which are 286 MiB
				target{figure: paused(n.fed, answered, engine), highest: 2},
				target{figure: paused(n.fed, lastGrown, engine), highest: 2},
			)
		}
	}
	for _, engine := range []string{postgres, sqlite} {
		for _, steps := range fedSteps {
			all = append(all, target{figure: callsBeside(steps, "p99", engine), divisor: idleCalls("p99", engine), highest: 2})
		}
	}
	return all
}

// fedSteps contains the lengths of the sequences, in messages, in the measurement of feeding.
var fedSteps = []int{3, 1}

// campaigns measures a running server through its API: lists, feeding beside start calls, pauses and memory.
func (b *bench) campaigns(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		for _, take := range []func(context.Context, *campaigner) error{b.feeding, b.pausing, b.listMemory} {
			failed = errors.Join(failed, b.withCampaigner(ctx, engine, take))
		}
	}
	return failed
}

func (b *bench) withCampaigner(ctx context.Context, engine string, take func(context.Context, *campaigner) error) error {
	f, err := b.fixture(ctx, engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	db, err := plain(engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := b.server(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	return take(ctx, &campaigner{fixture: f, server: s, db: db, client: f.clients[0], http: &http.Client{Timeout: 2 * time.Minute}})
}

// feeding measures how long a list takes to upload and check, and how many messages are planned a second. It also
// measures how long start calls take while another list is fed. The sequences begin a day after their starts. So no
// message leaves, and the feeder plans as fast as it can.
func (b *bench) feeding(ctx context.Context, c *campaigner) error {
	engine, n := c.engine, b.lists.fed
	if _, err := c.callsDuring(ctx, func() error { return pass(ctx, b.idle/4) }); err != nil { // warms up connections, query plans and statements
		return err
	}
	idle, err := c.callsDuring(ctx, func() error { return pass(ctx, b.idle) })
	if err != nil {
		return err
	}
	if err := idle.note(&b.sheet, func(quantile string) string { return idleCalls(quantile, engine) }, 1); err != nil {
		return err
	}
	for _, steps := range fedSteps {
		sequence, err := c.sequence(ctx, steps)
		if err != nil {
			return err
		}
		begun := time.Now()
		alone, err := c.readyToFeed(ctx, sequence, n)
		if err != nil {
			return err
		}
		if steps == fedSteps[0] {
			b.sheet.note(listed(n, engine), seconds, time.Since(begun).Seconds())
		}
		rows := n * steps
		name := planned(n, steps, engine)
		w, used := b.watch(engine), c.server.cpu()
		took, err := alone()
		if err != nil {
			return err
		}
		b.sheet.note(name, perSecond, float64(rows)/took.Seconds())
		b.sheet.note(name+": CPU of the server", microCPU, (c.server.cpu()-used).Seconds()*1e6/float64(rows))
		if e := w.stop(name, rows); e.served {
			b.sheet.note(name+itsEffort, microCPU, e.database)
		}
		feed, err := c.readyToFeed(ctx, sequence, n)
		if err != nil {
			return err
		}
		beside, err := c.callsDuring(ctx, func() (err error) {
			took, err = feed()
			return err
		})
		if err != nil {
			return err
		}
		b.sheet.note(plannedBeside(n, steps, engine), perSecond, float64(rows)/took.Seconds())
		if err := beside.note(&b.sheet, func(quantile string) string { return callsBeside(steps, quantile, engine) }, 1); err != nil {
			return err
		}
	}
	return nil
}

// readyToFeed makes a checked campaign of n recipients. The function feed starts the campaign, and returns how long it
// took to feed the whole list.
func (c *campaigner) readyToFeed(ctx context.Context, sequence string, n int) (feed func() (time.Duration, error), err error) {
	id, digest, err := c.ready(ctx, campaignDraft{Name: "Bench", Sequence: sequence}, n)
	if err != nil {
		return nil, err
	}
	return func() (time.Duration, error) {
		begun := time.Now()
		if err := c.start(ctx, id, digest); err != nil {
			return 0, err
		}
		err := c.await(ctx, id, "waiting", func(waiting int) bool { return waiting == 0 })
		return time.Since(begun), err
	}, nil
}

// pausing measures how fast a pause stops a campaign that sends as fast as it can.
func (b *bench) pausing(ctx context.Context, c *campaigner) error {
	n := b.lists.fed
	id, digest, err := c.ready(ctx, campaignDraft{Name: "Bench", Content: &campaignText{sampleText}}, n+n/2)
	if err != nil {
		return err
	}
	if err := c.start(ctx, id, digest); err != nil {
		return err
	}
	if err := c.await(ctx, id, "fed", func(fed int) bool { return fed >= n }); err != nil {
		return err
	}
	begun := time.Now()
	if err := c.call(ctx, "POST", "/api/campaigns/"+id+"/pause", nil, nil); err != nil {
		return err
	}
	b.sheet.note(paused(n, answered, c.engine), seconds, time.Since(begun).Seconds())
	last, err := c.stopsGrowing(ctx, id)
	if err != nil {
		return err
	}
	b.sheet.note(paused(n, lastGrown, c.engine), seconds, max(0, last.Sub(begun).Seconds()))
	return nil
}

// listMemory measures the most memory that the server uses for the largest list, until a tenth of the list is fed.
func (b *bench) listMemory(ctx context.Context, c *campaigner) error {
	n := b.lists.measured
	note := func(stage string) error {
		highest, err := c.server.memory("VmHWM")
		if err == nil {
			b.sheet.note(peakMemory(n, stage, c.engine), mebibytes, highest)
		}
		return err
	}
	sequence, err := c.sequence(ctx, 3)
	if err != nil {
		return err
	}
	id, err := c.draft(ctx, campaignDraft{Name: "Bench", Sequence: sequence})
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := c.upload(ctx, id, n); err != nil {
		return err
	}
	b.sheet.note(onEngine(count(n)+" recipients uploaded", c.engine), seconds, time.Since(begun).Seconds())
	if err := note("uploaded"); err != nil {
		return err
	}
	begun = time.Now()
	digest, err := c.check(ctx, id)
	if err != nil {
		return err
	}
	b.sheet.note(onEngine(count(n)+" recipients checked", c.engine), seconds, time.Since(begun).Seconds())
	if err := note("checked"); err != nil {
		return err
	}
	if err := c.start(ctx, id, digest); err != nil {
		return err
	}
	if err := c.await(ctx, id, "fed", func(fed int) bool { return fed >= n/10 }); err != nil {
		return err
	}
	return note("being fed")
}

// pass waits for the time d, or until ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
