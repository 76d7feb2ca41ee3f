package campaign_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/clock"
	"puntuale/internal/store/storetest"
)

// If a recipient's 24-hour window closed after the check, the feeder refuses this recipient. The others get their
// message.
func TestFeedingWithoutWindow(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	ctx, now := t.Context(), clock.System().Now()
	c := w.Client(puntuale.AccountFull)
	c.Session = c.MustOfficial(false)
	node := w.MustJoin()
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	if err := w.SetLinks(ctx, node, now, map[puntuale.SessionID]puntuale.Link{c.Session: {State: puntuale.LinkOnline}}); err != nil {
		t.Fatal(err)
	}
	id, list := c.MustCampaign(3)
	rows, err := c.Recipients(ctx, list, puntuale.RecipientFilter{}, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []time.Time{now, now.Add(-25 * time.Hour)} { // the third person never wrote
		if _, err := w.KeepInbound(ctx, now, []puntuale.TakenMessage{{InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: rows[i].Phone, At: at}, Names: []string{rows[i].Phone}}}); err != nil {
			t.Fatal(err)
		}
	}
	frozen := puntuale.CampaignFrozen{
		Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
		Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
	}
	if _, err := c.StartCampaign(ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: c.Session, First: now, Day: storetest.Day, Now: now}); err != nil {
		t.Fatal(err)
	}
	fake := clock.NewFake(now)
	f := campaign.New(campaign.Config{
		Store: w.Store, Queue: w.Store, Bound: w.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) },
		Node: func() puntuale.NodeID { return node }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: fake, Logger: slog.New(slog.DiscardHandler),
	})
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(run) }()
	defer func() { stop(); <-ended }()
	for rounds, waiting := 0, 3; waiting > 0; rounds++ {
		within, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := fake.Waiting(within, 1) // returns when the feeder has finished a round
		cancel()
		stored, failed := c.Campaign(ctx, id)
		if err != nil || failed != nil || rounds > 20 {
			t.Fatalf("after %d rounds: %+v, %v %v", rounds, stored.Feed, err, failed)
		}
		waiting = stored.Feed.Waiting
		fake.Advance(time.Second)
	}
	refused, err := c.Recipients(ctx, list, puntuale.RecipientFilter{Reason: puntuale.RefusedWindow}, 0, 3)
	if err != nil || len(refused) != 2 || refused[0].N != 2 || refused[1].N != 3 {
		t.Errorf("refused: %+v, %v", refused, err)
	}
	if got, err := c.Recipients(ctx, list, puntuale.RecipientFilter{State: new(puntuale.RecipientFed)}, 0, 3); err != nil || len(got) != 1 || got[0].N != 1 {
		t.Errorf("fed: %+v, %v", got, err)
	}
}

// While no message leaves, the feeder feeds exactly CampaignAhead recipients and then stops, whatever the sizes of the
// chunks.
func TestFeedsJustAhead(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			ctx, now := t.Context(), clock.System().Now()
			c := w.Client(puntuale.AccountFull)
			node := w.MustJoin()
			if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
				t.Fatal(err)
			}
			id, _ := c.MustCampaign(puntuale.CampaignAhead + 500)
			frozen := puntuale.CampaignFrozen{
				Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
				Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
			}
			if _, err := c.StartCampaign(ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: c.Session, First: now, Day: storetest.Day, Now: now}); err != nil {
				t.Fatal(err)
			}
			// In a campaign that a person resumed, the other recipients do not wait for the canary.
			for _, change := range []puntuale.CampaignChange{
				{From: []puntuale.CampaignState{puntuale.CampaignRunning}, To: puntuale.CampaignPaused, Now: now},
				{From: []puntuale.CampaignState{puntuale.CampaignPaused}, To: puntuale.CampaignResuming, Now: now},
			} {
				if err := c.ChangeCampaign(ctx, id, change); err != nil {
					t.Fatal(err)
				}
			}
			rounds := &rounds{FeedStore: w.Store}
			f := campaign.New(campaign.Config{
				Store: rounds, Queue: w.Store, Bound: w.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) },
				Node: func() puntuale.NodeID { return node }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: clock.System(), Logger: slog.New(slog.DiscardHandler),
			})
			run, stop := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); f.Run(run) }()
			defer func() { stop(); <-ended }()
			fed := func() int {
				stored, err := c.Campaign(ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				return stored.Feed.Fed
			}
			wait := func(what string, holds func() bool) {
				t.Helper()
				for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s: %d are fed", what, fed())
					}
				}
			}
			wait("the limit is not reached", func() bool { return fed() >= puntuale.CampaignAhead })
			seen := rounds.begun.Load()
			wait("the feeder stopped", func() bool { return rounds.begun.Load() > seen+2 })
			if n := fed(); n != puntuale.CampaignAhead {
				t.Errorf("%d recipients are fed, want %d", n, puntuale.CampaignAhead)
			}
		})
	}
}

// A campaign that cannot be decoded, or at which the feeder panics, keeps no other campaign of the node from being fed.
func TestBadCampaignBlocksNobody(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	ctx, now := t.Context(), clock.System().Now()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	var all []puntuale.CampaignID
	for range 4 {
		id, _ := c.MustCampaign(2)
		frozen := puntuale.CampaignFrozen{
			Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
			Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
		}
		if _, err := c.StartCampaign(ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: c.Session, First: now, Day: storetest.Day, Now: now}); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	w.Exec("update campaign set draft = '{' where id = $1", all[2])
	bad := &panicking{FeedStore: w.Store, stores: all[0], ends: all[3]}
	fake := clock.NewFake(now)
	f := campaign.New(campaign.Config{
		Store: bad, Queue: w.Store, Bound: w.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) },
		Node: func() puntuale.NodeID { return node }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: fake, Logger: slog.New(slog.DiscardHandler),
	})
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(run) }()
	defer func() { stop(); <-ended }()
	for rounds := 0; w.Int("select count(*) from message where campaign_id <> 0") < 4 || bad.ended.Load() < 2; rounds++ {
		within, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := fake.Waiting(within, 1) // returns when the feeder has finished a round
		if cancel(); err != nil || rounds > 20 {
			t.Fatalf("after %d rounds the others are not fed: %v", rounds, err)
		}
		fake.Advance(time.Second)
	}
	if n := w.Int("select count(*) from message where campaign_id = $1", all[1]); n != 2 {
		t.Errorf("%d messages of the good campaign", n)
	}
}

// panicking is a store that panics when a chunk of one campaign is stored, and when another campaign may have ended.
type panicking struct {
	campaign.FeedStore
	stores, ends puntuale.CampaignID
	ended        atomic.Int64
}

func (p *panicking) Feed(ctx context.Context, node puntuale.NodeID, c puntuale.FeedChunk) (bool, error) {
	if c.Campaign == p.stores {
		panic("a bad chunk")
	}
	return p.FeedStore.Feed(ctx, node, c)
}

func (p *panicking) FinishCampaign(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, now time.Time) (bool, error) {
	if id == p.ends {
		p.ended.Add(1)
		panic("a bad end")
	}
	return p.FeedStore.FinishCampaign(ctx, node, client, id, now)
}

// rounds counts the rounds of a feeder.
type rounds struct {
	campaign.FeedStore
	begun atomic.Int64
}

func (r *rounds) FedCampaigns(ctx context.Context, node puntuale.NodeID) ([]puntuale.FedCampaign, error) {
	r.begun.Add(1)
	return r.FeedStore.FedCampaigns(ctx, node)
}

// While calls arrive, the feeder rests after each chunk. The rest is four times as long as the chunk took. After a very
// slow chunk it is a second, so that other campaigns do not wait, and the feeder's own time does not run out.
func TestFeederRestsBesideCalls(t *testing.T) {
	t.Parallel()
	for took, rest := range map[time.Duration]time.Duration{7 * time.Millisecond: 28 * time.Millisecond, 5 * time.Second: time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			restsBesideCalls(t, took, rest)
		})
	}
}

func restsBesideCalls(t *testing.T, took, rest time.Duration) {
	t.Helper()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	ctx, now := t.Context(), clock.System().Now()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	id, _ := c.MustCampaign(3)
	frozen := puntuale.CampaignFrozen{
		Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
		Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
	}
	if _, err := c.StartCampaign(ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: c.Session, First: now, Day: storetest.Day, Now: now}); err != nil {
		t.Fatal(err)
	}
	fake := clock.NewFake(now)
	f := campaign.New(campaign.Config{
		Store: &slow{w.Store, func() { fake.Advance(took) }}, Queue: w.Store, Bound: func() (int, bool) { return 2, true },
		Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) }, Node: func() puntuale.NodeID { return node },
		Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: fake, Logger: slog.New(slog.DiscardHandler),
	})
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(run) }()
	defer func() { stop(); <-ended }()
	for want := 1; want <= 3; want++ {
		within, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := fake.Waiting(within, 1)
		cancel()
		stored, failed := c.Campaign(ctx, id)
		if err != nil || failed != nil || stored.Feed.Fed != want {
			t.Fatalf("%d recipients are fed, want %d: %v %v", stored.Feed.Fed, want, err, failed)
		}
		fake.Advance(rest - time.Microsecond)
		if n := fake.Waiters(); n != 1 {
			t.Fatalf("%d wait before the rest ends", n)
		}
		fake.Advance(time.Microsecond)
	}
}

// slow is a store that takes some time for each chunk.
type slow struct {
	campaign.FeedStore
	pass func()
}

func (s *slow) Feed(ctx context.Context, node puntuale.NodeID, c puntuale.FeedChunk) (bool, error) {
	defer s.pass()
	return s.FeedStore.Feed(ctx, node, c)
}

// A campaign that cannot be read is in the log once a minute, and does not keep others from being fed.
func TestUnreadableCampaign(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	ctx, now := t.Context(), clock.System().Now()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	frozen := puntuale.CampaignFrozen{
		Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
		Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
	}
	var ids []puntuale.CampaignID
	var last puntuale.ListID
	for range 2 {
		id, list := c.MustCampaign(3)
		if _, err := c.StartCampaign(ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: c.Session, First: now, Day: storetest.Day, Now: now}); err != nil {
			t.Fatal(err)
		}
		ids, last = append(ids, id), list
	}
	w.Exec("update campaign set frozen = '{' where id = $1", ids[0])
	var log bytes.Buffer
	fake := clock.NewFake(now)
	f := campaign.New(campaign.Config{
		Store: w.Store, Queue: w.Store, Bound: w.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) },
		Node: func() puntuale.NodeID { return node }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: fake, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(run) }()
	for range 180 {
		within, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := fake.Waiting(within, 1) // returns when the feeder has finished a round
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		fake.Advance(time.Second)
	}
	stop()
	<-ended
	if n := strings.Count(log.String(), "feeding failed"); n != 3 {
		t.Errorf("%d entries in three minutes: %s", n, log.String())
	}
	if fed, err := c.Recipients(ctx, last, puntuale.RecipientFilter{State: new(puntuale.RecipientFed)}, 0, 3); err != nil || len(fed) != 3 {
		t.Errorf("of the other campaign: %+v, %v", fed, err)
	}
}
