package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// readings measures what grows with the database if anything does: queries, cancels and starts, each for one client among
// 200, beside so many pending messages and a fourth of them that left.
func (b *bench) readings(ctx context.Context) (failed error) {
	for _, pending := range b.pending {
		for _, engine := range b.engines() {
			if engine == sqlite && pending > 1_000_000 {
				continue
			}
			failed = errors.Join(failed, b.read(ctx, engine, pending))
		}
	}
	return failed
}

// question is one thing that a client asks, again and again.
type question struct {
	name string
	ask  func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error
}

var questions = []question{
	{"period of a day, 100 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, i int) error {
		from := time.Now().AddDate(0, 0, -3-i%25)
		_, _, err := t.Outcomes(ctx, from, from.AddDate(0, 0, 1), puntuale.Page{Limit: 100})
		return err
	}},
	{"list, 100 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		_, _, err := t.Messages(ctx, puntuale.MessageFilter{}, puntuale.Page{Limit: 100})
		return err
	}},
	{"list of a recipient", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		_, _, err := t.Messages(ctx, puntuale.MessageFilter{Phone: f.phoneOf(i)}, puntuale.Page{Limit: 100})
		return err
	}},
	{"details of 20", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		found, err := t.Details(ctx, f.idsOf(i, 20))
		if err == nil && len(found) == 0 {
			err = errors.New("nothing was found")
		}
		return err
	}},
	{"cancel of 20", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		cancelled, err := t.CancelMessages(ctx, f.idsOf(i, 20), f.today, time.Now())
		if err == nil && len(cancelled) == 0 {
			err = errors.New("nothing was cancelled")
		}
		return err
	}},
	{"cancel by phone", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		_, err := t.CancelPending(ctx, []string{f.phoneOf(i + 1)}, false, f.today, time.Now())
		return err
	}},
	{"start of 3", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		now := clock.System().Now()
		_, run := f.startRun(i, 3, now.AddDate(0, 0, 2), now)
		_, err := t.Start(ctx, run)
		return err
	}},
}

// phoneOf is the recipient of one of the i-th client's runs, and idsOf are messages of its runs, as stock numbers them.
func (f *fixture) phoneOf(i int) string {
	i %= customers
	return fmt.Sprintf("+39347%07d", i)
}

func (f *fixture) idsOf(i, n int) (ids []puntuale.MessageID) {
	run, client := i/customers, i%customers
	for k := range n {
		at := (run*n+k)/3*customers + client // the client's next run
		ids = append(ids, puntuale.MessageID(f.firstPending+at*3+k%3))
	}
	return ids
}

func (b *bench) read(ctx context.Context, engine string, pending int) error {
	f, err := b.fixture(ctx, engine, pending)
	if err != nil {
		return err
	}
	defer f.close()
	for _, q := range questions {
		var all []time.Duration
		for i := range b.reads {
			c := f.clients[i%len(f.clients)]
			begun := time.Now()
			if err := q.ask(ctx, f.store.Tenant(c.id), f, i); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			all = append(all, time.Since(begun))
		}
		slices.Sort(all)
		b.sheet.note(on(q.name+", beside "+count(pending)+" pending", engine), millis, all[len(all)/2].Seconds()*1000)
	}
	return nil
}
