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
	{"period of outcomes, 10 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, i int) error {
		found, _, err := t.Outcomes(ctx, time.Now().AddDate(0, 0, -31), time.Now(), puntuale.Page{Limit: 10})
		return some(len(found), err)
	}},
	{"list, 20 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{"list of what left, 10 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		left := puntuale.Completed
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{State: &left}, puntuale.Page{Limit: 10})
		return some(len(found), err)
	}},
	{"list of what waits, 20 a page", func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		waits := puntuale.Pending
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{State: &waits}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{"list of a recipient", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{Phone: phoneOf(i, 0)}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{"details of 20", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		found, err := t.Details(ctx, f.idsOf(i, 20))
		return some(len(found), err)
	}},
	{"cancel of 20", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		cancelled, err := t.CancelMessages(ctx, f.idsOf(i, 20), f.today, time.Now())
		return some(len(cancelled), err)
	}},
	{"cancel by phone", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		cancelled, err := t.CancelPending(ctx, []string{phoneOf(i, 12)}, false, f.today, time.Now())
		return some(len(cancelled), err)
	}},
	{"start of 3", func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		now := clock.System().Now()
		_, run := f.startRun(i, 3, now.AddDate(0, 0, 2), now)
		_, err := t.Start(ctx, run)
		return err
	}},
}

// some makes an error of an answer that holds nothing, for it measures nothing.
func some(n int, err error) error {
	if err == nil && n == 0 {
		err = errors.New("there was nothing")
	}
	return err
}

// phoneOf is the recipient of the k-th run of the client whose turn it is, as stock numbers them.
func phoneOf(i, k int) string { return fmt.Sprintf("+39347%07d", k*customers+i%customers) }

// idsOf are messages that wait, of that client's first runs.
func (f *fixture) idsOf(i, n int) (ids []puntuale.MessageID) {
	for k := range n {
		run := k/3*customers + i%customers
		ids = append(ids, puntuale.MessageID(f.firstPending+run*3+k%3))
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
