package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"puntuale"
)

// late returns the name of the figure for a quantile of the product's lateness.
func late(rate int, quantile, engine string) string {
	return onEngine(fmt.Sprintf("lateness at %d messages/s, %s", rate, quantile), engine)
}

// lateness measures the time from a message's due time until its intent is on disk. Meanwhile new messages are planned
// at the rate at which messages leave. The measured messages are inserted before the first of them is due. The peers
// are measured in the same way.
func (b *bench) lateness(ctx context.Context) (failed error) {
	for i, rate := range b.lateRates {
		for _, engine := range b.engines() {
			failed = errors.Join(failed, b.ourLateness(ctx, rate, engine))
		}
		if !b.peersAt(i) {
			continue
		}
		if b.onPostgres() {
			failed = errors.Join(failed, b.riverLateness(ctx, rate, "River tuned", riverTuned), b.riverLateness(ctx, rate, "River by default", riverDefault))
		}
		failed = errors.Join(failed, b.asynqLateness(ctx, rate, "asynq tuned", asynqTuned), b.asynqLateness(ctx, rate, "asynq by default", asynqDefault))
	}
	return failed
}

// peersAt reports whether the peers are measured at the i-th rate. The peers' measurements take long, and no target
// needs them. So each repeat measures the peers at only one rate, and the next repeat at the next rate. If there are
// fewer repeats than rates, the last repeat measures all rates that are left.
func (b *bench) peersAt(i int) bool {
	switch {
	case !b.comparesOthers():
		return false
	case b.quick:
		return b.lateRates[i] == 2000
	}
	return b.sheet.repeat == min(i, b.repeats-1)
}

// plan says when the messages of one measurement are due: one after the other. The first message is due at the time in
// the field from.
type plan struct {
	total int
	rate  int
	from  time.Time
}

// planFor returns a plan. Its first message is due when the inserts should be complete, plus the duration lead.
func (b *bench) planFor(rate, insertsPerSecond int, lead time.Duration) plan {
	total := rate * int(b.late/time.Second)
	return plan{total, rate, time.Now().Add(time.Duration(total)*time.Second/time.Duration(insertsPerSecond) + lead)}
}

func (p plan) every() time.Duration { return time.Second / time.Duration(p.rate) }

func (p plan) due(i int) time.Time { return p.from.Add(time.Duration(i) * p.every()) }

func (p plan) end() time.Time { return p.due(p.total) }

// ready returns an error if the first message is due in less than the duration lead, because then the inserts took too
// long.
func (p plan) ready(lead time.Duration) error {
	if left := time.Until(p.from); left < lead {
		return fmt.Errorf("the messages were planned only %v ahead", left)
	}
	return nil
}

// delays contains the measured delay of each message, call or reply.
type delays struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *delays) add(late time.Duration) {
	d.mu.Lock()
	d.all = append(d.all, late)
	d.mu.Unlock()
}

// note records quantiles of the delays. It returns an error if there are fewer than total delays.
func (d *delays) note(s *sheet, name func(quantile string) string, total int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) < total {
		return fmt.Errorf("only %d of %d left", len(d.all), total)
	}
	slices.Sort(d.all)
	for _, q := range []struct {
		name  string
		share float64
	}{{"earliest", 0}, {"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		s.note(name(q.name), millis, d.all[int(q.share*float64(len(d.all)-1))].Seconds()*1000)
	}
	return nil
}

// lateMeter collects the lateness that the dispatcher measures for each intent.
type lateMeter struct {
	puntuale.NoMeter
	delays
}

func (m *lateMeter) Late(d time.Duration) { m.add(d) }

func (b *bench) ourLateness(ctx context.Context, rate int, engine string) error {
	f, err := b.fixture(ctx, engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	const lead = 1500 * time.Millisecond
	p := b.planFor(rate, 40_000, 2*lead)
	if err := f.put(ctx, load{first: 1, n: p.total, steps: 1, due: p.from.UnixMicro(), every: p.every().Microseconds()}); err != nil {
		return err
	}
	m, t := &lateMeter{}, newTally(p.total)
	stop, err := f.dispatchers(ctx, 1, t, m)
	if err != nil {
		return err
	}
	if err := p.ready(lead); err != nil {
		return errors.Join(err, stop())
	}
	name := func(quantile string) string { return late(rate, quantile, engine) }
	w := b.watch(engine)
	later := p.end().Add(time.Hour).UTC() // messages that are planned during the measurement are due after its end
	failed := steadily(p.total/3, float64(rate)/3, p.from.Add(-time.Second), b.workers, func(i int) error {
		id, run := f.startRun(i, 3, later, time.Now().UTC())
		_, err := f.store.Tenant(id).Start(ctx, run)
		return err
	})
	_, err = t.wait(ctx, b.late+30*time.Second)
	if failed = errors.Join(failed, err); failed == nil {
		w.note(onEngine(fmt.Sprintf("lateness at %d messages/s", rate), engine), p.total)
		failed = m.note(&b.sheet, name, p.total)
	}
	return errors.Join(failed, stop())
}

// riverLateness measures how long after a job's due time a worker begins. A worker begins right after River has
// committed its job as running. Meanwhile jobs are planned 100 at a time, because single inserts would cost River more.
func (b *bench) riverLateness(ctx context.Context, rate int, name string, t riverTuning) error {
	var d delays
	r, err := b.newRiver(ctx, t, func(j *river.Job[job]) { d.add(time.Since(time.UnixMicro(j.Args.Due))) })
	if err != nil {
		return err
	}
	defer r.close()
	const lead = 7 * time.Second // River's scheduler runs every five seconds, and looks for jobs that are due in the next five seconds
	p := b.planFor(rate, 25_000, lead+500*time.Millisecond)
	if err := r.client.Start(ctx); err != nil {
		return err
	}
	failed := r.insert(ctx, p.total, 1000, func(i int) *river.InsertOpts { return &river.InsertOpts{ScheduledAt: p.due(i)} })
	failed = errors.Join(failed, p.ready(lead))
	later := p.end().Add(time.Hour)
	if failed == nil {
		const group = 100
		failed = steadily(p.total/group, float64(rate)/group, p.from.Add(-time.Second), 8, func(i int) error {
			jobs := make([]river.InsertManyParams, group)
			for k := range jobs {
				jobs[k] = riverJob(i*group+k, &river.InsertOpts{ScheduledAt: later})
			}
			_, err := r.client.InsertManyFast(ctx, jobs)
			return err
		})
	}
	if failed == nil {
		_, failed = r.finish(ctx, p.total, b.late+time.Minute)
	}
	if failed == nil {
		failed = d.note(&b.sheet, func(quantile string) string { return late(rate, quantile, name) }, p.total)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(failed, r.client.Stop(stopping))
}

// asynqLateness measures how long after its due time a task begins.
func (b *bench) asynqLateness(ctx context.Context, rate int, name string, t asynqTuning) error {
	var d delays
	a, err := b.newAsynq(ctx, t, func(task *asynq.Task) {
		var args job
		if json.Unmarshal(task.Payload(), &args) == nil {
			d.add(time.Since(time.UnixMicro(args.Due)))
		}
	})
	if errors.Is(err, errNoRedis) {
		b.say("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close()
	p := b.planFor(rate, 5000, time.Second)
	if _, err := each(p.total, 64, func(_, i int) error { return a.enqueue(ctx, i, p.due(i)) }); err != nil {
		return err
	}
	if err := errors.Join(p.ready(0), a.server.Start(a)); err != nil {
		return err
	}
	later := p.end().Add(time.Hour)
	failed := steadily(p.total, float64(rate), p.from, 64, func(i int) error { return a.enqueue(ctx, i, later) })
	if failed == nil {
		_, failed = a.finish(ctx, p.total, b.late+time.Minute)
	}
	if failed == nil {
		failed = d.note(&b.sheet, func(quantile string) string { return late(rate, quantile, name) }, p.total)
	}
	a.server.Shutdown()
	return failed
}
