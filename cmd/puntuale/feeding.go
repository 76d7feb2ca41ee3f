package main

import (
	"context"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/campaign"
	"puntuale/internal/control/bookings"
	"puntuale/internal/replan"
)

// feeding runs the feeder of campaigns, the runner of automations, the reader of calendars, and the runner that applies
// edited sequences. It also counts messages for reports.
type feeding struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// startFeeding begins to feed campaigns and to run automations, for the sessions that this server owns. It also begins to
// read calendars, and to apply edited sequences to bookings.
func (s *server) startFeeding(cfg serverConfig) {
	ctx, cancel := context.WithCancel(context.Background())
	s.feeding = &feeding{cancel: cancel}
	f := campaign.New(campaign.Config{
		Store: s.store, Queue: s.store, Bound: s.store.ChunkBound, Node: s.dispatch.Node, Wakeup: s.wake, Clock: cfg.Clock, Logger: cfg.Logger, Media: cfg.Media, Files: s.control.CampaignFiles,
		Tenant: func(id puntuale.ClientID) campaign.Tenant { return s.store.Tenant(id) },
	})
	s.feeding.done.Go(func() { f.Run(ctx) })
	rules := automation.New(automation.Config{
		Store: s.store, Node: s.dispatch.Node, Planner: s.control.PlannerOf, Bound: s.store.ChunkBound, DatesBound: s.store.DatesBound, Wakeup: s.wake, Clock: cfg.Clock, Logger: cfg.Logger,
	})
	s.feeding.done.Go(func() { rules.Run(ctx) })
	feeds := s.newCalendarReader(&cfg)
	s.feeding.done.Go(func() { feeds.Run(ctx) })
	edits := replan.New(replan.Config{
		Store: s.store, Planner: func(ctx context.Context, r puntuale.Replan) (replan.Planner, error) {
			return bookings.NewPlanner(ctx, s.control, r)
		},
		Bound: s.store.ChunkBound, Node: s.dispatch.Node, Clock: cfg.Clock, Logger: cfg.Logger,
	})
	s.feeding.done.Go(func() { edits.Run(ctx) })
	s.feeding.done.Go(func() { s.countResults(ctx, cfg) })
}

// countEvery is how often this server looks for messages that reports and budgets must count.
const countEvery = 2 * time.Second

// countResults counts messages for reports and budgets, and compares budgets with what is spent, until ctx ends.
func (s *server) countResults(ctx context.Context, cfg serverConfig) {
	for ctx.Err() == nil {
		for more := s.dispatch.Node() != 0; more; {
			if err := puntuale.Recovered(func() error { return s.store.KeepBudgets(ctx, cfg.Clock.Now(), s.wake) }); err != nil && ctx.Err() == nil {
				cfg.Logger.Warn("keeping budgets failed", "error", err)
			}
			limit, calls := s.store.ResultsBound()
			begun := cfg.Clock.Now()
			more = false
			err := puntuale.Recovered(func() (err error) {
				more, err = s.store.CountResults(ctx, limit)
				return err
			})
			if err != nil && ctx.Err() == nil {
				cfg.Logger.Warn("counting results failed", "error", err)
			}
			if calls && cfg.Clock.Sleep(ctx, min(cfg.Clock.Now().Sub(begun), time.Second)) != nil {
				return
			}
		}
		if cfg.Clock.Sleep(ctx, countEvery) != nil {
			return
		}
	}
}

// stop ends the feeder and the runner after their current transactions. The receiver may be nil.
func (f *feeding) stop() {
	if f == nil {
		return
	}
	f.cancel()
	f.done.Wait()
}
