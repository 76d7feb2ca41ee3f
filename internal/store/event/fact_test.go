package event_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/storetest"
)

// owned makes the client's node the owner of the client's session.
func (s *eventClient) owned() {
	s.t.Helper()
	moved, err := s.w.Assign(context.Background(), 0, s.node, []puntuale.SessionID{s.Session})
	if err != nil || len(moved) != 1 {
		s.t.Fatalf("the session went to nobody: %v, %v", moved, err)
	}
}

// links stores links of the session as the owning node would: each link one second after the previous link.
func (s *eventClient) links(all ...puntuale.Link) {
	s.t.Helper()
	for i, l := range all {
		s.must(nil, s.w.SetLinks(context.Background(), s.node, begin.Add(time.Duration(i)*time.Second), map[puntuale.SessionID]puntuale.Link{s.Session: l}))
	}
}

func waits(d time.Duration) puntuale.Link {
	return puntuale.Link{State: puntuale.LinkLinked, Condition: puntuale.Waiting, Until: begin.Add(d)}
}

var (
	online     = puntuale.Link{State: puntuale.LinkOnline}
	connecting = puntuale.Link{State: puntuale.LinkLinked, Condition: puntuale.Connecting}
	away       = puntuale.Link{State: puntuale.LinkLinked, Detail: puntuale.Quoted("silent")}
	banned     = puntuale.Link{State: puntuale.LinkLinked, Condition: puntuale.Banned, Until: begin.Add(24 * time.Hour)}
	refusedAll = puntuale.Link{State: puntuale.LinkLinked, Restricted: true}
	unlinked   = puntuale.Link{State: puntuale.LinkUnlinked}
	pairing    = puntuale.Link{State: puntuale.LinkPairing, Code: "x", Until: begin.Add(time.Minute)}
	limited    = puntuale.Link{State: puntuale.LinkOnline, Limited: begin.Add(time.Hour)}
)

// anotherNode makes a new node the owner of the session, as if the old node had died or given the session back.
func (s *eventClient) anotherNode() {
	s.t.Helper()
	next := s.w.MustJoin()
	moved, err := s.w.Assign(context.Background(), s.node, next, []puntuale.SessionID{s.Session})
	if err != nil || len(moved) != 1 {
		s.t.Fatalf("the session did not move: %v, %v", moved, err)
	}
	s.links(online) // the old node reports this, but it is not the owner any more, so nothing happens
	s.node = next
}

// device makes a session that devices send for, links the given number of devices, and returns them.
func (s *eventClient) device(devices int) (puntuale.SessionID, []puntuale.DeviceID) {
	s.t.Helper()
	ctx := context.Background()
	id, err := s.CreateSession(ctx, puntuale.Session{Name: "telefoni", Type: puntuale.SendApp, Way: puntuale.WayDevice, Created: begin}, nil)
	s.must(id, err)
	var all []puntuale.DeviceID
	for range devices {
		mark := storetest.Unique("mark")
		s.must(nil, s.OfferDevice(ctx, id, []byte("sealed"), mark, begin.Add(time.Hour)))
		var token puntuale.KeyHash
		copy(token[:], mark)
		d, err := s.w.LinkDevice(ctx, mark, puntuale.Device{Name: mark}, token, begin)
		s.must(d, err)
		all = append(all, d.ID)
	}
	return id, all
}

func (s *eventClient) campaign(recipients int) puntuale.CampaignID {
	s.t.Helper()
	s.owned()
	id, _ := s.MustCampaign(recipients)
	s.must(s.StartCampaign(context.Background(), id, puntuale.CampaignStart{Digest: "d", Session: s.Session, First: begin, Day: storetest.Day, Now: begin}))
	return id
}

func (s *eventClient) change(id puntuale.CampaignID, reason string, to puntuale.CampaignState, from ...puntuale.CampaignState) {
	s.t.Helper()
	s.must(nil, s.ChangeCampaign(context.Background(), id, puntuale.CampaignChange{From: from, To: to, Reason: reason, Now: begin.Add(time.Minute)}))
}

// patch changes the client in the way in which its partner would.
func (s *eventClient) patch(p puntuale.ClientPatch) {
	s.t.Helper()
	s.must(s.w.Store.Partner(s.w.Partner).UpdateClient(context.Background(), s.ID, p, begin))
}

func (s *eventClient) credits(n int64) {
	s.t.Helper()
	s.patch(puntuale.ClientPatch{Credits: puntuale.ChangeTo(new(n))})
}

// spend claims n messages. Each claim takes a credit.
func (s *eventClient) spend(n int) (all []puntuale.ClaimItem, token int64) {
	s.t.Helper()
	for range n {
		all = append(all, s.Items(phone, 0, s.MustStart(phone, begin, 1)...)...)
	}
	token, _ = s.w.MustClaim(s.node, begin, all...)
	return all, token
}

func (s *eventClient) cap(n int64) {
	s.t.Helper()
	s.patch(puntuale.ClientPatch{Cap: puntuale.ChangeTo(new(n))})
}

// calls makes n start calls. Calls that the cap refuses are included.
func (s *eventClient) calls(n int, day puntuale.Date) {
	s.t.Helper()
	for range n {
		r := s.Run(phone, begin, 1)
		r.Day = day
		if _, err := s.Start(context.Background(), r); err != nil && puntuale.CodeOf(err) != puntuale.CodeCapReached {
			s.t.Fatal(err)
		}
	}
}

// ends sets the end of the client's service. Then it runs TellExpiries at times that are relative to this end.
func (s *eventClient) ends(at time.Time, looks ...time.Duration) {
	s.t.Helper()
	s.patch(puntuale.ClientPatch{Expires: puntuale.ChangeTo(puntuale.DateOf(at.Add(-time.Hour))), Derive: func(c puntuale.Client) puntuale.Client {
		c.ExpiresAt = at
		return c
	}})
	for _, d := range looks {
		for range 2 { // the second round stands for a second node, and must write nothing
			s.must(nil, s.w.TellExpiries(context.Background(), at.Add(d)))
		}
	}
}

// business makes a session of a business, and stores a first list of its templates.
func (s *eventClient) business(names ...string) puntuale.SessionID {
	s.t.Helper()
	id := s.MustOfficial(false)
	s.must(nil, s.w.NoteOfficial(context.Background(), id, "10"+id.String(), "55"+id.String()))
	s.listed(id, begin, puntuale.TemplateApproved, names...)
	return id
}

// listed stores a list of templates, in which all names have the given status.
func (s *eventClient) listed(id puntuale.SessionID, at time.Time, status puntuale.TemplateStatus, names ...string) {
	s.t.Helper()
	var all []puntuale.NetworkTemplate
	for _, n := range names {
		all = append(all, puntuale.NetworkTemplate{Name: n, Language: "it", Status: status, Category: "UTILITY"})
	}
	s.must(nil, s.w.KeepNetworkTemplates(context.Background(), id, "55"+id.String(), at, all, puntuale.Reason{}))
}

func (s *eventClient) receiveTemplateEvent(id puntuale.SessionID, e puntuale.TemplateEvent) {
	s.t.Helper()
	e.Client, e.Account, e.Language = s.ID, "55"+id.String(), "it"
	s.must(nil, s.w.TellNetworkTemplate(context.Background(), e))
}

// eventCases contains changes of sessions, campaigns, accounts and templates. Each entry lists the events that the change
// must cause.
var eventCases = map[string]moveCase{
	"session linked": {func(s *eventClient) { s.owned(); s.links(unlinked, pairing, pairing, connecting, online, online) }, []string{"session.unlinked", "session.online"}},
	"session of a network is made and linked": {func(s *eventClient) {
		id, err := s.CreateSession(context.Background(), puntuale.Session{Name: "altra", Type: puntuale.Socket, Created: begin}, nil)
		s.must(id, err)
		s.Session = id
		s.owned()
		s.links(unlinked, pairing, unlinked, pairing, connecting, online)
	}, []string{"session.online"}},
	"session drops for a moment": {func(s *eventClient) {
		s.owned()
		s.links(online, waits(2*time.Second), connecting, waits(10*time.Second), connecting, online)
	}, nil},
	"session drops for long": {func(s *eventClient) {
		s.owned()
		s.links(online, waits(5*time.Second), connecting, waits(time.Minute), connecting, waits(2*time.Minute), connecting, online)
	}, []string{"session.offline", "session.online"}},
	"gateway away, and back":  {func(s *eventClient) { s.owned(); s.links(online, away, away, online) }, []string{"session.offline", "session.online"}},
	"session banned":          {func(s *eventClient) { s.owned(); s.links(online, banned, banned, connecting, online) }, []string{"session.restricted", "session.online"}},
	"session refused by Meta": {func(s *eventClient) { s.owned(); s.links(online, refusedAll, refusedAll, online) }, []string{"session.restricted", "session.online"}},
	"Meta says that the quality fell": {func(s *eventClient) {
		for i, quality := range []string{"GREEN", "GREEN", "RED", "RED", "GREEN"} {
			at := begin.Add(time.Duration(i) * time.Second)
			s.must(nil, s.w.KeepHealth(context.Background(), []puntuale.HealthReport{{Client: s.ID, Session: s.Session, Kind: puntuale.HealthQuality, Value: quality, At: at}, {Client: s.ID, Session: s.Session, Kind: puntuale.HealthChecked, At: at}}, at))
		}
	}, []string{"session.health", "session.health"}},
	"session limited": {func(s *eventClient) {
		s.owned()
		s.links(online, limited, limited, puntuale.Link{State: puntuale.LinkLinked, Condition: puntuale.Connecting, Limited: limited.Limited}, limited, online)
	}, []string{"session.restricted"}},
	"session logged out": {func(s *eventClient) {
		s.owned()
		s.links(online, puntuale.Link{State: puntuale.LinkUnlinked, Condition: puntuale.LoggedOut}, unlinked)
	}, []string{"session.unlinked"}},
	"session replaced": {func(s *eventClient) {
		s.owned()
		s.links(online, puntuale.Link{State: puntuale.LinkLinked, Condition: puntuale.Replaced})
	}, []string{"session.offline"}},
	"session moves to another node": {func(s *eventClient) {
		s.owned()
		s.links(online)
		s.anotherNode()
		s.links(connecting, waits(2*time.Second), connecting, online)
	}, nil},
	"offline session moves to another node": {func(s *eventClient) {
		s.owned()
		s.links(online, waits(time.Hour))
		s.anotherNode()
		s.links(connecting, waits(time.Second), connecting, waits(time.Hour), connecting, online)
	}, []string{"session.offline", "session.online"}},
	"server restarts": {func(s *eventClient) {
		s.owned()
		s.links(online)
		s.must(nil, s.w.Leave(context.Background(), s.node))
		s.node = s.w.MustJoin()
		s.owned()
		s.links(connecting, online)
	}, nil},
	"row of an earlier version": {func(s *eventClient) {
		s.owned()
		s.w.Exec("update session set link = 3, link_condition = 1 where id = $1", s.Session) // a login is running
		s.links(online)
		s.w.Exec("update session set told = 0, link = 3, link_condition = 5 where id = $1", s.Session) // another login has replaced this one
		s.links(connecting, online)
	}, []string{"session.online"}},
	"devices of a session": {func(s *eventClient) {
		id, devices := s.device(2)
		s.must(nil, s.UnlinkDevices(context.Background(), id, devices[0], begin))
		s.must(nil, s.UnlinkDevices(context.Background(), id, devices[1], begin))
		s.must(nil, s.UnlinkDevices(context.Background(), id, 0, begin))
	}, []string{"session.online", "session.unlinked"}},

	"campaign": {func(s *eventClient) { s.campaign(1) }, []string{"campaign.started"}},
	"campaign started twice": {func(s *eventClient) {
		id := s.campaign(1)
		s.must(s.StartCampaign(context.Background(), id, puntuale.CampaignStart{Digest: "d", Session: s.Session, First: begin, Day: storetest.Day, Now: begin.Add(time.Hour)}))
	}, []string{"campaign.started"}},
	"campaign paused and resumed": {func(s *eventClient) {
		id := s.campaign(1)
		s.change(id, "", puntuale.CampaignPaused, puntuale.CampaignRunning)
		s.change(id, "", puntuale.CampaignResuming, puntuale.CampaignPaused)
		_, _, err := s.w.MoveChunk(context.Background(), s.node, s.ID, id, begin.Add(time.Minute), 0, begin.Add(2*time.Minute))
		s.must(nil, err)
	}, []string{"campaign.started", "campaign.paused", "campaign.started"}},
	"campaign pauses by itself": {func(s *eventClient) {
		s.change(s.campaign(1), puntuale.CampaignByCanary, puntuale.CampaignPaused, puntuale.CampaignRunning)
	}, []string{"campaign.started", "campaign.paused"}},
	"campaign done": {func(s *eventClient) {
		id := s.campaign(1)
		s.w.Exec("update campaign_feed set waiting = 0 where campaign_id = $1", id)
		s.must(s.w.FinishCampaign(context.Background(), s.node, s.ID, id, begin.Add(time.Hour)))
		s.must(s.w.FinishCampaign(context.Background(), s.node, s.ID, id, begin.Add(time.Hour)))
	}, []string{"campaign.started", "campaign.done"}},
	"campaign cancelled": {func(s *eventClient) {
		id := s.campaign(1)
		s.change(id, "", puntuale.CampaignCancelling, puntuale.CampaignRunning)
		s.must(s.w.CancelChunk(context.Background(), s.node, s.ID, id, begin.Add(time.Hour)))
	}, []string{"campaign.started", "campaign.done"}},
	"campaign's session deleted": {func(s *eventClient) {
		id, err := s.CreateSession(context.Background(), puntuale.Session{Name: "altra", Type: puntuale.Socket, Sandbox: true, Created: begin}, nil)
		s.must(id, err)
		s.Session = id
		s.campaign(1)
		s.must(nil, s.DeleteSession(context.Background(), id, true, 0, begin.Add(time.Minute)))
	}, []string{"campaign.started", "campaign.done"}},

	"cap": {func(s *eventClient) { s.cap(10); s.calls(7, storetest.Day); s.calls(5, storetest.Day) }, []string{"account.cap_80", "account.cap_reached"}},
	"cap of two days": {func(s *eventClient) {
		s.cap(5)
		s.calls(4, storetest.Day)
		s.calls(6, storetest.Day.AddDays(1))
	}, []string{"account.cap_80", "account.cap_80", "account.cap_reached"}},
	"cap raised on the same day":  {func(s *eventClient) { s.cap(5); s.calls(5, storetest.Day); s.cap(10); s.calls(5, storetest.Day) }, []string{"account.cap_80", "account.cap_reached"}},
	"cap lowered below the calls": {func(s *eventClient) { s.cap(100); s.calls(5, storetest.Day); s.cap(5); s.calls(1, storetest.Day) }, []string{"account.cap_80", "account.cap_reached"}},
	"cap of nothing":              {func(s *eventClient) { s.cap(0); s.calls(2, storetest.Day) }, []string{"account.cap_reached"}},
	"cap and calls that are never refused": {func(s *eventClient) {
		s.cap(2)
		for range 3 {
			s.must(nil, s.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: storetest.Unique("+39333"), Added: begin}, storetest.Day, nil))
		}
	}, []string{"blacklist.added", "account.cap_80", "account.cap_reached", "blacklist.added", "blacklist.added"}},
	"no cap": {func(s *eventClient) { s.calls(3, storetest.Day) }, nil},

	"credits spent":         {func(s *eventClient) { s.credits(20); s.spend(17); s.spend(1); s.spend(1); s.spend(1) }, []string{"account.credit_low", "account.credit_out"}},
	"credits spent at once": {func(s *eventClient) { s.credits(3); s.spend(5) }, []string{"account.credit_low", "account.credit_out"}},
	"credits come back from a message": {func(s *eventClient) {
		s.credits(1)
		items, token := s.spend(1)
		s.w.MustRecord(begin.Add(time.Second), items[0], token, puntuale.Outcome{Verdict: puntuale.Retry, Next: begin})
		s.spend(1)
	}, []string{"account.credit_low", "account.credit_out"}},
	"credits topped up": {func(s *eventClient) {
		s.credits(1)
		s.spend(1)
		s.patch(puntuale.ClientPatch{CreditsAdd: puntuale.ChangeTo(int64(10))})
		s.spend(9)
	}, []string{"account.credit_low", "account.credit_out", "account.credit_low"}},
	"credits refilled": {func(s *eventClient) {
		s.credits(1)
		s.spend(1)
		s.patch(puntuale.ClientPatch{Refill: puntuale.ChangeTo(puntuale.RefillYearly), RefillTo: puntuale.ChangeTo(int64(10)), Derive: func(c puntuale.Client) puntuale.Client {
			c.RefillAt = begin
			return c
		}})
		s.must(s.w.Refill(context.Background(), begin, func(puntuale.Client) time.Time { return begin.Add(365 * oneDay) }))
		s.spend(10)
	}, []string{"account.credit_low", "account.credit_out", "account.credit_low", "account.credit_out"}},
	"credits taken by the partner": {func(s *eventClient) { s.credits(100); s.credits(50); s.credits(10); s.credits(0); s.credits(0) }, []string{"account.credit_low", "account.credit_out"}},
	"budget": {func(s *eventClient) {
		s.budget(10)
		for _, spent := range []int{7_999_999, 8_000_000, 9_000_000, 10_500_000, 11_000_000} {
			s.spent(spent)
		}
		s.budget(12) // 91 percent
		s.budget(20)
		s.budget(0)
	}, []string{"account.budget_low", "account.budget_out", "account.budget_low"}},
	"credits become unlimited": {func(s *eventClient) {
		s.credits(5)
		s.patch(puntuale.ClientPatch{Credits: puntuale.ChangeTo[*int64](nil)})
		s.spend(5)
	}, nil},
	"credits of an earlier version": {func(s *eventClient) {
		s.credits(20)
		s.w.Exec("update client set credits_topped = 0 where id = $1", s.ID)
		s.spend(1)
		s.spend(17)
		s.spend(1)
	}, []string{"account.credit_low"}},

	"service ends": {func(s *eventClient) {
		s.ends(begin.Add(16*oneDay), -16*oneDay, -15*oneDay, -5*oneDay, -4*oneDay, -2*oneDay, -oneDay, -time.Hour, 0, time.Hour)
	}, []string{"account.expiring", "account.expiring", "account.expiring", "account.expired"}},
	"service ends during an outage": {func(s *eventClient) { s.ends(begin.Add(16*oneDay), -8*oneDay, 5*oneDay, 6*oneDay) }, []string{"account.expiring", "account.expired"}},
	"service ended long ago":        {func(s *eventClient) { s.ends(begin.Add(-31*oneDay), 31*oneDay) }, nil},
	"service renewed": {func(s *eventClient) {
		s.ends(begin.Add(5*oneDay), -3*oneDay, time.Hour)
		s.ends(begin.Add(25*oneDay), -20*oneDay, -4*oneDay, -3*oneDay)
	}, []string{"account.expiring", "account.expired", "account.expiring"}},

	"bookings": {func(s *eventClient) {
		for kind := puntuale.EventBookingCreated; kind <= puntuale.EventBookingAnswered; kind++ {
			if !kind.OfBooking() {
				continue
			}
			r := s.Booking("visita")
			decide := r.Decide
			r.Decide = func(state puntuale.BookingState) (puntuale.BookingChange, error) {
				c, err := decide(state)
				c.Events = []puntuale.EventType{kind}
				return c, err
			}
			s.must(s.PutBooking(context.Background(), r))
		}
	}, []string{"booking.created", "booking.moved", "message.rescheduled", "booking.confirmed", "message.rescheduled", "booking.cancelled", "message.rescheduled",
		"booking.arrived", "message.rescheduled", "booking.no_show", "message.rescheduled", "booking.answered", "message.rescheduled"}},

	"blacklist": {func(s *eventClient) {
		e := puntuale.BlacklistEntry{Phone: "+393330000077", Reason: "Ha telefonato", Added: begin}
		ctx := context.Background()
		s.must(nil, s.AddBlacklisted(ctx, e, storetest.Day, nil))
		s.must(nil, s.AddBlacklisted(ctx, e, storetest.Day, nil)) // it is there already
		s.must(s.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{e.Phone}}, storetest.Day, begin))
		s.must(s.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{e.Phone}}, storetest.Day, begin))
		s.must(s.AddAllBlacklisted(ctx, []puntuale.BlacklistEntry{e, {Phone: "+393330000078", Added: begin}}))
		all, _, err := s.Blacklist(ctx, puntuale.Page{})
		s.must(all, err)
		s.must(nil, s.RemoveBlacklistEntry(ctx, all[0].ID, begin))
	}, []string{"blacklist.added", "blacklist.removed", "blacklist.added", "blacklist.added", "blacklist.removed"}},

	"number": {func(s *eventClient) {
		ctx := context.Background()
		c := puntuale.NumberChange{Client: s.ID, Session: s.Session, ID: "1", Mark: "1", At: begin, Old: []string{"+393330000081"}, New: []string{"+393330000082"}}
		s.must(nil, s.w.ChangeNumber(ctx, begin, c))
		s.must(nil, s.w.ChangeNumber(ctx, begin, c)) // it is told twice
		s.must(s.UndoChange(ctx, "+393330000082", storetest.Day, begin))
	}, []string{"contact.changed_number", "contact.changed_number"}},
	"template of Meta": {func(s *eventClient) {
		id := s.business("uno", "due") // the first list must cause no event
		s.listed(id, begin.Add(time.Second), puntuale.TemplateApproved, "uno", "due")
		s.receiveTemplateEvent(id, puntuale.TemplateEvent{Name: "uno", Status: puntuale.TemplatePaused, At: begin.Add(time.Minute)})
		s.receiveTemplateEvent(id, puntuale.TemplateEvent{Name: "uno", Status: puntuale.TemplatePaused, At: begin.Add(time.Minute)})
		s.receiveTemplateEvent(id, puntuale.TemplateEvent{Name: "uno", Status: puntuale.TemplateApproved, At: begin})                        // this event is older than the stored status
		s.receiveTemplateEvent(id, puntuale.TemplateEvent{Name: "due", Quality: "RED", At: begin.Add(time.Minute)})                          // the template's quality fell
		s.listed(id, begin.Add(time.Hour), puntuale.TemplateApproved, "uno", "tre")                                                          // uno is approved again, due is missing, tre is new
		s.receiveTemplateEvent(id, puntuale.TemplateEvent{Name: "quattro", Status: puntuale.TemplateApproved, At: begin.Add(2 * time.Hour)}) // no list has contained quattro yet
		s.listed(id, begin.Add(3*time.Hour), puntuale.TemplateApproved, "uno", "tre", "quattro")
	}, slices.Repeat([]string{"template.changed"}, 6)},
	"template of one's own": {func(s *eventClient) {
		m := puntuale.Template{Name: "mio", Text: "ciao", Created: begin, Updated: begin}
		id, err := s.CreateTemplate(context.Background(), m, nil)
		s.must(id, err)
		m.ID, m.Text = id, "salve"
		s.must(nil, s.UpdateTemplate(context.Background(), m))
		s.must(nil, s.DeleteTemplate(context.Background(), id))
	}, slices.Repeat([]string{"template.changed"}, 3)},
}

const oneDay = 24 * time.Hour

// TestFacts checks that each change causes its events once, whatever changes came before.
func TestFacts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) { testMoves(t, w, eventCases) })
}

// TestEveryTypeComes checks, for each type of event that a webhook can subscribe to, that at least one case causes it.
func TestEveryTypeComes(t *testing.T) {
	t.Parallel()
	come := map[string]bool{
		puntuale.EventWebhookDisabled.String(): true, // TestDisabled checks it
		puntuale.EventAutomationFired.String(): true, // the tests of automations check it
		puntuale.EventLinkClicked.String():     true, // the store's tests of links check it
		puntuale.EventFileKept.String():        true, // the store's tests of files of replies check it
		puntuale.EventFileFailed.String():      true,
	}
	for _, table := range []map[string]moveCase{moves, eventCases} {
		for _, m := range table {
			for _, name := range m.want {
				come[name] = true
			}
		}
	}
	for _, kind := range puntuale.AllEvents.Types() {
		if !come[kind.String()] {
			t.Errorf("nothing emits %s", kind)
		}
	}
	if len(come) != len(puntuale.AllEvents.Types()) {
		t.Errorf("%v come", slices.Sorted(maps.Keys(come)))
	}
}

// TestDetails checks the details of events. They contain data that the subject's row may not have any more.
func TestDetails(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		s := newEventClient(t, w)
		id := s.campaign(1)
		s.change(id, puntuale.CampaignByCredit, puntuale.CampaignPaused, puntuale.CampaignRunning)
		s.links(online, banned)
		s.cap(3)
		s.calls(2, storetest.Day)
		s.ends(begin.Add(20*oneDay), -3*oneDay+time.Second)
		got := s.all()
		for i, want := range []string{
			`{"name":"Auguri","state":"running"}`,
			`{"name":"Auguri","state":"paused","reason":"no_credit"}`,
			`{"name":"predefinita","connection_type":"Socket","sandbox":true,"state":"banned","until":"` + outbox.Moment(banned.Until) + `"}`,
			`{"daily_api_cap":3,"daily_api_used":3}`,
			`{"daily_api_cap":3,"daily_api_used":3}`,
			`{"expiration_date":"` + puntuale.DateOf(begin.Add(20*oneDay-time.Hour)).String() + `","days":2}`,
		} {
			if i >= len(got) || got[i].Detail != want {
				t.Errorf("event %d is %+v, want %s", i, got[min(i, len(got)-1)], want)
			}
		}
	})
}

// budget sets the client's budget, in euros; 0: none.
func (s *eventClient) budget(amount int64) {
	s.w.PriceMessages(func(puntuale.BilledMessage) (int64, bool) { return 0, true }, "EUR")
	s.must(nil, s.w.SetBudget(context.Background(), s.ID, amount*1_000_000, "EUR", begin))
	s.keepBudgets()
}

// spent sets what the month's messages cost, in millionths of a euro.
func (s *eventClient) spent(amount int) {
	s.w.Exec("update budget set spent = $1", amount)
	s.keepBudgets()
}

func (s *eventClient) keepBudgets() {
	s.must(nil, s.w.KeepBudgets(context.Background(), begin, func(puntuale.SessionID, time.Time) {}))
}
