package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/clock"
	"puntuale/internal/control/statement"
	"puntuale/internal/dispatch"
)

// budgeted is a client with an Official session, a server's counting and feeding, and a simulated network.
type budgeted struct {
	*world
	t          *testing.T
	network    *network
	statements *statement.Statements
	campaign   puntuale.CampaignID
	ctx        context.Context
}

// newBudgeted begins ten minutes before the end of January in Rome. The session sends ten messages a second.
func newBudgeted(t *testing.T, open func(*testing.T) *world) *budgeted {
	time.Sleep(time.Until(time.Date(2000, 1, 31, 22, 50, 0, 0, time.UTC)))
	b := &budgeted{world: open(t), t: t, network: newNetwork(), ctx: context.WithoutCancel(t.Context())}
	b.exec(t, "update session set type = 'Official', sandbox = 0, link = 4, per_min = 600")
	b.statements = statement.New(statement.Config{Tenants: b.store, Maintenance: b.store, Budgets: b.store, Clock: clock.System()})
	_, err := b.tenant.UpdateSettings(b.ctx, puntuale.SettingsPatch{Consent: new(puntuale.ConsentFree)})
	b.must(err)
	b.store.PriceMessages(b.statements.Priced, b.statements.Currency())
	return b
}

// serve runs what a server runs: dispatcher, feeder and counter. The function end stops it.
func (b *budgeted) serve() (end func()) {
	cfg := b.config()
	cfg.Connector = func(puntuale.Session) puntuale.Connector { return b.network }
	d := dispatch.New(cfg)
	b.must(d.Start(b.ctx))
	var ended sync.Once
	ctx, stop := context.WithCancel(b.ctx)
	end = func() {
		ended.Do(func() {
			stop()
			b.must(d.Stop(b.ctx))
		})
	}
	b.t.Cleanup(end)
	f := campaign.New(campaign.Config{
		Store: b.store, Queue: b.store, Bound: b.store.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return b.store.Tenant(id) },
		Node: d.Node, Wakeup: d.Wake, Clock: clock.System(), Logger: quiet(),
	})
	go f.Run(ctx)
	go func() {
		for ctx.Err() == nil {
			for more := true; more && ctx.Err() == nil; {
				if err := b.store.KeepBudgets(ctx, time.Now(), d.Wake); err != nil && ctx.Err() == nil {
					b.t.Error(err)
				}
				var err error
				if more, err = b.store.CountResults(ctx, 1000); err != nil && ctx.Err() == nil {
					b.t.Error(err)
				}
			}
			_ = clock.System().Sleep(ctx, 2*time.Second)
		}
	}()
	return end
}

func (b *budgeted) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// setBudget sets the budget, in euros.
func (b *budgeted) setBudget(amount int64) {
	b.t.Helper()
	b.must(b.store.SetBudget(b.ctx, b.client, amount*1_000_000, "EUR", time.Now()))
}

// begin starts a campaign of marketing with a template.
func (b *budgeted) begin(recipients int) {
	b.t.Helper()
	now := time.Now()
	step := &puntuale.Step{Text: "ciao", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}
	id, err := b.tenant.CreateCampaign(b.ctx, puntuale.Campaign{Session: b.session, Name: "Saldi", Created: now, Draft: puntuale.CampaignDraft{Step: step, Canary: new(0)}}, puntuale.DateOf(now), nil)
	b.must(err)
	l := puntuale.RecipientList{Columns: []string{"phone"}, Mapping: `{"phone":0}`}
	l.ID, err = b.tenant.NewList(b.ctx, l, now)
	b.must(err)
	rows := make([]puntuale.Recipient, recipients)
	for i := range rows {
		rows[i] = puntuale.Recipient{Line: i + 2, Phone: fmt.Sprintf("+39333%07d", i), Cells: []string{""}}
	}
	b.must(b.tenant.AddRecipients(b.ctx, l, rows, now))
	b.must(b.tenant.UseList(b.ctx, puntuale.Campaign{ID: id}, l.ID))
	b.must(b.tenant.ChangeCampaign(b.ctx, id, puntuale.CampaignChange{From: []puntuale.CampaignState{puntuale.CampaignDrafted}, To: puntuale.CampaignChecking, Now: now}))
	b.must(b.tenant.ChangeCheck(b.ctx, id, puntuale.CheckProgress{Alive: now, Now: now, Over: true, Check: puntuale.CampaignCheck{Digest: "d", Recipients: recipients, Valid: recipients}}))
	frozen := puntuale.CampaignFrozen{
		Sequence: puntuale.Sequence{Steps: []puntuale.Step{*step}}, Official: []*puntuale.Approved{{Name: "saldi", Language: "it"}},
		Purposes: []puntuale.Purpose{puntuale.PurposeMarketing}, Zone: "Europe/Rome", Columns: map[string]int{"phone": 0},
	}
	_, err = b.tenant.StartCampaign(b.ctx, id, puntuale.CampaignStart{Digest: "d", Frozen: frozen, Session: b.session, First: now, Day: puntuale.DateOf(now), Now: now})
	b.must(err)
	b.campaign = id
}

// marketing returns to whom messages of the campaign left, in their order.
func (b *budgeted) marketing() (phones []string) {
	for _, s := range b.network.sightings() {
		if s.Campaign {
			phones = append(phones, s.To)
		}
	}
	return phones
}

// wantLeft checks how many messages of marketing left, and that they left in the order of the list. A few that are fed while
// others are let go may overtake those.
func (b *budgeted) wantLeft(what string, least, most int) {
	b.t.Helper()
	phones := b.marketing()
	if n := len(phones); n < least || n > most {
		b.t.Errorf("%s: %d messages of marketing left, want %d to %d", what, n, least, most)
	}
	early, first := 0, "~"
	for i := len(phones) - 1; i >= 0; i-- {
		if phones[i] >= first {
			early++
		}
		first = min(first, phones[i])
	}
	if early > 20 {
		b.t.Errorf("%s: %d of %d left before others that are before them in the list", what, early, len(phones))
	}
}

func (b *budgeted) wantWaits(what, reason string) {
	b.t.Helper()
	c, err := b.tenant.Campaign(b.ctx, b.campaign)
	b.must(err)
	if c.State != puntuale.CampaignRunning || c.Reason != reason {
		b.t.Errorf("%s: the campaign is %v, because %q", what, c.State, c.Reason)
	}
}

// notices counts the notices of a kind.
func (b *budgeted) notices(k puntuale.NoticeKind) (n int) {
	b.t.Helper()
	b.must(b.raw.QueryRowContext(b.ctx, fmt.Sprintf("select count(*) from notice where kind = %d", k)).Scan(&n))
	return n
}

// waiting returns a message of the campaign that waits.
func (b *budgeted) waiting() puntuale.MessageDetail {
	b.t.Helper()
	var id puntuale.MessageID
	b.must(b.raw.QueryRowContext(b.ctx, "select max(id) from message where campaign_id <> 0 and state = 0 and detail like '%budget%'").Scan(&id))
	return b.message(b.t, id)
}

// TestBudget runs a campaign of marketing until the budget is used up, in its middle. Reminders leave all the time. A larger
// budget lets the campaign go on at once, and so does the next month.
func TestBudget(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			b := newBudgeted(t, open)
			b.setBudget(10) // 152 messages at 0.0658 euros, less what reminders cost
			b.begin(3000)
			began := time.Now()
			var reminders []puntuale.MessageID
			for i := range 60 {
				reminders = append(reminders, b.start(t, fmt.Sprintf("+39334%07d", i), time.Hour, began.Add(time.Duration(i)*15*time.Second))...)
			}
			b.serve()
			time.Sleep(time.Minute)
			const overshoot = 50 // ten messages a second, counted every two seconds, and what is in flight
			b.wantLeft("the budget is used up", 148, 152+overshoot)
			b.wantWaits("the budget is used up", puntuale.CampaignByBudget)
			if client, partner := b.notices(puntuale.NoticeBudget), b.notices(puntuale.NoticeClientBudget); client != 2 || partner != 2 {
				t.Errorf("%d notices for the client and %d for the partner, want the warning and the end for each", client, partner)
			}
			if m := b.waiting(); m.Detail.Code != puntuale.ReasonBudget || m.Attempt != 0 {
				t.Errorf("a message waits, because %q, after %d attempts", m.Detail, m.Attempt)
			}
			left, budget := len(b.marketing()), b.budget()
			if !budget.Used() || budget.Month != 200001 || budget.Spent < 10_000_000 {
				t.Errorf("%+v", budget)
			}
			b.setBudget(20)
			time.Sleep(5 * time.Second)
			b.wantLeft("it was raised", left+20, left+60)
			time.Sleep(time.Minute)
			b.wantLeft("the larger budget is used up", 295, 303+overshoot)
			b.wantWaits("the larger budget is used up", puntuale.CampaignByBudget)
			if n := b.notices(puntuale.NoticeBudget); n != 4 {
				t.Errorf("%d notices after the larger budget, want 4", n)
			}
			left = len(b.marketing())
			time.Sleep(time.Until(time.Date(2000, 1, 31, 22, 59, 59, 0, time.UTC)))
			b.wantLeft("before the next month", left, left)
			time.Sleep(35 * time.Second)
			b.wantLeft("in the next month", left+30, left+350)
			b.wantWaits("in the next month", "")
			time.Sleep(2 * time.Minute)
			b.wantLeft("the budget of the next month is used up", left+295, left+303+overshoot)
			for i, id := range reminders {
				want := began.Add(time.Duration(i) * 15 * time.Second)
				if at := b.network.of(id); want.Before(time.Now().Add(-2*time.Second)) && (len(at) != 1 || at[0].Before(want) || at[0].After(want.Add(2*time.Second))) {
					t.Errorf("the reminder of %v left at %v", want, at)
				}
			}
			b.setBudget(0)
			time.Sleep(10 * time.Second)
			b.wantLeft("without a budget", left+295+50, left+303+overshoot+110)
		})
	})
}

// budget reads the budget.
func (b *budgeted) budget() puntuale.Budget {
	b.t.Helper()
	found, err := b.store.Budget(b.ctx, b.client)
	b.must(err)
	return found
}

// TestBudgetExpiry: marketing that waits for a budget ends at its own deadline, and says why.
func TestBudgetExpiry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			b := newBudgeted(t, open)
			b.setBudget(1)
			b.exec(t, fmt.Sprintf("update client set marketing_from = %d", time.Now().Add(10*time.Minute).UnixMicro()))
			id := b.start(t, "+393330000001", 2*time.Minute, time.Now())[0]
			b.exec(t, "update message set purpose = 1")
			b.exec(t, "update budget set spent = 1000000, counted = 1")
			b.serve()
			time.Sleep(time.Minute)
			if m := b.message(t, id); m.State != puntuale.Pending || m.Detail.Code != puntuale.ReasonBudget {
				t.Errorf("before its end it is %v %q", m.State, m.Detail)
			}
			time.Sleep(2 * time.Minute)
			if m := b.message(t, id); m.State != puntuale.Failed || m.Reason.Code != puntuale.ReasonBudget {
				t.Errorf("after its end it is %v %q", m.State, m.Reason)
			}
		})
	})
}

// TestBudgetServers: the budget is used up, and the server ends. Another server takes over, which on PostgreSQL runs all the
// time. It lets no marketing leave, until the budget is larger.
func TestBudgetServers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			b := newBudgeted(t, open)
			b.setBudget(10)
			b.begin(3000)
			end := b.serve()
			if b.postgres {
				time.Sleep(5 * time.Second)
				b.serve()
			}
			time.Sleep(time.Minute)
			b.wantLeft("the budget is used up", 152, 152+50)
			left := len(b.marketing())
			end()
			if !b.postgres {
				b.serve()
			}
			reminder := b.start(t, "+393340000001", time.Hour, time.Now().Add(time.Minute))[0]
			time.Sleep(3 * time.Minute)
			b.wantLeft("a server ended", left, left)
			b.wantWaits("a server ended", puntuale.CampaignByBudget)
			if at := b.network.of(reminder); len(at) != 1 {
				t.Errorf("the reminder left at %v", at)
			}
			b.setBudget(20)
			time.Sleep(time.Minute)
			b.wantLeft("it was raised", 303, 303+50)
			if n := b.notices(puntuale.NoticeBudget); n != 4 {
				t.Errorf("%d notices, want 4", n)
			}
		})
	})
}
