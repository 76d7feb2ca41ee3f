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

// readings measures calls whose cost might grow with the database. Queries, cancels and starts are each for one of 200
// clients. Claims and outcomes are for messages of 20 clients. The database has many pending messages, and a quarter as
// many sent messages.
func (b *bench) readings(ctx context.Context) (failed error) {
	for _, pending := range b.pending {
		for _, engine := range b.engines() {
			if b.skips(engine, pending) {
				continue
			}
			failed = errors.Join(failed, b.read(ctx, engine, pending))
		}
	}
	return failed
}

// question is one query that the bench repeats for many clients.
type question struct {
	name    string
	ask     func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error
	changes bool // the question changes the database, so it is asked only once
}

var questions = []question{
	{name: "period of outcomes, 10 a page", ask: func(ctx context.Context, t puntuale.Tenant, _ *fixture, i int) error {
		found, _, err := t.Outcomes(ctx, time.Now().AddDate(0, 0, -31), time.Now(), puntuale.Page{Limit: 10})
		return some(len(found), err)
	}},
	{name: "list, 20 a page", ask: func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{name: "list of what left, 10 a page", ask: func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		left := puntuale.Completed
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{State: &left}, puntuale.Page{Limit: 10})
		return some(len(found), err)
	}},
	{name: "list of what waits, 20 a page", ask: func(ctx context.Context, t puntuale.Tenant, _ *fixture, _ int) error {
		waits := puntuale.Pending
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{State: &waits}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{name: "list of a recipient", ask: func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		found, _, err := t.Messages(ctx, puntuale.MessageFilter{Phone: phoneOf(i, 0)}, puntuale.Page{Limit: 20})
		return some(len(found), err)
	}},
	{name: "details of 20", ask: func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		found, err := t.Details(ctx, f.idsOf(i, 20))
		return some(len(found), err)
	}},
	{name: "claim of 20", changes: true, ask: func(ctx context.Context, _ puntuale.Tenant, f *fixture, i int) error {
		return f.claim(ctx, f.claimed(i, 20), i)
	}},
	{name: "outcomes of 20", changes: true, ask: func(ctx context.Context, _ puntuale.Tenant, f *fixture, i int) error {
		return f.record(ctx, f.claimed(i, 20), i)
	}},
	{name: "cancel of 20", changes: true, ask: func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		cancelled, err := t.CancelMessages(ctx, f.idsOf(i, 20), f.today, time.Now())
		return some(len(cancelled), err)
	}},
	{name: "cancel by phone", changes: true, ask: func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		n := 0
		err := t.CancelPending(ctx, puntuale.CancelTarget{Phones: []string{phoneOf(i, 12)}}, f.today, time.Now(), func(done []puntuale.CancelledMessage) error {
			n += len(done)
			return nil
		})
		return some(n, err)
	}},
	{name: "start of 3", changes: true, ask: func(ctx context.Context, t puntuale.Tenant, f *fixture, i int) error {
		now := clock.System().Now()
		_, run := f.startRun(i, 3, now.AddDate(0, 0, 2), now)
		_, err := t.Start(ctx, run)
		return err
	}},
}

// some returns an error if an answer is empty, because an empty answer measures nothing.
func some(n int, err error) error {
	if err == nil && n == 0 {
		err = errors.New("there was nothing")
	}
	return err
}

// phoneOf returns the recipient of a client's k-th run. The client's index is i modulo customers. stock.go inserts the
// same phone numbers.
func phoneOf(i, k int) string { return fmt.Sprintf("+39347%07d", k*customers+i%customers) }

// idsOf returns the ids of n waiting messages. They are in the first runs of the client with the index i modulo
// customers.
func (f *fixture) idsOf(i, n int) (ids []puntuale.MessageID) {
	for k := range n {
		run := k/3*customers + i%customers
		ids = append(ids, puntuale.MessageID(f.firstPending+run*3+k%3))
	}
	return ids
}

// claimed returns n waiting messages, each of a different client. Over many calls, it uses all clients in round-robin
// order. No two calls of claimed share a message. The measurement of cancels uses other messages.
func (f *fixture) claimed(i, n int) (refs []puntuale.MessageRef) {
	for k := range n {
		nth := i*n + k
		round := nth / customers
		run := 7 + round/3
		if run >= 12 {
			run++ // another measurement cancels that run by its phone
		}
		refs = append(refs, puntuale.MessageRef{
			Client: f.clients[nth%customers].id,
			ID:     puntuale.MessageID(f.firstPending + (run*customers+nth%customers)*3 + round%3),
		})
	}
	return refs
}

// tokenOf returns the token of the i-th claim.
func (f *fixture) tokenOf(i int) int64 { return int64(f.node)<<32 | int64(i+1) }

// makeClaimable moves the messages for claims to a time in the past.
func (f *fixture) makeClaimable(ctx context.Context) error {
	db, err := plain(f.engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	due, first := clock.System().Now().Add(-time.Minute), f.firstPending+7*customers*3
	_, err = db.ExecContext(ctx, fmt.Sprintf("update message set due_at = %d, next_at = %[1]d, valid_until = %d where id >= %d and id < %d",
		due.UnixMicro(), due.Add(24*time.Hour).UnixMicro(), first, first+9*customers*3))
	if err != nil {
		return fmt.Errorf("make messages due: %w", err)
	}
	return nil
}

// claim writes the intents of messages.
func (f *fixture) claim(ctx context.Context, refs []puntuale.MessageRef, i int) error {
	c := puntuale.Claim{Node: f.node, Token: f.tokenOf(i), Now: clock.System().Now()}
	for _, r := range refs {
		c.Messages = append(c.Messages, puntuale.ClaimItem{MessageRef: r, Phone: "+393471234567"})
	}
	granted, err := f.store.Claim(ctx, c)
	if err == nil && slices.ContainsFunc(granted, func(g puntuale.ClaimAnswer) bool { return g != puntuale.ClaimGranted }) {
		err = fmt.Errorf("claims were refused: %v", granted)
	}
	return err
}

// record stores that the claimed messages were sent.
func (f *fixture) record(ctx context.Context, refs []puntuale.MessageRef, i int) error {
	var results []puntuale.Result
	for _, r := range refs {
		results = append(results, puntuale.Result{MessageRef: r, Token: f.tokenOf(i), Outcome: puntuale.Outcome{Verdict: puntuale.Sent}})
	}
	applied, err := f.store.Record(ctx, clock.System().Now(), results)
	if err == nil && slices.Contains(applied, false) {
		err = errors.New("outcomes were not taken")
	}
	return err
}

func (b *bench) read(ctx context.Context, engine string, pending int) error {
	f, err := b.fixture(ctx, engine, pending)
	if err != nil {
		return err
	}
	defer f.close()
	if f.node, err = f.store.Join(ctx, time.Hour); err != nil {
		return err
	}
	if err := f.makeClaimable(ctx); err != nil {
		return err
	}
	for _, q := range questions {
		took, err := b.ask(ctx, f, q)
		if err != nil {
			return fmt.Errorf("%s, beside %s on %s: %w", q.name, count(pending), engine, err)
		}
		b.sheet.note(questionFigure(q.name, pending, engine), millis, took.Seconds()*1000)
	}
	return nil
}

// questionFigure returns the name of the figure for a question's time.
func questionFigure(name string, pending int, engine string) string {
	return onEngine(name+", beside "+count(pending)+" pending", engine)
}

// ask returns the median time of single calls. A question that changes nothing is first asked once for each client,
// without measuring. Otherwise the figure would include the disk's time for pages that nobody read for a long time.
func (b *bench) ask(ctx context.Context, f *fixture, q question) (time.Duration, error) {
	var all []time.Duration
	for round := range 2 {
		for i := range b.reads {
			c := f.clients[i%len(f.clients)]
			begun := time.Now()
			if err := q.ask(ctx, f.store.Tenant(c.id), f, i); err != nil {
				return 0, err
			}
			if round == 1 || q.changes {
				all = append(all, time.Since(begun))
			}
		}
		if q.changes {
			break
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
