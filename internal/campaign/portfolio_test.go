package campaign_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/clock"
	"puntuale/internal/store/storetest"
)

// TestPortfolioOf compares the room with a count of each minute of the next 24 hours.
func TestPortfolioOf(t *testing.T) {
	t.Parallel()
	now := storetest.Begin
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, all := 1+r.IntN(8), make([]puntuale.PortfolioUse, r.IntN(8))
		for i := range all {
			if r.IntN(3) > 0 {
				all[i].Last = now.Add(-time.Duration(r.IntN(30*60)) * time.Minute)
			}
			if r.IntN(3) > 0 {
				all[i].Next = now.Add(time.Duration(r.IntN(27*60)-60) * time.Minute)
			}
		}
		most := 0
		for at := now; at.Before(now.Add(24 * time.Hour)); at = at.Add(time.Minute) {
			n := 0
			for _, u := range all {
				sent := !u.Last.IsZero() && at.Sub(u.Last) < 24*time.Hour
				planned := !u.Next.IsZero() && u.Next.Before(now.Add(24*time.Hour)) && !at.Before(u.Next)
				if sent || planned {
					n++
				}
			}
			most = max(most, n)
		}
		if got := puntuale.PortfolioOf(limit, all, now); got.Room != max(0, limit-most) {
			t.Fatalf("seed %d: room %d, want %d: %+v", seed, got.Room, max(0, limit-most), all)
		}
	}
}

// TestPortfolioRoom runs two campaigns of one business, on two nodes, beside reminders of the same day. Every reminder
// leaves at its time, no 24 hours have more people than the limit, and the campaigns use what is left.
func TestPortfolioRoom(t *testing.T) {
	t.Parallel()
	limit, reminders, recipients := 200, 30, 1000
	if os.Getenv("PUNTUALE_LONG") != "" {
		limit, reminders, recipients = 2000, 300, 10_000
	}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newPortfolio(t, driver(t), limit).run(reminders, recipients)
		})
	}
}

// portfolio is a business with two numbers, each on a node of its own.
type portfolio struct {
	*testing.T
	w     *storetest.World
	c     *storetest.Client
	clock *clock.Fake
	limit int

	sessions  [2]puntuale.SessionID
	campaigns [2]puntuale.CampaignID
	nodes     [2]puntuale.NodeID
	feeders   [2]*campaign.Feeder
	sent      map[string]time.Time
}

func newPortfolio(t *testing.T, d *storetest.Database, limit int) *portfolio {
	w := storetest.NewWorld(t, d)
	now := clock.System().Now().Truncate(time.Hour)
	p := &portfolio{T: t, w: w, c: w.Client(puntuale.AccountFull), clock: clock.NewFake(now), limit: limit, sent: map[string]time.Time{}}
	for i := range p.sessions {
		p.sessions[i], p.nodes[i] = p.c.MustOfficial(false), w.MustJoin()
		p.must(w.NoteOfficial(t.Context(), p.sessions[i], fmt.Sprint("10", i), "55"))
		p.must(w.KeepHealth(t.Context(), []puntuale.HealthReport{{Client: p.c.ID, Session: p.sessions[i], Kind: puntuale.HealthLimit, Value: fmt.Sprint(limit), At: now}}, now))
		_, err := w.Assign(t.Context(), 0, p.nodes[i], p.sessions[i:i+1])
		p.must(err)
		p.must(w.SetLinks(t.Context(), p.nodes[i], now, map[puntuale.SessionID]puntuale.Link{p.sessions[i]: {State: puntuale.LinkOnline}}))
		p.feeders[i] = campaign.New(campaign.Config{
			Store: w.Store, Queue: w.Store, Bound: w.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return w.Tenant(id) },
			Node: func() puntuale.NodeID { return p.nodes[i] }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: p.clock, Logger: slog.New(slog.DiscardHandler),
		})
	}
	return p
}

func (p *portfolio) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// start begins one campaign for each number, without a canary.
func (p *portfolio) start(recipients int) {
	frozen := puntuale.CampaignFrozen{
		Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}},
		Official: []*puntuale.Approved{{Name: "auguri", Language: "it"}},
		Zone:     "Europe/Rome", Columns: map[string]int{"phone": 0, "nome": 1},
	}
	now := p.clock.Now()
	for i, session := range p.sessions {
		p.c.Session = session
		id, list := p.c.MustCampaign(recipients / (1 + 9*i))
		p.campaigns[i] = id
		p.w.Exec("update recipient set phone = '+3935' || $2 || substr(phone, 7) where list_id = $1", int64(list), fmt.Sprint(i))
		_, err := p.c.StartCampaign(p.Context(), p.campaigns[i], puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: session, First: now, Day: storetest.Day, Now: now})
		p.must(err)
		for _, change := range []puntuale.CampaignChange{{From: []puntuale.CampaignState{puntuale.CampaignRunning}, To: puntuale.CampaignPaused, Now: now}, {From: []puntuale.CampaignState{puntuale.CampaignPaused}, To: puntuale.CampaignResuming, Now: now}} {
			p.must(p.c.ChangeCampaign(p.Context(), p.campaigns[i], change))
		}
	}
}

// feed lets both feeders work at the same time, until they have fed what they can.
func (p *portfolio) feed() {
	for idle := 0; idle < 3; {
		waits := make(chan time.Duration, 2)
		for i := range p.feeders {
			go func() { waits <- p.feeders[i].Round(context.WithoutCancel(p.Context()), p.nodes[i]) }()
		}
		if a, b := <-waits, <-waits; a > 0 && b > 0 {
			idle++
			p.clock.Advance(11 * time.Second) // the feeders count again
		}
	}
}

// send lets all messages leave that are due, reminders and others in turn, as the network counts them.
func (p *portfolio) send(due map[puntuale.MessageID]time.Time) (n int) {
	p.Helper()
	now := p.clock.Now()
	for i, session := range p.sessions {
		var ids []puntuale.MessageID
		rows, err := p.w.DB.SQL.Query(`select id, phone, next_at from message where session_id = $1 and state = 0 and next_at <= $2`, int64(session), now.UnixMicro())
		p.must(err)
		for rows.Next() {
			var id, at int64
			var phone string
			p.must(rows.Scan(&id, &phone, &at))
			ids, p.sent[phone] = append(ids, puntuale.MessageID(id)), now
			if want, reminder := due[puntuale.MessageID(id)]; reminder && now.Sub(want) > 65*time.Minute {
				p.Errorf("a reminder of %v leaves at %v", want, now)
			}
		}
		p.must(rows.Err())
		rows.Close()
		for len(ids) > 0 {
			some := ids[:min(len(ids), 500)]
			p.c.MustSend(p.nodes[i], now, some...)
			ids, n = ids[len(some):], n+len(some)
		}
	}
	counted := 0
	for _, at := range p.sent {
		if now.Sub(at) < 24*time.Hour {
			counted++
		}
	}
	if counted > p.limit {
		p.Fatalf("%d people in the 24 hours before %v", counted, now)
	}
	return n
}

func (p *portfolio) run(reminders, recipients int) {
	begun := p.clock.Now()
	p.c.Session = p.sessions[1]
	due := map[puntuale.MessageID]time.Time{}
	for i := range reminders {
		at := begun.Add(18*time.Hour + time.Duration(i)*time.Minute)
		due[p.c.MustStart(fmt.Sprintf("+39335%07d", i), at, 1)[0]] = at
	}
	p.start(recipients)
	p.feed()
	if n := p.send(due); n != p.limit-reminders {
		p.Errorf("%d messages leave at first, want %d", n, p.limit-reminders)
	}
	waits := 0
	for _, id := range p.campaigns {
		c, err := p.c.Campaign(p.Context(), id)
		p.must(err)
		if c.State != puntuale.CampaignRunning {
			p.Errorf("campaign %d: %v %q", id, c.State, c.Reason)
		}
		if c.Reason == puntuale.CampaignByRoom {
			waits++
		}
	}
	if waits == 0 {
		p.Error("no campaign says that it waits")
	}
	if l, err := p.c.Portfolio(p.Context(), p.sessions[0], p.clock.Now()); err != nil || l.Used != p.limit-reminders || l.Reserved != reminders || l.Room != 0 {
		p.Errorf("%+v, %v", l, err)
	}
	total := 0
	for p.clock.Now().Before(begun.Add(26 * time.Hour)) {
		p.clock.Advance(time.Hour)
		p.feed()
		total += p.send(due)
	}
	if total < p.limit { // the reminders, and the places that became free
		p.Errorf("%d messages left later", total)
	}
	for id := range due {
		if d := p.c.Detail(id); d.State != puntuale.Completed {
			p.Errorf("a reminder is %v", d.State)
		}
	}
}
